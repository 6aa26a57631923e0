# SPDX-License-Identifier: Apache-2.0
"""train.py FOLDER SETUP...: the training of train.cpp with Python's DistributedDataParallel, or, started as one process, on
the batches of both processes together. Its results are in FOLDER/SETUP.RANK."""
import contextlib
import functools
import os
import sys

import torch
import torch._dynamo  # which optimizers import, here once for all set-ups
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook, fp16_compress_hook
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scenarios import device_of_job, fork_for_each, new_group  # noqa: E402

setup = fork_for_each(sys.argv[2:])
words = setup.split("_")
rank, size, device = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device_of_job()
norm = "norm" in words or "syncnorm" in words
# A process alone has the batches of two, to compare with both, unless it is compared with a process alone.
per_batch = 2 if size == 1 and "alone" not in words else 1


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        middle = [torch.nn.BatchNorm1d(64)] if norm else []
        if "dropout" in words:
            middle.append(torch.nn.Dropout(0.3))
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 64), *middle, torch.nn.ReLU(), torch.nn.Linear(64, 4))
        if "unused" in words or "static" in words:
            self.aux = torch.nn.Linear(16, 4)

    def forward(self, x, uses_aux: bool):
        out = self.layers(x)
        return out + self.aux(x) if uses_aux else out


class PlainNet(Net):
    """Without the auxiliary layer: TorchScript compiles what forward mentions."""

    def forward(self, x, uses_aux: bool):
        return self.layers(x)


class SparseNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 16, sparse=True)
        self.bag = torch.nn.EmbeddingBag(50, 16, sparse=True, mode="sum")
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))

    def forward(self, x, uses_aux: bool):
        named = (x * 10).long().abs().remainder(50)
        return self.layers(self.words(named).mean(1) + self.bag(named))


class ComplexNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.turns = torch.nn.Parameter(torch.randn(16, 64, dtype=torch.complex64))
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))

    def forward(self, x, uses_aux: bool):
        return self.layers((x.to(torch.complex64) @ self.turns).abs())


def make_net():
    if "complex" in words:
        return ComplexNet()
    if "sparse" in words:
        return SparseNet()
    return Net() if "unused" in words or "static" in words else PlainNet()


def average_alone(_, bucket):
    """The average of DistributedDataParallel, but no two at once: in torch 2.11 Gloo's sum of sparse tensors corrupts memory
    while another operation runs beside it."""
    gradients = bucket.buffer()
    if gradients.is_sparse:
        gradients.div_(size)
    else:
        gradients.mul_(1 / size)
    torch.distributed.all_reduce(gradients)
    average = torch.futures.Future()
    average.set_result(gradients)
    return average


def prepare(net):
    if size == 1:
        return net
    options = {"bucket_cap_mb": 0.001} if "buckets" in words else {}
    model = DistributedDataParallel(net, gradient_as_bucket_view="views" in words,
                                    find_unused_parameters="unused" in words, static_graph="static" in words, **options)
    if "sparse" in words:
        model.register_comm_hook(None, average_alone)
    if "fp16hook" in words:
        model.register_comm_hook(None, fp16_compress_hook)
    if "bf16hook" in words:
        model.register_comm_hook(None, bf16_compress_hook)
    return model


def join_of(model):
    if "join" not in words:
        return contextlib.nullcontext()
    return Join([model], divide_by_initial_world_size="effective" not in words)


def uses_aux(batch):
    return "unused" in words and (batch % 3 == 0 or (batch % 3 == 1 and rank == 0))


def loss_of(model, batch, x, y):
    with torch.autocast(device, torch.bfloat16, enabled="bf16" in words):
        out = model(x, uses_aux(batch))
    return torch.nn.functional.cross_entropy(out.float(), y)


def backward(batch, x, y):
    """The loss: one backward for those of both models, or, with the word turns, one for each."""
    loss = loss_of(model, batch, x.requires_grad_("penalty" in words), y)
    if "penalty" in words:
        loss = loss + torch.autograd.grad(loss, x, create_graph=True)[0].square().sum()
    if second is None:
        loss.backward(inputs=list(parameters) if "inputs" in words else None)
        return loss
    if "turns" in words:
        loss.backward()
    other_loss = loss_of(second, batch + 1, x, y).square()
    (other_loss if "turns" in words else loss + other_loss).backward()
    return loss + other_loss


def local_sgd_of(model):
    if "localsgd" not in words:
        return contextlib.nullcontext()
    from accelerate import Accelerator
    from accelerate.local_sgd import LocalSGD

    return LocalSGD(accelerator=Accelerator(cpu=True), model=model, local_sgd_steps=8)


torch.manual_seed(11)
net = make_net().to(device)
if "shared" in words:
    other = make_net().to(device)
    other.layers[0] = net.layers[0]
if "checkpoint" in words:
    net.layers.forward = functools.partial(checkpoint, net.layers.forward, use_reentrant=False)
if "script" in words:
    net = torch.jit.script(net)
    if rank == 0:
        net.save(f"{sys.argv[1]}/{setup}-net.pt")
torch.manual_seed(12)
inputs, targets = torch.randn(3200, 16), torch.randint(4, (3200,))
order = torch.randperm(3200, generator=torch.Generator().manual_seed(5)).split(16 * per_batch)
if size > 1:
    new_group(setup)
model = prepare(net)
second = prepare(other) if "shared" in words else None
models = [model] if second is None else [model, second]
parameters = dict.fromkeys(parameter for one in models for parameter in one.parameters())
if "adagrad" in words:
    optimizer = torch.optim.Adagrad(parameters, lr=0.05)
else:
    optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
batches = (60 if rank == 0 else 85) if "join" in words else 60 if "three" in words else 100

lines = []
with join_of(model), local_sgd_of(model) as local_sgd:
    for batch in range(batches):
        indices = order[size * batch + rank]
        x, y = inputs[indices].to(device), targets[indices].to(device)
        accumulates = "nosync" in words and batch % 2 == 0
        with contextlib.ExitStack() as alone:
            for one in models if accumulates else []:
                alone.enter_context(one.no_sync())
            loss = backward(batch, x, y)
        if not accumulates:
            optimizer.step()
            optimizer.zero_grad()
            if local_sgd is not None:
                local_sgd.step()
        lines.append(f"loss {rank} {batch} {loss.item():.12g}\n")
nets = [net] if second is None else [net, other]
for index, tensor in enumerate([tensor for one in nets for tensor in [*one.parameters(), *one.buffers()]]):
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    values = " ".join(f"{value:.12g}" for value in real.double().flatten().tolist())
    lines.append(f"state {rank} {index} {values}\n")
with open(f"{sys.argv[1]}/{setup}.{rank}", "w") as file:
    file.write("".join(lines))
if size > 1:
    torch.distributed.destroy_process_group()
# torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception").
os._exit(0)
