# SPDX-License-Identifier: Apache-2.0
"""killed_saves.py PROGRAM [LAUNCHER...]: SIGKILLs a process of PROGRAM's [.saver] at random moments while it saves. The
next one must find a whole checkpoint, no older than the last one that was said to be saved. What the kills left over is
gone with the next save."""
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROUNDS = 12
TOTAL_LIMIT = 2  # the saver's
LATEST = 3  # the latest time of a kill, in durations of a save
command = [*sys.argv[2:], sys.argv[1], "-w", "NoTests", "[.saver]"]
seed = int(os.environ.get("ACC_TEST_SEED", "0")) or random.randrange(1 << 30)
print("ACC_TEST_SEED", seed)
chance = random.Random(seed)


def one_round(folder, min_number, length):
    """Returns the number of the last checkpoint that was said to be saved, else of the one found, and how many seconds
    a save took. The first round, which is given no length, measures one before it kills."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, "ACC_TEST_FOLDER": folder, "OMP_NUM_THREADS": "1"})
    lines, found, newest, max_kept, since, killer = [], {}, 0, 0, {}, None
    for line in process.stdout:
        lines.append(line)
        words = line.split()
        if len(words) != 4 or words[0] not in ("whole", "saved"):
            continue
        now, (pid, number, kept) = time.monotonic(), map(int, words[1:])
        if words[0] == "whole":
            found[pid] = number
        else:
            length, max_kept = now - since[pid], max(max_kept, kept)
        since[pid], newest = now, max(newest, number)
        if length is not None and len(found) == processes and killer is None:
            victim = chance.choice(sorted(found))
            killer = threading.Timer(chance.uniform(0, LATEST * length), os.kill, (victim, signal.SIGKILL))
            killer.start()
    process.wait()
    if killer is None or len(set(found.values())) != 1 or min(found.values()) < min_number or max_kept > TOTAL_LIMIT:
        sys.exit(f"found {found}, expected at least {min_number}; kept {max_kept} of {TOTAL_LIMIT}:\n{''.join(lines)}")
    return newest, length


processes = 2 if len(sys.argv) > 2 else 1
with tempfile.TemporaryDirectory() as root:
    number, length = 0, None
    for _ in range(ROUNDS):
        number, length = one_round(root, number, length)
    print("the last checkpoint that was saved:", number)
