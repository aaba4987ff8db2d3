"""The modules of a test as their import leaves them, put back before each execution instead of imported anew.

Every execution begins with fresh module state. To execute all modules again costs more than most tests do, so what an
import has made is kept: all that can be reached from the modules that were executed, and what the execution knows of
it (names, places, numbers). Each later execution is given the same objects, and whatever the one before has changed
is put back. What has changed is found by comparing, identity by identity, and not by what was announced.

Nothing is kept, and each execution imports anew, where an import does more than make objects (it takes a step, starts
a thread, lets time pass, stores into modules that all executions share), where an object is reached whose state
cannot be looked into (an iterator, a file), and from the first change on that cannot be put back exactly (the order
of a set).
"""

from __future__ import annotations

import builtins
import gc
import sys
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.python.accesses import MARK, no_program
from seriatim_models.explorer.python.asyncio_state import Refreshed, refresh
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.places import ObjectRecord, SharedPlace
from seriatim_models.explorer.python.provided import PROVIDED
from seriatim_models.explorer.python.reached_state import NotKept, ReachedState, vars_of
from seriatim_models.explorer.python.rewrite import MODULE_TOKEN


class Before(NamedTuple):
    """What an execution knows before the modules are imported."""

    records: frozenset[int]
    objects: list[Any]
    """What was made since the search began, and is held so that what an import makes has other addresses."""
    done: tuple[object, ...]
    """What an import that only makes objects leaves alone."""


def _done(ex: PythonExecution, thread: Thread) -> tuple[object, ...]:
    lists: tuple[Any, ...] = (
        ex.generators, ex.coroutines, ex.failed_futures, ex.loops, ex.entered, ex.stored_outside,
        ex.finalizers, ex.heads, ex.importing, ex.looking, ex.failures, ex.notifies,
    )  # fmt: skip
    return (
        *map(len, lists), ex.steps, ex.timed, ex.answers, ex.strays, len(ex.search.unseen), thread.children,
        thread.timeouts, thread.spurious, thread.held,
    )  # fmt: skip


def before_import(ex: PythonExecution, thread: Thread) -> Before:
    """Note what an execution knows before its thread imports the modules of the test."""
    return Before(frozenset(ex.records), gc.get_objects(), _done(ex, thread))


class KeptPlace(NamedTuple):
    """A place that the import has touched."""

    place: SharedPlace
    read_at: int
    read_site: int
    write_at: int
    write_site: int


class KeptRecord(NamedTuple):
    """What an execution knows of an object that the import has made."""

    record: ObjectRecord
    owned: bool
    opaque: str
    places: dict[str, SharedPlace]
    touched: list[KeptPlace]


def _kept_record(record: ObjectRecord, main: Thread) -> KeptRecord:
    if record.shared or record.weak is not None or record.dying:
        raise NotKept(f"{record.label} is shared")
    touched = []
    for place in record.places.values():
        if place.readers or place.writers or place.thread is not main:
            raise NotKept(f"{place.label} was touched by another thread")
        touched.append(
            KeptPlace(place, place.read_at, place.read_site, place.write_at, place.write_site)
        )
    return KeptRecord(record, record.owner is not None, record.opaque, dict(record.places), touched)


class ImportedState:
    """What the import of a test's modules has made in one execution, for those behind it in the same search."""

    def __init__(
        self,
        ex: PythonExecution,
        main: Thread,
        before: Before,
        refreshed: Refreshed | None,
        kept: Mapping[str, types.ModuleType],
        hidden: int,
    ) -> None:
        """Keep it. Raises `NotKept`.

        `refreshed` is what the modules of asyncio were given by the import, `kept` are
        modules that are executed once anyway, `hidden` the address of the built-in names of a program.
        """
        if _done(ex, main) != before.done:
            raise NotKept("the import does more than make objects")
        if refreshed is not None and not refreshed.untouched:
            raise NotKept("the import has changed what asyncio keeps")
        self.refreshed = refreshed
        self.space = ex.space
        self.modules = dict(ex.modules)
        self.by_key = {key: r for key, r in ex.records.items() if key not in before.records}
        self.numbers, self.objects = dict(ex.numbers), main.objects
        self.views, self.derived = dict(ex.views), dict(ex.derived)
        self.budget, self.at_exit = ex.budget, list(ex.at_exit)
        self.changes = 0 if ex.rounds is None else ex.rounds.changes[main]
        made = set(map(id, gc.get_objects())).difference(map(id, before.objects))
        with no_program():
            self.reached = self._reached(made, kept, hidden)
        tokens = [
            vars(m).get(MODULE_TOKEN)
            for m in self.modules.values()
            if isinstance(m, types.ModuleType)
        ]
        records = {
            id(r): r
            for r in (*self.by_key.values(), *self.reached.records, *tokens)
            if r is not None
        }
        self.records = [_kept_record(record, main) for record in records.values()]

    def _reached(
        self, made: set[int], kept: Mapping[str, types.ModuleType], hidden: int
    ) -> ReachedState:
        executed_once = {id(module) for module in kept.values()}
        own = [
            module
            for name, module in self.modules.items()
            if isinstance(module, types.ModuleType)
            and id(module) not in executed_once
            and module is not sys.modules.get(name)
        ]
        provided = [m for m in own if m.__name__ in PROVIDED and MARK not in vars(m)]
        fresh = {id(m) for m in own} - {id(m) for m in provided}
        tables = (sys.modules, kept, {m.__name__: m for m in provided})

        def known(obj: Any) -> bool:
            return any(_defines(table.get(obj.__module__), obj) for table in tables)

        reached = ReachedState(
            made, lambda module: id(module) not in fresh and _is_outside(module), known
        )
        outside = [vars(module) for module in (builtins, *kept.values(), *provided)]
        reached.spaces.update({hidden: None, **{id(space): space for space in outside}})
        for module in provided:
            reached.dicts.append(
                (vars(module), dict, tuple(vars(module)), tuple(vars(module).values()))
            )
        parts = [
            vars(m).get(name)
            for m in provided
            for name in ("meta_path", "environ")
            if m.__name__ in ("sys", "os")
        ]
        reached.add([*(m for m in own if id(m) in fresh), *parts])
        reached.freeze()
        return reached

    def put_back(self, ex: PythonExecution, main: Thread) -> None:
        """Let an execution that has imported nothing yet be as if it had. Raises `NotKept`."""
        with no_program():  # so nothing of it is announced
            renewed = self.reached.put_back(ex, main)
        for key, counter in renewed.items():
            record = self.by_key.pop(key, None)
            if record is not None:
                record.obj = counter
                self.by_key[id(counter)] = record
        ex.modules.update(self.modules)
        if self.refreshed is not None:
            ex.numbers.update(self.refreshed.numbers)
            main.objects = self.refreshed.objects
            refresh(ex)
        ex.records.update(self.by_key)
        ex.numbers.update(self.numbers)
        main.objects = self.objects
        ex.views.update(self.views)
        ex.derived.update(self.derived)
        ex.budget = self.budget
        ex.at_exit[:] = self.at_exit
        if ex.rounds is not None:
            ex.rounds.changes[main] = self.changes
        for record, owned, opaque, places, touched in self.records:
            record.owner = main if owned else None
            record.opaque, record.shared = opaque, False
            record.places = dict(places)
            for place, read_at, read_site, write_at, write_site in touched:
                place.thread = main
                place.read_at, place.read_site = read_at, read_site
                place.write_at, place.write_site = write_at, write_site
                if place.readers:
                    place.readers.clear()
                if place.writers:
                    place.writers.clear()


def _is_outside(module: types.ModuleType) -> bool:
    """Whether a module is one that executions share, or that is executed once."""
    return (
        sys.modules.get(module.__name__) is module
        or MARK in vars(module)
        or module.__name__ in PROVIDED
    )


def _defines(module: object, obj: Any) -> bool:
    """Whether a module has a class or function under its own name."""
    found: Any = module
    for part in obj.__qualname__.split("."):
        if found is None:
            return False
        found = (vars_of(found) if isinstance(found, type) else getattr(found, "__dict__", {})).get(
            part
        )
        found = getattr(found, "__func__", found)
    return found is obj
