# SPDX-License-Identifier: Apache-2.0
"""A job of one machine with several addresses, one of which is given for the store. Usage: see run_cases()."""

import os
import pathlib
import subprocess
import sys

from cluster import Cluster, case, run_cases

PORT = 29517
# Two workers that meet in the store at MASTER_ADDR, as PyTorch's clients do.
WORKER = """
import os, socket, struct
text = lambda t: struct.pack("<Q", len(t)) + t
mine = f"/rank{os.environ['RANK']}".encode()
with socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 10) as store:
    store.settimeout(20)
    store.sendall(bytes.fromhex("00cef7853c") + b"\\1" + text(mine) + text(b""))
    store.sendall(b"\\6" + struct.pack("<Q", 2) + text(b"/rank0") + text(b"/rank1"))
    assert store.recv(1) == b"\\0"
print("met at", os.environ["MASTER_ADDR"], flush=True)
"""


class OneMachine(Cluster):
    """Node 0 has a second address, IPv6, and names for all of them; `here` is what Debian calls a machine."""

    def __enter__(self):
        super().__enter__()
        self.add_address(0, "10.77.1.10/24", "second")
        self.add_address(0, "fd77::10/64", "six")
        self.add_name(0, "127.0.1.1", "here")
        self.add_name(0, "10.77.0.99", "elsewhere")
        self.worker = os.path.join(self.folder.name, "worker.py")
        pathlib.Path(self.worker).write_text(WORKER)
        return self

    def run(self, *words, env=None):
        """Runs `acc WORDS worker.py` on node 0 to its end."""
        job = self.on_node(0, self.acc, *words, "--python", sys.executable, self.worker, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env={**os.environ, "HOME": self.folder.name, **(env or {})})
        out, err = job.communicate(timeout=60)
        return subprocess.CompletedProcess(job.args, job.returncode, out, err)


def meets_at(done, address):
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"met at {address}"] * 2, done.stdout


@case
def own_addresses_are_obeyed(acc):
    with OneMachine(acc, 1) as cluster:
        two = ["run", "--nnodes", "1", "--nproc-per-node", "2"]
        port = ["--master-port", str(PORT)]
        for address in ["10.77.0.10", "10.77.1.10", "fd77::10", "127.0.1.1", "::1", "localhost", "node0", "second", "six",
                        "here"]:
            meets_at(cluster.run(*two, "--master-addr", address, *port), address)
        meets_at(cluster.run(*two, "--rdzv-backend=static", f"--rdzv-endpoint=10.77.1.10:{PORT}"), "10.77.1.10")
        meets_at(cluster.run(*two, f"--rdzv-endpoint=[fd77::10]:{PORT}"), "fd77::10")
        meets_at(cluster.run(*two, env={"PET_MASTER_ADDR": "second", "PET_MASTER_PORT": str(PORT)}), "second")
        meets_at(cluster.run(*two, "--master-addr", "second"), "second")
        launch = ["launch", "--cpu", "--num_processes", "2"]
        meets_at(cluster.run(*launch, "--main_process_ip", "10.77.1.10", "--main_process_port", str(PORT)), "10.77.1.10")
        config = os.path.join(cluster.folder.name, "job.yaml")
        pathlib.Path(config).write_text("distributed_type: MULTI_CPU\nnum_machines: 1\nnum_processes: 2\nuse_cpu: true\n"
                                        f"main_process_ip: node0\nmain_process_port: {PORT}\n")
        meets_at(cluster.run("launch", "--config_file", config), "node0")


@case
def others_addresses_are_not(acc):
    with OneMachine(acc, 1) as cluster:
        two = ["run", "--nnodes", "1", "--nproc-per-node", "2"]
        for words, what in [(["--master-addr", "elsewhere"], "--master-addr: 'elsewhere' is 10.77.0.99, which is not an"),
                            (["--rdzv-endpoint", f"10.77.0.99:{PORT}"], "--rdzv-endpoint: '10.77.0.99' is not an"),
                            (["--master-addr", "nowhere.invalid"], "--master-addr: 'nowhere.invalid' cannot be resolved: ")]:
            done = cluster.run(*two, *words)
            assert done.returncode == 2 and done.stdout == "", done
            assert done.stderr.startswith(f"acc: {what}") and done.stderr.count("\n") == 1, done.stderr
        done = cluster.run("launch", "--cpu", "--num_processes", "2", "--main_process_ip", "elsewhere")
        meets_at(done, "127.0.0.1")
        assert "'elsewhere' is 10.77.0.99, which is not an" in done.stderr, done.stderr


@case
def one_machine_serves_itself(acc):
    with OneMachine(acc, 2) as cluster:
        cluster.launch(0, "--nproc-per-node", "2", "--master-addr", "10.77.0.10", "--master-port", str(PORT),
                       script="exec sleep 1000")
        cluster.until("two workers run", lambda: cluster.is_whole(2))
        assert cluster.knock(1, "10.77.0.10", PORT) == "refused"
        assert cluster.knock(0, "10.77.0.10", PORT) == "served"
        # From this machine, by any of its addresses.
        assert cluster.knock(0, "10.77.0.10", PORT, "10.77.1.10") == "served"


if __name__ == "__main__":
    run_cases()
