# SPDX-License-Identifier: Apache-2.0
"""costs_test.py CTEST BUILD: each row of tests/costs.txt is the cost of a test in the build folder BUILD."""

import json
import pathlib
import subprocess
import sys

COSTS = pathlib.Path(__file__).resolve().parents[1] / "costs.txt"


def cost(test):
    return next((entry["value"] for entry in test["properties"] if entry["name"] == "COST"), None)


def main(ctest, build):
    rows = [line.split(" ", 1) for line in COSTS.read_text().splitlines() if not line.startswith("#")]
    shown = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True).stdout
    costs = {test["name"]: cost(test) for test in json.loads(shown)["tests"]}
    missing = [name for seconds, name in rows if costs.get(name) != float(seconds)]
    for name in missing:
        print(f"{name}: " + ("has another cost than in costs.txt" if name in costs else "costs.txt has it, but no test has this name"))
    return 1 if missing or not rows else 0


sys.exit(main(*sys.argv[1:]))
