# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/runtime/gradients.json: what PyTorch's GradScaler and clip_grad_norm_ do to given gradients.

record_gradients.py OUT
"""
import json
import math
import sys

import torch

# Each step's gradient before it is scaled; those near 1e34 overflow float32 while the scale is large.
SCALER_CASES = {
    "calm": ({"init_scale": 65536.0, "growth_interval": 3}, [1.0] * 10),
    "overflows": ({"init_scale": 65536.0, "growth_interval": 2}, [1e34] * 8),
    "now_and_then": ({"init_scale": 1024.0, "growth_interval": 2},
                     [1, 1, 1, 1e37, 1, 1, math.inf, 1, 1, math.nan, 1, 1, 1, 1]),
    "other_factors": ({"init_scale": 8.0, "growth_factor": 1.5, "backoff_factor": 0.25, "growth_interval": 1},
                      [1, 1, math.inf, 1, 1]),
}


STATE = torch.amp.GradScaler("cpu").state_dict()
DEFAULTS = {"init_scale": STATE["scale"], **{n: STATE[n] for n in ("growth_factor", "backoff_factor", "growth_interval")}}


def scaler_case(options, gradients):
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", **options)
    points = []
    for gradient in gradients:
        optimizer.zero_grad()
        scaler.scale((weight * gradient).sum()).backward()
        before = weight.item()
        scaler.step(optimizer)
        scaler.update()
        state = scaler.state_dict()
        points.append([state["scale"], state["_growth_tracker"], weight.item() == before])
    # JSON has no infinity.
    return {"options": {**DEFAULTS, **options}, "gradients": [str(g) for g in gradients], "points": points}


def clip_case(max_norm, norm_type):
    parameters = [torch.zeros(3, 4), torch.zeros(5), torch.zeros(2), torch.zeros(1)]
    for i, parameter in enumerate(parameters[:-1]):  # the last has no gradient
        parameter.requires_grad_(True)
        values = [((i * 7 + j * 3) % 11 - 5) * 0.1 * (i + 1) for j in range(parameter.numel())]
        parameter.grad = torch.tensor(values).reshape(parameter.shape)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)
    clipped = torch.cat([p.grad.reshape(-1) for p in parameters[:-1]])
    return {"max_norm": max_norm, "norm_type": str(norm_type), "norm": norm.item(), "clipped": clipped.tolist()}


with open(sys.argv[1], "w") as out:
    scaler = [f'"{n}": {json.dumps(scaler_case(*c), separators=(",", ":"))}' for n, c in SCALER_CASES.items()]
    clip = [json.dumps(clip_case(m, t), separators=(",", ":"))
            for m, t in ((1.0, 2.0), (100.0, 2.0), (0.5, 1.0), (0.3, math.inf), (2.0, 3.0), (1.0, 0.5))]
    out.write('{"torch": "%s",\n"scaler_defaults": %s,\n"scaler": {\n' % (torch.__version__, json.dumps(STATE)) + ",\n".join(scaler) + "},\n\"clip\": [\n"
              + ",\n".join(clip) + "]}\n")
