"""Running a script against an implementation and recording a history of it, as a client sees it.

Steps that make no sense where they stand (settle where nothing is outstanding, open what is open) are left out, so that
any part of a script is a script.
After the last step all channels are closed and the queues emptied, so that what was lost differs from what is left.

An *exact* implementation (see `System`) is recorded on level ``broker``: one event an effect, in the order of effects,
`t` counting them. Where one step sets off deliveries to several channels, their order is not seen; they are written in
the order most favourable to the implementation that each channel's own order allows.
All others are recorded on level ``api``: what is sent and what comes back, in nanoseconds, and `t_hi` where the drive
made sure that a command had taken effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from seriatim_models.conformance.protocol import Answer, Fault, Push, Request
from seriatim_models.conformance.script import DEAD, ONE_GROUP, SETTLING, ScriptStep, promised
from seriatim_models.conformance.system import MayWait, System
from seriatim_models.conformance.timed import OVERDUE, SHORT_LEASE, TimedPublish, asked
from seriatim_models.conformance.transactions import PendingSettlement, Transaction
from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event

DRAIN = 1_000
"""The channel by which what is left is taken out at the end."""
PAUSES = (0.0, 0.0, 0.0002, 0.0, 0.001, 0.0, 0.0005)
"""Seconds between commands whose effect is not waited for, in turn."""
EVENTS_MAX = 25_000
"""After how many events a script is given up, as if its steps ended there: requeueing thousands of messages again and
again makes histories that take minutes to judge.
"""
GETS_AGAIN = 3
"""How often a queue that says that it is empty is asked again where something must be left."""
DRAINING = 5.0
"""Seconds that taking out what is left may take beyond the time of a script; what is left then may be there still."""


class DrivenRun(msgspec.Struct, kw_only=True):
    """What came of one script."""

    steps: list[ScriptStep]
    """Those that were done, each with the message that it named."""
    events: list[Event]
    """Completed, see `seriatim_models.history.complete`."""
    fault: str = ""
    """Kind of the fault that ended it, if one did."""
    why: str = ""
    fenced: int = 0
    """Of the steps that requeue, how many were certain to have taken effect before the next."""


_BegunPublish = tuple[int, dict[str, object]]
"""Number and fields of a publish whose end is not recorded yet."""


class _DrivenChannel:
    """A channel as the drive knows it: what it holds, and its consumers."""

    def __init__(self) -> None:
        self.outstanding: dict[int, tuple[str, str]] = {}  # dtag: message, consumer
        self.consumers: dict[str, tuple[str, bool]] = {}  # tag: queue, autoack
        self.cancelled: set[str] = set()


class _Driver:
    def __init__(self, system: System, exact: bool) -> None:
        self.system = system
        self.exact = exact
        """Whether every effect is seen at its instant; not if commands are sent without waiting."""
        self.latest = float("inf")
        """The `time.monotonic` after which nothing more is taken out at the end."""
        self.run = DrivenRun(steps=[], events=[])
        self.channels: dict[int, _DrivenChannel] = {}
        self.place: dict[str, int] = {}  # message: its number in the order of publishing
        self._rank: dict[str, int] = {}
        """Of each message where it is in its queue, as far as the system declares that: lower is before higher."""
        self._ranks = 0
        self.prio: dict[str, int] = {}  # message: its priority
        self._sent: dict[str, int] = {}  # queue: how many were published
        self._declared: set[str] = set()
        self._events = self.run.events
        self._op = 0
        self.asked: ScriptStep | None = None
        """What is under way, with the message it means: the last step of a run that ends in a fault."""
        self._unfenced: list[int] = []  # events whose effect is not bounded yet
        self.home: dict[str, str] = {}  # message: the queue it was published to
        self.ready: set[str] = set()
        """Messages that must be in their queue, by what was asked and answered."""
        self.holds: dict[str, int] = {}  # message: the channel that was given it last
        self.returned: set[str] = set()
        """Messages that a command put back, while its channel stayed open."""
        self._sure = True  # whether nothing was asked since all was known to be at rest
        self.transactions: dict[int, Transaction] = {}  # channel: what it has not committed yet
        self._dying: list[_BegunPublish] = []
        """Of messages that were dropped, their coming to the queue of the dead, which is not certain yet."""
        self.logs: dict[tuple[str, int | None], int] = {}
        """By topic and partition, the position after the last that was published."""
        self._reads: dict[tuple[int, str, str, int | None], int] = {}
        """By channel, group, topic and partition, the position after what was read last."""
        self.timed: dict[str, TimedPublish] = {}
        """Messages with a delay or a time to live, until it is certain what became of them."""
        self._mortal: set[str] = set()
        """Messages with a time to live: none is put back, for it may be gone then."""
        self._readers: set[tuple[int, str, str, int | None]] = set()
        """By channel, group, topic and partition, who reads a log."""
        self._leases = "lease" in system.can
        self._closes = "close" in system.can and not self._leases
        """Whether a channel that is closed gives back what it holds; where there are leases only these do."""

    # ---- recording

    def record(self, ev: str, t: int | None = None, /, **fields: object) -> None:
        """Record an event, at `t` or now."""
        i = len(self._events)
        instant = i if self.exact else (time.monotonic_ns() if t is None else t)
        if self._events and not self.exact:
            instant = max(instant, self._events[-1].t or 0)
        lvl = "broker" if self.exact else "api"
        # Any field of Event; msgspec does not check on construction
        self._events.append(Event(i=i, t=instant, ev=ev, lvl=lvl, conn="c", **fields))  # type: ignore[arg-type]

    def around(self, ev: str, request: Request, before: bool, /, **fields: object) -> Answer:
        """Ask, and record: exactly one event, or the two ends of the operation.

        `before` says that what is pushed to the channel until the answer comes belongs before the event.
        """
        exact = self.exact
        self._op += 1
        self._sure = False
        if not exact:
            self.record(ev, ph="invoke", op=self._op, **fields)
        answer = self.system.do(request)
        arrived = self.system.pushed()
        if before or not exact:
            self.pushes([p for p in arrived if not exact or p.ch == request.ch])
            arrived = [p for p in arrived if exact and p.ch != request.ch]
        if answer.pos is not None:
            fields |= {"pos": answer.pos}
        if exact and not answer.ok:
            fields |= {"ph": "fail", "err": str(answer.code or answer.why)}
        if exact:
            self.record(ev, **fields)
        else:
            ended: dict[str, object] = {}
            if not answer.ok:
                ended["err"] = str(answer.code or answer.why)
            if ev == "get" and answer.m:
                if answer.expired:
                    self.record("expire", q=fields["q"], m=answer.m, requeue=True)
                ended = {"m": answer.m, "dtag": answer.dtag, "redelivered": answer.redelivered}
            ph = "ok" if answer.ok else "fail"
            bounds = {"t_hi": time.monotonic_ns()} if ev == "ch_close" and answer.ok else {}
            self.record(ev, ph=ph, op=self._op, **(fields | ended | bounds))
        self.pushes(arrived)
        return answer

    def settled(self) -> None:
        """Wait for the effects of what was sent, and bound them."""
        sure = self.system.sync()
        self.pushes(self.system.pushed())
        self._sure = sure
        if sure and any(channel.consumers for channel in self.channels.values()):
            self.at_rest()
        if self.exact:
            return
        now = time.monotonic_ns()
        if sure:
            for n in self._unfenced:
                self._events[n] = msgspec.structs.replace(self._events[n], t_hi=now)
            self.run.fenced += len(self._unfenced)
            self._ended(self._dying, True)
        self._unfenced.clear()
        self._dying.clear()

    def at_rest(self) -> None:
        """Record that all has come to rest, unless it is recorded already."""
        last = self._events[-1] if self._events else None
        if self._sure and not (last and last.args.get("rest")):
            self.record("note", args={"rest": True})

    def pushes(self, arrived: list[Push]) -> None:
        """Record what the implementation pushed."""
        for push in self._merged(arrived) if self.exact else arrived:
            channel = self.channels.get(push.ch)
            if push.ev == "closed":
                self.record("ch_close", push.t, ch=push.ch, ph="ok", err=str(push.code or push.why))
                self._released(push.ch)
                self.channels.pop(push.ch, None)
                self.transactions.pop(push.ch, None)
                continue
            if push.ev == "return":
                self.record("return", push.t, ch=push.ch, m=push.m, err=str(push.code or push.why))
                continue
            if push.ev in ("cb_begin", "cb_end"):
                self.record(push.ev, push.t, ch=push.ch, m=push.m, dtag=push.dtag)
                continue
            known = channel.consumers.get(push.ctag) if channel else None
            q, autoack = known or ("", False)
            self.record(
                "deliver",
                push.t,
                ch=push.ch,
                ctag=push.ctag,
                dtag=push.dtag,
                q=q,
                m=push.m,
                redelivered=push.redelivered,
                autoack=autoack,
            )
            self._given(push.ch, push.m, autoack)
            if channel and not autoack and push.dtag is not None:
                channel.outstanding[push.dtag] = (push.m, push.ctag)

    def _given(self, ch: int, m: str, autoack: bool | None) -> None:
        """A message is no longer in its queue."""
        self.ready.discard(m)
        self.returned.discard(m)
        self.holds.pop(m, None)
        if not autoack:
            self.holds[m] = ch
        if (timed := self.timed.get(m)) is not None and timed.delay:
            self._timed_ended([timed], "ok")

    def _released(self, ch: int) -> None:
        """What a channel held is back in its queue, unless somebody else was given it meanwhile."""
        for m in [m for m, by in self.holds.items() if by == ch]:
            del self.holds[m]
            self.ready.add(m)

    def _merged(self, arrived: list[Push]) -> Iterable[Push]:
        """The pushes of several channels as one sequence.

        Next is the channel whose first message has the highest priority, and of these the earliest place.
        """
        lines: dict[int, list[Push]] = {}
        for push in arrived:
            lines.setdefault(push.ch, []).append(push)
        heads = [line[::-1] for line in lines.values()]
        while heads:
            least = min(heads, key=lambda line: self._turn(line[-1].m))
            yield least.pop()
            heads = [line for line in heads if line]

    def _turn(self, m: str) -> tuple[int, int]:
        """What orders the messages of a queue: the priority, from high to low, then where each was put."""
        return -self.prio.get(m, 0), self._rank.get(m, -1)

    def _put(self, m: str, at_head: bool = False) -> None:
        """A message was put behind all others of its queue, or before them."""
        self._ranks += 1
        self._rank[m] = -self._ranks if at_head else self._ranks

    def _declare(self, q: str) -> None:
        """Record what the system promises of a queue, before the first command that names it."""
        # Where events have numbers in the place of times nothing can be said of a lease.
        args = promised(self.system.can, 0 if self.exact else self.system.means.lease)
        if self.system.means.requeue in ("head", "tail"):
            args["requeue"] = self.system.means.requeue
        # What is dropped must not come back only where it is recorded that the queue is a plain one.
        if (args or "drop" in self.system.can) and q not in self._declared:
            self.record("declare", q=q, args=args)
        self._declared.add(q)

    # ---- steps

    def step(self, step: ScriptStep) -> None:
        """Do one step, unless it makes no sense where it stands."""
        if step.op not in self.system.can and step.op not in ("publish", "open", "close", "pass"):
            return
        self.asked = step
        done = getattr(self, "_" + step.op.replace("-", "_"))(step)
        if done is None:
            return
        self.run.steps.append(done)
        self.asked = None
        if step.wait or self.exact:
            self.settled()
        elif self.system.exact:
            # It may have threads in this process, which come to nothing while this one goes on and on.
            time.sleep(PAUSES[len(self.run.steps) % len(PAUSES)])

    def _open(self, step: ScriptStep) -> ScriptStep | None:
        if step.ch in self.channels:
            return None
        if "open" in self.system.can:
            self.around("ch_open", Request(op="open", ch=step.ch), False, ch=step.ch)
        else:
            self.record("ch_open", ch=step.ch)
        self.channels[step.ch] = _DrivenChannel()
        return step

    def _close(self, step: ScriptStep) -> ScriptStep | None:
        if step.ch not in self.channels or not self._closes:
            return None
        self._nothing_pushed()
        if step.ch not in self.channels:
            return None
        self.transactions.pop(step.ch, None)
        self._mortal_acked(step.ch)
        self._released(step.ch)
        self.around("ch_close", Request(op="close", ch=step.ch), True, ch=step.ch)
        self._released(step.ch)
        self.channels.pop(step.ch, None)
        self._reads = {key: pos for key, pos in self._reads.items() if key[0] != step.ch}
        self._readers = {key for key in self._readers if key[0] != step.ch}
        return step

    def _publish(self, step: ScriptStep) -> ScriptStep | None:
        if self.full(step.q):
            return None
        m = step.m or f"m{len(self.place)}"
        self.place.setdefault(m, len(self.place))
        self._declare(step.q)
        fields: dict[str, object] = {"q": step.q, "m": m}
        if step.prio is not None and "message-priority" in self.system.can:
            fields["prio"] = self.prio[m] = step.prio
        if step.key and "groups" in self.system.can:
            fields["key"] = step.key
        elif self.system.means.order == "group":
            fields["key"] = ONE_GROUP  # what has no group has no order
        part = step.part if "partitions" in self.system.can else None
        if part is not None:
            fields["part"] = part
        if (words := self._words(step)) and step.ch not in self.transactions:
            return self._publish_timed(msgspec.structs.replace(step, m=m), fields, words)
        if (transaction := self.transactions.get(step.ch)) is not None:
            # Any field of Request; msgspec does not check on construction
            request = Request(op="publish", ch=step.ch, **fields)  # type: ignore[arg-type]
            self._sent.setdefault(step.q, -1)
            if self.system.do(request).ok:
                transaction.published.append(fields)
            return msgspec.structs.replace(step, m=m)
        request = Request(op="publish", **fields)  # type: ignore[arg-type]
        fields = self._there(fields)  # before it is asked: it may be delivered before the answer
        answer = self.around("publish", request, False, **fields)
        if not answer.ok:
            self.ready.discard(m)
        elif answer.pos is not None:
            self.logs[step.q, part] = answer.pos + 1
        return msgspec.structs.replace(step, m=m)

    def _words(self, step: ScriptStep) -> dict[str, int]:
        """What a publish says of time, where the system knows that and nothing meets."""
        if self.exact or not step.wait:
            return {}
        return {
            word: ms for word, ms in asked(step.delay, step.ttl).items() if word in self.system.can
        }

    def _publish_timed(
        self, step: ScriptStep, fields: dict[str, object], words: dict[str, int]
    ) -> ScriptStep:
        """Publish with a delay or a time to live: when that is in its queue is seen later, if at all."""
        self._sent.setdefault(step.q, -1)
        self.home[step.m] = step.q
        self._put(step.m)
        op, begun = self._begun(fields | {"args": words})
        self._sure = False
        # Any field of Request; msgspec does not check on construction
        answer = self.system.do(Request(op="publish", **fields, **words))  # type: ignore[arg-type]
        timed = TimedPublish(op, begun, time.monotonic_ns(), words.get("delay"), words.get("ttl"))
        if not answer.ok:
            self._timed_ended([timed], "fail")
            return step
        if timed.ttl:
            self._mortal.add(step.m)
        self.timed[step.m] = timed
        self.pushes(self.system.pushed())
        return step

    def _timed_ended(self, publishes: Iterable[TimedPublish], ph: str) -> None:
        """It is known what became of these, or that nobody ever will know."""
        for timed in publishes:
            self.timed.pop(timed.m, None)
            end = timed.ended(time.monotonic_ns())
            self.record("publish", ph=ph, op=timed.op, **(timed.fields | end))

    def _mortal_acked(self, ch: int) -> None:
        """Acknowledge what a channel holds that must not go back."""
        held = self.channels[ch].outstanding.values()
        for m in [m for m, _ in held if m in self._mortal]:
            self._settle(ScriptStep(op="ack", ch=ch, m=m))

    def _pass(self, step: ScriptStep) -> ScriptStep | None:
        """Let time pass: so much, or until no delay and no time to live is left; then consumers have what they are
        ready for.
        """
        lease = self.system.means.lease if self.holds else 0
        if not self.timed and not 0 < lease <= SHORT_LEASE:
            return None
        if step.delay:
            time.sleep(step.delay / 1000)
            self.settled()
            return step
        now = time.monotonic_ns()
        last = max([now + round(lease * 1.5e9), *(timed.over for timed in self.timed.values())])
        while (left := last - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)
        self.settled()
        consumed = {
            q
            for channel in self.channels.values()
            for ctag, (q, _) in channel.consumers.items()
            if ctag not in channel.cancelled
        }
        self._overdue(lambda timed: timed.q in consumed, self.settled)
        return step

    def _overdue(self, of: Callable[[TimedPublish], bool], look: Callable[[], object]) -> None:
        """Wait for messages whose delay is over, looking again and again: they must be there in the end."""
        while due := [t for t in self.timed.values() if t.delay and of(t)]:
            if time.monotonic_ns() > max(t.over for t in due) + OVERDUE:
                for timed in due:
                    self.ready.add(timed.m)
                self._timed_ended(due, "ok")
                self.settled()
                return
            time.sleep(OVERDUE / 1e11)
            look()

    def _there(self, fields: dict[str, object]) -> dict[str, object]:
        """A message is being published: the fields of that, with its number among those of its queue."""
        q, m = str(fields["q"]), str(fields["m"])
        number = self._sent[q] = self._sent.get(q, -1) + 1
        self.home[m] = q
        self.ready.add(m)
        if m not in self._rank:
            self._put(m)
        return fields | {"pub": "publisher", "pseq": number}

    def _begun(self, fields: dict[str, object]) -> _BegunPublish:
        """The first end of a publish that something else brings about. In an exact run there is only `_ended`."""
        self._op += 1
        if not self.exact:
            self.record("publish", ph="invoke", op=self._op, **fields)
        return self._op, fields

    def _ended(self, begun: Iterable[_BegunPublish], done: bool) -> None:
        """The other end of each."""
        for op, fields in begun:
            if not self.exact:
                self.record("publish", ph="ok" if done else "fail", op=op, **fields)
            elif done:
                self.record("publish", **fields)
            if not done:
                self.ready.discard(str(fields["m"]))

    def _buried(self, ms: Iterable[str]) -> list[_BegunPublish]:
        """What dropping these messages publishes: each comes to the queue of the dead, and from there to nowhere."""
        begun = []
        for m in ms:
            q = self.home.get(m, "")
            if "dead-letter" in self.system.can and q and not q.endswith(DEAD):
                self._sent.setdefault(q + DEAD, -1)
                begun.append(self._begun({"q": q + DEAD, "m": m}))
        return begun

    def inside(self, q: str) -> int:
        """How many messages are in a queue, as far as it is known."""
        return sum(self.home.get(m) == q for m in (*self.ready, *self.holds))

    def full(self, q: str) -> bool:
        """Whether a publish would wait: with as many messages in a queue one did before."""
        room = self.system.room if isinstance(self.system, MayWait) else None
        return room is not None and self.inside(q) >= room

    def waits(self, fault: Fault) -> bool:
        """Whether what ended the script is a publish that waits until something is taken, as it may. That is
        remembered, since nobody else can take it.
        """
        step = self.asked
        if fault.kind != "silent" or "waits" not in self.system.can or step is None:
            return False
        others = self.inside(step.q) - 1 if step.op == "publish" else 0
        if others < 1 or not isinstance(self.system, MayWait):
            return False
        self.system.room = others
        return True

    def _qos(self, step: ScriptStep) -> ScriptStep | None:
        if "whole-qos" in self.system.can:
            step = msgspec.structs.replace(step, scope="channel")
        elif step.scope == "channel" and "channel-qos" not in self.system.can:
            return None
        if step.scope == "channel":
            self._nothing_in_flight()  # a delivery made under the limit before looks like one too many
        self._ensure(step.ch)
        request = Request(op="qos", ch=step.ch, prefetch=step.prefetch, scope=step.scope)
        self.around("qos", request, False, ch=step.ch, prefetch=step.prefetch, scope=step.scope)
        return step

    def _consume(self, step: ScriptStep) -> ScriptStep | None:
        self._ensure(step.ch)
        if any(step.ctag in channel.consumers for channel in self.channels.values()):
            return None
        autoack = step.autoack or not SETTLING & self.system.can
        if autoack and "autoack" not in self.system.can:
            return None
        self._declare(step.q)
        consumers = self.channels[step.ch].consumers
        # Before it is asked: the first delivery may come before the answer.
        consumers[step.ctag] = (step.q, autoack)
        fields: dict[str, object] = {
            "ch": step.ch,
            "q": step.q,
            "ctag": step.ctag,
            "autoack": autoack,
        }
        if step.exclusive and "exclusive" in self.system.can:
            fields["exclusive"] = True
        if step.cprio is not None and "priority" in self.system.can:
            fields["cprio"] = step.cprio
        # Any field of Request; msgspec does not check on construction
        request = Request(op="consume", **fields)  # type: ignore[arg-type]
        if not self.around("consume", request, False, **fields).ok:
            consumers.pop(step.ctag, None)
        return step

    def _cancel(self, step: ScriptStep) -> ScriptStep | None:
        channel = self.channels.get(step.ch)
        if channel is None or step.ctag not in channel.consumers.keys() - channel.cancelled:
            return None
        request = Request(op="cancel", ch=step.ch, ctag=step.ctag)
        if self.system.means.cancel == "returns":
            if step.ch in self.transactions:
                return None
            self._nothing_in_flight()
            if step.ch not in self.channels:
                return None
            self._mortal_acked(step.ch)
            self._cancel_and_return(request)
        else:
            self._nothing_pushed()
            self.around("cancel", request, True, ch=step.ch, ctag=step.ctag)
        # Its queue stays known: what is pushed to it from now on must be recorded all the same.
        channel.cancelled.add(step.ctag)
        return step

    def _cancel_and_return(self, request: Request) -> None:
        """Cancel a consumer that gives back what it holds: recorded as a nack of each, which the cancel implies.

        Nothing is on its way, so what is pushed until the answer is an effect of it.
        """
        channel = self.channels[request.ch]
        held = {tag: of for tag, of in channel.outstanding.items() if of[1] == request.ctag}
        named: dict[str, object] = {"ch": request.ch, "ctag": request.ctag}
        nacks = [
            {"ch": request.ch, "dtag": tag, "multiple": False, "requeue": True} for tag in held
        ]
        if self.exact:
            self._sure = False
            answer = self.system.do(request)
            refused = {} if answer.ok else {"ph": "fail", "err": str(answer.code or answer.why)}
            self.record("cancel", **(named | refused))
            if answer.ok:
                for fields in nacks:
                    self.record("nack", **fields)
                self._settled_for(request.ch, held, back=True)
            self.pushes(self.system.pushed())
            return
        for fields in nacks:
            self.record("nack", **fields)
            self._unfenced.append(len(self._events) - 1)
        before = {m: self.holds[m] for m, _ in held.values() if m in self.holds}
        self._settled_for(request.ch, held, back=True)
        if not self.around("cancel", request, True, **named).ok:
            # Then nothing came back.
            for fields in nacks:
                self.record("nack", ph="fail", **fields)
            channel.outstanding |= held
            self.holds |= before
            self.ready -= before.keys()

    def _get(self, step: ScriptStep) -> ScriptStep:
        self._ensure(step.ch)
        if self.channels[step.ch].consumers:
            self._nothing_pushed()
            self._ensure(step.ch)
        if step.n > 1 and "batch" in self.system.can:
            self._got_several(step)
        else:
            self.got(step)
        return step

    def _got_several(self, step: ScriptStep) -> None:
        """Get some at once and record each: they are got at one time, in the order of the answer.

        That there are fewer than asked for says nothing, but that there are none.
        """
        autoack = step.autoack and "autoack" in self.system.can
        autoack = autoack or not SETTLING & self.system.can
        self._declare(step.q)
        self.at_rest()
        self._sure = False
        fields: dict[str, object] = {"ch": step.ch, "q": step.q, "autoack": autoack}
        first = self._op + 1
        self._op += step.n
        for op in range(first, self._op + 1) if not self.exact else ():
            self.record("get", ph="invoke", op=op, **fields)
        answer = self.system.do(Request(op="get", ch=step.ch, q=step.q, autoack=autoack, n=step.n))
        if len(answer.batch) > step.n:
            raise Fault("garbage", f"{len(answer.batch)} messages where {step.n} were asked for")
        if not self.exact:
            self.pushes(self.system.pushed())
        found = [msgspec.structs.asdict(got) for got in answer.batch] or [{}]
        for op, result in enumerate(found if answer.ok else [], first):
            ended = {} if self.exact else {"ph": "ok", "op": op}
            self.record("get", **(fields | result | ended))
            if m := str(result.get("m", "")):
                self._given(step.ch, m, autoack)
            if m and not autoack and isinstance(result["dtag"], int):
                self.channels[step.ch].outstanding[result["dtag"]] = (m, "")
        unused = range(first + len(found) * answer.ok, self._op + 1)
        for op in unused if not self.exact else ():
            self.record("get", ph="fail", op=op, **fields)

    def got(self, step: ScriptStep) -> str | None:
        """Get and record; returns the message, empty if there was none, None if the get was refused."""
        autoack = step.autoack and "autoack" in self.system.can
        autoack = autoack or not SETTLING & self.system.can
        self._declare(step.q)
        self.at_rest()
        request = Request(op="get", ch=step.ch, q=step.q, autoack=autoack)
        fields: dict[str, object] = {"ch": step.ch, "q": step.q, "autoack": autoack}
        if self.exact:
            answer = self.system.do(request)
            result = {"m": answer.m, "dtag": answer.dtag, "redelivered": answer.redelivered}
            if not answer.ok:
                result = {"ph": "fail", "err": str(answer.code or answer.why)}
            if answer.m and answer.expired:
                self.record("expire", q=step.q, m=answer.m, requeue=True)
            self.record("get", **(fields | result))
            self._sure = False
        else:
            answer = self.around("get", request, False, **fields)
        if answer.m:
            self._given(step.ch, answer.m, autoack)
        if answer.m and not autoack and answer.dtag is not None:
            self.channels[step.ch].outstanding[answer.dtag] = (answer.m, "")
        return answer.m if answer.ok else None

    def _ack(self, step: ScriptStep) -> ScriptStep | None:
        return self._settle(step)

    _nack = _reject = _ack

    def _meant(self, channel: _DrivenChannel, step: ScriptStep) -> list[int]:
        """The delivery tags of which a settlement may be. What may be gone by then is acknowledged only."""
        tags = list(channel.outstanding)
        if step.op != "ack" or step.ch in self.transactions:
            tags = [tag for tag in tags if channel.outstanding[tag][0] not in self._mortal]
            if step.multiple and len(tags) < len(channel.outstanding):
                return []
        return [tag for tag in tags if step.m in ("", channel.outstanding[tag][0])]

    def _settle(self, step: ScriptStep) -> ScriptStep | None:
        if step.every:
            self._nothing_in_flight()
        channel = self.channels.get(step.ch)
        if channel is None or not channel.outstanding:
            return None
        tags = self._meant(channel, step)
        if (transaction := self.transactions.get(step.ch)) is not None:
            return self._settle_in(transaction, step, [t for t in tags if not transaction.has(t)])
        if not tags:
            return None
        dtag = tags[(step.which or 0) % len(tags)]
        m = channel.outstanding[dtag][0]
        multiple = step.multiple and step.op != "reject" and "multiple" in self.system.can
        every = step.every and multiple
        named = m
        if every:
            dtag, named = 0, ""
        requeue = None if step.op == "ack" else step.requeue or "drop" not in self.system.can
        request = Request(op=step.op, ch=step.ch, dtag=dtag, multiple=multiple, requeue=requeue)
        fields: dict[str, object] = {
            "ch": step.ch,
            "dtag": dtag,
            "multiple": multiple,
            "requeue": requeue,
        }
        settled = [
            tag for tag in channel.outstanding if every or tag == dtag or (multiple and tag <= dtag)
        ]
        self.asked = msgspec.structs.replace(
            step, m=named, which=None, multiple=multiple, requeue=requeue is not False, every=every
        )
        self._sure = False
        gone = [channel.outstanding[tag][0] for tag in settled] if requeue is False else []
        if self.exact:
            answer = self.system.do(request)
            refused = {} if answer.ok else {"ph": "fail", "err": str(answer.code or answer.why)}
            self.record(step.op, **(fields | refused))
            buried = self._buried(gone)
        else:
            # Sent and not answered: only `settled` bounds when it takes effect.
            self.record(step.op, **fields)
            if requeue:
                self._unfenced.append(len(self._events) - 1)
            buried = self._buried(gone)
            answer = self.system.do(request)
        if answer.ok:
            self._settled_for(step.ch, settled, back=bool(requeue))
        self._move(buried, answer.ok)
        if self._leases and not answer.ok:  # it ran out, and whoever is next has the message
            for tag in settled:
                channel.outstanding.pop(tag)
        return self.asked

    def _move(self, buried: list[_BegunPublish], done: bool) -> None:
        """Messages that were dropped are in the queue of the dead now, or at the latest when all is at rest."""
        if self.exact or not done:
            self._ended(buried, done)
        else:
            self._dying += buried
        for _, fields in buried if done else ():
            m = str(fields["m"])
            self.home[m] = str(fields["q"])
            self.ready.add(m)
            self._put(m)

    # ---- transactions

    def _tx_begin(self, step: ScriptStep) -> ScriptStep | None:
        if step.ch in self.transactions:
            return None
        self._ensure(step.ch)
        if self.system.do(Request(op="tx-begin", ch=step.ch)).ok:
            self.transactions[step.ch] = Transaction()
        return step

    def _settle_in(
        self, transaction: Transaction, step: ScriptStep, tags: list[int]
    ) -> ScriptStep | None:
        """Settle one delivery when the transaction is committed. What is requeued to an end of its queue is left out:
        nothing says whether that comes before or behind what the same transaction publishes.
        """
        requeue = None if step.op == "ack" else step.requeue or "drop" not in self.system.can
        if not tags or (requeue and self.system.means.requeue not in ("", "place")):
            return None
        dtag = tags[(step.which or 0) % len(tags)]
        pending = PendingSettlement(step.op, step.ch, dtag, requeue)
        answer = self.system.do(Request(op=step.op, ch=step.ch, dtag=dtag, requeue=requeue))
        if answer.ok:
            transaction.settled.append(pending)
        else:
            why = str(answer.code or answer.why)
            self.record(step.op, ph="fail", err=why, **pending.fields())
        m, _ = self.channels[step.ch].outstanding[dtag]
        return msgspec.structs.replace(
            step, m=m, which=None, multiple=False, every=False, requeue=requeue is not False
        )

    def _tx_commit(self, step: ScriptStep) -> ScriptStep | None:
        """What the transaction published and settled takes effect, all of it between the request and its answer."""
        transaction = self.transactions.pop(step.ch, None)
        if transaction is None:
            return None
        held = self.channels[step.ch].outstanding
        gone = [held[each.dtag][0] for each in transaction.settled if each.requeue is False]
        self._sure = False
        begun = [self._begun(self._there(fields)) for fields in transaction.published]
        if not self.exact:
            self._settlements(transaction)
        buried = self._buried(gone)
        answer = self.system.do(Request(op="tx-commit", ch=step.ch))
        if self.exact and answer.ok:
            self._settlements(transaction)
        self._ended(begun, answer.ok)
        if answer.ok:
            for each in transaction.settled:
                self._settled_for(step.ch, [each.dtag], back=bool(each.requeue))
        elif not self.exact:
            for each in transaction.settled:
                self.record(each.op, ph="fail", **each.fields())
        self._move(buried, answer.ok)
        return step

    def _settlements(self, transaction: Transaction) -> None:
        for each in transaction.settled:
            self.record(each.op, **each.fields())
            if each.requeue and not self.exact:
                self._unfenced.append(len(self._events) - 1)

    def _tx_rollback(self, step: ScriptStep) -> ScriptStep | None:
        if self.transactions.pop(step.ch, None) is None:
            return None
        self.system.do(Request(op="tx-rollback", ch=step.ch))
        return step

    def _settled_for(self, ch: int, tags: Iterable[int], *, back: bool) -> None:
        """Deliveries of a channel were settled; `back` says that their messages are in their queue again."""
        channel = self.channels[ch]
        for tag in tags:
            m, _ = channel.outstanding.pop(tag, ("", ""))
            if m and self.holds.pop(m, None) is not None and back:
                self.ready.add(m)
                self.returned.add(m)
                if self.system.means.requeue in ("head", "tail"):
                    self._put(m, self.system.means.requeue == "head")

    def _nothing_pushed(self) -> None:
        """Wait for what a system without a connection is about to push, before an answer that it might come after.

        What is answered and what is pushed are ordered on a connection, and elsewhere only by `sync`: a system that
        pushes from a thread of its own, with no lock in hand, is right.
        """
        if self.system.exact and not self.exact:
            self.settled()

    def _nothing_in_flight(self) -> None:
        """Wait for what is on its way, before a command that settles it unseen."""
        if not self.exact:
            self.settled()

    def _recover(self, step: ScriptStep) -> ScriptStep | None:
        channel = self.channels.get(step.ch)
        if channel is None or not channel.outstanding or step.ch in self.transactions:
            return None
        self._nothing_in_flight()
        if step.ch not in self.channels:
            return None
        self._mortal_acked(step.ch)
        tags = list(channel.outstanding)
        request = Request(op="recover", ch=step.ch, requeue=True)
        if self.around("recover", request, False, ch=step.ch, requeue=True).ok:
            self._settled_for(step.ch, tags, back=True)
        return step

    # ---- logs

    def _read(self, step: ScriptStep) -> ScriptStep:
        self.read(step)
        return step

    def read(self, step: ScriptStep) -> str | None:
        """Read on and record it; returns the message, empty if there was none, None if the reading was refused."""
        self._ensure(step.ch)
        fields = {"ch": step.ch, "q": step.q, "ctag": step.ctag, **self._part(step)}
        reader = step.ch, step.ctag, step.q, step.part
        # Each has the partition to itself, whoever else is of its group. Nothing is on its way to who only drains.
        if reader not in self._readers and step.ch != DRAIN:
            self._readers.add(reader)
            self.record("consume", autoack=True, **fields)
        # Any field of Request; msgspec does not check on construction
        answer = self.system.do(Request(op="read", **fields))  # type: ignore[arg-type]
        if answer.m:
            # Reading takes nothing away, and nothing is settled afterwards.
            self.record("deliver", m=answer.m, pos=answer.pos, autoack=True, **fields)
            self._given(step.ch, answer.m, True)
            if answer.pos is not None:
                self._reads[step.ch, step.ctag, step.q, step.part] = answer.pos + 1
        return answer.m if answer.ok else None

    def _part(self, step: ScriptStep) -> dict[str, object]:
        return {"part": step.part} if "partitions" in self.system.can else {}

    def _seek(self, step: ScriptStep) -> ScriptStep:
        self._ensure(step.ch)
        end = self.logs.get((step.q, step.part if self._part(step) else None), 0)
        pos = (step.which or 0) % (end + 1) if step.pos is None else step.pos
        self._moved("seek", step, pos)
        self._reads.pop((step.ch, step.ctag, step.q, step.part), None)
        return msgspec.structs.replace(step, pos=pos, which=None)

    def _commit(self, step: ScriptStep) -> ScriptStep | None:
        after = self._reads.get((step.ch, step.ctag, step.q, step.part))
        if after is None:
            return None
        means = self.system.means.committed
        least = 1 if means == "last" else 0
        pos = max(least, after - (step.which or 0)) if step.pos is None else step.pos
        self._moved("commit", step, pos, means)
        return msgspec.structs.replace(step, pos=pos, which=None)

    def _moved(self, op: str, step: ScriptStep, pos: int, means: str = "") -> None:
        """Ask for a seek or a commit, and record it: `pos` is the next to read, and sent as the system means it."""
        sent = pos - 1 if means == "last" else pos
        fields = {"ch": step.ch, "q": step.q, "ctag": step.ctag, "pos": sent, **self._part(step)}
        # Any field of Request; msgspec does not check on construction
        request = Request(op=op, **fields)  # type: ignore[arg-type]
        self.around(op, request, False, **fields, args={"committed": means or "next"})

    def _read_all(self, q: str, limit: int) -> bool:
        """Read every partition from its beginning, as a group that was never there; False if that is refused."""
        for part in (0, 1) if "partitions" in self.system.can else (None,):
            step = ScriptStep(op="read", ch=DRAIN, q=q, ctag="drain", part=part)
            found = [self.read(step)]
            while found[-1] and len(found) < limit and not self._late:
                found.append(self.read(step))
            if found[-1] != "":
                return False
        return True

    def _ensure(self, ch: int) -> None:
        if ch not in self.channels:
            opened = self._open(ScriptStep(op="open", ch=ch))
            assert opened is not None

    # ---- the end

    def drain(self) -> None:
        """Close everything, take out what is left, and note that the queues were seen empty.

        What a command put back must be there before its channel closes, for closing would put it back once more.
        """
        self.asked = None
        for ch in list(self.transactions):
            self._tx_rollback(ScriptStep(op="tx-rollback", ch=ch))
        self._timed_out()
        if self.returned & self.ready and self._drained_open():
            return
        for ch in list(self.channels):
            if self._late:
                return
            if self._closes:
                self._close(ScriptStep(op="close", ch=ch))
                self.settled()
            else:
                for tag in list(self.channels[ch].consumers):
                    self._cancel(ScriptStep(op="cancel", ch=ch, ctag=tag))
                    self.settled()
                self._acknowledge_all(ch)
        self.settled()
        limit = 2 * len(self.place) + 10
        for q in self._sent:
            if self._late:
                return
            self._ensure(DRAIN)
            take_out = self._get_all if "get" in self.system.can else self._consume_all
            if "read" in self.system.can:
                take_out = self._read_all
            if take_out(q, limit):
                self.record("note", q=q, args={"depth": 0})

    @property
    def _late(self) -> bool:
        return time.monotonic() > self.latest

    def _timed_out(self) -> None:
        """Let everything come that has a delay; what has a time to live came, or never will."""
        if not self.timed or self._pass(ScriptStep(op="pass")) is None:
            return
        if "get" in self.system.can:
            self._ensure(DRAIN)

        def look() -> None:
            for q in {timed.q for timed in self.timed.values() if timed.delay}:
                while "get" in self.system.can and self.got(ScriptStep(op="get", ch=DRAIN, q=q)):
                    self._settle(ScriptStep(op="ack", ch=DRAIN))
            self.settled()

        self._overdue(lambda timed: True, look)
        self._timed_ended(list(self.timed.values()), "info")

    def _drained_open(self) -> bool:
        """Take out what is left while the channels are open; whether something that must be there was not found."""
        if "get" not in self.system.can:
            return False
        if "groups" in self.system.can and self.holds:
            return False  # what is held of a group may keep the rest of it back, as SQS's FIFO queues have it
        for ch, channel in list(self.channels.items()):
            for tag in channel.consumers.keys() - channel.cancelled:
                if "cancel" not in self.system.can:
                    return False
                self._cancel(ScriptStep(op="cancel", ch=ch, ctag=tag))
                self.settled()
        self.settled()
        for q in self._sent:
            if not self._sure or not any(self.home.get(m) == q for m in self.ready):
                continue
            self._ensure(DRAIN)
            self.settled()
            if self._late or not self._get_all(q, 2 * len(self.place) + 10) or not self._sure:
                continue
            if any(self.home.get(m) == q for m in self.ready):
                self.record("note", q=q, args={"depth": 0})
                return True
        return False

    def _get_all(self, q: str, limit: int) -> bool:
        """Get until nothing is left; False if it refuses, or time is over, or it hands out more than was published (the
        history shows it).

        Where something must be left it is asked again, to tell what is lost from what was only not found.
        """
        missed = 0
        for _ in range(limit):
            found = None if self._late else self.got(ScriptStep(op="get", ch=DRAIN, q=q))
            if found is None:
                return False
            if not found:
                missed += 1
                self.settled()
                if missed > GETS_AGAIN or not any(self.home.get(m) == q for m in self.ready):
                    return True
                continue
            missed = 0
            self._settle(ScriptStep(op="ack", ch=DRAIN))
            self.settled()
        return False

    def _consume_all(self, q: str, limit: int) -> bool:
        """Consume until nothing more is pushed, at most `limit` times; False if that is refused."""
        tag = f"drain-{q}"
        self._consume(ScriptStep(op="consume", ch=DRAIN, q=q, ctag=tag))
        if DRAIN not in self.channels or tag not in self.channels[DRAIN].consumers:
            return False
        for _ in range(limit):
            self.settled()
            if not self.channels[DRAIN].outstanding or self._late:
                break
            self._acknowledge_all(DRAIN)
        self._cancel(ScriptStep(op="cancel", ch=DRAIN, ctag=tag))
        return not self._late

    def _acknowledge_all(self, ch: int) -> None:
        while self.channels[ch].outstanding and not self._late:
            self._settle(ScriptStep(op="ack", ch=ch))
            if self.exact:
                self.settled()


@runtime_checkable
class DrivesItself(Protocol):
    """A system that can be given a whole script."""

    def drive(self, steps: Iterable[ScriptStep], seconds: float) -> DrivenRun | None:
        """The run, as `drive_steps` would make it; None if it must be driven step by step."""


def drive(system: System, steps: Iterable[ScriptStep], *, until: float = float("inf")) -> DrivenRun:
    """Run a script from a fresh start. Never raises `Fault`: it becomes part of the `DrivenRun`.

    `until` is the `time.monotonic` at which it is given up, as if the steps ended there.
    """
    asked = list(steps)
    if isinstance(system, DrivesItself):
        run = system.drive(asked, until - time.monotonic())
        if run is not None:
            return run
    return drive_steps(system, asked, until - time.monotonic())


def drive_steps(system: System, steps: Sequence[ScriptStep], seconds: float) -> DrivenRun:
    """`drive`, step by step, for so many seconds."""
    until = time.monotonic() + seconds
    timed = any(asked(step.delay, step.ttl) or step.op == "pass" for step in steps)
    exact = system.exact and not timed and all(step.wait for step in steps)
    driver = _Driver(system, exact)
    driver.latest = until + DRAINING
    run = driver.run
    try:
        system.reset()
        driver.at_rest()
        for step in steps:
            if time.monotonic() > until or len(run.events) > EVENTS_MAX:
                break
            driver.step(step)
        driver.drain()
    except Fault as fault:
        if not driver.waits(fault):
            run.fault, run.why = fault.kind, str(fault)
            if driver.asked is not None:
                run.steps.append(driver.asked)
    run.events = list(complete(run.events))
    return run
