# SPDX-License-Identifier: Apache-2.0
"""Python's side of scripts/bench/training: the same work and the same answers as training.cpp."""

import gzip
import json
import os
import struct
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.out(self.second(self.first(x).relu()).relu())


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3)
        self.fc1, self.fc2 = nn.Linear(32 * 12 * 12, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = functional.max_pool2d(self.conv2(self.conv1(x).relu()).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu())


def convolution(inner, outer, side, stride):
    return nn.Conv2d(inner, outer, side, stride, side // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1, self.bn1 = convolution(inner, outer, 3, stride), nn.BatchNorm2d(outer)
        self.conv2, self.bn2 = convolution(outer, outer, 3, 1), nn.BatchNorm2d(outer)
        self.shortcut = nn.Identity()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(convolution(inner, outer, 1, stride), nn.BatchNorm2d(outer))

    def forward(self, x):
        inside = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu_()))
        return (inside + self.shortcut(x)).relu_()


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = convolution(3, 64, 7, 2), nn.BatchNorm2d(64)
        blocks, inner = [], 64
        for outer in (64, 128, 256, 512):
            blocks += [Block(inner, outer, 1 if inner == outer else 2), Block(outer, outer, 1)]
            inner = outer
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(512, 10)

    def forward(self, x):
        x = functional.max_pool2d(self.bn1(self.conv1(x)).relu_(), 3, 2, 1)
        return self.fc(self.blocks(x).mean((2, 3)))


WORKLOADS = {"mlp": (Mlp, (64, 784), 60), "cnn": (Cnn, (32, 1, 28, 28), 20), "resnet18": (ResNet18, (4, 3, 64, 64), 4)}


def make_steps(name):
    make, shape, steps = WORKLOADS[name]
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(make())
    torch.manual_seed(10 + torch.distributed.get_rank())
    x, y = torch.randn(shape), torch.randint(10, shape[:1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def work():
        for _ in range(steps):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        return loss.item()

    return work


def read_idx(path):
    data = gzip.open(path).read()
    dimensions = data[3]
    shape = struct.unpack(f">{dimensions}I", data[4:4 + 4 * dimensions])
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions:]), dtype=torch.uint8).reshape(shape)


def make_loader(dataset, batch_size, workers, passes):
    loader = torch.utils.data.DataLoader(dataset, batch_size, shuffle=True, num_workers=workers,
                                         persistent_workers=workers > 0)
    return lambda: sum(len(batch[0]) for _ in range(passes) for batch in loader)


def make_idx(images, labels, workers):
    images = read_idx(images).unsqueeze(1).float().div_(255)
    return make_loader(torch.utils.data.TensorDataset(images, read_idx(labels).long()), 64, int(workers), 5)


def serve(mode, control, *arguments):
    distributed = mode == "step"
    if distributed:
        torch.distributed.init_process_group("gloo")
    main = not distributed or torch.distributed.get_rank() == 0
    lines = open(control) if main else None
    work = {"step": make_steps, "idx": make_idx}[mode](*arguments)
    while True:
        more = torch.ones(1, dtype=torch.uint8)
        if main and not lines.readline():
            more.zero_()
        if distributed:
            torch.distributed.broadcast(more, 0)
        if not more.item():
            break
        began, cpu = time.monotonic(), time.process_time()
        value = work()
        if main:
            print(json.dumps({"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu,
                              "value": float(value)}), flush=True)


def reduce_once():
    torch.distributed.init_process_group("gloo")
    total = torch.ones(1)
    torch.distributed.all_reduce(total)
    if total.item() == torch.distributed.get_world_size() and torch.distributed.get_rank() == 0:
        print(f"{time.monotonic():.6f}", flush=True)


if sys.argv[1] == "first":
    reduce_once()
else:
    serve(*sys.argv[1:])
# torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception").
os._exit(0)
