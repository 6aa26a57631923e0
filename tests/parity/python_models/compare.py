# SPDX-License-Identifier: Apache-2.0
"""compare.py ACC SCRIPTED COMPILED DIGITS.PY: a model that Python made, as TorchScript and as a compiled step, trained by two C++
processes and read back by Python, classifies as many images in Python as it does in C++."""
import os
import re
import subprocess
import sys
import tempfile

acc, scripted, compiled, model = sys.argv[1:]


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def agree(program, file):
    launch = [acc, "run", "--standalone", "--no-python", "--nproc-per-node", "2"]
    ours = output(*launch, program, file, "trained", "--epochs", "1")
    theirs = output(sys.executable, model, "--test", "trained")
    print(f"{file}: in C++ {ours.strip()}, in Python {theirs.strip()}")
    correct = re.fullmatch(r"(\d+) of 1000\n", ours)
    return ours == theirs and correct is not None and int(correct[1]) >= 900


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    output(sys.executable, model, "net.pt")
    output(acc, "compile", "--python", sys.executable, f"{model}:step", "--output", "net.pt2")
    sys.exit(not (agree(scripted, "net.pt") & agree(compiled, "net.pt2")))
