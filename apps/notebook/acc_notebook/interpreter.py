# SPDX-License-Identifier: Apache-2.0
"""cling, by way of cppyy: declares and runs the pieces of cells."""

import ctypes
import os

from . import cells
from .layout import COMPILER_OPTIONS, Layout


class CompileError(Exception):
    """The compiler's messages."""


class CppException(Exception):
    """An exception that C++ threw and nobody caught."""

    def __init__(self, type_name, message):
        super().__init__(message)
        self.type_name = type_name


class Interpreter:
    """One for a process: what its cells declare stays."""

    def __init__(self):
        os.environ.setdefault("EXTRA_CLING_ARGS", COMPILER_OPTIONS)
        import cppyy

        self.cppyy = cppyy
        self.count = 0
        interpreter = cppyy.gbl.gInterpreter
        self.process = interpreter.ProcessLine
        # Output is shown while a cell runs, and what C++ waits for may need Python.
        self.process.__release_gil__ = True
        layout = Layout.of_this_package()
        for folder in layout.include_folders:
            cppyy.add_include_path(str(folder))
        for library in layout.libraries:
            cppyy.load_library(str(library))
        cppyy.include(str(layout.folder / "cells.hpp"))
        self.helpers = cppyy.gbl.acc_cells
        self.helpers.write_lines()

    def run(self, cell, name):
        """Declares and runs a cell, whose name the compiler's messages say. Throws CellError, CompileError, CppException."""
        for piece in cells.split(cell):
            self.count += 1
            source = f'#line {piece.line} "{name}"\n{piece.text}'
            if piece.declares:
                # A declaration first: the interpreter then takes all of it for declarations.
                self.take(f"namespace {{ const bool acc_cells_{self.count} = acc_cells::run(); }}\n{source}\n")
            else:
                # The interpreter looks unknown names up while a statement runs; the compiler says where they stand.
                self.check(f"inline void acc_cells_{self.count}() {{\n{source}\n;}}\n")
                self.take(f"acc_cells::run();\n{source}\n")

    def check(self, code):
        self.diagnosed(lambda: self.cppyy.gbl.gInterpreter.Declare(code))

    def take(self, code):
        failed = ctypes.c_int(0)
        self.diagnosed(lambda: self.process(code, ctypes.pointer(failed)) is not None and failed.value == 0)

    def diagnosed(self, work):
        """Does the work, which tells whether it went well."""
        diagnostics = self.helpers.diagnostics
        diagnostics.compile()
        try:
            good = work()
        finally:
            diagnostics.end()
        if str(diagnostics.exception):
            raise CppException(str(diagnostics.exception), str(diagnostics.message))
        text = str(diagnostics.text.str()).strip("\n")
        if not good or "error:" in text:
            raise CompileError(text)

    def value(self, name):
        """A variable or a function of the cells, as cppyy shows it to Python: the one that was declared last."""
        self.count += 1
        code = f"namespace acc_cells_{self.count} {{ decltype(auto) value() {{ return acc_cells::value_of(::{name}); }} }}"
        try:
            self.check(code)
        except CompileError:
            return getattr(self.cppyy.gbl, name)  # types, namespaces, templates, overloads
        return getattr(self.cppyy.gbl, f"acc_cells_{self.count}").value()


class Names:
    """`cpp.losses` in Python: what cells of C++ have declared."""

    def __init__(self, interpreter):
        self._interpreter = interpreter

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self._interpreter.value(name)
