"""What an exploration returns: verdict, coverage, outcomes, counterexample."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from html import escape
from typing import Any

from seriatim_models.explorer.search.estimate import Progress
from seriatim_models.explorer.search.parallel import Split
from seriatim_models.explorer.trace.counterexample import Counterexample
from seriatim_models.explorer.trace.foata import NormalForm


@dataclass(repr=False)
class Result:
    """The finding of one exploration.

    `verdict` is ``ok`` only if everything within the stated `bounds` was explored and nothing was wrong;
    ``inconclusive`` when a budget ran out first, when the strategy only samples,
    or when the schedules say nothing of the program (`untested`).
    """

    program: str = ""
    strategy: str = ""
    verdict: str = "inconclusive"
    untested: str = ""
    """Why a search says nothing of the program although no schedule was wrong: no visible step, no execution that came
    to its end, a data race."""
    exhausted: bool = False
    """Every trace within the stated bounds was covered."""
    complete: int = 0
    """Executions that ran to their end."""
    blocked: int = 0
    """Sleep-set blocked executions: given up because every enabled thread was asleep."""
    cut: int = 0
    """Executions stopped by the bound on steps."""
    redundant: int = 0
    """Complete executions of a trace that had been seen before."""
    traces: int | None = 0
    """Distinct Mazurkiewicz traces among the complete executions; None if they were not counted.

    Names of 2**18 traces are remembered, so that memory is bounded. Beyond that, one in 2, 4, ... is compared:
    of a search by `Dpor` these are the complete executions without the repetitions so found,
    of a sampling strategy an estimate.
    """
    unreduced: int | None = None
    """With `Dpor(symmetry=True)`: the traces that these stand for if identical threads are distinguished, which is how
    many a search without it finds. None if they were not counted.
    """
    violations: int = 0
    """Executions in which something was wrong."""
    outcomes: Counter[Any] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    counterexample: Counterexample | None = None
    bounds: dict[str, int | float | None] = field(default_factory=dict)
    """Every bound and budget that applied, by name; None where there was none."""
    why: str = ""
    """The verdict in one sentence."""
    seconds: float = 0.0
    steps: int = 0
    """Steps taken, over all executions."""
    depth: int = 0
    """Length of the longest execution."""
    seed: int | None = None
    chance: float | None = None
    """For PCT: the least probability with which one run finds a bug of the stated depth, if there is one."""
    progress: Progress | None = None
    """How far it was, and how much there is in all, where a budget of `Dpor` ran out before all was seen."""
    split: Split | None = None
    """What it cost to share the search between processes, if it was worth sharing."""
    trace_set: set[NormalForm] | None = None

    @property
    def executions(self) -> int:
        """How many executions were started."""
        return self.complete + self.blocked + self.cut

    @property
    def speed(self) -> float:
        """Executions per second."""
        return self.executions / self.seconds if self.seconds else 0.0

    def __repr__(self) -> str:
        name, token = self.program or "program", self.counterexample and self.counterexample.token
        shown = f"<{type(self).__name__} of {name}: {self.verdict}, {self.executions} executions"
        return f"{shown}, Replay({token!r})>" if token else f"{shown}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, and the counterexample if there is one."""
        case = self.counterexample
        return f"<p>{escape(str(self))}</p>{case._repr_html_() if case else ''}"

    def __str__(self) -> str:
        return f"{self.program or 'program'} under {self.strategy}: {self.verdict}. {self.why}"
