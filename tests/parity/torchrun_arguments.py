#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real parser of torchrun beside acc's: random command lines and PET_* variables mean the same to both.

usage: torchrun_arguments.py ACC [SEED [COUNT]]
"""
import contextlib
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

# By destination of torchrun: acc's name of the setting, and values that both accept.
VALUED = {
    "nnodes": ("nnodes", ["1", "1:1", " 1"]),
    "nproc_per_node": ("nproc_per_node", ["1", "2", "cpu", "auto", "1_0"]),
    "rdzv_backend": ("rdzv_backend", ["static", "c10d"]),
    "rdzv_endpoint": ("rdzv_endpoint", ["localhost:29500", "[::1]:1"]),
    "rdzv_id": ("rdzv_id", ["job7", "none"]),
    "rdzv_conf": ("rdzv_conf", ["timeout=5", ""]),
    "max_restarts": ("max_restarts", ["0", "3", "1_0", "+2"]),
    "monitor_interval": ("monitor_interval", ["0.5", "1", "1e1"]),
    "start_method": ("start_method", ["spawn", "fork", "forkserver"]),
    "event_log_handler": ("event_log_handler", ["null", "console"]),
    "role": ("role", ["trainer", ""]),
    "log_dir": ("log_dir", ["logs", "/dev/null"]),
    "redirects": ("redirects", ["0", "3", "0:1,1:2"]),
    "tee": ("tee", ["1", "0:3"]),
    "local_ranks_filter": ("local_ranks_filter", ["0", "0,1"]),
    "node_rank": ("machine_rank", ["0"]),
    "master_addr": ("main_process_ip", ["node0", "127.0.0.1"]),
    "master_port": ("main_process_port", ["29501", "0"]),
    "local_addr": ("local_addr", ["10.0.0.1"]),
    "numa_binding": ("numa_binding", ["node", "core-complex"]),
    "signals_to_handle": ("signals_to_handle", ["SIGTERM", "SIGTERM, SIGUSR1"]),
}
SWITCHES = {"standalone": "standalone", "module": "module", "run_path": "run_path", "no_python": "no_python",
            "virtual_local_rank": "virtual_local_rank"}
SHORT = {"module": "-m", "redirects": "-r", "tee": "-t"}
WRONG = [["--bogus"], ["--max-restarts", "x"], ["--max-restarts=1.5"], ["--monitor-interval", "soon"], ["--start-method", "thread"],
         ["--module=1"], ["-x"], ["--ma", "1"], ["--numa-binding=core"], ["--rdzv", "x"], ["--local"]]


def spelling(random_, destination):
    separator = random_.choice("-_")
    return "--" + destination.replace("_", separator)


def shortened(random_, flag):
    """Some beginning of it; often not enough of it."""
    return flag[:random_.randint(min(len(flag), 6), len(flag))] if random_.random() < 0.3 else flag


def one_option(random_):
    if random_.random() < 0.05:
        return random_.choice(WRONG)
    if random_.random() < 0.25:
        destination = random_.choice(list(SWITCHES))
        if destination == "module" and random_.random() < 0.5:
            return random_.choice([["-m"], ["-mr1"], ["-mt", "2"]])
        return [shortened(random_, spelling(random_, destination))]
    destination = random_.choice(list(VALUED))
    value = random_.choice(VALUED[destination][1])
    if destination in SHORT and random_.random() < 0.6:
        short = SHORT[destination]
        return random_.choice([[short, value], [short + value], [f"{short}={value}"]])
    flag = shortened(random_, spelling(random_, destination))
    return [f"{flag}={value}"] if random_.random() < 0.5 else [flag, value]


def command_line(random_):
    words = [word for _ in range(random_.randint(0, 5)) for word in one_option(random_)]
    if random_.random() < 0.1:
        words.append("--")
    if random_.random() < 0.97:
        words.append("train.py")
        for _ in range(random_.randint(0, 3)):
            words.append(random_.choice(["a", "--", "--nnodes=9", "-m", "--help", ""]))
    return words


def environment(random_):
    variables = {}
    for destination in random_.sample(list(VALUED), 2) if random_.random() < 0.3 else []:
        if destination != "numa_binding":
            variables["PET_" + destination.upper()] = random_.choice(VALUED[destination][1])
    if random_.random() < 0.1:
        variables["PET_STANDALONE"] = random_.choice("012")
    if random_.random() < 0.03:
        variables["PET_MAX_RESTARTS"] = random_.choice(["abc", ""])
    return variables


def torchrun(words, variables):
    """The namespace as a dictionary, or the text of the error."""
    from torch.distributed.run import parse_args
    before = dict(os.environ)
    os.environ.update(variables)
    text = io.StringIO()
    try:
        with contextlib.redirect_stderr(text), contextlib.redirect_stdout(text):
            return vars(parse_args(words)), ""
    except SystemExit:
        return None, text.getvalue()
    finally:
        os.environ.clear()
        os.environ.update(before)


def acc(program, words, variables, folder):
    base = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    done = subprocess.run([program, "run", "--dry-run=json", *words], env=base, cwd=folder, capture_output=True, text=True)
    return (json.loads(done.stdout) if done.returncode == 0 and done.stdout.startswith("{") else None), done.stderr


def same_meaning(theirs, ours, words):
    """What acc understood otherwise."""
    settings = ours["settings"]
    wrong = []
    for destination, (name, _) in VALUED.items():
        value, origin = settings[name]["value"], settings[name]["origin"]
        if origin == "default":
            continue  # torchrun's defaults are compared by the recordings
        if str(value) != str(theirs[destination]) and value != theirs[destination]:
            wrong.append(f"{destination}: {value!r}, torchrun {theirs[destination]!r}")
    for destination, name in SWITCHES.items():
        if bool(settings[name]["value"]) != bool(theirs[destination]):
            wrong.append(f"{destination}: {settings[name]['value']!r}")
    arguments = [theirs["training_script"], *theirs["training_script_args"]]
    if ours["worker_command"][-len(arguments):] != arguments:
        wrong.append(f"program {ours['worker_command']}, torchrun {arguments}")
    return wrong


def excused(error, words):
    """Refused by torchrun's parser, and understood by acc on purpose: rows unambiguous-nproc and pet-switches."""
    return "ambiguous option" in error or "PET_" in error


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20261121
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 400
    random_ = random.Random(seed)
    understood = bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "train.py").write_text("")
        for _ in range(count):
            words, variables = command_line(random_), environment(random_)
            theirs, error = torchrun(words, variables)
            ours, said = acc(program, words, variables, folder)
            wrong = []
            if theirs is None and ours is not None and not excused(error, words):
                wrong = [f"understood, torchrun: {error.splitlines()[-1]}"]
            elif theirs is not None and ours is None and not says_no(theirs, said):
                wrong = [f"refused: {said.strip()}"]
            elif theirs is not None and ours is not None:
                understood += 1
                wrong = same_meaning(theirs, ours, words)
            bad += bool(wrong)
            for line in wrong:
                print(f"{variables or ''} {words}: {line}")
    print(f"seed {seed}: {understood} of {count} command lines understood by both, {bad} differ")
    return bad != 0 or understood < count // 3


def says_no(theirs, said):
    """torchrun refuses these too, after its parser."""
    return (theirs["no_python"] and theirs["module"] and "exclude each other" in said) or "are required" in said


if __name__ == "__main__":
    sys.exit(main())
