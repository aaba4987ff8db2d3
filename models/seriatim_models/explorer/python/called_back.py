"""Where C code calls Python back in the midst of an operation: others run meanwhile, as in CPython.

A lookup in a dict or set goes on behind each comparison of its key. A sort by a key or by comparisons in Python empties
its list first and fills it again behind them; a search of a list compares one element after the other, `heapq` and
`bisect` some of them; a `defaultdict` stores the default that Python makes, whatever came meanwhile.
"""

from __future__ import annotations

import bisect
import collections
import functools
import heapq
import operator
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from seriatim_models.explorer.python.accesses import (
    before_comparison,
    library,
    running,
    setitem,
    touch_contents,
)
from seriatim_models.explorer.python.places import INSTANCE, TUPLE, kind_of

PYTHON = (types.FunctionType, types.MethodType)


def runs_python(function: Any) -> bool:
    """Whether a call of it runs Python, which others may interrupt."""
    if isinstance(function, functools.partial):
        return runs_python(function.func)
    if isinstance(function, type):
        if vars(function).get("__s_of_c__"):
            return False  # ours, for a class of C
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


def with_lookups(method: Callable[..., Any], special: str) -> Callable[..., Any]:
    """An `__eq__` of the program, behind which a lookup that has called it goes on in a step of its own.

    A `__hash__` comes before all that a lookup reads: there it does only if others have run since it was announced.
    """
    always = special == "__eq__"

    @functools.wraps(method)
    def compared(*operands: Any) -> Any:
        ex, thread = running()
        before = -1 if ex is None or always else ex.steps
        result = method(*operands)
        if ex is not None and thread is not None and ex.looking.get(thread) and ex.steps != before:
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


def ordered_by_python(left: Any, right: Any) -> bool:
    """Whether Python runs where C asks which of two comes first: also of elements of tuples up to a difference."""
    if type(left) is tuple and type(right) is tuple:
        for a, b in zip(left, right, strict=False):
            if a is b:
                continue
            if compared_by_python((a, b), "__eq__"):
                return True
            if a != b:
                return ordered_by_python(a, b)
        return False
    return bool(compared_by_python((left, right)))


class Heap:
    """One operation of `heapq`, as C makes it: a step ends behind each comparison by Python; others may come then."""

    def __init__(self, heap: list[Any], site: int, highest_first: bool) -> None:
        self.heap, self.site, self.highest_first = heap, site, highest_first
        touch_contents(heap, True, site)

    def _before(self, left: Any, right: Any) -> bool:
        if self.highest_first:
            left, right = right, left
        result = compared("lt", left, right, self.site)
        if ordered_by_python(left, right):
            touch_contents(self.heap, True, self.site)
        return result

    def _in_order(self, left: Any, right: Any) -> bool:
        size = len(self.heap)
        result = self._before(left, right)
        if size != len(self.heap):
            raise RuntimeError("list changed size during iteration")
        return result

    def _rise(self, start: int, at: int) -> None:
        """`siftdown` of C: its parents go down as long as it is before them."""
        heap = self.heap
        while at > start:
            parent = (at - 1) >> 1
            if not self._in_order(heap[at], heap[parent]):
                break
            heap[at], heap[parent] = heap[parent], heap[at]
            at = parent

    def _sink(self, start: int) -> None:
        """`siftup` of C: down to a leaf, and up again."""
        heap, at = self.heap, start
        while at < len(heap) >> 1:
            child = 2 * at + 1
            if child + 1 < len(heap):
                child += not self._in_order(heap[child], heap[child + 1])
            heap[at], heap[child] = heap[child], heap[at]
            at = child
        self._rise(start, at)

    def heapify(self) -> None:
        """Put all elements in order."""
        for start in reversed(range(len(self.heap) // 2)):
            self._sink(start)

    def heappush(self, item: Any) -> None:
        """Add one."""
        self.heap.append(item)
        self._rise(0, len(self.heap) - 1)

    def heapreplace(self, item: Any) -> Any:
        """Take the first, and then add one."""
        if not self.heap:
            raise IndexError("index out of range")
        first, self.heap[0] = self.heap[0], item
        self._sink(0)
        return first

    def heappop(self) -> Any:
        """Take the first."""
        if not self.heap:
            raise IndexError("index out of range")
        last = self.heap.pop()
        return self.heapreplace(last) if self.heap else last

    def heappushpop(self, item: Any) -> Any:
        """Add one, and then take the first."""
        if not self.heap or not self._before(self.heap[0], item):
            return item
        return self.heapreplace(item)


def _heap(name: str, highest_first: bool) -> Callable[..., Any]:
    return lambda site, heap, *given: getattr(Heap(heap, site, highest_first), name)(*given)


def _bisection(inserts: bool, right: bool) -> Callable[..., Any]:
    """`bisect`: as with a heap, a step ends behind each call of Python."""

    def bisected(
        site: int, a: list[Any], x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None
    ) -> Any:
        wanted = library.call(key, site, x) if key is not None and inserts else x
        touch_contents(a, inserts, site)
        if lo < 0:
            raise ValueError("lo must be non-negative")
        hi = len(a) if hi is None else hi
        while lo < hi:
            middle = (lo + hi) // 2
            there = a[middle] if key is None else library.call(key, site, a[middle])
            pair = (wanted, there) if right else (there, wanted)
            before = compared("lt", *pair, site)
            if runs_python(key) or ordered_by_python(*pair):
                touch_contents(a, inserts, site)
            lo, hi = (lo, middle) if before is right else (middle + 1, hi)
        return a.insert(lo, x) if inserts else lo

    return bisected


ORDERING: dict[Any, Callable[..., Any]] = {
    getattr(heapq, spelled.format(name)): _heap(name, "max" in spelled)
    for name in ("heapify", "heappush", "heappop", "heapreplace", "heappushpop")
    for spelled in ("{}", "_{}_max", "{}_max")
    if hasattr(heapq, spelled.format(name))
} | {
    bisect.bisect_left: _bisection(False, False), bisect.bisect_right: _bisection(False, True),
    bisect.insort_left: _bisection(True, False), bisect.insort_right: _bisection(True, True),
}  # fmt: skip
"""Functions of C that order a list by comparisons which may run Python, in the form that they are run in."""


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
