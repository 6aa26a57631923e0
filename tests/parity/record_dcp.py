# SPDX-License-Identifier: Apache-2.0
"""record_dcp.py FOLDER: a checkpoint of torch.distributed.checkpoint by two processes, as accelerate's FSDP writes it,
in FOLDER/sharded, and the same weights whole, in FOLDER/whole.safetensors. Start it with torchrun, on two processes."""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

folder = sys.argv[1]
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(0)
weights = {
    "rows.weight": torch.randn(5, 3),  # does not divide
    "columns.weight": torch.randn(3, 4),
    "half": torch.randn(4, 2).to(torch.bfloat16),
    "same": torch.arange(3),
    "scalar": torch.tensor(2.5),
    "plain": torch.randn(2, 2),
}
placements = {"rows.weight": Shard(0), "columns.weight": Shard(1), "half": Shard(0), "same": Replicate()}
state = {name: distribute_tensor(tensor, mesh, [placements[name]]) if name in placements else tensor
         for name, tensor in weights.items()}
dcp.save({"model": state}, checkpoint_id=os.path.join(folder, "sharded"))
if dist.get_rank() == 0:
    save_file(weights, os.path.join(folder, "whole.safetensors"), metadata={"format": "pt"})
dist.destroy_process_group()
os._exit(0)
