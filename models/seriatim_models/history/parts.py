"""Parts of one recording in several files, of which not all have a header.

A recording that was cut into files (by `split`, by a logger that begins a new file) has its header in the first one
only, if at all. A file that names no run and begins in the middle continues another file of its folder if there is
exactly one that ends right before it, by the index of each recorder. It is then read with that one's header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from seriatim_models.history.faults import HistoryError
from seriatim_models.history.header import Header
from seriatim_models.history.lines import PARQUET, first_bytes, lines


class PartEdges(msgspec.Struct):
    """The first and the last index of each recorder in a file, as its lines name it."""

    first: dict[str, int] = {}
    last: dict[str, int] = {}

    def continues(self, before: PartEdges) -> bool:
        """Whether this file goes on where another one ended: its index, of all its recorders or of each."""
        if not (self.first and before.last):
            return False
        if min(self.first.values()) == max(before.last.values()) + 1:
            return True
        both = self.first.keys() & before.last.keys()
        follows = [self.first[rec] - before.last[rec] for rec in both]
        return 1 in follows and min(follows) > 0


class _Indexed(msgspec.Struct):
    i: int | None = None
    rec: str = ""


_decoder = msgspec.json.Decoder(_Indexed)


def edges(path: Path, most: int | None = None) -> PartEdges:
    """Those of a file of JSON lines, or of its first `most` events; without any for a file of another kind."""
    out = PartEdges()
    n = 0
    try:
        if first_bytes(path) == PARQUET:
            return out
        for line in lines(path):
            try:
                found = _decoder.decode(line.raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if found.i is None:
                continue
            out.first.setdefault(found.rec, found.i)
            out.last[found.rec] = max(found.i, out.last.get(found.rec, found.i))
            n += 1
            if n == most:
                break
    except HistoryError:
        pass  # whoever reads it says so
    return out


def begins_in_the_middle(path: Path) -> bool:
    """Whether the first index of a file is above 1."""
    return _first(edges(path, most=1)) > 1


def _first(head: PartEdges) -> int:
    return min(head.first.values(), default=0)


def fits(part: Header, before: Header) -> bool:
    """Whether what the header of a part says is what that of another one says."""
    names = ("rec", "lvl", "clk")
    return all(getattr(part, name) in ("", getattr(before, name)) for name in names)


def continued(
    nameless: Mapping[Path, Header],
    others: Mapping[Path, Header],
    read: Callable[[Path], PartEdges] = edges,
) -> dict[Path, tuple[Path, Header]]:
    """Of files that name no run, those that belong to a recording in several files: its first file, and its header.

    `nameless` are those that name none, each with the header it would have by itself; `others` are those that name one.
    The header is that of the first part that names a run, or else of the first part. `read` gives the edges of a file.
    """
    headers = {**nameless, **others}
    without = {path.parent for path in nameless}
    heads = {p: edges(p, most=2) for p in headers if p.parent in without}
    alone = {p.parent for p, head in heads.items() if set(head.last.values()) == {0}}
    # What begins with 1 is whole, but beside a file that has index 0 alone.
    middle = [
        p for p, h in heads.items() if _first(h) > (p not in nameless or p.parent not in alone)
    ]
    folders = {path.parent for path in middle}
    known = {path: read(path) for path in headers if path.parent in folders}
    before = {path: _before(path, known) for path in middle}
    chains: dict[Path, list[Path]] = {}
    for path in sorted(known, key=lambda p: min(known[p].first.values(), default=0)):
        begin = path
        while (parent := before.get(begin)) is not None:
            begin = parent
        chains.setdefault(begin, []).append(path)
    found: dict[Path, tuple[Path, Header]] = {}
    for begin, chain in chains.items():
        named = next((p for p in chain if p in others), begin)
        for path in chain:
            if path in nameless and path != named and fits(nameless[path], headers[named]):
                found[path] = begin, headers[named]
    return found


def _before(path: Path, known: Mapping[Path, PartEdges]) -> Path | None:
    """The only file of the same folder that ends where a file begins."""
    mates: Iterable[Path] = (p for p in known if p != path and p.parent == path.parent)
    found = [p for p in mates if known[path].continues(known[p])]
    return found[0] if len(found) == 1 else None
