# SPDX-License-Identifier: Apache-2.0
"""A plain PyTorch DDP training on Gloo. Rank 1 crashes in the first CRASHES attempts, after the group met."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
assert os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "True"
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.full((2, 4), float(rank + 1))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if rank == 1 and attempt < int(os.environ.get("CRASHES", "0")):
    os._exit(3)
weights = [torch.empty_like(model.module.weight) for _ in range(world_size)]
dist.all_gather(weights, model.module.weight.data)
assert all(torch.equal(weights[0], other) for other in weights)
print(f"attempt {attempt} rank {rank} of {world_size} trained", flush=True)
dist.barrier()
dist.destroy_process_group()
# torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception"), under
# torchrun as well.
sys.stdout.flush()
os._exit(0)
