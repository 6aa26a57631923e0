#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""straggler_test.py ACC: of four Python workers, the one that is slow in data is named by a warning, an event and `acc ps`."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

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


def main():
    with tempfile.TemporaryDirectory(prefix="acc-straggler-") as name:
        folder = pathlib.Path(name)
        (folder / "worker.py").write_text(WORKER)
        os.mkfifo(folder / "events")
        os.mkfifo(folder / "end")
        # Open for both, so that neither side waits for the other.
        events, end = (open(os.open(folder / pipe, os.O_RDWR), mode) for pipe, mode in (("events", "r"), ("end", "wb")))
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "END": str(folder / "end")}
        job = subprocess.Popen([acc, "run", "--standalone", "--nproc-per-node", "4", "--python", sys.executable, "--event-log",
                                folder / "events", folder / "worker.py"], env=environment, stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
        try:
            event = next(event for event in map(json.loads, events) if event["event"] in ("straggler_found", "finished"))
            shown = subprocess.run([acc, "ps", "--json", str(job.pid)], stdout=subprocess.PIPE, check=True)
            end.write(b"end")
            end.flush()
            errors = job.communicate()[1]
        finally:
            job.kill()
        assert job.returncode == 0, errors
        assert (event["event"], event["rank"], event["section"], event["other_rank"]) == ("straggler_found", 2, "data", None), event
        assert (event["seconds"], event["reference_seconds"], event["step_seconds"]) == (0.03, 0.02, 0.1), event
        slow = [rank["progress"]["slow_in"] for rank in json.loads(shown.stdout)[0]["ranks"]]
        assert slow == [None, None, "data", None], slow
        assert errors.count("warning") == 1, errors
        assert "rank 2 has been 50 % slower in data for " in errors, errors
        assert "s (30 ms a step, the median is 20 ms)\n" in errors, errors


if __name__ == "__main__":
    main()
