"""What the rewritten code calls before each access.

Each function announces what is about to happen to the execution that runs, and then does what the source said:
nothing comes between the two, so an access and its announcement are one step.
Outside an execution (while it is being closed, say) they only do what the source said.

C code that is given a container reads or writes its contents in one step, as the GIL and the locks of
free-threaded builds have it; Python code that it calls back has steps of its own. Python code that was not
rewritten cannot be observed: an object that it is given, and that another thread uses, is noted (`opaque`).
"""

from __future__ import annotations

import builtins
import collections
import contextvars
import datetime
import functools
import io
import logging
import operator
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.model.guard import program_text
from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.python.execution import LIFETIMES, PythonExecution
from seriatim_models.explorer.python.places import (
    CLASS,
    CONTAINER,
    CONTENTS,
    INSTANCE,
    MODULE,
    NATIVE,
    OPAQUE,
    PLAIN,
    TUPLE,
    VALUE,
    VIEW,
    ObjectRecord,
    elements,
    forget_kinds,
    kind_of,
    operands,
    where,
    written_in_c,
)
from seriatim_models.explorer.python.rewrite import MODULE_TOKEN, SITES

MARK = "__s_observed__"
"""A global of every module that was rewritten."""

CHANGING = frozenset(
    ("append", "appendleft", "extend", "extendleft", "insert", "remove", "pop", "popleft", "popitem", "clear",
     "sort", "reverse", "rotate", "add", "discard", "update", "setdefault", "move_to_end", "__setitem__",
     "__delitem__", "__iadd__", "__ior__", "__iand__", "__isub__", "__ixor__", "__imul__", "difference_update",
     "intersection_update", "symmetric_difference_update", "__init__")
)  # fmt: skip
"""Methods of containers that change them."""

LAZY = frozenset((map, filter, zip, enumerate))
"""Built-in classes whose objects read what they are given later, one element at a time."""

PASSING = frozenset(
    ("contextlib", "functools", "abc", "typing", "types", "enum", "dataclasses", "warnings", "pytest", "_pytest",
     "seriatim_models", "operator", "logging")
)  # fmt: skip
"""Modules, not observed, whose functions only pass on what they are given."""

DEEP = frozenset((repr, ascii, format, print, sorted, min, max, sum, hash))
COMPARING = frozenset(("index", "count", "remove", "sort", "__eq__", "__contains__", "__repr__"))
"""Built-in functions, and methods of containers, that look at what the elements hold."""

GETTERS = frozenset((operator.attrgetter, operator.itemgetter, operator.methodcaller))
"""C code that looks into objects later, wherever it is called."""

LOOKING = frozenset((isinstance, issubclass, callable, type, builtins.super))
"""What looks at no contents."""


class _Now:
    """The execution that runs."""

    execution: PythonExecution | None = None


now = _Now()


def running() -> tuple[PythonExecution | None, Thread | None]:
    """The execution and the thread of it that runs; None outside."""
    ex = now.execution
    return ex, (None if ex is None else ex.current)


def forget_classes() -> None:
    """Let go of the classes of executions that are over."""
    _members.clear()
    forget_kinds()


# -- names -----------------------------------------------------------------------------------------------------------


def label_of(obj: object, site: int) -> str:
    """What an object is called in messages, the same for all objects made or used at one place."""
    kind = type(obj)
    if kind_of(kind) == CLASS:
        return obj.__qualname__  # type: ignore[attr-defined,no-any-return]
    if kind_of(kind) in (CONTAINER, OPAQUE):
        return f"{kind.__qualname__} of {where(site)}"
    if kind is types.FunctionType:
        return f"function {obj.__qualname__}"  # type: ignore[attr-defined]
    return kind.__qualname__


def record_of(ex: PythonExecution, obj: Any, site: int, made: bool = False) -> ObjectRecord:
    """The record of an object, which gets its name now if it has none."""
    record = ex.records.get(id(obj))
    if record is None:
        record = ex.record(obj, label_of(obj, site), made)
    return record


def named(ex: PythonExecution, value: Any, site: int) -> None:
    """A value is being stored: from now on others may come to it."""
    kind = kind_of(type(value))
    if kind in (CONTAINER, INSTANCE, OPAQUE):
        if id(value) not in ex.records:
            ex.record(value, label_of(value, site), True)
    elif kind == TUPLE:
        for element in operands(value):
            if id(element) not in ex.records:
                ex.record(element, label_of(element, site), True)


def made(value: Any, site: int) -> Any:
    """A container that was made just now."""
    ex = now.execution
    if ex is not None and ex.current is not None:
        ex.record(value, label_of(value, site), True)
    return value


def scope(qualname: str) -> ObjectRecord | None:
    """What stands for the variables of one call that inner functions use."""
    ex = now.execution
    return None if ex is None else ex.record(object(), f"variables of {qualname}", True)


# -- variables ---------------------------------------------------------------------------------------------------------


def cell(record: ObjectRecord | None, name: str, site: int) -> None:
    """A shared variable is about to be read."""
    ex = now.execution
    if record is not None and ex is not None and (thread := ex.current) is not None:
        ex.touch(thread, record, name, False, site)


def cell_set(record: ObjectRecord | None, name: str, value: Any, site: int) -> Any:
    """A shared variable is about to be bound to the value, which is returned."""
    ex = now.execution
    if record is not None and ex is not None and (thread := ex.current) is not None:
        named(ex, value, site)
        if kind_of(type(value)) == NATIVE and hasattr(value, "call_it"):
            value.call_it(name)
        ex.touch(thread, record, name, True, site)
    return value


# -- attributes --------------------------------------------------------------------------------------------------------

UNSHARED, METHOD, PROPERTY, DATA, INSIDE, OF_CLASS, OF_MODULE, CACHED, ATTRIBUTES = range(9)
"""What `obj.name` is by the class of `obj`: nothing that is observed, a method, a property, an attribute of an object,
state inside of C, an attribute of a class, of a module, a property that is kept, the dict of all attributes."""


class _Library:
    """What `kept_inside` knows of the standard library; it imports this module and fills this in."""

    members: dict[int, Callable[[PythonExecution, Thread, Any, str, int], Any]]
    """How CACHED and ATTRIBUTES are read."""
    resume: Callable[[Any, Callable[..., Any], tuple[Any, ...], int], Any]
    resumptions: Callable[[Any, int], Any]
    read_deeply: Callable[[Any, int], None]
    readers: frozenset[str]
    observed_twin: Callable[[Any], Any]
    today: Callable[..., Any]


library = _Library()

C_ATTRIBUTES = (types.GetSetDescriptorType, types.MemberDescriptorType)
ITERATING = frozenset((
    *LAZY, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, functools.partial,
))  # fmt: skip
"""Classes of C whose objects are no places, unless a program stores them."""

_members: dict[tuple[type, str], int] = {}


def member(kind: type, name: str) -> int:
    """What an attribute of an object of this class is."""
    found = _members.get((kind, name))
    if found is None:
        found = _members[kind, name] = _member(kind, name)
    return found


def _member(kind: type, name: str) -> int:
    what = kind_of(kind)
    if what == CLASS:
        return OF_CLASS
    if what == MODULE:
        return OF_MODULE
    if what not in (INSTANCE, CONTAINER, OPAQUE) or kind in PLAIN:
        return UNSHARED
    if name == "__class__":
        return METHOD
    if name == "__dict__":
        return ATTRIBUTES
    for base in kind.__mro__:
        if name in base.__dict__:
            value = base.__dict__[name]
            if isinstance(value, property):
                return PROPERTY
            if isinstance(value, functools.cached_property):
                own = type(value).__get__ is not functools.cached_property.__get__
                return PROPERTY if own else CACHED
            if isinstance(value, types.FunctionType | classmethod | staticmethod) or (
                type(value) in (types.MethodDescriptorType, types.WrapperDescriptorType)
            ):
                return METHOD
            if what == OPAQUE and isinstance(value, C_ATTRIBUTES) and written_in_c(base):
                return UNSHARED if kind in ITERATING else INSIDE
            break
    return DATA


def class_places(ex: PythonExecution, kind: type, name: str, site: int) -> list[Any]:
    """The places of a class attribute that a lookup on an object reads: of each class up to the one that has it."""
    result = []
    for base in kind.__mro__:
        if kind_of(type(base)) == CLASS and base.__flags__ & (1 << 9):
            result.append((record_of(ex, base, site, True), name, False))
        if name in base.__dict__:
            break
    return result


def get(obj: Any, name: str, site: int) -> Any:
    """`obj.name`."""
    ex = now.execution
    if ex is None or (thread := ex.current) is None:
        return getattr(obj, name)
    kind = type(obj)
    is_a = _members.get((kind, name))
    if is_a is None:
        is_a = member(kind, name)
    if is_a == DATA and not ex.rare:
        # The commonest case, at length: an attribute that only this thread has touched is compared with nothing.
        record = ex.records.get(id(obj))
        if record is not None and (place := record.places.get(name)) is not None:
            if place.thread is thread and place.index < 0:
                place.read_at = ex.steps - 1
                place.read_site = site
                ex.budget -= 1
                if ex.budget < 0:
                    ex.long_step(place, False)
            else:
                ex.access(thread, place, False, site)
            return getattr(obj, name)
    if is_a != UNSHARED and (is_a != METHOD or ex.rare):
        if is_a >= CACHED:
            return library.members[is_a](ex, thread, obj, name, site)
        _before_load(ex, thread, obj, name, is_a, site)
    return getattr(obj, name)


def _before_load(
    ex: PythonExecution, thread: Thread, obj: Any, name: str, is_a: int, site: int
) -> None:
    """Announce that an attribute is about to be read."""
    promoted = ex.search.promoted
    if is_a == OF_CLASS:
        if f"class attribute {name}" in promoted:
            ex.touch_all(thread, class_places(ex, obj, name, site), site)
    elif is_a == OF_MODULE:
        token = obj.__dict__.get(MODULE_TOKEN)
        if token is not None and f"global {obj.__name__}.{name}" in promoted:
            ex.touch(thread, token, name, False, site)
    elif is_a == INSIDE:
        touch_contents(obj, False, site)
    elif is_a != PROPERTY and f"class attribute {name}" in promoted:
        own = (record_of(ex, obj, site), name, False)
        ex.touch_all(thread, [own, *class_places(ex, type(obj), name, site)], site)
    elif is_a == DATA or (is_a == METHOD and f"method {name} of an object" in promoted):
        ex.touch(thread, record_of(ex, obj, site), name, False, site)


def _before_store(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> None:
    """Announce that an attribute is about to change."""
    kind = type(obj)
    is_a = member(kind, name)
    if is_a == OF_CLASS:
        if obj.__module__.partition(".")[0] in ("queue", "threading", "asyncio"):
            ex.search.unseen[f"{obj.__qualname__}.{name} is set at {where(site)}"] = None
        if _may_race(ex, f"class attribute {name}", site):
            ex.touch(thread, record_of(ex, obj, site, True), name, True, site)
        _members.clear()
    elif is_a == OF_MODULE:
        token = obj.__dict__.get(MODULE_TOKEN)
        if token is None:
            what = f"{obj.__name__}.{name} is set at {where(site)}: the module is not observed"
            ex.search.unseen[what] = None
        elif _may_race(ex, f"global {obj.__name__}.{name}", site):
            ex.touch(thread, token, name, True, site)
    elif is_a == METHOD:
        ex.need(f"method {name} of an object", site)
        ex.touch(thread, record_of(ex, obj, site, True), name, True, site)
    elif is_a in (DATA, CACHED):
        ex.touch(thread, record_of(ex, obj, site, True), name, True, site)
    elif is_a == INSIDE:
        touch_contents(obj, True, site)
    elif is_a == ATTRIBUTES:
        ex.opaque(thread, record_of(ex, obj, site, True), name, site)


def _may_race(ex: PythonExecution, label: str, site: int) -> bool:
    """Whether a store into something rarely shared is observed; before a second thread there is nobody to see it."""
    return label in ex.search.promoted or (len(ex.heads) > 1 and ex.need(label, site))


def set_(value: Any, obj: Any, name: str, site: int) -> None:
    """`obj.name = value`."""
    ex = now.execution
    if ex is not None and (thread := ex.current) is not None:
        named(ex, value, site)
        if kind_of(type(value)) == NATIVE and hasattr(value, "call_it"):
            value.call_it(f"{type(obj).__qualname__}.{name}")
        _before_store(ex, thread, obj, name, site)
    setattr(obj, name, value)


def del_(obj: Any, name: str, site: int) -> None:
    """`del obj.name`."""
    ex = now.execution
    if ex is not None and (thread := ex.current) is not None:
        _before_store(ex, thread, obj, name, site)
    delattr(obj, name)


# -- contents of containers --------------------------------------------------------------------------------------------


def contents(ex: PythonExecution, obj: Any, write: bool, site: int) -> list[Any]:
    """The places that one operation of C code on `obj` touches: its contents, or those of what a tuple holds.

    They must not depend on what a container holds at the moment, which other threads may change before the
    operation happens: see `look_inside`.
    """
    found: dict[int, tuple[ObjectRecord, str, bool]] = {}
    for element in operands(obj):
        what = kind_of(type(element))
        if what == VIEW:
            element = ex.views.get(id(element), (None, element))[1]
            what = kind_of(type(element))
        if what in (CONTAINER, OPAQUE):
            # The state inside of C code: whatever is done to it may change it.
            changes = (write and element is obj) or what == OPAQUE
            found[id(element)] = (record_of(ex, element, site), CONTENTS, changes)
            if what == OPAQUE:
                _behind(ex, element, site, found)
    return list(found.values())


def _behind(
    ex: PythonExecution, obj: Any, site: int, found: dict[int, tuple[ObjectRecord, str, bool]]
) -> None:
    """Add the state that an object of C shares with others: what it was made from, and the files."""
    if isinstance(obj, FILE) and not isinstance(obj, IN_MEMORY):
        found[0] = (ex.files, CONTENTS, True)
    for source in ex.derived.get(id(obj), (None, ()))[1]:
        if id(source) not in found:
            found[id(source)] = (record_of(ex, source, site), CONTENTS, True)
            _behind(ex, source, site, found)


def look_inside(ex: PythonExecution, thread: Thread, obj: Any, site: int) -> None:
    """C code is about to look into the containers that are inside `obj`, too: a comparison, a `repr`.

    Which they are depends on what `obj` holds in this step, so they cannot be announced before it. They are compared
    with other accesses; and where one of them races, the verdict is withheld.
    """
    direct = {id(operand) for operand in operands(obj)}
    for element in elements(obj):
        if kind_of(type(element)) != CONTAINER or id(element) in direct:
            continue
        record = ex.records.get(id(element))
        if record is None:
            continue
        place = record.places.get(CONTENTS)
        if place is not None and place.index >= 0:
            what = f"{where(site)} reads {record.label} through another container, in one step"
            ex.search.unseen[what] = None
        else:
            ex.touch(thread, record, CONTENTS, False, site)


def touch_contents(obj: Any, write: bool, site: int) -> None:
    """Announce that the contents of `obj` itself are about to be read or written."""
    ex = now.execution
    if ex is None or (thread := ex.current) is None:
        return
    what = kind_of(type(obj))
    if what == VIEW:
        obj = ex.views.get(id(obj), (None, obj))[1]
        what = kind_of(type(obj))
    if what in (CONTAINER, OPAQUE):
        # Before a second thread there is nobody whose accesses it could race with.
        if write and type(obj) is dict and MARK in obj and len(ex.heads) > 1:
            ex.search.unseen[f"the names of a module are changed as a dict at {where(site)}"] = None
        if what == OPAQUE:
            ex.touch_all(thread, contents(ex, obj, True, site), site)
            return
        record = ex.records.get(id(obj))
        if record is None:
            record = record_of(ex, obj, site)
        ex.touch(thread, record, CONTENTS, write, site)


def touch_all(write: bool, site: int, *objects: Any, deep: bool = False) -> None:
    """Announce one operation of C code on several objects; with `deep` it looks at what they hold, too."""
    ex = now.execution
    if ex is None or (thread := ex.current) is None:
        return
    accesses: list[Any] = []
    for obj in objects:
        if kind_of(type(obj)) in (CONTAINER, OPAQUE, TUPLE, VIEW):
            accesses += contents(ex, obj, write, site)
    if accesses:
        ex.touch_all(thread, accesses, site)
        if deep and not ex.search.every_access:
            for obj in objects:
                look_inside(ex, thread, obj, site)


def formatted(value: Any, site: int) -> Any:
    """A value that is about to be shown in an f-string."""
    touch_all(False, site, value, deep=True)
    return read(value, site) if kind_of(type(value)) == INSTANCE else value


def read(value: Any, site: int) -> Any:
    """A value whose contents are read at once: a condition, an f-string, a starred argument, an unpacking."""
    what = kind_of(type(value))
    if what in (CONTAINER, VIEW):
        touch_contents(value, False, site)
    elif what == TUPLE:
        touch_all(False, site, value)
    elif what == OPAQUE and hasattr(value, "__next__"):
        touch_contents(value, True, site)
    elif what == INSTANCE:
        for method in ("__len__", "__bool__", "__iter__", "__str__"):
            _unobserved_method(value, method, site)
    return value


def getitem(obj: Any, key: Any, site: int) -> Any:
    """`obj[key]`."""
    what = kind_of(type(obj))
    if what in (CONTAINER, OPAQUE):
        # A defaultdict makes what is missing; whether it is, others may change until the step is taken.
        missing = isinstance(obj, collections.defaultdict) and obj.default_factory is not None
        if missing and type(obj) is collections.defaultdict and runs_python(obj.default_factory):
            return _made_if_missing(obj, key, site)
        touch_contents(obj, missing, site)
        if missing and now.execution is not None and key not in obj:
            return _result(now.execution, obj[key], site)
    elif what == INSTANCE:
        _unobserved_method(obj, "__getitem__", site)
    return obj[key]


PYTHON = (types.FunctionType, types.MethodType)


def runs_python(function: Any) -> bool:
    """Whether a call of it runs Python, which others may interrupt."""
    if isinstance(function, functools.partial):
        return runs_python(function.func)
    if isinstance(function, type):
        return isinstance(vars(function).get("__init__"), PYTHON)
    return isinstance(function, PYTHON)


def _made_if_missing(obj: collections.defaultdict[Any, Any], key: Any, site: int) -> Any:
    """A default that Python makes: others run meanwhile, and what it makes is stored all the same, as in CPython."""
    touch_contents(obj, False, site)
    if key in obj:
        return obj[key]
    value = call(obj.default_factory, site)
    setitem(value, obj, key, site)
    return value


def compared_by_python(elements: Iterable[Any], name: str = "__lt__") -> str:
    """The method, of this name, by which Python compares one of these elements; empty if C compares them all."""
    for element in elements:
        method = getattr(type(element), name, None)
        if isinstance(method, types.FunctionType):
            return method.__qualname__
    return ""


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
        return bool(compare("lt", self.element, other.element, self.site))


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
            same = bool(compare("eq", element, value, site))
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


def runs_text(text: Any, site: int) -> Any:
    """`eval` and `exec`: what the text does is not seen."""
    ex = now.execution
    if ex is not None:
        ex.search.unseen[f"code that is made of a text runs at {where(site)}"] = None
    return text


def setitem(value: Any, obj: Any, key: Any, site: int) -> None:
    """`obj[key] = value`."""
    ex = now.execution
    if ex is not None and ex.current is not None:
        named(ex, value, site)
        touch_contents(obj, True, site)
        if kind_of(type(obj)) == INSTANCE:
            _unobserved_method(obj, "__setitem__", site)
    obj[key] = value


def delitem(obj: Any, key: Any, site: int) -> None:
    """`del obj[key]`."""
    touch_contents(obj, True, site)
    if kind_of(type(obj)) == INSTANCE:
        _unobserved_method(obj, "__delitem__", site)
    del obj[key]


class Managed:
    """A context manager of C: it is entered and left by operations of its own. A file is written when it is closed."""

    __s_native__ = True

    def __init__(self, manager: Any, site: int) -> None:
        self.manager = manager
        self.site = site

    def __enter__(self) -> Any:
        touch_contents(self.manager, True, self.site)
        return self.manager.__enter__()

    def __exit__(self, *raised: Any) -> Any:
        touch_contents(self.manager, True, self.site)
        return self.manager.__exit__(*raised)


def managed(manager: Any, site: int) -> Any:
    """What a `with` enters."""
    what = kind_of(type(manager))
    if what == OPAQUE:
        return Managed(manager, site)
    if what == INSTANCE:
        _unobserved_method(manager, "__exit__", site)
    return manager


class Iteration:
    """An iterator that announces each step of going through a container."""

    __s_native__ = True

    def __init__(self, container: Any, real: Iterator[Any], site: int) -> None:
        self.container = container
        self.real = real
        self.site = site
        self.in_c = False
        """Whether C code goes through it, which no other thread interrupts: `list(zip(a, b))`."""
        self.step = -1
        """The step of the last announcement."""

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Any:
        ex = now.execution
        if not self.in_c or ex is None or self.step != ex.steps:
            touch_contents(self.container, False, self.site)
            self.step = -1 if ex is None else ex.steps
        return next(self.real)

    def __length_hint__(self) -> int:
        return operator.length_hint(self.real)


def iter_(value: Any, site: int) -> Any:
    """What a `for` goes through."""
    what = kind_of(type(value))
    if what in (CONTAINER, VIEW) and not _has_own(value, "__iter__"):
        return Iteration(value, iter(value), site)
    if what == OPAQUE and hasattr(value, "__next__"):
        ex = now.execution
        if ex is None or id(value) not in ex.records:
            # Stored nowhere: nobody else has it.
            if isinstance(value, types.GeneratorType | map | filter | zip | enumerate):
                return value
        elif isinstance(value, types.GeneratorType):
            return library.resumptions(value, site)
        return Iteration(value, value, site)
    if what == INSTANCE:
        _unobserved_method(value, "__iter__", site)
    return value


def _in_one_go(ex: PythonExecution, arguments: tuple[Any, ...], site: int) -> None:
    """C code is about to go through these: nothing comes between two elements unless Python runs there."""
    iterations: list[Iteration] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop()
        if type(argument) is Iteration:
            iterations.append(argument)
            argument = argument.container
        if type(argument) in LAZY and (known := ex.views.get(id(argument))) is not None:
            waiting += known[1]  # type: ignore[arg-type]  # of a lazy object what it goes through
    if iterations:
        touch_all(False, site, *(iteration.container for iteration in iterations))
        for iteration in iterations:
            iteration.in_c = True
            iteration.step = ex.steps


def _has_own(value: Any, method: str) -> bool:
    """Whether a class written in Python replaces a method of the container that it is made of."""
    return isinstance(getattr(type(value), method, None), types.FunctionType)


def not_contains(container: Any, element: Any) -> bool:
    """`element not in container`."""
    return element not in container


_operators = {
    name: getattr(operator, name)
    for name in (
        "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "ilshift", "irshift", "ior", "ixor", "iand",
        "imatmul", "add", "sub", "mul", "mod", "or_", "xor", "and_", "eq", "ne", "lt", "le", "gt", "ge", "contains",
    )
} | {"not_contains": not_contains}  # fmt: skip
STATEFUL = (CONTAINER, TUPLE, VIEW)


def binary(name: str, left: Any, right: Any, site: int) -> Any:
    """`left + right` and the like."""
    if kind_of(type(left)) in STATEFUL or kind_of(type(right)) in STATEFUL:
        touch_all(False, site, left, right, deep=name == "mod")
        return made(_operators[name](left, right), site)
    return _operators[name](left, right)


def inplace(name: str, left: Any, right: Any, site: int) -> Any:
    """`left += right` and the like."""
    if kind_of(type(left)) == CONTAINER:
        ex, thread = running()
        if ex is not None and thread is not None:
            accesses = contents(ex, left, True, site)
            if kind_of(type(right)) in STATEFUL:
                accesses += contents(ex, right, False, site)
            ex.touch_all(thread, accesses, site)
    return _operators[name](left, right)


def compare(name: str, left: Any, right: Any, site: int) -> Any:
    """`left == right`, `left in right` and the like."""
    if kind_of(type(left)) in STATEFUL or kind_of(type(right)) in STATEFUL:
        by_hash = name in ("contains", "not_contains") and isinstance(right, dict | set)
        touch_all(False, site, left, right, deep=not by_hash)
    for side in (left, right):
        if kind_of(type(side)) == INSTANCE:
            _unobserved_method(side, f"__{name.removeprefix('not_')}__", site)
    if name in ("contains", "not_contains"):
        if type(right) is list and compared_by_python((left, *right), "__eq__"):
            return searched(right, "__contains__", (left,), site) is (name == "contains")
        left, right = right, left
    return _operators[name](left, right)


def _unobserved_method(obj: Any, name: str, site: int) -> None:
    """Note an object whose special method is Python that was not rewritten."""
    method = getattr(type(obj), name, None)
    if isinstance(method, types.FunctionType) and MARK not in method.__globals__:
        ex, thread = running()
        module = str(method.__globals__.get("__name__"))
        if _passes_on(module):
            return
        if ex is not None and thread is not None and id(obj) in ex.records:
            ex.opaque(thread, ex.records[id(obj)], f"{module}.{method.__qualname__}", site)


# -- calls -------------------------------------------------------------------------------------------------------------


def call(function: Any, site: int, /, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`."""
    ex = now.execution
    kind = type(function)
    if ex is None or ex.current is None:
        return None if _logs(function, kind, args, site) else function(*args, **kwargs)
    if kind is types.FunctionType or kind is types.MethodType:
        code = function if kind is types.FunctionType else function.__func__
        if type(code) is types.FunctionType and MARK not in code.__globals__:
            if code.__globals__ is logging.__dict__ and _logs(function, kind, args, site):
                return None
            given = args if code is function else (function.__self__, *args)
            twin = library.observed_twin(code)
            if twin is not None:
                return twin(*given, **kwargs)
            _unobserved(ex, code, given, kwargs, site)
        result = function(*args, **kwargs)
        if type(result) is types.CoroutineType:
            ex.coroutines.append((result, site))
        return result
    handler = _callers.get(kind)
    if handler is not None:
        return handler(ex, function, args, kwargs, site)
    if isinstance(function, type):
        return _call_class(ex, function, args, kwargs, site)
    method = getattr(kind, "__call__", None)  # noqa: B004 - its code is wanted
    if isinstance(method, types.FunctionType):
        if MARK not in method.__globals__ and not getattr(kind, "__s_native__", False):
            _unobserved(ex, method, (function, *args), kwargs, site)
    else:
        touch_contents(function, True, site)
        touch_all(False, site, *args, *kwargs.values(), deep=True)
    return function(*args, **kwargs)


def _passes_on(module: str) -> bool:
    """Whether the functions of a module only pass on what they are given, to methods that are observed."""
    return module.partition(".")[0] in PASSING or module == "collections.abc"


LOGGING = frozenset(
    (
        "debug",
        "info",
        "warning",
        "warn",
        "error",
        "exception",
        "critical",
        "fatal",
        "log",
        "basicConfig",
        "addHandler",
    )
)
"""Functions and methods of `logging` that do nothing while a program is explored: it runs thousands of times."""


def _logs(function: Any, kind: type, args: tuple[Any, ...], site: int) -> bool:
    """Whether a call only writes to a log, which nobody reads.

    Raises `OutsideModel` for a handler of the program: the real `logging` would keep it for the next execution.
    """
    code = function.__func__ if kind is types.MethodType else function
    if (
        type(code) is not types.FunctionType
        or code.__globals__ is not logging.__dict__
        or code.__name__ not in LOGGING
    ):
        return False
    if code.__name__ == "addHandler" and MARK in getattr(
        getattr(type(args[0]), "emit", None), "__globals__", ()
    ):
        raise OutsideModel(
            f"a handler of the program is added to a logger at {where(site)}: what logging keeps outlives an "
            "execution. Name it: --module logging (modules=['logging'])"
        )
    return True


def _unobserved(
    ex: PythonExecution, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], site: int
) -> None:
    """Python that was not rewritten is called: what it is given is out of sight meanwhile."""
    # Not `function.__module__`, which functools.wraps copies from another function.
    module = str(function.__globals__.get("__name__") or "?")
    if _passes_on(module) or function.__code__.co_filename == "<string>":
        return  # "<string>": what dataclasses and namedtuple make
    thread = ex.current
    assert thread is not None
    if uses_files(module, function):
        touch_files(site)
    if module.partition(".")[0] in library.readers:
        library.read_deeply((*args, *kwargs.values()), site)
        return
    for value in (*args, *kwargs.values()):
        for element in elements(value):
            known = id(element) in ex.records or element is value
            if not known or type(element) is types.FunctionType:
                continue
            if kind_of(type(element)) == OPAQUE:
                touch_contents(element, True, site)
                if module == "random":
                    continue  # it draws, in one operation
            if kind_of(type(element)) in (CONTAINER, INSTANCE, OPAQUE):
                record = record_of(ex, element, site)
                ex.opaque(thread, record, f"{module}.{function.__qualname__}", site)


FILE = type(io.IOBase()).__mro__[-2]
IN_MEMORY = (io.StringIO, io.BytesIO)

NO_FILES = frozenset(
    ("fspath", "getpid", "getppid", "urandom", "cpu_count", "get_terminal_size", "sched_getaffinity", "uname",
     "getuid", "geteuid", "getgid", "getegid", "getlogin", "strerror", "times", "WIFEXITED", "sched_yield")
)  # fmt: skip
"""Functions of `posix` that look at no file."""

FILE_MODULES = frozenset(
    ("shutil", "tempfile", "glob", "fileinput", "filecmp", "linecache", "zipfile", "tarfile")
)
FILE_FUNCTIONS = frozenset(
    ("exists", "lexists", "isfile", "isdir", "islink", "ismount", "getsize", "getmtime", "getatime", "getctime",
     "samefile", "realpath")
)  # fmt: skip
"""Those of `os.path` that look at files."""
CLOCK = frozenset(("now", "utcnow", "today"))
"""Methods of the classes of `datetime` that look at the clock."""


def uses_files(module: str, function: Any) -> bool:
    """Whether a function of the library, written in Python, looks at files or changes them."""
    top = module.partition(".")[0]
    if top in ("posixpath", "genericpath", "ntpath"):
        return function.__name__ in FILE_FUNCTIONS
    if top == "os":
        return function.__name__ not in (
            "fspath",
            "fsencode",
            "fsdecode",
            "get_exec_path",
            "getenv",
        )
    if top == "pathlib":
        return not function.__qualname__.startswith("Pure")
    return top in FILE_MODULES


def touch_files(site: int) -> None:
    """Announce that the files are about to be read or changed: all of them are one place."""
    ex, thread = running()
    if ex is not None and thread is not None:
        ex.touch(thread, ex.files, CONTENTS, True, site)


OBSERVED_C = frozenset(
    ("builtins", "_heapq", "_bisect", "itertools", "_collections", "math", "_functools", "time", "_operator",
     "operator", "_thread", "_abc", "_struct", "_random", "sys", "posix", "_io", "_weakref", "_string")
)  # fmt: skip
"""Modules of C whose functions look into containers, but not into attributes of objects."""


def _unobserved_c(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> None:
    """C code may read the attributes of what it is given: pickle, json."""
    thread = ex.current
    for value in (*args, *kwargs.values()):
        for element in elements(value):
            if (
                kind_of(type(element)) == INSTANCE
                and id(element) in ex.records
                and thread is not None
            ):
                what = f"{function.__module__}.{function.__name__}"
                if "pickle" in what:
                    raise OutsideModel(
                        f"{what} at {where(site)}: pickle looks a class up by its name, and finds the one outside of "
                        "the exploration. Put a stub in its place in the test"
                    )
                ex.opaque(thread, ex.records[id(element)], what, site)


def _call_c(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> Any:
    """A function of C, or a method of an object of C."""
    special = _special.get(function)
    if special is not None:
        return special(site, *args, **kwargs)
    if function in LOOKING:
        return function(*args, **kwargs)
    owner = function.__self__
    name = function.__name__
    if type(owner) is contextvars.Context and name == "run" and args:
        return function(call, args[0], site, *args[1:], **kwargs)  # what it calls may be C code
    if function is functools.reduce or (function in (min, max) and "key" in kwargs):
        args = tuple(iter_(argument, site) for argument in args)  # Python runs between two elements
    if owner is None or type(owner) is types.ModuleType:
        if (getattr(function, "__module__", None) or "builtins") not in OBSERVED_C:
            _unobserved_c(ex, function, args, kwargs, site)
        _in_one_go(ex, args, site)
        # Functions of modules other than builtins may change what they are given: heapq, bisect, random.
        changes = getattr(function, "__module__", "") != "builtins"
        objects = [*args, *kwargs.values()]
        if getattr(function, "__module__", "") in ("_heapq", "_bisect"):
            _ordered_by_python(ex, function, objects, site)
        if objects and any(kind_of(type(obj)) not in (VALUE, INSTANCE, NATIVE) for obj in objects):
            touch_all(changes, site, *objects, deep=changes or function in DEEP)
        if getattr(function, "__module__", "") in ("posix", "nt") and name not in NO_FILES:
            touch_files(site)
        return _result(ex, function(*args, **kwargs), site, objects)
    if name in CLOCK and isinstance(owner, type) and issubclass(owner, datetime.date):
        return library.today(owner, name, *args, **kwargs)
    return _call_method(ex, owner, name, function, args, kwargs, site)


def _ordered_by_python(ex: PythonExecution, function: Any, objects: list[Any], site: int) -> None:
    """A heap, or a sorted list, whose elements Python compares: others may change it between two comparisons."""
    for obj in objects:
        if ex.current is not None and type(obj) is list:
            method = compared_by_python([*obj, *objects])
            if method:
                what = f"{function.__name__}, which compares by {method},"
                ex.opaque(ex.current, record_of(ex, obj, site), what, site)


def _call_container(
    ex: PythonExecution, owner: Any, name: str, function: Any, args: Any, kwargs: Any, site: int
) -> Any:
    """A method of a container, of a view of one, or of what has its state inside of C."""
    thread = ex.current
    objects = [*args, *kwargs.values()]
    if (
        name in SEARCHES
        and type(owner) is list
        and args
        and compared_by_python((args[0], *owner), "__eq__")
    ):
        return searched(owner, name, args, site)
    _in_one_go(ex, args, site)
    for obj in objects:
        named(ex, obj, site)
    if any(kind_of(type(obj)) in STATEFUL for obj in objects) and name != "append":
        accesses = contents(ex, owner, name in CHANGING, site)
        for obj in objects:
            if kind_of(type(obj)) in STATEFUL:
                accesses += contents(ex, obj, False, site)
        if thread is not None:
            ex.touch_all(thread, accesses, site)
    else:
        touch_contents(owner, name in CHANGING, site)
        if name in COMPARING and thread is not None:
            look_inside(ex, thread, owner, site)
    if name == "sort" and type(kwargs.get("key")) in PYTHON:
        kwargs = {**kwargs, "key": _key_of_sort(owner, kwargs["key"], site)}
    elif name == "sort" and kwargs.get("key") is None and compared_by_python(owner):
        begun: list[bool] = []
        kwargs = {**kwargs, "key": lambda element: SortedElement(element, owner, site, begun)}
    result = function(*args, **kwargs)
    if kind_of(type(result)) == VIEW:
        ex.views[id(result)] = (result, owner)
        return result
    return _result(ex, result, site, (owner, *objects))


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


def _call_method(
    ex: PythonExecution, owner: Any, name: str, function: Any, args: Any, kwargs: Any, site: int
) -> Any:
    """A method, written in C, of `owner`."""
    what = kind_of(type(owner))
    if type(owner) is types.GeneratorType:
        return library.resume(owner, function, args, site)
    if what in (CONTAINER, OPAQUE, VIEW):
        return _call_container(ex, owner, name, function, args, kwargs, site)
    if what == INSTANCE and name in ("__setattr__", "__delattr__", "__getattribute__"):
        _before_slot(ex, name, owner, args, site)
        return function(*args, **kwargs)
    _in_one_go(ex, args, site)
    objects = [*args, *kwargs.values()]
    if name == "format" and isinstance(owner, str) and re.search(r"\{\w*[.\[]", owner):
        ex.search.unseen[f"a format that looks into its arguments at {where(site)}"] = None
    if any(kind_of(type(obj)) in STATEFUL for obj in objects):
        touch_all(False, site, *objects, deep=name == "format")  # "".join(parts)
    return _result(ex, function(*args, **kwargs), site)


def _before_slot(ex: PythonExecution, name: str, obj: Any, args: Any, site: int) -> None:
    """`object.__setattr__(obj, name, value)` and its like are accesses of the attribute."""
    thread = ex.current
    if thread is None or not args:
        return
    if name == "__getattribute__":
        ex.touch(thread, record_of(ex, obj, site), args[0], False, site)
    else:
        if len(args) > 1:
            named(ex, args[1], site)
        _before_store(ex, thread, obj, args[0], site)


def _result(ex: PythonExecution, value: Any, site: int, sources: Iterable[Any] = ()) -> Any:
    """A new object that C code made has its name from now on; it may share state with what it was made from."""
    if ex.current is not None and id(value) not in ex.records:
        kind = kind_of(type(value))
        if kind == CONTAINER:
            ex.record(value, label_of(value, site), True)
        elif kind == OPAQUE and type(value) not in ITERATING:
            ex.record(value, label_of(value, site), True)
            _derived(ex, value, sources)
    return value


def _derived(ex: PythonExecution, value: Any, sources: Iterable[Any]) -> None:
    """An object of C was made from others: a cursor of a connection, a view of an array."""
    known = tuple(each for each in sources if kind_of(type(each)) in (CONTAINER, OPAQUE))
    if known:
        ex.derived[id(value)] = (value, known)


def _call_descriptor(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> Any:
    """A method of a class of C, called with its object: `list.append(a, 1)`."""
    if not args:
        return function(*args, **kwargs)
    owner, name = args[0], function.__name__
    bound = (
        function.__get__(owner, type(owner)) if isinstance(owner, function.__objclass__) else None
    )
    if bound is None:
        return function(*args, **kwargs)
    return _call_method(ex, owner, name, bound, args[1:], kwargs, site)


def _make_lazy(ex: PythonExecution, kind: Any, args: Any, kwargs: Any, site: int) -> Any:
    """`map`, `filter`, `zip` or `enumerate`."""
    iterations = tuple(iter_(argument, site) for argument in args)
    lazy = kind(*iterations, **kwargs)
    in_c = (type, types.BuiltinFunctionType, types.NoneType)
    if kind not in (map, filter) or type(args[0]) in in_c:
        ex.views[id(lazy)] = (lazy, iterations)
    return lazy


def _call_class(ex: PythonExecution, kind: Any, args: Any, kwargs: Any, site: int) -> Any:
    """An object is made."""
    if kind is reversed and len(args) == 1:
        touch_contents(args[0], False, site)  # C code asks for its length
        return Iteration(args[0], reversed(args[0]), site)
    if kind in LAZY:
        return _make_lazy(ex, kind, args, kwargs, site)
    if kind in (type, super):
        return kind(*args, **kwargs)
    if kind in GETTERS:
        ex.search.unseen[f"operator.{kind.__name__} at {where(site)}"] = None
    in_c = not kind.__flags__ & (1 << 9)
    if in_c and (args or kwargs):
        if len(args) == 1 and args[0].__class__ in (int, str, float):
            return _result(ex, kind(*args, **kwargs), site)
        lazily = kind.__module__ == "itertools"
        if lazily:
            args = tuple(iter_(argument, site) for argument in args)
        else:
            touch_all(False, site, *args, *kwargs.values(), deep=kind is str)
            args = tuple(
                argument
                if type(argument) in PLAIN
                or kind_of(type(argument)) == VIEW
                or (issubclass(kind, dict) and hasattr(argument, "keys"))  # a mapping, not pairs
                else iter_(argument, site)
                for argument in args
            )
            _in_one_go(ex, args, site)
    elif type(kind.__init__) is types.FunctionType and MARK not in kind.__init__.__globals__:
        _unobserved(ex, kind.__init__, args, kwargs, site)
    return _made_of(ex, kind, args, kwargs, site)


def _made_of(ex: PythonExecution, kind: Any, args: Any, kwargs: Any, site: int) -> Any:
    """Call a class, and name what it made."""
    before = 0 if ex.acting is None else ex.numbers[ex.acting.tid]
    value = kind(*args, **kwargs)
    if ex.current is not None and kind_of(type(value)) in (CONTAINER, INSTANCE, OPAQUE):
        record = ex.records.get(id(value))
        if record is None:
            ex.record(value, label_of(value, site), True)
            if written_in_c(kind) and kind not in ITERATING:
                _derived(ex, value, (*args, *kwargs.values()))
        elif record.owner is ex.acting and record.number > before and not record.shared:
            record.made = True  # its own `__init__` has used it first
    return value


def _call_partial(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> Any:
    return call(function.func, site, *function.args, *args, **{**function.keywords, **kwargs})


_callers: dict[type, Callable[..., Any]] = {
    types.BuiltinFunctionType: _call_c,
    types.MethodWrapperType: lambda ex, f, args, kwargs, site: _call_method(
        ex, f.__self__, f.__name__, f, args, kwargs, site
    ),
    types.MethodDescriptorType: _call_descriptor,
    types.WrapperDescriptorType: _call_descriptor,
    functools.partial: _call_partial,
    types.GenericAlias: lambda ex, f, args, kwargs, site: call(f.__origin__, site, *args, **kwargs),
    type: _call_class,
}


def _getattr(site: int, obj: Any, name: str, *default: Any) -> Any:
    try:
        return get(obj, name, site)
    except AttributeError:
        if default:
            return default[0]
        raise


def _hasattr(site: int, obj: Any, name: str) -> bool:
    try:
        get(obj, name, site)
    except AttributeError:
        return False
    return True


def _next(site: int, iterator: Any, *default: Any) -> Any:
    if isinstance(iterator, types.GeneratorType):
        return library.resume(iterator, next, (iterator, *default), site)
    touch_contents(iterator, True, site)
    return next(iterator, *default)


def _iter(site: int, value: Any, *sentinel: Any) -> Any:
    return iter(value, *sentinel) if sentinel else iter(iter_(value, site))


def _vars(site: int, *objects: Any) -> Any:
    return get(objects[0], "__dict__", site) if objects else vars()


_special: dict[Any, Callable[..., Any]] = {
    getattr: _getattr,
    setattr: lambda site, obj, name, value: set_(value, obj, name, site),
    delattr: lambda site, obj, name: del_(obj, name, site),
    hasattr: _hasattr,
    next: _next,
    iter: _iter,
    vars: _vars,
    len: lambda site, value: len(read(value, site)),
}


def stable_hash(obj: Any) -> int:
    """Hash by name and not by address an object that has no hash of its own, so that sets repeat themselves."""
    ex = now.execution
    if ex is None or ex.acting is None:
        return object.__hash__(obj)
    record = record_of(ex, obj, 0, True)
    return hash((record.maker, record.number))


def stable_id(obj: Any) -> int:
    """`id` by name where an object has one."""
    ex = now.execution
    record = None if ex is None else ex.records.get(id(obj))
    return id(obj) if record is None else (record.maker << 32) + 16 * record.number


def build_class(function: Any, name: str, /, *bases: Any, **keywords: Any) -> Any:
    """`class name(*bases)`: its objects have stable hashes, unless it says otherwise."""
    kind = builtins.__build_class__(function, name, *bases, **keywords)
    if isinstance(kind, type) and getattr(kind, "__hash__", None) is object.__hash__:
        kind.__hash__ = stable_hash  # type: ignore[assignment]  # as a method
    ex = now.execution
    if "__del__" in vars(kind) and ex is not None and program_text(function.__code__.co_filename):
        ex.need(LIFETIMES, 0)
    return kind


def assertion(text: str, *sides: Any) -> str:
    """What a failed assertion says."""
    if not sides:
        return f"assert {text}"
    values = " and ".join(_short(side) for side in sides)
    return f"assert {text} (the sides were {values})"


def _short(value: Any) -> str:
    text = repr(value)
    if " at 0x" in text:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


HOOKS: dict[str, Any] = {
    f"__s_{name}__": function
    for name, function in {
        "get": get, "set": set_, "del": del_, "getitem": getitem, "setitem": setitem, "delitem": delitem,
        "cell": cell, "cell_set": cell_set, "scope": scope, "call": call, "binary": binary, "inplace": inplace,
        "compare": compare, "iter": iter_, "read": read, "managed": managed, "format": formatted, "made": made,
        "slice": slice, "text": runs_text, "assertion": assertion,
    }.items()
}  # fmt: skip
"""The names under which rewritten code knows these functions."""

assert SITES
