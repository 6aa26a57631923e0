# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/runtime/optimizers.json: the parameters that transformers' Adafactor has after each of some steps, for
gradients that adafactor_test.cpp has, too.

record_optimizers.py FILE
"""
import json
import sys

import torch
import transformers
from transformers.optimization import Adafactor

SHAPES = ((4, 3), (5,), (2, 3, 4))
STEPS = (1, 2, 10, 50, 200)
CASES = {
    "plain": {},
    "all_options": {"beta1": 0.9, "weight_decay": 0.05, "clip_threshold": 0.5, "decay_rate": -0.6,
                    "eps": (1e-6, 1e-3)},
}


def numbers(shape, step):
    return (torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * 0.7 + step).cos().float().reshape(shape)


def record(options):
    parameters = [numbers(shape, 0.5).requires_grad_() for shape in SHAPES]
    optimizer = Adafactor(parameters, lr=0.01, scale_parameter=False, relative_step=False, **options)
    points = {}
    for step in range(1, STEPS[-1] + 1):
        for parameter in parameters:
            parameter.grad = numbers(parameter.shape, step) * (1 + step % 3)
        optimizer.step()
        if step in STEPS:
            points[step] = [parameter.flatten().tolist() for parameter in parameters]
    return points


with open(sys.argv[1], "w") as out:
    lines = [f'"{name}": {json.dumps(record(options), separators=(",", ":"))}' for name, options in CASES.items()]
    out.write('{"transformers": "%s",\n' % transformers.__version__ + ",\n".join(lines) + "\n}\n")
