# SPDX-License-Identifier: Apache-2.0
"""Presses Tab in a shell, bash, zsh, fish or tcsh, in a pseudo-terminal.

completion_shells.py ACC SHELL

A program that shows its arguments stands in for acc, so that what was completed is what it was given. Exits 77, which
CTest shows as skipped, when the shell is not installed.
"""

import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROMPT = "[type]"
LIMIT = 60  # seconds after which a shell counts as hung
STAND_IN = "#!/bin/sh\nprintf '%s' 'given:'; printf ' <%s>' \"$@\"; printf '%s\\n' ' end'\n"

# The typed text, and the resulting arguments of acc.
CASES = [
    ("acc conf\t", "<config>"),
    ("acc launch --num_proc\t2", "<launch> <--num_processes> <2>"),
    ("acc launch --mixed_precision b\t", "<launch> <--mixed_precision> <bf16>"),
    ("acc run --stand\t", "<run> <--standalone>"),
    ("acc completion z\t", "<completion> <zsh>"),
    ("acc config upd\t", "<config> <update>"),
    # Beside folders of the same names.
    ("acc log\t", "<logs>"),
    ("acc config def\t", "<config> <default>"),
    ("acc launch --mixed_precision=b\t", "<launch> <--mixed_precision=bf16>"),
    ("acc launch --config_file=c.y\t", "<launch> <--config_file=c.yaml>"),
    ("acc launch trai\t", "<launch> <train.py>"),
    ("acc launch --config_file c.y\t", "<launch> <--config_file> <c.yaml>"),
    ("acc launch my\\ f\t", "<launch> <my file.py>"),
    ("acc launch 'my f\t", "<launch> <my file.py>"),
    ("acc launch $HOME/trai\t", "<launch> <HOME/train.py>"),
    ("acc launch fold\tins\t", "<launch> <folder/inside.py>"),
]


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, command, environment, folder):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(command[0], command, environment)
        self.shown = ""

    def type(self, keys):
        os.write(self.descriptor, keys.encode())

    def see(self, text):
        """Waits for the text, after that of the last wait."""
        deadline = time.monotonic() + LIMIT
        while text not in self.shown:
            readable, _, _ = select.select([self.descriptor], [], [], max(0, deadline - time.monotonic()))
            if not readable:
                raise TimeoutError(f"no {text!r} in {self.shown!r}")
            self.shown += os.read(self.descriptor, 4096).decode(errors="replace")
        before, self.shown = self.shown.split(text, 1)
        return before

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.descriptor)


def prepare(shell, acc, folder):
    """The command of the shell, with the script installed where its first lines say."""
    script = subprocess.run([acc, "completion", shell], capture_output=True, text=True, check=True).stdout
    if shell == "bash":
        (folder / "bashrc").write_text(f"PS1='{PROMPT}'\n{script}")
        return ["--noprofile", "--rcfile", str(folder / "bashrc"), "-i"]
    if shell == "zsh":
        (folder / "functions").mkdir()
        (folder / "functions" / "_acc").write_text(script)
        (folder / ".zshrc").write_text(
            f"PS1='{PROMPT}'\nfpath=({folder}/functions $fpath)\nautoload -Uz compinit\ncompinit -u -D\n"
        )
        return ["-i"]
    if shell == "tcsh":
        (folder / ".acc.tcsh").write_text(script)
        # No line is edited in a dumb terminal.
        (folder / ".tcshrc").write_text(f"set edit\nset prompt='{PROMPT}'\nsource ~/.acc.tcsh\n")
        return ["-i"]
    completions = folder / "fish" / "completions"
    completions.mkdir(parents=True)
    # Where this is missing, fish reads all man pages in the background.
    (folder / "fish" / "generated_completions").mkdir()
    (completions / "acc.fish").write_text(script)
    (folder / "fish" / "config.fish").write_text(f"function fish_prompt; echo -n '{PROMPT}'; end\n")
    return ["-i"]


def try_shell(shell, acc):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "bin").mkdir()
        (folder / "bin" / "acc").write_text(STAND_IN)
        (folder / "bin" / "acc").chmod(0o755)
        for inner in ("logs", "default", "folder"):
            (folder / inner).mkdir()
        for file in ("train.py", "c.yaml", "my file.py", "folder/inside.py"):
            (folder / file).touch()
        environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": name, "ZDOTDIR": name, "XDG_CONFIG_HOME": name,
                       "XDG_DATA_HOME": name, "TERM": "dumb", "LANG": "C.UTF-8"}  # fmt: skip
        terminal = Terminal([shutil.which(shell), *prepare(shell, acc, folder)], environment, folder)
        try:
            for keys, given in CASES:
                # tcsh does not complete in a line that was typed before it asked for one.
                terminal.see(PROMPT)
                terminal.type(keys + "\r")
                terminal.see("given:")
                got = terminal.see(" end").strip().replace(name, "HOME")
                assert got == given, f"{shell}: {keys!r} gave {got!r} instead of {given!r}"
        finally:
            terminal.close()
    print(f"{shell}: ok")


def main():
    acc, shell = sys.argv[1:]
    if not shutil.which(shell):
        print(f"skipped: no {shell}")
        sys.exit(77)
    try_shell(shell, os.path.abspath(acc))


if __name__ == "__main__":
    main()
