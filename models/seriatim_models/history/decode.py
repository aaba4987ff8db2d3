"""One line of a recording to one event.

The decoder of a file is chosen by its header's schema. It raises `BadLine` with the reason in words for a line that
is no event; what to do about that is the reader's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

import msgspec

from seriatim_models.history.catalogue import REQUIRED, SETTLEMENTS, fault, nameless, wrong_type
from seriatim_models.history.depth import DEPTH_MAX, TOO_DEEP, TOO_LARGE, too_deep, too_large
from seriatim_models.history.event import LEVELS, PHASES, SCOPES, Event
from seriatim_models.history.header import Header, split_unknown
from seriatim_models.history.importers import qh0
from seriatim_models.history.lines import LINE_MAX

Decode = Callable[[bytes], Event]

_event = msgspec.json.Decoder(Event)
_object = msgspec.json.Decoder(dict[str, object])
_words = attrgetter("ph", "lvl", "scope")
_set = msgspec.structs.force_setattr


class BadLine(ValueError):
    """The line is no event; the message says why."""


def parse_object(raw: bytes) -> dict[str, object]:
    """The JSON object in a line, or `BadLine`."""
    if len(raw) >= LINE_MAX:
        raise BadLine(f"longer than {LINE_MAX} bytes")
    try:
        found = _object.decode(raw)
    except RecursionError:
        raise BadLine(TOO_DEEP) from None
    except msgspec.ValidationError as error:
        raise BadLine(wrong_type(error)) from None
    except UnicodeDecodeError as error:
        raise BadLine(f"not UTF-8: {error.reason}") from None
    except msgspec.DecodeError as error:
        raise BadLine(f"not JSON: {error}") from None
    if too_deep(found):
        raise BadLine(TOO_DEEP)
    return found


def checked(event: Event) -> Event:
    """The event, if its words are of the schema and it is as the catalogue declares its name; else `BadLine`."""
    if event.ph not in PHASES:
        raise BadLine(f"field ph: {event.ph!r} is none of {', '.join(PHASES[1:])}")
    if event.lvl not in LEVELS:
        raise BadLine(f"field lvl: {event.lvl!r} is none of {', '.join(LEVELS[1:])}")
    if event.scope not in SCOPES:
        raise BadLine(f"field scope: {event.scope!r} is none of consumer, channel, conn, queue")
    if event.args and too_deep(event.args, DEPTH_MAX - 1):  # an object in the line's object
        raise BadLine(TOO_DEEP)
    for name in ("args", "x") if event.args or event.x else ():
        if (held := getattr(event, name)) and too_large(held):
            raise BadLine(f"field {name}: {TOO_LARGE}")
    # most events need not be asked of the catalogue, and this is run for every one
    if (event.lvl == "model" or event.ev in REQUIRED or nameless(event)) and (why := fault(event)):
        raise BadLine(why)
    return event


def all_checked(events: Sequence[Event]) -> None:
    """Raise `BadLine` where `checked` does of one of the events. What holds of nearly all is asked of all at once."""
    known = all(
        ph in PHASES and lvl in LEVELS and lvl != "model" and scope in SCOPES
        for ph, lvl, scope in set(map(_words, events))
    )
    for e in events:
        named = (
            e.m if e.ev in ("publish", "deliver") else e.dtag is not None and e.ev in SETTLEMENTS
        )
        if not (known and named) or e.args or e.x:
            checked(e)


def from_object(obj: Mapping[str, object]) -> Event:
    """An event from a decoded JSON object; fields that the schema does not know go to `x`. Raises `BadLine`."""
    known, x = split_unknown(obj, Event)
    if x:
        known["x"] = x
    try:
        return msgspec.convert(known, Event)
    except msgspec.ValidationError as error:
        raise BadLine(wrong_type(error)) from None


def _qh1(raw: bytes) -> Event:
    """A line of schema qh/1."""
    try:
        return _event.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Unknown fields are rare and faults rarer: only such a line is decoded twice.
        return from_object(parse_object(raw))


def _qh0(raw: bytes) -> Event:
    """A line of schema qh/0, without what the lines before it imply."""
    obj = parse_object(raw)
    if why := qh0.fault(obj):
        raise BadLine(why)
    return from_object(qh0.renamed(obj))


def decoder(header: Header) -> Decode:
    """The decoder for the lines of a file with this header, whose defaults it fills in."""
    old = header.schema == "qh/0"
    decode = _qh0 if old else _qh1
    defaults = {k: v for k in ("run", "rec", "lvl", "clk") if (v := getattr(header, k))}

    given = attrgetter(*defaults, "ev")  # of several, so that it gives a tuple

    def complete(raw: bytes) -> Event:
        event = decode(raw)
        if all(given(event)):  # what nothing is missing of is not asked for each default
            return checked(event)
        for name, default in defaults.items():
            if not getattr(event, name):
                _set(event, name, default)  # nobody else has seen it yet
        return checked(event)

    if old:
        context = qh0.Context()
        return lambda raw: context.added_to(complete(raw))
    return complete if defaults else lambda raw: checked(decode(raw))
