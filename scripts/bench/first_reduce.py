# SPDX-License-Identifier: Apache-2.0
"""What scripts/bench/launch starts to measure Python's imports: a worker of PyTorch that notes when its first all-reduce
is done, as worker.cpp notes things.

    first_reduce.py end|hold|crash_once FOLDER
"""
import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist

action, folder = sys.argv[1:]
rank = os.environ["RANK"]


def note(name, value):
    unfinished = pathlib.Path(folder, f"{name}.{rank}.part")
    unfinished.write_text(str(value))
    unfinished.rename(unfinished.with_suffix(""))


dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
note("reduced" if first else "reduced_again", time.monotonic_ns())
if action == "hold":
    note("pid", os.getpid())
    signal.pause()
# All are through before one ends.
dist.barrier()
if action == "crash_once" and first:
    if rank == "0":
        note("crash", time.monotonic_ns())
        os._exit(3)
    signal.pause()
sys.stdout.flush()
os._exit(0)
