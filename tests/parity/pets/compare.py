# SPDX-License-Identifier: Apache-2.0
"""compare.py WORKER ARCHITECTURE...: the network of the pets example beside timm's, from the same weights: outputs to 1e-4,
gradients to 1e-3, each of the largest value; and files of weights in both directions."""
import json
import pathlib
import subprocess
import sys
import tempfile

import timm
import torch
from safetensors.torch import load_file, save_file
from timm.models import save_for_hf

WORKER, *ARCHITECTURES = sys.argv[1:]
CLASSES = 7


def worker(*arguments):
    done = subprocess.run([WORKER, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_model(architecture, **options):
    """With norms that do something: new ones let blocks through unchanged."""
    torch.manual_seed(0)
    model = timm.create_model(architecture, pretrained_cfg_overlay={"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.25, 0.5)},
                              zero_init_last=False, **options)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.weight.data.uniform_(0.5, 1)
            module.bias.data.normal_(0, 0.1)
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
    return model


def require_close(what, ours, theirs, tolerance):
    assert ours.shape == theirs.shape, f"{what}: {ours.shape} and {theirs.shape}"
    worst = ((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-6)).item()
    assert worst <= tolerance, f"{what} differs by {worst:.1e}"
    return worst


def compare_computation(architecture, folder):
    model = make_model(architecture, num_classes=CLASSES)
    save_for_hf(model, folder / "hub", safe_serialization="both")
    config = json.loads((folder / "hub" / "config.json").read_text())
    assert config["architecture"] == architecture
    assert worker("config", folder / "hub") == f"{architecture} 0.5 0.4 0.3 0.2 0.25 0.5"

    images, labels = torch.randn(4, 3, 97, 128), torch.randint(CLASSES, (4,))
    save_file({"images": images, "labels": labels}, folder / "data.safetensors")
    assert worker("compute", folder / "hub", CLASSES, folder / "data.safetensors", folder / "out.safetensors") == "all"
    ours = load_file(folder / "out.safetensors")
    with torch.no_grad():
        evaluated = require_close("eval", ours.pop("eval"), model.eval()(images), 1e-4)
    logits = model.train()(images)
    trained = require_close("train", ours.pop("train"), logits.detach(), 1e-4)
    torch.nn.functional.cross_entropy(logits, labels).backward()
    theirs = {f"gradient.{name}": parameter.grad for name, parameter in model.named_parameters()}
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    worst = max(require_close(name, ours[name], gradient, 1e-3) for name, gradient in theirs.items())
    print(f"{architecture}: differences: eval {evaluated:.1e}, train {trained:.1e}, gradients {worst:.1e}")


def compare_files(architecture, folder):
    """timm loads what the example saves: its own weights, and those under a new classifier."""
    for classes, loaded in ((CLASSES, "all"), (3, "without the classifier")):
        for source in ("hub", "hub/model.safetensors", "hub/pytorch_model.bin"):
            saved = folder / "saved.safetensors"
            assert worker("save", folder / source, classes, saved) == loaded
            model = timm.create_model(architecture, num_classes=classes, checkpoint_path=str(saved))
            theirs, ours = load_file(folder / "hub" / "model.safetensors"), model.state_dict()
            assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
            for name, value in theirs.items():
                same = torch.equal(ours[name], value)
                assert same or (loaded != "all" and name.startswith("fc.")), f"{name} differs"


for architecture in ARCHITECTURES:
    with tempfile.TemporaryDirectory(prefix="acc-pets-") as name:
        compare_computation(architecture, pathlib.Path(name))
        compare_files(architecture, pathlib.Path(name))
