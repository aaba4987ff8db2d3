"""State that the standard library keeps for a program where no source of the program names it.

| what | becomes |
|---|---|
| `obj.__dict__`, `vars(obj)` | `AttributeDict`: an item is an access to the attribute, and which there are is a place |
| `functools.cached_property` | a read of the attribute, perhaps its function, and a write, as in `functools.py` |
| `functools.lru_cache`, `cache` | `ResultCache`: a lookup and a store are one operation each, as in C |
| a generator that threads share | it is entered and left: who comes in between gets ValueError, as in CPython |
| methods of `collections.abc` | the same methods, rewritten; so are the classes of `collections` and weak containers |
| `functools.singledispatch`, the stacks of `contextlib` | the same, rewritten |
| `copy`, `json`, `heapq`, `string`, `pprint` and others | their functions in Python, rewritten |
| `json.dumps(x)` by the encoder of C | one read of all that is in `x` |

The functions here are called by `accesses` and `calls`, by what the rewritten code reads or calls.
"""

from __future__ import annotations

import _collections_abc
import _weakrefset
import builtins
import collections
import collections.abc
import configparser
import contextlib
import copy
import csv
import dataclasses
import functools
import graphlib
import heapq
import json
import json.encoder
import operator
import pprint
import random
import reprlib
import statistics
import string
import sys
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import greenlet  # type: ignore[import-untyped]  # greenlet ships no annotations

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.model.guard import lifted, place
from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.python import accesses
from seriatim_models.explorer.python.accesses import library, named, no_program, now, record_of
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.hooks import stable_id
from seriatim_models.explorer.python.lifetimes import WeakReference
from seriatim_models.explorer.python.places import (
    CONTENTS,
    INSTANCE,
    ObjectRecord,
    elements,
    kind_of,
    where,
    written_in_c,
)
from seriatim_models.explorer.python.primitives import RLock
from seriatim_models.explorer.python.threads import get_ident, observed_classes

_ABSENT = object()


# -- attributes as a dict ---------------------------------------------------------------------------------------------


class AttributeDict(dict[str, Any]):
    """`obj.__dict__`: a dict without items of its own, so that C code asks for each."""

    __s_native__ = True

    def __init__(self, obj: Any, site: int) -> None:
        super().__init__()
        self._obj = obj
        self._real: dict[str, Any] = object.__getattribute__(obj, "__dict__")
        self._site = site

    def _touch(self, name: Any, write: bool) -> None:
        ex = now.execution
        if ex is not None and (thread := ex.current) is not None:
            record = record_of(ex, self._obj, self._site, write)
            touched = [(record, name, write)]
            if write and accesses.ATTRIBUTE_NAMES in ex.search.promoted:
                touched.append((record, "__dict__", True))
            ex.touch_all(thread, touched, self._site)

    def _named(self) -> dict[str, Any]:
        """The attributes, of which it is read which there are."""
        ex = now.execution
        if ex is not None and (thread := ex.current) is not None:
            record = record_of(ex, self._obj, self._site)
            if accesses.may_race(ex, accesses.ATTRIBUTE_NAMES, self._site):
                ex.touch(thread, record, "__dict__", False, self._site)
        return self._real

    def _all(self) -> dict[str, Any]:
        """The attributes, all read in one operation, with which there are."""
        ex = now.execution
        if ex is not None and ex.current is not None:
            record_of(ex, self._obj, self._site)
            accesses.may_race(ex, accesses.ATTRIBUTE_NAMES, self._site)
        read_deeply((self._obj,), self._site, depth=0)
        return self._real

    def __s_live__(self, site: int, view: str = "keys") -> Iterator[Any]:
        """What a `for` goes through: others may change the attributes between two steps."""
        return _AttributeIteration(self, view)

    def __getitem__(self, name: str) -> Any:
        self._touch(name, False)
        return self._real[name]

    def __setitem__(self, name: str, value: Any) -> None:
        ex = now.execution
        if ex is not None:
            named(ex, value, self._site)
        self._touch(name, True)
        self._real[name] = value

    def __delitem__(self, name: str) -> None:
        self._touch(name, True)
        del self._real[name]

    def __contains__(self, name: object) -> bool:
        self._touch(name, False)
        return name in self._real

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute, or `default`."""
        self._touch(name, False)
        return self._real.get(name, default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """One operation of a dict."""
        self._touch(name, True)
        return self._real.setdefault(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        """Take an attribute away."""
        self._touch(name, True)
        return self._real.pop(name, *default)

    def update(self, *others: Any, **values: Any) -> None:
        """Set attributes, one after another."""
        for name, value in dict(*others, **values).items():
            self[name] = value

    def __ior__(self, other: Any) -> AttributeDict:  # type: ignore[override]  # as of a dict
        self.update(other)
        return self

    def clear(self) -> None:
        """Take all attributes away."""
        for name in list(self._named()):
            self.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._named()))

    def __len__(self) -> int:
        return len(self._named())

    def __eq__(self, other: object) -> bool:
        return self._all() == (other._all() if isinstance(other, AttributeDict) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # as of a dict

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._named()))

    def popitem(self) -> tuple[str, Any]:
        """Take the last attribute away."""
        for name in reversed(list(self._named())):
            return name, self.pop(name)
        raise KeyError("popitem(): dictionary is empty")

    def __repr__(self) -> str:
        return repr(self._all())

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def copy(self) -> dict[str, Any]:
        """A plain dict of the attributes."""
        return dict(self._all())

    def keys(self) -> Any:
        """The names."""
        return LiveView(self, "keys")

    def values(self) -> Any:
        """The values."""
        return LiveView(self, "values")

    def items(self) -> Any:
        """Names and values."""
        return LiveView(self, "items")


def owners(value: Any, depth: int = 8) -> Iterator[Any]:
    """The objects whose attributes, as a dict, are in lists, tuples and dicts that C code goes through."""
    if type(value) is AttributeDict:
        yield value._obj
        value = value._real
    inner = value.values() if isinstance(value, dict) else value
    if depth and isinstance(value, list | tuple | dict):
        for element in tuple(inner):
            yield from owners(element, depth - 1)


def plain(value: Any, depth: int = 8) -> Any:
    """What C code goes through that looks into a dict itself: an `AttributeDict` has no items of its own.

    It was announced before; all that holds none is left as it is.
    """
    if not depth or not any(True for _ in owners(value, depth)):
        return value
    if type(value) is AttributeDict:
        value = value._real
    if isinstance(value, dict):
        return {name: plain(element, depth - 1) for name, element in value.items()}
    return [plain(element, depth - 1) for element in value]


class LiveView:
    """Names, values or both of an `AttributeDict` or its like; C code goes through all of it in one operation."""

    __s_native__ = True

    def __init__(self, attributes: Any, view: str) -> None:
        self._attributes, self._view = attributes, view

    def _now(self) -> Any:
        names = self._view == "keys"
        read = self._attributes._named() if names else self._attributes._all()
        return getattr(dict(read), self._view)()

    def __s_live__(self, site: int) -> Iterator[Any]:
        live: Iterator[Any] = self._attributes.__s_live__(site, self._view)
        return live

    def __iter__(self) -> Iterator[Any]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def __contains__(self, one: object) -> bool:
        return one in self._now()

    def __eq__(self, other: object) -> bool:
        return bool(self._now() == (other._now() if isinstance(other, LiveView) else other))

    __hash__ = None  # type: ignore[assignment]  # as of a view

    def __repr__(self) -> str:
        return repr(self._now())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now(), name)

    def __and__(self, other: Any) -> Any:
        return self._now() & other

    def __or__(self, other: Any) -> Any:
        return self._now() | other

    def __sub__(self, other: Any) -> Any:
        return self._now() - other

    def __xor__(self, other: Any) -> Any:
        return self._now() ^ other

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __rsub__(self, other: Any) -> Any:
        return other - self._now()


class _AttributeIteration:
    """Goes through an `AttributeDict` itself, and announces each step."""

    __s_native__ = True

    def __init__(self, attributes: AttributeDict, view: str) -> None:
        self._read = attributes._named if view == "keys" else attributes._all
        self._real = iter(getattr(attributes._real, view)())

    def __iter__(self) -> _AttributeIteration:
        return self

    def __next__(self) -> Any:
        self._read()
        return next(self._real)


def attributes(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> Any:
    """`obj.__dict__`."""
    if type(getattr(obj, "__dict__", None)) is not dict:
        ex.opaque(thread, record_of(ex, obj, site), "__dict__", site)
        return obj.__dict__
    return AttributeDict(obj, site)


class Cells(tuple[types.CellType, ...]):
    """`function.__closure__` of a function that is observed: its cells are not those of its source."""

    __slots__ = ()

    def _refuse(self, *of: object) -> NoReturn:
        raise OutsideModel(
            f"a cell of __closure__ (at {place(sys._getframe(1))}): those of a function that is observed are not those "
            "of its source. Let an inner function read or bind the variable (`nonlocal`)"
        )

    __getitem__ = __iter__ = _refuse


def closure(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> Any:
    """`function.__closure__`, which may be given to another function, and not be looked into."""
    cells = obj.__closure__
    return cells if cells is None or accesses.MARK not in obj.__globals__ else Cells(cells)


def reduced(state: Any, obj: Any, site: int) -> Any:
    """What `copy` makes a copy from; the dict of the attributes in it is that of the object, and not a copy."""
    if type(state) is tuple:
        return tuple(reduced(part, obj, site) for part in state)
    own = getattr(obj, "__dict__", None)
    return AttributeDict(obj, site) if state is own and own is not None else state


def read_deeply(values: Any, site: int, depth: int = 3, *, divisible: bool = False) -> None:
    """Announce that code without announcements reads all that is in `values`, in one operation.

    With `divisible` it is Python, and others may run within it: the verdict is withheld if it reads several places
    that race.

    What that is may have changed when the operation happens: what is new then is compared, and the verdict is withheld
    if it is a step.
    """
    ex = now.execution
    if ex is None or (thread := ex.current) is None:
        return
    before = _places(ex, values, site, depth)
    if before:
        ex.touch_all(thread, list(before.values()), site)
        steps = [
            r.places[n].label for r, n, _ in before.values() if r.shared and r.places[n].index >= 0
        ]
        if divisible and len(steps) > 1:
            what = f"{where(site)} reads {steps[0]} and {steps[1]}, where others may run in between"
            ex.search.unseen[what] = None
    for key, (record, name, _) in _places(ex, values, site, depth).items():
        if key in before:
            continue
        place = record.places.get(name)
        if place is not None and place.index >= 0:
            ex.search.unseen[f"{where(site)} reads {place.label} through another object"] = None
        else:
            ex.touch(thread, record, name, False, site)


def _places(
    ex: PythonExecution, values: Any, site: int, depth: int
) -> dict[tuple[int, str], tuple[ObjectRecord, str, bool]]:
    found: dict[tuple[int, str], tuple[ObjectRecord, str, bool]] = {}
    seen: set[int] = set()
    waiting = [(value, 0) for value in values]
    while waiting:
        value, level = waiting.pop()
        for element in elements(value, max(depth - level, 0)):
            if id(element) in seen or len(seen) > 256:
                continue
            seen.add(id(element))
            record = ex.records.get(id(element))
            if kind_of(type(element)) != INSTANCE:
                if record is not None:
                    found[id(element), CONTENTS] = (record, CONTENTS, False)
                continue
            if isinstance(element, types.FunctionType):
                continue
            if record is not None and accesses.ATTRIBUTE_NAMES in ex.search.promoted:
                found[id(element), "__dict__"] = (record, "__dict__", False)
            for name, held in _attributes(element):
                if record is not None:
                    found[id(element), name] = (record, name, False)
                if level < depth:
                    waiting.append((held, level + 1))
    return found


def _attributes(obj: Any) -> list[tuple[str, Any]]:
    """The attributes that an object has, in its dict or in slots."""
    names = getattr(obj, "__dict__", None)
    found = list(names.items()) if type(names) is dict else []
    for base in type(obj).__mro__:
        for name, slot in vars(base).items():
            if isinstance(slot, types.MemberDescriptorType) and not written_in_c(base):
                with contextlib.suppress(AttributeError):
                    found.append((name, slot.__get__(obj)))
    return found


# -- functools --------------------------------------------------------------------------------------------------------


class CachedProperty(functools.cached_property[Any]):
    """`functools.cached_property`; up to Python 3.11 with one lock for all objects of the class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        super().__init__(func)
        if sys.version_info < (3, 12):
            self.lock = RLock()

    def __set_name__(self, owner: type[Any], name: str) -> None:
        super().__set_name__(owner, name)
        if sys.version_info < (3, 12):
            self.lock.call_it(f"the lock of cached_property {name}")


def cached_property(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> Any:
    """`obj.name` of a `functools.cached_property`."""
    kept = next(base.__dict__[name] for base in type(obj).__mro__ if name in base.__dict__)
    record = record_of(ex, obj, site)
    if not isinstance(kept, CachedProperty):
        ex.opaque(thread, record, f"cached_property {name}", site)
        return getattr(obj, name)
    own = obj.__dict__
    key = kept.attrname or name

    def lookup() -> Any:
        ex.touch(thread, record, key, False, site)
        return own.get(key, _ABSENT)

    value = lookup()
    if value is not _ABSENT:
        return value
    if sys.version_info >= (3, 12):
        return _filled(ex, thread, record, own, key, kept.func, obj, site)
    with kept.lock:
        value = lookup()
        if value is not _ABSENT:
            return value
        return _filled(ex, thread, record, own, key, kept.func, obj, site)


def _filled(
    ex: PythonExecution, thread: Thread, record: ObjectRecord, own: dict[str, Any], key: str,
    function: Callable[[Any], Any], obj: Any, site: int,
) -> Any:  # fmt: skip
    value = library.call(function, site, obj)
    named(ex, value, site)
    ex.touch(thread, record, key, True, site)
    own[key] = value
    return value


class CacheInfo(NamedTuple):
    """As that of `functools`."""

    hits: int
    misses: int
    maxsize: int | None
    currsize: int


class ResultCache:
    """What `functools.lru_cache` makes of a function."""

    __s_native__ = True

    def __init__(self, function: Callable[..., Any], maxsize: int | None, typed: bool) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._maxsize = maxsize
        self._typed = typed
        self._results: OrderedDict[Any, Any] = OrderedDict()
        self._hits = self._misses = 0
        ex = now.execution
        self._record = None
        if ex is not None:
            label = f"cache of {getattr(function, '__qualname__', 'a function')}"
            self._record = ex.record(self, label, True)

    def _touch(self, write: bool) -> None:
        ex = now.execution
        if ex is not None and (thread := ex.current) is not None and self._record is not None:
            ex.touch(thread, self._record, CONTENTS, write, 0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._maxsize == 0:
            self._misses += 1
            return library.call(self._function, 0, *args, **kwargs)
        key = functools._make_key(args, kwargs, self._typed)
        self._touch(self._maxsize is not None)  # a bounded one keeps the order of use
        if key in self._results:
            self._hits += 1
            if self._maxsize is not None:
                self._results.move_to_end(key)
            return self._results[key]
        self._misses += 1
        result = library.call(self._function, 0, *args, **kwargs)
        ex = now.execution
        if ex is not None:
            named(ex, result, 0)
        self._touch(True)
        if self._maxsize is None or key not in self._results:
            self._results[key] = result
        if self._maxsize is not None and len(self._results) > self._maxsize:
            self._results.popitem(last=False)
        return result

    def __get__(self, obj: Any, kind: Any = None) -> Any:
        return self if obj is None else types.MethodType(self, obj)

    def cache_info(self) -> CacheInfo:
        """How often it was used."""
        self._touch(True)  # lookups count, and need not be ordered for that among each other
        return CacheInfo(self._hits, self._misses, self._maxsize, len(self._results))

    def cache_clear(self) -> None:
        """Forget all results."""
        self._touch(True)
        self._results.clear()
        self._hits = self._misses = 0

    def cache_parameters(self) -> dict[str, Any]:
        """What it was made with."""
        return {"maxsize": self._maxsize, "typed": self._typed}


def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """`functools.lru_cache`."""
    if callable(maxsize) and isinstance(typed, bool):
        return ResultCache(maxsize, 128, typed)
    if maxsize is not None and not isinstance(maxsize, int):
        raise TypeError("Expected first argument to be an integer, a callable, or None")
    size = None if maxsize is None else max(maxsize, 0)
    return lambda function: ResultCache(function, size, typed)


def functools_module(ex: PythonExecution) -> types.ModuleType:
    """`functools` for one execution: its caches are observed."""
    copy = types.ModuleType("functools", functools.__doc__)
    copy.__dict__.update(vars(functools))
    names = (
        "singledispatch",
        "singledispatchmethod",
        "_find_impl",
        "_compose_mro",
        "_c3_mro",
        "_c3_merge",
        "update_wrapper",
        "wraps",
    )
    copy.__dict__.update(
        observed_containers(
            functools, names, __builtins__={**vars(builtins), "__import__": import_}
        ),
        lru_cache=lru_cache,
        cache=lambda function, /: ResultCache(function, None, False),
        cached_property=CachedProperty,
    )
    return copy


# -- generators -------------------------------------------------------------------------------------------------------


def resume(generator: Any, function: Callable[..., Any], args: tuple[Any, ...], site: int) -> Any:
    """Call a method of a generator (`__next__`, `send`, `throw`, `close`), which one thread at a time may be in.

    The interpreter says that a generator runs as soon as its frame does, and lets other threads run there.
    """
    ex = now.execution
    if ex is None or (thread := ex.current) is None:
        return function(*args)
    record = record_of(ex, generator, site)
    ex.touch(thread, record, CONTENTS, True, site)
    if id(generator) in ex.entered:
        raise ValueError("generator already executing")
    ex.entered.add(id(generator))
    try:
        return function(*args)
    finally:
        if not ex.closing:
            ex.touch(thread, record, CONTENTS, True, site)
        ex.entered.discard(id(generator))


class Resumptions:
    """What goes through a generator, or delegates to it: others may come to it meanwhile."""

    __s_native__ = True

    def __init__(self, generator: Any, site: int) -> None:
        self._generator = generator
        self._site = site

    def __iter__(self) -> Resumptions:
        return self

    def __next__(self) -> Any:
        return resume(self._generator, self._generator.__next__, (), self._site)

    def send(self, value: Any) -> Any:
        """What `yield from` passes on."""
        return resume(self._generator, self._generator.send, (value,), self._site)

    def throw(self, *raised: Any) -> Any:
        """An exception that `yield from` passes on."""
        return resume(self._generator, self._generator.throw, raised, self._site)

    def close(self) -> None:
        """The end that `yield from` passes on."""
        resume(self._generator, self._generator.close, (), self._site)


# -- what of the library is written in Python ------------------------------------------------------------------------

_twins: dict[types.ModuleType, dict[str, Any]] = {}
_TWINNED = {
    id(vars(module)): module
    for module in (
        _collections_abc, configparser, copy, csv, dataclasses, graphlib, heapq, json, json.encoder, pprint, random,
        reprlib, statistics, string,
    )
}  # fmt: skip
"""Modules whose functions and methods are run in their rewritten form, by the dict of their globals."""
DRAWING = frozenset(
    ("choice", "choices", "gauss", "sample", "shuffle", "_randbelow_with_getrandbits")
)
"""Methods of `random.Random` that look into what they are given, and `gauss`, which keeps what it has not given; all
others draw in one operation."""
PARTS: dict[types.ModuleType, tuple[str, ...]] = {
    random: ("Random",),
    dataclasses: ("asdict", "astuple", "replace", "_asdict_inner", "_astuple_inner", "_replace"),
}
"""The classes and functions of a module that are rewritten, where it is not all of them."""


def twinned(module: types.ModuleType, names: tuple[str, ...]) -> None:
    """Run these functions of a module, where it has them, in their rewritten form from now on."""
    _TWINNED[id(vars(module))] = module
    PARTS[module] = names


OF_THE_MACHINE = frozenset(("platform", "ctypes.util"))
"""Modules whose functions say what machine this is, and may start a program to find out."""


def _asked(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the machine is, asked as if no program ran."""
    with no_program(), lifted():
        return greenlet.greenlet(function).switch(*args, **kwargs)


def observed_twin(function: Any) -> Any:
    """The rewritten form of a function of the library that goes through what it is given; None for all others."""
    if function.__globals__.get("__name__") in OF_THE_MACHINE:
        return functools.partial(_asked, function)
    module = _TWINNED.get(id(function.__globals__))
    if module is None or (module is random and function.__name__ not in DRAWING):
        return None
    if module not in _twins:
        _twins[module] = _rewritten_functions(module)
    return _twins[module].get(function.__code__.co_qualname)


def _rewritten_functions(module: types.ModuleType) -> dict[str, Any]:
    """The functions and methods of a module by qualified name, rewritten; the classes they name are the real ones."""
    real = _without_dunders(module)
    own = {
        name: value for name, value in real.items()
        if name in PARTS.get(module, (name,)) and (
            getattr(value, "__globals__", None) is vars(module)  # whatever module and name somebody gave it
            or (isinstance(value, type) and value.__module__ == module.__name__)
        )
    }  # fmt: skip
    changed = {"get_ident": get_ident, "c_make_encoder": EncoderOfC}
    real.update({name: value for name, value in changed.items() if name in real})
    space = observed_classes(module, list(own), **real)
    if module is copy:
        _know_ours(space)
    twins: dict[str, Any] = {}
    for name, value in own.items():
        made = space.get(name)
        if not isinstance(value, type):
            twins[name] = made
            continue
        for method in vars(made).values() if made is not None else ():
            method = getattr(method, "__func__", method)
            if isinstance(method, types.FunctionType):
                twins[method.__qualname__] = method
                _belongs_to(value, method)
        space[name] = value
    return twins


def _know_ours(space: dict[str, Any]) -> None:
    """Let `copy` copy what stands for dicts and weak references, and remember by the `id` of the program."""
    space["id"] = stable_id
    kept = space["_deepcopy_dispatch"]
    space["_deepcopy_dispatch"] = {**kept, AttributeDict: space["_deepcopy_dict"]}
    if "_copy_dispatch" in space:
        space["_deepcopy_dispatch"][WeakReference] = space["_deepcopy_atomic"]
        space["_copy_dispatch"] = {
            **space["_copy_dispatch"],
            AttributeDict: AttributeDict.copy,
            WeakReference: space["_copy_immutable"],
        }
    else:  # from 3.14 on
        space["_copy_builtin_containers"] = {*space["_copy_builtin_containers"], AttributeDict}
        for name in ("_copy_atomic_types", "_atomic_types"):
            space[name] = {*space[name], WeakReference}


def _belongs_to(kind: type, method: types.FunctionType) -> None:
    """`super()` in a method asks for the class that the objects are of."""
    for name, cell in zip(method.__code__.co_freevars, method.__closure__ or (), strict=True):
        if name == "__class__":
            cell.cell_contents = kind


class EncoderOfC:
    """The encoder of `json` in C: one operation on all that it reads, up to each call of a `default` of Python."""

    __s_native__ = True

    def __init__(self, markers: Any, default: Callable[[Any], Any], *options: Any) -> None:
        self._default = default
        self._given: Any = None
        self._real = json.encoder.c_make_encoder(markers, self._called_back, *options)  # type: ignore[attr-defined]  # not in typeshed

    def __call__(self, value: Any, level: int) -> Any:
        self._given = value
        read_deeply((value, *owners(value)), 0)
        return self._real(plain(value), level)

    def _called_back(self, value: Any) -> Any:
        result = library.call(self._default, 0, value)
        read_deeply((self._given, result, *owners(result)), 0)
        return plain(result)


def _without_dunders(module: types.ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}


_library: dict[str, dict[str, Any]] = {}


def observed_containers(
    module: types.ModuleType, names: tuple[str, ...], **space: Any
) -> dict[str, Any]:
    """These classes of a module of the library, rewritten; `space` is what they do not take from the module."""
    if module.__name__ not in _library:
        known = observed_classes(module, names, **{**_without_dunders(module), **space})
        _library[module.__name__] = {name: known[name] for name in names}
    return _library[module.__name__]


def collections_module(ex: PythonExecution) -> types.ModuleType:
    """`collections` for one execution."""
    copy = types.ModuleType("collections", collections.__doc__)
    copy.__dict__.update(vars(collections))
    names = ("ChainMap", "Counter", "UserDict", "UserList")
    getters = observed_containers(operator, ("itemgetter",))
    observed = observed_containers(collections, names, _itemgetter=getters["itemgetter"])
    copy.__dict__.update(observed)
    return copy


def import_(*args: Any) -> Any:
    """`__import__` for functions of the library that import what each execution has in a form of its own."""
    ex = now.execution
    return builtins.__import__(*args) if ex is None else ex.program.sandbox.import_(*args)  # type: ignore[attr-defined]


def contextlib_module(ex: PythonExecution) -> types.ModuleType:
    """`contextlib` for one execution: what its stacks hold is observed."""
    copy = types.ModuleType("contextlib", contextlib.__doc__)
    copy.__dict__.update(vars(contextlib))
    names = ("_BaseExitStack", "ExitStack", "AsyncExitStack")
    copy.__dict__.update(observed_containers(contextlib, names))
    copy.__dict__.update(redirect_stdout=RedirectStdout, redirect_stderr=RedirectStderr)
    return copy


class _RedirectStream(contextlib.AbstractContextManager[Any]):
    """`redirect_stdout` and `redirect_stderr`, which the `sys` of the program shows as well as the real one."""

    _stream = ""

    def __init__(self, new_target: Any) -> None:
        self._new_target = new_target
        self._old_targets: list[list[tuple[Any, Any]]] = []

    def __enter__(self) -> Any:
        modules = _modules_sys()
        self._old_targets.append([(module, getattr(module, self._stream)) for module in modules])
        for module in modules:
            setattr(module, self._stream, self._new_target)
        return self._new_target

    def __exit__(self, *_: object) -> None:
        before = self._old_targets.pop()
        for module in _modules_sys():  # the program may have imported it since
            old = next((old for at, old in before if at is module), before[0][1])
            setattr(module, self._stream, old)


def _modules_sys() -> list[Any]:
    """The real `sys`, and that of the program, if it has imported it."""
    ex = now.execution
    own = None if ex is None else ex.modules.get("sys")
    return [sys] if own is None else [sys, own]


class RedirectStdout(_RedirectStream):
    """`contextlib.redirect_stdout`."""

    _stream = "stdout"


class RedirectStderr(_RedirectStream):
    """`contextlib.redirect_stderr`."""

    _stream = "stderr"


def weak_containers() -> dict[str, Any]:
    """The containers of `weakref`, which refer to what is in them by `WeakReference`."""
    ref = WeakReference
    guard = ("_IterationGuard",) if hasattr(_weakrefset, "_IterationGuard") else ()  # up to 3.13
    sets = observed_containers(_weakrefset, (*guard, "WeakSet"), ref=ref)
    collections.abc.MutableSet.register(sets["WeakSet"])  # as `weakref` does with its own
    names = ("KeyedRef", "WeakMethod", "WeakValueDictionary", "WeakKeyDictionary")
    return {**sets, **observed_containers(weakref, names, ref=ref, **sets)}


def property_of_c(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> Any:
    """`obj.size` of a `property(len)`: what C code reads of the object is announced."""
    value = next(base.__dict__[name] for base in type(obj).__mro__ if name in base.__dict__)
    return library.call(value.fget, site, obj)


def of_exception(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> Any:
    """`error.__traceback__` and its like, which change when somebody raises the object again."""
    ex.need(accesses.RAISED, site)
    ex.touch(thread, record_of(ex, obj, site), name, False, site)
    return getattr(obj, name)


def of_view(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> Any:
    """`kind.__dict__`, `view.mapping`: a view of the attributes of a class, or of what another view shows."""
    view = getattr(obj, name)
    ex.views[id(view)] = (view, ex.views.get(id(obj), (None, obj))[1])
    return view


def flags(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> Any:
    """`context.flags` of `decimal`, which each operation of the context sets."""
    ex.opaque(thread, record_of(ex, obj, site), name, site)
    accesses.touch_contents(obj, True, site)
    return getattr(obj, name)


def of_partial(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> Any:
    """`partial.args` and its like, which only `__setstate__` changes."""
    if accesses.PARTIAL_SET in ex.search.promoted:
        accesses.touch_contents(obj, False, site)
    return getattr(obj, name)


READERS = frozenset(("json", "textwrap", "traceback", "base64"))
"""Modules whose functions read what they are given, and keep nothing of it."""

library.members = {
    accesses.CACHED: cached_property,
    accesses.ATTRIBUTES: attributes,
    accesses.CLOSURE: closure,
    accesses.PROPERTY_OF_C: property_of_c,
    accesses.OF_EXCEPTION: of_exception,
    accesses.OF_VIEW: of_view,
    accesses.FLAGS: flags,
    accesses.OF_PARTIAL: of_partial,
}
library.attribute_dict = AttributeDict
library.plain = lambda value: value.copy() if type(value) is AttributeDict else value
library.resume = resume
library.resumptions = Resumptions
library.read_deeply = read_deeply
library.reduced = reduced
library.readers = READERS
library.observed_twin = observed_twin
