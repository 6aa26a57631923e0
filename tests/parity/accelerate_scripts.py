# SPDX-License-Identifier: Apache-2.0
"""The scripts in accelerate's wheel, with two processes on the CPU, through the name accelerate that acc has in an environment
beside it. One that needs GPUs ends as under torchrun with the same variables.

    accelerate_scripts.py ACC
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PACKAGE = pathlib.Path(importlib.util.find_spec("accelerate").origin).parent
SCRIPTS = PACKAGE / "test_utils/scripts"
PROGRAM = "#!{python}\nimport sys\nfrom accelerate.commands.accelerate_cli import main\nsys.exit(main())\n"
CONFIG = "distributed_type: MULTI_CPU\nnum_processes: 2\nuse_cpu: true\n"
# A worker that has done its work ends without the interpreter's end, in which torch 2.11 aborts now and then, under torchrun too.
END_OF_WORKERS = """import atexit, os, sys
failures = []

def note(*error, hook=sys.excepthook):
    failures.append(error)
    hook(*error)

def leave():
    sys.stdout.flush()
    sys.stderr.flush()
    if not failures:
        os._exit(0)

if "LOCAL_RANK" in os.environ:
    sys.excepthook = note
    atexit.register(leave)
"""
VARIABLES = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "GLOO_SOCKET_IFNAME": "lo"}


class Environment:
    """One in which accelerate was installed, and then acc took its name."""

    def __init__(self, folder, acc):
        self.folder = pathlib.Path(folder)
        self.bin = self.folder / "environment/bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.bin.parent], check=True, timeout=120)
        packages = next(self.bin.parent.glob("lib/python*/site-packages"))
        (packages / "peers.pth").write_text(f"{PACKAGE.parent}\nimport end_of_workers\n")
        (packages / "end_of_workers.py").write_text(END_OF_WORKERS)
        (self.bin / "acc").symlink_to(acc)
        (self.bin / "accelerate").write_text(PROGRAM.format(python=self.bin / "python"))
        (self.bin / "accelerate").chmod(0o755)
        (self.folder / "config.yaml").write_text(CONFIG)
        self.run(self.bin / "acc", "install-accelerate", "--yes")

    def run(self, *words, **variables):
        environment = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.folder), **VARIABLES, **variables}
        return subprocess.run(words, text=True, capture_output=True, timeout=400, env=environment, cwd=self.folder,
                              stdin=subprocess.DEVNULL)

    def accelerate(self, *words):
        return self.run(self.bin / "accelerate", *words)


def the_test_trains_on_two_processes(venv):
    done = venv.accelerate("test", "--config_file", "config.yaml")
    assert done.returncode == 0, done
    assert "DistributedType.MULTI_CPU" in done.stdout and "Num processes: 2" in done.stdout, done.stdout
    assert done.stdout.splitlines()[-1].startswith("Test is a success!"), done.stdout


def scripts_pass(venv):
    # test_ops makes a PartialState, which takes part in no job on the CPU, under torchrun neither.
    for name in ("test_sync", "test_ops", "test_cli"):
        done = venv.accelerate("launch", "--cpu", "--num_processes", "2", SCRIPTS / f"{name}.py")
        assert done.returncode == 0, (name, done)
        assert name != "test_sync" or "Test Distributed" in done.stdout, done


def first_error(text):
    """The line with which rank 0 failed."""
    return re.search(r"\[rank0\]: (\w+Error: .*)", text).group(1)


def a_script_for_gpus_fails_as_under_torchrun(venv):
    script = SCRIPTS / "test_merge_weights.py"
    ours = venv.accelerate("launch", "--cpu", "--num_processes", "2", script)
    theirs = venv.run(venv.bin / "python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script,
                      ACCELERATE_USE_CPU="true")
    assert ours.returncode != 0 and theirs.returncode != 0, (ours, theirs)
    assert first_error(ours.stderr) == first_error(theirs.stderr), (ours, theirs)


def what_is_handed_on_reaches_accelerate(venv):
    done = venv.accelerate("frobnicate")
    assert done.returncode == 2 and "invalid choice: 'frobnicate'" in done.stderr, done


def main(acc):
    for test in (the_test_trains_on_two_processes, scripts_pass, a_script_for_gpus_fails_as_under_torchrun,
                 what_is_handed_on_reaches_accelerate):
        with tempfile.TemporaryDirectory(prefix="acc-scripts-") as folder:
            test(Environment(folder, acc))
        print("ok:", test.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
