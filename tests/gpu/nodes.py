#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A launcher whose processes are nodes of their own, so that NCCL lets them share a GPU.

usage: nodes.py ACC [FLAG...] --nproc-per-node N [FLAG...] PROGRAM [ARGUMENT...]

Starts N times `ACC run --nnodes N --nproc-per-node 1` with the flags, each with its own NCCL_HOSTID: NCCL refuses two ranks of
a host on one device. They speak over sockets. Signals go to all nodes, which die with this process. Ends with the
job's exit code, which all nodes have.
"""
import ctypes
import os
import signal
import socket
import subprocess
import sys

# Between hosts on the loopback interface, one GPU for all: no other transport, and kernels that take few multiprocessors.
# LibTorch's watchdog ends a process four times that long after it has noticed a failure; a minute by default.
NCCL = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo",
        "NCCL_MNNVL_ENABLE": "0", "NCCL_NVLS_ENABLE": "0", "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple",
        "NCCL_MAX_CTAS": "2", "NCCL_DEBUG": "WARN",
        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "500"}
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def split(words):
    """The number of processes, and the words without it and without --standalone."""
    at = words.index("--nproc-per-node")
    others = [word for word in words[:at] + words[at + 2:] if word != "--standalone"]
    return int(words[at + 1]), others


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(acc, count, words):
    """The processes of the nodes, by rank."""
    flags = ["--nnodes", count, "--nproc-per-node", 1, "--master-addr", "127.0.0.1", "--master-port", free_port(),
             "--rdzv-id", f"nodes-{os.getpid()}"]
    nodes = []
    for rank in range(count):
        command = [acc, "run", *flags, "--node-rank", rank, *words]
        nodes.append(subprocess.Popen([str(word) for word in command], env=NCCL | os.environ | {"NCCL_HOSTID": f"node{rank}"},
                                      preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)))
    return nodes


def main(acc, *words):
    count, others = split(list(words))
    nodes = start(acc, count, others)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: [node.send_signal(number) for node in nodes])
    return max([node.wait() for node in nodes])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
