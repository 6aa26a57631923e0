# SPDX-License-Identifier: Apache-2.0
"""merge_weights.py ACC FOLDER [COUNT [SEED]]: `acc merge-weights` and accelerate's make the same of a recorded
checkpoint, and of random ones that three processes write with torch.distributed.checkpoint."""

import argparse
import os
import random
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from accelerate.utils import merge_fsdp_weights
from safetensors import safe_open
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

PROCESSES = 3
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool]


def random_tensor(dice, mesh):
    shape = [dice.choice([1, 2, 3, 5, 8]) for _ in range(dice.randint(0, 3))]
    tensor = torch.randint(0, 100, shape).to(dice.choice(DTYPES))
    if len(shape) == 2 and dice.random() < 0.3:
        tensor = tensor.t()  # not in the order of its storage
    kind = dice.choice(["whole", "replicated", "sharded", "sharded"])
    if kind == "whole" or not shape:
        return tensor
    placement = Replicate() if kind == "replicated" else Shard(dice.randrange(len(shape)))
    return distribute_tensor(tensor, mesh, [placement])


def write_checkpoints(rank, root, count, seed):
    dist.init_process_group("gloo", init_method=f"file://{root}/meeting", rank=rank, world_size=PROCESSES)
    mesh = init_device_mesh("cpu", (PROCESSES,))
    torch.manual_seed(seed)
    dice = random.Random(seed)
    for number in range(count):
        names = ["weight", "bias", "layers.0.weight", "layers.1.weight", "norm"][: dice.randint(2, 5)]
        state = {name: random_tensor(dice, mesh) for name in names}
        # Where there is one name at the top, both leave it out.
        state = dice.choice([{"model": state}, {"module": state}, state])
        dcp.save(state, checkpoint_id=os.path.join(root, f"checkpoint{number}"))
    dist.destroy_process_group()


def read(path):
    with safe_open(os.path.join(path, "model.safetensors"), "pt") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}


def compare(acc, folder, root):
    theirs, ours = (tempfile.mkdtemp(dir=root) for _ in range(2))
    merge_fsdp_weights(folder, theirs)
    subprocess.run([acc, "merge-weights", folder, ours], check=True, stdout=subprocess.DEVNULL)
    metadata, theirs = read(theirs)
    own_metadata, ours = read(ours)
    assert metadata == own_metadata, (folder, metadata, own_metadata)
    assert theirs.keys() == ours.keys(), (folder, theirs.keys(), ours.keys())
    for name, tensor in theirs.items():
        assert tensor.dtype == ours[name].dtype and tensor.equal(ours[name]), (folder, name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("acc")
    parser.add_argument("recorded")
    parser.add_argument("count", type=int, nargs="?", default=20)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        # Forked: each would import torch and accelerate anew.
        torch.multiprocessing.start_processes(write_checkpoints, (root, args.count, args.seed), PROCESSES, start_method="fork")
        for folder in (args.recorded, *(os.path.join(root, f"checkpoint{number}") for number in range(args.count))):
            compare(args.acc, folder, root)
    print(f"{args.count} random checkpoints and the recorded one, seed {args.seed}: the same")


if __name__ == "__main__":
    main()
