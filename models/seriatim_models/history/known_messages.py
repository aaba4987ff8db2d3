"""What is known of the messages of a run while its recording is completed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import Event

Milliseconds = int | float
"""A delay as events have it."""


class KnownMessage(msgspec.Struct):
    """What is known of a message in one queue."""

    q: str
    pub: str
    pseq: int | None
    since: int | None
    """Not available before."""
    prio: int | None
    key: str | None
    """Of a publish to an exchange it routes, and orders nothing: None."""
    doubts: int
    """How much had happened before its publish by which somebody may have had a message unseen."""
    taken: bool = False
    """It was handed out, or may have been."""
    given: bool = False
    """It was seen to be handed out."""
    copies: int = 1
    """How often it was published and may be there."""

    def also_in(self, q: str) -> KnownMessage:
        """The same message, in one of the queues that it was routed to."""
        return msgspec.structs.replace(self, q=q)


class KnownMessages(msgspec.Struct, ForgetsOldest):
    """The messages of a run that are not settled for good, by message and queue.

    A message that was published to no queue by name (to an exchange) stands under the empty name, for all of them.
    """

    bounded: ClassVar = ("_dead", "_delays", "_early", "_counted", "_acked")
    _known: dict[str, dict[str, KnownMessage]] = {}
    _dead: dict[str, None] = {}
    _delays: dict[str, Milliseconds | None] = {}
    """Messages that were published with a delay, and that of their queue if it is that; the latest `DEAD_KEPT`."""
    _early: dict[str, None] = {}
    """Messages that were handed out before their publish was recorded."""
    _counted: dict[str, tuple[int, str]] = {}
    """Of streams that publishers name and count themselves, how far they are recorded, and by whom; the latest
    `STREAMS_KEPT`.
    """
    _acked: dict[str, None] = {}
    """Messages whose acknowledgement was sent, which may never have come, and messages that were handed out for good,
    of which an earlier delivery may be recorded still: what is published under their name again may be a copy."""

    def publish(self, event: Event, pub: str, pseq: int | None, doubts: int) -> None:
        """Take in the beginning of a publish. Sent twice, it may be there since the first time, at either place."""
        if event.pub and event.pseq is not None:
            if event.pseq > self._counted.get(event.pub, (-1, ""))[0]:
                self._counted[event.pub] = event.pseq, event.rec
            if len(self._counted) > STREAMS_KEPT:
                forget_oldest(self._counted)
        queues = self._known.setdefault(event.m, {})
        key = event.key if event.q else None
        returned = event.ph == "" and event.lvl in (
            "",
            "api",
        )  # perhaps: written down behind the call
        since = event.t_lo if returned or event.t_lo is not None else event.t
        message = KnownMessage(event.q, pub, pseq, since, event.prio, key, doubts)
        before = queues.get(event.q)
        message.taken = event.m in self._early
        if before is None and event.m in self._acked:
            before = msgspec.structs.replace(message, since=None, pub="", pseq=None)
        if before is not None:
            message.taken = True
            message.since = before.since
            message.copies = before.copies + 1
            if (before.pub, before.pseq) != (pub, pseq):
                message.pub, message.pseq = "", None
        queues[event.q] = message

    def handed_out(self, m: str, q: str) -> KnownMessage | None:
        """What is known of a message that somebody is given."""
        known = self.find(m, q)
        if known is None:
            self._early[m] = None
            if len(self._early) > EARLY_KEPT:
                forget_oldest(self._early)
        return known

    def beyond(self, event: Event, known: KnownMessage | None) -> dict[str, object]:
        """What is known of a message whose publish is not, but which says that its publisher sent it after all that
        another recorder wrote down of that one: that recorder had stopped.
        """
        if known or not event.pub or event.pseq is None or event.pub not in self._counted:
            return {}
        last, rec = self._counted[event.pub]
        beyond = event.pseq > last and event.rec != rec
        return {"args": {**event.args, "beyond": True}} if beyond else {}

    def find(self, m: str, q: str) -> KnownMessage | None:
        """What is known of a message in a queue; without a queue if there is one only that can be meant."""
        queues = self._known.get(m)
        if queues is None:
            return None
        if not q and len(queues) == 1:
            return next(iter(queues.values()))
        return queues.get(q) or queues.get("")

    def moved(self, m: str, q: str) -> bool:
        """Whether a message came to a queue by another way than its publish: it died, or was published elsewhere."""
        if m in self._dead:
            return True
        queues = self._known.get(m)
        return queues is not None and bool(q) and q not in queues and "" not in queues

    def queues(self, m: str) -> Iterable[str]:
        """The queues that a message was published to; the empty name for an exchange."""
        return self._known.get(m, {})

    def came_by_death(self, m: str) -> None:
        """A message died: where it is seen next, deaths decide its place."""
        self._dead[m] = None
        if len(self._dead) > DEAD_KEPT:
            forget_oldest(self._dead)

    def delay(self, m: str, of_queue: Milliseconds | None) -> None:
        """A message waits after its publish: where it is seen next, the end of that decides its place."""
        self._delays[m] = of_queue
        if len(self._delays) > DEAD_KEPT:
            forget_oldest(self._delays)
        self.came_by_death(m)

    @property
    def any_delayed(self) -> bool:
        """Whether any message was published with a delay."""
        return bool(self._delays)

    def delayed(self, m: str) -> bool:
        """Whether a message was published with a delay."""
        return m in self._delays

    def delay_of_queue(self, m: str) -> Milliseconds | None:
        """The delay that a message has of its queue; None if it has none, or nobody knows which."""
        return self._delays.get(m)

    def copied(self, m: str) -> bool:
        """Whether several messages of that name may be there, in whatever queues."""
        return len(self._known.get(m, {})) > 1 or m in self._acked

    def put_back(self, m: str, q: str, since: int | None) -> None:
        """A message goes back to its queue, perhaps unseen: what was on its way to a client's callback."""
        known = self.find(m, q)
        if known is None:
            return
        known.taken = True
        if since is None:
            return
        if known.q != q:
            known = self._known[m][q] = known.also_in(q)
        known.since = since

    def settle(self, m: str, q: str) -> None:
        """A message leaves a queue for good; of one that was published again, a copy."""
        queues = self._known.get(m)
        if queues is None:
            return
        known = self.find(m, q)
        if known is not None and known.copies > 1:
            known.copies -= 1
            return
        queues.pop(q, None)
        queues.pop("", None)
        if not queues or not q:
            del self._known[m]

    def ack(self, m: str, q: str, certain: bool) -> None:
        """A message is acknowledged, or handed out for good. Whoever sent that may have been gone before it came, and
        whoever had the message before may see it later.
        """
        self.settle(m, q)
        if not certain:
            self._acked[m] = None
            if len(self._acked) > ACKED_KEPT:
                forget_oldest(self._acked)

    def die(self, m: str, q: str) -> None:
        """A message leaves a queue undone: where it is seen next, deaths decide its place."""
        self.settle(m, q)
        self.came_by_death(m)


def milliseconds(delay: object) -> Milliseconds:
    """A delay as it is recorded; 0 if it is none."""
    if not isinstance(delay, int | float) or isinstance(delay, bool):
        return 0
    return max(0, delay)


EARLY_KEPT = 65_536  # messages; a publish is recorded soon after it was made, if at all
ACKED_KEPT = 4096  # messages; who sends one again for want of an answer does so soon
DEAD_KEPT = 65_536  # messages; what died shows up in its next queue soon, and memory must not grow
STREAMS_KEPT = 65_536  # streams of publishers; what one sent last is seen soon


class QueueDelay(msgspec.Struct):
    """The delay that a queue was declared with for its messages."""

    asked: Milliseconds
    answered: bool = False
    doubtful: bool = False
    """Another one was declared, which may hold for what is there already; or none, for all that is known."""
