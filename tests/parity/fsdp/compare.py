# SPDX-License-Identifier: Apache-2.0
"""compare.py CPP PYTHON SETUP PROCESSES [LIMIT]: the losses of each step in both files, and how far they may be apart:
without LIMIT as on CPUs."""
import sys


def read(path):
    with open(path) as lines:
        return [float(line) for line in lines]


ours, theirs, setup, processes = read(sys.argv[1]), read(sys.argv[2]), sys.argv[3], int(sys.argv[4])
limit = float(sys.argv[5]) if len(sys.argv) > 5 else 1e-5 if processes > 2 or "lerp" in setup else 1e-6
if len(ours) < 25 or len(ours) != len(theirs):
    sys.exit(f"{len(ours)} numbers, {len(theirs)} in Python")
differences = [abs(a - b) for a, b in zip(ours, theirs)]
print(f"first difference {differences[0]:.3g}, largest {max(differences):.3g}, of {len(ours)}")
# On two processes each loss is the same to the bit where both sides have the same LibTorch, also in bf16; the norm of all
# gradients is added in another order. On more, so are gradients. `lerp`: Python's own AdamW, which rounds otherwise.
sys.exit(max(differences) > limit)
