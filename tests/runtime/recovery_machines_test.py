# SPDX-License-Identifier: Apache-2.0
"""recovery_machines_test.py ACC PROGRAM: machines of a job are lost with all of their memory. Those that replace them get
the training's state from the others, and it ends with the very weights of one that nobody disturbed; without a replacement
fewer processes go on. Each machine is an agent of its own here. PROGRAM is recovering_run."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

acc, program = sys.argv[1:]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_until_served(port):
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)


class Job:
    def __init__(self, folder, nodes):
        port = free_port()
        self.command = [acc, "run", "--no-python", "--nnodes", nodes, "--nproc-per-node", "1", "--rdzv-backend", "c10d",
                        "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "machines", "--max-restarts", "3",
                        "--memory-checkpoints", "64MB", program, folder]
        self.nodes = [self.start()]
        wait_until_served(port)  # by the first, which has rank 0: of two that are lost none is the one that hosts the job
        self.nodes += [self.start() for _ in range(2)]

    def start(self):
        node = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT,
                                start_new_session=True)
        node.lines = []
        return node

    def sort_by_rank(self):
        """Each node says which rank it has before it trains."""
        ranks = {}
        for node in self.nodes:
            for line in node.stdout:
                node.lines.append(line)
                match = re.search(r"rank (\d+) goes on after step 0", line)
                if match:
                    ranks[int(match[1])] = node
                    break
        self.nodes = [ranks[rank] for rank in range(3)]

    def wait_for_step(self):
        for line in self.nodes[0].stdout:
            self.nodes[0].lines.append(line)
            if "step 12" in line:
                return

    def lose(self, ranks):
        """As a machine is lost: acc and its workers at once."""
        for rank in ranks:
            os.killpg(self.nodes[rank].pid, signal.SIGKILL)

    def end(self, lost, replaced):
        nodes = [node for rank, node in enumerate(self.nodes) if rank not in lost]
        nodes += [self.start() for _ in range(replaced)]
        texts = ["".join(node.lines) + node.communicate()[0] for node in nodes]
        for node, text in zip(nodes, texts):
            if node.returncode != 0:
                sys.exit(f"a node ended with {node.returncode}:\n{text}")
        for node in self.nodes:
            node.stdout.close()
            node.wait()
        return "".join(texts)


def check(folder, whole, lost, replaced):
    job = Job(folder, "3" if replaced else "1:3")
    job.sort_by_rank()
    job.wait_for_step()
    job.lose(lost)
    text = job.end(lost, replaced)
    after = {int(step) for step in re.findall(r"goes on after step (\d+)", text)} - {0}
    print("lost", lost, "replaced" if replaced else "not replaced", "went on after", sorted(after))
    if not after or "damaged" in text:
        sys.exit(f"did not go on:\n{text}")
    if replaced and (folder / "model.safetensors").read_bytes() != (whole / "model.safetensors").read_bytes():
        sys.exit(f"the weights differ:\n{text}")


with tempfile.TemporaryDirectory(prefix="acc-machines-") as name:
    whole = pathlib.Path(name, "whole")
    subprocess.run([acc, "run", "--standalone", "--no-python", "--nproc-per-node", "3", program, whole], check=True,
                   env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    for lost in ([2], [0], [1, 2]):
        check(pathlib.Path(name, "-".join(map(str, lost))), whole, lost, len(lost))
    check(pathlib.Path(name, "fewer"), whole, [2], 0)
