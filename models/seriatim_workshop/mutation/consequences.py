"""What follows when a mutant ends a program otherwise: judged by properties and by what clients see.

A deadlock, an exception and a data race say that something is wrong, and not what. So some schedules are run once more:

- an exception ends its thread alone, as in a process, and the others go on; what is then left undone is judged;
- an attribute that two threads race for is a step of its own at each access, so that others come between;
- how the execution has ended is put into the history, as `raised` and `stuck`, where AP-1 reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from math import inf
from types import ModuleType
from typing import Any

from seriatim_models.explorer import ExplorerError, World
from seriatim_models.explorer.model.attributes import CONTAINERS, CONTENTS
from seriatim_models.explorer.trace.termination import STUCK, explain
from seriatim_models.programs.base import Program
from seriatim_models.programs.check import Judge
from seriatim_models.programs.mutant_modules import reference_classes
from seriatim_workshop.mutation.outcomes import OutcomeSet
from seriatim_workshop.mutation.searching import Kill, SecondsSpent, search

AFTER_A_FAILURE = 100
"""How many executions are run at most to see what follows when a thread fails or is stuck."""
AFTER_A_RACE = 400
"""How many executions are run at most to see what follows from a data race: each has more steps than are in it else."""
ENDS = "AP-1"
"""The property of how calls end. It is named only where no other is violated, for the others say what is broken."""
OWN_THREADS = re.compile(r"(reader|pool|worker|io|job)")
"""How the threads are called that are not the application's; what they are left by, no client sees."""


class Consequences:
    """Judges executions that end otherwise, until a property or the outcome oracle has spoken."""

    def __init__(self, ids: Sequence[str], known: Sequence[str] | None) -> None:
        self.judge = Judge([id for id in ids if id != ENDS])
        self.outcomes = OutcomeSet(known)
        self.ends = Judge([ENDS]) if ENDS in ids else None

    def __call__(self, world: World) -> str | None:
        """Judge an execution; returns what is wrong with it."""
        wrong = self.judge(world)
        if self.ends is not None and not world.is_replay:
            record_ends(world)
            self.ends(world)
        return wrong

    @property
    def spoken(self) -> bool:
        """Whether a property other than that of ends, or the outcome oracle, has reported a violation."""
        return bool(self.judge.violated or self.outcomes.unknown)

    def kill(self, where: str) -> Kill | None:
        """Return what they said: a property before the outcome oracle, and how calls end last."""
        if self.judge.violated:
            return Kill(min(self.judge.violated), where)
        if self.outcomes.unknown:
            return Kill("outcome", where)
        return Kill(ENDS, where) if self.ends is not None and self.ends.violated else None


def record_ends(world: World) -> None:
    """Record the errors that left threads, where they come out of the reference, and the threads that are stuck."""
    execution: Any = world._ex
    for failure in execution.failures:
        if left_a_call(failure.error):
            error = f"{type(failure.error).__name__} in {failure.thread}"
            world.record("raised", error=error, declared=False)
    if execution.end in STUCK:
        livelock = execution.end == "livelock"
        why = str(execution.cycle) if livelock else explain(execution).partition("\n")[0]
        world.record("stuck", waits_for=f"{execution.end}: {why}")


def left_a_call(error: BaseException) -> bool:
    """Return whether an error was raised in a call of the reference, and not by the program that calls it."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith("seriatim."):
            return True
        trace = trace.tb_next
    return False


def raised(world: World) -> str:
    """Return which of the application's threads an exception left, and which; '' if none."""
    execution: Any = world._ex
    failures = [f for f in execution.failures if not OWN_THREADS.match(f.thread)]
    return "; ".join(f"{f.thread} raised {type(f.error).__name__}" for f in failures)


class _Named(Exception):
    """A property or the outcome oracle has spoken."""


def consequence(
    program: Program,
    lib: ModuleType,
    ids: Sequence[str],
    known: Sequence[str] | None,
    max_steps: int,
    until: float = inf,
    raced: Iterable[str] = (),
) -> Kill | None:
    """Return what a property or the outcome oracle says of executions that end otherwise; None if nothing.

    `raced` are the attributes for which threads race, each as "Class.attribute". An exception that leaves a call is
    what its caller sees, where over the right reference none does.
    """
    found = Consequences(ids, known)
    steps = AttributeSteps(reference_classes(lib), raced) if raced else None

    def build(world: World, lib: ModuleType) -> None:
        if found.spoken:
            raise _Named
        world.at_end(lambda: found.outcomes.failed(raised(world)))
        if steps is not None:
            steps.begin(world)
        program.build(world, lib)

    most = AFTER_A_FAILURE if steps is None else AFTER_A_RACE
    installed: AbstractContextManager[None] = nullcontext() if steps is None else steps.installed()
    try:
        with installed:
            again = replace(program, build=build)
            search(again, lib, found, most, max_steps, True, outcomes=found.outcomes, until=until)
    except (ExplorerError, SecondsSpent, _Named):
        pass
    return found.kill(program.id)


# ---- data races


def raced_attributes(races: Iterable[str]) -> set[str]:
    """Return the attributes that reports of data races are about, each as "Class.attribute"."""
    labels = (race.partition(":")[0].removesuffix(f" ({CONTENTS})") for race in races)
    return {label.partition("[")[0] for label in labels}


class AttributeSteps:
    """Makes each access of some attributes a step of its own, in programs that are set up while it is installed.

    All objects of a class share one footprint for an attribute, so schedules that differ in nothing are run more often,
    and none is left out. To load a container counts as a write, for what is done with it then is in the same step.
    """

    def __init__(self, classes: Iterable[type], attributes: Iterable[str]) -> None:
        self.attributes = sorted(attributes)
        """Each as "Class.attribute"."""
        self.classes = [
            cls for cls in classes if any(a.startswith(f"{cls.__qualname__}.") for a in attributes)
        ]
        self._cells: dict[str, Any] = {}
        self._world: World | None = None

    def begin(self, world: World) -> None:
        """Take in the execution that is being set up."""
        self._world = world
        self._cells = {a: world.cell(0, f"attribute {a}") for a in self.attributes}

    def step(self, obj: object, name: str, writes: bool) -> None:
        """Announce an access, if it is one of those."""
        cell = self._cells.get(f"{type(obj).__qualname__}.{name}")
        execution: Any = None if cell is None or self._world is None else self._world._ex
        if cell is None or execution.closing or execution.current is None:
            return
        cell.set(0) if writes else cell.get()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let accesses be steps while the body runs."""
        own = [
            (cls, name, cls.__dict__.get(name), getattr(cls, name))
            for cls in self.classes
            for name in _HOOKS
        ]
        try:
            for cls, name, _, original in own:
                setattr(cls, name, _HOOKS[name](self, original))
            yield
        finally:
            self._world, self._cells = None, {}
            for cls, name, before, _ in own:
                if before is None:
                    delattr(cls, name)
                else:
                    setattr(cls, name, before)


def _reading(steps: AttributeSteps, original: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: object, name: str) -> Any:
        value = original(self, name)
        if f"{type(self).__qualname__}.{name}" not in steps._cells:
            return value
        steps.step(self, name, type(value) in CONTAINERS)
        return original(self, name)

    return read


def _writing(steps: AttributeSteps, original: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: object, name: str, value: object) -> None:
        steps.step(self, name, True)
        original(self, name, value)

    return write


_HOOKS = {"__getattribute__": _reading, "__setattr__": _writing}
