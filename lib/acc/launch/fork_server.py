# SPDX-License-Identifier: Apache-2.0
"""The fork server of `acc launch --preload`: imports modules once, and becomes a worker for each request of acc.

    python [-u] -c "exec(this file)" MODULES VARIABLES SET_MEMPOLICY [-u] [-m] PROGRAM [ARGUMENT...]

MODULES and VARIABLES, those that each worker has for itself, are separated by commas; SET_MEMPOLICY is the number of that
system call. Descriptor 0 is a SOCK_SEQPACKET to acc, on which this program says `import MODULE` and at last `ready`, or
`refused` and why workers cannot be forked. Then each request is one byte with five descriptors: a file (see Request), the
standard streams of the worker, and a channel. On the channel the worker says its process id when it is acc's own child and
leads its own session, and it begins when acc has answered. One that cannot run closes the channel without a word: acc then
starts it without this program, and that shows the reason.
"""

import builtins
import ctypes
import gc
import importlib
import importlib.machinery
import io
import os
import pkgutil
import runpy
import signal
import socket
import struct
import sys
import types

OWN_FILE = sys._getframe().f_code.co_filename
NVML_VARIABLE = "PYTORCH_NVML_BASED_CUDA_CHECK"
libc = ctypes.CDLL(None, use_errno=True)


def prctl(option, *arguments):
    """prctl(2), for what a system may refuse without harm."""
    libc.prctl(option, *map(ctypes.c_ulong, (arguments + (0, 0, 0, 0))[:4]))


def describe(error):
    lines = str(error).strip().splitlines()
    return type(error).__name__ + (f": {lines[0]}" if lines else "")


class Program:
    """What the workers run: the script, folder, archive or module after the options of a command line of Python."""

    def __init__(self, command):
        self.place = 1 + (command[1] == "-u")
        self.is_module = command[self.place] == "-m"
        self.place += self.is_module
        self.name = command[self.place]
        self.is_package = not self.is_module and pkgutil.get_importer(self.name) is not None
        self.path = self.name
        if sys.version_info >= (3, 9):
            self.path = os.path.join(os.getcwd(), self.name)

    def arguments(self, command):
        """sys.argv of a worker with this command line."""
        return ["-m" if self.is_module else self.name, *command[self.place + 1:]]

    def set_search_path(self):
        """In the place of the '' of `python -c`."""
        if self.is_module:
            first = os.getcwd()
        else:
            first = self.path if self.is_package else os.path.dirname(os.path.realpath(self.path))
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = first
        elif self.is_package:
            sys.path.insert(0, first)

    def make_main(self):
        """A new __main__ as the interpreter makes it."""
        main = types.ModuleType("__main__")
        if sys.version_info < (3, 14):
            main.__annotations__ = {}
        main.__builtins__ = builtins
        main.__loader__ = importlib.machinery.BuiltinImporter
        if not self.is_module and not self.is_package:
            loader = "SourcelessFileLoader" if self.path.endswith(".pyc") else "SourceFileLoader"
            main.__loader__ = getattr(importlib.machinery, loader)("__main__", self.path)
            main.__file__ = self.path
            if sys.version_info < (3, 15):
                main.__cached__ = None
        sys.modules["__main__"] = main

    def run(self):
        main = sys.modules["__main__"]
        if self.is_module:
            runpy._run_module_as_main(self.name)
        elif self.is_package:
            runpy._run_module_as_main("__main__", False)
        elif self.path.endswith(".pyc"):
            exec(main.__loader__.get_code("__main__"), main.__dict__)
        else:
            exec(compile(self.read(), self.path, "exec", dont_inherit=True), main.__dict__)

    def read(self):
        try:
            with io.open_code(self.path) as file:
                return file.read()
        except OSError as error:
            reason = f"[Errno {error.errno}] {error.strerror}"
            sys.stderr.write(f"{sys.executable}: can't open file {self.path!r}: {reason}\n")
            sys.exit(2)


class WatchedEnvironment(type(os.environ)):
    """os.environ, noting the first of the workers' own variables that is read."""

    names = frozenset()
    read = None

    def __getitem__(self, name):
        if WatchedEnvironment.read is None and name in WatchedEnvironment.names:
            WatchedEnvironment.read = name
        return super().__getitem__(name)


def threads():
    """Those beside the first, but for the one of jemalloc, which is prepared for forks (pyarrow brings it)."""
    found = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/comm") as file:
                name = file.read().strip()
        except OSError:  # it has ended
            continue
        if int(thread) != os.getpid() and name != "jemalloc_bg_thd":
            found.append(name)
    return found


def count_threads():
    """The threads that outlive a fork: OpenBLAS ends its own before one, and starts others when it needs them."""
    if threads():
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return len(threads())


def uses_gpu():
    """Whether a driver is initialized, which no forked process can use then."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:  # nothing has loaded it
        driver = None
    not_initialized = 3
    if driver is not None and driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != not_initialized:
        return True
    torch = sys.modules.get("torch")
    devices = [getattr(torch, name, None) for name in ("cuda", "xpu")]
    return any(hasattr(device, "is_initialized") and device.is_initialized() for device in devices)


def has_children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def sockets():
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:  # the descriptor of the listing
            pass
    return {target for target in found if target.startswith("socket:")}


def find_obstacle(own_sockets):
    """What has been done here that forked processes cannot take over; empty: nothing."""
    if WatchedEnvironment.read is not None:
        return f"reads {WatchedEnvironment.read}, which each worker has for itself"
    if uses_gpu():
        return "initializes the GPU"
    if has_children():
        return "starts a process"
    if sockets() - own_sockets:
        return "opens a socket"
    threads = count_threads()
    return f"starts {threads} thread{'s' if threads > 1 else ''}" if threads else ""


def import_all(modules, variables, say):
    """Why workers cannot be forked; empty: they can."""
    usual = type(os.environ)
    inherited = os.environ.get(NVML_VARIABLE)
    os.environ[NVML_VARIABLE] = "1"  # torch.cuda.is_available() then leaves the driver alone
    WatchedEnvironment.names = frozenset(variables)
    os.environ.__class__ = WatchedEnvironment
    own_sockets = sockets()
    suspect = ""
    for module in modules:
        say(f"import {module}")
        try:
            importlib.import_module(module)
        except BaseException as error:
            return f"{module} cannot be imported ({describe(error)})"
        if not suspect and find_obstacle(own_sockets):
            suspect = module
    os.environ.__class__ = usual
    if inherited is None:
        del os.environ[NVML_VARIABLE]
    else:
        os.environ[NVML_VARIABLE] = inherited
    # Looks again, for some threads have ended.
    obstacle = find_obstacle(own_sockets) if suspect else ""
    return f"importing {suspect} {obstacle}" if obstacle else ""


class Request:
    """What a worker gets: texts, each with a NUL at its end, the numbers of CPUs and NUMA nodes separated by commas."""

    def __init__(self, file):
        size = os.fstat(file).st_size
        parent, cpus, nodes, arguments, *texts = os.pread(file, size, 0).split(b"\0")[:-1]
        self.parent = int(parent)
        self.cpus = [int(cpu) for cpu in cpus.split(b",") if cpu]
        self.numa_nodes = [int(node) for node in nodes.split(b",") if node]
        self.command = texts[:int(arguments)]
        self.variables = texts[int(arguments):]


def parse_variables(texts):
    return dict(text.split(b"=", 1) for text in texts if b"=" in text)


def find_changes(before):
    """What the interpreter and the imports have made of these variables; None: they have removed one."""
    now = dict(os.environb)
    return {name: now.get(name) for name in before.keys() | now.keys() if now.get(name) != before.get(name)}


def bind(request, set_mempolicy):
    """As BindingMasks::apply()."""
    if not request.cpus:
        return
    os.sched_setaffinity(0, request.cpus)
    words = [0] * (max(request.numa_nodes, default=0) // 64 + 1)
    for node in request.numa_nodes:
        words[node // 64] |= 1 << node % 64
    preferred, preferred_many = 1, 5
    libc.syscall(ctypes.c_long(set_mempolicy),
                 ctypes.c_long(preferred_many if len(request.numa_nodes) > 1 else preferred),
                 (ctypes.c_ulong * len(words))(*words), ctypes.c_ulong(64 * len(words) + 1))


def show_command(request):
    """Lets /proc, and so ps, show the command and the environment of the worker."""
    words, variables = (b"".join(text + b"\0" for text in texts) for texts in (request.command, request.variables))
    show_command.kept = ctypes.create_string_buffer(words + variables)
    begin = ctypes.addressof(show_command.kept)
    middle, end = begin + len(words), begin + len(words) + len(variables)
    with open("/proc/self/stat") as file:
        stat = file.read().rsplit(")", 1)[1].split()
    # start_code, end_code, start_data, end_data, start_brk, start_stack of proc(5)
    code, end_code, data, end_data, start_brk, stack = (int(stat[field - 3]) for field in (26, 27, 45, 46, 47, 28))
    libc.sbrk.restype = ctypes.c_void_p
    pr_set_mm, pr_set_mm_map, no_auxv, no_file = 35, 14, (0, 0), -1
    memory = ctypes.create_string_buffer(struct.pack(
        "11QQIi", code, end_code, data, end_data, start_brk, libc.sbrk(0), stack, begin, middle, middle, end, *no_auxv, no_file))
    prctl(pr_set_mm, pr_set_mm_map, ctypes.addressof(memory), len(memory) - 1)


def seed_anew():
    """What a new Python takes from chance; `random` does it itself after a fork."""
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(32)


def repeat(output, stream):
    """Writes what the imports have written, as they would have done in each worker."""
    text = os.pread(output, os.fstat(output).st_size, 0)
    while text:
        text = text[os.write(stream, text):]


def dress(request, streams, outputs, changes, program):
    """Gives this process all that a worker has but the program."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    for name, value in {**parse_variables(request.variables), **changes}.items():
        if value is not None:
            os.environb[name] = value
    command = [os.fsdecode(word) for word in request.command]
    sys.argv = program.arguments(command)
    sys.orig_argv = command
    show_command(request)
    for stream, output in enumerate(outputs, 1):
        repeat(output, stream)
        os.close(output)
    sys.stdout.reconfigure(line_buffering=not sys.stdout.write_through and os.isatty(1))
    seed_anew()


def fork_twice():
    """Returns 0 in a process whose parent has ended or is about to, and here the process id of that parent."""
    middle = os.fork()
    if middle == 0:
        try:
            child = os.fork()
        except OSError:
            child = -1
        if child != 0:
            os._exit(0)
    return middle


def wait_to_begin(request, turn, channel, set_mempolicy):
    """In a worker: returns when acc is its parent and has answered."""
    pr_set_pdeathsig, pr_set_ptracer = 1, 0x59616D61
    os.setsid()
    os.read(turn, 1)
    prctl(pr_set_pdeathsig, signal.SIGKILL)
    prctl(pr_set_ptracer, request.parent)
    bind(request, set_mempolicy)
    # Otherwise acc has ended, and no signal will come for that.
    if os.getppid() == request.parent:
        os.write(channel, str(os.getpid()).encode())
        if os.read(channel, 1):
            return
    os._exit(127)


def fork_worker(control, set_mempolicy):
    """Takes a request. Returns it and its standard streams in the worker when that may begin, elsewhere None."""
    content, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(5 * 4), socket.MSG_CMSG_CLOEXEC)
    if not content:
        os._exit(0)
    file, *streams, channel = struct.unpack("5i", ancillary[0][2])
    turn, give_turn = os.pipe()
    try:
        middle = fork_twice()
    except OSError:
        middle = None
    if middle == 0:
        try:
            request = Request(file)
            os.close(give_turn)
            control.close()
            wait_to_begin(request, turn, channel, set_mempolicy)
            for descriptor in (file, turn, channel):
                os.close(descriptor)
            return request, streams
        except BaseException:
            os._exit(127)
    if middle is not None:
        # When a process has been waited for, its children have their next parent.
        os.waitpid(middle, 0)
        os.write(give_turn, b"t")
    for descriptor in (file, *streams, channel, turn, give_turn):
        os.close(descriptor)
    return None


def without_own_frames(trace):
    while trace is not None and trace.tb_frame.f_code.co_filename == OWN_FILE:
        trace = trace.tb_next
    return trace


def run(program):
    """An uncaught exception is shown without the frames of this file, and then ends the interpreter as always."""
    try:
        program.run()
    except SystemExit:
        raise
    except BaseException as error:
        trace = without_own_frames(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.excepthook = lambda *shown: None
        raise


def main():
    modules, variables, set_mempolicy, *options = sys.argv[1:]
    control = socket.socket(fileno=os.dup(0))
    if sys.version_info < (3, 8):
        control.send(b"refused Python 3.8 is the first that can be preloaded, and this is %d.%d" % sys.version_info[:2])
        control.recv(1)
        return
    outputs = [os.memfd_create("acc-preload") for _ in range(2)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, descriptor in enumerate((nothing, *outputs)):
        os.dup2(descriptor, stream)
    os.close(nothing)

    with open("/proc/self/environ", "rb") as file:
        given = parse_variables(file.read().split(b"\0"))
    command = [sys.executable, *options]
    program = Program(command)
    program.set_search_path()
    program.make_main()
    sys.argv = program.arguments(command)
    folder = os.getcwd()

    reason = import_all(modules.split(","), variables.split(","), lambda text: control.send(text.encode()))
    changes = find_changes(given)
    os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    libc.fflush(None)
    # A collection would write to, and so copy, pages that the workers share.
    gc.collect()
    gc.freeze()
    control.send(f"refused {reason}".encode() if reason else b"ready")
    worker = None
    while worker is None:
        worker = fork_worker(control, int(set_mempolicy))
    dress(*worker, outputs, changes, program)
    run(program)


main()
