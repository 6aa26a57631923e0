#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""straggler_test.py ACC: of four Python workers, on one machine or as two nodes, the one that is slow in data is named by a warning, an
event and `acc ps`."""

import json
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from nodes import Nodes  # noqa: E402
from ports import free_port  # noqa: E402

acc = pathlib.Path(sys.argv[1]).resolve()
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "scripts/package"

# They have a clock of their own, so that it does not matter how busy the machine is. A step takes 100 ms of it, at the end of which
# the others have waited for rank 2.
WORKER = """
import os, select, types
import acc
from acc import progress

now = 10**9
progress.time = types.SimpleNamespace(monotonic_ns=lambda: now)

def spend(section, milliseconds):
    global now
    with acc.section(section):
        now += milliseconds * 10**6

is_slow = os.environ["RANK"] == "2"
end = os.open(os.environ["END"], os.O_RDONLY)
while not select.select([end], [], [], 0.01)[0]:
    spend("data", 30 if is_slow else 20)
    spend("forward", 30)
    spend("backward", 40 if is_slow else 50)
    acc.step()
"""


class Job(Nodes):
    """A job of four ranks; the event log of each node is a pipe."""

    def __init__(self, nodes, *flags):
        super().__init__("acc-straggler-")
        (self.path / "worker.py").write_text(WORKER)
        os.mkfifo(self.path / "end")
        # Open for both, so that neither side waits for the other.
        self.end_pipe = open(os.open(self.path / "end", os.O_RDWR), "wb")
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "END": str(self.path / "end")}
        self.events = []
        for node in range(nodes):
            log = self.path / f"events{node}"
            os.mkfifo(log)
            self.events.append(open(os.open(log, os.O_RDWR)))
            of_node = [flag.format(node=node) for flag in flags]
            self.nodes.append(subprocess.Popen(
                [acc, "run", *of_node, "--nproc-per-node", str(4 // nodes), "--python", sys.executable, "--event-log", log,
                 self.path / "worker.py"], env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))

    def event(self, node, *names):
        """The next event of these names, or of the end."""
        return next(event for event in map(json.loads, self.events[node]) if event["event"] in (*names, "finished"))

    def slow_in(self, node):
        """What `acc ps` says of the ranks of a node."""
        shown = subprocess.run([acc, "ps", "--json", str(self.nodes[node].pid)], stdout=subprocess.PIPE, check=True)
        return [rank["progress"]["slow_in"] for rank in json.loads(shown.stdout)[0]["ranks"]]

    def end(self):
        """What each node has written to standard error until its end."""
        self.end_pipe.write(b"end")
        self.end_pipe.flush()
        errors = [node.communicate(timeout=60)[1] for node in self.nodes]
        assert [node.returncode for node in self.nodes] == [0] * len(self.nodes), errors
        return errors


def is_straggler(event):
    assert (event["event"], event["rank"], event["section"], event["other_rank"]) == ("straggler_found", 2, "data", None), event
    assert (event["seconds"], event["reference_seconds"], event["step_seconds"]) == (0.03, 0.02, 0.1), event
    assert event["rank_host"] == socket.gethostname(), event


def check_one_machine(job):
    is_straggler(job.event(0, "straggler_found"))
    assert job.slow_in(0) == [None, None, "data", None]
    [errors] = job.end()
    assert errors.count("warning") == 1, errors
    assert "rank 2 has been 50 % slower in data for " in errors, errors
    assert "s (30 ms a step, the median is 20 ms)\n" in errors, errors


def check_two_nodes(job):
    """Rank 2 is of node 1; node 0 leads, and says it."""
    is_straggler(job.event(0, "straggler_found"))
    while job.slow_in(1) != ["data", None]:  # node 1 has been told
        pass
    assert job.slow_in(0) == [None, None]
    errors = job.end()
    assert job.event(1, "straggler_found")["event"] == "finished"
    assert f"rank 2 on host {socket.gethostname()} has been 50 % slower in data for " in errors[0], errors
    assert [error.count("slower") for error in errors] == [1, 0], errors


if __name__ == "__main__":
    endpoint = ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    with Job(1, "--standalone") as one, Job(2, "--nnodes", "2", "--node-rank", "{node}", *endpoint) as two:
        check_one_machine(one)
        check_two_nodes(two)
