# SPDX-License-Identifier: Apache-2.0
"""record_safetensors.py FILE: a tensor of every type, as Python's safetensors writes it, for
tests/unit/runtime/checkpoint/safetensors_test.cpp."""
import sys

import torch
from safetensors.torch import save_file

# In the order in which Python writes them: then names, too, say where each stands.
TYPES = ["uint64", "int64", "float64", "complex64", "float32", "uint32", "int32", "bfloat16", "float16", "uint16", "int16",
         "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu", "float8_e4m3fn", "float8_e5m2", "int8", "uint8", "bool"]


def tensor(name):
    if name == "bool":
        return torch.tensor([True, False, True])
    return torch.arange(1, 25, dtype=torch.uint8).view(getattr(torch, name))


save_file({f"{index:02} {name}": tensor(name) for index, name in enumerate(TYPES)}, sys.argv[1])
