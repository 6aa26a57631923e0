# SPDX-License-Identifier: Apache-2.0
"""compare.py PROGRAM OPTIMIZER[,OPTIMIZER...] [PRECISION]: each side goes on from what the other saved as the one that saved does.

On the CPU, or with a PRECISION (no, fp16, bf16) on a CUDA device.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

program, optimizers, *precision = sys.argv[1:]
os.environ.update({"OMP_NUM_THREADS": "1"},
                  **{"ACCELERATE_MIXED_PRECISION": precision[0]} if precision else {"ACCELERATE_USE_CPU": "true"})
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import torch  # noqa: E402  after the variables that it reads
from scenarios import Forked  # noqa: E402
from train import train  # noqa: E402


def cpp(output, mode, checkpoint, optimizer):
    return subprocess.run([program, mode, checkpoint, optimizer], stdout=output, stderr=output).returncode


def python(output, mode, checkpoint, optimizer):
    return Forked(output, train, mode, checkpoint, optimizer).wait()


def run(side, mode, checkpoint, optimizer):
    with tempfile.TemporaryFile("w+") as output:
        code = side(output, mode, checkpoint, optimizer)
        output.seek(0)
        text = output.read()
    if code != 0:
        sys.exit(f"{optimizer}: {side.__name__} {mode}:\n{text}")
    steps = {}
    for line in text.splitlines():
        if line.startswith("step "):
            _, step, loss, rate = line.split()
            steps[int(step)] = float(loss), float(rate)
    return steps


def compare(optimizer, saver, mode, loader):
    with tempfile.TemporaryDirectory() as root:
        checkpoint = os.path.join(root, "checkpoint")
        saved = run(saver, mode, checkpoint, optimizer)
        loaded = run(loader, "load", checkpoint, optimizer)
        if mode == "save" and saver is cpp:
            check_files(checkpoint)
    if sorted(loaded) != [4, 5, 6, 7] or sorted(saved) != [1, 2, 3, 4, 5, 6, 7]:
        sys.exit(f"{optimizer}: not the same steps: {sorted(saved)} {sorted(loaded)}")
    for step, (loss, rate) in loaded.items():
        if abs(loss - saved[step][0]) > 1e-6 or abs(rate - saved[step][1]) > 1e-15:
            sys.exit(f"{optimizer}: step {step}: saved by {saver.__name__} {saved[step]}, loaded by {loader.__name__} {loss, rate}")


def check_files(checkpoint):
    """Python reads ours without running anything, and finds in them what it would have written."""
    names = sorted(os.listdir(checkpoint))
    scaler = ["scaler.pt"] if precision == ["fp16"] else []
    assert names == ["custom_checkpoint_0.pkl", "model.safetensors", "optimizer.bin", "random_states_0.pkl", *scaler,
                     "scheduler.bin"], names
    for name in names:
        if not name.endswith(".safetensors"):
            torch.load(os.path.join(checkpoint, name), weights_only=True)
            torch.load(os.path.join(checkpoint, name), weights_only=True, mmap=True)
    states = torch.load(os.path.join(checkpoint, "random_states_0.pkl"), weights_only=True)
    import random

    import numpy

    random.setstate(states["random_state"])
    numpy.random.set_state(states["numpy_random_seed"])
    expected = numpy.random.RandomState(1).random_sample(3)
    assert (numpy.random.random_sample(3) == expected).all(), "numpy is not seeded as LibTorch is"
    torch.set_rng_state(states["torch_manual_seed"])


for one in optimizers.split(","):
    compare(one, cpp, "save", python)
    compare(one, python, "save", cpp)
    compare(one, python, "save_bin", cpp)
