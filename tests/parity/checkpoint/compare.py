# SPDX-License-Identifier: Apache-2.0
"""compare.py PROGRAM OPTIMIZER [PRECISION]: each side goes on from what the other saved as the one that saved does.

On the CPU, or with a PRECISION (no, fp16, bf16) on a CUDA device.
"""
import os
import subprocess
import sys
import tempfile

import torch

program, optimizer, *precision = sys.argv[1:]
folder = os.path.dirname(os.path.abspath(__file__))
cpp = [program]
python = [sys.executable, os.path.join(folder, "train.py")]
where = {"ACCELERATE_MIXED_PRECISION": precision[0]} if precision else {"ACCELERATE_USE_CPU": "true"}
environment = {**os.environ, "OMP_NUM_THREADS": "1", **where}


def run(side, mode, checkpoint):
    done = subprocess.run([*side, mode, checkpoint, optimizer], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{side[-1]} {mode}:\n{done.stdout}{done.stderr}")
    steps = {}
    for line in done.stdout.splitlines():
        word, step, loss, rate = line.split()
        assert word == "step"
        steps[int(step)] = float(loss), float(rate)
    return steps


def compare(saver, mode, loader):
    with tempfile.TemporaryDirectory() as root:
        checkpoint = os.path.join(root, "checkpoint")
        saved, loaded = run(saver, mode, checkpoint), run(loader, "load", checkpoint)
        if mode == "save" and saver is cpp:
            check_files(checkpoint)
    if sorted(loaded) != [4, 5, 6, 7] or sorted(saved) != [1, 2, 3, 4, 5, 6, 7]:
        sys.exit(f"not the same steps: {sorted(saved)} {sorted(loaded)}")
    for step, (loss, rate) in loaded.items():
        if abs(loss - saved[step][0]) > 1e-6 or abs(rate - saved[step][1]) > 1e-15:
            sys.exit(f"step {step}: saved by {saver[-1]} {saved[step]}, loaded by {loader[-1]} {loss, rate}")


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


compare(cpp, "save", python)
compare(python, "save", cpp)
compare(python, "save_bin", cpp)
