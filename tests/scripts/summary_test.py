# SPDX-License-Identifier: Apache-2.0
"""What scripts/summary.py says of results, which ctest writes for tests of a shell. Usage: summary_test.py CTEST."""

import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "summary.py"
spec = importlib.util.spec_from_file_location("summary", SCRIPT)
summary = importlib.util.module_from_spec(spec)
spec.loader.exec_module(summary)
CTEST = sys.argv.pop(1)


def summary_of(tests, *flags):
    """The exit code and the lines for tests, each with its name, its shell command, and properties of CTest."""
    with tempfile.TemporaryDirectory(prefix="acc-summary-") as folder:
        lines = []
        for name, command, *properties in tests:
            lines.append(f"add_test([=[{name}]=] sh -c [=[{command}]=])")
            lines.append(f"set_tests_properties([=[{name}]=] PROPERTIES SKIP_RETURN_CODE 77 {' '.join(properties)})")
        pathlib.Path(folder, "CTestTestfile.cmake").write_text("\n".join(lines))
        file = pathlib.Path(folder, "results.xml")
        subprocess.run([CTEST, "--test-dir", folder, "--output-junit", file, "--test-output-size-passed", "100000"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return summarized(file, *flags)


def summarized(file, *flags):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = summary.main(str(file), *flags)
    return code, out.getvalue().splitlines()


OK = ("ok", "true")
NO_SLURM = [(f"job {number}", "echo 'skipped: no Slurm'; exit 77") for number in range(2)]
NO_GPU = ("gpu", "echo 'skipped: too few CUDA devices'; echo 'skipped: too few CUDA devices'; exit 77")


class SummaryTest(unittest.TestCase):
    def test_nothing_but_numbers_when_nothing_is_missing(self):
        self.assertEqual(summary_of([OK]), (0, ["1 passed, 0 failed, 0 skipped"]))

    def test_reasons_are_counted_and_the_command_is_named(self):
        self.assertEqual(summary_of([OK, *NO_SLURM, NO_GPU]), (0, [
            "1 passed, 0 failed, 3 skipped (2: no Slurm; 1: too few CUDA devices); scripts/test --all brings what is missing"]))

    def test_a_part_that_is_left_out_is_counted_however_much_the_test_prints(self):
        part = ("much", "seq 5000; echo 'skipped: no pid namespace can be made'")
        self.assertEqual(summary_of([part]), (0, [
            "1 passed, 0 failed, 0 skipped (1: no pid namespace can be made); scripts/test --all brings what is missing"]))
        self.assertEqual(summary_of([part], "--all")[0], 1)

    def test_with_all_only_a_gpu_may_be_missing(self):
        self.assertEqual(summary_of([OK, NO_GPU], "--all"), (0, ["1 passed, 0 failed, 1 skipped (1: too few CUDA devices)"]))
        code, lines = summary_of([OK, *NO_SLURM, NO_GPU], "--all")
        self.assertEqual(code, 1)
        self.assertEqual(lines[1], "error: with --all only hardware may be missing, not: no Slurm")

    def test_a_silent_skip_is_named(self):
        self.assertEqual(summary_of([("silent", "exit 77")], "--all"), (1, [
            "0 passed, 0 failed, 1 skipped (1: silent does not say why)",
            "error: with --all only hardware may be missing, not: silent does not say why"]))

    def test_what_failed_or_could_not_start_is_no_skip(self):
        tests = [("fails", "echo 'skipped: no Slurm'; exit 1"), ("hangs", "exec sleep 100", "TIMEOUT 0.1"),
                 ("sets up", "false", "FIXTURES_SETUP it"), ("needs it", "true", "FIXTURES_REQUIRED it")]
        self.assertEqual(summary_of(tests), (0, ["0 passed, 4 failed, 0 skipped"]))

    def test_times_names_the_slowest_ten(self):
        cases = "".join(f'<testcase name="test {seconds}" time="{seconds}.04" status="run"/>' for seconds in range(12))
        with tempfile.NamedTemporaryFile("w", prefix="acc-summary-") as file:
            file.write(f"<testsuite>{cases}</testsuite>")
            file.flush()
            code, lines = summarized(file.name, "--times")
        self.assertEqual((code, lines[0], lines[9]), (0, "   11.0 s  test 11", "    2.0 s  test 2"))
        self.assertEqual(lines[10:], ["12 passed, 0 failed, 0 skipped"])

    def test_no_results_no_line(self):
        self.assertEqual(summary_of([]), (0, []))


if __name__ == "__main__":
    unittest.main()
