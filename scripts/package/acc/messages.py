# SPDX-License-Identifier: Apache-2.0
"""Messages between a notebook and its fork server: one byte with open files, the first of which has a text in JSON."""

from __future__ import annotations

import array
import json
import os
import socket
from typing import Any

MAX_FILES = 8


def memory_file(content: bytes = b"") -> int:
    """A descriptor of a file that is only in memory."""
    file = os.memfd_create("acc-notebook", os.MFD_CLOEXEC)
    unwritten = memoryview(content)
    while unwritten:
        unwritten = unwritten[os.write(file, unwritten):]
    return file


def read_all(file: int) -> bytes:
    """From its beginning, wherever its writer is."""
    with open(f"/proc/self/fd/{file}", "rb") as content:
        return content.read()


def send_files(to: socket.socket, files: list[int]) -> None:
    to.sendmsg([b"m"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])


def receive_files(source: socket.socket) -> list[int]:
    """Empty: the other side has ended."""
    files = array.array("i")
    content, ancillary, _, _ = source.recvmsg(1, socket.CMSG_SPACE(MAX_FILES * files.itemsize), socket.MSG_CMSG_CLOEXEC)
    if content:
        for _, _, data in ancillary:
            files.frombytes(data)
    return list(files)


def send(to: socket.socket, message: dict[str, Any], *files: int) -> None:
    """Throws OSError when the other side has ended."""
    text = memory_file(json.dumps(message).encode())
    try:
        send_files(to, [text, *files])
    finally:
        os.close(text)


def receive(source: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The message and its files; None: the other side has ended."""
    files = receive_files(source)
    if not files:
        return None, []
    text = read_all(files[0])
    os.close(files[0])
    return json.loads(text), files[1:]
