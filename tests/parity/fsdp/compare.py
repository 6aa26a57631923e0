# SPDX-License-Identifier: Apache-2.0
"""compare.py CPP PYTHON SETUP: the losses of each step in both files, and how far they may be apart."""
import sys


def read(path):
    with open(path) as lines:
        return [float(line) for line in lines]


ours, theirs, setup = read(sys.argv[1]), read(sys.argv[2]), sys.argv[3]
if len(ours) < 50 or len(ours) != len(theirs):
    sys.exit(f"{len(ours)} numbers, {len(theirs)} in Python")
differences = [abs(a - b) for a, b in zip(ours, theirs)]
print(f"first difference {differences[0]:.3g}, largest {max(differences):.3g}, of {len(ours)}")
if "bf16" in setup:
    # The same to the bit, until the last digit of a float32 value decides how it is rounded to bf16.
    sys.exit(differences[0] > 0 or max(differences[:10]) > 1e-3 or max(differences) > 1e-2)
sys.exit(max(differences) > 1e-5)
