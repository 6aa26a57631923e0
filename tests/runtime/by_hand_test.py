# SPDX-License-Identifier: Apache-2.0
"""by_hand_test.py PROGRAM [ARGUMENT...]: two processes find each other by variables that no launcher set."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

job = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port())}
workers = [subprocess.Popen(sys.argv[1:], env=job | {"RANK": rank, "LOCAL_RANK": rank}) for rank in "01"]
sys.exit(any([worker.wait() for worker in workers]))
