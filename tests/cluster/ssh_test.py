# SPDX-License-Identifier: Apache-2.0
"""Jobs that `acc launch --hosts` starts through a real sshd of the test's own, whose aliases stand for hosts; in the case of
the cut cable the hosts are network namespaces. Usage: see run_cases(); and
ssh_test.py ACC --random COUNT [SEED], which starts one job after the other and does something to each. Delays that are preloaded
(scripts/flakes --delays) are in the hosts' processes, too, and give their seed to the random case among the cases."""

import getpass
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from cluster import WORKERS, Cluster, case, environ_of, parent_of, run_cases, send, skip

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

# Each host must answer within this time; the machine of the test may be slow.
PATIENT = ["--host-timeout", "120"]
PRELOADED = ("LD_PRELOAD", "ACC_DELAYS_SEED", "ACC_DELAYS_PROGRAMS")  # by scripts/flakes
# A program that says that it is asked to end. No shell: its trap would be run by a child, too, that it has just forked.
STOPPABLE = ["--nproc_per_node", "1", "--no_python", sys.executable, "-c", """
import os, signal, sys
for number in signal.SIGINT, signal.SIGTERM:
    signal.signal(number, lambda *_: sys.exit(print("stopped", os.environ["RANK"], flush=True)))
print("begun", flush=True)
while True:
    signal.pause()
"""]
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")


class Sshd:
    """An sshd with throwaway keys, and a client for it: `rsh`. Everything that it starts bears a mark in its environment, and
    its home is the folder of the test: what shells of this machine say at a login is not of the job."""

    def __init__(self, acc, prefix=(), address="127.0.0.1", max_startups="200"):
        if not SSHD or not shutil.which("ssh-keygen"):
            skip("no sshd")
        self.acc, self.prefix, self.address, self.max_startups = acc, list(prefix), address, max_startups
        self.mark = f"ACC_TEST_SSH=s{os.getpid()}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="acc-ssh-"))
        self.rsh = self.folder / "ssh"
        self.clients = []

    def __enter__(self):
        at = self.folder
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)
        for key in ("host", "user", "wrong", "forced"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at / key], check=True)
        # The last key runs a script of the test in place of the command that was asked for.
        forced = at / "forced.sh"
        forced.write_text("#!/bin/sh\n")
        forced.chmod(0o755)
        (at / "authorized_keys").write_text((at / "user.pub").read_text() + f'command="{forced}" ' + (at / "forced.pub").read_text())
        self.port = free_port()
        preloaded = " ".join(f'"{name}={os.environ[name]}"' for name in PRELOADED if name in os.environ)
        (at / "sshd_config").write_text(f"""
Port {self.port}
ListenAddress {self.address}
HostKey {at}/host
PidFile none
AuthorizedKeysFile {at}/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
MaxStartups {self.max_startups}
SetEnv {self.mark} HOME={at} {preloaded}
""")
        self.alias("* !locked")  # ssh adds the keys of all blocks that match
        self.rsh.write_text(f'#!/bin/sh\nexec ssh -F {at}/config "$@"\n')
        self.rsh.chmod(0o755)
        name, value = self.mark.split("=")
        with open(at / "log", "wb") as log:
            self.server = subprocess.Popen([*self.prefix, SSHD, "-D", "-e", "-f", at / "sshd_config"], stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log, env={**os.environ, name: value}, start_new_session=True)
        self.until("sshd listens", lambda: "Server listening" in (at / "log").read_text())
        return self

    def __exit__(self, kind, *_):
        for client in self.clients:
            if client.poll() is None:
                client.kill()
            client.communicate()
        try:
            if kind is None:
                self.until("nothing of the jobs is left", lambda: not self.jobs(), 15)
        finally:
            self.server.terminate()
            self.server.wait()
            for pid in self.marked():
                send(pid, signal.SIGKILL)
            shutil.rmtree(self.folder)

    def alias(self, name, **options):
        """Adds a host to the client's configuration; of each option the first counts."""
        options = {"Port": self.port, "HostName": self.address, "IdentityFile": self.folder / "user", "IdentitiesOnly": "yes",
                   "UserKnownHostsFile": self.folder / "known_hosts", "StrictHostKeyChecking": "accept-new", "LogLevel": "ERROR",
                   **options}
        config = self.folder / "config"
        before = config.read_text() if config.exists() else ""
        config.write_text(f"Host {name}\n" + "".join(f"  {key} {value}\n" for key, value in options.items()) + before)

    def forced_host(self, name, script):
        """An alias whose login runs a shell script, which finds the command in $SSH_ORIGINAL_COMMAND."""
        (self.folder / "forced.sh").write_text("#!/bin/sh\n" + script)
        self.alias(name, IdentityFile=self.folder / "forced")

    def start(self, hosts, *words, env=None, prefix=(), flag="--hosts", **options):
        """Starts `acc launch --hosts HOSTS WORDS...`."""
        name, value = self.mark.split("=")
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, "text": True,
                    "env": {**os.environ, "ACC_RSH": str(self.rsh), name: value, **(env or {})}, **options}
        self.clients.append(subprocess.Popen([*prefix, self.acc, "launch", flag, hosts, *words], **settings))
        return self.clients[-1]

    def run(self, hosts, *words, **options):
        job = self.start(hosts, *words, **options)
        out, err = job.communicate(timeout=240)
        return subprocess.CompletedProcess(job.args, job.returncode, out, err)

    def shell(self, hosts, script, *flags, **options):
        """A job of one shell script in each worker, to its end."""
        return self.run(hosts, *PATIENT, "--nproc_per_node", "1", *flags, "--no_python", "/bin/sh", "-c", script, **options)

    def marked(self):
        """The pids of all processes with the mark: sshd's sessions, agents, launchers, workers, clients."""
        return [int(entry) for entry in os.listdir("/proc")
                if entry.isdigit() and self.mark.encode() in environ_of(entry).split(b"\0")]

    def jobs(self):
        return [pid for pid in self.marked() if pid != self.server.pid]

    def connections(self, host):
        """The client's processes that run ssh to this host."""
        found = [pid for pid in self.marked() if f"\0{host}\0".encode() in command_line(pid) and command_line(pid).startswith(b"ssh\0")]
        assert found, f"no ssh to {host} runs"
        return found

    def workers(self):
        return [pid for pid in self.marked() if b"LOCAL_RANK=" in environ_of(pid)]

    def until(self, what, condition, limit=60.0):
        """Waits until `condition()` holds and returns the seconds that took."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < limit, f"not within {limit} s: {what}"
            time.sleep(0.02)
        return time.monotonic() - began


@case
def two_hosts_train(acc):
    """PyTorch's DDP on two hosts."""
    python = os.environ.get("ACC_PEER_PYTHON")
    if not python:
        skip("ACC_PEER_PYTHON names no Python with the peers")
    with Sshd(acc) as hosts:
        done = hosts.run("one,two:2", *PATIENT, "--cpu", "--python", python, str(WORKERS / "ddp.py"), env={"OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done
        assert sorted(done.stdout.splitlines()) == [f"attempt 0 rank {rank} of 3 trained" for rank in range(3)], done
        assert "acc: one: --hosts: 2 nodes; this is node 0, one, with 1 worker; they meet at" in done.stderr, done.stderr


@case
def output_and_environment_come_as_they_are(acc):
    with Sshd(acc) as hosts:
        script = 'echo "out $RANK $NCCL_DEBUG $OWN $UNKNOWN."; echo "err $RANK $PWD" >&2; printf "\\377\\0unended"'
        done = hosts.shell("one,two", script, "--export", "OWN", "--export", "UNKNOWN=here", text=False, cwd=hosts.folder,
                           env={"NCCL_DEBUG": "a b'\"$", "OWN": "mine", "OTHER": "x"})
        assert done.returncode == 0, done
        # The last lines have no end, and are not torn apart.
        for rank in (b"0", b"1"):
            assert b"out " + rank + b" a b'\"$ mine here.\n" in done.stdout, done
            assert b"err " + rank + b" " + str(hosts.folder).encode() + b"\n" in done.stderr, done
        assert done.stdout.count(b"\377\0unended") == 2, done
        assert b"\nOTHER=" not in hosts.shell("one", "env", text=False, env={"OTHER": "x"}).stdout
        much = hosts.shell("one,two", "seq 1 20000 | sed s/^/$RANK:/", env={})
        lines = much.stdout.splitlines()
        assert [line for line in lines if line.startswith("1:")] == [f"1:{i}" for i in range(1, 20001)]
        assert len(lines) == 40000
        # Neither words nor variables are seen on the way: they come by standard input.
        seen = hosts.shell("one", "cat /proc/$PPID/cmdline | tr '\\0' ' '", "--export", "UNKNOWN=here").stdout
        assert "here" not in seen and "agent" in seen, seen


@case
def hosts_meet_whatever_their_names_and_variables(acc):
    """A user, a name that only ssh understands, and a port that a shell of one host has set for something else."""
    with Sshd(acc) as hosts:
        for first in (f"{getpass.getuser()}@one", "gpu+1", "localhost"):
            done = hosts.shell(f"{first}:1,two:1", "echo $RANK", env={"MASTER_PORT": "1"})
            assert done.returncode == 0 and sorted(done.stdout.split()) == ["0", "1"], (first, done)


@case
def a_script_from_standard_input_is_refused(acc):
    with Sshd(acc) as hosts:
        for script in ("-", "/dev/stdin"):
            job = hosts.start("one:1", *PATIENT, "--cpu", script, stdin=subprocess.PIPE)
            _, err = job.communicate("print(1)\n", timeout=240)
            assert job.returncode == 2 and f"one: {script}: workers on hosts have no standard input" in err, (job.returncode, err)


@case
def programs_find_the_folder_of_the_job_in_their_environment(acc):
    with Sshd(acc) as hosts:
        done = hosts.run("one", *PATIENT, "--nproc_per_node", "1", "--no_python", shutil.which("env"), cwd=hosts.folder)
        assert done.returncode == 0 and f"PWD={os.path.realpath(hosts.folder)}" in done.stdout.splitlines(), done


@case
def settings_of_the_cuda_allocator_reach_the_workers(acc):
    settings = {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128"}
    script = 'echo "$PYTORCH_ALLOC_CONF $PYTORCH_CUDA_ALLOC_CONF"'
    with Sshd(acc) as hosts:
        here = subprocess.run([acc, "launch", "--cpu", "--num_processes", "2", "--no_python", "/bin/sh", "-c", script],
                              env={**os.environ, **settings}, capture_output=True, text=True, check=False)
        for done in here, hosts.shell("one,two", script, "--cpu", env=settings):
            assert done.returncode == 0, done
            assert done.stdout.splitlines() == [" ".join(settings.values())] * 2, done


@case
def the_first_failure_is_told_once(acc):
    with Sshd(acc) as hosts:
        done = hosts.shell("one,two,three", 'if [ $RANK = 1 ]; then echo "reason" >&2; exit 7; fi; sleep 1000')
        assert done.returncode == 7, done
        assert done.stderr.count("failed with exit code 7") == 1, done.stderr
        assert re.search(r"acc: two: rank 1 \(local rank 0, pid \d+\) on host \S+ failed with exit code 7\n", done.stderr), done.stderr
        assert done.stderr.count("  | reason") == 1, done.stderr
        killed = hosts.shell("one,two", "[ $RANK = 0 ] || kill -9 $$; sleep 1000")
        assert killed.returncode == 137, killed


@case
def a_signal_stops_all_hosts(acc):
    with Sshd(acc) as hosts:
        words = [*PATIENT, *STOPPABLE]
        for number in (signal.SIGINT, signal.SIGTERM):
            job = hosts.start("one,two", *words)
            assert [job.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
            job.send_signal(number)
            out, err = job.communicate(timeout=60)
            assert job.returncode == 128 + number, (job.returncode, err)
            assert sorted(out.splitlines()) == ["stopped 0", "stopped 1"], out
            assert err.count(f"{number.name} received") == 1, err
        # While the hosts are still connecting.
        hosts.forced_host("slow", "exec cat >/dev/null")
        job = hosts.start("one,slow", *words)
        hosts.until("the host is connected", lambda: any(command_line(pid) == b"cat\0" for pid in hosts.marked()))
        job.send_signal(signal.SIGINT)
        assert job.wait(timeout=30) == 130


@case
def a_signal_to_all_processes_of_the_client_stops_all_hosts(acc):
    """As a service manager and a batch system send it: what the workers write at their end comes through."""
    with Sshd(acc) as hosts:
        hosts.alias("behind", ProxyCommand=f"{hosts.rsh} -W %h:%p gate")
        job = hosts.start("one,behind", *PATIENT, *STOPPABLE)
        assert [job.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
        for pid in [*hosts.connections("one"), *hosts.connections("behind"), *hosts.connections("gate"), job.pid]:
            os.kill(pid, signal.SIGTERM)
        out, err = job.communicate(timeout=60)
        assert job.returncode == 143 and sorted(out.splitlines()) == ["stopped 0", "stopped 1"], (job.returncode, out, err)
        assert "the connection is lost" not in err, err


@case
def a_fixed_number_of_hosts_ends_without_one(acc):
    """Only c10d and etcd go on with fewer of a range."""
    with Sshd(acc) as hosts:
        job = hosts.start("one,two", *PATIENT, "--nnodes", "1:2", "--nproc_per_node", "1", "--no_python", "/bin/sh", "-c",
                          "echo begun; exec sleep 1000")
        assert [job.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
        for pid in hosts.connections("two"):
            os.kill(pid, signal.SIGKILL)
        _, err = job.communicate(timeout=60)
        assert job.returncode == 75 and "acc: two: the connection is lost\n" in err, (job.returncode, err)


@case
def a_state_in_memory_is_on_the_disk_when_the_job_ends(acc):
    """By the first host alone: each has the whole state."""
    save_state = pathlib.Path(acc).with_name("acc-test-save-state")
    with Sshd(acc) as hosts:
        runs = hosts.folder / "runs"
        memory = ["--memory-checkpoints", "16MB"]
        said = f"the newest state in memory is on the disk: {runs}/checkpoint-"
        os.mkfifo(hosts.folder / "saved")
        script = f"[ $RANK = 0 ] || {{ read -r line <saved; exit 7; }}; {save_state} {runs}/checkpoint-1 1 && echo >saved; exec sleep 1000"
        failed = hosts.shell("one,two", script, *memory, cwd=hosts.folder)
        assert failed.returncode == 7 and failed.stderr.count(f"{said}1\n") == 1, failed
        job = hosts.start("one,two", *PATIENT, "--nproc_per_node", "1", *memory, "--no_python", "/bin/sh", "-c",
                          f"{save_state} {runs}/checkpoint-2 2 && echo saved; exec sleep 1000")
        assert [job.stdout.readline() for _ in range(2)] == ["saved\n"] * 2
        job.terminate()
        _, err = job.communicate(timeout=60)
        assert job.returncode == 143 and err.count(f"{said}2\n") == 1, (job.returncode, err)
        assert {folder.name for folder in runs.iterdir()} == {"checkpoint-1", "checkpoint-2"}


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_agent(pid):
    return command_line(pid).endswith(b"\0agent\0")


@case
def a_killed_client_takes_all_with_it(acc):
    """What its workers have is saved before, also on this machine, where the agent is a child of the client."""
    for first in ("one", "localhost"):
        with Sshd(acc) as hosts:
            job = hosts.start(f"{first},two", *PATIENT, "--shutdown-timeout", "5", "--nproc_per_node", "2", "--no_python", "/bin/sh", "-c",
                              f"trap 'echo saving; touch {hosts.folder}/saved-$RANK; exit' TERM; "
                              "setsid sh -c 'trap \"\" HUP TERM INT; sleep 1000' & echo begun; wait")
            assert [job.stdout.readline() for _ in range(4)] == ["begun\n"] * 4
            job.kill()
            print("all ended after", round(hosts.until("no worker is left", lambda: not hosts.workers(), 20), 2), "s")
            assert len(list(hosts.folder.glob("saved-*"))) == 4, list(hosts.folder.iterdir())


@case
def an_agent_that_is_asked_to_end_asks_its_workers(acc):
    with Sshd(acc) as hosts:
        job = hosts.start("one,two", *PATIENT, "--nproc_per_node", "1", "--no_python", "/bin/sh", "-c",
                          f"trap 'touch {hosts.folder}/saved-$RANK; exit' TERM; echo begun; sleep 1000 & wait")
        assert [job.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
        agents = [pid for pid in hosts.marked() if is_agent(pid) and not is_agent(parent_of(pid))]
        os.kill(agents[0], signal.SIGTERM)
        _, err = job.communicate(timeout=60)
        assert job.returncode == 143 and "the connection is lost" not in err, (job.returncode, err)
        assert len(list(hosts.folder.glob("saved-*"))) == 2, list(hosts.folder.iterdir())


@case
def a_killed_agent_takes_its_part_with_it(acc):
    with Sshd(acc) as hosts:
        job = hosts.start("one,two", *PATIENT, "--nproc_per_node", "1", "--no_python", "/bin/sh", "-c", "echo begun; exec sleep 1000")
        assert [job.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
        # The first of each host: acc's other processes there are its children.
        agents = [pid for pid in hosts.marked() if is_agent(pid) and not is_agent(parent_of(pid))]
        assert len(agents) == 2, agents
        os.kill(agents[0], signal.SIGKILL)
        _, err = job.communicate(timeout=60)
        assert job.returncode == 75 and "the connection is lost" in err, (job.returncode, err)


@case
def a_stopped_client_ends_nothing(acc):
    """Ctrl-Z: the client is silent for longer than its agents would bear."""
    with Sshd(acc) as hosts:
        go = hosts.folder / "go"
        job = hosts.start("one,two", *PATIENT, "--node-timeout", "2", "--nproc_per_node", "1", "--no_python", "/bin/sh", "-c",
                          f"echo begun; until [ -e {go} ]; do sleep 0.1; done; echo done")
        assert [job.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
        job.send_signal(signal.SIGTSTP)
        hosts.until("the client is stopped", lambda: state_of(job.pid) == "T")
        time.sleep(5)
        job.send_signal(signal.SIGCONT)
        go.touch()
        out, err = job.communicate(timeout=60)
        assert job.returncode == 0 and out == "done\ndone\n", (job.returncode, out, err)


@case
def a_machine_that_stands_still_ends_nothing(acc):
    """All of the job is paused, as in a virtual machine, and acc goes on before what brings it the others' heartbeats."""
    with Sshd(acc) as hosts:
        go = hosts.folder / "go"
        job = hosts.start("one,two", *PATIENT, "--node-timeout", "3", "--nproc_per_node", "1", "--no_python", "/bin/sh", "-c",
                          f"echo begun; until [ -e {go} ]; do sleep 0.1; done; echo done")
        assert [job.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
        paused = hosts.jobs()
        for pid in paused:
            send(pid, signal.SIGSTOP)
        time.sleep(5)  # an agent bears silence for 4 s
        agents = [pid for pid in paused if command_line(pid).startswith(f"{acc}\0".encode())]
        pauses = {pid: pauses_of(pid) for pid in agents}
        for pid in agents:
            send(pid, signal.SIGCONT)
        hosts.until("they wait again", lambda: all(pauses_of(pid) > pauses[pid] for pid in agents))
        for pid in paused:
            send(pid, signal.SIGCONT)
        go.touch()
        out, err = job.communicate(timeout=60)
        assert job.returncode == 0 and out == "done\ndone\n", (job.returncode, out, err)


@case
def a_lost_connection_ends_the_job(acc):
    with Sshd(acc) as hosts:
        job = hosts.start("one,two", *PATIENT, "--node-timeout", "3", "--nproc_per_node", "1", "--no_python", "/bin/sh", "-c",
                          "echo begun $RANK $$; exec sleep 1000")
        begun = sorted(job.stdout.readline() for _ in range(2))
        assert begun[1].startswith("begun 1 "), begun
        # A connection that carries nothing more, as a cable that is cut: of both sides only silence is seen.
        for pid in hosts.connections("two"):
            os.kill(pid, signal.SIGSTOP)
        out, err = job.communicate(timeout=60)
        assert job.returncode == 75 and "two: the connection is lost: nothing came for 3 s" in err, (job.returncode, err)


@case
def a_range_of_hosts_goes_on_without_one(acc):
    with Sshd(acc) as hosts:
        job = hosts.start("one,two", *PATIENT, "--nnodes", "1:2", "--rdzv_backend", "c10d", "--rdzv_conf", "last_call_timeout=2",
                          "--nproc_per_node", "1", "--no_python", "/bin/sh", "-c",
                          "echo $RANK of $WORLD_SIZE; [ $WORLD_SIZE = 1 ] || exec sleep 1000")
        assert sorted(job.stdout.readline() for _ in range(2)) == ["0 of 2\n", "1 of 2\n"]
        for pid in hosts.connections("two"):
            os.kill(pid, signal.SIGKILL)
        out, err = job.communicate(timeout=60)
        assert job.returncode == 0 and out == "0 of 1\n", (job.returncode, out, err)
        assert "acc: two: the connection is lost; the job goes on without it\n" in err, err


@case
def a_cut_cable_ends_the_job_on_both_sides(acc):
    """The client says the same whether it notices the silence itself or ssh does, which is sure while the client is stopped."""
    for stopped in (False, True):
        cut_cable(acc, stopped)


def cut_cable(acc, stopped):
    with Cluster(acc, 2) as cluster:
        on_node = ["bash", str(pathlib.Path(__file__).parent.parent / "support" / "netns_node.sh"), cluster.tag, "run"]
        with Sshd(acc, prefix=[*on_node, "1", "env", cluster.mark], address="10.77.0.11") as hosts:
            hosts.alias("node1", HostName="10.77.0.11")
            words = ["--node-timeout", "4", "--nproc_per_node", "1", "--no_python", "/bin/sh", "-c", "echo begun; exec sleep 1000"]
            # The first is this machine: acc is started without ssh there.
            job = hosts.start("node0,node1", *PATIENT, *words, prefix=[*on_node, "0", "env", cluster.mark])
            assert [job.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
            cluster.node("cut", 1)
            if stopped:
                client = next(pid for pid in hosts.marked() if command_line(pid).startswith(f"{acc}\0launch\0".encode()))
                connections = hosts.connections("node1")
                os.kill(client, signal.SIGSTOP)
                hosts.until("ssh has noticed", lambda: all(state_of(pid) == "Z" for pid in connections))
                for pid in (client, job.pid):  # nsenter stops and waits with it
                    os.kill(pid, signal.SIGCONT)
            _, err = job.communicate(timeout=60)
            assert job.returncode == 75 and "node1: the connection is lost: nothing came for 4 s" in err, (job.returncode, err)
            # Nothing told the far side: its own agent noticed.
            hosts.until("node 1 is empty", lambda: not hosts.workers(), 30)
            cluster.node("heal", 1)


@case
def bad_hosts_are_named_together(acc):
    with Sshd(acc) as hosts, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        hosts.alias("refusing", Port=1)
        hosts.alias("silent", Port=silent.getsockname()[1])
        hosts.alias("locked", IdentityFile=hosts.folder / "wrong")
        hosts.alias("nowhere", HostName="no-such-host.invalid")
        hosts.forced_host("bare", 'PATH=/usr/bin:/bin; eval "$(echo "$SSH_ORIGINAL_COMMAND" | sed s:/acc\\\':/no-acc\\\':)"')
        began = time.monotonic()
        done = hosts.run("good,refusing,silent,locked,nowhere,bare", "--host-timeout", "10", "--nproc_per_node", "1", "--no_python",
                         "/bin/true")
        took = time.monotonic() - began
        assert done.returncode == 2 and done.stdout == "", done
        said = done.stderr.splitlines()
        assert [line.split(":")[1].strip() for line in said] == ["refusing", "silent", "locked", "nowhere", "bare"], done.stderr
        for line, what in zip(said, ["no ssh server answers: ssh: connect to host", "no answer within 10 s", "ssh was not let in",
                                     "ssh knows no host of this name", "acc is missing there"]):
            assert what in line, line
        assert took < 20, took
        print("named after", round(took, 1), "s")


@case
def what_a_host_lacks_is_named(acc):
    with Sshd(acc) as hosts:
        missing = hosts.run("one,two", *PATIENT, "--nproc_per_node", "1", "--no_python", "./no-such-program")
        assert missing.returncode == 2, missing
        assert re.match(r"acc: one, two: \./no-such-program: ", missing.stderr), missing.stderr
        # A folder that only the client has: the host gets another path in its place.
        here = hosts.folder / "here"
        here.mkdir()
        hosts.forced_host("other", f'rmdir {here} && eval "$SSH_ORIGINAL_COMMAND"')
        gone = hosts.run("other", *PATIENT, "--no_python", "/bin/true", cwd=here)
        assert gone.returncode == 2 and f"acc: other: {here}: No such file or directory (the folder" in gone.stderr, gone
        plans = hosts.run("one:2,two", *PATIENT, "--cpu", "--dry_run", "/bin/true")
        assert plans.returncode == 0 and plans.stdout.index("one:2 of --hosts") < plans.stdout.index("two, number 2 of --hosts"), plans
        listed = hosts.folder / "hosts"
        listed.write_text("# two\none slots=2\ntwo:1\n")
        counted = hosts.run(str(listed), *PATIENT, "--no_python", "/bin/sh", "-c", "echo $RANK $LOCAL_RANK", flag="--hostfile")
        assert sorted(counted.stdout.splitlines()) == ["0 0", "1 1", "2 0"], counted
        listed.write_text("one\none\n")
        for words, what in [(["--hostfile", str(listed)], f"{listed}:2: one is named twice, first at {listed}:1"),
                            (["--hosts", "a,a"], "a is named twice"), (["--hosts", "a:0"], "'0' is not a number of workers for a"),
                            (["--hosts", "a,b", "--num_machines", "3"], "--num_machines (num_machines = 3) and --hosts (2 hosts)"),
                            (["--hosts", "a:2,b:2", "--num_processes", "3"], "--num_processes (num_processes = 3) and all workers"),
                            (["--hosts", "a", "--srun"], "--srun and --hosts contradict each other")]:
            refused = subprocess.run([acc, "launch", *words, "/bin/true"], text=True, capture_output=True)
            assert refused.returncode == 2 and what in refused.stderr, refused


@case
def logins_that_talk_and_jump_hosts_work(acc):
    with Sshd(acc) as hosts:
        hosts.forced_host("talking", 'echo Welcome; echo to you >&2; eval "$SSH_ORIGINAL_COMMAND"')
        done = hosts.shell("talking", "echo it runs")
        assert done.returncode == 0 and done.stdout == "it runs\n", done
        hosts.alias("behind", ProxyCommand=f"{hosts.rsh} gate nc -q0 %h %p" if shutil.which("nc") else f"{hosts.rsh} -W %h:%p gate")
        done = hosts.shell("behind,one", "echo $RANK")
        assert done.returncode == 0 and sorted(done.stdout.split()) == ["0", "1"], done
        here = hosts.shell("localhost,one", "echo ${SSH_CONNECTION:+over ssh}", env={"SSH_CONNECTION": ""})
        assert sorted(here.stdout.splitlines()) == ["", "over ssh"], here


@case
def the_agent_refuses_another_version_and_ends_with_its_input(acc):
    def frame(kind, payload):
        return kind + struct.pack("<I", len(payload)) + payload

    agent = subprocess.Popen([acc, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = agent.communicate(frame(b"S", json.dumps({"acc": "acc 0.0.0"}).encode()), timeout=30)
    assert agent.returncode == 2 and b"and the host that starts the job acc 0.0.0" in out, out
    agent = subprocess.Popen([acc, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = agent.communicate(b"", timeout=30)
    assert agent.returncode == 1, agent.returncode
    agent = subprocess.Popen([acc, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = agent.communicate(b"no frame at all", timeout=30)
    assert agent.returncode == 1 and b"something else than acc's frames" in out, out


@case
def sixty_four_hosts(acc):
    with Sshd(acc) as hosts:
        began = time.monotonic()
        done = hosts.shell(f"h[1-64]", "echo $RANK")
        took = time.monotonic() - began
        assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
        assert sorted(map(int, done.stdout.split())) == list(range(64))
        print("64 hosts:", round(took, 1), "s")


@case
def a_server_of_few_logins_at_once_lets_all_in(acc):
    with Sshd(acc, max_startups="2") as hosts:
        done = hosts.shell("h[1-12]", "echo $RANK")
        assert done.returncode == 0, (done.returncode, done.stderr)
        assert sorted(map(int, done.stdout.split())) == list(range(12))
        assert "MaxStartups" in (hosts.folder / "log").read_text()


# What is done to a job of three hosts, and its exit code if all its workers ran before.
FAULTS = {"none": 0, "suspend": 0, "worker": 137, "agent": 75, "connection": 75, "silence": 75, "client": -signal.SIGKILL,
          "interrupt": 130, "terminate": 143}


def do(hosts, job, fault, host):
    """Does it, where there is already something to do it to."""
    workers = sorted(hosts.workers())
    agents = sorted(pid for pid in hosts.marked() if is_agent(pid) and not is_agent(parent_of(pid)))
    connections = [pid for pid in hosts.marked()
                   if command_line(pid).startswith(b"ssh\0") and f"\0{host}\0".encode() in command_line(pid)]
    number = {"silence": signal.SIGSTOP, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}.get(fault, signal.SIGKILL)
    for pid in {"worker": workers[:1], "agent": agents[-1:], "connection": connections, "silence": connections,
                "client": [job.pid], "interrupt": [job.pid], "terminate": [job.pid]}.get(fault, []):
        send(pid, number)
    if fault == "suspend":
        send(job.pid, signal.SIGTSTP)
        hosts.until("the client is stopped or has ended", lambda: state_of(job.pid) in "TZ")
        send(job.pid, signal.SIGCONT)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0]


def pauses_of(pid):
    """How often the process has waited for something."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M)[1])


def random_faults(acc, count, seed=7):
    """After each fault the client ends, with the code for it if all workers ran, and nothing of the job is left anywhere."""
    choices = random.Random(seed)
    with Sshd(acc) as hosts:
        go = hosts.folder / "go"
        for number in range(count):
            fault, host, early = choices.choice(list(FAULTS)), choices.choice(["one", "two", "three"]), choices.random() < 0.4
            what = f"fault {number} of seed {seed} ({fault}, {host}{', early' if early else ''})"
            go.unlink(missing_ok=True)
            # A host that falls silent while it is connected is waited for so long.
            patience = ["--host-timeout", "10"] if early else PATIENT
            job = hosts.start("one,two,three", *patience, "--node-timeout", "3", "--nproc_per_node", "1", "--no_python", "/bin/sh", "-c",
                              f"echo begun; until [ -e {go} ]; do sleep 0.1; done")
            if early:
                time.sleep(choices.uniform(0, 2))  # while it connects, starts, or runs
            else:
                assert [job.stdout.readline() for _ in range(3)] == ["begun\n"] * 3, what
            do(hosts, job, fault, host)
            if early or FAULTS[fault] == 0:
                go.touch()
            _, err = job.communicate(timeout=120)
            assert early or job.returncode == FAULTS[fault], (what, job.returncode, err)
            print(what, "and nothing left after", round(hosts.until(f"nothing is left after {what}", lambda: not hosts.jobs()), 2), "s")


@case
def five_random_faults_over_ssh(acc):
    random_faults(acc, 5, int(os.environ.get("ACC_DELAYS_SEED", "7")))


if __name__ == "__main__":
    if sys.argv[2:3] == ["--random"]:
        random_faults(os.path.abspath(sys.argv[1]), *map(int, sys.argv[3:]))
    else:
        run_cases()
