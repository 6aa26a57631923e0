# SPDX-License-Identifier: Apache-2.0
"""Compares the effect of network cuts on jobs of acc and torchrun. To be run by hand; takes minutes.

cuts_matrix.py ACC [--python PYTHON] [--without-acc] [--side-by-side N] [--only WORD ...]: three nodes; the cable of the host, of another
node, of both is unplugged for 2 to 20 s, or 20 % of what a node receives is lost for 60 s. A line for each case: what
became of the job. PYTHON has torch; without it, acc alone. Every node has the timeouts that nobody asked for.

  unnoticed        the same workers run on
  whole again      other workers run, all nodes in one group, so many seconds after the network was
  ended            all agents have ended, with these codes
  stuck            neither within 150 s
Of acc's jobs it also says when two groups were seen at once for longer than a node may take to notice: `SPLIT`.
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading
import time

from cluster import Cluster, environment_of

LIMIT = 150.0
# A cut node acts after 15 s of silence, and its workers end at once.
SPLIT_AFTER = 15.0 + 6.0

JOBS = {
    "static": lambda i: ["--nnodes", "3", "--node-rank", str(i), "--master-addr", "node0", "--master-port", "29500",
                         "--max-restarts", "3"],
    "fixed": lambda i: [*c10d("3"), "--max-restarts", "3"],
    "fixed, no restarts": lambda i: c10d("3"),
    "range": lambda i: [*c10d("1:3"), "--max-restarts", "3"],
}
CUTS = {"host": [0], "other": [1], "both": [0, 1]}


def c10d(nnodes):
    return ["--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-endpoint", "node0:29400", "--rdzv-id", "job7",
            "--rdzv-conf", "last_call_timeout=3"]


class Job(Cluster):
    """Agents of acc or of torchrun on three nodes."""

    def __init__(self, acc, python, tag):
        super().__init__(acc, 3)
        self.python = python
        self.tag = tag
        self.mark = f"ACC_TEST_CLUSTER={tag}"

    def begin(self, index, flags):
        log = pathlib.Path(self.folder.name) / f"node{index}.log"
        program = [self.python, "-m", "torch.distributed.run"] if self.python else [self.acc, "run"]
        with open(log, "wb") as out:
            self.agents[index] = self.on_node(index, *program, "--nproc-per-node", "1", *flags, "--no-python", "/bin/sh",
                                              "-c", "exec sleep 1000", stdout=out, stderr=out)
        self.agents[index].log = log

    def groups(self):
        envs = [environment_of(pid) for pid in self.workers()]
        return {(e.get("MASTER_ADDR"), e.get("MASTER_PORT"), e.get("WORLD_SIZE")) for e in envs}


def watch_split(job, done, seen):
    since = None
    while not done.wait(0.5):
        if len(job.groups()) < 2:
            since = None
        elif since is None:
            since = time.monotonic()
        elif time.monotonic() - since > SPLIT_AFTER:
            seen.append(time.monotonic() - since)


def run_case(acc, python, number, name, fault):
    with Job(acc, python, f"m{os.getpid() % 10000}x{number % 1000}") as job:
        for index in range(3):
            job.begin(index, JOBS[name](index))
        job.until("all nodes have met", lambda: job.is_whole(3), 120)
        before = set(job.workers())
        done, split = threading.Event(), []
        watcher = threading.Thread(target=watch_split, args=(job, done, split))
        watcher.start()
        try:
            fault(job)
            result = outcome(job, before)
        finally:
            done.set()
            watcher.join()
        return result + (" SPLIT" if split and not python else "")


def outcome(job, before):
    began = changed = time.monotonic()
    last = None
    while time.monotonic() - began < LIMIT:
        if all(agent.poll() is not None for agent in job.agents.values()):
            return f"ended {sorted(a.returncode for a in job.agents.values())}"
        now = set(job.workers())
        if now != last:
            last, changed = now, time.monotonic()
        whole = job.is_whole(3) and all(agent.poll() is None for agent in job.agents.values())
        # Other effects show within torchrun's heartbeat timeout.
        if whole and time.monotonic() - changed > 22:
            return "unnoticed" if now == before else f"whole again {changed - began:.0f} s"
        time.sleep(0.25)
    codes = [agent.poll() for agent in job.agents.values()]
    return f"stuck: {len(job.workers())} workers, agents {codes}"


def cut(nodes, seconds):
    def fault(job):
        for index in nodes:
            job.node("cut", index)
        time.sleep(seconds)  # the fault itself lasts so long
        for index in nodes:
            job.node("heal", index)

    return fault


def lose_some(job):
    for index in range(3):
        job.node("loss", index, "20")
    time.sleep(60)  # as above
    for index in range(3):
        job.node("loss", index, "off")


def cases():
    for name in JOBS:
        for target, nodes in CUTS.items():
            for seconds in (2, 4, 7, 14, 20):
                yield f"{name}: {target} cut for {seconds} s", name, cut(nodes, seconds)
        yield f"{name}: 20 % loss for 60 s", name, lose_some


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("acc")
    parser.add_argument("--python")
    parser.add_argument("--without-acc", action="store_true")
    parser.add_argument("--side-by-side", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=[])
    asked = parser.parse_args()
    acc = os.path.abspath(asked.acc)
    wanted = [one for one in cases() if all(word in one[0] for word in asked.only)]
    bad = []

    def both(number, title, name, fault):
        results = []
        for python in [None] * (not asked.without_acc) + [asked.python] * bool(asked.python):
            try:
                results.append(run_case(acc, python, 2 * number + bool(python), name, fault))
            except (AssertionError, RuntimeError, subprocess.SubprocessError) as error:
                results.append("failed: " + str(error).replace("\n", " ")[:2000])
        print(f"{title:<40}" + "".join(f"{result:<34}" for result in results), flush=True)
        if asked.without_acc:
            return
        survived = [not result.startswith(("ended", "stuck", "failed")) for result in results]
        if "SPLIT" in results[0] or (not survived[0] and (len(survived) == 1 or survived[1])):
            bad.append(title)

    with concurrent.futures.ThreadPoolExecutor(asked.side_by_side) as pool:
        for future in [pool.submit(both, number, *one) for number, one in enumerate(wanted)]:
            future.result()
    print("acc ends where it should not, or splits:", *(bad or ["never"]), sep="\n  ")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
