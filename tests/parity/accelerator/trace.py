# SPDX-License-Identifier: Apache-2.0
"""Python's side of trace.cpp: the same on accelerate's Accelerator."""
import os

import torch
from accelerate import Accelerator
from accelerate.utils import GradientAccumulationPlugin
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR
from torch.utils.data import DataLoader, TensorDataset


def tell(accelerator, case, name, *values):
    # One write a line: both processes write to one file.
    words = [str(accelerator.process_index), case, name, *(f"{v:.9g}" for v in values)]
    os.write(1, (" ".join(words) + "\n").encode())


def train(case, plugin, make_scheduler, split_batches=False):
    from accelerate.state import AcceleratorState, GradientState
    from accelerate.utils import DataLoaderConfiguration
    AcceleratorState._reset_state()
    GradientState._reset_state()
    accelerator = Accelerator(cpu=True, gradient_accumulation_plugin=GradientAccumulationPlugin(**plugin),
                              dataloader_config=DataLoaderConfiguration(split_batches=split_batches))
    model = torch.nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.5, -0.3]]))
        model.bias.fill_(0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = make_scheduler(optimizer)
    x = torch.tensor([[((i * 7 + j * 3) % 11 - 5) * 0.2 for j in range(2)] for i in range(20)])
    loader = DataLoader(TensorDataset(x), batch_size=4 if split_batches else 2)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    batch = 0
    for _ in range(2):
        for (inputs,) in loader:
            with accelerator.accumulate(model):
                loss = (model(inputs) - 1).square().mean()
                accelerator.backward(loss)
                norm = 0.0
                if accelerator.sync_gradients:
                    norm = accelerator.clip_grad_norm_(model.parameters(), 0.4).item()
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            inner = accelerator.unwrap_model(model)
            tell(accelerator, case, f"batch_{batch}", accelerator.sync_gradients, accelerator.step, loss.item(), norm,
                 scheduler.get_last_lr()[0], optimizer.param_groups[0]["momentum"], *inner.weight.flatten().tolist(),
                 inner.bias.item())
            batch += 1


def share(accelerator):
    for length, padding in ((4, False), (3, True), (3, False), (1, True), (1, False), (17, False), (17, True)):
        name = f"{length}_{'padded' if padding else 'plain'}"
        with accelerator.split_between_processes(list(range(length)), apply_padding=padding) as part:
            tell(accelerator, "split_list", name, *part)
        with accelerator.split_between_processes(torch.arange(2 * length).reshape(length, 2), padding) as part:
            tell(accelerator, "split_tensor", name, *part.shape, *part.flatten().tolist())
    values = {"a": list(range(8)), "b": list(range(8, 16)), "c": torch.arange(16, 24)}
    with accelerator.split_between_processes(values) as part:
        tell(accelerator, "split_values", "8", *part["a"], *part["b"], *part["c"].tolist())


def exchange(accelerator):
    rank = accelerator.process_index
    tensor = torch.full((rank + 1, 2), rank + 0.5)
    for name, options in (("last", {"pad_index": 7}), ("first", {"pad_first": True}), ("other_dim", {"dim": 1}),
                          ("negative_dim", {"dim": -2, "pad_index": 3}), ("no_dim", {"dim": 2})):
        padded = accelerator.pad_across_processes(tensor, **options)
        tell(accelerator, "pad", name, *padded.shape, *padded.flatten().tolist())
    nested = {"a": torch.tensor(rank + 1.0), "b": [torch.tensor([rank, 2.0])]}
    for name, moved in (("gather", accelerator.gather(nested)), ("sum", accelerator.reduce(nested)),
                        ("mean", accelerator.reduce(nested, "mean")), ("max", accelerator.reduce(nested, "max")),
                        ("none", accelerator.reduce(nested, "none"))):
        tell(accelerator, "nested", name, *moved["a"].flatten().tolist(), *moved["b"][0].flatten().tolist())


job = Accelerator(cpu=True)
share(job)
exchange(job)
train("accumulate", {"num_steps": 3}, lambda o: OneCycleLR(o, 0.4, total_steps=6))
train("each_batch", {"num_steps": 2, "sync_with_dataloader": False, "sync_each_batch": True},
      lambda o: LambdaLR(o, lambda step: 1 / (1 + step)))
train("split_batches", {"num_steps": 2}, lambda o: LambdaLR(o, lambda step: 1 / (1 + step)), split_batches=True)
job.wait_for_everyone()
# torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception").
os._exit(0)
