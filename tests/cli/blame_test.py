#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two workers fail at nearly the same time, one because it lost the other: the report always names the other.

    blame_test.py ACC [--nodes] [RACES]

The first worker holds the only writing end of a pipe and fails; the second reads from it, as from a socket, and fails as
soon as the kernel closes it. How the first goes differs from race to race: at once and without a word, or with an error
file and slowly, so that the second ends long before it; the second tells its loss as libacc does, or as Python with Gloo
does. With --nodes each worker has an agent of its own, and both agents must blame the same one, whichever of them leads.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

ACC = sys.argv[1]
NODES = sys.argv[2:3] == ["--nodes"]
RACES = int(sys.argv[-1]) if sys.argv[-1].isdigit() else 50

WORKER = """\
if [ "$RANK" = "$FIRST" ]; then
  exec 3> pipe
  if [ "$SLOW" = 0 ]; then exit 3; fi
  echo '{"message": {"message": "no data", "extraInfo": {"timestamp": "'$(date +%s)'"}}}' > "$TORCHELASTIC_ERROR_FILE"
  exec 3>&-
  sleep "$SLOW"
  exit 3
fi
read -r line < pipe
if [ "$TOLD" = file ]; then
  echo '{"message": {"message": "the other rank is gone", "extraInfo": {"timestamp": "'$(date +%s)'", "consequence": true}}}' \\
    > "$TORCHELASTIC_ERROR_FILE"
else
  echo 'RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer' >&2
fi
exit 1
"""


def blamed(folder, **environment):
    """The reported rank and the exit code of each agent."""
    agents = [["--standalone", "--nproc-per-node", "2"]]
    if NODES:
        job_flags = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
        agents = [[*job_flags, "--node-rank", "0"], [*job_flags, "--node-rank", "1"]]
    jobs = []
    for number, flags in enumerate(agents):
        command = [ACC, "run", *flags, "--no-python", "--event-log", folder / f"events{number}", "sh", folder / "worker.sh"]
        jobs.append(subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    verdicts = []
    for number, job in enumerate(jobs):
        code = job.wait(timeout=60)
        events = (folder / f"events{number}").read_text()
        finished = [line for line in map(json.loads, events.splitlines()) if "cause" in line][-1]
        verdicts.append((finished["cause"]["rank"], code))
    return verdicts


wrong = []
for race in range(RACES):
    with tempfile.TemporaryDirectory(prefix="acc-blame-") as name:
        folder = pathlib.Path(name)
        os.mkfifo(folder / "pipe")
        (folder / "worker.sh").write_text(WORKER)
        slow, told, first = ("0", "0.01", "0.2")[race % 3], ("file", "text")[race // 3 % 2], 1 - race // 6 % 2
        for rank, code in blamed(folder, SLOW=slow, TOLD=told, FIRST=str(first)):
            if rank != first or code not in (1, 3) or (slow == "0" and code != 3):
                wrong.append(f"race {race} (SLOW={slow} TOLD={told}): rank {rank} is blamed for {first}, exit code {code}")
print(*wrong, f"{len(wrong)} wrong verdicts in {RACES} races", sep="\n")
sys.exit(1 if wrong else 0)
