# SPDX-License-Identifier: Apache-2.0
"""Random config files and flags: what accelerate would start, beside what `acc launch --dry_run=json` shows.

accelerate_launch_sweep.py ACC FAKE_NVML [COUNT [SEED]]

Compared are the kind of launcher, the command of the workers, the variables that are added and the shape of the job.
What acc refuses and accelerate starts, or starts otherwise, has to be a row of differences.yaml. Exits 1 and shows an
example of each kind of difference when there is another.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import types

import psutil
import torch
import yaml

import accelerate.commands.launch as launch
import accelerate.utils.launch as tools
from torch.distributed.run import config_from_args, get_args_parser

HERE = pathlib.Path(__file__).parent
SCHEMA = json.loads((HERE / "../../configs/schema.json").read_text())["else"]["properties"]
GPUS = 8

# What only acc refuses, by the row of differences.yaml with the reason.
REFUSED = {
    "deepspeed-hostfile": "needs a hostfile",
    "even-counts": "cannot be divided evenly",
    "fsdp-contradiction-typed": "fsdp_sync_module_states",
    "fsdp-versions": "version 2 of FSDP|in version [12]",
    "two-deepspeed-files": "conflicts with deepspeed_config_file",
    "type-and-count": "contradict each other",
    "pod-flags": "TPU jobs are started by Python",
    "machine-rank": "machine rank .* is not below",
}
# What only accelerate refuses.
STARTED = {
    "parallelism-of-a-file": "You cannot use `--use_parallelism_config` without `--use_fsdp`",
}


def fake_machine():
    """Eight GPUs with every library: what is compared is the launcher, not this machine."""
    torch.cuda.device_count = lambda: GPUS
    torch.cuda.is_available = lambda: True
    psutil.cpu_count = lambda logical=True: 16
    launch.is_bf16_available = lambda *_: True
    launch.is_deepspeed_available = lambda: True
    launch.check_cuda_p2p_ib_support = lambda: True
    launch.is_torch_xla_available = tools.is_torch_xla_available = lambda **_: True
    tools.is_fp8_available = lambda: True
    tools.is_port_in_use = lambda _: False
    tools.compare_versions = lambda *_: True


def added(environment):
    return {name: value for name, value in environment.items() if os.environ.get(name) != value}


def elastic(args, kind="elastic", environment=None):
    environment = environment or tools.prepare_multi_gpu_env(args)
    words = ["--training_script", args.training_script, "--training_script_args", args.training_script_args]
    config, command, rest = config_from_args(tools._filter_args(args, get_args_parser(), words))
    return {
        "launcher": kind,
        "command": [command, *rest],
        "env": added(environment),
        "workers": config.nproc_per_node,
        "num_machines": config.max_nodes,
        "role": config.role,
        "max_restarts": config.max_restarts,
        "rdzv_backend": config.rdzv_backend,
        "endpoint": config.rdzv_endpoint if config.max_nodes > 1 else None,
    }


def deepspeed(args):
    command, environment = tools.prepare_deepspeed_cmd_env(args)
    if command is None:
        return elastic(args, "elastic", environment)
    return {"launcher": "deepspeed", "command": command, "env": added(environment)}


def simple(args):
    command, environment = tools.prepare_simple_launcher_cmd_env(args)
    return {"launcher": "simple", "command": command, "env": added(environment)}


def pod_parser():
    """The arguments of torch_xla.distributed.xla_dist."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tpu", required=True)
    for name in ("--vm", "--env", "--docker-run-flag"):
        parser.add_argument(name, action="append")
    for name in ("--docker-container", "--docker-image"):
        parser.add_argument(name, default="")
    parser.add_argument("--restart-tpuvm-pod-server", action="store_true")
    parser.add_argument("positional", nargs="+")
    return parser


def pod(args):
    """In a form that can be compared; --module is handed on by acc alone (pod-flags)."""
    words = [word for word in args.positional if word != "--module"]
    return {**vars(args), "env": sorted(args.env), "positional": words}


def fake_torch_xla(keep):
    """A fake of the parts of torch_xla that accelerate imports, with `keep` instead of starting processes."""
    before = dict(os.environ)

    def spawn(function, args):
        env = {name: value for name, value in os.environ.items() if before.get(name) != value}
        keep({"launcher": "tpu", "command": [function.launcher.__name__, *sys.argv], "env": env})

    modules = {name: types.ModuleType(name) for name in (
        "torch_xla", "torch_xla.distributed", "torch_xla.distributed.xla_dist",
        "torch_xla.distributed.xla_multiprocessing")}  # fmt: skip
    pods = modules["torch_xla.distributed"].xla_dist = modules["torch_xla.distributed.xla_dist"]
    pods.get_args_parser = pod_parser
    pods.resolve_and_execute = lambda args: keep({"launcher": "tpu-pod", "command": pod(args)})
    modules["torch_xla.distributed.xla_multiprocessing"].spawn = spawn
    return modules


def theirs(words):
    """What accelerate would start, or the name of its exception."""
    launch.simple_launcher, launch.multi_gpu_launcher, launch.deepspeed_launcher = simple, elastic, deepspeed
    plan = {}
    sys.modules.update(fake_torch_xla(plan.update))

    def keep(launcher):
        return lambda args: plan.update(launcher(args))

    launch.simple_launcher, launch.multi_gpu_launcher, launch.deepspeed_launcher = map(keep, (simple, elastic, deepspeed))
    sys.argv = ["accelerate-launch", *words]
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            launch.launch_command(launch.launch_command_parser().parse_args(words))
        except (Exception, SystemExit) as error:
            return {"error": f"{type(error).__name__}: {error}"}
    return plan


def ours(acc, words, environment):
    done = subprocess.run([acc, "launch", "--dry_run=json", *words], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip()}
    shown = json.loads(done.stdout)
    settings = {name: setting["value"] for name, setting in shown["settings"].items()}
    stops = [note for note in shown["notes"] if note.startswith("cannot be started here")]
    if stops:
        return {"error": stops[0]}
    command = shown["worker_command"]
    if shown["launcher"] == "tpu":
        assert command[1] == "-c", command
        command = [command[3], os.path.abspath("train.py"), *command[6:]]
    elif shown["launcher"] == "tpu-pod":
        assert command[1:3] == ["-m", "torch_xla.distributed.xla_dist"], command
        command = pod(pod_parser().parse_args(command[3:]))
    several = settings["num_machines"] > 1 and shown["launcher"] == "elastic"
    endpoint = f"{settings['main_process_ip']}:{settings['main_process_port'] or 29500}" if several else None
    return {
        "launcher": shown["launcher"],
        "command": command,
        "env": shown["env"],
        "workers": len(shown["workers"]),
        "num_machines": settings["num_machines"],
        "role": settings["role"],
        "max_restarts": settings["max_restarts"],
        "rdzv_backend": settings["rdzv_backend"],
        "endpoint": endpoint,
    }


def random_value(dice, row):
    if "anyOf" in row:
        return dice.choice(row["anyOf"][0]["enum"])
    if "enum" in row:
        return dice.choice(row["enum"])
    kind = row.get("type")
    if kind == "integer":
        return dice.randint(row.get("minimum", 1), min(row.get("maximum", 8), 8))
    if kind == "number":
        return dice.choice([0.5, 1.0, 2.5])
    if kind == "array":
        return [dice.choice([True, False]) for _ in range(3)]
    if isinstance(kind, list) and kind[:2] == ["boolean", "string"]:
        return dice.choice([True, False])
    return dice.choice(["some_text", "/a/path", "A,B"])


SECTIONS = {"FSDP": "fsdp_config", "DEEPSPEED": "deepspeed_config", "MEGATRON_LM": "megatron_lm_config"}


def random_config(dice):
    kind = dice.choice(["NO", "MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "FSDP", "FSDP", "DEEPSPEED", "DEEPSPEED", "MEGATRON_LM",
                        "XLA"])  # fmt: skip
    config = {"compute_environment": "LOCAL_MACHINE", "distributed_type": kind}
    machines = 2 if kind != "NO" and dice.random() < 0.2 else 1
    config["num_machines"] = machines
    config["num_processes"] = 1 if kind == "NO" else machines * dice.randint(2, 4)
    if machines > 1:
        config.update(machine_rank=dice.randint(0, 1), main_process_ip="10.0.0.1", main_process_port=29501)
    for key in ("mixed_precision", "debug", "use_cpu"):
        if dice.random() < 0.4:
            config[key] = random_value(dice, SCHEMA[key])
    if kind in ("MULTI_CPU",):
        config["use_cpu"] = True
    elif kind != "NO":
        config.pop("use_cpu", None)
    if kind == "XLA":
        # Other TPU settings in a file have no effect in accelerate (file-is-obeyed).
        config.update(tpu_name="pod", tpu_zone="zone", tpu_vm=dice.choice([None, ["vm1", "vm2"]]),
                      tpu_use_cluster=dice.random() < 0.5, main_training_function=dice.choice(["main", "train"]))
    if dice.random() < 0.2:
        config["gpu_ids"] = dice.choice(["all", "0,1", "2,3,4,5"])
    sections = [SECTIONS.get(kind), dice.choice(["dynamo_config", "fp8_config", None])]
    if kind == "FSDP" and dice.random() < 0.3:
        sections.append("parallelism_config")
    for section in filter(None, sections):
        rows = SCHEMA[section]["properties"]
        config[section] = {key: random_value(dice, row) for key, row in rows.items() if dice.random() < 0.4}
    return config


# Flags of SageMaker, flags without effect in accelerate (file-is-obeyed, pod-flags), and flags that need others.
SKIPPED_FLAGS = {"--help", "--config_file", "--tpu_cluster", "--no_tpu_cluster", "--vm", "--env", "--aws_access_key_id", "--aws_secret_access_key", "--num_machines", "--machine_rank", "--main_process_ip",
                 "--main_process_port", "--rdzv_conf", "--tee", "--module", "--no_python", "--log_dir"}  # fmt: skip
TEXTS = {"--gpu_ids": ["0,1", "all"], "--num_processes": ["2", "4"], "--role": ["trainer"],
         "--fp8_override_linear_precision": ["true,false,true"], "--dynamo_backend": ["inductor", "eager"],
         "--rdzv_backend": ["static", "c10d"], "--fsdp_version": ["1", "2"],
         "--fsdp_sharding_strategy": ["FULL_SHARD", "NO_SHARD"], "--fsdp_reshard_after_forward": ["true", "false"],
         "--fsdp_auto_wrap_policy": ["NO_WRAP", "SIZE_BASED_WRAP"], "--fsdp_backward_prefetch": ["BACKWARD_POST"],
         "--fsdp_state_dict_type": ["FULL_STATE_DICT"], "--parallelism_config_sp_seq_length": ["128"],
         "--parallelism_config_cp_backend": ["torch"], "--parallelism_config_cp_comm_strategy": ["alltoall"], "--parallelism_config_sp_backend": ["deepspeed"],
         "--parallelism_config_sp_attn_implementation": ["sdpa", "eager"], "--zero_stage": ["0", "1", "2", "3"],
         "--deepspeed_multinode_launcher": ["standard", "pdsh"], "--offload_optimizer_device": ["cpu", "none"],
         "--offload_param_device": ["cpu", "nvme"]}  # fmt: skip
TRUTHS = re.compile("fsdp_.*(params|prefetch|loading|states|checkpointing|offload)|zero3|sequence_par|recompute_act|"
                    "use_distributed_opt|softmax|per_token|rotary|gather|pad_inner|no_load|eod|overlap|no_save|"
                    "cpu_offload|use_custom|precision_aware|variable")  # fmt: skip


def random_flags(dice):
    actions = [action for action in launch.launch_command_parser()._actions if action.option_strings]
    words = []
    for action in dice.sample(actions, dice.randint(0, 4)):
        flag = action.option_strings[0]
        if flag in SKIPPED_FLAGS or not flag.startswith("--") or flag == "--quiet":
            continue
        words.append(flag)
        if action.nargs == 0:
            continue
        if flag in TEXTS:
            words.append(dice.choice(TEXTS[flag]))
        elif action.choices:
            words.append(str(dice.choice(list(action.choices))))
        elif action.type is int:
            words.append(str(dice.randint(1, 4)))
        elif action.type is float:
            words.append("0.5")
        elif TRUTHS.search(flag):
            words.append("true")
        else:
            words.append("some_text")
    return words


def random_program(dice):
    return dice.choice([["train.py"], ["train.py"], ["--module", "train"], ["--no_python", "/bin/true"]])


def random_launch(dice):
    """The words of a launch, and the file that they name, if any."""
    flags = random_flags(dice)
    if dice.random() < 0.2:
        machines = dice.randint(1, 2)
        flags += ["--num_machines", str(machines), "--num_processes", str(machines * dice.randint(1, 3))]
        if machines > 1:
            flags += ["--machine_rank", str(dice.randint(0, 1)), "--main_process_ip", "10.0.0.2",
                      "--main_process_port", "29502"]  # fmt: skip
    named = dice.random() < 0.85
    file = ["--config_file", "c.yaml"] if named else []
    return [*file, *flags, *random_program(dice), "--lr", "0.1"], random_config(dice) if named else None


def left_out(key):
    return {value for row in yaml.safe_load((HERE / "differences.yaml").read_text()) if "in" not in row
            for value in row.get(key, [])}  # fmt: skip


def left_out_rows():
    return {row["id"] for row in yaml.safe_load((HERE / "differences.yaml").read_text())}


def told_otherwise(one, other, words, config):
    """Whether, by a row of differences.yaml, acc starts another job in this case."""
    kind = (config or {}).get("distributed_type")
    count_over_type = kind == "NO" and "--num_processes" in words
    cpu_is_one = config is None and "--cpu" in words and "--num_processes" not in words
    # No row: a machine with TPUs has no GPUs that would make it a job on those.
    tpu_beside_gpus = config is None and "--tpu" in words
    return "error" not in one and "error" not in other and (count_over_type or cpu_is_one or tpu_beside_gpus)


def compare(one, other, skipped):
    """The first difference in words, or nothing."""
    if "error" in one and "error" in other:
        return None
    if "error" in one and any(re.search(pattern, one["error"]) for pattern in STARTED.values()):
        return None
    if "error" in one:
        return "acc starts what accelerate refuses: " + re.sub(r"[0-9]+", "N", one["error"])[:90]
    if "error" in other:
        if any(re.search(pattern, other["error"]) for pattern in REFUSED.values()):
            return None
        return "acc refuses: " + re.sub(r"(/tmp\S*|[0-9]+)", "N", other["error"])[:150]
    for key in one:
        mine, expected = other.get(key), one[key]
        if key == "env":
            # deepspeed-dynamo
            lost = "ACCELERATE_DYNAMO" if "ACCELERATE_USE_DEEPSPEED" in expected else "nothing"
            # fp8-words
            if "ACCELERATE_FP8_BACKEND" in expected:
                expected["ACCELERATE_FP8_BACKEND"] = expected["ACCELERATE_FP8_BACKEND"].upper()
            for name in sorted(set(mine) | set(expected)):
                if name not in skipped and not name.startswith(lost) and mine.get(name) != expected.get(name):
                    return f"{name} ({one['launcher']}): {expected.get(name)!r} there, {mine.get(name)!r} here"
        elif key == "workers" and one["launcher"] == "simple":
            continue
        elif mine != expected:
            return f"{key} ({one['launcher']}): {expected} there, {mine} here"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("acc")
    parser.add_argument("fake_nvml")
    parser.add_argument("count", type=int, nargs="?", default=300)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    args = parser.parse_args()
    acc = os.path.abspath(args.acc)
    fake_machine()
    skipped = left_out("variables")
    unknown = (set(REFUSED) | set(STARTED)) - left_out_rows()
    assert not unknown, f"no rows of differences.yaml: {unknown}"
    dice = random.Random(args.seed)
    differences = {}
    outcomes = {"started": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # accelerate's torchrun leaves a folder for each launch.
        tempfile.tempdir = folder
        # A script with every function.
        pathlib.Path("train.py").write_text(
            "def __getattr__(name):\n"
            "    if name.startswith('__'): raise AttributeError(name)\n"
            "    return type(name, (), {})\n")
        sys.path.insert(0, folder)
        bin_folder = pathlib.Path("bin")
        bin_folder.mkdir()
        for name in ("deepspeed", "mpirun"):
            (bin_folder / name).write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1'\n")
            (bin_folder / name).chmod(0o755)
        os.environ.clear()
        os.environ.update(PATH=f"{folder}/bin:/usr/bin:/bin", HOME=folder, PYTHON_EXEC=sys.executable)
        environment = dict(os.environ, LD_LIBRARY_PATH=args.fake_nvml, FAKE_NVML_GPUS=str(GPUS))
        for number in range(args.count):
            words, config = random_launch(dice)
            if config:
                pathlib.Path("c.yaml").write_text(yaml.safe_dump(config))
            one, other = theirs(words), ours(acc, words, environment)
            outcomes["refused" if "error" in one else "started"] += 1
            if told_otherwise(one, other, words, config):
                continue
            # accelerate chooses the variable for the device mask by the installed library.
            masks = {"CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"} if "MULTI_XPU" in str(config) else set()
            if difference := compare(one, other, skipped | masks):
                differences.setdefault(difference, []).append((number, words, config))
    print(f"{args.count} launches, seed {args.seed}: {outcomes}")
    for difference, cases in sorted(differences.items(), key=lambda entry: -len(entry[1])):
        number, words, config = cases[0]
        print(f"{len(cases)} x {difference}\n    as in {number}: {words} {config}")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
