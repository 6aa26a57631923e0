# SPDX-License-Identifier: Apache-2.0
"""sharded_training_test.py PROGRAM LAUNCHER...: what save_state writes in shards, other numbers of processes, stages and
DDP load, to the bit; what does not fit is an error on every process, and changes nothing. PROGRAM is sharded_training."""
import os
import shutil
import subprocess
import sys
import tempfile

program, *launcher = sys.argv[1:]
SHARDED = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
           "FSDP_TRANSFORMER_CLS_TO_WRAP": "Block", "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT"}
FULL = {**SHARDED, "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT"}
STAGE2 = {**SHARDED, "FSDP_RESHARD_AFTER_FORWARD": "false"}


def start(processes, words, variables):
    command = [*launcher, "--nproc-per-node", str(processes), program, *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})


def run(processes, *words, variables=SHARDED):
    done = start(processes, words, variables)
    if done.returncode != 0:
        sys.exit(f"{processes}: {' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    # Gloo of LibTorch 2.9 writes there that it has connected.
    return [line for line in done.stdout.splitlines() if not line.startswith("[Gloo] ")]


def fail(processes, *words, variables=SHARDED):
    done = start(processes, words, variables)
    if done.returncode == 0:
        sys.exit(f"{processes}: {' '.join(words)} did not fail")
    return done.stderr


def digest(folder):
    return subprocess.run([program, "digest", folder], check=True, capture_output=True, text=True).stdout


def files_in(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


def losses(lines):
    return [float(line.split()[2]) for line in lines]


with tempfile.TemporaryDirectory(prefix="two words ") as root:
    first, second, third, fourth, other = (os.path.join(root, name) for name in ("first", "second", "third", "4", "other"))
    lines = run(3, "steps", "3", "save", first, "steps", "3")
    for folder in ("pytorch_model_fsdp_0", "optimizer_0"):
        assert sorted(os.listdir(os.path.join(first, folder))) == [
            ".metadata", "__0_0.distcp", "__1_0.distcp", "__2_0.distcp"], files_in(first)
    assert {name for name in os.listdir(first) if "." in name} == {
        "random_states_0.pkl", "random_states_1.pkl", "random_states_2.pkl", "scheduler.bin"}, files_in(first)
    assert run(3, "load", first, "steps", "3") == lines[3:], lines

    # Other numbers of processes, and one that trains without shards, to the bit.
    run(2, "load", first, "save", second)
    run(4, "load", second, "save", third, variables=STAGE2)
    run(1, "load", third, "save", fourth)
    wanted = digest(first)
    assert "optimizer.param_groups.1.initial_lr" in wanted, wanted
    for folder in (second, third, fourth):
        assert digest(folder) == wanted, folder
    lines = run(2, "load", fourth, "steps", "3")
    assert run(2, "load", first, "steps", "3") == lines
    assert run(2, "load", first, "steps", "3", variables=STAGE2) == lines
    for variables in ({}, FULL):
        found = losses(run(2, "load", first, "steps", "3", variables=variables))
        assert max(abs(a - b) for a, b in zip(found, losses(lines))) <= 1e-5, (found, lines)

    # In the background the checkpoint has the state of the call.
    run(2, "load", first, "background", other, "steps", "2")
    assert digest(other) == wanted

    # The other form replaces this one, and the other way round; other files are kept.
    run(2, "load", other, "note", other, "save", other, variables=FULL)
    assert [name for name in files_in(other) if "distcp" in name] == [], files_in(other)
    assert {"model.safetensors", "optimizer.bin", "note.txt"} < set(files_in(other)), files_in(other)
    assert run(2, "load", other, "steps", "3") == lines
    run(2, "load", other, "save", other)
    assert digest(other) == wanted
    assert not {"model.safetensors", "optimizer.bin"} & set(files_in(other)), files_in(other)
    assert "note.txt" in files_in(other)

    # What does not fit is an error that names it.
    text = fail(2, "load", first, variables={**SHARDED, "ACC_TEST_WIDTH": "20"})
    assert "pytorch_model_fsdp_0: tensor 'block0.down.bias' is [16], the model's is [20]" in text, text
    shutil.copytree(first, os.path.join(root, "damaged"))
    missing = os.path.join(root, "damaged", "optimizer_0", "__2_0.distcp")
    os.remove(missing)
    for variables in (SHARDED, STAGE2):
        text = fail(3, "load", os.path.join(root, "damaged"), "save", os.path.join(root, "none"), variables=variables)
        assert "optimizer_0/__2_0.distcp: cannot be read: No such file or directory" in text, text
    assert not os.path.exists(os.path.join(root, "none"))
    shutil.copy(os.path.join(root, "damaged", "scheduler.bin"), os.path.join(root, "damaged", "optimizer.bin"))
    text = fail(2, "load", os.path.join(root, "damaged"))
    assert "damaged: has both optimizer_0 and optimizer.bin" in text, text
