# SPDX-License-Identifier: Apache-2.0
"""Our client against torch's own store servers: store_client.py ACC_STORE_CLIENT."""

import subprocess
import sys

import torch.distributed as dist

for use_libuv in True, False:
    server = dist.TCPStore("127.0.0.1", 0, None, True, use_libuv=use_libuv, wait_for_workers=False)
    for host in "127.0.0.1", "localhost":
        subprocess.run([sys.argv[1], host, str(server.port)], check=True, timeout=100)
        assert server.get("late") == b"1"
        for key in "late", "n":
            server.delete_key(key)
        for key in range(50):
            server.delete_key(f"race/{key}")
    print("libuv" if use_libuv else "legacy", "ok", flush=True)
