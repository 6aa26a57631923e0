# SPDX-License-Identifier: Apache-2.0
"""compare.py ACC TRAIN MISUSE COMPILER: packages of `acc compile`, trained by C++ on one, two and three processes, have the losses, weights and
buffers of the models themselves under Python's DistributedDataParallel, to 1e-6 (bf16: 2e-2), and what they save is loaded by
Python. What a step cannot compute rightly is refused in one line. Compiles each model once. With one word more (public): transformers' GPT-2 and timm's resnet50d, which from_pretrained
and load_checkpoint read back. Dropout draws as the compiler's does: in another order than PyTorch's."""
import contextlib
import importlib.util
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

import torch
import torch._inductor.package  # here once for all compilations
import torch.distributed
import torch.multiprocessing
from safetensors.torch import load_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models

acc, program, misuse, compiler_file, *public = sys.argv[1:]
specification = importlib.util.spec_from_file_location("compiler", compiler_file)
compiler = importlib.util.module_from_spec(specification)
specification.loader.exec_module(compiler)
FACTORY = os.path.abspath(models.__file__)


def compiled(name, precision):
    """The package of a model, which a process of its own compiles."""
    package = f"{name}_{precision}.pt2"
    process = multiprocessing.get_context("fork").Process(target=compiler.main, args=(f"{FACTORY}:{name}", package, precision, "any"))
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(f"{package}: exit code {process.exitcode}")
    return package


def loss_of(net, made, batch):
    if "loss" not in made:
        output = net(*batch)
        return output["loss"], output["logits"]
    output = net(*batch[:-1])
    if isinstance(output, torch.Tensor):
        output = output.float()
    return made["loss"](output, batch[-1]), getattr(output, "logits", output)


def train_in_python(rank, count, name, words, results):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{os.path.abspath(results)}.store", rank=rank, world_size=count)
    torch.manual_seed(0)
    made = getattr(models, name)()
    net = torch.nn.parallel.DistributedDataParallel(made["model"])
    sgd = torch.optim.SGD([one for one in net.parameters() if one.requires_grad], 1e-3 if "slowly" in words else 0.1, momentum=0.9)
    torch.manual_seed(100 + rank)  # of dropout
    every = 2 if "accumulate" in words else 1
    lines = []
    for step in range(2 if "slowly" in words else models.STEPS):
        last = (step + 1) % every == 0
        with contextlib.nullcontext() if last else net.no_sync():
            with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in words), compiler.reproducible_dropout():
                loss, _ = loss_of(net, made, models.batch(name, step * count + rank))
            (loss.float() / every).backward()
        if last:
            if "clip" in words:
                torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            sgd.step()
            sgd.zero_grad()
        mean = loss.detach().double()
        torch.distributed.all_reduce(mean)
        lines.append(mean.item() / count)
    net.eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled="bf16" in words):
        size = 1 if name == "gpt" else 3
        loss, output = loss_of(net.module, made, [one[:size] for one in models.batch(name, 0)])
        lines += [loss.item(), output.double().square().sum().item()]
    if rank == 0:
        torch.save((lines, made["model"].state_dict()), results)
    torch.distributed.destroy_process_group()
    # Not by the ends of what lives here: that of DistributedDataParallel's group sometimes waits, in torch 2.11, for a thread that
    # waits for the interpreter.
    os._exit(0)


def difference(ours, theirs):
    """The largest difference relative to the size of the whole."""
    return ((ours.double() - theirs.double()).abs().max() / theirs.double().abs().max().clamp(min=1e-6)).item()


def train_in_cpp(count, *arguments, **options):
    command = [acc, "run", "--standalone", "--no-python", "--nproc-per-node", str(count), program, *arguments]
    return subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True, **options)


def refuse_sharding(package):
    ended = train_in_cpp(2, package, "gpt", "sharded", "sharded", stderr=subprocess.PIPE)
    good = ended.returncode != 0 and "is a compiled model, which cannot be sharded (train it without fsdp" in ended.stderr
    print("sharding" + ("" if good else f" WRONG: {ended}"), flush=True)
    return good


def compare(name, count, words, package):
    results = f"{name}{count}{'-'.join(words)}"
    torch.multiprocessing.start_processes(train_in_python, (count, name, words, results), count, start_method="fork")
    lines, state = torch.load(results)
    ours = [float(line) for line in train_in_cpp(count, package, name, results + ".ours", *words, check=True).stdout.split()]
    saved = load_file(results + ".ours/model.safetensors")
    made = getattr(models, name)()
    missing, unexpected = made["model"].load_state_dict(saved, strict=False)
    if load := getattr(models, "load_" + name, None):
        loaded = load(made["model"], results + ".ours")
        assert all(torch.equal(tensor, loaded.state_dict()[key]) for key, tensor in saved.items()), name
    limit = LIMITS.get(name, 2e-2 if "bf16" in words else 1e-6)
    distances = {"losses": difference(torch.tensor(ours), torch.tensor(lines))}
    distances.update({key: difference(tensor, state[key]) for key, tensor in saved.items()})
    worst = max(distances, key=distances.get)
    # Tied weights are one, which Python loads under both names.
    good = len(ours) == len(lines) and distances[worst] <= limit and not unexpected and set(missing) <= {"output.weight", "lm_head.weight"}
    print(f"{results}: {worst} differs by {distances[worst]:.2g}" + ("" if good else f" WRONG: {ours} {lines} {missing} {unexpected}"), flush=True)
    return good


REFUSALS = """files: none
label -1: Mlp: tensor 2 has an index or a label that is not from 0 to 4
label 5: Mlp: tensor 2 has an index or a label that is not from 0 to 4
label 4: no error
the ignored label: no error
label 5 in evaluation: Mlp: tensor 2 has an index or a label that is not from 0 to 4
create_graph: a compiled step has no gradients of gradients, as backward with create_graph needs (compile the penalty ...)
backward twice: twice the gradient
replaced storage: is used
type: bf16_full_eval: Mlp computes in the type for which it was compiled (leave it out: ...)
layer: Mlp, layer net.0: is in evaluation mode, and the model is not (compile the model with ...)
token -1: Block: tensor 1 has an index or a label that is not from 0 to 19
token 20: Block: tensor 1 has an index or a label that is not from 0 to 19
"""


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def refuse(mlp, gpt):
    """What the program says, with nothing beside it; and that its files are nowhere, also where they cannot be written."""
    os.mkdir("temporary")
    options = {"env": {**os.environ, "TMPDIR": os.path.abspath("temporary")}, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    ended = subprocess.run([misuse, mlp, gpt], **options)
    expected = re.escape(REFUSALS).replace(re.escape("..."), ".*")
    good = ended.returncode == 0 and ended.stderr == "" and re.fullmatch(expected, ended.stdout)
    full = subprocess.run([misuse, mlp, gpt], preexec_fn=small_files, **options)
    line = f"{os.path.abspath('temporary')}: the code of a compiled model cannot be written there for loading: File too large (free space there, or set TMPDIR to a folder that can be written)\n"
    good = good and full.stderr == line and os.listdir("temporary") == []
    print("refusals" + ("" if good else f" WRONG: {ended} {full}"), flush=True)
    return bool(good)


# Batch norms over small pictures amplify the rounding of 53 layers: two small steps, and the biases are sums of little else.
LIMITS = {"gpt2": 1e-5, "resnet50d": 5e-2}
CASES = [
    ("mlp", "bf16", [(2, ["bf16"]), (2, ["bf16", "trainer"])]),
    ("cnn", "no", [(1, []), (2, ["accumulate", "clip", "resumed"]), (3, [])]),
    ("gpt", "no", [(1, []), (2, ["resumed"]), (3, [])]),
]
PUBLIC_CASES = [("gpt2", "no", [(2, [])]), ("resnet50d", "no", [(2, ["slowly"])])]

if __name__ == "__main__":
    torch.set_num_threads(1)  # for processes that are forked
    good = True
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, precision, runs in PUBLIC_CASES if public else CASES:
            package = compiled(name, precision)
            for count, words in runs:
                good &= compare(name, count, words, package)
        if not public:
            good &= refuse("mlp_bf16.pt2", "gpt_no.pt2")
            good &= refuse_sharding("gpt_no.pt2")
    sys.exit(not good)
