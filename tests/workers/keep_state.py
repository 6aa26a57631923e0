# SPDX-License-Identifier: Apache-2.0
"""A training that has its state in memory, saves it once more when it gets a signal, and ends.

Usage: keep_state.py SAVE_STATE RUNS. On a disk its states belong to RUNS; the run says first which it finds there.
"""

import os
import pathlib
import signal
import subprocess
import sys

SAVE_STATE, RUNS = sys.argv[1:]
SIGNALS = {signal.SIGUSR1, signal.SIGTERM}
host, run = os.uname().nodename, 2 * int(os.environ.get("SLURM_RESTART_COUNT", "0"))


def save(number):
    subprocess.run([SAVE_STATE, f"{RUNS}/checkpoint-{number}", str(number), "20000"], check=True)


for number in SIGNALS:
    signal.signal(number, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
runs = pathlib.Path(RUNS)
begins = max((int(folder.name.removeprefix("checkpoint-")) for folder in runs.glob("checkpoint-*")), default=0)
save(run + 1)
os.write(1, f"{host} goes on after {begins}\n".encode())
signal.sigwait(SIGNALS)
save(run + 2)
