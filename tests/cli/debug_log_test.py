#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The debug log of each agent shows how it found the others, and the end of the round.

    debug_log_test.py ACC
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

ACC = sys.argv[1]

# In this order, in the file of each node.
EXPECTED = [
    ["rendezvous: idle -> searching: the job is to be found at 127.0.0.1:PORT",
     "rendezvous: searching -> hosting: it hosts the job at 127.0.0.1:PORT",
     "rendezvous: node 1 (", "rendezvous: round 1 begins, this node is 0 of 2", "attempt 0 begins",
     "rank 0 (local rank 0) is process ", "rendezvous: round 1 is over, as is the job"],
    ["rendezvous: idle -> searching: the job is to be found at 127.0.0.1:PORT",
     "rendezvous: 127.0.0.1:PORT says that nodes connect to ", "rendezvous: searching -> connected: the coordinator is at ",
     "rendezvous: introduced to the coordinator at 127.0.0.1", "rendezvous: round 1 begins, this node is 1 of 2",
     "rank 1 (local rank 0) is process ", "rank 1 (local rank 0, pid "],
]


def missing(text, lines):
    """The first of the lines that is missing or out of order."""
    offset = 0
    for line in lines:
        offset = text.find(line, offset)
        if offset < 0:
            return line
    return None


with tempfile.TemporaryDirectory(prefix="acc-debug-log-") as name:
    folder, port = pathlib.Path(name), str(free_port())
    # Rank 1 fails once rank 0 has begun.
    os.mkfifo(folder / "begun")
    worker = 'if [ "$RANK" = 0 ]; then echo >"$0"; else read -r line <"$0"; exit 1; fi'
    job_flags = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", port]
    nodes = []
    for number in (0, 1):
        command = [ACC, "run", *job_flags, "--node-rank", str(number), "-v", "--log-file", folder / f"{number}.log",
                   "--no-python", "/bin/sh", "-c", worker, folder / "begun"]
        nodes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL))
    codes = [node.wait(timeout=60) for node in nodes]
    wrong = [] if codes == [1, 1] else [f"exit codes {codes}"]
    for number, lines in enumerate(EXPECTED):
        text = (folder / f"{number}.log").read_text()
        line = missing(text, [line.replace("PORT", port) for line in lines])
        if line:
            wrong.append(f"node {number} did not log '{line}':\n{text}")
print(*wrong, sep="\n")
sys.exit(1 if wrong else 0)
