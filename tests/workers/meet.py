# SPDX-License-Identifier: Apache-2.0
"""Meets all the other workers in the store where it was told that it is, as PyTorch's clients do, then says its rank.

`fail`: then the last rank fails with 7. `requeue`: in the first run of a Slurm job every rank ends with 75, which asks
for another.
"""

import os
import socket
import struct
import sys


def text(value):
    return struct.pack("<Q", len(value)) + value


rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
with socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 20) as store:
    store.settimeout(20)
    store.sendall(bytes.fromhex("00cef7853c") + b"\1" + text(b"/rank%d" % rank) + text(b""))
    store.sendall(b"\6" + struct.pack("<Q", world) + b"".join(text(b"/rank%d" % i) for i in range(world)))
    assert store.recv(1) == b"\0"
# At once: the workers of a machine may share a pipe.
os.write(1, f"rank {rank} of {world}, local {os.environ['LOCAL_RANK']}, on {os.uname().nodename}\n".encode())
if "requeue" in sys.argv and "SLURM_RESTART_COUNT" not in os.environ:
    sys.exit(75)
sys.exit(7 if "fail" in sys.argv and rank == world - 1 else 0)
