# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/runtime/schedules.json: rates that Python's schedulers give over 1,000 steps.

record_schedules.py OUT OPTIMIZATION, the second being transformers' optimization.py: of that package this one file
is loaded. Recorded are the first 40 steps, every 7th, and those around an edge of the schedule.
"""
import enum
import importlib.util
import json
import sys
import types

import torch
from torch.optim import lr_scheduler as lr

for name in ("transformers", "transformers.trainer_pt_utils", "transformers.trainer_utils", "transformers.utils"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["transformers"].__path__ = []
sys.modules["transformers.trainer_pt_utils"].LayerWiseDummyOptimizer = object
sys.modules["transformers.trainer_pt_utils"].LayerWiseDummyScheduler = object
sys.modules["transformers.trainer_utils"].SchedulerType = enum.Enum(
    "SchedulerType", "LINEAR COSINE COSINE_WITH_RESTARTS POLYNOMIAL CONSTANT CONSTANT_WITH_WARMUP INVERSE_SQRT "
    "REDUCE_ON_PLATEAU COSINE_WITH_MIN_LR COSINE_WARMUP_WITH_MIN_LR WARMUP_STABLE_DECAY GREEDY")
sys.modules["transformers.utils"].logging = types.SimpleNamespace(get_logger=lambda name: None)
spec = importlib.util.spec_from_file_location("transformers.optimization", sys.argv[2])
hf = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hf)

STEPS = 1000
SCHEDULES = {
    "step": (lambda o: lr.StepLR(o, 90, 0.5), range(90, STEPS, 90)),
    "multi_step": (lambda o: lr.MultiStepLR(o, [100, 300, 300, 800], 0.3), (100, 300, 800)),
    "exponential": (lambda o: lr.ExponentialLR(o, 0.995), ()),
    "linear": (lambda o: lr.LinearLR(o, 0.1, 0.8, 300), (300,)),
    "cosine": (lambda o: lr.CosineAnnealingLR(o, 150, 0.001), range(150, STEPS, 150)),
    "warm_restarts": (lambda o: lr.CosineAnnealingWarmRestarts(o, 50, 2, 0.001), (50, 150, 350, 750)),
    "warm_restarts_even": (lambda o: lr.CosineAnnealingWarmRestarts(o, 130), range(130, STEPS, 130)),
    "one_cycle": (lambda o: lr.OneCycleLR(o, 0.4, STEPS), (299, 999)),
    "one_cycle_three_phase": (
        lambda o: lr.OneCycleLR(o, 0.4, STEPS, pct_start=0.2, anneal_strategy="linear", div_factor=10,
                                three_phase=True), (199, 398)),
    "lambda": (lambda o: lr.LambdaLR(o, lambda step: 1 / (1 + 0.01 * step)), ()),
    "sequential": (
        lambda o: lr.SequentialLR(o, [lr.LinearLR(o, 0.1, 1.0, 60), lr.CosineAnnealingLR(o, 400, 0.001),
                                      lr.StepLR(o, 100, 0.5)], [60, 500]), (60, 500, 600, 700)),
    "linear_warmup": (lambda o: hf.get_linear_schedule_with_warmup(o, 100, 900), (100, 900)),
    "cosine_warmup": (lambda o: hf.get_cosine_schedule_with_warmup(o, 100, 900), (100, 900)),
    "cosine_warmup_cycles": (lambda o: hf.get_cosine_schedule_with_warmup(o, 30, 1000, 1.5), (30,)),
    "polynomial_warmup": (
        lambda o: hf.get_polynomial_decay_schedule_with_warmup(o, 100, 900, 0.0005, 2.0), (100, 900)),
    "greedy": (
        lambda o: hf.GreedyLR(o, factor=0.8, patience=3, threshold=0.01, cooldown=2, warmup=3, min_lr=0.02, max_lr=0.4,
                              reset_start=4), ()),
    "greedy_smooth": (
        lambda o: hf.GreedyLR(o, factor=0.9, patience=2, threshold=1e-4, threshold_mode="rel", min_lr=1e-3, smooth=True,
                              window_size=7, reset_start=30), ()),
    "reduce_on_plateau": (
        lambda o: lr.ReduceLROnPlateau(o, factor=0.5, patience=4, threshold=0.01, cooldown=3, min_lr=1e-4), ()),
}


def metric(step):
    """The metric of a step for reduce_on_plateau; schedulers_test.cpp has the same."""
    return 1 + 1 / (1 + step // 20) + (step * 7 % 5) * 0.001


def record(make, edges):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    kept = {e + d for e in edges for d in (-1, 0, 1, 2)} | set(range(40)) | set(range(0, STEPS + 1, 7)) | {STEPS}
    points = []
    for step in range(STEPS + 1):
        if step in kept:
            group = optimizer.param_groups[0]
            points.append([step, group["lr"]] + ([group["momentum"]] if "max_momentum" in group else []))
        if step < STEPS:
            optimizer.step()
            follows = isinstance(scheduler, (lr.ReduceLROnPlateau, hf.GreedyLR))
            scheduler.step(*([metric(step)] if follows else []))
    return points


with open(sys.argv[1], "w") as out:
    lines = [f'"{n}": {json.dumps(record(*s), separators=(",", ":"))}' for n, s in SCHEDULES.items()]
    out.write('{"torch": "%s",\n' % torch.__version__ + ",\n".join(lines) + "\n}\n")
