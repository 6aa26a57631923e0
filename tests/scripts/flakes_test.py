# SPDX-License-Identifier: Apache-2.0
"""What scripts/flakes promises, with a folder of tests of a few shell lines, and what its library of delays does."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import types
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "flakes"
CTEST, DELAYS = map(pathlib.Path, sys.argv[1:3])

loader = importlib.machinery.SourceFileLoader("flakes", str(SCRIPT))
sys.dont_write_bytecode = True
flakes = importlib.util.module_from_spec(importlib.util.spec_from_loader("flakes", loader))
loader.exec_module(flakes)

# Fails every third time, and says a lot.
THIRD = ("n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) >count; seq 100000; "
         "if [ $((n % 3)) = 2 ]; then echo the third; exit 1; fi")
# Tells its process and that of a child in a session of its own, and waits until it is told to go on.
GATE = "setsid sleep 1000 & echo $$ $! >told; read line <go"


class Flakes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name, "build")
        self.build.mkdir()
        self.environment = os.environ | {"XDG_CACHE_HOME": folder.name, "PATH": f"{CTEST.parent}:{os.environ['PATH']}"}
        self.table = pathlib.Path(folder.name, "acc", "flakes", str(self.build).strip("/").replace("/", "-"))

    def write(self, **tests):
        lines = []
        for name, script in tests.items():
            (self.build / name).write_text(script)
            lines += [f'add_test({name} "/bin/sh" "{self.build / name}")',
                      f'set_tests_properties({name} PROPERTIES WORKING_DIRECTORY "{self.build}" LABELS "of_{name}" SKIP_RETURN_CODE 77)']
        (self.build / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")

    def start(self, *words):
        return subprocess.Popen([sys.executable, SCRIPT, "--build", self.build, *words], env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run_flakes(self, *words):
        process = self.start(*words)
        said, _ = process.communicate()
        return process.returncode, said

    def rows(self):
        return [json.loads(line) for line in (self.table / "runs.jsonl").read_text().splitlines()]

    def results(self, name):
        return [row["result"] for row in self.rows() if row["test"] == name]

    def test_failures_are_counted_and_their_whole_output_is_kept(self):
        self.write(third=THIRD, good="exit 0", skipped="exit 77")
        code, said = self.run_flakes("--rounds", "6", "--load", "none")
        self.assertEqual(code, 1)
        self.assertEqual(self.results("third"), ["passed", "passed", "failed"] * 2)
        self.assertEqual(self.results("good"), ["passed"] * 6)
        self.assertEqual(self.results("skipped"), ["skipped"] * 6)
        self.assertIn("3 tests, 18 runs, 2 failures", said)
        kept = sorted(self.table.glob("third.*.txt"))
        self.assertEqual(len(kept), 2)
        self.assertIn("\n99999\n100000\nthe third\n", kept[0].read_text())

    def test_rounds_that_are_there_count_and_a_new_table_begins_at_none(self):
        self.write(good="exit 0", other="exit 0")
        self.assertEqual(self.run_flakes("-R", "good", "--rounds", "2")[0], 0)
        self.assertEqual(self.run_flakes("--rounds", "3")[0], 0)
        self.assertEqual((len(self.results("good")), len(self.results("other"))), (3, 3))
        self.assertEqual([row["test"] for row in self.rows()][2:4], ["other", "other"])  # the fewest rounds first
        self.assertEqual(self.run_flakes("-L", "of_other", "--rounds", "1", "--fresh")[0], 0)
        self.assertEqual([row["test"] for row in self.rows()], ["other"])

    def test_a_test_runs_with_those_that_set_up_its_fixtures(self):
        self.write(other="exit 0", base="touch base.made", setup="test -e base.made && touch setup.made",
                   user="test -e setup.made")
        with (self.build / "CTestTestfile.cmake").open("a") as file:
            file.write("set_tests_properties(base PROPERTIES FIXTURES_SETUP base)\n"
                       "set_tests_properties(setup PROPERTIES FIXTURES_SETUP setup FIXTURES_REQUIRED base)\n"
                       "set_tests_properties(user PROPERTIES FIXTURES_REQUIRED setup)\n")
        self.assertEqual(self.run_flakes("-R", "^setup$", "--rounds", "1")[0], 0)
        self.assertEqual(self.run_flakes("-R", "user", "--rounds", "1")[0], 0)  # the others have had their round
        self.assertEqual([row["test"] for row in self.rows()].count("user"), 1)

    def test_an_interrupted_run_ends_what_it_started_and_goes_on(self):
        os.mkfifo(self.build / "told")
        for way in (signal.SIGINT, signal.SIGTERM):
            self.write(good="exit 0")
            self.run_flakes("--rounds", "1", "--fresh")
            self.write(good="exit 0", gate=GATE)
            os.mkfifo(self.build / "go")
            process = self.start("--rounds", "2", "--load", "busy+disk")
            watched = [os.pidfd_open(int(pid)) for pid in (self.build / "told").read_text().split()]
            process.send_signal(way)
            said, _ = process.communicate()
            self.assertEqual(process.returncode, 128 + way, said)
            for pidfd in watched:
                with self.assertRaises(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, 0)
                os.close(pidfd)
            (self.build / "go").unlink()
            self.write(good="exit 0", gate="exit 0")
            self.assertEqual(self.run_flakes("--rounds", "2")[0], 0)
            self.assertEqual((self.results("good")[-2:], self.results("gate")), (["passed"] * 2, ["passed"] * 2))

    def test_a_folder_that_is_built_meanwhile_is_said_in_a_line(self):
        self.write(built="""sed -i '1i add_test(before "/bin/true")' CTestTestfile.cmake""")
        code, said = self.run_flakes("--rounds", "2")
        self.assertEqual(code, 1)
        self.assertEqual(said.splitlines()[-1],
                         "flakes: the tests of the build folder changed meanwhile: build first, then run this again")
        self.assertEqual(self.results("built"), ["passed"])

    def test_what_is_no_load_and_what_cannot_be_made_here_is_said_in_a_line(self):
        self.write(good="exit 0")
        code, said = self.run_flakes("--load", "storm")
        self.assertEqual((code, said.splitlines()[0][:28]), (1, "flakes: storm is not a load;"))
        code, said = self.run_flakes("--load", "none,clock")
        self.assertIn("load clock: not here: build the target acc_shifted_clock\n", said)
        self.assertEqual((code, [row["load"] for row in self.rows()]), (0, [""]))

    def test_a_changed_file_chooses_its_own_tests_and_those_of_what_its_room_is_part_of(self):
        def test(command, *labels, processors=1):
            return types.SimpleNamespace(command=command, labels=labels, processors=processors)
        unit = test(["/b/bin/acc-test-store", "store: a key"], "unit")
        process = test(["/b/bin/acc-test-process", "launch: it"], "process")
        nodes = test(["/usr/bin/python3", "/t/cluster/faults_test.py", "/b/bin/acc", "cable_cut"], "cluster")
        ranks = test(["/b/bin/acc", "run", "/b/bin/acc-test-ranks"], "runtime", processors=2)
        page = test(["/usr/bin/python3", "/t/cli/guide_test.py", "/b/bin/acc", "/n", "running.md"], "cli")
        every = [unit, process, nodes, ranks, page]

        def touched_by(file):
            return [one for one in every if flakes.is_touched(one, file)]
        self.assertEqual(touched_by("lib/acc/store/server.cpp"), every)
        self.assertEqual(touched_by("tests/unit/store/server_test.cpp"), [unit])
        self.assertEqual(touched_by("lib/acc/rendezvous/host.cpp"), [nodes])
        self.assertEqual(touched_by("tests/process/launch_test.cpp"), [process])
        self.assertEqual(touched_by("tests/cluster/faults_test.py"), [nodes])
        self.assertEqual(touched_by("tests/runtime/ranks_test.cpp"), [ranks])
        self.assertEqual(touched_by("apps/docs/running.md"), [page])
        self.assertEqual(touched_by("apps/docs/limits.md"), [])


@unittest.skipIf("LD_PRELOAD" in os.environ, "something is preloaded already")
class Delays(unittest.TestCase):
    """Seen by strace: the waits of a program, in their order."""

    def waits(self, seed, program="cat", **variables):
        environment = {"LD_PRELOAD": str(DELAYS), "ACC_DELAYS_SEED": seed, "ACC_DELAYS_RATE": "500", "ACC_DELAYS_MAX_US": "100",
                       **variables}
        with tempfile.NamedTemporaryFile("r") as trace:
            try:
                subprocess.run(["strace", "-o", trace.name, "-e", "trace=clock_nanosleep,read,write",
                                *[word for name, value in environment.items() for word in ("-E", f"{name}={value}")],
                                program, "/etc/passwd"], stdout=subprocess.DEVNULL, check=True)
            except FileNotFoundError:
                self.skipTest("strace is not installed")
            return [line for line in trace.read().splitlines() if line.startswith("clock_nanosleep")]

    def test_the_same_seed_waits_at_the_same_calls_for_the_same_time(self):
        once = self.waits("7")
        self.assertGreater(len(once), 0)
        self.assertEqual(self.waits("7"), once)
        self.assertNotEqual(self.waits("8"), once)

    def test_programs_are_chosen_by_name(self):
        self.assertEqual(self.waits("7", ACC_DELAYS_PROGRAMS="acc"), [])
        self.assertEqual(self.waits("7", ACC_DELAYS_PROGRAMS="!acc,cat"), [])
        self.assertEqual(self.waits("7", ACC_DELAYS_PROGRAMS="acc,cat"), self.waits("7"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
