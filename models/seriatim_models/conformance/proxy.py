"""A proxy that listens in on AMQP 0-9-1: what goes over the wire, as a history.

Between client and broker, frame by frame, so that deliveries are seen which no client library hands on: those in flight
to a channel that closes, and those that the library gives back by itself. Everything is forwarded as it is, even what
cannot be parsed: that ends the recording of its connection and is counted, and never the connection itself.

Times: what a client sends is recorded before it is forwarded, what the broker sends after it came in. So `t` bounds the
effect of a command from below and an acquisition from above, as in every history.
A message is known by its `message_id`, else by a hash of its body; the queue of a publish is known for the default
exchange only.
"""

from __future__ import annotations

import contextlib
import hashlib
import select
import socket
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

BLOCK = 2**16
BUFFER_MAX = (
    2**24
)  # bytes of a frame that is not complete; AMQP's own limit is agreed far below that
EVENTS_MAX = 5_000_000

# Any: pika's methods and properties, which have no types
Method = Any
OnMethod = Callable[[int, Method, Any, bytes], None]


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
        return len(self.events) >= self._limit

    def record(self, ev: str, **fields: object) -> int:
        """The index of the event."""
        with self._lock:
            i = len(self.events)
            if not self.full:
                # Any field of Event; msgspec does not check on construction
                made = Event(i=i, t=time.monotonic_ns(), ev=ev, lvl="wire", **fields)  # type: ignore[arg-type]
                self.events.append(made)
            return i

    def amend(self, i: int, **fields: object) -> None:
        """Say of an event what only its answer told."""
        with self._lock:
            if i < len(self.events):
                self.events[i] = msgspec.structs.replace(self.events[i], **fields)


@dataclass
class _Content:
    method: Method
    header: Any = None
    body: bytes = b""


class FrameReader:
    """The frames of one direction, put together again."""

    def __init__(self, heard: OnMethod) -> None:
        self._heard = heard
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
                self._heard(frame.channel_number, frame.method, None, b"")
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
            self._heard(frame.channel_number, content.method, properties, content.body)


@dataclass
class _WireChannel:
    waiting: dict[str, tuple[int, dict[str, object]]] = field(default_factory=dict)
    """Calls without their answer: by the name of the event, its operation and fields."""
    mode: str = ""
    published: deque[tuple[int, int, dict[str, object]]] = field(default_factory=deque)
    """Not confirmed yet: number, operation and fields."""
    number: int = 0


class WireSession:
    """What the frames of one connection mean."""

    def __init__(self, recorder: WireRecorder, conn: str) -> None:
        self._recorder, self._conn = recorder, conn
        self._channels: dict[int, _WireChannel] = {}
        self._op = 0
        self.closed = False
        recorder.record("conn_open", conn=conn)

    def ended(self) -> None:
        """The connection is gone."""
        if not self.closed:
            self.closed = True
            self._recorder.record("conn_drop", conn=self._conn)

    def _channel(self, ch: int) -> _WireChannel:
        return self._channels.setdefault(ch, _WireChannel())

    def _say(self, ev: str, ch: int, **fields: object) -> int:
        return self._recorder.record(ev, conn=self._conn, ch=ch, **fields)

    def _call(self, ev: str, ch: int, **fields: object) -> None:
        self._op += 1
        self._channel(ch).waiting[ev] = (self._op, fields)
        i = self._say(ev, ch, ph="invoke", op=self._op, **fields)
        fields["i"] = i

    def _answer(self, ev: str, ch: int, **more: object) -> dict[str, object]:
        op, fields = self._channel(ch).waiting.pop(ev, (None, {}))
        said = {name: value for name, value in fields.items() if name != "i"} | more
        self._say(ev, ch, ph="ok", op=op, **said)
        return fields

    # ---- what the client says

    def from_client(self, ch: int, method: Method, properties: Any, body: bytes) -> None:
        match method:
            case spec.Channel.Open():
                self._channels[ch] = _WireChannel()
                self._call("ch_open", ch)
            case spec.Channel.Close():
                self._call("ch_close", ch)
            case spec.Connection.Close():
                self.closed = True
                self._recorder.record("conn_close", conn=self._conn, ph="invoke")
            case spec.Queue.Declare():
                self._call("declare", ch, q=method.queue, args=plain(method.arguments))
            case spec.Queue.Delete():
                self._call("delete", ch, q=method.queue)
            case spec.Queue.Purge():
                self._call("purge", ch, q=method.queue)
            case spec.Basic.Qos():
                scope = "channel" if method.global_qos else "consumer"
                self._call("qos", ch, prefetch=method.prefetch_count, scope=scope)
            case spec.Basic.Consume():
                self._call(
                    "consume",
                    ch,
                    q=method.queue,
                    ctag=method.consumer_tag,
                    autoack=bool(method.no_ack),
                    exclusive=bool(method.exclusive),
                    nolocal=bool(method.no_local),
                    cprio=(method.arguments or {}).get("x-priority"),
                )
            case spec.Basic.Cancel():
                self._call("cancel", ch, ctag=method.consumer_tag)
            case spec.Basic.Get():
                self._call("get", ch, q=method.queue, autoack=bool(method.no_ack))
            case spec.Basic.Publish():
                self._publish(ch, method, properties, body)
            case spec.Basic.Ack():
                self._say("ack", ch, dtag=method.delivery_tag, multiple=bool(method.multiple))
            case spec.Basic.Nack():
                flags = {"multiple": bool(method.multiple), "requeue": bool(method.requeue)}
                self._say("nack", ch, dtag=method.delivery_tag, **flags)
            case spec.Basic.Reject():
                self._say("reject", ch, dtag=method.delivery_tag, requeue=bool(method.requeue))
            case spec.Basic.Recover():
                self._say("recover", ch, requeue=bool(method.requeue))
            case spec.Confirm.Select():
                self._channel(ch).mode = "confirm"
            case spec.Tx.Select():
                self._channel(ch).mode = "tx"
            case _:
                pass

    def _publish(self, ch: int, method: Method, properties: Any, body: bytes) -> None:
        channel = self._channel(ch)
        q = "" if method.exchange else method.routing_key
        fields: dict[str, object] = {"m": identity(properties, body), "q": q, "size": len(body)}
        if method.exchange:
            fields["key"] = method.routing_key
        if not channel.mode:
            self._say("publish", ch, **fields)
            return
        self._op += 1
        channel.number += 1
        channel.published.append((channel.number, self._op, fields))
        self._say("publish", ch, ph="invoke", op=self._op, **fields)

    # ---- what the broker says

    def from_broker(self, ch: int, method: Method, properties: Any, body: bytes) -> None:
        match method:
            case spec.Channel.OpenOk():
                self._answer("ch_open", ch)
            case spec.Channel.CloseOk():
                self._answer("ch_close", ch)
            case spec.Channel.Close():
                self._say("ch_close", ch, err=f"{method.reply_code} {method.reply_text}")
            case spec.Connection.Close():
                self.closed = True
                why = f"{method.reply_code} {method.reply_text}"
                self._recorder.record("conn_close", conn=self._conn, err=why)
            case spec.Connection.CloseOk():
                self._recorder.record("conn_close", conn=self._conn, ph="ok")
            case spec.Queue.DeclareOk():
                self._answer("declare", ch, q=method.queue)
                self._say("note", ch, q=method.queue, args={"depth": method.message_count})
            case spec.Queue.DeleteOk():
                self._answer("delete", ch)
            case spec.Queue.PurgeOk():
                self._answer("purge", ch)
            case spec.Basic.QosOk():
                self._answer("qos", ch)
            case spec.Basic.ConsumeOk():
                asked = self._answer("consume", ch, ctag=method.consumer_tag)
                if isinstance(i := asked.get("i"), int) and not asked.get("ctag"):
                    self._recorder.amend(i, ctag=method.consumer_tag)
            case spec.Basic.CancelOk():
                self._answer("cancel", ch, ctag=method.consumer_tag)
            case spec.Basic.Cancel():
                self._say("cancel", ch, ctag=method.consumer_tag)
            case spec.Basic.GetOk():
                m = identity(properties, body)
                flag = bool(method.redelivered)
                self._answer("get", ch, m=m, dtag=method.delivery_tag, redelivered=flag)
            case spec.Basic.GetEmpty():
                asked = self._answer("get", ch)
                self._say("note", ch, q=asked.get("q", ""), args={"depth": 0})
            case spec.Basic.Deliver():
                self._say(
                    "deliver",
                    ch,
                    ctag=method.consumer_tag,
                    dtag=method.delivery_tag,
                    m=identity(properties, body),
                    redelivered=bool(method.redelivered),
                )
            case spec.Basic.Return():
                why = f"{method.reply_code} {method.reply_text}"
                q = "" if method.exchange else method.routing_key
                self._say("return", ch, m=identity(properties, body), q=q, err=why)
            case spec.Basic.Ack() | spec.Basic.Nack():
                ok = isinstance(method, spec.Basic.Ack)
                self._confirm(ch, method.delivery_tag, bool(method.multiple), ok)
            case spec.Tx.CommitOk():
                self._confirm(ch, 0, True, True)
            case _:
                pass

    def _confirm(self, ch: int, tag: int, multiple: bool, ok: bool) -> None:
        channel = self._channel(ch)
        covered = [
            p for p in channel.published if p[0] == tag or (multiple and (p[0] < tag or not tag))
        ]
        for each in covered:
            channel.published.remove(each)
            self._say("publish", ch, ph="ok" if ok else "fail", op=each[1], **each[2])


def identity(properties: Any, body: bytes) -> str:  # Any: properties of pika
    """What a message is known by."""
    given = getattr(properties, "message_id", None)
    return str(given) if given else f"body:{hashlib.sha256(body).hexdigest()[:16]}"


def plain(arguments: Any) -> dict[str, object]:  # Any: a table of AMQP
    """Arguments of a queue as JSON has them."""
    kinds = (str, int, float, bool)
    return {str(k): v if isinstance(v, kinds) else str(v) for k, v in (arguments or {}).items()}


class Proxy:
    """Listens on the loopback and forwards to a broker. Use as a context manager."""

    def __init__(self, host: str, port: int, recorder: WireRecorder, listen: int = 0) -> None:
        """Raises `OSError` if the port cannot be listened on."""
        self._target = (host, port)
        self._recorder = recorder
        self._server = socket.create_server(("127.0.0.1", listen))
        self._server.settimeout(0.1)
        self.port = int(self._server.getsockname()[1])
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._pairs: dict[str, tuple[socket.socket, socket.socket]] = {}
        self._by_port: dict[int, str] = {}

    def __enter__(self) -> Proxy:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.close()
        for name in list(self._pairs):
            self.drop(name)
        for thread in self._threads:
            thread.join(5)

    def drop(self, name: str) -> None:
        """Cut a connection off, without a word to either side."""
        for each in self._pairs.get(name, ()):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def name_of(self, port: int) -> str:
        """The connection of the client whose own port that is."""
        return self._by_port.get(port, "")

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                client, address = self._server.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            number += 1
            name = f"c{number}"
            try:
                broker = socket.create_connection(self._target, timeout=5)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            client.settimeout(None)
            self._pairs[name] = (client, broker)
            self._by_port[address[1]] = name
            self._start(self._forward, name, client, broker)

    def _forward(self, name: str, client: socket.socket, broker: socket.socket) -> None:
        session = WireSession(self._recorder, name)
        halves = {
            client: FrameReader(session.from_client),
            broker: FrameReader(session.from_broker),
        }
        listening = True
        try:
            while True:
                for side in select.select([client, broker], [], [], 1)[0]:
                    block = side.recv(BLOCK)
                    if not block:
                        return
                    if listening:
                        try:
                            halves[side].feed(block)
                        except Exception:  # whatever it is that a stranger sends: forward it
                            listening = False
                            self._recorder.unreadable += 1
                    (broker if side is client else client).sendall(block)
        except OSError:
            return
        finally:
            session.ended()
            for side in (client, broker):
                with contextlib.suppress(OSError):
                    side.close()
            self._pairs.pop(name, None)
