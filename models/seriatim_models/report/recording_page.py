"""A whole recording as one page: every operation of every client on a line of time, to move along, magnify and search.

The page needs nothing else. Operations are packed into columns of numbers, about 20 bytes each, and drawn on a canvas:
those that are narrower than a pixel as how many there are, so that a million of them are drawn as fast as a hundred.
Pictures of this kind: Porcupine's and Knossos' visualizations of histories, Jepsen's ``timeline.html``.
"""

from __future__ import annotations

import sys
from array import array
from base64 import b64encode
from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report.templating import render
from seriatim_models.report.timeline import client_of, phase

OUTCOMES = ("ended", "refused", "outcome unknown", "never answered")
_OUTCOME = {"ok": 0, "fail": 1, "info": 2}
LIMIT = 2**32 - 2
"""The greatest number of units of time that a column holds."""


class ShownViolation(msgspec.Struct, frozen=True):
    """A violation and the operations that show it, by their numbers on the page."""

    property: str
    explanation: str
    operations: list[int]


class RecordingPage(msgspec.Struct):
    """What the page's script reads, beside the columns."""

    unit: int = 1
    """Nanoseconds of one unit of the columns `start` and `took`."""
    length: int = 0
    """Of the whole, in units."""
    rows: list[str] = []
    kinds: list[str] = []
    names: list[str] = []
    """Of messages; the first is that of operations which have none."""
    queues: list[str] = []
    errors: list[str] = []
    outcomes: tuple[str, ...] = OUTCOMES
    faults: list[tuple[str, int, int]] = []
    """Kind, begin and end."""
    violations: list[ShownViolation] = []


class _Numbered(dict[str, int]):
    """Names with their numbers, in the order in which they came."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


class _Operation(msgspec.Struct):
    event: Event
    start: int
    end: int
    outcome: int


def recording_page(
    events: Sequence[Event], title: str, findings: Iterable[Finding] = (), command: str = ""
) -> str:
    """The page of a recording; events without a time are left out."""
    operations, faults, place = _operations(events)
    spans = [(o.start, o.end) for o in operations] + [span for _, *span in faults]
    first = min((since for since, _ in spans), default=0)
    last = max((until for _, until in spans), default=0)
    unit = 1 + (last - first) // LIMIT
    shown = RecordingPage(unit=unit, length=(last - first) // unit)
    shown.faults = [
        (kind, (since - first) // unit, (until - first) // unit) for kind, since, until in faults
    ]
    for finding in findings:
        if finding.verdict is Verdict.VIOLATED:
            known = (place.get((e.rec, e.i)) for e in finding.witness)
            numbers = sorted({n for n in known if n is not None})
            shown.violations.append(ShownViolation(finding.property, finding.explanation, numbers))
    return render(
        "recording.html.j2",
        title=title,
        command=command,
        count=len(operations),
        seconds=(last - first) / 1e9,
        data=shown,
        columns=_columns(operations, shown, first),
    )


def _operations(
    events: Sequence[Event],
) -> tuple[list[_Operation], list[tuple[str, int, int]], dict[tuple[str, int], int]]:
    """The operations in the order in which they began, the faults, and by event the number of its operation."""
    made: list[tuple[_Operation, list[tuple[str, int]]]] = []
    begun: dict[tuple[str, int], int] = {}
    faults: list[tuple[str, int, int]] = []
    broken: dict[int, tuple[str, int]] = {}
    last = max((e.t for e in events if e.t is not None), default=0)
    for e in events:
        if e.t is None or e.ev in (GAP, "note"):
            continue
        if e.ev == "fault":
            if e.ph == "invoke":
                broken[e.op or 0] = (str(e.args.get("kind", "fault")), e.t)
            elif (since := broken.pop(e.op or 0, None)) is not None:
                faults.append((*since, e.t))
            continue
        if e.ph == "invoke" and e.op is not None:
            begun[e.rec, e.op] = len(made)
            made.append((_Operation(e, e.t, max(e.t, last), 3), [(e.rec, e.i)]))
            continue
        at = begun.pop((e.rec, e.op), None) if e.op is not None else None
        if at is None:
            made.append((_Operation(e, e.t, e.t, _OUTCOME.get(phase(e), 0)), [(e.rec, e.i)]))
            continue
        operation, parts = made[at]
        operation.event, operation.end = e, max(e.t, operation.start)
        operation.outcome = _OUTCOME.get(e.ph, 0)
        parts.append((e.rec, e.i))
    faults += [(kind, since, last) for kind, since in broken.values()]
    made.sort(key=lambda each: each[0].start)
    place = {part: n for n, (_, parts) in enumerate(made) for part in parts}
    return [operation for operation, _ in made], faults, place


def _columns(
    operations: Iterable[_Operation], shown: RecordingPage, first: int
) -> dict[str, Markup]:
    """The operations as columns in base64, and into `shown` the names that they number."""
    rows, kinds, names, queues, errors = (_Numbered({"": 0}) for _ in range(5))
    start, took, row, name, queue, error = (array("I") for _ in range(6))
    kind, outcome = array("B"), array("B")
    for o in operations:
        start.append((o.start - first) // shown.unit)
        took.append((o.end - o.start) // shown.unit)
        row.append(rows[client_of(o.event)])
        name.append(names[o.event.m])
        queue.append(queues[o.event.q])
        error.append(errors[o.event.err or ""])
        kind.append(min(kinds[o.event.ev], 255))
        outcome.append(o.outcome)
    shown.rows, shown.kinds, shown.names = list(rows), list(kinds), list(names)
    shown.queues, shown.errors = list(queues), list(errors)
    packed = {
        "start": start, "took": took, "row": row, "name": name, "queue": queue, "error": error,
        "kind": kind, "outcome": outcome,
    }  # fmt: skip
    for column in packed.values():
        if sys.byteorder == "big":
            column.byteswap()
    # Base64 has no character that means something in a page.
    return {n: Markup(b64encode(column.tobytes()).decode()) for n, column in packed.items()}
