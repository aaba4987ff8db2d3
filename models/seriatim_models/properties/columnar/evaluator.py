"""The fast form of the default set, from a file to its findings in one process.

One pass reads the lines in blocks, completes the events and takes what each judge needs:

- P1 to P3 give rows to a sieve (`sieve`), which acquits plain messages and says which are odd;
- P4 and P5 get columns (`columns`) and are screened at the end (`screens`);
- P10 to P13 and P15 are asked whether there is anything that they judge at all;
- P20 is folded until every queue has seen a message come back: from there on it only counts;
- the others are cheap automata already and are folded in the readable form.

Odd messages, and what a screen cannot acquit, are judged by the readable form in a second pass over the file.
Findings are those of the readable form in every field; a test compares them on random histories.
Nothing of the history is held but the columns, some sixty bytes an event, and the sieve's, sixteen a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from seriatim_models.history.complete import SETTLES, Completion
from seriatim_models.history.event import Event
from seriatim_models.history.faults import HistoryError
from seriatim_models.history.header import Header
from seriatim_models.history.lines import opened
from seriatim_models.history.reading import Reader
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES, LivesProperty, acquires
from seriatim_models.properties.columnar.columns import Columns, Names
from seriatim_models.properties.columnar.order_checks import SCREENED, Screen
from seriatim_models.properties.columnar.prefilter import Rest, Sieve, Sieved, fits
from seriatim_models.properties.columnar.rows import FEW, rows_of_events

BLOCK = 2**20  # bytes of lines decoded at a time
CHUNK = 8192  # events of an iterable taken at a time

_decoder = msgspec.json.Decoder(Event)


class NotFast(ValueError):
    """The fast form does not read this file; the message says why. The readable form does."""


def blocks(path: str | Path, run: str = "") -> Iterator[list[Event]]:
    """The events of a clean qh/1 file, completed, in blocks. Raises `NotFast` for anything out of the ordinary."""
    path = Path(path)
    reader = Reader(path, run=run)
    header = reader.header
    if header.schema != "qh/1" or path.suffix == ".parquet":
        raise NotFast(f"{path}: only JSON lines of qh/1 are read by columns")
    completion = Completion()
    last = None
    with opened(path) as text:
        if reader.n_header:
            text.readline()
        for events in _decoded(text, header, path):
            for event in events:
                if last is not None and event.i <= last:
                    raise NotFast(f"{path}: index {event.i} does not rise")
                last = event.i
            yield [completion(event) for event in events]


def _decoded(text: Any, header: Header, path: Path) -> Iterator[list[Event]]:
    """Blocks of events as they stand in the file, with the header's defaults."""
    rest = b""
    # Any above: what `opened` gives is one of two stream types that share `read`
    while block := text.read(BLOCK):
        whole, newline, tail = (rest + block).rpartition(b"\n")
        rest = tail
        if newline:
            yield _checked(whole, header, path)
    if rest:
        yield _checked(rest, header, path)


_PHASES = {"", "invoke", "ok", "fail", "info"}


def _checked(raw: bytes, header: Header, path: Path) -> list[Event]:
    try:
        events = _decoder.decode_lines(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotFast(f"{path}: a line is no event: {error}") from None
    if len(events) != raw.count(b"\n") + 1:
        raise NotFast(f"{path}: a line is empty")
    if len({header.clk, *(e.clk for e in events)} - {""}) > 1:
        raise NotFast(f"{path}: times of several clocks")
    out = []
    for e in events:
        if e.run not in ("", header.run) or e.rec not in ("", header.rec):
            raise NotFast(f"{path}: events of several runs or recorders")
        if e.ph not in _PHASES or (e.ev in ("publish", "deliver") and not e.m):
            raise NotFast(f"{path}: event {e.i} is not as it should be")
        # Of the header's defaults only the level matters to a verdict; see `_named` for the others.
        out.append(e if e.lvl else msgspec.structs.replace(e, lvl=header.lvl))
    return out


def _prepared(events: Iterable[Event]) -> Iterator[list[Event]]:
    source = iter(events)
    while block := list(islice(source, CHUNK)):
        yield block


_NOTHING: dict[str, Callable[[Event], bool]] = {
    "P10": lambda e: (
        e.ev in ("consume", "declare")
        and (bool(e.exclusive) or bool(e.args.get("x-single-active-consumer")))
    ),
    "P11": lambda e: e.ev == "consume" and e.cprio is not None,
    "P12": lambda e: e.ev == "cb_begin",
    "P13": lambda e: e.ev == "rpc",
    "P15": lambda e: e.pos is not None,
}
"""Without such an event the property has no case and nothing untestable."""


class _Linear:
    """P20, folded until every queue that is read from has had a message back, then counted."""

    def __init__(self, prop: AnyProperty) -> None:
        self.prop = prop
        self.summary = prop.begin()
        self.out = False
        self.known: set[str] = set()
        self.more = 0

    def take(self, block: Sequence[Event]) -> None:
        if self.out:
            for e in block:
                if e.ev in ACQUIRES and e.ph not in ("invoke", "fail"):
                    if e.q not in self.known:
                        self.out = False  # a new queue: from here on fold again
                    self.more += acquires(e) or (e.ev == "get" and e.ph != "info")
            if self.out:
                return
            raise NotFast("a queue that is first read late")
        self.summary = self.prop.combine(self.summary, self.prop.map(block))
        queues = self.summary.state.queues
        self.known = set(queues)
        read = [q for q in queues.values() if q.published or q.pushed or q.pending]
        self.out = bool(read) and all(q.out for q in queues.values())

    def finish(self) -> Finding:
        found = self.prop.finish(self.summary)
        return msgspec.structs.replace(found, n_untestable=found.n_untestable + self.more)


class Judged(msgspec.Struct):
    """Findings in the order of the properties, and what was read."""

    findings: list[Finding]
    events: int
    header: int
    """Lines of header: none or one."""
    nbytes: int
    """Bytes of the columns and of the sieve."""
    by_event: dict[str, int]
    screened: list[str]
    """Ids that were not judged event by event throughout: a sieve, a screen or the absence of any case decided."""


class _Pass:
    """One pass over a history for some properties; `found` has those that the fast form can decide."""

    def __init__(self, properties: Sequence[AnyProperty]) -> None:
        self.properties = properties
        self.found: dict[int, Finding] = {}
        self.columns = Columns()
        self.sieve = Sieve()
        self.by_event: Counter[str] = Counter()
        numbered = list(enumerate(properties))
        self._sifted: dict[int, LivesProperty] = {
            n: p for n, p in numbered if isinstance(p, LivesProperty) and fits(p)
        }
        self._screened = [(n, p) for n, p in numbered if p.id in SCREENED]
        self._absent = {n: p.id for n, p in numbered if p.id in _NOTHING}
        self._linear = {n: _Linear(p) for n, p in numbered if p.id == "P20"}
        taken = {n for n, _ in self._screened} | set(self._absent) | set(self._linear)
        taken |= set(self._sifted)
        self._folded = [(n, p) for n, p in numbered if n not in taken]
        # Any: each property knows the type of its own summary
        self._summaries: dict[int, Any] = {n: p.begin() for n, p in self._folded}

    def run(self, source: Iterable[list[Event]]) -> list[str]:
        """The first reading. Says which properties need not be judged event by event throughout."""
        for block in source:
            self._take(block)
        self.found |= {n: Finding.of(id, 0) for n, id in self._absent.items()}
        self.found |= {n: p.finish(self._summaries[n]) for n, p in self._folded}
        self.found |= {n: linear.finish() for n, linear in self._linear.items()}
        if self._screened and not self.columns.odd:
            screen = Screen(self.columns)
            for n, p in self._screened:
                finding = screen.judge(p)
                if finding is not None:
                    self.found[n] = finding
        decided = {*self.found, *self._sifted}
        return [p.id for n, p in enumerate(self.properties) if n in decided]

    def findings(self, again: Callable[[], Iterable[list[Event]]]) -> list[Finding]:
        """Every property's finding; `again` begins a second reading, if one is needed."""
        sieved = self.sieve.finish()
        rests = {n: Rest(sieved, p) for n, p in self._sifted.items()}
        left = {
            n: p for n, p in enumerate(self.properties) if n not in self.found and n not in rests
        }
        if left or (rests and len(sieved.odd)):
            self._second(again(), sieved, rests, left)
        self.found |= {n: rest.finish() for n, rest in rests.items()}
        return [self.found[n] for n in range(len(self.properties))]

    def _second(
        self,
        source: Iterable[list[Event]],
        sieved: Sieved,
        rests: dict[int, Rest],
        left: dict[int, AnyProperty],
    ) -> None:
        # Any: each property knows the type of its own summary
        summaries: dict[int, Any] = {n: p.begin() for n, p in left.items()}
        read = 0
        for block in source:
            for n, p in left.items():
                part = p.map(e for e in block if e.ev in p.reads)
                summaries[n] = p.combine(summaries[n], part)
            if rests and len(sieved.odd):
                placed = list(enumerate(block, read))
                odd = set(sieved.about_odd(rows_of_events(placed, Names()).rows).tolist())
                chosen = [(at, e) for at, e in placed if at in odd or e.ev in FEW]
                for rest in rests.values():
                    rest.take(chosen)
            read += len(block)
        self.found |= {n: p.finish(summaries[n]) for n, p in left.items()}

    def _take(self, block: list[Event]) -> None:
        self.by_event.update(e.ev for e in block)
        if self._sifted:
            placed = enumerate(block, self.columns.n)
            self.sieve.take(*rows_of_events(placed, self.sieve.holders))
        self.columns.feed(block)
        few = [e for e in block if e.ev not in _COMMON]
        for n, id in list(self._absent.items()):
            if any(map(_NOTHING[id], block if id == "P15" else few)):
                del self._absent[n]
        for n, p in self._folded:
            # A property without `reads` reads all.
            part = (e for e in block if e.ev in p.reads) if p.reads else iter(block)
            self._summaries[n] = p.combine(self._summaries[n], p.map(part))
        for n, linear in list(self._linear.items()):
            try:
                linear.take([e for e in block if e.ev in linear.prop.reads])
            except NotFast:
                del self._linear[n]


_COMMON = ACQUIRES | SETTLES | {"publish"}


def judge(events: Sequence[Event], properties: Sequence[AnyProperty] = BLACKBOX) -> list[Finding]:
    """Every property's finding on completed events held in memory, in the order given."""
    fast = _Pass(properties)
    fast.run(_prepared(events))
    return fast.findings(lambda: _prepared(events))


def judge_file(
    path: str | Path, properties: Sequence[AnyProperty] = BLACKBOX, run: str = ""
) -> Judged:
    """Every property's finding on a file; `run` is its name if it gives none.

    Raises `NotFast` for a file that is not clean qh/1 JSON lines of one run and recorder, `HistoryError` for one that
    cannot be read.
    """
    try:
        fast = _Pass(properties)
        screened = fast.run(blocks(path, run))
        findings = fast.findings(lambda: blocks(path, run))
    except (OSError, EOFError) as error:
        raise HistoryError(f"{path}: cannot be read: {error}") from error
    reader = Reader(path, run=run)
    return Judged(
        findings=[_named(finding, reader.header) for finding in findings],
        events=fast.columns.n,
        header=reader.n_header,
        nbytes=fast.columns.nbytes + fast.sieve.nbytes,
        by_event=dict(fast.by_event),
        screened=screened,
    )


def _named(finding: Finding, header: Header) -> Finding:
    """The finding with what the header says for all events, which only those shown need."""
    witness = [
        msgspec.structs.replace(
            e, run=e.run or header.run, rec=e.rec or header.rec, clk=e.clk or header.clk
        )
        for e in finding.witness
    ]
    return msgspec.structs.replace(finding, witness=witness)
