# SPDX-License-Identifier: Apache-2.0
"""trainer_recovery_test.py ACC PROGRAM PROCESSES: a Trainer whose rank 0 is killed goes on by itself from its state in memory,
and ends with the very weights and evaluation of one that nobody killed. PROGRAM is trainer_run."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

acc, program, processes = sys.argv[1:]
ARGUMENTS = {"num_train_epochs": 0.6, "per_device_train_batch_size": 25, "gradient_accumulation_steps": 2, "learning_rate": 1e-3,
             "warmup_steps": 5, "save_strategy": "no", "memory_save_steps": 3, "eval_strategy": "epoch", "disable_tqdm": False}


def train(folder, kill_at=None, **arguments):
    folder.mkdir(exist_ok=True)
    file = folder / "arguments.json"
    file.write_text(json.dumps({**ARGUMENTS, "output_dir": str(folder / "run"), **arguments}))
    command = [acc, "launch", "--standalone", "--no-python", "--nproc-per-node", processes, "--max-restarts", "1",
               "--memory-checkpoints", "64MB", program, file]
    environment = {**os.environ, **({"ACC_TEST_KILL_AT": str(kill_at)} if kill_at else {})}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"the training ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def result(folder):
    state = json.loads((folder / "run" / "trainer_state.json").read_text())
    evaluations = [entry["eval_loss"] for entry in state["log_history"] if "eval_loss" in entry]
    return state["global_step"], evaluations, (folder / "run" / "model.safetensors").read_bytes()


with tempfile.TemporaryDirectory(prefix="acc-trainer-") as name:
    whole, killed, refused = (pathlib.Path(name, word) for word in ("whole", "killed", "refused"))
    train(whole)
    text = train(killed, kill_at=8)
    # That of step 6 may be on its way still; the one before is complete when it begins.
    if not re.search("Resuming training from checkpoint with epoch 0 and global step [36]\n", text):
        sys.exit(f"did not go on after step 3 or 6:\n{text}")
    if result(killed) != result(whole):
        sys.exit(f"ended with {result(killed)[:2]}, not {result(whole)[:2]}, or with other weights")
    # A model alone on the disk is no state: that in memory is saved at the same steps.
    text = train(pathlib.Path(name, "models"), kill_at=8, save_strategy="steps", save_steps=3, save_only_model=True)
    if not re.search("Resuming training from checkpoint with epoch 0 and global step [36]\n", text):
        sys.exit(f"with save_only_model did not go on:\n{text}")
    # Which checkpoints are its own it knows from before.
    state = json.loads((pathlib.Path(name, "models") / "run" / "trainer_state.json").read_text())
    if state["stateful_callbacks"]["acc::Trainer"]["saved_steps"][:2] != [3, 6]:
        sys.exit(f"with save_only_model has forgotten checkpoints: {state['stateful_callbacks']}")
    text = train(refused, kill_at=8, resume_from_checkpoint="false")
    if "Resuming" in text or result(refused) != result(whole):
        sys.exit(f"resume_from_checkpoint=false:\n{text}")
