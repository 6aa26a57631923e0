# SPDX-License-Identifier: Apache-2.0
"""What the kernel does with cells: C++ goes to the interpreter, `%%python` to IPython."""

import os
import sys

from . import cells, header, interpreter, layout, output


class CellFailed(Exception):
    """Shown as its text alone: what is on the stack of Python tells nothing of C++."""

    def __init__(self, text):
        super().__init__(text)
        self.text = text

    def _render_traceback_(self):
        return [f"\x1b[0;31m{type(self).__name__}\x1b[0m: {self.text}"]


class CompileError(CellFailed):
    """The cell is not C++, or uses what is not declared."""


class CppException(CellFailed):
    """An exception that no cell caught."""


def load(shell):
    warnings = [header.use(layout.Layout.of_this_package())]
    cpp = interpreter.Interpreter()
    streams = output.Output()

    def run(line, cell=None):
        # In a cell: what is printed before reaches nobody.
        while warnings:
            if warning := warnings.pop():
                print(f"acc: {warning}", file=sys.stderr)
        try:
            with streams.shown():
                cpp.run(line if cell is None else cell, f"cell {shell.execution_count}")
        except (cells.CellError, interpreter.CompileError) as error:
            raise CompileError(str(error)) from None
        except interpreter.CppException as error:
            raise CppException(": ".join(filter(None, (error.type_name, str(error))))) from None

    shell.register_magic_function(run, "line_cell", "cpp")
    shell.user_ns["cpp"] = interpreter.Names(cpp)
    if os.environ.get("ACC_NOTEBOOK_CELLS") == "c++":
        shell.input_transformers_cleanup.insert(0, to_cpp)


def to_cpp(lines):
    """A cell as IPython is to take it: C++ unless it begins with what IPython knows, or %%python."""
    for number, line in enumerate(lines):
        if line.strip() == "%%python":
            return lines[number + 1 :]
        if line.strip():
            return lines if line.lstrip().startswith(("%", "!", "?")) else ["%%cpp\n", *lines]
    return lines
