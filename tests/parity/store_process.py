# SPDX-License-Identifier: Apache-2.0
"""The store under test, as a process."""

import subprocess


class StoreProcess:
    """`with StoreProcess(program) as store:` it listens on 127.0.0.1:store.port, and is gone afterwards."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def reset(self):
        """Empties it."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "reset\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        self.process.stdout.close()
