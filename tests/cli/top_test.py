#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""top_test.py ACC: `acc top` in a terminal shows a running job as it goes on, does what its keys say, and leaves the terminal as it
was. Without a terminal it is one line."""

import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

ACC = pathlib.Path(sys.argv[1]).resolve()
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "scripts/package"

# Other jobs of this user may be running, too: those of other tests.
NOTHING = "no (job of yours is running|rank matches the filter)"

# Rank 1 does a step for each line that it reads; rank 0 is in a collective all the time.
WORKER = """
import os, sys
import acc, acc.progress
print("rank", os.environ["RANK"], flush=True)
if os.environ["RANK"] == "0":
    acc.progress.begin_collective(acc.progress.collective_name("all_reduce"))
    open(sys.argv[1] + ".end").read()
else:
    for line in open(sys.argv[1]):
        acc.step()
"""


class Top:
    """A terminal in which acc top runs. What is on its screen is the last thing that was drawn in each line."""

    def __init__(self, *arguments, columns=100, rows=12, **environment):
        self.keyboard, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(screen)
        self.screen = screen
        self.text = ""
        self.process = subprocess.Popen([ACC, "top", "--interval", "0.1", *arguments], stdin=screen, stdout=screen, stderr=screen,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                        env={**os.environ, "TERM": "xterm", **environment})

    def press(self, keys):
        os.write(self.keyboard, keys.encode())

    def shown(self, pattern):
        """Waits until a frame, or what follows the last one, has the pattern."""
        give_up = time.monotonic() + 60
        while True:
            frame = self.text.rsplit("\x1b[?2026h", 1)[-1]
            plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame)
            match = re.search(pattern, plain)
            if match:
                return match
            assert select.select([self.keyboard], [], [], 20)[0] and time.monotonic() < give_up, f"{pattern} is not shown:\n{plain}"
            self.text += os.read(self.keyboard, 65536).decode()

    def ends(self):
        """Its exit code; the terminal is as it was."""
        reader = subprocess.Popen(["cat"], stdin=self.keyboard, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # whoever writes is not held up
        code = self.process.wait(20)
        assert termios.tcgetattr(self.screen) == self.before
        os.close(self.screen)
        os.close(self.keyboard)
        reader.wait()
        return code


def start_job(folder):
    for name in "pipe", "pipe.end":
        os.mkfifo(folder / name)
    (folder / "worker.py").write_text(WORKER)
    job = subprocess.Popen([ACC, "run", "--standalone", "--nproc-per-node", "2", "--python", sys.executable, folder / "worker.py",
                            folder / "pipe"], env={**os.environ, "PYTHONPATH": str(PACKAGE)}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, text=True)
    assert {job.stdout.readline() for _ in range(2)} == {"rank 0\n", "rank 1\n"}
    return job


def a_job_is_shown_as_it_goes_on(folder):
    top = Top(folder.name, rows=30)  # the folder is in the job's command
    top.shown(NOTHING)
    job = start_job(folder)
    steps = open(folder / "pipe", "w")
    top.shown(r"0 sleeping +all_reduce")
    steps.write("\n" * 7)
    steps.flush()
    top.shown(r"1 sleeping +awaited: other.* 7 ")
    top.press("pjj")
    top.shown(r"rank 1, 10 min: not known yet")
    steps.write("\n")
    steps.flush()
    top.shown(r"rank 1, 10 min: at most")
    top.press("pkk")
    top.press("x")
    top.shown("stop worker-.*any other key: no")
    top.press("n")
    top.shown("Enter logs")
    top.press("jj")
    top.press("l")
    top.shown(r"rank 1")
    top.press("\x03")  # for acc logs
    top.shown("press any key to go back")
    top.press(" ")
    top.shown("Enter logs")
    top.press("x")
    top.shown("stop worker-")
    top.press("y")
    top.shown(r"has ended with exit code")
    top.press(" ")
    top.shown(NOTHING)
    top.press("q")
    assert top.ends() == 0
    steps.close()
    job.wait()


def the_terminal_is_restored_however_it_ends(folder):
    for end in (lambda top: top.press("\x03"), lambda top: top.process.terminate()):
        top = Top(folder.name)
        top.shown(NOTHING)
        end(top)
        assert top.ends() in (0, -signal.SIGTERM)


def it_is_drawn_for_the_size_of_the_terminal(folder):
    top = Top(folder.name, columns=60, NO_COLOR="1")
    top.shown(NOTHING)
    fcntl.ioctl(top.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 200, 0, 0))
    top.process.send_signal(signal.SIGWINCH)
    top.shown("MEMORY +LOSS +UP +THREADS +PID OUTPUT")
    assert "\x1b[3" not in top.text  # no color
    top.press("q")
    assert top.ends() == 0


def without_a_terminal_it_is_one_line(_):
    done = subprocess.run([ACC, "top"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr == "acc: acc top: needs a terminal (acc ps shows the same once, acc ps --json for programs)\n", done.stderr
    top = Top(TERM="dumb")
    top.shown("acc: TERM=dumb: needs a terminal that can move its cursor")
    assert top.ends() == 2


def main():
    for case in (a_job_is_shown_as_it_goes_on, the_terminal_is_restored_however_it_ends, it_is_drawn_for_the_size_of_the_terminal,
                 without_a_terminal_it_is_one_line):
        with tempfile.TemporaryDirectory(prefix="acc-top-") as name, contextlib.ExitStack():
            folder = pathlib.Path(name)
            (folder / "runtime").mkdir(mode=0o700)
            os.environ["XDG_RUNTIME_DIR"] = str(folder / "runtime")
            case(folder)


if __name__ == "__main__":
    main()
