"""What the library finds out from the frame of its caller, which in rewritten code is one of the explorer's."""

from __future__ import annotations

import builtins
import functools
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seriatim_models.explorer.model.guard import HARNESS, line_of
from seriatim_models.explorer.python.rewrite import Site, number_of


def caller(level: int = 1) -> types.FrameType | None:
    """The frame of the program or library that calls, or one so much farther out; None if there are not so many."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if not Path(frame.f_code.co_filename).is_relative_to(HARNESS):
            level -= 1
            if level <= 0:
                return frame
        frame = frame.f_back
    return None


_OURS = str(HARNESS)


def passed_on(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`function(*args, **kwargs)` from a frame that is of the program's module, for what asks its caller for that.

    `type` does, `enum`, `typing` and `namedtuple`, which make something that says which module it is of.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    name = "__main__" if frame is None else frame.f_globals.get("__name__", "__main__")
    space = {"__name__": name, "__builtins__": builtins}
    return types.FunctionType(_called.__code__, space)(function, args, kwargs)


def _called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


def site_of_caller() -> int:
    """The number of the innermost line of the program."""
    found = line_of(sys._getframe(1))
    return 0 if found is None else _numbered(*found)


@functools.cache
def _numbered(path: str, line: int, function: str) -> int:
    return number_of(Site(path, line, function))


def warn(
    site: int,
    message: Any,
    category: Any = None,
    stacklevel: int = 1,
    source: Any = None,
    **options: Any,
) -> None:
    """`warnings.warn` for the line of the program that calls it: the filters go by line and module."""
    frame = caller(max(stacklevel, 1))
    if options or frame is None or not _is_category(message, category):
        warnings.warn(message, category, stacklevel, source, **options)
        return
    warnings.warn_explicit(
        message,
        type(message) if isinstance(message, Warning) else category or UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<string>"),
        frame.f_globals.setdefault("__warningregistry__", {}),
        None,
        source,
    )


def _is_category(message: Any, category: Any) -> bool:
    """Whether `warn` takes it, and raises nothing."""
    if isinstance(message, Warning) or category is None:
        return True
    return isinstance(category, type) and issubclass(category, Warning)
