# SPDX-License-Identifier: Apache-2.0
"""examples_data.py DIGITS OUT: in OUT/mnist the digits with a test set as large as MNIST's, the 1,000 ten times; in
OUT/cifar-10 images in CIFAR-10's format, each class a bright band at a height of its own over noise."""
import gzip
import pathlib
import random
import shutil
import struct
import sys

SIDE = 32
BAND = 3  # rows
DIM = bytes(value // 2 for value in range(256))

digits, out = map(pathlib.Path, sys.argv[1:])


def repeat(data, times):
    """Repeats the items of an idx file."""
    count, start = struct.unpack(">I", data[4:8])[0], 4 + 4 * data[3]
    return data[:4] + struct.pack(">I", times * count) + data[8:start] + times * data[start:]


def banded(label, chance):
    """An image after its label: three planes of a byte for each pixel."""
    image = bytearray([label])
    for _ in range(3):
        plane = bytearray(chance.randbytes(SIDE * SIDE).translate(DIM))
        plane[label * BAND * SIDE:(label + 1) * BAND * SIDE] = bytes([250]) * (BAND * SIDE)
        image += plane
    return image


mnist = out / "mnist"
mnist.mkdir(parents=True, exist_ok=True)
for kind in ("images-idx3", "labels-idx1"):
    shutil.copy(digits / f"train-{kind}-ubyte.gz", mnist)
    (mnist / f"t10k-{kind}-ubyte").write_bytes(repeat(gzip.open(digits / f"t10k-{kind}-ubyte.gz").read(), 10))

cifar = out / "cifar-10"
cifar.mkdir(parents=True, exist_ok=True)
chance = random.Random(1)
for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
    (cifar / f"{name}.bin").write_bytes(b"".join(banded(i % 10, chance) for i in range(200)))
