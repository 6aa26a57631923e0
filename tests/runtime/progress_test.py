# SPDX-License-Identifier: Apache-2.0
"""progress_test.py ACC PROGRAM: `acc ps` shows how far each rank is and what it waits for, wherever the job keeps its files; the
job leaves nothing behind. A job that hangs says who keeps the others waiting."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

acc, program = sys.argv[1:]


def ranks_of(job):
    """What `acc ps --json` says of each rank of the job's process."""
    shown = subprocess.run([acc, "ps", "--json", str(job.pid)], stdout=subprocess.PIPE, check=True)
    return {rank["rank"]: rank["progress"] for rank in json.loads(shown.stdout)[0]["ranks"]}


def waits(progress):
    return progress["collective"] is not None


def hang(folder):
    """Neither Python nor a debugger says where the ranks are."""
    os.mkfifo(folder / "pipe")
    done = subprocess.run([acc, "run", "--standalone", "--no-python", "--nproc-per-node", "3", "--hang-timeout", "1", "--hang-watch",
                           "progress", "--on-hang", "kill", program, folder / "pipe"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": ""})
    assert done.returncode == 124, done
    first, second = done.stderr.splitlines()[:2]
    assert re.fullmatch("acc: no rank has made progress for .* s; where they stand:", first), done.stderr
    assert second == "rank 2 is in data after step 3; ranks 0, 1 wait in all_gather", done.stderr
    assert re.search(r"^rank 2: .*; in data for \ds, after step 3$", done.stderr, re.MULTILINE), done.stderr


def show(folder, flags, processes, arguments=()):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    job = subprocess.Popen([acc, "run", "--standalone", "--no-python", "--nproc-per-node", str(processes), *flags, program, pipe, *arguments],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        lines = {job.stdout.readline() for _ in range(processes)}
        assert lines == {f"rank {rank}\n" for rank in range(processes)}, lines
        with open(pipe, "w"):  # opens when the last rank reads
            ranks = ranks_of(job)
            while not all(waits(ranks[rank]) for rank in range(processes - 1)):
                ranks = ranks_of(job)
        code = job.wait()
    finally:
        job.kill()
    assert code == 0, code
    for rank, progress in ranks.items():
        assert progress["steps"] == 3, progress
        assert progress["step_seconds"] > 0 and progress["since_step_seconds"] > 0, progress
        assert isinstance(progress["loss"], float), progress
        spent = progress["spent_seconds"]
        assert all(spent[section] > 0 for section in ("data", "forward", "backward", "optimizer", "saving", "evaluation")), spent
        if rank < processes - 1:
            assert (progress["section"], progress["collective"]) == ("communication", "all_gather"), progress
        else:
            assert (progress["section"], progress["collective"]) == ("data", None), progress
            assert processes == 1 or spent["communication"] > 0, spent


for processes in 1, 2, 3:
    for kept, arguments in (False, []), (True, ["trainer"]):
        with tempfile.TemporaryDirectory(prefix="acc-progress-") as name:
            folder = pathlib.Path(name)
            runtime = folder / "runtime"
            runtime.mkdir(mode=0o700)
            os.environ["XDG_RUNTIME_DIR"] = str(runtime)
            show(folder, ["--log-dir", folder / "logs"] if kept else [], processes, arguments)
            left = [path.name for path in runtime.rglob("*") if path.name != "acc"]
            assert not left, left
            pages = [path for path in folder.rglob("progress-*")]
            assert not pages, pages

with tempfile.TemporaryDirectory(prefix="acc-progress-") as name:
    hang(pathlib.Path(name))
