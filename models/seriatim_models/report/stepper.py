"""A counterexample to step through: its steps, the state after each, where it went wrong; and the page for it.

The page needs nothing else: no network, works from a file. Data is embedded as JSON and put on the page as text,
never as markup, because names and values in it come from the program that was checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec
from markupsafe import Markup

from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report.reconstruct import Recorded, State, Stepped, states, touched

STEPS_MAX = 1000
"""More steps are not put on a page, which would grow beyond what a browser shows at once."""


class Told(Stepped, Protocol):
    """A step as the explorer keeps it."""

    @property
    def preempts(self) -> bool: ...
    @property
    def records(self) -> Sequence[Recorded]: ...


class Interleaving(Protocol):
    """A counterexample of the explorer."""

    @property
    def program(self) -> str: ...
    @property
    def events(self) -> Sequence[Told]: ...
    @property
    def violations(self) -> Sequence[object]: ...
    @property
    def end(self) -> str: ...
    @property
    def threads(self) -> Sequence[str]: ...
    @property
    def records(self) -> Sequence[Recorded]: ...
    @property
    def period(self) -> int: ...
    @property
    def replay(self) -> str: ...


class About(NamedTuple):
    """What there is to say of a property."""

    sentence: str
    source: str
    kind: str
    """safety, liveness or reachability."""


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the page."""

    n: int
    lane: int
    """Which thread, an index."""
    op: str
    result: str
    preempts: bool
    records: list[str]
    state: int
    """Which state holds after it, an index."""
    witness: bool
    """Whether an event that convicts was recorded in it."""


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """A property that is broken."""

    id: str
    sentence: str
    source: str
    explanation: str


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch in the life of a message, in steps: from the one that began it to the one that ended it."""

    message: str
    by: str
    """Who had it; empty while it waited in the queue."""
    start: int
    end: int
    """One beyond the last step if it never ended."""
    how: str
    """How it ended, in a word."""
    convicts: bool


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the page shows: an execution, or a recorded history (`watched.py`)."""

    id: str
    """Stands in the link to a step."""
    title: str
    what: list[str]
    """What is wrong, in words."""
    broken: list[Sentence]
    end: str
    left_out: str
    """Why steps are missing, if any are."""
    replay: str
    threads: list[str]
    steps: list[StepRow]
    states: list[State]
    """Without repetition."""
    initial: int
    """Which of them holds before the first step."""
    good: int
    bad: int
    """Number of the last good and of the first bad step; both 0 if nothing is wrong."""
    arrows: list[tuple[int, int]]
    """Steps of different threads, one of which must come before the other."""
    fate: str = ""
    """How it is known that the first bad step is the first: in words, if it was found out."""
    bars: list[Bar] = []
    """Of a recorded history: who had which message when."""

    @property
    def heading(self) -> str:
        wrong = self.broken or self.what
        return f"{self.title}: {'how it breaks' if wrong else 'what was seen'}"


def story(
    case: Interleaving,
    findings: Iterable[Finding] = (),
    properties: Mapping[str, About] | None = None,
) -> Story:
    """`properties` tells of each property that `findings` may name.

    The first bad step is that of the last event that convicts. What convicts for liveness is what never happens: then
    every step could still have been followed by it, and only the end is bad.
    """
    about = properties or {}
    convicting = [f for f in findings if f.verdict is Verdict.VIOLATED]
    witness = [
        e.t
        for f in convicting
        if all(_recorded(e, case.records) for e in f.witness)
        for e in f.witness
        if e.t is not None
    ]
    events, left_out = _shown(case)
    last = len(events)
    never = any(p.kind == "liveness" for f in convicting if (p := about.get(f.property)))
    bad = last if never else min(max(witness, default=last), last) or last
    threads = list(dict.fromkeys([*case.threads, *(_lane(e) for e in events)]))
    unique: dict[State, int] = {}
    indexes = [unique.setdefault(s, len(unique)) for s in states(events, case.records)]
    return Story(
        id="steps-" + re.sub(r"[^\w-]+", ".", case.program),
        title=case.program or "program",
        what=[str(v) for v in case.violations],
        broken=[sentence(f, about) for f in convicting],
        end=case.end,
        left_out=left_out,
        replay=case.replay,
        threads=threads,
        steps=[
            StepRow(
                n=at,
                lane=threads.index(_lane(e)),
                op=e.op,
                result=e.result,
                preempts=e.preempts,
                records=[_record(r) for r in e.records],
                state=indexes[at],
                witness=e.n in witness,
            )
            for at, e in enumerate(events, 1)
        ],
        states=list(unique),
        initial=indexes[0],
        good=max(bad - 1, 0),
        bad=bad,
        arrows=happens_before(events),
    )


def _shown(case: Interleaving) -> tuple[Sequence[Told], str]:
    """The steps that go on the page, and what to say of the others."""
    events, period = case.events, case.period
    if period and len(events) > 4 * period + 8:  # a circle is shown once, as in the text
        shown = max(len(events) % period + period, 8)
        says = f"the last {period} steps repeat"
    elif len(events) > STEPS_MAX:
        shown, says = STEPS_MAX, "there is no room for all"
    else:
        return events, ""
    return events[:shown], f"{says}; {len(events) - shown} steps are not shown"


def _recorded(e: Event, records: Sequence[Recorded]) -> bool:
    """Whether a witness is of this execution and not of another."""
    return 0 <= e.i < len(records) and (records[e.i].ev, records[e.i].step) == (e.ev, e.t)


def _lane(step: Stepped) -> str:
    """An alarm stands in the lane of the thread that it wakes."""
    return step.thread.split("'s alarm ")[0]


def _record(r: Recorded) -> str:
    return " ".join([r.ev, *(f"{k}={v}" for k, v in r.args.items())])


def sentence(f: Finding, properties: Mapping[str, About]) -> Sentence:
    """What a finding breaks, and how."""
    p = properties.get(f.property, About("", "", ""))
    return Sentence(id=f.property, sentence=p.sentence, source=p.source, explanation=f.explanation)


def happens_before(events: Sequence[Stepped]) -> list[tuple[int, int]]:
    """(earlier, later) for steps of different threads on one object, not both reads; each read of a value once.

    Objects are known by their names. The nodes of a list share theirs, so the links inside lists are left out.
    """
    found = []
    write: dict[str, int] = {}
    reads: dict[str, dict[str, int]] = {}
    """Of each object, the last read by each thread since it was written."""
    for at, step in enumerate(events, 1):
        access = touched(step)
        if access is None or access[0].rpartition(".")[2] in ("next", "marked"):
            continue
        (name, changes), lane = access, _lane(step)
        written = [write[name]] if name in write else []
        since = reads.setdefault(name, {})
        if changes:
            before = list(since.values()) or written
            write[name], reads[name] = at, {}
        else:
            before = [] if lane in since else written
            since[lane] = at
        found += [(b, at) for b in before if _lane(events[b - 1]) != lane]
    return found


def data(told: Story) -> Markup:
    """The story as JSON that can stand in a script element: no text in it can end the element or begin a comment."""
    text = msgspec.json.encode(told).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def page(told: Story, again: str = "") -> str:
    """A page of its own. `again` is the command that makes it."""
    from seriatim_models.report.html import environment

    return environment().get_template("stepper_page.html.j2").render(story=told, again=again)
