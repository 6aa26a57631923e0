# SPDX-License-Identifier: Apache-2.0
"""waiting_test.py PROGRAM...: a process whose peers do not join reports for which ranks it waits."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402


def line_of(rank):
    """The first line that the process of this rank writes while it waits."""
    port = free_port()
    variables = {"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    process = subprocess.Popen(sys.argv[1:], env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        return process.stderr.readline().replace(str(port), "PORT")
    finally:
        process.kill()
        process.communicate()


expected = {0: "acc: rank 0 of 3 has waited 10 s for ranks 1, 2 (",
            2: "acc: rank 2 of 3 has waited 10 s for rank 0, whose store "}
said = {rank: line_of(rank) for rank in expected}
print(said)
sys.exit(not all(said[rank].startswith(begin) and "127.0.0.1:PORT" in said[rank] for rank, begin in expected.items()))
