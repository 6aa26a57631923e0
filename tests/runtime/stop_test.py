# SPDX-License-Identifier: Apache-2.0
"""stop_test.py PROGRAM PROCESSES LAUNCHER...: processes leave their loops at the same step when any of them, or their launcher,
is asked to end. Without a launcher the program runs alone."""
import os
import re
import signal
import subprocess
import sys

program, count, launcher = sys.argv[1], int(sys.argv[2]), sys.argv[3:]


def run(name, number, every, expected, to_rank=None, **variables):
    """Sends the signal to the launcher, or to one rank, when all ranks are in their loop."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    job = subprocess.Popen([*launcher, program, str(every)], env=environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    processes = {}
    while len(processes) < count:
        line = job.stdout.readline()
        started = re.fullmatch(r"rank (\d+) is process (\d+)\n", line)
        if not started:
            job.kill()
            sys.exit(f"{name}: {line}{job.communicate()}")
        processes[int(started[1])] = int(started[2])
    os.kill(job.pid if to_rank is None else processes[to_rank], number)
    out, err = job.communicate(timeout=120)
    last_steps = dict(re.findall(r"rank (\d+) left after step (\d+)\n", out))
    if job.returncode != expected or len(last_steps) != count or len(set(last_steps.values())) != 1:
        sys.exit(f"{name}: exit code {job.returncode}\n{out}{err}")
    if int(last_steps["0"]) % every != 0:
        sys.exit(f"{name}: left between two checks, after step {last_steps['0']}")


if launcher:
    # As the launcher sends it, and as Slurm does.
    run("SIGTERM to the launcher", signal.SIGTERM, 1, 143)
    run("SIGUSR1 to one rank", signal.SIGUSR1, 1, 0, to_rank=count - 1)
    run("SIGTERM to one rank", signal.SIGTERM, 3, 0, to_rank=0)
    run("SIGUSR1 to the launcher", signal.SIGUSR1, 7, 0)
else:
    run("SIGUSR1", signal.SIGUSR1, 1, 0)
    run("SIGTERM", signal.SIGTERM, 5, 0)
