# SPDX-License-Identifier: Apache-2.0
"""A program against our server, whose port it gets: cpp_client.py ACC_STORE_SERVER PROGRAM."""

import subprocess
import sys

from store_process import StoreProcess

with StoreProcess(sys.argv[1]) as server:
    sys.exit(subprocess.run([sys.argv[2], str(server.port)], timeout=120).returncode)
