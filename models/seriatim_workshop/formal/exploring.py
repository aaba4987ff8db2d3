"""Follow the executions of one program, and say what came of it; code that was changed must have no data race, either.

Between two operations of the host no other thread runs, so what changed code reads of a plain attribute is what was
there a moment before: a mistake in its use may be shown by no schedule, and nothing would be rejected. So changed code
of which nothing was rejected is explored once more, with its attributes observed (`explorer.model.attributes`). If it
races, schedules are missing that it can have, and nothing is said of it.

Nor is anything said by the clock: a step that does not end is given up by processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, cast

from seriatim_models.explorer import Dpor, OutsideModel, Result, World, explore
from seriatim_models.explorer.model.watchdog import patient
from seriatim_workshop.formal.followed import Followed
from seriatim_workshop.formal.recorder import Recorder
from seriatim_workshop.formal.simulation import Simulation

PROCESSOR = 60.0
"""Seconds of processor time that one step of an execution may take, with all that is followed of it."""


class Iterations:
    """Notes iterations of whoever executes now: from outside, for the reference records those of a few lists only."""

    def __init__(self, lib: ModuleType) -> None:
        self.lib = lib
        self.recorder: Recorder | None = None
        """That of the execution that runs."""

    def records(self, of: Any) -> bool:  # Any: a list of the module under test
        """Whether its iterations are on record already, as ``walk``: those of the lists of a consumer manager."""
        return isinstance(of, self.lib.ConsumerList) and not of.name.endswith(".All")

    @contextmanager
    def noted(self) -> Iterator[None]:
        """While the body runs note every iteration over a list that is not on record: of All, and of the entries."""
        kinds = (self.lib.NodeList, self.lib.PriorityQueueEntryList)
        before = [(kind, kind.__iter__) for kind in kinds]
        for kind, iterate in before:
            kind.__iter__ = self._noting(iterate)
        try:
            yield
        finally:
            for kind, iterate in before:
                kind.__iter__ = iterate

    def _noting(self, iterate: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        """The same iteration, noted."""

        def noting(of: Any) -> Iterator[Any]:
            found = iterate(of)
            if self.recorder is None or self.records(of):
                return found
            return self.recorder.iteration(of, found)

        return noting


def explore_into(
    found: Followed,
    lib: ModuleType,
    build: Callable[[World], None],
    executions: int | None = None,
    seconds: float | None = None,
) -> None:
    """Follow the schedules of a program as they happen; the first execution that is no behaviour ends it.

    `build` makes the program in a world. `executions` is how many at most, and `seconds` for how long; None is every
    one. What came of it is put into `found`.
    """
    rejections: list[tuple[str, str]] = []
    began = time.process_time()
    iterations = Iterations(lib)

    def run(world: World) -> None:
        simulation = Simulation(lib)
        recorder = iterations.recorder = Recorder(world, simulation)

        def rejects() -> str | None:
            if simulation.rejected:
                rejections.append((simulation.where, simulation.rejected))
            return f"{simulation.where}: {simulation.rejected}" if simulation.rejected else None

        simulation.on_rejection = rejects
        build(cast(World, recorder))

        def conform() -> str | None:
            simulation.end()
            found.executions += 1
            found.steps += simulation.steps
            found.counts.update(simulation.counts)
            found.actions |= simulation.actions
            found.notes |= simulation.notes
            return rejects()

        world.at_end(conform)

    with iterations.noted():
        result = _explored(found, run, executions, seconds)
    if result is not None:
        found.executions, found.exhausted = result.executions, result.exhausted
        found.counterexample = result.counterexample
        if result.cut:
            steps = result.bounds["max_steps"]
            found.no_end = f"{result.cut} executions have not come to an end after {steps} steps"
    if rejections:
        found.system, found.rejected = rejections[0]
    found.seconds += time.process_time() - began


def explore_changed_into(
    found: Followed,
    lib: ModuleType,
    build: Callable[[World], None],
    observed: Iterable[type],
    executions: int | None = None,
    seconds: float | None = None,
) -> None:
    """The same for changed code: what is not rejected, and races on an attribute of these classes, is not accepted."""
    explore_into(found, lib, build, executions, seconds)
    if found.verdict == "accepted":
        race_into(found, build, observed, executions, seconds)


def race_into(
    found: Followed,
    build: Callable[[World], None],
    observed: Iterable[type],
    executions: int | None = None,
    seconds: float | None = None,
) -> None:
    """Explore the program with the attributes of these classes observed; a race is put into `found`."""
    began = time.process_time()
    result = _explored(found, build, executions, seconds, observed)
    if result is not None and result.counterexample is not None:
        wrong = result.counterexample.violations
        found.race = next((str(w.what) for w in wrong if w.kind == "data race"), "")
    found.seconds += time.process_time() - began


def _explored(
    found: Followed,
    program: Callable[[World], None],
    executions: int | None,
    seconds: float | None,
    observed: Iterable[type] | None = None,
) -> Result | None:
    """The schedules of a program; None if a step of it did not end, of which `found` says where."""
    with patient(PROCESSOR) as patience:
        try:
            return explore(
                program,
                Dpor(),
                name=found.name,
                shrink=0,
                max_executions=executions,
                seconds=seconds,
                attributes=observed,
            )
        except OutsideModel as error:
            if patience.error is None:
                raise
            found.stood_still = str(error)
            return None
