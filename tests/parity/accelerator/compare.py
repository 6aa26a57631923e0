# SPDX-License-Identifier: Apache-2.0
"""compare.py CPP PYTHON: each line is `rank case name value...`; numbers may be 1e-6 apart."""
import sys


def read(path):
    lines = {}
    for line in open(path):
        rank, case, name, *values = line.split()
        assert (rank, case, name) not in lines, line
        lines[rank, case, name] = values
    return lines


def same(one, other):
    try:
        return abs(float(one) - float(other)) <= 1e-6 * max(1, abs(float(other)))
    except ValueError:
        return one == other


cpp, python = read(sys.argv[1]), read(sys.argv[2])
wrong = [f"only one side tells {key}" for key in sorted(cpp.keys() ^ python.keys())]
for key in sorted(cpp.keys() & python.keys()):
    ours, theirs = cpp[key], python[key]
    if len(ours) != len(theirs) or not all(map(same, ours, theirs)):
        wrong.append(f"{' '.join(key)}: C++ {' '.join(ours)}, Python {' '.join(theirs)}")
print("\n".join(wrong) or f"{len(cpp)} lines agree")
sys.exit(bool(wrong) or not cpp)
