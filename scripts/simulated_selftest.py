#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the results of an `acc test` that never was, for pictures of its page and for tests: a program to be called
acc-selftest beside acc. The variables SIMULATED_RANKS (64) and SIMULATED_LOCAL (8) say how many ranks there are, and how many on each host;
host gpu005 has a slower network, ranks 12 and 41 have a slow connection, and rank 27 is slow to compute."""

import json
import os
import random
import sys

RANKS = int(os.environ.get("SIMULATED_RANKS", "64"))
LOCAL = int(os.environ.get("SIMULATED_LOCAL", "8"))
CHECKS = ["state", "process order", "functions by process", "splitting", "trigger", "collectives", "random state",
          "sharded loading", "shuffled loading", "dispatched loading", "dispatched shuffling", "batch sampler", "data seed",
          "training parity", "bf16 training", "fp16 training", "accumulation"]
SLOW_LINK, SLOW_RANK, SLOW_HOST = (12, 41), 27, 5
MEMORY = 1.31e12  # bytes a second


def link(chance, first, second):
    near = first // LOCAL == second // LOCAL
    slow = (first, second) == SLOW_LINK
    far = not near and SLOW_HOST in (first // LOCAL, second // LOCAL)
    latency = (6e-6 if near else 19e-6) * chance.uniform(0.95, 1.15) * (4.1 if slow else 1.35 if far else 1)
    bandwidth = (180e9 if near else 46e9) * chance.uniform(0.92, 1.02) / (5.2 if slow else 1.35 if far else 1)
    return {"ranks": [first, second], "latency_seconds": latency, "bytes_per_second": bandwidth,
            "latency_outlier": slow, "bandwidth_outlier": slow}


def all_reduce(size):
    seconds = 42e-6 + 2 * (RANKS - 1) / RANKS * size / 41e9
    return {"bytes": size, "seconds": seconds, "bus_bytes_per_second": 2 * (RANKS - 1) / RANKS * size / seconds}


def matmul(chance, rank):
    slow = rank == SLOW_RANK
    seconds = 2.6e-3 * chance.uniform(0.98, 1.04) * (1.7 if slow else 1)
    return {"rank": rank, "host": host(rank), "seconds": seconds, "flops_per_second": 2 * 4096**3 / seconds, "outlier": slow}


def host(rank):
    return f"gpu{rank // LOCAL:03}"


def results():
    chance = random.Random(1)
    links = [link(chance, first, second) for first in range(RANKS) for second in range(first + 1, RANKS)]
    outliers = []
    if RANKS > SLOW_RANK:
        outliers.append(f"rank {SLOW_RANK} on {host(SLOW_RANK)} is slow to compute: 1.7 times the others' time")
    if RANKS > SLOW_LINK[1]:
        outliers += [f"ranks {SLOW_LINK[0]} and {SLOW_LINK[1]} have a slow connection: {factor} of the other pairs"
                     for factor in ("4.1 times the latency", "5.2 times the transfer time")]
    return {"schema": 1, "passed": True, "error": "", "num_processes": RANKS, "device": "cuda:0", "mixed_precision": "bf16",
            "torch": "2.11.0", "hosts": [host(rank) for rank in range(RANKS)],
            "checks": [{"name": name, "passed": True, "seconds": chance.uniform(0.004, 0.3), "failure": ""} for name in CHECKS],
            "links": links, "all_reduce": [all_reduce(4096 * 4**power) for power in range(8)] if RANKS > 1 else [],
            "matmul": [matmul(chance, rank) for rank in range(RANKS)],
            "memory": [{"rank": rank, "bytes_per_second": MEMORY * chance.uniform(0.98, 1.02), "outlier": False}
                       for rank in range(RANKS)],
            "outliers": outliers}


if __name__ == "__main__" and os.environ.get("RANK", "0") == "0":
    with open(sys.argv[sys.argv.index("--report-file") + 1], "w", encoding="utf-8") as file:
        json.dump(results(), file)
