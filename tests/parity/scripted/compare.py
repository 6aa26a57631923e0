# SPDX-License-Identifier: Apache-2.0
"""compare.py ACC SCRIPTED SCRIPTED.PY: a model that Python made, trained by two C++ processes and read back by Python,
classifies as many images in Python as it does in C++."""
import os
import re
import subprocess
import sys
import tempfile

acc, program, model = sys.argv[1:]


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    output(sys.executable, model, "net.pt")
    launch = [acc, "run", "--standalone", "--no-python", "--nproc-per-node", "2"]
    ours = output(*launch, program, "net.pt", "trained", "--epochs", "1")
    theirs = output(sys.executable, model, "--test", "trained")
print(f"in C++ {ours.strip()}, in Python {theirs.strip()}")
correct = re.fullmatch(r"(\d+) of 1000\n", ours)
sys.exit(ours != theirs or correct is None or int(correct[1]) < 900)
