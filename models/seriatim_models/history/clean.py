"""Clean recordings read in blocks: several times as fast as a line at a time, and to the same events.

Clean are files of JSON lines of qh/1, of one run and one recorder, in which each line is an event, indices rise, stamps
do not fall and nothing is missing. All else raises `NotClean`, and is read by line (`reading.Reader`), which says what
is wrong, and `pipeline.audit.runs`, which puts it in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, ge, gt
from pathlib import Path
from typing import Any

import msgspec

from seriatim_models.history.complete import Completion
from seriatim_models.history.decode import BadLine, all_checked
from seriatim_models.history.event import Event
from seriatim_models.history.header import Header, declared
from seriatim_models.history.indices import Indices
from seriatim_models.history.lines import LINE_MAX, PARQUET, first_bytes, opened, room
from seriatim_models.history.reading import Reader
from seriatim_models.history.unrecorded import unrecorded

BLOCK = 2**18
"""Bytes of lines decoded at a time: so few events that they are still in the processor's cache while each property
looks at them, and so many that what is done once a block costs little."""

_decoder = msgspec.json.Decoder(Event)
_set = msgspec.structs.force_setattr
_who = attrgetter("run", "clk", "rec", "conn", "ch")


class NotClean(ValueError):
    """This file is not read in blocks; the message says why."""


class CleanFiles:
    """Reads clean files of one run and recorder, each of which goes on where the one before ended."""

    def __init__(self, run: str = "", *, named: bool = False) -> None:
        """`run` is their name if they give none. `named`: each event says its run, recorder and clock, also where the
        header says it for all; no verdict depends on that, and it costs a tenth of an audit (`shown`).
        """
        self.run = run
        self.named = named
        self._recorder: bool | None = named or None
        """Whether each event says its recorder; None before the first."""
        self.header: Header | None = None
        self.complete = False
        """Its recorder filled in what others imply: his own word on that is the last one."""
        self.files: list[tuple[int, int]] = []
        """Of each file its events, and its lines of header: none or one."""
        self.completion = Completion()
        self.last: Event | None = None
        """The latest event, as it was recorded."""
        self.indices = Indices()
        self.clock = ""
        """The clock that events name; empty as long as none does."""
        self.newest: int | None = None
        """The latest stamp, if there was one."""
        self._unstamped = False

    def blocks(self, path: Path) -> Iterator[list[Event]]:
        """The events of the next file, completed, in blocks. Raises `NotClean` for anything out of the ordinary."""
        reader = Reader(path, run=self.run)
        header = reader.header
        if header.schema != "qh/1" or first_bytes(path) == PARQUET:
            raise NotClean(f"{path}: only JSON lines of qh/1 are read in blocks")
        if self.header not in (None, header):
            raise NotClean(f"{path}: another header than that of the file before")
        if unrecorded(header):
            raise NotClean(f"{path}: events may be missing anywhere")
        self.header = header
        self.complete = header.params.get("complete") is True
        whole = self.complete or header.params.get("whole") is True
        n = 0
        with opened(path) as text:
            if reader.n_header:
                text.readline()
            for events in _decoded(text, path):
                self._take_defaults(events, header, path)
                if self.last is None and events[0].i > 1 and not whole:
                    raise NotClean(f"{path}: begins in the middle, at index {events[0].i}")
                self._check_order(events, path)
                self.last = events[-1]
                n += len(events)
                yield events if self.complete else [self.completion(e) for e in events]
        self.files.append((n, reader.n_header))

    def _take_defaults(self, events: list[Event], header: Header, path: Path) -> None:
        """Have events say what the header says for all. Nobody else has seen them yet."""
        _fill_in(events, "lvl", header.lvl)
        try:
            all_checked(events)
        except BadLine as error:
            raise NotClean(f"{path}: {error}") from None
        said = set(map(_who, events))
        runs, clocks, recorders, _, _ = map(set, zip(*said, strict=True))
        if runs - {"", header.run} or recorders - {"", header.rec}:
            raise NotClean(f"{path}: events of several runs or recorders")
        clocks |= {self.clock, header.clk}
        if len(clocks - {""}) > 1:
            raise NotClean(f"{path}: times of several clocks")
        self.clock = max(clocks)
        # A channel of a connection without a name is one of its recorder. Who is named is compared, so all are or none.
        needed = header.rec and any(
            rec or (ch is not None and not conn) for _, _, rec, conn, ch in said
        )
        if self._recorder is None:
            self._recorder = bool(needed)
        if needed and not self._recorder:
            raise NotClean(
                f"{path}: some events say which recorder they are of, earlier ones do not"
            )
        if self._recorder:
            _fill_in(events, "rec", header.rec)
        if self.named:
            _fill_in(events, "run", header.run)
            _fill_in(events, "clk", header.clk)
        if "committed" in header.params:
            events[:] = [declared(e, header) for e in events]

    def shown(self, event: Event) -> Event:
        """The event with what the header says for all, where it leaves that out."""
        assert self.header is not None
        left = {n: getattr(event, n) or getattr(self.header, n) for n in ("run", "rec", "clk")}
        return msgspec.structs.replace(event, **left)

    def _check_order(self, events: Sequence[Event], path: Path) -> None:
        indices = [e.i for e in events]
        if _any_pair(ge, self.indices.last, indices):
            raise NotClean(f"{path}: an index does not rise")
        self.indices.extend(indices)
        stamps = [e.t for e in events if e.t is not None]
        self._unstamped = self._unstamped or len(stamps) < len(events)
        if self._unstamped and (self.newest is not None or stamps):
            raise NotClean(f"{path}: some lines have no stamp")
        if _any_pair(gt, self.newest, stamps):
            raise NotClean(f"{path}: stamps fall")
        self.newest = stamps[-1] if stamps else self.newest


def _any_pair(what: Callable[[int, int], bool], before: int | None, values: list[int]) -> bool:
    """Whether it holds of a value and the next one; `before` is the value before them, if there is one."""
    if before is None:
        return any(map(what, values, values[1:]))
    return any(map(what, chain((before,), values), values))


# Any: what `opened` gives is one of two stream types that share `read`
def _decoded(text: Any, path: Path) -> Iterator[list[Event]]:
    """Blocks of events as they stand in the file."""
    rest = b""
    size = n = 0
    _, most_bytes, most_lines = room(path, text)
    while block := text.read(BLOCK):
        whole, newline, tail = (rest + block).rpartition(b"\n")
        size, n = size + len(block), n + block.count(b"\n")
        if size > most_bytes or n > most_lines:
            raise NotClean(f"{path}: unpacks to more than a recording would")
        rest = tail
        if newline:
            yield _events(whole, path)
        if len(rest) > LINE_MAX:  # each block would copy all of it again
            raise NotClean(f"{path}: a line is longer than any event")
    if rest:
        yield _events(rest, path)


def _events(raw: bytes, path: Path) -> list[Event]:
    try:
        events = _decoder.decode_lines(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotClean(f"{path}: a line is no event: {error}") from None
    if len(events) != raw.count(b"\n") + 1:
        raise NotClean(f"{path}: a line is empty")
    return events


def _fill_in(events: Sequence[Event], name: str, default: str) -> None:
    """Have events that lack a field say what the header does."""
    if default:
        for e, value in zip(events, map(attrgetter(name), events), strict=True):
            if not value:
                _set(e, name, default)
