"""From files to runs: what belongs together, in which order, and the one stream of events that every engine judges.

- A run is what one header (or event) calls so. A file that names none is a run of its own, named after the file;
  but one that begins in the middle is a part of the recording of its folder that ends right before it
  (`history.parts`), and is read with the header of that.
- Files of one run and one recorder are parts, read one after another by their first index.
- Several recorders of one run are merged by time; so they must share a clock. Two clock domains in one run are
  refused, because nothing orders their events.
- In a run the order is that of time, see `history.order`. An event without a stamp, or after a clock was set back,
  counts as simultaneous with the one before it.
- Several recorders in one file are read as they stand there. A line that stands more than `WAITS` behind a later one of
  another recorder, though its own recorder's stamps rise, is in a file that was put together without sorting it: such
  a file cannot be read.
- Where lines were lost, a `gap` event stands in their place; duplicates lose nothing and leave none.
- Two recordings of one run by one recorder name are duplicates: the first stands, the lines of the second go to the
  quarantine one by one.
- An event of another clock than its recorder's first keeps its place and loses its times: nothing compares them. Like
  any event without a stamp among others it gets those of the events beside it as bounds, see `history.order`.
- A recording whose first index is above 1 begins in the middle: a `gap` stands in front of it, unless its header says
  ``"params": {"whole": true}``.
- A recorder whose header says ``"params": {"unrecorded": [...]}`` has a `gap` of those kinds beside each of its events.
- A recorder whose header says ``"params": {"complete": true}`` filled in itself what `history.complete` would.
- A file that changes while it is read is like one that breaks off at its end: what was read stands, the file is in the
  quarantine, and a later audit reads it anew.

A file named by the caller that cannot be read is an error. A file found in a folder that cannot be read goes into the
quarantine as a whole, or from where it breaks, and the rest is audited.
"""

from __future__ import annotations

import heapq
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from pathlib import Path

import msgspec

from seriatim_models.files import CHANGED, GONE, Fingerprint, fingerprint, text_of
from seriatim_models.history import Event, HistoryError, Rejected
from seriatim_models.history.complete import Completion
from seriatim_models.history.event import GAP
from seriatim_models.history.header import Header
from seriatim_models.history.indices import Indices
from seriatim_models.history.lines import PACKED_OTHERWISE
from seriatim_models.history.order import MOST_WAITING, RecordersOfFile, StampOrder, rank, ranked
from seriatim_models.history.parts import continued
from seriatim_models.history.reading import SUFFIXES, Reader, named_as_history, stem
from seriatim_models.history.unrecorded import gap_beside, unrecorded


class Source(msgspec.Struct, frozen=True):
    """One file. `named` says that the caller named it himself, so that it must be readable."""

    path: str
    named: bool
    continues: Header | None = None
    """The header of the recording that it is a later part of, if it has none itself."""


class RunPlan(msgspec.Struct, frozen=True):
    """The files of one run, by recorder."""

    run: str
    recorders: list[list[Source]]


class Plan(msgspec.Struct):
    """All runs, by name, and the files in folders that cannot even be opened."""

    runs: list[RunPlan]
    refused: list[Rejected]


class FileCount(msgspec.Struct, frozen=True):
    """``lines == header + blank + events + rejected``; for Parquet a line is a row."""

    source: str
    lines: int
    header: int
    blank: int
    events: int
    rejected: int

    def __add__(self, other: FileCount) -> FileCount:
        """The counts of two pieces of one file."""
        return FileCount(
            self.source,
            self.lines + other.lines,
            self.header + other.header,
            self.blank + other.blank,
            self.events + other.events,
            self.rejected + other.rejected,
        )


class Placed(msgspec.Struct, frozen=True):
    """An event of a run, in the run's order."""

    run: str
    event: Event
    complete: bool = False
    """Its recorder filled in what others imply, or `Completions` did."""


RunItem = Placed | Rejected | FileCount

HISTORIES = (*SUFFIXES, *PACKED_OTHERWISE)
"""Names that are looked for in folders, be it to say that what has them is not read."""


def find(paths: Iterable[str | Path]) -> list[Source]:
    """The files that the caller named, and the histories in the folders that he named, each once.

    Raises `HistoryError` for a path that is not there and for folders without a single history.
    """
    given = list(paths)
    if (
        "" in given
    ):  # would be the current folder: most likely a variable of the shell that is not set
        raise HistoryError("'' names no file and no folder")
    named = [Path(p) for p in given]
    out: dict[Path, Source] = {}
    for path in named:
        if path.is_dir():
            for inner in histories_in(path, HISTORIES):
                out.setdefault(Path(os.path.realpath(inner)), Source(str(inner), False))
        elif path.exists():
            out[path.resolve()] = Source(str(path), True)
        else:
            raise HistoryError(f"{path}: cannot be read: no such file or folder")
    if not out:
        where = ", ".join(map(str, named)) or "nothing"
        raise HistoryError(f"{where}: no history there (looked for {', '.join(SUFFIXES)})")
    return list(out.values())


def histories_in(folder: Path, suffixes: tuple[str, ...] = SUFFIXES) -> list[Path]:
    """What is named as a history in a folder and those below it, be it a pipe or a link to nothing; and the folders
    that cannot be listed. Links to folders are not followed.
    """
    unlisted: list[Path] = []

    def missed(error: OSError) -> None:
        unlisted.append(Path(os.fsdecode(error.filename)))

    found = [
        Path(where, name)
        for where, _, names in os.walk(folder, onerror=missed)
        for name in names
        if named_as_history(name, suffixes)
    ]
    return sorted(found + unlisted)


def plan(paths: Iterable[str | Path]) -> Plan:
    """What to audit. Reads the head of every file. Raises `HistoryError`."""
    headers: list[tuple[Source, Header, str]] = []
    refused = []
    sources = find(paths)
    names = _own_names(sources)
    nameless: dict[Path, Header] = {}
    others: dict[Path, Header] = {}
    for source in sources:
        try:
            reader = Reader(source.path, run=names[source.path])
        except HistoryError as error:
            if source.named:
                raise
            refused.append(whole(source.path, error))
            continue
        headers.append((source, reader.header, reader.header.run))
        of = others if reader.names_run else nameless
        of[Path(source.path).absolute()] = reader.header
    later = continued(nameless, others)
    for n, (source, _, _) in enumerate(headers):
        _, begun = later.get(Path(source.path).absolute(), (None, None))
        if begun is not None:
            source = msgspec.structs.replace(source, continues=begun)
            headers[n] = source, begun, begun.run
    runs: dict[str, dict[str, list[Source]]] = defaultdict(lambda: defaultdict(list))
    clocks: dict[str, tuple[str, str]] = {}

    def check_clock(run: str, path: str, mine: str) -> None:
        clk, other = clocks.setdefault(run, (mine, path)) if mine else ("", "")
        if clk != mine:
            raise HistoryError(f"{path}: {two_clocks(run, mine, clk, other)}")

    for source, header, run in headers:
        runs[run][header.rec].append(source)
        check_clock(run, source.path, header.clk)
    plans = [
        RunPlan(run, [_in_order(parts) for _, parts in sorted(recorders.items())])
        for run, recorders in sorted(runs.items())
    ]
    for planned in plans:
        for first, *_ in planned.recorders if len(planned.recorders) > 1 else ():
            check_clock(planned.run, first.path, first_clock(first.path))
    if not plans:
        raise HistoryError(f"{refused[0].source}: {refused[0].reason}")
    return Plan(plans, refused)


def first_clock(path: str) -> str:
    """The clock of the first event of a file; empty if it names none or cannot be read."""
    try:
        return next((e.clk for e in Reader(path) if isinstance(e, Event)), "")
    except HistoryError:
        return ""  # whoever reads all of it says so


def two_clocks(run: str, mine: str, clk: str, other: str) -> str:
    """Why a file with the clock `mine` is refused, if `other` of the same run has the clock `clk`."""
    return (
        f"field clk: run {run} has clock {mine!r} here and {clk!r} in {other}, and times of two clocks do not compare: "
        f"record all of a run by one clock, or in one file"
    )


def _own_names(sources: Sequence[Source]) -> dict[str, str]:
    """The run of each file that names none: its stem, or its whole path where two files share a stem."""
    stems: dict[str, int] = defaultdict(int)
    for source in sources:
        stems[stem(Path(source.path))] += 1
    return {s.path: name if stems[name := stem(Path(s.path))] == 1 else s.path for s in sources}


def _in_order(parts: list[Source]) -> list[Source]:
    """The parts of one recorder by their first index."""
    if len(parts) == 1:
        return parts

    def first(part: Source) -> tuple[int, str]:
        try:
            return next((e.i for e in Reader(part.path) if isinstance(e, Event)), 0), part.path
        except HistoryError:
            return 0, part.path

    return sorted(parts, key=first)


def whole(path: str, why: HistoryError | str) -> Rejected:
    """A file, or what is left of it, in quarantine."""
    source = text_of(path)
    reason = str(why).removeprefix(f"{source}: ")
    return Rejected(source=source, line=0, offset=0, reason=reason, text="")


class Carry(msgspec.Struct):
    """What reading a recorder's parts leaves behind, so that its next part can be read without them."""

    run: str
    seen: dict[tuple[str, str], Indices] = {}
    """By run and recorder; may be that of several recorders."""
    begun: dict[tuple[str, str], None] = {}
    """Of which run and recorder some event was read."""
    last: dict[str, Event] = {}
    """By run: its latest event, for the place of a gap."""
    clocks: dict[tuple[str, str], str] = {}
    at: int = 0
    lost: bool = False
    in_gap: bool = False
    waits: bool = False
    """Lines were seen that had waited, see `history.order`."""
    unrecorded: bool = False
    """The latest event was of a part that declares what its recorder never writes: a `gap` stands behind it."""
    stamp: Fingerprint = GONE
    """Of the part read last, as it was when its reading began."""


class Completions(msgspec.Struct):
    """Fills in each run's events from those before them, of all its recorders: give it the items in their order."""

    of: dict[str, Completion] = {}

    def __call__(self, item: RunItem) -> RunItem:
        """The item; an event with what those before it imply."""
        if not isinstance(item, Placed) or item.complete:
            return item
        completion = self.of.get(item.run)
        if completion is None:
            completion = self.of[item.run] = Completion()
        return Placed(item.run, completion(item.event), True)


def read(run: RunPlan) -> Iterator[RunItem]:
    """The run's events in order, its rejected lines, and at the end of each file its counts.

    Raises `HistoryError` for a file that the caller named.
    """
    seen: dict[tuple[str, str], Indices] = {}
    completions = Completions()
    streams = [recorder(Carry(run.run, seen), parts) for parts in run.recorders]
    firsts = [list(islice(stream, 1)) for stream in streams]
    # What a recorder whose beginning is missing saw came before its first event, beside what the others saw: until
    # then lines are lost all the while.
    missing = [
        item
        for _, item in chain.from_iterable(firsts)
        if isinstance(item, Placed) and item.event.ev == GAP
    ]
    going_on = len(streams) > 1 and bool(missing)
    if going_on:
        yield completions(missing[0])
    for _, item in merged(map(chain, firsts, streams)):
        yield completions(item)
        if going_on and isinstance(item, Placed):
            missing = [gap for gap in missing if gap is not item]
            going_on = bool(missing)
            if going_on:
                gap = msgspec.structs.replace(
                    missing[0].event, t=item.event.t, args={"going_on": True}
                )
                yield completions(Placed(item.run, gap))


def merged(streams: Iterable[Iterable[tuple[int, RunItem]]]) -> Iterator[tuple[int, RunItem]]:
    """The items of several recorders in the order of time; of those stamped alike see `history.order`."""
    of = list(streams)
    if len(of) == 1:
        return iter(of[0])
    ranked_items = heapq.merge(*map(_ranked, of), key=itemgetter(0, 1))
    return ((at, item) for at, _, item in ranked_items)


def _ranked(
    stream: Iterable[tuple[int, RunItem]],
) -> Iterator[tuple[int, tuple[int, int], RunItem]]:
    """The items of a recorder, each with its place in time and among those of others that are stamped alike."""
    for at, alike in groupby(stream, itemgetter(0)):
        items = (item for _, item in alike)
        while held := list(islice(items, MOST_WAITING)):
            ranks = [rank(item.event) if isinstance(item, Placed) else 0 for item in held]
            yield from zip(repeat(at), ranked(ranks), held)


def recorder(carry: Carry, parts: Iterable[Source]) -> Iterator[tuple[int, RunItem]]:
    """The items of some parts of one recorder, each with its place in time, going on from `carry`. Events are as they
    were recorded: see `Completions`.

    Raises `HistoryError` for a file that the caller named.
    """
    for part in parts:
        stamp = carry.stamp = fingerprint(part.path)
        reader = None
        try:
            if not part.named:
                _sorted_recorders(part)
            reader = Reader(part.path, run=carry.run, seen=carry.seen, continues=part.continues)
            order = StampOrder(carry.waits)
            yield from _part(carry, reader, order)
            carry.waits = order.waits
            if fingerprint(part.path) != stamp:
                raise HistoryError(f"{part.path}: {CHANGED}")
        except HistoryError as error:
            if part.named:
                raise
            if reader is not None and reader.n_events:
                for gap in _gaps(carry):
                    yield carry.at, gap
            yield carry.at, whole(part.path, error)
        if reader is not None:
            yield carry.at, _counted(reader)


def _sorted_recorders(part: Source) -> None:
    """Read a file of several recorders ahead: what stands in front of one that is not in order may not be judged
    without what follows. A file that names its recorder, or none, is not read.

    Raises `HistoryError` for a file whose recorders do not stand in the order of time.
    """
    reader = Reader(part.path)
    recorders = RecordersOfFile()
    if reader.header.rec:
        return
    for item in reader:
        if isinstance(item, Rejected):
            continue
        if not item.rec:
            return
        recorders.take(reader.source, item)


def _placed(
    carry: Carry, kinds: list[str], complete: bool, events: Iterable[Event]
) -> Iterator[tuple[int, RunItem]]:
    """Events of a part, each with its place in time; beside each what may be missing of `kinds`, if there are any."""
    for event in events:
        if event.t is not None:
            carry.at = max(carry.at, event.t)
        beside = Placed(event.run, gap_beside(event, kinds), complete) if kinds else None
        if beside and not carry.unrecorded:
            yield carry.at, beside
        carry.unrecorded = beside is not None
        yield carry.at, Placed(event.run, event, complete)
        if beside:
            yield carry.at, beside


def _part(carry: Carry, reader: Reader, order: StampOrder) -> Iterator[tuple[int, RunItem]]:
    run = carry.run
    complete = reader.header.params.get("complete") is True

    placed = partial(_placed, carry, unrecorded(reader.header), complete)
    whole_run = reader.header.params.get("whole") is True
    recorders = RecordersOfFile()
    for item in reader:
        if isinstance(item, Rejected):
            yield from placed(order.rest())
            yield carry.at, item
            if not item.duplicate and not carry.in_gap:
                yield from lose(carry)
            continue
        carry.in_gap = False
        key = (item.run, item.rec)
        if item.clk and carry.clocks.setdefault(key, item.clk) != item.clk:
            item = msgspec.structs.replace(item, t=None, t_lo=None, t_hi=None)
        recorders.take(reader.source, item)
        if key not in carry.begun:
            yield from placed(order.rest())
            if item.t is not None:
                carry.at = max(carry.at, item.t)
            carry.begun[key] = None
            if not carry.last and item.i > 1 and not (complete or whole_run):
                gap = Event(i=item.i, ev=GAP, run=item.run, rec=item.rec, t=item.t)
                yield carry.at, Placed(item.run, gap)
            if carry.lost and item.run not in carry.last and item.run != run:
                yield carry.at, Placed(item.run, Event(i=item.i, ev=GAP, run=item.run, t=item.t))
        carry.last[item.run] = item
        yield from placed(order.take(item))
    yield from placed(order.rest())


def lose(carry: Carry) -> Iterator[tuple[int, RunItem]]:
    """Lines of this recorder that follow what was read so far will never be read: the gap in their place."""
    carry.lost = carry.in_gap = True
    for gap in _gaps(carry):
        yield carry.at, gap


def _counted(reader: Reader) -> FileCount:
    return FileCount(
        source=reader.source,
        lines=reader.n_lines,
        header=reader.n_header,
        blank=reader.n_blank,
        events=reader.n_events,
        rejected=reader.n_rejected,
    )


def _gaps(carry: Carry) -> list[Placed]:
    """Lines were lost: a gap in every run that the file has shown, since the lost lines may be of any."""
    gaps = []
    for name in carry.last or (carry.run,):
        before = carry.last.get(name)
        gaps.append(
            Placed(
                name,
                Event(
                    i=before.i if before else 0,
                    ev=GAP,
                    run=name,
                    rec=before.rec if before else "",
                    t=before.t if before else None,
                ),
            )
        )
    return gaps
