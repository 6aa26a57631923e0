# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/runtime/batch_shards.json: what accelerate's BatchSamplerShard gives each process."""
import itertools
import json
import sys

import accelerate
from accelerate.data_loader import BatchSamplerShard
from torch.utils.data import BatchSampler

cases = []
for n, size, count, drop_last, even, split in itertools.product(
    range(14), (2, 4, 6), (2, 3), (False, True), (True, False), (False, True)
):
    if split and size % count:
        continue
    processes = [
        list(BatchSamplerShard(BatchSampler(range(n), size, drop_last), count, i, split, even))
        for i in range(count)
    ]
    cases.append({"samples": n, "batch_size": size, "drop_last": drop_last, "even_batches": even,
                  "split_batches": split, "processes": processes})

with open(sys.argv[1], "w") as out:
    out.write('{"accelerate": "%s", "cases": [\n' % accelerate.__version__)
    out.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
    out.write("\n]}\n")
