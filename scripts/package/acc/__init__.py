# SPDX-License-Identifier: Apache-2.0
"""The launcher `acc` as a package: `python -m acc` is the program of this environment. A worker that says `acc.step(loss=...)`
after each step, and `with acc.section("data"):` where it is doing something, is seen by `acc ps`. A notebook starts workers by
`acc.notebook_launcher(train, args, num_processes=2)`."""

_MODULE_OF = {
    "section": "progress",
    "step": "progress",
    "notebook_launcher": "notebook",
    "debug_launcher": "notebook",
    "write_basic_config": "notebook",
}
__all__ = list(_MODULE_OF)


def __getattr__(name):
    """Imported when they are used: Python imports this package at each start where it may be asked to replace a launcher."""
    if name in _MODULE_OF:
        import importlib

        return getattr(importlib.import_module("acc." + _MODULE_OF[name]), name)
    raise AttributeError(f"module 'acc' has no attribute {name!r}")
