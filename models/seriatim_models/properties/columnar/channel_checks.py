"""P7 to P9 and P21 over columns: which rows of a connection are cases, and which only a row-based form can judge.

None of them reports a violation: what might be one is a *wrong* row, see `connections`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seriatim_models.properties.blackbox.confirms import WAITING_KEPT
from seriatim_models.properties.columnar.columns import UNKNOWN, Bools, Ints, array_of, stable_order
from seriatim_models.properties.columnar.connections import (
    ANSWERED,
    ENDED,
    POLLED,
    SCOPES,
    SENT,
    TAKEN,
    WHOLE,
    ChannelRows,
    Cleared,
)
from seriatim_models.properties.columnar.rows import Hashes, Smalls


def _no(rows: ChannelRows) -> Bools:
    return np.zeros(len(rows.kind), np.bool_)


def _grown(known: Bools, length: int) -> Bools:
    return np.append(known, np.zeros(length - len(known), np.bool_))


class PrefetchCheck:
    """P7: how many a channel or consumer holds after each delivery."""

    def take(self, rows: ChannelRows) -> Cleared:
        """A case is a delivery under a limit; a wrong one exceeds it."""
        taken = (rows.kind == TAKEN) & ~rows.autoack
        limited = taken & (rows.limit != 0)
        wrong = _no(rows)
        steps = taken.astype(np.int64) - rows.held.frees
        # A settlement counts for the consumer to which its message had come.
        whose = np.where(rows.held.frees, rows.held.of, rows.consumer)
        consumers = limited & (rows.scope == SCOPES["consumer"])
        known = consumers | (limited & (rows.scope == SCOPES["channel"]))
        others = limited & (rows.scope != 0) & ~consumers
        for mine, by, before in (
            (consumers, whose, rows.held.consumer),
            (others, rows.channel.astype(np.uint64), rows.held.channel.astype(np.uint64)),
        ):
            if mine.any():
                wrong |= mine & (_running(by, steps, before) > rows.limit)
        return Cleared(wrong, known, limited & ~known)

    def arrays(self) -> list[bytes]:
        """Nothing is kept: what is held is known to all checks."""
        return []

    def restore(self, arrays: Sequence[bytes]) -> None:
        """There is nothing to restore."""


def _running(by: Hashes, steps: Ints, before: Hashes) -> Ints:
    """Of each row the sum of the steps of its group up to it; `before` names the group of each step of an earlier
    batch, all of which are one up.
    """
    group = np.concatenate([before, by])
    order = stable_order(group)
    step = np.concatenate([np.ones(len(before), np.int64), steps])[order]
    first = np.append(True, group[order][1:] != group[order][:-1])[: len(order)]
    total = np.cumsum(step)
    begin = (total - step)[first]
    out = np.empty(len(order), np.int64)
    out[order] = total - begin[np.cumsum(first) - 1]
    found: Ints = out[len(before) :]
    return found


class TagCheck:
    """P8: tags of a channel rise by one, and each is settled once."""

    def __init__(self) -> None:
        self._last: Ints = np.zeros(0, np.int64)
        """By channel the latest tag; 0 for none."""
        self._kinds: Smalls = np.zeros(0, np.int8)
        """By channel the kinds of tags that it had, as bits."""

    def take(self, rows: ChannelRows) -> Cleared:
        """A case is a delivery after another, or a settlement by tag of what is held."""
        self._last = np.append(self._last, np.zeros(rows.channels - len(self._last), np.int64))
        tagged = rows.dtag != UNKNOWN
        given = tagged & ((rows.kind == TAKEN) | (rows.kind == POLLED))
        at = np.flatnonzero(given)
        at = at[stable_order(rows.channel[at])]
        channel, tag = rows.channel[at], rows.dtag[at]
        first = np.append(True, channel[1:] != channel[:-1])[: len(at)]
        before = np.where(first, self._last[channel], np.append(0, tag[:-1])[: len(at)])
        last = np.append(first[1:], True)[: len(at)]
        self._last[channel[last]] = tag[last]
        wrong, tested, untestable = _no(rows), _no(rows), _no(rows)
        follows = before != 0
        above = rows.above[at]
        # Of a first tag the opening of its channel decides, which is not among the rows.
        wrong[at] = (follows & (tag <= before)) | ((tag > before + 1) & ~above)
        tested[at] = follows & (tag == before + 1)
        untestable[at] = follows & (tag > before + 1)
        wrong |= self._compared_apart(rows, given)
        return Cleared(wrong, tested | (tagged & rows.held.settles & rows.begins), untestable)

    def _compared_apart(self, rows: ChannelRows, given: Bools) -> Bools:
        """Tags on channels that have several kinds of them, which are compared apart: of polls and of deliveries above
        a client library, and of all else.
        """
        self._kinds = np.append(self._kinds, np.zeros(rows.channels - len(self._kinds), np.int8))
        kind = np.where(rows.above, np.where(rows.kind == POLLED, 1, 2), 4).astype(np.int8)
        np.bitwise_or.at(self._kinds, rows.channel[given], kind[given])
        found = self._kinds[rows.channel]
        apart: Bools = given & (found & (found - 1) != 0)
        return apart

    def arrays(self) -> list[bytes]:
        """What is kept of the run so far, as the bytes of arrays."""
        return [self._last.tobytes(), self._kinds.tobytes()]

    def restore(self, arrays: Sequence[bytes]) -> None:
        """Go on where another one was that had these arrays."""
        last, kinds = arrays
        self._last, self._kinds = array_of(last, np.int64), array_of(kinds, np.int8)


class SilenceCheck:
    """P9: no delivery after a confirmed end."""

    def __init__(self) -> None:
        self._ended: Bools = np.zeros(0, np.bool_)
        """By channel: it, or a consumer of it, has ended."""

    def take(self, rows: ChannelRows) -> Cleared:
        """A case is a confirmed end; a wrong row a delivery on a channel that had one before."""
        self._ended = _grown(self._ended, rows.channels)
        ends = rows.kind == ENDED
        taken = rows.kind == TAKEN
        wrong = taken & self._ended[rows.channel]
        at = np.flatnonzero(ends)
        if len(at):
            begun = np.full(rows.channels, len(rows.kind), np.int64)
            np.minimum.at(begun, rows.channel[at], at)
            wrong |= taken & (np.arange(len(taken)) > begun[rows.channel])
            self._ended[rows.channel[at]] = True
        return Cleared(wrong, ends, _no(rows))

    def arrays(self) -> list[bytes]:
        """What is kept of the run so far, as the bytes of arrays."""
        return [self._ended.tobytes()]

    def restore(self, arrays: Sequence[bytes]) -> None:
        """Go on where another one was that had these arrays."""
        (ended,) = arrays
        self._ended = array_of(ended, np.bool_)


class Pairs(NamedTuple):
    """Rows as they follow each other about one message, in the order given."""

    before: Ints
    """Of each row the one before it that is about the same; -1 for none."""
    last: Bools
    """Of each row whether none about the same follows."""


def paired(message: Hashes) -> Pairs:
    """Pair rows by what they are about."""
    order = stable_order(message)
    same = message[order][1:] == message[order][:-1]
    before = np.full(len(message), -1, np.int64)
    before[order[1:][same]] = order[:-1][same]
    last = np.ones(len(message), np.bool_)
    last[order[:-1][same]] = False
    return Pairs(before, last)


class AnswerCheck:
    """P21: each answer follows a publish that waits for one."""

    def __init__(self) -> None:
        none = np.zeros(0, np.uint64)
        self._open: tuple[Hashes, Hashes, Ints] = (none, none, np.zeros(0, np.int64))
        """Of each publish without an answer: what it is about, a second hash of that, and its channel."""
        self._full: Bools = np.zeros(0, np.bool_)
        """By channel whether more waited than are kept."""
        self._whole: Bools = np.zeros(0, np.bool_)
        self._phased: Bools = np.zeros(0, np.bool_)
        """By channel whether it had publishes without phases, and with."""

    def take(self, rows: ChannelRows) -> Cleared:
        """A case is an answer to the one publish of its message that waits."""
        self._full = _grown(self._full, rows.channels)
        self._whole, self._phased = (
            _grown(known, rows.channels) for known in (self._whole, self._phased)
        )
        sent, answered, whole = (rows.kind == kind for kind in (SENT, ANSWERED, WHOLE))
        self._whole[rows.channel[whole]] = True
        self._phased[rows.channel[sent | answered]] = True
        at = np.flatnonzero(sent | answered)
        n_before = len(self._open[0])
        message, second, channel = (
            np.concatenate([a, b[at]])
            for a, b in zip(self._open, (rows.message, rows.second, rows.channel), strict=True)
        )
        opens = np.append(np.ones(n_before, np.bool_), sent[at])
        pairs = paired(message)
        prior = pairs.before
        follows = (prior >= 0) & opens[prior]
        fits = follows & (second == second[prior]) & (channel == channel[prior])
        self._full |= _overfull(channel, opens, rows.channels)
        wrong = (sent | answered | whole) & (self._whole & self._phased)[rows.channel]
        wrong |= answered & self._full[rows.channel]
        wrong[at] |= np.where(opens, follows, ~fits)[n_before:]
        waits = pairs.last & opens & ~self._full[channel]
        self._open = message[waits], second[waits], channel[waits]
        return Cleared(wrong, answered, _no(rows))

    def arrays(self) -> list[bytes]:
        """What is kept of the run so far, as the bytes of arrays."""
        return [a.tobytes() for a in (*self._open, self._full, self._whole, self._phased)]

    def restore(self, arrays: Sequence[bytes]) -> None:
        """Go on where another one was that had these arrays."""
        message, second, channel, *flags = arrays
        self._open = (
            array_of(message, np.uint64),
            array_of(second, np.uint64),
            array_of(channel, np.int64),
        )
        self._full, self._whole, self._phased = (array_of(raw, np.bool_) for raw in flags)


def _overfull(channel: Ints, opens: Bools, channels: int) -> Bools:
    """By channel whether more publishes waited at any time than the row-based form keeps."""
    full = np.zeros(channels, np.bool_)
    if (np.bincount(channel[opens], minlength=channels) > WAITING_KEPT).any():
        none = np.zeros(0, np.uint64)
        waiting = _running(channel.astype(np.uint64), np.where(opens, 1, -1), none)
        full[channel[waiting > WAITING_KEPT]] = True
    return full
