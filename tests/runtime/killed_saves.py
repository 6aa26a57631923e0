# SPDX-License-Identifier: Apache-2.0
"""killed_saves.py PROGRAM [LAUNCHER... PROCESSES]: SIGKILLs a process of PROGRAM's [.saver] at random moments while it
saves, ACC_TEST_ROUNDS times (12), with ACC_TEST_BACKGROUND while it saves in the background, with ACC_TEST_SHARDS in
shards. The next one must find a whole checkpoint, no older than the last one that was said to be saved. What the kills left
over is gone with the next save."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROUNDS = int(os.environ.get("ACC_TEST_ROUNDS", "12"))
# The saver's limit. A checkpoint in the background may be complete before the oldest one is removed.
TOTAL_LIMIT = 2 + ("ACC_TEST_BACKGROUND" in os.environ)
LATEST = 3  # the latest time of a kill, in durations of a save
command = [*sys.argv[2:], sys.argv[1], "-w", "NoTests", "[.saver]"]
processes = int(sys.argv[-1]) if len(sys.argv) > 2 else 1
seed = int(os.environ.get("ACC_TEST_SEED", "0")) or random.randrange(1 << 30)
print("ACC_TEST_SEED", seed)
chance = random.Random(seed)


def environment(folder):
    return {**os.environ, "ACC_TEST_FOLDER": folder, "OMP_NUM_THREADS": "1"}


def one_round(folder, min_number, length):
    """Returns the number of the last checkpoint that was said to be saved, else of the one found, and how many seconds
    a save took. The first round, which is given no length, measures one before it kills."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment(folder))
    lines, checkpoints, newest, max_kept, since, killer = [], {}, 0, 0, {}, None
    for line in process.stdout:
        lines.append(line)
        words = line.split()
        if len(words) != 4 or words[0] not in ("whole", "saved"):
            continue
        now, (pid, number, kept) = time.monotonic(), map(int, words[1:])
        if words[0] == "whole":
            checkpoints[pid] = number
        else:
            length, max_kept = now - since[pid], max(max_kept, kept)
        since[pid], newest = now, max(newest, number)
        if length is not None and len(checkpoints) == processes and killer is None:
            victim = chance.choice(sorted(checkpoints))
            killer = threading.Timer(chance.uniform(0, LATEST * length), os.kill, (victim, signal.SIGKILL))
            killer.start()
    process.wait()
    if killer is None or len(set(checkpoints.values())) != 1 or min(checkpoints.values()) < min_number or max_kept > TOTAL_LIMIT:
        sys.exit(f"found {checkpoints}, expected at least {min_number}; kept {max_kept} of {TOTAL_LIMIT}:\n{''.join(lines)}")
    return newest, length


def save_once(folder):
    """A save that nobody kills. Returns what is in the folder of each checkpoint, hidden files, too."""
    subprocess.run(command, env={**environment(folder), "ACC_TEST_SAVES": "1"}, stdout=subprocess.DEVNULL, check=True)
    checkpoints = pathlib.Path(folder, "checkpoints")
    return {one.name: {path.relative_to(one) for path in one.rglob("*")} for one in checkpoints.iterdir()}


with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as untouched:
    number, length = 0, None
    for _ in range(ROUNDS):
        number, length = one_round(root, number, length)
    print("the last checkpoint that was saved:", number)
    (wanted,) = save_once(untouched).values()
    kept = save_once(root)
    if len(kept) != 2 or any(files != wanted for files in kept.values()):
        sys.exit(f"after a save that nobody killed there is {kept}")
