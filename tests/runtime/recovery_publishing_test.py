# SPDX-License-Identifier: Apache-2.0
"""recovery_publishing_test.py ACC PROGRAM: a training that is killed when its first checkpoint has just got its name goes on from
it. PROGRAM is recovering_run; strace kills it (skipped where it may not trace)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

acc, program = sys.argv[1:]
SKIPPED = 77

# The first fsync of the folder of checkpoints follows the renaming.
KILLED = """import os, sys
command = sys.argv[2:]
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", sys.argv[1], "-e", "inject=fsync:signal=SIGKILL:when=1"] + command
os.execvp(command[0], command)
"""

if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", "/dev/null", "/bin/true"], check=False,
                                                stderr=subprocess.DEVNULL).returncode != 0:
    print("skipped: no strace, or it may not trace")
    sys.exit(SKIPPED)
with tempfile.TemporaryDirectory(prefix="acc-publishing-") as name:
    folder = pathlib.Path(name).resolve() / "run"
    (folder / "checkpoints").mkdir(parents=True)
    done = subprocess.run([acc, "launch", "--standalone", "--no-python", "--nproc-per-node", "1", "--max-restarts", "1",
                           "--memory-checkpoints", "64MB", sys.executable, "-c", KILLED, folder / "checkpoints", program, folder],
                          env={**os.environ, "ACC_TEST_DISK": "1"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    begun = re.findall(r"goes on after step (\d+)", done.stdout)
    if done.returncode != 0 or begun != ["0", "40"]:
        sys.exit(f"ended with {done.returncode}, went on after {begun}:\n{done.stdout}")
