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


def nothing_is_done_without_yes(place):
    done = place.run()
    assert done.returncode == 2, done
    assert done.stdout == f"{place.torchrun} will be a link to acc\n", done
    assert done.stderr == "acc: nothing was changed (--yes does it)\n", done
    place.put()
    done = place.run()
    assert done.returncode == 2 and "what it is now will be torchrun.before-acc\n" in done.stdout, done
    assert place.files() == ["acc", "torchrun"] and place.torchrun.read_text() == FOREIGN


def a_torchrun_is_put_beside_acc_and_removed(place):
    assert place.do("--yes") == f"{place.torchrun} is acc now; `acc install-torchrun --undo` takes that back\n"
    assert place.is_acc() and place.files() == ["acc", "torchrun"]
    assert "is acc already" in place.do("--yes") and "is acc already" in place.do()
    assert "is removed; there was none before" in place.do("--undo")
    assert place.files() == ["acc"]
    assert "nothing to take back" in place.do("--undo")


def it_follows_the_rules_of_torchrun(place):
    place.do("--yes")
    shown = subprocess.run([place.torchrun, "--nproc-per-node", "2", "--dry-run", "true"], text=True, capture_output=True, timeout=60)
    assert shown.returncode == 0, shown
    refused = subprocess.run([place.torchrun, "--num_processes", "2", "true"], text=True, capture_output=True, timeout=60)
    assert refused.returncode == 2, refused
    empty = subprocess.run([place.torchrun], text=True, capture_output=True, timeout=60)
    assert empty.returncode == 2 and "as in `torchrun train.py" in empty.stderr and "acc run" not in empty.stderr, empty


def a_foreign_torchrun_is_kept_and_put_back(place):
    place.put()
    before = place.torchrun.stat().st_ino
    assert "what it was is torchrun.before-acc" in place.do("--yes")
    assert place.is_acc() and place.kept.read_text() == FOREIGN
    assert "is what it was before" in place.do("--undo")
    assert place.files() == ["acc", "torchrun"] and place.torchrun.stat().st_ino == before


def a_torchrun_of_another_user_is_kept_as_a_copy(place):
    if os.geteuid() != 0:
        return
    place.put()
    # Who may write to a folder may rename another's file there, and Linux forbids links to it.
    for folder in (place.bin, place.bin.parent, place.bin.parent.parent):
        folder.chmod(0o777)
    acc = place.bin / "acc"
    shutil.copy(acc, place.bin / "copy")
    os.replace(place.bin / "copy", acc)
    done = place.run("--yes", user=65534, group=65534, extra_groups=[])
    assert done.returncode == 0 and place.is_acc() and place.kept.read_text() == FOREIGN, done
    assert os.access(place.kept, os.X_OK)


def a_copy_that_fails_leaves_nothing(place):
    if os.geteuid() != 0:
        return
    place.put(FOREIGN + 100_000 * "#")
    for folder in (place.bin, place.bin.parent, place.bin.parent.parent):
        folder.chmod(0o777)
    # Python ignores SIGXFSZ, and so does the child: its write fails.
    done = place.run("--yes", user=65534, group=65534, extra_groups=[], restore_signals=False,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)))
    assert done.returncode == 1 and f"{place.torchrun}: cannot be replaced: " in done.stderr, done
    assert place.files() == ["acc", "torchrun"] and place.torchrun.stat().st_size > 100_000


def a_link_is_kept_as_a_link(place):
    place.torchrun.symlink_to("/nowhere/torchrun")
    place.do("--yes")
    assert place.is_acc() and os.readlink(place.kept) == "/nowhere/torchrun"
    place.do("--undo")
    assert os.readlink(place.torchrun) == "/nowhere/torchrun"


def the_torchrun_of_another_pytorch_is_not_lost(place):
    place.put()
    place.do("--yes")
    place.put()  # PyTorch was installed again: the same script
    place.do("--yes")
    assert place.is_acc() and place.kept.read_text() == FOREIGN
    place.put("#!/bin/sh\necho other\n")
    for word, said in (("--yes", "would be lost"), ("--undo", "is not acc, and was left alone, beside torchrun.before-acc")):
        done = place.run(word)
        assert done.returncode == 2 and said in done.stderr and "remove one of the two" in done.stderr, done
    assert place.torchrun.read_text() == "#!/bin/sh\necho other\n" and place.kept.read_text() == FOREIGN


def what_was_installed_again_takes_the_name_back(place):
    """pip brings PyTorch's own, perhaps in words of a newer pip: what was kept is worth nothing then."""
    of_pip = "#!/an/environment/bin/python\nimport sys\nfrom torch.distributed.run import main\nsys.exit(main())\n"
    for newer in (of_pip, of_pip + "# of a newer pip\n"):
        place.put(of_pip)
        place.do("--yes")
        place.put(newer)
        assert "is not acc: it was installed again, and the older torchrun.before-acc is removed" in place.do("--undo")
        assert place.files() == ["acc", "torchrun"] and place.torchrun.read_text() == newer
        assert "is not acc: nothing to take back" in place.do("--undo")
    place.put(of_pip)
    place.do("--yes")
    place.put(newer)
    place.do("--yes")
    assert place.is_acc() and place.kept.read_text() == newer


def a_torchrun_that_path_does_not_find_is_told(place):
    assert f"note: no torchrun is on PATH, so call it by its path or put {place.bin} at the front" in subprocess.run(
        [place.bin / "acc", "install-torchrun", "--yes"], text=True, capture_output=True, env={"PATH": "/nowhere"}).stdout
    other = place.bin.parent / "other"
    other.mkdir()
    (other / "torchrun").write_text(FOREIGN)
    (other / "torchrun").chmod(0o755)
    assert f"note: the shell finds {other}/torchrun, so" in subprocess.run(
        [place.bin / "acc", "install-torchrun"], text=True, capture_output=True, env={"PATH": str(other)}).stdout


def a_terminal_is_asked(place):
    for answer, code in ((b"n\n", 2), (b"\n", 2), (b"y\n", 0)):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(place.bin / "acc", ["acc", "install-torchrun"])
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
        assert place.torchrun.exists() == (code == 0), said


def a_folder_of_that_name_is_told(place):
    place.torchrun.mkdir()
    for words in ([], ["--yes"]):
        done = place.run(*words)
        assert done.returncode == 2 and not done.stdout, done
        assert done.stderr == f"acc: {place.torchrun}: is a folder, and acc takes the names of programs (move it away)\n", done
    assert "is not acc: nothing to take back" in place.do("--undo") and place.files() == ["acc", "torchrun"]


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
