# SPDX-License-Identifier: Apache-2.0
"""acc::Trainer beside transformers' Trainer, on the same model, data and arguments.

trainer_test.py ACC WORKER [CASE ...]
"""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.update(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import torch.distributed  # noqa: E402  after the variables that torch reads
import trainer_peer  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from scenarios import SCENARIOS, Forked, run_scenarios  # noqa: E402

ACC, WORKER, *NAMES = sys.argv[1:]

EPOCHS = {
    "num_train_epochs": 2,
    "per_device_train_batch_size": 16,
    "per_device_eval_batch_size": 32,
    "learning_rate": 1e-3,
    "logging_strategy": "epoch",
    "eval_strategy": "epoch",
    "save_strategy": "no",
    "disable_tqdm": True,
}
EACH_STEP = {"logging_strategy": "steps", "logging_steps": 1}
# model, processes, arguments; None leaves one as transformers has it
CASES = {
    "all_defaults": ("mlp", 2, dict.fromkeys(EPOCHS)),
    "mlp": ("mlp", 1, {}),
    "cnn": ("cnn", 1, {"weight_decay": 0.01, "lr_scheduler_type": "cosine", "warmup_steps": 5}),
    "transformer": ("transformer", 1, {"weight_decay": 0.1, "max_grad_norm": 0.5, "warmup_steps": 0.1}),
    "accumulation": ("mlp", 1, {"gradient_accumulation_steps": 4, "logging_strategy": "steps", "logging_steps": 3}),
    "two_processes": ("mlp", 2, {"gradient_accumulation_steps": 2}),
    "three_processes": ("mlp", 3, {**EACH_STEP, "max_grad_norm": 0.5}),
    "steps": ("mlp", 1, {"max_steps": 25, "logging_strategy": "steps", "logging_steps": 10, "logging_first_step": True,
                         "eval_strategy": "steps", "eval_steps": 0.4, "data_seed": 7}),
    "sgd": ("mlp", 1, {"optim": "sgd", "optim_args": "momentum=0.9", "lr_scheduler_type": "polynomial",
                       "learning_rate": 0.05, "label_smoothing_factor": 0}),
    "adafactor": ("transformer", 2, {"optim": "adafactor", "learning_rate": 5e-3, "weight_decay": 0.01}),
    "best": ("mlp", 1, {"save_strategy": "epoch", "load_best_model_at_end": True, "metric_for_best_model": "accuracy",
                        "save_total_limit": 1, "num_train_epochs": 3}),
    "restarts": ("mlp", 1, {"lr_scheduler_type": "cosine_with_restarts", "lr_scheduler_kwargs": {"num_cycles": 2},
                            "logging_strategy": "steps", "logging_steps": 5}),
    "inverse_sqrt": ("mlp", 1, {"lr_scheduler_type": "inverse_sqrt", "warmup_steps": 8, "logging_strategy": "steps",
                                "logging_steps": 5}),
    "plateau": ("mlp", 1, {"lr_scheduler_type": "reduce_lr_on_plateau", "learning_rate": 0.05,
                           "lr_scheduler_kwargs": {"patience": 0, "factor": 0.5}, "num_train_epochs": 4}),
    "greedy": ("mlp", 1, {**EACH_STEP, "lr_scheduler_type": "greedy", "learning_rate": 0.01, "eval_strategy": "steps",
                          "eval_steps": 2, "lr_scheduler_kwargs": {"patience": 1, "factor": 0.5, "warmup": 1}}),
    "min_lr": ("mlp", 1, {**EACH_STEP, "lr_scheduler_type": "cosine_with_min_lr", "warmup_steps": 5,
                          "lr_scheduler_kwargs": {"min_lr": 1e-4}}),
    "warmup_min_lr": ("mlp", 1, {**EACH_STEP, "lr_scheduler_type": "cosine_warmup_with_min_lr", "warmup_steps": 5,
                                 "lr_scheduler_kwargs": {"min_lr_rate": 0.1, "warmup_lr_rate": 0.05}}),
    "stable_decay": ("mlp", 1, {**EACH_STEP, "lr_scheduler_type": "warmup_stable_decay", "warmup_steps": 6,
                                "lr_scheduler_kwargs": {"num_decay_steps": 12, "warmup_type": "cosine",
                                                        "decay_type": "1-sqrt", "min_lr_ratio": 0.1}}),
    # Without evaluations: of uneven batches transformers repeats the mean loss for samples that there are not.
    "split_batches": ("mlp", 2, {"eval_strategy": "no", "accelerator_config": {"split_batches": True}}),
    "dispatch_batches": ("mlp", 2, {"eval_strategy": "no", "accelerator_config": {
        "dispatch_batches": True, "gradient_accumulation_kwargs": {"num_steps": 2, "sync_each_batch": True}}}),
    "tokens": ("transformer", 2, {"include_num_input_tokens_seen": True, "train_sampling_strategy": "sequential",
                                  "logging_strategy": "steps", "logging_steps": 4}),
    "non_padding": ("transformer", 2, {"include_num_input_tokens_seen": "non_padding"}),
    "group_by_length": ("mlp", 2, {**EACH_STEP, "train_sampling_strategy": "group_by_length",
                                   "gradient_accumulation_steps": 2}),
    "eval_sets": ("mlp", 2, {"run_name": "sets", "save_strategy": "epoch", "load_best_model_at_end": True,
                             "metric_for_best_model": "eval_second_accuracy"}),
    "batch_metrics": ("transformer", 1, {"batch_eval_metrics": True, "per_device_eval_batch_size": 40}),
    "batches": ("mlp", 2, {"eval_do_concat_batches": False}),
    "auto_find": ("hungry", 1, {"auto_find_batch_size": True}),
    "metrics": ("transformer", 2, {"include_for_metrics": ["inputs", "loss"]}),
    "bf16_full_eval": ("transformer", 2, {"bf16_full_eval": True, "num_train_epochs": 1, "skip_memory_metrics": False}),
    "fp16_full_eval": ("mlp", 1, {"fp16_full_eval": True, "num_train_epochs": 1}),
    "fsdp": ("mlp", 2, {"fsdp": True, "fsdp_config": {"auto_wrap_policy": "NO_WRAP"}}),
    "twenty_settings": ("mlp", 2, {
        "max_steps": 24, "gradient_accumulation_steps": 2, "learning_rate": 2e-3, "weight_decay": 0.05,
        "adam_beta1": 0.85, "adam_beta2": 0.98, "adam_epsilon": 1e-7, "max_grad_norm": 0.5, "warmup_steps": 0.1,
        "lr_scheduler_type": "cosine", "logging_strategy": "steps", "logging_steps": 3, "logging_first_step": True,
        "eval_strategy": "steps", "eval_steps": 6, "save_strategy": "steps", "save_steps": 6, "save_total_limit": 2,
        "load_best_model_at_end": True, "metric_for_best_model": "accuracy", "seed": 5, "data_seed": 6,
        "dataloader_drop_last": True, "dataloader_num_workers": 2, "dataloader_persistent_workers": True,
        "ddp_find_unused_parameters": False, "remove_unused_columns": False, "label_names": ["labels"],
        "log_level": "error", "eval_accumulation_steps": 2, "push_to_hub": False,
        "accelerator_config": {"even_batches": False, "non_blocking": True}}),
}


def to_json(**arguments):
    return trainer_peer.TrainingArguments(**arguments, use_cpu=True).to_json_string()


def recorded_defaults():
    """tests/data/runtime/training_arguments.json, which unit tests read, is what transformers writes today."""
    recorded = pathlib.Path(__file__).parents[2] / "data/runtime/training_arguments.json"
    left, right = json.loads(recorded.read_text()), json.loads(trainer_peer.TrainingArguments("out").to_json_string())
    assert left == right, {key: (left.get(key), right.get(key)) for key in left | right if left.get(key) != right.get(key)}


def train_as_rank(rank, processes, store, *arguments):
    """By the peer, as one of its ranks that were forked."""
    os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)})
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=processes)
    trainer_peer.train(*arguments)


def codes_of_peer(output, processes, arguments):
    """Exit codes of the peer's ranks."""
    if processes == 1:
        return [Forked(output, trainer_peer.train, *arguments).wait()]
    with tempfile.TemporaryDirectory() as folder:
        ranks = [Forked(output, train_as_rank, rank, processes, f"{folder}/store", *arguments) for rank in range(processes)]
        return [rank.wait() for rank in ranks]


def codes_of_ours(output, processes, arguments):
    launch = [ACC, "run", "--standalone", "--no-python", "--nproc-per-node", str(processes)] if processes > 1 else []
    return [subprocess.run([*launch, WORKER, *arguments], stdout=output, stderr=output).returncode]


def train(who, processes, *arguments):
    with tempfile.TemporaryFile("w+") as output:
        codes = (codes_of_peer if who == "peer" else codes_of_ours)(output, processes, arguments)
        output.seek(0)
        assert not any(codes), f"{who} ended with {codes}:\n{output.read()}"


def history(folder):
    """The entries of a log, without what the clock decides."""
    state = json.loads((folder / "trainer_state.json").read_text())
    clock = ("_runtime", "_per_second")
    unlike = ("total_flos", "eval_model_preparation_time")
    entries = [
        {name: value for name, value in entry.items() if not name.endswith(clock) and name not in unlike}
        for entry in state["log_history"]
    ]
    return state, entries


def mean_train_loss(folder):
    """That of all ranks: what was not logged of it transformers says of rank 0's data alone."""
    losses = [float(file.read_text()) for file in folder.glob("train_loss.*")]
    return sum(losses) / len(losses)


def compare(case, data):
    model, processes, more = CASES[case]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        outputs = {who: folder / who for who in ("peer", "ours")}
        for who, output in outputs.items():
            arguments = folder / f"{who}.json"
            chosen = {key: value for key, value in {**EPOCHS, **more}.items() if value is not None}
            chosen["output_dir"] = str(output)
            # Ours reads all keys, with transformers' defaults.
            arguments.write_text(json.dumps(chosen) if who == "peer" else to_json(**chosen))
            rows = data / ("texts.pt" if model == "transformer" else "images.pt")
            train(who, processes, model, rows, data / f"{model}.safetensors", arguments)
        peer_state, peer = history(outputs["peer"])
        our_state, ours = history(outputs["ours"])
        assert peer and len(peer) == len(ours), f"{peer}\n{ours}"
        next(entry for entry in peer if "train_loss" in entry)["train_loss"] = mean_train_loss(outputs["peer"])
        in_half = ours[-1] if "bf16_full_eval" in more or "fp16_full_eval" in more else None
        for theirs, mine in zip(peer, ours):
            assert theirs.keys() == mine.keys(), f"{theirs}\n{mine}"
            for key, value in theirs.items():
                if "_mem_" in key:
                    continue
                tolerance = 1e-12 if key == "learning_rate" else 1e-3 if mine is in_half else 1e-4
                assert abs(mine[key] - value) <= tolerance * max(1, abs(value)), f"{key}: {theirs}\n{mine}"
        assert in_half is None or in_half["eval_loss"] not in [entry.get("eval_loss") for entry in ours[:-1]], ours
        for key in ("global_step", "max_steps", "num_train_epochs", "eval_steps", "best_metric", "best_global_step"):
            left, right = peer_state[key], our_state[key]
            same = left == right if not isinstance(left, float) else abs(left - right) < 1e-4
            assert same or key == "eval_steps" and more.get("eval_strategy") != "steps", f"{key}: {left}, {right}"
        theirs, mine = (load_file(output / "model.safetensors") for output in outputs.values())
        assert theirs.keys() == mine.keys()
        for key, value in theirs.items():
            assert (value - mine[key]).abs().max() < 1e-3, f"{key} differs by {(value - mine[key]).abs().max()}"
        kept = [sorted(path.name for path in output.glob("checkpoint-*")) for output in outputs.values()]
        assert kept[0] == kept[1], kept


def main():
    with tempfile.TemporaryDirectory() as name:
        trainer_peer.prepare(pathlib.Path(name))
        SCENARIOS["recorded_defaults"] = recorded_defaults
        SCENARIOS.update({case: functools.partial(compare, case, pathlib.Path(name)) for case in CASES})
        return run_scenarios(NAMES)


sys.exit(main())
