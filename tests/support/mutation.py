#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts faults into a copy of a source, of which a test chooses one when it runs.

A fault replaces an expression or statements (what ends with a newline), where a variable has its number. A text that is not
in the source exactly once ends the build: the fault has to follow the source."""
import collections
import pathlib
import sys


def choice(old, numbered, variable):
    """What takes the place of a text: that of the chosen mutant, or the text itself."""
    result = old
    for number, new in numbered:
        if old.endswith("\n"):
            result = f"  if ({variable} == {number}) {{\n{new}  }} else {{\n{result}  }}\n"
        elif old.endswith("&&"):
            result = f"({variable} != {number}) && {result}"
        else:
            result = f"({variable} == {number} ? ({new}) : ({result}))"
    return result


def mutate(source, replacements, variable):
    """The text of `source`, a path. `replacements`: (number, old, new) of each fault in it."""
    text = source.read_text()
    numbered_faults = collections.defaultdict(list)
    for number, old, new in replacements:
        numbered_faults[old].append((number, new))
    for old, numbered in numbered_faults.items():
        if text.count(old) != 1:
            sys.exit(f"{text.count(old)} times in {source}, not once: {old!r}; adapt the faults to the source")
        text = text.replace(old, choice(old, numbered, variable))
    return text


def list_of(names):
    """The names as the elements of a list in C++."""
    return "".join(f'    "{name}",\n' for name in names)


def write_copies(mutants):
    """For `... LIBRARY RESULT SOURCE...`: writes RESULT/SOURCE with those of the mutants (name: source, old, new) that are of
    this source, and RESULT/names.cpp with the names of all."""
    library, result = map(pathlib.Path, sys.argv[1:3])
    header = '#include "simulation/mutants/mutants.hpp"\n'
    for name in sys.argv[3:]:
        replacements = [(number, old, new) for number, (source, old, new) in enumerate(mutants.values(), 1) if source == name]
        text = mutate(library / name, replacements, "simulation::mutant")
        (result / name).parent.mkdir(parents=True, exist_ok=True)
        (result / name).write_text(header + text)
    (result / "names.cpp").write_text(
        f"{header}\nconst std::vector<std::string> simulation::kMutants = {{\n{list_of(mutants)}}};\n")
