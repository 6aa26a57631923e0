# SPDX-License-Identifier: Apache-2.0
"""The Python side of the wheel, in an environment laid out as pip does it: `python -m acc`, and with ACC_REPLACE_TORCHRUN=1
`python -m torch.distributed.run`. Beside a torch that only says that it was imported, and the PyTorch of ACC_PEER_PYTHON.

    replace_torchrun_test.py ACC SCRIPTS_PACKAGE_FOLDER
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TELLS_ITS_PARENT = """\
import os, sys
with open(f"/proc/{os.getppid()}/comm") as file:
    print(file.read().strip(), sys.executable, sys.argv[1:], os.environ.get("LOCAL_RANK"), flush=True)
"""
TRAINS = """\
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
ones = torch.ones(1)
dist.all_reduce(ones)
with open(f"/proc/{os.getppid()}/comm") as file:
    os.write(1, f"sum {int(ones)} under {file.read().strip()}\\n".encode())  # whole, where no launcher keeps lines apart
dist.destroy_process_group()
os._exit(0)  # torch 2.11 sometimes aborts while the interpreter ends
"""
RUN = ["-m", "torch.distributed.run"]
TWO = ["--standalone", "--nproc-per-node", "2"]


class Environment:
    def __init__(self, folder, acc, package, python=sys.executable):
        self.folder = pathlib.Path(folder) / "an environment"
        subprocess.run([python, "-m", "venv", "--without-pip", self.folder], check=True, timeout=60)
        self.python = self.folder / "bin/python"
        self.packages = next(self.folder.glob("lib/python*/site-packages"))
        shutil.copytree(package / "acc", self.packages / "acc", ignore=shutil.ignore_patterns("__pycache__"))
        for file in ("acc_replace.pth", "_acc_replace.py"):
            shutil.copy(package / file, self.packages)
        (self.folder / "bin/acc").symlink_to(acc)
        (self.folder / "tells.py").write_text(TELLS_ITS_PARENT)
        (self.folder / "trains.py").write_text(TRAINS)

    def variables(self, **more):
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "OMP_NUM_THREADS": "1", **more}

    def start(self, *words):
        return subprocess.Popen([self.python, *words], text=True, stdout=subprocess.PIPE, env=self.variables(), cwd=self.folder)

    def run(self, *words, replace=None, **variables):
        environment = self.variables(**variables)
        if replace is not None:
            environment["ACC_REPLACE_TORCHRUN"] = replace
        return subprocess.run([self.python, *words], text=True, capture_output=True, timeout=120, env=environment, cwd=self.folder)

    def put_torch(self):
        """A package torch that says when it is imported."""
        distributed = self.packages / "torch/distributed"
        distributed.mkdir(parents=True)
        (distributed.parent / "__init__.py").write_text('print("imported torch")\n')
        (distributed / "__init__.py").touch()
        for module in ("run", "launch", "runner"):
            (distributed / f"{module}.py").write_text(f'import sys; print("{module} of torch", sys.argv[1:])\n')


def said(done, code=0):
    assert done.returncode == code, done
    return done.stdout.splitlines()


def beside_a_torch_that_only_speaks(venv):
    venv.put_torch()
    assert said(venv.run("-m", "acc", "--version"))[0].startswith("acc ")
    # Not asked for, or another module, another program: nothing happens.
    torch = ["imported torch", "run of torch ['x']"]
    for value in (None, "", "0", "yes"):
        assert said(venv.run(*RUN, "x", replace=value)) == torch, value
    assert said(venv.run("-m", "torch.distributed.runner", replace="1"))[-1] == "runner of torch []"
    assert said(venv.run("-c", "import torch.distributed.run", "-m", "torch.distributed.run", replace="1"))[0] == "imported torch"
    assert said(venv.run("tells.py", *RUN, replace="1"))[0].startswith("python")
    # Each spelling of the command; the workers run under the same Python.
    for spelling in (RUN, ["-u", "-W", "ignore", *RUN], ["-mtorch.distributed.run"], ["-X", "utf8", "-umtorch.distributed.run"]):
        lines = said(venv.run(*spelling, *TWO, "tells.py", "-m", "two words", replace="1"))
        assert sorted(lines) == [f"acc {venv.python} ['-m', 'two words'] {rank}" for rank in (0, 1)], (spelling, lines)
    lines = said(venv.run("-m", "torch.distributed.launch", "--nproc_per_node=1", "tells.py", replace="1"))
    assert lines == [f"acc {venv.python} ['--local-rank=0'] 0"], lines
    assert said(venv.run(*RUN, "tells.py", replace="1", PYTHON_EXEC=sys.executable))[0].split()[1] == sys.executable
    # Exit codes and errors are acc's; so is the one for an acc that is gone.
    assert "no such program" in venv.run(*RUN, "missing", replace="1").stderr
    assert venv.run(*RUN, "--no-python", "false", replace="1").returncode == 1
    (venv.folder / "bin/acc").unlink()
    gone = venv.run(*RUN, "tells.py", replace="1")
    assert gone.returncode == 1 and gone.stderr.startswith("acc: the program is in none of ") and gone.stderr.count("\n") == 1, gone
    assert said(venv.run(*RUN, "x")) == torch


def the_program_is_replaced_too(venv):
    workers = sorted(f"acc {venv.python} ['x'] {rank}" for rank in (0, 1))
    pip = f"#!{venv.python}\nimport sys\nfrom torch.distributed.run import main\nsys.exit(main())\n"
    program = venv.folder / "bin/torchrun"
    program.write_text(pip)
    assert said(venv.run("bin/torchrun", *TWO, "tells.py", "x", replace="0"), code=1)[0] == "imported torch"  # whose run has no main
    assert sorted(said(venv.run("bin/torchrun", *TWO, "tells.py", "x", replace="1"))) == workers
    # What `acc install-torchrun` keeps is PyTorch's, and a script of the user is his.
    program.rename(venv.folder / "bin/torchrun.before-acc")
    assert said(venv.run("bin/torchrun.before-acc", "x", replace="1"), code=1)[0] == "imported torch"
    (venv.folder / "torchrun").write_text("print('a script of the user')\n")
    assert said(venv.run("torchrun", "x", replace="1")) == ["a script of the user"]
    # `python $(which torchrun)`, which is acc itself: no Python can run it.
    program.symlink_to("acc")
    assert sorted(said(venv.run("bin/torchrun", *TWO, "tells.py", "x", replace="1"))) == workers


def a_program_that_names_a_python_runs_under_the_one_that_was_asked_for(venv):
    script = venv.folder / "names_another.py"
    script.write_text("#!/nowhere/bin/python\n" + TELLS_ITS_PARENT)
    script.chmod(0o755)
    script.rename(venv.folder / "names_another")
    assert said(venv.run(*RUN, "names_another", replace="1")) == [f"acc {venv.python} [] 0"]


def a_foreign_acc_changes_nothing(venv):
    """A folder of PYTHONPATH comes before the packages of the environment."""
    (venv.folder / "strangers").mkdir()
    (venv.folder / "strangers/acc.py").write_text("print('imported a foreign acc')\n")
    strangers = {"PYTHONPATH": str(venv.folder / "strangers"), "ACC_REPLACE_ACCELERATE": "1"}
    started = venv.run("-c", "print(1)", replace="1", **strangers)
    assert said(started) == ["1"] and not started.stderr, started
    assert said(venv.run(*RUN, "tells.py", replace="1", **strangers)) == [f"acc {venv.python} [] 0"]


def the_acc_of_the_package_comes_first(venv):
    """An environment may have another acc than `pip install --target` or `--user` has put elsewhere."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for packages, programs in (("target", "target/bin"), (f".local/lib/{version}/site-packages", ".local/bin")):
        shutil.copytree(venv.packages / "acc", venv.folder / packages / "acc")
        (venv.folder / programs).mkdir()
        (venv.folder / programs / "acc").write_text(f"#!/bin/sh\necho {programs}\n")
        (venv.folder / programs / "acc").chmod(0o755)
        assert said(venv.run("-m", "acc", PYTHONPATH=str(venv.folder / packages))) == [programs]
    assert said(venv.run("-m", "acc", "--version"))[0].startswith("acc ")


def beside_pytorch(venv, peer):
    packages = subprocess.run([peer, "-c", "import torch, pathlib; print(pathlib.Path(torch.__file__).parents[1])"],
                              text=True, capture_output=True, check=True, timeout=120).stdout.strip()
    (venv.packages / "peers.pth").write_text(packages + "\n")
    for replace, parent in (("1", "acc"), (None, "pt_elastic")):  # the name that torchrun gives itself
        done = venv.run(*RUN, *TWO, "trains.py", replace=replace)
        assert said(done) == [f"sum 2 under {parent}"] * 2, done


def main(acc, package):
    with tempfile.TemporaryDirectory(prefix="acc-python-") as folder:
        beside_a_torch_that_only_speaks(Environment(folder, acc, package))
    with tempfile.TemporaryDirectory(prefix="acc-python-") as folder:
        venv = Environment(folder, acc, package)
        venv.put_torch()
        the_program_is_replaced_too(venv)
        a_program_that_names_a_python_runs_under_the_one_that_was_asked_for(venv)
        a_foreign_acc_changes_nothing(venv)
    with tempfile.TemporaryDirectory(prefix="acc-python-") as folder:
        the_acc_of_the_package_comes_first(Environment(folder, acc, package))
    peer = os.environ.get("ACC_PEER_PYTHON")
    if peer:
        with tempfile.TemporaryDirectory(prefix="acc-python-") as folder:
            beside_pytorch(Environment(folder, acc, package, peer), peer)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
