# SPDX-License-Identifier: Apache-2.0
"""train(MODE, FOLDER, OPTIMIZER): the training of train.cpp with Python's accelerate. `save_bin` saves state_dicts."""
import torch
import torch._dynamo  # which optimizers import, here once for all
from accelerate import Accelerator
from accelerate.utils import set_seed
from transformers.optimization import Adafactor


class Net(torch.nn.Module):
    def __init__(self, is_complex):
        super().__init__()
        self.first = torch.nn.Linear(2, 8)
        self.second = torch.nn.Linear(8, 1)
        self.turns = torch.nn.Parameter(torch.randn(8, 8, dtype=torch.complex64)) if is_complex else None

    def forward(self, x):
        hidden = self.first(x).tanh()
        if self.turns is not None:
            hidden = (hidden.to(torch.complex64) @ self.turns).abs()
        return self.second(torch.nn.functional.dropout(hidden, 0.25))


class Counter:
    steps = 0
    seed = 2**64 - 1

    def state_dict(self):
        return {"steps": self.steps, "seed": self.seed}

    def load_state_dict(self, state):
        self.steps = state["steps"]
        assert state["seed"] == self.seed, state


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.05, momentum=0.9, nesterov=True)


OPTIMIZERS = {
    "sgd": sgd,
    "complex": sgd,
    "adam": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.05, lr_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
    "adafactor": lambda p: Adafactor(p, 0.01, beta1=0.9, scale_parameter=False, relative_step=False),
    "lbfgs": lambda p: torch.optim.LBFGS(p, 0.5, max_iter=3, history_size=4),
}


def train(mode, folder, name):
    accelerator = Accelerator()
    set_seed(1 if mode.startswith("save") else 2)
    net = Net(is_complex=name == "complex")
    optimizer = OPTIMIZERS[name](net.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1 + step))
    net, optimizer, scheduler = accelerator.prepare(net, optimizer, scheduler)
    counter = Counter()
    accelerator.register_for_checkpointing(counter)
    if mode == "load":
        accelerator.load_state(folder)
    while counter.steps < 7:
        if mode.startswith("save") and counter.steps == 3:
            accelerator.save_state(folder, safe_serialization=mode == "save")
        x = torch.arange(8, dtype=torch.float32).mul(counter.steps + 1).sin().reshape(4, 2).to(accelerator.device)
        losses = []

        def closure():
            optimizer.zero_grad()
            losses.append((net(x) - x.sum(1, keepdim=True)).square().mean())
            accelerator.backward(losses[-1])
            return losses[-1]

        if name == "lbfgs":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        scheduler.step()
        counter.steps += 1
        print(f"step {counter.steps} {losses[0].item():.17g} {optimizer.param_groups[0]['lr']:.17g}")
