# SPDX-License-Identifier: Apache-2.0
"""A running kernel "C++ (acc)", and what its cells print."""

import contextlib
import dataclasses

import jupyter_client
import psutil

LIMIT = 120  # seconds after which a cell counts as hung


@dataclasses.dataclass
class Shown:
    """What one cell gave."""

    stdout: str = ""
    stderr: str = ""
    error: str = ""  # as in `CppException: acc::Error: data: no such folder`


def need(condition, what):
    if not condition:
        raise AssertionError(what)


class Kernel:
    def __init__(self, manager):
        self.manager = manager
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT)

    def run(self, cell, on_output=lambda shown: None):
        """Runs a cell to its end; `on_output` is called after each piece of its output with all of it."""
        shown = Shown()

        def take(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                setattr(shown, content["name"], getattr(shown, content["name"]) + content["text"])
                on_output(shown)
            if message["msg_type"] == "error":
                shown.error += f"{content['ename']}: {content['evalue']}"

        self.client.execute_interactive(cell, timeout=LIMIT, output_hook=take)
        return shown

    def good(self, cell, expected=None):
        """The same for a cell that must not fail, and that prints this."""
        shown = self.run(cell)
        need(not shown.error, f"{cell}\n{shown.error}\n{shown.stderr}")
        need(expected is None or shown.stdout == expected, f"{cell}\nprinted {shown.stdout!r}, not {expected!r}")
        return shown

    def bad(self, cell, *expected):
        """The same for one that must fail, with each of these in its error."""
        shown = self.run(cell)
        for part in expected:
            need(part in shown.error, f"{cell}\nended with {shown.error!r}, without {part!r}\n{shown.stdout}{shown.stderr}")
        return shown

    def interrupt(self):
        self.manager.interrupt_kernel()

    def children(self):
        return [process for process in psutil.Process(self.manager.provisioner.pid).children(recursive=True)
                if process.status() != psutil.STATUS_ZOMBIE]


@contextlib.contextmanager
def kernel(folder="."):
    manager = jupyter_client.KernelManager(kernel_name="acc-cpp")
    manager.start_kernel(cwd=str(folder))
    one = None
    try:
        one = Kernel(manager)
        yield one
    finally:
        if one:
            one.client.stop_channels()
        manager.shutdown_kernel(now=True)
