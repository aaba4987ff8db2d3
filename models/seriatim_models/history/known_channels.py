"""What is known of a channel while a recording is completed: its consumers, its credit, and what it holds."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import ANY_TIME, Event

SENT_KEPT = 4096  # polls and settlements; the outcome of one comes soon, if at all


class CreditLimiter(msgspec.Struct):
    """The credit of one consumer, or of one channel when the prefetch is the channel's."""

    prefetch: int | None
    since: int | None
    delivered: int = 0
    settled: deque[int] = msgspec.field(default_factory=deque)

    def settle(self, t: int) -> None:
        """A message of it was settled."""
        if self.prefetch:
            self.settled.append(t)

    def deliver(self) -> int | None:
        """The earliest time at which the broker had credit for the next delivery."""
        self.delivered += 1
        if self.prefetch and self.delivered > self.prefetch and self.settled:
            settled = self.settled.popleft()
            self.since = settled if self.since is None else max(self.since, settled)
        return self.since

    def forget(self) -> None:
        """Settlements may have been missed: from here on the credit bounds nothing."""
        self.prefetch = None
        self.settled.clear()


class AskedLimit(msgspec.Struct):
    """A prefetch that was asked for; None is without limit."""

    prefetch: int | None
    op: int | None = None
    unanswered: bool = True
    since: int | None = None
    """When it surely held."""

    def answered_by(self, event: Event) -> bool:
        """Whether an outcome is its own: by its operation, else the answers of a channel come in the order asked."""
        return self.unanswered and (event.op is None or self.op == event.op)


class KnownConsumer(msgspec.Struct):
    """What a consumer asked for."""

    q: str
    autoack: bool | None
    nolocal: bool | None
    prefetch: int | None
    limiter: int
    """Its number among the limiters of its channel."""
    own: bool
    """It asked for its limit itself."""
    unknown: bool
    """Whether what it is given has to be settled, and so is limited; until something of it is."""


Given = tuple[str, str, int | None]
"""A delivery that is not settled: message, queue, limiter."""


class KnownChannel(msgspec.Struct, ForgetsOldest):
    """One incarnation of a channel, as far as a recording says."""

    bounded: ClassVar = ("polls",)
    number: int = 0
    """Its number in the run; 0 of one that nobody keeps."""
    prefetch: int | None = None
    own: int | None = None
    """The limit of consumers that begin from now on."""
    scope: str | None = None
    limiter: int | None = None
    """The number of the channel's, when the prefetch is the channel's."""
    limiters: dict[int, CreditLimiter] = {}
    """Those of the channel and of its consumers, by number: what is open names them so."""
    n_limiters: int = 0
    """How many there were so far."""
    consumers: dict[str, KnownConsumer] = {}
    unknown: dict[str, None] = {}
    """Those of them that are `unknown`: a settlement looks at these, and not at all that there are."""
    open: dict[int, Given] = {}
    """By delivery tag."""
    began: int = ANY_TIME
    """When the latest of its publishes was sent."""
    published: int = 0
    polls: dict[int | None, list[int]] = {}
    """When polls under way began, by operation; of those without a number the earliest is answered first. The latest
    `SENT_KEPT`."""
    before: KnownChannel | None = None
    """The incarnation before, whose callbacks may run late."""
    through: int = 0
    """The highest tag that a command for several covered."""
    seen: int = 0
    """The highest tag up to which all was seen: the answer of a poll may overtake deliveries."""
    used: bool = False
    """Something was delivered."""
    unnamed: int = 0
    """How many of its consumers have no tag: of several nobody knows whose a delivery without one is."""
    limits: list[AskedLimit] = []
    """Limits of the channel that may hold for what arrives."""
    ids: bool = False
    """Its delivery tags are none of AMQP 0-9-1, see `shows_ids`: delivery-ids of AMQP 1.0, say, from any number on.
    They say what is settled, and nothing else."""
    opened: bool = False
    """Its opening is recorded, and whatever came since."""
    unseen: bool = False
    """Its first tags may be unseen: of a poll that is not answered, or of a consumer that was cancelled (pika puts back
    what it has not handed out)."""

    def earlier(self, back: int) -> KnownChannel:
        """The incarnation so many before."""
        return self.before.earlier(back - 1) if back and self.before else self

    def lose(self) -> None:
        """Lines were lost: of its limits, and of its first tags, nobody knows."""
        self.opened = False
        self.prefetch = self.own = None
        self.limits = [AskedLimit(None, unanswered=False)]

    def back_to(self, ctag: str) -> int:
        """How many incarnations before a consumer was last known; 0 if it was not."""
        back, channel = 1, self.before
        while channel is not None:
            if ctag in channel.consumers:
                return back
            back, channel = back + 1, channel.before
        return 0

    def consumer(self, ctag: str) -> KnownConsumer | None:
        """The consumer of a tag; of several without one nobody knows which is meant."""
        return self.consumers.get(ctag) if ctag or self.unnamed < 2 else None

    def poll(self, event: Event) -> None:
        """A poll begins."""
        if event.t is not None:
            self.polls.setdefault(event.op, []).append(event.t)
            if len(self.polls) > SENT_KEPT:
                forget_oldest(self.polls)

    def polled(self, event: Event) -> int | None:
        """When a poll that is answered, or never will be, began."""
        begun = self.polls.get(event.op)
        if not begun:
            return None
        since = begun.pop(0)
        if not begun:
            del self.polls[event.op]
        return since

    def holds(self, event: Event) -> bool:
        """Whether it holds the message of an event."""
        return any(m == event.m and event.q in (q, "") for m, q, _ in self.open.values())

    def expire(self, event: Event) -> None:
        """Let go of a message that it holds."""
        del self.open[
            next(d for d, (m, q, _) in self.open.items() if m == event.m and event.q in (q, ""))
        ]

    def add_limiter(self, limiter: CreditLimiter, instead: int | None) -> int:
        """The number of a new limiter, that stands for another one which counts for nothing any more."""
        if instead is not None:
            del self.limiters[instead]
        self.n_limiters += 1
        self.limiters[self.n_limiters] = limiter
        return self.n_limiters


def shows_ids(event: Event, channel: KnownChannel) -> bool:
    """Whether an event shows that the delivery tags of its connection are none of AMQP 0-9-1, where zero is reserved
    (domain delivery-tag), channel 0 is the connection's own (4.2.3), a channel's first tag is 1, and no consumer has
    credit of its own. On the wire, and inside, a tag that is left out is the broker's fault.
    """
    if event.ev in ("consume", "qos") and event.credit is not None:
        return True
    if event.ev not in ("consume", "deliver", "get"):
        return False
    if event.ch == 0 or event.dtag == 0:
        return True
    first = channel.opened and not channel.used and not channel.unseen
    return first and event.ev == "deliver" and event.lvl in ("", "api") and (event.dtag or 0) > 1
