"""The completed events of a history, kept in a temporary file for a second look at some of them.

Reading and completing them again would cost as much as the first time, and mostly a few messages are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

import msgspec
import numpy as np

from seriatim_models.history.event import Event
from seriatim_models.properties.columnar.prefilter import places_naming
from seriatim_models.properties.columnar.rows import BatchRows, Hashes

IN_MEMORY = 2**24
"""Bytes that are held before there is a file."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Event])


def encoded(events: Sequence[Event]) -> bytes:
    """Completed events on their way into a file or to another process; see `decoded`."""
    return _encoder.encode(events)


def decoded(raw: bytes) -> list[Event]:
    """The events that were `encoded`."""
    return _decoder.decode(raw)


class _Block(NamedTuple):
    """Where the parts of a block begin and end in the file, in bytes, and the place of its first event."""

    begin: int
    bounds: tuple[int, ...]
    """Of the events; of those that concern no one message; of their places, and of the rows' places and messages."""


class SecondLook:
    """Blocks of completed events, in order. At the end of its ``with`` the file is gone."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(IN_MEMORY, prefix="seriatim-")  # noqa: SIM115  # `__exit__`
        self._blocks: list[_Block] = []

    def __enter__(self) -> SecondLook:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def keep(self, begin: int, events: bytes, of: BatchRows | None) -> None:
        """Keep the next events, `encoded`, of which the first has the place `begin`, and what their rows say of which
        messages.

        Raises `OSError` where there is no room.
        """
        general = [] if of is None else of.general
        parts = [events, encoded([event for _, event in general])]
        parts.append(np.array([place - begin for place, _ in general], np.int64).tobytes())
        parts += [] if of is None else [of.rows.n.tobytes(), of.rows.message.tobytes()]
        bounds = [self._file.seek(0, 2)]
        for part in parts:
            self._file.write(part)
            bounds.append(bounds[-1] + len(part))
        self._blocks.append(_Block(begin, tuple(bounds)))

    def blocks(self) -> Iterator[list[Event]]:
        """All events."""
        for block in self._blocks:
            yield decoded(self._read(*block.bounds[:2]))

    def about(self, messages: Hashes) -> Iterator[list[tuple[int, Event]]]:
        """The events that name one of these messages, which are sorted, and those that concern no one, each with its
        place; block by block. Only what was kept with its rows.
        """
        for begin, bounds in self._blocks:
            of, *others = pairwise(bounds)
            general, at, n, message = (self._read(*part) for part in others)
            named = places_naming(
                messages, np.frombuffer(n, np.int64), np.frombuffer(message, np.uint64)
            )
            places = np.frombuffer(at, np.int64) + begin
            if not len(named):
                yield list(zip(places.tolist(), decoded(general), strict=True))
                continue
            events = decoded(self._read(*of))
            yield [(k, events[k - begin]) for k in np.union1d(named, places).tolist()]

    def _read(self, begin: int, end: int) -> bytes:
        self._file.seek(begin)
        return self._file.read(end - begin)
