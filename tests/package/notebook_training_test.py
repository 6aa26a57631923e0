# SPDX-License-Identifier: Apache-2.0
"""A notebook in real Jupyter trains as the public tutorials of accelerate do: with plain DDP, an Accelerator, a Trainer, and a
frozen resnet50d of timm. Beside
accelerate's notebook_launcher, with no more than the import changed, it prints the same. Then cells are interrupted and fail.

    notebook_training_test.py ACC SCRIPTS_PACKAGE_FOLDER DATA

DATA is the folder of MNIST's files. In an environment on the packages of ACC_PEER_PYTHON, among which are cloudpickle, ipykernel
and nbclient; skipped without.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from replace_torchrun_test import Environment

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import pets_data  # noqa: E402

SKIPPED = 77
DEFINITIONS = """\
import gzip, os, time
import numpy as np, torch, torch.distributed as dist, torch.nn as nn, torch.nn.functional as F
from accelerate import Accelerator
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from transformers import Trainer, TrainingArguments

def read(kind, count):
    def numbers(file, skipped):
        with gzip.open(f"{DATA}/{kind}-{file}-ubyte.gz") as content:
            return torch.tensor(np.frombuffer(content.read(), np.uint8, offset=skipped))
    images, labels = numbers("images-idx3", 16).view(-1, 1, 28, 28)[:count], numbers("labels-idx1", 8)[:count]
    return TensorDataset((images / 255 - 0.1307) / 0.3081, labels.long())

train_set, test_set = read("train", 1000), read("t10k", 400)

class BasicNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.first, self.second = nn.Conv2d(1, 8, 3, 2), nn.Linear(1352, 32), nn.Linear(32, 10)
    def forward(self, x):
        return F.log_softmax(self.second(F.relu(self.first(F.relu(self.convolution(x)).flatten(1)))), 1)

def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        return sum(model(x).argmax(1).eq(y).sum().item() for x, y in loader) / len(test_set)
"""
PLAIN = """\
def train_ddp(epochs):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    sampler = DistributedSampler(train_set)
    model = DistributedDataParallel(BasicNet())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for epoch in range(epochs):
        model.train()
        for x, y in DataLoader(train_set, 64, sampler=sampler):
            optimizer.zero_grad()
            F.nll_loss(model(x), y).backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"DDP, epoch {epoch}: accuracy {evaluate(model.module, DataLoader(test_set, 100)):.3f}")
    dist.destroy_process_group()
"""
WITH_ACCELERATOR = """\
def train_accelerate(epochs):
    accelerator = Accelerator()
    torch.manual_seed(0)
    model = BasicNet()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    train, test, model, optimizer = accelerator.prepare(DataLoader(train_set, 32, shuffle=True), DataLoader(test_set, 50), model, optimizer)
    for epoch in range(epochs):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            accelerator.backward(F.nll_loss(model(x), y))
            optimizer.step()
        model.eval()
        right = 0
        for x, y in test:
            with torch.no_grad():
                right += accelerator.gather_for_metrics(model(x).argmax(1).eq(y)).sum().item()
        accelerator.print(f"Accelerator, epoch {epoch}: accuracy {right / len(test_set):.3f}")
"""
WITH_TRAINER = """\
class MyTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(inputs["x"])
        loss = F.nll_loss(outputs, inputs["labels"])
        return (loss, {"outputs": outputs}) if return_outputs else loss

def collate(examples):
    return {"x": torch.stack([x for x, _ in examples]), "labels": torch.stack([y for _, y in examples])}

def train_trainer(epochs):
    arguments = TrainingArguments("output", num_train_epochs=epochs, per_device_train_batch_size=32, learning_rate=1e-3, seed=0,
                                  use_cpu=True, report_to="none", remove_unused_columns=False, save_strategy="no", disable_tqdm=True,
                                  logging_strategy="no", label_names=["labels"])
    torch.manual_seed(0)
    trainer = MyTrainer(BasicNet(), arguments, data_collator=collate, train_dataset=train_set, eval_dataset=test_set,
                        compute_metrics=lambda of: {"accuracy": (of.predictions.argmax(1) == of.label_ids).mean()})
    trainer.train()
    accuracy = trainer.evaluate()["eval_accuracy"]
    if arguments.process_index == 0:
        print(f"Trainer: accuracy {accuracy:.3f}")
"""
PETS = """\
import pathlib, re
import PIL.Image
from accelerate.utils import set_seed
from timm import create_model
from torchvision.transforms import Compose, RandomResizedCrop, Resize, ToTensor

names = sorted(pathlib.Path(PICTURES).glob("*.png"))
label_of = lambda path: re.search(r"^(.*)_[0-9]+$", path.stem)[1]
id_of = {label: number for number, label in enumerate(sorted({label_of(path) for path in names}))}

class PetsDataset(torch.utils.data.Dataset):
    def __init__(self, names, transform):
        self.names, self.transform = names, transform
    def __len__(self):
        return len(self.names)
    def __getitem__(self, index):
        return self.transform(PIL.Image.open(self.names[index]).convert("RGB")), id_of[label_of(self.names[index])]

def train_pets(epochs):
    set_seed(42)
    accelerator = Accelerator()
    mixed = np.random.permutation(len(names))
    kept, held = [names[i] for i in mixed[:-40]], [names[i] for i in mixed[-40:]]
    train = DataLoader(PetsDataset(kept, Compose([RandomResizedCrop(48, scale=(0.5, 1.0)), ToTensor()])), 10, shuffle=True, drop_last=True)
    test = DataLoader(PetsDataset(held, Compose([Resize((48, 48)), ToTensor()])), 10)
    model = create_model("resnet50d", pretrained=False, num_classes=len(id_of))
    for parameter in model.parameters():
        parameter.requires_grad = False
    for parameter in model.get_classifier().parameters():
        parameter.requires_grad = True
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2 / 25)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-2, epochs=epochs, steps_per_epoch=len(train))
    model, optimizer, train, test, schedule = accelerator.prepare(model, optimizer, train, test, schedule)
    for epoch in range(epochs):
        model.train()
        for images, labels in train:
            loss = F.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        model.eval()
        right = count = 0
        for images, labels in test:
            with torch.no_grad():
                predictions = model(images).argmax(dim=-1)
            same = accelerator.gather_for_metrics(predictions) == accelerator.gather_for_metrics(labels)
            right, count = right + same.long().sum().item(), count + same.shape[0]
        accelerator.print(f"Pets, epoch {epoch}: accuracy {100 * right / count:.2f}, loss {loss.item():.2f}")
"""
LAUNCH = """\
for train in train_ddp, train_accelerate, train_trainer, train_pets:
    began = time.time()
    notebook_launcher(train, (2,), num_processes=2, mixed_precision="no", use_port=PORT)
    print(f"seconds: {time.time() - began:.2f}")
"""
# Runs in the environment: a kernel that executes these cells.
DRIVER = '''\
import os, re, select, sys, threading, time
import jupyter_client, psutil

class Kernel:
    def __init__(self):
        self.manager, self.client = jupyter_client.manager.start_new_kernel(kernel_name="python3", startup_timeout=100)

    def run(self, cell, on_output=lambda shown: None):
        """What it shows, and its error."""
        shown = {"stdout": "", "stderr": "", "error": ""}
        def take(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                shown[content["name"]] += content["text"]
                on_output(shown["stdout"])
            if message["msg_type"] == "error":
                shown["error"] = content["ename"] + ": " + content["evalue"]
                shown["traceback"] = re.sub("\\x1b[^m]*m", "", "\\n".join(content["traceback"]))
        self.client.execute_interactive(cell, timeout=200, output_hook=take)
        return shown

    def good(self, cell):
        shown = self.run(cell)
        assert not shown["error"], shown
        return shown["stdout"]

def accuracies(text):
    return [line for line in text.splitlines() if ": accuracy " in line]

def seconds(text):
    return [float(number) for number in re.findall("seconds: (.*)", text)]

def main(definitions, plain, accelerator, trainer, pets, launch):
    kernel = Kernel()
    for cell in definitions, plain, accelerator, trainer, pets:
        kernel.good(cell)
    # Without this variable accelerate's workers on CPUs each train alone, and print their accuracy each (row no-lonely-workers).
    kernel.good("os.environ['ACCELERATE_USE_CPU'] = 'true'")
    theirs = kernel.good("import socket; free = socket.create_server(('127.0.0.1', 0)); PORT = str(free.getsockname()[1]); free.close()\\n"
                         "from accelerate import notebook_launcher\\n" + launch)
    ours = kernel.good("del os.environ['ACCELERATE_USE_CPU']\\nfrom acc import notebook_launcher\\nPORT = '29500'\\n" + launch)
    again = kernel.good(launch.replace(", train_pets", ""))
    print("theirs", accuracies(theirs), seconds(theirs), "ours", seconds(ours), seconds(again), flush=True)
    assert len(accuracies(theirs)) == 7 and accuracies(theirs) == accuracies(ours), (theirs, ours)
    assert accuracies(again) == accuracies(ours)[:5], (ours, again)

    # The exception of a worker is that of the cell, with both tracebacks; the next cell trains.
    kernel.good("def fail():\\n    if os.environ['RANK'] == '1':\\n        raise ValueError('no data')\\n    time.sleep(1000)")
    shown = kernel.run("notebook_launcher(fail, (), 2)")
    assert shown["error"] == "ValueError: no data", shown
    assert "rank 1:\\nTraceback" in shown["traceback"] and "    raise ValueError('no data')\\n" in shown["traceback"], shown
    assert "notebook_job.py" not in shown["traceback"], shown
    # What cannot be sent is named.
    shown = kernel.run("import threading\\nlock = threading.Lock()\\ndef locked():\\n    return lock\\nnotebook_launcher(locked, (), 2)")
    assert shown["error"].startswith("SendingError: 'lock', which locked uses, cannot be sent"), shown
    # Classes of the notebook come back as themselves.
    kernel.good("class Result:\\n    def __init__(self, rank): self.rank = rank\\ndef give(): return Result(int(os.environ['RANK']))")
    assert kernel.good("print([isinstance(of, Result) and of.rank for of in notebook_launcher(give, (), 2)])").endswith("\\n[0, 1]\\n")

    # Pickle finds them in the workers, too.
    kernel.good("import pickle\\ndef main(): return pickle.loads(pickle.dumps(Result(7))).rank")
    assert kernel.good("print(notebook_launcher(main, (), 2))").endswith("\\n[7, 7]\\n")

    # Jupyter's interrupt ends the workers, and the kernel's death does.
    kernel.good("def wait():\\n    print('pid', os.getpid(), flush=True)\\n    time.sleep(1000)")
    def waiting(act):
        workers = []
        def look(text):
            pids = [int(pid) for pid in re.findall("pid (\\\\d+)\\\\n", text)]
            if len(pids) == 2 and not workers:
                workers.extend(psutil.Process(pid) for pid in pids)
                workers.extend(psutil.Process(kernel.manager.provisioner.process.pid).children())
                act()
        return workers, look
    workers, look = waiting(kernel.manager.interrupt_kernel)
    shown = kernel.run("notebook_launcher(wait, (), 2, local_ranks_filter='0,1')", look)
    assert shown["error"].startswith("KeyboardInterrupt"), shown
    assert not psutil.wait_procs(workers[:2], 100)[1]
    assert kernel.good("print(len(notebook_launcher(give, (), 2)))").endswith("\\n2\\n")

    began, ends = [], []
    def kill():
        ends.extend(os.pidfd_open(worker.pid) for worker in workers)
        began.append(time.time())
        kernel.manager.provisioner.process.kill()
    workers, look = waiting(kill)
    def run():
        try: kernel.client.execute_interactive("notebook_launcher(wait, (), 2, local_ranks_filter='0,1')", timeout=200,
                output_hook=lambda message: look(texts.append(message["content"].get("text", "")) or "".join(texts)))
        except Exception: pass
    texts = []
    threading.Thread(target=run, daemon=True).start()
    deadline = time.time() + 100
    while not began: assert time.time() < deadline; time.sleep(0.01)
    assert len(ends) == 3 and all(select.select([end], [], [], 100)[0] for end in ends)
    print(f"the kernel's death ended {len(workers)} processes after {time.time() - began[0]:.2f} s", flush=True)

main(*(open(name).read() for name in sys.argv[1:]))
'''


def packages_of(peer):
    """Its folders of packages; empty: something is missing there."""
    code = ("import sys; from importlib.util import find_spec as found\n"
            "needed = ('accelerate', 'transformers', 'timm', 'torchvision', 'cloudpickle', 'ipykernel', 'nbclient', 'psutil')\n"
            "if all(map(found, needed)): print(*(path for path in sys.path if 'site-packages' in path), sep='\\n')")
    return subprocess.run([peer, "-c", code], text=True, capture_output=True, check=True, timeout=100).stdout


def main(acc, package, data):
    peer = os.environ.get("ACC_PEER_PYTHON")
    packages = packages_of(peer) if peer else ""
    if not packages:
        print("skipped: ACC_PEER_PYTHON names no Python with the peers, cloudpickle, ipykernel and nbclient")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="acc-notebook-") as folder:
        venv = Environment(folder, acc, package, peer)
        (venv.packages / "peers.pth").write_text(packages)
        pictures = venv.folder / "pictures"
        pets_data.make(pictures, 60, ["bars", "board"])
        cells = {"definitions": f"DATA, PICTURES = {str(data)!r}, {str(pictures)!r}\n" + DEFINITIONS, "plain": PLAIN, "accelerator": WITH_ACCELERATOR,
                 "trainer": WITH_TRAINER, "pets": PETS, "launch": LAUNCH}
        for name, text in cells.items():
            (venv.folder / name).write_text(text)
        done = venv.run("-c", DRIVER, *cells, IPYTHONDIR=str(venv.folder / "ipython"), JUPYTER_RUNTIME_DIR=str(venv.folder / "runtime"))
        print(done.stdout, done.stderr[-8000:])
        return done.returncode


if __name__ == "__main__":
    sys.exit(main(*(pathlib.Path(word).resolve() for word in sys.argv[1:4])))
