# SPDX-License-Identifier: Apache-2.0
"""train.py WORD...: what tests/workers/sharded_training.cpp does, with Python's accelerate and FSDP2 on CPUs.
FSDP_STATE_DICT_TYPE says in which form it saves."""
import os
import sys

import torch
import torch.distributed as dist
from accelerate import Accelerator, DistributedType, PartialState
from accelerate.utils import FullyShardedDataParallelPlugin
from torch.nn import functional as F

WORDS, WIDTH = 24, 16


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(WIDTH)
        self.up = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.down = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.block0 = Block()
        self.block1 = Block()
        self.out = torch.nn.Linear(WIDTH, WORDS, bias=False)
        self.out.weight = self.words.weight

    def forward(self, x):
        return self.out(self.block1(self.block0(self.words(x))))


def main(words):
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap",
                                            transformer_cls_names_to_wrap=["Block"],
                                            state_dict_type=os.environ["FSDP_STATE_DICT_TYPE"], cpu_ram_efficient_loading=False)
    accelerator = Accelerator(cpu=True)
    # On CPUs accelerate replicates models. From here on it does what it does on GPUs.
    PartialState().distributed_type = accelerator.state.distributed_type = DistributedType.FSDP
    accelerator.state.fsdp_plugin = plugin
    assert accelerator.is_fsdp2
    torch.manual_seed(1)
    net = Net()
    decayed = [one for one in net.parameters() if one.dim() > 1]
    others = [one for one in net.parameters() if one.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0}],
                                  lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + 0.1 * step))
    model, optimizer, scheduler = accelerator.prepare(net, optimizer, scheduler)
    step = 0
    while words:
        word, argument = words[:2]
        del words[:2]
        if word == "load":
            accelerator.load_state(argument)
            step = int(scheduler.state_dict()["last_epoch"]) // accelerator.num_processes
        elif word == "save":
            accelerator.save_state(argument)
        else:
            for step in range(step + 1, step + 1 + int(argument)):
                rank = accelerator.process_index
                x = (torch.arange(8) * (step + 3 * rank) + rank) % WORDS
                loss = F.cross_entropy(model(x), (x * 7 + 3) % WORDS)
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                mean = accelerator.reduce(loss.detach().double(), "mean").item()
                if rank == 0:
                    print(f"step {step} {mean:.9g} {optimizer.param_groups[0]['lr']:.17g}", flush=True)
    accelerator.wait_for_everyone()
    dist.destroy_process_group()
    # torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception").
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
