# SPDX-License-Identifier: Apache-2.0
"""One job of a notebook: its fork server, what its workers write, and what became of it."""

from __future__ import annotations

import atexit
import codecs
import contextlib
import ctypes
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
from types import FrameType
from typing import Any, Callable, Iterator

from acc import inherited, messages, program

_FOLDER = os.path.dirname(os.path.abspath(__file__))


class WorkerError(RuntimeError):
    """A worker failed, and left no exception that could be raised again."""


class WorkerTraceback(Exception):
    """The cause of an exception that a worker raised: where that was."""

    def __str__(self) -> str:
        return "\n" + self.args[0]


def _own_pidfd() -> int:
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(os.getpid())
    return ctypes.CDLL(None).syscall(434, os.getpid(), 0)  # Python 3.8


class Relay:
    """Shows what workers write through a stream of this process that does not lead to its descriptor, as in Jupyter."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.source, self.entrance = os.pipe()
        os.set_blocking(self.source, False)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def begin(self) -> None:
        """The workers alone write from here on."""
        os.close(self.entrance)
        self.entrance = -1

    def close(self) -> None:
        for descriptor in (self.source, self.entrance):
            if descriptor >= 0:
                os.close(descriptor)

    def forward(self) -> bool:
        """Returns false when there is nothing more now."""
        try:
            content = os.read(self.source, 1 << 16)
        except BlockingIOError:
            return False
        self.stream.write(self.decoder.decode(content, final=not content))
        self.stream.flush()
        return bool(content)

    def finish(self) -> None:
        while self.forward():
            pass


class Interrupts:
    """Takes SIGINT of this process for `on_interrupt` until the end of the block, and then passes one on to who had it."""

    def __init__(self, on_interrupt: Callable[[], None]) -> None:
        self.on_interrupt = on_interrupt
        self.taken = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) != signal.SIG_IGN
        self.frame: FrameType | None = None
        self.came = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.came, self.frame = True, frame
        self.on_interrupt()

    def __enter__(self) -> Interrupts:
        if self.taken:
            self.before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if not self.taken:
            return
        signal.signal(signal.SIGINT, self.before)
        if self.came and callable(self.before):
            self.before(signal.SIGINT, self.frame)
        elif self.came:
            raise KeyboardInterrupt


class Server:
    """The fork server of this process (notebook_server.py). It ends with this process."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.ExitStack() as files:
            caller = _own_pidfd()
            files.callback(os.close, caller)
            command = [sys.executable, "-u", os.path.join(_FOLDER, "notebook_server.py"), str(theirs.fileno()), str(caller)]
            self.process = subprocess.Popen(command, pass_fds=(theirs.fileno(), caller), start_new_session=True,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.owner = os.getpid()
        self.imported: set[str] = set()
        self.is_busy = False

    def close(self) -> None:
        if self.is_busy:  # with the call of a daemon thread, which ends with this process
            self.process.kill()
        self.control.close()
        self.process.wait()

    def _answer(self) -> dict[str, Any]:
        answer, _ = messages.receive(self.control)
        if answer is None:
            raise ConnectionError
        return answer

    @contextlib.contextmanager
    def _kept_in_step(self) -> Iterator[None]:
        """A server whose answer was not waited for ends: it would be taken for the next one."""
        self.is_busy = True
        try:
            yield
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.is_busy = False

    def prepare(self, modules: list[str]) -> str:
        """Imports them, once. Returns one that has started threads, after which this server is of no use."""
        new = [name for name in modules if name not in self.imported]
        if not new:
            return ""
        with self._kept_in_step():
            path = [folder for folder in sys.path if isinstance(folder, str)]  # Python ignores others, too
            messages.send(self.control, {"modules": new, "path": path, "folder": os.getcwd(), "environment": dict(os.environ)})
            self.imported.update(new)
            return self._answer()["refused"]

    def _interrupt(self) -> None:
        with contextlib.suppress(OSError):
            messages.send(self.control, {"signal": signal.SIGINT})

    def run(self, request: dict[str, Any]) -> int:
        """Runs `acc notebook-job` and shows its output. Returns its exit code, or minus the signal that ended it."""
        with _streams() as (relays, descriptors), Interrupts(self._interrupt) as interrupts, self._kept_in_step():
            messages.send(self.control, request, *descriptors)
            if interrupts.came:  # before the request, when there was no job that it could end
                self._interrupt()
            for relay in relays:
                relay.begin()
            self._forward({relay.source: relay for relay in relays})
            return self._answer()["exit_code"]

    def _forward(self, relays: dict[int, Relay]) -> None:
        """Until there is an answer."""
        control, events = self.control.fileno(), select.poll()  # select() takes no descriptor above 1023
        for descriptor in (control, *relays):
            events.register(descriptor, select.POLLIN)
        while control not in (ready := [descriptor for descriptor, _ in events.poll()]):
            for source in ready:
                if not relays[source].forward():
                    events.unregister(source)
        for relay in relays.values():
            relay.finish()


@contextlib.contextmanager
def _streams() -> Iterator[tuple[list[Relay], list[int]]]:
    """Standard input, output and error of a job, and the relays that are needed for that."""
    with contextlib.ExitStack() as files:
        nothing = os.open(os.devnull, os.O_RDONLY)
        files.callback(os.close, nothing)
        relays: list[Relay] = []
        descriptors = [nothing]
        for number, stream, original in ((1, sys.stdout, sys.__stdout__), (2, sys.stderr, sys.__stderr__)):
            stream.flush()
            if stream is original:
                descriptors.append(number)
            else:
                relays.append(Relay(stream))
                files.callback(relays[-1].close)
                descriptors.append(relays[-1].entrance)
        yield relays, descriptors


_server: Server | None = None
_refused: set[str] = set()
_turn = threading.Lock()


def close() -> None:
    """Ends the fork server, if there is one of this process; the next job starts another."""
    global _server
    if _server is not None and _server.owner == os.getpid():
        _server.close()
    _server = None


atexit.register(close)


def _prepared_server(modules: list[str]) -> Server:
    global _server
    while True:
        if _server is None or _server.owner != os.getpid() or _server.process.poll() is not None:
            _server = Server()
        refused = _server.prepare([name for name in modules if name not in _refused])
        if not refused:
            return _server
        _refused.add(refused)
        close()


def _run(request: dict[str, Any], modules: list[str]) -> int:
    try:
        server = _prepared_server(modules)
        request["words"][:0] = ["--preload", ",".join(sorted(server.imported)) or "pickle"]
        return server.run(request)
    except (ConnectionError, BrokenPipeError):
        close()
        raise WorkerError("the process that starts the workers was killed; they have ended") from None


class Job:
    """What a job of `workers` leaves, in memory: no file is left, whoever is killed."""

    def __init__(self, call: bytes, workers: int) -> None:
        with contextlib.ExitStack() as files:

            def file(content: bytes = b"") -> int:
                descriptor = messages.memory_file(content)
                files.callback(os.close, descriptor)
                return descriptor

            try:
                self.call, self.events = file(call), file()
                self.results = [file() for _ in range(workers)]
            except OSError as error:
                raise OSError(error.errno, f"{workers} workers need a file each: {error.strerror}") from None
            self.files = files.pop_all()  # they stay open

    @staticmethod
    def _path(file: int) -> str:
        return f"/proc/{os.getpid()}/fd/{file}"

    def run(self, flags: list[str], modules: list[str], announce: bool) -> list[Any]:
        """The results by rank. Throws what the worker raised that failed first, or WorkerError."""
        path = program.find()
        if path is None:
            raise FileNotFoundError(program.missing_text())
        words = [*flags, "--python", sys.executable, "--event-log", self._path(self.events),
                 os.path.join(_FOLDER, "notebook_worker.py"), *map(self._path, [self.call, *self.results])]
        request = {"acc": path, "words": words, "folder": os.getcwd(), "environment": dict(os.environ),
                   "inherited": inherited.read(), "announce": announce}
        with _turn:
            code = _run(request, modules)
        raise_failure(code, events_in(messages.read_all(self.events)), self._record)
        return [self._result(local_rank) for local_rank in range(len(self.results))]

    def _record(self, local_rank: int) -> tuple[Any, ...]:
        try:
            return pickle.loads(messages.read_all(self.results[local_rank]))
        except Exception:  # there is none, or the worker was killed while it wrote it
            return ()

    def _result(self, local_rank: int) -> Any:
        record = self._record(local_rank)
        return pickle.loads(record[1]) if record else None  # it has called sys.exit()

    def close(self) -> None:
        self.files.close()


def events_in(log: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


def _has_started_here(cause: dict[str, Any], events: list[dict[str, Any]]) -> bool:
    """By its rank: the nodes of a job may be on one host."""
    worker = {"event": "worker_started", "rank": cause["rank"], "attempt": cause["attempt"]}
    return any(worker.items() <= event.items() for event in events)


def _ending(cause: dict[str, Any]) -> str:
    """How a worker ended that left no exception."""
    if cause["message"]:
        return cause["message"]
    text = f"was ended by {cause['signal']}" if cause["signal"] else f"ended with exit code {cause['exit_code']}"
    if cause["out_of_memory"]:
        text += ": there was no memory left"
    return text + (f"\n{cause['last_words'].rstrip()}" if cause["last_words"] else "")


def raise_failure(code: int, events: list[dict[str, Any]], record_of: Callable[[int], tuple[Any, ...]]) -> None:
    """Raises what the events of this node tell of a job that did not end well. `record_of(local_rank)` is what that worker of
    this node has left."""
    finished = next((event for event in reversed(events) if event["event"] == "finished"), {})
    cause = finished.get("cause")
    if cause is not None:
        is_here = _has_started_here(cause, events)
        worker = f"rank {cause['rank']}" + ("" if is_here else f" on host {cause['host']}")
        record = record_of(cause["local_rank"]) if is_here else ()
        error = _exception_in(record) or WorkerError(f"{worker} {_ending(cause)}")
        with contextlib.suppress(AttributeError):  # its class may have one that cannot be set
            error.rank = cause["rank"]  # type: ignore[attr-defined]
        trace = record[2] if record and record[0] == "raised" else cause["traceback"]
        raise error from (WorkerTraceback(f"{worker}:\n{trace}") if trace else None)
    if finished.get("stop_signal"):
        raise WorkerError(f"the workers were stopped by {finished['stop_signal']}")
    if code < 0:
        raise WorkerError(f"the process that runs the workers was ended by signal {-code}; they have ended")
    if code != 0:
        raise WorkerError(f"acc ended with exit code {code}, and says above why")


def _exception_in(record: tuple[Any, ...]) -> BaseException | None:
    if not record or record[0] != "raised" or not record[1]:
        return None
    try:
        return pickle.loads(record[1])
    except Exception:
        return None
