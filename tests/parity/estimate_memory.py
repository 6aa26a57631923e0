# SPDX-License-Identifier: Apache-2.0
"""Random models of transformers: `acc estimate-memory` of their folder tells what accelerate tells of the model.

estimate_memory.py ACC [COUNT [SEED]]

The folder holds a config alone, or the files of the model, with a task's head or without, which accelerate leaves out.
Parts of the model that no file holds are left out (a row of differences.yaml).
Exits 1 and shows the first differences.
"""

import argparse
import contextlib
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers

import accelerate.commands.estimate as estimate
from accelerate import init_empty_weights


def random_config(dice):
    heads = dice.choice([1, 2, 4])
    sizes = {"width": 2 * heads * dice.randint(4, 12), "layers": dice.randint(1, 3), "words": dice.randint(1000, 5000)}
    family = dice.choice(["llama", "mistral", "qwen2", "gpt2", "bert"])
    if family == "gpt2":
        return transformers.GPT2Config(n_embd=sizes["width"], n_head=heads, n_layer=sizes["layers"],
                                       vocab_size=sizes["words"], n_inner=dice.choice([None, 40]))  # fmt: skip
    settings = {"hidden_size": sizes["width"], "num_attention_heads": heads, "num_hidden_layers": sizes["layers"],
                "vocab_size": sizes["words"], "intermediate_size": dice.randint(1, 100)}  # fmt: skip
    if family == "bert":
        return transformers.BertConfig(**settings, max_position_embeddings=dice.randint(16, 600))
    if family == "llama":
        settings.update(attention_bias=dice.choice([True, False]), mlp_bias=dice.choice([True, False]))
    return transformers.AutoConfig.for_model(family, **settings, num_key_value_heads=dice.choice([1, heads]),
                                             tie_word_embeddings=dice.choice([True, False]))  # fmt: skip


def write_folder(dice, config):
    shutil.rmtree("model", ignore_errors=True)
    kinds = [transformers.AutoModel, transformers.AutoModelForSequenceClassification]
    if config.model_type != "bert":  # estimate-of-files: it would have no pooler
        kinds.append(transformers.AutoModelForCausalLM)
    kind = dice.choice([None, *kinds])
    if kind is None:
        return config.save_pretrained("model")
    model = kind.from_config(config).to(dice.choice([torch.float32, torch.bfloat16]))
    model.save_pretrained("model", max_shard_size=dice.choice(["100KB", "5GB"]))


def theirs(words, config):
    """Its table, of the same model as the hub would describe it."""

    def create_empty_model(*_, **__):
        with init_empty_weights():
            return transformers.AutoModel.from_config(config, dtype=torch.float32)

    estimate.create_empty_model = create_empty_model
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        estimate.estimate_command(estimate.estimate_command_parser().parse_args(words))
    return printed.getvalue()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("acc")
    parser.add_argument("count", type=int, nargs="?", default=60)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    args = parser.parse_args()
    acc = os.path.abspath(args.acc)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(args.seed)
    dice = random.Random(args.seed)
    differences = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for _ in range(args.count):
            config = random_config(dice)
            write_folder(dice, config)
            dtypes = dice.sample(["float32", "float16", "int8", "int4"], dice.randint(1, 4))
            words = ["model", "--dtypes", *dtypes]
            one = theirs(words, config)
            other = subprocess.run([acc, "estimate-memory", *words], capture_output=True, text=True)
            # What acc tells beyond that comes after the table.
            if not other.stdout.startswith(one):
                files = sorted(os.listdir("model"))
                differences.append(f"{files} {config.to_diff_dict()}\n{one}{other.stdout}{other.stderr}")
    print(f"{args.count} models, seed {args.seed}: {len(differences)} differ")
    for difference in differences[:5]:
        print(difference)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
