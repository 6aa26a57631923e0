# SPDX-License-Identifier: Apache-2.0
"""Random walks through accelerate's questionnaire, and the same answers given to `acc config`: the files are the same.

accelerate_config_walk.py ACC FAKE_NVML [COUNT [SEED]]

Where accelerate ends a walk with an exception acc asks again, so such walks are left out. What the files may differ in
is in settled(), a row of differences.yaml each. Exits 1 and shows an example of each kind of difference.
"""

import argparse
import collections
import contextlib
import io
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import yaml

import accelerate.commands.config.cluster as cluster
import accelerate.commands.config.config as questions
import accelerate.commands.config.config_utils as widgets
import accelerate.commands.config.sagemaker as sagemaker


class Walk:
    """Random answers to accelerate's prompts, and the same answers as lines for `acc config`."""

    def __init__(self, dice):
        self.dice = dice
        self.machines = 1
        self.lines = []

    def menu(self, prompt, options=(), convert_value=None, default=0):
        index = self.dice.randrange(len(options))
        # A digit that is a choice's text means that choice; otherwise it is an index.
        is_text = str(options[index]).isdigit()
        self.lines.append(str(options[index]) if is_text else str(index))
        return convert_value(index) if convert_value else index

    def field(self, prompt, convert_value=None, default=None, error_message=None):
        answer = self.answer(prompt, convert_value, default)
        self.lines.append(answer)
        if answer == "" and default is not None:
            return default
        result = convert_value(answer) if convert_value else answer
        if "different machines" in prompt:
            self.machines = result
        return result

    def answer(self, prompt, convert_value, default):
        if "should be used for distributed training" in prompt:
            return str(self.machines * self.dice.randint(2, 3))
        if convert_value is widgets._convert_yes_no_to_bool or "[yes/NO]" in prompt:
            return self.dice.choice(["yes", "no", "No", "" if default is not None else "no"])
        if default is not None and self.dice.random() < 0.4:
            return ""
        # acc asks again for what a launch refuses: what names no machine, backend or device.
        if "IP address" in prompt:
            return self.dice.choice(["node0", "10.0.0.1", "fd00::1"])
        if "port" in prompt:
            return "29501"
        if "rendezvous backend" in prompt:
            return self.dice.choice(["static", "c10d", "etcd"])
        if "by id" in prompt:
            return self.dice.choice(["all", "0,1,2", "GPU-alpha,GPU-beta"])
        if "clipping" in prompt:
            return self.dice.choice(["0.5", "1", "2.0"])
        if convert_value is int:
            return str(self.dice.randint(1, 3))
        if "path" in prompt.lower() or "file" in prompt.lower():
            return "/some/path"
        return self.dice.choice(["alpha", "beta,gamma", "delta=1"])


def settled(settings):
    """The settings without intended differences: fp8-keys, typed-answers and fsdp's tuples."""
    fp8 = settings.get("fp8_config", {})
    for theirs, ours in (("amax_history_length", "amax_history_len"), ("amax_compute_algorithm", "amax_compute_algo"),
                         ("optimization_level", "opt_level")):  # fmt: skip
        if theirs in fp8:
            fp8[ours] = fp8.pop(theirs)
    sudo = settings.get("tpu_use_sudo")
    if isinstance(sudo, str):
        settings["tpu_use_sudo"] = sudo.lower() == "yes"
    for key in ("tpu_vm", "tpu_env"):
        if settings.get(key) == [""]:
            settings[key] = []
    return settings


def theirs(walk, file):
    """What accelerate writes; nothing if it fails."""
    for module in (cluster, sagemaker, questions):
        for name, answer in (("_ask_field", walk.field), ("_ask_options", walk.menu)):
            if hasattr(module, name):
                setattr(module, name, answer)
    sagemaker._create_iam_role_for_sagemaker = lambda _: None
    for name in ("is_deepspeed_available", "is_transformers_available", "is_fp8_available", "is_msamp_available",
                 "is_transformer_engine_available", "is_torchao_available"):  # fmt: skip
        setattr(cluster, name, lambda: True)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            questions.get_user_input().to_yaml_file(file)
        except Exception:
            return None
    return pathlib.Path(file).read_text()


def first_difference(one, other):
    for key in sorted(set(one) | set(other)):
        if one.get(key) != other.get(key):
            return f"{key}: {one.get(key)!r} there, {other.get(key)!r} here"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("acc")
    parser.add_argument("fake_nvml")
    parser.add_argument("count", type=int, nargs="?", default=300)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    args = parser.parse_args()
    acc = os.path.abspath(args.acc)
    differences = collections.defaultdict(list)
    same = bytes_same = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "LD_LIBRARY_PATH": args.fake_nvml,
                       "FAKE_NVML_GPUS": "0"}  # fmt: skip
        os.environ["HOME"] = folder
        for number in range(args.count):
            walk = Walk(random.Random(args.seed * 1_000_000 + number))
            expected = theirs(walk, "theirs.yaml")
            if expected is None:
                continue
            pathlib.Path("ours.yaml").unlink(missing_ok=True)
            done = subprocess.run([acc, "config", "--config_file", "ours.yaml"], env=environment, text=True,
                                  input="\n".join(walk.lines) + "\n", capture_output=True)  # fmt: skip
            if done.returncode != 0:
                difference = "acc: " + re.sub(r"[0-9]+", "N", done.stderr.strip())
            else:
                written = pathlib.Path("ours.yaml").read_text()
                bytes_same += written == expected
                difference = first_difference(settled(yaml.safe_load(expected)), settled(yaml.safe_load(written)))
            if difference is None:
                same += 1
            else:
                differences[difference].append((number, walk.lines))
    print(f"{args.count} walks, seed {args.seed}: {same} the same, {bytes_same} of them to the byte")
    for difference, cases in sorted(differences.items(), key=lambda entry: -len(entry[1])):
        print(f"{len(cases)} x {difference}\n    as in {cases[0]}")
    sys.exit(1 if differences or same == 0 else 0)


if __name__ == "__main__":
    main()
