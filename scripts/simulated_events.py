# SPDX-License-Identifier: Apache-2.0
"""simulated_events.py [MINUTES] > events.jsonl: the event log of a training that never was, on 125 nodes with 8 ranks each, for
pictures of `acc report` and for its measurement: three failures, a save every half hour, and a node whose loaders are slow for a
while."""

import json
import random
import sys

NODES, LOCAL, BEGIN = 125, 8, 1_800_000_000
RANKS = NODES * LOCAL
SECTIONS = ["other", "data", "forward", "backward", "communication", "optimizer", "saving", "evaluation"]
STARTUP, RESTART, SAVING, STEP = 180, 20, 25, 2.0  # seconds
SLOW_NODE = 50


class Simulation:
    def __init__(self, minutes):
        self.random = random.Random(1)
        self.length = 60 * minutes
        self.failures = [BEGIN + self.length * part for part in (0.31, 0.62, 0.63)]
        self.attempt = 0
        self.step = 0

    def write(self, event, time, node, **fields):
        line = {"schema": 1, "event": event, "time_ns": int(time * 1e9), "run_id": "llama-7b", "host": f"gpu{node:03}",
                "node_rank": node, "attempt": self.attempt, **fields}
        print(json.dumps(line, separators=(",", ":")))

    def run(self):
        for node in range(NODES):
            self.write("job_started", BEGIN, node, workers=LOCAL, command=["python", "-u", "pretrain.py", "--config", "7b.yaml"],
                       settings={"max_restarts": {"value": 10, "origin": "--max-restarts"},
                                 "mixed_precision": {"value": "bf16", "origin": "job.yaml:3"}})
        time = BEGIN + 5
        while self.failures:
            failure = self.failures.pop(0)
            self.run_attempt(time, failure)
            self.fail(failure)
            time = failure + RESTART
        self.run_attempt(time, BEGIN + self.length)
        for node in range(NODES):
            self.write("finished", BEGIN + self.length + 3, node, exit_code=0, restarts=self.attempt, stop_signal=None,
                       stopped_ranks=[], killed_ranks=[], cause=None)

    def run_attempt(self, begin, end):
        for node in range(NODES):
            self.write("attempt_started", begin, node, nodes=NODES, first_rank=node * LOCAL, world_size=RANKS,
                       master_addr="gpu000", master_port=29500)
        self.step -= self.step % 300
        spent = [[0.0] * len(SECTIONS) for _ in range(RANKS)]
        for rank in range(RANKS):
            spent[rank][0] = STARTUP
        for minute, time in enumerate(range(int(begin) + STARTUP, int(end), 60)):
            if minute > 0:
                self.train_a_minute(time, minute % 30 == 0, spent)
            for node in range(NODES):
                self.write_progress(time, begin, node, spent)
                self.write_gpus(time, node, minute % 30 == 0)

    def train_a_minute(self, time, saves, spent):
        slow = 0.75 < (time - BEGIN) / self.length < 0.85
        if slow and (time - BEGIN - 60) / self.length <= 0.75:
            self.write("straggler_found", time, SLOW_NODE, rank=SLOW_NODE * LOCAL + 3, rank_host=f"gpu{SLOW_NODE:03}", section="data", seconds=0.6,
                       reference_seconds=0.1, other_rank=None, step_seconds=2.7, for_s=40.0)
        work = 60 - (SAVING if saves else 0)
        self.step += int(work / (STEP * (1.35 if slow else 1) * self.random.uniform(1, 1.02)))
        for rank, sections in enumerate(spent):
            data = self.random.uniform(0.04, 0.06) + (0.3 if slow and rank // LOCAL == SLOW_NODE else 0)
            parts = {"other": 0.02, "data": data, "forward": 0.3, "backward": 0.63 - data, "optimizer": 0.05}
            for name, part in parts.items():
                sections[SECTIONS.index(name)] += work * part
            sections[SECTIONS.index("saving")] += SAVING if saves else 0

    def write_progress(self, time, begin, node, spent):
        ranks = range(node * LOCAL, (node + 1) * LOCAL)
        self.write("progress", time, node, ranks=list(ranks), steps=[self.step] * LOCAL, counts_over_restarts=[True] * LOCAL,
                   step_seconds=[STEP] * LOCAL, since_step_seconds=[round(self.random.random(), 3) for _ in ranks],
                   samples=[self.step * 8] * LOCAL, tokens=[self.step * 8192] * LOCAL,
                   loss=[round(2 + 8 / (1 + self.step / 500) + 0.05 * self.random.random(), 4) for _ in ranks],
                   section=["backward"] * LOCAL,
                   spent_seconds={name: [round(spent[rank][i], 3) for rank in ranks] for i, name in enumerate(SECTIONS)},
                   cpu_seconds=[round((time - begin) * 1.2 + rank % 7, 2) for rank in ranks],
                   memory_bytes=[int(4e9 + rank * 1e6 + (time - begin) * 1e4) for rank in ranks])

    def write_gpus(self, time, node, saves):
        gpus = range(LOCAL)
        watts = [round(self.random.gauss(640 if not saves else 480, 15), 1) for _ in gpus]
        self.write("gpu_use", time, node, gpus=list(gpus), uuids=[f"GPU-{node}-{gpu}" for gpu in gpus], ranks=[[node * LOCAL + gpu] for gpu in gpus],
                   use_percent=[self.random.randint(88, 99) - (40 if saves else 0) for _ in gpus],
                   memory_bytes=[int(71e9)] * LOCAL, watts=watts, joules=[round((time - BEGIN) * 630.0 + gpu) for gpu in gpus])

    def fail(self, time):
        rank = 77 + 111 * self.attempt
        is_first = self.attempt == 0
        cause = {"rank": rank, "local_rank": rank % LOCAL, "pid": 4242, "host": f"gpu{rank // LOCAL:03}", "attempt": self.attempt,
                 "time_ns": int(time * 1e9), "exit_code": 1 if is_first else None, "signal": None if is_first else "SIGKILL",
                 "out_of_memory": not is_first, "message": None, "traceback": None, "error_file": None,
                 "last_words": "RuntimeError: CUDA error: an illegal memory access was encountered\n" if is_first else ""}
        for node in range(NODES):
            for local in range(LOCAL):
                self.write("worker_finished", time + 2, node, rank=node * LOCAL + local, local_rank=local, pid=4242, exit_code=None,
                           signal="SIGTERM")
            self.write("restarting", time + 3, node, restart=self.attempt + 1, max_restarts=10, cause=cause)
        self.attempt += 1


Simulation(int(sys.argv[1]) if len(sys.argv) > 1 else 24 * 60).run()
