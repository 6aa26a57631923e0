# SPDX-License-Identifier: Apache-2.0
"""Launchers that become acc while Python starts (acc_replace.pth), before it looks for their module: PyTorch is not imported.
With ACC_REPLACE_TORCHRUN=1 these are `python -m torch.distributed.run`, `python -m torch.distributed.launch` and the program
torchrun, with ACC_REPLACE_ACCELERATE=1 the modules and the programs of accelerate's commands. Beside the package acc, not in it:
each Python starts this file, also one that finds a stranger's acc first.
"""

import os
import sys

TORCHRUN = {"torch.distributed.run": [], "torch.distributed.launch": ["--legacy-launch"]}
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


def own_program():
    """The module acc.program beside this file: `import acc` may find another package."""
    import importlib.util

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "acc", "program.py")
    spec = importlib.util.spec_from_file_location("_acc_program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_acc(path):
    """Whether `acc install-...` has made it a link to acc, which no Python can run."""
    found = own_program().find()
    return found is not None and os.path.samefile(path, found)


def program_of(path, names, module):
    """The name of a program that pip wrote for `module`, or that is acc now; a script of the user may have the same."""
    name = os.path.basename(path)
    if name not in names:
        return None
    try:
        with open(path, "rb") as file:
            return name if module in file.read(4096) or is_acc(path) else None
    except OSError:
        return None


def torchrun_words(module, path):
    words = TORCHRUN.get(module)
    if words is None and program_of(path, ["torchrun"], b"torch.distributed.run"):
        words = []
    if words is None:
        return None
    # Workers run under the Python that was asked for, as torchrun's do.
    return ["torchrun"] + words + ([] if "PYTHON_EXEC" in os.environ else ["--python", sys.executable])


def accelerate_words(module, path):
    package, _, name = (module or "").rpartition(".")
    if package == "accelerate.commands":
        words = ACCELERATE.get(name)
    else:
        words = PROGRAMS.get(program_of(path, PROGRAMS, b"accelerate.commands"))
    as_module = ["--module"] if module else []
    return None if words is None else ["accelerate", "--python", sys.executable] + as_module + words


def replace():
    argv = getattr(sys, "argv", [])  # a program that embeds Python may give it none
    module = module_of(argv, command_line())
    path = "" if module or not argv else argv[0]
    words = None
    if os.environ.get("ACC_REPLACE_TORCHRUN") == "1":
        words = torchrun_words(module, path)
    if words is None and os.environ.get("ACC_REPLACE_ACCELERATE") == "1":
        words = accelerate_words(module, path)
    if words is not None:
        own_program().become(words + argv[1:])
