# SPDX-License-Identifier: Apache-2.0
"""Agents under test, as processes: torchrun's and acc's. Their processes end with the `with` block."""

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

from scenarios import Forked

TIMEOUT = 100  # seconds; only a failing test waits this long
WORKER = pathlib.Path(__file__).parent.parent / "workers" / "tell_and_wait.sh"


class Lines:
    """Lines of a file descriptor, read with a timeout."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.text = b""

    def next(self):
        end = time.monotonic() + TIMEOUT
        while b"\n" not in self.text:
            ready, _, _ = select.select([self.descriptor], [], [], max(0, end - time.monotonic()))
            assert ready, "no line within the timeout"
            piece = os.read(self.descriptor, 65536)
            assert piece, "the process ended without a line"
            self.text += piece
        line, self.text = self.text.split(b"\n", 1)
        return line.decode()


class Worker:
    """A worker: the environment that it reported, and a way to end it."""

    def __init__(self, folder, line):
        pid, *numbers, addr, port, agent_store, restarts = line.split()
        self.pid = int(pid)
        self.group_rank, self.rank, self.world_size, self.local_rank = map(int, numbers)
        self.master = (addr, int(port))
        self.agent_store = agent_store
        self.restarts = int(restarts)
        self.folder = folder

    def end(self, code):
        with open(f"{self.folder}/answer.{self.pid}", "w") as answer:
            answer.write(f"{code}\n")


def run_torchrun(arguments):
    """What `torchrun ARGUMENT...` does, in this process. The program that forks it has imported the module before."""
    from torch.distributed.run import main

    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for name in [name for name in os.environ if name.startswith("PET_")]:
        del os.environ[name]
    main(arguments)


class Torchrun:
    """torchrun, or a `program` with its flags, with `workers` workers that report their environment and wait."""

    def __init__(self, workers, *arguments, program=None):
        self.folder = tempfile.TemporaryDirectory()
        os.mkfifo(f"{self.folder.name}/telephone")
        self.telephone = os.open(f"{self.folder.name}/telephone", os.O_RDWR | os.O_NONBLOCK)
        self.lines = Lines(self.telephone)
        self.number = workers
        self.pids = []
        self.errors = tempfile.TemporaryFile()
        self.name = program[0] if program else "torchrun"
        arguments = ["--nproc-per-node", str(workers), *arguments, "--no-python", str(WORKER), self.folder.name]
        if program is None:
            self.process = Forked(self.errors, run_torchrun, arguments)
        else:
            environment = {name: value for name, value in os.environ.items() if not name.startswith("PET_")}
            self.process = subprocess.Popen([*program, *arguments], stderr=self.errors, stdin=subprocess.DEVNULL, env=environment)

    def workers(self):
        """The workers of the next round, by local rank."""
        told = [Worker(self.folder.name, self.lines.next()) for _ in range(self.number)]
        self.pids += [worker.pid for worker in told]
        return sorted(told, key=lambda worker: worker.local_rank)

    def wait(self):
        return self.process.wait(TIMEOUT)

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        self.process.kill()
        self.process.wait()
        for pid in self.pids:
            try:
                if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().find(WORKER.name.encode()) >= 0:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if error:
            self.errors.seek(0)
            sys.stderr.write(f"--- {self.name} said:\n" + self.errors.read().decode()[-4000:])
        os.close(self.telephone)
        self.errors.close()
        self.folder.cleanup()


class BoardNode:
    """Our backend without workers: acc-backend-node with `words`."""

    def __init__(self, program, **words):
        self.process = subprocess.Popen(
            [program, *(f"{key}={value}" for key, value in words.items())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.lines = Lines(self.process.stdout.fileno())
        self.heard = []
        store = self.event("store")
        self.port, self.workers_port = store["port"], store["workers_port"]

    def event(self, *names):
        """The next event whose name is in `names`; skips others, and fails at an error."""
        while True:
            event = json.loads(self.lines.next())
            self.heard.append(event)
            if event["event"] in names:
                return event
            assert event["event"] != "error", event

    def round(self):
        """The nodes of the next round, by rank."""
        return self.event("round")["nodes"]

    def send_command(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if error:
            sys.stderr.write("--- acc-backend-node said:\n" + "\n".join(map(str, self.heard)) + "\n")
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
