# SPDX-License-Identifier: Apache-2.0
"""A job on several machines, each of which is an agent of its own here and may be lost with all of its memory."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from ports import free_port

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def wait_until_served(port):
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)


def processes_of(node):
    """The node's launcher and all that it has started."""
    children = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:  # ended meanwhile
            continue
        children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    processes = [node.pid]
    for pid in processes:  # which grows
        processes += children.get(pid, [])
    return processes


class Job:
    """Three machines with a process each. `nodes` is --nnodes."""

    def __init__(self, acc, command, nodes):
        port = free_port()
        self.command = [acc, "run", "--no-python", "--nnodes", nodes, "--nproc-per-node", "1", "--rdzv-backend", "c10d",
                        "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "machines", "--max-restarts", "3",
                        "--memory-checkpoints", "64MB", *command]
        self.nodes = [self.start()]
        wait_until_served(port)  # by the first, which has rank 0
        self.nodes += [self.start() for _ in range(2)]

    def start(self):
        node = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        node.lines = []
        return node

    def add(self):
        self.nodes.append(self.start())

    def wait_for(self, pattern, rank=0):
        """Until the node has said it. Returns the match."""
        node = self.nodes[rank]
        for line in node.stdout:
            node.lines.append(line)
            match = re.search(pattern, line)
            if match:
                return match
        sys.exit(f"a node ended with {node.wait()} before it said {pattern}:\n{''.join(node.lines)}")

    def sort_by_rank(self, pattern):
        """Each node says which rank it has: the group of the pattern."""
        ranks = {int(self.wait_for(pattern, i)[1]): node for i, node in enumerate(self.nodes)}
        self.nodes = [ranks[rank] for rank in sorted(ranks)]

    def lose(self, ranks):
        """As a machine is lost: acc and its workers at once."""
        for pid in [pid for rank in ranks for pid in processes_of(self.nodes[rank])]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for rank in ranks:
            self.nodes[rank].stdout.close()
            self.nodes[rank].wait()
        self.nodes = [node for rank, node in enumerate(self.nodes) if rank not in ranks]

    def end(self):
        """What all nodes have said."""
        texts = ["".join(node.lines) + node.communicate()[0] for node in self.nodes]
        for node, text in zip(self.nodes, texts):
            if node.returncode != 0:
                sys.exit(f"a node ended with {node.returncode}:\n{text}")
        return "".join(texts)
