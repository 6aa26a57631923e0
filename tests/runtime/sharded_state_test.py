# SPDX-License-Identifier: Apache-2.0
"""sharded_state_test.py PROGRAM LAUNCHER...: shards that three processes saved are loaded by two, saved again, and loaded
by four and by one, to the bit; a save that fails leaves the old checkpoint. PROGRAM is sharded_state."""
import os
import subprocess
import sys
import tempfile

program, *launcher = sys.argv[1:]


def run(processes, *words, succeeds=True):
    command = [*launcher, "--nproc-per-node", str(processes), program, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if (done.returncode == 0) != succeeds:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def files_in(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


with tempfile.TemporaryDirectory(prefix="two words ") as root:
    first, second, third = (os.path.join(root, name) for name in ("first", "second", "third"))
    run(3, "save", first)
    model = ["pytorch_model_fsdp_0/" + name for name in (".metadata", "__0_0.distcp", "__1_0.distcp", "__2_0.distcp")]
    assert set(model) < set(files_in(first)), files_in(first)
    run(2, "copy", first, second)
    run(4, "copy", second, third)
    run(1, "check", third)

    # An older checkpoint by more processes is replaced as a whole; other files are kept.
    note = os.path.join(first, "optimizer_0", "note.txt")
    with open(note, "w", encoding="utf-8") as file:
        file.write("mine")
    run(1, "copy", third, first)
    assert files_in(first) == ["optimizer_0/.metadata", "optimizer_0/__0_0.distcp", "optimizer_0/note.txt",
                               "pytorch_model_fsdp_0/.metadata", "pytorch_model_fsdp_0/__0_0.distcp"], files_in(first)

    # What is missing is named, and nothing is saved.
    os.remove(os.path.join(first, "pytorch_model_fsdp_0", "__0_0.distcp"))
    text = run(2, "copy", first, os.path.join(root, "none"), succeeds=False)
    assert "__0_0.distcp: cannot be read: No such file or directory" in text, text
    assert not os.path.exists(os.path.join(root, "none"))
