#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each check of `acc test` fails when what it checks is broken, and a rank that fails is not hidden by those that lost it.

Usage: faults_test.py ACC SELFTEST LIBRARY

LIBRARY is workers/selftest_faults.cpp.
"""
import json
import os
import subprocess
import sys
import tempfile

ACC, SELFTEST, LIBRARY = sys.argv[1:]
# What is broken, and the checks that must notice it.
FAULTS = {
    "gather of numbers": ["state"],
    "ranks": ["state", "functions by process"],
    "wait_for_everyone": ["process order"],
    "part of a list": ["splitting"],
    "part of a tensor": ["splitting"],
    "trigger": ["trigger"],
    "gather": ["collectives"],
    "reduce": ["collectives"],
    "broadcast": ["collectives"],
    "source of broadcast": ["collectives"],
    "set_seed": ["random state"],
    "split_batches": ["sharded loading", "training parity"],
    "shuffle": ["shuffled loading", "dispatched shuffling", "data seed"],
    "set_epoch": ["shuffled loading", "dispatched shuffling"],
    "dispatch_batches": ["dispatched loading", "dispatched shuffling"],
    "batch_sampler": ["batch sampler"],
    "seed": ["data seed"],
    "autocast": ["bf16 training", "fp16 training"],
    "scale of accumulation": ["training parity", "accumulation"],
}



def failed_checks(fault):
    """The names of all checks, and of those that failed on two processes."""
    broken = ["env", f"LD_PRELOAD={LIBRARY}", f"ACC_FAULT={fault}"] if fault else []
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([ACC, "run", "--standalone", "--no-python", "--nproc-per-node", "2", *broken, SELFTEST, "--json"],
                              env={**os.environ, "HOME": home, "OMP_NUM_THREADS": "1"}, text=True, capture_output=True,
                              timeout=120)
    assert done.stdout, (fault, done.stderr)
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == report["passed"], (fault, done)
    checks = report["checks"]
    return [check["name"] for check in checks], [check["name"] for check in checks if not check["passed"]]


def told_of_a_failed_rank(processes):
    """The error that `acc test` reports when rank 1 fails in a collective, and takes half a second to say why."""
    broken = f"1:env LD_PRELOAD={LIBRARY} ACC_FAULT=rank"
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([ACC, "test", "--cpu", "--num_processes", str(processes), "--json", "--wrap-rank", broken],
                              env={**os.environ, "HOME": home, "OMP_NUM_THREADS": "1"}, text=True, capture_output=True,
                              timeout=120)
    assert done.returncode == 1 and "this rank has no data" in done.stderr, done
    return json.loads(done.stdout)["error"]


told = [told_of_a_failed_rank(processes) for processes in (2, 3, 2, 3)]
assert told == 4 * ["this rank has no data"], told

missed = []
noticed = set()
names, failed = failed_checks("")
assert not failed, failed
for fault, checks in FAULTS.items():
    _, failed = failed_checks(fault)
    noticed.update(failed)
    if not set(checks) <= set(failed):
        missed.append(f"{fault}: {checks} expected, {failed} failed")
assert not missed, "\n".join(missed)
assert noticed == set(names), f"nothing was broken for {set(names) - noticed}"
