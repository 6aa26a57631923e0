# SPDX-License-Identifier: Apache-2.0
"""train.py SETUP: the training of train.cpp with Python's DistributedDataParallel."""
import os
import sys

import torch
from torch.nn.parallel import DistributedDataParallel

setup = sys.argv[1]
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()

torch.manual_seed(11)
norm = [torch.nn.BatchNorm1d(64)] if setup == "norm" else []
model = torch.nn.Sequential(torch.nn.Linear(16, 64), *norm, torch.nn.ReLU(), torch.nn.Linear(64, 4))
torch.manual_seed(12)
inputs, targets = torch.randn(640, 16), torch.randint(4, (640,))
model = DistributedDataParallel(model, gradient_as_bucket_view=setup == "views")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

order = torch.randperm(640, generator=torch.Generator().manual_seed(5)).split(16)
lines = []
for step in range(20):
    batch = order[2 * step + rank]
    x, y = inputs[batch], targets[batch]
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=setup == "bf16"):
        out = model(x)
    loss = torch.nn.functional.cross_entropy(out.float(), y)
    loss.backward()
    optimizer.step()
    lines.append(f"loss {rank} {step} {loss.item():.12g}\n")
sys.stdout.write("".join(lines))
sys.stdout.flush()
torch.distributed.destroy_process_group()
# torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception"), under
# torchrun as well.
os._exit(0)
