#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A name whose lookup never ends does not hold up the end of acc.

    blocked_names_test.py ACC LIBRARY

LIBRARY is workers/blocked_names.cpp.
"""
import os
import select
import signal
import subprocess
import sys
import tempfile

ACC, LIBRARY = sys.argv[1:]
JOBS = [["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=head.test:29400", "--rdzv-conf=is_host=0"],
        ["--nnodes=2", "--node-rank=1", "--master-addr=head.test", "--master-port=29400"],
        ["--nnodes=2", "--rdzv-backend=etcd", "--rdzv-endpoint=head.test:2379"],
        ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=head.test:29400"]]

for job in JOBS:
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        env = {**os.environ, "LD_PRELOAD": LIBRARY, "BLOCKED_NAME": "head.test", "BLOCKED_NAME_PIPE": pipe,
               "HOME": folder, "XDG_RUNTIME_DIR": folder}
        acc = subprocess.Popen([ACC, "run", "--rdzv-id=names", *job, "--no-python", "/bin/true"], env=env,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        lookup = os.open(pipe, os.O_RDWR)
        ended = os.pidfd_open(acc.pid)
        if lookup not in select.select([lookup, ended], [], [])[0]:
            sys.exit(f"{job}: acc ends without a lookup: {acc.communicate()[0]}")
        acc.send_signal(signal.SIGTERM)
        try:
            output, _ = acc.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            # It does not end by itself, and nor does its agent.
            os.killpg(acc.pid, signal.SIGKILL)
            sys.exit(f"{job}: the lookup holds up the end of acc")
        os.close(lookup)
        os.close(ended)
        assert acc.returncode == 128 + signal.SIGTERM, (job, acc.returncode, output)
