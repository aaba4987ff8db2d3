"""Data races on plain attributes: what two threads touch without a cell, a lock or anything else between them.

The explorer changes threads only at operations of the host. A plain attribute is none, so a mistake in its use may be
shown by no schedule at all. While a program is explored with its classes *observed*, every read and write of an
attribute of their objects is seen, with the thread and the line. Two accesses of one attribute of one object by two
threads, one of them a write, neither of which happens before the other (see `happens_before`), are a data race.

The algorithm is FastTrack's (Flanagan & Freund, PLDI 2009): for each attribute the last write and, since then, the last
read of each thread. If a search finds no race in any trace, there is none: then the traces determine what is read from
plain attributes, so the traces that were explored are all there are.

**What is seen.** Attributes of objects of the observed classes, in ``__dict__`` or in slots. The contents of a list,
dict, set, deque or bytearray that such an attribute or a cell holds: to load the attribute counts as reading the
contents; that a step has changed them, in whatever way, is seen by comparing them before and after.

**What is not seen.** Local variables that functions share (closures), globals, class attributes; objects of other
classes; what is written past ``__setattr__`` (``vars(obj)``, ``object.__setattr__``, ``functools.cached_property``);
reads through another name of a container, and of containers inside containers; a change that leaves a container
with the very same items. Nor is the set-up observed, which happens before everything, nor what runs inside a watcher
or at the end, which is no thread.
"""

from __future__ import annotations

import linecache
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from operator import is_
from pathlib import Path
from types import (
    CodeType,
    FrameType,
    FunctionType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any, is_typeddict

from seriatim_models.explorer.errors import Misuse
from seriatim_models.explorer.model.execution import Execution
from seriatim_models.explorer.model.guard import HARNESS
from seriatim_models.explorer.model.happens_before import HappensBefore
from seriatim_models.explorer.model.operations import (
    CompareAndSet,
    Get,
    Operation,
    Set,
    Swap,
    Thread,
)

Observed = bool | Iterable[type | ModuleType]
"""Classes, and modules that stand for all classes defined in them; True: the module that the program is defined in."""

CONTAINERS = frozenset((list, dict, set, deque, bytearray, defaultdict, OrderedDict, Counter))

CONTENTS = "the contents"
"""Stands for the name of an attribute where the contents of a container are meant; no attribute is called that."""

NOWHERE = compile("", "", "exec")
"""Stands for a place that is not known: the thread has ended."""


class Access:
    """One access of one variable: by which thread, at which moment of it, and where in the program."""

    __slots__ = ("_code", "_instruction", "moment", "thread", "writes")

    def __init__(
        self, thread: Thread, moment: int, writes: bool, code: CodeType, instruction: int
    ) -> None:
        self.thread = thread
        self.moment = moment
        self.writes = writes
        self._code = code
        self._instruction = instruction

    def __str__(self) -> str:
        code = self._code
        if code is NOWHERE:
            return f"{self.thread.name} {'writes' if self.writes else 'reads'} it"
        line = next(
            (n for begin, end, n in code.co_lines() if begin <= self._instruction < end and n), 0
        )
        source = linecache.getline(code.co_filename, line).strip()
        where = f"{Path(code.co_filename).name}:{line} in {code.co_name}"
        verb = "writes" if self.writes else "reads"
        return f"{self.thread.name} {verb} it at {where}" + (f" `{source}`" if source else "")


class Variable:
    """What is known about one attribute of one object, or the contents of one container: FastTrack's state."""

    __slots__ = ("label", "obj", "reads", "write")

    def __init__(self, obj: object, label: str) -> None:
        self.obj = obj
        """Kept, so that no other object gets its `id`."""
        self.label = label
        self.write: Access | None = None
        """The last write by a thread."""
        self.reads: dict[int, Access] = {}
        """The last read of each thread since then, by the thread's number."""


class Container:
    """A container that can be reached from an attribute or a cell, and what was in it when a step last ended."""

    __slots__ = ("items", "label", "loads", "obj", "values")

    def __init__(self, obj: Any, label: str) -> None:
        self.obj = obj
        self.label = label
        self.items: list[Any]
        self.values: list[Any]
        self.loads: dict[int, tuple[CodeType, int]] = {}
        """Where each thread has loaded it last, by the thread's number."""
        self.remember()

    def remember(self) -> None:
        """Keep what is in it."""
        self.items = list(self.obj)
        self.values = list(self.obj.values()) if isinstance(self.obj, dict) else []

    def changed(self) -> bool:
        """Whether other items are in it, or in another order."""
        obj, items = self.obj, self.items
        if len(obj) != len(items) or not all(map(is_, items, obj)):
            return True
        return bool(self.values) and not all(map(is_, self.values, obj.values()))


class ObservedExecution(Execution):
    """An execution in which accesses of attributes are checked as they happen."""

    __slots__ = ("_containers", "_order", "_races", "_variables")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._order = HappensBefore()
        self._variables: dict[tuple[int, str], Variable] = {}
        self._containers: dict[int, Container] = {}
        self._races: dict[str, str] = {}

    @property
    def data_races(self) -> Sequence[str]:
        """The first race on each attribute, in words."""
        return list(self._races.values())

    def step(self, thread: Thread, alternative: int) -> Any:
        """As `Execution.step`, with the order of happens-before kept and the contents of containers compared."""
        op = thread.op
        assert op is not None
        self._order.step(thread, op)
        if thread.number in self._order.threads:
            self._look_into_cell(thread, op)
        result = super().step(thread, alternative)
        self._compare(thread)
        return result

    def _go(self, thread: Thread) -> None:
        self._order.start(thread, self.acting)
        super()._go(thread)
        self._compare(thread)

    # ---- attributes

    def attribute(
        self, thread: Thread, obj: object, name: str, value: object, writes: bool, frame: FrameType
    ) -> None:
        """`thread` has read or written an attribute, whose value is or was `value`, at the line where `frame` is."""
        self._access(thread, obj, name, "", writes, frame.f_code, frame.f_lasti)
        if type(value) in CONTAINERS:
            label = f"{type(obj).__qualname__}.{name}"
            self._load(thread, value, label, frame.f_code, frame.f_lasti, reads=not writes)

    def _access(
        self,
        thread: Thread,
        obj: object,
        name: str,
        label: str,
        writes: bool,
        code: CodeType,
        instruction: int,
    ) -> None:
        """Check one access against those before it. `label` names the variable, if it is not an attribute."""
        number = thread.number
        moment = self._order.threads[number][number]
        key = (id(obj), name)
        variable = self._variables.get(key)
        if variable is None:
            label = label or f"{type(obj).__qualname__}.{name}"
            variable = self._variables[key] = Variable(obj, label)
        elif not writes and (before := variable.reads.get(number)) and before.moment == moment:
            return
        access = Access(thread, moment, writes, code, instruction)
        last = variable.write
        if last is not None:
            self._check(variable, last, access)
        if not writes:
            variable.reads[number] = access
            return
        for read in variable.reads.values():
            self._check(variable, read, access)
        variable.reads = {}
        variable.write = access

    def _check(self, variable: Variable, first: Access, second: Access) -> None:
        """Keep a race if the first of two accesses does not happen before the second."""
        other, thread = first.thread.number, second.thread.number
        if other == thread or self._order.knows(thread, other, first.moment):
            return
        if variable.label not in self._races:
            self._races[variable.label] = race(variable.label, first, second)

    # ---- containers

    def _load(
        self,
        thread: Thread,
        container: Any,
        label: str,
        code: CodeType,
        instruction: int,
        reads: bool,
    ) -> None:
        """`thread` has a container in its hands; if it `reads`, that counts as a look at its contents."""
        kept = self._containers.get(id(container))
        if kept is None:
            kept = self._containers[id(container)] = Container(container, label)
            self._find_inner(kept)
        kept.loads[thread.number] = code, instruction
        if reads:
            self._access_contents(thread, kept, False, code, instruction)

    def _access_contents(
        self, thread: Thread, kept: Container, writes: bool, code: CodeType, instruction: int
    ) -> None:
        label = f"{kept.label} ({CONTENTS})"
        self._access(thread, kept.obj, CONTENTS, label, writes, code, instruction)

    def _find_inner(self, outer: Container) -> None:
        """Know the containers inside a container, too."""
        for inner in (*outer.items, *outer.values):
            if type(inner) in CONTAINERS and id(inner) not in self._containers:
                kept = self._containers[id(inner)] = Container(inner, f"{outer.label}[...]")
                kept.loads.update(outer.loads)
                self._find_inner(kept)

    def _look_into_cell(self, thread: Thread, op: Operation) -> None:
        """A container that is read from a cell, or put into one."""
        held: list[tuple[Any, bool]] = []
        if op.code in (Get.code, Swap.code):
            held.append((op.obj.value, True))
        if isinstance(op, Set | CompareAndSet):
            held.append((op.new, False))
        for value, reads in held:
            if type(value) in CONTAINERS:
                self._load(thread, value, f"cell {op.obj.name}", *_stopped_at(thread), reads=reads)

    def _compare(self, thread: Thread) -> None:
        """What has changed since the last step ended, `thread` has changed."""
        if not self._containers or thread.number not in self._order.threads:
            return
        for kept in list(self._containers.values()):
            if kept.changed():
                kept.remember()
                where = kept.loads.get(thread.number) or _stopped_at(thread)
                self._access_contents(thread, kept, True, *where)
                self._find_inner(kept)


def _stopped_at(thread: Thread) -> tuple[CodeType, int]:
    """The place in the program where a thread waits for its next step, or has ended."""
    frame = None if thread.greenlet is None else thread.greenlet.gr_frame
    while frame is not None and Path(frame.f_code.co_filename).is_relative_to(HARNESS):
        frame = frame.f_back
    if frame is not None:
        return frame.f_code, frame.f_lasti
    return NOWHERE, 0


def race(label: str, first: Access, second: Access) -> str:
    """The report of a race between two accesses, in words."""
    return (
        f"{label}: {first}, and {second}; nothing orders the two: no cell, lock, semaphore, spawn or join leads "
        "from the one to the other. A plain attribute is no step, so schedules are missing that this code can have. "
        "Make it a cell of the host, or guard it by one lock at every access"
    )


# ---- observing classes


class AttributeObserver:
    """Lets the execution that runs see the attributes of some classes, while it is `installed`."""

    def __init__(self, classes: Iterable[type], *, withholds: bool = False) -> None:
        self.classes = tuple(dict.fromkeys(classes))
        self.withholds = withholds
        """Whether nobody asked for it: then a race is no violation, but withholds the verdict,
        and a class that cannot be observed is left out."""
        self.execution: ObservedExecution | None = None
        """The execution that runs."""
        self._stored: dict[tuple[type, str], bool | None] = {}

    def __str__(self) -> str:
        return " ".join(sorted(f"{c.__module__}.{c.__qualname__}" for c in self.classes))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Observe while the body runs. Raises `Misuse` for a class that cannot be observed."""
        # What each class does by itself is asked of all of them before any is changed: they inherit from each other.
        before = [
            (cls, name, cls.__dict__.get(name), getattr(cls, name), make)
            for cls in self.classes
            for name, make in HOOKS.items()
        ]
        changed = []
        try:
            for cls, name, own, original, make in before:
                try:
                    setattr(cls, name, make(self, original))
                except TypeError as error:
                    if self.withholds:
                        continue
                    raise Misuse(
                        f"attributes of {cls.__qualname__} cannot be observed: {error}"
                    ) from error
                changed.append((cls, name, own))
            yield
        finally:
            self.execution = None
            for cls, name, own in changed:
                if own is None:
                    delattr(cls, name)
                else:
                    setattr(cls, name, own)

    def stored(self, obj: object, name: str) -> bool:
        """Whether an attribute lies in the object itself, and not in its class."""
        key = (type(obj), name)
        if key not in self._stored:
            self._stored[key] = _stored(*key)
        stored = self._stored[key]
        if stored is None:
            return name in object.__getattribute__(obj, "__dict__")
        return stored


def _stored(cls: type, name: str) -> bool | None:
    """Whether attributes of that name lie in the objects of a class; None: in those that have it in ``__dict__``."""
    if name.startswith("__"):
        return False
    for base in cls.__mro__:
        if name in base.__dict__:
            found = base.__dict__[name]
            if isinstance(found, MemberDescriptorType):
                return True
            if hasattr(type(found), "__set__") or isinstance(
                found, FunctionType | classmethod | staticmethod
            ):
                return False
            return None if hasattr(cls, "__dictoffset__") and cls.__dictoffset__ else False
    return True


def _reading(observer: AttributeObserver, original: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: object, name: str) -> Any:
        value = None
        try:
            value = original(self, name)
            return value
        finally:  # also if it is not there: perhaps it was deleted
            ex = observer.execution
            if (
                ex is not None
                and (thread := ex.current) is not None
                and observer.stored(self, name)
            ):
                ex.attribute(thread, self, name, value, False, sys._getframe(1))

    return read


def _writing(observer: AttributeObserver, original: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: object, name: str, value: object) -> None:
        original(self, name, value)
        ex = observer.execution
        if ex is not None and (thread := ex.current) is not None and observer.stored(self, name):
            ex.attribute(thread, self, name, value, True, sys._getframe(1))

    return write


def _deleting(observer: AttributeObserver, original: Callable[..., Any]) -> Callable[..., Any]:
    def delete(self: object, name: str) -> None:
        stored = observer.stored(self, name)
        original(self, name)
        ex = observer.execution
        if stored and ex is not None and (thread := ex.current) is not None:
            ex.attribute(thread, self, name, None, True, sys._getframe(1))

    return delete


HOOKS = {"__getattribute__": _reading, "__setattr__": _writing, "__delattr__": _deleting}


def observed_classes(observed: Observed, program: Callable[..., object]) -> list[type]:
    """The classes to be observed. Raises `Misuse` if that names none, or something that is no class and no module."""
    if observed is True:
        module = sys.modules.get(getattr(program, "__module__", None) or "")
        if module is None:
            raise Misuse(
                "attributes=True needs a program that is defined in a module: name the classes instead"
            )
        observed = [module]
    found: list[type] = []
    for named in observed or ():
        if isinstance(named, ModuleType):
            found += classes_of(named)
        elif isinstance(named, type):
            found.append(named)
        else:
            raise Misuse(f"attributes={named!r}: name classes, and modules that define some")
    if not found:
        raise Misuse(
            "attributes: no class there to be observed. Classes that a function defines must be defined outside of it"
        )
    return found


def classes_of(module: ModuleType) -> list[type]:
    """The classes that a module defines whose objects can change."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and observable(value)
    ]


def observable(cls: type) -> bool:
    """Whether objects of a class have attributes that change: not those of an enumeration, a tuple, a typed dict."""
    return not (
        issubclass(cls, Enum | tuple) or is_typeddict(cls) or getattr(cls, "_is_protocol", False)
    )
