"""Connections over columns: regular ones are cleared, and only the irregular ones judged event by event.

What the properties of channels (`channels.ChannelProperty`) say of a *regular* connection follows from a few sorts of
its events, and it is never a violation. Each property that can be cleared so declares a check
(`Property.channel_check`), which says of each row of a batch whether it is a case, untestable, or *wrong*: not what a
regular connection has. One wrong row, and the whole connection is irregular: the row-based form judges all its events,
and alone reports violations. A connection is cleared for all checks together or for none, so that what one channel's
events say of its connection (`CaseCounts.kinds`) is not missed.

Irregular beyond what a check sees are lost lines, which make every connection irregular; a recovery, a
lease that ran out, a settlement without effect or of unknown outcome; a message acquired again by a channel that still
holds it, or settled by one that does not; a command for several messages that covers more than it names; and a channel
that opens after it was used.

What is held of a run are the deliveries and publishes that are still open, and some numbers for each channel.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from seriatim_models.history.event import EXACT, GAP, SETTLES, UNKNOWN_GEN
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES
from seriatim_models.properties.blackbox.naming import Holder
from seriatim_models.properties.columnar.checks import loaded
from seriatim_models.properties.columnar.columns import (
    UNKNOWN,
    Bools,
    Ints,
    Names,
    array_of,
    repeated,
    stable_order,
)
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_models.properties.columnar.queues import ClearedQueues, Counts
from seriatim_models.properties.columnar.rows import Hashes, Smalls, mixed, text_hashes

COLUMNS = (
    "n", "ev", "lvl", "ph", "op", "rec", "conn", "ch", "gen", "ctag", "proc", "q", "m", "ms", "dtag", "multiple",
    "autoack", "prefetch", "scope",
)  # fmt: skip
"""The columns that are looked at; those that a chunk lacks are empty throughout."""

OPENED, TAKEN, POLLED, SETTLED, SENT, ANSWERED, WHOLE, ENDED, CALLED, OTHER = range(10)
"""Kinds of rows: a channel opens; a delivery, a poll that was answered; a settlement begins; a publish begins, is
answered, or has no phases; a consumer or channel is confirmed to have ended; any other call; and what no regular
connection has."""

MOST = 2**32
"""Tags beyond leave their connection to the row-based form."""

_ODD = np.uint64(0x9E3779B97F4A7C15)


class ChannelRows(NamedTuple):
    """The events of one batch that properties of channels read, in the run's order."""

    kind: Smalls
    channel: Ints
    """Numbers of holders; see `RegularConnections.holders`."""
    message: Hashes
    """Of the channel and the message: what is held or settled; of a publish with recorder and queue."""
    second: Hashes
    """A second hash of the same names."""
    queue: Hashes
    """0 for none."""
    consumer: Hashes
    """Of the channel and the consumer's tag."""
    dtag: Ints
    """`UNKNOWN` for none."""
    several: Bools
    """Of a settlement: for all up to its tag, of which each has a row."""
    begins: Bools
    """The first row of its event."""
    limit: Ints
    """The prefetch; 0 for none."""
    scope: Smalls
    """Of the prefetch: see `SCOPES`; 0 is not known."""
    above: Bools
    """Recorded above a client library."""
    autoack: Bools
    held: Held
    """What the settlements settle."""
    channels: int
    """How many numbers there are."""


class Held(NamedTuple):
    """The acquisitions that are not settled: those from before a batch, and what its own rows do to them."""

    channel: Ints
    """Of each delivery held when the batch began, polls left out: its channel, and its consumer."""
    consumer: Hashes
    settles: Bools
    """Of each row of the batch: whether it settles what its channel holds, as a regular settlement does."""
    frees: Bools
    """Whether that was a delivery, and no poll."""
    of: Hashes
    """To which consumer it had come."""


_NOTHING_HELD = Held(*(np.zeros(0, kind) for kind in (np.int64, np.uint64, bool, bool, np.uint64)))


class Cleared(NamedTuple):
    """What a check says of each row."""

    wrong: Bools
    tested: Bools
    untestable: Bools


class ChannelCheck(Protocol):
    """Clears regular channels for one property; given batch after batch of a run."""

    def take(self, rows: ChannelRows) -> Cleared:
        """Which rows are cases, and which are wrong: what a regular channel does not have."""

    def arrays(self) -> list[bytes]:
        """What is kept of the run so far, as the bytes of arrays."""

    def restore(self, arrays: Sequence[bytes]) -> None:
        """Go on where another one was that had these arrays."""


# Any: a row of several fields
Entries = npt.NDArray[Any]

_SAVED = np.dtype(
    [
        ("message", np.uint64),
        ("second", np.uint64),
        ("queue", np.uint64),
        ("consumer", np.uint64),
        ("channel", np.int64),
        ("dtag", np.int64),
        ("polled", np.bool_),
    ]
)
_KEPT = np.dtype(_SAVED.descr, align=True)
"""An acquisition that waits for its settlement, from batch to batch."""


class _Commands(NamedTuple):
    several: Bools
    """Of each row whether its command is for several messages."""
    begins: Bools
    """Whether it is the first of its event."""


def _highest(values: Ints, first: Bools, before: Ints) -> Ints:
    """The highest value up to each row of a group, and before it; rows are sorted by group, values below `MOST`."""
    group = (np.cumsum(first) - 1) * MOST
    found: Ints = np.maximum.accumulate(np.maximum(values, np.where(first, before, 0)) + group)
    return found - group


class ConnectionsState(msgspec.Struct):
    """What a `RegularConnections` keeps of a run."""

    holders: list[Holder]
    conns: list[str]
    used: bytes
    through: bytes
    given: bytes
    wrong: bytes
    cases: dict[int, bytes]
    open: bytes
    lost: bool
    checks: dict[int, list[bytes]]


class RegularConnections:
    """Clears regular connections for some properties of channels, given a run's batches in order: a `QueueCheck`."""

    columns: Collection[str] = COLUMNS
    # Any: as `QueueCheck` has it
    state_type: Any = ConnectionsState
    spreads = False

    def __init__(self, properties: Mapping[int, AnyProperty]) -> None:
        self.holders: Names[Holder] = Names()
        self._checks: dict[int, ChannelCheck] = {
            n: loaded(p.channel_check)() for n, p in properties.items()
        }
        self._properties = properties
        self._conns: Names[str] = Names()
        self._conn_of: Ints = np.zeros(0, np.int64)
        """Of each holder the number of its connection."""
        self._used: Bools = np.zeros(0, np.bool_)
        """Of each holder whether it did anything after it opened."""
        self._through: Ints = np.zeros(0, np.int64)
        self._given: Ints = np.zeros(0, np.int64)
        """Of each holder the highest tag that a command for several covered, and that was given to it; 0 for none."""
        self._wrong: Bools = np.zeros(0, np.bool_)
        """By number of a connection."""
        self._cases = {n: np.zeros((2, 0), np.int64) for n in properties}
        """By number of a property: of each connection the tested and the untestable cases."""
        self._open: Entries = np.zeros(0, _KEPT)
        self.lost = False
        """Lines were lost: nothing is cleared."""

    def take(self, batch: EventBatch) -> None:
        """Add the next events, in any order of their own."""
        self.lost = self.lost or bool(batch.among("ev", GAP).any())
        chosen = batch.named(_READ).in_order()
        if self.lost or not len(chosen):
            return
        rows = self._rows(chosen)
        conn = self._conn_of[rows.channel]
        wrong = (rows.kind == OTHER) | self._opened_late(rows)
        # Of what a channel holds, only a poll or a delivery that settles itself takes nothing.
        closes = rows.kind == SETTLED
        wrong |= closes & ~rows.held.settles
        for n, check in self._checks.items():
            cleared = check.take(rows)
            wrong |= cleared.wrong
            for k, cases in enumerate((cleared.tested, cleared.untestable)):
                self._cases[n][k] += np.bincount(conn[cases], minlength=len(self._wrong))
        self._wrong[conn[wrong]] = True

    def _rows(self, batch: EventBatch) -> ChannelRows:
        channel = batch.holders().numbers(self.holders)
        self._grow()
        kind, dtag = _kinds(batch), batch.ints("dtag", UNKNOWN)
        nowhere, limit = ~batch.present("ch"), batch.ints("prefetch", 0)
        gen = batch.ints("gen", -1)
        kind[
            (gen == UNKNOWN_GEN)
            | (nowhere & ((gen > 1) | (limit != 0)))
            | ((dtag != UNKNOWN) & ((dtag < 1) | (dtag >= MOST) | nowhere))
        ] = OTHER
        # A settlement becomes a row for each message that it names; one that names none is odd.
        settles, listed = kind == SETTLED, batch.lengths("ms")
        kind[settles & (listed == 0)] = OTHER
        several = batch.flags("multiple", False)
        kind[settles & (listed > 1) & ~(several & (dtag != UNKNOWN))] = OTHER
        settles = kind == SETTLED
        of = repeated(np.where(settles, listed, 1))
        m, those = batch.texts("m"), batch.texts("ms")
        first, second = m.first[of], m.second[of]
        wanted, settled = np.flatnonzero(np.repeat(settles, listed)), np.flatnonzero(settles[of])
        first[settled], second[settled] = those.first[wanted], those.second[wanted]
        begins = np.append(True, of[1:] != of[:-1])[: len(of)]
        # Mostly each event is one row, and nothing need be copied.
        at = slice(None) if len(of) == len(batch) else of
        # Names: of messages with their channel; of publishes with recorder and queue; of consumers with their channel.
        q, ctag, rec = (batch.coded(name) for name in ("q", "ctag", "rec"))
        of_queue = text_hashes(q.values)[0]
        of_queue[[k for k, name in enumerate(q.values) if not name]] = 0
        queue = of_queue[q.codes][at]
        published = np.flatnonzero(((kind == SENT) | (kind == ANSWERED))[at])
        sender = mixed(queue[published] ^ text_hashes(rec.values)[0][rec.codes[at][published]])
        first[published] ^= sender
        second[published] = mixed(second[published] ^ sender)
        scope, zeros = batch.coded("scope"), np.zeros(len(batch), np.int8)
        of_channel = channel.astype(np.uint64) * _ODD
        consumer = mixed(text_hashes(ctag.values)[0][ctag.codes] + of_channel)[at]
        rows = ChannelRows(
            kind=kind[at],
            channel=channel[at],
            message=mixed(first + of_channel[at]),
            second=second,
            queue=queue,
            consumer=consumer,
            dtag=dtag[at],
            several=several[at],
            begins=begins,
            limit=limit[at],
            scope=sum((n * scope.among(s) for s, n in SCOPES.items()), zeros).astype(np.int8)[at],
            above=batch.among("lvl", "", "api")[at],
            autoack=batch.flags("autoack", False)[at],
            held=_NOTHING_HELD,
            channels=len(self.holders),
        )
        return rows._replace(held=self._held(rows))

    def _held(self, rows: ChannelRows) -> Held:
        """Pair acquisitions with settlements; what stays open is kept for the next batch."""
        takes = ((rows.kind == TAKEN) | (rows.kind == POLLED)) & ~rows.autoack
        at = np.flatnonzero(takes | (rows.kind == SETTLED))
        mine = np.empty(len(at), _KEPT)
        for name in ("message", "second", "queue", "consumer", "channel", "dtag"):
            mine[name] = getattr(rows, name)[at]
        mine["polled"] = rows.kind[at] == POLLED
        kept = self._open
        both = np.concatenate([kept, mine])
        opens = np.append(np.ones(len(kept), np.bool_), takes[at])
        commands = _Commands(
            np.append(np.zeros(len(kept), np.bool_), rows.several[at]),
            np.append(np.ones(len(kept), np.bool_), rows.begins[at]),
        )
        # Sorted by message: what stands before a row is about the same, or another message begins there.
        order = stable_order(both["message"])
        by, opened = both[order], opens[order]
        same = by["message"][1:] == by["message"][:-1]
        earlier = by[np.maximum(np.arange(len(by)) - 1, 0)]
        # A settlement is regular if it follows an acquisition that it fits, an acquisition if none is open before it.
        follows = np.append(False, same & opened[:-1])[: len(by)]
        fits = follows & ~opened & ((by["queue"] == 0) | (by["queue"] == earlier["queue"]))
        fits &= (by["second"] == earlier["second"]) & (by["channel"] == earlier["channel"])
        fits &= np.where(
            commands.several[order],
            (earlier["dtag"] != UNKNOWN) & (earlier["dtag"] <= by["dtag"]),
            by["dtag"] == earlier["dtag"],
        )
        self._wrong[self._conn_of[by["channel"][opened & follows]]] = True
        self._open = by[np.append(~same, True)[: len(by)] & opened]
        fits &= ~self._covered(both, opens, commands, order, earlier["dtag"])
        # Back to the rows of the batch.
        new = np.flatnonzero(order >= len(kept))
        at = at[order[new] - len(kept)]
        settles, frees = np.zeros(len(rows.kind), np.bool_), np.zeros(len(rows.kind), np.bool_)
        of = np.zeros(len(rows.kind), np.uint64)
        settles[at], frees[at] = fits[new], (fits & ~earlier["polled"])[new]
        of[at] = earlier["consumer"][new]
        delivered = kept[~kept["polled"]]
        return Held(delivered["channel"], delivered["consumer"], settles, frees, of)

    def _covered(
        self, both: Entries, opens: Bools, rows: _Commands, by_message: Ints, settled: Ints
    ) -> Bools:
        """Settlements of what an earlier command for several had covered without naming it, and commands for more than
        was given: by message, as is `settled`, the tags of what is settled.
        """
        out = np.zeros(len(both), np.bool_)
        if not rows.several.any() and not self._through.any():
            return out
        dtag = np.empty(len(both), np.int64)
        dtag[by_message] = settled
        order = stable_order(both["channel"])
        channel = both["channel"][order]
        first = np.append(True, channel[1:] != channel[:-1])[: len(order)]
        last = np.append(first[1:], True)[: len(order)]
        covers = np.where(rows.several, both["dtag"], 0)[order]
        through = _highest(covers, first, self._through[channel])
        given = np.where(opens, np.maximum(both["dtag"], 0), 0)[order]
        seen = _highest(given, first, self._given[channel])
        # What was covered before a command: all its rows follow each other.
        begin = np.maximum.accumulate(np.where(rows.begins[order], np.arange(len(order)), 0))
        before = np.where(first[begin], self._through[channel], through[begin - 1])
        out[order] = ~opens[order] & ((dtag[order] <= before) | (covers > seen))
        self._through[channel[last]], self._given[channel[last]] = through[last], seen[last]
        return out[by_message]

    def _opened_late(self, rows: ChannelRows) -> Bools:
        """Rows by which a channel opens that was used before."""
        opens = rows.kind == OPENED
        late: Bools = opens & self._used[rows.channel]
        others = np.flatnonzero(~opens)
        if len(others) < len(opens):
            first = np.full(rows.channels, len(opens), np.int64)
            backwards = others[::-1]  # of equal ones the last assigned stands
            first[rows.channel[backwards]] = backwards
            late |= opens & (first[rows.channel] < np.arange(len(opens)))
        self._used[rows.channel[others]] = True
        return late

    def _grow(self) -> None:
        """Make room for holders and connections that are new."""
        names = list(self.holders)[len(self._conn_of) :]
        self._conn_of = np.append(
            self._conn_of, np.array([self._conns[h.conn] for h in names], np.int64)
        )
        self._used = np.append(self._used, np.zeros(len(names), np.bool_))
        more = np.zeros(len(names), np.int64)
        self._through, self._given = np.append(self._through, more), np.append(self._given, more)
        conns = len(self._conns) - len(self._wrong)
        self._wrong = np.append(self._wrong, np.zeros(conns, np.bool_))
        for n, cases in self._cases.items():
            self._cases[n] = np.concatenate([cases, np.zeros((2, conns), np.int64)], axis=1)

    def state(self) -> ConnectionsState:
        """What is kept of the run so far."""
        return ConnectionsState(
            list(self.holders),
            list(self._conns),
            self._used.tobytes(),
            self._through.tobytes(),
            self._given.tobytes(),
            self._wrong.tobytes(),
            {n: cases.tobytes() for n, cases in self._cases.items()},
            self._open.astype(_SAVED).tobytes(),
            self.lost,
            {n: check.arrays() for n, check in self._checks.items()},
        )

    def restore(self, state: ConnectionsState) -> None:
        """Go on where another one was that had this state."""
        self.holders, self._conns = Names.of(state.holders), Names.of(state.conns)
        # A name that is not there is a fault of the state, and gets no number.
        known = dict(self._conns)
        of = [known[holder.conn] for holder in state.holders]
        self._conn_of = np.array(of, np.int64)
        self._used = array_of(state.used, np.bool_)
        self._through = array_of(state.through, np.int64)
        self._given = array_of(state.given, np.int64)
        self._wrong = array_of(state.wrong, np.bool_)
        self._cases = {
            n: array_of(raw, np.int64).reshape(2, len(self._wrong))
            for n, raw in state.cases.items()
        }
        self._open = array_of(state.open, _SAVED).astype(_KEPT)
        self.lost = state.lost
        for n, check in self._checks.items():
            check.restore(state.checks[n])

    def irregular(self) -> set[str] | None:
        """The connections that are left to the row-based forms; None for all."""
        if self.lost:
            return None
        return {name for name, k in self._conns.items() if self._wrong[k]}

    def finish(self, ended: int | None) -> ClearedQueues | None:
        """What is cleared: all connections but the irregular ones, and their cases; None if nothing is."""
        irregular = self.irregular()
        if irregular is None:
            return None
        good = ~self._wrong
        counts = {n: Counts(*of[:, good].sum(axis=1).tolist()) for n, of in self._cases.items()}
        return ClearedQueues(irregular, {self._properties[n].id: c for n, c in counts.items()})


_CALLS = frozenset({"consume", "cancel", "qos", "ch_close"})
SCOPES = {"consumer": 1, "channel": 2, "conn": 3}
"""The numbers of those whose limit one channel can be seen to exceed."""
_READ = ACQUIRES | SETTLES | _CALLS | {"publish", "ch_open", "recover", "expire"}


def _kinds(batch: EventBatch) -> Smalls:
    """What kind of row each event is."""
    ev, ph = batch.words("ev"), batch.words("ph")
    lone = ~batch.present("op")
    kind = np.full(len(batch), CALLED, np.int8)
    kind[ev("recover", "expire")] = OTHER
    kind[ev("ch_open")] = OPENED
    named = batch.some("m") & ~ph("invoke", "fail")
    kind[ev("deliver") & named] = TAKEN
    kind[ev("get") & named] = POLLED
    settles = ev(*SETTLES)
    kind[settles & (ph("", "invoke") | (ph("ok") & lone))] = SETTLED
    kind[settles & ph("fail", "info")] = OTHER
    publish = ev("publish")
    kind[publish & ph("")] = WHOLE
    kind[publish & ph("invoke")] = SENT
    kind[publish & ph("ok", "fail")] = ANSWERED
    exact = batch.among("lvl", *EXACT)
    confirmed = ph("ok") | (ph("") & exact)
    kind[ev("cancel", "ch_close") & confirmed] = ENDED
    return kind
