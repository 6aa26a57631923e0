# SPDX-License-Identifier: Apache-2.0
"""Launchers that become acc while Python starts (acc_replace.pth), before it looks for their module: PyTorch is not imported.
With ACC_REPLACE_TORCHRUN=1 these are `python -m torch.distributed.run` and `python -m torch.distributed.launch`, with
ACC_REPLACE_ACCELERATE=1 the modules and the programs of accelerate's commands.
"""

import os
import sys

TORCHRUN = {"torch.distributed.run": ["run"], "torch.distributed.launch": ["run", "--legacy-launch"]}
ACCELERATE = {"accelerate_cli": [], "env": ["env"], "estimate": ["estimate-memory"], "launch": ["launch"],
              "merge": ["merge-weights"], "test": ["test"]}
PROGRAMS = {"accelerate": [], "accelerate-config": ["config"], "accelerate-estimate-memory": ["estimate-memory"],
            "accelerate-launch": ["launch"], "accelerate-merge-weights": ["merge-weights"]}


def module_of(argv, command_line):
    """The name behind -m, by sys.argv of a starting Python, which lacks it, and the whole command line."""
    if argv[:1] != ["-m"]:
        return None
    word = command_line[-len(argv)]
    return word.partition("m")[2] if word.startswith("-") else word  # -m NAME, or -mNAME, -umNAME


def command_line():
    if hasattr(sys, "orig_argv"):
        return sys.orig_argv
    with open("/proc/self/cmdline", "rb") as file:  # Python before 3.10
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def program_of(path):
    """The name of a program that pip wrote for accelerate; a script of the user may have the same."""
    name = os.path.basename(path)
    if name not in PROGRAMS:
        return None
    try:
        with open(path, "rb") as file:
            return name if b"accelerate.commands" in file.read(4096) else None
    except OSError:
        return None


def torchrun_words(module):
    if module not in TORCHRUN:
        return None
    # Workers run under the Python that was asked for, as torchrun's do.
    return TORCHRUN[module] + ([] if "PYTHON_EXEC" in os.environ else ["--python", sys.executable])


def accelerate_words(module, path):
    package, _, name = (module or "").rpartition(".")
    words = ACCELERATE.get(name) if package == "accelerate.commands" else PROGRAMS.get(program_of(path))
    as_module = ["--module"] if module else []
    return None if words is None else ["accelerate", "--python", sys.executable] + as_module + words


def replace():
    module = module_of(sys.argv, command_line())
    words = None
    if os.environ.get("ACC_REPLACE_TORCHRUN") == "1":
        words = torchrun_words(module)
    if words is None and os.environ.get("ACC_REPLACE_ACCELERATE") == "1":
        words = accelerate_words(module, "" if module or not sys.argv else sys.argv[0])
    if words is None:
        return
    from acc.program import become

    become(words + sys.argv[1:])
