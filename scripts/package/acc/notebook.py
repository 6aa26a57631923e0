# SPDX-License-Identifier: Apache-2.0
"""Several processes from a notebook: accelerate's notebook_launcher, with the launcher of `acc launch`."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

from acc import notebook_job, program, sending
from acc.notebook_job import WorkerError, WorkerTraceback
from acc.sending import SendingError

__all__ = ["SendingError", "WorkerError", "WorkerTraceback", "debug_launcher", "notebook_launcher", "write_basic_config"]

_PRECISIONS = ("no", "fp16", "bf16", "fp8")
_DEFAULT_PORT = "29500"
_OF_LAUNCHER = {"config_file", "dry_run", "event_log", "help", "module", "no_python", "nproc_per_node", "python"}
_OF_NOTEBOOKS = {"IPython", "ipykernel", "google", "acc"}  # packages of no use to workers


def notebook_launcher(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    num_processes: int | None = None,
    mixed_precision: str = "no",
    use_port: str | int = _DEFAULT_PORT,
    master_addr: str = "127.0.0.1",
    node_rank: int = 0,
    num_nodes: int = 1,
    rdzv_backend: str = "static",
    rdzv_endpoint: str = "",
    rdzv_conf: Mapping[str, Any] | None = None,
    rdzv_id: str = "none",
    max_restarts: int = 0,
    monitor_interval: float = 0.1,
    log_line_prefix_template: str | None = None,
    **flags: Any,
) -> list[Any]:
    """Calls `function(*args)` in `num_processes` workers, and returns what those of this machine returned, by rank.

    The workers are new processes that have imported what the notebook has imported. What is sent to them is a copy: a function
    of the notebook itself by cloudpickle, which must be installed; one of a module by its name. That CUDA was used in the
    notebook does not matter. What rank 0 writes is shown. One process or none: the function is called in the notebook.

    `flags` are flags of `acc launch`, as in hang_timeout=600, log_dir="logs" or local_ranks_filter="0,1", whose ranks are shown.

    Throws what the worker raised that failed first; its `rank` says which, and its cause where. WorkerError if it left no
    exception, SendingError, which names what cannot be sent, and ValueError for wrong arguments. An interrupt ends all
    workers, and so does the end of the notebook, however it comes.
    """
    precision = mixed_precision.lower()
    if _is_on_tpu(os.environ):
        return _launch_on_tpu(function, args, num_processes, mixed_precision)
    if num_processes is None and _is_in_colab() and _gpu_count() < 2:
        num_processes = 1  # as in accelerate
    if num_processes is None:
        raise ValueError("num_processes is missing: how many workers are to be started, as in num_processes=2?")
    _check(precision, node_rank, num_nodes)
    _check_flags(flags)
    if num_processes <= 1:
        _check_for_one(num_processes, num_nodes, flags)
        return [_call_here(function, args, precision)]
    words = _words(num_processes, {"mixed_precision": precision, "max_restarts": max_restarts,
                                   "monitor_interval": monitor_interval,
                                   "log_line_prefix_template": log_line_prefix_template})
    words += _rendezvous_words(str(use_port), master_addr, node_rank, num_nodes, rdzv_backend, rdzv_endpoint, rdzv_conf, rdzv_id)
    return _launch(function, args, num_processes, words, flags, announce=True)


def debug_launcher(function: Callable[..., Any], args: Sequence[Any] = (), num_processes: int = 2) -> list[Any]:
    """notebook_launcher for tests of a function: on the CPU, over loopback, without a word of its own."""
    words = _words(num_processes, {"cpu": True, "mixed_precision": "no"})
    with _variables(GLOO_SOCKET_IFNAME="lo"):
        return _launch(function, args, num_processes, words, {}, announce=False)


def write_basic_config(mixed_precision: str = "no", save_location: str | os.PathLike[str] | None = None) -> Path | bool:
    """Writes the config file for this machine that `acc launch` and accelerate read, by default where both look for it: JSON, as
    accelerate's. Returns its path, or False where there is one already."""
    precision = mixed_precision.lower()
    if precision not in _PRECISIONS:
        raise ValueError(f"mixed_precision is one of {', '.join(_PRECISIONS)}, not {mixed_precision!r}")
    path = Path(_default_config() if save_location is None else save_location)
    if path.exists():
        print(f"there is a config file already: {path} (acc config writes it anew)")
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    _run_acc("accelerate", "config", "default", "--config_file", str(path), "--mixed_precision", precision)
    return path


def _check(precision: str, node_rank: int, num_nodes: int) -> None:
    if precision not in _PRECISIONS:
        raise ValueError(f"mixed_precision is one of {', '.join(_PRECISIONS)}, not {precision!r}")
    if not 0 <= node_rank < num_nodes:
        raise ValueError(f"node_rank is {node_rank}, and must be below num_nodes, {num_nodes}")
    if "RANK" in os.environ:
        raise RuntimeError("this process is a worker of a job already (RANK is set): call it in the program that starts the job")


def _check_flags(flags: Mapping[str, Any]) -> None:
    for name in flags:
        if name.replace("-", "_") in _OF_LAUNCHER:
            raise ValueError(f"{name} is not a flag for notebook_launcher, which itself sets what acc starts")


def _check_for_one(num_processes: int, num_nodes: int, flags: Mapping[str, Any]) -> None:
    """What the call in the notebook itself would ignore."""
    if num_nodes > 1:
        raise ValueError(f"num_processes is {num_processes}, and must be at least 2 on each of several nodes")
    if flags:
        names = ", ".join(flags)
        raise ValueError(f"{names}: no effect with num_processes={num_processes}, where the notebook calls the function itself")


def _words(num_processes: int, settings: Mapping[str, Any]) -> list[str]:
    """Flags of `acc launch`, without those that are None or False."""
    words = ["--nproc-per-node", str(num_processes)]
    for name, value in settings.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None and value is not False:
            words += [f"--{name}", str(value)]
    return words


def _rendezvous_words(port: str, address: str, node_rank: int, num_nodes: int, backend: str, endpoint: str,
                      conf: Mapping[str, Any] | None, run_id: str) -> list[str]:
    """A job on one machine meets at a free port, unless another than accelerate's default is asked for."""
    words = [] if num_nodes == 1 and port == _DEFAULT_PORT else ["--main_process_port", port]
    if num_nodes > 1:
        words += ["--num_machines", str(num_nodes), "--machine_rank", str(node_rank), "--main_process_ip", address]
    words += ["--rdzv_backend", backend, "--rdzv_id", run_id]
    if endpoint:
        words += ["--rdzv_endpoint", endpoint]
    if conf:
        words += ["--rdzv_conf", ",".join(f"{key}={value}" for key, value in conf.items())]
    return words


def _launch(function: Callable[..., Any], args: Sequence[Any], num_processes: int, words: list[str],
            flags: Mapping[str, Any], announce: bool) -> list[Any]:
    shown = {"local_ranks_filter": "0", **flags}
    try:
        with contextlib.closing(notebook_job.Job(sending.call_text(function, tuple(args)), num_processes)) as job:
            return job.run(words + _words(num_processes, shown)[2:], _modules_for(function), announce)
    except Exception as error:
        raise error.with_traceback(None)  # the frames of this package say nothing in a cell


def _modules_for(function: Callable[..., Any]) -> list[str]:
    """What the workers get imported: torch, and installed modules that the notebook has."""
    namespaces = [vars(sys.modules["__main__"]), getattr(function, "__globals__", {})]
    names = {name for namespace in namespaces for name in _imported(namespace)}
    return sorted(names | {name for name in ("torch", "cloudpickle") if importlib.util.find_spec(name) is not None})


def _imported(namespace: Mapping[str, Any]) -> Iterator[str]:
    """The installed modules that the names of a namespace come from. Modules of the user are not among them: they may change."""
    for value in list(namespace.values()):
        name = None
        with contextlib.suppress(Exception):  # a value may answer anything
            name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
        if isinstance(name, str) and _is_installed(sys.modules.get(name)) and name.partition(".")[0] not in _OF_NOTEBOOKS:
            yield name


def _is_installed(module: types.ModuleType | None) -> bool:
    file = getattr(module, "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _call_here(function: Callable[..., Any], args: Sequence[Any], precision: str) -> Any:
    torch = sys.modules.get("torch")
    print("Launching training on one GPU." if torch is not None and torch.cuda.is_available() else "Launching training on CPU.")
    with _variables(ACCELERATE_MIXED_PRECISION=precision):
        return function(*args)


@contextlib.contextmanager
def _variables(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)  # the function may have removed it
            else:
                os.environ[name] = value


def _is_in_colab() -> bool:
    return "google.colab" in sys.modules


def _gpu_count() -> int:
    torch = sys.modules.get("torch")
    return 0 if torch is None else torch.cuda.device_count()


def _is_on_tpu(environment: Mapping[str, str]) -> bool:
    """Of Colab or Kaggle, as accelerate asks."""
    hosted = _is_in_colab() or any(name.startswith("KAGGLE") for name in environment)
    return hosted and ("TPU_NAME" in environment or environment.get("PJRT_DEVICE") == "TPU")


def _launch_on_tpu(function: Callable[..., Any], args: Sequence[Any], num_processes: int | None, precision: str) -> list[Any]:
    try:
        from accelerate import notebook_launcher as launch
    except ImportError:
        raise RuntimeError("workers on a TPU are started by accelerate: pip install accelerate") from None
    launch(function, args, num_processes, precision)
    return []


def _default_config() -> Path:
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "huggingface")
    return Path(home, "accelerate", "default_config.yaml").expanduser()


def _run_acc(*words: str) -> None:
    path = program.find()
    if path is None:
        raise FileNotFoundError(program.missing_text())
    done = subprocess.run([path, *words], text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().replace("acc: ", "", 1))
