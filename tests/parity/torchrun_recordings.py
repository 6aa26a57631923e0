#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of torchrun 2.11: acc, called torchrun, gives real workers the same argv and variables, refuses
what torchrun refuses, and writes the same files.

usage: torchrun_recordings.py ACC RECORDINGS_FOLDER [--preload MODULES] [NAME ...]

What acc does differently on purpose is in differences.yaml; the constants below name its rows.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port  # noqa: E402

# free-port; loopback-store (torchrun exports the host's name for a standalone job)
FREE = {"MASTER_PORT": "29500", "MASTER_ADDR": "<fqdn>"}
# Ports that recordings name. Here each run has its own, so that others may run beside it; 29500 is torchrun's default.
NAMED_PORT = re.compile(r"\b29[46]\d\d\b")
# The recordings were made with these variables of their own.
RECORDER = {"DUMP_DIR", "EXIT_CODES", "FAIL_ATTEMPTS", "WAIT", "PYTHONPATH"}
# Refused by torchrun, done by acc.
ACCEPTED = {"err_ambiguous": "unambiguous-nproc", "err_redirects_two_digits": "rank-digits", "err_port_in_use": "free-port"}
# Reports and messages are acc's own words (own-words); these texts are compared nevertheless.
SAME_WORDS = ("err_bad_int", "err_bad_choice", "err_unknown_flag")
# too-few-nodes
TIMED_OUT = ("err_c10d_timeout", "err_static_timeout")
DEADLINE = 60


def generalize(text, folder, scripts=None):
    """A path or id of this run in the recordings' words."""
    text = text.replace(str(folder / "tmp"), "<tmp>/t")
    if scripts:
        text = text.replace(str(scripts), "<scripts>")
    text = re.sub(r"torchelastic_[A-Za-z0-9_]{6,8}/", "torchelastic_<rand>/", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", text)
    return re.sub(r"(?<!\w)(<uuid>|none|job7|abc|j)_[A-Za-z0-9_]{6,8}/", r"\1_<rand>/", text)


def with_own_id(recorded):
    """own-run-id: torchrun 2.11 calls every run `none`."""
    if isinstance(recorded, list):
        return [with_own_id(one) for one in recorded]
    if isinstance(recorded, str):
        return "<uuid>" if recorded == "none" else recorded.replace("none_<rand>", "<uuid>_<rand>")
    return recorded


def tree(folder):
    """All files below, and the folders that hold nothing."""
    names = []
    for path in sorted(folder.rglob("*")):
        name = generalize(str(path.relative_to(folder)), folder)
        if path.is_file():
            names.append(name)
        elif not any(path.iterdir()):
            names.append(name + "/")
    return sorted(names)


def without_times(text):
    """An error file with what changes from run to run left out."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        document = json.loads(text)
        document["message"]["extraInfo"].update(py_callstack="<traceback>", timestamp="<time>")
        return document
    return text


class Recording:
    preload = ""

    def __init__(self, expected, acc, scripts, folder):
        self.expected = expected
        self.name = expected.get("name", "peer")
        self.acc, self.scripts, self.folder = acc, scripts, folder
        self.ports = {}
        self.failures = []

    def check(self, what, ours, theirs):
        if ours not in (theirs, with_own_id(theirs)):
            self.failures.append(f"{what}: ours {ours!r}, recorded {theirs!r}")

    def run(self):
        action = self.expected.get("action", {})
        with self.port_taken(action.get("occupy_port")):
            self.start()
            peers = [self.start_peer(number, peer) for number, peer in enumerate(self.expected.get("peers", []))]
            if "signal" in action and self.wait_for_workers(self.job, action["when_workers"]):
                self.job.send_signal(getattr(signal, action["signal"]))
            # All of them first: the folders of the peers are in that of this node.
            for node in (self, *peers):
                node.output = node.job.communicate(timeout=DEADLINE)
            for node in (self, *peers):
                node.compare(node.job.returncode, *node.output, node.base)

    def start(self):
        for name in ("tmp", "work", "dump"):
            (self.folder / name).mkdir(parents=True)
        link = self.folder / "torchrun"
        link.symlink_to(self.acc)
        self.base = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp"),
                     "DUMP_DIR": str(self.folder / "dump"), "PYTHONPATH": str(self.scripts)}
        self.base.update({name: self.here(value) for name, value in self.expected["env_extra"].items()})
        if self.name == "err_static_timeout":  # it waits at torchrun's default port
            self.base["PET_MASTER_PORT"] = str(free_port())
        if self.preload:
            self.base["ACC_PRELOAD"] = self.preload
        words = [self.here(word) for word in self.expected["argv"]]
        if self.expected.get("launcher") == "launch":
            words.insert(0, "--legacy-launch")
        self.job = subprocess.Popen([str(link), *words], env=self.base, cwd=self.folder / "work", text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def start_peer(self, number, expected):
        peer = Recording(expected, self.acc, self.scripts, self.folder / f"peer{number}")
        peer.failures, peer.ports = self.failures, self.ports
        peer.start()
        return peer

    @contextlib.contextmanager
    def port_taken(self, port):
        if port is None:
            yield
            return
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):  # somebody else holds it, which is as good
                holder.bind(("0.0.0.0", port))
                holder.listen()
            yield

    def wait_for_workers(self, job, count):
        end = time.monotonic() + DEADLINE
        while len(list((self.folder / "dump").glob("*.json"))) < count:
            if job.poll() is not None or time.monotonic() > end:
                self.failures.append("the workers did not start")
                return False
            time.sleep(0.01)
        return True

    def here(self, word):
        word = word.replace("<scripts>", str(self.scripts)).replace("<python>", sys.executable)
        return NAMED_PORT.sub(self.port_for, word.replace("<tmp>", str(self.folder)))

    def port_for(self, named):
        return str(self.ports.setdefault(named.group(), free_port()))

    def compare(self, code, out, err, base):
        self.compare_end(code, err)
        for text in self.expected.get("stdout_has", []):
            if not text.startswith("usage:") and text not in out:
                self.failures.append(f"stdout lacks {text!r}: {out!r}")
        for text in self.expected.get("stdout_lacks", []):
            if text in out:
                self.failures.append(f"stdout has {text!r}")
        for text in self.expected.get("stderr_lacks", []):
            if text in err:
                self.failures.append(f"stderr has {text!r}")
        if "log_tree" in self.expected:
            self.check("log files", tree(self.folder / "work" / "ld"), sorted(self.expected["log_tree"]))
        self.compare_files()
        if self.name not in ACCEPTED:
            self.compare_workers(base)

    def compare_end(self, code, err):
        recorded = self.expected["exit_code"]
        action = self.expected.get("action", {})
        if self.name in ACCEPTED:
            self.check("exit code", code, 0)
        elif "signal" in action:  # exit-code, signals-are-handed-on
            self.check("exit code", code, 128 + getattr(signal, action["signal"]))
        elif self.name in TIMED_OUT:
            self.check("exit code", code, 75)
            self.check("says who is missing", "1 of 2 nodes are here" in err, True)
        elif self.name.startswith("err_"):  # usage-errors
            self.check("exit code", code, 2)
            self.check("lines of stderr", err.count("\n"), 1)
        elif recorded == 1:  # exit-code
            self.check("fails", code != 0, True)
        else:
            self.check("exit code", code, recorded)
        if self.name in SAME_WORDS:
            for text in self.expected["stderr_has"]:
                if not text.startswith("usage:") and text not in err:
                    self.failures.append(f"stderr lacks {text!r}: {err!r}")

    def compare_files(self):
        ours = {generalize(str(path.relative_to(self.folder)), self.folder): path
                for path in self.folder.rglob("*") if path.is_file()}
        for name, text in self.expected.get("files", {}).items():
            name = name if name in ours else with_own_id(name)
            if name not in ours:
                self.failures.append(f"no file {name}")
            else:
                self.check(name, without_times(ours[name].read_text()), without_times(text))

    def compare_workers(self, base):
        workers = [json.loads(path.read_text()) for path in (self.folder / "dump").glob("*.json")]
        workers.sort(key=lambda w: (int(w["env"]["TORCHELASTIC_RESTART_COUNT"]), int(w["env"]["RANK"])))
        theirs = sorted(self.expected["workers"], key=lambda w: (w["attempt"], w["rank"]))
        self.check("workers", len(workers), len(theirs))
        for worker, recorded in zip(workers, theirs):
            rank = recorded["rank"]
            forked = "sys_argv" in recorded  # run-path
            self.check(f"rank {rank}: session leader", worker["sid"] == worker["pid"], recorded["new_session"] or forked)
            self.check_argv(rank, worker["argv"], ["<python>", "-u", *recorded["sys_argv"]] if forked else recorded["argv"])
            added = {k: generalize(v, self.folder, self.scripts) for k, v in worker["env"].items()
                     if base.get(k) != v and k not in RECORDER and k != "LC_CTYPE"}
            theirs = {name: str(self.ports.get(value, value)) for name, value in recorded["env_diff"].items()}
            self.check_environment(rank, added, theirs)

    def check_argv(self, rank, ours, theirs):
        ours = [generalize(word, self.folder, self.scripts) for word in ours]
        # dollar-signs: `$$` stays.
        theirs = ["$$" if word == "$" else word for word in theirs]
        if theirs and theirs[0] == "<python>":
            theirs[0] = ours[0]
        theirs = [sys.executable if word == "<python>" else word for word in theirs]
        self.check(f"rank {rank}: argv", ours, theirs)

    def check_environment(self, rank, ours, theirs):
        for name, recorded in FREE.items():
            if theirs.get(name) in (recorded, "<port>"):
                theirs.pop(name)
                ours.pop(name, None)
        if "TORCHELASTIC_ERROR_FILE" in theirs:
            path = pathlib.PurePath(ours.get("TORCHELASTIC_ERROR_FILE", ""))
            if not theirs["TORCHELASTIC_ERROR_FILE"].startswith("<") and path.is_absolute():
                # A relative --log-dir is made absolute: a worker may change its folder.
                ours["TORCHELASTIC_ERROR_FILE"] = generalize(str(path.relative_to(self.folder / "work")), self.folder)
        # differences.yaml: progress-page
        self.check(f"rank {rank}: ACC_PROGRESS", pathlib.PurePath(ours.pop("ACC_PROGRESS", "")).is_absolute(), True)
        for name in sorted(ours.keys() | theirs.keys()):
            self.check(f"rank {rank}: {name}", ours.get(name), theirs.get(name))


def fits_here(path):
    """Some recordings count the CPUs of the machine they were made on."""
    return json.loads(path.read_text()).get("cpus", os.cpu_count()) == os.cpu_count()


def main():
    acc, recordings = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    names = sys.argv[3:]
    if names[:1] == ["--preload"]:
        Recording.preload, names = names[1], names[2:]
    paths = [path for path in sorted(recordings.glob("*.json")) if fits_here(path) and (not names or path.stem in names)]
    bad = 0
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            recording = Recording(json.loads(path.read_text()), acc, recordings / "scripts", pathlib.Path(folder))
            recording.run()
            for failure in recording.failures:
                print(f"{path.stem}: {failure}")
            bad += bool(recording.failures)
    print(f"{len(paths) - bad} of {len(paths)} recordings agree")
    return bad != 0 or not paths


if __name__ == "__main__":
    sys.exit(main())
