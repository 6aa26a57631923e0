# SPDX-License-Identifier: Apache-2.0
"""A training that runs until a signal tells it to save and end. Each rank says where and in which run it is.

Usage: until_told.py [--until SIGNAL ...] [--runs N] [--takes SECONDS]. Ends with 0 after one of the signals, when the saving is
done, or at once in run N. Rank 0 only reports SIGUSR1 and SIGUSR2 if it is not to end by them; the other ranks do not handle
them.
"""

import argparse
import os
import signal
import time

parser = argparse.ArgumentParser()
parser.add_argument("--until", nargs="+", default=[])
parser.add_argument("--runs", type=int)
parser.add_argument("--takes", type=float, default=0)
options = parser.parse_args()
until = [signal.Signals[name] for name in options.until]
rank, host = os.environ["RANK"], os.uname().nodename
restarts = int(os.environ.get("SLURM_RESTART_COUNT", "0"))


def say(text):
    # At once: the workers of a machine may share a pipe.
    os.write(1, f"rank {rank} on {host}: {text}\n".encode())


reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
for number in [*until, *([signal.SIGUSR1, signal.SIGUSR2] if rank == "0" else [])]:
    signal.signal(number, lambda *_: None)
say(f"run {os.environ['TORCHELASTIC_RUN_ID']}, restart {restarts}")
while restarts != options.runs:
    got = signal.Signals(os.read(reader, 1)[0])
    say(f"got {got.name}")
    if got in until:
        time.sleep(options.takes)  # plays the saving
        break
say("saved")
