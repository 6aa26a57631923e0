# SPDX-License-Identifier: Apache-2.0
"""compare.py ACC SCRIPTED COMPILED DIGITS.PY: a model that Python made, as TorchScript and as a compiled step, trained by two C++
processes and read back by Python, classifies as many images in Python as it does in C++, and about as many as when Python trains it."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

import torch

acc, scripted, compiled, model = sys.argv[1:]
specification = importlib.util.spec_from_file_location("digits", model)
digits = importlib.util.module_from_spec(specification)
specification.loader.exec_module(digits)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def trained_by_python():
    """How many images the model classifies after an epoch in Python, in batches of those of both processes."""
    torch.set_num_threads(1)
    torch.manual_seed(42)
    net = digits.Net()
    adamw = torch.optim.AdamW(net.parameters(), 1e-3)
    images = (digits.values("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28) / 255 - 0.1307) / 0.3081
    labels = digits.values("train-labels-idx1-ubyte.gz", 8).long()
    for batch in torch.randperm(len(labels)).split(128):
        adamw.zero_grad()
        torch.nn.functional.nll_loss(net(images[batch]), labels[batch]).backward()
        adamw.step()
    return digits.correct(net)[0]


def agree(program, file, expected):
    launch = [acc, "run", "--standalone", "--no-python", "--nproc-per-node", "2"]
    ours = output(*launch, program, file, "trained", "--epochs", "1")
    theirs = output(sys.executable, model, "--test", "trained")
    print(f"{file}: in C++ {ours.strip()}, in Python {theirs.strip()}")
    correct = re.fullmatch(r"(\d+) of 1000\n", ours)
    return ours == theirs and correct is not None and abs(int(correct[1]) - expected) <= 40


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    output(sys.executable, model, "net.pt")
    output(acc, "compile", "--python", sys.executable, f"{model}:step", "--output", "net.pt2")
    expected = trained_by_python()
    print(f"trained in Python: {expected} of 1000")
    sys.exit(expected < 850 or not (agree(scripted, "net.pt", expected) & agree(compiled, "net.pt2", expected)))
