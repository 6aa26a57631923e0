# SPDX-License-Identifier: Apache-2.0
"""recovery_test.py ACC PROGRAM PROCESSES KILLS: a training of which ranks are killed at random moments ends with the very
weights of one that nobody disturbed. ACC_TEST_SEED repeats the moments. PROGRAM is recovering_run."""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

acc, program, processes, kills = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
seed = int(os.environ.get("ACC_TEST_SEED", "0")) or random.randrange(1 << 30)
print("ACC_TEST_SEED", seed)
chance = random.Random(seed)
STEPS = 3 * 64 // processes  # of the training


def train(folder, *, restarts, moments=""):
    command = [acc, "launch", "--standalone", "--no-python", "--nproc-per-node", str(processes), "--max-restarts", str(restarts),
               "--memory-checkpoints", "64MB", program, folder]
    done = subprocess.run(command, env={**os.environ, "ACC_TEST_KILLS": moments}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0 or "trained " not in done.stdout:
        sys.exit(f"the training ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def moments_of_kills():
    """RANK:STEPS:MICROSECONDS, as many as there are kills: all ranks, all steps, every moment of a step or of a start."""
    longest = (STEPS - 8) // kills
    moments = []
    for i in range(kills):
        # The last one has a state to go on from: that of step 3 is complete when that of step 6 has begun.
        steps = chance.randrange(7, max(longest, 8)) if i + 1 == kills else chance.randrange(longest)
        moments.append((chance.randrange(processes), steps, chance.randrange(100_000 if steps == 0 else 2_000)))
    return moments


def check(folder, moments):
    text = train(folder, restarts=kills, moments=",".join(":".join(map(str, moment)) for moment in moments))
    if "damaged" in text or "not saved" in text:
        sys.exit(text)
    begun = [int(step) for step in re.findall(r"rank 0 goes on after step (\d+)", text)]
    print("killed at", *moments, "went on after steps", *begun)
    # On a loaded machine the training may be over before a moment comes.
    if begun != sorted(begun) or (len(begun) > kills and begun[-1] == 0):
        sys.exit(f"went on after steps {begun}:\n{text}")


with tempfile.TemporaryDirectory(prefix="acc-recovery-") as name:
    whole, killed = pathlib.Path(name, "whole"), pathlib.Path(name, "killed")
    train(whole, restarts=0)
    check(killed, moments_of_kills())
    if (whole / "model.safetensors").read_bytes() != (killed / "model.safetensors").read_bytes():
        sys.exit("the weights differ")
