# SPDX-License-Identifier: Apache-2.0
"""What strangers can do to a job: programs on a host that is not one of its nodes. Usage: see run_cases().

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

# Floods a store; an argument says how. Ends when all is sent, or the other side has closed.
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
elif kind == "long messages of greeted links":
    hello = b'{"message": "hello", "run_id": "job7", "node": {"host": "x"}}\n'
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


# Asks the store again and again until a file exists, and says how long the slowest answer took.
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


# Says a line of JSON on a link of HOST PORT, and prints what it hears until that is closed, or 5 s have passed.
SAY = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as one:
    try:
        one.sendall("".join(line + "\\n" for line in sys.argv[3:]).encode())
        while heard := one.recv(4096):
            print(heard.decode(), end="")
    except OSError:
        pass
"""

def hello(**fields):
    return json.dumps({"message": "hello", "run_id": "job7", "node": {"host": "stranger", "addr": "10.77.0.12"}, **fields})


def link_ports(cluster, index, *others):
    """Ports on which the agent of a node listens, but for `others`: those of links and of the workers' store."""
    found = set()
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
                    found.add(int(fields[1].rsplit(":", 1)[1], 16))
    return sorted(found - set(others))


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
        port = link_port(cluster)
        for kind in ["silent connections", "long messages of greeted links"]:
            began = time.monotonic()
            with Watch(cluster, "node0", PORT) as watch:
                flood = cluster.on_node(STRANGER, sys.executable, "-c", FLOOD, kind, "node0", str(port))
                flood.wait(timeout=100)
            check(cluster, watch, kind, time.monotonic() - began)


def link_port(cluster):
    """Where nodes link to node 0: the port that answers a hello of another job with why it refuses it."""
    for port in link_ports(cluster, 0, PORT):
        if "another job" in ask_stranger(cluster, SAY, "node0", str(port), hello(run_id="job8")):
            return port
    raise AssertionError("no port for links")


if __name__ == "__main__":
    run_cases()
