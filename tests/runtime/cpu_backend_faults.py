# SPDX-License-Identifier: Apache-2.0
"""cpu_backend_faults.py MODE PROGRAM PROCESSES: PROGRAM's [.endless] does collective operations on some processes that
share memory.

kills: SIGKILLs one of them at a random moment, ACC_TEST_ROUNDS times (5): the others report that another process was
lost, soon; the memory has no name in /dev/shm, so that nothing can be left there. stops: SIGSTOPs one, and the others
report, after their timeout, that there is no answer. suspends: all are suspended for longer than their timeout, as by
Slurm, go on afterwards, and then it is as kills. namespaces: the last rank has namespaces of its own for processes,
mounts and IPC, as a container has, and its own /dev/shm: they still share memory. machines: as kills, but the ranks are
in two network namespaces, as on two machines; before that PROGRAM's [.machines] passes there. Between machines Gloo
carries the data, and it forgets a send that it has just begun when the receiver is killed: then the timeout ends the
operation. regroups: PROGRAM's [.regroups] passes instead, and nothing is killed."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

MODE, PROGRAM, PROCESSES = sys.argv[1], sys.argv[2], int(sys.argv[3])
ROUNDS = int(os.environ.get("ACC_TEST_ROUNDS", "5")) if MODE in ("kills", "machines") else 1
LIMIT = 100  # seconds
TIMEOUT = {"stops": 2, "suspends": 2, "machines": 10}.get(MODE, 60)  # of an operation
SKIPPED = 77
OWN_NAMESPACES = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "sh", "-c",
                  'mount -t tmpfs tmpfs /dev/shm && exec "$0" "$@"']
seed = int(os.environ.get("ACC_TEST_SEED", "0")) or random.randrange(1 << 30)
print("ACC_TEST_SEED", seed)
chance = random.Random(seed)


class Machine:
    """A network namespace with the address 10.77.0.`number`, which ends with this object's process."""
    def __init__(self, number):
        self.address = f"10.77.0.{number}"
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.exists = self.holder.stdout.readline() == "ready\n"
        self.enter = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]

    def end(self):
        self.holder.kill()
        self.holder.wait()


def connect(first, second):
    subprocess.run(["ip", "link", "add", "acc0", "netns", str(first.holder.pid), "type", "veth",
                    "peer", "name", "acc0", "netns", str(second.holder.pid)], check=True)
    for machine in first, second:
        subprocess.run([*machine.enter, "ip", "address", "add", f"{machine.address}/24", "dev", "acc0"], check=True)
        subprocess.run([*machine.enter, "ip", "link", "set", "acc0", "up"], check=True)


MACHINES = []


class Rank:
    def __init__(self, rank, port, case="[.endless]"):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": PROCESSES, "LOCAL_WORLD_SIZE": PROCESSES,
                     "MASTER_ADDR": MACHINES[0].address if MACHINES else "127.0.0.1", "MASTER_PORT": port,
                     "OMP_NUM_THREADS": 1, "ACC_TEST_TIMEOUT": TIMEOUT}
        around = OWN_NAMESPACES if MODE == "namespaces" and rank == PROCESSES - 1 else []
        if MACHINES:
            around = MACHINES[rank * 2 // PROCESSES].enter
            variables["GLOO_SOCKET_IFNAME"] = "acc0"
        self.process = subprocess.Popen([*around, PROGRAM, "--order", "decl", "-w", "NoTests", case],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=os.environ | {name: str(value) for name, value in variables.items()})

    def wait_until_joined(self):
        self.backend = ""
        self.text = ""
        for line in self.process.stdout:
            if line.startswith("joined "):
                self.backend = line.split()[1]
                return
            self.text += line

    def rest(self):
        text, _ = self.process.communicate(timeout=LIMIT)
        return text


def expect(condition, what):
    if not condition:
        sys.exit(f"seed {seed}: {what}")


def expect_memory_without_a_name(pid):
    """What has no name in a file system cannot be left there."""
    shared = [line for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if line.split()[1].endswith("s")]
    expect(any("/memfd:acc (deleted)" in line for line in shared) and not any("/dev/shm" in line for line in shared),
           "\n".join(shared))


def end(ranks):
    for rank in ranks:
        rank.process.kill()
        rank.process.wait()


def suspend(ranks):
    for rank in ranks:
        rank.process.send_signal(signal.SIGSTOP)
    time.sleep(2 * TIMEOUT)  # the clock of the timeout goes on
    for rank in ranks:
        rank.process.send_signal(signal.SIGCONT)


def one_round():
    port = free_port()
    ranks = [Rank(rank, port) for rank in range(PROCESSES)]
    try:
        for rank in ranks:
            rank.wait_until_joined()
            expect(rank.backend == "shared_memory", f"a rank uses {rank.backend or 'nothing'}\n{rank.text}")
        if MODE != "namespaces":
            expect_memory_without_a_name(ranks[0].process.pid)
        victim = chance.randrange(PROCESSES)
        if MODE == "suspends":
            suspend(ranks)
        time.sleep(chance.uniform(0, 0.05))  # any moment
        began = time.monotonic()
        ranks[victim].process.send_signal(signal.SIGSTOP if MODE == "stops" else signal.SIGKILL)
        # Pipes are read at the same time: a rank must not wait for its reader.
        texts = {}
        readers = [threading.Thread(target=lambda number=number, rank=rank: texts.update({number: rank.rest()}))
                   for number, rank in enumerate(ranks) if number != victim]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(LIMIT)
        seconds = time.monotonic() - began
        expect(len(texts) == PROCESSES - 1, f"after {seconds:.0f} s not all others of rank {victim} have ended")
        for number, text in texts.items():
            expected = ["ended or was lost: ", *(["no answer from "] if MODE in ("stops", "machines") else [])]
            expect(any(words in text for words in expected) and ranks[number].process.returncode == 0,
                   f"rank {victim} was lost; rank {number} ended with {ranks[number].process.returncode}, all after {seconds:.0f} s:\n{texts}")
        if MODE == "machines" and seconds > 9:
            print(f"Gloo did not notice that rank {victim} was killed", flush=True)
        if PROCESSES == 2:
            expect(f"rank {victim}" in "".join(texts.values()), f"rank {victim} is not named:\n{texts}")
        return seconds
    finally:
        end(ranks)


def expect_success(case):
    port = free_port()
    ranks = [Rank(rank, port, case) for rank in range(PROCESSES)]
    try:
        for rank in ranks:
            text = rank.rest()
            expect(rank.process.returncode == 0, text)
    finally:
        end(ranks)


if MODE == "namespaces" and subprocess.run([*OWN_NAMESPACES, "true"], stderr=subprocess.DEVNULL).returncode != 0:
    print("skipped: no pid namespace can be made")
    sys.exit(SKIPPED)
try:
    if MODE == "machines":
        MACHINES += [Machine(1), Machine(2)]
        if not all(machine.exists for machine in MACHINES):
            print("skipped: no network namespace can be made")
            sys.exit(SKIPPED)
        connect(*MACHINES)
        expect_success("[.machines]")
    if MODE == "regroups":
        expect_success("[.regroups]")
    else:
        slowest = max(one_round() for _ in range(ROUNDS))
        print(f"{ROUNDS} rounds; the others had ended after at most {slowest:.1f} s")
finally:
    for machine in MACHINES:
        machine.end()
