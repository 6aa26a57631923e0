#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two workers fail at nearly the same time, one because it lost the other: the other is blamed, every time.

    blame_test.py ACC [RACES]

Rank 1 holds the only writing end of a pipe and fails; rank 0 reads from it, as from a socket, and fails as soon as the
kernel closes it. How rank 1 goes differs from race to race: at once and without a word, or with an error file and slowly,
so that rank 0 ends long before it; rank 0 tells its loss as libacc does, or as Python with Gloo does.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ACC = sys.argv[1]
RACES = int(sys.argv[2]) if len(sys.argv) > 2 else 50

WORKER = """\
if [ "$RANK" = 1 ]; then
  exec 3> pipe
  if [ "$SLOW" = 0 ]; then exit 3; fi
  echo '{"message": {"message": "no data", "extraInfo": {"timestamp": "'$(date +%s)'"}}}' > "$TORCHELASTIC_ERROR_FILE"
  exec 3>&-
  sleep "$SLOW"
  exit 3
fi
read -r line < pipe
if [ "$TOLD" = file ]; then
  echo '{"message": {"message": "rank 1 is gone", "extraInfo": {"timestamp": "'$(date +%s)'", "consequence": true}}}' \\
    > "$TORCHELASTIC_ERROR_FILE"
else
  echo 'RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer' >&2
fi
exit 1
"""


def blamed(folder, slow, told):
    """The rank that acc names, and its exit code."""
    events = folder / "events"
    environment = dict(os.environ, SLOW=slow, TOLD=told)
    command = [ACC, "run", "--standalone", "--nproc-per-node", "2", "--no-python", "--event-log", events, "sh",
               folder / "worker.sh"]
    code = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60, check=False).returncode
    finished = [line for line in map(json.loads, events.read_text().splitlines()) if "cause" in line][-1]
    return finished["cause"]["rank"], code


wrong = []
for race in range(RACES):
    with tempfile.TemporaryDirectory(prefix="acc-blame-") as name:
        folder = pathlib.Path(name)
        os.mkfifo(folder / "pipe")
        (folder / "worker.sh").write_text(WORKER)
        slow, told = ("0", "0.01", "0.2")[race % 3], ("file", "text")[race // 3 % 2]
        rank, code = blamed(folder, slow, told)
        if rank != 1 or code not in (1, 3) or (slow == "0" and code != 3):
            wrong.append(f"race {race} (SLOW={slow} TOLD={told}): rank {rank} is blamed, exit code {code}")
print(*wrong, f"rank 1 is blamed in {RACES - len(wrong)} of {RACES} races", sep="\n")
sys.exit(1 if wrong else 0)
