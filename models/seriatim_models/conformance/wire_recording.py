"""AMQP 0-9-1 frames as a history: the methods of both directions of a connection, each as its event.

Times: what a client sends is recorded before it is forwarded, what the broker sends after it came in. So `t` bounds the
effect of a command from below and an acquisition from above, as in every history.
A message is known by its `message_id`, else by a hash of its body; the queue of a publish is known for the default
exchange only.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pika.exceptions
from pika import frame as frames
from pika import spec

from seriatim_models.history.event import Event

BUFFER_MAX = 2**24
"""Bytes of a frame that is not complete; AMQP's own limit is agreed far below that."""
EVENTS_MAX = 5_000_000

# Any: pika's methods and properties, which have no types
Method = Any
OnMethod = Callable[[int, Method, Any, bytes], None]
Fields = dict[str, object]


class WireRecorder:
    """Events of many connections in one order, from the threads of the proxy."""

    def __init__(self, limit: int = EVENTS_MAX) -> None:
        self.events: list[Event] = []
        self.unreadable = 0
        """Connections whose frames could not be parsed to the end."""
        self._limit = limit
        self._lock = threading.Lock()

    @property
    def full(self) -> bool:
        """Whether further events are not recorded."""
        return len(self.events) >= self._limit

    def record(self, ev: str, **fields: object) -> int:
        """Record an event; returns its index."""
        with self._lock:
            i = len(self.events)
            if not self.full:
                # Any field of Event; msgspec does not check on construction
                made = Event(i=i, t=time.monotonic_ns(), ev=ev, lvl="wire", **fields)  # type: ignore[arg-type]
                self.events.append(made)
            return i

    def amend(self, i: int, **fields: object) -> None:
        """Set fields of an event that are known only from its answer."""
        with self._lock:
            if i < len(self.events):
                self.events[i] = msgspec.structs.replace(self.events[i], **fields)


@dataclass
class _Content:
    method: Method
    header: Any = None
    body: bytes = b""


class FrameReader:
    """Reads the frames of one direction from blocks of bytes."""

    def __init__(self, on_method: OnMethod) -> None:
        self._on_method = on_method
        self._buffer = b""
        self._contents: dict[int, _Content] = {}

    def feed(self, block: bytes) -> None:
        """Hand on every method that is complete. Raises whatever a broken frame makes pika's decoder raise."""
        self._buffer += block
        while self._buffer:
            used, frame = frames.decode_frame(self._buffer)
            if not used:
                if len(self._buffer) > BUFFER_MAX:
                    raise pika.exceptions.InvalidFrameError("a frame without end")
                return
            self._buffer = self._buffer[used:]
            if isinstance(frame, frames.Method) and spec.has_content(frame.method.INDEX):
                self._contents[frame.channel_number] = _Content(frame.method)
            elif isinstance(frame, frames.Method):
                self._on_method(frame.channel_number, frame.method, None, b"")
            elif isinstance(frame, frames.Header | frames.Body):
                self._add(frame)

    def _add(self, frame: Any) -> None:  # Any: a frame of pika
        content = self._contents.get(frame.channel_number)
        if content is None:
            return
        if isinstance(frame, frames.Header):
            content.header = frame
        else:
            content.body += frame.fragment
        if content.header is not None and len(content.body) >= content.header.body_size:
            del self._contents[frame.channel_number]
            properties = content.header.properties
            self._on_method(frame.channel_number, content.method, properties, content.body)


def identity(properties: Any, body: bytes) -> str:  # Any: properties of pika
    """The name of a message: its `message_id`, else a hash of its body."""
    given = getattr(properties, "message_id", None)
    return str(given) if given else f"body:{hashlib.sha256(body).hexdigest()[:16]}"


def json_arguments(arguments: Any) -> Fields:  # Any: a table of AMQP
    """Arguments of a queue as JSON has them."""
    kinds = (str, int, float, bool)
    return {str(k): v if isinstance(v, kinds) else str(v) for k, v in (arguments or {}).items()}


# --------------------------------------------------------------------------------------------------
# Which event a method is, and its fields
# --------------------------------------------------------------------------------------------------


def _no_fields(_: Method) -> Fields:
    return {}


def _qos(m: Method) -> Fields:
    scope = "channel" if m.global_qos else "consumer"
    return {"prefetch": m.prefetch_count, "scope": scope}


def _consume(m: Method) -> Fields:
    return {
        "q": m.queue,
        "ctag": m.consumer_tag,
        "autoack": bool(m.no_ack),
        "exclusive": bool(m.exclusive),
        "nolocal": bool(m.no_local),
        "cprio": (m.arguments or {}).get("x-priority"),
    }


def _settlement(*flags: str) -> Callable[[Method], Fields]:
    return lambda m: {"dtag": m.delivery_tag} | {flag: bool(getattr(m, flag)) for flag in flags}


def _reason(m: Method) -> str:
    return f"{m.reply_code} {m.reply_text}"


def _declared(m: Method) -> Fields:
    arguments = json_arguments(m.arguments)
    return {"q": m.queue, "args": {**arguments, "passive": True} if m.passive else arguments}


CALLS: dict[object, tuple[str, Callable[[Method], Fields]]] = {
    spec.Channel.Open: ("ch_open", _no_fields),
    spec.Channel.Close: ("ch_close", _no_fields),
    spec.Queue.Declare: ("declare", _declared),
    spec.Queue.Delete: ("delete", lambda m: {"q": m.queue}),
    spec.Queue.Purge: ("purge", lambda m: {"q": m.queue}),
    spec.Basic.Qos: ("qos", _qos),
    spec.Basic.Consume: ("consume", _consume),
    spec.Basic.Cancel: ("cancel", lambda m: {"ctag": m.consumer_tag}),
    spec.Basic.Get: ("get", lambda m: {"q": m.queue, "autoack": bool(m.no_ack)}),
}
"""Methods of a client that are answered: recorded as an invocation."""

UNANSWERED: dict[object, tuple[str, Callable[[Method], Fields]]] = {
    spec.Basic.Ack: ("ack", _settlement("multiple")),
    spec.Basic.Nack: ("nack", _settlement("multiple", "requeue")),
    spec.Basic.Reject: ("reject", _settlement("requeue")),
    spec.Basic.Recover: ("recover", lambda m: {"requeue": bool(m.requeue)}),
}
"""Methods of a client without an answer."""

MODES = {spec.Confirm.Select: "confirm", spec.Tx.Select: "tx"}
"""Methods of a client after which the broker confirms what the channel publishes."""

ANSWERS: dict[object, tuple[str, Callable[[Method], Fields]]] = {
    spec.Channel.OpenOk: ("ch_open", _no_fields),
    spec.Channel.CloseOk: ("ch_close", _no_fields),
    spec.Queue.DeclareOk: ("declare", lambda m: {"q": m.queue}),
    spec.Queue.DeleteOk: ("delete", _no_fields),
    spec.Queue.PurgeOk: ("purge", _no_fields),
    spec.Basic.QosOk: ("qos", _no_fields),
    spec.Basic.ConsumeOk: ("consume", lambda m: {"ctag": m.consumer_tag}),
    spec.Basic.CancelOk: ("cancel", lambda m: {"ctag": m.consumer_tag}),
    spec.Basic.GetEmpty: ("get", _no_fields),
}
"""Answers of the broker that carry no message."""


@dataclass
class _WireChannel:
    waiting: dict[str, tuple[int, Fields]] = field(default_factory=dict)
    """Calls without their answer: by the name of the event, its operation and fields."""
    mode: str = ""
    published: deque[tuple[int, int, Fields]] = field(default_factory=deque)
    """Not confirmed yet: number, operation and fields."""
    number: int = 0


class WireSession:
    """Records what the methods of one connection mean."""

    def __init__(self, recorder: WireRecorder, conn: str) -> None:
        self._recorder, self._conn = recorder, conn
        self._channels: dict[int, _WireChannel] = {}
        self._op = 0
        self.closed = False
        recorder.record("conn_open", conn=conn)

    def ended(self) -> None:
        """The connection is gone: record that it was cut off, unless it was closed."""
        if not self.closed:
            self.closed = True
            self._recorder.record("conn_drop", conn=self._conn)

    def _channel(self, ch: int) -> _WireChannel:
        return self._channels.setdefault(ch, _WireChannel())

    def _record(self, ev: str, ch: int, **fields: object) -> int:
        return self._recorder.record(ev, conn=self._conn, ch=ch, **fields)

    def _invoke(self, ev: str, ch: int, fields: Fields) -> None:
        self._op += 1
        self._channel(ch).waiting[ev] = (self._op, fields)
        fields["i"] = self._record(ev, ch, ph="invoke", op=self._op, **fields)

    def _answer(self, ev: str, ch: int, answer: Fields) -> Fields:
        """Record an answer with the fields of its call; returns those, and under `i` the index of the call."""
        op, fields = self._channel(ch).waiting.pop(ev, (None, {}))
        asked = {name: value for name, value in fields.items() if name != "i"}
        self._record(ev, ch, ph="ok", op=op, **(asked | answer))
        return fields

    # ---- from the client

    def from_client(self, ch: int, method: Method, properties: Any, body: bytes) -> None:
        """Record a method that the client sends."""
        kind = type(method)
        if kind is spec.Channel.Open:
            self._channels[ch] = _WireChannel()
        if kind in CALLS:
            ev, fields = CALLS[kind]
            self._invoke(ev, ch, fields(method))
        elif kind in UNANSWERED:
            ev, fields = UNANSWERED[kind]
            self._record(ev, ch, **fields(method))
        elif kind in MODES:
            self._channel(ch).mode = MODES[kind]
        elif kind is spec.Basic.Publish:
            self._publish(ch, method, properties, body)
        elif kind is spec.Connection.Close:
            self.closed = True
            self._recorder.record("conn_close", conn=self._conn, ph="invoke")

    def _publish(self, ch: int, method: Method, properties: Any, body: bytes) -> None:
        channel = self._channel(ch)
        q = "" if method.exchange else method.routing_key
        fields: Fields = {"m": identity(properties, body), "q": q, "size": len(body)}
        if method.exchange:
            fields["key"] = method.routing_key
        if not channel.mode:
            self._record("publish", ch, **fields)
            return
        self._op += 1
        channel.number += 1
        channel.published.append((channel.number, self._op, fields))
        self._record("publish", ch, ph="invoke", op=self._op, **fields)

    # ---- from the broker

    def from_broker(self, ch: int, method: Method, properties: Any, body: bytes) -> None:
        """Record a method that the broker sends."""
        kind = type(method)
        if kind in ANSWERS:
            ev, fields = ANSWERS[kind]
            self._complete_answer(ch, method, self._answer(ev, ch, fields(method)))
        elif kind in (spec.Basic.GetOk, spec.Basic.Deliver, spec.Basic.Return):
            self._message(ch, method, identity(properties, body))
        elif kind in (spec.Basic.Ack, spec.Basic.Nack):
            self._confirm(ch, method.delivery_tag, bool(method.multiple), kind is spec.Basic.Ack)
        elif kind is spec.Tx.CommitOk:
            self._confirm(ch, 0, True, True)
        elif kind is spec.Basic.Cancel:
            self._record("cancel", ch, ctag=method.consumer_tag)
        elif kind is spec.Channel.Close:
            self._record("ch_close", ch, err=_reason(method))
        elif kind is spec.Connection.Close:
            self.closed = True
            self._recorder.record("conn_close", conn=self._conn, err=_reason(method))
        elif kind is spec.Connection.CloseOk:
            self._recorder.record("conn_close", conn=self._conn, ph="ok")

    def _complete_answer(self, ch: int, method: Method, asked: Fields) -> None:
        """Record what an answer tells beside its own event: a queue's depth, the tag that the broker chose."""
        kind = type(method)
        if kind is spec.Queue.DeclareOk:
            self._record("note", ch, q=method.queue, args={"depth": method.message_count})
        elif kind is spec.Basic.GetEmpty:
            self._record("note", ch, q=asked.get("q", ""), args={"depth": 0})
        elif kind is spec.Basic.ConsumeOk:
            i = asked.get("i")
            if isinstance(i, int) and not asked.get("ctag"):
                self._recorder.amend(i, ctag=method.consumer_tag)

    def _message(self, ch: int, method: Method, m: str) -> None:
        """Record a message that the broker hands out or returns."""
        if isinstance(method, spec.Basic.Return):
            q = "" if method.exchange else method.routing_key
            self._record("return", ch, m=m, q=q, err=_reason(method))
            return
        fields: Fields = {"m": m, "dtag": method.delivery_tag}
        fields["redelivered"] = bool(method.redelivered)
        if isinstance(method, spec.Basic.GetOk):
            self._answer("get", ch, fields)
        else:
            self._record("deliver", ch, ctag=method.consumer_tag, **fields)

    def _confirm(self, ch: int, tag: int, multiple: bool, ok: bool) -> None:
        channel = self._channel(ch)
        covered = [
            p for p in channel.published if p[0] == tag or (multiple and (p[0] < tag or not tag))
        ]
        for each in covered:
            channel.published.remove(each)
            self._record("publish", ch, ph="ok" if ok else "fail", op=each[1], **each[2])
