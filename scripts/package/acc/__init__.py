# SPDX-License-Identifier: Apache-2.0
"""The launcher `acc` as a package: `python -m acc` is the program of this environment. A worker that says `acc.step(loss=...)`
after each step, and `with acc.section("data"):` where it is doing something, is seen by `acc ps`."""

__all__ = ["section", "step"]


def __getattr__(name):
    """Imported when they are used: Python imports this package at each start where ACC_REPLACE_TORCHRUN is set."""
    if name in __all__:
        from acc import progress

        return getattr(progress, name)
    raise AttributeError(f"module 'acc' has no attribute {name!r}")
