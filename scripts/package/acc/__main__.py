# SPDX-License-Identifier: Apache-2.0
"""Becomes the program `acc` that was installed with this package."""

import os
import sys
import sysconfig


def program():
    """Where pip puts programs: in the environment, of the user, or below the folder of `pip install --target`."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
               os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")]
    for folder in folders:
        path = os.path.join(folder, "acc")
        if os.access(path, os.X_OK):
            return path
    sys.exit(f"acc: the program is in none of {', '.join(folders)} (pip install --force-reinstall acc-launcher)")


if __name__ == "__main__":
    path = program()
    os.execv(path, [path, *sys.argv[1:]])
