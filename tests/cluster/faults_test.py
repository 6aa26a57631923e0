# SPDX-License-Identifier: Apache-2.0
"""Faults in jobs of several nodes. Usage: see run_cases() of cluster.py, and
faults_test.py ACC --random COUNT [SEED [range|fixed|static]], which does one fault after the other. Delays that are preloaded
(scripts/flakes --delays) give their seed to the random case among the cases, too.

Times are printed, not asserted, save against the time-outs that acc promises (with room for a loaded machine).
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from cluster import Cluster, case, end_in_order, environment_of, run_cases, same_network, send, skip

NODE_TIMEOUT = 3.0
SHUTDOWN_TIMEOUT = 2.0
ROOM = 12.0  # for a machine on which other things run
MANY = "1000000"


def flags(nnodes, *more, workers=1):
    return ["--nnodes", nnodes, "--nproc-per-node", str(workers), "--rdzv-backend", "c10d", "--rdzv-endpoint",
            "node0:29400", "--rdzv-id", "job7", "--rdzv-conf", "last_call_timeout=2,join_timeout=60",
            "--shutdown-timeout", f"{SHUTDOWN_TIMEOUT:g}", "--node-timeout", f"{NODE_TIMEOUT:g}", *more]


def etcd_flags(nnodes, server):
    return ["--nnodes", nnodes, "--rdzv-backend", "etcd", "--rdzv-endpoint", server, "--rdzv-id", "job7",
            "--rdzv-conf", "last_call_timeout=2,timeout=60", "--shutdown-timeout", f"{SHUTDOWN_TIMEOUT:g}", "--node-timeout",
            f"{NODE_TIMEOUT:g}"]


def start(cluster, nnodes, *more, workers=1, script="exec sleep 1000"):
    for index in range(cluster.count):
        cluster.launch(index, *flags(nnodes, *more, workers=workers), script=script)
    return cluster.until("all nodes have met", lambda: cluster.is_whole(cluster.count * workers))


def ends_with(cluster, codes, indices=None, limit=ROOM):
    indices = range(cluster.count) if indices is None else indices
    took = cluster.until("all agents have ended", lambda: all(cluster.agents[i].poll() is not None for i in indices), limit)
    for index in indices:
        code = cluster.agents[index].returncode
        assert code in codes, f"node {index} ended with {code}, not {codes}:\n{cluster.output(index)}"
    return took


def nothing_left(cluster):
    cluster.until("nothing is left", lambda: not cluster.processes(), 2.0)


def report(what, **times):
    print(f"{what:<44}" + "  ".join(f"{name} {value:6.2f} s" for name, value in times.items()))


@case
def worker_killed(acc):
    with Cluster(acc) as cluster:
        start(cluster, "3", workers=2)
        send(cluster.workers_on(1)[0], signal.SIGKILL)
        report("worker killed, no restarts", ended=ends_with(cluster, {137}))
        nothing_left(cluster)
        assert "on host node1 was ended by signal 9" in cluster.output(0), cluster.output(0)


@case
def worker_killed_and_restarted(acc):
    with Cluster(acc) as cluster:
        start(cluster, "3", "--max-restarts", "3", workers=2)
        before = set(cluster.workers())
        began = time.monotonic()
        send(cluster.workers_on(2)[0], signal.SIGKILL)
        # One look at a time: the killed worker is alive for a moment, and before a second look all may have been ended.
        cluster.until("all started again", lambda: (group := cluster.group(6)) and not before & set(group))
        report("worker killed, restart of all nodes", recovered=time.monotonic() - began)
        counts = {env["TORCHELASTIC_RESTART_COUNT"] for env in cluster.workers().values()}
        assert counts == {"1"}, counts


@case
def node_cannot_start_its_workers(acc):
    """The others need all nodes: they end with it, at once, and know why."""
    with Cluster(acc, 2) as cluster:
        bad = pathlib.Path(cluster.folder.name) / "bad"
        bad.write_text("#!/no/such/interpreter\n")
        bad.chmod(0o755)
        static = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "node0", "--master-port", "29400", "--max-restarts", "2"]
        for kind, words in (("c10d", flags("2", "--max-restarts", "2")), ("static", static)):
            cluster.launch(0, *words, *(["--node-rank", "0"] if kind == "static" else []))
            cluster.launch(1, *words, *(["--node-rank", "1"] if kind == "static" else []), program=str(bad))
            report(f"a node cannot start its workers ({kind})", ended=ends_with(cluster, {2}))
            assert f"acc: node node1: {bad}: cannot be started: its interpreter" in cluster.output(0), cluster.output(0)
            nothing_left(cluster)


@case
def agent_killed(acc):
    with Cluster(acc) as cluster:
        start(cluster, "2:3")
        began = time.monotonic()
        for pid in cluster.agent_pids(2):
            send(pid, signal.SIGKILL)
        cluster.until("two nodes go on", lambda: cluster.is_whole(2))
        report("agent killed (node 2 of 2:3)", recovered=time.monotonic() - began)


@case
def node_crashed(acc):
    with Cluster(acc) as cluster:
        start(cluster, "2:3")
        began = time.monotonic()
        cluster.node("crash", 1)
        cluster.until("two nodes go on", lambda: cluster.is_whole(2))
        report("node crashed, its kernel lives", recovered=time.monotonic() - began)


@case
def node_without_power(acc):
    with Cluster(acc) as cluster:
        start(cluster, "2:3")
        began = time.monotonic()
        cluster.node("kill", 2)
        noticed = cluster.until("it is noticed", lambda: "was lost" in cluster.output(0), NODE_TIMEOUT + ROOM)
        cluster.until("two nodes go on", lambda: cluster.is_whole(2))
        report("power loss", noticed=noticed, recovered=time.monotonic() - began)


@case
def node_comes_back(acc):
    with Cluster(acc) as cluster:
        start(cluster, "2:3")
        cluster.node("kill", 2)
        cluster.until("two nodes go on", lambda: cluster.is_whole(2))
        cluster.node("start", 2)
        cluster.agents[2].wait()
        began = time.monotonic()
        cluster.launch(2, *flags("2:3"), script="exec sleep 1000")
        cluster.until("three again", lambda: cluster.is_whole(3))
        report("the node comes back", recovered=time.monotonic() - began)


@case
def cable_cut(acc):
    with Cluster(acc) as cluster, SplitWatch(cluster) as watch:
        start(cluster, "1:3")
        began = time.monotonic()
        cluster.node("cut", 2)
        cluster.until("the node alone has stopped its workers", lambda: not cluster.workers_on(2), 4 * NODE_TIMEOUT + ROOM)
        report("cable cut: the smaller part stops its workers", stopped=time.monotonic() - began)
        cluster.until("two nodes go on", lambda: cluster.is_whole(2))
        report("cable cut: the larger part goes on", recovered=time.monotonic() - began)
        cluster.until("the node says why it waits", lambda: "2 of the 2 other nodes may be alive" in cluster.output(2))
        cluster.node("heal", 2)
        cluster.until("the node is taken in again", lambda: cluster.is_whole(3))
        watch.check()


@case
def cable_of_the_host_cut(acc):
    with Cluster(acc) as cluster, SplitWatch(cluster) as watch:
        start(cluster, "1:3")
        began = time.monotonic()
        cluster.node("cut", 0)
        cluster.until("the host has stopped its workers", lambda: not cluster.workers_on(0), 4 * NODE_TIMEOUT + ROOM)
        cluster.until("two nodes go on", lambda: cluster.is_whole(2), 4 * NODE_TIMEOUT + ROOM)
        report("cable of node 0 cut", recovered=time.monotonic() - began)
        cluster.node("heal", 0)
        cluster.until("the host is taken in again", lambda: cluster.is_whole(3))
        watch.check()


@case
def every_cable_cut(acc):
    with Cluster(acc) as cluster, SplitWatch(cluster) as watch:
        start(cluster, "1:3")
        for index in range(3):
            cluster.node("cut", index)
        cluster.until("nobody goes on alone", lambda: not cluster.workers(), 4 * NODE_TIMEOUT + ROOM)
        began = time.monotonic()
        for index in range(3):
            cluster.node("heal", index)
        cluster.until("all are one group again", lambda: cluster.is_whole(3))
        report("every cable cut and plugged in", recovered=time.monotonic() - began)
        watch.check()


def comes_back_after_a_cut(acc, index, launch):
    """One of two nodes is cut off until both notice; then the group forms again, and no agent has ended."""
    with Cluster(acc, 2) as cluster, SplitWatch(cluster) as watch:
        for node in range(2):
            launch(cluster, node)
        cluster.until("both run", lambda: cluster.is_whole(2))
        cluster.node("cut", index)
        cluster.until("both have stopped", lambda: not cluster.workers(), NODE_TIMEOUT + ROOM)
        cluster.node("heal", index)
        took = cluster.until("both run again", lambda: cluster.is_whole(2))
        counts = {env["TORCHELASTIC_RESTART_COUNT"] for env in cluster.workers().values()}
        assert counts == {"1"}, counts
        assert all(agent.poll() is None for agent in cluster.agents.values())
        watch.check()
        report(f"fixed size, cable of node {index} cut", recovered=took)


def launch_static(cluster, index):
    cluster.launch(index, "--nnodes", str(cluster.count), "--node-rank", str(index), "--master-addr", "node0",
                   "--master-port", "29500", "--nproc-per-node", "1", "--max-restarts", MANY, "--shutdown-timeout", "2",
                   "--node-timeout", f"{NODE_TIMEOUT:g}", script="exec sleep 1000")


def launch_fixed(cluster, index):
    cluster.launch(index, *flags(str(cluster.count), "--max-restarts", MANY), script="exec sleep 1000")


@case
def fixed_size_after_a_cut(acc):
    comes_back_after_a_cut(acc, 1, launch_fixed)


@case
def static_after_a_cut_of_the_host(acc):
    comes_back_after_a_cut(acc, 0, launch_static)


def host_is_waited_for(acc, launch):
    with Cluster(acc) as cluster:
        for index in range(3):
            launch(cluster, index)
        cluster.until("all run", lambda: cluster.is_whole(3))
        cluster.node("kill", 0)
        cluster.until("the others have stopped", lambda: not cluster.workers(), NODE_TIMEOUT + ROOM)
        cluster.until("they say that they wait", lambda: all("waiting for the nodes of the job" in cluster.output(i)
                                                           for i in (1, 2)))
        cluster.node("start", 0)
        cluster.agents[0].wait()
        launch(cluster, 0)
        took = cluster.until("all run again", lambda: cluster.is_whole(3))
        report("fixed size, power loss of node 0", recovered=took)


@case
def host_of_fixed_size_is_waited_for(acc):
    host_is_waited_for(acc, launch_fixed)


@case
def host_of_static_is_waited_for(acc):
    host_is_waited_for(acc, launch_static)


@case
def cable_blinks(acc):
    with Cluster(acc) as cluster:
        start(cluster, "3")
        before = set(cluster.workers())
        cluster.node("cut", 1)
        time.sleep(NODE_TIMEOUT / 3)  # the fault itself lasts so long
        cluster.node("heal", 1)
        time.sleep(2 * NODE_TIMEOUT)
        assert set(cluster.workers()) == before, "a short cut must disturb nobody"
        report("cable cut for a second: nobody notices")


@case
def cable_cut_for_longer_than_a_blink(acc):
    """Silence is reported, and TCP repairs it, with the default timeouts."""
    with Cluster(acc) as cluster:
        for index in range(3):
            cluster.launch(index, "--nnodes", "3", "--rdzv-backend", "c10d", "--rdzv-endpoint", "node0:29400",
                           "--rdzv-id", "job7", script="exec sleep 1000")
        cluster.until("all nodes have met", lambda: cluster.is_whole(3))
        before = set(cluster.workers())
        cluster.node("cut", 1)
        cluster.until("the host says it", lambda: "node node1 (10.77.0.11" in cluster.output(0))
        cluster.until("the node says it", lambda: "the node that hosts the job has been silent for" in cluster.output(1))
        assert "it counts as lost after 60 s" in cluster.output(0), cluster.output(0)
        cluster.node("heal", 1)
        cluster.until("both hear each other", lambda: all("answers again" in cluster.output(i) for i in (0, 1)))
        assert set(cluster.workers()) == before, "TCP repairs a cut of 4 s"


@case
def node_frozen(acc):
    with Cluster(acc) as cluster:
        start(cluster, "2:3")
        began = time.monotonic()
        cluster.node("freeze", 2)
        cluster.until("two nodes say so", lambda: "was lost" in cluster.output(0), NODE_TIMEOUT + ROOM)
        report("node frozen", noticed=time.monotonic() - began)
        cluster.node("thaw", 2)
        cluster.until("one group, with or without it", lambda: cluster.is_whole(2) or cluster.is_whole(3), 30)
        report("node thawed", recovered=time.monotonic() - began)


@case
def host_frozen(acc):
    with Cluster(acc) as cluster:
        start(cluster, "1:3")
        began = time.monotonic()
        cluster.node("freeze", 0)
        cluster.until("the others notice", lambda: all("was lost" in cluster.output(i) for i in (1, 2)), NODE_TIMEOUT + ROOM)
        cluster.node("thaw", 0)
        cluster.until("one group of all", lambda: cluster.is_whole(3))
        report("node 0 frozen and thawed", recovered=time.monotonic() - began)


@case
def agent_of_the_host_stopped(acc):
    """Its workers run meanwhile: they end when it continues, and not before."""
    with Cluster(acc) as cluster:
        start(cluster, "1:3")
        agents = cluster.agent_pids(0)
        for pid in agents:
            send(pid, signal.SIGSTOP)
        began = time.monotonic()
        host = cluster.init_of(0)
        cluster.until("the others go on", lambda: [env["WORLD_SIZE"] for pid, env in cluster.workers().items()
                                                   if not same_network(pid, host)] == ["2", "2"], 4 * NODE_TIMEOUT + ROOM)
        for pid in agents:
            send(pid, signal.SIGCONT)
        cluster.until("one group of all", lambda: cluster.is_whole(3))
        report("agent of node 0 stopped and continued", recovered=time.monotonic() - began)


@case
def host_killed(acc):
    with Cluster(acc) as cluster:
        start(cluster, "2:3")
        began = time.monotonic()
        for pid in cluster.agent_pids(0):
            send(pid, signal.SIGKILL)
        cluster.until("two nodes go on", lambda: cluster.is_whole(2))
        report("agent of node 0 killed", recovered=time.monotonic() - began)


@case
def host_without_power(acc):
    with Cluster(acc) as cluster:
        start(cluster, "2:3")
        began = time.monotonic()
        cluster.node("kill", 0)
        cluster.until("two nodes go on", lambda: cluster.is_whole(2), 4 * NODE_TIMEOUT + ROOM)
        report("power loss of node 0", recovered=time.monotonic() - began)


def kill_agents(cluster, indices):
    """All processes of acc on these nodes, at once: the machines and their addresses stay."""
    for pid in [pid for index in indices for pid in cluster.agent_pids(index)]:
        send(pid, signal.SIGKILL)


@case
def host_and_another_node_killed(acc):
    with Cluster(acc) as cluster:
        for nnodes in ["1:3", "3"]:
            start(cluster, nnodes, "--max-restarts", "9")
            for lost in [[0, 1], [0, 2]]:
                began = time.monotonic()
                kill_agents(cluster, lost)
                if nnodes == "1:3":
                    took = cluster.until("the last node goes on alone", lambda: cluster.is_whole(1))
                    report(f"nodes {lost} killed, 1:3", recovered=took)
                for index in lost:
                    cluster.agents[index].wait()
                    cluster.launch(index, *flags(nnodes, "--max-restarts", "9"), script="exec sleep 1000")
                cluster.until("three go on", lambda: cluster.is_whole(3))
                report(f"nodes {lost} killed and replaced, {nnodes}", recovered=time.monotonic() - began)
            kill_agents(cluster, range(3))
            cluster.until("nothing is left", lambda: not cluster.processes())


@case
def host_and_successor_killed_before_a_round(acc):
    with Cluster(acc) as cluster:
        # Node 2 has a worker until the test ends it, so no round begins before.
        held = os.path.join(cluster.folder.name, "held")
        os.mkfifo(held)
        holding = f"trap 'read line < {held}; exit 0' TERM; while :; do sleep 1000 & wait; done"
        for index in range(3):
            script = holding if index == 2 else "exec sleep 1000"
            cluster.launch(index, "-v", *flags("3", "--max-restarts", "9", "--shutdown-timeout", "60"), script=script)
        cluster.until("all nodes have met", lambda: cluster.is_whole(3))
        kill_agents(cluster, [0])
        cluster.agents[0].wait()
        cluster.until("node 1 leads node 2", lambda: "hosting as successor: 2 of" in cluster.output(1)
                      and "coordinator lost -> connected" in cluster.output(2))
        cluster.launch(0, "-v", *flags("3"), script="exec sleep 1000")
        cluster.until("the new host yields to node 1", lambda: "coordinator lost -> connected" in cluster.output(0))
        kill_agents(cluster, [1])
        cluster.agents[1].wait()
        began = time.monotonic()
        with open(held, "w", encoding="ascii") as release:
            release.write("\n")
        cluster.launch(1, *flags("3", "--max-restarts", "9"), script="exec sleep 1000")
        cluster.until("three go on", lambda: cluster.is_whole(3))
        report("the host and its successor killed, one after the other", recovered=time.monotonic() - began)


@case
def fixed_group_loses_a_node(acc):
    with Cluster(acc) as cluster:
        start(cluster, "3")
        began = time.monotonic()
        cluster.node("kill", 1)
        ends_with(cluster, {75}, [0, 2], NODE_TIMEOUT + ROOM)
        report("power loss, fixed number of nodes: all end", ended=time.monotonic() - began)
        nothing_left(cluster)


@case
def spare_is_promoted(acc):
    with Cluster(acc, 4) as cluster:
        for index in range(4):
            cluster.launch(index, *flags("3", "--max-restarts", "3"), script="exec sleep 1000")
        cluster.until("three of four run", lambda: cluster.is_whole(3))
        victim = next(i for i in (1, 2, 3) if cluster.workers_on(i))
        began = time.monotonic()
        cluster.node("kill", victim)
        cluster.until("the spare is in", lambda: cluster.is_whole_on({0, 1, 2, 3} - {victim}))
        report("a spare takes the place", recovered=time.monotonic() - began)


@case
def asked_to_end(acc):
    for index in (1, 0):
        with Cluster(acc) as cluster:
            start(cluster, "3")
            began = time.monotonic()
            send(cluster.agent_pids(index)[0], signal.SIGTERM)
            ends_with(cluster, {143})
            report(f"SIGTERM to node {index} of a fixed group", ended=time.monotonic() - began)
            nothing_left(cluster)


@case
def all_asked_to_end(acc):
    """As by scancel: one exit code on all, in whatever order the signal arrives, and also where the others could go on."""
    for nnodes, order in [("3", (2, 1, 0)), ("3", (0, 1, 2)), ("1:3", (0, 2, 1))]:
        with Cluster(acc) as cluster:
            start(cluster, nnodes, "--max-restarts", "3")
            for index in order:
                send(cluster.agent_pids(index)[0], signal.SIGTERM)
            report(f"SIGTERM to all nodes of {nnodes}", ended=ends_with(cluster, {143}))
            nothing_left(cluster)


def strangers_are_refused(acc, launch):
    with Cluster(acc) as cluster:
        for index in range(2):
            launch(cluster, index)
        cluster.until("two nodes run", lambda: cluster.is_whole(2))
        env = next(iter(cluster.workers().values()))
        asked = [cluster.knock(i, env["MASTER_ADDR"], env["MASTER_PORT"]) for i in range(3)]
        assert asked == ["served", "served", "refused"], asked
        # A node that comes back does not count as lost.
        send(cluster.agent_pids(1)[0], signal.SIGKILL)
        cluster.until("its worker is gone", lambda: not cluster.workers_on(1))
        launch(cluster, 1)
        cluster.until("two nodes again", lambda: cluster.is_whole(2))
        env = next(iter(cluster.workers().values()))
        asked = [cluster.knock(i, env["MASTER_ADDR"], env["MASTER_PORT"]) for i in range(3)]
        assert asked == ["served", "served", "refused"], asked
        report("a stranger is refused by the workers' store")


@case
def stranger_and_c10d(acc):
    words = flags("1:2", "--max-restarts", "3")
    strangers_are_refused(acc, lambda cluster, index: cluster.launch(index, *words, script="exec sleep 1000"))


@case
def stranger_and_static(acc):
    def launch(cluster, index):
        cluster.launch(index, "--nnodes", "2", "--node-rank", str(index), "--master-addr", "node0", "--master-port",
                       "29500", "--nproc-per-node", "1", "--max-restarts", "3", "--shutdown-timeout", "2",
                       script="exec sleep 1000")

    strangers_are_refused(acc, launch)


def new_address_is_served(acc, launch):
    with Cluster(acc, 2) as cluster:
        for index in range(2):
            launch(cluster, index)
        cluster.until("two nodes run", lambda: cluster.is_whole(2))
        env = environment_of(cluster.workers_on(0)[0])
        store = next(index for index in range(2) if environment_of(cluster.workers_on(index)[0])["GROUP_RANK"] == "0")
        source = f"10.77.0.9{1 - store}"
        cluster.add_address(1 - store, source + "/24")
        for _ in range(2):
            assert cluster.knock(1 - store, env["MASTER_ADDR"], env["MASTER_PORT"], source) == "refused"
        assert cluster.output(store).count(f"a connection from {source} ") == 1, cluster.output(store)
        # The next attempt knows the address, wherever its store is.
        before = set(cluster.workers())
        send(cluster.workers_on(store)[0], signal.SIGKILL)
        cluster.until("two nodes again", lambda: (group := cluster.group(2)) and not before & set(group))
        env = environment_of(cluster.workers_on(store)[0])
        assert cluster.knock(1 - store, env["MASTER_ADDR"], env["MASTER_PORT"], source) == "served", cluster.output(store)
        report("a node's new address is known after a restart")


@case
def new_address_and_c10d(acc):
    words = flags("2", "--max-restarts", "3")
    new_address_is_served(acc, lambda cluster, index: cluster.launch(index, *words, script="exec sleep 1000"))


@case
def new_address_and_static(acc):
    new_address_is_served(acc, launch_static)


def start_etcd(cluster):
    with open(os.path.join(cluster.folder.name, "etcd.log"), "w") as log:
        cluster.on_node(3, "etcd", "--data-dir", os.path.join(cluster.folder.name, "etcd"), "--listen-client-urls",
                        "http://10.77.0.13:2379", "--advertise-client-urls", "http://node3:2379", stdout=log, stderr=log)


@case
def host_killed_with_etcd(acc):
    if shutil.which("etcd") is None:
        skip("no etcd")
    with Cluster(acc, 4) as cluster:
        start_etcd(cluster)
        for index in range(3):
            cluster.launch(index, *etcd_flags("2:3", "node3:2379"), script="exec sleep 1000")
        took = cluster.until("all nodes have met", lambda: cluster.is_whole(3))
        report("etcd: three nodes meet", met=took)
        # Kills each node in turn, so that the host is among them.
        for index in range(3):
            began = time.monotonic()
            cluster.node("kill", index)
            cluster.until("two nodes go on", lambda: cluster.is_whole(2), 4 * NODE_TIMEOUT + ROOM)
            report(f"etcd: power loss of node {index}", recovered=time.monotonic() - began)
            cluster.node("start", index)
            cluster.agents[index].wait()
            cluster.launch(index, *etcd_flags("2:3", "node3:2379"), script="exec sleep 1000")
            cluster.until("three again", lambda: cluster.is_whole(3))
        for index in range(3):
            for pid in cluster.agent_pids(index)[:1]:
                send(pid, signal.SIGTERM)
        cluster.until("all agents have ended", lambda: all(a.poll() is not None for a in cluster.agents.values()))
        # The id is free again at once.
        for index in range(2):
            cluster.launch(index, *etcd_flags("2", "node3:2379"), script="exec true")
        report("etcd: the id is used again", ended=ends_with(cluster, {0}, range(2)))


@case
def host_of_etcd_is_waited_for(acc):
    if shutil.which("etcd") is None:
        skip("no etcd")
    with Cluster(acc, 4) as cluster:
        start_etcd(cluster)
        for index in range(2):
            cluster.launch(index, *etcd_flags("2", "node3:2379"), "--max-restarts", "3", script="exec sleep 1000")
        cluster.until("both run", lambda: cluster.is_whole(2))
        # Each node is lost once, so the host too, and another machine replaces it.
        cluster.node("kill", 0)
        cluster.launch(2, *etcd_flags("2", "node3:2379"), "--max-restarts", "3", script="exec sleep 1000")
        cluster.until("1 and 2 run", lambda: cluster.is_whole_on({1, 2}), 4 * NODE_TIMEOUT + ROOM)
        cluster.node("kill", 1)
        cluster.node("start", 0)
        cluster.agents[0].wait()
        cluster.launch(0, *etcd_flags("2", "node3:2379"), "--max-restarts", "3", script="exec sleep 1000")
        cluster.until("0 and 2 run", lambda: cluster.is_whole_on({0, 2}), 4 * NODE_TIMEOUT + ROOM)


class SplitWatch:
    """Samples the workers, and records when two groups are alive for longer than the nodes' timeouts."""

    LIMIT = NODE_TIMEOUT + SHUTDOWN_TIMEOUT + 3.0

    def __init__(self, cluster):
        self.cluster = cluster
        self.away = set()  # nodes that are frozen, so that nobody can stop their workers
        self.split = None
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def groups(self):
        groups = {}
        for index in set(range(self.cluster.count)) - self.away:
            for pid in self.cluster.workers_on(index):
                env = environment_of(pid)
                if "MASTER_ADDR" in env and "MASTER_PORT" in env:
                    groups.setdefault(f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}", set()).add(index)
        return groups

    def watch(self):
        try:
            self.compare_groups()
        except Exception as error:  # whoever checks must not take silence for one group
            self.split = f"nobody has watched the groups since: {error!r}"

    def compare_groups(self):
        since, away = None, set()
        while not self.done.wait(0.2):
            groups = self.groups()
            # A node that is back has as much time as any other to find the group.
            if len(groups) < 2 or self.away != away:
                since, away = None, set(self.away)
            elif since is None:
                since = time.monotonic()
            elif time.monotonic() - since > self.LIMIT:
                self.split = self.split or f"two groups for more than {self.LIMIT:g} s: {groups}"

    def check(self):
        assert self.split is None, self.split


def launch_range(cluster, index):
    cluster.launch(index, *flags("1:3", "--max-restarts", MANY), script="exec sleep 1000")


# Faults that end no agent; and those that end one, which is then started again, as by a scheduler.
BLOWS = ["worker", "cut", "freeze", "isolate", "suspend"]
LOSSES = ["agent", "crash", "kill"]
# A group that can be smaller goes on without a node that is asked to end, and with it when it is back, at once or later.
DEPARTURES = ["leave", "scale"]


def signal_all(pids, number):
    """Those of them that have not ended."""
    return {pid for pid in pids if send(pid, number)}


class RandomFaults:
    """One fault after the other in a job of three nodes. After each they form one group again, and no agent has ended but one
    that was killed or asked; meanwhile the job never splits. Each fault lasts up to `longest` seconds."""

    def __init__(self, cluster, watch, choices, launch, kinds, longest=6.0):
        self.cluster, self.watch, self.choices, self.launch = cluster, watch, choices, launch
        self.kinds, self.longest = kinds, longest
        self.number = 0

    def begin(self):
        for index in range(3):
            self.launch(self.cluster, index)
        self.cluster.until("all nodes have met", lambda: self.cluster.is_whole(3))

    def next(self):
        """The next fault and its node."""
        fault, index = self.choices.choice(self.kinds), self.choices.randrange(3)
        end = self.strike(fault, index)
        if fault == "scale":
            self.cluster.until(f"two nodes go on after {self.text(fault, index)}",
                               lambda: self.cluster.agents[index].poll() == 143 and self.cluster.is_whole(2), 90)
        began = time.monotonic()
        time.sleep(self.choices.uniform(0, self.longest))  # the fault itself lasts so long
        end()
        self.settle(fault, index)
        report(self.text(fault, index), recovered=time.monotonic() - began)
        self.number += 1
        return fault, index

    def end(self):
        for i in range(3):
            for pid in self.cluster.agent_pids(i)[:1]:
                send(pid, signal.SIGTERM)
        self.cluster.until("all agents have ended", lambda: all(a.poll() is not None for a in self.cluster.agents.values()), 30)
        nothing_left(self.cluster)

    def text(self, fault, index):
        return f"fault {self.number}: {fault} of node {index}"

    def strike(self, fault, index):
        """Does it, and returns what ends it."""
        cluster, choices = self.cluster, self.choices
        other = str((index + choices.randrange(1, 3)) % 3)
        if fault == "worker":
            signal_all(cluster.workers_on(index)[:1], signal.SIGKILL)
            return lambda: None
        if fault == "agent":
            signal_all(cluster.agent_pids(index)[: choices.randrange(1, 3)], signal.SIGKILL)
            return lambda: None
        if fault == "hang":  # of a rank, which a job with --hang-timeout ends
            hung = signal_all(cluster.workers_on(index)[:1], signal.SIGSTOP)
            return lambda: cluster.until("the rank that hangs is ended", lambda: not hung & set(cluster.workers()), 60)
        if fault in DEPARTURES:
            signal_all(cluster.agent_pids(index)[:1], signal.SIGTERM)
            return (lambda: self.launch(cluster, index)) if fault == "scale" else lambda: None
        if fault == "suspend":
            # The agent itself: nothing would continue a supervisor without a shell, so it does not stop.
            suspended = signal_all(cluster.agent_pids(index)[2:], signal.SIGTSTP)
            return lambda: signal_all(suspended, signal.SIGCONT)
        if fault == "freeze":
            self.watch.away.add(index)
        words = [other] if fault == "isolate" else []
        cluster.node(fault, index, *words)

        def undo():
            cluster.node({"cut": "heal", "freeze": "thaw", "isolate": "join"}.get(fault, "start"), index, *words)
            self.watch.away.discard(index)
        return undo

    def settle(self, fault, index):
        def settled():
            self.watch.check()
            for i, agent in self.cluster.agents.items():
                if agent.poll() is not None:
                    killed = i == index and (fault in LOSSES or (fault == "leave" and agent.returncode == 143))
                    assert killed, f"{self.text(fault, index)} ended node {i}:\n{self.cluster.output(i)}"
                    self.launch(self.cluster, i)
            return self.cluster.is_whole(3)

        self.cluster.until(f"one group after {self.text(fault, index)}", settled, 90)


def random_faults(acc, count, seed=7, launch=launch_range):
    kinds = [*BLOWS, *LOSSES, *(DEPARTURES if launch is launch_range else [])]
    with Cluster(acc) as cluster, SplitWatch(cluster) as watch:
        faults = RandomFaults(cluster, watch, random.Random(seed), launch, kinds)
        faults.begin()
        for _ in range(count):
            faults.next()
        faults.end()


@case
def five_random_faults(acc):
    random_faults(acc, 5, int(os.environ.get("ACC_DELAYS_SEED", "7")))


def main():
    if sys.argv[2:3] == ["--random"]:
        end_in_order()
        kinds = {"range": launch_range, "fixed": launch_fixed, "static": launch_static}
        seed, kind = [*sys.argv[4:6], *["7", "range"][len(sys.argv[4:6]):]]
        random_faults(os.path.abspath(sys.argv[1]), int(sys.argv[3]), int(seed), kinds[kind])
        return
    run_cases()


if __name__ == "__main__":
    main()
