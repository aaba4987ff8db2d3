"""OpenTelemetry messaging spans (OTLP JSON), as far as they can be a history.

One ``{"resourceSpans": [...]}`` object a line, as the file exporter writes
(https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/), or one for the whole file.
Attributes are those of https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/ (status Development).

| span (`messaging.operation.type`) | becomes |
|---|---|
| create, send, publish | publish invoke at its start; ok at its end, or info if its status is an error |
| receive | deliver: taken between its start and its end |
| process | deliver at its start, unless the same client received the message before |
| settle, by `messaging.operation.name` | ack (ack, acknowledge, complete), nack (nack, abandon), reject, at its start |

`m` is `messaging.message.id`, `q` `messaging.destination.name`, `part` and `pos` Kafka's partition and offset,
`ctag` the consumer group and client, `proc` the client.

Spans say less than a recording, and what they do not say must not be a violation:

- They may be sampled, so a publish may be missing: a `gap` stands at the beginning.
- Closes, requeues and expired leases leave no span: a `gap` stands before every message that comes again.
- Delivery tags are of channels, which spans do not name: they are kept in `x` and not judged.
- Whether a message was redelivered, and whether a nack requeues, is not recorded: left empty, so untestable.
- Hosts have clocks of their own: order between them is as good as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from seriatim_models.history.event import GAP, Event
from seriatim_models.history.lines import Line

LINT = (
    "spans may be sampled: a message without a publish is no violation",
    "closes, requeues and expired leases leave no span: a message that comes again is untestable",
    "redelivered flags, prefetch and channels are not recorded: P3 and P5 to P9 have no cases",
    "every host has its own clock",
)
"""What verdicts on such a history leave open, in words."""

_SENDS = {"create", "send", "publish"}
_SETTLES = {
    "ack": "ack", "acknowledge": "ack", "complete": "ack", "settle": "ack", "commit": "ack", "delete": "ack",
    "nack": "nack", "abandon": "nack", "reject": "reject", "dead_letter": "reject",
}  # fmt: skip


def fits(first: bytes, name: str) -> bool:
    """Whether a file begins as OTLP JSON does."""
    head = first.lstrip()[:4096].replace(b" ", b"")
    return head.startswith(b'{"resourceSpans"') or (
        head in (b"{", b"{\n") and name.endswith((".otlp.json", ".otlp.jsonl"))
    )


def header() -> dict[str, Any]:
    """The header that such a history would have."""
    return {"rec": "otel", "lvl": "api", "clk": "otel", "params": {"lint": list(LINT)}}


class _Span(msgspec.Struct):
    line: Line
    at: int
    fields: dict[str, Any]


class OtelImporter:
    """Events of one file. Spans are written when they end, so they are sorted first: the file is held in memory."""

    def read(self, rows: Iterable[Line]) -> Iterator[tuple[Line, list[Event] | str]]:
        """Each line with its events, or why it is none; the events of all spans come with the last line."""
        spans: list[_Span] = []
        last: Line | None = None
        for line in _whole(rows):
            last = line
            try:
                found = msgspec.json.decode(line.raw, type=dict[str, Any])
                spans += self._spans(line, found)
            except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
                yield line, f"no OTLP: {error}"
        if last is not None:
            yield last, _ordered(spans)

    def _spans(self, line: Line, found: Mapping[str, Any]) -> list[_Span]:
        if "resourceSpans" not in found:
            raise ValueError("field resourceSpans: missing")
        out = []
        for resource in _list(found, "resourceSpans"):
            about = _attributes(resource.get("resource") or {})
            for scope in _list(resource, "scopeSpans"):
                for span in _list(scope, "spans"):
                    out += self._of(line, span, about)
        return out

    def _of(self, line: Line, span: Mapping[str, Any], about: Mapping[str, Any]) -> list[_Span]:
        has = _attributes(span)
        if not any(key.startswith("messaging.") for key in has):
            return []
        start, end = _nanos(span, "startTimeUnixNano"), _nanos(span, "endTimeUnixNano")
        kind = str(has.get("messaging.operation.type", has.get("messaging.operation", "")))
        name = str(has.get("messaging.operation.name", ""))
        base = _common(has, span, about)
        m, x, client = base["m"], base["x"], base["proc"]
        group = str(has.get("messaging.consumer.group.name", ""))
        if not m:
            return []  # a batch, or a span about the client itself
        if kind in _SENDS:
            failed = (span.get("status") or {}).get("code") in (2, "STATUS_CODE_ERROR")
            publish = {**base, "ev": "publish"}
            pos = publish.pop("pos", None)
            done = {**publish, "ph": "info" if failed else "ok"} | (
                {} if pos is None else {"pos": pos}
            )
            return [
                _Span(line, start, {**publish, "ph": "invoke"}),
                _Span(line, end, done),
            ]
        consumer = f"{group}/{client}" if group else client
        if kind == "receive":
            return [_Span(line, end, {**base, "ev": "deliver", "ctag": consumer, "t_lo": start})]
        if kind in ("process", "deliver"):
            return [
                _Span(
                    line,
                    start,
                    {**base, "ev": "deliver", "ctag": consumer, "x": {**x, "process": "1"}},
                )
            ]
        if kind == "settle" and (ev := _SETTLES.get(name)) is not None:
            settled = {**base, "ev": ev, "ph": "invoke", "ctag": consumer, "ms": [m]}
            return [_Span(line, start, {k: v for k, v in settled.items() if k != "m"})]
        return []


def _common(
    has: Mapping[str, Any], span: Mapping[str, Any], about: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields that every event of a span has; `has` are its attributes, `about` those of its resource."""
    client = (
        has.get("messaging.client.id")
        or about.get("service.instance.id")
        or about.get("service.name")
        or ""
    )
    x = {"span": str(span.get("spanId", ""))}
    if (tag := has.get("messaging.rabbitmq.message.delivery_tag")) is not None:
        x["dtag"] = str(tag)
    base: dict[str, Any] = {
        "proc": str(client),
        "q": str(has.get("messaging.destination.name", "")),
        "m": str(has.get("messaging.message.id", "")),
        "x": x,
    }
    part = has.get("messaging.destination.partition.id")
    if part is not None and str(part).isdigit():
        base["part"] = int(part)
    offset = has.get("messaging.kafka.offset", has.get("messaging.kafka.message.offset"))
    if isinstance(offset, int):
        base["pos"] = offset
    return base


def _whole(rows: Iterable[Line]) -> Iterator[Line]:
    """Lines that are objects; or, where one object spans the lines, that."""
    held: list[bytes] = []
    first: Line | None = None
    for line in rows:
        raw = line.raw.strip()
        if not raw:
            continue
        if first is None and raw.startswith(b"{") and raw.endswith(b"}"):
            yield line
            continue
        first = first or line
        held.append(raw)
    if first is not None:
        yield first._replace(raw=b"\n".join(held))


def _ordered(spans: list[_Span]) -> list[Event]:
    """In the order of time, with gaps where anything may have happened."""
    spans.sort(key=lambda s: s.at)
    out: list[Event] = []
    given: set[tuple[str, str]] = set()
    received: set[tuple[str, str]] = set()

    def add(at: int, fields: dict[str, Any]) -> None:
        out.append(Event(i=len(out), t=at, **fields))

    if spans:
        add(spans[0].at, {"ev": GAP})
    for span in spans:
        fields = span.fields
        if fields["ev"] == "deliver":
            who = (fields["ctag"], fields["m"])
            if fields["x"].pop("process", None):
                if who in received:
                    continue
            else:
                received.add(who)
            message = (fields["q"], fields["m"])
            if message in given:
                add(span.at, {"ev": GAP})
            given.add(message)
        add(span.at, fields)
    return out


def _list(of: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = of.get(name, [])
    if not isinstance(found, list) or not all(isinstance(x, dict) for x in found):
        raise ValueError(f"field {name}: no list of objects")
    return found


def _attributes(of: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as plain values."""
    out: dict[str, Any] = {}
    for attribute in _list(of, "attributes"):
        value = attribute.get("value")
        if not isinstance(value, dict) or not isinstance(attribute.get("key"), str):
            raise ValueError("field attributes: an attribute without key or value")
        if "intValue" in value:
            out[attribute["key"]] = int(value["intValue"])
        else:
            out[attribute["key"]] = next(iter(value.values()), None)
    return out


def _nanos(span: Mapping[str, Any], name: str) -> int:
    try:
        return int(span[name])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"field {name}: {span.get(name)!r} is no number of nanoseconds") from None
