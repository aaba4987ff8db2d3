"""Properties from outside: ``module:Name``, ``file.py:Name``, or the name of an entry point.

What is named is a `Property`, or a class of them that can be made without arguments, such as a
`sequential.SequentialModel`.
A package offers its properties under names with entry points of the group ``seriatim.properties``::

    [project.entry-points."seriatim.properties"]
    refunds = "shop.properties:RefundAfterPayment"
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import sys
import traceback
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from seriatim_models.files import message_of
from seriatim_models.properties.base import AnyProperty, Property
from seriatim_models.source_files import unloaded_module

GROUP = "seriatim.properties"

FILES: set[str] = set()
"""The files of the properties that were loaded: what is raised in one is no fault of this package."""

NEEDED = ("id", "sentence", "source", "reads")
"""What every property declares."""


class PropertyError(ValueError):
    """A property that cannot be loaded; names where it was looked for and what is wrong."""


def load_property(named: str) -> AnyProperty:
    """The property that ``module:Name``, ``file.py:Name`` or an entry point names.

    Raises `PropertyError`.
    """
    where, colon, name = named.rpartition(":")
    if colon and not (where and name):
        raise PropertyError(f"{named}: a property is named module:Name or file.py:Name")
    found = _attribute(_module(where), where, name) if colon else _entry_point(named)
    if isinstance(found, type):
        if not issubclass(found, Property):
            raise PropertyError(f"{named}: the class {found.__name__} is no Property")
        try:
            found = _run(where or named, found)
        except PropertyError as error:
            raise PropertyError(f"{named}: cannot be made without arguments: {error}") from error
    if not isinstance(found, Property):
        raise PropertyError(
            f"{named}: this {type(found).__name__} is no Property and no class of them"
        )
    missing = [key for key in NEEDED if not hasattr(found, key)]
    if missing:
        raise PropertyError(
            f"{named}: declares no {', no '.join(missing)}; a property says {', '.join(NEEDED)}"
        )
    for key in ("id", "sentence", "source", "kind"):
        if not isinstance(text := getattr(found, key), str) or not text:
            raise PropertyError(f"{named}: its {key} is {text!r}, and must be a text")
    for method, base in (("initial", "SequentialModel"), ("step", "SequentialModel")):
        own = getattr(type(found), method, None)
        if own is not None and own.__qualname__ == f"{base}.{method}":
            raise PropertyError(f"{named}: has no method {method}, which a {base} needs")
    return found


def load_properties(named: tuple[str, ...], beside: tuple[AnyProperty, ...]) -> list[AnyProperty]:
    """The properties of these names. Raises `PropertyError`, also if one has the id of another or of one `beside`."""
    taken = {p.id: "the profile" for p in beside}
    out = []
    for name in named:
        found = load_property(name)
        if found.id in taken:
            raise PropertyError(
                f"{name}: the id {found.id!r} is that of a property of {taken[found.id]}"
            )
        taken[found.id] = name
        out.append(found)
        with suppress(OSError, TypeError):  # made in a shell, or written in C
            FILES.add(os.path.realpath(inspect.getfile(type(found))))
    return out


def is_own(prop: AnyProperty) -> bool:
    """Whether a property is from outside of this package."""
    return not type(prop).__module__.startswith("seriatim_models.")


def raised_in_own(error: BaseException) -> str:
    """Where a property from outside raised the exception, in a sentence; empty if none did."""
    what = ": ".join(filter(None, (type(error).__name__, message_of(error))))
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        code, judge = frame.f_code, frame.f_locals.get("self")
        if _in_own_file(code.co_filename):
            return (
                f"{code.co_filename}, line {line}, in {code.co_name} of a property of yours: {what}"
            )
        # What a method of it returned was of no use here.
        if isinstance(judge, Property) and is_own(judge):
            return f"{type(judge).__name__}, a property of yours: {what}"
    return ""


def _in_own_file(name: str) -> bool:
    try:
        return bool(FILES) and os.path.realpath(name) in FILES
    except OSError:  # the current folder, in which a name may be, has been deleted
        return False


def _module(where: str) -> ModuleType:
    if where.endswith(".py"):
        path = Path(where)
        if not path.is_file():
            raise PropertyError(f"{where}: there is no such file")
        name = f"seriatim_own_{path.stem}"
        made, loader = unloaded_module(path, name)
        sys.modules[name] = made
        _run(where, lambda: loader.exec_module(made))
        return made
    if "" not in sys.path:
        sys.path.insert(0, "")  # where the command was called
    return _run(where, lambda: importlib.import_module(where))  # type: ignore[no-any-return]


def _run(where: str, load: Any) -> Any:
    """What `load` returns. Raises `PropertyError` with the line that failed."""
    try:
        return load()
    except SyntaxError as error:
        raise PropertyError(f"{error.filename}, line {error.lineno}: {error.msg}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name and where.startswith(error.name):
            raise PropertyError(
                f"{where}: there is no such module; a file is named file.py:Name"
            ) from error
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise PropertyError(
            f"{last.filename}, line {last.lineno}: {type(error).__name__}: {message_of(error)}"
        ) from error


def _attribute(module: ModuleType, where: str, name: str) -> Any:
    found = getattr(module, name, None)
    if found is None:
        there = [
            n for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, Property)
        ]
        there = [n for n in there if vars(module)[n].__module__ == module.__name__]
        raise PropertyError(
            f"{where}: defines no {name!r}"
            + (f"; its properties are {', '.join(there)}" if there else "")
        )
    return found


def _entry_point(name: str) -> Any:
    known = {point.name: point for point in entry_points(group=GROUP)}
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        raise PropertyError(
            f"{name}: no installed package offers a property of that name (entry points of the group {GROUP})"
            + (
                f"; did you mean {near[0]}?"
                if near
                else "; module:Name or file.py:Name names one of yours"
            )
        )
    point = known[name]
    return _run(point.value, point.load)
