# SPDX-License-Identifier: Apache-2.0
import socket

RESERVED = []


def free_port():
    """A port that stays bound, so that no other program gets it. Stores can listen on it, since they set SO_REUSEADDR."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("", 0))
    RESERVED.append(reserved)
    return reserved.getsockname()[1]
