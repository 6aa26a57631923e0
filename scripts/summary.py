# SPDX-License-Identifier: Apache-2.0
"""The last line of scripts/test: summary.py RESULTS [--all] [--times], for the results that ctest --output-junit wrote.

A test that cannot run here, or not as a whole, prints `skipped: REASON`. With --all that is a failure (exit code 1), except
for what no package brings: a GPU, and a kind of processor. --times names the ten tests that took longest.
"""

import collections
import sys
import xml.etree.ElementTree

HARDWARE = {"too few CUDA devices", "this processor's LibTorch does not take MKL_CBWR"}
SKIPPED = ("SKIP_RETURN_CODE", "SKIP_REGULAR_EXPRESSION")


class Results:
    def __init__(self, file):
        self.times, self.passed, self.failed, self.skipped = {}, [], [], []
        self.reasons = collections.Counter()
        for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
            if case.get("status") != "disabled":
                self.add(case)

    def add(self, case):
        name, status = case.get("name"), case.get("status")
        self.times[name] = float(case.get("time"))
        reasons = {line.removeprefix("skipped: ") for line in case.findtext("system-out", "").splitlines()
                   if line.startswith("skipped: ")}
        if status == "run":
            self.passed.append(name)
        elif status == "notrun" and case.find("skipped").get("message").startswith(SKIPPED):
            self.skipped.append(name)
            reasons = reasons or {f"{name} does not say why"}
        else:
            self.failed.append(name)
            return
        self.reasons.update(reasons)


def line_of(results, all_was_asked):
    """`7 passed, 1 failed, 4 skipped (2: no Slurm; 2: no etcd); scripts/test --all brings what is missing`."""
    line = f"{len(results.passed)} passed, {len(results.failed)} failed, {len(results.skipped)} skipped"
    if results.reasons:
        line += f" ({'; '.join(f'{count}: {reason}' for reason, count in results.reasons.most_common())})"
    if not all_was_asked and results.reasons.keys() - HARDWARE:
        line += "; scripts/test --all brings what is missing"
    return line


def main(file, *flags):
    results = Results(file)
    if not results.times:
        return 0
    if "--times" in flags:
        for name in sorted(results.times, key=results.times.get, reverse=True)[:10]:
            print(f"{results.times[name]:7.1f} s  {name}")
    print(line_of(results, "--all" in flags))
    missed = results.reasons.keys() - HARDWARE
    if "--all" in flags and missed:
        print(f"error: with --all only hardware may be missing, not: {'; '.join(sorted(missed))}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
