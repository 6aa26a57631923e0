# SPDX-License-Identifier: Apache-2.0
"""trainer_worker.cpp's training by transformers' Trainer, and the data that both train on."""
import json
import math
import os
import pathlib
import sys

import torch
import torch._dynamo  # which optimizers import, here once for all cases
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F
from transformers import Trainer, TrainingArguments
from transformers.trainer_pt_utils import LengthGroupedSampler


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 10)

    def logits(self, x):
        return self.fc2(self.fc1(x.flatten(1)).relu())


class Hungry(Mlp):
    """With memory for ten rows."""

    def logits(self, x):
        if self.training and len(x) > 10:
            raise RuntimeError("CUDA out of memory.")
        return super().logits(x)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 49, 10)

    def logits(self, x):
        x = F.max_pool2d(self.conv1(x).relu(), 2)
        x = F.max_pool2d(self.conv2(x).relu(), 2)
        return self.fc(x.flatten(1))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(64, 32)
        self.positions = nn.Embedding(64, 32)
        self.norm1 = nn.LayerNorm(32)
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.norm2 = nn.LayerNorm(32)
        self.up = nn.Linear(32, 128)
        self.down = nn.Linear(128, 32)
        self.head = nn.Linear(32, 64)

    def logits(self, text):
        batch, length = text.shape
        x = self.words(text) + self.positions(torch.arange(length))
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        scores = q.matmul(k.transpose(-2, -1)) / math.sqrt(32 / 4)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, -1e9).softmax(-1).matmul(v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, 32))
        return self.head(x + self.down(self.up(self.norm2(x)).relu()))


MODELS = {"mlp": Mlp, "hungry": Hungry, "cnn": Cnn, "transformer": Transformer}


def forward(self, inputs, labels):
    """What transformers' Trainer calls: the loss, and the logits for metrics. As transformers' own models, with weights in
    half precision it converts images, and computes the loss in float32."""
    if inputs.is_floating_point():
        inputs = inputs.to(next(self.parameters()).dtype)
    logits = self.logits(inputs).float()
    return {"loss": F.cross_entropy(logits.flatten(0, -2), labels.flatten()), "logits": logits}


for model in MODELS.values():
    model.forward = forward
    model.main_input_name = "inputs"  # whose tokens are counted


def prepare(folder):
    """Writes images of blurred noise around ten centres and texts by a rule, which both can be learnt, and weights."""
    torch.manual_seed(0)
    centres = torch.randn(10, 1, 28, 28)
    start = torch.randint(64, (404, 1))
    stride = torch.randint(1, 8, (404, 1))
    texts = (start + stride * torch.arange(17)) % 64
    data = {"images": {}, "texts": {}}
    for name, size in (("train", 300), ("eval", 104)):
        labels = torch.randint(10, (size,))
        data["images"][f"{name}_inputs"] = centres[labels] + 2 * torch.randn(size, 1, 28, 28)
        data["images"][f"{name}_labels"] = labels
        rows = texts[:300] if name == "train" else texts[300:]
        data["texts"][f"{name}_inputs"] = rows[:, :-1].contiguous()
        data["texts"][f"{name}_labels"] = rows[:, 1:].contiguous()
    for name, tensors in data.items():
        torch.save(tensors, folder / f"{name}.pt")
    for name, model in MODELS.items():
        torch.manual_seed(1)
        save_file(model().state_dict(), folder / f"{name}.safetensors")


class Padding:
    """What the Trainer asks of a tokenizer."""

    pad_token_id = 0
    model_input_names = ["inputs"]

    def save_pretrained(self, *args, **kwargs):
        pass


class SeededLengths(LengthGroupedSampler):
    """With the generator of transformers' DistributedLengthGroupedSampler. That of the training is torch's global one,
    which models and evaluations use, too."""

    def __init__(self, args, lengths):
        super().__init__(args.train_batch_size * args.gradient_accumulation_steps, lengths=lengths)
        self.seed = args.seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        self.generator = torch.Generator().manual_seed(self.seed + epoch)


class GroupingTrainer(Trainer):
    def _get_train_sampler(self, train_dataset=None):
        if self.args.train_sampling_strategy != "group_by_length":
            return super()._get_train_sampler(train_dataset)
        return SeededLengths(self.args, [int(label) for label in self.train_dataset.labels])

    def _get_eval_sampler(self, eval_dataset):
        if self.args.train_sampling_strategy != "group_by_length":
            return super()._get_eval_sampler(eval_dataset)
        return torch.utils.data.SequentialSampler(eval_dataset)


class BatchAccuracy:
    def __init__(self):
        self.right = []

    def __call__(self, prediction, compute_result):
        self.right.append(float((prediction.predictions.argmax(-1) == prediction.label_ids).double().mean()))
        return {"accuracy": sum(self.right[-3:]) / 3} if compute_result else {}


def train(name, data, weights, arguments):
    class Rows(torch.utils.data.Dataset):
        def __init__(self, tensors, part, rows=slice(None)):
            self.inputs = tensors[f"{part}_inputs"][rows]
            self.labels = tensors[f"{part}_labels"][rows]

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, index):
            return {"inputs": self.inputs[index], "labels": self.labels[index]}

    def metrics(prediction):
        if isinstance(prediction.predictions, list):
            rights = [p.argmax(-1) == l for p, l in zip(prediction.predictions, prediction.label_ids, strict=True)]
            return {"accuracy": sum(float(right.mean()) for right in rights) / len(rights)}
        if prediction.losses is None:
            return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}
        right = prediction.predictions == prediction.label_ids
        return {"accuracy": float(right.mean()), "losses": float(prediction.losses.mean()),
                "inputs": float(prediction.inputs.mean())}

    model = MODELS[name]()
    model.load_state_dict(load_file(weights))
    tensors = torch.load(data)
    args = TrainingArguments(**json.loads(pathlib.Path(arguments).read_text()), use_cpu=True)
    sets = Rows(tensors, "eval")
    if args.run_name == "sets":
        sets = {"first": Rows(tensors, "eval", slice(40)), "second": Rows(tensors, "eval", slice(40, None))}
    trainer = GroupingTrainer(
        model=model,
        args=args,
        train_dataset=Rows(tensors, "train"),
        eval_dataset=sets,
        compute_metrics=BatchAccuracy() if args.batch_eval_metrics else metrics,
        processing_class=Padding() if args.include_num_input_tokens_seen == "non_padding" else None,
        preprocess_logits_for_metrics=(lambda logits, labels: logits.argmax(-1)) if args.include_for_metrics else None,
    )
    result = trainer.train()
    output = pathlib.Path(args.output_dir)
    output.mkdir(exist_ok=True)
    (output / f"train_loss.{args.process_index}").write_text(repr(result.training_loss))
    trainer.save_model()
    if args.bf16_full_eval or args.fp16_full_eval:
        trainer.evaluate()  # afterwards transformers' model remains in half precision
    trainer.save_state()
    sys.stdout.flush()
    # torch 2.11 sometimes aborts while the interpreter ends ("terminate called without an active exception").
    os._exit(0)
