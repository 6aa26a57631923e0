# SPDX-License-Identifier: Apache-2.0
"""The model of scripted.cpp and compiled.cpp.

digits.py NET.PT                                writes it as TorchScript, for scripted.cpp to train
acc compile digits.py:step --output NET.pt2     compiles its training step for compiled.cpp
digits.py --test FOLDER                         reads what they learnt, and says how many test images are classified correctly
"""

import gzip
import pathlib
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.classes = nn.Sequential(nn.Dropout(0.25), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))

    def forward(self, images):
        return torch.log_softmax(self.classes(self.features(images).flatten(1)), 1)


def values(name, header):
    file = pathlib.Path(__file__).parent / "mnist/data" / name
    return torch.frombuffer(bytearray(gzip.decompress(file.read_bytes())[header:]), dtype=torch.uint8)


def correct(net):
    images = values("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
    labels = values("t10k-labels-idx1-ubyte.gz", 8)
    net.eval()
    with torch.no_grad():
        guesses = net((images / 255 - 0.1307) / 0.3081).argmax(1)
    return (guesses == labels).sum().item(), len(labels)


def step():
    return {
        "model": Net(),
        "inputs": (torch.randn(64, 1, 28, 28),),
        "targets": (torch.randint(10, (64,)),),
        "loss": nn.functional.nll_loss,
    }


if __name__ == "__main__":
    torch.manual_seed(42)
    net = Net()
    if sys.argv[1] != "--test":
        torch.jit.script(net).save(sys.argv[1])
    else:
        from safetensors.torch import load_file

        net.load_state_dict(load_file(f"{sys.argv[2]}/model.safetensors"))
        print("%d of %d" % correct(net))
