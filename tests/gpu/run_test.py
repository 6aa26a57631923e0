# SPDX-License-Identifier: Apache-2.0
"""run_test.py ACC: what run.py reports of a part that does not end in time."""
import pathlib
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True
import run  # noqa: E402  the parts' file, beside this one

run.ACC = sys.argv[1]


def report(function, limit, remaining):
    with tempfile.TemporaryDirectory() as folder:
        machine = types.SimpleNamespace(cpu=True, environment={"HOME": folder, "PATH": "/usr/bin:/bin"})
        result = run.run_part("part", limit, remaining, 0, function, pathlib.Path(folder), machine)
        return result["result"], result["reason"]


def hangs(part):
    part.run(["sleep", "600"])


def fails_and_hangs(part):
    part.fail("the first failed")
    hangs(part)


# Its own limit is a failure; the end of the time of all parts is not.
assert report(hangs, limit=0.2, remaining=600) == ("FAILED", "took longer than its limit")
assert report(hangs, limit=600, remaining=0.2) == ("skipped", "no time was left")
assert report(hangs, limit=600, remaining=-1) == ("skipped", "no time was left")

# What failed before stays a failure.
assert report(fails_and_hangs, limit=600, remaining=0.2) == ("FAILED", "the first failed; no time was left")
assert report(lambda part: part.fail("the first failed"), limit=600, remaining=600) == ("FAILED", "the first failed")
assert report(lambda part: None, limit=600, remaining=600) == ("ok", "")
