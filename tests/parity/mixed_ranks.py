# SPDX-License-Identifier: Apache-2.0
"""A rank of Python in a job whose other ranks are C++ programs, see mixed_ranks.sh."""
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(3)
dist.all_reduce(total)
assert total.eq(dist.get_world_size()).all(), total
dist.destroy_process_group()
# torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception").
os._exit(0)
