# SPDX-License-Identifier: Apache-2.0
"""Python's side of scripts/bench/recovery; recovery.cpp is C++'s.

  recovery_peer.py FOLDER STEPS

Trains the same network. The first rank keeps the state in FOLDER after every hundredth step, which is what people do who save
to a disk, or where there is a folder in memory there, after every tenth. Says what recovery.cpp says.
"""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

folder, last = pathlib.Path(sys.argv[1]), int(sys.argv[2])
memory = os.environ.get("ACC_MEMORY_FOLDER")


def say(line):
    os.write(1, f"{line}\n".encode())


def save(content, file):
    torch.save(content, f"{file}.new")
    os.rename(f"{file}.new", file)


dist.init_process_group("gloo")
rank = dist.get_rank()
state = (pathlib.Path(memory) if memory else folder) / "state.pt"
folder.mkdir(exist_ok=True)
torch.manual_seed(1)
inputs = torch.randn(4096, 256)
layers = torch.nn
net = layers.Sequential(layers.Linear(256, 512), layers.ReLU(), layers.Dropout(0.1), layers.Linear(512, 512), layers.ReLU(),
                        layers.Linear(512, 1))
model = DistributedDataParallel(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
step = 0
if state.exists():
    saved = torch.load(state)
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    step = saved["step"]
say(f"rank {rank} pid {os.getpid()} after {step}")
while step < last:
    # What a step reads and drops is a function of its number, so that nothing else is to be saved.
    torch.manual_seed(step * dist.get_world_size() + rank)
    x = inputs[torch.randint(len(inputs), (32,))]
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
    step += 1
    if rank == 0:
        say(f"step {step} at {time.monotonic():.6f}")
    if step % (10 if memory else 100) == 0 and rank == 0:
        save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, state)
if rank == 0:
    torch.save(net.state_dict(), folder / "model.pt")
dist.destroy_process_group()
