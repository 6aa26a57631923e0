# SPDX-License-Identifier: Apache-2.0
"""acc's rendezvous together with real torchrun agents: torchrun_backend.py ACC_BOARD_NODE [SCENARIO...]."""

import socket
import pathlib
import sys

import torch.distributed.run
from agents import BoardNode, Torchrun
from scenarios import run_scenarios, scenario

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

PROGRAM = sys.argv[1]


def c10d(port, addr, nnodes="2"):
    """Flags of a torchrun whose rendezvous is at `port`; `addr` determines the order of ranks."""
    return [
        *("--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "job"),
        *("--rdzv-conf", "last_call_timeout=1,join_timeout=90", "--local-addr", addr),
    ]


def check_store(master):
    """Checks that something listens there."""
    socket.create_connection(master, 10).close()


def agree(ours, theirs, first_of_theirs, workers):
    """Checks a round with a node of acc, which has `workers` workers, and one of torchrun."""
    world_size = workers + len(theirs)
    first_of_ours = len(theirs) if first_of_theirs == 0 else 0
    assert [node["first_rank"] for node in ours] == [first_of_ours], ours
    assert ours[0]["world_size"] == world_size and ours[0]["num_machines"] == 2, ours
    assert ours[0]["first_role_rank"] == first_of_ours and ours[0]["role_world_size"] == world_size, ours
    assert [worker.rank for worker in theirs] == [first_of_theirs + i for i in range(len(theirs))]
    assert all(worker.world_size == world_size for worker in theirs)
    master = (ours[0]["master_addr"], ours[0]["master_port"])
    assert all(worker.master == master for worker in theirs), (ours, [worker.master for worker in theirs])
    assert all(worker.agent_store == str(ours[0]["use_agent_store"]) for worker in theirs)
    check_store(master)


def end_well(ours, torchrun, theirs):
    """The exit barrier, from both sides."""
    ours.send_command("finish")
    for worker in theirs:
        worker.end(0)
    ours.event("finished")
    assert torchrun.wait() == 0


def job(ours, torchrun, first_of_theirs):
    nodes, theirs = ours.round(), torchrun.workers()
    agree(nodes, theirs, first_of_theirs, workers=3)
    own_is_first = first_of_theirs != 0
    assert (nodes[0]["master_port"] == ours.workers_port) == own_is_first
    end_well(ours, torchrun, theirs)


@scenario
def c10d_torchrun_hosts_and_is_first():
    port = free_port()
    with Torchrun(2, *c10d(port, "127.0.0.1")) as torchrun:
        with BoardNode(PROGRAM, port=port, addr="127.0.0.2", workers=3) as ours:
            job(ours, torchrun, first_of_theirs=0)


@scenario
def c10d_torchrun_hosts_and_ours_is_first():
    port = free_port()
    with Torchrun(2, *c10d(port, "127.0.0.2")) as torchrun:
        with BoardNode(PROGRAM, port=port, addr="127.0.0.1", workers=3) as ours:
            job(ours, torchrun, first_of_theirs=3)


@scenario
def c10d_ours_hosts_and_is_first():
    with BoardNode(PROGRAM, serve=1, addr="127.0.0.1", workers=3) as ours:
        with Torchrun(2, *c10d(ours.port, "127.0.0.2")) as torchrun:
            job(ours, torchrun, first_of_theirs=3)


@scenario
def c10d_ours_hosts_and_torchrun_is_first():
    with BoardNode(PROGRAM, serve=1, addr="127.0.0.2", workers=3) as ours:
        with Torchrun(2, *c10d(ours.port, "127.0.0.1")) as torchrun:
            job(ours, torchrun, first_of_theirs=0)


@scenario
def c10d_torchrun_joins_ours():
    """Scale-up, which torchrun alone cannot do since torch 2.6."""
    with BoardNode(PROGRAM, serve=1, addr="127.0.0.1", workers=3, least=1) as ours:
        assert ours.round()[0]["world_size"] == 3
        with Torchrun(2, *c10d(ours.port, "127.0.0.2", "1:2")) as torchrun:
            ours.event("change")
            ours.send_command("next")
            nodes, theirs = ours.round(), torchrun.workers()
            agree(nodes, theirs, first_of_theirs=3, workers=3)
            end_well(ours, torchrun, theirs)


@scenario
def c10d_ours_joins_torchrun():
    port = free_port()
    with Torchrun(2, *c10d(port, "127.0.0.1", "1:2")) as torchrun:
        alone = torchrun.workers()
        assert [worker.world_size for worker in alone] == [2, 2]
        with BoardNode(PROGRAM, port=port, addr="127.0.0.2", workers=3, least=1) as ours:
            nodes, theirs = ours.round(), torchrun.workers()
            agree(nodes, theirs, first_of_theirs=0, workers=3)
            assert theirs[0].master == alone[0].master
            assert theirs[0].restarts == 0
            end_well(ours, torchrun, theirs)


def c10d_torchrun_restarts(first_of_theirs, addr, own_addr):
    with BoardNode(PROGRAM, serve=1, addr=own_addr, workers=3) as ours:
        with Torchrun(2, "--max-restarts", "2", *c10d(ours.port, addr)) as torchrun:
            nodes, theirs = ours.round(), torchrun.workers()
            for attempt in 1, 2:
                theirs[1].end(1)
                ours.event("change")
                ours.send_command("next")
                nodes, theirs = ours.round(), torchrun.workers()
                assert [worker.restarts for worker in theirs] == [attempt, attempt]
                agree(nodes, theirs, first_of_theirs, workers=3)
            end_well(ours, torchrun, theirs)


@scenario
def c10d_torchrun_restarts_beside_our_rank_0():
    c10d_torchrun_restarts(3, "127.0.0.2", "127.0.0.1")


@scenario
def c10d_torchrun_restarts_as_rank_0():
    c10d_torchrun_restarts(0, "127.0.0.1", "127.0.0.2")


@scenario
def c10d_ours_restarts():
    with BoardNode(PROGRAM, serve=1, addr="127.0.0.1", workers=3) as ours:
        with Torchrun(2, *c10d(ours.port, "127.0.0.2")) as torchrun:
            ours.round(), torchrun.workers()
            ours.send_command("next")  # acc's workers failed: torchrun sees a waiting node
            nodes, theirs = ours.round(), torchrun.workers()
            agree(nodes, theirs, first_of_theirs=3, workers=3)
            assert [worker.restarts for worker in theirs] == [0, 0]
            end_well(ours, torchrun, theirs)


@scenario
def c10d_three_of_ours_beside_torchrun():
    with BoardNode(PROGRAM, serve=1, nodes=3, addr="127.0.0.2", workers=2, least=4, most=4) as ours:
        with Torchrun(1, *c10d(ours.port, "127.0.0.1", "4")) as torchrun:
            nodes, theirs = ours.round(), torchrun.workers()
            assert [node["machine_rank"] for node in nodes] == [1, 2, 3]
            assert [node["first_rank"] for node in nodes] == [1, 3, 5]
            assert (theirs[0].rank, theirs[0].world_size) == (0, 7)
            end_well(ours, torchrun, theirs)


@scenario
def c10d_torchrun_fails_for_good():
    """It closes the rendezvous, which ends the job for acc, too."""
    with BoardNode(PROGRAM, serve=1, addr="127.0.0.1", workers=3) as ours:
        with Torchrun(2, "--max-restarts", "0", *c10d(ours.port, "127.0.0.2")) as torchrun:
            ours.round()
            torchrun.workers()[0].end(7)
            ours.event("closed")
            assert torchrun.wait() == 1


@scenario
def c10d_torchrun_dies():
    """torchrun does not notice that; acc does when the heartbeat stops, and continues without the node."""
    with BoardNode(PROGRAM, serve=1, addr="127.0.0.1", workers=3, least=1) as ours:
        with Torchrun(2, *c10d(ours.port, "127.0.0.2", "1:2")) as torchrun:
            while ours.round()[0]["num_machines"] == 1:  # acc's node may have been alone at first
                ours.event("change")
                ours.send_command("next")
            torchrun.workers()
            torchrun.process.kill()
            ours.event("change")
            ours.send_command("next")
            assert ours.round()[0]["num_machines"] == 1


@scenario
def c10d_ours_closes():
    """A torchrun that tries to join finds the job closed."""
    with BoardNode(PROGRAM, serve=1, addr="127.0.0.1", least=1, most=1, stay=1) as ours:
        ours.round()
        with Torchrun(1, *c10d(ours.port, "127.0.0.2", "1:1")) as torchrun:
            # Surplus: it waits as a spare until the job is closed, then leaves quietly.
            with BoardNode(PROGRAM, port=ours.port, addr="127.0.0.3", least=1, most=1) as spare:
                assert "spare" in spare.event("missing")["text"]
                ours.send_command("close")
                spare.event("closed")
            assert torchrun.wait() in (0, 1)


def static(port, rank, nnodes=2):
    return [
        *("--nnodes", str(nnodes), "--node-rank", str(rank), "--rdzv-id", "job"),
        *("--master-addr", "127.0.0.1", "--master-port", str(port)),
    ]


@scenario
def static_torchrun_hosts():
    port = free_port()
    with Torchrun(2, *static(port, 0)) as torchrun:
        with BoardNode(PROGRAM, backend="static", port=port, rank=1, workers=3) as ours:
            nodes, theirs = ours.round(), torchrun.workers()
            agree(nodes, theirs, first_of_theirs=0, workers=3)
            ours.send_command("next")  # acc's workers failed: torchrun does not notice
            agree(ours.round(), theirs, first_of_theirs=0, workers=3)
            end_well(ours, torchrun, theirs)


@scenario
def static_ours_hosts():
    with BoardNode(PROGRAM, backend="static", serve=1, rank=0, workers=3) as ours:
        assert ours.event("missing")["text"] == "waiting for node 1"
        with Torchrun(2, "--max-restarts", "1", *static(ours.port, 1)) as torchrun:
            nodes, theirs = ours.round(), torchrun.workers()
            agree(nodes, theirs, first_of_theirs=3, workers=3)
            theirs[0].end(1)  # torchrun restarts alone
            theirs = torchrun.workers()
            agree(nodes, theirs, first_of_theirs=3, workers=3)
            end_well(ours, torchrun, theirs)


@scenario
def static_two_of_ours_host():
    with BoardNode(PROGRAM, backend="static", serve=1, nodes=2, rank=0, workers=2, most=3) as ours:
        with Torchrun(1, *static(ours.port, 2, 3)) as torchrun:
            nodes, theirs = ours.round(), torchrun.workers()
            assert [node["first_rank"] for node in nodes] == [0, 2]
            assert (theirs[0].rank, theirs[0].world_size) == (4, 5)
            end_well(ours, torchrun, theirs)


if __name__ == "__main__":
    sys.exit(run_scenarios(sys.argv[2:]))
