# SPDX-License-Identifier: Apache-2.0
"""Where ACC_REPLACE_TORCHRUN is 1, `python -m torch.distributed.run` and `python -m torch.distributed.launch` are acc. Python
imports this while it starts (acc_replace_torchrun.pth), before it looks for the module: PyTorch is not imported.
"""

import os
import sys

COMMANDS = {"torch.distributed.run": ["run"], "torch.distributed.launch": ["run", "--legacy-launch"]}


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


def replace():
    command = COMMANDS.get(module_of(sys.argv, command_line()))
    if command is None:
        return
    from acc.program import become

    # Workers run under the Python that was asked for, as torchrun's do.
    python = [] if "PYTHON_EXEC" in os.environ else ["--python", sys.executable]
    become(command + python + sys.argv[1:])
