# SPDX-License-Identifier: Apache-2.0
"""The precompiled header: made once by cling's own compiler, and used while no header in it has changed since.

The interpreter reads a header that has another time stamp than in the precompiled header once more, and then meets all of
it twice; so what was read is noted with its time stamps."""

import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from .layout import COMPILER_OPTIONS


class HeaderError(Exception):
    """The compiler's messages."""


def file_of(layout):
    """Where the precompiled header for these headers and this Python belongs; its kernel is told."""
    if told := os.environ.get("ACC_NOTEBOOK_HEADER"):
        return pathlib.Path(told)
    key = hashlib.sha256(f"{layout.folder}\n{sys.prefix}".encode()).hexdigest()[:16]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return cache / "acc" / "notebook" / f"{key}.pch"


def notes_of(file):
    return file.with_suffix(".json")


def problem(layout):
    """Why there is no precompiled header to use; None when there is one."""
    file = file_of(layout)
    try:
        stamps = json.loads(notes_of(file).read_text())["headers"]
        if not file.exists():
            return "is missing"
    except (OSError, ValueError, KeyError):
        return "is missing"
    for name, stamp in stamps.items():
        if stamp != stamp_of(name):
            return f"is out of date: {name} has changed"
    return None


def use(layout):
    """Makes the interpreter that starts in this process use it. A line for a person when that cannot be."""
    found = problem(layout)
    # Without this, cppyy would write its own header over one that it takes for an old one.
    os.environ["CLING_REBUILD_PCH"] = "0"
    os.environ["EXTRA_CLING_ARGS"] = COMPILER_OPTIONS
    if found:
        return f"the precompiled header {found}, so the first include takes half a minute; run acc notebook install"
    os.environ["CLING_STANDARD_PCH"] = str(file_of(layout))
    return None


def stamp_of(name):
    try:
        status = os.stat(name)
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_size]


def make(layout, progress):
    """Makes it anew; calls progress(number of headers that are read). Throws HeaderError."""
    backend = pathlib.Path(importlib.util.find_spec("cppyy_backend").origin).parent
    file = file_of(layout)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        dictionary = pathlib.Path(folder) / "allDict.cxx"
        includes = [backend / "include", *layout.include_folders]
        # As cppyy makes its own; -H names each header that is read.
        command = [
            "bin/rootcling", "-rootbuild", "-generate-pch", "-f", str(dictionary), "-noDictSelection", "-D__CLING__",
            "-DROOT_PCH", "-Iinclude", "-Ietc", "-Ietc/dictpch", "-Ietc/cling", *(f"-I{path}" for path in includes),
            "-cxxflags", "-std=c++20 -Wno-implicit-fallthrough -pipe -fsigned-char -pthread -H",
            "etc/dictpch/allHeaders.h", str(layout.headers), "etc/dictpch/allLinkDefs.h",
        ]  # fmt: skip
        environment = os.environ | {"LD_LIBRARY_PATH": str(backend / "lib"), "EXTRA_CLING_ARGS": COMPILER_OPTIONS}
        before = {}
        messages = []
        with subprocess.Popen(command, cwd=backend, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, errors="replace") as compiler:
            for line in compiler.stderr:
                dots, _, name = line.rstrip("\n").partition(" ")
                if dots and not dots.strip("."):
                    name = str((backend / name).resolve()) if not os.path.isabs(name) else name
                    # Before the compiler is done: a header that changes meanwhile is out of date.
                    if (stamp := before.get(name) or stamp_of(name)) is not None:
                        before[name] = stamp
                    progress(len(before))
                else:
                    messages.append(line)
        made = dictionary.with_name("allDict_rdict.pch")
        if compiler.returncode != 0 or not made.exists():
            raise HeaderError("".join(messages).strip() or f"rootcling ended with code {compiler.returncode}")
        notes_of(file).unlink(missing_ok=True)
        os.replace(made, file)
        notes = pathlib.Path(folder) / "notes.json"
        notes.write_text(json.dumps({"headers": before}))
        os.replace(notes, notes_of(file))
    return file
