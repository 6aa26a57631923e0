# SPDX-License-Identifier: Apache-2.0
"""Which machine a node is, and where others find it: networks and names as clusters have them. Usage: see run_cases()."""

import pathlib
import subprocess

from cluster import Cluster, case, run_cases

WORKER = "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR; sleep 1"
CONF = "last_call_timeout=2,join_timeout=60"


def c10d(nnodes, endpoint, conf=CONF):
    return ["--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "job7", "--rdzv-conf", conf]


def told(cluster):
    """What the workers said, once all nodes have ended well."""
    cluster.until("all nodes have ended", lambda: all(agent.poll() is not None for agent in cluster.agents.values()), 60)
    outputs = [cluster.output(index) for index in cluster.agents]
    assert all(agent.returncode == 0 for agent in cluster.agents.values()), outputs
    return sorted(line for output in outputs for line in output.splitlines() if line.startswith("rank "))


def add_addresses(cluster, index, count, device):
    network = f"acc-{cluster.tag}-n{index}"
    lines = "".join(f"addr add 10.{96 + i // 65536}.{i // 256 % 256}.{i % 256}/32 dev {device}\n" for i in range(count))
    subprocess.run(["ip", "-n", network, "-batch", "-"], input=lines, text=True, check=True)


def add_interface(cluster, index, name, state):
    """One of a pair, of which the other end is up."""
    network = f"acc-{cluster.tag}-n{index}"
    subprocess.run(["ip", "-n", network, "link", "add", name, "type", "veth", "peer", "name", "end"], check=True)
    for end, its_state in [("end", "up"), (name, state)]:
        subprocess.run(["ip", "-n", network, "link", "set", end, its_state], check=True)


@case
def nodes_without_a_default_route_meet_in_a_file(acc):
    """Their process ids are alike, as in containers. One has a network of containers, too, and its name stands for
    loopback alone, as on Debian."""
    with Cluster(acc, 2) as cluster:
        add_interface(cluster, 0, "docker0", "up")
        subprocess.run(["ip", "-n", f"acc-{cluster.tag}-n0", "addr", "add", "10.0.0.1/24", "dev", "docker0"], check=True)
        hosts = pathlib.Path(f"/etc/netns/acc-{cluster.tag}-n0/hosts")
        hosts.write_text(hosts.read_text().replace("10.77.0.10", "127.0.1.1"))
        for index in range(2):
            cluster.launch(index, *c10d("1:2", str(pathlib.Path(cluster.folder.name) / "job7"), CONF + ",store_type=file"),
                           script=WORKER)
        assert told(cluster) == [f"rank {rank} of 2 at 10.77.0.10" for rank in range(2)], told(cluster)


@case
def a_name_that_begins_alike_is_another_machine(acc):
    with Cluster(acc, 2) as cluster:
        for index in range(2):
            cluster.add_name(index, "10.77.0.10", "node1.siteb")
            cluster.launch(index, *c10d("1:2", "node1.siteb:29400"), script=WORKER)
        assert [line.split(" at ")[0] for line in told(cluster)] == ["rank 0 of 2", "rank 1 of 2"], told(cluster)
        note = "acc: node1.siteb is 10.77.0.10, which is not an address of this machine, node1: another machine hosts the job; "
        assert note in cluster.output(1) and "which is not an address" not in cluster.output(0), cluster.output(1)


@case
def a_pod_hosts_before_its_name_is_its_own(acc):
    """The resolver still has the address of the pod that this one replaces; /etc/hosts has the pod's full name."""
    with Cluster(acc, 2) as cluster:
        cluster.add_name(0, "10.77.0.10", "train-0.train.default.svc.cluster.local train-0")
        cluster.add_name(0, "10.77.0.99", "train-0.train")
        cluster.add_name(1, "10.77.0.10", "train-0.train")
        host = cluster.on_node(0, "unshare", "--uts", "sh", "-c", 'hostname train-0; exec "$@"', "sh", acc, "run",
                               *c10d("2", "train-0.train:29400"), "--no-python", "/bin/sh", "-c", WORKER, stdout=subprocess.PIPE)
        cluster.launch(1, *c10d("2", "train-0.train:29400"), script=WORKER)
        said = told(cluster) + [host.communicate(timeout=60)[0].strip()]
        assert sorted(line.split(" at ")[0] for line in said) == ["rank 0 of 2", "rank 1 of 2"], said


@case
def machines_with_thousands_of_addresses_take_part(acc):
    """On one interface that is up, and on one that is down, whose addresses are of services and nobody's own."""
    with Cluster(acc, 2) as cluster:
        add_addresses(cluster, 1, 6000, "eth0")
        add_interface(cluster, 0, "kube-ipvs0", "down")
        add_addresses(cluster, 0, 6000, "kube-ipvs0")
        for index in range(2):
            cluster.add_name(index, "10.77.0.10", "job7")
            cluster.launch(index, *c10d("2", "job7:29400"), script=WORKER)
        assert [line.split(" at ")[0] for line in told(cluster)] == ["rank 0 of 2", "rank 1 of 2"], told(cluster)


if __name__ == "__main__":
    run_cases()
