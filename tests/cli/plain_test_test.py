# SPDX-License-Identifier: Apache-2.0
"""`acc test` where acc-selftest is not installed, with a Python that has torch (ACC_PEER_PYTHON, if there is one) and with
one that has none. Usage: plain_test_test.py ACC."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LIBACC = "libacc (acc-selftest is not installed): training in C++, loaders, checkpoints, the speed of links and ranks"

# Starts the rank when another one has been at the store for half a second.
LATE = """
import os, sys, time
def is_connected(file):
    port = format(int(os.environ["MASTER_PORT"]), "04X")
    return any(row[2].endswith(":" + port) and row[3] == "01" for row in map(str.split, open(file)))
while not any(map(is_connected, ("/proc/net/tcp", "/proc/net/tcp6"))):
    time.sleep(0.01)
time.sleep(0.5)
os.execvp(sys.argv[1], sys.argv[1:])
"""

# Breaks a part of torch when the test itself imports torch.distributed.
BROKEN = """
import builtins, sys
original = builtins.__import__
def patched(name, names=None, *others, **options):
    module = original(name, names, *others, **options)
    if name == "torch.distributed" and names and names.get("__name__") == "__main__":
        builtins.__import__ = original
        torch, dist = sys.modules["torch"], sys.modules["torch.distributed"]
        {fault}
    return module
builtins.__import__ = patched
"""
FAULTS = {
    "dist.all_reduce = lambda *a, **o: None": "all_reduce of the ranks gives",
    "dist.all_gather = lambda *a, **o: None": "all_gather gives",
    "torch.nn.functional.mse_loss = lambda x, y: (x - y).sum() * float('nan')": "the weights differ by nan",
}


def main(acc):
    with tempfile.TemporaryDirectory(prefix="acc-plain-") as folder:
        alone = shutil.copy(acc, folder)

        def test(*flags, env=()):
            return subprocess.run([alone, "test", "--cpu", *flags], text=True, capture_output=True, timeout=200,
                                  env={"PATH": os.environ["PATH"], "HOME": folder, "OMP_NUM_THREADS": "1", **dict(env)})

        # A Python that imports nothing but what it came with has no torch.
        bare = pathlib.Path(folder) / "python"
        bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        bare.chmod(0o755)
        done = test("--num_processes", "3", "--python", str(bare), "--json")
        assert done.returncode == 0, done
        report = json.loads(done.stdout)
        assert report["passed"] and report["num_processes"] == 3, report
        assert [check["name"] for check in report["checks"]] == ["store"], report
        assert report["not_tested"] == f"a training in Python ({bare} has no torch); {LIBACC}", report
        # A rank that waits for a late one takes the longest, also where that one is rank 0, which reports.
        (pathlib.Path(folder) / "late.py").write_text(LATE)
        late = ("--num_processes", "2", "--json", "--wrap-rank", f"0:{sys.executable} {folder}/late.py")
        done = test("--python", str(bare), *late)
        assert done.returncode == 0 and json.loads(done.stdout)["checks"][0]["seconds"] > 0.4, done
        text = test("--python", str(bare))
        assert text.returncode == 0 and text.stdout.startswith("acc test: 1 process\nstart "), text
        # A process that does not come to the store is a failure.
        absent = test("--num_processes", "2", "--python", str(bare), "--time-limit", "1", "--wrap-rank", "1:sh -c 'exec sleep 30' sh")
        assert absent.returncode == 1 and "not all processes came to the store in time" in absent.stderr, absent

        # As where LibTorch is in a folder of another user.
        selftest = pathlib.Path(folder) / "acc-selftest"
        selftest.write_text("#!/bin/sh\necho 'error while loading shared libraries: libtorch_cpu.so' >&2\nexit 127\n")
        selftest.chmod(0o755)
        closed = test()
        assert closed.returncode == 127, closed
        assert closed.stderr.endswith(
            f"acc: {selftest}: its libraries cannot be loaded (`ldd {selftest}` names them; where LibTorch is in another "
            "user's folder, build acc with one that you can read: -DLibTorch_ROOT=<folder>)\n"), closed  # fmt: skip
        # As where what --wrap-rank names is not there.
        selftest.write_text("#!/bin/sh\nexit 127\n")
        wrapped = test()
        assert wrapped.returncode == 127 and "cannot be loaded" not in wrapped.stderr, wrapped
        selftest.unlink()

        peer = os.environ.get("ACC_PEER_PYTHON")
        if not peer:
            return
        done = test("--num_processes", "2", "--python", peer, "--json")
        assert done.returncode == 0, done
        report = json.loads(done.stdout)
        assert report["passed"] and report["num_processes"] == 2 and report["torch"], report
        assert [check["name"] for check in report["checks"]] == ["rendezvous", "store", "collectives", "training"], report
        assert report["not_tested"] == LIBACC, report

        done = test("--python", peer, *late)
        assert done.returncode == 0 and json.loads(done.stdout)["checks"][0]["seconds"] > 0.4, done

        # Each step fails where its subject does, also with PYTHONOPTIMIZE, which removes assertions.
        for fault, told in FAULTS.items():
            (pathlib.Path(folder) / "sitecustomize.py").write_text(BROKEN.format(fault=fault))
            done = test("--num_processes", "2", "--python", peer, env={"PYTHONPATH": folder, "PYTHONOPTIMIZE": "1"})
            assert done.returncode == 1 and told in done.stderr, (fault, done)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
