#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stall_test.py ACC: with --restarts-without-progress a job whose workers get no further ends with their code, and no other does."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

acc = pathlib.Path(sys.argv[1]).resolve()
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "scripts/package"
REASON = "not restarted: no rank got beyond step {} in {} (--restarts-without-progress)"
NO_STEP = "not restarted: no rank has ended a step in {} (--restarts-without-progress)"
NO_EFFECT = "--restarts-without-progress has no effect"

# Each case is a worker; `attempt`, `rank` and `folder` are known.
BEGIN = """
import os, signal, sys
attempt, rank, folder = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"]), sys.argv[1]
import acc

def steps(first, last):
    for number in range(first, last + 1):
        acc.step(global_step=number)
"""

AT_STEP_3 = "steps(1, 3)\nsys.exit(7)\n"
# It goes on two steps after where the attempt before began, and needs four restarts.
FARTHER = "steps(2 * attempt + 1, 2 * attempt + 3)\nsys.exit(7 if attempt < 4 else 0)\n"
# How far it is in its training it does not say: it may have resumed.
FROM_ZERO = "acc.step()\nacc.step()\nsys.exit(7 if attempt < 4 else 0)\n"
BEFORE_FIRST_STEP = "with acc.section('data'):\n    pass\nsys.exit(7)\n"
THEN_NOTHING = "steps(1, 5 if attempt == 0 else 0)\nsys.exit(7)\n"
SILENT = "sys.exit(7)\n"
KILLED = "steps(1, 3)\nos.kill(os.getpid(), signal.SIGKILL)\n"
# Rank 0 always fails at step 3, when rank 1 has gone farther than in the attempt before.
ONE_RANK_FARTHER = """
pipe = f"{folder}/pipe{attempt}"
if rank == 1:
    steps(1, 3 + attempt)
    open(pipe, "w").close()
    if attempt < 4:
        signal.pause()
    sys.exit()
steps(1, 3)
open(pipe).read()
sys.exit(7 if attempt < 4 else 0)
"""
HANGS = "steps(1, 3)\nsignal.pause()\n"
# Two trainings, one after the other: which of them fails is chance.
TWO_TRAININGS = "steps(1, 9)\nsteps(1, 3)\nsys.exit(7 if attempt < 4 else 0)\n"


class Run:
    def __init__(self, script, *flags, around=(), where=("--standalone",), processes=1, **environment):
        with tempfile.TemporaryDirectory(prefix="acc-stall-") as name:
            folder = pathlib.Path(name)
            for number in range(5):
                os.mkfifo(folder / f"pipe{number}")
            (folder / "worker.py").write_text(BEGIN + script)
            runtime = folder / "runtime"
            runtime.mkdir(mode=0o700)
            words = [*around, acc, "run", *where, "--nproc-per-node", str(processes), "--python", sys.executable, "--max-restarts", "9", *flags]
            done = subprocess.run([*words, folder / "worker.py", folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False,
                                  env={**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1",
                                       "XDG_RUNTIME_DIR": str(runtime), **environment})
            left = [path.name for path in runtime.rglob("*") if path.name != "acc"]
            assert not left, left
        self.code = done.returncode
        self.text = done.stderr

    def check(self, code, restarts, reason=None):
        assert self.code == code, (self.code, self.text)
        assert re.findall(r"restart (\d+) of", self.text) == [str(number) for number in range(1, restarts + 1)], self.text
        lines = [line for line in self.text.splitlines() if "--restarts-without-progress" in line]
        assert len(lines) == (reason is not None), self.text
        assert reason is None or reason in lines[0], self.text


def on_two_nodes():
    """The node that hosts the job counts, whichever node's worker fails, and both say why it ends."""
    # A network of their own: its ports are free.
    network = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*network, "true"], capture_output=True, check=False).returncode != 0:
        print("skipped: no network namespace can be made")
        return
    both = 'ip link set lo up; "$@" & other=$!; "$@"; code=$?; wait $other; [ $? = $code ] && exit $code; exit 99'
    run = Run(AT_STEP_3, "--restarts-without-progress", "2", around=[*network, "sh", "-c", both, "sh"],
              where=["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:29400"])
    assert run.code == 7, (run.code, run.text)
    assert run.text.count(REASON.format(3, "2 restarts")) == 2, run.text
    assert run.text.count("; restart 2 of 9") == 2 and "; restart 3 of 9" not in run.text, run.text


def main():
    after = "--restarts-without-progress"
    for start in [], ["--preload", "json"]:
        Run(AT_STEP_3, *start, after, "2", processes=2).check(7, 2, REASON.format(3, "2 restarts"))
        Run(AT_STEP_3, *start, processes=2).check(7, 9)
        Run(FARTHER, *start, after, "1", processes=2).check(0, 4)
        Run(BEFORE_FIRST_STEP, *start, after, "2").check(7, 2, NO_STEP.format("2 restarts"))
        Run(THEN_NOTHING, *start, after, "2").check(7, 2, REASON.format(5, "2 restarts"))
        Run(SILENT, *start, after, "1", "--max-restarts", "3", processes=2).check(7, 3, NO_EFFECT)
        Run(HANGS, *start, after, "1", "--hang-timeout", "1", "--on-hang", "restart", processes=2, PATH="").check(
            124, 1, REASON.format(3, "1 restart"))
    on_two_nodes()
    Run(KILLED, after, "1").check(137, 1, REASON.format(3, "1 restart"))
    Run(FROM_ZERO, after, "1").check(0, 4)
    Run(TWO_TRAININGS, after, "1").check(0, 4)
    Run(ONE_RANK_FARTHER, after, "1", processes=2).check(0, 4)
    # --max-restarts bounds all of them.
    Run(AT_STEP_3, after, "5", "--max-restarts", "1").check(7, 1, "has no effect: there are no more restarts than 1 (--max-restarts)")
    # Wherever the files of the job are, and by the variable.
    with tempfile.TemporaryDirectory(prefix="acc-stall-") as logs:
        Run(AT_STEP_3, "--log-dir", logs, ACC_RESTARTS_WITHOUT_PROGRESS="1").check(7, 1, REASON.format(3, "1 restart"))


if __name__ == "__main__":
    main()
