# SPDX-License-Identifier: Apache-2.0
"""With ACC_REPLACE_ACCELERATE=1 the modules and the programs of accelerate's commands are acc, in an environment laid out as pip
does it, beside an accelerate that only says that it was imported.

    replace_accelerate_test.py ACC SCRIPTS_PACKAGE_FOLDER
"""

import pathlib
import sys
import tempfile

from replace_torchrun_test import Environment, said

MODULE = """\
import sys
def main():
    print("{name} of accelerate", sys.argv[1:])
if __name__ == "__main__":
    main()
"""
PROGRAM = "#!{python}\nimport sys\nfrom accelerate.commands.{module} import main\nsys.exit(main())\n"
TWO = ["--cpu", "--num_processes", "2"]


class WithAccelerate(Environment):
    def __init__(self, folder, acc, package):
        super().__init__(folder, acc, package)
        self.put_torch()

    def put_accelerate(self):
        commands = self.packages / "accelerate/commands"
        commands.mkdir(parents=True)
        (commands.parent / "__init__.py").write_text('print("imported accelerate")\n')
        (commands / "__init__.py").touch()
        for name in ("accelerate_cli", "launch", "env", "menu"):
            (commands / f"{name}.py").write_text(MODULE.format(name=name))
        for name, module in (("accelerate", "accelerate_cli"), ("accelerate.before-acc", "accelerate_cli"), ("accelerate-launch", "launch")):
            (self.folder / "bin" / name).write_text(PROGRAM.format(python=self.python, module=module))

    def call(self, *words, asked="1", **variables):
        return self.run(*words, ACC_REPLACE_ACCELERATE=asked, **variables)


def nothing_happens_unless_it_is_asked_for(venv):
    for asked in ("", "0", "yes"):
        assert said(venv.call("-m", "accelerate.commands.launch", "x", asked=asked)) == ["imported accelerate", "launch of accelerate ['x']"]
    assert said(venv.run("-m", "accelerate.commands.launch", "x", replace="1"))[-1] == "launch of accelerate ['x']"
    # Nor with another module, another program, or a script of the user.
    assert said(venv.call("-m", "accelerate.commands.menu", "x"))[-1] == "menu of accelerate ['x']"
    assert said(venv.call("-m", "torch.distributed.run", "x"))[-1] == "run of torch ['x']"
    (venv.folder / "accelerate-launch").write_text("print('a script of the user')\n")
    assert said(venv.call("accelerate-launch", "x")) == ["a script of the user"]
    assert said(venv.call("-c", "print(1)", "-m", "accelerate.commands.launch")) == ["1"]


def modules_and_programs_become_acc(venv):
    workers = sorted(f"acc {venv.python} ['-m', 'two words'] {rank}" for rank in (0, 1))
    for spelling in (["-m", "accelerate.commands.launch"], ["-umaccelerate.commands.launch"],
                     ["-m", "accelerate.commands.accelerate_cli", "launch"], ["bin/accelerate", "launch"], ["bin/accelerate-launch"]):
        lines = said(venv.call(*spelling, *TWO, "tells.py", "-m", "two words"))
        assert sorted(lines) == workers, (spelling, lines)
    # Both variables: each replaces its own.
    lines = said(venv.call("-m", "accelerate.commands.launch", *TWO, "tells.py", "-m", "two words", replace="1"))
    assert sorted(lines) == workers, lines
    assert said(venv.call("-m", "accelerate.commands.env"))[0].startswith("- `acc` version")
    python = said(venv.call("bin/accelerate-launch", "tells.py", PYTHON_EXEC=sys.executable))[0].split()[1]
    assert python == sys.executable
    assert venv.call("bin/accelerate-launch", "--no_python", "sh", "-c", "exit 7").returncode == 7


def a_program_that_is_acc_becomes_acc(venv):
    """`python $(which accelerate-launch)` once `acc install-accelerate` has made it a link: no Python can run it."""
    program = venv.folder / "bin/accelerate-merge-weights"
    program.symlink_to("acc")
    done = venv.call("bin/accelerate-merge-weights", "missing", "out")
    assert done.returncode == 1 and done.stderr.startswith("acc: missing: ") and done.stderr.count("\n") == 1, done
    program.unlink()
    program.write_bytes(b"\x7fELF of another")
    assert "SyntaxError" in venv.call("bin/accelerate-merge-weights").stderr


def what_acc_does_not_do_goes_to_the_package(venv):
    for spelling in (["-m", "accelerate.commands.accelerate_cli"], ["bin/accelerate"]):
        assert said(venv.call(*spelling, "ps", "two words"))[-1] == "accelerate_cli of accelerate ['ps', 'two words']"
    # The program that acc install-accelerate keeps stays accelerate's.
    assert said(venv.call("bin/accelerate.before-acc", "launch", "x"))[-1] == "accelerate_cli of accelerate ['launch', 'x']"


def without_accelerate_one_line_says_so(venv):
    missing = venv.call("-m", "accelerate.commands.accelerate_cli", "ps")
    assert missing.returncode == 1 and missing.stderr.startswith("acc: ") and missing.stderr.count("\n") == 1, missing
    assert "accelerate is not installed" in missing.stderr


def main(acc, package):
    with tempfile.TemporaryDirectory(prefix="acc-python-") as folder:
        venv = WithAccelerate(folder, acc, package)
        without_accelerate_one_line_says_so(venv)
        venv.put_accelerate()
        nothing_happens_unless_it_is_asked_for(venv)
        modules_and_programs_become_acc(venv)
        a_program_that_is_acc_becomes_acc(venv)
        what_acc_does_not_do_goes_to_the_package(venv)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
