"""The columnar evaluator: from a file to the findings of properties, in one process.

One pass reads the lines in blocks, completes the events and takes what each property declares to need:

- a property of message lifecycles: rows for the pre-filter (`prefilter`), which clears regular messages;
- a property with a `column_check`: columns (`columns`), which are checked at the end;
- a property with `case_events`: whether there is any such event;
- every other one is folded in its row-based form.

Irregular messages, and what a check cannot clear, are judged by the row-based form in a second pass over the completed
events, which are kept in a temporary file meanwhile (`second_look`).
Findings are those of the row-based form in every field; a test compares them on random histories.
Nothing of the history is held but the pre-filter's sixteen bytes a message, and columns of at most `COLUMNS_HELD`
bytes, which take twice as much again for the names of messages: of a history that is longer, or turns out irregular,
they are let go, and their properties are judged in the second pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Protocol

import msgspec

from seriatim_models.history.clean import CleanFiles
from seriatim_models.history.event import SETTLES, Event
from seriatim_models.history.faults import HistoryError
from seriatim_models.history.lines import DAMAGE
from seriatim_models.properties.base import AnyProperty, CaseEvents, Finding, Fold
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES, LifecycleProperty
from seriatim_models.properties.columnar.checks import loaded
from seriatim_models.properties.columnar.columns import Columns
from seriatim_models.properties.columnar.prefilter import IrregularMessages, Prefilter
from seriatim_models.properties.columnar.rows import rows_of_events
from seriatim_models.properties.columnar.second_look import SecondLook, encoded

CHUNK = 2048  # events of an iterable taken at a time
COLUMNS_HELD = 2**27
"""Bytes of columns that are held: those of some two and a half million events."""


def _blocks_of(events: Iterable[Event]) -> Iterator[list[Event]]:
    source = iter(events)
    while block := list(islice(source, CHUNK)):
        yield block


ColumnCheck = Callable[[Columns], Finding | None]
"""The finding of a property on a regular history, if it can be cleared by columns, with the exact counts of the
row-based form; None if not. Never reports a violation."""


def column_check(prop: AnyProperty) -> ColumnCheck | None:
    """The check that a property's own class declares; imported here, since its row-based form needs no numpy."""
    if not prop.own("column_check"):
        return None
    check: ColumnCheck = loaded(prop.column_check)
    return check


class Judged(msgspec.Struct):
    """Findings in the order of the properties, and what was read."""

    findings: list[Finding]
    files: list[tuple[int, int]]
    """Of each file its events, and its lines of header: none or one."""
    nbytes: int
    """See `Share`."""
    by_event: dict[str, int]
    shortened: list[str]
    """See `Share`."""

    @property
    def events(self) -> int:
        """The events of all files."""
        return sum(events for events, _ in self.files)


class Share(msgspec.Struct):
    """What some of the properties come to."""

    findings: list[Finding]
    """In the order of these properties."""
    nbytes: int
    """Bytes of the columns and of the pre-filter."""
    shortened: list[str]
    """Ids of those that were not judged event by event throughout: a pre-filter, a check or the absence of any case
    decided."""


class Elsewhere(Protocol):
    """Other processes, each of which judges by a share of the properties."""

    shares: Sequence[Sequence[int]]
    """The numbers of their properties."""

    def take(self, block: bytes) -> None:
        """Send the next completed events, `encoded`."""

    def end(self) -> None:
        """Say that those were all."""

    def judged(self) -> list[Share]:
        """What each share comes to, after the end."""


class Evaluation:
    """The judging of one history by some properties: one pass over it, and a second one if that is needed."""

    def __init__(self, properties: Sequence[AnyProperty], again: SecondLook) -> None:
        self.properties = properties
        self.findings: dict[int, Finding] = {}
        """By number of the property: what is decided."""
        self.n = 0
        """Events so far."""
        self.columns = Columns()
        self.prefilter = Prefilter()
        self.by_event: Counter[str] = Counter()
        numbered = dict(enumerate(properties))
        self._prefiltered = {
            n: p for n, p in numbered.items() if isinstance(p, LifecycleProperty) and p.prefiltered
        }
        self._checks = {
            n: check for n, p in numbered.items() if (check := column_check(p)) is not None
        }
        self._without_case = {n: p for n, p in numbered.items() if p.case_events is not None}
        """Properties of whose case events none was seen yet."""
        taken = {*self._prefiltered, *self._checks, *self._without_case}
        self._again = again if taken else None
        self._folded = Fold([p for n, p in numbered.items() if n not in taken], first=True)
        self._folded_numbers = [n for n in numbered if n not in taken]

    def _first_pass(self) -> list[str]:
        """Judge what was taken. Returns the ids of the properties that need no judging event by event throughout."""
        self.findings |= {n: Finding.of(p.id, 0) for n, p in self._without_case.items()}
        self.findings |= zip(self._folded_numbers, self._folded.finish(), strict=True)
        for n, check in self._checks.items():
            finding = check(self.columns)
            if finding is not None:
                self.findings[n] = finding
        decided = {*self.findings, *self._prefiltered}
        return [p.id for n, p in enumerate(self.properties) if n in decided]

    def take(self, block: Sequence[Event], raw: bytes = b"") -> None:
        """Add completed events, which follow those before; `raw` are the same ones `encoded`, if somebody did that."""
        names = Counter([e.ev for e in block])
        self.by_event.update(names)
        of = None
        if self._prefiltered:
            of = rows_of_events(enumerate(block, self.n), self.prefilter.holders)
            self.prefilter.take(*of)
        if self._again is not None:
            self._again.keep(self.n, raw or encoded(block), of)
        self.n += len(block)
        if self._checks:
            self.columns.feed(block)
            if self.columns.irregular or self.columns.nbytes > COLUMNS_HELD:
                self._checks, self.columns = {}, Columns()
        rare = [e for e in block if e.ev not in _COMMON]
        for n, p in list(self._without_case.items()):
            case = p.case_events
            assert case is not None
            looked_at = rare if case.names.isdisjoint(_COMMON) else block
            if not case.names.isdisjoint(names) and _has_case(case, looked_at):
                del self._without_case[n]
        self._folded.take(block)

    def finish(self) -> Share:
        """Every property's finding on what was taken."""
        shortened = self._first_pass()
        if self._again is not None:
            self._second_pass(self._again)
        findings = [self.findings[n] for n in range(len(self.properties))]
        return Share(findings, self.columns.nbytes + self.prefilter.nbytes, shortened)

    def _second_pass(self, again: SecondLook) -> None:
        """Judge event by event what could not be decided."""
        prefiltered = self.prefilter.finish()
        irregular = {n: IrregularMessages(prefiltered, p) for n, p in self._prefiltered.items()}
        if irregular and len(prefiltered.irregular):
            for chosen in again.about(prefiltered.irregular):
                for messages in irregular.values():
                    messages.take(chosen)
        decided = {*self.findings, *irregular}
        left = {n: p for n, p in enumerate(self.properties) if n not in decided}
        if left:
            fold = Fold(list(left.values()), first=True)
            for block in again.blocks():
                fold.take(block)
            self.findings |= zip(left, fold.finish(), strict=True)
        self.findings |= {n: messages.finish() for n, messages in irregular.items()}


def _has_case(case: CaseEvents, events: Sequence[Event]) -> bool:
    """Whether an event counts. Few events have the fields of one that does, which is seen without a call for each."""
    having = list(events) if not case.fields else []
    for name in case.fields:
        values, default = map(attrgetter(name), events), _DEFAULTS[name]
        having += [e for e, value in zip(events, values, strict=True) if value != default]
    return any(e.ev in case.names and case.matches(e) for e in having)


_COMMON = ACQUIRES | SETTLES | {"publish"}
_DEFAULTS = msgspec.structs.asdict(Event(i=0, ev=""))


def judge(events: Sequence[Event], properties: Sequence[AnyProperty] = BLACKBOX) -> list[Finding]:
    """Every property's finding on completed events held in memory, in the order given."""
    with SecondLook() as again:
        evaluation = Evaluation(properties, again)
        for block in _blocks_of(events):
            evaluation.take(block)
        return evaluation.finish().findings


def judge_files(
    paths: Sequence[str | Path],
    properties: Sequence[AnyProperty] = BLACKBOX,
    run: str = "",
    on_events: Callable[[int], None] | None = None,
    elsewhere: Elsewhere | None = None,
) -> Judged:
    """Every property's finding on the files of one recorder, in order; `run` is its name if they give none.

    `on_events` is called now and then with how many events have been read.

    Raises `NotClean` for files that are not clean qh/1 JSON lines of one run and recorder, and `HistoryError` for
    one that cannot be read, or where there is no room for the second look.
    """
    others = [] if elsewhere is None else [list(share) for share in elsewhere.shares]
    here = [n for n in range(len(properties)) if not any(n in share for share in others)]
    clean = CleanFiles(run)
    path = Path(paths[0])
    try:
        with SecondLook() as again:
            evaluation = Evaluation([properties[n] for n in here], again)
            for path in map(Path, paths):
                for block in clean.blocks(path):
                    raw = b""
                    if elsewhere is not None:
                        raw = encoded(block)
                        elsewhere.take(raw)
                    evaluation.take(block, raw)
                    if on_events is not None:
                        on_events(evaluation.n)
            if elsewhere is not None:
                elsewhere.end()
            shares = [evaluation.finish(), *([] if elsewhere is None else elsewhere.judged())]
    except DAMAGE as error:
        raise HistoryError(f"{path}: cannot be read: {error}") from error
    found = {
        n: _shown(finding, clean)
        for numbers, share in zip([here, *others], shares, strict=True)
        for n, finding in zip(numbers, share.findings, strict=True)
    }
    return Judged(
        findings=[found[n] for n in range(len(properties))],
        files=clean.files,
        nbytes=sum(share.nbytes for share in shares),
        by_event=dict(evaluation.by_event),
        shortened=[id for share in shares for id in share.shortened],
    )


def _shown(finding: Finding, clean: CleanFiles) -> Finding:
    return msgspec.structs.replace(finding, witness=[clean.shown(e) for e in finding.witness])
