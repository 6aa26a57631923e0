# SPDX-License-Identifier: Apache-2.0
"""nodes_test.py ACC PROGRAM: what nodes.py promises of a job over Gloo. PROGRAM has tests on several ranks."""
import os
import pathlib
import signal
import subprocess
import sys

acc, program = sys.argv[1:]
nodes = [sys.executable, pathlib.Path(__file__).with_name("nodes.py"), acc, "--standalone", "--no-python", "--nproc-per-node"]
environment = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}


def run(count, *command):
    done = subprocess.run([*nodes, str(count), *command], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def start(*command):
    """A job of two nodes whose workers have both written `ready`."""
    job = subprocess.Popen([*nodes, "2", "sh", "-c", *command], env=environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert [job.stdout.readline() for _ in range(2)] == ["ready\n"] * 2, job.communicate()
    return job


# Each process is a node, and another host for NCCL.
code, output, errors = run(3, "sh", "-c", "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $NCCL_HOSTID")
assert code == 0, errors
assert sorted(output.splitlines()) == [f"{rank} of 3, 0 of 1 on node{rank}" for rank in range(3)], output

# The exit code is the job's, whoever failed.
for failed in range(2):
    code, _, errors = run(2, "sh", "-c", f"[ $RANK != {failed} ] || exit 7; exec sleep 600")
    assert code == 7 and f"rank {failed} " in errors, (code, errors)

# A signal reaches all nodes.
job = start("echo ready; exec sleep 600")
job.send_signal(signal.SIGTERM)
job.communicate()
assert job.returncode == 143, job.returncode

# Nothing outlives it: the pipe ends with the last process that holds it.
job = start("echo ready; exec sleep 600")
job.kill()
assert job.stdout.read() == ""
job.communicate()

code, output, errors = run(2, program, "-w", "NoTests", "[ranks]")
assert code == 0, output + errors
