# SPDX-License-Identifier: Apache-2.0
"""record_pt_files.py FOLDER: files of Python's torch.save, for tests/unit/runtime/checkpoint/pt_file_test.cpp."""
import os
import sys
from collections import OrderedDict, defaultdict

import numpy as np
import torch

folder = sys.argv[1]


def save(name, value, **options):
    torch.save(value, os.path.join(folder, name + ".pt"), **options)


class Runs:
    """What unpickling would run."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (os.system, (f"touch {self.file}",))


grid = torch.arange(12, dtype=torch.float32).reshape(3, 4)
save("plain", {"none": None, "yes": True, "no": False, "small": 7, "negative": -70000, "large": 1 << 40,
               "huge": 1 << 100, "real": 0.1, "text": "größe", "bytes": b"ab", "list": [1, [2.5]], "tuple": (1, "a", ()),
               "set": {3}, "size": torch.Size([2, 3]), 5: "five", "ordered": OrderedDict(a=1)})
# Only protocol 4 has opcodes for them.
collections = {"set": {3}, "frozenset": frozenset([4]), "no_set": set(), "defaultdict": defaultdict(int, a=5),
               "bytes": b"a\x7f\x80\xbf\xc0\xff", "no_bytes": b"", "bytearray": bytearray(b"b\xff"), "no_bytearray": bytearray()}
save("collections", collections)
save("collections_of_protocol_4", collections, pickle_protocol=4)
save("tensors", {
    "grid": grid, "transposed": grid.t(), "row": grid[1], "scalar": torch.tensor(2.5), "empty": torch.empty(0, 3),
    "parameter": torch.nn.Parameter(torch.ones(2)), "expanded": torch.tensor([1.0, 2.0]).expand(3, 2)})
types = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
         torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64,
         torch.float8_e4m3fn, torch.float8_e5m2]
save("types", {str(type): torch.tensor([0, 1, 1]).to(type) for type in types})
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
save("state_dict", model.state_dict())
np.random.seed(1)
save("random", {"step": 3, "random_state": (3, (1, 2), None), "numpy_random_seed": np.random.get_state(),
                "numpy_float": np.float64(1.5), "torch_manual_seed": torch.get_rng_state()})
save("old_format", {"a": grid}, _use_new_zipfile_serialization=False)
save("runs_code", {"a": Runs("ran"), "b": grid})
save("conjugated", {"a": torch.ones(2, dtype=torch.complex64).conj()})
save("sparse", {"a": torch.eye(2).to_sparse()})
circle = []
circle.append(circle)
save("circle", circle)
