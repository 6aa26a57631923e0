# SPDX-License-Identifier: Apache-2.0
"""Attacks of strangers on a job: programs on a host that is not one of its nodes. Usage: see run_cases().

Memory is asserted, unless the environment says that sanitizers are in it (ACC_SANITIZE); times are printed.
"""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

from cluster import Cluster, case, run_cases

MAX_MEMORY = 64 * 1024  # KiB
STRANGER = 2  # the node that does not take part
PORT = 29400

# Floods a store in the way given by an argument. Ends when all is sent, or the other side has closed.
FLOOD = """
import socket, struct, sys, threading, time
kind, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = lambda t: struct.pack("<Q", len(t)) + t
count = lambda n: struct.pack("<Q", n)
open_ones = []

def connect():
    one = socket.create_connection((host, port), 10)
    one.settimeout(30)
    open_ones.append(one)
    return one

def send(one, *pieces):
    try:
        for piece in pieces:
            one.sendall(piece)
    except OSError:
        pass

def at_once(number, action):
    threads = [threading.Thread(target=action) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

HELLO = bytes.fromhex("00cef7853c")
MIB = b"x" * (1 << 20)
if kind == "unfinished set":
    send(connect(), HELLO + b"\\1" + text(b"/k") + count(900 << 20), *[MIB] * 802)
elif kind == "long waits":
    keys = b"".join(text(b"/missing/%d" % i) for i in range(200_000))
    at_once(60, lambda: send(connect(), HELLO + b"\\6" + count(200_000), keys))
elif kind == "silent connections":
    at_once(400, lambda: send(connect(), *[b"\\0" * (1 << 16)] * 64))
elif kind == "long messages after the hello":
    hello = b'{"message": "hello", "run_id": "job7", "node": {"host": "x"}}\\n'
    at_once(400, lambda: send(connect(), hello, *[b"x" * (1 << 16)] * 64))
elif kind == "many keys":
    one = connect()
    send(one, HELLO, *[b"\\1" + text(b"/%d" % i) + text(b"x" * 1000) for i in range(200_000)])
"""


class Watch:
    """Samples the memory of a node's agent, and how long a node of the job waits for an answer of the store."""

    def __init__(self, cluster, address, port):
        self.cluster, self.address, self.port = cluster, address, port
        self.memory, self.slowest = 0, 0.0
        self.done = threading.Event()

    def __enter__(self):
        self.stop = pathlib.Path(self.cluster.folder.name) / f"stop{time.monotonic_ns()}"
        self.asking = self.cluster.on_node(1, sys.executable, "-c", ASK, self.address, str(self.port), str(self.stop),
                                           stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.stop.touch()
        self.slowest = float(self.asking.communicate(timeout=60)[0].split()[-1])

    def sample(self):
        pids = self.cluster.agent_pids(0)
        while not self.done.wait(0.02):
            self.memory = max([self.memory] + [resident(pid) for pid in pids])


# Sends requests to the store until a file exists, and prints the time of the slowest reply.
ASK = """
import os, socket, sys, time
slowest = 0.0
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as one:
    one.sendall(bytes.fromhex("00cef7853c"))
    while not os.path.exists(sys.argv[3]):
        began = time.monotonic()
        one.sendall(b"\\7")
        got = b""
        while len(got) < 8:
            got += one.recv(8 - len(got)) or sys.exit("closed")
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.005)
print(slowest)
"""


# Sends lines of JSON to the node port of HOST, and prints the replies until the connection is closed, or for 5 s.
SAY = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as one:
    try:
        one.sendall("".join(line + "\\n" for line in sys.argv[3:]).encode())
        for line in one.makefile():
            if "beat" not in line:
                print(line, end="")
    except OSError:
        pass
"""

# Claims to each of PORTS of HOST that the job is hosted here, at ADDRESS; before, it writes that into the store at STORE, if
# that is one. Prints whether any node has connected.
CLAIM = """
import json, socket, struct, sys
host, address, store, ports = sys.argv[1], sys.argv[2], int(sys.argv[3]), [int(port) for port in sys.argv[4:]]
text = lambda t: struct.pack("<Q", len(t)) + t
listener = socket.create_server((address, 0))
own_port = listener.getsockname()[1]
if store:
    with socket.create_connection((host, store), 5) as one:
        value = b"%s:%d" % (address.encode(), own_port)
        one.sendall(bytes.fromhex("00cef7853c") + b"\\1" + text(b"/acc/running/job7") + text(value) + b"\\7")
        one.recv(8)
hello = {"message": "hello", "is_hub": True, "node": {"addr": address, "link_port": own_port}}
for run_id in ["job7", "none"]:
    for port in ports:
        try:
            with socket.create_connection((host, port), 5) as one:
                one.sendall(json.dumps({**hello, "run_id": run_id}).encode() + b"\\n")
                one.recv(4096)
        except OSError:
            pass
listener.settimeout(3)
try:
    listener.accept()
    print("obeyed")
except TimeoutError:
    print("ignored")
"""


def hello(**fields):
    return json.dumps({"message": "hello", "run_id": "job7", "node": {"host": "stranger", "addr": "10.77.0.12"}, **fields})


def node_ports(cluster, index, *others):
    """Ports on which the agent of a node listens, except `others`: the node port and that of the workers' store."""
    ports = set()
    for pid in cluster.agent_pids(index):
        inodes = set()
        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                inodes.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
        for table in ("tcp", "tcp6"):
            for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return sorted(ports - set(others))


def ask_stranger(cluster, *words):
    asked = cluster.on_node(STRANGER, sys.executable, "-c", *words, stdout=subprocess.PIPE)
    return asked.communicate(timeout=60)[0]


def resident(pid):
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def launch(cluster, index, nnodes="2", conf="", env=None):
    cluster.launch(index, "--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"node0:{PORT}", "--rdzv-id",
                   "job7", "--rdzv-conf", "last_call_timeout=2,join_timeout=60" + conf, "--max-restarts", "3",
                   "--shutdown-timeout", "2", script="exec sleep 1000", env=env)


def start(cluster, nnodes="2", conf="", env=None):
    for index in range(2):
        launch(cluster, index, nnodes, conf, env)
    cluster.until("two nodes run", lambda: cluster.is_whole(2))


def start_static(cluster):
    for index in range(2):
        cluster.launch(index, "--nnodes", "2", "--node-rank", str(index), "--master-addr", "node0", "--master-port",
                       str(PORT), "--max-restarts", "3", "--shutdown-timeout", "2", script="exec sleep 1000")
    cluster.until("two nodes run", lambda: cluster.is_whole(2))


def check(cluster, watch, what, took):
    print(f"{what:<24}{took:6.2f} s; agent {watch.memory / 1024:6.1f} MiB; slowest answer {watch.slowest * 1000:7.1f} ms", flush=True)
    assert cluster.is_whole(2), cluster.output(0)
    if not os.environ.get("ACC_SANITIZE"):
        assert watch.memory < MAX_MEMORY, f"{what}: {watch.memory} KiB"


@case
def strangers_cannot_fill_the_store(acc):
    with Cluster(acc) as cluster:
        start(cluster)
        for kind in ["unfinished set", "long waits", "silent connections", "many keys"]:
            began = time.monotonic()
            with Watch(cluster, "node0", PORT) as watch:
                flood = cluster.on_node(STRANGER, sys.executable, "-c", FLOOD, kind, "node0", str(PORT))
                flood.wait(timeout=100)
            check(cluster, watch, kind, time.monotonic() - began)


@case
def strangers_cannot_fill_the_links(acc):
    with Cluster(acc) as cluster:
        start(cluster, "1:3")  # a node could still come from anywhere
        port = node_port(cluster)
        for kind in ["silent connections", "long messages after the hello"]:
            began = time.monotonic()
            with Watch(cluster, "node0", PORT) as watch:
                flood = cluster.on_node(STRANGER, sys.executable, "-c", FLOOD, kind, "node0", str(port))
                flood.wait(timeout=100)
            check(cluster, watch, kind, time.monotonic() - began)


def node_port(cluster):
    """The node port of node 0: the one that answers the hello of another job with a refusal."""
    for port in node_ports(cluster, 0, PORT):
        if "another job" in ask_stranger(cluster, SAY, "node0", str(port), hello(run_id="job8")):
            return port
    raise AssertionError("no node port")


@case
def a_stranger_takes_no_node_over(acc):
    for started, store in [(start, PORT), (lambda c: start(c, "1:3"), PORT), (start_static, 0)]:
        with Cluster(acc) as cluster:
            started(cluster)
            before = set(cluster.workers())
            for index in range(2):
                ports = [str(port) for port in node_ports(cluster, index, PORT)]
                said = ask_stranger(cluster, CLAIM, f"node{index}", "10.77.0.12", str(store if index == 0 else 0), *ports)
                assert said.strip() == "ignored", cluster.output(index)
            assert set(cluster.workers()) == before, cluster.output(0)


@case
def a_stranger_ends_no_round(acc):
    failed = '{"message": "failed", "round": 1, "failure": {"again": true, "text": "stranger"}}'
    for nnodes in ["2", "1:2"]:
        with Cluster(acc) as cluster:
            start(cluster, nnodes)
            before, port = set(cluster.workers()), str(node_port(cluster))
            for message in ['{"message": "join"}', '{"message": "leave"}', failed, '{"message": "done", "round": 1}']:
                heard = ask_stranger(cluster, SAY, "node0", port, hello(), message)
                assert json.loads(heard.splitlines()[0]) == {"message": "full"}, heard
                # Before the hello all other messages are ignored.
                assert ask_stranger(cluster, SAY, "node0", port, message) == ""
            assert set(cluster.workers()) == before, cluster.output(0)


@case
def a_stranger_ends_no_job(acc):
    with Cluster(acc) as cluster:
        start(cluster, "1:3")  # a node could still come from anywhere
        before, port = set(cluster.workers()), str(node_port(cluster))
        messages = ['{"message": "end_notice", "signal": 10, "host": "x"}', '{"message": "end_notice", "signal": 15}',
                    '{"message": "done", "round": 1}', '{"message": "stop_job", "exit_code": 143}',
                    '{"message": "stop_job", "exit_code": 0}']
        # At the last one, which no acc sends, it is closed: all others have been read.
        ask_stranger(cluster, SAY, "node0", port, hello(), *messages, '{"message": "unknown"}')
        assert set(cluster.workers()) == before, cluster.output(0)
        for index in range(2):
            assert "the job is to end" not in cluster.output(index), cluster.output(index)


@case
def a_late_node_from_elsewhere_waits_for_a_place(acc):
    with Cluster(acc) as cluster:
        start(cluster)
        before = set(cluster.workers())
        launch(cluster, STRANGER)
        cluster.until("it is a spare", lambda: "this node is a spare" in cluster.output(STRANGER))
        assert set(cluster.workers()) == before
        cluster.node("crash", 1)
        cluster.until("it takes part", lambda: cluster.is_whole_on({0, STRANGER}))


SECRET = "0123456789abcdef0123456789abcdef"


@case
def nodes_prove_a_secret(acc):
    with Cluster(acc) as cluster:
        file = pathlib.Path(cluster.folder.name) / "secret"
        file.write_text(SECRET + "\n")
        other = pathlib.Path(cluster.folder.name) / "other"
        other.write_text("another" + SECRET)
        start(cluster, "1:3", conf=f",secret_file={file}")
        before, port = set(cluster.workers()), str(node_port_of_secret(cluster))
        # A node without the secret is refused, although nodes may still come from anywhere.
        heard = ask_stranger(cluster, SAY, "node0", port, hello(), '{"message": "join"}')
        assert "share a secret" in json.loads(heard.splitlines()[0])["over"]["text"], heard
        for conf, reason in [("", "the nodes of this job share a secret"),
                             (f",secret_file={other}", "has not proven that it knows the secret of this node")]:
            launch(cluster, STRANGER, "1:3", conf)
            cluster.until("it has ended", lambda: cluster.agents[STRANGER].poll() is not None)
            assert cluster.agents[STRANGER].returncode == 2, cluster.output(STRANGER)
            assert reason in cluster.output(STRANGER), cluster.output(STRANGER)
        assert set(cluster.workers()) == before, cluster.output(0)
        launch(cluster, STRANGER, "1:3", env={"ACC_JOB_SECRET": SECRET})
        cluster.until("who knows it is in", lambda: cluster.is_whole(3))
        for pid, env in cluster.workers().items():
            assert SECRET not in "".join(env.values()), pid
        for index in range(3):
            assert SECRET not in cluster.output(index)
            for pid in cluster.agent_pids(index):
                assert SECRET.encode() not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        # When the host is lost, the nodes find each other again, and prove the secret again.
        cluster.node("crash", 0)
        cluster.until("two nodes go on", lambda: cluster.is_whole(2))


def node_port_of_secret(cluster):
    for port in node_ports(cluster, 0, PORT):
        if '"proof"' in ask_stranger(cluster, SAY, "node0", str(port), '{"message": "challenge", "nonce": "x"}'):
            return port
    raise AssertionError("no node port")


if __name__ == "__main__":
    run_cases()
