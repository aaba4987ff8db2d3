"""What events say of messages, as rows of whole numbers: the input of the pre-filter.

An event is about the messages it names: an acknowledgement of five is five rows, and a delivery that settles its
message (auto-ack) two of that one. Names become hashes of 64 bits, the same in every process, so that messages can be
divided among processes by them.

A message has two hashes that are made independently: one of its name, and one of its queue and name together. Rows
that agree in the first are one message's, and the pre-filter clears only what agrees in the second as well. So two
messages are taken for one only if both agree: once in 2^128 pairs, as far as such mixing goes, for names that nobody
chose with that in mind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seriatim_models.history.event import EXACT, SETTLES, Event, answer_alone, began
from seriatim_models.properties.blackbox.conservation import Conservation
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES, acquires
from seriatim_models.properties.blackbox.naming import (
    Holder,
    holder,
)
from seriatim_models.properties.blackbox.recorders import LatestLines
from seriatim_models.properties.columnar.columns import Bools, Ints, Names

Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Smalls = npt.NDArray[np.int8]

SENT, CONFIRMED, BORN, REFUSED, ACQUIRED, RELEASED, SETTLED, OTHER, ANSWERED = range(9)
"""Kinds of rows. `BORN` is sent and confirmed at once; `ANSWERED` is the answer to a settlement for good, which is no
step of its message and shows what outlives a fault; `OTHER` any other event that names the message.
"""

SURELY = 2
"""Marked redelivered, and recorded where nothing is missed: all that was handed out before was seen."""

TRAFFIC = ACQUIRES | SETTLES | {"publish", "return", "expire"}
"""Events about messages; a get that came back empty is about none. How many polls are open is a question of all."""
_OF_ONE = frozenset({"publish", "deliver"})
GENERAL = Conservation.reads - TRAFFIC
"""Names of events that concern no one message, of those that P1 to P3 read; see `is_general`."""


def is_general(event: Event) -> bool:
    """Whether an event says something of more than the messages that it names: also a settlement that names none which
    is known, may cover what was not seen, has no effect or began nobody knows when, and a poll that names no message.
    """
    if event.ev in SETTLES:
        nothing = not event.ms and (began(event) or _worker(event) or _final(event))
        return (
            bool(event.multiple) or nothing or event.ph in ("fail", "info") or answer_alone(event)
        )
    return event.ev in GENERAL or (event.ev == "get" and not event.m)


def _final(event: Event) -> bool:
    """Whether a settlement is for good."""
    return event.ev == "ack" or event.requeue is False


def _worker(event: Event) -> bool:
    """Whether it is of a worker without a channel."""
    return event.ch is None


class Rows(NamedTuple):
    """Rows in the run's order."""

    n: Ints
    """The event's place in the run; equal for the rows of one event."""
    kind: Smalls
    message: Hashes
    lifecycle: Hashes
    """Of queue and message."""
    by: Ints
    """The number of the holder, in the table that made the rows; means nothing but for steps of lifecycles."""
    redelivered: Smalls
    """Of an acquisition: -1 unknown, 0, 1 or `SURELY`."""

    @property
    def publishes_begin(self) -> bool:
        """Whether the beginning of a publish is among them."""
        return bool(((self.kind == SENT) | (self.kind == BORN)).any())

    def only(self, which: Bools | Ints) -> Rows:
        """Some of the rows, or all in another order."""
        at = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return Rows(**{name: of[at] for name, of in self._asdict().items()})


class BatchRows(NamedTuple):
    """What the pre-filter is given of a batch of events."""

    rows: Rows
    general: Sequence[tuple[int, Event]]
    """Those of `GENERAL`, with their places."""
    queues: Mapping[str, int]
    """Place of the last traffic by queue, as conservation counts it."""
    polls: Sequence[tuple[int, Event]]
    """Polls that name a message: only these and the general ones together say which are open."""
    recorders: LatestLines
    """Of those that conservation reads."""


LONG = 256  # bytes: names beyond are hashed one by one
_BATCH = 2**15  # names hashed at a time: what is made of them stays in the cache


def _constants(*values: int) -> Hashes:
    # Arrays and not scalars: numpy warns of scalars that run over, and running over is what multiplying is here for.
    return np.array(values, np.uint64).reshape(-1, 1)


_SEEDS = _constants(0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
_LENGTHS = _constants(0x8CB92BA72F3D8DD7, 0xABC98388FB8FAC03)
_FACTORS = _constants(0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_HALF = np.uint64(33)


def mixed(h: Hashes) -> Hashes:
    """Mix in place, one to one: the finish of MurmurHash3 (https://github.com/aappleby/smhasher)."""
    h ^= h >> _HALF
    h *= _FACTORS[0]
    h ^= h >> _HALF
    h *= _FACTORS[1]
    h ^= h >> _HALF
    return h


def hashes(data: Bytes, starts: Ints, lengths: Ints) -> tuple[Hashes, Hashes]:
    """Two independent hashes of each range of bytes."""
    out = np.empty((2, len(starts)), np.uint64)
    padded = np.zeros(len(data) + 8, np.uint8)
    padded[: len(data)] = data
    # Of each byte, the word of eight that begins there.
    words: Hashes = np.ndarray(len(data) + 1, np.dtype("<u8"), padded, strides=(1,))
    for begin in range(0, len(starts), _BATCH):
        part = slice(begin, begin + _BATCH)
        out[:, part] = _hashed(words, starts[part], lengths[part])
    for n in np.flatnonzero(lengths > LONG).tolist():
        name = data[starts[n] : starts[n] + lengths[n]].tobytes()
        out[:, n] = np.frombuffer(blake2b(name, digest_size=16).digest(), "<u8")
    return out[0], out[1]


def _hashed(words: Hashes, starts: Ints, lengths: Ints) -> Hashes:
    """Both hashes: the length first, then word after word."""
    out: Hashes = mixed((lengths.astype(np.uint64) * _LENGTHS) ^ _SEEDS)
    left, at = np.where(lengths > LONG, 0, lengths), starts
    names = np.flatnonzero(left)
    while len(names):
        whole = len(names) == len(left)
        rest = left if whole else left[names]
        word = words[at if whole else at[names]]
        # Of the last word only what belongs to the name, moved up.
        word <<= (64 - 8 * np.minimum(rest, 8)).astype(np.uint64)
        if whole:
            mixed(np.bitwise_xor(out, word, out=out))
        else:
            out[:, names] = mixed(out[:, names] ^ word)
        left, at = np.maximum(left - 8, 0), at + 8
        names = np.flatnonzero(left)
    return out


def text_hashes(texts: Sequence[str]) -> tuple[Hashes, Hashes]:
    """Two independent hashes of each text: of its bytes in UTF-8."""
    joined = "".join(texts)
    raw = joined.encode("utf-8", "surrogatepass")
    ascii_only = len(raw) == len(joined)
    sizes = map(len, texts if ascii_only else (t.encode("utf-8", "surrogatepass") for t in texts))
    lengths = np.fromiter(sizes, np.int64, len(texts))
    return hashes(np.frombuffer(raw, np.uint8), np.cumsum(lengths) - lengths, lengths)


def lifecycle_hashes(second: Hashes, of_queue: Hashes) -> Hashes:
    """The hash of queue and message, from the second hash of the message and the first of the queue."""
    return mixed(second ^ of_queue)


def kind_of_publish(event: Event) -> int:
    """Of a publish: what it says of its message's birth."""
    if event.ph == "fail":
        return REFUSED
    if event.lvl in EXACT:
        return BORN
    if event.ph == "info":
        return OTHER
    return CONFIRMED if event.ph == "ok" else SENT


def _kind(event: Event) -> int:
    """Of an event of `TRAFFIC` that names messages; -1 if it says nothing of them."""
    ev = event.ev
    if ev == "publish":
        return kind_of_publish(event)
    if ev in ACQUIRES:
        if not acquires(event):
            return -1
        # Of a log handing it out takes nothing away, which is no step of a regular message.
        # Without a queue it may be one of two. And polls by workers without channels are counted one by one, see
        # `conservation.Traffic.polls`.
        poll = ev == "get" and event.ch is None
        return OTHER if poll or event.pos is not None or not event.q else ACQUIRED
    if ev in SETTLES:
        if event.ph in ("fail", "info"):
            return OTHER
        if not began(event):
            if _worker(event):
                return OTHER  # without a session it is what shows the effect
            return ANSWERED if _final(event) else -1
        if not event.q:
            return OTHER
        if _final(event):
            return SETTLED
        return (
            OTHER if event.dead else RELEASED
        )  # it went elsewhere, and may come back as a new one
    return OTHER


def rows_of_events(placed: Iterable[tuple[int, Event]], holders: Names[Holder]) -> BatchRows:
    """Rows of completed events, each with its place; `holders` numbers who acts, and is kept between batches."""
    general: list[tuple[int, Event]] = []
    queues: dict[str, int] = {}
    polls: list[tuple[int, Event]] = []
    recorders = LatestLines()
    found: list[tuple[int, int, str, str, int, int]] = []
    for place, event in placed:
        ev = event.ev
        if event.rec and ev in Conservation.reads:
            recorders.take(event)
        if ev not in TRAFFIC:
            if ev in GENERAL:
                general.append((place, event))
            continue
        if ev not in _OF_ONE and is_general(event):
            general.append((place, event))
        if ev == "get" and event.m:
            polls.append((place, event))
        kind, q = _kind(event), event.q
        if kind >= 0 or ev not in ACQUIRES:
            queues[q] = place
        if kind < 0:
            continue
        flag = -1 if event.redelivered is None else int(event.redelivered)
        if event.redelivered and event.lvl in EXACT:
            flag = SURELY
        if ev in SETTLES:
            who = holders[holder(event)]
            found += [(place, kind, m, q, who, flag) for m in event.ms or ()]
            continue
        who = holders[holder(event)] if kind == ACQUIRED else 0
        found.append((place, kind, event.m, q, who, flag))
        if kind == ACQUIRED and event.autoack:
            found.append((place, SETTLED, event.m, q, who, flag))
    n, kinds, messages, names, by, redelivered = zip(*found, strict=True) if found else ((),) * 6
    vocabulary = {q: k for k, q in enumerate(dict.fromkeys(names))}
    first, second = text_hashes(messages)
    of_queue = text_hashes(list(vocabulary))[0]
    codes = np.fromiter(map(vocabulary.__getitem__, names), np.int64, len(names))
    rows = Rows(
        np.array(n, np.int64),
        np.array(kinds, np.int8),
        first,
        lifecycle_hashes(second, of_queue[codes]),
        np.array(by, np.int64),
        np.array(redelivered, np.int8),
    )
    return BatchRows(rows, general, queues, polls, recorders)
