"""Announce accesses to attributes, variables and the contents of containers, just before they happen.

Nothing comes between an announcement and what it announces, so the two are one step. Outside an execution (while it
is being closed, say) nothing is announced.

C code that is given containers reads or writes their contents in one step, as the GIL has it (a free-threaded build
locks one or two objects at a time); Python code that it calls back has steps of its own, see `called_back`. Python that
was not rewritten cannot be observed: an object that it is given, and that another thread uses, is noted (`opaque`).
"""

from __future__ import annotations

import builtins
import collections
import decimal
import functools
import io
import logging
import operator
import types
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from seriatim_models.explorer.errors import NotObserved, OutsideModel
from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.python.execution import (
    ABSENT,
    CLOSED_LAST,
    PythonExecution,
    of_library,
)
from seriatim_models.explorer.python.places import (
    CLASS,
    CONTAINER,
    CONTENTS,
    INSTANCE,
    METHOD_OF_C,
    MODULE,
    NAMES_READ,
    NATIVE,
    OF_EXECUTION,
    OPAQUE,
    PLAIN,
    TUPLE,
    VALUE,
    VIEW,
    ObjectRecord,
    elements,
    forget_kinds,
    keeps_attributes,
    kind_of,
    operands,
    where,
    written_in_c,
)
from seriatim_models.explorer.python.rewrite import MODULE_TOKEN

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


class _Now:
    """The execution that runs."""

    execution: PythonExecution | None = None


now = _Now()


@contextmanager
def no_program() -> Iterator[None]:
    """While the body runs, rewritten code announces nothing and names nothing: it makes what all executions share.

    Otherwise the execution that comes first would have steps and names that no other has.
    """
    before, now.execution = now.execution, None
    try:
        yield
    finally:
        now.execution = before


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


def generated(ex: PythonExecution, value: Any, site: int) -> Any:
    """What a call of Python has returned: a generator has its name from then on."""
    if (
        type(value) is types.GeneratorType
        and ex.current is not None
        and id(value) not in ex.records
    ):
        ex.record(value, label_of(value, site), True)
    return value


# -- variables -------------------------------------------------------------------------------------------------------


def cell(record: ObjectRecord | None, name: str, site: int) -> None:
    """A shared variable is about to be read."""
    ex = now.execution
    if record is not None and ex is not None and (thread := ex.current) is not None:
        ex.touch(thread, record, name, False, site)


def cell_later(record: ObjectRecord | None, name: str, site: int) -> None:
    """A shared variable is about to be read by what is evaluated when somebody asks for it: annotations, aliases.

    Whoever asks next is given the same value, of which nothing is announced; so the verdict is withheld if it races.
    """
    ex = now.execution
    if record is not None and ex is not None and ex.current is not None:
        cell(record, name, site)
        place = record.places.get(name)
        if place is not None and place.index >= 0:
            what = f"{where(site)} is evaluated once, when somebody asks for it, and reads {place.label}, which races"
            ex.search.unseen[what] = None


def cell_set(record: ObjectRecord | None, name: str, value: Any, site: int) -> Any:
    """A shared variable is about to be bound to the value, which is returned."""
    ex = now.execution
    if record is not None and ex is not None and (thread := ex.current) is not None:
        named(ex, value, site)
        if kind_of(type(value)) == NATIVE and hasattr(value, "call_it"):
            value.call_it(name)
        if type(record.obj) is types.ModuleType:
            _touch_global(ex, thread, vars(record.obj), record, name, site)
        else:
            ex.touch(thread, record, name, True, site)
    return value


def _touch_global(
    ex: PythonExecution,
    thread: Thread,
    names: dict[str, Any],
    token: ObjectRecord,
    name: str,
    site: int,
) -> None:
    """Announce that a global changes: itself, and what `globals()`, `vars` and `dir` of its module show."""
    changed = [(token, name, True)]
    record = ex.records.get(id(names))
    if record is not None and NAMES_READ + record.label in ex.search.promoted:
        changed.append((record, CONTENTS, True))
    ex.touch_all(thread, changed, site)


# -- attributes ------------------------------------------------------------------------------------------------------


UNSHARED, METHOD, PROPERTY, DATA, INSIDE, OF_CLASS, OF_MODULE = range(7)
CACHED, ATTRIBUTES, CLOSURE, PROPERTY_OF_C, OF_EXCEPTION, OF_VIEW, FLAGS, OF_PARTIAL = range(7, 15)
"""What `obj.name` is by the class of `obj`: nothing that is observed, a method, a property, an attribute of an object,
state inside of C, an attribute of a class, of a module, a property that is kept, the dict of all attributes, the cells
of a function, a property whose getter is written in C, what `raise` changes of an exception, another view of what a
view shows, an object that shares the state of one of C, what a partial calls and with what."""
PARTIAL_SET = "state of a partial is set"
"""What is promoted where a program calls `partial.__setstate__`: from then on a call of a partial reads its state."""
RAISED = "tracebacks of exceptions"
"""What is observed where a program reads what `raise` changes."""
OF_RAISE = ("__traceback__", "__context__", "__cause__")
"""The attributes of an exception that `raise` changes."""


class _Library:
    """What `kept_inside` knows of the standard library; it imports this module and fills this in."""

    members: dict[int, Callable[[PythonExecution, Thread, Any, str, int], Any]]
    """How CACHED and all that comes behind it are read."""
    attribute_dict: Callable[[Any, int], Any]
    """`kept_inside.AttributeDict`."""
    plain: Callable[[Any], Any]
    """A dict of its own for one of these, for C code that looks into it."""
    resume: Callable[[Any, Callable[..., Any], tuple[Any, ...], int], Any]
    resumptions: Callable[[Any, int], Any]
    read_deeply: Callable[..., None]
    reduced: Callable[[Any, Any, int], Any]
    readers: frozenset[str]
    observed_twin: Callable[[Any], Any]
    reads_answers: Callable[[PythonExecution], None]
    """`class_checks.reads_answers`."""
    looked_up: Callable[..., Any]
    gathered: Callable[[Any, int], Any]
    """`calls.gathered`."""
    in_order: Callable[..., Any]
    call: Callable[..., Any]
    """`calls.call`."""
    observed_class: Callable[[Any], Any]
    """`hooks.observed_class`."""
    today: Callable[..., Any]


library = _Library()


C_GETTERS = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, METHOD_OF_C, functools.partial,
)  # fmt: skip
"""Functions of C that a program may make a property of: `property(len)`."""


C_ATTRIBUTES = (types.GetSetDescriptorType, types.MemberDescriptorType)


ITERATING = frozenset((
    *LAZY, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, functools.partial,
))  # fmt: skip
"""Classes of C whose objects are no places, unless a program stores them."""


_members: dict[tuple[type, str], int] = {}


def needs_logging() -> NoReturn:
    """Begin the search again with `logging` observed."""
    if now.execution is not None:
        now.execution.search.needed.append("logging")
    raise NotObserved("logging")


def member(kind: type, name: str) -> int:
    """What an attribute of an object of this class is."""
    found = _members.get((kind, name))
    if found is None:
        if issubclass(kind, logging.Filterer) and not callable(getattr(kind, name, None)):
            needs_logging()
        found = _members[kind, name] = _member(kind, name)
    return found


def _member(kind: type, name: str) -> int:
    what = kind_of(kind)
    found = _member_by_kind(kind, what, name)
    if found is not None:
        return found
    if what in (VALUE, TUPLE):
        known = keeps_attributes(kind)
    else:
        known = what in (INSTANCE, CONTAINER, OPAQUE) and kind not in PLAIN
    if not known:
        return UNSHARED
    if name in ("__class__", "__dict__"):
        return METHOD if name == "__class__" else ATTRIBUTES
    if name == "__closure__" and kind is types.FunctionType:
        return CLOSURE
    for base in kind.__mro__:
        if name in base.__dict__:
            return _by_class(kind, what, base, base.__dict__[name])
    return DATA


def _member_by_kind(kind: type, what: int, name: str) -> int | None:
    """The same where it needs no look at what the classes of the object have; None for all else."""
    if what == CLASS:
        return OF_VIEW if name == "__dict__" else OF_CLASS
    if what == MODULE:
        return OF_MODULE
    if what == VIEW and name == "mapping":
        return OF_VIEW
    if (
        what == NATIVE
    ):  # CPython's thread is an object of Python, which a program may give attributes
        own = name.startswith("_") or any(name in vars(base) for base in kind.__mro__)
        own = own or hasattr(kind, "__s_of_each_thread__")
        return UNSHARED if own or not kind.__dictoffset__ else DATA
    if name == "default_factory" and issubclass(kind, collections.defaultdict):
        return INSIDE
    return FLAGS if name in ("flags", "traps") and issubclass(kind, decimal.Context) else None


def _by_class(kind: type, what: int, base: type, value: object) -> int:
    """What an attribute of an object of a class is, whose class `base` has `value` for it."""
    if isinstance(value, property):
        by_c = isinstance(value.fget, C_GETTERS) and type(value).__get__ is property.__get__
        return PROPERTY_OF_C if by_c else PROPERTY
    if isinstance(value, functools.cached_property):
        own = type(value).__get__ is not functools.cached_property.__get__
        return PROPERTY if own else CACHED
    if isinstance(value, types.FunctionType | classmethod | staticmethod) or (
        type(value) in (types.MethodDescriptorType, types.WrapperDescriptorType)
    ):
        return METHOD
    if base is BaseException and getattr(value, "__name__", "") in OF_RAISE:
        return OF_EXCEPTION
    if isinstance(value, C_ATTRIBUTES) and written_in_c(base):
        if what in (VALUE, TUPLE):
            return UNSHARED  # of what never changes
        if what == OPAQUE:
            if issubclass(kind, functools.partial):
                return OF_PARTIAL
            return UNSHARED if kind in ITERATING else INSIDE
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
        if is_a == PROPERTY:
            return generated(ex, getattr(obj, name), site)
        before_load(ex, thread, obj, name, is_a, site)
    return getattr(obj, name)


def before_load(
    ex: PythonExecution, thread: Thread, obj: Any, name: str, is_a: int, site: int
) -> None:
    """Announce that an attribute is about to be read."""
    name = SAME_PLACE.get(name, name)
    promoted = ex.search.promoted
    if is_a == OF_CLASS:
        if f"class attribute {name}" in promoted:
            ex.touch_all(thread, class_places(ex, obj, name, site), site)
    elif is_a == OF_MODULE:
        token = obj.__dict__.get(MODULE_TOKEN)
        if token is None:
            _held_by_library(ex, obj, name)
        elif f"{token.label}.{name}" in promoted:
            ex.touch(thread, token, name, False, site)
    elif is_a == INSIDE:
        touch_contents(obj, False, site)
    elif is_a != PROPERTY and f"class attribute {name}" in promoted:
        own = (record_of(ex, obj, site), name, False)
        ex.touch_all(thread, [own, *class_places(ex, type(obj), name, site)], site)
    elif is_a in (DATA, METHOD):
        names = [name] if is_a == DATA or f"method {name} of an object" in promoted else []
        if CLASS_CHANGES in promoted and name != "__class__":
            names.append("__class__")
        if names:
            record = record_of(ex, obj, site)
            ex.touch_all(thread, [(record, each, False) for each in names], site)


def _held_by_library(ex: PythonExecution, module: types.ModuleType, name: str) -> None:
    """Name a container of a module that is not observed, whose own code reads it: `linecache.cache`."""
    held = module.__dict__.get(name)
    if kind_of(type(held)) == CONTAINER and id(held) not in ex.records:
        label = f"{module.__name__}.{name}"
        number = zlib.crc32(label.encode())
        record = ObjectRecord(held, label, OF_EXECUTION, number, True, None)
        record.opaque = f"{label} is changed, which the library itself reads"
        ex.records[id(held)] = record


def _changes_library(ex: PythonExecution, record: ObjectRecord, site: int) -> None:
    """Note a change of a container that the library reads, if there are other threads."""
    if record.maker == OF_EXECUTION and record.opaque and len(ex.heads) > 1:
        ex.search.unseen[f"{record.opaque}, at {where(site)}"] = None


def before_store(ex: PythonExecution, thread: Thread, obj: Any, name: str, site: int) -> None:
    """Announce that an attribute is about to change."""
    kind = type(obj)
    is_a = member(kind, name)
    name = SAME_PLACE.get(name, name)
    if is_a == OF_CLASS:
        _before_store_into_class(ex, thread, obj, name, site)
    elif is_a == OF_MODULE:
        token = obj.__dict__.get(MODULE_TOKEN)
        outside = token is None or (token.label == "global threading" and name != "excepthook")
        if outside:
            _stored_outside(ex, thread, obj, name, site)
        elif may_race(ex, f"{token.label}.{name}", site):
            _touch_global(ex, thread, obj.__dict__, token, name, site)
    elif is_a == METHOD:
        ex.need(f"method {name} of an object", site)
        if name == "__class__" and not _own(ex, thread, obj):
            _looked_up_by_c(ex, thread, f"{label_of(obj, site)}.__class__", site)
        ex.touch(thread, record_of(ex, obj, site, True), name, True, site)
    elif is_a in (DATA, CACHED, OF_EXCEPTION):
        if name in OF_A_CALL and kind is types.FunctionType:
            _looked_up_by_c(ex, thread, f"{obj.__qualname__}.{name}", site)
        changed = [(record_of(ex, obj, site, True), name, True)]
        if ATTRIBUTE_NAMES in ex.search.promoted and changes_names(ex, obj, name):
            changed.append((changed[0][0], "__dict__", True))
        ex.touch_all(thread, changed, site)
    elif is_a == INSIDE:
        touch_contents(obj, True, site)
    elif is_a == ATTRIBUTES:
        ex.opaque(thread, record_of(ex, obj, site, True), name, site)
        # Another object, or its own items, may be the same dict.
        what = f"all attributes of {label_of(obj, site)} are replaced at {where(site)}"
        ex.search.unseen[what] = None


def _before_store_into_class(
    ex: PythonExecution, thread: Thread, kind: Any, name: str, site: int
) -> None:
    """Announce that an attribute of a class is about to change."""
    if kind.__module__.partition(".")[0] in ("queue", "threading", "asyncio"):
        if kind.__module__ != OF_SOCKETS:
            ex.search.unseen[f"{kind.__qualname__}.{name} is set at {where(site)}"] = None
        ex.stored_outside.append((kind, name, vars(kind).get(name, ABSENT)))
    special = name.startswith("__") and name.endswith("__") and name not in SAID_BY_NAME
    if special and not _own(ex, thread, kind):
        _looked_up_by_c(ex, thread, f"{kind.__qualname__}.{name}", site)
    if may_race(ex, f"class attribute {name}", site):
        record = record_of(ex, kind, site, True)
        names = (name, "__dict__") if CLASSES_LOOKED_INTO in ex.search.promoted else (name,)
        ex.touch_all(thread, [(record, each, True) for each in names], site)
    _members.clear()


def _own(ex: PythonExecution, thread: Thread, obj: object) -> bool:
    """Whether a thread has made an object, or a class while there were others, that no other has touched."""
    record = ex.records.get(id(obj))
    return record is not None and record.owner is thread and not record.shared


OF_SOCKETS = "asyncio.selector_events"
"""The module of the loops that wait for sockets, of whose classes no program has an object here."""
OF_A_CALL = ("__code__", "__defaults__", "__kwdefaults__")
"""Attributes of a function that each call of it reads."""
SAME_PLACE = {"__annotate__": "__annotations__"}
"""Attributes of which a store changes another one: since 3.14 annotations are what this function says."""
SAID_BY_NAME = ("__doc__", "__annotations__", "__slots__")
"""Special attributes of a class that no operator looks up, and that no text which C makes of it or its objects has."""
NAMES_OF_CLASS = ("__module__", "__qualname__", "__name__")
"""Those that a text has."""
CLASS_CHANGES = "method __class__ of an object"
"""What is promoted where a program gives an object another class: whatever is looked up in it depends on that."""
CLASSES_LOOKED_INTO = "classes are looked into"
"""What is promoted when a program with threads asks for all attributes of a class."""


def _looked_up_by_c(ex: PythonExecution, thread: Thread, what: str, site: int) -> None:
    """Note a store into what operators and calls look up themselves, unless all others have ended before it."""
    if not (of_library(site) or _alone(ex, thread)):
        ex.search.unseen[f"{what} is set at {where(site)}, which operators and calls look up"] = (
            None
        )


def _alone(ex: PythonExecution, thread: Thread) -> bool:
    """Whether all other threads have ended before."""
    return all(
        other is thread or (other.done and ex.ordered(other, other.last - 1)) for other in ex.heads
    )


def _stored_outside(
    ex: PythonExecution, thread: Thread, module: types.ModuleType, name: str, site: int
) -> None:
    """A name of a module that is not observed is about to change; when the execution ends it is as before.

    What the body of a module sets while no other thread runs is before all that other threads read, as
    typing_extensions sets a function of typing; the tasks of one thread have each order of their timers tried.
    """
    what = f"{module.__name__}.{name} is set at {where(site)}"
    if module is builtins:
        raise OutsideModel(
            f"{what}: all code of this process would see it, the explorer too. Put the name into the module that "
            f"uses it: setattr(module, {name!r}, ...), or mock.patch('module.{name}', create=True)"
        )
    # `assertWarns` forgets, in every module, what was warned of.
    if name != "__warningregistry__" and not (ex.importing and _alone(ex, thread)):
        ex.search.unseen[f"{what}: the module is not observed"] = None
    # It may be a copy that all executions share, as that of typing is.
    ex.stored_outside.append((module, name, vars(module).get(name, ABSENT)))


ATTRIBUTE_NAMES = "names of attributes"
ATTRIBUTES_DELETED = "deleted attributes"
"""What is observed where a program reads all attributes of an object: which there are; and whether one was taken away,
so that a store may bring it again."""


def changes_names(ex: PythonExecution, obj: Any, name: str) -> bool:
    """Whether a store may make an attribute that was not there."""
    own = getattr(obj, "__dict__", None)
    return own is not None and (name not in own or ATTRIBUTES_DELETED in ex.search.promoted)


def may_race(ex: PythonExecution, label: str, site: int) -> bool:
    """Whether a store into something rarely shared is observed; before a second thread there is nobody to see it."""
    ex.changes(ex.current)
    return label in ex.search.promoted or (len(ex.heads) > 1 and ex.need(label, site))


def set_(value: Any, obj: Any, name: str, site: int) -> None:
    """`obj.name = value`."""
    ex = now.execution
    if ex is not None and (thread := ex.current) is not None:
        named(ex, value, site)
        if kind_of(type(value)) == NATIVE and hasattr(value, "call_it"):
            value.call_it(f"{type(obj).__qualname__}.{name}")
        before_store(ex, thread, obj, name, site)
        if name == "__dict__" and type(value) is library.attribute_dict:
            value = value._real
    setattr(obj, name, value)


def del_(obj: Any, name: str, site: int) -> None:
    """`del obj.name`."""
    ex = now.execution
    if ex is not None and (thread := ex.current) is not None:
        if ATTRIBUTE_NAMES in ex.search.promoted:
            ex.need(ATTRIBUTES_DELETED, site)
        before_store(ex, thread, obj, name, site)
    delattr(obj, name)


# -- contents of containers, and state inside of C -------------------------------------------------------------------


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
        if what == CLASS:
            found.update({id(kind): place for kind, place in class_looked_into(ex, element, site)})
        if what in (CONTAINER, OPAQUE):
            # The state inside of C code: whatever is done to it may change it.
            changes = (write and element is obj) or what == OPAQUE
            record = record_of(ex, element, site)
            found[id(element)] = (record, CONTENTS, changes)
            if changes and record.opaque:
                _changes_library(ex, record, site)
            if what == OPAQUE:
                _behind(ex, element, site, found)
    return list(found.values())


def class_looked_into(
    ex: PythonExecution, kind: type, site: int, *, bases: bool = False
) -> list[tuple[type, tuple[ObjectRecord, str, bool]]]:
    """The place of all attributes of a class, and with `bases` those of the classes that it is made from."""
    if len(ex.heads) < 2 or not ex.need(CLASSES_LOOKED_INTO, site):
        return []
    return [
        (each, (record_of(ex, each, site, True), "__dict__", False))
        for each in (kind.__mro__ if bases else (kind,))
        if each.__flags__ & (1 << 9)
    ]


def _behind(
    ex: PythonExecution, obj: Any, site: int, found: dict[int, tuple[ObjectRecord, str, bool]]
) -> None:
    """Add the state that an object of C shares with others: what it was made from, and the files."""
    if isinstance(obj, FILE) and not isinstance(obj, IN_MEMORY):
        found[0] = (ex.files, CONTENTS, True)
    if type(obj) is memoryview:
        exporter = _exporter(obj)
        sources: tuple[Any, ...] = (exporter,)
        if kind_of(type(exporter)) not in (CONTAINER, OPAQUE):
            return  # `bytes`, or a view that has been released
    else:
        sources = ex.derived.get(id(obj), (None, ()))[1]
    for source in sources:
        if type(source) is weakref.ref:
            source = source()
        if source is not None and id(source) not in found:
            found[id(source)] = (record_of(ex, source, site), CONTENTS, True)
            _behind(ex, source, site, found)


def _exporter(view: memoryview) -> Any:
    """What a view looks at, through however many other views; None if it has been released."""
    try:
        return view.obj
    except ValueError:
        return None


def look_inside(ex: PythonExecution, thread: Thread, obj: Any, site: int) -> None:
    """C code is about to look into the containers that are inside `obj`, too: a comparison, a `repr`.

    Which they are depends on what `obj` holds in this step, so they cannot be announced before it. They are compared
    with other accesses; and where one of them races, the verdict is withheld.
    """
    direct = {id(operand) for operand in operands(obj)}
    for element in elements(obj):
        names = _shown_inside(element)
        if not names or id(element) in direct:
            continue
        record = ex.records.get(id(element))
        if record is None:
            continue
        for name in names:
            place = record.places.get(name)
            if place is not None and place.index >= 0:
                what = f"{where(site)} reads {place.label} through another container, in one step"
                ex.search.unseen[what] = None
            else:
                ex.touch(thread, record, name, False, site)


def _shown_inside(element: Any) -> tuple[str, ...]:
    """The places of an element that C code reads where it compares or shows what holds it."""
    what = kind_of(type(element))
    if what == CONTAINER or (what == OPAQUE and type(element) not in ITERATING):
        return (CONTENTS,)
    if isinstance(element, types.SimpleNamespace):
        return tuple(vars(element))
    return shown_of(type(element)) if isinstance(element, BaseException) else ()


def touch_contents(obj: Any, write: bool, site: int) -> None:
    """Announce that the contents of `obj` itself are about to be read or written."""
    ex = now.execution
    if ex is None or (thread := ex.current) is None:
        return
    what = kind_of(type(obj))
    if what == VIEW:
        obj = ex.views.get(id(obj), (None, obj))[1]
        what = kind_of(type(obj))
        if what == CLASS:
            ex.touch_all(thread, [place for _, place in class_looked_into(ex, obj, site)], site)
    if what in (CONTAINER, OPAQUE):
        # Before a second thread there is nobody whose accesses it could race with.
        if write and type(obj) is dict and MODULE_TOKEN in obj and len(ex.heads) > 1:
            ex.search.unseen[f"the names of a module are changed as a dict at {where(site)}"] = None
        if what == OPAQUE:
            ex.touch_all(thread, contents(ex, obj, True, site), site)
            return
        record = ex.records.get(id(obj))
        if record is None:
            record = record_of(ex, obj, site)
        if write and record.opaque:
            _changes_library(ex, record, site)
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


def setitem(value: Any, obj: Any, key: Any, site: int) -> None:
    """`obj[key] = value`."""
    ex = now.execution
    if ex is not None and ex.current is not None:
        named(ex, value, site)
        if type(key) is slice and type(getattr(type(obj), "__setitem__", None)) is SLOT_OF_C:
            value = _before_slice(ex, obj, value, site)
        else:
            touch_contents(obj, True, site)
        if kind_of(type(obj)) == INSTANCE:
            unobserved_method(obj, "__setitem__", site)
        if kind_of(type(key)) in (INSTANCE, TUPLE):
            library.looked_up(obj, True, site, lambda: operator.setitem(obj, key, value))
            return
    obj[key] = value


def _before_slice(ex: PythonExecution, obj: Any, value: Any, site: int) -> Any:
    """Announce `obj[i:j] = value`: one operation, which reads `value`; what Python makes is gathered before it."""
    if isinstance(obj, dict):  # whose keys they are since 3.12
        touch_contents(obj, True, site)
        return value
    value = library.gathered(value, site)
    if ex.current is not None:
        accesses = contents(ex, obj, True, site)
        if kind_of(type(value)) in (CONTAINER, VIEW, OPAQUE):
            accesses += contents(ex, value, False, site)
        ex.touch_all(ex.current, accesses, site)
    return (library.in_order(value) or value) if isinstance(value, set | frozenset) else value


SLOT_OF_C = types.WrapperDescriptorType
"""What `object.__setitem__` and its like are in a class of C."""

STATEFUL = (CONTAINER, TUPLE, VIEW)


def made_for_class(method: types.FunctionType) -> bool:
    """Whether it is a method that `dataclasses` or `attrs` has made, of which nothing is observed."""
    if MARK in method.__globals__:
        return False
    file = method.__code__.co_filename
    return file == "<string>" or file.startswith("<attrs generated ") or of_attrs(method)


def of_attrs(function: types.FunctionType) -> bool:
    """Whether a function is one of `attrs`."""
    return str(function.__globals__.get("__name__")).startswith("attr.")


OF_THE_PROCESS = frozenset(
    ("_RedirectStream.__exit__", "catch_warnings.__exit__", "WarningsRecorder.__exit__", "WarningsChecker.__exit__",
     "simplefilter", "filterwarnings", "resetwarnings", "ABCMeta.register", "update_abstractmethods")
)  # fmt: skip
"""Functions of the library, not observed, that change what all threads share."""


def changes_process(function: types.FunctionType, site: int) -> None:
    """Note what a function that is not observed may change: in its thread, and of what all threads share."""
    ex = now.execution
    if ex is None:
        return
    if not getattr(function, "__s_looks__", False):
        ex.changes(ex.current)
    if function.__qualname__ in OF_THE_PROCESS:
        of_all_threads(ex, function.__qualname__.removesuffix(".__exit__"), site)


def of_all_threads(ex: PythonExecution, what: str, site: int) -> None:
    """Note a change of what all threads of the process share, if there are several."""
    if sum(not thread.done for thread in ex.heads) > 1:
        ex.search.unseen[f"{what} at {where(site)} changes what all threads share"] = None


def unobserved_method(obj: Any, name: str, site: int) -> None:
    """Note an object whose special method is Python that was not rewritten."""
    method = getattr(type(obj), name, None)
    if not isinstance(method, types.FunctionType):
        _attributes_in_c(obj, name, method, site)
        return
    if made_for_class(getattr(method, "__wrapped__", method)):
        library.read_deeply((obj,), site, divisible=True)
    elif MARK not in method.__globals__:
        changes_process(method, site)
        ex, thread = running()
        module = str(method.__globals__.get("__name__"))
        if passes_on(module) and not method.__qualname__.startswith("_GeneratorContextManager."):
            return
        if ex is not None and thread is not None and (id(obj) in ex.records or len(ex.heads) > 1):
            record = record_of(ex, obj, site)
            ex.opaque(thread, record, f"{module}.{method.__qualname__}", site)


def _attributes_in_c(obj: Any, name: str, method: Any, site: int) -> None:
    """Announce what a special method of C reads of an object: all of a namespace, what the text of an error is of."""
    ex, thread = running()
    if ex is None or thread is None:
        return
    if isinstance(obj, types.SimpleNamespace):
        if method is getattr(types.SimpleNamespace, name, None) is not getattr(object, name, None):
            ex.need(ATTRIBUTE_NAMES, site)
            library.read_deeply((obj,), site)
        return
    if name not in ("__str__", "__repr__"):
        return
    accesses: list[Any] = []
    if isinstance(obj, BaseException):
        record = record_of(ex, obj, site, True)
        accesses = [(record, each, False) for each in shown_of(type(obj))]
        accesses += names_shown(ex, type(obj), site) if name == "__repr__" else []
    elif isinstance(obj, types.FunctionType):
        accesses = [(record_of(ex, obj, site), "__qualname__", False)]
    else:
        accesses = names_shown(ex, type(obj), site)
    if accesses:
        ex.touch_all(thread, accesses, site)


def names_shown(ex: PythonExecution, kind: type, site: int) -> list[Any]:
    """The places of a class that a text which C makes of it, or of one of its objects, is made of."""
    if not ex.rare:
        return []
    promoted = ex.search.promoted
    return [
        place
        for name in NAMES_OF_CLASS
        if f"class attribute {name}" in promoted
        for place in class_places(ex, kind, name, site)
    ]


def shown_of(kind: Any) -> tuple[str, ...]:
    """The attributes that C code keeps of an exception and that its text may be made of."""
    return _kept_in_c(next(base for base in kind.__mro__ if not base.__flags__ & (1 << 9)))


@functools.cache
def _kept_in_c(kind: Any) -> tuple[str, ...]:
    """The same of a class of C: one of a program is not kept longer than its execution."""
    kept = {
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if isinstance(value, C_ATTRIBUTES) and not name.startswith("__")
    }
    return tuple(sorted(kept))


def shows(obj: Any, site: int) -> None:
    """Announce that an object is about to be shown as a text."""
    what = kind_of(type(obj))
    if what == INSTANCE:
        own = isinstance(type(obj).__str__, types.FunctionType)
        unobserved_method(obj, "__str__" if own else "__repr__", site)
    elif isinstance(obj, functools.partial):
        touch_all(False, site, obj, obj.args, obj.keywords, deep=True)
    elif what == CLASS and (found := running())[1] is not None:
        ex, thread = found
        if ex is not None and thread is not None and (places := names_shown(ex, obj, site)):
            ex.touch_all(thread, places, site)


def passes_on(module: str) -> bool:
    """Whether the functions of a module only pass on what they are given, to methods that are observed."""
    return module.partition(".")[0] in PASSING or module == "collections.abc"


FILE = type(io.IOBase()).__mro__[-2]


IN_MEMORY = (io.StringIO, io.BytesIO)


def touch_files(site: int) -> None:
    """Announce that the files are about to be read or changed: all of them are one place."""
    ex, thread = running()
    if ex is not None and thread is not None:
        ex.touch(thread, ex.files, CONTENTS, True, site)


def result_of(ex: PythonExecution, value: Any, site: int, sources: Iterable[Any] = ()) -> Any:
    """A new object that C code made has its name from now on; it may share state with what it was made from."""
    if ex.current is not None and id(value) not in ex.records:
        kind = kind_of(type(value))
        if kind == CONTAINER:
            ex.record(value, label_of(value, site), True)
        elif kind == OPAQUE and type(value) not in ITERATING:
            ex.record(value, label_of(value, site), True)
            derive(ex, value, sources)
    return value


def derive(ex: PythonExecution, value: Any, sources: Iterable[Any]) -> None:
    """An object of C was made from others: a cursor of a connection, an iterator over an array.

    A view knows itself what it looks at. If that is hidden inside of C, as of a `BytesIO`, it was made from the others.
    """
    if type(value) is memoryview:
        value = _exporter(value)
    known = tuple(
        weakref.ref(each) if type(each) in CLOSED_LAST else each  # as in its record
        for each in (_exporter(each) if type(each) is memoryview else each for each in sources)
        if each is not value and kind_of(type(each)) in (CONTAINER, OPAQUE)
    )
    if known and kind_of(type(value)) == OPAQUE:
        ex.derived[id(value)] = (value, known)


BY_IDENTITY: Any = object.__eq__
"""How objects are compared whose class says nothing of it."""


def _compared(value: Any) -> bool:
    """Whether a comparison looks into a value, and not only which object it is."""
    kind = kind_of(type(value))
    return kind in STATEFUL or (kind == OPAQUE and type(value).__eq__ is not BY_IDENTITY)


def before_comparison(name: str, left: Any, right: Any, site: int) -> None:
    """Announce `left == right`, `left in right` and the like."""
    if (
        _compared(left)
        or _compared(right)
        or (name.endswith("contains") and kind_of(type(right)) == OPAQUE)
    ):
        by_hash = name in ("contains", "not_contains") and isinstance(right, dict | set)
        touch_all(False, site, left, right, deep=not by_hash)
    for side in (left, right):
        if kind_of(type(side)) == INSTANCE:
            unobserved_method(side, f"__{name.removeprefix('not_')}__", site)
