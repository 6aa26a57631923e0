# SPDX-License-Identifier: Apache-2.0
"""What the sitecustomize of workers under `acc launch --watch` runs: when torch is imported, it hooks optimizer steps, backward,
loaders and collectives, and writes them to the worker's page (acc.progress). Then it loads the sitecustomize that Python would
have loaded without it. No fault in it ends a training.
"""

import contextlib
import ctypes
import functools
import os
import sys
import threading
import weakref

FOLDER = os.path.dirname(os.path.abspath(__file__))

COLLECTIVES = """all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_reduce all_reduce_coalesced
all_to_all all_to_all_single barrier broadcast broadcast_object_list gather gather_object monitored_barrier recv
recv_object_list reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list send send_object_list""".split()


def find(finders, name, path=None):
    """The spec of a module, of the first of the finders that knows it."""
    for finder in finders:
        spec = finder.find_spec(name, path) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec
    return None


def is_of_hooks(traceback):
    """Whether no line of the script is in it, as there is when a handler of a signal has raised meanwhile."""
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    own = (FOLDER, os.path.dirname(torch)) if torch else FOLDER
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file != "<acc watch>" and not file.startswith(own):
            return False
        traceback = traceback.tb_next
    return True


def quietly(function, *arguments):
    """What is not seen ends nothing."""
    try:
        return function(*arguments)
    except Exception as error:
        if not is_of_hooks(error.__traceback__):
            raise
        return None


def is_main_thread():
    return threading.current_thread() is threading.main_thread()


class Hooks:
    def __init__(self, torch, progress):
        self.torch = torch
        self.progress = progress
        # The optimizer whose steps count, and those that have stepped since its last one.
        self.counted = None
        self.others = weakref.WeakSet()
        self.steps_of_others = 0
        # How many steps have begun of which a step is made, as one of a subclass is made of its base's.
        self.depth = 0
        self.answering = False
        self.number_types = {torch.float32: ctypes.c_float, torch.float64: ctypes.c_double}
        compiler = getattr(torch, "compiler", None)
        self.is_compiling = getattr(compiler, "is_compiling", bool)

    def install(self):
        for hook in self.hook_steps, self.hook_backward, self.hook_data, self.hook_collectives, self.hook_process_groups:
            quietly(hook)

    def within(self, function, begin, end, argument=None):
        """`function` between `begin(argument)` and `end` of what that returned. A compiler sees the function alone."""
        is_compiling = self.is_compiling

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if is_compiling():
                return function(*args, **kwargs)
            begun = quietly(begin, argument)
            try:
                return function(*args, **kwargs)
            finally:
                if begun is not None:
                    quietly(end, begun)

        return wrapper

    def hook_steps(self):
        from torch.optim import optimizer

        optimizer.register_optimizer_step_pre_hook(self.before_step)
        optimizer.register_optimizer_step_post_hook(self.after_step)

    def before_step(self, optimizer, args, kwargs):
        if not self.is_compiling():
            self.depth += 1
            quietly(self.progress.begin, self.progress.OPTIMIZER)

    def after_step(self, optimizer, args, kwargs):
        if not self.is_compiling():
            self.depth = max(0, self.depth - 1)
            if self.depth == 0:
                quietly(self.count, optimizer)

    def count(self, optimizer):
        """Several optimizers step once each in a training step: the first counts, until it is gone, another one steps twice
        without it, or others step without it that are gone after each step."""
        self.progress.leave(self.progress.OPTIMIZER)
        counted = self.counted and self.counted()
        if counted is None or optimizer in self.others or self.steps_of_others > 2 * len(self.others) + 8:
            self.counted = weakref.ref(optimizer)
            counted = optimizer
        if counted is not optimizer:
            self.others.add(optimizer)
            self.steps_of_others += 1
            return
        self.others.clear()
        self.steps_of_others = 0
        self.progress.count_step()

    def hook_backward(self):
        autograd = self.torch.autograd
        backward = self.within(autograd.backward, self.begin_backward, self.progress.end)

        @functools.wraps(backward)
        def wrapper(tensors, *args, **kwargs):
            backward(tensors, *args, **kwargs)
            if not self.is_compiling():
                quietly(self.progress.count_backward)
                quietly(self.show_loss, tensors)

        autograd.backward = wrapper
        # Scripted functions find a builtin by its Python function.
        self.torch.jit._builtins._register_builtin(wrapper, "aten::backward")

    def begin_backward(self, _):
        # One that raised has not ended.
        self.depth = 0
        return self.progress.begin(self.progress.BACKWARD)

    def show_loss(self, loss):
        """Read without an operation of torch, which a profiler and a tracer would see. A subclass may have no memory."""
        if type(loss) is not self.torch.Tensor or loss.device.type != "cpu" or loss.numel() != 1:
            return
        number = self.number_types.get(loss.dtype)
        if number is not None and loss.layout is self.torch.strided:
            self.progress.show_loss(number.from_address(loss.data_ptr()).value)

    def hook_data(self):
        from torch.utils.data import dataloader

        reader = dataloader._BaseDataLoaderIter
        reader.__next__ = self.within(reader.__next__, self.begin_data, self.progress.end)
        loader = dataloader.DataLoader
        loader.__iter__ = self.within(loader.__iter__, self.begin_data, self.progress.end)

    def begin_data(self, _):
        """A thread that reads ahead is not the one that trains."""
        return self.progress.begin(self.progress.DATA) if is_main_thread() else None

    def hook_collectives(self):
        from torch import distributed

        if not distributed.is_available():
            return
        for name in COLLECTIVES:
            function = getattr(distributed, name, None)
            if function is not None:
                call = self.within(function, self.begin_collective, self.progress.end_collective, self.progress.collective_name(name))
                setattr(distributed, name, call)
                setattr(distributed.distributed_c10d, name, call)

    def begin_collective(self, name):
        """A thread that saves meanwhile may be the first to call one, and is not the one that trains."""
        if self.progress.is_unclaimed() and not is_main_thread():
            return None
        return self.progress.begin_collective(name)

    def hook_process_groups(self):
        """From then on torch records collectives, also those that no function of Python calls, as DDP's are."""
        from torch import distributed

        if not distributed.is_available():
            return
        function = distributed.init_process_group

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            result = function(*args, **kwargs)
            quietly(self.answer)
            return result

        distributed.init_process_group = distributed.distributed_c10d.init_process_group = wrapper

    def answer(self):
        if self.answering or not self.progress.is_worker():
            return
        self.answering = True
        serve_flight_record(os.environ["ACC_PROGRESS"] + ".calls", self.torch._C._distributed_c10d)


def flight_record(c10d):
    """The records of torch as one line of JSON: of process groups on CPUs, and of NCCL's; of each the newest entries, and those
    that have not ended."""
    import json

    dumps = (getattr(c10d, name, None) for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json"))
    records = [json.loads(dump()) for dump in dumps if dump is not None]
    for record in records:
        entries = record.get("entries", [])
        record["entries"] = [entry for entry in entries[:-64] if not entry.get("retired")][-64:] + entries[-64:]
    return json.dumps({"records": records}) + "\n"


def serve_flight_record(path, c10d):
    """Answers whoever connects; acc does (control/flight_record)."""
    import socket

    server = socket.socket(socket.AF_UNIX)
    unfinished = f"{path}.{os.getpid()}"
    # An address has 107 bytes, which the path may exceed.
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        server.bind(f"/proc/self/fd/{folder}/{os.path.basename(unfinished)}")
    finally:
        os.close(folder)
    server.listen()
    os.rename(unfinished, path)
    # A fork has the socket, but nobody who answers.
    os.register_at_fork(after_in_child=server.close)

    def answer():
        connection = server.accept()[0]
        with connection, contextlib.suppress(OSError):
            # Whoever asked may be gone, and SIGPIPE ends scripts that do not ignore it.
            connection.sendall(flight_record(c10d).encode(), socket.MSG_NOSIGNAL)
        return True

    def serve():
        while quietly(answer):
            pass

    threading.Thread(target=serve, name="acc-watch", daemon=True).start()


def install():
    """Once in a process. The module has a name that no script's has; the package of the wheel writes by it."""
    import importlib.util

    if "_acc_progress" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location("_acc_progress", os.path.join(FOLDER, "acc_progress.py"))
    progress = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(progress)
    sys.modules["_acc_progress"] = progress
    quietly(progress.announce)
    Hooks(sys.modules["torch"], progress).install()


class TorchFinder(threading.local):
    """Lets others find torch, and installs the hooks when it has been imported. Whoever only asks where torch is changes nothing."""

    is_asking = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.is_asking:
            return None
        self.is_asking = True
        try:
            # Finders before this one may be asking it now, and would wrap the loader a second time.
            spec = find(sys.meta_path[sys.meta_path.index(self) + 1 :], name, path)
        finally:
            self.is_asking = False
        quietly(self.extend, spec)
        return spec

    def extend(self, spec):
        exec_module = spec.loader.exec_module

        def run(module):
            vars(spec.loader).pop("exec_module", None)
            exec_module(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            quietly(install)

        spec.loader.exec_module = run


def load_replaced():
    """The sitecustomize that this one hides."""
    sys.path[:] = [folder for folder in sys.path if folder != FOLDER]
    spec = find(sys.meta_path, "sitecustomize")
    if spec is None:
        return
    from importlib.util import module_from_spec

    module = sys.modules["sitecustomize"] = module_from_spec(spec)
    spec.loader.exec_module(module)


sys.meta_path.insert(0, TorchFinder())
load_replaced()
