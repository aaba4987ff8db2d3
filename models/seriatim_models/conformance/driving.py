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
from collections.abc import Iterable

import msgspec

from seriatim_models.conformance.protocol import Answer, Fault, Push, Request
from seriatim_models.conformance.script import SETTLING, ScriptStep
from seriatim_models.conformance.system import System
from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event

DRAIN = 1_000
"""The channel by which what is left is taken out at the end."""


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


class _DrivenChannel:
    def __init__(self) -> None:
        self.outstanding: dict[int, tuple[str, str]] = {}  # dtag: message, consumer
        self.consumers: dict[str, tuple[str, bool]] = {}  # tag: queue, autoack
        self.cancelled: set[str] = set()


class _Driver:
    def __init__(self, system: System) -> None:
        self.system = system
        self.run = DrivenRun(steps=[], events=[])
        self.channels: dict[int, _DrivenChannel] = {}
        self.place: dict[str, int] = {}  # message: its number in the order of publishing
        self._sent: dict[str, int] = {}  # queue: how many were published
        self._events = self.run.events
        self._op = 0
        self.asked: ScriptStep | None = None
        """What is under way, with the message it means: the last step of a run that ends in a fault."""
        self._unfenced: list[int] = []  # events whose effect is not bounded yet

    # ---- recording

    def record(self, ev: str, t: int | None = None, /, **fields: object) -> None:
        """Record an event, at `t` or now."""
        i = len(self._events)
        instant = i if self.system.exact else (time.monotonic_ns() if t is None else t)
        if self._events and not self.system.exact:
            instant = max(instant, self._events[-1].t or 0)
        lvl = "broker" if self.system.exact else "api"
        # Any field of Event; msgspec does not check on construction
        self._events.append(Event(i=i, t=instant, ev=ev, lvl=lvl, conn="c", **fields))  # type: ignore[arg-type]

    def around(self, ev: str, request: Request, before: bool, /, **fields: object) -> Answer:
        """Ask, and record: exactly one event, or the two ends of the operation.

        `before` says that what is pushed to the channel until the answer comes belongs before the event.
        """
        exact = self.system.exact
        self._op += 1
        if not exact:
            self.record(ev, ph="invoke", op=self._op, **fields)
        answer = self.system.do(request)
        arrived = self.system.pushed()
        if before or not exact:
            self.pushes([p for p in arrived if not exact or p.ch == request.ch])
            arrived = [p for p in arrived if exact and p.ch != request.ch]
        if exact and not answer.ok:
            fields |= {"ph": "fail", "err": str(answer.code or answer.why)}
        if exact:
            self.record(ev, **fields)
        else:
            ended: dict[str, object] = {}
            if not answer.ok:
                ended["err"] = str(answer.code or answer.why)
            if ev == "get" and answer.m:
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
        if self.system.exact:
            return
        now = time.monotonic_ns()
        if sure:
            for n in self._unfenced:
                self._events[n] = msgspec.structs.replace(self._events[n], t_hi=now)
            self.run.fenced += len(self._unfenced)
        self._unfenced.clear()

    def pushes(self, arrived: list[Push]) -> None:
        """Record what the implementation pushed."""
        for push in self._merged(arrived) if self.system.exact else arrived:
            channel = self.channels.get(push.ch)
            if push.ev == "closed":
                self.record("ch_close", push.t, ch=push.ch, ph="ok", err=str(push.code or push.why))
                self.channels.pop(push.ch, None)
                continue
            if push.ev == "return":
                self.record("return", push.t, ch=push.ch, m=push.m, err=str(push.code or push.why))
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
            if channel and not autoack and push.dtag is not None:
                channel.outstanding[push.dtag] = (push.m, push.ctag)

    def _merged(self, arrived: list[Push]) -> Iterable[Push]:
        """The pushes of several channels as one sequence: next is the channel whose first message is earliest."""
        lines: dict[int, list[Push]] = {}
        for push in arrived:
            lines.setdefault(push.ch, []).append(push)
        heads = [line[::-1] for line in lines.values()]
        while heads:
            least = min(heads, key=lambda line: self.place.get(line[-1].m, -1))
            yield least.pop()
            heads = [line for line in heads if line]

    # ---- steps

    def step(self, step: ScriptStep) -> None:
        """Do one step, unless it makes no sense where it stands."""
        if (
            step.op != "publish"
            and step.op not in self.system.can
            and step.op not in ("open", "close")
        ):
            return
        self.asked = step
        done = getattr(self, f"_{step.op}")(step)
        if done is None:
            return
        self.run.steps.append(done)
        self.asked = None
        if step.wait or self.system.exact:
            self.settled()

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
        if step.ch not in self.channels or "close" not in self.system.can:
            return None
        self.around("ch_close", Request(op="close", ch=step.ch), True, ch=step.ch)
        self.channels.pop(step.ch, None)
        return step

    def _publish(self, step: ScriptStep) -> ScriptStep:
        m = step.m or f"m{len(self.place)}"
        self.place.setdefault(m, len(self.place))
        number = self._sent[step.q] = self._sent.get(step.q, -1) + 1
        request = Request(op="publish", q=step.q, m=m)
        self.around("publish", request, False, q=step.q, m=m, pub="publisher", pseq=number)
        return msgspec.structs.replace(step, m=m)

    def _qos(self, step: ScriptStep) -> ScriptStep | None:
        if "whole-qos" in self.system.can:
            step = msgspec.structs.replace(step, scope="channel")
        elif step.scope == "channel" and "channel-qos" not in self.system.can:
            return None
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
        consumers = self.channels[step.ch].consumers
        # Before it is asked: the first delivery may come before the answer.
        consumers[step.ctag] = (step.q, autoack)
        request = Request(op="consume", ch=step.ch, q=step.q, ctag=step.ctag, autoack=autoack)
        fields: dict[str, object] = {
            "ch": step.ch,
            "q": step.q,
            "ctag": step.ctag,
            "autoack": autoack,
        }
        if not self.around("consume", request, False, **fields).ok:
            consumers.pop(step.ctag, None)
        return step

    def _cancel(self, step: ScriptStep) -> ScriptStep | None:
        channel = self.channels.get(step.ch)
        if channel is None or step.ctag not in channel.consumers.keys() - channel.cancelled:
            return None
        request = Request(op="cancel", ch=step.ch, ctag=step.ctag)
        self.around("cancel", request, True, ch=step.ch, ctag=step.ctag)
        # Its queue stays known: what is pushed to it from now on must be recorded all the same.
        channel.cancelled.add(step.ctag)
        return step

    def _get(self, step: ScriptStep) -> ScriptStep:
        self._ensure(step.ch)
        self.got(step)
        return step

    def got(self, step: ScriptStep) -> str:
        """Get and record; returns the message, empty if there was none."""
        autoack = step.autoack and "autoack" in self.system.can
        autoack = autoack or not SETTLING & self.system.can
        request = Request(op="get", ch=step.ch, q=step.q, autoack=autoack)
        fields: dict[str, object] = {"ch": step.ch, "q": step.q, "autoack": autoack}
        if self.system.exact:
            answer = self.system.do(request)
            result = {"m": answer.m, "dtag": answer.dtag, "redelivered": answer.redelivered}
            if not answer.ok:
                result = {"ph": "fail", "err": str(answer.code or answer.why)}
            self.record("get", **(fields | result))
        else:
            answer = self.around("get", request, False, **fields)
        if answer.m and not autoack and answer.dtag is not None:
            self.channels[step.ch].outstanding[answer.dtag] = (answer.m, "")
        return answer.m

    def _ack(self, step: ScriptStep) -> ScriptStep | None:
        return self._settle(step)

    _nack = _reject = _ack

    def _settle(self, step: ScriptStep) -> ScriptStep | None:
        channel = self.channels.get(step.ch)
        if channel is None or not channel.outstanding:
            return None
        tags = list(channel.outstanding)
        if step.m:
            tags = [tag for tag in tags if channel.outstanding[tag][0] == step.m]
        if not tags:
            return None
        dtag = tags[(step.which or 0) % len(tags)]
        m = channel.outstanding[dtag][0]
        multiple = step.multiple and step.op != "reject" and "multiple" in self.system.can
        requeue = None if step.op == "ack" else step.requeue or "drop" not in self.system.can
        request = Request(op=step.op, ch=step.ch, dtag=dtag, multiple=multiple, requeue=requeue)
        fields: dict[str, object] = {
            "ch": step.ch,
            "dtag": dtag,
            "multiple": multiple,
            "requeue": requeue,
        }
        settled = [tag for tag in channel.outstanding if tag == dtag or (multiple and tag <= dtag)]
        self.asked = msgspec.structs.replace(
            step, m=m, which=None, multiple=multiple, requeue=requeue is not False
        )
        if self.system.exact:
            answer = self.system.do(request)
            refused = {} if answer.ok else {"ph": "fail", "err": str(answer.code or answer.why)}
            self.record(step.op, **(fields | refused))
        else:
            # Sent and not answered: only `settled` bounds when it takes effect.
            self.record(step.op, **fields)
            if requeue:
                self._unfenced.append(len(self._events) - 1)
            answer = self.system.do(request)
        if answer.ok:
            for tag in settled:
                channel.outstanding.pop(tag, None)
        return self.asked

    def _ensure(self, ch: int) -> None:
        if ch not in self.channels:
            opened = self._open(ScriptStep(op="open", ch=ch))
            assert opened is not None

    # ---- the end

    def drain(self) -> None:
        """Close everything, take out what is left, and note that the queues were seen empty."""
        self.asked = None
        for ch in list(self.channels):
            if "close" in self.system.can:
                self._close(ScriptStep(op="close", ch=ch))
            else:
                for tag in list(self.channels[ch].consumers):
                    self._cancel(ScriptStep(op="cancel", ch=ch, ctag=tag))
                self._acknowledge_all(ch)
        self.settled()
        limit = 2 * len(self.place) + 10
        for q in self._sent:
            self._ensure(DRAIN)
            take_out = self._get_all if "get" in self.system.can else self._consume_all
            if take_out(q, limit):
                self.record("note", q=q, args={"depth": 0})

    def _get_all(self, q: str, limit: int) -> bool:
        """Get until nothing is left; False if it hands out more than was published, which the history shows."""
        for _ in range(limit):
            if not self.got(ScriptStep(op="get", ch=DRAIN, q=q)):
                return True
            self._settle(ScriptStep(op="ack", ch=DRAIN))
            self.settled()
        return False

    def _consume_all(self, q: str, limit: int) -> bool:
        """Consume until nothing more is pushed, at most `limit` times."""
        tag = f"drain-{q}"
        self._consume(ScriptStep(op="consume", ch=DRAIN, q=q, ctag=tag))
        for _ in range(limit):
            self.settled()
            if not self.channels[DRAIN].outstanding:
                break
            self._acknowledge_all(DRAIN)
        self._cancel(ScriptStep(op="cancel", ch=DRAIN, ctag=tag))
        return True

    def _acknowledge_all(self, ch: int) -> None:
        while self.channels[ch].outstanding:
            self._settle(ScriptStep(op="ack", ch=ch))


def drive(system: System, steps: Iterable[ScriptStep], *, until: float = float("inf")) -> DrivenRun:
    """Run a script from a fresh start. Never raises `Fault`: it becomes part of the `DrivenRun`.

    `until` is the `time.monotonic` at which it is given up, as if the steps ended there.
    """
    driver = _Driver(system)
    run = driver.run
    try:
        system.reset()
        for step in steps:
            if time.monotonic() > until:
                break
            driver.step(step)
        driver.drain()
    except Fault as fault:
        run.fault, run.why = fault.kind, str(fault)
        if driver.asked is not None:
            run.steps.append(driver.asked)
    run.events = list(complete(run.events))
    return run
