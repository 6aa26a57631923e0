# SPDX-License-Identifier: Apache-2.0
"""watch.py ACC PACKAGE: workers of a script that knows nothing of acc are followed with --watch, and are otherwise what they are
without it."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ACC, PACKAGE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])

# For cases that are not about how workers start: otherwise each of them imports torch, which takes seconds.
PRELOADED = ["--preload", "torch,torch._dynamo"]

TRAINING = """
import os, sys
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

class Samples(Dataset):
    # Sample 24 of the last rank comes when the test writes it, which it never does.
    def __len__(self):
        return 32

    def __getitem__(self, index):
        if index == 24 and dist.get_rank() == dist.get_world_size() - 1:
            print("waits for data", flush=True)
            open(sys.argv[1]).read()
        return torch.ones(4)

dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
first = torch.optim.SGD(net.parameters(), 0.1)
second = torch.optim.SGD(net.parameters(), 0.1)
for batch in DataLoader(Samples(), batch_size=8):
    loss = net(batch).mean()
    loss.backward()
    first.step()
    second.step()
    net.zero_grad()
"""

CROSSED = """
import torch
import torch.distributed as dist
from torch.distributed import all_reduce

dist.init_process_group("gloo")
numbers = torch.ones(4)
all_reduce(numbers)
if dist.get_rank() == 1:
    dist.broadcast(numbers, 0)
else:
    all_reduce(numbers)
"""

# Gloo takes the shorter tensor of rank 1, which goes on, while the others wait for the rest.
SHAPES = """
import sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(4))
dist.all_reduce(torch.ones(2 if dist.get_rank() == 1 else 4))
open(sys.argv[1]).read()
"""

EARLY = """
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
numbers = torch.ones(4)
dist.all_reduce(numbers)
if dist.get_rank() == 1:
    os._exit(0)
dist.all_reduce(numbers)
"""

# What a worker is with the hooks: its own sitecustomize, its search path, what it compiles and what its functions are called.
UNCHANGED = """
import os, sys
import sitecustomize
assert sitecustomize.IS_OWN and sitecustomize.__file__.startswith(sys.argv[2]), sitecustomize.__file__
assert not [folder for folder in sys.path if folder.endswith(".watch")], sys.path
import importlib.util
assert importlib.util.find_spec("torch")  # as transformers asks before it imports it
import torch
import torch.distributed as dist
assert "exec_module" not in vars(torch.__spec__.loader)
assert dist.all_reduce.__name__ == "all_reduce" and dist.all_reduce.__doc__

@torch.jit.script
def scripted(x: torch.Tensor):
    torch.autograd.backward([x.sum()])

leaf = torch.ones(1, requires_grad=True)
scripted(leaf)
assert leaf.grad.item() == 1

# A thread that reads ahead is not the worker.
import threading
from torch.utils.data import DataLoader
reader = threading.Thread(target=lambda: list(DataLoader([1, 2])))
reader.start()
reader.join()

dist.init_process_group("gloo")
gathered = [None] * dist.get_world_size()
dist.all_gather_object(gathered, dist.get_rank())
assert gathered == list(range(dist.get_world_size())), gathered
number = torch.ones(1)
work = dist.all_reduce(number, async_op=True)
work.wait()
assert number.item() == dist.get_world_size()
try:
    dist.broadcast(number, src=99)
    raise SystemExit("a rank that does not exist was taken")
except RuntimeError:
    pass

# The loss is read without an operation that a profiler would see.
net = torch.nn.Linear(1, 1)
with torch.profiler.profile() as profile:
    net(torch.ones(1)).sum().backward()
assert not [event for event in profile.events() if event.name == "aten::item"]

# What the script says itself counts, and nobody counts for it.
import acc, acc.progress
assert acc.progress.__file__.endswith("acc/progress.py"), acc.progress.__file__
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    for _ in range(2):
        net(torch.ones(1)).backward()
        optimizer.step()
    acc.step(samples=8, loss=0.5)
print("rank", os.environ["RANK"], flush=True)
open(sys.argv[1]).read()
"""


# A step of a subclass is made of its base's; one that raises has not ended; and a second phase has an optimizer of its own.
STEPS = """
import os, sys
import torch
import torch.distributed as dist

class Twice(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)

class Failing(torch.optim.SGD):
    def step(self, closure=None):
        raise ValueError

def train(optimizer, steps):
    for _ in range(steps):
        net(torch.ones(1)).backward()
        optimizer.step()

dist.init_process_group("gloo")
net = torch.nn.Linear(1, 1)
base = torch.optim.SGD(net.parameters(), 0.1)
train(Twice(net.parameters(), 0.1), 3)  # gone at once
failing = Failing(net.parameters(), 0.1)
try:
    train(failing, 1)
except ValueError:
    pass
train(base, 4)
phases = [torch.optim.SGD(net.parameters(), 0.1), torch.optim.LBFGS(net.parameters(), max_iter=2)]
def loss():
    net.zero_grad()
    loss = net(torch.ones(1)).square().sum()
    loss.backward()
    return loss
for _ in range(6):
    phases[0].step()
    phases[1].step(loss)
print("rank", os.environ["RANK"], flush=True)
open(sys.argv[1]).read()
"""

# It fails before its first step, with torch imported.
NO_STEP = """
import sys
import torch
sys.exit(7)
"""

# It may have resumed where it was: two steps are progress, whatever was before.
TWO_STEPS = """
import os, sys
import torch
net = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2):
    net(torch.ones(1)).backward()
    optimizer.step()
sys.exit(7 if os.environ["TORCHELASTIC_RESTART_COUNT"] != "2" else 0)
"""


def command(folder, script, processes, *flags):
    (folder / "script.py").write_text(script)
    return [ACC, "run", "--standalone", "--watch", "--python", sys.executable, "--nproc-per-node", str(processes), *flags,
            folder / "script.py", folder / "pipe", folder]


def hang(folder, script, processes, *flags):
    """Where the ranks stand when they hang: the lines before those of the ranks."""
    done = subprocess.run(command(folder, script, processes, "--hang-timeout", "3", "--on-hang", "kill", *flags), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": ""}, check=False)
    assert done.returncode == 124, done
    lines = done.stderr.splitlines()
    report = next(number for number, line in enumerate(lines) if line.startswith("acc: no rank has"))
    assert not [line for line in lines[:report] if line.startswith("acc: warning")], done.stderr
    return lines[report + 1 : lines.index(next(line for line in lines if line.startswith("rank 0: ")))]


def progress_of(job):
    """What `acc ps` says of each rank of the job's process."""
    shown = subprocess.run([ACC, "ps", "--json", str(job.pid)], stdout=subprocess.PIPE, check=True)
    return [rank["progress"] for rank in json.loads(shown.stdout)[0]["ranks"]]


def progress_at_end(folder, script, environment, *flags):
    """What is known of both ranks when they have said their rank."""
    job = subprocess.Popen(command(folder, script, 2, *flags), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        lines = {job.stdout.readline() for _ in range(2)}
        assert lines == {"rank 0\n", "rank 1\n"}, lines
        return progress_of(job)
    finally:
        job.terminate()
        job.wait()


def a_rank_that_waits_for_data_is_named(folder):
    # By `acc ps`: for a hang report all would have to be idle, and within seconds the CPU of threads that wake up and wait again,
    # as those of Gloo do, cannot be told from work.
    job = subprocess.Popen(command(folder, TRAINING, 3, *PRELOADED), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                           env={**os.environ, "PATH": ""})
    try:
        assert job.stdout.readline() == "waits for data\n"
        waiting = [("backward", 3), ("backward", 3), ("data", 3)]
        while job.poll() is None:
            if [progress and (progress["section"], progress["steps"]) for progress in progress_of(job)] == waiting:
                break
        shown = subprocess.run([ACC, "ps", "--stacks", str(job.pid)], stdout=subprocess.PIPE, text=True, check=True)
    finally:
        job.terminate()
        job.wait()
    line = re.sub(r"all_reduce \d+", "all_reduce N", shown.stdout.splitlines()[0])
    assert line == "rank 2 is in data after step 3; ranks 0, 1 wait in backward after step 3, all_reduce N (float [5]) under way", line


def crossed_calls_are_named(folder):
    assert hang(folder, CROSSED, 4, *PRELOADED) == [
        "rank 1 waits in broadcast 2 (float [4]); ranks 0, 2, 3 wait in all_reduce 2 (float [4])",
        "call 2 differs: broadcast (float [4]) on rank 1; all_reduce (float [4]) on ranks 0, 2, 3"]


def different_shapes_are_named(folder):
    assert hang(folder, SHAPES, 3, *PRELOADED) == [
        "rank 1 is in other after step 0; ranks 0, 2 wait in all_reduce 2 (float [4])",
        "call 2 differs: all_reduce (float [2]) on rank 1; all_reduce (float [4]) on ranks 0, 2"]


def a_rank_that_has_left_is_named(folder):
    """At the line of the script, not at one of the hooks."""
    done = subprocess.run(command(folder, EARLY, 2), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    assert done.returncode == 1, done
    assert "  rank 0 lost its connection in all_reduce at script.py:11; rank 1 had ended before, with exit code 0\n" in done.stderr, done


def a_worker_is_what_it_is_without(folder):
    (folder / "sitecustomize.py").write_text("IS_OWN = True\n")
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{PACKAGE}", "PYTHONDONTWRITEBYTECODE": "1"}
    for progress in progress_at_end(folder, UNCHANGED, environment):
        assert (progress["steps"], progress["samples"], progress["loss"]) == (3, 24, 0.5), progress
        # all_gather_object is made of others: it counts once, as all_reduce and the refused broadcast do.
        assert progress["collectives"] == 3 and progress["collective"] is None, progress
        assert progress["spent_seconds"]["communication"] > 0 and progress["spent_seconds"]["optimizer"] > 0, progress


def a_step_counts_once(folder):
    for progress in progress_at_end(folder, STEPS, os.environ, *PRELOADED):
        # Of each phase's first step with another optimizer than before it is not known yet that the phase is another one.
        assert progress["steps"] == 3 + 4 + 5, progress


def restarts_without_a_step_end_the_job(folder):
    def run(script, *start):
        flags = ["--max-restarts", "5", "--restarts-without-progress", "1", *start]
        return subprocess.run(command(folder, script, 1, *flags), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)

    for done in run(NO_STEP), run(NO_STEP, *PRELOADED):
        assert done.returncode == 7, done
        assert "not restarted: no rank has ended a step in 1 restart" in done.stderr, done.stderr
    going = run(TWO_STEPS, *PRELOADED)
    assert going.returncode == 0, going
    assert "--restarts-without-progress" not in going.stderr, going.stderr


def main():
    for case in (a_rank_that_waits_for_data_is_named, crossed_calls_are_named, different_shapes_are_named, a_rank_that_has_left_is_named,
                 a_worker_is_what_it_is_without, a_step_counts_once, restarts_without_a_step_end_the_job):
        with tempfile.TemporaryDirectory(prefix="acc-watch-") as name:
            folder = pathlib.Path(name)
            os.mkfifo(folder / "pipe")
            runtime = folder / "runtime"
            runtime.mkdir(mode=0o700)
            os.environ["XDG_RUNTIME_DIR"] = str(runtime)
            case(folder)
            print(case.__name__, flush=True)


if __name__ == "__main__":
    main()
