# SPDX-License-Identifier: Apache-2.0
"""train.py FOLDER SETUP...: the training of train.cpp with Python's fully_shard; its losses are in FOLDER/SETUP_PROCESSES."""
import contextlib
import functools
import math
import os
import sys

import torch
import torch._dynamo  # which optimizers import, here once for all set-ups
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

WORDS, WIDTH, BLOCKS, LENGTH = 64, 48, 4, 12
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scenarios import device_of_job, fork_for_each, new_group  # noqa: E402

setup = fork_for_each(sys.argv[2:])
words = setup.split("_")
rank, size, device = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device_of_job()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.out = nn.Linear(WIDTH, WORDS, bias=False)
        if "tied" in words:
            self.out.weight = self.words.weight

    def forward(self, x):
        y = self.words(x)
        for block in self.blocks:
            y = block(y)
        return self.out(y)


class AdamW(torch.optim.Optimizer):
    """LibTorch's, to the bit: torch.optim.AdamW rounds averages otherwise, since it has lerp for them."""

    def __init__(self, groups, lr):
        super().__init__(groups, {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[parameter]
                if not state:
                    state.update(step=0, average=torch.zeros_like(parameter), squares=torch.zeros_like(parameter))
                state["step"] += 1
                state["average"].mul_(beta1).add_(parameter.grad, alpha=1 - beta1)
                state["squares"].mul_(beta2).addcmul_(parameter.grad, parameter.grad, value=1 - beta2)
                root = math.sqrt(1 - beta2 ** state["step"])
                denominator = (state["squares"].sqrt() / root).add_(group["eps"])
                parameter.addcdiv_(state["average"], denominator, value=-group["lr"] / (1 - beta1 ** state["step"]))


torch.set_num_threads(1)
new_group(setup)
net = Net()
with torch.no_grad():
    for i, (name, parameter) in enumerate(net.named_parameters()):
        torch.manual_seed(i)
        values = torch.randn(parameter.shape) * 0.1
        parameter.copy_(values + 1 if name.endswith("norm.weight") else values)
if "frozen" in words:
    for name, parameter in net.named_parameters():
        if name.startswith("blocks.1.") or name.endswith("up.bias"):
            parameter.requires_grad_(False)
if "checkpoint" in words:
    for block in net.blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
mesh = init_device_mesh(device, (size,))
policy = MixedPrecisionPolicy()
if "bf16" in words:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
options = {"mesh": mesh, "mp_policy": policy, "reshard_after_forward": "stage2" not in words}
for block in net.blocks:
    fully_shard(block, **options)
fully_shard(net, **options)
trained = [p for p in net.parameters() if p.requires_grad]
optimizer = (torch.optim.AdamW if "lerp" in words else AdamW)(
    [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
    ],
    lr=3e-4,
)
batches = 3 if "clip" in words else 1
# accelerate keeps autocast on beside the policy.
precision = torch.autocast(device, torch.bfloat16) if "bf16" in words else contextlib.nullcontext()
numbers = []
for step in range(25):
    total = 0.0
    for batch in range(batches):
        torch.manual_seed(1000 + (step * batches + batch) * 16 + rank)
        x = torch.randint(0, WORDS, (4, LENGTH)).to(device)
        y = (x * 7 + 3) % WORDS
        with precision:
            out = net(x)
        loss = F.cross_entropy(out.float().reshape(-1, WORDS), y.reshape(-1)) / batches
        loss.backward()
        total += loss.item()
    if "clip" in words:
        numbers.append(nn.utils.clip_grad_norm_(net.parameters(), 0.5).full_tensor().item())
    optimizer.step()
    optimizer.zero_grad()
    mean = torch.tensor([total], dtype=torch.double, device=device)
    dist.all_reduce(mean)
    numbers.append(mean.item() / size)
if rank == 0:
    with open(f"{sys.argv[1]}/{setup}_{size}", "w") as file:
        file.writelines(f"{number:.12g}\n" for number in numbers)
dist.barrier()
dist.destroy_process_group()
# torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception").
os._exit(0)
