"""Where C code calls Python back in the midst of an operation: others run meanwhile, as in CPython.

A lookup in a dict or set goes on behind each comparison of its key. A sort by a key or by comparisons in Python empties
its list first and fills it again behind them; a search of a list compares one element after the other; a `defaultdict`
stores the default that Python makes, whatever came meanwhile.
"""

from __future__ import annotations

import collections
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from seriatim_models.explorer.python.accesses import (
    before_comparison,
    library,
    record_of,
    running,
    setitem,
    touch_contents,
)
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.places import INSTANCE, TUPLE, kind_of

PYTHON = (types.FunctionType, types.MethodType)


def runs_python(function: Any) -> bool:
    """Whether a call of it runs Python, which others may interrupt."""
    if isinstance(function, functools.partial):
        return runs_python(function.func)
    if isinstance(function, type):
        making = [getattr(function, name) for name in ("__init__", "__new__")]
        return any(isinstance(m, PYTHON) for m in (*making, type(function).__call__))
    return isinstance(function, PYTHON)


def made_if_missing(obj: collections.defaultdict[Any, Any], key: Any, site: int) -> Any:
    """A default that Python makes: others run meanwhile, and what it makes is stored all the same, as in CPython."""
    touch_contents(obj, False, site)
    if key in obj:
        return obj[key]
    value = library.call(obj.default_factory, site)
    setitem(value, obj, key, site)
    return value


def compared_by_python(elements: Iterable[Any], name: str = "__lt__") -> str:
    """The method, of this name, by which Python compares one of these elements; empty if C compares them all."""
    for element in elements:
        method = getattr(type(element), name, None)
        if isinstance(method, types.FunctionType):
            return method.__qualname__
    return ""


def compared(name: str, left: Any, right: Any, site: int) -> bool:
    """A comparison of two elements."""
    before_comparison(name, left, right, site)
    return bool(getattr(operator, name)(left, right))


class SortedElement:
    """An element of a list that is being sorted by comparisons in Python; the first of them lets others run.

    CPython empties the list before it and fills it again behind the last one.
    """

    __s_native__ = True

    def __init__(self, element: Any, owner: Any, site: int, begun: list[bool]) -> None:
        self.element, self.owner, self.site, self.begun = element, owner, site, begun

    def __lt__(self, other: SortedElement) -> bool:
        if not self.begun:
            self.begun.append(True)
            touch_contents(self.owner, True, self.site)
        return compared("lt", self.element, other.element, self.site)


def looked_up(obj: Any, write: bool, site: int, operation: Callable[[], Any]) -> Any:
    """An operation of a dict or set with a key that Python compares: it goes on behind each comparison.

    CPython begins the lookup again if the table has changed meanwhile; so what decides is its state behind the last.
    """
    ex, thread = running()
    if ex is None or thread is None:
        return operation()
    looking = ex.looking.setdefault(thread, [])
    looking.append((obj, write, site))
    try:
        return operation()
    finally:
        looking.pop()


def with_lookups(equal: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An `__eq__` of the program, behind which a lookup that has called it goes on in a step of its own."""

    @functools.wraps(equal)
    def compared(left: Any, right: Any) -> Any:
        result = equal(left, right)
        ex, thread = running()
        if ex is not None and thread is not None and ex.looking.get(thread):
            touch_contents(*ex.looking[thread][-1])
        return result

    return compared


def python_compares(key: Any) -> bool:
    """Whether Python may compare a key."""
    return kind_of(type(key)) in (INSTANCE, TUPLE)


SEARCHES = frozenset(("remove", "index", "count", "__contains__"))
"""Methods of a list that compare one element after the other."""


def searched(owner: list[Any], name: str, args: tuple[Any, ...], site: int) -> Any:
    """A search of a list by comparisons in Python, as CPython makes it: after each of them others may have run."""
    value, bounds = args[0], [*args[1:], *(0, sys.maxsize)[len(args) - 1 :]]
    changes = name == "remove"
    touch_contents(owner, changes, site)
    size = len(owner)
    at, stop = (max(bound + size, 0) if bound < 0 else bound for bound in bounds)
    found = 0
    while at < min(stop, len(owner)):
        element = owner[at]
        same = element is value
        if not same:
            same = compared("eq", element, value, site)
            if compared_by_python((element, value), "__eq__"):
                touch_contents(owner, changes, site)
        if same and changes:
            del owner[at : at + 1]
            return None
        if same and name != "count":
            return at if name == "index" else True
        found += same
        at += 1
    if name in ("count", "__contains__"):
        return found if name == "count" else False
    raise ValueError(f"list.{name}(x): x not in list")


def ordered_by_python(ex: PythonExecution, function: Any, objects: list[Any], site: int) -> None:
    """A heap, or a sorted list, whose elements Python compares: others may change it between two comparisons."""
    for obj in objects:
        if ex.current is not None and type(obj) is list:
            method = compared_by_python([*obj, *objects])
            if method:
                what = f"{function.__name__}, which compares by {method},"
                ex.opaque(ex.current, record_of(ex, obj, site), what, site)


def sort_options(owner: Any, options: dict[str, Any], site: int) -> dict[str, Any]:
    """The options of a sort in place, so that others run where it calls Python."""
    if type(options.get("key")) in PYTHON:
        return {**options, "key": _key_of_sort(owner, options["key"], site)}
    if options.get("key") is None and compared_by_python(owner):
        begun: list[bool] = []
        return {**options, "key": lambda element: SortedElement(element, owner, site, begun)}
    return options


def _key_of_sort(owner: Any, key: Callable[[Any], Any], site: int) -> Callable[[Any], Any]:
    """The key of a sort in place: CPython empties the list first, and fills it again after the last call."""
    left = len(owner)

    def counted(element: Any) -> Any:
        nonlocal left
        try:
            found = key(element)
        except Exception:
            touch_contents(owner, True, site)
            raise
        left -= 1
        if not left:
            touch_contents(owner, True, site)
        return found

    return counted
