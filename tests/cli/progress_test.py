#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""progress_test.py ACC: what a Python worker says of itself by `import acc` is what `acc ps` shows."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

acc = pathlib.Path(sys.argv[1]).resolve()
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "scripts/package"

WORKER = """
import os, subprocess, sys, threading

# A program that ran before in this worker.
subprocess.run([sys.executable, "-c", "import acc; acc.step(samples=1000)"], check=True)
import acc

try:
    with acc.section("lunch"):
        pass
except ValueError as error:
    assert "'lunch' is none of other, data, forward" in str(error), error

class OnGpu:
    is_cuda = True

for number in range(3):
    with acc.section("data"):
        pass
    with acc.section("evaluation"), acc.section("forward"):
        pass
    acc.step(samples=8, tokens=100, loss=0.5 + number)
acc.step(loss=OnGpu())

# Since a section that is not of a step, the time in each section is not what it was at the end of the last one.
from acc import progress
words = progress._page.words
assert words[36:44] == words[12:20]
with acc.section("data"):
    pass
assert words[36:44] != words[12:20]

# Neither another thread nor a fork is the worker.
thread = threading.Thread(target=acc.step)
thread.start()
thread.join()
child = os.fork()
if child == 0:
    acc.step()
    os._exit(0)
os.waitpid(child, 0)

with acc.section("saving"):
    print("rank", os.environ["RANK"], flush=True)
    open(sys.argv[1] + os.environ["RANK"]).read()
"""


def ranks_of(job):
    shown = subprocess.run([acc, "ps", "--json", str(job.pid)], stdout=subprocess.PIPE, check=True)
    return [rank["progress"] for rank in json.loads(shown.stdout)[0]["ranks"]]


def main():
    with tempfile.TemporaryDirectory(prefix="acc-progress-") as name:
        folder = pathlib.Path(name)
        (folder / "worker.py").write_text(WORKER)
        pipes = [folder / f"pipe{rank}" for rank in range(2)]
        for pipe in pipes:
            os.mkfifo(pipe)
        command = [acc, "run", "--standalone", "--nproc-per-node", "2", "--python", sys.executable]
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        job = subprocess.Popen([*command, folder / "worker.py", folder / "pipe"], env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True)
        try:
            lines = {job.stdout.readline() for _ in range(2)}
            assert lines == {"rank 0\n", "rank 1\n"}, lines
            ranks = ranks_of(job)
            for pipe in pipes:
                open(pipe, "w").close()  # the rank reads until then
            assert job.wait() == 0, job.returncode
        finally:
            job.kill()
        for progress in ranks:
            assert (progress["steps"], progress["samples"], progress["tokens"], progress["loss"]) == (4, 24, 300, 2.5), progress
            assert progress["section"] == "saving" and progress["section_seconds"] > 0, progress
            spent = progress["spent_seconds"]
            assert spent["data"] > 0 and spent["evaluation"] > 0 and spent["forward"] == 0, spent
        # A Python without torch says so under --watch as it does without.
        (folder / "worker.py").write_text("try:\n    import torch\nexcept ModuleNotFoundError as error:\n    assert error.name == 'torch'")
        without = subprocess.run([*command, "--watch", folder / "worker.py"], stdin=subprocess.DEVNULL, check=False)
        assert without.returncode == 0, without
        # Without acc the same program just runs.
        alone = subprocess.run([sys.executable, "-c", "import acc\nwith acc.section('data'): acc.step(loss=1)"],
                               env={**environment, "ACC_PROGRESS": "/dev/null/nowhere"}, check=False)
        assert alone.returncode == 0, alone


if __name__ == "__main__":
    main()
