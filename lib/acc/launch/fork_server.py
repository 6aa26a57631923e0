# SPDX-License-Identifier: Apache-2.0
"""The fork server of `acc launch --preload`: imports modules once, and becomes a worker for each request of acc.

    python [-u] -c "exec(this file)" MODULES VARIABLES SAME SET_MEMPOLICY [-u] [-m] PROGRAM [ARGUMENT...]

MODULES and VARIABLES, those that each worker has for itself, are separated by commas; SAME is 1 when all workers have this
command line, and 0 when only the first one has; SET_MEMPOLICY is the number of that system call. A process that was not
executed for this has the variables that it would have had as GIVEN_VARIABLES. Descriptor 0 is a SOCK_SEQPACKET to acc, on
which this program says `import MODULE` and at last `ready`, or `refused` and why workers cannot be forked. Then each request
is one byte with five descriptors: a file (see Request), the standard streams of the worker, and a channel. On the channel the
worker says its process id when it is acc's own child and leads its own session, and it begins when acc has answered. One that
cannot run closes the channel without a word: acc then starts it without this program, and that shows the reason.
"""

import sys

MODULES_OF_PYTHON = set(sys.modules)
IS_PATH_SAFE = getattr(sys.flags, "safe_path", False)
if not IS_PATH_SAFE:
    del sys.path[0]  # the '' of `python -c`: this program has no modules of the current folder

import atexit
import builtins
import contextlib
import ctypes
import functools
import gc
import importlib
import importlib.machinery
import io
import os
import pkgutil
import runpy
import signal
import socket
import stat
import struct
import types

OWN_FILE = sys._getframe().f_code.co_filename
DELETED = " (deleted)"  # what Linux puts behind the path of a file that has no name any more
OUTPUT = "acc-preload"  # the name of the files to which imports write
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
        self.index = 1 + (command[1] == "-u")
        self.is_module = command[self.index] == "-m"
        self.index += self.is_module
        self.name = command[self.index]
        self.is_package = not self.is_module and pkgutil.get_importer(self.name) is not None
        self.path = self.name
        if sys.version_info >= (3, 9):
            self.path = os.path.join(os.getcwd(), self.name)

    def arguments(self, command):
        """sys.argv of a worker with this command line."""
        return ["-m" if self.is_module else self.name, *command[self.index + 1:]]

    def set_search_path(self):
        """Puts first into sys.path what Python would put there for the program."""
        if self.is_module:
            first = os.getcwd()
        else:
            first = self.path if self.is_package else os.path.dirname(os.path.realpath(self.path))
        if self.is_package or not IS_PATH_SAFE:
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


FILES_OF_ENVIRONMENT = {function.__code__.co_filename for function in (type(os.environ).copy, type(os.environ).items)}


class WatchedEnvironment(type(os.environ)):
    """os.environ and os.environb, noting the first use of a variable that each worker has for itself."""

    names = frozenset()  # as texts and as bytes
    use = None

    def note(self, does, name):
        if WatchedEnvironment.use is None and name in WatchedEnvironment.names:
            WatchedEnvironment.use = f"{does} {os.fsdecode(name)}, which each worker has for itself"

    def __iter__(self):
        # Python and packages look for variables with a prefix of theirs, or copy all for a process that they start;
        # pydantic-settings looks among all for those of the user.
        if WatchedEnvironment.use is None and WatchedEnvironment.names:
            reader = next((file for file in callers() if file not in FILES_OF_ENVIRONMENT), "")
            if is_of_user(reader) or "pydantic_settings" in reader:
                WatchedEnvironment.use = "reads all variables, some of which each worker has for itself"
        return super().__iter__()

    def __getitem__(self, name):
        self.note("reads", name)
        return super().__getitem__(name)

    def __setitem__(self, name, value):
        self.note("sets", name)
        super().__setitem__(name, value)

    def __delitem__(self, name):
        self.note("removes", name)
        super().__delitem__(name)


class WatchedArguments(list):
    """sys.argv, noting whether more than its first word is read."""

    is_read = False

    def __getitem__(self, index):
        WatchedArguments.is_read |= index != 0
        return super().__getitem__(index)

    def __iter__(self):
        WatchedArguments.is_read = True
        return super().__iter__()

    def __contains__(self, word):
        return word in [*self]

    def __add__(self, words):
        return [*self, *words]

    def __radd__(self, words):
        return [*words, *self]

    def __repr__(self):
        return repr([*self])

    def copy(self):
        return [*self]


def callers():
    """The files of the functions that are being called, from the inside, without this one."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename != OWN_FILE:
            yield frame.f_code.co_filename
        frame = frame.f_back


def is_of_user(file):
    """Not of Python, and not of an installed package: those expect to be forked, as the processes of data loaders are."""
    is_of_python = file.startswith((os.path.dirname(os.__file__) + os.sep, "<"))
    return not (is_of_python or "site-packages" in file or "dist-packages" in file)


def is_done_by_user():
    """By a module of the user, perhaps through functions of others, but not by a module that it imports."""
    for file in callers():
        if file.startswith("<frozen importlib"):
            return False
        if is_of_user(file):
            return True
    return False


def is_asked_by_user():
    """By a module of the user itself, not through Python: each record of `logging` has the process id."""
    processes = os.path.join(os.path.dirname(os.__file__), "multiprocessing", "process.py")
    return is_of_user(next(file for file in callers() if file != processes))


class Chance:
    """The random numbers that a module has for all: `state` is a function of it, `seed_anew` draws a seed, and `seeds` are the
    names of the functions by which a program sets them."""

    def __init__(self, module, state, seed_anew, seeds):
        self.module = module
        self.state = state
        self.seed_anew = seed_anew
        self.seeds = seeds
        self.first = state(module)
        self.last = None
        self.seeded = False


class Watch:
    """Notes what the imports do that comes out differently in each worker, and the seeds that they set."""

    def __init__(self, same_arguments):
        self.same_arguments = same_arguments
        self.arguments = list(sys.argv)
        self.noted = ""
        self.over = False
        self.chances = {}
        self.usual = []  # what was replaced
        self.modules = set()  # those that were there at first
        self.watched_modules = {
            "random": self.watch_random, "numpy.random": self.watch_numpy, "torch": self.watch_torch,
            "tempfile": self.watch_tempfile, "uuid": self.watch_uuid, "threading": self.watch_threading,
            "psutil": self.watch_psutil}  # fmt: skip

    def note(self, what, done_by_user=is_done_by_user):
        if not self.noted and not self.over and done_by_user():
            self.noted = what

    def replace(self, owner, name, before):
        usual = getattr(owner, name)

        @functools.wraps(usual)
        def watched(*arguments, **options):
            before(*arguments, **options)
            return usual(*arguments, **options)

        setattr(owner, name, watched)
        self.usual.append((owner, name, usual, watched))

    def kept_arguments(self):
        """The list that sys.argv was during the imports: a module may have kept it."""
        return [watched for owner, _, _, watched in self.usual if owner is sys]

    def begin(self):
        self.modules = set(sys.modules)
        if not self.same_arguments:
            self.usual.append((sys, "argv", sys.argv, WatchedArguments(sys.argv)))
            sys.argv = self.usual[-1][-1]
        owners = [(os, "urandom"), (os, "getrandom")]
        if "random" in sys.modules:  # its copy is not that of `os` any more
            owners.append((sys.modules["random"], "_urandom"))
        for owner, name in owners:
            self.replace(owner, name, lambda *_, **options: self.note("takes random bytes from the system"))
        self.replace(atexit, "register", lambda *_, **options: self.note("registers what is done at exit"))
        self.replace(os, "getpid", lambda: self.note("asks for its process id", is_asked_by_user))
        for name, watch in self.watched_modules.items():
            if name in sys.modules:
                watch(sys.modules[name])
        sys.meta_path.insert(0, self)

    def end(self):
        sys.meta_path.remove(self)
        usual_of = {}
        for owner, name, usual, watched in self.usual:
            usual_of[id(watched)] = usual
            if vars(owner).get(name) is watched:  # else a module has put its own function there, or removed it
                setattr(owner, name, usual)
        if sys.modules.keys() != self.modules:
            self.give_back(usual_of)
        for chance in self.chances.values():
            chance.last = chance.state(chance.module)
        self.over = True

    def give_back(self, usual_of):
        """Modules have taken some over: what is not found by its name cannot be pickled. A lazy module stays one."""
        for module in filter(lambda module: isinstance(module, types.ModuleType), list(sys.modules.values())):
            names = object.__getattribute__(module, "__dict__")
            names.update({name: usual_of[id(value)] for name, value in names.items() if id(value) in usual_of})

    def find_spec(self, name, path, target=None):
        """For a module to be watched: that of the other finders, with a loader that says when it is loaded."""
        watch = self.watched_modules.get(name)
        if watch is None:
            return None
        for finder in sys.meta_path:
            # Older ones do not have the function, and are passed over by Python, too.
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find and find(name, path, target)
            if spec is not None:
                break
        else:
            return None
        if isinstance(spec.loader, type) or not hasattr(spec.loader, "exec_module"):
            return spec
        execute = spec.loader.exec_module

        def execute_and_watch(module):
            del spec.loader.exec_module
            execute(module)
            watch(module)

        spec.loader.exec_module = execute_and_watch
        return spec

    def watch_seeds(self, chance, *owners):
        def seeds(*arguments, **options):
            chance.seeded = bool(arguments or options) and arguments[:1] != (None,)

        for owner in owners:
            for name in chance.seeds:
                self.replace(owner, name, seeds)
        self.chances[chance.module.__name__] = chance

    def watch_random(self, module):
        chance = Chance(module, lambda module: module.getstate(), module.seed, ("seed", "setstate"))
        self.watch_seeds(chance, module)
        self.replace(module.Random, "seed", lambda generator, a=None, *_: a is None and self.note("takes a seed from the system"))

    def watch_numpy(self, module):
        def state(module):
            name, keys, *rest = module.get_state()
            return (name, keys.tobytes(), *rest)

        self.watch_seeds(Chance(module, state, module.seed, ("seed", "set_state")), module)

    def watch_torch(self, module):
        def state(module):
            return module.default_generator.get_state().tolist()

        chance = Chance(module, state, module.default_generator.seed, ("manual_seed", "set_rng_state", "seed"))
        self.watch_seeds(chance, module, module.random)

    def watch_tempfile(self, module):
        for name in ("mkdtemp", "mkstemp", "_mkstemp_inner"):
            self.replace(module, name, lambda *arguments, **options: self.note("makes a temporary file"))

    def watch_uuid(self, module):
        self.replace(module, "uuid1", lambda *arguments, **options: self.note("makes a UUID"))

    def watch_threading(self, module):
        self.replace(module, "get_native_id", lambda: self.note("asks for its thread id", is_asked_by_user))

    def watch_psutil(self, module):
        self.replace(module.Process, "__init__", lambda process, pid=None: pid is None and self.note("asks for its process id"))

    def obstacle(self):
        if WatchedEnvironment.use is not None:
            return WatchedEnvironment.use
        if self.noted:
            return self.noted
        if WatchedArguments.is_read:
            return "reads the arguments, which differ from worker to worker"
        if sys.argv != self.arguments:  # the script may look at them before it imports the module
            return "changes the arguments"
        drawn = [name for name, chance in self.chances.items() if not chance.seeded and chance.state(chance.module) != chance.first]
        return f"draws numbers of {drawn[0]} without a seed" if drawn else ""


def threads():
    """Those beside the first, but for the one of jemalloc, which is prepared for forks (pyarrow brings it)."""
    names = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/comm") as file:
                name = file.read().strip()
        except OSError:  # it has ended
            continue
        if int(thread) != os.getpid() and name != "jemalloc_bg_thd":
            names.append(name)
    return names


def wait_for(child):
    """Where a module ignores SIGCHLD, waitpid(2) returns without the child, but when it has ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def count_threads():
    """The threads that outlive a fork: OpenBLAS ends its own before one, and starts others when it needs them."""
    if threads():
        child = os.fork()
        if child == 0:
            os._exit(0)
        wait_for(child)
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


def find_shadow():
    """A file of the program's folder that a worker would import instead of a module that is here already; empty: none."""
    for name in sorted(sys.modules.keys() - MODULES_OF_PYTHON):
        spec = getattr(sys.modules[name], "__spec__", None)
        if "." not in name and spec is not None and spec.has_location:
            shadow = importlib.machinery.PathFinder.find_spec(name, sys.path[:1])
            # A folder without __init__.py comes after all others.
            if shadow is not None and shadow.has_location and shadow.origin != spec.origin:
                return shadow.origin
    return ""


def mappings():
    """The mappings that have a name: the permissions, the inode and the path of each."""
    with open("/proc/self/maps", "rb") as file:
        lines = [os.fsdecode(line.rstrip(b"\n")).split(None, 5) for line in file]
    return {(line[1], line[4], line[5]) for line in lines if len(line) == 6}


def is_shared_memory(permissions, path):
    """Whether only the processes that are forked from this one have the mapping in common."""
    return permissions[1] == "w" and permissions[3] == "s" and path.endswith(DELETED)


def describe_file(descriptor, target):
    """What workers would have in common if all were forked with the descriptor; empty: nothing that matters."""
    if target.startswith("socket:"):
        return "opens a socket"
    if target.startswith("pipe:"):
        return "opens a pipe"
    if target.startswith("anon_inode:"):
        return f"opens {target}"
    try:
        is_file = stat.S_ISREG(os.stat(int(descriptor)).st_mode)
        with open(f"/proc/self/fdinfo/{descriptor}") as file:
            facts = file.read().split()
    except OSError:  # a thread has closed it
        return ""
    if "lock:" in facts:
        return f"locks {target}"
    if not is_file or target.startswith(("/sys/", "/proc/driver/")):
        return ""
    # What is shared is the offset. Nobody needs it for a file that is mapped, or that is written at its end.
    if "flags:" not in facts:
        return ""
    flags = int(facts[facts.index("flags:") + 1], 8)
    is_appended = flags & os.O_APPEND and not flags & os.O_RDWR
    is_mapped = any(path == target for _, _, path in mappings())
    return "" if (is_appended or is_mapped) and not target.endswith(DELETED) else f"keeps {target} open"


def open_files():
    """What each descriptor leads to."""
    targets = {}
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            targets[descriptor] = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # the descriptor of the listing
            pass
    return targets


def find_open_file(own_files):
    """What a descriptor that was not there before is an obstacle for; empty: for nothing."""
    files = open_files()
    new = {descriptor: target for descriptor, target in files.items() if own_files.get(descriptor) != target}
    # A worker has others: what it writes to a copy would be lost.
    is_output = any(target.startswith(f"/memfd:{OUTPUT}") for target in new.values())
    if is_output or any(files.get(n) != own_files.get(n) for n in "012"):
        return "copies or redirects a standard stream"
    return next(filter(None, (describe_file(*file) for file in new.items())), "")


def find_obstacle(watch, own_files, own_mappings):
    """What has been done here that forked processes cannot take over; empty: nothing."""
    if watch.obstacle():
        return watch.obstacle()
    if uses_gpu():
        return "initializes the GPU"
    if has_children():
        return "starts a process"
    if any(signal.getitimer(signal.ITIMER_REAL)):
        return "sets a timer"
    open_file = find_open_file(own_files)
    if open_file:
        return open_file
    if any(is_shared_memory(permissions, path) for permissions, _, path in mappings() - own_mappings):
        return "creates shared memory"
    threads = count_threads()
    return f"starts {threads} thread{'s' if threads > 1 else ''}" if threads else ""


def import_all(modules, variables, watch, say):
    """Why workers cannot be forked; empty: they can."""
    usual = type(os.environ)
    inherited = os.environ.get(NVML_VARIABLE)
    os.environ[NVML_VARIABLE] = "1"  # torch.cuda.is_available() then leaves the driver alone
    WatchedEnvironment.names = frozenset({*variables, *map(os.fsencode, variables)} - {"", b""})
    os.environ.__class__ = os.environb.__class__ = WatchedEnvironment
    own_state = open_files(), mappings()
    suspect = ""
    watch.begin()
    for module in modules:
        say(f"import {module}")
        try:
            importlib.import_module(module)
        except BaseException as error:
            return f"{module} cannot be imported ({describe(error)})"
        if not suspect and find_obstacle(watch, *own_state):
            suspect = module
    watch.end()
    os.environ.__class__ = os.environb.__class__ = usual
    if inherited is None:
        del os.environ[NVML_VARIABLE]
    else:
        os.environ[NVML_VARIABLE] = inherited
    # Looks again, for some threads have ended.
    obstacle = find_obstacle(watch, *own_state) if suspect else ""
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


def own_variables():
    """Those that this process was executed with."""
    with open("/proc/self/environ", "rb") as file:
        return parse_variables(file.read().split(b"\0"))


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


def seed_anew(watch):
    """What a new Python takes from chance, unless the imports have set it; `random` seeds itself after a fork."""
    for name, chance in watch.chances.items():
        if not chance.seeded:
            chance.seed_anew()
        elif name == "random":
            chance.module.setstate(chance.last)
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(32)


def repeat(output, stream):
    """Writes what the imports have written, as they would have done in each worker."""
    text = os.pread(output, os.fstat(output).st_size, 0)
    while text:
        text = text[os.write(stream, text):]


def is_usable(stream, descriptor):
    """Whether a standard stream of the interpreter is neither closed nor detached."""
    try:
        return stream.fileno() == descriptor
    except ValueError:
        return False


def look_again(stream):
    """At what the stream is, a file or not: this process has asked for another one, and a FileIO asks once."""
    old = stream.buffer
    raw = io.FileIO(stream.fileno(), "rb" if stream.readable() else "wb", closefd=False)
    raw.name = stream.name
    stream.flush()
    # The stream itself stays: modules may have kept it.
    buffered = io.BufferedReader if stream.readable() else io.BufferedWriter
    stream.__init__(raw if isinstance(old, io.FileIO) else buffered(raw), stream.encoding, stream.errors, "\n",
                    stream.line_buffering, stream.write_through)  # fmt: skip


def dress(request, streams, outputs, changes, program, watch):
    """Gives this process all that a worker has but the program."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    for name, value in {**parse_variables(request.variables), **changes}.items():
        if value is not None:
            os.environb[name] = value
    command = [os.fsdecode(word) for word in request.command]
    for arguments in [sys.argv, *watch.kept_arguments()]:
        arguments[:] = program.arguments(command)
    sys.orig_argv = command
    show_command(request)
    for stream, output in enumerate(outputs, 1):
        repeat(output, stream)
        os.close(output)
    # A module may have replaced them with its own, which stay as they are.
    if is_usable(sys.__stdin__, 0):
        look_again(sys.__stdin__)
    if is_usable(sys.__stderr__, 2):
        look_again(sys.__stderr__)
    if is_usable(sys.__stdout__, 1):
        look_again(sys.__stdout__)
        sys.__stdout__.reconfigure(line_buffering=not sys.__stdout__.write_through and os.isatty(1))
    seed_anew(watch)
    if "_acc_progress" in sys.modules:  # the imports have installed the hooks of --watch
        sys.modules["_acc_progress"].announce()


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
        wait_for(middle)
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
    modules, variables, same, set_mempolicy, *options = sys.argv[1:]
    control = socket.socket(fileno=os.dup(0))
    if sys.version_info < (3, 8):
        control.send(b"refused Python 3.8 is the first that can be preloaded, and this is %d.%d" % sys.version_info[:2])
        control.recv(1)
        return
    outputs = [os.memfd_create(f"{OUTPUT}-{stream}") for stream in (1, 2)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, descriptor in enumerate((nothing, *outputs)):
        os.dup2(descriptor, stream)
    os.close(nothing)

    given = globals().get("GIVEN_VARIABLES") or own_variables()
    command = [sys.executable, *options]
    program = Program(command)
    program.set_search_path()
    program.make_main()
    sys.argv = program.arguments(command)
    sys.orig_argv = list(command)
    folder = os.getcwd()

    watch = Watch(same == "1")
    shadow = find_shadow()
    if shadow:
        reason = f"{shadow} has the name of a module of Python"
    else:
        reason = import_all(modules.split(","), variables.split(","), watch, lambda text: control.send(text.encode()))
    changes = find_changes(given)
    os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    libc.fflush(None)
    # A collection would write to, and so copy, pages that the workers share.
    gc.collect()
    gc.freeze()
    control.send(f"refused {reason}".encode(errors="backslashreplace") if reason else b"ready")
    worker = None
    while worker is None:
        worker = fork_worker(control, int(set_mempolicy))
    dress(*worker, outputs, changes, program, watch)
    run(program)


main()
