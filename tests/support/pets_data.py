# SPDX-License-Identifier: Apache-2.0
"""Pictures to learn, named after what they show, as `stripes_12.png`: patterns in two random colours under noise.

pets_data.py FOLDER IMAGES-OF-EACH PATTERN...
"""
import pathlib
import random
import struct
import sys
import zlib

WIDTH, HEIGHT = 56, 48

# Whether the pixel of a pattern has the second colour; a cell is 8 pixels wide.
PATTERNS = {
    "stripes": lambda x, y: y % 8 < 4,
    "bars": lambda x, y: x % 8 < 4,
    "board": lambda x, y: (x % 8 < 4) != (y % 8 < 4),
    "fine_dots": lambda x, y: x % 4 < 2 and y % 4 < 2,
}


def picture(pattern, chance):
    """RGB rows."""
    colours = [[chance.randrange(128) for _ in range(3)], [chance.randrange(128, 256) for _ in range(3)]]
    chance.shuffle(colours)
    left, top = chance.randrange(8), chance.randrange(8)
    rows = []
    for y in range(HEIGHT):
        row = bytearray()
        for x in range(WIDTH):
            for value in colours[PATTERNS[pattern](x + left, y + top)]:
                row.append(max(0, min(255, value + chance.randint(-20, 20))))
        rows.append(bytes(row))
    return rows


def png(rows):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def make(folder, images_of_each, patterns):
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1)
    for pattern in patterns:
        for number in range(images_of_each):
            (folder / f"{pattern}_{number}.png").write_bytes(png(picture(pattern, chance)))


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
