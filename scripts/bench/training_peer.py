# SPDX-License-Identifier: Apache-2.0
"""Python's side of scripts/bench/training: the same work and the same answers as training.cpp, on the same device."""

import functools
import gzip
import importlib
import json
import math
import os
import struct
import sys
import time

import torch
from torch import nn
from torch.nn import functional

CUDA = os.environ.get("ACC_BENCH_DEVICE") == "cuda"


def device():
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if CUDA else torch.device("cpu")


def init_process_group():
    if CUDA:
        torch.cuda.set_device(device())
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if CUDA else "gloo")


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.out(self.second(self.first(x).relu()).relu())


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3)
        self.fc1, self.fc2 = nn.Linear(32 * 12 * 12, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = functional.max_pool2d(self.conv2(self.conv1(x).relu()).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu())


def convolution(inner, outer, side, stride):
    return nn.Conv2d(inner, outer, side, stride, side // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1, self.bn1 = convolution(inner, outer, 3, stride), nn.BatchNorm2d(outer)
        self.conv2, self.bn2 = convolution(outer, outer, 3, 1), nn.BatchNorm2d(outer)
        self.shortcut = nn.Identity()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(convolution(inner, outer, 1, stride), nn.BatchNorm2d(outer))

    def forward(self, x):
        inside = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu_()))
        return (inside + self.shortcut(x)).relu_()


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = convolution(3, 64, 7, 2), nn.BatchNorm2d(64)
        blocks, inner = [], 64
        for outer in (64, 128, 256, 512):
            blocks += [Block(inner, outer, 1 if inner == outer else 2), Block(outer, outer, 1)]
            inner = outer
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(512, 10)

    def forward(self, x):
        x = functional.max_pool2d(self.bn1(self.conv1(x)).relu_(), 3, 2, 1)
        return self.fc(self.blocks(x).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(512), nn.Linear(512, 2048), nn.Linear(2048, 512)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).relu())


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.out = nn.ModuleList(Layer() for _ in range(12)), nn.Linear(512, 10)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(256, 128), nn.Embedding(256, 128)
        self.norm1, self.qkv, self.out = nn.LayerNorm(128), nn.Linear(128, 3 * 128), nn.Linear(128, 128)
        self.norm2, self.up, self.down = nn.LayerNorm(128), nn.Linear(128, 4 * 128), nn.Linear(4 * 128, 128)
        self.head = nn.Linear(128, 256)

    def forward(self, text):
        batch, length = text.shape
        x = self.words(text) + self.positions(torch.arange(length, device=text.device))
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, 4, 32).permute(2, 0, 3, 1, 4)
        scores = q.matmul(k.transpose(-2, -1)) / math.sqrt(32)
        later = torch.ones(length, length, dtype=torch.bool, device=text.device).triu(1)
        mixed = scores.masked_fill(later, -1e9).softmax(-1).matmul(v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, 128))
        return self.head(x + self.down(self.up(self.norm2(x)).relu()))


WORKLOADS = {"mlp": (Mlp, (64, 784), 60), "cnn": (Cnn, (32, 1, 28, 28), 20), "resnet18": (ResNet18, (4, 3, 64, 64), 4),
             "deep": (Deep, (64, 512), 2)}


def steps_of(model, optimizer, shape, steps):
    """Steps on numbers that are random, and others in each process."""
    torch.manual_seed(10 + torch.distributed.get_rank())
    x, y = torch.randn(shape).to(device()), torch.randint(10, shape[:1]).to(device())

    def work():
        for _ in range(steps):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        return loss.item()

    return work


def make_steps(name):
    make, shape, steps = WORKLOADS[name]
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(make().to(device()))
    return steps_of(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), shape, steps)


def make_batch(name):
    """Of random numbers, which training.cpp draws the same."""
    if name == "gpt":
        return (torch.randint(256, (8, 64)),)
    _, shape, _ = WORKLOADS[name]
    return torch.randn(shape), torch.randint(10, shape[:1])


class WithLoss(nn.Module):
    """A network whose forward returns its loss, and the logits."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x, y=None):
        logits = self.network(x)
        return functional.cross_entropy(logits.flatten(0, -2), (x if y is None else y).flatten()), logits


def whole_step(name):
    """What `acc compile` takes."""
    torch.manual_seed(1)
    model = WithLoss(Gpt(128, 64, 4, 4) if name == "gpt" else WORKLOADS[name][0]())
    return {"model": model, "inputs": make_batch(name)}


mlp_step, cnn_step, resnet18_step, gpt_step = (functools.partial(whole_step, name) for name in ("mlp", "cnn", "resnet18", "gpt"))


def make_compiled(name, package, steps):
    """Steps of torch.compile, of the loss too."""
    model = torch.compile(nn.parallel.DistributedDataParallel(whole_step(name)["model"]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    torch.manual_seed(10 + torch.distributed.get_rank())
    batch = make_batch(name)

    def work():
        for _ in range(int(steps)):
            optimizer.zero_grad()
            loss, _ = model(*batch)
            loss.backward()
            optimizer.step()
        return loss.item()

    return work


def make_sharded(stage):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device().type, (torch.distributed.get_world_size(),))
    torch.manual_seed(1)
    make, shape, steps = WORKLOADS["deep"]
    model = make().to(device())
    options = {"mesh": mesh, "reshard_after_forward": stage == "3"}
    for layer in model.layers:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    return steps_of(model, torch.optim.AdamW(model.parameters(), lr=1e-3), shape, steps)


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.qkv, self.proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln2, self.fc1, self.fc2 = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        parts = self.qkv(self.ln1(x)).view(*x.shape[:2], 3, self.heads, x.shape[2] // self.heads).permute(2, 0, 3, 1, 4)
        attention = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.proj(attention.transpose(1, 2).reshape(x.shape))
        return x + self.fc2(functional.gelu(self.fc1(self.ln2(x))))


class Gpt(nn.Module):
    """micro of the GPT example, or another."""

    def __init__(self, width=256, context=128, blocks=6, heads=8):
        super().__init__()
        self.token, self.position = nn.Embedding(256, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, x):
        x = self.token(x) + self.position(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make_recomputed(stage, how):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.utils.checkpoint import checkpoint

    options = {"mesh": init_device_mesh(device().type, (torch.distributed.get_world_size(),)),
               "reshard_after_forward": stage == "3"}
    torch.manual_seed(1)
    model = Gpt().to(device())
    for block in model.blocks:
        if how == "recompute":
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
        fully_shard(block, **options)
    fully_shard(model, **options)
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, 3e-4, betas=(0.9, 0.95))
    text = torch.randint(256, (32, 128)).to(device())

    def work():
        for _ in range(2):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(text).flatten(0, 1), text.flatten())
            loss.backward()
            optimizer.step()
        return loss.item()

    return work


def kibibytes(name):
    """Of this process's memory."""
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith(name)).split()[1])


def make_trainer_workload(name):
    torch.manual_seed(1)
    if name == "transformer":
        network = Transformer()
        text = torch.randint(256, (512, 65))
        return network, text[:, :-1].contiguous(), text[:, 1:].contiguous(), 16
    network = {"mlp": Mlp, "cnn": Cnn}[name]()
    inputs = torch.randn((4096, 784) if name == "mlp" else (1024, 1, 28, 28))
    return network, inputs, torch.randint(10, inputs.shape[:1]), 32


def make_trainer(name, folder):
    import transformers

    class Rows(torch.utils.data.Dataset):
        def __init__(self, inputs, labels):
            self.inputs, self.labels = inputs, labels

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, index):
            return {"inputs": self.inputs[index], "labels": self.labels[index]}

    class WithLoss(nn.Module):
        """What transformers' Trainer wants of a model."""

        def __init__(self, network):
            super().__init__()
            self.network = network

        def forward(self, inputs, labels):
            logits = self.network(inputs)
            return {"loss": functional.cross_entropy(logits.flatten(0, -2), labels.flatten()), "logits": logits}

    transformers.logging.set_verbosity_error()

    def work():
        network, inputs, labels, batch_size = make_trainer_workload(name)
        arguments = transformers.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=batch_size, num_train_epochs=1, learning_rate=1e-3,
            use_cpu=not CUDA, logging_strategy="no", save_strategy="no", report_to="none", disable_tqdm=True,
            dataloader_pin_memory=CUDA)
        trainer = transformers.Trainer(WithLoss(network), arguments, train_dataset=Rows(inputs, labels))
        trainer.remove_callback(transformers.PrinterCallback)
        return trainer.train().training_loss

    return work


def read_idx(path):
    data = gzip.open(path).read()
    dimensions = data[3]
    shape = struct.unpack(f">{dimensions}I", data[4:4 + 4 * dimensions])
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions:]), dtype=torch.uint8).reshape(shape)


def make_loader(dataset, batch_size, workers, passes):
    loader = torch.utils.data.DataLoader(dataset, batch_size, shuffle=True, num_workers=workers,
                                         persistent_workers=workers > 0, pin_memory=CUDA)
    if CUDA:
        from accelerate import Accelerator

        loader = Accelerator().prepare(loader)

    def work():
        images = 0
        for _ in range(passes):
            for batch in loader:
                images += len(batch[0])
        batch[0].flatten()[0].item()  # a device is done with its copies
        return images

    return work


def make_idx(images, labels, workers):
    images = read_idx(images).unsqueeze(1).float().div_(255)
    return make_loader(torch.utils.data.TensorDataset(images, read_idx(labels).long()), 64, int(workers), 5)


def make_photographs(folder, count):
    """Files like a camera's, in two classes: soft shapes with some noise, 500 x 375."""
    from PIL import Image

    torch.manual_seed(3)
    for index in range(count):
        shapes = functional.interpolate(torch.rand(1, 3, 12, 16), (375, 500), mode="bicubic")[0]
        image = ((shapes + 0.03 * torch.randn(3, 375, 500)) * 255).clamp(0, 255).byte()
        os.makedirs(f"{folder}/{index % 2}", exist_ok=True)
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(f"{folder}/{index % 2}/{index:04}.jpg", quality=90)


class Photographs(torch.utils.data.Dataset):
    """What torchvision's ImageFolder does with RandomResizedCrop(224), RandomHorizontalFlip, ToTensor and Normalize."""

    def __init__(self, folder):
        self.files = sorted((os.path.join(where, name), int(os.path.basename(where)))
                            for where, _, names in os.walk(folder) for name in names)
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def __len__(self):
        return len(self.files)

    @staticmethod
    def crop(width, height):
        for _ in range(10):
            area = width * height * torch.empty(1).uniform_(0.08, 1).item()
            ratio = math.exp(torch.empty(1).uniform_(math.log(3 / 4), math.log(4 / 3)).item())
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                left, top = torch.randint(width - w + 1, (1,)).item(), torch.randint(height - h + 1, (1,)).item()
                return left, top, left + w, top + h
        return 0, 0, width, height

    def __getitem__(self, index):
        import numpy
        from PIL import Image

        name, label = self.files[index]
        with open(name, "rb") as file:
            image = Image.open(file).convert("RGB")
        image = image.crop(self.crop(*image.size)).resize((224, 224), Image.Resampling.BILINEAR)
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous()
        return pixels.to(torch.float32).div(255).sub_(self.mean).div_(self.std), label


class TransformedPhotographs(Photographs):
    """The same files through torchvision's transforms."""

    def __init__(self, folder, transform):
        super().__init__(folder)
        self.transform = transform

    def __getitem__(self, index):
        from PIL import Image

        name, label = self.files[index]
        return self.transform(Image.open(name).convert("RGB")), label


def make_jpeg(folder, workers):
    return make_loader(Photographs(folder), 64, int(workers), 1)


def make_pets(architecture, size, part, folder, batch_size, workers):
    """As accelerate's complete_cv_example.py."""
    import timm
    from accelerate import Accelerator
    from torchvision.transforms import Compose, RandomResizedCrop, ToTensor

    accelerator = Accelerator(cpu=not CUDA, mixed_precision="fp16" if CUDA else "no")
    torch.manual_seed(1)
    model = timm.create_model(architecture, num_classes=2)
    for parameter in model.parameters():
        parameter.requires_grad = part == "free"
    for parameter in model.get_classifier().parameters():
        parameter.requires_grad = True
    mean = torch.tensor(model.default_cfg["mean"])[None, :, None, None].to(accelerator.device)
    std = torch.tensor(model.default_cfg["std"])[None, :, None, None].to(accelerator.device)
    dataset = TransformedPhotographs(folder, Compose([RandomResizedCrop(int(size), scale=(0.5, 1.0)), ToTensor()]))
    loader = torch.utils.data.DataLoader(dataset, int(batch_size), shuffle=True, num_workers=int(workers),
                                         persistent_workers=int(workers) > 0, pin_memory=CUDA)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2 / 25)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-2, total_steps=1_000_000)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

    def work():
        seen = 0
        model.train()
        for images, labels in loader:
            loss = functional.cross_entropy(model((images - mean) / std), labels)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            seen += len(images)
        loss.item()  # a device is done with its steps
        return seen

    return work


def make_checkpoint(folder, saves):
    from accelerate import Accelerator

    make, shape, _ = WORKLOADS["resnet18"]
    accelerator = Accelerator(cpu=not CUDA)
    model = make()
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), 1e-3))
    accelerator.backward(model(torch.ones(shape).to(accelerator.device)).sum())
    optimizer.step()
    if not saves:
        accelerator.save_state(folder)

    def work():
        (accelerator.save_state if saves else accelerator.load_state)(folder)
        return len(list(model.parameters()))

    return work


def serve(mode, control, *arguments):
    sharded = mode in ("sharded", "recomputed")
    distributed = sharded or mode in ("step", "compiled")
    if sharded:
        importlib.import_module("torch.distributed.fsdp")  # before the memory is measured
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ["LOCAL_RANK"]) % len(cores)]})
    if distributed:
        init_process_group()
    main = not distributed or torch.distributed.get_rank() == 0
    lines = open(control) if main else None
    before = kibibytes("VmRSS:")
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # begins anew
    work = {"step": make_steps, "compiled": make_compiled, "sharded": make_sharded, "recomputed": make_recomputed, "trainer": make_trainer,
            "idx": make_idx, "jpeg": make_jpeg, "pets": make_pets, "save": lambda folder: make_checkpoint(folder, True),
            "load": lambda folder: make_checkpoint(folder, False)}[mode](*arguments)
    while True:
        more = torch.ones(1, dtype=torch.uint8)
        if main and not lines.readline():
            more.zero_()
        if distributed:
            torch.distributed.broadcast(more, 0)
        if not more.item():
            break
        began, cpu = time.monotonic(), time.process_time()
        value = work()
        if main:
            print(json.dumps({"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu,
                              "value": float(value), "peak": kibibytes("VmHWM:") - before}), flush=True)


def reduce_once():
    init_process_group()
    total = torch.ones(1, device=device())
    torch.distributed.all_reduce(total)
    if total.item() == torch.distributed.get_world_size() and torch.distributed.get_rank() == 0:
        print(f"{time.monotonic():.6f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "first":
        reduce_once()
    elif sys.argv[1] == "photographs":
        make_photographs(sys.argv[2], int(sys.argv[3]))
    else:
        serve(*sys.argv[1:])
    # torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception").
    os._exit(0)
