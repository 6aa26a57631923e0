#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs all tests and benchmarks that need GPUs, from the bundle that scripts/gpu makes.

usage: run.py [--out FOLDER] [--minutes 9] [--limit SECONDS] [--only PART] [--cpu]

Needs x86-64 Linux and a python3 with the torch that the bundle was built for. Writes FOLDER/report.json and
FOLDER/report.txt anew after each part, and a log of each part; what matters most comes first. A part that fails, or takes
longer than its limit, does not end the others. Exits 1 when a part failed; one that cannot run here, or for which no time is
left, is skipped and says why. With --cpu only parts that can show what they do without a GPU, too: over Gloo.
"""

import argparse
import datetime
import functools
import importlib.util
import json
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

BUNDLE = pathlib.Path(__file__).resolve().parent
BIN = BUNDLE / "bin"
ACC = BIN / "acc"


class Skip(Exception):
    """Why a part cannot run here."""


class Failure(Exception):
    """A part did not see what it expects."""


class Machine:
    """The machine on which the parts run."""

    def __init__(self, cpu):
        self.cpu = cpu
        torch = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__); print(torch.__file__)"],
                               capture_output=True, text=True, check=False)
        self.torch_version, file = (torch.stdout.splitlines() + ["", ""])[:2]
        self.why_no_torch = "" if file else f"{sys.executable} has no torch"
        self.torch_libraries = pathlib.Path(file).parent / "lib" if file else None

    @functools.cached_property
    def environment(self):
        """The environment for programs of the bundle: its libraries and torch's, and no config file of the user."""
        home = tempfile.mkdtemp(prefix="acc-gpu-home-")
        libraries = [str(BUNDLE / "lib"), str(self.torch_libraries or "")]
        if inherited := os.environ.get("LD_LIBRARY_PATH"):
            libraries.append(inherited)
        on_cpu = {"ACCELERATE_USE_CPU": "true"} if self.cpu else {}
        return os.environ | on_cpu | {"HOME": home, "HF_HOME": f"{home}/hf", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1",
                             "ACC_PEER_PYTHON": sys.executable, "LD_LIBRARY_PATH": ":".join(libraries),
                             "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

    @functools.cached_property
    def report_of_cuda(self):
        """The library's report about CUDA, by the keys of acc-cuda-report."""
        done = subprocess.run([BIN / "acc-cuda-report"], env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False)
        return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line) or {"": done.stderr}

    @property
    def devices(self):
        return int(self.report_of_cuda.get("devices", "0").split()[0])

    @property
    def why_no_device(self):
        said = self.report_of_cuda
        reason = said.get("devices", "0 ").partition(" ")[2] or said.get("plugin", "") or said.get("", "")
        return f"no CUDA device here ({reason.strip().splitlines()[0] if reason.strip() else 'no driver'})"

    def need_devices(self, count):
        if self.devices == 0:
            raise Skip(self.why_no_device)
        if self.devices < count:
            raise Skip(f"needs {count} GPUs, {self.devices} here")


class Part:
    """A part while it runs; its processes end with it. It may take `limit` seconds, and `remaining` are left for all parts."""

    def __init__(self, name, limit, remaining, out, machine):
        self.name, self.machine = name, machine
        self.deadline = time.monotonic() + min(limit, remaining)
        self.is_last = remaining < limit
        self.log = open(out / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.log", "w", encoding="utf-8")
        self.details, self.failures = [], []
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=machine.environment["HOME"]))

    def remaining(self):
        return max(0.1, self.deadline - time.monotonic())

    def start(self, command, **variables):
        self.log.write(f"$ {' '.join(map(str, command))}\n")
        self.log.flush()
        return subprocess.Popen([str(word) for word in command], env=self.machine.environment | variables,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                errors="replace", start_new_session=True)

    def finish(self, process, limit=math.inf):
        """Waits for the process and returns its exit code, standard output and standard error. It may take `limit` seconds,
        and what is left of the part's time."""
        try:
            output, errors = process.communicate(timeout=min(limit, self.remaining()))
        except subprocess.TimeoutExpired:
            self.log.write("took longer than its limit\n" + self.stacks(process.pid))
            os.killpg(process.pid, signal.SIGTERM)  # acc ends its workers
            try:
                output, errors = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
            self.log.write(output + errors)
            if self.is_last and time.monotonic() >= self.deadline:
                raise Skip("no time was left") from None
            raise Failure("took longer than its limit") from None
        self.log.write(f"{output}{errors}[exit {process.returncode}]\n")
        self.log.flush()
        return process.returncode, output, errors

    def stacks(self, pid):
        """Where the ranks of the job stand that this process, or each of its children, has started."""
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        jobs = [pid, *(children.read_text().split() if children.exists() else [])]
        return "".join(subprocess.run([ACC, "ps", "--stacks", str(job)], env=self.machine.environment, capture_output=True,
                                      text=True, timeout=60, check=False).stdout for job in jobs)

    def run(self, command, limit=math.inf, **variables):
        return self.finish(self.start(command, **variables), limit)

    def run_well(self, command, **variables):
        """Standard output and standard error of a command, which must exit with 0."""
        code, output, errors = self.run(command, **variables)
        if code == 77:
            raise Skip(next((line.removeprefix("skipped: ") for line in output.splitlines() if line.startswith("skipped: ")),
                            "skipped itself"))
        if code != 0:
            lines = (errors or output).strip().splitlines()
            raise Failure(f"exit {code}: {lines[-1] if lines else 'no output'}")
        return output + errors

    def expect(self, holds, message):
        if not holds:
            raise Failure(message)

    def fail(self, message):
        """A failure after which the part goes on."""
        self.failures.append(message)

    def note(self, line):
        self.details.append(line)


PARTS = []


def part(name, limit, devices=0, cpu=False):
    """Needs so many devices; if `cpu`, it can also run on the CPU."""
    def add(function):
        PARTS.append((name, limit, devices, cpu, function))
        return function
    return add


def has_modules(*names):
    return all(importlib.util.find_spec(name.partition(".")[0]) for name in names)


def script_of(run, name, text):
    """A Python file of the parts."""
    folder = pathlib.Path(run.machine.environment["HOME"]) / "scripts"
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(textwrap.dedent(text))
    return file


def of_workers(run, arguments, **variables):
    """The local rank and the device mask of each worker that `acc ARGUMENT...` starts."""
    words = 'echo "WORKER $LOCAL_RANK ${CUDA_VISIBLE_DEVICES-unset}"'
    said = run.run_well([ACC, *arguments, "sh", "-c", words], **variables)
    return sorted(re.findall(r"WORKER (\d*) (\S+)", said))


@part("programs load", 60)
def load(run):
    """Every program and library of the bundle finds its shared libraries on this machine."""
    run.expect(not run.machine.why_no_torch, run.machine.why_no_torch)
    run.note(f"torch {run.machine.torch_version}, {platform.platform()}, glibc {platform.libc_ver()[1]}")
    for command in ([ACC, "--version"], [BIN / "mnist", "--help"], [BIN / "acc-test-gpu", "--list-test-names-only"]):
        code, output, errors = run.run(command)
        run.expect(code in (0, 77) or "gpu:" in output, f"{command[0].name}: exit {code}: {errors.strip()}")
    plugin = BUNDLE / "lib" / "libacc_cuda.so"
    words = f"import torch, ctypes; ctypes.CDLL({str(plugin)!r}, mode=ctypes.RTLD_GLOBAL)"
    run.run_well([sys.executable, "-c", words])
    for key, value in run.machine.report_of_cuda.items():
        run.note(f"{key}: {value}")


@part("acc env", 20)
def environment(run):
    for line in run.run_well([ACC, "env"]).splitlines():
        run.note(line)


@part("gpu tests, one process over NCCL", 90, devices=1)
def tests_alone(run):
    said = run.run_well([ACC, "run", "--standalone", "--no-python", BIN / "acc-test-gpu", "--order", "decl"])
    run.note(said.strip().splitlines()[-1])


@part("acc test on one GPU", 60, devices=1)
def self_test(run):
    said = run.run_well([ACC, "test", "--num_processes", "1"])
    run.note(said.strip().splitlines()[-1])


@part("gpu tests, two processes on one GPU over Gloo", 90, devices=1)
def tests_shared(run):
    run.run_well([ACC, "run", "--standalone", "--no-python", "--nproc-per-node", "2", BIN / "acc-test-gpu", "--order",
                  "decl"], ACC_TEST_SHARE_GPU="1", CUDA_VISIBLE_DEVICES="0")


@part("gpu tests, a process on each GPU over NCCL", 90, devices=2)
def tests_on_all(run):
    run.run_well([ACC, "run", "--standalone", "--no-python", "--nproc-per-node", "gpu", BIN / "acc-test-gpu", "--order",
                  "decl"])


@part("MNIST in float32, fp16 with the scaler, bf16", 90, devices=1)
def mnist(run):
    for precision in ("no", "fp16", "bf16"):
        said = run.run_well([ACC, "launch", "--num_processes", "1", "--mixed_precision", precision, BIN / "mnist",
                             "--data-dir", BUNDLE / "apps" / "examples" / "mnist" / "data"])
        accuracy = float(re.search(r"accuracy: ([\d.]+)", said)[1])
        run.note(f"{precision}: accuracy {accuracy}")
        run.expect(accuracy > 0.9, f"{precision}: the accuracy is {accuracy}")


@part("GPT in float32 and bf16", 90, devices=1)
def gpt(run):
    """86 million parameters learn to write like the text of Python's help."""
    import pydoc_data
    text = pathlib.Path(pydoc_data.__path__[0]) / "topics.py"
    for precision in ("no", "bf16"):
        said = run.run_well([ACC, "launch", "--num_processes", "1", "--mixed_precision", precision, BIN / "gpt", "--text",
                             text, "--size", "small", "--lr", "0.0006", "--epochs", "2"])
        epochs = re.findall(r"epoch \d+: loss ([\d.]+) +([\d.]+) s", said)
        run.note(f"{precision}: losses {', '.join(loss for loss, _ in epochs)}; the last epoch took {epochs[-1][1]} s")
        run.expect(float(epochs[-1][0]) < float(epochs[0][0]) < 4, f"{precision}: {epochs}")


@part("out of memory in one rank", 40, devices=1)
def out_of_memory(run):
    code, _, errors = run.run([ACC, "run", "--standalone", "--no-python", "--nproc-per-node", "2",
                               BIN / "acc-gpu-worker", "out-of-memory"], ACC_TEST_SHARE_GPU="1")
    run.expect(code not in (0, 77), f"exit {code}")
    run.expect("out of memory" in errors, "the report does not speak of memory")
    run.expect(re.search(r"rank 1\b", errors), "the report does not name rank 1")


@part("a rank killed inside a collective", 60, devices=1)
def lost_rank(run):
    began = time.monotonic()
    code, _, errors = run.run([ACC, "run", "--standalone", "--no-python", "--nproc-per-node", "2",
                               BIN / "acc-gpu-worker", "lost"], ACC_TEST_SHARE_GPU="1")
    run.note(f"ended after {time.monotonic() - began:.1f} s with exit {code}")
    run.expect(code not in (0, 77), f"exit {code}")
    run.expect(re.search(r"rank 1\b", errors) and "SIGKILL" in errors, "the report does not say that rank 1 was killed")


@part("device rules of the launcher", 60, devices=1)
def device_rules(run):
    count = run.machine.devices
    every = [str(rank) for rank in range(count)]
    launch = ["launch", "--no_python"]  # as accelerate's, it sets no ranks for a worker that is alone
    agents = ["run", "--standalone", "--no-python"]
    rules = {
        "a worker for each GPU": (of_workers(run, launch), [("" if count == 1 else rank, "unset") for rank in every]),
        "--gpu_ids 0": (of_workers(run, [*launch, "--gpu_ids", "0", "--num_processes", "1"]), [("", "0")]),
        "CUDA_VISIBLE_DEVICES=0": (of_workers(run, [*agents, "--nproc-per-node", "gpu"], CUDA_VISIBLE_DEVICES="0"),
                                   [("0", "0")]),
        "--isolate-gpus": (of_workers(run, [*agents, "--nproc-per-node", "gpu", "--isolate-gpus"]),
                           [("0", rank) for rank in every]),
        "--virtual-local-rank": (of_workers(run, [*agents, "--nproc-per-node", "gpu", "--virtual-local-rank"]),
                                 [("0", rank) for rank in every]),
    }
    wrong = [f"{rule}: {seen}, not {expected}" for rule, (seen, expected) in rules.items() if seen != expected]
    run.note(f"{len(rules) - len(wrong)} of {len(rules)} rules hold")
    run.expect(not wrong, "; ".join(wrong))


@part("NUMA binding", 30, devices=1)
def numa_binding(run):
    query = subprocess.run(["nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader"], capture_output=True,
                           text=True, check=False)
    if query.returncode != 0:
        raise Skip("nvidia-smi does not answer")
    domain, rest = query.stdout.split()[0].lower().split(":", 1)
    device = pathlib.Path("/sys/bus/pci/devices") / f"{domain[-4:]}:{rest}"
    if not (device / "local_cpulist").exists():
        raise Skip(f"sysfs does not show {device.name}")
    near = (device / "local_cpulist").read_text().strip()
    said = run.run_well([ACC, "run", "--standalone", "--no-python", "--numa-binding", "node", "grep",
                         "Cpus_allowed_list", "/proc/self/status"])
    run.note(f"the GPU is near CPUs {near}; the worker had {said.split()[-1]}")
    run.expect(expand(said.split()[-1]) == expand(near) & os.sched_getaffinity(0), "they differ")


def expand(cpus):
    """`0-2,5` as a set of numbers."""
    numbers = set()
    for piece in cpus.split(","):
        low, _, high = piece.partition("-")
        numbers.update(range(int(low), int(high or low) + 1))
    return numbers


@part("NVML's columns in acc ps", 60, devices=1)
def ps(run):
    job = run.start([ACC, "run", "--standalone", "--no-python", BIN / "mnist", "--epochs", "100000", "--data-dir",
                     BUNDLE / "apps" / "examples" / "mnist" / "data"])
    try:
        seen = []
        while time.monotonic() < run.deadline - 15 and job.poll() is None:
            _, output, _ = run.run([ACC, "ps", "--json", str(job.pid)])
            if output.startswith(("[", "{")):
                seen = re.findall(r'"gpus": \[\s*\{[^]]*\}', output)
                if seen:
                    break
            time.sleep(0.2)  # polls, since only the driver knows when the worker uses the device
        run.note(run.run([ACC, "ps"])[1])
        run.expect(seen, "no rank's memory on the GPU was shown")
    finally:
        if job.poll() is None:
            job.terminate()
        run.finish(job)


@part("the nodes' check", 60, devices=1)
def nodes(run):
    for line in run.run_well([ACC, "test", "--nodes"]).splitlines():
        run.note(line)


@part("config file of this machine beside accelerate's", 60, devices=1)
def default_config(run):
    if not has_modules("accelerate", "yaml"):
        raise Skip("this Python has no accelerate")
    import yaml  # only the part that compares needs it
    files = [pathlib.Path(run.machine.environment["HOME"]) / name for name in ("ours.yaml", "theirs.yaml")]
    run.run_well([ACC, "config", "default", "--config_file", files[0]])
    run.run_well([sys.executable, "-m", "accelerate.commands.accelerate_cli", "config", "default", "--config_file", files[1]])
    ours, theirs = (yaml.safe_load(file.read_text()) for file in files)
    differ = {key: (theirs.get(key), ours.get(key)) for key in ours | theirs if theirs.get(key) != ours.get(key)}
    run.expect(not differ, f"there, here: {differ}")
    run.note(f"the same {len(ours)} keys: {ours['distributed_type']}, {ours['num_processes']} process(es)")


@part("variables of workers beside accelerate's and torchrun's", 150, devices=1)
def variables(run):
    if not has_modules("accelerate"):
        raise Skip("this Python has no accelerate")
    launch, torchrun = ("-m", "accelerate.commands.launch"), ("-m", "torch.distributed.run")
    jobs = {
        "launch": (launch, ["launch"], []),
        "launch --mixed_precision bf16": (launch, ["launch"], ["--mixed_precision", "bf16"]),
        "launch --gpu_ids 0": (launch, ["launch"], ["--gpu_ids", "0", "--num_processes", "1"]),
        "run --nproc-per-node gpu": (torchrun, ["run"], ["--standalone", "--nproc-per-node", "gpu"]),
        "run --nproc-per-node auto": (torchrun, ["run"], ["--standalone", "--nproc-per-node", "auto"]),
    }
    by_chance = {"ACC_PROGRESS", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "MASTER_ADDR"}
    script = script_of(run, "variables", """
        import json, os, sys
        with open(f"{sys.argv[1]}.{os.environ.get('RANK', 0)}", "w") as file: json.dump(dict(os.environ), file)
        """)
    wrong = []
    for name, (peer, ours, flags) in jobs.items():
        seen = []
        for side, command in ("ours", [ACC, *ours]), ("theirs", [sys.executable, *peer]):
            run.run_well([*command, *flags, script, f"{script}.{side}"])
            files = sorted(script.parent.glob(f"{script.name}.{side}.*"))
            seen.append([json.loads(file.read_text()) for file in files])
            for file in files:
                file.unlink()
        if len(seen[0]) != len(seen[1]):
            wrong.append(f"{name}: {len(seen[0])} workers, not {len(seen[1])}")
        for ours_seen, theirs_seen in zip(*seen):
            wrong += [f"{name}: {key}={ours_seen.get(key)}, not {theirs_seen.get(key)}"
                      for key in sorted((ours_seen | theirs_seen).keys() - by_chance)
                      if ours_seen.get(key) != theirs_seen.get(key)]
    run.note(f"{len(jobs)} command lines")
    for line in wrong:
        run.note(line)
    run.expect(not wrong, f"{len(wrong)} variables differ")


# What a worker has to say of itself, after an all-reduce over NCCL and a step on its device.
PRELOADED = """
    import sys
    preloaded = "torch" in sys.modules
    import os, time, torch
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    one = torch.ones(4, device="cuda")
    torch.distributed.all_reduce(one)
    torch.cuda.synchronize()
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    net = torch.nn.Linear(64, 64, device="cuda")
    loss = net(torch.randn(8, 64, device="cuda")).square().mean()
    loss.backward()
    print("WORKER", preloaded, now, int(one[0].item()), loss.isfinite().item(), flush=True)
    torch.distributed.destroy_process_group()
    """


@part("--preload torch", 120, devices=1)
def preload(run):
    """A worker that is forked from a process with torch uses its GPU, and starts sooner."""
    script = script_of(run, "preloaded", PRELOADED)
    script_of(run, "takes_the_gpu", "import torch\ntorch.zeros(1, device='cuda')\n")
    command = [ACC, "run", "--standalone", "--nproc-per-node", "gpu"]
    count = run.machine.devices
    seconds = {}
    for name, flags, forked in (("cold", [], "False"), ("warm", ["--preload", "torch"], "True"),
                                ("refused", ["--preload", "takes_the_gpu"], "False")):
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        said = run.run_well([*command, *flags, script], PYTHONPATH=str(script.parent))
        workers = re.findall(r"WORKER (\w+) ([\d.]+) (\d+) (\w+)", said)
        run.expect(len(workers) == count and all((was, total, finite) == (forked, str(count), "True")
                                                 for was, _, total, finite in workers), f"{name}: {workers}")
        seconds[name] = max(float(at) for _, at, _, _ in workers) - began
        if name == "refused":
            run.expect("initializes the GPU" in said, "nothing says that the module initializes the GPU")
        run.note(f"{name}: {seconds[name]:.2f} s to the first all-reduce")


@part("checkpoints beside accelerate's on the device", 120, devices=1)
def checkpoints(run):
    """Each side goes on from what the other saved: the device's random numbers and the scaler of fp16, too."""
    if not has_modules("accelerate"):
        raise Skip("this Python has no accelerate")
    for optimizer, precision in ("adamw", "no"), ("sgd", "fp16"):
        run.run_well([sys.executable, BUNDLE / "parity" / "checkpoint" / "compare.py", BIN / "acc-test-checkpoint-parity",
                      optimizer, precision])
        run.note(f"{optimizer}, {precision}: both ways")


@part("accelerate's own test script", 120, devices=1)
def peers_test(run):
    if not has_modules("accelerate.test_utils"):
        raise Skip("this Python has no accelerate.test_utils")
    run.run_well([ACC, "launch", "--mixed_precision", "fp16", "-m", "accelerate.test_utils.scripts.test_script"])


@part("an error of CUDA in a Python worker", 60, devices=1)
def python_error(run):
    script = script_of(run, "asserts", """
        import torch
        table = torch.zeros(4, device="cuda")
        print(table[torch.tensor([7], device="cuda")].cpu())
        """)
    code, _, errors = run.run([ACC, "run", "--standalone", script])
    run.expect(code == 1, f"exit {code}")
    report = errors.rsplit("acc:", 1)[-1]
    run.expect("device-side assert" in report, "acc's report does not speak of the assert")
    run.expect("with CUDA_LAUNCH_BLOCKING=1 the call" in report, "acc's report does not say how to see the call")


@part("CUDA_VISIBLE_DEVICES= trains on the CPU", 60)
def masked(run):
    said = run.run_well([BIN / "acc-selftest", "--expect-processes", "1"], CUDA_VISIBLE_DEVICES="")
    run.expect("cpu" in said, "the self-test does not say that it ran on the CPU")
    run.expect("no CUDA device" not in said, "it warns although the CPU was asked for")
    run.note(said.strip().splitlines()[-1])


@part("a driver without a device: a warning, and the CPU", 60, devices=1)
def no_device(run):
    said = run.run_well([BIN / "acc-selftest", "--expect-processes", "1"], CUDA_VISIBLE_DEVICES="99")
    run.expect("no CUDA device" in said, "nothing says that no device was found")


# --- Several ranks, each a node of its own, over NCCL on one GPU, or over Gloo on the CPU (--cpu) ---------------------


def as_nodes(count, *words):
    """The command of a job of so many nodes, each with one process; `words` begin with flags of acc run."""
    return [sys.executable, BUNDLE / "nodes.py", ACC, "--nproc-per-node", count, "--no-python", *words]


def suite(run, count, program, *words):
    """A program of tests, on so many ranks: rank 0's failed checks become notes, all ranks' output is in the log."""
    outputs = pathlib.Path(tempfile.mkdtemp(dir=run.folder)) / "rank"
    shell = 'exec "$0" "$@" >"$OUTPUTS.$RANK" 2>&1'
    command = as_nodes(count, "sh", "-c", shell, BIN / program, "--order", "decl", "-d", "yes", "-w", "NoTests", *words)
    began = time.monotonic()
    try:
        code, _, errors = run.run(command, limit=90, OUTPUTS=str(outputs))
        problem = f"exit {code}: {(errors.strip().splitlines() or ['no output'])[0]}" if code else ""
    except Failure as failure:
        problem = str(failure)
    texts = [file.read_text(errors="replace") for file in sorted(outputs.parent.iterdir())]
    for rank, text in enumerate(texts):
        run.log.write(f"--- {program}, rank {rank} of {count}\n{text}")
    failed = re.findall(r"^(\S+:\d+): FAILED:\n(.*(?:\n(?!-----|\n\n|\S+:\d+: ).*){0,5})", texts[0] if texts else "", re.MULTILINE)
    for where, what in failed[:20]:
        run.note(f"{where}: {' '.join(what.split())[:300]}")
    summary = re.findall(r"^(?:test cases: .*|All tests passed .*)$", texts[0] if texts else "", re.MULTILINE)
    run.note(f"{program} on {count}, {time.monotonic() - began:.0f} s: {summary[-1] if summary else 'no summary'}")
    if problem:
        run.fail(f"{program} {' '.join(words)} on {count}: {problem}")


def own_cases(run, tags):
    """`tags` without the cases that only one machine, or on CUDA devices only the CPU, can pass."""
    return f"{tags}~[one_machine]" if run.machine.cpu else f"{tags}~[one_machine]~[cpu]"


@part("ranks: NCCL between two processes of Python", 60, devices=1, cpu=True)
def ranks_in_python(run):
    """What the set-up itself can do; its log has NCCL's."""
    script = script_of(run, "collectives", """
        import os, sys, time, torch, torch.distributed as dist
        sys.path.append(os.environ["PARITY"])
        from scenarios import device_of_job
        device = device_of_job()
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
        rank, size = dist.get_rank(), dist.get_world_size()
        one = torch.full((1 << 20,), rank + 1.0, device=device)
        dist.all_reduce(one)
        assert one.eq(size * (size + 1) / 2).all()
        parts = [torch.empty(3, device=device) for _ in range(size)]
        dist.all_gather(parts, torch.full((3,), float(rank), device=device))
        assert [int(part[0]) for part in parts] == list(range(size))
        began = time.monotonic()
        for _ in range(20):
            dist.all_reduce(one)
        one[0].item()
        print(f"RESULT {size} ranks: {(time.monotonic() - began) * 50:.1f} ms for an all-reduce of 4 MiB", flush=True)
        dist.destroy_process_group()
        """)
    for count in 2, 3:
        said = run.run_well(as_nodes(count, sys.executable, script), NCCL_DEBUG="INFO" if count == 2 else "WARN",
                            PARITY=str(BUNDLE / "parity"))
        run.note(re.search(r"RESULT (.*)", said)[1])


@part("ranks: collectives and training on two and three", 100, devices=1, cpu=True)
def ranks_basics(run):
    suite(run, 2, "acc-test-ranks", own_cases(run, "[ranks]"))
    suite(run, 3, "acc-test-ranks", own_cases(run, "[ranks]"))
    suite(run, 2, "acc-test-accelerator", own_cases(run, "[ranks]"))


@part("ranks: tests of devices on two and three", 100, devices=1)
def ranks_devices(run):
    suite(run, 2, "acc-test-gpu")
    suite(run, 3, "acc-test-gpu")


@part("ranks: data parallelism and its mistakes", 100, devices=1, cpu=True)
def ranks_parallel(run):
    suite(run, 2, "acc-test-parallel", "[parallel]")
    suite(run, 3, "acc-test-parallel", "[parallel]")
    suite(run, 2, "acc-test-drift", "[ranks]")


def ends_of(run, mode, count, expected, flags=(), **variables):
    """How a job ends in which rank 1 fails in this way: its report must have each of the expected texts."""
    began = time.monotonic()
    try:
        code, output, errors = run.run(as_nodes(count, *flags, BIN / "acc-gpu-worker", mode), limit=40, **variables)
    except Failure as why:
        run.fail(f"{mode}: {why}")
        return
    run.note(f"{mode}: ended after {time.monotonic() - began:.1f} s with exit {code}")
    said = output + errors
    for line in [line for line in said.splitlines() if line.startswith("acc: ")][:6]:
        run.note(f"  {line[:400]}")
    for text in expected:
        if not re.search(text, said):
            run.fail(f"{mode}: {text!r} is not said")
    if code in (0, 77):
        run.fail(f"{mode}: exit {code}")


@part("ranks: killed, stopped, with other calls", 120, devices=1, cpu=True)
def ranks_lost(run):
    for count in 2, 3:
        ends_of(run, "lost", count, [r"rank 1\b", "SIGKILL"])
    ends_of(run, "stopped", 2, [r"rank 1\b"], ["--shutdown-timeout", "3"])
    ends_of(run, "hangs", 2, ["no rank has written anything"],
            ["--hang-timeout", "5", "--hang-watch", "output", "--on-hang", "kill", "--shutdown-timeout", "3"])
    ends_of(run, "differs", 2, [r"rank 1\b"])


@part("ranks: lost peers are named", 90, devices=1, cpu=True)
def ranks_missing(run):
    """Over NCCL by its watchdog, which ends the process: no call waits for the others."""
    for count in 2, 3:
        ends_of(run, "leaves", count, ["rank 1 ended or was lost"])
    suite(run, 2, "acc-test-ranks", "[.lost]")


@part("ranks: sharded models on two", 150, devices=1, cpu=True)
def ranks_sharded(run):
    suite(run, 2, "acc-test-sharded", own_cases(run, "[ranks]"))
    suite(run, 2, "acc-test-sharded", "[.orders]")
    suite(run, 2, "acc-test-sharded", "[.fewer]")
    suite(run, 2, "acc-test-sharded", "[.lost]")


def beside_python(run, which, processes, setups, limits):
    """The trainings of parity/WHICH in C++ and in Python: their numbers may be as far apart as `limits` says."""
    folders = {side: run.folder / which / side for side in ("python", "cpp")}
    programs = {"python": [sys.executable, BUNDLE / "parity" / which / "train.py"], "cpp": [BIN / f"acc-test-{which}-parity"]}
    for side, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        for count, names in setups.items() if side == "python" else [(processes, [n for names in setups.values() for n in names])]:
            run.run_well(as_nodes(count, *programs[side], folder, *names))
    far = []
    for name in (name for names in setups.values() for name in names):
        file = name if which == "ddp" else f"{name}_{processes}"
        limit = [] if run.machine.cpu else [next((value for word, value in limits.items() if word in name), 1e-5)]
        more = [processes] if which == "fsdp" else []
        code, output, errors = run.run([sys.executable, BUNDLE / "parity" / which / "compare.py", folders["cpp"] / file,
                                        folders["python"] / file, name, *more, *limit])
        run.note(f"{name}: {(output or errors).strip()}")
        if code != 0:
            far.append(name)
    run.expect(not far, f"too far from Python's: {', '.join(far)}")


@part("ranks: DDP beside Python's, and beside one process", 120, devices=1, cpu=True)
def ranks_ddp(run):
    beside_python(run, "ddp", 2, {2: ["plain", "buckets", "nosync", "unused", "static_views", "norm", "fp16hook", "bf16hook", "bf16",
                                      "join"], 1: ["whole", "syncnorm"]}, {"bf16": 1e-2, "fp16": 1e-3})


@part("ranks: sharded training beside fully_shard", 100, devices=1, cpu=True)
def ranks_fsdp(run):
    beside_python(run, "fsdp", 2, {2: ["stage3", "stage2", "stage3_tied", "stage3_clip", "stage3_bf16"]}, {"bf16": 1e-2})


@part("ranks: memory and asserts of the device", 60, devices=1)
def ranks_device_errors(run):
    ends_of(run, "out-of-memory", 2, [r"rank 1\b", "out of memory: 8.00 GiB wanted", "its largest free block"])
    ends_of(run, "asserts", 2, [r"rank 1\b", "device-side assert", "with CUDA_LAUNCH_BLOCKING=1 the call"])


@part("ranks: restarts", 60, devices=1, cpu=True)
def ranks_restarts(run):
    run.run_well(as_nodes(2, "--max-restarts", "3", BIN / "acc-test-ranks", "-w", "NoTests", "[.restarts]"))


@part("ranks: accelerate's own test script", 100, devices=1, cpu=True)
def ranks_accelerate(run):
    if not has_modules("accelerate.test_utils"):
        raise Skip("this Python has no accelerate.test_utils")
    run.run_well(as_nodes(2, sys.executable, "-m", "accelerate.test_utils.scripts.test_script"))


@part("ranks: the self-test on two and three", 80, devices=1, cpu=True)
def ranks_self_test(run):
    for count in 2, 3:
        said = run.run_well(as_nodes(count, BIN / "acc-selftest", "--expect-processes", count))
        run.note(said.strip().splitlines()[-1])


@part("ranks: checkpoints of two, read by one and by three", 120, devices=1, cpu=True)
def ranks_checkpoints(run):
    sharded = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
               "FSDP_TRANSFORMER_CLS_TO_WRAP": "Block", "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT"}
    folders = [run.folder / name for name in ("first", "by-three", "by-one")]
    first, by_three, by_one = folders

    def train(count, *words):
        said = run.run_well(as_nodes(count, BIN / "acc-sharded-training", *words), **sharded)
        return re.findall(r"^step .*", said, re.MULTILINE)

    went_on = train(2, "steps", "3", "save", first, "steps", "3")[3:]
    run.expect(train(2, "load", first, "steps", "3") == went_on, "two that loaded it do not go on with the same losses")
    train(3, "load", first, "save", by_three)
    train(1, "load", by_three, "save", by_one)
    digests = [run.run_well([BIN / "acc-sharded-training", "digest", folder]) for folder in folders]
    run.expect(len(set(digests)) == 1, "what three or one saved of it differs")
    suite(run, 2, "acc-test-checkpoints", "[ranks]")


@part("ranks: a Trainer that is killed, stopped, and goes on", 120, devices=1, cpu=True)
def ranks_trainer(run):
    run.run_well([sys.executable, BUNDLE / "runtime" / "trainer_resume_test.py", BIN / "acc-trainer-run", *as_nodes(2)])


@part("ranks: MNIST, and a GPT replicated and sharded", 120, devices=1, cpu=True)
def ranks_examples(run):
    import pydoc_data
    text = run.folder / "text"
    text.write_bytes((pathlib.Path(pydoc_data.__path__[0]) / "topics.py").read_bytes()[:60000])
    said = run.run_well(as_nodes(2, BIN / "mnist", "--data-dir", BUNDLE / "apps" / "examples" / "mnist" / "data"),
                        ACCELERATE_MIXED_PRECISION="bf16" if run.machine.cpu else "fp16")
    accuracy = float(re.search(r"accuracy: ([\d.]+)", said)[1])
    losses = []
    for flags in [], ["--fsdp"]:
        said = run.run_well(as_nodes(2, BIN / "gpt", "--text", text, "--epochs", "1", "--batch-size", "8", *flags))
        losses.append(float(re.search(r"epoch 1: loss ([\d.]+)", said)[1]))
    run.note(f"accuracy {accuracy}; losses {losses[0]}, sharded {losses[1]}")
    run.expect(accuracy > 0.9 and abs(losses[0] - losses[1]) < 0.02, "the accuracy is low, or the losses differ")


@part("ranks: sharded models on three", 100, devices=1, cpu=True)
def ranks_sharded_on_three(run):
    suite(run, 3, "acc-test-sharded", own_cases(run, "[ranks]"))


@part("step beside torch's DDP", 75, devices=1)
def bench_steps(run):
    bench(run, "step-mlp", "step-cnn", "step-resnet18")


@part("launch to the first all-reduce beside torchrun", 75, devices=1)
def bench_first(run):
    bench(run, "first")


@part("save beside accelerate", 60, devices=1)
def bench_save(run):
    bench(run, "save", "load", "background")


@part("Trainer beside transformers'", 120, devices=1)
def bench_trainer(run):
    if not has_modules("transformers", "accelerate"):
        raise Skip("this Python has no transformers and accelerate")
    bench(run, "trainer-mlp", "trainer-cnn", "trainer-transformer")


@part("pets beside timm with accelerate", 120, devices=1)
def bench_pets(run):
    if not has_modules("timm", "torchvision", "accelerate"):
        raise Skip("this Python has no timm and torchvision")
    bench(run, "pets-frozen", "pets-free", "pets-loading")


@part("loader beside accelerate's", 90, devices=1)
def bench_loader(run):
    rows = ["idx", "idx-workers"]
    if has_modules("PIL", "numpy"):
        rows.append("jpeg-workers")
    else:
        run.note("photographs left out: this Python has no PIL")
    bench(run, *rows)


def bench(run, *rows):
    """The table of scripts/bench/training; rows that miss their goal are printed and fail the part."""
    file = pathlib.Path(run.machine.environment["HOME"]) / "rows.json"
    only = [f"--only={row}" for row in rows]
    run.run([sys.executable, BUNDLE / "scripts" / "bench" / "training", "--programs", BIN, "--device", "cuda",
             "--processes", run.machine.devices, "--pairs", "5", "--json", file, *only])
    run.expect(file.exists(), "the benchmark broke off; its log says where")
    measured = json.loads(file.read_text())
    file.unlink()
    for row in measured:
        run.note(f"{row['what']}: {row['ratio']:.2f} of the peer's, budget {row['budget']:g}")
    short = [row["what"] for row in measured if not row["ok"]]
    run.expect(not short, "short: " + ", ".join(short))


def write_report(out, head, results):
    """Writes both files, each atomically."""
    texts = {"report.json": json.dumps(head | {"parts": results}, indent=1) + "\n", "report.txt": as_text(head, results)}
    for name, text in texts.items():
        (out / f"{name}.new").write_text(text)
        (out / f"{name}.new").replace(out / name)


def as_text(head, results):
    lines = [f"{key}: {value}" for key, value in head.items()] + [""]
    for result in results:
        reason = f": {result['reason']}" if result["reason"] else ""
        lines.append(f"{result['result']:<8}{result['seconds']:>6.1f} s  {result['part']}{reason}")
        lines += [f"                    {line}" for line in result["details"]]
    counts = {kind: sum(result["result"] == kind for result in results) for kind in ("ok", "skipped", "FAILED")}
    lines += ["", ", ".join(f"{count} {kind}" for kind, count in counts.items())]
    return "\n".join(lines) + "\n"


def run_part(name, limit, remaining, devices, function, out, machine):
    began = time.monotonic()
    result, reason, run = "ok", "", Part(name, limit, remaining, out, machine)
    try:
        if remaining <= 0:
            raise Skip("no time was left")
        if devices and not machine.cpu:
            machine.need_devices(devices)
        function(run)
    except Skip as why:
        result, reason = "skipped", str(why)
    except Failure as why:
        result, reason = "FAILED", str(why)
    except Exception as error:  # an error in one part must not end the others
        result, reason = "FAILED", f"{type(error).__name__}: {error}"
    if run.failures:
        result, reason = "FAILED", "; ".join([*run.failures, *([reason] if reason else [])])
    run.log.close()
    return {"part": name, "result": result, "reason": reason, "seconds": round(time.monotonic() - began, 1),
            "details": run.details}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("acc-gpu-report"), help="for reports and logs")
    parser.add_argument("--minutes", type=float, default=9, help="for all parts together (9)")
    parser.add_argument("--limit", type=float, default=math.inf, help="for each part, where its own is longer")
    parser.add_argument("--only", action="append", metavar="PART", help="parts whose name has this in it")
    parser.add_argument("--cpu", action="store_true", help="the parts that can run without a GPU, too, on the CPU")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.minutes * 60

    machine = Machine(options.cpu)
    head = {"commit": (BUNDLE / "commit").read_text().strip(),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": f"{platform.platform()}, {os.cpu_count()} CPUs",
            "gpus": gpu_names(), "torch": machine.torch_version}
    results = []
    for name, limit, devices, cpu, function in PARTS:
        if (options.only and not any(word in name for word in options.only)) or (options.cpu and not cpu):
            continue
        results.append(run_part(name, min(limit, options.limit), end - time.monotonic(), devices, function, options.out,
                                machine))
        write_report(options.out, head, results)
    print(as_text(head, results), end="")
    shutil.rmtree(machine.environment["HOME"], ignore_errors=True)
    return 1 if any(result["result"] == "FAILED" for result in results) else 0


def gpu_names():
    try:
        query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                               capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return "none"
    return "; ".join(query.stdout.strip().splitlines())


if __name__ == "__main__":
    sys.exit(main())
