# SPDX-License-Identifier: Apache-2.0
"""How functions, arguments, results and exceptions travel between a notebook and its workers: by cloudpickle where it is
installed, which sends functions of the notebook itself; else by pickle, which sends functions of modules by their names."""

from __future__ import annotations

import inspect
import linecache
import pickle
import sys
from typing import Any, Callable, Iterator


class SendingError(TypeError):
    """Something cannot be sent to the workers, or back."""


def _cloudpickle() -> Any:
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


def _dumps(value: Any) -> bytes:
    return (_cloudpickle() or pickle).dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


def _parts(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for number, argument in enumerate(arguments, 1):
        yield f"argument {number}", argument
    if inspect.isfunction(function):
        names = inspect.getclosurevars(function)
        for name, value in {**names.nonlocals, **names.globals}.items():
            yield f"'{name}', which {_name_of(function)} uses,", value


def _reason(value: Any) -> str:
    """Why it cannot be sent; empty: it can."""
    try:
        _dumps(value)
    except Exception as error:
        return f"{type(value).__name__}; {type(error).__name__}: {error}"
    return ""


def _explain(function: Callable[..., Any], arguments: tuple[Any, ...], error: Exception) -> str:
    for part, value in _parts(function, arguments):
        reason = _reason(value)
        if reason:
            return f"{part} cannot be sent to the workers ({reason}): make it in the function"
    return f"{_name_of(function)} cannot be sent to the workers ({type(error).__name__}: {error})"


def _cells() -> dict[str, Any]:
    """The lines of code that is in no file, which tracebacks show."""
    return {name: entry for name, entry in linecache.cache.items() if len(entry) == 4 and entry[1] is None}


def call_text(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """What a worker calls, with where it finds modules and lines of code. Throws SendingError, which names what cannot be sent."""
    if _cloudpickle() is None and (function.__module__ == "__main__" or "<locals>" in _name_of(function)):
        raise SendingError(f"{_name_of(function)} is not a function of a module, and only cloudpickle sends such ones: "
                           "pip install cloudpickle, or move it to a module")
    try:
        text = _dumps((function, arguments))
    except Exception as error:
        raise SendingError(_explain(function, arguments, error)) from None
    return pickle.dumps((sys.path, _cells(), text))


def result_text(result: Any) -> bytes:
    """Throws SendingError."""
    try:
        return _dumps(result)
    except Exception as error:
        raise SendingError(f"what the function returns cannot be sent back ({_reason(result)})") from error


def exception_text(error: BaseException) -> bytes:
    """Empty: it cannot be sent."""
    try:
        text = _dumps(error)
        pickle.loads(text)
        return text
    except Exception:
        return b""
