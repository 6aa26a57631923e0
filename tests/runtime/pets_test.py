# SPDX-License-Identifier: Apache-2.0
"""pets_test.py PROGRAM LAUNCHER...: the pets example learns made pictures alone, and other ones from the weights that it
saved, with a new classifier, on the launcher's processes."""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
sys.dont_write_bytecode = True
import pets_data

PROGRAM, LAUNCHER = sys.argv[1], sys.argv[2:]
HOW = ["--image-size", "32", "--batch-size", "16", "--workers", "1"]


def run(command, code=0):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"{command} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    if "acc was built without libpng" in done.stderr:
        print("skipped: built without libpng")
        sys.exit(77)
    return done


def accuracies(done, epochs):
    """Of each epoch, from lines such as `epoch 0: 88.12`."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("epoch ")]
    print(*lines, sep="\n")
    for epoch, line in enumerate(lines):
        if not re.fullmatch(rf"epoch {epoch}: \d+\.\d\d", line):
            sys.exit(f"not a line of epoch {epoch}: {line}")
    if len(lines) != epochs:
        sys.exit(f"{len(lines)} epochs, not {epochs}")
    return [float(line.split()[-1]) for line in lines]


def tensors(file):
    """The bytes of a safetensors file's tensors, by name."""
    content = file.read_bytes()
    size = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:size])
    return {name: content[size + value["data_offsets"][0]:size + value["data_offsets"][1]]
            for name, value in header.items() if name != "__metadata__"}


def require(condition, what):
    if not condition:
        sys.exit(what)


with tempfile.TemporaryDirectory(prefix="acc-pets-") as name:
    folder = pathlib.Path(name)
    four, three = folder / "four", folder / "three"
    pets_data.make(four, 60, ["stripes", "bars", "board", "fine_dots"])
    pets_data.make(three, 40, ["bars", "board", "fine_dots"])
    (four / "stripes_0.png").write_bytes(b"GIF89a")

    weights = folder / "hub" / "model.safetensors"
    weights.parent.mkdir()
    first = run([PROGRAM, "--data-dir", four, "--model", "resnet26d", "--free-epochs", "4", "--mixed-precision", "no",
                 "--save", weights, *HOW])
    require(accuracies(first, 4)[-1] >= 80, "it has not learnt the pictures")
    require(f"skipped {four / 'stripes_0.png'}" in first.stderr, f"no word of the broken image: {first.stderr}")

    (folder / "hub" / "config.json").write_text(json.dumps({"architecture": "resnet26d"}))
    tuned = folder / "tuned.safetensors"
    frozen = run([*LAUNCHER, PROGRAM, "--data-dir", three, "--weights", folder / "hub", "--epochs", "2", "--free-epochs",
                  "0", "--save", tuned, *HOW])
    require(accuracies(frozen, 2)[-1] >= 70, "the new classifier has not learnt the pictures")
    before, after = tensors(weights), tensors(tuned)
    require(before.keys() == after.keys(), before.keys() ^ after.keys())
    for name, value in before.items():
        trained = name.startswith("fc.") or re.search(r"running_|num_batches", name)
        require((after[name] != value) == bool(trained), f"{name} {'stayed' if trained else 'changed'}")
    require(len(after["fc.bias"]) == 3 * 4, "not three classes")

    free = run([*LAUNCHER, PROGRAM, "--data-dir", three, "--weights", folder / "hub", "--epochs", "1", "--free-epochs", "1",
                "--save", tuned, *HOW])
    accuracies(free, 2)
    require(tensors(tuned)["layer1.0.conv1.weight"] != before["layer1.0.conv1.weight"], "the encoder was not trained")

    wrong = run([PROGRAM, "--data-dir", three, "--pattern", "^(cat)"], code=1)
    require(wrong.stderr.count("\n") == 1 and "^(cat)" in wrong.stderr, wrong.stderr)
