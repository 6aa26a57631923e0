# SPDX-License-Identifier: Apache-2.0
"""The checks of nodes before their workers start. Usage: see run_cases() of cluster.py."""

import json
import os
import pathlib
import signal
import subprocess

from cluster import Cluster, case, run_cases

LIMIT = 60.0


class Nodes(Cluster):
    """Nodes with two GPUs each, by a driver that obeys variables; a worker leaves a file `started` behind."""

    def __enter__(self):
        super().__enter__()
        self.started = pathlib.Path(self.folder.name) / "started"
        return self

    def begin(self, *flags, env=()):
        """Starts a job with --preflight on all nodes, each with its own variables besides the common ones."""
        library = os.path.join(os.path.dirname(os.path.dirname(self.acc)), "fake_nvml")
        for index in range(self.count):
            variables = {"LD_LIBRARY_PATH": library, "FAKE_NVML_GPUS": "2", **dict(env).get(index, {})}
            self.launch(index, "--preflight", "--nnodes", str(self.count), "--node-rank", str(index), "--master-addr",
                        "node0", "--master-port", "29500", *flags, script=f"echo $RANK >> {self.started}", env=variables)

    def end(self):
        """Waits for the end of the job, and returns the output of node 0."""
        self.until("all agents have ended", lambda: all(one.poll() is not None for one in self.agents.values()), LIMIT)
        return self.output(0)

    def preflight(self, *flags, env=()):
        self.begin(*flags, env=env)
        return self.end()

    def refuses(self, *texts, **options):
        """No worker of a job has started, each node says why, and node 0 what to do."""
        output = self.preflight(**options)
        assert not self.started.exists(), output
        for index in range(self.count):
            assert self.agents[index].returncode == 1, f"node {index}: {self.agents[index].returncode}\n{self.output(index)}"
            for text in texts:
                assert text in self.output(index), f"node {index} does not say '{text}':\n{self.output(index)}"
        for text in texts:
            line = next(one for one in output.splitlines() if one.startswith("error: ") and text in one)
            assert line.endswith(")"), line
        print(output)
        return output


@case
def healthy_nodes_are_started(acc):
    with Nodes(acc) as nodes:
        events = pathlib.Path(nodes.folder.name) / "events"
        output = nodes.preflight("--event-log", str(events))
        assert sorted(nodes.started.read_text().split()) == ["0", "1", "2"], output
        assert "preflight of 3 nodes" in output and "error:" not in output, output
        assert all("preflight of" not in nodes.output(index) for index in (1, 2))
        reports = [json.loads(line) for line in events.read_text().splitlines()]
        report = next(one["report"] for one in reports if one["event"] == "preflight" and one["report"])
        assert report["seconds"] < 20 and all(one["error"] == "" for one in report["connections"]), report
        print(output)


@case
def a_blocked_pair_is_named(acc):
    with Nodes(acc) as nodes:
        nodes.node("isolate", 1, "2")
        nodes.refuses("node1 and node2 cannot connect to each other: no answer ")


@case
def a_direction_that_is_blocked_is_named(acc):
    with Nodes(acc) as nodes:
        # Node 2 refuses new connections of node 1 at once, and may open its own.
        rules = ("add table ip one; add chain ip one in { type filter hook input priority 0; }; "
                 "add rule ip one in ip saddr 10.77.0.11 tcp flags & (syn|ack) == syn reject with tcp reset")
        subprocess.run(["ip", "netns", "exec", f"acc-{nodes.tag}-n2", "nft", rules], check=True)
        nodes.refuses("node1 cannot connect to node2: Connection refused")


@case
def a_slow_node_is_named(acc):
    with Nodes(acc) as nodes:
        nodes.node("rate", 1, "10000")
        nodes.refuses("node1: receives at ")


@case
def sick_devices_are_named(acc):
    with Nodes(acc) as nodes:
        output = nodes.refuses(
            "node1: GPU 1 (0000:1c:00.0) has 2 uncorrected memory errors", "node2: GPU 0 (0000:1b:00.0) is slowed down",
            "node0: has 1 GPU, others have 2",
            env={0: {"FAKE_NVML_GPUS": "1"}, 1: {"FAKE_NVML_ECC": "1:2", "FAKE_NVML_DRIVER": "535.1"},
                 2: {"FAKE_NVML_SLOWDOWN": "0:128"}}.items())
        assert "node1: has the driver 535.1, others 999.1" in output, output


@case
def a_wrong_clock_is_named(acc):
    with Nodes(acc) as nodes:
        clock = os.path.join(os.path.dirname(os.path.dirname(acc)), "shifted_clock", "libshifted_clock.so")
        output = nodes.preflight(env={2: {"LD_PRELOAD": clock, "SHIFTED_CLOCK": "7"}}.items())
        assert "warning: node2: its clock is 7.0 s ahead of the others" in output, output
        assert "its clock is 7.0 s ahead" in nodes.output(2), nodes.output(2)
        assert nodes.started.exists()


@case
def a_name_for_loopback_is_told(acc):
    with Nodes(acc) as nodes:
        # As Debian's installer writes it.
        hosts = pathlib.Path(f"/etc/netns/acc-{nodes.tag}-n1/hosts")
        hosts.write_text(hosts.read_text().replace("10.77.0.11 node1", "127.0.1.1 node1"))
        output = nodes.preflight()
        assert "warning: node1: its own name 'node1' is 127.0.1.1" in output, output


@case
def nothing_is_left_of_checks_that_are_killed(acc):
    with Nodes(acc) as nodes:
        nodes.begin(env={1: {"FAKE_NVML_HANGS": "1"}}.items())
        # Supervisor, guardian, agent, and the child that asks the driver.
        nodes.until("node 1 asks its driver", lambda: len(nodes.agent_pids(1)) == 4, LIMIT)
        os.kill(nodes.agent_pids(1)[0], signal.SIGKILL)
        nodes.end()
        nodes.until("nothing is left", lambda: not nodes.processes(), 2.0)
        assert not nodes.started.exists()


if __name__ == "__main__":
    run_cases()
