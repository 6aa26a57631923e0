# SPDX-License-Identifier: Apache-2.0
"""Which machine a node is, and where others find it: networks and names as clusters have them. Usage: see run_cases()."""

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
