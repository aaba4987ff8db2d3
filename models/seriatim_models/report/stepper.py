"""A counterexample as a story: its steps, the state after each, its first bad step; and the page to step through it.

The page needs nothing else: no network, works from a file. Data is embedded as JSON and put on the page as text,
never as markup, because names and values in it come from the program that was checked.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from seriatim_models.history.event import Event
from seriatim_models.properties.base import AnyProperty, Finding, Verdict
from seriatim_models.report.reconstruct import (
    Recorded,
    State,
    Stepped,
    operation_and_line,
    states,
    touched,
)
from seriatim_models.report.story import BrokenProperty, StepRow, Story
from seriatim_models.report.templating import render

AROUND = 4  # lines of source are shown before and after that of a step
STEPS_MAX = 1000
"""More steps are not put on a page, which would grow beyond what a browser shows at once."""


class InterleavingStep(Stepped, Protocol):
    """A step as the explorer records it."""

    @property
    def preempts(self) -> bool: ...
    @property
    def records(self) -> Sequence[Recorded]: ...
    @property
    def place(self) -> tuple[str, int, str] | None: ...


class DoomedPrefix(Protocol):
    """After how many steps every continuation is wrong; as text, a sentence on it."""

    @property
    def step(self) -> int: ...


class Interleaving(Protocol):
    """A counterexample of the explorer, which this package does not import."""

    @property
    def program(self) -> str: ...
    @property
    def events(self) -> Sequence[InterleavingStep]: ...
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


class Repeatable(Protocol):
    """A counterexample whose program can be run again."""

    @property
    def lost(self) -> Callable[[], DoomedPrefix | None]: ...


class RepeatableInterleaving(Interleaving, Repeatable, Protocol):
    """Both."""


def story(
    case: Interleaving,
    findings: Iterable[Finding] = (),
    properties: Mapping[str, AnyProperty] | None = None,
    traceback: str = "",
) -> Story:
    """The counterexample as data for the page; `properties` are those that `findings` may name, by id.

    The first bad step is that of the last event that shows a violation. A liveness property is violated by what never
    happens: every step could still have been followed by it, and only the end is bad.
    """
    known = properties or {}
    violations = [f for f in findings if f.verdict is Verdict.VIOLATED]
    here = [f.witness for f in violations if all(_recorded(e, case.records) for e in f.witness)]
    witness = [e.t for shown in here for e in shown if e.t is not None]
    events, left_out = _shown(case)
    bad = 0
    if violations or case.violations:
        never = any(p.kind == "liveness" for f in violations if (p := known.get(f.property)))
        last = len(events)
        bad = last if never else min(max(witness, default=last), last) or last
    threads = list(dict.fromkeys([*case.threads, *(_lane(e) for e in events)]))
    files = short_names(e.place[0] for e in events if e.place)
    unique: dict[State, int] = {}
    indexes = [unique.setdefault(s, len(unique)) for s in states(events, case.records)]
    return Story(
        id="steps-" + re.sub(r"[^\w-]+", ".", case.program),
        title=case.program or "program",
        what=[str(v) for v in case.violations],
        broken=[broken_property(f, known) for f in violations],
        end=case.end,
        left_out=left_out,
        replay=case.replay,
        threads=threads,
        steps=[
            StepRow(
                n=at,
                lane=threads.index(_lane(e)),
                op=operation_and_line(e.op)[0],
                line=operation_and_line(e.op)[1],
                result=e.result,
                preempts=e.preempts,
                records=[_record(r) for r in e.records],
                state=indexes[at],
                witness=e.n in witness,
                place=None if e.place is None else (files[e.place[0]], *e.place[1:]),
            )
            for at, e in enumerate(events, 1)
        ],
        states=list(unique),
        initial=indexes[0],
        good=max(bad - 1, 0),
        bad=bad,
        arrows=happens_before(events),
        sources=_sources(events, files),
        traceback=traceback,
    )


def annotated(shown: Story, case: Repeatable) -> Story:
    """The story of a case, its first bad step the one from which on every continuation is wrong, if it can be found.

    If every schedule is wrong, the step of the last event that shows the violation stays the first bad one.
    This is the one definition: every page, picture and terminal shows what it returns.
    """
    lost = case.lost()
    if lost is None:
        return shown
    if lost.step == 0 or lost.step > len(shown.steps):
        no_return = f"{lost} The first bad step is where it shows."
        return msgspec.structs.replace(shown, no_return=no_return)
    no_return = f"{lost} That is the first bad step."
    return msgspec.structs.replace(shown, good=lost.step - 1, bad=lost.step, no_return=no_return)


def short_names(files: Iterable[str]) -> dict[str, str]:
    """A name for each file that is no longer than it needs to be: with the folders in which two of a name differ."""
    unique = dict.fromkeys(files)
    short: dict[str, str] = {}
    for file in unique:
        parts = file.replace("\\", "/").split("/")
        for kept in range(1, len(parts) + 1):
            short[file] = "/".join(parts[-kept:])
            if not any(
                f"/{other}".endswith(f"/{short[file]}") for other in unique if other != file
            ):
                break
    return short


def _sources(
    events: Iterable[InterleavingStep], files: Mapping[str, str]
) -> dict[str, dict[int, str]]:
    """The lines around the place of each step, as the interpreter has read them."""
    found: dict[str, dict[int, str]] = {}
    for file, line in sorted({e.place[:2] for e in events if e.place}):
        lines = linecache.getlines(file)
        shown = found.setdefault(files[file], {})
        for n in range(max(line - AROUND, 1), min(line + AROUND, len(lines)) + 1):
            shown[n] = lines[n - 1].rstrip("\n")
    return found


def _shown(case: Interleaving) -> tuple[Sequence[InterleavingStep], str]:
    """The steps that go on the page, and a sentence on the others."""
    events, period = case.events, case.period
    if period and len(events) > 4 * period + 8:  # a cycle is shown once, as in the text
        shown = max(len(events) % period + period, 8)
        reason = f"the last {period} steps repeat"
    elif len(events) > STEPS_MAX:
        shown, reason = STEPS_MAX, "there is no room for all"
    else:
        return events, ""
    return events[:shown], f"{reason}; {len(events) - shown} steps are not shown"


def _recorded(e: Event, records: Sequence[Recorded]) -> bool:
    """Whether a witness is an event of this execution and not of another."""
    return 0 <= e.i < len(records) and (records[e.i].ev, records[e.i].step) == (e.ev, e.t)


def _lane(step: Stepped) -> str:
    """The thread in whose column a step stands; an alarm stands in that of the thread that it wakes."""
    return step.thread.split("'s alarm ")[0]


def _record(r: Recorded) -> str:
    return " ".join([r.ev, *(f"{k}={v}" for k, v in r.args.items())])


def broken_property(f: Finding, properties: Mapping[str, AnyProperty]) -> BrokenProperty:
    """The property that a finding violates, with the explanation."""
    p = properties.get(f.property)
    return BrokenProperty(
        id=f.property,
        sentence=p.sentence if p else "",
        source=p.source if p else "",
        explanation=f.explanation,
    )


def happens_before(events: Sequence[Stepped]) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of steps of different threads on one object, not both reads; each read of a value once.

    Objects are known by their names. The nodes of a list share theirs, so the links inside lists are left out.
    """
    pairs = []
    write: dict[str, int] = {}
    reads: dict[str, dict[str, int]] = {}
    """Of each object, the last read by each thread since it was written."""
    for at, step in enumerate(events, 1):
        access = touched(step.op, step.result)
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
        pairs += [(b, at) for b in before if _lane(events[b - 1]) != lane]
    return pairs


def page(story: Story, command: str = "") -> str:
    """A page of its own that steps through one story. `command` makes the page again."""
    return render("stepper_page.html.j2", story=story, again=command)


def counterexample_page(case: RepeatableInterleaving) -> str:
    """The page of a counterexample of which nothing else is known: what `Counterexample.html` returns."""
    return page(annotated(story(case), case))
