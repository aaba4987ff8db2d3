"""The first line of a recording: which schema, which recorder, from what.

``{"schema": "qh/1", "run": "r1", "rec": "pika", "lvl": "api", "clk": "host-a", "broker": "...", "params": {...}}``

`run`, `rec`, `lvl` and `clk` are defaults for the events that do not say their own.
A qh/1 file may leave the header out; then its name is its run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from seriatim_models.history.catalogue import CLIENT_EVENTS, wrong_type
from seriatim_models.history.event import LEVELS, SCHEMA, Event
from seriatim_models.history.faults import HistoryError
from seriatim_models.history.importers import qh0

SCHEMAS = (SCHEMA, "qh/0")


class Header(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What holds for a whole recording."""

    schema: str = SCHEMA
    run: str = ""
    rec: str = ""
    lvl: str = ""
    clk: str = ""
    broker: str = ""
    client: str = ""
    # Any: free parameters of the recorder, plain JSON
    params: dict[str, Any] = {}
    x: dict[str, str] = {}
    """Fields this schema does not know, kept as text."""


def declared(event: Event, header: Header) -> Event:
    """The event with what the header declares that its kind means: of a `commit`, see `catalogue.committed`."""
    meaning = header.params.get("committed")
    if event.ev != "commit" or meaning is None or "committed" in event.args:
        return event
    return msgspec.structs.replace(event, args={**event.args, "committed": meaning})


def header_of(obj: Mapping[str, object], where: str) -> Header:
    """The header from its JSON object; `where` names file and line in the error.

    Raises `HistoryError` for a schema this package cannot read and for a field of the wrong type.
    """
    schema = obj.get("schema")
    if schema not in SCHEMAS:
        raise HistoryError(
            f"{where}: field schema: {schema!r} cannot be read; known are {' and '.join(SCHEMAS)}"
        )
    if schema == "qh/0":
        obj = qh0.header(obj)
    known, x = split_unknown(obj, Header)
    try:
        header = msgspec.convert({**known, "x": x}, Header)
    except msgspec.ValidationError as error:
        raise HistoryError(f"{where}: {wrong_type(error)}") from error
    if header.lvl not in LEVELS:
        raise HistoryError(f"{where}: field lvl: {header.lvl!r} is none of {', '.join(LEVELS[1:])}")
    if why := _unrecorded_fault(header.params.get("unrecorded", [])):
        raise HistoryError(f"{where}: field params.unrecorded: {why}")
    return header


def _unrecorded_fault(kinds: object) -> str:
    """What is wrong with a declaration of events that are never written, or empty; see `unrecorded`."""
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        return "is no list of names of events"
    unknown = [kind for kind in kinds if kind not in CLIENT_EVENTS]
    if not unknown:
        return ""
    return f"{unknown[0]!r} is no event that a client sees; known are {', '.join(sorted(CLIENT_EVENTS))}"


def header_object(header: Header) -> dict[str, object]:
    """The header as it is written: the schema is always there, and is this one whatever the events were read from."""
    return {**msgspec.to_builtins(header), "schema": SCHEMA}


def split_unknown(
    obj: Mapping[str, object], struct: type[msgspec.Struct]
) -> tuple[dict[str, object], dict[str, object]]:
    """The fields that `struct` knows, and the rest as text (strings as they are, all else as JSON) joined to `x`."""
    known = {k: v for k, v in obj.items() if k in struct.__struct_fields__ and k != "x"}
    x: dict[str, object] = {
        k: v if isinstance(v, str) else msgspec.json.encode(v).decode()
        for k, v in obj.items()
        if k not in struct.__struct_fields__
    }
    given = obj.get("x")
    if isinstance(given, Mapping):
        x.update(given)
    return known, x
