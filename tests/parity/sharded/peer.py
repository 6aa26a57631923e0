# SPDX-License-Identifier: Apache-2.0
"""peer.py save TO | copy FROM TO | check FROM: what tests/workers/sharded_state.cpp does, with Python's fully_shard and
torch.distributed.checkpoint, as accelerate saves and loads a SHARDED_STATE_DICT. `whole FROM` reads the weights with
dcp_to_torch_save."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict
from torch.distributed.checkpoint.state_dict import set_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

GROUPS = [{"embed.weight": (7, 5), "layers.0.weight": (5, 3, 2)}, {"layers.0.bias": (5,), "norm.weight": (4,)}]
NUMBERS = {name: number for number, name in enumerate(name for group in GROUPS for name in group)}
SHAPES = {name: shape for group in GROUPS for name, shape in group.items()}
BUFFERS = {"running.count": torch.tensor(5), "running.mean": torch.full((3,), 1.5, dtype=torch.bfloat16)}


def values(name, which):
    shape = SHAPES[name]
    numbers = torch.arange(torch.Size(shape).numel()) * 7
    return ((numbers + 31 * NUMBERS[name] + 57 * which) % 251).float().view(shape)


class Holder(torch.nn.Module):
    """A module with parameters under these names, of zeros."""

    def __init__(self):
        super().__init__()
        for name, shape in SHAPES.items():
            module, last = self.at(name)
            module.register_parameter(last, torch.nn.Parameter(torch.zeros(shape)))
        for name, buffer in BUFFERS.items():
            module, last = self.at(name)
            module.register_buffer(last, torch.zeros_like(buffer))

    def at(self, name):
        *parents, last = name.split(".")
        module = self
        for parent in parents:
            if parent not in dict(module.named_children()):
                module.add_module(parent, torch.nn.Module())
            module = module.get_submodule(parent)
        return module, last


def check_whole(folder):
    with tempfile.TemporaryDirectory() as scratch:
        file = os.path.join(scratch, "whole.pt")
        dcp_to_torch_save(os.path.join(folder, "pytorch_model_fsdp_0"), file)
        model = torch.load(file, weights_only=True)["model"]
        dcp_to_torch_save(os.path.join(folder, "optimizer_0"), file)
        optimizer = torch.load(file, weights_only=False)["optimizer"]
    assert model.keys() == SHAPES.keys() | BUFFERS.keys(), model.keys()
    for name in SHAPES:
        assert model[name].equal(values(name, 0)), name
        assert optimizer["state"][name]["exp_avg"].equal(values(name, 1)), name
    for name, buffer in BUFFERS.items():
        assert model[name].equal(buffer) and model[name].dtype == buffer.dtype, name
    assert [set(group["params"]) for group in optimizer["param_groups"]] == [set(group) for group in GROUPS], optimizer
    assert optimizer["param_groups"][0]["betas"] == (0.5, 0.75), optimizer


class Training:
    def __init__(self):
        self.mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        self.model = Holder()
        fully_shard(self.model, mesh=self.mesh)
        by_name = dict(self.model.named_parameters())
        self.optimizer = torch.optim.AdamW([{"params": [by_name[name] for name in group]} for group in GROUPS], lr=0)
        # The state that the other side loads into, or that is filled here.
        for parameter in by_name.values():
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def distribute(self, tensor):
        return distribute_tensor(tensor, self.mesh, [Shard(0)])

    def fill(self):
        for index, group in enumerate(self.optimizer.param_groups):
            group.update(lr=0.25, betas=(0.5, 0.75), weight_decay=0.125 if index == 0 else 0.0)
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(self.distribute(values(name, 0)))
                state = self.optimizer.state[parameter]
                state["step"].fill_(3 + NUMBERS[name])
                state["exp_avg"].copy_(self.distribute(values(name, 1)))
                state["exp_avg_sq"].copy_(self.distribute(values(name, 2)))
            for name, buffer in self.model.named_buffers():
                buffer.copy_(BUFFERS[name])

    def save(self, folder):
        dcp.save({"model": get_model_state_dict(self.model)},
                 checkpoint_id=os.path.join(folder, "pytorch_model_fsdp_0"))
        dcp.save({"optimizer": get_optimizer_state_dict(self.model, self.optimizer)},
                 checkpoint_id=os.path.join(folder, "optimizer_0"))

    def load(self, folder):
        state = {"model": get_model_state_dict(self.model)}
        dcp.load(state, checkpoint_id=os.path.join(folder, "pytorch_model_fsdp_0"))
        self.model.load_state_dict(state["model"])
        state = {"optimizer": get_optimizer_state_dict(self.model, self.optimizer)}
        dcp.load(state, checkpoint_id=os.path.join(folder, "optimizer_0"))
        set_optimizer_state_dict(self.model, self.optimizer, state["optimizer"])

    def check(self):
        for name, parameter in self.model.named_parameters():
            state = self.optimizer.state[parameter]
            assert parameter.full_tensor().equal(values(name, 0)), name
            assert state["step"].item() == 3 + NUMBERS[name], name
            assert state["exp_avg"].full_tensor().equal(values(name, 1)), name
            assert state["exp_avg_sq"].full_tensor().equal(values(name, 2)), name
        for name, buffer in self.model.named_buffers():
            assert buffer.equal(BUFFERS[name]), name
        for index, group in enumerate(self.optimizer.param_groups):
            wanted = (0.25, (0.5, 0.75), 0.125 if index == 0 else 0.0)
            assert (group["lr"], tuple(group["betas"]), group["weight_decay"]) == wanted, group


def main(mode, *folders):
    if mode == "whole":
        return check_whole(folders[0])
    dist.init_process_group("gloo")
    training = Training()
    if mode == "save":
        training.fill()
    else:
        training.load(folders[0])
        training.check()
    if mode != "check":
        training.save(folders[-1])
    dist.barrier()
    dist.destroy_process_group()
    # torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception").
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
