# SPDX-License-Identifier: Apache-2.0
"""Jobs of `acc run` beside real torchrun agents: torchrun_jobs.py ACC [SCENARIO...]."""

import base64
import importlib.metadata
import pickle
import pathlib
import sys
import tempfile
import time
from datetime import timedelta

import torch.distributed as dist
import torch.distributed.run
from agents import TIMEOUT, Torchrun
from scenarios import run_scenarios, scenario

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

ACC = [sys.argv[1], "run"]
VERSION = importlib.metadata.version("torch")


def c10d(port, addr, *more, hosts):
    """Flags of an agent; ranks follow from `addr`. Whoever starts quicker would host: `hosts` says who does."""
    return [
        *("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "job"),
        *("--rdzv-conf", f"last_call_timeout=1,join_timeout=90,is_host={hosts},torch_version={VERSION}", "--local-addr", addr),
        *more,
    ]


def static(port, rank):
    return [
        *("--nnodes", "2", "--node-rank", str(rank), "--rdzv-id", "job"),
        *("--master-addr", "127.0.0.1", "--master-port", str(port)),
    ]


def agree(agents):
    """Checks the workers of a round; `agents` are in the order of their ranks."""
    told = [agent.workers() for agent in agents]
    workers = sum(told, [])
    assert [worker.rank for worker in workers] == list(range(len(workers)))
    assert {worker.world_size for worker in workers} == {len(workers)}
    assert len({worker.master for worker in workers}) == 1, [worker.master for worker in workers]
    serves = {worker.agent_store for worker in workers}
    # With c10d, worker 0 of torch 2.4 serves the workers' store itself.
    assert serves == {"True"} or (VERSION.startswith("2.4.") and serves == {"False"}), serves
    return told


def end_well(agents, told):
    for worker in sum(told, []):
        worker.end(0)
    assert [agent.wait() for agent in agents] == [0] * len(agents)


def job(first, second):
    """Two agents in the order of their ranks, `program` and flags each; the first is started first."""
    (program, flags), (other_program, other_flags) = first, second
    with Torchrun(1, *flags, program=program) as one:
        with Torchrun(2, *other_flags, program=other_program) as two:
            end_well([one, two], agree([one, two]))


REAL = None  # torchrun


@scenario
def c10d_acc_first():
    port = free_port()
    job((ACC, c10d(port, "127.0.0.1", hosts=True)), (REAL, c10d(port, "127.0.0.2", hosts=False)))


@scenario
def c10d_torchrun_first():
    port = free_port()
    job((REAL, c10d(port, "127.0.0.1", hosts=True)), (ACC, c10d(port, "127.0.0.2", hosts=False)))


@scenario
def static_acc_first():
    port = free_port()
    job((ACC, static(port, 0)), (REAL, static(port, 1)))


@scenario
def static_torchrun_first():
    port = free_port()
    job((REAL, static(port, 0)), (ACC, static(port, 1)))


def restarts(first, second, failing):
    with Torchrun(1, *first[1], program=first[0]) as one:
        with Torchrun(2, *second[1], program=second[0]) as two:
            told = agree([one, two])
            for _ in range(2):
                told[failing][0].end(1)
                told = agree([one, two])
            end_well([one, two], told)


@scenario
def c10d_torchrun_fails_beside_acc():
    port = free_port()
    more = ("--max-restarts", "3")
    first = (ACC, c10d(port, "127.0.0.1", *more, hosts=True))
    restarts(first, (REAL, c10d(port, "127.0.0.2", *more, hosts=False)), failing=1)


@scenario
def c10d_acc_fails_beside_torchrun():
    port = free_port()
    more = ("--max-restarts", "3")
    first = (REAL, c10d(port, "127.0.0.1", *more, hosts=True))
    restarts(first, (ACC, c10d(port, "127.0.0.2", *more, hosts=False)), failing=1)


def until(condition):
    """Polls, since there is no event for it."""
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.1)


def state_in_store(port):
    """The rendezvous state in the store, unpickled by torchrun's own class."""
    limit = timedelta(seconds=20)
    store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False, timeout=limit)
    return pickle.loads(base64.b64decode(store.get("torch.rendezvous.job")))


@scenario
def c10d_acc_closes_what_torchrun_hosts():
    """When acc fails for good, it closes the rendezvous before it leaves."""
    port = free_port()
    with Torchrun(1, *c10d(port, "127.0.0.1", hosts=True), program=REAL) as one:
        with Torchrun(2, *c10d(port, "127.0.0.2", hosts=False), program=ACC) as two:
            told = agree([one, two])
            told[1][0].end(3)
            assert two.wait() == 3
            state = state_in_store(port)
            assert state.closed and state.complete and len(state.participants) == 2


def in_file(folder, addr, *more, nnodes="2"):
    """Flags of an agent whose rendezvous is a file in `folder`."""
    conf = "store_type=file,last_call_timeout=1,join_timeout=90"
    return [
        *("--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{folder}/rendezvous", "--rdzv-id", "job"),
        *("--rdzv-conf", conf, "--local-addr", addr, *more),
    ]


@scenario
def file_acc_first():
    with tempfile.TemporaryDirectory() as folder:
        job((ACC, in_file(folder, "127.0.0.1")), (REAL, in_file(folder, "127.0.0.2")))


@scenario
def file_torchrun_first():
    with tempfile.TemporaryDirectory() as folder:
        job((REAL, in_file(folder, "127.0.0.1")), (ACC, in_file(folder, "127.0.0.2")))


@scenario
def file_three_agents():
    """Two agents of acc, and torchrun between them."""
    with tempfile.TemporaryDirectory() as folder:
        with Torchrun(1, *in_file(folder, "127.0.0.1", nnodes="3"), program=ACC) as one:
            with Torchrun(2, *in_file(folder, "127.0.0.2", nnodes="3"), program=REAL) as two:
                with Torchrun(1, *in_file(folder, "127.0.0.3", nnodes="3"), program=ACC) as three:
                    agents = [one, two, three]
                    end_well(agents, agree(agents))


@scenario
def file_torchrun_fails_beside_acc():
    more = ("--max-restarts", "3")
    with tempfile.TemporaryDirectory() as folder:
        first = (ACC, in_file(folder, "127.0.0.1", *more))
        restarts(first, (REAL, in_file(folder, "127.0.0.2", *more)), failing=1)


@scenario
def file_acc_fails_beside_torchrun():
    more = ("--max-restarts", "3")
    with tempfile.TemporaryDirectory() as folder:
        first = (REAL, in_file(folder, "127.0.0.1", *more))
        restarts(first, (ACC, in_file(folder, "127.0.0.2", *more)), failing=1)


@scenario
def file_acc_joins_torchrun():
    """With a range of nodes, one that comes later joins."""
    with tempfile.TemporaryDirectory() as folder:
        with Torchrun(1, *in_file(folder, "127.0.0.1", nnodes="1:2"), program=REAL) as one:
            alone = one.workers()
            assert [worker.world_size for worker in alone] == [1]
            with Torchrun(2, *in_file(folder, "127.0.0.2", nnodes="1:2"), program=ACC) as two:
                end_well([one, two], agree([one, two]))


@scenario
def file_acc_fails_for_good():
    """It closes the job in the file, so that torchrun ends, too; and that name cannot be used again, as torchrun has it."""
    with tempfile.TemporaryDirectory() as folder:
        with Torchrun(1, *in_file(folder, "127.0.0.1"), program=ACC) as one:
            with Torchrun(2, *in_file(folder, "127.0.0.2"), program=REAL) as two:
                told = agree([one, two])
                told[0][0].end(3)
                assert one.wait() == 3
                for worker in told[1]:
                    worker.end(1)
                assert two.wait() == 1
        with Torchrun(1, *in_file(folder, "127.0.0.1", nnodes="1"), program=ACC) as late:
            assert late.wait() == 75
            late.errors.seek(0)
            assert b"is over already" in late.errors.read()


@scenario
def one_node_elsewhere():
    """c10d meets at the endpoint also for one node: a torchrun that came first has the rank, acc is its spare."""
    port = free_port()
    alone = [
        *("--nnodes", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "job"),
        *("--rdzv-conf", "join_timeout=90,last_call_timeout=1,is_host="),
    ]
    with Torchrun(1, *alone[:-1], alone[-1] + "true", program=REAL) as one:
        told = one.workers()
        with Torchrun(1, *alone[:-1], alone[-1] + "false", program=ACC) as two:
            until(lambda: len(state_in_store(port).redundancy_list) == 1)
            assert told[0].world_size == 1
            one.process.kill()  # the store of the rendezvous goes with it
            assert two.wait() == 75


if __name__ == "__main__":
    sys.exit(run_scenarios(sys.argv[2:]))
