# SPDX-License-Identifier: Apache-2.0
"""resume_test.py PROGRAM LAUNCHER...: a training that is killed and started again ends with the very weights of one that
ran through."""
import pathlib
import subprocess
import sys
import tempfile


def start(folder):
    command = [*sys.argv[2:], sys.argv[1], folder, "--epochs", "2"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def run(folder):
    """The lines of a training that is not killed."""
    process = start(folder)
    lines = process.communicate()[0].splitlines()
    if process.returncode != 0:
        sys.exit(f"the training ended with {process.returncode}: {lines}")
    return lines


def kill_after(checkpoints, folder):
    """Its workers die with the launcher: nothing writes to the folder afterwards."""
    process = start(folder)
    while checkpoints > 0:
        line = process.stdout.readline()
        if not line:
            sys.exit("the training ended before it was killed")
        checkpoints -= line.startswith("saved ")
    process.kill()
    process.communicate()


with tempfile.TemporaryDirectory(prefix="acc-resume-") as name:
    whole, killed = pathlib.Path(name, "whole"), pathlib.Path(name, "killed")
    expected = run(whole)
    kill_after(1, killed)
    # At most 32 steps to an epoch: the second checkpoint is within the second.
    kill_after(1, killed)
    resumed = run(killed)
    print(*resumed, sep="\n")
    if "goes on in epoch 2" not in resumed:
        sys.exit("did not go on where it was")
    if resumed[-1] != expected[-1] or not expected[-1].startswith("epoch 2: "):
        sys.exit(f"without a stop: {expected[-1]}")
    weights = [(folder / "model.safetensors").read_bytes() for folder in (whole, killed)]
    if weights[0] != weights[1]:
        sys.exit("the weights differ")
