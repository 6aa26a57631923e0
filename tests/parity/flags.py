#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The flags of the peers' parsers are those that the guide's tables list (scripts/tables reads the recording).

    flags.py tests/data/peer_flags.json [--record]

A Python with torch checks torchrun's of its version, one with accelerate also accelerate's.
"""

import json
import pathlib
import sys

import torch
from torch.distributed.run import get_args_parser


def flags_of(parser):
    """Long and short spellings, those that differ by - and _ alone as one."""
    spellings = {spelling.replace("_", "-") for action in parser._actions for spelling in action.option_strings}
    return sorted(spellings - {"-h", "--help"})


def version(text):
    return ".".join(text.split(".")[:2])


def main():
    file = pathlib.Path(sys.argv[1])
    recorded = json.loads(file.read_text()) if file.exists() else {}
    flags_by_peer = {f"torchrun {version(torch.__version__)}": flags_of(get_args_parser())}
    try:
        import accelerate
        from accelerate.commands.launch import launch_command_parser

        flags_by_peer[f"accelerate {version(accelerate.__version__)}"] = flags_of(launch_command_parser())
    except ModuleNotFoundError:
        pass
    if "--record" in sys.argv:
        file.write_text(json.dumps(dict(sorted((recorded | flags_by_peer).items())), indent=1) + "\n")
        return 0
    failed = 0
    for peer, flags in flags_by_peer.items():
        if recorded.get(peer) != flags:
            print(f"{peer} has other flags: {sorted(set(flags) ^ set(recorded.get(peer, [])))}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
