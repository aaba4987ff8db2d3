"""Who acts in an event, and what ends whom."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from seriatim_models.history.event import Event

ENDS = frozenset({"ch_close", "conn_close", "conn_drop"})


class Holder(NamedTuple):
    """Who acts: the incarnation of a channel, or the consumer or worker in systems without channels.

    Its parts are kept apart, since any of the names may hold any character.
    """

    conn: str = ""
    ch: int | None = None
    gen: int | None = None
    name: str = ""
    """The consumer, or else the worker; empty where there are channels."""

    def __str__(self) -> str:
        """How it is named to readers."""
        if self.ch is not None:
            return f"{self.conn}/{self.ch}#{self.gen}"
        return self.name or self.conn


def each_once(events: Iterable[Event | None]) -> list[Event]:
    """Events of one history in the order given, each once; None is left out."""
    return list({(e.rec, e.i, e.ev): e for e in events if e is not None}.values())


NOBODY = Holder()
"""Whoever holds it: of an event that says nothing of that."""


_holder = lru_cache(4096)(Holder)
"""The same object for the same names: every property asks of nearly every event, and few act at a time."""


def holder(event: Event) -> Holder:
    """Who acts in an event."""
    if event.ch is not None:
        return _holder(event.conn, event.ch, event.gen)
    return _holder(event.conn, None, None, event.ctag or event.proc)


def settler(event: Event) -> Holder:
    """Who may settle what an event is about: its channel; without channels its connection, or else its worker."""
    if event.ch is not None:
        return _holder(event.conn, event.ch, event.gen)
    return _holder(event.conn) if event.conn else _holder(name=event.proc)


class ConsumerKey(NamedTuple):
    """A consumer: its channel's incarnation and its tag."""

    by: Holder
    ctag: str

    def __str__(self) -> str:
        """How it is named to readers."""
        return f"{self.by} {self.ctag}" if self.by.ch is not None else str(self.by)


@lru_cache(4096)
def _of_channel(conn: str, ch: int, gen: int | None, ctag: str) -> ConsumerKey:
    """The same object for the same names, as with `_holder`."""
    return ConsumerKey(_holder(conn, ch, gen), ctag)


def consumer(event: Event) -> ConsumerKey:
    """The consumer that an event is about."""
    if event.ch is not None:
        return _of_channel(event.conn, event.ch, event.gen, event.ctag)
    return ConsumerKey(holder(event), event.ctag)


def end_of(event: Event) -> Holder:
    """What ends: a channel as `holder` names it, or a whole connection as `connection` does."""
    if event.ev == "ch_close":
        return holder(event)
    return Holder(event.conn)


def connection(by: Holder) -> Holder:
    """The connection of a holder, as `end_of` names it."""
    return Holder(by.conn)


def ends(event: Event, by: Holder) -> bool:
    """Whether the end of a channel or connection ends a holder."""
    return event.conn == by.conn and end_of(event) in (by, connection(by))
