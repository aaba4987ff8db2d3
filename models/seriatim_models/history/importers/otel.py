"""OpenTelemetry messaging spans (OTLP JSON), as far as they can be a history.

One ``{"resourceSpans": [...]}`` object a line, as the file exporter writes
(https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/), or one for the whole file.
Attributes are those of https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/ (status Development),
and those of earlier versions, which most instrumentations still write (`NAMES`).

| what the span did | becomes |
|---|---|
| send | publish invoke at its start; ok at its end, or info if its status is an error |
| receive | deliver: taken between its start and its end |
| receive, around a callback (pika, aio-pika) | deliver at its start, taken at any time before |
| process | deliver at its start, unless the same client received the message before |
| settle: ack (ack, acknowledge, complete), nack (nack, abandon), reject | that, at its start |

What it did is its kind if that is PRODUCER (confluent-kafka calls a send an operation "receive"), else
`messaging.operation.type`, `messaging.operation` or `messaging.operation.name`, else `celery.action`, else a word of
its name ("orders send", "basic.ack"), else its kind CONSUMER.

Which message it was: the span that sent it is a link of a consumer's span, or its parent; if it is in the file, the two
have one message. Otherwise `messaging.message.id`, else topic, partition and offset, else a link, or a parent in
another process (`flags`).
`q` is `messaging.destination.name`, `part` and `pos` Kafka's partition and offset, `ctag` the consumer group and
client, `proc` the client. A batch is a delivery for each link.

Spans say less than a recording, and what they do not say must not be a violation:

- They may be sampled, so a publish may be missing: a `gap` stands at the beginning.
- A span of messaging that cannot be used is counted, with what is missing, and a `gap` stands in its place.
- Closes, requeues and expired leases leave no span: a `gap` stands before every message that comes again.
- Delivery tags are of channels, which spans do not name: they are kept in `x` and not judged.
- Whether a message was redelivered, and whether a nack requeues, is not recorded: left empty, so untestable.
- Hosts have clocks of their own (`HOSTS`), whose times do not compare. Where several send to one queue, each of its
  publishes may be at any time; where several receive from it, each message may have been taken at any time before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from seriatim_models.history.depth import TOO_DEEP, TOO_LARGE, too_deep, too_large, whole_number
from seriatim_models.history.event import GAP, Event
from seriatim_models.history.lines import Line

LINT = (
    "spans may be sampled: a message without a publish is no violation",
    "closes, requeues and expired leases leave no span: a message that comes again is untestable",
    "redelivered flags, prefetch and channels are not recorded: P3 and P5 to P9 have no cases",
    "every host has its own clock: of a queue that several hosts send to, or receive from, order is untestable",
)
"""What verdicts on such a history leave open, in words."""

NAMES = {
    "destination": ("messaging.destination.name", "messaging.destination"),
    "message": ("messaging.message.id", "messaging.message_id"),
    "client": ("messaging.client.id", "messaging.client_id", "messaging.kafka.client_id", "messaging.consumer.id"),
    "group": ("messaging.consumer.group.name", "messaging.kafka.consumer.group", "messaging.kafka.consumer_group"),
    "partition": (
        "messaging.destination.partition.id", "messaging.kafka.destination.partition", "messaging.kafka.partition"),
    "offset": ("messaging.kafka.offset", "messaging.kafka.message.offset"),
    "tag": ("messaging.rabbitmq.message.delivery_tag", "messaging.rabbitmq.delivery_tag"),
    "operation": ("messaging.operation.type", "messaging.operation", "messaging.operation.name", "celery.action"),
}  # fmt: skip
"""Names of attributes in the semantic conventions, the newest first."""

HOSTS = ("host.id", "host.name", "k8s.node.name", "service.instance.id", "service.name")
"""Attributes of a resource that tell whose clock it has, the first that is there."""

_DOES = {
    **dict.fromkeys(("create", "send", "publish", "produce", "apply_async"), "send"),
    **dict.fromkeys(("receive", "recv", "poll", "get", "consume", "fetch"), "receive"),
    **dict.fromkeys(("process", "deliver", "handle", "run"), "process"),
    **dict.fromkeys(("ack", "acknowledge", "complete", "settle", "commit", "delete"), "ack"),
    **dict.fromkeys(("nack", "abandon"), "nack"),
    **dict.fromkeys(("reject", "dead_letter"), "reject"),
}
"""What a span did, by the word for it in an attribute or in its name."""

_KINDS = {4: "send", "SPAN_KIND_PRODUCER": "send", 5: "process", "SPAN_KIND_CONSUMER": "process"}
_AROUND_CALLBACKS = ("opentelemetry.instrumentation.pika", "opentelemetry.instrumentation.aio_pika")
"""Scopes whose span of a receive begins when the message has been received, and ends with its callback."""

_REMOTE = 0x200
"""The flag of a span whose parent is of another process (OTLP 1.1)."""


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
    """One span of messaging; `id` and `origins` are (trace, span)."""

    line: Line
    id: tuple[str, str]
    does: str
    name: str
    start: int
    end: int
    failed: bool
    has: dict[str, Any]
    about: dict[str, Any]
    parent: tuple[str, str]
    links: list[tuple[str, str]]
    remote: bool
    around: bool
    """Whether it is a receive that goes on while the message is processed."""


class _Timed(msgspec.Struct):
    """An event to be, its time and whose time that is; without `fields` a gap."""

    at: int
    fields: dict[str, Any] | None
    clock: str = ""


class OtelImporter:
    """Events of one file. Spans are written when they end, so they are sorted first: the file is held in memory."""

    def read(self, rows: Iterable[Line]) -> Iterator[tuple[Line, list[Event] | str]]:
        """Each line with its events, or why it is none; the events of all spans come with the last line.

        So do the counts of spans that could not be used, one reason each.
        """
        spans: list[_Span] = []
        last: Line | None = None
        for line in _whole(rows):
            last = line
            try:
                found = msgspec.json.decode(line.raw, type=dict[str, Any])
                if too_deep(found):
                    raise ValueError(TOO_DEEP)
                spans += self._spans(line, found)
            except RecursionError:
                yield line, f"no OTLP: {TOO_DEEP}"
            except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
                yield line, f"no OTLP: {error}"
            except (TypeError, AttributeError):
                yield (
                    line,
                    "no OTLP: an object, a list or a name stands where another of these belongs",
                )
        if last is None:
            return
        by_id = {s.id: s for s in spans}
        left_out: Counter[str] = Counter()
        timed: list[_Timed] = []
        for span in spans:
            made = _events(span, by_id)
            if isinstance(made, str):
                left_out[made] += 1
                made = [_Timed(span.start, None)]
            clock = next((str(span.about[name]) for name in HOSTS if span.about.get(name)), "")
            for one in made:
                one.clock = clock
            timed += made
        _widen(timed)
        yield last, _ordered(timed)
        for why, n in left_out.most_common():
            yield last, f"{n} of {len(spans)} messaging spans left out: {why}"

    def _spans(self, line: Line, found: Mapping[str, Any]) -> list[_Span]:
        if "resourceSpans" not in found:
            raise ValueError("field resourceSpans: missing")
        out = []
        for resource in _list(found, "resourceSpans"):
            about = _attributes(resource.get("resource") or {})
            for scope in _list(resource, "scopeSpans"):
                named = str((scope.get("scope") or {}).get("name", ""))
                for span in _list(scope, "spans"):
                    has = _attributes(span)
                    if any(key.startswith(("messaging.", "celery.")) for key in has):
                        out.append(_span(line, span, has, about, named))
        return out


def _span(
    line: Line, span: Mapping[str, Any], has: dict[str, Any], about: dict[str, Any], scope: str
) -> _Span:
    trace = str(span.get("traceId", ""))
    links = [(str(k.get("traceId", "")), str(k.get("spanId", ""))) for k in _list(span, "links")]
    flags = span.get("flags")
    return _Span(
        line=line,
        id=(trace, str(span.get("spanId", ""))),
        does=_does(span, has),
        name=str(span.get("name", "")),
        start=_nanos(span, "startTimeUnixNano"),
        end=_nanos(span, "endTimeUnixNano"),
        failed=(span.get("status") or {}).get("code") in (2, "STATUS_CODE_ERROR"),
        has=has,
        about=about,
        parent=(trace, str(span.get("parentSpanId", ""))),
        links=links,
        remote=isinstance(flags, int) and bool(flags & _REMOTE),
        around=scope.startswith(_AROUND_CALLBACKS),
    )


def _does(span: Mapping[str, Any], has: Mapping[str, Any]) -> str:
    """What a span did: send, receive, process, ack, nack or reject; "" if nothing tells."""
    kind = _KINDS.get(span.get("kind", 0), "")
    if kind == "send":
        return kind
    words = [str(has[name]).lower() for name in NAMES["operation"] if has.get(name)]
    if "settle" in words:  # how is the name of the operation
        words = [w for w in words if w != "settle"] or words
    name = str(span.get("name", "")).lower().replace(".", " ").split()
    return next((_DOES[w] for w in (*words, *name[-1:], *name[:1]) if w in _DOES), kind)


def _first(has: Mapping[str, Any], what: str) -> Any:
    """The value of the first attribute of these names that is there, or None."""
    return next((has[name] for name in NAMES[what] if has.get(name) is not None), None)


def _messages(span: _Span, by_id: Mapping[tuple[str, str], _Span]) -> list[str]:
    """The ids of the messages of a span; none if nothing tells."""
    own = _first(span.has, "message")
    own = _place(span.has) if own is None else own
    if span.does == "send":
        return [str(own) if own is not None else _named(span.id)]
    sent = []
    for origin in (*span.links, span.parent):
        seen: set[tuple[str, str]] = set()
        while (at := by_id.get(origin)) is not None and at.does != "send" and origin not in seen:
            seen.add(origin)
            origin = at.links[0] if at.links else at.parent
        if at is not None and at.does == "send":
            sent.append(_messages(at, by_id)[0])
    if sent:
        return sent if len(span.links) > 1 else sent[:1]
    if own is not None:
        return [str(own)]
    if span.links:
        return [_named(link) for link in span.links]
    return [_named(span.parent)] if span.remote and span.parent[1] else []


def _place(has: Mapping[str, Any]) -> str | None:
    """What names a record of a log: its topic, partition and offset; None if one of them is not known."""
    place = [_first(has, part) for part in ("destination", "partition", "offset")]
    return None if None in place else "/".join(map(str, place))


def _named(id: tuple[str, str]) -> str:
    return "/".join(id)


def _events(span: _Span, by_id: Mapping[tuple[str, str], _Span]) -> list[_Timed] | str:
    """The events of a span, or why there are none."""
    if not span.does:
        return f"neither its kind nor an operation nor its name tells what {span.name!r} did"
    messages = _messages(span, by_id)
    if not messages:
        return (
            f"{span.does}: its message is not named; messaging.message.id, or a link or parent that is the span "
            "of its sender, or partition and offset, would name it"
        )
    made: list[_Timed] = []
    for m in messages:
        base = _common(span, m)
        group = _first(span.has, "group")
        consumer = f"{group}/{base['proc']}" if group else base["proc"]
        if span.does == "send":
            publish = {**base, "ev": "publish"}
            pos = publish.pop("pos", None)
            done = {**publish, "ph": "info" if span.failed else "ok"}
            made.append(_Timed(span.start, {**publish, "ph": "invoke"}))
            made.append(_Timed(span.end, done | ({} if pos is None else {"pos": pos})))
        elif span.does == "receive" and not span.around:
            taken = {"ev": "deliver", "ctag": consumer, "t_lo": span.start}
            made.append(_Timed(span.end, {**base, **taken}))
        elif span.does in ("receive", "process"):
            x = base["x"] if span.does == "receive" else {**base["x"], "process": "1"}
            made.append(_Timed(span.start, {**base, "ev": "deliver", "ctag": consumer, "x": x}))
        else:
            settled = {**base, "ev": span.does, "ph": "invoke", "ctag": consumer, "ms": [m]}
            made.append(_Timed(span.start, {k: v for k, v in settled.items() if k != "m"}))
    return made


def _common(span: _Span, message: str) -> dict[str, Any]:
    """The fields that every event of a span has."""
    has, about = span.has, span.about
    client = (
        _first(has, "client") or about.get("service.instance.id") or about.get("service.name") or ""
    )
    x = {"span": span.id[1]}
    if (tag := _first(has, "tag")) is not None:
        x["dtag"] = str(tag)
    temporary = has.get("messaging.temp_destination") or has.get("messaging.destination.temporary")
    q = "" if temporary else str(_first(has, "destination") or "")
    base: dict[str, Any] = {"proc": str(client), "q": q, "m": message, "x": x}
    part = whole_number(str(_first(has, "partition")))
    if part is not None and part >= 0:
        base["part"] = part
    offset = _first(has, "offset")
    if type(offset) is int and not too_large(offset):
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


def _widen(timed: list[_Timed]) -> None:
    """Where events of one queue have times of several clocks, leave open when they were."""
    clocks: dict[tuple[str, str], set[str]] = {}
    events = [(one, fields) for one in timed if (fields := one.fields) is not None]
    for one, fields in events:
        clocks.setdefault((fields["ev"], fields["q"]), set()).add(one.clock)
    first = min((one.at for one in timed), default=0)
    last = max((one.at for one in timed), default=0)
    for one, fields in events:
        if len(clocks[fields["ev"], fields["q"]]) == 1:
            continue
        if fields["ev"] == "publish":
            one.at = first if fields["ph"] == "invoke" else last
        elif fields["ev"] == "deliver":
            fields["t_lo"] = first


def _ordered(timed: list[_Timed]) -> list[Event]:
    """In the order of time, with gaps where anything may have happened."""
    timed.sort(key=lambda s: s.at)
    out: list[Event] = []
    given: set[tuple[str, str]] = set()
    received: set[tuple[str, str]] = set()

    def add(at: int, fields: dict[str, Any]) -> None:
        out.append(Event(i=len(out), t=at, **fields))

    if timed:
        add(timed[0].at, {"ev": GAP})
    for one in timed:
        fields = one.fields
        if fields is None:
            add(one.at, {"ev": GAP})
            continue
        if fields["ev"] == "deliver":
            who = (fields["ctag"], fields["m"])
            if fields["x"].pop("process", None):
                if who in received:
                    continue
            else:
                received.add(who)
            message = (fields["q"], fields["m"])
            if message in given:
                add(one.at, {"ev": GAP})
            given.add(message)
        add(one.at, fields)
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
        found = int(span[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError(f"field {name}: {span.get(name)!r} is no number of nanoseconds") from None
    if too_large(found):
        raise ValueError(f"field {name}: {TOO_LARGE}")
    return found
