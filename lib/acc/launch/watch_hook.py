# SPDX-License-Identifier: Apache-2.0
"""What the sitecustomize of workers under `acc launch --watch` runs: when torch is imported, it hooks optimizer steps, backward,
loaders and collectives, and writes them to the worker's page (acc.progress). Then it loads the sitecustomize that Python would
have loaded without it. No fault in it ends a training.
"""

import contextlib
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
        if file not in ("<acc watch>", contextlib.__file__) and not file.startswith(own):
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


class Quiet:
    """The context manager that `make` returns, without its faults."""

    def __init__(self, make, *arguments):
        self.inner = quietly(make, *arguments)

    def __enter__(self):
        if self.inner is not None:
            quietly(self.inner.__enter__)

    def __exit__(self, *error):
        if self.inner is not None:
            quietly(self.inner.__exit__, None, None, None)


class Hooks:
    def __init__(self, torch, progress):
        self.torch = torch
        self.progress = progress
        self.counted = None
        compiler = getattr(torch, "compiler", None)
        self.is_compiling = getattr(compiler, "is_compiling", bool)

    def install(self):
        for hook in self.hook_steps, self.hook_backward, self.hook_data, self.hook_collectives:
            quietly(hook)

    def within(self, function, make, *arguments):
        """`function`, during which what `make` returns is entered. A compiler sees the function alone."""
        is_compiling = self.is_compiling

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if is_compiling():
                return function(*args, **kwargs)
            with Quiet(make, *arguments):
                return function(*args, **kwargs)

        return wrapper

    def hook_steps(self):
        from torch.optim import optimizer

        optimizer.register_optimizer_step_pre_hook(self.before_step)
        optimizer.register_optimizer_step_post_hook(self.after_step)

    def before_step(self, optimizer, args, kwargs):
        if not self.is_compiling():
            quietly(self.progress.enter, "optimizer")

    def after_step(self, optimizer, args, kwargs):
        if not self.is_compiling():
            quietly(self.count, optimizer)

    def count(self, optimizer):
        """Several optimizers step once each in a training step: the first of those that live counts."""
        if self.counted is None or self.counted() is None:
            self.counted = weakref.ref(optimizer)
        self.progress.leave("optimizer")
        if self.counted() is optimizer:
            self.progress.count_step()

    def hook_backward(self):
        autograd = self.torch.autograd
        backward = self.within(autograd.backward, self.progress.section, "backward")

        @functools.wraps(backward)
        def wrapper(tensors, *args, **kwargs):
            backward(tensors, *args, **kwargs)
            if not self.is_compiling():
                quietly(self.show_loss, tensors)

        autograd.backward = wrapper
        # Scripted functions find a builtin by its Python function.
        self.torch.jit._builtins._register_builtin(wrapper, "aten::backward")

    def show_loss(self, loss):
        if isinstance(loss, self.torch.Tensor) and loss.device.type == "cpu" and loss.numel() == 1:
            self.progress.show_loss(float(loss.detach()))

    def hook_data(self):
        from torch.utils.data import dataloader

        reader = dataloader._BaseDataLoaderIter
        reader.__next__ = self.within(reader.__next__, self.enter_data)
        loader = dataloader.DataLoader
        loader.__iter__ = self.within(loader.__iter__, self.enter_data)

    def enter_data(self):
        """A thread that reads ahead is not the one that trains."""
        is_main = threading.current_thread() is threading.main_thread()
        return self.progress.section("data") if is_main else None

    def hook_collectives(self):
        from torch import distributed

        if not distributed.is_available():
            return
        for name in COLLECTIVES:
            function = getattr(distributed, name, None)
            if function is not None:
                call = self.within(function, self.progress.collective, name)
                setattr(distributed, name, call)
                setattr(distributed.distributed_c10d, name, call)


def install():
    """Once in a process. The module has a name that no script's has; the package of the wheel writes by it."""
    import importlib.util

    if "_acc_progress" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location("_acc_progress", os.path.join(FOLDER, "acc_progress.py"))
    progress = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(progress)
    sys.modules["_acc_progress"] = progress
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
