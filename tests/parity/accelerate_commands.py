# SPDX-License-Identifier: Apache-2.0
"""Random inputs to accelerate's to-fsdp2 and tpu-config, and to ours: the same file, the same command.

accelerate_commands.py ACC [COUNT [SEED]]

A case that accelerate refuses with an exception acc has to refuse too. Exits 1 and shows an example of each kind of
difference.
"""

import argparse
import contextlib
import io
import json
import logging
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import yaml

from accelerate.commands.to_fsdp2 import to_fsdp2_command, to_fsdp2_command_parser
from accelerate.commands.tpu import tpu_command_launcher, tpu_command_parser

HERE = pathlib.Path(__file__).parent
FSDP = json.loads((HERE / "../../configs/schema.json").read_text())["else"]["properties"]["fsdp_config"]["properties"]
STRATEGIES = ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"]


def theirs(command, parser, words):
    """What it prints, or nothing if it fails."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            command(parser().parse_args(words))
        except (Exception, SystemExit):
            return None
    return printed.getvalue()


def value_of(dice, key, row):
    if key in ("fsdp_sharding_strategy", "fsdp_reshard_after_forward"):
        return dice.choice(STRATEGIES)
    if key == "fsdp_version":
        return dice.choice([1, 1, 1, 2])
    words = row.get("enum") or row.get("anyOf", [{}])[0].get("enum")
    if words:
        return dice.choice(words)
    kind = row.get("type")
    return dice.randint(1, 9) if kind == "integer" else dice.choice([True, False, "Block"])


def try_to_fsdp2(acc, dice):
    section = {key: value_of(dice, key, row) for key, row in FSDP.items() if dice.random() < 0.5}
    config = {"distributed_type": "FSDP", "num_processes": 2, "fsdp_config": section}
    if dice.random() < 0.1:
        del config["fsdp_config"]
    pathlib.Path("c.yaml").write_text(yaml.safe_dump(config, sort_keys=dice.random() < 0.5))
    words = ["--config_file", "c.yaml", "--output_file"]
    it = theirs(to_fsdp2_command, to_fsdp2_command_parser, [*words, "theirs.yaml", "--overwrite"])
    done = subprocess.run([acc, "to-fsdp2", *words, "ours.yaml", "--overwrite"], capture_output=True, text=True)
    if it is None or done.returncode != 0:
        return None if it is None and done.returncode != 0 else f"to-fsdp2 refused by one alone: {done.stderr} {config}"
    one, other = (yaml.safe_load(pathlib.Path(name).read_text()) for name in ("theirs.yaml", "ours.yaml"))
    return None if one == other else f"to-fsdp2 of {config}: {one} there, {other} here"


def try_tpu_config(acc, dice):
    def maybe(chance, *words):
        return list(words) if dice.random() < chance else []

    config = {"distributed_type": "XLA", "num_processes": 8}
    for key, value in (("tpu_name", "pod"), ("tpu_zone", "zone-a"), ("commands", ["echo a", "echo b"]),
                       ("command_file", "start.sh")):  # fmt: skip
        if dice.random() < 0.5:
            config[key] = value
    pathlib.Path("c.yaml").write_text(yaml.safe_dump(config))
    pathlib.Path("start.sh").write_text("pip list\nnproc\n")
    words = ["--config_file", "c.yaml", "--debug", *maybe(0.5, "--tpu_name", "other"),
             *maybe(0.5, "--tpu_zone", "zone-b"), *maybe(0.3, "--use_alpha"), *maybe(0.3, "--install_accelerate"),
             *maybe(0.3, "--accelerate_version", dice.choice(["1.2.0", "dev", "latest"])),
             *maybe(0.3, "--command_file", "start.sh"), *maybe(0.4, "--command", "ls", "-l"),
             *maybe(0.3, "--command", "echo hello")]  # fmt: skip
    it = theirs(tpu_command_launcher, tpu_command_parser, words)
    done = subprocess.run([acc, "tpu-config", *words], capture_output=True, text=True)
    mine = done.stdout if done.returncode == 0 else None
    return None if it == mine else f"tpu-config {words} of {config}: {it!r} there, {mine!r} here ({done.stderr})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("acc")
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    args = parser.parse_args()
    acc = os.path.abspath(args.acc)
    logging.disable(logging.CRITICAL)
    dice = random.Random(args.seed)
    differences = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for _ in range(args.count):
            differences += filter(None, (try_to_fsdp2(acc, dice), try_tpu_config(acc, dice)))
    print(f"{2 * args.count} commands, seed {args.seed}: {len(differences)} differ")
    for difference in differences[:10]:
        print(difference)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
