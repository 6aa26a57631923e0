# SPDX-License-Identifier: Apache-2.0
"""Writes small images of many kinds into the folder tests/data/runtime/images, and images.json beside them: the CRC-32
of the pixels that Pillow reads from each, and of what torch makes of one. Needs Pillow 10 or later."""
import json
import pathlib
import sys
import zlib

import numpy
import PIL
import torch
from PIL import Image

out = pathlib.Path(sys.argv[1])
out.mkdir(exist_ok=True)
width, height = 61, 47
y, x = numpy.mgrid[0:height, 0:width]
pixels = numpy.stack([x * 4, y * 5, (x * y // 9) % 256], axis=2).astype(numpy.uint8)
rgb = Image.fromarray(pixels)
alpha = Image.fromarray(((x + y) * 2).astype(numpy.uint8))
rgba = rgb.copy()
rgba.putalpha(alpha)

images = {
    "color.jpg": (rgb, {"quality": 90}),
    "progressive.jpg": (rgb, {"quality": 80, "progressive": True, "subsampling": 0}),
    "restarts.jpg": (rgb, {"quality": 60, "restart_marker_blocks": 1}),
    "gray.jpg": (rgb.convert("L"), {}),
    "cmyk.jpg": (rgb.convert("CMYK"), {}),
    "color.png": (rgb, {}),
    "alpha.png": (rgba, {}),
    "palette.png": (rgb.quantize(17), {}),
    "gray.png": (rgb.convert("L"), {}),
    "bits.png": (rgb.convert("1"), {}),
}
files = {}
for name, (image, options) in images.items():
    image.save(out / name, **options)
    read = numpy.asarray(Image.open(out / name).convert("RGB"))
    files[name] = {"width": read.shape[1], "height": read.shape[0], "crc32": zlib.crc32(read.tobytes())}

image = torch.from_numpy(numpy.asarray(Image.open(out / "color.png")).copy()).permute(2, 0, 1)


def resized(size, source=image):
    result = torch.nn.functional.interpolate(source.unsqueeze(0), size=size, mode="bilinear", antialias=True)
    return zlib.crc32(result[0].permute(1, 2, 0).contiguous().numpy().tobytes())


mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
normalized = image.to(torch.float32).div(255).sub(mean).div(std)
results = {
    "resize_20_30": resized((20, 30)),
    "resize_short_20": resized((20, int(20 * width / height))),
    "resize_up_100": resized((100, int(100 * width / height))),
    "cropped_resize": resized((16, 16), image[:, 5:35, 7:50]),
    "normalize": zlib.crc32(normalized.contiguous().numpy().tobytes()),
}
with open(out / "images.json", "w") as file:
    json.dump({"pillow": PIL.__version__, "torch": torch.__version__, "files": files, "results": results}, file,
              indent=1)
    file.write("\n")
