# SPDX-License-Identifier: Apache-2.0
"""split.py WORKER: the split of the pets example is that of accelerate's complete_cv_example.py."""
import subprocess
import sys

import numpy as np

for seed, size in ((42, 7390), (0, 1), (1, 2), (7, 5), (123456, 1000), (2**32 - 1, 257)):
    said = subprocess.run([sys.argv[1], "split", str(seed), str(size)], check=True, capture_output=True, text=True).stdout
    train, held_out = ([int(word) for word in line.split()] for line in said.splitlines())
    np.random.seed(seed)
    order = np.random.permutation(size)
    cut = int(0.8 * size)
    assert train == list(order[:cut]), f"seed {seed}, {size} files: {train[:5]}... and numpy's {order[:5]}..."
    assert held_out == list(order[cut:]), f"seed {seed}, {size} files"
