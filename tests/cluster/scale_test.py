# SPDX-License-Identifier: Apache-2.0
"""Jobs of many nodes on this machine, and the limits that they meet. Usage: see run_cases()."""

import json
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile

from cluster import SKIPPED, case, run_cases

BENCH = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "bench" / "scale"


def host_alone(acc, soft, hard):
    """Runs the host of a job of 100 nodes to which no other comes, with these limits of open files."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [acc, "run", "--nnodes=100", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=alone",
               "--rdzv-conf=is_host=1,join_timeout=1", "--no-python", "/bin/true"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))


@case
def many_nodes_meet_lose_one_and_meet_again(acc):
    with tempfile.TemporaryDirectory(prefix="acc-scale-") as folder:
        file = pathlib.Path(folder) / "results.json"
        done = subprocess.run([BENCH, "--acc", acc, "--nodes", "16", "64", "--quiet", "3", "--limit", "50", "--counts",
                               "--json", file], text=True, stdout=subprocess.PIPE)
        print(done.stdout)
        if done.returncode == SKIPPED:
            sys.exit(SKIPPED)
        assert done.returncode == 0, f"exit code {done.returncode}"
        small, large = json.loads(file.read_text())["sizes"]
    assert (small["nodes"], large["nodes"]) == (16, 64)
    for job in small, large:
        others = job["nodes"] - 1
        # One connection for each node, and a few for the round and its store.
        assert others <= job["files"] <= others + 4, job
        # Each side sends a heartbeat every 750 ms: 3 to 5 in this time.
        assert 1.9 * others < job["quiet_per_s"]["packets"] < 3.4 * others, job


@case
def the_limit_of_open_files_is_raised_or_told(acc):
    raised = host_alone(acc, 80, 1000)
    assert raised.returncode == 75 and "1 of 100 nodes are here" in raised.stderr, raised
    refused = host_alone(acc, 80, 150)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1, refused
    assert "may open 150 files, too few for connections to 100 nodes " in refused.stderr and " to 268 or more" in refused.stderr, refused


if __name__ == "__main__":
    run_cases()
