"""What a property is: a check over a history with three possible verdicts, written as map, combine, finish.

`map` summarises a chunk of a history, `combine` joins the summaries of two neighbouring chunks (associatively, with
`map([])` as its unit), `finish` gives the finding for the whole.
So one process folds, Spark reduces, a stream keeps the summary as its state, and one huge queue splits over a cluster
as well as a thousand small ones.
Who folds chunks in the history's order starts from `begin()`: then summaries stay small (see there).
Cutting a history anywhere and combining must give what mapping it whole gives; a test holds every property to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from seriatim_models.history.event import Event

S = TypeVar("S")

Scope = Literal["run", "queue", "connection", "message"]
"""The largest part of a run that can be judged on its own: judging each such part, given also the events that belong to
none, judges the run."""


class Verdict(StrEnum):
    """Silence is not proof: a property that found nothing to test is `INCONCLUSIVE`, not `OK`."""

    OK = "ok"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of one property on one history.

    `n_tested` counts the cases in which the property could have been violated,
    `n_untestable` those that the history leaves open (an unobserved acquisition, a missing bound).
    `n_violations` counts the cases that convict; `witness` is the smallest set of events that does,
    `explanation` says in words why.
    """

    property: str
    verdict: Verdict
    n_tested: int
    n_untestable: int = 0
    n_violations: int = 0
    subject: str = ""
    explanation: str = ""
    witness: list[Event] = []

    @staticmethod
    def of(
        property: str,
        n_tested: int,
        violations: Sequence[tuple[str, Sequence[Event]]] = (),
        *,
        n_untestable: int = 0,
        n_violations: int | None = None,
        subject: str = "",
    ) -> Finding:
        """The finding with the rule for its verdict: convicted by any violation, the one with fewest events shown.

        `n_violations` is for a property that kept only some of the violations it counted.
        """
        if violations:
            why, events = min(
                violations, key=lambda v: (len(v[1]), v[1][-1].i if v[1] else 0, v[0])
            )
            return Finding(
                property=property,
                verdict=Verdict.VIOLATED,
                n_tested=max(n_tested, 1),
                n_untestable=n_untestable,
                n_violations=len(violations) if n_violations is None else n_violations,
                subject=subject,
                explanation=why,
                witness=list(events),
            )
        return Finding(
            property=property,
            verdict=Verdict.OK if n_tested else Verdict.INCONCLUSIVE,
            n_tested=n_tested,
            n_untestable=n_untestable,
            subject=subject,
        )


class Property(Generic[S]):
    """Base of every property. `id` and `sentence` are those of `spec/PROPERTIES.md`."""

    id: ClassVar[str]
    sentence: ClassVar[str]
    source: ClassVar[str]
    kind: ClassVar[str]
    """safety, liveness or reachability."""
    reads: ClassVar[frozenset[str]]
    """The event names it looks at; all others may be left out of what `map` is given."""
    scope: ClassVar[Scope] = "run"
    # Any: a type as msgspec takes it, which may be a union or a parametrised container
    summary_type: ClassVar[Any] = None
    """The type of the summary, by which it is written and read between processes; None if it must stay in one."""

    def begin(self) -> S:
        """The summary of a history of which nothing has come yet.

        Unlike ``map([])`` it says that nothing came before. Folding chunks in order *from here* lets a property that
        carries a state keep that and no events: ``s = p.begin(); s = p.combine(s, p.map(chunk)); ...``.
        """
        return self.map([])

    def map(self, events: Iterable[Event]) -> S:
        raise NotImplementedError

    def combine(self, left: S, right: S) -> S:
        """The summary of the two chunks together. May take `left` and `right` apart: use neither afterwards."""
        raise NotImplementedError

    def finish(self, summary: S) -> Finding:
        raise NotImplementedError

    def check(self, events: Iterable[Event]) -> Finding:
        """The verdict on a history held in memory."""
        return self.finish(self.map(e for e in events if e.ev in self.reads))


class WholeHistory(Property[list[Event]]):
    """A property that needs a sweep over everything it reads: the summary is the list of those events."""

    summary_type = list[Event]

    def map(self, events: Iterable[Event]) -> list[Event]:
        return [e for e in events if e.ev in self.reads]

    def combine(self, left: list[Event], right: list[Event]) -> list[Event]:
        return left + right


# Any: a registry holds properties of every summary type; only the property itself looks inside its summary.
AnyProperty = Property[Any]


def audit(events: Iterable[Event], properties: Iterable[AnyProperty]) -> list[Finding]:
    """Every property's finding on one history, in the order given."""
    held = list(events)
    return [p.check(held) for p in properties]
