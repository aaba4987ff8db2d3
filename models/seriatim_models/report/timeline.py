"""A whole recording as one picture: clients as rows, faults as bands, how long operations took, and the violations.

Time is divided into columns, so that a picture of a million events is as large as one of a hundred. In each column of a
client's row a bar says how many of its operations ended then, darkest where most did; a mark stands where an outcome is
unknown or an operation was refused. Pictures of this kind: Jepsen's ``timeline.html`` and its latency plots.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from math import log10

import msgspec

from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.causes import last_step
from seriatim_models.report.terminal import quantity
from seriatim_models.report.visible import in_a_line

COLUMNS, ROWS_MAX = 600, 40
WIDTH, LEFT, ROW, LATENCY, TOP = 1200, 110, 16, 120, 34
"""Sizes in pixels."""
DECADES = (-2, 4)
"""Powers of ten of milliseconds between which durations are drawn."""
COLOURS = {"ok": "#2b6cb0", "info": "#c53030", "fail": "#dd8a00"}
VIOLATION = "#c53030"
SEEN = frozenset({"deliver", "return", "expire", "conn_drop", "history", "final"})
"""Events that nobody called. Recorders mark many of them ``info``, which says of a call that its outcome is unknown."""


class TimelineColumn(msgspec.Struct):
    """What ended in one column of one row."""

    ok: int = 0
    info: int = 0
    fail: int = 0


class RecordingTimeline(msgspec.Struct):
    """A recording, counted by row and column."""

    first: int
    last: int
    rows: dict[str, dict[int, TimelineColumn]] = {}
    faults: list[tuple[str, int, int]] = []
    """Kind, begin and end in nanoseconds."""
    took: dict[int, tuple[float, int, float]] = {}
    """By column the sum of durations in milliseconds, how many there were, and the longest."""
    left_out: int = 0
    """Events of clients for which there is no row."""

    def column(self, t: int) -> int:
        """The column of a time."""
        return min(COLUMNS - 1, (t - self.first) * COLUMNS // max(1, self.last - self.first))


def client_of(event: Event) -> str:
    """Whose row it is: the thread that asked, or the connection without the number of its incarnation."""
    return event.proc or re.sub(r"\.\d+$", "", event.conn) or event.ctag or event.ev


def phase(event: Event) -> str:
    """The phase of an event, ``ok`` for what is only seen and so has no outcome that could be unknown."""
    return "ok" if event.ev in SEEN else event.ph


def timeline_of(
    events: Sequence[Event], window: tuple[float, float] | None = None
) -> RecordingTimeline:
    """Count a recording, whose events have times; with a `window` what ended in these seconds from its beginning."""
    times = [e.t for e in events if e.t is not None]
    first, last = min(times, default=0), max(times, default=0)
    if window is not None:
        first, last = (first + int(1e9 * seconds) for seconds in window)
    timeline = RecordingTimeline(first, last)
    begun: dict[tuple[str, int], int] = {}
    broken: dict[int, tuple[str, int]] = {}
    for e in events:
        if e.t is None or e.ev == GAP:
            continue
        if e.ev == "fault" and e.op is not None:
            if e.ph == "invoke":
                nodes = e.args.get("nodes")
                where = f" {','.join(map(str, nodes))}" if isinstance(nodes, list) else ""
                broken[e.op] = (f"{e.args.get('kind', 'fault')}{where}", e.t)
            elif e.op in broken:
                timeline.faults.append((*broken.pop(e.op), e.t))
        elif e.ph == "invoke" and e.op is not None:
            begun[e.rec, e.op] = e.t
        elif e.ph or e.ev == "deliver":
            since = begun.pop((e.rec, e.op), None) if e.op is not None else None
            if first <= e.t <= last:
                _ended(timeline, e, e.t, since)
    timeline.faults += [(kind, since, last) for kind, since in broken.values()]
    timeline.faults = [
        (kind, max(since, first), min(until, last))
        for kind, since, until in timeline.faults
        if until >= first and since <= last
    ]
    return timeline


def _ended(timeline: RecordingTimeline, event: Event, t: int, since: int | None) -> None:
    """An operation ended, or a delivery came."""
    name, at = client_of(event), timeline.column(t)
    if name not in timeline.rows and len(timeline.rows) >= ROWS_MAX:
        timeline.left_out += 1
        return
    cell = timeline.rows.setdefault(name, {}).setdefault(at, TimelineColumn())
    ended = phase(event)
    if ended == "info":
        cell.info += 1
    elif ended == "fail":
        cell.fail += 1
    else:
        cell.ok += 1
        if since is not None:
            ms = (t - since) / 1e6
            total, n, longest = timeline.took.get(at, (0.0, 0, 0.0))
            timeline.took[at] = (total + ms, n + 1, max(longest, ms))


def timeline_svg(
    events: Sequence[Event],
    title: str,
    findings: Iterable[Finding] = (),
    window: tuple[float, float] | None = None,
) -> str:
    """The picture as SVG, of all or of a `window`, see `timeline_of`."""
    timeline = timeline_of(events, window)
    bottom = TOP + ROW * len(timeline.rows)
    height = bottom + LATENCY + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="10">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="6" y="14" font-size="12">{_text(title)}</text>',
    ]
    for kind, since, until in timeline.faults:
        x, end = _x(timeline.column(since)), _x(timeline.column(until) + 1)
        what = _text(kind)
        size = f'width="{max(1.0, end - x):g}" height="{bottom + LATENCY - TOP}"'
        parts.append(
            f'<g class="fault"><rect x="{x:g}" y="{TOP}" {size} fill="#f6ad55" opacity=".3">'
            f"<title>{what}, {(until - since) / 1e9:.2f} s</title></rect>"
            f'<text x="{x:g}" y="{TOP - 4}" fill="#9c4221">{what}</text></g>'
        )
    most = max((c.ok for row in timeline.rows.values() for c in row.values()), default=1) or 1
    for n, (name, row) in enumerate(sorted(timeline.rows.items())):
        y = TOP + ROW * n
        parts.append(f'<text x="6" y="{y + 11}">{_text(name[:18])}</text>')
        parts += [_cell(_x(at), y, cell, most) for at, cell in sorted(row.items())]
    parts += _latency(timeline, bottom)
    for finding in findings:
        step = last_step(finding) if finding.verdict is Verdict.VIOLATED else None
        if step and step.t is not None and timeline.first <= step.t <= timeline.last:
            x = _x(timeline.column(step.t))
            said = _text(f"{finding.property}: {finding.explanation}")
            line = f'x1="{x:g}" x2="{x:g}" y1="{TOP}" y2="{bottom + LATENCY}" stroke-width="2"'
            parts.append(
                f'<g class="violation" stroke="{VIOLATION}"><line {line}><title>{said}</title></line>'
                f'<text x="{x + 3:g}" y="{bottom + 10}">{_text(finding.property)}</text></g>'
            )
    seconds = (timeline.last - timeline.first) / 1e9
    left = f"; {timeline.left_out:,} of further clients not drawn" if timeline.left_out else ""
    drawn = quantity(len(events), "event")
    if window is not None:
        left = f", of which this is from {window[0]:g} s on{left}"
    parts.append(
        f'<text x="6" y="{height - 8}">{seconds:.1f} s, {drawn}{left}. Blue: ended; red: outcome '
        "unknown; yellow: refused; bands: faults. Below: mean and longest duration, logarithmic.</text></svg>"
    )
    return "\n".join(parts)


def _text(said: str) -> str:
    """What a stranger wrote, as XML."""
    return html.escape(in_a_line(said))


def _x(column: int) -> float:
    return LEFT + column * (WIDTH - LEFT - 10) / COLUMNS


def _cell(x: float, y: int, cell: TimelineColumn, most: int) -> str:
    """One column of one row."""
    width = (WIDTH - LEFT - 10) / COLUMNS
    drawn = ""
    if cell.ok:
        drawn = (
            f'<rect x="{x:g}" y="{y + 2}" width="{width:.2f}" height="{ROW - 4}" fill="{COLOURS["ok"]}" '
            f'opacity="{0.25 + 0.75 * cell.ok / most:.2f}"/>'
        )
    for kind, n in (("fail", cell.fail), ("info", cell.info)):
        if n:
            size = f'width="{width + 0.6:.2f}" height="{ROW - 2}"'
            drawn += f'<rect class="{kind}" x="{x:g}" y="{y + 1}" {size} fill="{COLOURS[kind]}"/>'
    return drawn


def _latency(timeline: RecordingTimeline, top: int) -> list[str]:
    """How long operations took, under the rows."""
    low, high = DECADES

    def y(ms: float) -> float:
        power = min(max(log10(max(ms, 1e-9)), low), high)
        return top + LATENCY - (power - low) / (high - low) * (LATENCY - 10)

    lines = []
    for height, ms in ((y(10.0**p), 10.0**p) for p in range(low, high + 1)):
        ends = f'x1="{LEFT}" x2="{WIDTH - 10}" y1="{height:g}" y2="{height:g}"'
        lines.append(
            f'<g fill="#718096"><line {ends} stroke="#e2e8f0"/>'
            f'<text x="{LEFT - 6}" y="{height + 3:g}" text-anchor="end">{ms:g} ms</text></g>'
        )
    columns = sorted(timeline.took.items())
    for colour, points in (
        ("#a0aec0", [(at, longest) for at, (_, _, longest) in columns]),
        (COLOURS["ok"], [(at, total / n) for at, (total, n, _) in columns]),
    ):
        drawn = " ".join(f"{_x(at):g},{y(ms):g}" for at, ms in points)
        lines.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}"/>')
    return lines
