# SPDX-License-Identifier: Apache-2.0
"""compare.py ACC PROGRAM: shards that C++ and Python save are loaded by the other on another number of processes, saved
again and loaded once more, to the bit. PROGRAM is sharded_state."""
import os
import subprocess
import sys
import tempfile

acc, program = sys.argv[1:]
peer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer.py")
cpp = [program]
python = [peer]
environment = {**os.environ, "PYTHON_EXEC": sys.executable, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}


def run(side, processes, *words):
    start = ["--no-python"] if side is cpp else ["--preload", "torch,torch._dynamo"]
    command = [acc, "run", "--standalone", *start, "--nproc-per-node", str(processes), *side, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory(prefix="two words ") as root:
    ours, theirs, back = (os.path.join(root, name) for name in ("ours", "theirs", "back"))
    run(cpp, 3, "save", ours)
    run(python, 1, "whole", ours)
    run(python, 2, "copy", ours, theirs)
    run(cpp, 4, "copy", theirs, back)
    run(python, 3, "check", back)
    merged = os.path.join(root, "merged")
    subprocess.run([acc, "merge-weights", os.path.join(ours, "pytorch_model_fsdp_0"), merged], check=True,
                   stdout=subprocess.DEVNULL)
    assert os.listdir(merged) == ["model.safetensors"], os.listdir(merged)

with tempfile.TemporaryDirectory() as root:
    theirs, ours = (os.path.join(root, name) for name in ("theirs", "ours"))
    run(python, 3, "save", theirs)
    run(cpp, 2, "copy", theirs, ours)
    run(python, 2, "check", ours)
