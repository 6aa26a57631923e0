# SPDX-License-Identifier: Apache-2.0
"""The program `acc` that was installed with this package."""

import os
import sys
import sysconfig


def become(words):
    """Runs `acc WORDS` in place of this process."""
    # Where pip puts programs: in the environment, of the user, or below the folder of `pip install --target`.
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "posix_user"),
               os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")]
    for folder in folders:
        path = os.path.join(folder, "acc")
        if os.access(path, os.X_OK):
            os.execv(path, [path] + words)
    sys.stderr.write("acc: the program is in none of " + ", ".join(folders) + " (pip install --force-reinstall acc-launcher)\n")
    sys.stderr.flush()
    os._exit(1)  # no exception, which a Python that is just starting would report as its own fault
