# SPDX-License-Identifier: Apache-2.0
"""What a fork would have of a notebook beside its memory, folder and variables: the umask, the limits of resources and the CPUs.
The fork server has those of the first call."""

from __future__ import annotations

import os
import resource
from typing import Any

_LIMITS = sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))


def _umask() -> int:
    """Without setting it, which would concern the files that other threads make meanwhile."""
    with open("/proc/thread-self/status") as file:
        return next(int(line.split()[1], 8) for line in file if line.startswith("Umask:"))


def read() -> dict[str, Any]:
    """Those of the calling thread, as a fork has them."""
    return {"umask": _umask(), "cpus": sorted(os.sched_getaffinity(0)),
            "limits": {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS}}


def take(values: dict[str, Any]) -> None:
    """Raises OSError or ValueError where the system forbids it."""
    os.umask(values["umask"])
    if values["cpus"] != sorted(os.sched_getaffinity(0)):
        os.sched_setaffinity(0, values["cpus"])
    for name, limit in values["limits"].items():
        number = getattr(resource, name)
        if tuple(limit) != resource.getrlimit(number):
            resource.setrlimit(number, tuple(limit))
