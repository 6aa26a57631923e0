# SPDX-License-Identifier: Apache-2.0
"""A worker of acc.notebook_launcher.

    python notebook_worker.py CALL RESULT...

CALL is a file with what sending.call_text() has made, and there is a file for the result of each worker.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import pickle
import sys
import threading
import time
import traceback
from typing import Any, Callable, NoReturn

if __name__ == "__main__":  # not in processes that it spawns
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from acc import sending  # noqa: E402


def limit_threads() -> None:
    """The fork server has imported torch before it was known how many threads a worker gets."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if "torch" in sys.modules and threads.isdecimal():
        sys.modules["torch"].set_num_threads(int(threads))


def name_in_main(function: Callable[..., Any]) -> None:
    """What was sent of the notebook's __main__ is in that of the worker, where pickle looks it up by name."""
    if getattr(function, "__module__", None) == "__main__":
        names = {getattr(function, "__name__", ""): function, **getattr(function, "__globals__", {})}
        vars(sys.modules["__main__"]).update({name: value for name, value in names.items() if not name.startswith("__")})


def own_traceback(error: BaseException) -> str:
    """Without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def write_error_file(error: BaseException, text: str, now: float) -> None:
    """As torch's @record does; by its time acc knows which worker failed first."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    extra = {"py_callstack": text, "timestamp": str(int(now)), "timestamp_us": str(int(now * 1e6))}
    message = traceback.format_exception_only(type(error), error)[-1].strip()
    with open(path, "w") as file:
        json.dump({"message": {"message": message, "extraInfo": extra}}, file)


def end(code: int) -> NoReturn:
    """As processes of multiprocessing end: the handlers at exit are those of the process that was forked."""
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    if "multiprocessing.util" in sys.modules:
        sys.modules["multiprocessing.util"]._exit_function()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError, AttributeError, OSError):  # the function may have closed or replaced it
            stream.flush()
    os._exit(code)


def save(result: str, record: tuple[Any, ...]) -> None:
    with open(result, "wb") as file:
        pickle.dump(record, file)


def call(path: str, result: str) -> int:
    """The exit code. What the notebook reads is in `result` then."""
    with open(path, "rb") as file:
        search_path, cells, text = pickle.load(file)
    sys.path[:] = search_path
    linecache.cache.update(cells)
    limit_threads()
    try:
        function, arguments = pickle.loads(text)
        name_in_main(function)
        save(result, ("returned", sending.result_text(function(*arguments))))
        return 0
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        now = time.time()
        text = own_traceback(error)
        # First, since by the error file this worker is the one that failed: where acc stops it before, another one is.
        try:
            save(result, ("raised", sending.exception_text(error), text))
        finally:
            write_error_file(error, text, now)
        return 1


def main(path: str, *results: str) -> NoReturn:
    result = results[int(os.environ["LOCAL_RANK"])]
    open(result, "wb").close()  # what it returned before a restart
    try:
        code = call(path, result)
    except KeyboardInterrupt:
        end(130)
    except SystemExit as request:
        if request.code is not None and not isinstance(request.code, int):
            print(request.code, file=sys.stderr)
        end(0 if request.code is None else request.code & 0xFF if isinstance(request.code, int) else 1)
    end(code)


if __name__ == "__main__":
    from acc.notebook_worker import main as main_of_module  # whose names are not those of the notebook

    main_of_module(*sys.argv[1:])
