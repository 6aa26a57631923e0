# SPDX-License-Identifier: Apache-2.0
"""background_end_test.py PROGRAM [LAUNCHER...]: a program that ends while a checkpoint is written in the background has
the whole checkpoint when it has ended, and does not end well if the checkpoint could not be written."""
import os
import pathlib
import subprocess
import sys
import tempfile

command = [*sys.argv[2:], sys.argv[1]]


def run(folder, how):
    done = subprocess.run([*command, folder, how], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def expect(how, code, number, text=""):
    with tempfile.TemporaryDirectory(prefix="acc-end-") as name:
        folder = pathlib.Path(name, "checkpoint")
        got, said = run(folder, how)
        names = os.listdir(name)
        loaded = run(folder, "reads")
        if got != code or text not in said or names != ["checkpoint"] or loaded[0] or f"checkpoint {number}\n" not in loaded[1]:
            sys.exit(f"{how}: ended with {got}, left {names}, then said {loaded}:\n{said}")


# The code of SIGABRT: with a launcher the worker's, as a shell has it.
aborted = 134 if len(sys.argv) > 2 else -6
expect("returns", 0, 2)
expect("exits", 0, 2)
expect("throws", 1, 2, "the program's own error")
expect("fails", aborted, 1, "model.safetensors: cannot be written: File too large")
expect("exits_and_fails", aborted, 1, "model.safetensors: cannot be written: File too large")
