"""Messages that a run is done with, kept on disk: 24 bytes of each are in memory while the run is updated.

A message that was published, delivered and settled, and of which nothing is outstanding, counts the same in every
later finding (`LifecycleProperty.settled_cases`), unless an event names it again or answers one of the commands that
settled it. Its lifecycle is *set aside* into a segment, once for all properties of lifecycles; an event that could
change anything about it *recalls* it first, into the very summaries that it came from. So a stream's findings are
those of a run of which all is in memory. Two names of one hash are recalled together, which changes nothing.

    NAME.names    hashes of the messages, sorted, and of the commands about them: read whole
    NAME.settled  the messages in that order, in blocks: only the block of one that is recalled is decoded

Both are states (`state_file`), written once and never changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seriatim_models.files import place_within
from seriatim_models.history import Event
from seriatim_models.history.event import SETTLES
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.state_file import decoded, read_state, unpacked, write_state
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox.conservation import ConservationSummary
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRED,
    SETTLED,
    Birth,
    Command,
    LifecycleKey,
    LifecycleProperty,
    Lifecycles,
    Step,
    command,
)
from seriatim_models.properties.blackbox.naming import NOBODY
from seriatim_models.properties.blackbox.sessions import PlacedEvent

AGE = 10_000
"""Events for which a settled message stays in memory: its confirm or the answer to its settlement may come late."""
LEAST = 4_000
"""Messages of a segment at least, so that a long run has few files."""
STEP = 20_000
"""New messages after which those that can be set aside are looked for again."""
BLOCK = 500
"""Messages that are compressed together."""

Hashes = npt.NDArray[np.uint64]
# Any: the summaries of a run's properties, of which each knows the type of its own
Summaries = Sequence[Any]


class _Kept(msgspec.Struct, array_like=True):
    """A message in the summary of one property."""

    born: LifecycleKey
    birth: Birth
    lived: LifecycleKey
    steps: list[Step]
    answers: list[tuple[Command, PlacedEvent]] = []
    """Those to its settlements that `Lifecycles.confirmed` had."""


class _Names(msgspec.Struct):
    """A file ``*.names``: arrays of numbers of 64 bits, the least byte first."""

    names: bytes
    commands: bytes
    rows: bytes
    """Of each command: the place of its message."""


class _Blocks(msgspec.Struct):
    """A file ``*.settled``."""

    blocks: list[tuple[int, bytes]]
    """The length of each, and the zstd of it: messages, each as the properties in their order have it."""


class _Segment:
    """A segment's hashes, in memory while a run is updated."""

    def __init__(self, names: Hashes, commands: Hashes, rows: Hashes) -> None:
        self.names, self.commands, self.rows = names, commands, rows

    def about(self, names: Hashes, commands: Hashes) -> set[int]:
        """The places of messages with one of these names, or of which one of these commands was."""
        begin, end = (np.searchsorted(self.names, names, side) for side in ("left", "right"))
        found = {n for k in np.flatnonzero(begin < end) for n in range(begin[k], end[k])}
        if len(commands):
            found.update(self.rows[np.isin(self.commands, commands)].tolist())
        return found


class SavedSettled(msgspec.Struct):
    """What the state of a run has of `SettledMessages`."""

    segments: list[str] = []
    """Their names relative to the stream's folder, without suffix."""
    recalled: dict[str, list[int]] = {}
    """By segment: the places of messages that are in memory again."""


class SettledMessages:
    """The messages of one run that are set aside. Raises `PipelineError` where a segment cannot be used."""

    def __init__(
        self,
        properties: Sequence[AnyProperty],
        folder: Path,
        into: str,
        remedy: str,
        saved: SavedSettled | None = None,
    ) -> None:
        """`into`: the name in `folder` that new segments begin with; if it is empty, nothing is set aside."""
        self.saved = saved or SavedSettled()
        self._folder, self._into, self._remedy = folder, into, remedy
        self._of = [
            (n, p)
            for n, p in enumerate(properties)
            if isinstance(p, LifecycleProperty) and p.own("settled_cases")
        ]
        self._segments: dict[str, _Segment] = {}
        self._next = STEP

    def files(self) -> Iterator[str]:
        """The files of all segments."""
        for name in self.saved.segments:
            yield from (f"{name}.names", f"{name}.settled")

    def recall(self, summaries: Summaries, events: Iterable[Event]) -> None:
        """Bring back what these events may be about. To be called before they are taken."""
        if not self.saved.segments:
            return
        named, answered = set[str](), set[Command]()
        for event in events:
            if event.m:
                named.add(event.m)
            if event.ms:
                named.update(event.ms)
            if event.ev in SETTLES and event.ph in ("ok", "fail", "info"):
                answered.add(command(event))
        names, commands = _hashes(named), _hashes(map(repr, answered))
        for name in self.saved.segments:
            gone = self.saved.recalled.setdefault(name, [])
            rows = sorted(self._segment(name).about(names, commands).difference(gone))
            if rows:
                self._bring_back(summaries, name, rows)
                gone += rows

    def _segment(self, name: str) -> _Segment:
        if name not in self._segments:
            path = place_within(self._folder, f"{name}.names", PipelineError)
            read = read_state(path, "names", _Names, self._remedy)
            arrays = (np.frombuffer(raw, "<u8") for raw in (read.names, read.commands, read.rows))
            self._segments[name] = _Segment(*arrays)
        return self._segments[name]

    def _bring_back(self, summaries: Summaries, name: str, rows: Sequence[int]) -> None:
        path = place_within(self._folder, f"{name}.settled", PipelineError)
        blocks = read_state(path, "settled", _Blocks, self._remedy).blocks
        number, block = -1, list[list[_Kept]]()
        for row in rows:
            if row // BLOCK != number:
                number = row // BLOCK
                size, small = blocks[number]
                raw = unpacked(path, small, size, self._remedy)
                block = decoded(path, raw, list[list[_Kept]], self._remedy)
            for (n, prop), kept in zip(self._of, block[row % BLOCK], strict=True):
                _count(prop, summaries[n], kept, -1)
                summaries[n].births[kept.born] = kept.birth
                summaries[n].lifecycles[kept.lived] = kept.steps
                for about, answer in kept.answers:
                    summaries[n].confirmed.setdefault(about, answer)

    def set_aside(self, summaries: Summaries, all: bool = False) -> None:
        """Write down what is done with, if that is worth a segment; with `all` look even if little has come since."""
        if not self._into or not self._of:
            return
        first = summaries[self._of[0][0]]
        if len(first.lifecycles) < (LEAST if all else self._next):
            return
        ready: dict[str, list[_Kept]] = {}
        for k, (n, prop) in enumerate(self._of):
            for m, kept in _done(prop, summaries[n]):
                if len(ready.setdefault(m, [])) == k:
                    ready[m].append(kept)
        whole = {m: kept for m, kept in ready.items() if len(kept) == len(self._of)}
        if len(whole) >= LEAST:
            self._write(summaries, whole)
        self._next = 2 * len(first.lifecycles) + STEP

    def _write(self, summaries: Summaries, messages: dict[str, list[_Kept]]) -> None:
        for k, (n, prop) in enumerate(self._of):
            summary = summaries[n]
            for kept in messages.values():
                _count(prop, summary, kept[k], 1)
                del summary.births[kept[k].born], summary.lifecycles[kept[k].lived]
            _take_answers(summary, [kept[k] for kept in messages.values()])
        hashed = _hashes(messages, sort=False)
        order = np.argsort(hashed, kind="stable")
        listed = list(messages.values())
        ordered = [listed[place] for place in order]
        about = [(repr(c), row) for row, kept in enumerate(ordered) for c in _commands(kept[0])]
        rows = np.array([row for _, row in about], "<u8")
        commands = _hashes((c for c, _ in about), sort=False)
        blocks = []
        for begin in range(0, len(ordered), BLOCK):
            raw = msgspec.msgpack.encode(ordered[begin : begin + BLOCK])
            blocks.append((len(raw), pa.compress(raw, codec="zstd", asbytes=True)))
        name = f"{self._into}.{len(self.saved.segments):06d}"
        write_state(self._folder / f"{name}.settled", "settled", _Blocks(blocks))
        names = _Names(hashed[order].tobytes(), commands.tobytes(), rows.tobytes())
        write_state(self._folder / f"{name}.names", "names", names)
        self.saved.segments.append(name)


def _hashes(names: Iterable[str], sort: bool = True) -> Hashes:
    """Hashes of 64 bits, the same in every process."""
    raw = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in names)
    found = np.frombuffer(raw, "<u8")
    return np.sort(found) if sort else found


def _commands(kept: _Kept) -> set[Command]:
    return {command(s.event) for s in kept.steps if s.kind != ACQUIRED}


def _done(prop: LifecycleProperty, summary: Lifecycles) -> Iterator[tuple[str, _Kept]]:
    """The messages of which no event can come that does not name them, nor answer a command about them."""
    births, lives = (Counter(m for _, m in of) for of in (summary.births, summary.lifecycles))
    born_as = {m: (q, m) for q, m in summary.births}
    doubtful = {s.before.event.m for s in summary.suspects} | summary.unplaced.keys()
    before = summary.n - AGE
    for lived, steps in summary.lifecycles.items():
        _, m = lived
        if births[m] != 1 or lives[m] != 1 or m in doubtful or steps[-1].kind != SETTLED:
            continue
        birth = summary.births[born_as[m]]
        first = next((s for s in steps if s.kind == ACQUIRED), None)
        confirmed = -1 if birth.confirmed is None else birth.confirmed.pos
        if (
            first is None
            or birth.sent is None
            or birth.refused is not None
            or birth.sent.pos >= first.pos
            or max(steps[-1].pos, confirmed) >= before
            or any(s.by == NOBODY or command(s.event) in summary.voided for s in steps)
        ):
            continue
        if prop.settled_cases(birth, steps) is not None:
            yield m, _Kept(born_as[m], birth, lived, steps)


def _count(prop: LifecycleProperty, summary: Lifecycles, kept: _Kept, times: int) -> None:
    """Count the cases of a message that is set aside, or with -1 of one that comes back."""
    cases = prop.settled_cases(kept.birth, kept.steps)
    assert cases is not None
    summary.tested += times * cases[0]
    summary.untestable += times * cases[1]
    if isinstance(summary, ConservationSummary):
        summary.published |= kept.birth.begins


def _take_answers(summary: Lifecycles, gone: Sequence[_Kept]) -> None:
    """Set aside the answers to settlements of these messages, as far as they concern no other one."""
    if not summary.confirmed:
        return
    steps = [
        s for of in (summary.lifecycles, summary.unplaced) for some in of.values() for s in some
    ]
    steps += [s.settled for s in summary.suspects if s.settled is not None]
    needed = {command(s.event) for s in steps if s.kind != ACQUIRED}
    for kept in gone:
        about = _commands(kept) - needed
        kept.answers = [(c, summary.confirmed[c]) for c in about if c in summary.confirmed]
    for kept in gone:
        for c, _ in kept.answers:
            summary.confirmed.pop(c, None)
