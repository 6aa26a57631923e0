# SPDX-License-Identifier: Apache-2.0
"""The fork server of a notebook: imports what the notebook has imported, never uses a GPU, and starts the jobs of all calls.

    python -u notebook_server.py CONTROL CALLER

CONTROL is a socket to the notebook (see messages.py), CALLER a pidfd of its process. For each job this process forks one that
forks a copy of itself and becomes `acc notebook-job`: the copy is then acc's own child, has all imports, and becomes the fork
server of that job when acc asks for it. When the notebook has ended, acc ends the workers, and this process ends after it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
from typing import Any, Iterator, NoReturn

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from acc import inherited, messages  # noqa: E402

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
NVML_VARIABLE = "PYTORCH_NVML_BASED_CUDA_CHECK"


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, *map(ctypes.c_ulong, (value, 0, 0, 0)))


def wait_for(descriptors: list[int]) -> list[int]:
    """Those that are ready. select() takes none above 1023, and this process has the numbers of the notebook."""
    events = select.poll()
    for descriptor in descriptors:
        events.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in events.poll()]


def count_threads() -> int:
    """Those that outlive a fork: OpenBLAS ends its own before one."""
    if len(os.listdir("/proc/self/task")) > 1:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return len(os.listdir("/proc/self/task"))


def import_modules(names: list[str]) -> str:
    """Returns the module that has started threads, which no fork has; empty: none."""
    for name in names:
        # A worker that needs it shows the error.
        with contextlib.suppress(BaseException):
            importlib.import_module(name)
        if count_threads() > 1:
            return name
    return ""


def take_place(folder: str, environment: dict[str, str]) -> None:
    """What a module reads when it is imported is that of the notebook now, not of its first call."""
    os.environ.clear()
    os.environ.update(environment)
    with contextlib.suppress(OSError):  # the job that follows says it
        os.chdir(folder)


@contextlib.contextmanager
def lifeline(caller: int) -> Iterator[None]:
    """Nothing else ends an import with the notebook. PR_SET_PDEATHSIG of this process would end it with the thread of the
    notebook that has started it."""
    server = os.getpid()
    watcher = os.fork()
    if watcher == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == server:
            wait_for([caller])
            os.kill(server, signal.SIGKILL)
        os._exit(0)
    try:
        yield
    finally:
        os.kill(watcher, signal.SIGKILL)
        os.waitpid(watcher, 0)


def prepare(request: dict[str, Any], caller: int) -> dict[str, Any]:
    sys.path[:] = request["path"]
    take_place(request["folder"], request["environment"])
    before = os.environ.get(NVML_VARIABLE)
    os.environ[NVML_VARIABLE] = "1"  # torch.cuda.is_available() then leaves the driver alone
    with lifeline(caller):
        refused = import_modules(request["modules"])
    if before is None:
        del os.environ[NVML_VARIABLE]
    else:
        os.environ[NVML_VARIABLE] = before
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the pages that all share
    return {"refused": refused}


def become_server(control: socket.socket) -> None:
    """In a copy of this process: runs fork_server.py as `python -c` would, when acc sends what that would get."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    files = messages.receive_files(control)
    if not files:
        os._exit(0)
    request, *streams = files
    count, *texts = messages.read_all(request).split(b"\0")[:-1]
    command = [os.fsdecode(word) for word in texts[: int(count)]]
    variables = dict(text.split(b"=", 1) for text in texts[int(count):])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for file in files:
        os.close(file)
    control.close()
    os.environ.clear()
    os.environb.update(variables)
    sys.argv = ["-c", *command[command.index("-c") + 2:]]
    sys.path.insert(0, "")
    program = compile(messages.read_all(1), "<acc fork server>", "exec")
    exec(program, {"__name__": "acc_fork_server", "GIVEN_VARIABLES": variables})
    sys.exit()


def refuse(error: Exception) -> NoReturn:
    os.write(2, f"acc: {error}\n".encode())
    os._exit(127)


def become_acc(request: dict[str, Any], caller: int) -> NoReturn:
    """In the process of a job, which gets a copy of this Python."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    python = os.fork()
    if python == 0:
        ours.close()
        os.close(caller)
        become_server(theirs)
    descriptors = [caller, python, ours.fileno(), int(request["announce"])]
    for descriptor in (caller, ours.fileno()):
        os.set_inheritable(descriptor, True)
    try:
        os.execve(request["acc"], ["acc", "notebook-job", *map(str, descriptors), *request["words"]], request["environment"])
    except OSError as error:
        refuse(error)


def start(request: dict[str, Any], streams: list[int], control: socket.socket, caller: int) -> int:
    """The process id of the job."""
    # acc takes an interrupt that comes before it runs: this Python would forget it when it becomes acc.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    job = os.fork()
    if job != 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        return job
    control.close()
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    try:
        # Before the fork from which the workers have theirs.
        os.chdir(request["folder"])
        inherited.take(request["inherited"])
    except (OSError, ValueError) as error:
        refuse(error)
    become_acc(request, caller)


def kill_leftovers() -> None:
    """What jobs have left is a child of this process."""
    for _ in range(1000):
        with open("/proc/self/task/%d/children" % os.getpid()) as file:
            children = [int(word) for word in file.read().split()]
        if not children:
            return
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def wait(job: int, control: socket.socket) -> int:
    """Passes the notebook's signals on until the job has ended; its exit code, or minus the signal."""
    ended = os.pidfd_open(job) if hasattr(os, "pidfd_open") else ctypes.CDLL(None).syscall(434, job, 0)
    watched = [ended, control.fileno()]
    while ended not in wait_for(watched):
        request, _ = messages.receive(control)
        if request is None:  # acc sees for itself that the notebook has ended
            watched.remove(control.fileno())
        else:
            os.kill(job, request["signal"])
    os.close(ended)
    status = os.waitpid(job, 0)[1]
    with contextlib.suppress(OSError):
        kill_leftovers()
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def serve(control: socket.socket, caller: int) -> None:
    while caller not in wait_for([control.fileno(), caller]):
        request, files = messages.receive(control)
        if request is None:
            return
        if "modules" in request:
            answer = prepare(request, caller)
        elif "words" in request:
            job = start(request, files, control, caller)
            for file in files:
                os.close(file)
            answer = {"exit_code": wait(job, control)}
        else:
            continue  # a signal that came when the job had ended
        with contextlib.suppress(OSError):
            messages.send(control, answer)


if __name__ == "__main__":
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
    os._exit(0)  # to take the modules down would take seconds
