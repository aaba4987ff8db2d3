r"""Reading a history.

The format is JSON lines: UTF-8, one object a line, plain, gzip or zstd (known by content), or Parquet with the same
fields.
The first line may be a header (`header.py`), every other line is one event (`event.py`):

    {"schema": "qh/1", "run": "r1", "clk": "host-a", "lvl": "api", "broker": "rabbitmq 3.10.8"}
    {"i": 1, "t": 105, "ev": "publish", "ph": "invoke", "conn": "c1", "ch": 1, "q": "q1", "m": "a:0", "pub": "a"}

Files in other formats are known by their beginning or their name and imported (`importers`): qh/0, Jepsen operations
(EDN, JSON), OpenTelemetry messaging spans (OTLP JSON). `header.params["lint"]` says what they cannot tell.

What happens to lines that are not as they should be:

- A line that is no event is left out and kept as a `Rejected`. An empty line is counted and nothing else.
- An unknown field is kept, as text, in `x`.
- `i` must rise within one (run, rec). An index that was read before is a duplicate: the first one stands.
  An index below one already read, but new, comes too late: the checks are made for recording order, in which a reader
  that streams cannot insert it. Both are rejected; sort such a file by `i` first.
- Two files may hold parts of the same (run, rec); the same rule then holds across them. A file without a header may
  be a later part as well: see `parts`.

Raises `HistoryError` when nothing can be made of the file: missing, empty, cut off while compressed, of another
schema,
or without a single line that is an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from seriatim_models.files import CHANGED, check_file, fingerprint
from seriatim_models.history.decode import BadLine, Decode, decoder, parse_object
from seriatim_models.history.depth import TOO_DEEP
from seriatim_models.history.event import Event
from seriatim_models.history.faults import HistoryError, Rejected, bounded, excerpt
from seriatim_models.history.header import Header, declared, header_of
from seriatim_models.history.importers.foreign import Importer, foreign
from seriatim_models.history.indices import Indices
from seriatim_models.history.lines import PARQUET, Line, check_format, first_bytes, lines
from seriatim_models.history.unrecorded import unrecorded, with_gaps

Item = Event | Rejected

SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".edn", ".edn.gz", ".otlp.json")


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A history in memory. ``n_lines == n_header + n_blank + len(events) + len(quarantine)``.

    Of a recorder that declares what it never writes, `events` has a `gap` beside each event as well (`unrecorded`).
    """

    source: str
    header: Header
    events: list[Event]
    quarantine: list[Rejected]
    n_lines: int
    n_blank: int
    n_header: int


def named_as_history(name: str, suffixes: tuple[str, ...] = SUFFIXES) -> bool:
    """Whether a file of that name in a folder is a history, in capitals or not."""
    return name.lower().endswith(suffixes)


def stem(path: Path) -> str:
    """The file's name without the suffixes of a history: the run of a file that names none."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if named_as_history(path.name, (suffix,)):
            return path.name[: -len(suffix)]
    return path.stem


class Reader:
    """One file, read as a stream. Iterate once; the counts are final when the iteration is."""

    def __init__(
        self,
        path: str | Path,
        *,
        run: str = "",
        seen: dict[tuple[str, str], Indices] | None = None,
        continues: Header | None = None,
    ) -> None:
        """Reads the header. `run` is for a file that names none; `seen` is shared by the files of one run; `continues`
        is the header of the recording that this file is a later part of (`parts`).

        Raises `HistoryError`.
        """
        self.path = Path(path)
        self.source = str(path)
        self.n_lines = self.n_blank = self.n_header = self.n_events = self.n_rejected = 0
        self._decodable = (
            False  # whether any line was an event, be it one that stands in the wrong place
        )
        self._seen = {} if seen is None else seen
        check_file(self.path, HistoryError)
        check_format(self.path)
        self._rows: Iterator[Line] = iter(())
        self._foreign: Importer | None = None
        self._parquet = first_bytes(self.path) == PARQUET
        if self._parquet:
            from seriatim_models.history import table

            header = table.read_header(self.path)
        else:
            self._rows = lines(self.path)
            header = self._first_lines()
        self.names_run = bool(header.run)
        """Whether the file itself says of which run it is."""
        if continues is not None:
            mine = {k: v for k, v in msgspec.structs.asdict(header).items() if v}
            header = msgspec.structs.replace(continues, **mine)
        self.header = (
            header if header.run else msgspec.structs.replace(header, run=run or stem(self.path))
        )

    def _first_lines(self) -> Header:
        """Take the header off the front; a first line that is no header is put back."""
        for line in self._rows:
            self.n_lines += 1
            if not line.raw.strip():
                self.n_blank += 1
                continue
            try:
                obj: Mapping[str, object] = parse_object(line.raw)
            except BadLine as fault:
                if (
                    str(fault) == TOO_DEEP
                ):  # it may be a header: then nothing that follows can be read
                    raise HistoryError(f"{self.source}: line {line.number}: {fault}") from None
                obj = {}
            if "schema" in obj:
                self.n_header = 1
                return header_of(obj, f"{self.source}: line {line.number}")
            self.n_lines -= 1
            self._rows = _chain(line, self._rows)
            found = foreign(line.raw, self.path.name)
            if found is None:
                return Header()
            self._foreign, header = found
            return msgspec.convert(header, Header)
        raise HistoryError(f"{self.source}: line 1: the file is empty")

    def __iter__(self) -> Iterator[Item]:
        """Events and rejected lines in the file's order. Raises `HistoryError`."""
        if self._parquet:
            from seriatim_models.history import table

            yield from self._place(table.read_events(self.path, self.header))
        elif self._foreign is not None:
            yield from self._place(self._imported(self._foreign))
        else:
            yield from self._place(self._decoded(decoder(self.header)))
        if self.n_rejected and not self._decodable:
            raise HistoryError(
                f"{self.source}: line {self._first.line}: not a history, "
                f"{'its only line is no' if self.n_lines == 1 else f'none of its {self.n_lines} lines is an'} "
                f"event: {self._first.reason}"
            )

    def _decoded(self, decode: Decode) -> Iterator[tuple[Line, Event | str]]:
        for line in self._rows:
            if not line.raw.strip():
                self.n_lines += 1
                self.n_blank += 1
                continue
            try:
                yield line, decode(line.raw)
            except BadLine as fault:
                yield line, str(fault)

    def _imported(self, importer: Importer) -> Iterator[tuple[Line, Event | str]]:
        """Of a file in another format a line is a record: an event, a line without one, or one that is left out."""
        defaults = {k: v for k in ("run", "rec", "lvl", "clk") if (v := getattr(self.header, k))}
        for line, found in importer.read(self._rows):
            if isinstance(found, str):
                yield line, found
                continue
            if not found:
                self.n_lines += 1
                self.n_blank += 1
            for event in found:
                yield line, msgspec.structs.replace(event, **defaults)

    def _place(self, rows: Iterator[tuple[Line, Event | str]]) -> Iterator[Item]:
        """Reject what is no event or stands in the wrong place, and count."""
        for line, event in rows:
            self.n_lines += 1
            if isinstance(event, str):
                yield self._reject(line, event)
                continue
            self._decodable = True
            indices = self._seen.get((event.run, event.rec))
            if indices is None:
                indices = self._seen[event.run, event.rec] = Indices()
            if indices.last is not None and event.i <= indices.last:
                if event.i in indices:
                    yield self._reject(line, f"field i: {event.i} occurs a second time", True)
                else:
                    why = f"field i: {event.i} comes after {indices.last}; the index must rise"
                    yield self._reject(line, why)
                continue
            indices.append(event.i)
            self.n_events += 1
            yield declared(event, self.header)

    def _reject(self, line: Line, why: str, duplicate: bool = False) -> Rejected:
        rejected = Rejected(
            source=self.source,
            line=line.number,
            offset=line.offset,
            reason=bounded(why),
            text=excerpt(line.raw),
            duplicate=duplicate,
        )
        if not self.n_rejected:
            self._first = rejected
        self.n_rejected += 1
        return rejected


def _chain(line: Line, rest: Iterator[Line]) -> Iterator[Line]:
    yield line
    yield from rest


def iter_history(path: str | Path) -> Iterator[Item]:
    """Events and rejected lines of a file, one at a time. Raises `HistoryError`."""
    yield from Reader(path)


def read_history(path: str | Path) -> History:
    """A whole file in memory. Raises `HistoryError`, also if it changes meanwhile: what was read would be of two."""
    before = fingerprint(path)
    reader = Reader(path)
    events: list[Event] = []
    quarantine: list[Rejected] = []
    for item in reader:
        if isinstance(item, Event):
            events.append(item)
        else:
            quarantine.append(item)
    if fingerprint(path) != before:
        raise HistoryError(f"{path}: {CHANGED}")
    return History(
        source=reader.source,
        header=reader.header,
        events=list(with_gaps(events, unrecorded(reader.header))),
        quarantine=quarantine,
        n_lines=reader.n_lines,
        n_blank=reader.n_blank,
        n_header=reader.n_header,
    )
