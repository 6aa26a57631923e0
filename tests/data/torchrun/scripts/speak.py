# SPDX-License-Identifier: Apache-2.0
"""Two lines on stdout, one on stderr."""
import os
import sys

import dump  # noqa: F401

rank = os.environ["RANK"]
print("out apple", rank, flush=True)
print("out pear", rank, flush=True)
print("err apple", rank, file=sys.stderr, flush=True)
