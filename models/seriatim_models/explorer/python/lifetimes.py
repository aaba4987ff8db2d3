"""When objects die, for a program that can see it: by a weak reference, a finalizer, a `__del__`, or a generator that
stands within a `with` or `try` and so does something when it is closed.

As long as nothing of this kind is made in a program, its objects live until their execution ends: nobody can tell.
The first that is made begins the search again, with lifetimes followed; a class with a `__del__` is nothing of this
kind before it has an object. Then an object dies as in CPython without the
collector of cycles: when the last reference to it goes. All references but those of the explorer itself are real ones,
so before each announcement the thread that runs drops what only the explorer holds; `__del__` and callbacks run there.
What died before the first of this kind was made in an execution is dropped then: until then nobody could tell.
To follow a weak reference writes the life of its object, and so does a thread that has let go of a reference to it
since its last announcement: who comes first decides whether the object is found, and who comes last lets it die.
"""

from __future__ import annotations

import _weakrefset
import copy
import dis
import gc
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.model.guard import HARNESS, place, program_text
from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.python.accesses import now, record_of
from seriatim_models.explorer.python.calls import call
from seriatim_models.explorer.python.execution import CLOSED_LAST, LIFETIMES, PythonExecution
from seriatim_models.explorer.python.places import ObjectRecord, SharedPlace

LIFE = "<lifetime>"
"""The name of the place that a weak reference reads."""
RUN = "<run>"
"""The name of the place that says whether a finalizer has run."""
STOPS = "INTRINSIC_STOPITERATION_ERROR"
"""The instruction that such a handler begins with."""
HELPERS = (str(weakref.__file__), str(_weakrefset.__file__), str(copy.__file__), str(HARNESS))
"""Where a weak reference is made for somebody else."""


def follow() -> bool:
    """Note that the code that runs makes something that shows when objects die. Whether it is code of the program."""
    ex = now.execution
    if ex is None or ex.current is None:
        return False
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(HELPERS):
        frame = frame.f_back
    if frame is None or not program_text(frame.f_code.co_filename):
        return False  # asyncio and pools have weak references of their own
    ex.need(LIFETIMES, 0)
    return LIFETIMES in ex.search.promoted


class WeakReference(weakref.ref[Any]):
    """`weakref.ref`."""

    __slots__ = ("record",)
    __s_native__ = True

    record: ObjectRecord | None

    def __new__(cls, obj: Any, callback: Any = None, *_: Any) -> Any:
        """A reference, without its callback as long as nothing dies."""
        ex = now.execution
        if ex is None or not follow():
            made = super().__new__(cls, obj)
            made.record = None
            return made

        def called(reference: Any) -> None:
            if callback is not None and now.execution is ex and ex.current is not None:
                call(callback, 0, reference)

        made = super().__new__(cls, obj, called)
        made.record = record_of(ex, obj, 0, True)
        made.record.obj = obj  # of a generator, too, until the last reference has gone
        if isinstance(ex, MortalExecution) and id(obj) not in ex.referred:
            ex.referred[id(obj)] = _held(made.record)
        return made

    def __init__(self, obj: Any, callback: Any = None, *_: Any) -> None:
        super().__init__(obj)  # type: ignore[call-arg]  # as KeyedRef calls it

    def __call__(self) -> Any:
        ex = now.execution
        if self.record is not None and ex is not None and (thread := ex.current) is not None:
            ex.touch(thread, self.record, LIFE, True, 0)
            found = super().__call__()
            if found is not None and isinstance(ex, MortalExecution) and id(found) in ex.referred:
                ex.referred[id(found)] = _held(self.record)  # this reference, too, will be let go
            return found
        return super().__call__()


class Finalizer:
    """`weakref.finalize`, which is not run at the end of an execution."""

    __s_native__ = True

    atexit = True

    def __init__(self, obj: Any, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        followed = follow()
        self._obj: Callable[[], Any] = WeakReference(obj, self) if followed else lambda: obj
        self._info: Any = (func, args, kwargs)
        ex = now.execution
        self._record = record_of(ex, self, 0, True) if followed and ex is not None else None
        if ex is not None:
            ex.finalizers.append(self)  # they live until they are called

    def _announce(self, write: bool) -> None:
        """Whether it was run is a place: who calls or detaches it comes first or last."""
        ex = now.execution
        if self._record is not None and ex is not None and (thread := ex.current) is not None:
            ex.touch(thread, self._record, RUN, write, 0)

    def __call__(self, _: object = None) -> Any:
        """Run it, if it was not run yet."""
        self._announce(True)
        info, self._info = self._info, None
        return None if info is None else call(info[0], 0, *info[1], **info[2])

    def detach(self) -> Any:
        """What it would do; it will not do it any more."""
        self._announce(True)
        info = self._would_do()
        self._info = None
        return info

    def peek(self) -> Any:
        """What it would do."""
        self._announce(False)
        return self._would_do()

    def _would_do(self) -> Any:
        obj = self._obj()
        return None if self._info is None or obj is None else (obj, *self._info)

    @property
    def alive(self) -> bool:
        """Whether it was neither run nor detached."""
        self._announce(False)
        return self._info is not None


def proxy(obj: Any, callback: Any = None) -> Any:
    """`weakref.proxy`: what is done by it is not seen."""
    ex = now.execution
    follow()
    if ex is not None:
        ex.search.unseen[f"a weakref.proxy at {place(sys._getframe(1))} hides its object"] = None
    return weakref.proxy(obj)


def _held(record: ObjectRecord) -> int:
    if type(record.obj) is weakref.ref:
        return HELD + 1  # a generator: it dies by itself
    return sys.getrefcount(record.obj)


HELD = _held(ObjectRecord(object(), "", 0, 0, True, None))
"""References to an object that only its record holds."""

_object = attrgetter("obj")


def _counts(records: Iterable[ObjectRecord]) -> Iterator[int]:
    """References to the object of each record, counted by C: all are looked at before each announcement."""
    return map(sys.getrefcount, map(_object, records))


COUNTED_HELD = next(_counts([ObjectRecord(object(), "", 0, 0, True, None)]))
"""As `HELD`, for `_counts`."""


def outlived(ex: PythonExecution) -> bool:
    """Whether an execution has come to its end with something that does something when it dies.

    That is a generator or coroutine that is closed then, or an object with a `__del__`.

    It may have died before, if nobody but the explorer held what held it.
    """
    generators = [r.obj() for r in ex.records.values() if type(r.obj) is weakref.ref]
    return (
        any(cleans_up(g.gi_code, g.gi_frame) for g in generators if inspect.isgenerator(g))
        or any(cleans_up(coroutine.cr_code, coroutine.cr_frame) for coroutine, _ in ex.coroutines)
        or any(cleans_up(g.ag_code, g.ag_frame) for loop in ex.loops for g in loop._asyncgens)
        or _has_an_object([kind for kind in ex.finalizers if isinstance(kind, type)])
    )


def _has_an_object(kinds: list[type]) -> bool:
    """Whether there is an object of one of these classes, or of a class that is made from one."""
    found = {id(kind): kind for kind in kinds}
    left = list(kinds)
    while left:
        below: list[type] = type.__subclasses__(left.pop())
        derived = {id(kind): kind for kind in below}
        left += [kind for key, kind in derived.items() if key not in found]
        found |= derived
    return bool(found) and any(id(type(obj)) in found for obj in gc.get_referrers(*found.values()))


def cleans_up(code: types.CodeType, frame: types.FrameType | None) -> bool:
    """Whether a generator that waits to be resumed stands within a `with` or `try`."""
    return frame is not None and _in_try(code, frame.f_lasti)


@cache
def _in_try(code: types.CodeType, at: int) -> bool:
    """Whether an exception at an instruction is looked at by its function.

    From 3.12 on each generator as a whole has a handler that makes a RuntimeError of StopIteration.
    """
    return any(start <= at < end for start, end in _handled(code))


@cache
def _tries(code: types.CodeType) -> bool:
    """Whether a function has a `with` or `try` at all."""
    return any(_handled(code))


def _handled(code: types.CodeType) -> Iterator[tuple[int, int]]:
    """From where to where an exception is looked at by a function itself."""
    whole = {i.offset for i in dis.get_instructions(code) if i.argrepr == STOPS}
    table: Any = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return ((e.start, e.end) for e in table if e.target not in whole)


class MortalExecution(PythonExecution):
    """An execution in which objects die."""

    mortal = True

    __slots__ = ("burying", "referred", "watched")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.watched = False
        """Whether there is, or was, something by which the program can see that an object has died."""
        self.referred: dict[int, int] = {}
        """How many references there were to each object, by address, that has weak ones, as the thread began."""
        self.burying: set[Thread] = set()
        super().__init__(*args, **kwargs)
        self.switch = self._switch

    def need(self, label: str, site: int) -> bool:
        """As `PythonExecution.need`. Who needs lifetimes sees from now on what dies."""
        self.watched |= label == LIFETIMES
        return super().need(label, site)

    def record(self, obj: object, label: str, made: bool) -> ObjectRecord:
        """As `PythonExecution.record`. A generator that is closed when it dies may do something then."""
        if type(obj) in CLOSED_LAST and not (inspect.isgenerator(obj) and not _tries(obj.gi_code)):
            self.watched = True
        return super().record(obj, label, made)

    def begins(self) -> None:
        """What is there now is compared with what is there at the next announcement."""
        for key in self.referred:
            self.referred[key] = _held(self.records[key])

    def _switch(self) -> Any:
        """Let others run, when what has died has been buried."""
        thread = self.current
        if thread is not None and thread not in self.burying:
            announced, thread.op = thread.op, None
            self.bury(thread)
            thread.op = announced
        result = self.hub.switch()
        self.begins()
        return result

    def access(self, thread: Thread, place: SharedPlace, write: bool, site: int) -> None:
        """As `PythonExecution.access`."""
        self.bury(thread)
        super().access(thread, place, write, site)

    def touch_all(
        self, thread: Thread, accesses: list[tuple[ObjectRecord, str, bool]], site: int
    ) -> None:
        """As `PythonExecution.touch_all`."""
        self.bury(thread)
        super().touch_all(thread, accesses, site)

    def bury(self, thread: Thread) -> None:
        """Let the objects die that only the explorer holds."""
        self.watched |= bool(self.coroutines)
        if not self.watched or thread in self.burying:
            return
        self.burying.add(thread)
        try:
            gone = True
            while gone:
                self._bury_what_nobody_refers_to()
                gone = self._let_go(thread)
        finally:
            self.burying.discard(thread)

    def _bury_what_nobody_refers_to(self) -> None:
        while dead := self._dead():
            for record in dead:
                record.dying -= 1
                self._die(record)

    def _die(self, record: ObjectRecord) -> None:
        if (
            _held(record) == HELD and not record.dying
        ):  # another may hold it again, or be about to let go
            self.records.pop(id(record.obj), None)
            self.referred.pop(id(record.obj), None)
            record.obj = None

    def _let_go(self, thread: Thread) -> bool:
        """Announce the references that the thread has let go of since it began to run; who was the last lets it die.

        Nobody else does: others run before that is granted, and may still follow a weak reference.
        """
        gone = []
        for key, before in self.referred.items():
            record = self.records[key]
            if _held(record) < before:
                self.referred[key] = _held(record)
                gone.append(record)
        if gone:
            for record in gone:
                record.dying += 1
            super().touch_all(thread, [(record, LIFE, True) for record in gone], 0)
            for record in gone:
                record.dying -= 1
                self._die(record)
        return bool(gone)

    def _dead(self) -> list[ObjectRecord]:
        if self.views or self.derived:
            _forget_views(self)
        if self.coroutines:
            _forget_coroutines(self)
        if COUNTED_HELD not in _counts(self.records.values()):
            return []
        dead = [
            record
            for key, record in self.records.items()
            if not record.dying and _held(record) == HELD and key not in self.referred
        ]
        for record in dead:
            record.dying += 1
        return dead


def bury_and_call(function: Any, site: int, /, *args: Any, **kwargs: Any) -> Any:
    """`call` where objects die: also where nothing is announced for long, as in a task of asyncio."""
    ex = now.execution
    if isinstance(ex, MortalExecution) and ex.current is not None:
        ex.bury(ex.current)
    return call(function, site, *args, **kwargs)


def _forget_views(ex: PythonExecution) -> None:
    for table in (ex.views, ex.derived):
        for key in [
            k for k, pair in table.items() if sys.getrefcount(pair[0]) == HELD + (k in ex.records)
        ]:
            del table[key]


def _forget_coroutines(ex: PythonExecution) -> None:
    """One that was never begun is kept: it is a mistake of the program."""
    ex.coroutines[:] = [
        (coroutine, site)
        for coroutine, site in ex.coroutines
        if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
        or sys.getrefcount(coroutine) > HELD + 1
    ]


def gc_module(ex: PythonExecution) -> types.ModuleType:
    """`gc` for one execution: no cycle is collected."""

    def collect(generation: int = 2) -> int:
        if LIFETIMES in ex.search.promoted:
            raise OutsideModel(
                f"gc.collect() (at {place(sys._getframe(1))}): objects in a cycle live until the execution ends, "
                "and this program looks at when objects die. Break the cycle in the test, and take the call out"
            )
        return 0

    own = types.ModuleType("gc", gc.__doc__)
    own.__dict__.update({k: v for k, v in vars(gc).items() if not k.startswith("__")})
    own.__dict__.update(
        collect=collect, enable=lambda: None, disable=lambda: None, freeze=lambda: None,
        unfreeze=lambda: None, set_threshold=lambda *numbers: None, set_debug=lambda flags: None,
    )  # fmt: skip
    return own
