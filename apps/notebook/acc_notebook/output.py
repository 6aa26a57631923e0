# SPDX-License-Identifier: Apache-2.0
"""What C++ and the processes that it starts write to the descriptors 1 and 2 goes to Python's streams, whole before a cell
ends."""

import array
import codecs
import contextlib
import fcntl
import os
import select
import sys
import termios
import threading


class Stream:
    """A pipe that stands for a descriptor while a cell runs. A process that outlives the cell may write to it later."""

    def __init__(self, descriptor, name):
        self.descriptor = descriptor
        self.name = name
        self.reader, self.writer = os.pipe()
        self.shown = threading.Condition()  # held from reading to showing
        threading.Thread(target=self.show, daemon=True).start()

    def show(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            select.select([self.reader], [], [])
            with self.shown:
                getattr(sys, self.name).write(decoder.decode(os.read(self.reader, 1 << 16)))
                self.shown.notify_all()

    def take(self):
        self.before = os.dup(self.descriptor)
        os.dup2(self.writer, self.descriptor)

    def give_back(self):
        os.dup2(self.before, self.descriptor)
        os.close(self.before)
        with self.shown:
            while self.waiting():
                self.shown.wait()

    def waiting(self):
        """Bytes in the pipe."""
        count = array.array("i", [0])
        fcntl.ioctl(self.reader, termios.FIONREAD, count)
        return count[0]


class Output:
    def __init__(self):
        self.streams = [Stream(1, "stdout"), Stream(2, "stderr")]

    @contextlib.contextmanager
    def shown(self):
        """All that is written meanwhile has been shown at the end."""
        for stream in self.streams:
            stream.take()
        try:
            yield
        finally:
            for stream in self.streams:
                stream.give_back()
