# SPDX-License-Identifier: Apache-2.0
"""Cells of C++ for IPython's kernel: `%%cpp`, and in the kernel "C++ (acc)" every cell that does not begin with %, ! or ?."""


def load_ipython_extension(shell):
    from . import extension

    extension.load(shell)
