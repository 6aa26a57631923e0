#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""state_flush_test.py ACC SAVE_STATE: what a training has in memory is on the disk when a job ends without success."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import free_port  # noqa: E402

ACC, SAVE_STATE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
LOST = "acc: the newest state in memory could not be put on the disk: "

# `save` saves a state in memory, `got` waits for a signal.
BEGIN = f"""
import os, pathlib, signal, subprocess, sys
runs, rank, attempt = os.path.abspath("runs"), os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]

SAVE_STATE = {str(SAVE_STATE)!r}

def save(number, *size):
    subprocess.run([SAVE_STATE, f"{{runs}}/checkpoint-{{number}}", str(number), *size], check=True)

def got(*names):
    signals = [signal.Signals[name] for name in names]
    for one in signals:
        signal.signal(one, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    print("ready", flush=True)
    return signal.Signals(signal.sigwait(signals)).name
"""
# Each attempt saves two.
FAILS = "for number in (1, 2):\n    save(2 * int(attempt) + number)\nsys.exit(7)\n"


class Folder:
    def __init__(self, path):
        self.path, self.runs = path, path / "runs"

    def words(self, script, *flags, command="run", memory="16MB"):
        (self.path / "train.py").write_text(BEGIN + script)
        return [ACC, command, "--memory-checkpoints", memory, *flags, "train.py"]

    def run(self, script, *flags, around=(), **options):
        return subprocess.run([*around, *self.words(script, *flags, **options)], cwd=self.path, capture_output=True, text=True)

    @contextlib.contextmanager
    def started(self, script, *flags, **options):
        """A job whose worker is ready."""
        job = subprocess.Popen(self.words(script, *flags, **options), cwd=self.path, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        with job:
            assert job.stdout.readline() == "ready\n", job.communicate()
            yield job

    def on_disk(self):
        """The checkpoints, which must be whole, and what else is there."""
        checkpoints = {}
        for folder in self.runs.glob("*") if self.runs.exists() else []:
            assert [file.name for file in folder.iterdir()] == ["model.safetensors"], folder
            checkpoints[folder.name] = (folder / "model.safetensors").read_text().rstrip("w")
        return checkpoints

    def told(self, number):
        return f"acc: the newest state in memory is on the disk: {self.runs}/checkpoint-{number}\n"


def test(*cases):
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="acc-flush-") as name:
            case(Folder(pathlib.Path(name).resolve()))


def a_failure_costs_what_came_after_the_newest_state(folder):
    for number, flags in enumerate([[], ["--pid-namespace"], ["--preload", "json"], ["--nnodes", "1", "--rdzv-backend", "c10d"]]):
        folder.runs = folder.path / f"runs{number}"
        done = folder.run(f"runs = {str(folder.runs)!r}\n{FAILS}", "--max-restarts", "1", *flags)
        assert done.returncode == 7 and done.stderr.count(folder.told(4)) == 1, (flags, done)
        assert folder.on_disk() == {"checkpoint-4": "weights 4"}, (flags, done)


def events_tell_it(folder):
    done = folder.run(FAILS, "--event-log", "events.jsonl")
    events = [json.loads(line) for line in (folder.path / "events.jsonl").read_text().splitlines()]
    flushed, finished = events[-2:]
    assert (flushed["event"], finished["event"]) == ("state_flushed", "finished"), done
    assert flushed["folder"] == f"{folder.runs}/checkpoint-2" and flushed["damaged"] == [] and flushed["problem"] is None, flushed
    report = subprocess.run([ACC, "report", "--json", "events.jsonl"], cwd=folder.path, capture_output=True, text=True, check=True)
    told = [event["text"] for event in json.loads(report.stdout)["events"] if event["kind"] == "state"]
    assert told == [folder.told(2).removeprefix("acc: ").strip()], report


def a_training_that_ends_well_leaves_memory_alone(folder):
    done = folder.run("save(1)\n")
    assert done.returncode == 0 and done.stderr == "" and folder.on_disk() == {}, done


def what_the_disk_has_is_not_copied(folder):
    newer = "save(1)\ntraining = pathlib.Path(os.environ['ACC_MEMORY_FOLDER'], 'training_0_0')\n" \
            "os.makedirs('final')\n(training / 'on_disk_2').write_text(os.path.abspath('final'))\nsys.exit(7)\n"
    done = folder.run(newer)
    assert done.returncode == 7 and "in memory" not in done.stderr and folder.on_disk() == {}, done


def a_signal_finds_the_state_that_workers_save_last(folder):
    script = "save(1)\nsave(2)\nassert got('SIGTERM', 'SIGINT')\nsave(3)\n"
    for number, name in enumerate(["SIGTERM", "SIGINT"]):
        folder.runs = folder.path / f"runs{number}"
        with folder.started(f"runs = {str(folder.runs)!r}\n{script}") as job:
            job.send_signal(signal.Signals[name])
            _, said = job.communicate()
        assert job.returncode == 128 + signal.Signals[name], said
        assert said.endswith(folder.told(3)), said
        # The copy that begins at once may find either.
        assert folder.on_disk().items() <= {"checkpoint-2": "weights 2", "checkpoint-3": "weights 3"}.items(), said


def a_notice_brings_it_to_the_disk_while_workers_run(folder):
    script = "save(1)\nsave(2)\nassert got('SIGUSR1') == 'SIGUSR1'\nsave(3)\nassert got('SIGTERM', 'SIGUSR1') == 'SIGTERM'\n"
    with folder.started(script, "--requeue-on-preemption") as job:
        job.send_signal(signal.SIGUSR1)
        lines = [job.stderr.readline() for _ in range(2)]
        assert "SIGUSR1 received" in lines[0] and re.fullmatch(re.escape(folder.told("N")).replace("N", "[23]"), lines[1]), lines
        assert job.stdout.readline() == "ready\n"
        job.send_signal(signal.SIGTERM)
        _, said = job.communicate()
    assert job.returncode == 75 and folder.on_disk()["checkpoint-3"] == "weights 3", (lines, said)


def a_training_may_save_where_its_state_belongs(folder):
    script = "for number in (1, 2):\n" \
             "    subprocess.run([SAVE_STATE, f'{runs}/checkpoint_0', str(number)], check=True)\n" \
             "got('SIGUSR1')\nos.makedirs(f'{runs}/checkpoint_0')\n" \
             "pathlib.Path(f'{runs}/checkpoint_0/model.safetensors').write_text('its own')\nsys.exit(7)\n"
    with folder.started(script, "--requeue-on-preemption") as job:
        job.send_signal(signal.SIGUSR1)
        _, said = job.communicate()
    assert job.returncode == 7 and folder.on_disk() == {"checkpoint_0": "its own"}, said


def a_second_signal_leaves_nothing_half(folder):
    with folder.started("save(1)\nsave(2, str(64 << 10))\ngot('SIGINT')\ngot('SIGTERM')\n", memory="200MB") as job:
        # Within a tenth of a second they count as one.
        while job.poll() is None:
            job.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.wait(0.05)
        said = job.stderr.read()
    assert job.returncode == 130 and "second signal: rank 0 was killed" in said, said
    # The disk may be faster.
    assert (folder.told(2) if folder.on_disk() else LOST) in said, said


def a_disk_that_cannot_be_written_leaves_the_exit_code(folder):
    folder.runs.write_text("a file")
    done = folder.run(FAILS)
    assert done.returncode == 7 and done.stderr.count(LOST) == 1, done
    assert f"{LOST}{folder.runs}/checkpoint-2: cannot be created: Not a directory\n" in done.stderr, done


def a_full_disk_has_nothing_half(folder):
    if os.geteuid() != 0:
        return
    folder.runs.mkdir()
    mounted = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=256k none runs || exit 77; "$@"; code=$?; ls -A runs; exit $code', "sh"]
    done = folder.run("save(1, '512')\nsys.exit(7)\n", around=mounted)
    if done.returncode == 77:
        return
    assert done.returncode == 7 and done.stdout == "", done
    assert f"{LOST}{folder.runs}/checkpoint-1/model.safetensors: cannot be written: No space left on device\n" in done.stderr, done


def memory_that_is_mounted_is_copied_too(folder):
    if os.geteuid() != 0:
        return
    small = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k none /dev/shm || exit 77; exec "$@"', "sh"]
    done = folder.run(FAILS, around=small)
    if done.returncode == 77:
        return
    assert done.returncode == 7 and folder.told(2) in done.stderr, done
    assert folder.on_disk() == {"checkpoint-2": "weights 2"}, done


def of_several_nodes_one_copies(folder):
    script = "node = os.environ['GROUP_RANK']\nruns = f'{runs}{node}'\nsave(1)\n" \
             "pathlib.Path(f'saved{node}').touch()\nprint('ready', flush=True)\n" \
             "sys.stdin.read() if node == '1' else signal.pause()\nsys.exit(7)\n"
    words = folder.words(script, "--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{free_port()}")
    jobs = [subprocess.Popen(words, cwd=folder.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)]
    for job in jobs:
        assert job.stdout.readline() == "ready\n"
    for job in jobs:
        job.stdin.close()
        job.stdin = None
    said = [job.communicate()[1] for job in jobs]
    assert [job.returncode for job in jobs] == [7, 7], said
    assert (folder.path / "runs0/checkpoint-1").exists() and not (folder.path / "runs1").exists(), said
    assert sum(text.count("is on the disk") for text in said) == 1, said


test(a_failure_costs_what_came_after_the_newest_state, events_tell_it, a_training_that_ends_well_leaves_memory_alone,
     what_the_disk_has_is_not_copied, a_signal_finds_the_state_that_workers_save_last,
     a_notice_brings_it_to_the_disk_while_workers_run, a_training_may_save_where_its_state_belongs, a_second_signal_leaves_nothing_half,
     a_disk_that_cannot_be_written_leaves_the_exit_code, a_full_disk_has_nothing_half, memory_that_is_mounted_is_copied_too,
     of_several_nodes_one_copies)
