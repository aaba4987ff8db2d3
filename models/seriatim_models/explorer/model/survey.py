"""What a program may touch, found before it runs: real locks, waits by another name, and the classes it uses.

Locks of `threading` are written in C: no method of theirs can be replaced, and a program that says
``from time import sleep`` does not ask the module again. So before an exploration the *survey* goes through what the
program's code can reach: variables of enclosing functions, globals that the code names, the functions and classes
among these and what their code names, the attributes and items of objects. Where it finds a real lock or queue, or a
function in C that waits or tells the time, a stand-in takes its place until the exploration ends, which refuses its
use by a thread of the program and serves everybody else.

The same walk finds the classes whose objects the threads may use, so that their attributes can be observed
(`attributes`) without anybody having named them.

Not found are a local variable's value that comes from nowhere of this, and what is reached by a name made at run time.
The watchdog is left for these.
"""

from __future__ import annotations

import functools
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from seriatim_models.explorer.model.attributes import observable
from seriatim_models.explorer.model.execution import inside
from seriatim_models.explorer.model.guard import INSTEAD, QUEUE, foreign, name_of, refusal, refusing

OWN = frozenset(("seriatim", "seriatim_models", "seriatim_workshop"))
"""Top packages of this project, whose programs are checked for data races by tests of their own."""

NEVER_OBSERVED = (
    OWN
    | frozenset(("builtins", "_pytest", "pytest", "pluggy", "hypothesis", "greenlet"))
    | sys.stdlib_module_names
)

STANDS_FOR: dict[type, tuple[str, str]] = {
    type(threading.Lock()): ("threading.Lock", "world.lock()"),
    type(threading.RLock()): ("threading.RLock", "world.lock() (the model has no re-entrant lock)"),
    queue.SimpleQueue: ("queue.SimpleQueue", QUEUE),
}
"""Real locks and queues that are written in C: their name, and what to use instead."""

BY_OTHER_NAMES: dict[Any, tuple[str, str]] = {
    getattr(owner, name): (name_of(owner, name), instead)
    for owner, name, instead in INSTEAD
    if isinstance(owner, ModuleType)
    and hasattr(owner, name)  # some systems have no epoll, some no kqueue
    and (not isinstance(getattr(owner, name), type) or getattr(owner, name) in STANDS_FOR)
}
"""Functions, and classes written in C, that the guard replaces in their modules: their name, and what to use instead.

`threading.Lock` is a function up to Python 3.12 and a class from 3.13 on.
"""

ITEMS = 50
"""Most items of a container that are looked at."""
MOST = 5000
"""Most things that are looked at."""


class StandIn:
    """Stands where a real lock or queue was: as good for everybody but the threads of the program."""

    def __init__(self, real: Any) -> None:
        self._real = real

    @property  # type: ignore[misc]  # nobody writes it
    def __class__(self) -> Any:
        return type(self._real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._use(), name)

    def __enter__(self) -> Any:
        return self._use().__enter__()

    def __exit__(self, *error: object) -> None:
        self._use().__exit__(*error)

    def _use(self) -> Any:
        if inside():
            name, instead = STANDS_FOR[type(self._real)]
            raise refusal(f"a real lock or queue ({name})", instead, sys._getframe(2))
        return self._real


class Survey:
    """What was found from one program on; `ended` puts back what was replaced."""

    def __init__(self, program: Callable[..., object]) -> None:
        self.classes: dict[type, None] = {}
        """Classes of the program, in the order in which they were found."""
        self._undo: list[Callable[[], object]] = []
        self._seen: dict[int, object] = {}
        """By `id`, and kept so that no other object gets it."""
        self._ahead: deque[Any] = deque(_enclosed(program))
        self._add(program)
        while self._ahead and len(self._seen) < MOST:
            value, owner, key = self._ahead.popleft()
            if owner is not None:
                self._replace(value, owner, key)
            self._add(value)

    def ended(self) -> None:
        """Put back what was replaced."""
        while self._undo:
            self._undo.pop()()

    def _add(self, value: Any) -> None:
        """What is reached from here is looked at later."""
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        self._ahead.extend(_reached(value))
        kind = value if isinstance(value, type) else type(value)
        if own_class(kind):
            self.classes.setdefault(kind)

    def _replace(self, value: Any, owner: Any, key: Any) -> None:
        """Put a stand-in where a real lock, queue or wait is: an attribute of `owner`, or an item if it has items."""
        mine: Any = None
        if type(value) in STANDS_FOR:
            mine = StandIn(value)
        elif (
            isinstance(value, BuiltinFunctionType | FunctionType | type) and value in BY_OTHER_NAMES
        ):
            mine = refusing(*BY_OTHER_NAMES[value], value)
        if mine is None:
            return
        put = _putting(owner, key)
        with suppress(AttributeError, TypeError):
            put(mine)
            self._undo.append(lambda: put(value))


def _putting(owner: Any, key: Any) -> Callable[[Any], object]:
    """Writes an attribute of `owner`, or an item if it has items."""
    if isinstance(owner, dict | list):
        return lambda value: owner.__setitem__(key, value)
    if isinstance(owner, type):
        return lambda value: type.__setattr__(owner, key, value)
    return lambda value: object.__setattr__(owner, key, value)


Reached = Iterator[tuple[Any, Any, Any]]
"""Values, each with where it stands: an owner and a key, or (None, None) where nothing can be put in its place."""


def _reached(value: Any) -> Reached:
    """What a program reaches from a value."""
    kind = type(value)
    if kind is FunctionType:
        if foreign(value.__code__):
            yield from _enclosed(value)
            yield from _named(value.__code__, value.__globals__)
    elif kind is MethodType:
        yield from ((value.__self__, None, None), (value.__func__, None, None))
    elif kind is functools.partial:
        yield from ((v, None, None) for v in (value.func, *value.args, *value.keywords.values()))
    elif kind is property:
        yield from ((f, None, None) for f in (value.fget, value.fset, value.fdel))
    elif kind in (staticmethod, classmethod):
        yield value.__func__, None, None
    elif kind in (list, dict):
        pairs = list(value.items() if kind is dict else enumerate(value))[:ITEMS]
        yield from ((item, value, key) for key, item in pairs)
    elif kind in (tuple, set, frozenset, deque):
        yield from ((item, None, None) for item in list(value)[:ITEMS])
    elif isinstance(value, type):
        if not known(value.__module__):
            yield from ((base, None, None) for base in value.__bases__)
            yield from ((v, value, name) for name, v in list(vars(value).items()))
    elif not known(kind.__module__):
        yield kind, None, None
        yield from ((v, value, name) for name, v in _attributes(value).items())


def _enclosed(function: Callable[..., object]) -> Reached:
    """The variables of enclosing functions that a function uses, and its defaults."""
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # it has no value yet
            yield cell.cell_contents, cell, "cell_contents"
    for value in getattr(function, "__defaults__", None) or ():
        yield value, None, None


def _named(code: CodeType, around: dict[str, Any]) -> Reached:
    """The globals that some code names, and of modules among them what it names there."""
    names = code.co_names
    for name in names:
        if name in around:
            value = around[name]
            yield value, around, name
            if isinstance(value, ModuleType) and not known(value.__name__):
                inner = vars(value)
                yield from ((inner[n], inner, n) for n in names if n in inner)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _named(const, around)


def known(module: str) -> bool:
    """Whether a module is the project's, the standard library's or of what runs tests."""
    return module.partition(".")[0] in NEVER_OBSERVED


def own_class(kind: type) -> bool:
    """Whether a class is the program's: written in Python, and neither the project's nor the standard library's."""
    if known(kind.__module__) or not kind.__flags__ & 1 << 9 or kind.__flags__ & 1 << 8:
        return False  # not a class of the heap, or one that cannot be changed
    return observable(kind)


def own_program(program: Callable[..., object]) -> bool:
    """Whether a program is one of the project's own."""
    return (getattr(program, "__module__", None) or "").partition(".")[0] in OWN


def _attributes(value: Any) -> dict[str, Any]:
    """What lies in an object itself, by name, without asking the object."""
    found: dict[str, Any] = {}
    for base in type(value).__mro__:
        for name, slot in vars(base).items():
            if isinstance(slot, MemberDescriptorType):
                with suppress(AttributeError):
                    found[name] = slot.__get__(value)
    with suppress(AttributeError, TypeError):
        found.update(object.__getattribute__(value, "__dict__"))
    return found
