# SPDX-License-Identifier: Apache-2.0
"""recovery_test.py ACC PROGRAM PROCESSES KILLS: a training of which ranks are killed at random moments ends with the very
weights of one that nobody disturbed. ACC_TEST_SEED repeats the moments. PROGRAM is recovering_run."""
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

acc, program, processes, kills = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
seed = int(os.environ.get("ACC_TEST_SEED", "0")) or random.randrange(1 << 30)
print("ACC_TEST_SEED", seed)
chance = random.Random(seed)
BEGUN = re.compile(r"rank (\d+) pid (\d+) goes on after step (\d+)")


def command(folder, restarts):
    return [acc, "launch", "--standalone", "--no-python", "--nproc-per-node", str(processes), "--max-restarts", str(restarts),
            "--memory-checkpoints", "64MB", program, folder]


def train(folder):
    """Undisturbed. Returns the seconds from its first step to its end."""
    process = subprocess.Popen(command(folder, 0), stdout=subprocess.PIPE, text=True)
    began = None
    for line in process.stdout:
        began = began or (time.monotonic() if BEGUN.search(line) else None)
    if process.wait() != 0:
        sys.exit(f"the training ended with {process.returncode}")
    return time.monotonic() - began


def train_with_kills(folder, seconds):
    """Returns after which steps the attempts went on."""
    process = subprocess.Popen(command(folder, kills), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines, begun, steps = [], {}, []
    for line in process.stdout:
        lines.append(line)
        match = BEGUN.search(line)
        if not match:
            continue
        rank, pid, step = map(int, match.groups())
        begun[rank] = pid
        if len(begun) < processes:
            continue
        steps.append(step)
        if len(steps) <= kills:
            # At any moment of what an attempt may do before it gets through.
            time.sleep(chance.uniform(0, 0.5 * seconds))
            with contextlib.suppress(ProcessLookupError):  # it has trained to the end meanwhile
                os.kill(begun[chance.randrange(processes)], signal.SIGKILL)
        begun.clear()
    text = "".join(lines)
    if process.wait() != 0 or "trained " not in text:
        sys.exit(f"the training ended with {process.returncode}:\n{text}")
    if "damaged" in text or "not saved" in text:
        sys.exit(text)
    return steps


with tempfile.TemporaryDirectory(prefix="acc-recovery-") as name:
    whole, killed = pathlib.Path(name, "whole"), pathlib.Path(name, "killed")
    seconds = train(whole)
    steps = train_with_kills(killed, seconds)
    print("went on after steps", *steps)
    if not 1 < len(steps) <= kills + 1 or steps != sorted(steps) or steps[0] != 0 or steps[-1] == 0:
        sys.exit(f"went on after steps {steps}")
    if (whole / "model.safetensors").read_bytes() != (killed / "model.safetensors").read_bytes():
        sys.exit("the weights differ")
