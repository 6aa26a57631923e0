# SPDX-License-Identifier: Apache-2.0
"""What scripts/soak counts: each thing that a process keeps is found, and one that keeps nothing is not blamed."""

import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "soak"

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("soak", str(SCRIPT))
soak = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
loader.exec_module(soak)

# Does what it is told in lines, and says when each is done.
PROCESS = """
import os, sys, threading
kept = []
for line in sys.stdin:
    exec(line)
    print(flush=True)
"""
KEPT = {
    "descriptors": "kept += [os.open(os.devnull, os.O_RDONLY) for _ in range({room} + 1)]",
    "KiB": "kept.append(bytes(range(256)) * 4 * ({room} + 256))",
    "threads": "kept.append(threading.Thread(target=threading.Event().wait, daemon=True)); kept[-1].start()",
    "zombies": "kept.append(os.spawnlp(os.P_NOWAIT, 'true', 'true')); os.waitid(os.P_PID, kept[-1], os.WEXITED | os.WNOWAIT)",
}


class Counts(unittest.TestCase):
    def setUp(self):
        self.process = subprocess.Popen([sys.executable, "-c", PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.process.communicate)
        self.do("pass")

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def counts(self):
        pid = self.process.pid
        return {soak.Thing(what, "agent on node 1", pid): count for what, count in soak.counts_of(pid).items()}

    def test_a_process_that_keeps_nothing_has_not_grown(self):
        before = self.counts()
        self.do("for _ in range(1000): os.close(os.open(os.devnull, os.O_RDONLY))")
        self.assertEqual(soak.growth(before, self.counts()), [])

    def test_each_thing_that_is_kept_is_found(self):
        for what, line in KEPT.items():
            with self.subTest(what):
                before = self.counts()
                self.do(line.format(room=soak.ROOM[what]))
                grown = [line.partition(" (pid")[0] for line in soak.growth(before, self.counts())]
                self.assertIn(f"{what} of agent on node 1", grown)

    def test_a_process_that_is_new_is_not_compared_with_another(self):
        before = {soak.Thing("descriptors", "agent on node 1", 1): 3}
        self.assertEqual(soak.growth(before, {soak.Thing("descriptors", "agent on node 1", 2): 300}), [])

    def test_a_process_that_replaces_another_is_as_old_as_it_is(self):
        ages = soak.older(soak.older(soak.older({}, {0, 1}), {0, 1}), {0, 2})
        self.assertEqual(ages, {0: 3, 2: 1})

    def test_a_process_that_another_has_replaced_has_ended(self):
        agent, file = soak.Thing("descriptors", "agent on node 1", 1), soak.Thing("files", "node 1")
        self.assertEqual(soak.ended({agent: 3, file: 1}, {agent: 3}), [])
        self.assertEqual(soak.ended({agent: 3}, {soak.Thing("descriptors", "agent on node 1", 2): 3}),
                         ["agent on node 1 (pid 1) has ended"])

    def test_files_are_counted_below_folders_that_may_be_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            inner = pathlib.Path(folder, "a", "b")
            inner.mkdir(parents=True)
            for name in "xyz":
                (inner / name).touch()
            os.symlink("x", inner / "link")
            self.assertEqual(soak.files_below(folder, os.path.join(folder, "gone")), 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
