# SPDX-License-Identifier: Apache-2.0
"""compare.py ACC PROGRAM: two processes train the GPT of the example with the losses of the same model in Python."""
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

ACC, PROGRAM = sys.argv[1:]
TEXT = pathlib.Path("/usr/share/common-licenses")
STEPS, PROCESSES, BATCH, CONTEXT, WIDTH, HEADS, LAYERS = 20, 2, 4, 64, 128, 4, 4
TOLERANCE = 1e-5


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = torch.nn.Linear(WIDTH, WIDTH)
        self.ln2 = torch.nn.LayerNorm(WIDTH)
        self.fc1 = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.fc2 = torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.qkv(self.ln1(x)).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attention = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.proj(attention.transpose(1, 2).reshape(x.shape))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.token = torch.nn.Embedding(256, WIDTH)
        self.position = torch.nn.Embedding(CONTEXT, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, 256, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, 0, 0.02)

    def forward(self, x):
        x = self.token(x) + self.position(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def text_to_train_on():
    files = sorted(file for file in TEXT.iterdir() if not file.is_symlink())
    texts = [file.read_bytes() for file in files]
    return torch.tensor([byte for text in texts for byte in text[:len(text) // 10 * 9]])


def train(net):
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in net.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, 1e-3, betas=(0.9, 0.95))
    text = text_to_train_on()
    losses = []
    for step in range(STEPS):
        begin, count = step * PROCESSES * BATCH * CONTEXT, PROCESSES * BATCH * CONTEXT
        bytes_, following = (text[first:first + count].view(-1, CONTEXT) for first in (begin, begin + 1))
        optimizer.zero_grad()
        loss = F.cross_entropy(net(bytes_).flatten(0, 1), following.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
        losses.append(loss.item())
    return losses


torch.manual_seed(0)
torch.set_num_threads(1)
model = Gpt()
with tempfile.TemporaryDirectory() as root:
    weights = os.path.join(root, "model.safetensors")
    save_file(model.state_dict(), weights)
    done = subprocess.run([ACC, "run", "--standalone", "--no-python", "--nproc-per-node", str(PROCESSES), PROGRAM, weights,
                           str(TEXT), str(STEPS)], capture_output=True, text=True,
                          env={**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"})
if done.returncode != 0:
    sys.exit(done.stdout + done.stderr)
ours, theirs = [float(line) for line in done.stdout.split()], train(model)
assert len(ours) == STEPS, done.stdout
worst = max(abs(own - other) for own, other in zip(ours, theirs))
print(f"losses from {theirs[0]:.6f} to {theirs[-1]:.6f}, at most {worst:.1e} apart")
assert theirs[-1] < 0.8 * theirs[0], theirs
assert worst < TOLERANCE, (ours, theirs)
