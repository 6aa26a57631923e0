# SPDX-License-Identifier: Apache-2.0
"""The kernel "C++ (acc)": IPython's, whose cells are C++ (--ext=acc_notebook)."""

import inspect

from ipykernel import ipkernel, kernelapp


class Kernel(ipkernel.IPythonKernel):
    implementation = "acc"
    # For the front end: how to highlight cells, and the name of an exported file.
    language_info = {
        "name": "c++",
        "mimetype": "text/x-c++src",
        "codemirror_mode": "text/x-c++src",
        "pygments_lexer": "cpp",
        "file_extension": ".cpp",
        "version": "20",
    }
    banner = "C++ (acc); %%python makes a cell Python"

    # Of Python's names none is one of C++.
    async def do_complete(self, code, cursor_pos):
        if code.lstrip().startswith("%"):
            reply = super().do_complete(code, cursor_pos)
            return await reply if inspect.isawaitable(reply) else reply
        return {"matches": [], "cursor_start": cursor_pos, "cursor_end": cursor_pos, "metadata": {}, "status": "ok"}

    async def do_inspect(self, code, cursor_pos, detail_level=0, omit_sections=()):
        return {"status": "ok", "found": False, "data": {}, "metadata": {}}

    async def do_is_complete(self, code):
        return {"status": "unknown"}


if __name__ == "__main__":
    # What C++ writes the extension shows.
    kernelapp.launch_new_instance(kernel_class=Kernel, capture_fd_output=False)
