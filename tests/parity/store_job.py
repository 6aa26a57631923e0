# SPDX-License-Identifier: Apache-2.0
"""Gloo jobs of two ranks, each in a process, that meet in our store: store_job.py ACC_STORE_SERVER.

The store is emptied and used again, as a launcher does between the attempts of a job.
"""

import os
import sys
from datetime import timedelta

os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402  after the variable that it reads
import torch.distributed as dist  # noqa: E402
from scenarios import Forked  # noqa: E402
from store_process import StoreProcess  # noqa: E402

RANKS = 2
ATTEMPTS = 2


def work(rank, variables):
    os.environ.update(variables)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    tensor = torch.full((4,), float(rank + 1))
    dist.all_reduce(tensor)
    assert tensor.tolist() == [3.0] * 4, tensor
    gathered = [None] * RANKS
    dist.all_gather_object(gathered, {"rank": rank})
    assert gathered == [{"rank": 0}, {"rank": 1}], gathered
    said = ["hello" if rank == 0 else None]
    dist.broadcast_object_list(said, src=0)
    assert said == ["hello"], said
    dist.barrier(group=dist.new_group([0, 1]))
    dist.monitored_barrier()
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        os._exit(0)  # its gloo groups may hang when they are destroyed, whoever keeps the store
    dist.destroy_process_group()
    # torch 2.11 sometimes aborts while the interpreter ends, under torchrun as well.
    sys.stdout.flush()
    os._exit(0)


def run_attempt(number, port):
    workers = []
    for rank in range(RANKS):
        variables = {
            "RANK": str(rank),
            "WORLD_SIZE": str(RANKS),
            "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RESTART_COUNT": str(number),
            "GLOO_SOCKET_IFNAME": "lo",
        }
        workers.append(Forked(sys.stdout, work, rank, variables))
    codes = [process.wait(120) for process in workers]
    assert codes == [0] * RANKS, codes
    print(f"attempt {number}: ok", flush=True)


def main():
    with StoreProcess(sys.argv[1]) as server:
        for number in range(ATTEMPTS):
            run_attempt(number, server.port)
            server.reset()


if __name__ == "__main__":
    main()
