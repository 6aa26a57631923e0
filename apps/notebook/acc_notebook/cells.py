# SPDX-License-Identifier: Apache-2.0
"""Splits the C++ of a notebook cell into what the interpreter takes at once. Pure: knows neither IPython nor cling."""

import bisect
import dataclasses
import re


class CellError(Exception):
    """The cell cannot be split: something in it is not closed."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """Consecutive declarations, or one statement."""

    text: str
    line: int  # of its first line in the cell, from 1
    declares: bool  # it stands outside of functions: types, functions, templates, directives


TOKEN = re.compile(
    r"""
    (?P<space>\s+|\\\n)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<name>[A-Za-z_$][\w$]*)
  | (?P<mark>::|->|&&|[-+*/%^&|!=<>]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
DIRECTIVE = re.compile(r"[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.DOTALL)
RAW_STRING = re.compile(r'(?:u8|[uUL])?R"[^()\\\s]{0,16}\(')
CONDITION = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|endif)\b")

CLOSING = {"(": ")", "[": "]", "{": "}"}
CONTROL = {"if", "for", "while", "switch", "do", "try"}
STATEMENTS = {*CONTROL, "return", "throw", "goto", "break", "continue", "delete", "co_return", "co_await", "co_yield"}
DECLARATIONS = {"class", "struct", "union", "enum", "namespace", "template", "using", "typedef", "extern", "static_assert",
                "concept", "asm"}
MODULE = re.compile(r"TORCH_MODULE\s*\(\s*(\w+)\s*\)\s*;?")


def split(cell):
    """The pieces of a cell, in order; comments alone are none. Throws CellError."""
    pieces = []
    for piece in _Splitter(cell).pieces():
        last = pieces[-1] if pieces else None
        if last and last.declares and piece.declares:
            gap = piece.line - last.line - last.text.count("\n")
            same_line = gap == 0 and not last.text.endswith("\n")
            text = f" {piece.text.lstrip()}" if same_line else "\n" * gap + piece.text
            pieces[-1] = dataclasses.replace(last, text=last.text + text)
        else:
            pieces.append(piece)
    return pieces


class _Splitter:
    def __init__(self, cell):
        self.cell = cell
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", cell))]
        self.begin_piece()

    def begin_piece(self):
        self.tokens = []  # (kind, text) of what is outside of all brackets
        self.start = None
        self.open = []  # (bracket, position)
        self.is_body = False  # the last brace that was opened outside of all others ends a piece

    def line_of(self, at):
        return bisect.bisect_right(self.line_starts, at)

    def fail(self, at, what):
        raise CellError(f"line {self.line_of(at)}: {what}")

    def pieces(self):
        at = 0
        while at < len(self.cell):
            if self.at_line_start(at) and (directive := DIRECTIVE.match(self.cell, at)):
                if self.start is None:
                    end = self.end_of_condition(at) if CONDITION.match(directive[0]) else directive.end()
                    # On a line of its own, and alone in it.
                    yield Piece(self.cell[at:end] + "\n", self.line_of(at), True)
                    at = end
                    self.begin_piece()
                else:
                    at = directive.end()
                continue
            token = self.token_at(at)
            at = token.end()
            if token.lastgroup in ("space", "comment"):
                continue
            if self.start is None:
                self.start = token.start()
            if self.take(token) and not self.goes_on(at):
                yield from self.finished(at)
                self.begin_piece()
        if self.open:
            bracket, where = self.open[-1]
            self.fail(where, f"'{bracket}' is not closed")
        if self.start is not None:
            yield from self.finished(len(self.cell))

    def at_line_start(self, at):
        return not self.cell[self.line_starts[self.line_of(at) - 1] : at].strip()

    def token_at(self, at):
        token = TOKEN.match(self.cell, at)
        # Of what is not closed the expression takes the beginning alone.
        if token["mark"] in ('"', "'"):
            self.fail(at, f"{token['mark']} is not closed")
        if token["mark"] and self.cell.startswith("/*", at):
            self.fail(at, "the comment is not closed")
        if token["name"] and RAW_STRING.match(self.cell, at):
            self.fail(at, "the raw string is not closed")
        return token

    def end_of_condition(self, at):
        """The end of the line with the #endif of the #if here."""
        depth = 0
        for line in re.compile(r"^.*$", re.MULTILINE).finditer(self.cell, at):
            if found := CONDITION.match(line[0]):
                depth += -1 if found[1] == "endif" else 1
                if depth == 0:
                    return line.end()
        return self.fail(at, "#if without #endif")

    def take(self, token):
        """Whether a piece can end behind it."""
        text = token[0]
        if token.lastgroup == "mark" and text in CLOSING:
            if not self.open and text == "{":
                self.is_body = self.opens_body()
            if not self.open:
                self.tokens.append(text)
            self.open.append((text, token.start()))
            return False
        if token.lastgroup == "mark" and text in CLOSING.values():
            if not self.open or CLOSING[self.open[-1][0]] != text:
                self.fail(token.start(), f"'{text}' closes nothing")
            self.open.pop()
            if not self.open:
                self.tokens.append(text)
            return not self.open and text == "}" and self.is_body
        if self.open:
            return False
        self.tokens.append(text)
        return text == ";"

    def heads(self):
        """The tokens behind a template's parameters, attributes and specifiers."""
        tokens = list(self.tokens)
        while tokens:
            if tokens[0] == "template" and tokens[1:2] == ["<"]:
                depth = 0
                for number, token in enumerate(tokens):
                    depth += (token == "<") - (token == ">")
                    if token == ">" and depth == 0:
                        break
                tokens = tokens[number + 1 :]
            elif tokens[:2] == ["[", "]"] and tokens[2:4] != ["(", ")"]:
                if len(tokens) == 2 or tokens[2] in ("{", "mutable", "->"):
                    break  # a lambda
                tokens = tokens[2:]
            elif tokens[0] in ("inline", "static", "constexpr", "consteval", "constinit", "const", "volatile", "virtual",
                               "thread_local", "alignas"):
                tokens = tokens[1:]
            else:
                break
        return tokens

    def opens_body(self):
        """Whether the brace that comes now begins a block: of a function, a control statement, a namespace."""
        tokens = self.heads()
        if not tokens or tokens[0] in CONTROL or tokens[0] in ("else", "namespace"):
            return True
        if tokens[0] == "extern":
            return len(self.tokens) == 2  # extern "C" {
        if tokens[0] == "[":
            return False
        for before, token in zip(["", *tokens], tokens):
            if token == "=" and before != "operator":
                return False
        # A function, or a macro that begins one: names stand before the brackets with its parameters.
        bracket = tokens.index("(") if "(" in tokens else 0
        if bracket == 0:
            return False
        if ":" in tokens[bracket:] and re.match(r"[\w>]", tokens[-1]):
            return False  # the initial value of a member: Foo::Foo() : member{1} {}
        return True

    def goes_on(self, at):
        """Whether the statement that could end here does not: else, catch, the while of a do."""
        while at < len(self.cell):
            token = self.token_at(at)
            if token.lastgroup not in ("space", "comment"):
                break
            at = token.end()
        else:
            return False
        following = token[0]
        tokens = self.heads()
        first = tokens[0] if tokens else ""
        if following == "else":
            return "if" in tokens
        if following == "catch":
            return "try" in tokens
        return following == "while" and first == "do" and self.tokens[-1] == "}"

    def declares(self):
        first = next(iter(self.heads()), "")
        if self.tokens[0] in DECLARATIONS or first in DECLARATIONS:
            return True
        if first in STATEMENTS or first in ("{", "["):
            return False
        if self.tokens[-1] == "}" and self.is_body:
            return True
        # Structured bindings, which the interpreter cannot take out of a statement.
        names = [token for token in self.heads() if token not in ("&", "&&")]
        return names[:2] == ["auto", "["]

    def finished(self, at):
        if self.tokens == [";"]:
            return
        line = self.line_of(self.start)
        # At its own column, for the compiler's messages.
        text = " " * (self.start - self.line_starts[line - 1]) + self.cell[self.start : at]
        declares = self.declares()
        if module := MODULE.fullmatch(text.strip()):
            # Written out: what a macro declares cannot be declared again.
            base = f"torch::nn::ModuleHolder<{module[1]}Impl>"
            text = f"class {module[1]} : public {base} {{ public: using {base}::ModuleHolder; using Impl = {module[1]}Impl; }};"
            declares = True
        yield Piece(text, line, declares)
