# SPDX-License-Identifier: Apache-2.0
"""Scenarios in processes forked from one that has imported the peers: importing torch takes seconds of CPU time."""

import multiprocessing
import multiprocessing.connection
import os
import sys
import tempfile

SCENARIOS = {}
AT_A_TIME = 2  # most of a scenario is waiting
FORK = multiprocessing.get_context("fork")


def scenario(function):
    """Registers a scenario with the name of the function."""
    SCENARIOS[function.__name__] = function
    return function


class Forked(FORK.Process):
    """`function(*arguments)` in a process, whose standard output and error go to the file `output`."""

    def __init__(self, output, function, *arguments):
        super().__init__(target=self.call, args=(output, function, *arguments))
        self.start()

    @staticmethod
    def call(output, function, *arguments):
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)
        function(*arguments)

    def wait(self, timeout=None):
        """Its exit code."""
        self.join(timeout)
        assert self.exitcode is not None, f"process {self.pid} has not ended after {timeout} s"
        return self.exitcode


def fork_for_each(setups):
    """Returns each of `setups`, one after the other, in a process of its own; this one ends when all have ended.

    The ranks of a job then form a group for each; new_group() keeps their keys in the store apart.
    """
    for setup in setups:
        pid = os.fork()
        if pid == 0:
            return setup
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code != 0:
            sys.exit(f"{setup}: exit code {code}")
    sys.exit(0)


def device_of_job():
    """The name of the device on which acc's programs train, too."""
    import torch

    return "cuda" if torch.cuda.is_available() and "ACCELERATE_USE_CPU" not in os.environ else "cpu"


def new_group(name):
    """What init_process_group() makes of the job's variables, with keys of its own in the store."""
    import torch.distributed as dist

    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    dist.init_process_group("nccl" if device_of_job() == "cuda" else "gloo", store=dist.PrefixStore(name, store), rank=int(os.environ["RANK"]),
                            world_size=int(os.environ["WORLD_SIZE"]))


def run_scenarios(names=()):
    """Runs those that are named, or all. Prints what each that fails has printed. Returns the exit code."""
    waiting, running, failed = list(names or SCENARIOS), {}, False
    while waiting or running:
        while waiting and len(running) < AT_A_TIME:
            name, output = waiting.pop(0), tempfile.TemporaryFile()
            process = Forked(output, SCENARIOS[name])
            running[process.sentinel] = name, process, output
        for sentinel in multiprocessing.connection.wait(running):
            name, process, output = running.pop(sentinel)
            if process.wait() == 0:
                print(f"ok: {name}", flush=True)
            else:
                output.seek(0)
                print(f"FAILED: {name}\n{output.read().decode(errors='replace')}", flush=True)
                failed = True
            output.close()
    return int(failed)
