# SPDX-License-Identifier: Apache-2.0
"""accelerate_workers.py ACC FAKE_NVML RECORDING...: the workers of a recorded job of accelerate, started by acc on one
machine and as two nodes, see the recorded variables."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml
from agents import TIMEOUT

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

ROWS = yaml.safe_load((pathlib.Path(__file__).parent / "differences.yaml").read_text())
# MASTER_PORT is given here, so it is compared.
LEFT_OUT = {name for row in ROWS if "in" not in row for name in row.get("variables", [])} - {"MASTER_PORT"}


def variables_of_workers(acc, environment, config, port):
    """By rank, what each worker saw beyond what acc was given."""
    machines = yaml.safe_load(config).get("num_machines", 1)
    pathlib.Path("c.yaml").write_text(config.replace("<PORT>", str(port)))
    tell = 'env -0 > "worker$RANK"'
    nodes = [
        subprocess.Popen([acc, "launch", "--config_file", "c.yaml", "--machine_rank", str(rank), "--no_python",
                          "/bin/sh", "-c", tell], env=environment)
        for rank in range(machines)
    ]  # fmt: skip
    try:
        assert [node.wait(TIMEOUT) for node in nodes] == [0] * machines
    finally:
        for node in nodes:
            node.kill()
    seen = {}
    for file in pathlib.Path().glob("worker*"):
        lines = [line.split("=", 1) for line in file.read_text().split("\0") if line]
        added = {name: value for name, value in lines if environment.get(name) != value}
        seen[file.name.removeprefix("worker")] = {name: generalize(value, port) for name, value in added.items()}
    return seen


def generalize(value, port):
    value = "<PORT>" if value == str(port) else value
    return re.sub(r"^.*/torchelastic_\w+/none_\w+/", "/tmp/torchelastic_<RANDOM>/none_<RANDOM>/", value)


def main():
    acc, fake_nvml, *recordings = sys.argv[1:]
    for path in recordings:
        recording = json.loads(pathlib.Path(path).read_text())
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "LD_LIBRARY_PATH": fake_nvml, "FAKE_NVML_GPUS": "2"}
            seen = variables_of_workers(acc, environment, recording["config_yaml"], free_port())
            os.chdir("/")
        assert seen.keys() == recording["workers"].keys(), (path, seen.keys())
        for rank, expected in recording["workers"].items():
            # A shell's own.
            ours = {name: value for name, value in seen[rank].items() if name not in LEFT_OUT | {"PWD", "_", "OLDPWD", "SHLVL"}}
            expected = {name: value for name, value in expected.items() if name not in LEFT_OUT}
            differ = {name: (expected.get(name), ours.get(name)) for name in {**expected, **ours}
                      if expected.get(name) != ours.get(name)}  # fmt: skip
            assert not differ, f"{path}: rank {rank}: there, here: {differ}"


if __name__ == "__main__":
    main()
