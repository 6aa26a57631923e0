# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/runtime/optimizers.json: the parameters that transformers' Adafactor and PyTorch's Muon have after each
of some steps, for gradients that adafactor_test.cpp and muon_test.cpp have, too.

record_optimizers.py FILE
"""
import json
import sys

import torch
import transformers
from transformers.optimization import Adafactor

SHAPES = ((4, 3), (5,), (2, 3, 4))
MATRICES = ((4, 3), (2, 5))
STEPS = (1, 2, 10, 50, 200)


def adafactor(parameters, **options):
    return Adafactor(parameters, lr=0.01, scale_parameter=False, relative_step=False, **options)


def muon(parameters, **options):
    return torch.optim.Muon(parameters, lr=0.01, **options)


CASES = {
    "plain": (adafactor, SHAPES, {}),
    "all_options": (adafactor, SHAPES, {"beta1": 0.9, "weight_decay": 0.05, "clip_threshold": 0.5, "decay_rate": -0.6,
                                        "eps": (1e-6, 1e-3)}),
    "muon": (muon, MATRICES, {}),
    "all_options_of_muon": (muon, MATRICES, {"weight_decay": 0.05, "momentum": 0.9, "nesterov": False, "ns_steps": 3,
                                             "adjust_lr_fn": "match_rms_adamw"}),
}


def numbers(shape, step):
    return (torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * 0.7 + step).cos().float().reshape(shape)


def record(make, shapes, options):
    parameters = [numbers(shape, 0.5).requires_grad_() for shape in shapes]
    optimizer = make(parameters, **options)
    points = {}
    for step in range(1, STEPS[-1] + 1):
        for parameter in parameters:
            parameter.grad = numbers(parameter.shape, step) * (1 + step % 3)
        optimizer.step()
        if step in STEPS:
            points[step] = [parameter.flatten().tolist() for parameter in parameters]
    return points


with open(sys.argv[1], "w") as out:
    lines = [f'"{name}": {json.dumps(record(*case), separators=(",", ":"))}' for name, case in CASES.items()]
    out.write('{"torch": "%s", "transformers": "%s",\n' % (torch.__version__, transformers.__version__) + ",\n".join(lines) + "\n}\n")
