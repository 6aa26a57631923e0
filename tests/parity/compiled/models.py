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
        # Before a batch norm: its gradient is rounding alone.
        self.features[0].bias.requires_grad_(False)

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
    shape = {"mlp": (12,), "cnn": (1, 8, 8), "gpt": (7,), "gpt2": (32,), "resnet50d": (3, 64, 64)}[name]
    shape = (BATCH, *shape)
    count = torch.Size(shape).numel()
    values = (torch.arange(count) * 7919 + index * 104729) % 1009
    if name == "gpt":
        return ((values % 20).view(shape),)
    if name == "gpt2":
        return (values.view(shape), values.view(shape))
    return (values.float() / 1009 - 0.5).view(shape), (torch.arange(BATCH) + index) % 5


def example(name):
    *inputs, targets = batch(name, 0)
    return {"inputs": tuple(inputs), "targets": (targets,), "loss": functional.cross_entropy}


def mlp():
    weights = torch.tensor([0.5, 1, 2, 1, 4])
    given = {"model": Mlp(), **example("mlp"), "groups": {"weights": ["net.0.weight", "net.2.weight"]}}
    return {**given, "loss": nn.CrossEntropyLoss(weight=weights)}


def cnn():
    return {"model": Cnn(), **example("cnn")}


def gpt():
    return {"model": Block(), "inputs": batch("gpt", 0)}


# Those of others, which take minutes to compile.


def next_token_loss(output, tokens):
    return functional.cross_entropy(output.logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=1009, n_positions=32, n_embd=64, n_layer=2, n_head=2, use_cache=False)
    return {"model": GPT2LMHeadModel(config).train(), **example("gpt2"), "loss": next_token_loss}


def resnet50d():
    import timm

    return {"model": timm.create_model("resnet50d", pretrained=False, num_classes=5), **example("resnet50d")}


def load_gpt2(net, folder):
    net.config.save_pretrained(folder)
    return type(net).from_pretrained(folder)


def load_resnet50d(net, folder):
    import timm

    timm.models.load_checkpoint(net, f"{folder}/model.safetensors")
    return net
