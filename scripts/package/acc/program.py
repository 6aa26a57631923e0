# SPDX-License-Identifier: Apache-2.0
"""The program `acc` that was installed with this package."""

from __future__ import annotations

import os
import sys
import sysconfig


def folders() -> list[str]:
    """Where pip puts programs: below the folder of `pip install --target`, in the environment, or of the user. That of this
    package comes first: another acc may be of another version."""
    packages = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    schemes = [(sysconfig.get_path("platlib"), sysconfig.get_path("scripts")),
               (sysconfig.get_path("platlib", "posix_user"), sysconfig.get_path("scripts", "posix_user"))]
    schemes.sort(key=lambda scheme: os.path.realpath(scheme[0]) != packages)
    return [os.path.join(packages, "bin"), *(scripts for _, scripts in schemes)]


def find() -> str | None:
    """Its path. None: it is gone."""
    paths = (os.path.join(folder, "acc") for folder in folders())
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def missing_text() -> str:
    return "the program is in none of " + ", ".join(folders()) + " (pip install --force-reinstall acc-launcher)"


def become(words: list[str]) -> None:
    """Runs `acc WORDS` in place of this process."""
    path = find()
    if path is not None:
        os.execv(path, [path] + words)
    sys.stderr.write("acc: " + missing_text() + "\n")
    sys.stderr.flush()
    os._exit(1)  # no exception, which a Python that is just starting would report as its own fault
