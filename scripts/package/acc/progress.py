# SPDX-License-Identifier: Apache-2.0
"""How far this worker is, for `acc ps` and hang reports: it writes the page of memory that acc names in ACC_PROGRESS (its layout is
in lib/acc/base/progress_page.hpp). Without acc nothing happens. Nothing here waits, and a page that cannot be written is no error.
"""

import contextlib
import mmap
import os
import struct
import sys
import threading
import time

SECTIONS = ("other", "data", "forward", "backward", "communication", "optimizer", "saving", "evaluation")
BYTES = 4096
PID, START, SEQUENCE, STEPS, STEP_ENDED, STEP_DURATION, SAMPLES, TOKENS, LOSS, SECTION, SECTION_BEGAN, SPENT = range(1, 13)
COLLECTIVES, COLLECTIVE_BEGAN, COLLECTIVE_NAME = range(28, 31)
NAME_WORDS = 4
STEP_SCOPE = 34
BACKWARDS = 35
SPENT_IN_STEPS = 36
OF_PROCESS, OF_TRAINING, OF_ANOTHER_TRAINING = range(3)
VERSION = struct.unpack("=Q", b"ACCPAGE1")[0]
NO_LOSS = 0x7FF8ACC000000000
# All that happens in one counts as it.
WHOLE = (SECTIONS.index("saving"), SECTIONS.index("evaluation"))


def _start_of(pid):
    """Field 22 of /proc/PID/stat; the name in parentheses may contain anything. 0: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except FileNotFoundError:
        return 0


def _is_free(path):
    """Whether it is the page of a process that has ended."""
    with open(path, "rb") as file:
        magic, pid, start = struct.unpack("=QQQ", file.read(24))
    return magic == VERSION and _start_of(pid) != start


class _Page:
    """The words of this process's page; none where there is no launcher, or the page is another process's."""

    def __init__(self):
        self.words = None
        self.writer = None
        # Whether the script itself says when a step has ended; then nobody counts for it.
        self.has_own_steps = False
        with contextlib.suppress(OSError, ValueError, struct.error):
            self._make(os.environ.get("ACC_PROGRESS", ""))

    def _make(self, path):
        if not path:
            return
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.dirname(path), 0o700)
        # Whoever makes it owns it, as long as it lives.
        if os.path.exists(path) and _is_free(path):
            os.unlink(path)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(file, 0, BYTES)
            words = memoryview(mmap.mmap(file, BYTES)).cast("Q")
        finally:
            os.close(file)
        words[PID], words[START], words[LOSS] = os.getpid(), _start_of("self"), NO_LOSS
        words[SECTION_BEGAN] = time.monotonic_ns()
        words[0] = VERSION
        self.words = words

    def for_writing(self):
        """The words, for the first thread that asks for them."""
        if self.words is None:
            return None
        thread = threading.get_ident()
        if self.writer is None:
            self.writer = thread
        return self.words if self.writer == thread else None

    def enter(self, words, section):
        now = time.monotonic_ns()
        words[SEQUENCE] |= 1
        words[SPENT + words[SECTION]] += now - words[SECTION_BEGAN]
        words[SECTION] = section
        words[SECTION_BEGAN] = now
        words[SEQUENCE] += 1

    def add_step(self, words, global_step=None):
        now = time.monotonic_ns()
        if global_step is None:
            words[STEPS] += 1
        else:
            # A training that is behind is another one.
            goes_back = words[STEP_SCOPE] == OF_TRAINING and global_step < words[STEPS]
            words[STEP_SCOPE] = max(words[STEP_SCOPE], OF_ANOTHER_TRAINING if goes_back else OF_TRAINING)
            words[STEPS] = global_step
        words[STEP_DURATION] = now - words[STEP_ENDED] if words[STEP_ENDED] else 0
        words[STEP_ENDED] = now
        words[SPENT_IN_STEPS : SPENT_IN_STEPS + len(SECTIONS)] = words[SPENT : SPENT + len(SECTIONS)]


_page = None


def _own_page():
    global _page
    if _page is not None:
        return _page
    # The module that --watch has loaded writes the page already.
    watching = sys.modules.get("_acc_progress")
    if watching is not None and watching.__dict__ is not globals():
        return watching._own_page()
    _page = _Page()
    return _page


def _forget():
    """A fork has a worker's page, but is not the worker."""
    global _page
    _page = None


os.register_at_fork(after_in_child=_forget)


def _as_word(number):
    return struct.unpack("=Q", struct.pack("=d", number))[0]


def step(*, global_step=None, samples=0, tokens=0, loss=None):
    """A training step has ended, in which this process has read `samples` and `tokens`. `global_step` is how many have ended, those
    before a restart included. A loss on a GPU is left out: to read it would wait for the GPU."""
    page = _own_page()
    words = page.for_writing()
    if words is None:
        return
    loss = None if loss is None or getattr(loss, "is_cuda", False) else float(loss)
    global_step = None if global_step is None else max(0, int(global_step))
    samples, tokens = max(0, int(samples)), max(0, int(tokens))
    words[SEQUENCE] |= 1  # an odd number, also after an exception here, until the next one has been written
    if not page.has_own_steps:
        page.has_own_steps = True
        words[STEPS] = words[STEP_ENDED] = 0
    page.add_step(words, global_step)
    words[SAMPLES] += samples
    words[TOKENS] += tokens
    if loss is not None:
        words[LOSS] = _as_word(loss)
    words[SEQUENCE] += 1


@contextlib.contextmanager
def section(name):
    """`with acc.section("data"):` says what this worker is doing, until the end of the block; then it is where it was before."""
    if name not in SECTIONS:
        raise ValueError(f"acc.section: {name!r} is none of {', '.join(SECTIONS)}")
    before = begin(SECTIONS.index(name))
    try:
        yield
    finally:
        end(before)


# What follows is for the hooks of --watch (lib/acc/launch/watch_hook.py), not for scripts.

OTHER, DATA, BACKWARD, COMMUNICATION, OPTIMIZER = map(SECTIONS.index, ("other", "data", "backward", "communication", "optimizer"))


def begin(section):
    """A section begins. Returns what its end needs; None if nothing of it is written."""
    page = _own_page()
    words = page.for_writing()
    before = None if words is None else words[SECTION]
    if before is None or before in WHOLE:
        return None
    page.enter(words, section)
    return before


def end(before):
    """A section ends; `before` is what its begin returned."""
    if before is None:
        return
    page = _own_page()
    words = page.for_writing()
    if words is not None:
        page.enter(words, before)


def leave(section):
    """A section has ended, if it is not over already."""
    page = _own_page()
    words = page.for_writing()
    if words is not None and words[SECTION] == section:
        page.enter(words, OTHER)


def is_worker():
    """Whether this process owns its rank's page."""
    return _own_page().words is not None


def is_unclaimed():
    """Whether no thread has written yet."""
    return _own_page().writer is None


def announce():
    """The rank is followed, and has ended no step yet: leaves a page that is free for the first process that writes."""
    # Not os.environ: a fork server watches who reads it, and has no page.
    path = os.environb.get(b"ACC_PROGRESS")
    if not path:
        return
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.dirname(path), 0o700)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, struct.pack("=QQQ", VERSION, 0, 1).ljust(BYTES, b"\0"))
        finally:
            os.close(file)


def count_step():
    """A step has ended, of a script that does not say so."""
    page = _own_page()
    words = page.for_writing()
    if words is None or page.has_own_steps:
        return
    words[SEQUENCE] |= 1
    page.add_step(words)
    words[SEQUENCE] += 1


def count_backward():
    """A backward has ended well: a script whose steps nobody counts trains nevertheless."""
    words = _own_page().for_writing()
    if words is not None:
        words[SEQUENCE] |= 1
        words[BACKWARDS] += 1
        words[SEQUENCE] += 1


def show_loss(loss):
    page = _own_page()
    words = page.for_writing()
    if words is None or page.has_own_steps:
        return
    words[SEQUENCE] |= 1
    words[LOSS] = _as_word(loss)
    words[SEQUENCE] += 1


def collective_name(name):
    """The name as the words of a page."""
    return struct.unpack(f"={NAME_WORDS}Q", name.encode()[: 8 * NAME_WORDS - 1].ljust(8 * NAME_WORDS, b"\0"))


def begin_collective(name):
    """The worker is in a collective, in communication. Returns what its end needs; None for one that another is made of."""
    page = _own_page()
    words = page.for_writing()
    if words is None or words[COLLECTIVE_BEGAN] != 0:
        return None
    words[SEQUENCE] |= 1
    for number, word in enumerate(name, COLLECTIVE_NAME):
        words[number] = word
    words[COLLECTIVES] += 1
    words[COLLECTIVE_BEGAN] = time.monotonic_ns()
    words[SEQUENCE] += 1
    return (begin(COMMUNICATION),)


def end_collective(begun):
    """The collective is over; `begun` is what its begin returned."""
    if begun is None:
        return
    words = _own_page().for_writing()
    if words is None:
        return
    end(*begun)
    words[SEQUENCE] |= 1
    words[COLLECTIVE_BEGAN] = 0
    words[SEQUENCE] += 1
