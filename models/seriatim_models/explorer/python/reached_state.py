"""All that can be reached from some modules, as it is at one moment, and how it is put back.

What has changed since is found by comparing identities. What C code keeps out of sight, and what cannot be put back
exactly (the order of a set), is `NotKept`; a counter of `itertools` is, by another one that stands where it stood.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]  # of C, without annotations
import abc
import contextvars
import functools
import gc
import logging
import operator
import re
import struct
import sys
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
from operator import attrgetter, is_
from typing import Any

from seriatim_models.explorer.model.operations import Footprint, Shared, Thread
from seriatim_models.explorer.python.accesses import MARK, forget_classes
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.kept_inside import CacheInfo
from seriatim_models.explorer.python.places import (
    HEAP_TYPE,
    IMMUTABLE,
    UNCHANGING,
    ObjectRecord,
    written_in_c,
)
from seriatim_models.explorer.python.primitives import ThreadLocal

NO_STATE = frozenset(
    (*IMMUTABLE, types.UnionType, Footprint, struct.Struct, type(vars(CacheInfo)["hits"]), operator.itemgetter,
     operator.attrgetter)
) - {
    staticmethod, classmethod, property, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType,
    contextvars.ContextVar,
}  # fmt: skip
"""Classes whose objects have no state, and hold nothing that has."""
SIMPLE_KEYS = frozenset((str, int, bytes, bool, float, type(None)))
"""Keys that are put into a dict again without calling any code."""
CONTAINERS_OF_C: tuple[Any, ...] = (
    OrderedDict,
    dict,
    list,
    deque,
    bytearray,
    set,
    tuple,
    frozenset,
)
STATE_ELSEWHERE = (
    object,
    int,
    float,
    complex,
    str,
    bytes,
    types.SimpleNamespace,
    types.ModuleType,
    defaultdict,
    *CONTAINERS_OF_C,
)
"""Classes of C whose objects have no state besides their attributes and what they contain."""
LARGEST = 20_000
"""Objects that are looked at; where there are more, to compare them is no shorter way."""
_COUNT = re.compile(r"count\((-?\d+)(?:, (-?\d+))?\)")
_COUNTING = {count, types.MethodWrapperType}
EMPTY = object()
"""What an empty cell holds."""
_code, _defaults, _by_name = map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__"))
_said_of = attrgetter("__name__", "__qualname__", "__doc__", "__module__")
_annotate = attrgetter("__annotate__")
_attributes_of = attrgetter("__dict__")


def _default(var: contextvars.ContextVar[Any]) -> tuple[Any, ...]:
    try:
        return (contextvars.Context().run(var.get),)
    except LookupError:
        return ()


HELD_BY: dict[type, Callable[[Any], Iterable[Any]]] = {
    staticmethod: lambda found: (found.__func__,),
    classmethod: lambda found: (found.__func__,),
    property: lambda found: (found.fget, found.fset, found.fdel),
    types.MethodType: lambda found: (found.__self__, found.__func__),
    contextvars.ContextVar: _default,
}
"""What objects hold that never hold anything else."""
METHODS_OF_C = frozenset((types.BuiltinFunctionType, types.MethodWrapperType))
VIEWS_OF: dict[type, Callable[[Any], Iterable[Callable[[], Iterable[Any]]]]] = {
    types.MappingProxyType: lambda found: (found.keys, found.values),
    functools.partial: lambda found: (
        lambda: (found.func, found.args, found.keywords, *vars(found).values()),
    ),
}
"""What can be asked of objects that may change, and cannot be put back."""


class NotKept(Exception):
    """An import that has to be done anew in each execution; says why."""


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY


def _same(now: Iterable[object], before: Sequence[object]) -> bool:
    return all(map(is_, now, before))


def vars_of(kind: type) -> Mapping[str, Any]:
    """The attributes of a class itself, whatever its metaclass says."""
    found: Mapping[str, Any] = type.__dict__["__dict__"].__get__(kind)
    return found


def _slots_of(kind: type) -> Iterator[Any]:
    """The descriptors of the slots of the objects of a class."""
    for base in kind.__mro__:
        if not written_in_c(base):
            for value in vars_of(base).values():
                if type(value) is types.MemberDescriptorType:
                    yield value


def _registered(kind: type) -> object:
    """The classes that were registered with an abstract one."""
    return _abc._get_dump(kind)[0]


class ReachedState:
    """Everything that can be reached from some modules, and the state that it is in."""

    def __init__(
        self,
        made: set[int],
        outside: Callable[[types.ModuleType], bool],
        known: Callable[[Any], bool],
    ) -> None:
        self.made = made
        """The addresses of all new objects that the collector knows: of older ones no state is kept."""
        self.outside = outside
        """Whether a module, and all that it defines, is none of those that are kept."""
        self.known = known
        """Whether a class or function is one that such a module defines."""
        self.seen: dict[int, object] = {}
        self.spaces: dict[int, object] = {}
        """The dicts that are known; at first those of what is not kept."""
        self.left: list[Any] = []
        self.records: list[ObjectRecord] = []
        self.dicts: list[tuple[Any, Any, tuple[Any, ...], tuple[Any, ...]]] = []
        self.sequences: list[tuple[Any, Any, tuple[Any, ...]]] = []
        self.fixed: list[tuple[Callable[[], Iterable[Any]], tuple[Any, ...]]] = []
        """What is compared and cannot be put back."""
        self.classes: list[tuple[type, tuple[str, ...], tuple[Any, ...]]] = []
        self.below: list[list[type]] = []
        """The classes that are made from each of them."""
        self.registered: list[tuple[type, object]] = []
        self.functions: list[types.FunctionType] = []
        self.annotated: list[types.FunctionType] = []
        self.lazy: list[Any] = []
        """Those whose annotations are evaluated when somebody asks for them, and then kept, since 3.14."""
        self.plain: list[types.FunctionType] = []
        """Those without attributes."""
        self.cells: list[types.CellType] = []
        self.slots: list[tuple[Any, Any, Any]] = []
        self.shared: list[Shared] = []
        self.counts: dict[int, tuple[Any, str]] = {}
        """Each `itertools.count`, which cannot be set back, and where it stands."""
        self.pinned: set[int] = set()
        self.objects: list[Any] = []
        self.with_dict: list[Any] = []
        self.own: list[Any] = []
        """The dicts of the attributes of these."""
        self.locals: list[tuple[dict[Any, Any], Any]] = []
        """Of each `threading.local` what it keeps by thread, and what it keeps for the one that imports."""

    def add(self, roots: Iterable[Any]) -> None:
        """Take in all that can be reached from some objects. Raises `NotKept`."""
        self.left += roots
        while self.left:
            obj = self.left.pop()
            if type(obj) not in NO_STATE and id(obj) not in self.seen:
                self.seen[id(obj)] = obj
                if id(obj) in self.made or not gc.is_tracked(obj):
                    self._look(obj)
            if len(self.seen) > LARGEST:
                raise NotKept(f"the import makes more than {LARGEST} objects")

    def freeze(self) -> None:
        """Keep the state of functions, cells and objects, which are compared all at once."""
        self.codes = tuple(map(_code, self.functions))
        self.defaults = tuple(map(_defaults, self.functions))
        self.by_name = tuple(map(_by_name, self.functions))
        self.said_of = list(map(_said_of, self.functions))
        self.annotate = tuple(map(_annotate, self.lazy))
        self.annotations = [dict(f.__annotations__) for f in self.annotated]
        self.contents = tuple(map(_content, self.cells))
        self.kinds = tuple(map(type, self.objects))
        self.bases = tuple(kind.__bases__ for kind, _, _ in self.classes)

    # -- looking ----------------------------------------------------------------------------------------------------

    def _look(self, obj: Any) -> None:
        kind = type(obj)
        held = HELD_BY.get(kind)
        if held is not None:
            self._held(held(obj))
        elif kind is types.FunctionType:
            self._function(obj)
        elif issubclass(kind, type):
            self._class(obj)
        elif issubclass(kind, types.ModuleType):
            if not self.outside(obj):
                self._dict(obj.__dict__)
        elif kind in VIEWS_OF:
            for contents in VIEWS_OF[kind](obj):
                self._fixed(contents)
        elif not self._look_at_own(obj, kind):
            self._object(obj, kind)

    def _look_at_own(self, obj: Any, kind: type) -> bool:
        """Whether an object is of a class of which more is known than its attributes and what it contains."""
        if kind in METHODS_OF_C:
            self.left.append(obj.__self__)
        elif kind is count:
            self.counts[id(obj)] = (obj, repr(obj))
        elif kind is ObjectRecord:
            self.records.append(obj)
        elif issubclass(kind, Shared):
            self._shared(obj)
        elif issubclass(kind, ThreadLocal):
            self._local(obj)
        else:
            return self._without_state(obj, kind)
        return True

    @staticmethod
    def _without_state(obj: Any, kind: type) -> bool:
        """Whether an object has no state, or one that all executions share anyway."""
        if issubclass(kind, logging.Logger | weakref.ref):
            return True
        if kind.__module__ in ("typing", "annotationlib"):
            return True  # what annotations are made of
        return issubclass(kind, UNCHANGING) and not kind.__flags__ & HEAP_TYPE

    def _fixed(self, contents: Callable[[], Iterable[Any]]) -> None:
        held = tuple(contents())
        self.fixed.append((contents, held))
        self._held(held)

    def _held(self, objects: Iterable[Any]) -> None:
        """Look at what another object cannot be put into the place of."""
        for obj in objects:
            self.pinned.add(id(obj.__self__ if type(obj) in METHODS_OF_C else obj))
            self.left.append(obj)

    def _dict(self, found: dict[Any, Any]) -> None:
        if id(found) in self.spaces:
            return
        self.spaces[id(found)] = found
        kind: Any = OrderedDict if issubclass(type(found), OrderedDict) else dict
        keys, values = tuple(kind.keys(found)), tuple(kind.values(found))
        self.dicts.append((found, kind, keys, values))
        self.left += values
        self.left += (key for key in keys if type(key) is not str)

    def _class(self, kind: type) -> None:
        if not kind.__flags__ & HEAP_TYPE or self.known(kind):
            return
        own = vars_of(kind)
        self.classes.append((kind, tuple(own), tuple(own.values())))
        if issubclass(type(kind), abc.ABCMeta):
            self.registered.append((kind, _registered(kind)))
        self.objects.append(kind)
        self.below.append(type.__subclasses__(kind))
        self.left += (type(kind), *kind.__bases__, *type.__subclasses__(kind))
        self.left += (v for v in own.values() if type(v) is not _ABC_DATA)

    def _function(self, function: types.FunctionType) -> None:
        if self.known(function):
            return
        self.functions.append(function)
        if getattr(function, "__annotate__", None) is not None:
            self.lazy.append(function)
        elif function.__annotations__:
            self.annotated.append(function)
        if function.__dict__:
            self._dict(function.__dict__)
        else:
            self.plain.append(function)
        self._held((function.__defaults__, function.__kwdefaults__))
        space = function.__globals__
        named = sys.modules.get(space.get("__name__", ""))
        if MARK not in space and (named is None or vars(named) is not space):
            self.left.append(space)
        for cell in function.__closure__ or ():
            self.cells.append(cell)
            self.left.append(_content(cell))

    def _shared(self, obj: Shared) -> None:
        self.shared.append(obj)
        for slot in _slots_of(type(obj)):
            if slot.__name__ != "ex" and slot.__name__ != "__weakref__":
                self._slot(slot, obj)

    def _local(self, obj: ThreadLocal) -> None:
        own = object.__getattribute__(obj, "__dict__")
        if len(own["_of"]) != 1:
            raise NotKept("a threading.local has been used by several threads")
        (mine,) = own["_of"].values()
        self.locals.append((own["_of"], mine))
        self.left += (mine, own["_arguments"])

    def _slot(self, slot: Any, obj: Any) -> None:
        try:
            value = slot.__get__(obj)
        except AttributeError:
            value = EMPTY
        self.slots.append((slot, obj, value))
        self.left.append(value)

    def _object(self, obj: Any, kind: type) -> None:
        """An object whose state is its attributes and what it contains; raises `NotKept` if there may be more."""
        if obj is EMPTY or kind is object:
            return
        for base in kind.__mro__:
            if base not in STATE_ELSEWHERE and written_in_c(base):
                raise NotKept(
                    f"the state of a {kind.__module__}.{kind.__qualname__} cannot be looked into"
                )
        if issubclass(kind, PythonExecution | Thread):
            raise NotKept(f"an object of the execution is reached: {kind.__qualname__}")
        self.objects.append(obj)
        as_container = next((c for c in CONTAINERS_OF_C if issubclass(kind, c)), None)
        if as_container in (OrderedDict, dict):
            self._dict(obj)
        elif as_container in (list, deque, bytearray):
            held = tuple(as_container.__iter__(obj))
            self.sequences.append((obj, as_container, held))
            self.left += held
        elif as_container is set:
            self._fixed(lambda: set.__iter__(obj))
        elif as_container is not None:
            self._held(as_container.__iter__(obj))
        if issubclass(kind, defaultdict):
            self._slot(defaultdict.__dict__["default_factory"], obj)
        own = _own_attributes(obj, kind)
        if own is not None:
            self.with_dict.append(obj)
            self.own.append(own)
            self._dict(own)
        for slot in _slots_of(kind):
            self._slot(slot, obj)

    # -- putting back -----------------------------------------------------------------------------------------------

    def put_back(self, ex: PythonExecution, main: Thread) -> dict[int, Any]:
        """Let everything be as it was; returns the counters that are new, by the addresses of those before.

        Raises `NotKept`.
        """
        renewed = self._renewed()
        self._compare()
        self._classes_back()
        for found, kind, keys, values in self.dicts:
            if not (
                kind.__len__(found) == len(keys)
                and _same(kind.values(found), values)
                and _same(kind.keys(found), keys)
            ):
                _dict_back(found, kind, keys, values)
        for function, annotate in zip(self.lazy, self.annotate, strict=True):
            function.__annotate__ = annotate  # which forgets what it has said
        for sequence, kind, held in self.sequences:
            if kind.__len__(sequence) != len(held) or not _same(kind.__iter__(sequence), held):
                _sequence_back(sequence, kind, held)
        for cell, content in zip(self.cells, self.contents, strict=True):
            if _content(cell) is not content:
                _cell_back(cell, content)
        for slot, obj, value in self.slots:
            _slot_back(slot, obj, value)
        for shared in self.shared:
            shared.ex = ex
        for by_thread, mine in self.locals:
            by_thread.clear()
            by_thread[main] = mine
        return renewed

    def _compare(self) -> None:
        """Raise `NotKept` if something has changed that is not put back."""
        for contents, held in self.fixed:
            now = tuple(contents())
            if len(now) != len(held) or not _same(now, held):
                raise NotKept("a set or a view has changed")
        functions = self.functions
        if not (
            _same(map(_code, functions), self.codes)
            and _same(map(_defaults, functions), self.defaults)
            and _same(map(_by_name, functions), self.by_name)
        ):
            raise NotKept("a function is another one now")
        if list(map(_said_of, functions)) != self.said_of:
            raise NotKept("what a function is called has changed")
        if [dict(f.__annotations__) for f in self.annotated] != self.annotations or not _same(
            map(_annotate, self.lazy), self.annotate
        ):
            raise NotKept("annotations of a function have changed")
        if any(map(_attributes_of, self.plain)):
            raise NotKept("a function has got an attribute")
        if not (
            _same(map(type, self.objects), self.kinds)
            and _same(map(object.__getattribute__, self.with_dict, repeat("__dict__")), self.own)
        ):
            raise NotKept("an object is of another class now, or all its attributes were replaced")
        for kind, registered in self.registered:
            if _registered(kind) != registered:
                raise NotKept(f"a class was registered with {kind.__qualname__}")

    def _renewed(self) -> dict[int, Any]:
        """For each counter that has gone on, by its address, a new one, which is from now on what was there before."""
        renewed: dict[int, Any] = {}
        for key, (counter, said) in self.counts.items():
            if repr(counter) != said:
                numbers = _COUNT.fullmatch(said)
                if key in self.pinned or numbers is None:
                    raise NotKept("an iterator has gone on")
                renewed[key] = count(*(int(n) for n in numbers.groups() if n))
        if renewed:
            for key, counter in renewed.items():
                said = self.counts.pop(key)[1]
                self.counts[id(counter)] = (counter, said)
            self._replace(renewed)
        return renewed

    def _replace(self, renewed: dict[int, Any]) -> None:
        """Let what was there before be other objects, and methods of them."""

        def instead(obj: Any) -> Any:
            if type(obj) is types.MethodWrapperType and id(obj.__self__) in renewed:
                return getattr(renewed[id(obj.__self__)], obj.__name__)
            return renewed.get(id(obj), obj)

        def all_instead(objects: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(map(instead, objects)) if _COUNTING & set(map(type, objects)) else objects

        self.dicts = [(d, kind, keys, all_instead(held)) for d, kind, keys, held in self.dicts]
        self.sequences = [(s, kind, all_instead(held)) for s, kind, held in self.sequences]
        self.classes = [(kind, names, all_instead(values)) for kind, names, values in self.classes]
        self.slots = [(slot, obj, instead(value)) for slot, obj, value in self.slots]
        self.contents = all_instead(self.contents)

    def _classes_back(self) -> None:
        changed = False
        for (kind, names, values), below, bases in zip(
            self.classes, self.below, self.bases, strict=True
        ):
            if type.__subclasses__(kind) != below or kind.__bases__ is not bases:
                raise NotKept(f"classes were made from {kind.__qualname__}")
            own = vars_of(kind)
            if len(own) == len(names) and _same(own.values(), values) and _same(own, names):
                continue
            before = dict(zip(names, values, strict=True))
            for name in [n for n in own if n not in before]:
                changed = True
                type.__delattr__(kind, name)
            if tuple(own) != names:
                raise NotKept(f"an attribute of {kind.__qualname__} is gone")
            for name, value in before.items():
                if own[name] is not value:
                    changed = changed or type(own[name]) is not type(value)
                    type.__setattr__(kind, name, value)
        if changed:
            forget_classes()


_ABC_DATA = type(vars_of(abc.ABC)["_abc_impl"])


def _own_attributes(obj: Any, kind: type) -> dict[Any, Any] | None:
    """The dict of the attributes of an object, whatever its class says of `__dict__`."""
    if not kind.__dictoffset__:
        return None
    try:
        found = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def _dict_back(found: Any, kind: Any, keys: tuple[Any, ...], values: tuple[Any, ...]) -> None:
    if any(type(key) not in SIMPLE_KEYS for key in keys):
        raise NotKept("a dict with keys that are compared by code has changed")
    kind.clear(found)
    for key, value in zip(keys, values, strict=True):
        kind.__setitem__(found, key, value)


def _sequence_back(sequence: Any, kind: Any, held: tuple[Any, ...]) -> None:
    if kind is deque:
        deque.clear(sequence)
        deque.extend(sequence, held)
    else:
        kind.__setitem__(sequence, slice(None), held)


def _cell_back(cell: types.CellType, content: object) -> None:
    if content is EMPTY:
        del cell.cell_contents
    else:
        cell.cell_contents = content


def _slot_back(slot: Any, obj: Any, value: Any) -> None:
    try:
        found = slot.__get__(obj)
    except AttributeError:
        found = EMPTY
    if found is value:
        return
    if value is EMPTY:
        slot.__delete__(obj)
    else:
        slot.__set__(obj, value)
