# SPDX-License-Identifier: Apache-2.0
"""Records commands in a pseudo-terminal and draws its last screen. Called by scripts/pictures.

    pictures.py ACC FOLDER
"""

import contextlib
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

COLUMNS = 90
PACKAGE = pathlib.Path(__file__).parent / "package"
LINE_HEIGHT = 24.4  # of rich's pictures, in pixels
QUIET = 1.0  # seconds without output after which a screen is complete

TRAIN = """\
import os, time
if os.environ["RANK"] == "1":
    raise FileNotFoundError("/data/shard-1.tar")
time.sleep(60)
"""
# Rank 2 loads slowly, and the others wait for it.
LOAD = """\
import os, time
import acc
rank = int(os.environ["RANK"])
slow = 0.045 if rank == 2 else 0
for step in range(1000):
    with acc.section("data"):
        time.sleep(0.02 + slow)
    with acc.section("forward"):
        time.sleep(0.03)
    with acc.section("backward"):
        time.sleep(0.06)
    with acc.section("communication"):
        time.sleep(0.055 - slow)
    acc.step(loss=2.3 / (1 + step / 100) + rank / 50)
"""
# As rich's own, without fonts from elsewhere.
SVG = """\
<svg viewBox="0 0 {width} @height@" xmlns="http://www.w3.org/2000/svg">
  <style>
  .{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
  {styles}
  </style>
  <defs>{lines}</defs>
  <rect fill="#14181f" x="0" y="0" width="{width}" height="@height@" rx="8"/>
  <g transform="translate(12, 10)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
  </g>
</svg>
"""


class Terminal:
    """A shell command with a terminal of its own."""

    def __init__(self, command, folder, environment, rows):
        self.folder = bytes(folder)
        self.screen = pyte.Screen(COLUMNS, rows)
        self.stream = pyte.ByteStream(self.screen)
        pid, self.descriptor = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "-c", command], environment)
        self.pid = pid
        termios.tcsetwinsize(self.descriptor, (rows, COLUMNS))

    def settle(self, limit=30.0):
        """Reads until nothing more comes."""
        end = time.monotonic() + limit
        while time.monotonic() < end and select.select([self.descriptor], [], [], QUIET)[0]:
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:  # the other end is closed
                return
            if not data:
                return
            self.stream.feed(data.replace(self.folder, b"/home/me"))  # for its random letters

    def watch(self, seconds):
        """Reads for so long, of what is drawn again and again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.settle(end - time.monotonic())

    def send(self, keys):
        os.write(self.descriptor, keys)
        self.settle()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        os.close(self.descriptor)
        os.waitpid(self.pid, 0)


def style_of(cell):
    def color(name):
        if name == "default":
            return None
        return f"#{name}" if re.fullmatch("[0-9a-f]{6}", name) else name.replace("brown", "yellow").replace("bright", "bright_")

    return Style(color=color(cell.fg), bgcolor=color(cell.bg), bold=cell.bold, reverse=cell.reverse, underline=cell.underscore)


def draw(screen, file, prompt):
    """The lines of the screen down to the last that has text, below the command as one types it."""
    lines = [Text.assemble(("$ ", "bold green"), (prompt, "bold"))]
    filled = [number for number, line in enumerate(screen.display) if line.strip()]
    for number in range(filled[-1] + 1 if filled else 0):
        line = Text()
        for column in range(COLUMNS):
            cell = screen.buffer[number][column]
            line.append(cell.data, style_of(cell))
        line.rstrip()
        lines.append(line)
    console = Console(width=COLUMNS, record=True, file=open(os.devnull, "w"), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line, soft_wrap=True)
    picture = console.export_svg(code_format=SVG, unique_id=file.stem)
    file.write_text(picture.replace("@height@", f"{LINE_HEIGHT * len(lines) + 20:g}"))
    print(file)


def main():
    acc, pictures = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    pictures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="acc-pictures-") as name:
        folder = pathlib.Path(name)
        (folder / "train.py").write_text(TRAIN)
        (folder / "load.py").write_text(LOAD)
        (folder / "run").mkdir(mode=0o700)
        environment = {"HOME": name, "XDG_RUNTIME_DIR": f"{name}/run", "PATH": f"{acc.parent}:/usr/local/bin:/usr/bin:/bin",
                       "TERM": "xterm-256color", "LANG": "C.UTF-8", "COLUMNS": str(COLUMNS)}
        # A name for the host, where this user may give one.
        host = "unshare --uts bash -c 'hostname node0 && exec \"$@\"' --" if os.geteuid() == 0 and shutil.which("unshare") else ""

        terminal = Terminal("acc config", folder, environment, 30)
        terminal.settle()
        for keys in (b"\r", b"\x1b[B"):  # Enter, the arrow down
            terminal.send(keys)
        draw(terminal.screen, pictures / "config.svg", "acc config")
        terminal.close()

        terminal = Terminal("acc config --yes use_cpu=true num_processes=4", folder, environment, 30)
        terminal.settle()
        terminal.close()
        terminal = Terminal(f"{host} acc launch train.py", folder, environment, 30)
        terminal.settle()
        draw(terminal.screen, pictures / "failure.svg", "acc launch train.py")
        terminal.close()

        job = Terminal(f"{host} acc launch load.py", folder, {**environment, "PYTHONPATH": str(PACKAGE)}, 10)
        job.settle()
        terminal = Terminal(f"{host} acc top", folder, environment, 10)
        terminal.watch(15)  # until it is known who is slow
        draw(terminal.screen, pictures / "top.svg", "acc top")
        terminal.close()
        job.close()


if __name__ == "__main__":
    main()
