"""Places: what two threads can share in ordinary Python, how they are named, and when an access to one races.

A *place* is one attribute of one object, one closure variable of one call, one global, or the contents of one
container. An access to a place is announced by the rewritten code just before it happens. It becomes a step of the
schedule only if it must: if somewhere in the search an access to that place *races* with another.
Until then accesses are only compared.

**When two accesses are ordered.** Code after a step belongs to that step, up to the next one. So an access made by
thread t after its step i lies between i and the next step of t, and all that another thread can know of it is that
next step. It happens before an access made after step j of another thread exactly if a *later* step of t than i is in
the past of j. (With "i itself is in the past of j" what is touched after a release would look ordered before the next
acquire.) Every thread ends with a step, so a join orders all that the thread did.

**Why that is enough.** The executions of one Mazurkiewicz trace order the same steps. If in each of them all
conflicting accesses to a place are ordered by steps, then they have the same order in all executions of the trace, and
to interleave them would show nothing new. If two are not ordered, the place is *promoted*, for all objects of its
kind, and the search begins again.

Names: an object is known by the thread that made it and a number in that thread, so it has the same name in
every schedule. It gets them where it is made, or where it is stored first; not at the first use of it, which
another thread may come to first in another schedule.
"""

from __future__ import annotations

import array
import contextvars
import datetime
import decimal
import fractions
import importlib
import inspect
import ipaddress
import pathlib
import re
import sys
import types
import typing
import uuid
import weakref
import zlib
import zoneinfo
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from seriatim_models.explorer.model.operations import Footprint, Thread
from seriatim_models.explorer.python.rewrite import MADE, SITES

VALUE, CONTAINER, INSTANCE, CLASS, MODULE, NATIVE, OPAQUE, TUPLE, VIEW = range(9)
"""Kinds of objects: no state; contents; attributes; a class; a module; a primitive of ours; state inside C code;
no state of its own, but elements; a view of a dict: of its items, or one that cannot be written."""


def _of_generics() -> Iterator[type]:
    """Classes of `typing` that are of C since 3.12: their objects never change, but for what they evaluate once."""
    names = (
        "TypeAliasType",
        "TypeVar",
        "TypeVarTuple",
        "ParamSpec",
        "ParamSpecArgs",
        "ParamSpecKwargs",
    )
    return (getattr(typing, name) for name in names if sys.version_info >= (3, 12))


def _templates() -> Any:
    """The module of template strings, None before 3.14."""
    return importlib.import_module("string.templatelib") if sys.version_info >= (3, 14) else None


METHOD_OF_C = type(re.compile("").match)
"""Bound methods of C that know the class which defines them: of `zlib`, `re`. They are functions of C as all others."""
IMMUTABLE: frozenset[Any] = frozenset(
    (int, float, complex, bool, str, bytes, type(None), range, slice, type(...), type(NotImplemented),
     types.BuiltinFunctionType, METHOD_OF_C, types.MethodType, types.CodeType, types.MethodWrapperType,
     types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
     types.GetSetDescriptorType, types.MemberDescriptorType, property, staticmethod,
     classmethod, weakref.ReferenceType, types.FrameType, types.TracebackType, types.GenericAlias,
     contextvars.ContextVar, contextvars.Token, re.Pattern, re.Match, datetime.date, datetime.datetime,
     datetime.time, datetime.timedelta, datetime.timezone, decimal.Decimal, *_of_generics())
)  # fmt: skip
UNCHANGING = (
    pathlib.PurePath, fractions.Fraction, uuid.UUID, zoneinfo.ZoneInfo, ipaddress._IPAddressBase, datetime.tzinfo,
    datetime.timedelta, datetime.date, datetime.time, decimal.Decimal, inspect.Signature, inspect.Parameter,
)  # fmt: skip
"""Classes of the library whose objects never change, and those made from them."""
_DICTS: tuple[dict[Any, Any], ...] = ({}, OrderedDict())
VIEWS = frozenset(
    (types.MappingProxyType, *(type(v) for d in _DICTS for v in (d.keys(), d.values(), d.items())))
)
TEMPLATE = _templates()
OF_TEMPLATES = () if TEMPLATE is None else (TEMPLATE.Template, TEMPLATE.Interpolation)
"""Classes of C whose objects hold values, as a tuple does."""
CONTAINERS = (list, dict, set, deque, bytearray)
BUFFERS = (memoryview, array.array)
"""Objects of C that hold elements or bytes which C code reads where it is given them."""
PLAIN = frozenset((*CONTAINERS, defaultdict, OrderedDict))
"""Containers without attributes of their own."""
HEAP_TYPE = 1 << 9
OF_EXECUTION = -1
"""The maker, in names, of what no thread makes: the files, the environment; and of the classes and functions of a
module, whichever thread is the first that touches them."""
CONTENTS = "[]"
"""The one place of a container."""

_KNOWN: dict[type, int] = {
    **dict.fromkeys(IMMUTABLE, VALUE),
    **dict.fromkeys(PLAIN, CONTAINER),
}
_kinds = dict(_KNOWN)


def forget_kinds() -> None:
    """Let go of the classes of executions that are over."""
    _kinds.clear()
    _kinds.update(_KNOWN)
    written_in_c.cache_clear()


def kind_of(kind: type) -> int:
    """The kind of the objects of a type."""
    found = _kinds.get(kind)
    if found is None:
        found = _kinds[kind] = _kind_of(kind)
    return found


def _kind_of(kind: type) -> int:
    if "__s_native__" in kind.__dict__ or getattr(kind, "__s_native__", None) == "inherited":
        return NATIVE
    if kind in VIEWS:
        return VIEW
    if issubclass(kind, types.ModuleType) and kind.__flags__ & HEAP_TYPE:
        return INSTANCE  # of a class of modules that a program has made: lazy ones
    if issubclass(kind, UNCHANGING):
        return VALUE
    for bases, found in (
        (type, CLASS), (types.ModuleType, MODULE), (CONTAINERS, CONTAINER), ((tuple, frozenset, *OF_TEMPLATES), TUPLE),
        ((int, float, str, bytes), VALUE), (types.FunctionType, INSTANCE),
    ):  # fmt: skip
        if issubclass(kind, bases):
            return found
    return OPAQUE if any(keeps_state(base) for base in kind.__mro__) else INSTANCE


def keeps_attributes(kind: type) -> bool:
    """Whether objects of a class made from an unchanging one of C may be given attributes: `class Name(str): ...`."""
    if not kind.__flags__ & HEAP_TYPE or kind in UNCHANGING:
        return False
    return kind.__dictoffset__ != 0 or any(
        isinstance(value, types.MemberDescriptorType)
        for base in kind.__mro__
        if not written_in_c(base)
        for value in vars(base).values()
    )


STATELESS_BASES = (object, BaseException, types.GenericAlias, types.SimpleNamespace)
"""Classes of C that keep nothing of their own which a program changes by their methods."""


@cache
def written_in_c(kind: type) -> bool:
    """Whether a class is written in C: it has methods of C that are its own, which no `class` statement makes."""
    if not kind.__flags__ & HEAP_TYPE:
        return True
    return any(
        getattr(value, "__objclass__", None) is kind
        for value in kind.__dict__.values()
        if isinstance(value, types.MethodDescriptorType | types.WrapperDescriptorType)
    ) or isinstance(kind.__dict__.get("__new__"), types.BuiltinFunctionType)


def keeps_state(kind: type) -> bool:
    """Whether objects of a class have state inside of C, besides their attributes."""
    return written_in_c(kind) and not (
        kind in STATELESS_BASES
        or (not kind.__flags__ & HEAP_TYPE and issubclass(kind, BaseException))
    )


NAMES_READ = "names that are read of "
"""How the label begins of what is promoted where the globals of a module are read as a dict, which has a label of its
own: from then on a store of a global of that module is an access to it."""
GLOBALS = "the globals of "
"""How the label begins of the dict of a module."""
STORED = ("class attribute ", "method ", "global ")
"""How the labels begin of what is promoted where it is stored, and not where two accesses to it race."""


class Race(NamedTuple):
    """Two accesses to one place that nothing orders: the reason why the place is promoted."""

    place: str
    first: int
    second: int
    """Sites of the two accesses; 0 where it is not known."""

    def __str__(self) -> str:
        if not self.second:
            return self.place
        if not self.first and self.place.startswith(STORED):
            return f"{self.place}: stored at {where(self.second)}"
        return f"{self.place}: {where(self.first)} against {where(self.second)}"


@cache
def where(site: int) -> str:
    """File and line of a site."""
    place = SITES[site]
    if not site:
        return "code in C"
    if place.path == MADE:
        return f"{place.function.rpartition('.')[2]} of a dataclass"
    return f"{pathlib.PurePath(place.path).name}:{place.line}"


_MODULE, _QUALNAME = type.__dict__["__module__"], type.__dict__["__qualname__"]


def number_in_text(obj: object) -> int:
    """The number of a class or function of a module's text, whichever thread is the first that touches it; 0 for all
    else.
    """
    if issubclass(type(obj), type):
        module, name = _MODULE.__get__(obj), _QUALNAME.__get__(obj)
    elif type(obj) is types.FunctionType:
        module, name = obj.__module__, obj.__qualname__
    else:
        return 0
    return 0 if "<locals>" in name else zlib.crc32(f"{module}.{name}".encode())


class ObjectRecord:
    """What is known about one object: its name and its places."""

    __slots__ = (
        "dying",
        "label",
        "made",
        "maker",
        "number",
        "obj",
        "opaque",
        "owner",
        "places",
        "shared",
        "weak",
    )

    def __init__(
        self, obj: object, label: str, maker: int, number: int, made: bool, owner: Thread | None
    ) -> None:
        self.obj = obj
        """The object, kept so that its address is not used again; of a generator or a view, which show when they
        die by what is done or may be done then, a weak reference."""
        self.weak: object = None
        """That weak reference once more, so that it never looks like an object that only its record holds."""
        self.dying = 0
        """How many threads are about to let go of it."""
        self.label = label
        self.maker = maker
        self.number = number
        self.made = made
        """Whether it was named where it was made or stored, and not where it was first used."""
        self.owner = owner
        self.shared = False
        """Whether a second thread has touched one of its places."""
        self.opaque = ""
        """What has been done with it where no access is announced."""
        self.places: dict[str, SharedPlace] = {}


class SharedPlace:
    """One attribute, variable or contents; as an object of the explorer once it is promoted."""

    __slots__ = (
        "index", "key", "label", "name", "read_at", "read_site", "readers", "reads", "record", "thread", "value",
        "write_at", "write_site", "writers", "writes",
    )  # fmt: skip

    def __init__(self, record: ObjectRecord, label: str, thread: Thread | None) -> None:
        self.record = record
        self.label = label
        self.name = label
        self.thread = thread
        """The only thread that has touched it, but for what happens before its last write; None: there are several."""
        self.read_at = self.write_at = -2
        """The last step before that thread's last read and write; -2 if there was none."""
        self.read_site = self.write_site = 0
        self.readers: dict[Thread, tuple[int, int]] = {}
        self.writers: dict[Thread, tuple[int, int]] = {}
        """The same for each thread, with the site, once there are several."""
        self.index = -1
        """Its number among the explorer's objects; -1 while it is not promoted."""
        self.reads: Footprint
        self.writes: Footprint
        self.value = None

    def owned(self, thread: Thread, step: int, site: int) -> None:
        """All other accesses happen before a write of this thread: what comes after it comes after them, too."""
        self.readers.clear()
        self.writers.clear()
        self.thread = thread
        self.read_at, self.write_at, self.write_site = -2, step, site

    def share(self) -> None:
        """A second thread has come: keep the accesses of each from now on."""
        thread = self.thread
        if thread is not None:
            if self.read_at > -2:
                self.readers[thread] = (self.read_at, self.read_site)
            if self.write_at > -2:
                self.writers[thread] = (self.write_at, self.write_site)
            self.thread = None
        self.record.shared = True


def held_by(value: Any) -> Any:
    """What a tuple, or what is one to C code, holds."""
    if TEMPLATE is not None and isinstance(value, TEMPLATE.Template):
        return value.values
    return (value.value,) if OF_TEMPLATES and isinstance(value, TEMPLATE.Interpolation) else value


def operands(value: Any) -> Iterator[Any]:
    """What C code that is given `value` reads of it, whatever anybody changes: itself, or what a tuple holds."""
    kind = kind_of(type(value))
    if kind in (CONTAINER, INSTANCE, OPAQUE, VIEW):
        yield value
    elif kind == TUPLE:
        for element in held_by(value):
            if type(element) not in IMMUTABLE:
                yield from operands(element)


def elements(value: Any, depth: int = 3) -> Iterator[Any]:
    """The containers and objects with state in `value`, itself included, through tuples and containers."""
    kind = kind_of(type(value))
    if kind in (CONTAINER, INSTANCE, OPAQUE, VIEW):
        yield value
    if depth and kind in (CONTAINER, TUPLE):
        try:
            inside = list(value.values()) if isinstance(value, dict) else list(held_by(value))
        except (TypeError, RuntimeError):
            return
        for element in inside[:256]:
            if type(element) not in IMMUTABLE:
                yield from elements(element, depth - 1)
