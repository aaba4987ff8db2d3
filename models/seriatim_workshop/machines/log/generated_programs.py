"""Generated programs over the log: publishers, consumers that come and go, operators, and a machine that stops."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import ClassVar

from hypothesis import strategies as st

from seriatim_models.machines.log.calls import LOG, LogHarness
from seriatim_models.machines.stages import ProgramStage
from seriatim_models.programs.disk import Crash
from seriatim_workshop.machines.plans import PlannedCalls, ProgramPlan, steps, thread

PRELOADED = (b"good", b"bad", b"")


class LogPlan(ProgramPlan, frozen=True, omit_defaults=True):
    """A generated program: the backlog, and what threads call."""

    system: ClassVar[str] = "log"

    threads: tuple[PlannedCalls, ...] = ()
    backlog: tuple[int, ...] = ()
    """Numbers of messages of `PRELOADED`."""
    max_attempts: int = 1
    stops_after: int | None = None
    """How much of the disk may be changed before the machine stops."""

    def start(self, lib: ModuleType, stage: ProgramStage) -> LogHarness:
        """Set the program up, spawn its threads, and return its harness."""
        harness = LogHarness(stage.world, lib, self.max_attempts)
        harness.backlog(*(PRELOADED[n] for n in self.backlog))
        if self.stops_after is not None:
            harness.storage.budget = harness.storage.spent + self.stops_after

        def until_the_machine_stops(run: Callable[[], None]) -> Callable[[], None]:
            def stops() -> None:
                with suppress(Crash):
                    run()

            return stops

        for i, calls in enumerate(self.threads):
            run = until_the_machine_stops(thread(calls, LOG, harness, (lib.Misuse,)))
            stage.spawn(run, name=f"T{i + 1}", daemon=True)
        return harness


NOT_DRAWN = {"commit", "move", "connect", "begin", "consume_one"}
ON_ANY_THREAD = [c for c in LOG.values() if c.name not in NOT_DRAWN]
"""A commit beside a consumer of the same channel is outside the contract; `consume` connects."""
PLANS = st.builds(
    LogPlan,
    threads=st.lists(steps(ON_ANY_THREAD, 4), min_size=1, max_size=3).map(tuple),
    backlog=st.lists(st.integers(0, len(PRELOADED) - 1), max_size=3).map(tuple),
    max_attempts=st.integers(1, 2),
)
