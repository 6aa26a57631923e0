# SPDX-License-Identifier: Apache-2.0
"""trainer_machines_test.py ACC PROGRAM: a Trainer on three machines goes on from memory on one, when two are lost, and on two,
when another one joins: after the same samples, each once, to the right step. PROGRAM is visiting_trainer."""
import pathlib
import re
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from machines import Job  # noqa: E402

acc, program = sys.argv[1:]
SAMPLES, BATCH = 360, 4
RESUMED = r"Resuming training from checkpoint with epoch 0 and global step (\d+)"

with tempfile.TemporaryDirectory(prefix="acc-trainer-machines-") as name:
    job = Job(acc, [program, pathlib.Path(name, "run")], "1:3")
    job.wait_for("stands at step 10 of 3")
    job.lose([1, 2])
    by_three = int(job.wait_for(RESUMED)[1])
    job.wait_for("stands at step 20 of 1")
    job.add()
    by_two_from = int(job.wait_for(RESUMED)[1])
    text = job.end()
    visited = {3: by_three * 3 * BATCH, 1: (by_two_from - by_three) * BATCH}
    visited[2] = SAMPLES - visited[3] - visited[1]
    last = by_two_from + visited[2] // (2 * BATCH)
    print("on 3 until step", by_three, "on 1 until", by_two_from, "on 2 until", last)
    if by_three not in (6, 8) or by_two_from not in (16, 18):
        sys.exit(text)
    if f"visited by 1: {visited[1]}, by 2: {visited[2]}, by 3: {visited[3]}, else: 0; step {last}\n" not in text:
        sys.exit(f"{visited}:\n{text}")
