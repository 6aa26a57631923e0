# SPDX-License-Identifier: Apache-2.0
"""by_hand_test.py PROGRAM [ARGUMENT...]: two processes find each other by variables that no launcher set."""
import os
import socket
import subprocess
import sys

with socket.socket() as free:
    free.bind(("localhost", 0))
    port = free.getsockname()[1]
job = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
workers = [subprocess.Popen(sys.argv[1:], env=job | {"RANK": rank, "LOCAL_RANK": rank}) for rank in "01"]
sys.exit(any([worker.wait() for worker in workers]))
