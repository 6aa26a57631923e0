# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile


class Nodes:
    """The processes of acc that are the nodes of one job on this machine, and a folder for them. Use as a context manager, which ends
    what is left of them."""

    def __init__(self, prefix):
        self.folder = tempfile.TemporaryDirectory(prefix=prefix)
        self.path = pathlib.Path(self.folder.name)
        self.nodes = []  # subprocess.Popen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.kill()
            node.communicate()
        self.folder.cleanup()
