"""What a property is: a check over a history with three possible verdicts, written as map, combine, finish.

`map` summarises a chunk of a history, `combine` joins the summaries of two neighbouring chunks (associatively, with
`map([])` as its unit), `finish` gives the finding for the whole.
So one process folds, Spark reduces, a stream keeps the summary as its state, and one huge queue splits over a cluster
as well as a thousand small ones.
Who folds chunks in the history's order starts from `begin()`: then summaries stay small (see there).
Cutting a history anywhere and combining must give what mapping it whole gives; a test holds every property to that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import msgspec

from seriatim_models.history.event import GAP, IMPLIES_NOTHING, Event
from seriatim_models.history.unrecorded import kinds_missing, missing_kinds

S = TypeVar("S")

Violations = list[tuple[str, list[Event]]]
"""Violations found so far: why, and the events that show it."""

Scope = Literal["run", "queue", "connection", "message"]
"""The largest part of a run that can be judged on its own: judging each such part, given also the events that belong to
none, judges the run."""


ProfileValue = bool | int | float | str
"""What a key of a profile may say of a property's form."""


class CaseEvents(NamedTuple):
    """Events of which a history must hold at least one for a property to have a case, or anything untestable."""

    names: frozenset[str]
    """Their event names."""
    matches: Callable[[Event], bool] = lambda _: True
    """Whether an event of such a name counts."""
    fields: tuple[str, ...] = ()
    """Fields of which one that counts has at least one; none if it may have none."""


class Verdict(StrEnum):
    """Silence is not proof: a property that found nothing to test is `INCONCLUSIVE`, not `OK`."""

    OK = "ok"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of one property on one history.

    `n_tested` counts the cases in which the property could have been violated,
    `n_untestable` those that the history leaves open (an unobserved acquisition, a missing bound).
    `n_violations` counts the cases that violate; `witness` is the smallest set of events that shows one,
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
    decides: str = ""
    """What would have to be declared or recorded to decide what looks like a violation; empty if nothing does."""

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
        """The finding with the rule for its verdict: violated by any violation; the one with fewest events is shown.

        `n_violations` is for a property that kept only some of the violations it counted.
        """
        if violations:
            why, events = min(
                violations, key=lambda v: (len(v[1]), v[1][-1].i if v[1] else 0, v[0])
            )
            if not isinstance(why, str) or not all(isinstance(e, Event) for e in events):
                raise TypeError("a violation is a text and the events that show it")
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


def undecided(finding: Finding, why: str, decides: str) -> Finding:
    """The finding, inconclusive: what looks like a violation, and what would have to be declared or recorded."""
    return msgspec.structs.replace(
        finding,
        verdict=Verdict.INCONCLUSIVE,
        explanation=f"{why}; {decides}",
        n_violations=0,
        decides=decides,
    )


class Property(Generic[S]):
    """Base of every property: its class declares all that the rest of the house asks of it.

    What it judges are the methods; whatever else differs between properties is a class attribute with a default.
    """

    id: ClassVar[str]
    """As in `spec/PROPERTIES.md`, whose tables are made from these attributes."""
    sentence: ClassVar[str]
    source: ClassVar[str]
    kind: ClassVar[str] = "safety"
    """safety, liveness or reachability."""
    keeps: ClassVar[str] = ""
    """What its summary holds, folded from `begin`."""
    time: ClassVar[str] = "O(n)"
    """Its cost for a history of n events."""

    case: ClassVar[str] = ""
    """What a history must hold for a case, one in which a wrong system could have done otherwise: after "it takes"."""

    reads: ClassVar[frozenset[str]]
    """The event names it looks at; all others may be left out of what `map` is given. Empty for all."""
    levels: ClassVar[frozenset[str]] = frozenset()
    """The levels of events that it looks at, likewise."""
    scope: ClassVar[Scope] = "run"
    # Any: a type as msgspec takes it, which may be a union or a parametrised container
    summary_type: ClassVar[Any] = None
    """The type of the summary, by which it is written and read between processes and in the states of a stream.

    None if it must stay in one process: only the local engine can judge by the property.
    """

    case_events: ClassVar[CaseEvents | None] = None
    """Without one of them a history has no case; None if single events cannot decide that."""
    column_check: ClassVar[str] = ""
    """``module:name`` of a `columnar.evaluator.ColumnCheck`, which clears whole histories held as columns."""
    channel_check: ClassVar[str] = ""
    """``module:name`` of a `columnar.connections.ChannelCheck`, which clears connections held as columns."""
    queue_check: ClassVar[str] = ""
    """``module:name`` of a `columnar.queues.QueueCheck`, which clears queues held as columns."""

    rests_on: ClassVar[str] = "the rest of the recording belongs to it"
    """On what a violation rests besides the events of its witness; empty if every witness violates by itself. Then one
    that does not is no violation; see `standing`."""

    options: ClassVar[frozenset[str]] = frozenset()
    """The keys of a profile that choose among its forms; see `from_options`."""
    promised_in: ClassVar[Mapping[str, str]] = {}
    """Profiles that promise it without their files mentioning it, each with where the system says so."""
    silent_elsewhere: ClassVar[str] = ""
    """Why a profile whose file does not mention it does not promise it; empty if every file must mention it."""

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> AnyProperty:
        """The property in the form that a profile's keys choose; those of `options` that the profile gives.

        Raises `ValueError` for a value that no form has.
        """
        return cls()

    @property
    def partitioning(self) -> Scope:
        """By what an audit of chunk files divides its work; ``run``: by time only, and the summaries are combined."""
        return self.scope

    def own(self, name: str) -> bool:
        """Whether this very class declares a columnar evaluator: a subclass judges otherwise and inherits none."""
        return bool(vars(type(self)).get(name))

    def overrides(self, base: type, *names: str) -> bool:
        """Whether its class has methods of its own in the place of some of a base's."""
        return any(getattr(type(self), name) is not getattr(base, name) for name in names)

    def relevant(self, events: Iterable[Event]) -> Iterable[Event]:
        """Those of the events that it reads."""
        if not self.reads:
            return events
        return (e for e in events if e.ev in self.reads and (e.ev != GAP or self.may_miss(e)))

    def may_miss(self, gap: Event) -> bool:
        """Whether something that it reads may be missing where a `gap` stands."""
        kinds = missing_kinds(gap)
        return not kinds or not self.reads or not self.reads.isdisjoint(kinds)

    def begin(self) -> S:
        """The summary of a history of which nothing has come yet.

        Unlike ``map([])`` it says that nothing came before. Folding chunks in order *from here* lets a property that
        keeps a state hold that and no events: ``s = p.begin(); s = p.combine(s, p.map(chunk)); ...``.
        """
        return self.map([])

    def map(self, events: Iterable[Event]) -> S:
        """The summary of a chunk of completed events."""
        raise NotImplementedError

    def combine(self, left: S, right: S) -> S:
        """The summary of the two chunks together. May take `left` and `right` apart: use neither afterwards."""
        raise NotImplementedError

    def advance(self, summary: S, events: Sequence[Event]) -> S:
        """The summary of a chunk together with the completed events that follow it: what `combine` gives of their
        `map`, which a property that carries a state from the beginning need not make. May take `summary` apart.
        """
        return self.combine(summary, self.map(self.relevant(events)))

    def finish(self, summary: S) -> Finding:
        """The finding on a whole history, from its summary."""
        raise NotImplementedError

    def check(self, events: Iterable[Event]) -> Finding:
        """The verdict on a history held in memory."""
        return self.finish(self.map(self.relevant(events)))

    def check_witness(self, witness: Sequence[Event]) -> Finding:
        """The finding on the events of a witness alone, in their order; see `standing`."""
        return self.check(witness)


class WholeHistory(Property[list[Event]]):
    """A property that needs a sweep over everything it reads: the summary is the list of those events."""

    summary_type = list[Event]

    def map(self, events: Iterable[Event]) -> list[Event]:
        return [e for e in events if e.ev in self.reads]

    def combine(self, left: list[Event], right: list[Event]) -> list[Event]:
        return left + right

    def finish(self, summary: list[Event]) -> Finding:
        bad: Violations = []
        tested = self.cases(summary, bad)
        if not isinstance(tested, int) or tested < 0:
            raise TypeError(f"cases must return how many there were, not {tested!r}")
        return Finding.of(self.id, tested, bad)

    def cases(self, events: list[Event], bad: Violations) -> int:
        """Put violations into `bad`; return how many cases were tested."""
        raise NotImplementedError


class ModelHistory(WholeHistory):
    """A property that sweeps over the events of level ``model`` that it reads: what a reference records of itself."""

    def map(self, events: Iterable[Event]) -> list[Event]:
        return [e for e in events if e.ev in self.reads and e.lvl == "model"]


# Any: a registry holds properties of every summary type; only the property itself looks inside its summary.
AnyProperty = Property[Any]


def audit(events: Iterable[Event], properties: Iterable[AnyProperty]) -> list[Finding]:
    """Every property's finding on one history, in the order given."""
    held = list(events)
    kinds = kinds_missing(held)
    return [left_open(p, p.check(held), kinds) for p in properties]


def left_open(prop: AnyProperty, finding: Finding, kinds: Collection[str]) -> Finding:
    """The finding where events of some kinds are never recorded.

    A violation stands: it is one whatever else happened. But what a property that reads one of them was not shown may
    be a violation, so it is not ok.
    """
    if finding.verdict is Verdict.VIOLATED or finding.explanation:
        return finding
    # What is implied of the events that it reads may rest on others that it does not.
    if prop.reads.isdisjoint(kinds) and IMPLIES_NOTHING.issuperset(kinds):
        return finding
    return msgspec.structs.replace(
        finding,
        verdict=Verdict.INCONCLUSIVE,
        n_tested=0,
        n_untestable=finding.n_untestable + finding.n_tested,
        explanation=f"it depends on events that are declared as not recorded: {', '.join(sorted(kinds))}",
    )


class Fold:
    """The summaries of one run, or of a range of it, by several properties; chunks are given to it in order."""

    def __init__(self, properties: Sequence[AnyProperty], first: bool) -> None:
        """`first` says that the run begins here."""
        self.properties = properties
        # Any: each property knows the type of its own summary
        self.summaries: list[Any] = [p.begin() if first else p.map(()) for p in properties]

    def take(self, events: Sequence[Event]) -> None:
        """Add completed events that follow those before."""
        for n, prop in enumerate(self.properties):
            self.summaries[n] = prop.advance(self.summaries[n], events)

    def finish(self) -> list[Finding]:
        """The finding of every property, in their order."""
        return [p.finish(s) for p, s in zip(self.properties, self.summaries, strict=True)]
