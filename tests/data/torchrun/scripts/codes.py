# SPDX-License-Identifier: Apache-2.0
"""Ends rank r with the r-th of EXIT_CODES (sN: by signal N) in the first FAIL_ATTEMPTS attempts; 0 otherwise."""
import os
import signal
import sys

import dump  # noqa: F401

rank = int(os.environ["RANK"])
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
codes = os.environ.get("EXIT_CODES", "0").split(",")
code = codes[rank] if rank < len(codes) else "0"
if attempt >= int(os.environ.get("FAIL_ATTEMPTS", "1000")):
    sys.exit(0)
if code.startswith("s"):
    os.kill(os.getpid(), int(code[1:]))
if code == "0" and "WAIT" in os.environ:
    signal.pause()
# The other ranks must have left their report before this one's end stops them.
while len([name for name in os.listdir(os.environ["DUMP_DIR"]) if name.endswith(".json")]) < int(os.environ["WORLD_SIZE"]):
    os.sched_yield()
sys.exit(int(code))
