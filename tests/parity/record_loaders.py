# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/runtime/loaders.json: orders of torch's and transformers' samplers, and what accelerate gives each process of a
batch sampler without a batch size, of an iterable data set, and when the main process reads for all."""
import itertools
import json
import os
import pathlib
import sys

import accelerate
import torch
from accelerate.data_loader import BatchSamplerShard, IterableDatasetShard, SeedableRandomSampler
from torch.utils.data import (DataLoader, Dataset, DistributedSampler, IterableDataset, RandomSampler,
                              SubsetRandomSampler, WeightedRandomSampler)
from transformers.trainer_pt_utils import LengthGroupedSampler

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

SEEDS = (0, 42, 2**40 + 7)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


class Numbers(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.tensor([index])


class Stream(IterableDataset):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return iter(torch.arange(self.size).reshape(-1, 1))


class Batches:
    """A batch sampler whose batches have sizes of their own."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __iter__(self):
        start = 0
        for size in self.sizes:
            yield list(range(start, start + size))
            start += size

    def __len__(self):
        return len(self.sizes)


def samplers():
    for seed in SEEDS:
        for size, replacement, count in ((10, False, None), (50, False, None), (10, False, 25), (10, True, None),
                                         (100, True, 70)):
            sampler = RandomSampler(range(size), replacement, count, generator=seeded(seed))
            yield {"kind": "random", "seed": seed, "size": size, "replacement": replacement,
                   "num_samples": count or size, "order": list(sampler)}
        for epoch in (0, 3):
            sampler = SeedableRandomSampler(range(20), generator=torch.Generator(), data_seed=seed)
            sampler.set_epoch(epoch)
            yield {"kind": "random", "seed": seed + epoch, "size": 20, "replacement": False, "num_samples": 20,
                   "order": list(sampler)}
        indices = [5, 3, 11, 70, 2]
        yield {"kind": "subset", "seed": seed, "indices": indices,
               "order": list(SubsetRandomSampler(indices, generator=seeded(seed)))}
        weights = [0.1, 0.9, 0.4, 0.0, 3.0, 0.6]
        for replacement, count in ((True, 40), (False, 5)):
            yield {"kind": "weighted", "seed": seed, "weights": weights, "replacement": replacement,
                   "num_samples": count,
                   "order": list(WeightedRandomSampler(weights, count, replacement, generator=seeded(seed)))}
        for size, batch in ((0, 4), (3, 4), (50, 4), (70, 1), (430, 2)):
            lengths = torch.randint(1, 20, (size,), generator=seeded(size)).tolist()
            order = list(LengthGroupedSampler(batch, lengths=lengths, generator=seeded(seed))) if size else []
            yield {"kind": "length_grouped", "seed": seed, "lengths": lengths, "batch_size": batch, "order": order}
    for size, count, shuffle, drop_last, epoch in itertools.product(
        (0, 1, 2, 10, 12), (1, 2, 3, 5), (False, True), (False, True), (0, 4)
    ):
        if size == 0 and not drop_last:
            continue  # torch divides by zero
        processes = []
        for rank in range(count):
            sampler = DistributedSampler(range(size), count, rank, shuffle, seed=9, drop_last=drop_last)
            sampler.set_epoch(epoch)
            processes.append(list(sampler))
        yield {"kind": "distributed", "seed": 9 + epoch, "size": size, "shuffle": shuffle, "drop_last": drop_last,
               "processes": processes}


def unsized_batches():
    for sizes, count, even in itertools.product(([], [3], [1, 4], [2, 2, 2], [3, 1, 2, 5, 1]), (2, 3, 4),
                                                (True, False)):
        yield {"sizes": sizes, "even_batches": even,
               "processes": [list(BatchSamplerShard(Batches(sizes), count, i, False, even)) for i in range(count)]}


def streams():
    for size, batch, count, drop_last, split in itertools.product(range(14), (1, 2, 6), (2, 3), (False, True),
                                                                  (False, True)):
        if split and batch % count:
            continue
        share = batch // count if split else batch
        processes = []
        for i in range(count):
            shard = IterableDatasetShard(Stream(size), batch, drop_last, count, i, split)
            processes.append([b.flatten().tolist() for b in DataLoader(shard, share, drop_last=drop_last)])
        yield {"samples": size, "batch_size": batch, "drop_last": drop_last, "split_batches": split,
               "processes": processes}


def dispatch_cases(count):
    for size, batch, drop_last, split, kind in itertools.product(
        (1, 4, 7, 12), (2, 6), (False, True), (False, True), (Numbers, Stream)
    ):
        # With fewer rows than processes accelerate hangs: one of them gets none.
        if size >= count and not (split and batch % count) and not (drop_last and size < batch * count):
            yield size, batch, drop_last, split, kind


def dispatch_rank(rank, count, port, out):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port))
    accelerators = [accelerate.Accelerator(cpu=True, dataloader_config=accelerate.DataLoaderConfiguration(
        dispatch_batches=True, split_batches=split)) for split in (False, True)]
    for size, batch, drop_last, split, kind in dispatch_cases(count):
        accelerator = accelerators[split]
        loader = accelerator.prepare(DataLoader(kind(size), batch, drop_last=drop_last))
        batches, metrics = [], []
        for part in loader:
            batches.append(part.flatten().tolist())
            metrics += accelerator.gather_for_metrics(part).flatten().tolist()
        every = accelerate.utils.gather_object([batches])
        if rank == 0:
            out.put({"samples": size, "batch_size": batch, "drop_last": drop_last, "split_batches": split,
                     "iterable": kind is Stream, "metrics": metrics, "processes": every})
    torch.distributed.destroy_process_group()


def dispatched():
    context = torch.multiprocessing.get_context("spawn")
    for count in (2, 3):
        port = free_port()
        out = context.Queue()
        ranks = [context.Process(target=dispatch_rank, args=(i, count, port, out)) for i in range(count)]
        for rank in ranks:
            rank.start()
        for _ in dispatch_cases(count):
            yield out.get()
        for rank in ranks:
            rank.join()


def section(name, cases):
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    return '"%s": [\n%s\n]' % (name, lines)


if __name__ == "__main__":
    sections = [section("samplers", samplers()), section("unsized_batches", unsized_batches()),
                section("streams", streams()), section("dispatched", dispatched())]
    with open(sys.argv[1], "w") as file:
        file.write('{"torch": "%s", "accelerate": "%s",\n' % (torch.__version__, accelerate.__version__))
        file.write(",\n".join(sections))
        file.write("\n}\n")
