"""Publishers and consumers that go on whatever happens to their queue, and what they saw, as a history.

Each client is a thread with a connection of its own. When an operation fails its outcome is unknown unless the system
refused it; the connection is given up and a new one made. After the faults have healed, a last phase publishes a few
more messages and takes out everything that is left, so that what is missing then is lost.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, get_args

from seriatim_models.conformance.faults.description import ENDING, FaultKind, SystemSetting
from seriatim_models.conformance.faults.nemesis import FaultTargets, Nemesis, PlannedFault
from seriatim_models.conformance.protocol import Fault as ProtocolFault
from seriatim_models.history.event import GAP, Event, event

WAIT = 0.05  # seconds that a consumer waits for a message
AGAIN = 0.05  # seconds until a client tries to connect again
LAST_MESSAGES = 10
"""Messages that are published after all has healed, beside which nobody may wait."""
DRAINING = 120.0
"""Seconds that taking out what is left may take."""
Q = "q"


class RefusedByServer(Exception):
    """The system answered that it did not do it."""


class TakenMessage(NamedTuple):
    """A message that a consumer was given."""

    m: str
    tag: int
    """By which its connection settles it."""
    redelivered: bool | None = None
    claimed: bool = False
    """Whether it was taken from a consumer that had held it too long."""


class FaultyClient(Protocol):
    """One connection to a queue. Methods may raise anything; then their outcome is unknown, unless it is
    `RefusedByServer`.
    """

    puts_back: bool
    """Whether `nack` does something."""
    leases: bool
    """Whether what a consumer holds stays its own when its connection ends, until it is claimed."""

    def publish(self, m: str, persistent: bool) -> None:
        """Returns when the message is confirmed."""

    def get(self, seconds: float) -> TakenMessage | None:
        """The next message, waiting for it so long at most; None if there was none."""

    def ack(self, tag: int) -> None:
        """Settle a message for good."""

    def nack(self, tag: int) -> None:
        """Put a message back."""

    def left(self) -> tuple[int, int]:
        """How many messages the queue has ready, and how many consumers hold of it, as the system counts them. Called
        when no other client works; it may claim what clients held that are gone.
        """

    def close(self) -> None:
        """End the connection in order; what it held goes back."""


@dataclass(frozen=True)
class FaultyWorkload:
    """What is done, and for how long."""

    seconds: float = 8.0
    publishers: int = 2
    consumers: int = 2
    rate: float = 100.0
    """Messages a second of each publisher, at most."""
    nacks: float = 0.05
    """Of the deliveries that part is put back, and as many are kept until the connection ends."""
    seed: int = 1


@dataclass
class FaultyRun:
    """What was seen."""

    events: list[Event] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Kinds of the faults that were done and healed, in their order."""
    confirmed: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    """Messages whose settlement was sent."""
    answered: set[str] = field(default_factory=set)
    """Messages whose settlement was answered."""
    given: dict[str, int] = field(default_factory=dict)
    """How often each message was given to somebody."""
    again: set[str] = field(default_factory=set)
    """Messages that were given to somebody after their settlement had been answered."""
    drained: bool = False
    """Whether the queue was seen empty at the end, with nothing held."""
    errors: int = 0
    """Operations whose outcome nobody knows."""

    @property
    def lost(self) -> list[str]:
        """Confirmed messages that nobody settled although the queue was drained."""
        return sorted(self.confirmed - self.settled) if self.drained else []


class FaultRecorder:
    """Events in their order, from many threads."""

    def __init__(self) -> None:
        self.run = FaultyRun()
        self._lock = threading.Lock()
        self._op = 0
        self._live: dict[str, None] = {}
        self.published: dict[str, dict[str, object]] = {}
        """The stream of each message, and its place there."""

    def add(self, proc: str, ev: str, **fields: object) -> None:
        """Add an event that happens now."""
        with self._lock:
            self._add(proc, ev, "api", fields)

    def _add(self, proc: str, ev: str, lvl: str, fields: dict[str, object]) -> None:
        events = self.run.events
        events.append(event(len(events) + 1, time.monotonic_ns(), proc, ev, fields, lvl))

    def next_op(self) -> int:
        """A number for an operation."""
        with self._lock:
            self._op += 1
            return self._op

    def opened(self, conn: str) -> None:
        """A client begins to connect."""
        with self._lock:
            self._live[conn] = None

    def fault(self, fault: PlannedFault, number: int, phase: str) -> None:
        """A fault begins or has healed. One that ends the server ends every connection that was there before."""
        with self._lock:
            if phase == "invoke":
                self._before = list(self._live)
            args = {"ph": phase, "op": -number, "kind": fault.kind}
            self._add("nemesis", "fault", "api", args)
            if fault.kind in (*ENDING, "disk-full"):  # a full disk may end the server too
                self._add("nemesis", GAP, "api", {"fault": fault.kind, "ph": phase})
            if phase == "ok":
                self.run.faults.append(fault.kind)
                if fault.kind in ENDING:
                    for conn in self._before:
                        self._live.pop(conn, None)
                        self._add("nemesis", "conn_drop", "broker", {"conn": conn})


class _FaultyThread(threading.Thread):
    """A client that connects again and again."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], FaultyClient],
        recorder: FaultRecorder,
        plan: FaultyWorkload,
        over: threading.Event,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._connect, self._recorder, self._plan, self._over = connect, recorder, plan, over
        self._random = random.Random(f"{plan.seed}/{name}")
        self._number = 0
        self._conn = ""
        self._tag = 0  # rises for the client, which may be more than a connection
        self.leases = False
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._over.is_set():
                self.session()
        except BaseException as error:  # raised by who started it
            self.error = error

    def session(self) -> None:
        """One connection, until it fails or all is over."""
        self._number += 1
        self._conn = f"{self.name}.{self._number}"
        self._recorder.opened(self._conn)
        try:
            client = self._connect()
        except Exception:
            self._over.wait(AGAIN)
            return
        self.leases = client.leases
        self._recorder.add(self.name, "conn_open", conn=self._conn)
        try:
            self.work(client)
        except Exception:
            self._recorder.add(self.name, "conn_drop", conn=self._conn)
            with contextlib.suppress(Exception):
                client.close()
            self._over.wait(AGAIN)
            return
        self._recorder.add(self.name, "conn_close", conn=self._conn, ph="invoke")
        try:
            client.close()
        except Exception:
            self._recorder.add(self.name, "conn_drop", conn=self._conn)
        else:
            self._recorder.add(self.name, "conn_close", conn=self._conn, ph="ok")

    def work(self, client: FaultyClient) -> None:
        """Use the connection."""
        raise NotImplementedError

    def call(self, ev: str, do: Callable[[], object], **fields: object) -> object:
        """An operation between its two events. Raises what it raises, but for `RefusedByServer`."""
        recorder, op = self._recorder, self._recorder.next_op()
        known = {"q": Q, "op": op, **fields}
        if not self.leases or ev == "publish":
            known["conn"] = self._conn
        recorder.add(self.name, ev, ph="invoke", **known)
        try:
            result = do()
        except RefusedByServer as why:
            recorder.add(self.name, ev, ph="fail", err=str(why)[:200], **known)
            return None
        except Exception:
            recorder.run.errors += 1
            recorder.add(self.name, ev, ph="info", **known)
            raise
        if ev == "get" and isinstance(result, TakenMessage):
            if result.claimed:
                recorder.add(self.name, "expire", q=Q, m=result.m, requeue=True)
            self._tag += 1
            known |= {"m": result.m, "dtag": self._tag}
            known |= recorder.published.get(result.m, {})
            if result.redelivered is not None:
                known["redelivered"] = result.redelivered
        if ev == "publish":
            recorder.run.confirmed.add(str(fields["m"]))
        recorder.add(self.name, ev, ph="ok", **known)
        return result


class _FaultyPublisher(_FaultyThread):
    """Publishes at a rate, each message once."""

    sent = 0
    persistent = True

    def work(self, client: FaultyClient) -> None:
        while not self._over.is_set():
            self.publish(client)
            self._over.wait(self._random.uniform(0, 2 / self._plan.rate))

    def publish(self, client: FaultyClient) -> None:
        """One message more."""
        m = f"{self.name}-{self.sent}"
        number, self.sent = self.sent, self.sent + 1
        do = lambda: client.publish(m, self.persistent)  # noqa: E731
        stream: dict[str, object] = {"pub": self._conn, "pseq": number}
        self._recorder.published[m] = stream
        self.call("publish", do, m=m, **stream)


class _FaultyConsumer(_FaultyThread):
    """Gets and settles."""

    def work(self, client: FaultyClient) -> None:
        while not self._over.is_set():
            if self.take(client, WAIT, self._plan.nacks) is None and self._random.random() < 0.02:
                return

    def take(self, client: FaultyClient, seconds: float, nacks: float) -> TakenMessage | None:
        """Get one message and do something with it."""
        taken = self.call("get", lambda: client.get(seconds))
        if not isinstance(taken, TakenMessage):
            return None
        run = self._recorder.run
        run.given[taken.m] = run.given.get(taken.m, 0) + 1
        if taken.m in run.answered:
            run.again.add(taken.m)
        chance = self._random.random()
        about = {"dtag": self._tag, "ms": [taken.m]}
        if chance < nacks and client.puts_back:
            self.call("nack", lambda: client.nack(taken.tag), requeue=True, **about)
        elif chance >= 2 * nacks:
            run.settled.add(taken.m)
            self.call("ack", lambda: client.ack(taken.tag), **about)
            run.answered.add(taken.m)
        return taken


def run_faulty(
    connect: Callable[[], FaultyClient],
    targets: FaultTargets,
    faults: Sequence[PlannedFault],
    setting: SystemSetting,
    plan: FaultyWorkload,
) -> FaultyRun:
    """Load, faults, healing, and the drain. Raises `Fault` if the system does not come back.

    `connect` makes a connection; the queue is there once one was made.
    """
    recorder = FaultRecorder()
    first = connect()
    first.close()
    args = {"survives": list(setting.survives), "settled": list(setting.settled)}
    recorder.add("nemesis", "declare", q=Q, **args)
    over = threading.Event()
    publishers = [
        _FaultyPublisher(f"p{n}", connect, recorder, plan, over) for n in range(plan.publishers)
    ]
    consumers = [
        _FaultyConsumer(f"c{n}", connect, recorder, plan, over) for n in range(plan.consumers)
    ]
    for publisher in publishers:
        publisher.persistent = setting.persistent
    clients = [*publishers, *consumers]
    nemesis = Nemesis(faults, targets, recorder.fault)
    for client in clients:
        client.start()
    nemesis.start()
    until = time.monotonic() + plan.seconds
    nemesis.join(plan.seconds)
    while time.monotonic() < until:
        time.sleep(WAIT)
    try:
        nemesis.finish()
    finally:
        over.set()
        for client in clients:
            client.join(DRAINING)
    for client in clients:
        if client.error is not None:
            raise ProtocolFault("died", f"{client.name}: {client.error!r}") from client.error
    _drain(publishers[0], consumers[0], recorder)
    return recorder.run


def _drain(publisher: _FaultyPublisher, consumer: _FaultyConsumer, recorder: FaultRecorder) -> None:
    """After all has healed: publish a few messages more, and take out all that there is."""
    until = time.monotonic() + DRAINING
    why: Exception = TimeoutError("it did not come back")
    more = LAST_MESSAGES
    while time.monotonic() < until:
        try:
            more = _drain_once(publisher, consumer, recorder, more, until)
        except Exception as error:  # the system may still be coming back
            why = error
            time.sleep(AGAIN)
            continue
        return
    raise ProtocolFault("silent", f"could not be drained within {DRAINING:g} s: {why!r}") from why


def _drain_once(
    publisher: _FaultyPublisher,
    consumer: _FaultyConsumer,
    recorder: FaultRecorder,
    more: int,
    until: float,
) -> int:
    """One attempt; returns how many messages are still to be published."""
    client = consumer._connect()
    for each in (publisher, consumer):
        each._number += 1
    consumer._conn = publisher._conn = f"drain.{consumer._number}"
    consumer.leases = client.leases
    recorder.opened(consumer._conn)
    recorder.add("c0", "conn_open", conn=consumer._conn)
    while time.monotonic() < until:
        if consumer.take(client, WAIT, 0.0) is not None:
            continue
        ready, held = client.left()
        if ready or held:
            time.sleep(AGAIN)
        elif more:
            # Nobody holds anything, so at each of the gets that follow all is at rest: none may find nothing.
            recorder.add("c0", "note", q=Q, rest=True)
            for _ in range(more):
                publisher.publish(client)
            for _ in range(more):
                recorder.add("c0", "note", q=Q, rest=True)
                consumer.take(client, WAIT, 0.0)
                more -= 1
        else:
            recorder.add("c0", "note", q=Q, depth=0, held=0)
            recorder.run.drained = True
            break
    recorder.add("c0", "conn_close", conn=consumer._conn, ph="invoke")
    client.close()
    recorder.add("c0", "conn_close", conn=consumer._conn, ph="ok")
    return more


def kinds_of(text: str) -> list[FaultKind]:
    """The kinds in a list with commas. Raises `ValueError` for one that there is not."""
    known: tuple[FaultKind, ...] = get_args(FaultKind)
    found: list[FaultKind] = []
    for name in filter(None, text.split(",")):
        if name not in known:
            raise ValueError(f"no fault {name!r}; there are {', '.join(known)}")
        found += [kind for kind in known if kind == name]
    return found
