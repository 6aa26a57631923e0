# SPDX-License-Identifier: Apache-2.0
"""The models of compare.py, as factories for `acc compile`, and the batches that both train with."""
import torch
from torch import nn
from torch.nn import functional

STEPS = 6
BATCH = 4  # of each process


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 5))
        self.net[0].bias.requires_grad_(False)

    def forward(self, inputs):
        return self.net(inputs)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.classes = nn.Linear(36, 5)

    def forward(self, images):
        return self.classes(self.features(images).flatten(1))


class Block(nn.Module):
    """A language model of one block, whose output layer shares the weights of the embedding."""

    def __init__(self, words=20, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(words, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.attention = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.output = nn.Linear(width, words, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, tokens):
        values = functional.dropout(self.embedding(tokens), 0.1, self.training)
        parts = self.attention(self.norms[0](values)).chunk(3, -1)
        query, key, value = [one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in parts]
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        values = values + self.projection(seen.transpose(1, 2).flatten(2))
        values = values + self.inner(self.norms[1](values))
        logits = self.output(self.norms[2](values))
        loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        return {"loss": loss, "logits": logits}


def batch(name, index):
    """Inputs and targets, which C++ computes the same."""
    shape = {"mlp": (BATCH, 12), "cnn": (BATCH, 1, 8, 8), "gpt": (BATCH, 7)}[name]
    count = torch.Size(shape).numel()
    values = (torch.arange(count) * 7919 + index * 104729) % 1009
    if name == "gpt":
        return ((values % 20).view(shape),)
    return (values.float() / 1009 - 0.5).view(shape), (torch.arange(BATCH) + index) % 5


def example(name):
    *inputs, targets = batch(name, 0)
    return {"inputs": tuple(inputs), "targets": (targets,), "loss": functional.cross_entropy}


def mlp():
    return {"model": Mlp(), **example("mlp"), "groups": {"weights": ["net.0.weight", "net.2.weight"]}}


def cnn():
    return {"model": Cnn(), **example("cnn")}


def gpt():
    return {"model": Block(), "inputs": batch("gpt", 0)}
