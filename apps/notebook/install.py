# SPDX-License-Identifier: Apache-2.0
"""`acc notebook install` and `acc notebook --check`, in the Python that is to run the kernel."""

import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from acc_notebook import header
from acc_notebook.layout import Layout

KERNEL = "acc-cpp"
NEEDED = {"ipykernel": (6, 0), "cppyy": (3, 5)}
HERE = pathlib.Path(__file__).resolve().parent


class Missing(Exception):
    """What is missing or wrong, and what to do."""


# --- What a kernel needs, one check each: what was found, or Missing ----------------------------------------------


def python(_):
    if sys.version_info < (3, 9):
        raise Missing(f"{sys.version.split()[0]} is older than 3.9; name another with --python")
    return f"{sys.version.split()[0]}, {sys.executable}"


def package(name):
    def check(_):
        oldest = NEEDED[name]
        wanted = f"{sys.executable} -m pip install '{name}>={oldest[0]}.{oldest[1]}'"
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            raise Missing(f"not in this Python; {wanted}") from None
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < oldest:
            raise Missing(f"{version} is older than {oldest[0]}.{oldest[1]}; {wanted}")
        return version

    return check


def libraries(layout):
    for library in layout.libraries:
        if not library.exists():
            raise Missing(f"no {library}; build or install acc with the runtime library")
    for folder in layout.include:
        if not folder.is_dir():
            raise Missing(f"no headers in {folder}; build or install acc with the runtime library")
    return str(layout.libraries[0])


def libtorch(layout):
    if not (layout.libtorch / "include/torch/csrc/api/include/torch/torch.h").exists():
        raise Missing(f"no headers in {layout.libtorch}; install torch {layout.libtorch_version} there again, "
                      "or build acc with another")
    version = re.search(r"__version__ = '([^'+]+)", (layout.libtorch / "version.py").read_text())
    if version and version[1] != layout.libtorch_version:
        raise Missing(f"{version[1]} in {layout.libtorch}, and acc was built with {layout.libtorch_version}; build acc again")
    return f"{layout.libtorch_version}, {layout.libtorch}"


CLING = """
import sys
sys.path.insert(0, sys.argv[1])
from acc_notebook import header
from acc_notebook.layout import Layout
layout = Layout.of_this_package()
header.use(layout)
import cppyy
for library in layout.libraries:
    cppyy.load_library(str(library))
cppyy.cppdef("int acc_llvm() { return __clang_major__; } int acc_gcc() { return _GLIBCXX_RELEASE; }")
print("versions", cppyy.gbl.acc_llvm(), cppyy.gbl.acc_gcc())
"""


def cling(_):
    """Starts it as a kernel does, and loads acc's libraries."""
    command = [sys.executable, "-c", CLING, str(HERE)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    versions = re.search(r"^versions (\d+) (\d+)$", done.stdout, re.MULTILINE)
    if not versions:
        said = (done.stderr.strip() or "no output").splitlines()
        error = next((line for line in said if "error:" in line or "annot " in line), said[-1])
        raise Missing(f"{error}; is g++ installed, whose C++ library it reads?")
    return f"LLVM {versions[1]} with the C++ library of GCC {versions[2]}, libacc is loaded"


def precompiled(layout):
    if problem := header.problem(layout):
        raise Missing(f"{problem}; acc notebook install")
    return str(header.file_of(layout))


def kernel(layout):
    from jupyter_client import kernelspec

    try:
        spec = kernelspec.KernelSpecManager().get_kernel_spec(KERNEL)
    except kernelspec.NoSuchKernel:
        raise Missing("is not installed; acc notebook install") from None
    if spec.argv != kernel_json(layout)["argv"]:
        raise Missing(f"{spec.resource_dir} is of another acc or Python; acc notebook install")
    return spec.resource_dir


PREREQUISITES = {
    "libacc": libraries,
    "LibTorch": libtorch,
    "Python": python,
    "ipykernel": package("ipykernel"),
    "cppyy": package("cppyy"),
}
TOGETHER = {"cling": cling}
INSTALLED = {"precompiled header": precompiled, "kernel": kernel}


def report(layout, groups, only_missing=False):
    """One line for each check; whether nothing is missing. Each group needs all of those before."""
    for checks in groups:
        good = True
        for name, check in checks.items():
            try:
                result = check(layout)
            except Missing as problem:
                print(f"missing  {name}: {problem}", flush=True)
                good = False
            else:
                if not only_missing:
                    print(f"ok       {name}: {result}", flush=True)
        if not good:
            return False
    return True


# --- Installation -------------------------------------------------------------------------------------------------


def kernel_json(layout):
    return {
        "argv": [sys.executable, str(HERE / "kernel.py"), "-f", "{connection_file}", "--ext=acc_notebook"],
        "display_name": "C++ (acc)",
        "language": "c++",
        "interrupt_mode": "signal",
        "env": {"ACC_NOTEBOOK_CELLS": "c++", "ACC_NOTEBOOK_HEADER": str(header.file_of(layout))},
    }


def make_header(layout):
    if not header.problem(layout):
        print("[1/2] precompiled header: is up to date")
        return
    began = time.monotonic()
    shown = -1
    print("[1/2] precompiled header, half a minute once ...", flush=True)

    def progress(count):
        nonlocal shown
        seconds = int(time.monotonic() - began)
        # On a terminal the line changes each second; elsewhere there is one for five.
        if seconds >= shown + (1 if sys.stdout.isatty() else 5):
            shown = seconds
            line = f"      {seconds:3} s, {count} headers read"
            print(line, end="\r" if sys.stdout.isatty() else "\n", flush=True)

    file = header.make(layout, progress)
    print(f"      {time.monotonic() - began:.0f} s, {file.stat().st_size / 1e6:.0f} MB: {file}")


def install_kernel(layout, prefix):
    from jupyter_client import kernelspec

    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "kernel.json").write_text(json.dumps(kernel_json(layout), indent=2) + "\n")
        where = {"prefix": prefix} if prefix else {"user": True}
        destination = kernelspec.KernelSpecManager().install_kernel_spec(folder, KERNEL, **where)
    print(f"[2/2] kernel: {destination}")


def main():
    parser = argparse.ArgumentParser(prog="acc notebook")
    parser.add_argument("action", choices=["install", "check"])
    parser.add_argument("--prefix")
    options = parser.parse_args()
    layout = Layout.of_this_package()
    if options.action == "check":
        return 0 if report(layout, [PREREQUISITES, TOGETHER, INSTALLED]) else 1
    if not report(layout, [PREREQUISITES, TOGETHER], only_missing=True):
        return 1
    try:
        make_header(layout)
        install_kernel(layout, options.prefix)
    except header.HeaderError as error:
        print(f"acc: the headers do not compile: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"acc: {error.filename or header.file_of(layout).parent}: {os.strerror(error.errno)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    print('Notebooks in Jupyter may now choose "C++ (acc)".')
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as any command whose reader has gone
    sys.exit(main())
