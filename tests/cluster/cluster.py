# SPDX-License-Identifier: Apache-2.0
"""Nodes of a job in network namespaces of one machine, and functions to observe them.

The scripts beside (tests/support/netns_*.sh) make the nodes; a node dies, freezes or loses its cable as a real one
does. Everything that runs is found by an environment variable of the test's own, so an orphan cannot hide.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
WORKERS = SUPPORT.parent / "workers"
SKIPPED = 77
CASES = {}


def skip(reason):
    """Ends the case, which cannot run here."""
    print("skipped:", reason)
    sys.exit(SKIPPED)


def case(function):
    """Registers a test case with the name of the function, which receives the path of `acc`."""
    CASES[function.__name__] = function
    return function


def end_in_order():
    """Whoever is asked to end removes its nodes first, as after Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # by nohup
            signal.signal(number, lambda received, _: sys.exit(128 + received))


def run_cases():
    """The main program of a file of cases. Usage: FILE ACC [CASE ...]; `--list` names them all."""
    end_in_order()
    acc, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    if names == ["--list"]:
        print("\n".join(CASES))
    elif names[:1] == ["--same"]:
        assert list(CASES) == names[1:], f"tests/CMakeLists.txt has not the cases {' '.join(CASES)}"
    else:
        for name in names or CASES:
            CASES[name](acc)


class Cluster:
    """`count` nodes. Use as a context manager, which removes everything at the end."""

    def __init__(self, acc, count=3):
        self.acc, self.count = acc, count
        self.tag = f"t{os.getpid() % 100000}"
        self.mark = f"ACC_TEST_CLUSTER={self.tag}"
        self.folder = tempfile.TemporaryDirectory(prefix="acc-cluster-")
        self.agents = {}
        self.port = 29400

    def __enter__(self):
        try:
            made = self.script("netns_up.sh", str(self.count), self.tag, check=False)
            if made.returncode == SKIPPED:
                skip(made.stderr.strip())
            if made.returncode != 0:
                raise RuntimeError(made.stderr)
        except BaseException:  # an interruption, too
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for agent in self.agents.values():
            if agent.poll() is None:
                agent.kill()
        self.script("netns_down.sh", self.tag)
        for agent in self.agents.values():
            agent.wait()
        for process in self.processes():
            send(process, signal.SIGKILL)
        self.folder.cleanup()

    def script(self, name, *words, check=True):
        return subprocess.run(["bash", SUPPORT / name, *words], check=check, text=True, capture_output=True)

    def node(self, verb, index, *words):
        """Applies `verb` of netns_node.sh to a node: kill, crash, start, freeze, thaw, cut, heal."""
        self.script("netns_node.sh", self.tag, verb, str(index), *words, check=False)

    def launch(self, index, *flags, script="sleep 1000", program=None, env=None):
        """Starts `acc run` on a node, with a shell script or another program; its output goes to a file that output() reads."""
        name = pathlib.Path(self.folder.name) / f"node{index}.{time.monotonic_ns()}.log"
        words = ["bash", SUPPORT / "netns_node.sh", self.tag, "run", str(index), "env", self.mark, self.acc, "run"]
        with open(name, "wb") as log:
            self.agents[index] = subprocess.Popen(
                [*words, *flags, "--no-python", *([program] if program else ["/bin/sh", "-c", script])],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(env or {})}, start_new_session=True)
        self.agents[index].log = name
        return self.agents[index]

    def add_address(self, index, address, *names):
        """Adds an address to a node's network interface, and names for it to the node's /etc/hosts."""
        network = f"acc-{self.tag}-n{index}"
        subprocess.run(["ip", "-n", network, "addr", "add", address, "dev", "eth0", *(["nodad"] if ":" in address else [])],
                       check=True)
        self.add_name(index, address.split("/")[0], *names)

    def add_name(self, index, address, *names):
        with open(f"/etc/netns/acc-{self.tag}-n{index}/hosts", "a") as hosts:
            hosts.writelines(f"{address} {name}\n" for name in names)

    def on_node(self, index, *words, **options):
        """Runs a program on a node, which ends with the node."""
        script = ["bash", SUPPORT / "netns_node.sh", self.tag, "run", str(index), "env", self.mark]
        return subprocess.Popen([*script, *words], stdin=subprocess.DEVNULL, text=True, start_new_session=True, **options)

    def knock(self, index, address, port, source=""):
        """Whether a program on a node is `served` or `refused` by the store at `address`."""
        asked = self.on_node(index, sys.executable, "-c", KNOCK, address, str(port), source, stdout=subprocess.PIPE)
        return asked.communicate(timeout=30)[0].strip()

    def output(self, index):
        return pathlib.Path(self.agents[index].log).read_text(errors="replace")

    def processes(self):
        """The pids of all processes of this cluster, by the mark in their environment."""
        pids = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            if self.mark.encode() in environ_of(entry).split(b"\0"):
                pids.append(int(entry))
        return pids

    def workers(self):
        """The environments of living workers by pid: processes with a rank whose parent has none."""
        environments = {}
        for pid in self.processes():
            env = environment_of(pid)
            if "RANK" in env and "RANK" not in environment_of(parent_of(pid)):
                environments[pid] = env
        return environments

    def agent_pids(self, index):
        """`acc`'s own processes on a node, the supervisor first."""
        pids = []
        for pid in self.processes():
            env = environment_of(pid)
            if "RANK" not in env and same_network(pid, self.init_of(index)) and "acc" in command_of(pid)[:1][0]:
                pids.append(pid)
        return sorted(pids)

    def init_of(self, index):
        text = self.script("netns_node.sh", self.tag, "pid", str(index), check=False).stdout.strip()
        return int(text) if text else 0

    def workers_on(self, index):
        init = self.init_of(index)
        return [pid for pid in self.workers() if same_network(pid, init)]

    def until(self, what, condition, limit=30.0):
        """Waits until `condition()` holds and returns the seconds that took; AssertionError after `limit`."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > limit:
                logs = "\n".join(f"--- node {i}\n{self.output(i)}" for i in self.agents)
                raise AssertionError(f"not within {limit} s: {what}\n{logs}")
            time.sleep(0.01)
        return time.monotonic() - began

    def group(self, world):
        """The environments by pid, as workers() gives them, if `world` workers are alive and all in one group; else {}."""
        environments = self.workers()
        groups = {(e["MASTER_ADDR"], e["MASTER_PORT"], e["WORLD_SIZE"]) for e in environments.values()}
        ranks = {e["RANK"] for e in environments.values()}
        whole = len(environments) == world == len(ranks) and len(groups) == 1 and groups.pop()[2] == str(world)
        return environments if whole else {}

    def is_whole(self, world):
        return bool(self.group(world))

    def is_whole_on(self, nodes):
        """Whether the workers that are alive are one group, one on each of `nodes`, by one look at them."""
        group = self.group(len(nodes))
        inits = [self.init_of(index) for index in nodes]
        return bool(group) and all(sum(same_network(pid, init) for pid in group) == 1 for init in inits)


# Connects to ADDRESS PORT from the address OWN, and prints whether the server serves or closes the connection.
KNOCK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10, (sys.argv[3], 0)) as one:
    try:
        # The first request of torch's clients, and a request for the number of keys.
        one.sendall(bytes.fromhex("00cef7853c07"))
        print("served" if one.recv(8) else "refused")
    except ConnectionError:
        print("refused")
"""


def send(pid, number):
    """Returns False if the process has ended already."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def environ_of(pid):
    """The environment in /proc; empty if the process has ended, or has none. During execve() it is empty for a moment, and so
    is the command line."""
    tries = 0
    try:
        while tries < 20:
            for name in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    text = file.read()
                if text and name == "environ":
                    return text
            os.readlink(f"/proc/{pid}/exe")  # fails for those that have ended, and for the kernel's own
            tries += 1 if text else 0
    except OSError:
        pass
    return b""


def environment_of(pid):
    pairs = (entry.split(b"=", 1) for entry in environ_of(pid).split(b"\0") if b"=" in entry)
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in pairs}


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[1])
    except OSError:
        return 0


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
            return [os.path.basename(words[0])] + words[1:]
    except OSError:
        return [""]


def same_network(one, other):
    try:
        return os.readlink(f"/proc/{one}/ns/net") == os.readlink(f"/proc/{other}/ns/net")
    except OSError:
        return False
