# SPDX-License-Identifier: Apache-2.0
"""compare.py PROGRAM: tensorboard reads from PROGRAM's files what it reads from those of accelerate's own tracker."""
import dataclasses
import io
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
import yaml
from accelerate import Accelerator
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata, plugin_data_pb2
from tensorboard.util import tensor_util

os.environ["ACCELERATE_USE_CPU"] = "true"


def log(folder):
    accelerator = Accelerator(log_with="tensorboard", project_dir=folder)
    accelerator.init_trackers("accelerate", {"amp": True, "epochs": 3, "lr": 1e-5, "net": 'yes: "grün"\n'})
    for step in range(5):
        accelerator.log({"loss": 1 / (1 + step), "train/seen": 8 * step, "better": step % 2 == 0}, step)
    accelerator.log({"eval/f1": {"cats": 0.1, "dogs": 2.0}, "note": "grün"}, 5)
    accelerator.log({"eval/f1": {"dogs": 3}, "note": ""}, 1 << 40)
    accelerator.log({"total": 1e30, "note": "no step"})
    tensorboard = accelerator.get_tracker("tensorboard")
    ramp = np.arange(11 * 2 * 3, dtype=np.float32).reshape(11, 1, 2, 3) / 66
    tensorboard.log_images({"digits": ramp, "colours": (np.arange(60) * 4).reshape(1, 3, 4, 5).astype(np.uint8)}, 3)
    tensorboard.writer.add_histogram("weights", torch.linspace(-2, 3, 100), 4)
    tensorboard.writer.add_histogram("zeros", torch.zeros(5), 4)
    accelerator.end_training()


def pixels(png):
    """The picture, since two encoders may pack it differently."""
    return np.asarray(Image.open(io.BytesIO(png))).tolist()


def rounded(histogram):
    """The order in which squares are added decides their sum's last digits."""
    return dataclasses.replace(histogram, sum_squares=round(histogram.sum_squares, 9))


def nameless(run):
    """The run's name without the time in it."""
    return re.sub(r"\d+\.\d+", "TIME", run)


def seen(folder):
    """What tensorboard finds: per run and tag the points, and what plugins are told."""
    points = {}
    for path, _, _ in os.walk(folder):
        events = EventAccumulator(path).Reload()
        run = nameless(os.path.relpath(path, folder))
        for tag in events.Tags()["scalars"]:
            points[run, tag] = [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["images"]:
            points[run, tag] = [(event.step, event.width, event.height, pixels(event.encoded_image_string))
                               for event in events.Images(tag)]
        for tag in events.Tags()["histograms"]:
            points[run, tag] = [(event.step, rounded(event.histogram_value)) for event in events.Histograms(tag)]
        for tag in events.Tags()["tensors"]:
            plugin = events.SummaryMetadata(tag).plugin_data
            points[run, tag] = plugin.plugin_name, plugin.content, [
                (event.step, tensor_util.make_ndarray(event.tensor_proto).tolist()) for event in events.Tensors(tag)]
        try:
            parameters = events.PluginTagToContent(metadata.PLUGIN_NAME)
        except KeyError:
            continue
        for tag, content in parameters.items():
            points[run, tag] = plugin_data_pb2.HParamsPluginData.FromString(content)
    return points


def yaml_file(folder):
    files = [os.path.join(path, "hparams.yml") for path, _, names in os.walk(folder) if "hparams.yml" in names]
    assert len(files) == 1 and nameless(os.path.relpath(files[0], folder)) == "TIME/hparams.yml", files
    with open(files[0], encoding="utf-8") as file:
        return yaml.safe_load(file)


with tempfile.TemporaryDirectory() as root:
    subprocess.run([sys.argv[1], root], check=True)
    log(root)
    for look in seen, yaml_file:
        ours, theirs = look(os.path.join(root, "acc")), look(os.path.join(root, "accelerate"))
        assert theirs and ours == theirs, f"{look.__name__}:\nacc        {ours}\naccelerate {theirs}"
        print(look.__name__, len(ours))
