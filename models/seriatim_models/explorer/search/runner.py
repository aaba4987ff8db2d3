"""What every strategy needs: fresh executions of one program, a judge of each, and the budgets."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from seriatim_models.explorer.errors import Misuse
from seriatim_models.explorer.model.attributes import AttributeObserver
from seriatim_models.explorer.model.execution import Execution, Space, refuse_unstarted
from seriatim_models.explorer.model.guard import raised_at
from seriatim_models.explorer.model.operations import shown
from seriatim_models.explorer.model.program import Limits, Program, ProgramUnderTest, Setting
from seriatim_models.explorer.model.watchdog import CHECKS
from seriatim_models.explorer.model.world import World
from seriatim_models.explorer.trace import termination
from seriatim_models.explorer.trace.counterexample import Violation
from seriatim_models.explorer.trace.foata import NormalForm, TraceSample
from seriatim_models.explorer.trace.replay_run import follow
from seriatim_models.files import message_of

CUT_SHORT = ("cut", "failed", "livelock", "superseded")
"""Ends after which the checks of a program are not asked: it was not over."""

LOOKS = 3
"""How many executions that were cut are searched for a cycle; they are long."""

Observer = Callable[[World], object]


@runtime_checkable
class Summing(Protocol):
    """An observer that adds up what it sees, so that several processes, or a later one, can add up together."""

    def __call__(self, world: World) -> object:
        """See one execution after its end, like any observer."""

    def empty(self) -> Summing:
        """One of the same kind that has seen nothing."""

    def counts(self) -> Any:
        """What it has seen, as data that can be written as JSON."""

    def add(self, counts: Any) -> None:
        """Add what another of the same kind has seen."""


def ask(check: Callable[[], object]) -> object:
    """What a check of the end says is wrong, or None.

    Raises `Misuse` if it returned what is neither None nor says anything: a truth value, an empty list, a coroutine.
    """
    name = getattr(check, "__name__", "check")
    try:
        message = check()
    except AssertionError as error:
        return str(error) or f"{name}: assertion failed"
    if message is None:
        return None
    refuse_unstarted(f"the check {name} of at_end()", message)
    if isinstance(message, bool) or not message:
        raise Misuse(
            f"the check {name} of at_end() returned {message!r}, which does not say whether something is wrong: "
            "return None if all is well, else what is wrong as a sentence, or use assert"
        )
    return message


CHECKS[ask.__code__] = 6


class Runner(ProgramUnderTest):
    """One exploration in progress."""

    def __init__(
        self,
        program: Program,
        setting: Setting,
        limits: Limits,
        *,
        on_execution: Observer | None = None,
        count_traces: bool = True,
        trace_set: bool = False,
        progress: Callable[[Runner], None] | None = None,
        space: Space | None = None,
        observer: AttributeObserver | None = None,
    ) -> None:
        super().__init__(program, setting, limits, space, observer)
        self.on_execution = on_execution
        self.summing = on_execution if isinstance(on_execution, Summing) else None
        self.complete = self.blocked = self.cut = self.redundant = self.violations = 0
        self.steps = self.depth = 0
        self.outcomes: Counter[Any] = Counter()
        self.ends: Counter[str] = Counter()
        self.seen: TraceSample | None = TraceSample() if count_traces or trace_set else None
        self.forms: set[NormalForm] | None = set() if trace_set else None
        self.found: list[tuple[list[tuple[int, int]], list[Violation]]] = []
        """The schedule of the first violation, and what was wrong."""
        self.deepest: list[tuple[int, int]] = []
        """The schedule of the longest execution."""
        self.races: dict[str, None] = {}
        """Data races that withhold the verdict, see `AttributeObserver.withholds`."""
        self._looks = 0
        self.spin = ""
        """Why executions were cut, if a thread repeats the same steps."""
        self.spent = ""
        """The budget that ran out."""
        self.exhausted = False
        self.explored: Callable[[], float] | None = None
        """The part of its tree that the search has explored, if it is known."""
        self.split: Any = None
        """What it cost to share the search with other processes, if it was shared: a `parallel.Split`."""
        self.unreduced: int | None = None
        """Traces that the executions stand for where identical threads were exchanged, if they were counted."""
        self.chance: float | None = None
        self.seed: int | None = None
        self.save: Callable[[Any], None] | None = None
        """Called with the search after each execution, where there is a checkpoint to write."""
        self.started = time.perf_counter()
        self.before = 0.0
        """Seconds spent before this process took over, when going on from a checkpoint."""
        self._deadline = None if limits.seconds is None else self.started + limits.seconds
        self._progress = progress
        self._reported = self.started

    def judge(self, ex: Execution, end: str) -> list[Violation]:
        """Run the checks of an execution that has ended; returns what is wrong."""
        ex.finish(end)
        wrong: list[Violation] = []
        for failure in ex.failures:
            if isinstance(failure.error, AssertionError):
                what: object = message_of(failure.error) or f"assertion failed in {failure.thread}"
                wrong.append(Violation("property", what))
            else:
                kind = type(failure.error).__name__
                where = raised_at(failure.error)
                said = message_of(failure.error)
                what = f"{failure.thread} raised {kind}: {said} in step {failure.step}"
                what += f", at {where}" if where else ""
                wrong.append(Violation("error", what))
        if self.observer is not None and self.observer.withholds:
            self.races.update(dict.fromkeys(ex.data_races))
        else:
            wrong += [Violation("data race", found) for found in ex.data_races]
        if end not in CUT_SHORT:
            checks = list(ex.world.checks)
            for check in checks:
                message = ask(check)
                if message is not None:
                    wrong.append(Violation("property", message))
        if self.on_execution is not None:
            try:
                message = self.on_execution(ex.world)
            except AssertionError as error:
                message = str(error) or "assertion failed"
            if message is not None:
                wrong.append(Violation("property", message))
        if end in termination.STUCK and not self.setting.stuck_ok:
            why = str(ex.cycle) if end == "livelock" else termination.explain(ex)
            wrong.append(Violation(end, why))
        return wrong

    def ended(self, ex: Execution, end: str, digest: bytes | None) -> bool:
        """Count an execution, run its checks and close it; returns whether the search is to stop."""
        self.steps += ex.steps
        if ex.steps > self.depth:
            self.depth = ex.steps
            self.deepest = ex.schedule
        if end == "cut":
            end = self._look_for_cycle(ex)
        self.ends[end] += 1
        if end == "blocked":
            self.blocked += 1
        else:
            wrong = self.judge(ex, end)
            if end == "superseded":
                self.blocked += 1
            elif end in CUT_SHORT:
                self.cut += 1
            else:
                self.complete += 1
                seen = self.seen
                if seen is not None and digest is not None and seen.met(digest):
                    self.redundant += seen.one_in
                for value in ex.world.results:
                    try:
                        self.outcomes[value] += 1
                    except TypeError:
                        self.outcomes[shown(value)] += 1
            if wrong:
                self.violations += 1
                if not self.found:
                    self.found.append((list(ex.schedule), wrong))
        ex.close()
        return bool(self.found) and not self.limits.keep_going

    def _look_for_cycle(self, ex: Execution) -> str:
        """Whether a cut execution was a livelock."""
        if self._looks >= LOOKS:
            return "cut"
        self._looks += 1
        again = follow(self, ex.schedule)
        if again is None:
            return "cut"
        again.close()
        ex.cycle = again.cycle
        if again.cycle is not None and not self.spin:
            self.spin = str(again.cycle)
        return again.end

    def over(self) -> bool:
        """Whether a budget has run out; calls `progress` twice a second."""
        limits = self.limits
        if self.room < 1:
            self.spent = f"max_executions={limits.max_executions}"
            return True
        if self._deadline is not None or self._progress is not None:
            now = time.perf_counter()
            if self._deadline is not None and now >= self._deadline:
                self.spent = f"seconds={limits.seconds}"
                return True
            if self._progress is not None and now - self._reported >= 0.5:
                self._reported = now
                self._progress(self)
        return False

    @property
    def executions(self) -> int:
        """How many executions were started."""
        return self.complete + self.blocked + self.cut

    @property
    def room(self) -> float:
        """How many executions the budget still allows."""
        most = self.limits.max_executions
        return float("inf") if most is None else most - self.executions

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the deadline; None where there is none."""
        return None if self._deadline is None else self._deadline - time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start, with those of the runs that a checkpoint goes on from."""
        return self.before + time.perf_counter() - self.started
