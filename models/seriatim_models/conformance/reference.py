"""The reference as an implementation to be driven: its server, spoken to without threads, and its fair consumer.

``seriatim conform --python seriatim_models.conformance.reference:Reference`` checks the reference itself, and
``seriatim vectors fill`` asks it what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from seriatim.broker import Closed, Delivery, Frame, Message, Server, ServerChannel, Wire
from seriatim.fair import FairConsumer, Slot
from seriatim.host import Threads
from seriatim_models.conformance.local import Refused
from seriatim_models.programs.fair_simulation import simulate


class _BufferedWire(Wire):
    """A wire whose frames nobody waits for."""

    def __init__(self, name: str) -> None:
        super().__init__(Threads(), name)
        self.frames: list[Frame] = []

    def send(self, frame: Frame) -> None:
        self.frames.append(frame)


class Reference:
    """`seriatim.client.Server`, one request at a time. Channels are of connection ``c`` unless `conn` says another."""

    name = "seriatim reference"
    can = (
        *("publish", "get", "ack", "nack", "reject", "qos", "consume", "cancel", "open", "close"),
        *("multiple", "drop", "channel-qos", "exclusive", "no-local", "autoack", "redelivered"),
        *("dwrr", "dwrr-table"),
    )

    def __init__(self) -> None:
        self._host = Threads()
        self._server = Server(self._host)
        self._lines: dict[str, _BufferedWire] = {}
        self._where: dict[int, str] = {}
        self._deliver: dict[tuple[int, str], Callable[..., None]] = {}

    # ---- requests

    def open(self, ch: int, conn: str = "") -> None:
        self._where[ch] = conn or "c"
        self._server.open(self._line(ch), ch)

    def close(self, ch: int) -> None:
        self._request(ch, self._server.close_channel)

    def publish(self, q: str, m: str, conn: str = "") -> None:
        line = self._lines.setdefault(conn or "c", _BufferedWire(conn or "c"))
        publisher = ServerChannel(line, 0)
        self._declare(q)
        # Through a channel of its own, number 0, which no script uses.
        self._server.open(line, 0)
        self._server.request(line, 0, lambda _: self._server.publish(publisher, "", q, Message(m)))
        self._hand_on()

    def get(self, ch: int, q: str, autoack: bool = False) -> tuple[str, int, bool] | None:
        self._declare(q)
        delivery = self._request(ch, lambda channel: self._server.get(channel, q, autoack))
        if not isinstance(delivery, Delivery):
            return None
        return delivery.message.id, delivery.delivery_tag, delivery.redelivered

    def qos(self, ch: int, prefetch: int, scope: str = "") -> None:
        self._request(ch, lambda channel: self._server.qos(channel, prefetch, scope == "channel"))

    def consume(
        self,
        ch: int,
        q: str,
        ctag: str,
        deliver: Callable[..., None],
        autoack: bool = False,
        exclusive: bool = False,
        nolocal: bool = False,
    ) -> None:
        self._declare(q)
        self._deliver[ch, ctag] = deliver
        self._request(
            ch,
            lambda channel: self._server.consume(
                channel, q, ctag, auto_ack=autoack, exclusive=exclusive, no_local=nolocal
            ),
        )

    def cancel(self, ch: int, ctag: str) -> None:
        self._request(ch, lambda channel: self._server.cancel(channel, ctag))

    def ack(self, ch: int, dtag: int, multiple: bool = False) -> None:
        self._request(ch, lambda channel: self._server.settle(channel, dtag, multiple, None))

    def nack(self, ch: int, dtag: int, multiple: bool = False, requeue: bool = True) -> None:
        self._request(ch, lambda channel: self._server.settle(channel, dtag, multiple, requeue))

    def reject(self, ch: int, dtag: int, requeue: bool = True) -> None:
        self.nack(ch, dtag, False, requeue)

    def dwrr(self, slots: list[list[int]], rounds: int) -> list[int]:
        """Who is served, in order, when all is there from the beginning."""
        served: list[int] = []
        made: list[Slot[int]] = [
            Slot(str(n), quantum, max(backlog, 1), partial(_weight, weight))
            for n, (weight, quantum, backlog) in enumerate(slots)
        ]
        consumer = FairConsumer(self._host, made, served.append, lambda delivery, well: None)
        for n, (_, _, backlog) in enumerate(slots):
            for _ in range(backlog):
                consumer.deliver(made[n], n)
        for _ in range(rounds):
            consumer.round()
        return served

    def dwrr_table(self, slots: list[list[int]], total: int, cost: float, push: float) -> list[int]:
        """How many of each are served when the broker pushes one at a time, in virtual time."""
        weight, _, prefetch = slots[0]
        quanta = tuple(quantum for _, quantum, _ in slots)
        return list(_served(cost, quanta, weight, prefetch, total, push))

    # ---- the server

    def _line(self, ch: int) -> _BufferedWire:
        name = self._where.get(ch, "c")
        return self._lines.setdefault(name, _BufferedWire(name))

    def _declare(self, q: str) -> None:
        line = self._lines.setdefault("c", _BufferedWire("c"))
        self._server.declare_queue(ServerChannel(line, 0), q)

    def _request(self, ch: int, act: Callable[[ServerChannel], object]) -> object:
        """What the server answers. Raises `Refused`."""
        self._server.request(self._line(ch), ch, act, call=1)
        answer: object = None
        refusal: Closed | None = None
        for frame in self._hand_on():
            if frame.kind == "reply":
                answer = frame.value
            elif frame.error is not None:
                refusal = frame.error
        if refusal is not None:
            raise Refused(str(refusal), refusal.code, closed=True)
        return answer

    def _hand_on(self) -> list[Frame]:
        """Hand on the deliveries on all lines; the frames that are none."""
        rest = []
        for frame in self._frames():
            if frame.kind == "deliver" and frame.delivery is not None:
                d = frame.delivery
                deliver = self._deliver[frame.channel, d.consumer_tag]
                deliver(d.message.id, d.delivery_tag, d.redelivered)
            else:
                rest.append(frame)
        return rest

    def _frames(self) -> Iterator[Frame]:
        for line in self._lines.values():
            frames, line.frames = line.frames, []
            yield from frames


@lru_cache
def _served(
    cost: float, quanta: tuple[int, ...], weight: int, prefetch: int, total: int, push: float
) -> tuple[int, ...]:
    return simulate(
        cost, quanta=quanta, weight=weight, prefetch=prefetch, total=total, push=push
    ).served


def _weight(weight: int, delivery: int) -> int:
    return weight
