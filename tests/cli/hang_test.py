#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hang_test.py ACC: a job of several nodes, or of several tasks of an engine, hangs when the ranks of all of them are idle, and not when
those of one wait for those of another. Where a node cannot know of the others, it ends nothing."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from nodes import Nodes  # noqa: E402
from ports import free_port  # noqa: E402

acc = pathlib.Path(sys.argv[1]).resolve()

# Twice the timeout. The CPU counts, so that it does not matter how busy the machine is.
COMPUTES = """
import time
def compute():
    while time.process_time() < 2:
        pass
"""
WAITS = "import os\nopen(os.environ['END']).read()\n"

# Rank 0 computes, ends the wait of rank 1, and succeeds. Then rank 1 computes.
ONE_WORKS = COMPUTES + """
import os
if os.environ["RANK"] == "0":
    compute()
    open(os.environ["END"], "w").close()
else:
    open(os.environ["END"]).read()
    compute()
"""

# A rank waits for a daemon of its own.
DAEMON_WORKS = COMPUTES + """
import os
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        compute()
    os._exit(0)
os.wait()
os.close(writing)
os.read(reading, 1)
"""


class Job(Nodes):
    """Each node has `flags` and variables of its own."""

    def __init__(self, script, nodes, *flags, variables=None):
        super().__init__("acc-hang-")
        (self.path / "worker.py").write_text(script)
        os.mkfifo(self.path / "end")
        for node in range(nodes):
            of_node = {name: value.format(node=node) for name, value in (variables or {}).items()}
            self.nodes.append(subprocess.Popen(
                [acc, *[flag.format(node=node, folder=self.path) for flag in flags], "--hang-timeout", "1", "--on-hang", "kill",
                 self.path / "worker.py"], env={**os.environ, **of_node, "END": str(self.path / "end"), "PATH": ""},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))

    def stop_waiting(self):
        (self.path / "end").write_text("")

    def ends(self, code):
        """What each node has written to standard error."""
        errors = [node.communicate(timeout=60)[1] for node in self.nodes]
        assert [node.returncode for node in self.nodes] == [code] * len(self.nodes), errors
        return errors


def run(*flags):
    return ["run", *flags, "--python", sys.executable]


def static():
    return run("--nnodes", "2", "--node-rank", "{node}", "--master-addr", "127.0.0.1", "--master-port", str(free_port()))


def c10d():
    return run("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}")


def in_file():
    return run("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file", "--rdzv-endpoint", "{folder}/meeting")


def goes_on(job):
    assert not any("idle" in error or "no rank" in error for error in job.ends(0))


def is_killed(job):
    """Each node says where its ranks are before workers are stopped."""
    for error in job.ends(124):
        assert error.count("acc: no rank has written anything or used the CPU for ") == 1, error
        assert error.count("\nacc: the job is stopped (--on-hang) after their stacks:\n") == 1, error
        stacks, end = error.split("acc: the job hung and was stopped (exit code 124)\n")
        assert stacks.count("(local rank 0, pid ") >= 1 and end == "", error


def nobody_knows(job):
    for node in job.nodes:
        while "all ranks of this node have been idle for " not in (line := node.stderr.readline()):
            assert line, "the node has ended"
        assert line.endswith(": the nodes meet in a file; the job goes on (acc ps --stacks shows where the ranks stand)\n"), line
    job.stop_waiting()
    assert not any("no rank" in error for error in job.ends(0))


if __name__ == "__main__":
    tasks = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "{node}", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
             "OMPI_COMM_WORLD_LOCAL_RANK": "{node}"}
    of_task = ["launch", "--cpu", "--python", sys.executable, "--main_process_ip", "127.0.0.1", "--main_process_port", str(free_port())]
    with (Job(ONE_WORKS, 2, *static()) as nodes, Job(ONE_WORKS, 2, *c10d()) as elastic,
          Job(ONE_WORKS, 2, *of_task, variables=tasks) as by_engine, Job(DAEMON_WORKS, 1, *run("--standalone")) as daemon,
          Job(WAITS, 2, *static()) as hung, Job(WAITS, 2, *c10d()) as hung_elastic, Job(WAITS, 2, *in_file()) as apart):
        for job in (nodes, elastic, by_engine, daemon):
            goes_on(job)
        for job in (hung, hung_elastic):
            is_killed(job)
        nobody_knows(apart)
