# SPDX-License-Identifier: Apache-2.0
"""trainer_resume_test.py PROGRAM LAUNCHER...: a Trainer that is killed twice and goes on ends with the very weights of one
that nobody killed; so does one that was asked to end and saved a checkpoint of that step. With ACC_TEST_BACKGROUND checkpoints
are written in the background."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BACKGROUND = "ACC_TEST_BACKGROUND" in os.environ
ARGUMENTS = {
    "num_train_epochs": 0.8,
    "per_device_train_batch_size": 25,
    "gradient_accumulation_steps": 2,
    "learning_rate": 1e-3,
    "weight_decay": 0.01,
    "warmup_steps": 5,
    "save_steps": 5,
    "save_in_background": BACKGROUND,
    "save_total_limit": 2,
    "eval_strategy": "epoch",
    "disable_tqdm": True,
    "resume_from_checkpoint": "last",
    "enable_jit_checkpoint": True,
}


def train(folder, kill_at=None, stop_at=None):
    arguments = folder / "arguments.json"
    folder.mkdir(exist_ok=True)
    arguments.write_text(json.dumps({**ARGUMENTS, "output_dir": str(folder / "run")}))
    environment = {**os.environ, **({"ACC_TEST_KILL_AT": str(kill_at)} if kill_at else {}),
                   **({"ACC_TEST_STOP_AT": str(stop_at)} if stop_at else {})}
    done = subprocess.run([*sys.argv[2:], sys.argv[1], arguments], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expected = 137 if kill_at else 0
    if done.returncode != expected:
        sys.exit(f"the training ended with {done.returncode}, not {expected}:\n{done.stdout}")


def state(folder):
    return json.loads((folder / "run" / "trainer_state.json").read_text())


with tempfile.TemporaryDirectory(prefix="acc-trainer-") as name:
    whole, killed, stopped = (pathlib.Path(name, word) for word in ("whole", "killed", "stopped"))
    train(whole)
    steps = state(whole)["global_step"]
    train(killed, kill_at=8)
    folders = sorted(path.name for path in (killed / "run").iterdir())
    # In the background it may not be complete yet.
    if folders != ["checkpoint-5"] and not (BACKGROUND and folders == [".checkpoint-5.acc-new"]):
        sys.exit(f"a training that was killed after step 8 left {folders}")
    train(killed, kill_at=steps - 3)
    train(killed)
    kept = sorted(path.name for path in (killed / "run").glob("checkpoint-*"))
    if len(kept) != 2 or f"checkpoint-{steps}" not in kept:
        sys.exit(f"of the checkpoints stayed {kept}")
    if state(killed)["global_step"] != steps:
        sys.exit(f"trained {state(killed)['global_step']} steps, not {steps}")
    last = [entry for entry in state(killed)["log_history"] if "eval_loss" in entry][-1]["eval_loss"]
    if last != [entry for entry in state(whole)["log_history"] if "eval_loss" in entry][-1]["eval_loss"]:
        sys.exit("the evaluation differs")
    train(stopped, stop_at=8)
    folders = sorted(path.name for path in (stopped / "run").glob("checkpoint-*"))
    if folders != ["checkpoint-5", "checkpoint-8"] or state(stopped)["global_step"] != 8:
        sys.exit(f"a training that was asked to end in step 8 left {folders} at step {state(stopped)['global_step']}")
    if any("eval_loss" in entry for entry in state(stopped)["log_history"]):
        sys.exit("a training that was asked to end has evaluated once more")
    train(stopped)
    weights = [(folder / "run" / "model.safetensors").read_bytes() for folder in (whole, killed, stopped)]
    if len(set(weights)) != 1:
        sys.exit("the weights differ")
