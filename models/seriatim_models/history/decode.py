"""One line of a recording to one event.

The decoder of a file is chosen by its header's schema. It raises `BadLine` with the reason in words for a line that
is
no event; what to do about that is the reader's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from seriatim_models.history.event import LEVELS, PHASES, SCOPES, Event
from seriatim_models.history.header import Header, reason, split_unknown
from seriatim_models.history.lines import LINE_MAX

Decode = Callable[[bytes], Event]

NEEDED: Mapping[str, tuple[str, ...]] = {
    "publish": ("m",),
    "deliver": ("m",),
    "ch_open": ("conn", "ch"),
    "ch_close": ("conn", "ch"),
    "conn_close": ("conn",),
    "conn_drop": ("conn",),
}
"""Fields without which an event of that name says nothing."""

_event = msgspec.json.Decoder(Event)
_object = msgspec.json.Decoder(dict[str, object])


class BadLine(ValueError):
    """The line is no event; the message says why."""


def parse_object(raw: bytes) -> dict[str, object]:
    """The JSON object in a line, or `BadLine`."""
    if len(raw) >= LINE_MAX:
        raise BadLine(f"longer than {LINE_MAX} bytes")
    try:
        return _object.decode(raw)
    except msgspec.ValidationError as error:
        raise BadLine(reason(error)) from None
    except UnicodeDecodeError as error:
        raise BadLine(f"not UTF-8: {error.reason}") from None
    except msgspec.DecodeError as error:
        raise BadLine(f"not JSON: {error}") from None


def checked(event: Event) -> Event:
    """The event, if its words are of the schema and it has the fields that its name needs; else `BadLine`."""
    if event.ph not in PHASES:
        raise BadLine(f"field ph: {event.ph!r} is none of {', '.join(PHASES[1:])}")
    if event.lvl not in LEVELS:
        raise BadLine(f"field lvl: {event.lvl!r} is none of {', '.join(LEVELS[1:])}")
    if event.scope not in SCOPES:
        raise BadLine(f"field scope: {event.scope!r} is none of consumer, channel, conn, queue")
    for name in NEEDED.get(event.ev, ()):
        if getattr(event, name) in ("", None):
            raise BadLine(f"field {name}: missing from {event.ev}")
    return event


def from_object(obj: Mapping[str, object]) -> Event:
    """An event from a decoded JSON object; fields that the schema does not know go to `x`."""
    known, x = split_unknown(obj, Event)
    if x:
        known["x"] = x
    try:
        return msgspec.convert(known, Event)
    except msgspec.ValidationError as error:
        raise BadLine(reason(error)) from None


def qh1(raw: bytes) -> Event:
    """A line of schema qh/1."""
    try:
        return checked(_event.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Unknown fields are rare and faults rarer: only such a line is decoded twice.
        return checked(from_object(parse_object(raw)))


def with_defaults(header: Header, decode: Decode) -> Decode:
    """`decode`, filling in what the header says for all events."""
    defaults = {k: v for k in ("run", "rec", "lvl", "clk") if (v := getattr(header, k))}
    if not defaults:
        return decode

    def filled(raw: bytes) -> Event:
        event = decode(raw)
        missing = {k: v for k, v in defaults.items() if not getattr(event, k)}
        return msgspec.structs.replace(event, **missing) if missing else event

    return filled


def decoder(header: Header) -> Decode:
    """The decoder for the lines of a file with this header."""
    if header.schema == "qh/0":
        from seriatim_models.history.importers import qh0

        return with_defaults(header, qh0.Importer().decode)
    return with_defaults(header, qh1)
