"""Several clients at once against one system, each in a thread of its own; what they see is recorded as it comes.

A client asks, waits for the answer, and asks again. Both ends of each operation are recorded, and deliveries when they
come. An operation that nobody answers is `info`; its client is given up, a `conn_drop`, and a new one connects.
When all phases are over the clients are closed and the queues emptied, so that what was lost differs from what is left.
Then a few messages more are published and taken at rest: a get that finds none of them went astray.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from seriatim_models.conformance.concurrent.client import (
    ConcurrentClient,
    ConcurrentSystem,
    OutcomeUnknown,
)
from seriatim_models.conformance.concurrent.streamed import StreamedRecording
from seriatim_models.conformance.concurrent.workload import (
    ClientCommand,
    ConcurrentWorkload,
    PlannedFault,
)
from seriatim_models.conformance.protocol import Answer, Fault, Push, Request
from seriatim_models.conformance.script import DEAD, ONE_GROUP, SETTLING, promised
from seriatim_models.conformance.timed import OVERDUE, SHORT_LEASE, TimedPublish, asked
from seriatim_models.history.faults import HistoryError

AGAIN = 0.05  # seconds until a client that could not connect tries again
STUCK = 0.3  # seconds that all clients that are left wait to publish, until the drive takes something out
LOOKS = 0.02  # seconds between two looks at clients that may hang
GETS_AGAIN = 3
"""How often a queue that says that it is empty is asked again at the end."""
UNEVEN = 0.001
"""Seconds, at the most, before every other command of a small workload: else who begins last is always first."""
DRAINING = 120.0
"""Seconds that taking out what is left may take, of a system that may still be coming back."""
LATE = "there was no more time"
LAST_MESSAGES = 10
"""Messages that are published after all has healed, of which each must be found."""


class FaultInjector(Protocol):
    """Who disturbs a system while its clients work."""

    def disturb(
        self, recording: StreamedRecording, faults: Sequence[PlannedFault], until: float
    ) -> None:
        """Called in each phase `faults`, in a thread of its own; returns when all is healed, soon after the
        `time.monotonic` `until`. Raises `Fault` if that cannot be.

        Each fault is an event of the recording: ``record("fault", ph="invoke", args={"kind": "kill"})``, healed ``ok``.
        """


class ConcurrentRun(msgspec.Struct, kw_only=True):
    """What came of a workload, beside its recording."""

    commands: int = 0
    unknown: int = 0
    """Commands whose outcome nobody knows."""
    refused: int = 0
    messages: int = 0
    """Given to a consumer, or got, the end not counted."""
    drained: bool = False
    """Whether all queues were seen empty at the end."""
    undrained: str = ""
    """Why they were not, if that is known."""
    fault: str = ""
    """Kind of the fault that ended it, if one did, see `protocol.Fault`."""
    why: str = ""


class _Shared:
    """What all clients of a run have in common."""

    def __init__(
        self,
        system: ConcurrentSystem,
        workload: ConcurrentWorkload,
        recording: StreamedRecording,
        names: str,
        patience: float,
    ) -> None:
        self.system, self.workload, self.recording = system, workload, recording
        self.names, self.patience = names, patience
        self.can = system.can
        self.leases = "lease" in system.can
        self.settles = bool(SETTLING & system.can)
        self.log = "read" in system.can
        self.ends: dict[tuple[str, int | None], int] = {}
        """Of a log, by queue and partition the position behind the last message that is known to be there."""
        self.returns = system.means.cancel == "returns"
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.ended = False
        """Whether the run is over, so that what is pushed now belongs to none."""
        self.until = float("inf")
        """The `time.monotonic` after which clients with commands of their own begin no other one."""
        self.draining, self.drained_by = DRAINING, float("inf")
        """Seconds for which queues are emptied at the end, and the `time.monotonic` when these are over."""
        self.run = ConcurrentRun()
        self.operations = 0
        self.incarnations = 0
        self.waits = "waits" in system.can
        self.driven: list[_DrivenClient] = []
        self.threads: list[_WorkloadThread] = []
        self.present = 0
        """Messages published and not settled, as far as it is known."""
        self.buries = "dead-letter" in system.can
        self.timed: dict[str, TimedPublish] = {}
        """Messages with a delay or a time to live, until it is certain what became of them."""
        self.mortal: dict[str, str] = {}
        """Messages with a time to live that are not settled for good, each with its queue: they may be gone."""
        self.faulty = bool(workload.faults) or any(name == "faults" for name, _ in workload.phases)
        self.over = 0
        """When the last delay and time to live is over, nanoseconds of `time.monotonic_ns`."""
        self.buried: list[_Begun] = []
        """The coming of dropped messages to the queue of the dead: it is certain when all is at rest."""

    def late(self, since: float = float("inf")) -> bool:
        """Whether the time is over in which queues are emptied, or what nobody has broken has given nothing `since`,
        and no lease can be what keeps it back.
        """
        now = time.monotonic()
        most = self.patience + (self.system.means.lease if self.leases else 0)
        return now > self.drained_by or (not self.faulty and now - since > most)

    def operation(self) -> int:
        with self.lock:
            self.operations += 1
            return self.operations

    def channel(self) -> int:
        with self.lock:
            self.incarnations += 1
            return self.incarnations

    def add(self, n: int) -> None:
        with self.lock:
            self.present += n

    def given(self, m: str) -> None:
        """A message is about to be recorded as given: if it had a delay, it is there."""
        with self.lock:
            timed = self.timed.get(m)
            if not self.settles:
                self.mortal.pop(m, None)
            if timed is None or not timed.delay:
                return
            del self.timed[m]
        self.timed_ended(timed, "ok")

    def timed_ended(self, timed: TimedPublish, ph: str) -> None:
        """It is known what became of a message with a delay or a time to live, or that nobody will know."""
        now = time.monotonic_ns()
        known = msgspec.structs.replace(timed, answered=timed.answered or now)
        self.recording.record("publish", ph=ph, **(timed.fields | known.ended(now)))

    def all_publish(self, client: _DrivenClient) -> bool:
        """Whether all others publish now, where a publish may wait until something is taken: somebody has to."""
        others = [c for c in self.driven if c is not client]
        return self.waits and bool(others) and all(c.publishes for c in others)

    def stuck(self, client: _DrivenClient) -> bool:
        """Whether a client has been waiting in a publish, as it may, for so long that nobody seems to take anything."""
        asked = client.asked
        waited = time.monotonic() - asked[1] if asked is not None else 0.0
        return self.waits and client.publishes and waited > STUCK

    def end(self) -> None:
        """The run is over, for threads that are still on their way out, too."""
        self.stop.set()
        self.ended = True

    def failed(self, fault: Fault) -> None:
        """The system is broken: everything ends, for the first reason that is known."""
        with self.lock:
            if not self.run.fault:
                self.run.fault, self.run.why = fault.kind, str(fault)
        self.stop.set()


class DrivenMessage(NamedTuple):
    """A message that a client holds, and the tag by which that is recorded."""

    m: str
    q: str
    dtag: int


_Begun = tuple[str, dict[str, object]]
"""Name and fields of an event whose first end is recorded."""


class ClientSettlement(NamedTuple):
    """A settlement that waits for the commit of its client's transaction."""

    op: str
    tag: int
    """The system's delivery tag."""
    held: DrivenMessage
    requeue: bool | None


class _ClientTransaction:
    """What a client asked for since its transaction began. None of it is recorded before the commit is asked for, see
    `seriatim_models.conformance.transactions`.
    """

    def __init__(self) -> None:
        self.published: list[dict[str, object]] = []
        self.settled: list[ClientSettlement] = []


class _DrivenClient:
    """A client of the workload: the channel that it has now, and what it holds there."""

    def __init__(self, shared: _Shared, number: int) -> None:
        self.shared, self.number = shared, number
        self.name = f"client{number}"
        self.client: ConcurrentClient | None = None
        self.ended = False
        """Whether the system has closed its channel by itself."""
        self.conn = ""
        self.ch = 0
        self.given = 0
        """Deliveries so far; where there are leases they are the client's, whatever its connections."""
        self.held: dict[int, DrivenMessage] = {}
        """By delivery tag."""
        self.consumers: dict[str, str] = {}  # tag: queue
        self.reads: dict[tuple[str, str, int | None], int] = {}
        """Of a log, by queue, group and partition the position behind what was read last."""
        self.published = 0
        self.transaction: _ClientTransaction | None = None
        self.asked: tuple[str, float] | None = None
        """The operation that is under way, and since when."""
        self._lock = threading.Lock()

    @property
    def publishes(self) -> bool:
        """Whether a publish is under way."""
        asked = self.asked
        return asked is not None and asked[0] == "publish"

    # ---- connections

    def connected(self) -> ConcurrentClient | None:
        """The client, connected anew if it must be; None if that cannot be done now."""
        if self.client is not None and not self.ended:
            return self.client
        if self.client is not None:
            self.client.close()
            self.client, self.transaction = None, None
        self.ended = False
        self.ch = self.shared.channel()
        self.conn = f"{self.name}.{self.ch}"
        self.held, self.consumers, self.reads = {}, {}, {}
        log = self.shared.log
        if log:  # where a reader begins may be known from here on
            self._opened()
        self.asked = ("connect", time.monotonic())
        try:
            client = self.shared.system.connect(self.ch, self._receiver())
        except OutcomeUnknown:
            if log:
                self.shared.recording.record("conn_drop", conn=self.conn)
            return None
        finally:
            self.asked = None
        self.client = client
        if not log:
            self._opened()
        if "qos" in self.shared.can:
            scope = "channel" if "whole-qos" in self.shared.can else "consumer"
            prefetch = self.shared.workload.prefetch
            self.ask(
                "qos", Request(op="qos", ch=self.ch, prefetch=prefetch, scope=scope),
                prefetch=prefetch, scope=scope,
            )  # fmt: skip
        return self.client

    def _opened(self) -> None:
        self.shared.recording.record("conn_open", conn=self.conn)
        self.shared.recording.record("ch_open", conn=self.conn, ch=self.ch)

    def lost(self) -> None:
        """The connection is given up, with all that it holds."""
        client, self.client, self.transaction = self.client, None, None
        if client is not None:
            self.shared.recording.record("conn_drop", conn=self.conn)
            client.close()
        with self._lock:
            self.held = {}

    def _receiver(self) -> Callable[[Push], None]:
        ch, held, consumers = self.ch, self.held, self.consumers
        fields: dict[str, object] = {"conn": self.conn, "ch": ch}

        def receive(push: Push) -> None:
            if self.shared.ended:
                return
            record = self.shared.recording.record
            if push.ev == "closed":
                self.ended = True
                record("ch_close", ph="ok", err=str(push.code or push.why), **fields)
            elif push.ev in ("cb_begin", "cb_end"):
                record(push.ev, m=push.m, dtag=push.dtag, **fields)
            elif push.ev == "return":
                record("return", m=push.m, err=str(push.code or push.why), **fields)
            else:
                autoack = not self.shared.settles
                self.shared.given(push.m)
                # Recorded before it is held: only then may its client settle it.
                record(
                    "deliver",
                    ctag=push.ctag,
                    dtag=push.dtag,
                    m=push.m,
                    redelivered=push.redelivered,
                    autoack=autoack,
                    **fields,
                )
                with self._lock:
                    if not autoack and push.dtag is not None:
                        q = consumers.get(push.ctag, "")
                        held[push.dtag] = DrivenMessage(push.m, q, push.dtag)
                with self.shared.lock:
                    self.shared.run.messages += 1
                    self.shared.present -= autoack

        return receive

    # ---- commands

    def _begun(self, ev: str, fields: dict[str, object]) -> _Begun:
        """Record the first end of an `ev`, whose fields get what every operation has."""
        fields |= {"op": self.shared.operation(), "proc": self.name}
        if not self.shared.leases or ev in ("publish", "ch_close"):
            fields |= {"conn": self.conn, "ch": self.ch}
        self.shared.recording.record(ev, ph="invoke", **fields)
        return ev, fields

    def _ended(self, begun: Iterable[_Begun], ph: str, err: str = "") -> None:
        """Record the other end of each."""
        for ev, fields in begun:
            more = {"err": err} if err else {}
            self.shared.recording.record(ev, ph=ph, **(fields | more))

    def _outcome(self, request: Request, begun: list[_Begun]) -> Answer | None:
        """The answer to what all of this hangs on. If there is none, nobody knows the outcome of any of it."""
        assert self.client is not None
        self.asked = (request.op, time.monotonic())
        try:
            answer = self.client.do(request)
        except (OutcomeUnknown, Fault) as why:
            self._ended(begun, "info", str(why)[:200])
            with self.shared.lock:
                self.shared.run.unknown += 1
            self.lost()
            if isinstance(why, Fault):
                raise
            return None
        finally:
            self.asked = None
        if not answer.ok:
            with self.shared.lock:
                self.shared.run.refused += 1
        return answer

    def ask(self, ev: str, request: Request, /, **fields: object) -> Answer | None:
        """Ask and record both ends of an `ev`; None if nobody knows the outcome, then the connection is given up."""
        record = self.shared.recording.record if ev else _unrecorded
        answer = self._outcome(request, [self._begun(ev, fields)] if ev else [])
        if answer is None:
            return None
        if not answer.ok:
            fields["err"] = str(answer.code or answer.why)
        if ev == "get" and answer.m:
            self.shared.given(answer.m)
            if answer.expired:
                record("expire", q=fields["q"], m=answer.m, requeue=True)
            self.given += 1
            dtag = self.given if self.shared.leases else answer.dtag
            fields |= {"m": answer.m, "dtag": dtag, "redelivered": answer.redelivered}
        if ev == "rpc" and answer.q:
            fields["key"] = answer.q
        if ev == "publish" and answer.pos is not None:
            fields["pos"] = answer.pos
        record(ev, ph="ok" if answer.ok else "fail", **fields)
        return answer

    def do(self, command: ClientCommand) -> None:
        """Do one command, unless it makes no sense now."""
        if self.connected() is None:
            time.sleep(AGAIN)
            return
        with self._lock:
            full = len(self.held) >= self.shared.workload.holds
        op = "ack" if full and "ack" in self.shared.can else command.op
        if getattr(self, "_" + op.replace("-", "_"))(command):
            with self.shared.lock:
                self.shared.run.commands += 1

    def _publish(self, command: ClientCommand) -> bool:
        shared = self.shared
        if shared.present >= shared.workload.backlog or (self.number and shared.all_publish(self)):
            time.sleep(0.001)  # let others work
            return False
        m = f"{self.shared.names}{self.number}.{self.published}"
        q = f"q{command.q}"
        self.published += 1
        fields: dict[str, object] = {"q": q, "m": m}
        if command.rank is not None:
            fields["prio"] = command.rank
        if command.key:
            fields["key"] = command.key
        elif shared.system.means.order == "group":
            fields["key"] = ONE_GROUP  # what has no group has no order
        fields |= self._part(command)
        # Any field of Request; msgspec does not check on construction
        request = Request(op="publish", ch=self.ch, **fields)  # type: ignore[arg-type]
        shared.add(not shared.log)
        if self.transaction is not None:
            answer = self._outcome(request, [])
            if answer is not None and answer.ok:
                self.transaction.published.append(
                    fields | {"pub": self.conn, "pseq": self.published}
                )
            return True
        if words := self._words(command):
            self._publish_timed(request, fields, words)
            return True
        answer = self.ask("publish", request, **fields, pub=self.conn, pseq=self.published)
        if answer is not None and not answer.ok:
            shared.add(-(not shared.log))
        if answer is not None and answer.pos is not None:
            where = q, self._part(command).get("part")
            with shared.lock:
                shared.ends[where] = max(answer.pos + 1, shared.ends.get(where, 0))
        return True

    def _words(self, command: ClientCommand) -> dict[str, int]:
        """What a publish says of time, where the system knows that; nothing beside faults, which it would outlast:
        when it was confirmed is not recorded.
        """
        if self.shared.faulty:
            return {}
        return {
            w: ms for w, ms in asked(command.delay, command.ttl).items() if w in self.shared.can
        }

    def _publish_timed(
        self, request: Request, fields: dict[str, object], words: dict[str, int]
    ) -> None:
        """Publish with a delay or a time to live. When it is there is not seen, so its end is recorded later."""
        m, shared = str(fields["m"]), self.shared
        begun = self._begun("publish", fields | {"args": words})
        timed = TimedPublish(0, begun[1], 0, words.get("delay"), words.get("ttl"))
        with shared.lock:  # it may be given before it is answered
            shared.timed[m] = timed
            shared.mortal |= {m: timed.q} if timed.ttl else {}
        answer = self._outcome(msgspec.structs.replace(request, **words), [])
        timed = msgspec.structs.replace(timed, answered=time.monotonic_ns())
        with shared.lock:
            shared.over = max(shared.over, timed.over)
            waits = shared.timed.pop(m, None) is not None
            if waits and answer is not None and answer.ok:
                shared.timed[m] = timed
        if waits and (answer is None or not answer.ok):
            self._ended([begun], "info" if answer is None else "fail")

    def _part(self, command: ClientCommand) -> dict[str, int]:
        return {"part": command.part} if "partitions" in self.shared.can else {}

    # ---- logs

    def _read(self, command: ClientCommand) -> bool:
        self.read(f"q{command.q}", f"g{command.which % 2}", self._part(command))
        return True

    def read(self, q: str, group: str, part: dict[str, int]) -> str | None:
        """Read on; returns the message, empty if there was none, None if it was refused or nobody knows."""
        fields: dict[str, object] = {"ch": self.ch, "q": q, "ctag": group, **part}
        conn, since = self.conn, time.monotonic_ns()
        # Any field of Request; msgspec does not check on construction
        answer = self.ask("", Request(op="read", **fields))  # type: ignore[arg-type]
        if answer is None or not answer.ok:
            return None
        if answer.m:
            fields |= {"m": answer.m, "pos": answer.pos, "autoack": True}
            # A channel's number is used once, so that lost lines leave no doubt about whose reader it was.
            self.shared.recording.record("deliver", conn=conn, gen=1, t_lo=since, **fields)
            if answer.pos is not None:
                self.reads[q, group, part.get("part")] = answer.pos + 1
            with self.shared.lock:
                self.shared.run.messages += 1
        return answer.m

    def _seek(self, command: ClientCommand) -> bool:
        end = self.shared.ends.get((f"q{command.q}", self._part(command).get("part")), 0)
        return self._moved("seek", command, command.which // 2 % (end + 1))

    def _commit(self, command: ClientCommand) -> bool:
        q, group = f"q{command.q}", f"g{command.which % 2}"
        after = self.reads.get((q, group, self._part(command).get("part")))
        if after is None:
            return False
        means = self.shared.system.means.committed
        # Mostly what was read last, seldom something before it.
        before = max(command.which // 2 - 3, 0) % 3
        least = 1 if means == "last" else 0
        return self._moved("commit", command, max(least, after - before), means)

    def _moved(self, op: str, command: ClientCommand, pos: int, means: str = "") -> bool:
        """Ask for a seek or a commit: `pos` is the next to read, and sent as the system means it."""
        q, group = f"q{command.q}", f"g{command.which % 2}"
        sent = pos - 1 if means == "last" else pos
        fields: dict[str, object] = {"q": q, "ctag": group, "pos": sent, **self._part(command)}
        # Any field of Request; msgspec does not check on construction
        request = Request(op=op, ch=self.ch, **fields)  # type: ignore[arg-type]
        if op == "seek":
            self.reads.pop((q, group, self._part(command).get("part")), None)
        self.ask(op, request, **fields, args={"committed": means or "next"})
        return True

    # ---- queues

    def _get(self, command: ClientCommand) -> bool:
        if command.n > 1:
            self._got_several(command.queue, command.n)
        else:
            self.got(command.queue)
        return True

    def _got_several(self, q: str, n: int) -> None:
        """Get some at once: each is recorded as a get. Fewer than asked for say nothing, but if there is none."""
        autoack = not self.shared.settles
        fields = {"q": q, "autoack": autoack}
        begun = [self._begun("get", dict(fields)) for _ in range(n)]
        answer = self._outcome(Request(op="get", ch=self.ch, q=q, autoack=autoack, n=n), begun)
        if answer is None:
            return
        if len(answer.batch) > n:
            raise Fault("garbage", f"{len(answer.batch)} messages where {n} were asked for")
        for (ev, fields), got in zip(begun, answer.batch, strict=False):
            self.shared.given(got.m)
            found = {"m": got.m, "dtag": got.dtag, "redelivered": got.redelivered}
            self._ended([(ev, fields | found)], "ok")
            with self._lock:
                if not autoack and got.dtag is not None:
                    self.held[got.dtag] = DrivenMessage(got.m, q, got.dtag)
        with self.shared.lock:
            self.shared.run.messages += len(answer.batch)
            self.shared.present -= autoack * len(answer.batch)
        left = begun[len(answer.batch) :]
        if answer.ok and not answer.batch:
            self._ended([left.pop()], "ok")
        self._ended(left, "fail")

    def got(self, q: str) -> str | None:
        """Get; returns the message, empty if there was none, None if it was refused or nobody knows."""
        autoack = not self.shared.settles
        request = Request(op="get", ch=self.ch, q=q, autoack=autoack)
        answer = self.ask("get", request, q=q, autoack=autoack)
        if answer is None or not answer.ok:
            return None
        if not answer.m:
            # What a fault took is no longer there, and nobody said so.
            with self.shared.lock:
                self.shared.present //= 2
        if answer.m:
            with self._lock:
                if not autoack and answer.dtag is not None:
                    tag = self.given if self.shared.leases else answer.dtag
                    self.held[answer.dtag] = DrivenMessage(answer.m, q, tag)
            with self.shared.lock:
                self.shared.run.messages += 1
                self.shared.present -= autoack
        return answer.m

    def settled(self) -> None:
        """Acknowledge all that is held, where that can be done."""
        while self.client is not None and self.held and "ack" in self.shared.can:
            self._ack(ClientCommand(op="ack"))

    def counted(self, q: str) -> tuple[int, int] | None:
        """How many messages of a queue are ready and held, as the system counts them; None if it does not say."""
        assert self.client is not None
        self.asked = ("count", time.monotonic())
        try:
            answer = self.client.do(Request(op="count", ch=self.ch, q=q))
        except OutcomeUnknown:
            self.lost()
            return None
        finally:
            self.asked = None
        if not answer.ok or answer.ready is None or answer.held is None:
            return None
        return answer.ready, answer.held

    def _declare(self, command: ClientCommand) -> bool:
        q = command.queue
        self.ask("rpc", Request(op="declare", ch=self.ch, q=q), key=q)
        return True

    def _consume(self, command: ClientCommand) -> bool:
        q, ctag = command.queue, f"c{self.ch}.{len(self.consumers)}"
        if q in self.consumers.values():
            return False
        self.consumers[ctag] = q
        autoack = not self.shared.settles
        fields: dict[str, object] = {"q": q, "ctag": ctag, "autoack": autoack}
        if command.exclusive:
            fields["exclusive"] = True
        if command.rank is not None:
            fields["cprio"] = command.rank
        # Any field of Request; msgspec does not check on construction
        request = Request(op="consume", ch=self.ch, **fields)  # type: ignore[arg-type]
        answer = self.ask("consume", request, **fields)
        if answer is not None and not answer.ok:
            del self.consumers[ctag]
        return True

    def _cancel(self, command: ClientCommand) -> bool:
        ctag = next(reversed(self.consumers), None)
        # What a cancel gives back while deliveries are on their way, no client can tell.
        returns = self.shared.returns
        if ctag is None or (returns and ("close" in self.shared.can or self.transaction)):
            return False
        answer = self.ask("cancel", Request(op="cancel", ch=self.ch, ctag=ctag), ctag=ctag)
        if answer is not None and answer.ok:
            # Its number is not used again: what was on its way to it may still come.
            self.consumers[ctag] = ""
        return True

    def _settle(self, command: ClientCommand, op: str) -> bool:
        with self._lock:
            if not self.held:
                return False
            dtag = list(self.held)[command.which % len(self.held)]
            held = self.held.pop(dtag)
        requeue = None if op == "ack" else command.requeue
        request = Request(op=op, ch=self.ch, dtag=dtag, requeue=requeue)
        pending = ClientSettlement(op, dtag, held, requeue)
        if self.transaction is not None:
            answer = self._outcome(request, [])
            if answer is not None and answer.ok:
                self.transaction.settled.append(pending)
            return True
        buried = self._buried([pending])
        answer = self.ask(op, request, **_settlement(pending))
        self._settled([pending], buried, answer)
        return True

    def _settled(
        self, settled: Iterable[ClientSettlement], buried: list[_Begun], answer: Answer | None
    ) -> None:
        """These were settled, or refused, or nobody knows."""
        if answer is not None and answer.ok:
            gone = [each.held.m for each in settled if not each.requeue]
            self.shared.add(len(buried) - len(gone))
            with self.shared.lock:
                self.shared.buried += buried
                for m in gone:
                    self.shared.mortal.pop(m, None)
        else:
            self._ended(buried, "info" if answer is None else "fail")

    def _buried(self, settled: Iterable[ClientSettlement]) -> list[_Begun]:
        """What these publish: what is dropped comes to the queue of the dead, and from there to nowhere."""
        return [
            self._begun("publish", {"q": each.held.q + DEAD, "m": each.held.m})
            for each in settled
            if self.shared.buries and each.requeue is False and not each.held.q.endswith(DEAD)
        ]

    def _ack(self, command: ClientCommand) -> bool:
        return self._settle(command, "ack")

    def _nack(self, command: ClientCommand) -> bool:
        return self._settle(command, "nack")

    def _reject(self, command: ClientCommand) -> bool:
        return self._settle(command, "reject")

    # ---- transactions

    def _tx_begin(self, command: ClientCommand) -> bool:
        # What waits for room may wait for what the same transaction takes, and a log keeps no transaction apart.
        if self.transaction is not None or self.shared.waits or self.shared.log:
            return False
        answer = self._outcome(Request(op="tx-begin", ch=self.ch), [])
        if answer is not None and answer.ok:
            self.transaction = _ClientTransaction()
        return True

    def _tx_commit(self, command: ClientCommand) -> bool:
        """What the transaction published and settled takes effect, all of it between the request and its answer."""
        transaction, self.transaction = self.transaction, None
        if transaction is None:
            return False
        settled = transaction.settled
        begun = [self._begun("publish", fields) for fields in transaction.published]
        begun += [self._begun(each.op, _settlement(each)) for each in settled]
        buried = self._buried(settled)
        answer = self._outcome(Request(op="tx-commit", ch=self.ch), begun)
        if answer is not None:
            self._ended(begun, "ok" if answer.ok else "fail")
        self._settled(settled, buried, answer)
        if answer is not None and not answer.ok:
            self._held_again(settled)
        return True

    def _tx_rollback(self, command: ClientCommand) -> bool:
        transaction, self.transaction = self.transaction, None
        if transaction is None:
            return False
        if self._outcome(Request(op="tx-rollback", ch=self.ch), []) is not None:
            self._held_again(transaction.settled)
            self.shared.add(-len(transaction.published))
        return True

    def _held_again(self, settled: Iterable[ClientSettlement]) -> None:
        """What the transaction would have settled can be settled anew."""
        with self._lock:
            self.held |= {each.tag: each.held for each in settled}

    def _close(self, command: ClientCommand) -> bool:
        self.closed()
        return True

    def closed(self) -> None:
        """Give up the channel in order; the next command opens another one."""
        if self.client is None:
            return
        if "close" not in self.shared.can:
            self._tx_rollback(ClientCommand(op="tx-rollback"))
        self.transaction = None
        if self.client is None:
            return
        if "close" in self.shared.can:
            self.ask("ch_close", Request(op="close", ch=self.ch))
        else:
            if self.shared.returns:
                self.settled()
            for ctag in [c for c, q in self.consumers.items() if q]:
                if self.client is None:
                    return
                self._cancel(ClientCommand(op="cancel"))
                self.consumers.pop(ctag, None)
            self.settled()
        client, self.client = self.client, None
        if client is not None:
            client.close()


def _settlement(pending: ClientSettlement) -> dict[str, object]:
    """The fields of its event."""
    held = pending.held
    fields = {"dtag": held.dtag, "ms": [held.m], "multiple": False, "requeue": pending.requeue}
    return fields | ({"q": held.q} if held.q else {})


def _unrecorded(ev: str, **fields: object) -> None:
    """In the place of what records an event."""


class _WorkloadThread(threading.Thread):
    def __init__(self, driven: _DrivenClient, start: threading.Barrier) -> None:
        super().__init__(name=driven.name, daemon=True)
        self.driven, self._start_line = driven, start
        self._chance = random.Random()  # as little the same twice as the threads are

    def run(self) -> None:
        shared, driven = self.driven.shared, self.driven
        workload = shared.workload
        count = len(workload.commands) or workload.clients
        step = count / workload.rate if workload.rate else 0.0
        try:
            driven.connected()
            self._start_line.wait()
            at = time.monotonic()
            for command in workload.of_client(driven.number, shared.can):
                if shared.stop.is_set() or time.monotonic() > shared.until:
                    break
                if workload.commands and not workload.rate and self._chance.random() < 0.5:
                    time.sleep(self._chance.uniform(0, UNEVEN))
                driven.do(command)
                at += step
                if step and (early := at - time.monotonic()) > 0:
                    shared.stop.wait(early)
        except Fault as fault:
            shared.failed(fault)
            self._start_line.abort()
        except threading.BrokenBarrierError:
            pass
        except (
            HistoryError
        ) as error:  # the disk is full: the clients end, and what is written stays
            shared.failed(Fault("disk", str(error)))
        except Exception as error:  # else the others go on, and nobody knows that one is missing
            shared.failed(
                Fault("died", f"its {driven.name} raised {type(error).__name__}: {error}")
            )
            raise


def run_workload(
    system: ConcurrentSystem,
    workload: ConcurrentWorkload,
    recording: StreamedRecording,
    *,
    nemesis: FaultInjector | None = None,
    declares: Mapping[str, object] | None = None,
    patience: float = 5.0,
    names: str = "m",
    seconds: float = float("inf"),
    draining: float = DRAINING,
) -> ConcurrentRun:
    """Let the clients work, and drain the queues. What a broken system does becomes part of the result.

    `declares`: what is promised of each queue, the `args` of its `declare`.
    `patience`: how many seconds one operation may take; after that the system is given up as silent.
    `names`: what the names of messages begin with. `draining`: seconds that taking out what is left may take.
    `seconds`: after so many clients with commands of their own begin no other one.
    """
    if "queues" not in system.can:
        workload = msgspec.structs.replace(workload, queues=1)
    shared = _Shared(system, workload, recording, names, patience)
    shared.until, shared.draining = time.monotonic() + seconds, draining
    count = len(workload.commands) or workload.clients
    phases = workload.phases
    if workload.commands:
        phases = (("faults" if workload.faults else "load", float("inf")),)
    driven = shared.driven = [_DrivenClient(shared, n) for n in range(1, count + 1)]
    start = threading.Barrier(count)
    threads = shared.threads = [_WorkloadThread(each, start) for each in driven]
    _begin(shared, {**promised(system.can, system.means.lease), **(declares or {})})
    for thread in threads:
        thread.start()
    watched = [*driven]
    try:
        for phase, seconds in phases:
            until = time.monotonic() + seconds
            if phase == "faults" and nemesis is not None:
                faults = threading.Thread(
                    target=_disturbed, args=(shared, nemesis, until), daemon=True
                )
                faults.start()
                _watch(shared, [faults], watched, float("inf"), patience)
            _watch(shared, threads, watched, until, patience)
        shared.stop.set()
        _watch(shared, threads, watched, float("inf"), patience)
        if not shared.run.fault:
            watched.append(_DrivenClient(shared, 0))
            ending = threading.Thread(
                target=_drained, args=(shared, driven, watched[-1]), daemon=True
            )
            ending.start()
            _watch(shared, [ending], watched, float("inf"), patience)
    except Fault as fault:
        shared.failed(fault)
        system.end()
    finally:
        shared.end()
    recording.flush()
    return shared.run


def _begin(shared: _Shared, of_queues: dict[str, object]) -> None:
    """Record what is known before anything is done."""
    record = shared.recording.record
    if of_queues or "drop" in shared.can:  # of one that is not declared nobody knows where it drops
        for q in _queues(shared):
            record("declare", q=q, args=of_queues)
    if shared.workload.settles:  # who holds what is remembered from the first such note on
        record("note", args={"rest": True})


def _disturbed(shared: _Shared, nemesis: FaultInjector, until: float) -> None:
    """What the thread of the faults does."""
    try:
        nemesis.disturb(shared.recording, shared.workload.faults, until)
    except Fault as fault:
        shared.failed(fault)
    except HistoryError as error:
        shared.failed(Fault("disk", str(error)))


def _watch(
    shared: _Shared,
    threads: list[_WorkloadThread] | list[threading.Thread],
    driven: list[_DrivenClient],
    until: float,
    patience: float,
) -> None:
    """Wait until all threads have ended, or `until`. Raises `Fault` if one failed or an operation takes too long."""
    while (living := [t for t in threads if t.is_alive()]) and time.monotonic() < until:
        if shared.run.fault:
            raise Fault(shared.run.fault, shared.run.why)
        if until == float("inf") and all(
            isinstance(t, _WorkloadThread) and shared.stuck(t.driven) for t in living
        ):
            return
        for each in driven:
            asked = each.asked
            if asked is not None and time.monotonic() - asked[1] > patience:
                if shared.waits and each.number and asked[0] == "publish":
                    continue  # until something is taken, at the latest at the end
                why = f"gave {each.name} no answer to {asked[0]} within {patience:g} s"
                raise Fault("silent", why)
        living[0].join(min(LOOKS, max(0.0, until - time.monotonic())))
    if shared.run.fault:
        raise Fault(shared.run.fault, shared.run.why)


def _make_room(shared: _Shared, last: _DrivenClient) -> None:
    """Take messages until no publish waits any more. Raises `Fault` if one waits beside empty queues."""
    until = time.monotonic() + shared.patience
    while any(thread.is_alive() for thread in shared.threads):
        waiting = next((c.name for c in shared.driven if c.publishes), None)
        if last.connected() is not None and any(map(last.got, _queues(shared))):
            last.settled()
            until = time.monotonic() + shared.patience
        elif waiting and time.monotonic() > until:
            why = f"gave {waiting} no answer to publish, though nothing is left in the queue"
            raise Fault("silent", why)
        else:
            time.sleep(LOOKS)


def _drained(shared: _Shared, driven: list[_DrivenClient], last: _DrivenClient) -> None:
    """Close all clients, take out what is left, and note that the queues were seen empty."""
    last.name = "drain"
    messages = shared.run.messages
    try:
        if shared.waits and "get" in shared.can:
            _make_room(shared, last)
        rest = _rests(shared)
        last._ended(shared.buried, "ok" if rest else "info")
        if rest and shared.workload.settles:
            _settle_all(shared, driven)
        if shared.workload.commands:
            _leases_end(shared, driven, last)
        for each in driven:
            each.closed()
        _time_passes(shared, last)
        limit = 2 * sum(c.published for c in driven) + LAST_MESSAGES
        shared.drained_by = time.monotonic() + shared.draining
        emptied = _read_through if shared.log else _emptied
        shared.run.drained = all(emptied(shared, last, q, limit) for q in _queues(shared))
        last.closed()
    except Fault as fault:
        shared.failed(fault)
    except HistoryError as error:
        shared.failed(Fault("disk", str(error)))
    finally:
        shared.run.messages = messages


def _leases_end(shared: _Shared, driven: list[_DrivenClient], last: _DrivenClient) -> None:
    """Look for what clients hold while they must have it, and let their leases run out, if these are short."""
    lease = shared.system.means.lease
    if not 0 < lease <= SHORT_LEASE or not any(c.held for c in driven):
        return
    for seconds in (lease / 2, lease):
        time.sleep(seconds)
        _taken(shared, last)


def _taken(shared: _Shared, last: _DrivenClient) -> None:
    """Take what is there, and settle it."""
    for q in _queues(shared) if "get" in shared.can else ():
        for _ in range(shared.workload.backlog):
            if last.connected() is None or not last.got(q):
                break
            last.settled()


def _time_passes(shared: _Shared, last: _DrivenClient) -> None:
    """Let each delay and time to live be over, and record what became of the messages that had one.

    What has a delay is there then, or was lost; what has a time to live and was not settled for good is gone.
    """
    if not shared.over:
        return
    while (now := time.monotonic_ns()) < shared.over:
        if not shared.mortal:  # of which some must be left when their time is over
            _taken(shared, last)  # nothing comes early
        time.sleep(min(LOOKS, (shared.over - now) / 1e9))
    while time.monotonic_ns() < shared.over + OVERDUE:
        if not any(t.delay for t in shared.timed.values()):
            break
        _taken(shared, last)
        time.sleep(LOOKS)
    for timed in shared.timed.values():
        shared.timed_ended(timed, "ok" if timed.delay else "info")
    shared.timed.clear()
    for m, q in shared.mortal.items():
        shared.recording.record("expire", q=q, m=m, requeue=False)


def _rests(shared: _Shared) -> bool:
    """Whether it is known that all has come to rest, which is recorded then."""
    rest = not shared.run.unknown and shared.system.sync()
    if rest:
        shared.recording.record("note", args={"rest": True})
    return rest


def _settle_all(shared: _Shared, driven: list[_DrivenClient]) -> None:
    """Acknowledge what clients hold until nobody is given more: every consumer is ready then, so none may wait."""
    while holding := [c for c in driven if c.held and c.client is not None and not c.transaction]:
        for each in holding:
            each.settled()
        if not _rests(shared):
            return


def _queues(shared: _Shared) -> list[str]:
    named = {c.q for each in shared.workload.commands for c in each}
    queues = [f"q{n}" for n in sorted(named or range(shared.workload.queues))]
    return queues + [q + DEAD for q in queues if shared.buries]


def _read_through(shared: _Shared, last: _DrivenClient, q: str, limit: int) -> bool:
    """Whether every partition of a log was read from its beginning to its end, as a group that was never there."""
    since = time.monotonic()
    for part in (0, 1) if "partitions" in shared.can else (None,):
        where: dict[str, int] = {} if part is None else {"part": part}
        for _ in range(limit + 1):
            while last.connected() is None or (m := last.read(q, "drain", where)) is None:
                shared.run.undrained = f"{q} could not be reached"
                if shared.late(since):
                    return False
                time.sleep(AGAIN)
            since = time.monotonic()
            if not m:
                break
            if shared.late():
                shared.run.undrained = LATE
                return False
        else:
            return False
    shared.recording.record("note", q=q, args={"depth": 0})
    shared.run.undrained = ""
    return True


def _emptied(shared: _Shared, last: _DrivenClient, q: str, limit: int) -> bool:
    """Whether the queue was seen empty, after everything was taken out, at most `limit` messages."""
    if "get" not in shared.can:
        return False
    note, run = shared.recording.record, shared.run
    found, missed, more = 0, 0, 0 if q.endswith(DEAD) else LAST_MESSAGES
    since = time.monotonic()
    while found <= limit:
        if shared.late(since):
            run.undrained = run.undrained or LATE
            return False
        if last.connected() is None or (m := last.got(q)) is None:
            run.undrained = f"{q} could not be reached"
            time.sleep(AGAIN)
            continue
        if m:
            found, missed, since = found + 1, 0, time.monotonic()
            last.settled()
            continue
        missed += 1
        empty = {"depth": 0}
        if "count" in shared.can:
            if (counted := last.counted(q)) is None or any(counted):
                ready, held = counted or (None, None)
                run.undrained = f"{q} gave nothing, and counts {ready} ready and {held} held"
                time.sleep(AGAIN)
                continue
            empty["held"] = 0
        elif missed <= GETS_AGAIN:
            since = time.monotonic()
            continue
        if more and (("count" in shared.can) or (not run.unknown and shared.system.sync())):
            # Nobody holds anything, so at each of the gets that follow all is at rest: none may find nothing.
            more, since = _last_messages(shared, last, q, more), time.monotonic()
            continue
        note("note", q=q, args=empty)
        run.undrained = ""
        return True
    return False


def _last_messages(shared: _Shared, last: _DrivenClient, q: str, more: int) -> int:
    """Publish so many messages and take each at rest; returns how many were not come to, for nobody knew an outcome."""
    rest = {"rest": True}
    shared.present = 0
    shared.recording.record("note", q=q, args=rest)
    for left in range(more, 0, -1):
        # All of them first, unless there may be no room for that.
        for _ in range(1 if shared.waits else more if left == more else 0):
            last._publish(ClientCommand(op="publish", q=int(q[1:])))
            if last.client is None or shared.late():
                return left
        shared.recording.record("note", q=q, args=rest)
        last.got(q)
        last.settled()
        if last.client is None or shared.late():
            return left - 1
    return 0
