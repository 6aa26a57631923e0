# SPDX-License-Identifier: Apache-2.0
"""merge_weights.py ACC FOLDER: `acc merge-weights` and accelerate's make the same of a recorded checkpoint."""
import os
import subprocess
import sys
import tempfile

from accelerate.utils import merge_fsdp_weights
from safetensors import safe_open

acc, folder = sys.argv[1:]


def read(path):
    with safe_open(os.path.join(path, "model.safetensors"), "pt") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}


with tempfile.TemporaryDirectory() as root:
    merge_fsdp_weights(folder, os.path.join(root, "theirs"))
    subprocess.run([acc, "merge-weights", folder, os.path.join(root, "ours")], check=True)
    metadata, theirs = read(os.path.join(root, "theirs"))
    own_metadata, ours = read(os.path.join(root, "ours"))
    assert metadata == own_metadata, (metadata, own_metadata)
    assert theirs.keys() == ours.keys(), (theirs.keys(), ours.keys())
    for name, tensor in theirs.items():
        assert tensor.dtype == ours[name].dtype and tensor.equal(ours[name]), name
