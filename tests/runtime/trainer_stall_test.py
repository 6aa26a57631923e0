# SPDX-License-Identifier: Apache-2.0
"""trainer_stall_test.py ACC PROGRAM: a Trainer that resumes from its checkpoint and is killed in the same step each time is not
restarted for ever."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

acc, program = sys.argv[1:]


def train(flags, **environment):
    with tempfile.TemporaryDirectory(prefix="acc-trainer-") as name:
        folder = pathlib.Path(name)
        (folder / "arguments.json").write_text(json.dumps({
            "output_dir": str(folder / "run"), "max_steps": 12, "per_device_train_batch_size": 25, "save_steps": 5,
            "disable_tqdm": True, "resume_from_checkpoint": "last"}))
        return subprocess.run([acc, "run", "--standalone", "--no-python", "--nproc-per-node", "2", *flags, program,
                               folder / "arguments.json"], env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


stalled = train(["--max-restarts", "9", "--restarts-without-progress", "2"], ACC_TEST_KILL_AT="8")
assert stalled.returncode == 137, stalled
assert "restart 2 of 9" in stalled.stderr and "restart 3 of 9" not in stalled.stderr, stalled.stderr
assert "no rank got beyond step 8 in 2 restarts" in stalled.stderr, stalled.stderr
