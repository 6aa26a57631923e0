#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs all tests and benchmarks that need GPUs, from the bundle that scripts/gpu makes.

usage: run.py [--out FOLDER] [--minutes 9] [--only PART]

Needs x86-64 Linux and a python3 with the torch that the bundle was built for. Writes FOLDER/report.json and
FOLDER/report.txt anew after each part, and a log of each part; what matters most comes first. A part that fails, or takes
longer than its limit, does not end the others. Exits 1 when a part failed; one that cannot run here says why.
"""

import argparse
import datetime
import functools
import importlib.util
import json
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

    def __init__(self):
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
        return os.environ | {"HOME": home, "HF_HOME": f"{home}/hf", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1",
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
        why = said.get("devices", "0 ").partition(" ")[2] or said.get("plugin", "") or said.get("", "")
        return f"no CUDA device here ({why.strip().splitlines()[0] if why.strip() else 'no driver'})"

    def need_devices(self, count):
        if self.devices == 0:
            raise Skip(self.why_no_device)
        if self.devices < count:
            raise Skip(f"needs {count} GPUs, {self.devices} here")


class Part:
    """A part while it runs; its processes end with it."""

    def __init__(self, name, limit, out, machine):
        self.name, self.machine = name, machine
        self.deadline = time.monotonic() + limit
        self.log = open(out / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.log", "w", encoding="utf-8")
        self.details = []

    def left(self):
        return max(0.1, self.deadline - time.monotonic())

    def start(self, command, **variables):
        self.log.write(f"$ {' '.join(map(str, command))}\n")
        self.log.flush()
        return subprocess.Popen([str(word) for word in command], env=self.machine.environment | variables,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                errors="replace", start_new_session=True)

    def finish(self, process):
        """Waits for the process and returns its exit code, standard output and standard error."""
        try:
            output, errors = process.communicate(timeout=self.left())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # acc ends its workers
            try:
                output, errors = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
            self.log.write(output + errors)
            raise Failure("took longer than its limit") from None
        self.log.write(f"{output}{errors}[exit {process.returncode}]\n")
        self.log.flush()
        return process.returncode, output, errors

    def run(self, command, **variables):
        return self.finish(self.start(command, **variables))

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

    def note(self, line):
        self.details.append(line)


PARTS = []


def part(name, limit, devices=0):
    def add(function):
        PARTS.append((name, limit, devices, function))
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
    found = set()
    for piece in cpus.split(","):
        low, _, high = piece.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


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
    by_chance = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "MASTER_ADDR"}
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
    run.expect("device-side assert" in errors.rsplit("acc:", 1)[-1], "acc's report does not speak of the assert")


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


def run_part(name, limit, devices, function, out, machine):
    began = time.monotonic()
    result, reason, run = "ok", "", Part(name, limit, out, machine)
    try:
        if limit <= 0:
            raise Skip("no time was left")
        if devices:
            machine.need_devices(devices)
        function(run)
    except Skip as why:
        result, reason = "skipped", str(why)
    except Failure as why:
        result, reason = "FAILED", str(why)
    except Exception as error:  # an error in one part must not end the others
        result, reason = "FAILED", f"{type(error).__name__}: {error}"
    run.log.close()
    return {"part": name, "result": result, "reason": reason, "seconds": round(time.monotonic() - began, 1),
            "details": run.details}



def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("acc-gpu-report"), help="for reports and logs")
    parser.add_argument("--minutes", type=float, default=9, help="for all parts together (9)")
    parser.add_argument("--only", action="append", metavar="PART", help="parts whose name has this in it")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.minutes * 60

    machine = Machine()
    head = {"commit": (BUNDLE / "commit").read_text().strip(),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": f"{platform.platform()}, {os.cpu_count()} CPUs",
            "gpus": gpu_names(), "torch": machine.torch_version}
    results = []
    for name, limit, devices, function in PARTS:
        if options.only and not any(word in name for word in options.only):
            continue
        results.append(run_part(name, min(limit, end - time.monotonic()), devices, function, options.out, machine))
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
