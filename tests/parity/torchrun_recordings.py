#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of torchrun 2.11: acc, called torchrun, gives real workers the same argv and variables.

usage: torchrun_recordings.py ACC RECORDINGS_FOLDER [NAME ...]

What acc does differently on purpose is in differences.yaml; the constants below are its rows.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# free-port; loopback-store (torchrun exports the host's name for a standalone job)
FREE = {"MASTER_PORT": "29500", "MASTER_ADDR": "<fqdn>"}
# The recordings were made with these variables of their own.
RECORDER = {"DUMP_DIR", "EXIT_CODES", "FAIL_ATTEMPTS", "WAIT", "PYTHONPATH"}


def generalize(text, folder, scripts=None):
    """A path or id of this run in the recordings' words."""
    text = text.replace(str(folder / "tmp"), "<tmp>/t")
    if scripts:
        text = text.replace(str(scripts), "<scripts>")
    text = re.sub(r"torchelastic_[A-Za-z0-9_]{6,8}/", "torchelastic_<rand>/", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", text)
    return re.sub(r"(<uuid>|none|job7|abc)_[A-Za-z0-9_]{6,8}/", r"\1_<rand>/", text)


def log_tree(folder):
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*.log"))]
    return [generalize(str(path), folder) for path in files]


class Recording:
    def __init__(self, path, acc, scripts, folder):
        self.expected = json.loads(path.read_text())
        self.acc, self.scripts, self.folder = acc, scripts, folder
        self.failures = []

    def check(self, what, ours, theirs):
        if ours != theirs:
            self.failures.append(f"{what}: ours {ours!r}, recorded {theirs!r}")

    def run(self):
        for name in ("tmp", "work", "dump"):
            (self.folder / name).mkdir()
        link = self.folder / "torchrun"
        link.symlink_to(self.acc)
        base = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp"),
                "DUMP_DIR": str(self.folder / "dump"), "PYTHONPATH": str(self.scripts), **self.expected["env_extra"]}
        words = [self.here(word) for word in self.expected["argv"]]
        done = subprocess.run([str(link), *words], env=base, cwd=self.folder / "work", capture_output=True, text=True)
        self.compare(done, base)

    def here(self, word):
        return word.replace("<scripts>", str(self.scripts)).replace("<python>", sys.executable)

    def compare(self, done, base):
        failed = self.expected["exit_code"] == 1  # exit-code: torchrun's is always 1
        self.check("exit code", done.returncode != 0 if failed else done.returncode,
                   True if failed else self.expected["exit_code"])
        name = self.expected["name"]
        if not name.startswith(("fail_", "restart_", "ok_", "help")):
            for text in self.expected.get("stderr_has", []):
                if not text.startswith("usage:") and text not in done.stderr:
                    self.failures.append(f"stderr lacks {text!r}: {done.stderr!r}")
        for text in self.expected.get("stdout_has", []):
            if not text.startswith("usage:") and text not in done.stdout:
                self.failures.append(f"stdout lacks {text!r}: {done.stdout!r}")
        for text in self.expected.get("stdout_lacks", []):
            if text in done.stdout:
                self.failures.append(f"stdout has {text!r}")
        if "log_tree" in self.expected:
            ours = log_tree(self.folder / "work" / "ld")
            self.check("log files", ours, [p for p in self.expected["log_tree"] if p.endswith(".log")])
        self.compare_workers(base)

    def compare_workers(self, base):
        workers = [json.loads(path.read_text()) for path in (self.folder / "dump").glob("*.json")]
        workers.sort(key=lambda w: (int(w["env"]["TORCHELASTIC_RESTART_COUNT"]), int(w["env"]["RANK"])))
        theirs = sorted(self.expected["workers"], key=lambda w: (w["attempt"], w["rank"]))
        self.check("workers", len(workers), len(theirs))
        for worker, recorded in zip(workers, theirs):
            rank = recorded["rank"]
            self.check(f"rank {rank}: session leader", worker["sid"] == worker["pid"], recorded["new_session"])
            self.check_argv(rank, worker["argv"], recorded["argv"])
            added = {k: generalize(v, self.folder, self.scripts) for k, v in worker["env"].items()
                     if base.get(k) != v and k not in RECORDER and k != "LC_CTYPE"}
            self.check_environment(rank, added, dict(recorded["env_diff"]))

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
        for name in sorted(ours.keys() | theirs.keys()):
            self.check(f"rank {rank}: {name}", ours.get(name), theirs.get(name))


def main():
    acc, recordings = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    names = sys.argv[3:]
    paths = [path for path in sorted(recordings.glob("*.json")) if not names or path.stem in names]
    bad = 0
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            recording = Recording(path, acc, recordings / "scripts", pathlib.Path(folder))
            recording.run()
            print("FAILED" if recording.failures else "ok", path.stem)
            for failure in recording.failures:
                print("   ", failure)
            bad += bool(recording.failures)
    print(f"{len(paths) - bad} of {len(paths)} recordings agree")
    return bad != 0 or not paths


if __name__ == "__main__":
    sys.exit(main())
