# SPDX-License-Identifier: Apache-2.0
"""`acc install-torchrun` in folders that hold a foreign torchrun, one of acc's, or none. Usage: install_torchrun_test.py ACC."""

import os
import pathlib
import pty
import resource
import shutil
import subprocess
import sys
import tempfile

FOREIGN = "#!/bin/sh\necho foreign \"$@\"\n"


class Environment:
    """A folder `bin` with acc, as pip fills it, and what a shell sees in it."""

    def __init__(self, acc, folder, name="torchrun"):
        self.command = "install-" + name
        self.bin = pathlib.Path(folder) / "an environment" / "bin"
        self.bin.mkdir(parents=True)
        try:
            os.link(acc, self.bin / "acc")
        except OSError:
            shutil.copy(acc, self.bin)
        self.torchrun = self.bin / "torchrun"
        self.kept = self.bin / "torchrun.before-acc"

    def run(self, *words, **more):
        return subprocess.run([self.bin / "acc", self.command, *words], text=True, capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL, env={"PATH": f"{self.bin}:{os.environ['PATH']}"}, **more)

    def do(self, *words):
        done = self.run(*words)
        assert done.returncode == 0 and not done.stderr, done
        return done.stdout

    def put(self, text=FOREIGN):
        self.torchrun.unlink(missing_ok=True)
        self.torchrun.write_text(text)
        self.torchrun.chmod(0o755)

    def files(self):
        return sorted(file.name for file in self.bin.iterdir())

    def is_acc(self):
        version = subprocess.run([self.torchrun, "--version"], text=True, capture_output=True, timeout=60)
        return os.readlink(self.torchrun) == "acc" and version.stdout.startswith("acc ")


def nothing_is_done_without_yes(venv):
    done = venv.run()
    assert done.returncode == 2, done
    assert done.stdout == f"{venv.torchrun} will be a link to acc\n", done
    assert done.stderr == "acc: nothing was changed (--yes does it)\n", done
    venv.put()
    done = venv.run()
    assert done.returncode == 2 and "what it is now will be torchrun.before-acc\n" in done.stdout, done
    assert venv.files() == ["acc", "torchrun"] and venv.torchrun.read_text() == FOREIGN


def a_torchrun_is_put_beside_acc_and_removed(venv):
    assert venv.do("--yes") == f"{venv.torchrun} is acc now; `acc install-torchrun --undo` takes that back\n"
    assert venv.is_acc() and venv.files() == ["acc", "torchrun"]
    assert "is acc already" in venv.do("--yes") and "is acc already" in venv.do()
    assert "is removed; there was none before" in venv.do("--undo")
    assert venv.files() == ["acc"]
    assert "nothing to take back" in venv.do("--undo")


def it_follows_the_rules_of_torchrun(venv):
    venv.do("--yes")
    shown = subprocess.run([venv.torchrun, "--nproc-per-node", "2", "--dry-run", "true"], text=True, capture_output=True, timeout=60)
    assert shown.returncode == 0, shown
    refused = subprocess.run([venv.torchrun, "--num_processes", "2", "true"], text=True, capture_output=True, timeout=60)
    assert refused.returncode == 2, refused
    empty = subprocess.run([venv.torchrun], text=True, capture_output=True, timeout=60)
    assert empty.returncode == 2 and "as in `torchrun train.py" in empty.stderr and "acc run" not in empty.stderr, empty


def a_foreign_torchrun_is_kept_and_put_back(venv):
    venv.put()
    before = venv.torchrun.stat().st_ino
    assert "what it was is torchrun.before-acc" in venv.do("--yes")
    assert venv.is_acc() and venv.kept.read_text() == FOREIGN
    assert "is what it was before" in venv.do("--undo")
    assert venv.files() == ["acc", "torchrun"] and venv.torchrun.stat().st_ino == before


def a_torchrun_of_another_user_is_kept_as_a_copy(venv):
    if os.geteuid() != 0:
        return
    venv.put()
    # Who may write to a folder may rename another's file there, and Linux forbids links to it.
    for folder in (venv.bin, venv.bin.parent, venv.bin.parent.parent):
        folder.chmod(0o777)
    acc = venv.bin / "acc"
    shutil.copy(acc, venv.bin / "copy")
    os.replace(venv.bin / "copy", acc)
    done = venv.run("--yes", user=65534, group=65534, extra_groups=[])
    assert done.returncode == 0 and venv.is_acc() and venv.kept.read_text() == FOREIGN, done
    assert os.access(venv.kept, os.X_OK)


def a_copy_that_fails_leaves_nothing(venv):
    if os.geteuid() != 0:
        return
    venv.put(FOREIGN + 100_000 * "#")
    for folder in (venv.bin, venv.bin.parent, venv.bin.parent.parent):
        folder.chmod(0o777)
    # Python ignores SIGXFSZ, and so does the child: its write fails.
    done = venv.run("--yes", user=65534, group=65534, extra_groups=[], restore_signals=False,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)))
    assert done.returncode == 1 and f"{venv.torchrun}: cannot be replaced: " in done.stderr, done
    assert venv.files() == ["acc", "torchrun"] and venv.torchrun.stat().st_size > 100_000


def a_link_is_kept_as_a_link(venv):
    venv.torchrun.symlink_to("/nowhere/torchrun")
    venv.do("--yes")
    assert venv.is_acc() and os.readlink(venv.kept) == "/nowhere/torchrun"
    venv.do("--undo")
    assert os.readlink(venv.torchrun) == "/nowhere/torchrun"


def the_torchrun_of_another_pytorch_is_not_lost(venv):
    venv.put()
    venv.do("--yes")
    venv.put()  # PyTorch was installed again: the same script
    venv.do("--yes")
    assert venv.is_acc() and venv.kept.read_text() == FOREIGN
    venv.put("#!/bin/sh\necho other\n")
    for word, said in (("--yes", "would be lost"), ("--undo", "is not acc, and was left alone, beside torchrun.before-acc")):
        done = venv.run(word)
        assert done.returncode == 2 and said in done.stderr and "remove one of the two" in done.stderr, done
    assert venv.torchrun.read_text() == "#!/bin/sh\necho other\n" and venv.kept.read_text() == FOREIGN


def what_was_installed_again_takes_the_name_back(venv):
    """pip brings PyTorch's own, perhaps in words of a newer pip: what was kept is worth nothing then."""
    of_pip = "#!/an/environment/bin/python\nimport sys\nfrom torch.distributed.run import main\nsys.exit(main())\n"
    for newer in (of_pip, of_pip + "# of a newer pip\n"):
        venv.put(of_pip)
        venv.do("--yes")
        venv.put(newer)
        assert "is not acc: it was installed again, and the older torchrun.before-acc is removed" in venv.do("--undo")
        assert venv.files() == ["acc", "torchrun"] and venv.torchrun.read_text() == newer
        assert "is not acc: nothing to take back" in venv.do("--undo")
    venv.put(of_pip)
    venv.do("--yes")
    venv.put(newer)
    venv.do("--yes")
    assert venv.is_acc() and venv.kept.read_text() == newer


def a_torchrun_that_path_does_not_find_is_told(venv):
    assert f"note: no torchrun is on PATH, so call it by its path or put {venv.bin} at the front" in subprocess.run(
        [venv.bin / "acc", "install-torchrun", "--yes"], text=True, capture_output=True, env={"PATH": "/nowhere"}).stdout
    other = venv.bin.parent / "other"
    other.mkdir()
    (other / "torchrun").write_text(FOREIGN)
    (other / "torchrun").chmod(0o755)
    assert f"note: the shell finds {other}/torchrun, so" in subprocess.run(
        [venv.bin / "acc", "install-torchrun"], text=True, capture_output=True, env={"PATH": str(other)}).stdout


def a_terminal_is_asked(venv):
    for answer, code in ((b"n\n", 2), (b"\n", 2), (b"y\n", 0)):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(venv.bin / "acc", ["acc", "install-torchrun"])
        os.write(terminal, answer)
        said = b""
        try:
            while data := os.read(terminal, 4096):
                said += data
        except OSError:
            pass  # the end, on a terminal
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code, said
        assert b"Do it? [y/N] " in said, said
        assert venv.torchrun.exists() == (code == 0), said


def a_folder_of_that_name_is_told(venv):
    venv.torchrun.mkdir()
    for words in ([], ["--yes"]):
        done = venv.run(*words)
        assert done.returncode == 2 and not done.stdout, done
        assert done.stderr == f"acc: {venv.torchrun}: is a folder, and acc takes the names of programs (move it away)\n", done
    assert "is not acc: nothing to take back" in venv.do("--undo") and venv.files() == ["acc", "torchrun"]


TESTS = [nothing_is_done_without_yes, a_torchrun_is_put_beside_acc_and_removed, it_follows_the_rules_of_torchrun,
         a_foreign_torchrun_is_kept_and_put_back, a_torchrun_of_another_user_is_kept_as_a_copy, a_copy_that_fails_leaves_nothing,
         a_link_is_kept_as_a_link,
         the_torchrun_of_another_pytorch_is_not_lost, what_was_installed_again_takes_the_name_back,
         a_torchrun_that_path_does_not_find_is_told, a_terminal_is_asked, a_folder_of_that_name_is_told]


def main(acc):
    for test in TESTS:
        with tempfile.TemporaryDirectory(prefix="acc-torchrun-") as folder:
            test(Environment(acc, folder))
        print("ok:", test.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
