"""The fast form of the default set, from a file to its findings in one process.

One pass reads the lines in blocks, completes the events and takes what each judge needs:

- P1 to P5 get columns (`columns`) and are screened at the end (`screens`);
- P10 to P13 and P15 are asked whether there is anything that they judge at all;
- P20 is folded until every queue has seen a message come back: from there on it only counts;
- the others are cheap automata already and are folded in the readable form.

What a screen cannot acquit is judged by the readable form in a second pass over the file.
Findings are those of the readable form in every field; a test compares them on random histories.
Nothing of the history is held but the columns, about a hundred bytes an event.
"""

from __future__ import annotations

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
from seriatim_models.properties.blackbox.lives import ACQUIRES, acquires
from seriatim_models.properties.fast.columns import Columns
from seriatim_models.properties.fast.screens import Screen

BLOCK = 2**20  # bytes of lines decoded at a time
CHUNK = 8192  # events of an iterable taken at a time

_decoder = msgspec.json.Decoder(Event)


class NotFast(ValueError):
    """The fast form does not read this file; the message says why. The readable form does."""


def blocks(path: str | Path) -> Iterator[list[Event]]:
    """The events of a clean qh/1 file, completed, in blocks. Raises `NotFast` for anything out of the ordinary."""
    path = Path(path)
    reader = Reader(path)
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


def _pass(
    source: Iterator[list[Event]], properties: Sequence[AnyProperty]
) -> tuple[dict[str, Finding], Columns]:
    """Findings by property, of those that the fast form can give; the others are missing."""
    columns = Columns()
    by_id = {p.id: p for p in properties}
    absent = {id: test for id, test in _NOTHING.items() if id in by_id}
    screened = {"P1", "P2", "P3", "P4", "P5"} & set(by_id)
    linear = _Linear(by_id["P20"]) if "P20" in by_id else None
    folded = [
        p for p in properties if p.id not in screened and p.id not in _NOTHING and p.id != "P20"
    ]
    # Any: each property knows the type of its own summary
    summaries: list[Any] = [p.begin() for p in folded]
    common = ACQUIRES | SETTLES | {"publish"}
    for block in source:
        columns.feed(block)
        few = [e for e in block if e.ev not in common]
        for id in [
            id for id, test in absent.items() if any(map(test, block if id == "P15" else few))
        ]:
            del absent[id]
        for n, p in enumerate(folded):
            summaries[n] = p.combine(summaries[n], p.map(e for e in block if e.ev in p.reads))
        if linear is not None:
            try:
                linear.take([e for e in block if e.ev in linear.prop.reads])
            except NotFast:
                linear = None
    findings = {id: Finding.of(id, 0) for id in absent}
    findings |= {p.id: p.finish(s) for p, s in zip(folded, summaries, strict=True)}
    if linear is not None:
        findings["P20"] = linear.finish()
    if not columns.odd:
        screen = Screen(columns)
        for id, judge in (
            ("P1", screen.p1), ("P2", screen.p2), ("P3", screen.p3), ("P4", screen.p4), ("P5", screen.p5),
        ):  # fmt: skip
            if id in screened and (finding := judge()) is not None:
                findings[id] = finding
    return findings, columns


def judge(events: Sequence[Event], properties: Sequence[AnyProperty] = BLACKBOX) -> list[Finding]:
    """Every property's finding on completed events held in memory, in the order given."""
    findings, _ = _pass(_prepared(events), properties)
    return [findings[p.id] if p.id in findings else p.check(events) for p in properties]


def judge_file(
    path: str | Path, properties: Sequence[AnyProperty] = BLACKBOX
) -> tuple[list[Finding], int, int]:
    """Every property's finding on a file, the number of events, and the bytes of its columns.

    Raises `NotFast` for a file that is not clean qh/1 JSON lines of one run and recorder, `HistoryError` for one that
    cannot be read.
    """
    try:
        findings, columns = _pass(blocks(path), properties)
        left = [p for p in properties if p.id not in findings]
        if left:
            summaries: list[Any] = [p.begin() for p in left]
            for block in blocks(path):
                for n, p in enumerate(left):
                    summaries[n] = p.combine(
                        summaries[n], p.map(e for e in block if e.ev in p.reads)
                    )
            findings |= {p.id: p.finish(s) for p, s in zip(left, summaries, strict=True)}
    except (OSError, EOFError) as error:
        raise HistoryError(f"{path}: cannot be read: {error}") from error
    header = Reader(path).header
    return [_named(findings[p.id], header) for p in properties], columns.n, columns.nbytes


def _named(finding: Finding, header: Header) -> Finding:
    """The finding with what the header says for all events, which only those shown need."""
    witness = [
        msgspec.structs.replace(
            e, run=e.run or header.run, rec=e.rec or header.rec, clk=e.clk or header.clk
        )
        for e in finding.witness
    ]
    return msgspec.structs.replace(finding, witness=witness)
