#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of the pages of apps/docs (or of a PAGE beside them), in the order of each page, in a folder with the files that they name.

    guide_test.py ACC FAKE_NVML_FOLDER [PAGE ...]

Each fenced block is checked by its language, or as the HTML comments in front of it say:

    ```sh                   is run and must succeed; a line that readme_test.py has a case for is run by that
    <!-- exit N -->         it ends with exit code N
    <!-- needs MODULES -->  it is run where ACC_PEER_PYTHON names a Python that has them: `torch`, or `trl, peft`
    <!-- typed LINES -->    it is run on a terminal, and these lines are typed at the first `(Pdb)`: `p total, c`
    <!-- own network -->    it is run in a network namespace, whose ports are all free
    <!-- output -->         a block of text: lines that the block before has printed, in that order; `...` stands for
                            anything, on a line of its own for any lines
    <!-- file NAME -->      the block is the content of the file
    ```python               a cell of IPython: `%%writefile NAME`, or `!` and a command
    <!-- code ... -->       C++ that scripts/tutorial has taken from a program that is compiled and run; also diff, cell
    <!-- not run: WHY -->   the block is only shown

Commands within a line are run where readme_test.py has a case for them. Those and commands on indented lines are checked
for their words: the subcommand exists, and has the flags.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from readme_test import CASES, ROOT, Skipped, Workspace, isolated, need, on_terminal

DOCS = ROOT / "apps/docs"
WORKERS = {
    "hello.py": 'import os\nprint("hello from rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], flush=True)\n',
    "waits.py": "import time\ntime.sleep(1000)\n",
    "fails_once.py": """\
import os, sys, time
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if os.environ["RANK"] == "1":
    if attempt == 0:
        sys.exit(3)
    print("rank 1 goes on at attempt", attempt, flush=True)
""",
    "fails_early.py": "import sys\nimport torch\nsys.exit(3)\n",
    "broken.py": """\
import os
import time

if os.environ["RANK"] == "1":
    raise FileNotFoundError("shard-1.tar")
time.sleep(1000)
""",
}
SHOWN = {"code": "cpp", "diff": "diff", "cell": None}  # filled and compared by scripts/tutorial


class Block:
    def __init__(self, line, language, text, marks):
        self.line = line
        self.language = language
        self.text = text
        self.marks = marks  # the HTML comments in front: the first word, and the rest

    def __str__(self):
        return f"line {self.line}"


def blocks_of(page):
    lines = page.splitlines()
    blocks = []
    marks = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        if mark := re.fullmatch(r"<!-- (not run|needs|\w+):? ?(.*?) -->", line):
            marks[mark[1]] = mark[2]
        elif line.startswith("```"):
            begin = number
            number = lines.index("```", begin + 1)
            blocks.append(Block(begin + 1, line.removeprefix("```"), "\n".join(lines[begin + 1 : number]) + "\n", marks))
            marks = {}
        elif line:
            marks = {}
        number += 1
    return blocks


def python_with(modules):
    """ACC_PEER_PYTHON, if it has the modules."""
    python = os.environ.get("ACC_PEER_PYTHON")
    if not python:
        raise Skipped("ACC_PEER_PYTHON names no Python with the peers")
    finds = "import importlib.util, sys; print(*(name for name in sys.argv[1:] if not importlib.util.find_spec(name)))"
    missing = subprocess.run([python, "-c", finds, *modules], capture_output=True, text=True, check=True).stdout.split()
    need("torch" not in missing, f"{python} has no torch")
    if missing:
        raise Skipped(f"{python} has no {', '.join(missing)}")
    return python


def matches(expected, printed):
    """Whether the lines are among those printed, one after another; the width of spaces does not count."""
    expected, printed = (re.sub(" +", " ", text) for text in (expected, printed))
    pattern = ""
    for line in expected.splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part.rstrip()) for part in line.split("...")) + r"[ ]*\n"
    return re.search("^" + pattern, printed, flags=re.MULTILINE) is not None


class Page:
    """Runs the blocks of a page in one folder."""

    def __init__(self, name, folder):
        self.name = name
        self.workspace = Workspace(folder)
        for file, text in WORKERS.items():
            (self.workspace.folder / file).write_text(text)
        self.printed = None  # by the last block that was run; None: it was not

    def run(self, block):
        if "needs" in block.marks:
            self.printed = None
            python = python_with(block.marks["needs"].split(", "))
            before = self.workspace.environment["PATH"]
            self.workspace.environment["PATH"] = f"{pathlib.Path(python).parent}:{before}"
            try:
                self.run_script(block)
            finally:
                self.workspace.environment["PATH"] = before
        else:
            self.run_script(block)

    def run_script(self, block):
        self.printed = None
        lines = [line.split("   #")[0].strip() for line in block.text.splitlines() if line.strip()]
        if all(line in CASES for line in lines):
            for line in lines:
                run_case(line)
            return
        if "typed" in block.marks:
            keys = "".join(f"{line}\r" for line in block.marks["typed"].split(", "))
            self.printed = on_terminal(self.workspace, block.text, answers=[("(Pdb) ", keys.encode())]).replace("\r\n", "\n")
            return
        script = "set -e\n" + block.text
        if "own" in block.marks:
            script = shlex.join([*isolated("--net"), "ip link set lo up\n" + script])
        self.printed = self.workspace.run(script, expect=int(block.marks.get("exit", 0)))

    def check(self, block):
        marks = block.marks
        if "not run" in marks:
            need(len(marks["not run"]) > 10, "says no reason")
        elif "file" in marks:
            (self.workspace.folder / marks["file"]).write_text(block.text)
        elif "output" in marks:
            if self.printed is not None:
                need(matches(block.text, self.printed), f"is not what is printed:\n{self.printed}")
        elif block.language == "sh":
            self.run(block)
        elif cell := re.match(r"%%writefile (\S+)\n", block.text):
            (self.workspace.folder / cell[1]).write_text(block.text[cell.end() :])
        elif block.text.startswith("!"):
            self.run_script(Block(block.line, "sh", block.text[1:], block.marks))
        else:
            need(SHOWN.keys() & marks.keys(), "nothing says how it is checked")


def flags_of(words, known):
    """The flags of `acc WORDS`, from its help."""
    command = tuple(words)
    if command not in known:
        help_flag = "--help-all" if words and words[0] in ("launch", "run") else "--help"
        workspace = known["workspace"]
        text = workspace.run(shlex.join(["acc", *words, help_flag]))
        spellings = {spelling.replace("_", "-") for spelling in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text)}
        known[command] = spellings | {"--help", "--help-all", "--version", "-h"}
    return known[command]


def check_words(text, known):
    """Commands within lines: `acc launch --dry_run train.py`."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!-- table .*?<!-- end of table -->", "", text, flags=re.DOTALL)
    indented = re.findall(r"^    (?:\S+ )*?(acc [a-z].*?)(?:   #.*)?$", text, flags=re.MULTILINE)
    for span in re.findall(r"`(acc [^`]+)`", text) + indented:
        words = shlex.split(span)[1:]
        command = []
        if words and not words[0].startswith("-"):
            command = words[:1]
            if words[0] in ("config", "notebook") and len(words) > 1 and re.fullmatch("[a-z]+", words[1]):
                command = words[:2]
        try:
            flags = flags_of(command, known)
        except AssertionError:
            raise AssertionError(f"`{span}`: there is no such command") from None
        for word in words:
            flag = word.split("=")[0].replace("_", "-")
            if command and command[0] in ("launch", "run") and re.fullmatch(r"[^-].*(/.*|\.py|\.\.\.)", word):
                break  # the program, as a rule: what follows is its own
            if flag.startswith("-") and flag not in flags and flag != "--json":
                raise AssertionError(f"`{span}`: acc {' '.join(command)} has no {flag}")


def inline_cases(text, blocks):
    """The commands within lines that readme_test.py has a case for and no block runs."""
    in_blocks = "\n".join(block.text for block in blocks)
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [span for span in dict.fromkeys(re.findall(r"`([^`\n]+)`", outside)) if span in CASES and span not in in_blocks]


def run_case(command):
    with tempfile.TemporaryDirectory(prefix="acc-guide-") as folder:
        CASES[command](Workspace(folder), command)


def main():
    names = sys.argv[3:] or sorted(page.name for page in DOCS.glob("*.md"))
    failed = False
    for name in names:
        text = (DOCS / name).read_text()
        with tempfile.TemporaryDirectory(prefix="acc-guide-") as folder:
            page = Page(name, folder)
            blocks = blocks_of(text)
            checks = [(f"{name}, {block}", lambda block=block: page.check(block)) for block in blocks]
            checks += [(f"{name}, {command}", lambda command=command: run_case(command))
                       for command in inline_cases(text, blocks)]
            checks.append((f"{name}, commands within lines", lambda: check_words(text, {"workspace": page.workspace})))
            for title, check in checks:
                try:
                    check()
                    print(f"ok: {title}", flush=True)
                except Skipped as reason:
                    print(f"skipped: {reason}\n({title})", flush=True)
                except AssertionError as error:
                    print(f"FAILED: {title}: {error}", flush=True)
                    failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
