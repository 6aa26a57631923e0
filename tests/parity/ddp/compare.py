# SPDX-License-Identifier: Apache-2.0
"""compare.py CPP PYTHON SETUP: the losses of each rank and step, and how far they may be apart."""
import sys


def read(path):
    rows = {}
    for line in open(path):
        word, rank, step, loss = line.split()
        assert word == "loss"
        rows[int(rank), int(step)] = float(loss)
    return rows


cpp, python = read(sys.argv[1]), read(sys.argv[2])
if cpp.keys() != python.keys() or len(cpp) != 40:
    sys.exit(f"not the same steps: {sorted(cpp.keys() ^ python.keys())}")
# bf16 sums in another order where a buffer is aligned differently.
limit = 1e-3 if sys.argv[3] == "bf16" else 1e-6
worst = max(abs(cpp[key] - python[key]) for key in cpp)
print(f"largest difference over {len(cpp)} losses: {worst:.3g} (at most {limit:g})")
sys.exit(worst > limit)
