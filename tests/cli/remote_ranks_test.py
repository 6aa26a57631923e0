#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""remote_ranks_test.py ACC: in a job of three nodes, and in one of two hosts on the machine that started it, `acc ps` shows the ranks of all on each of them, and its own where the node that
leads does not answer. Where the nodes meet in a file, the ranks of each node alone are shown, and why."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from nodes import Nodes  # noqa: E402
from ports import free_port  # noqa: E402

ACC = pathlib.Path(sys.argv[1]).resolve()
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "scripts/package"

# Says that it has begun when it has done one step more than its rank.
WORKER = """
import os, sys
import acc
for step in range(int(os.environ["RANK"]) + 1):
    acc.step(loss=0.5)
open(sys.argv[1] + "/begun", "w").write("x")
open(sys.argv[1] + "/end").read()
"""


class Job(Nodes):
    """Each node has two ranks."""

    def __init__(self, nodes, *flags, ranks=None):
        super().__init__("acc-remote-")
        (self.path / "worker.py").write_text(WORKER)
        for pipe in ("begun", "end"):
            os.mkfifo(self.path / pipe)
        self.begun = open(os.open(self.path / "begun", os.O_RDWR), "rb", buffering=0)
        # In place of ssh: all hosts are this machine.
        (self.path / "rsh").write_text('shift; exec sh -c "$*"')
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "ACC_RSH": f"sh {self.path}/rsh"}
        self.nodes = [
            subprocess.Popen([ACC, "run", *(flag.format(node=node, folder=self.path) for flag in flags), "--nproc-per-node", "2",
                              "--python", sys.executable, self.path / "worker.py", self.path],
                             env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) for node in range(nodes)]
        for _ in range(ranks or 2 * nodes):
            self.begun.read(1)

    def ps(self, node, *flags):
        return subprocess.run([ACC, "ps", *flags, str(self.nodes[node].pid)], stdout=subprocess.PIPE, check=True, text=True).stdout

    def shown(self, node):
        return json.loads(self.ps(node, "--json"))[0]


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def check_all_ranks_are_shown(job):
    for node in range(3):
        shown = job.shown(node)
        ranks = {rank["rank"]: rank for rank in [*shown["ranks"], *(rank for other in shown["nodes"] for rank in other["ranks"])]}
        assert sorted(ranks) == list(range(6)), shown
        assert len(shown["ranks"]) == 2 and len(shown["nodes"]) == 2, shown
        assert shown["nodes_problem"] is None, shown
        for number, rank in ranks.items():
            assert rank["progress"]["steps"] == number + 1 and rank["progress"]["loss"] == 0.5, rank
            assert rank["processes"] == 1 and rank["memory_bytes"] > 0 and rank["cpu_percent"] is not None, rank
            assert os.path.exists(f"/proc/{rank['pid']}"), rank
        table = job.ps(node).splitlines()
        assert table[1].split()[:3] == ["RANK", "HOST", "LOCAL"], table
        assert [line.split()[:2] for line in table[2:]] == [[str(rank), socket.gethostname()] for rank in range(6)], table


def check_lost_leader_blocks_nobody(job):
    with stopped(job.shown(0)["agent"]):
        shown = job.shown(1)
    assert len(shown["ranks"]) == 2, shown
    assert "does not answer" in shown["nodes_problem"], shown


def check_a_file_has_own_ranks(job):
    shown = job.shown(1)
    assert len(shown["ranks"]) == 2 and shown["nodes"] == [], shown
    assert shown["nodes_problem"] == "the nodes meet in a file", shown
    table = job.ps(1).splitlines()
    assert table[1].split()[:2] == ["RANK", "LOCAL"], table
    assert table[-1] == "  2 ranks on other machines: the nodes meet in a file", table


def check_client_shows_all_hosts(job):
    shown = job.shown(0)
    assert shown["hosts"] == 2 and shown["ranks"] == [] and shown["nodes_problem"] is None, shown
    ranks = {rank["rank"]: rank["progress"]["steps"] for node in shown["nodes"] for rank in node["ranks"]}
    assert ranks == {0: 1, 1: 2, 2: 3, 3: 4}, shown
    table = job.ps(0).splitlines()
    assert "  on 2 hosts  " in table[0] and [line.split()[0] for line in table[2:]] == ["0", "1", "2", "3"], table
    logs = subprocess.run([ACC, "logs", str(job.nodes[0].pid)], stderr=subprocess.PIPE, text=True)
    assert logs.returncode == 2 and "its ranks run on other hosts" in logs.stderr, logs
    subprocess.run([ACC, "stop", str(job.nodes[0].pid)], check=True, stderr=subprocess.DEVNULL)
    assert job.nodes[0].wait(60) != 0


def check_stop_ends_all_nodes(job):
    """Though each could go on without the other."""
    stop = subprocess.run([ACC, "stop", str(job.nodes[1].pid)], stdout=subprocess.PIPE, check=True, text=True)
    assert stop.stdout.endswith(" and ends on its other nodes\n"), stop
    assert [node.wait(60) for node in job.nodes] == [143, 143]
    assert "was asked to stop the job" in job.nodes[0].stderr.read().decode()


def check_stop_says_what_it_cannot_end(job):
    stop = subprocess.run([ACC, "stop", str(job.nodes[1].pid)], stdout=subprocess.PIPE, check=True, text=True)
    assert "may go on on other nodes, since the nodes meet in a file: acc stop ends it on each" in stop.stdout, stop


if __name__ == "__main__":
    static = ["--nnodes", "3", "--node-rank", "{node}", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    in_file = ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file", "--rdzv-endpoint", "{folder}/meeting",
               "--rdzv-id", "remote-ranks"]
    elastic = ["--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--rdzv-id", "elastic",
               "--rdzv-conf", "last_call_timeout=5", "--max-restarts", "3"]
    with Job(3, *static) as three, Job(2, *in_file) as two, Job(2, *elastic) as pair, \
            Job(1, "--hosts", "a,b", ranks=4) as client:
        check_all_ranks_are_shown(three)
        check_lost_leader_blocks_nobody(three)
        check_a_file_has_own_ranks(two)
        check_client_shows_all_hosts(client)
        check_stop_says_what_it_cannot_end(two)
        check_stop_ends_all_nodes(pair)
