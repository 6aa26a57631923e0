# SPDX-License-Identifier: Apache-2.0
"""killed_saves.py PROGRAM [LAUNCHER...]: SIGKILLs a process of PROGRAM's [.saver] at random moments while it saves. The
next one must find a whole checkpoint, no older than what was whole before."""
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading

ROUNDS = 12
command = [*sys.argv[2:], sys.argv[1], "-w", "NoTests", "[.saver]"]
seed = int(os.environ.get("ACC_TEST_SEED", "0")) or random.randrange(1 << 30)
print("ACC_TEST_SEED", seed)
chance = random.Random(seed)


def one_round(folder, least):
    """Returns the number that the processes found."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, "ACC_TEST_FOLDER": folder, "OMP_NUM_THREADS": "1"})
    lines, found, killer = [], {}, None
    for line in process.stdout:
        lines.append(line)
        words = line.split()
        if len(words) != 3 or words[0] != "whole":
            continue
        found[int(words[1])] = int(words[2])
        if len(found) == processes:
            victim = chance.choice(sorted(found))
            killer = threading.Timer(chance.uniform(0.02, 0.4), os.kill, (victim, signal.SIGKILL))
            killer.start()
    process.wait()
    if killer is None or len(set(found.values())) != 1 or min(found.values()) < least:
        sys.exit(f"found {found}, wanted at least {least}:\n{''.join(lines)}")
    return found.popitem()[1]


processes = 2 if len(sys.argv) > 2 else 1
with tempfile.TemporaryDirectory() as root:
    number = 0
    for _ in range(ROUNDS):
        number = one_round(root, number)
    print("the last checkpoint that was found whole:", number)
    left = sorted(os.listdir(os.path.join(root, "checkpoints")))
    if number == 0 or not 1 <= len([name for name in left if not name.startswith(".")]) <= 3:
        sys.exit(f"left: {left}")
