"""The self-test of an implementation: whether the protocol is spoken right, before any property of queues is checked.

Each check is one sentence, a few requests, and what came back if that is not so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from seriatim_models.conformance.protocol import Answer, Fault, Push, Request
from seriatim_models.conformance.script import SETTLING, TIME
from seriatim_models.conformance.system import System
from seriatim_models.conformance.timed import SHORT_LEASE

LONG = 3  # times a delay, after which it is over for good
ROUNDS, MEASURED = 100, 2.0  # requests that the speed is measured with, and the most seconds
NO_TIME = "there was no time for it"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check: `why` is empty if it holds; `skipped` if the system cannot do what the check needs."""

    sentence: str
    why: str = ""
    skipped: bool = False


class _Wrong(Exception):
    pass


def _want(right: bool, what: str, saw: object) -> None:
    if not right:
        raise _Wrong(f"{what}; it was {saw!r}" if saw is not None else what)


class _Talk:
    """A short conversation; it begins with a fresh start of the system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.asked: list[str] = []

    @property
    def auto(self) -> bool:
        """The `autoack` of whatever is taken: true where the system has no call that settles it later."""
        return not SETTLING & self.system.can

    @property
    def may_wait(self) -> bool:
        """Whether what was asked last is a publish that may wait, since something is in the queue."""
        inside = self.asked.count("publish") - 1 - self.asked.count("get")
        return "waits" in self.system.can and self.asked[-1:] == ["publish"] and inside > 0

    def ask(self, op: str, **fields: object) -> Answer:
        self.asked.append(op)
        # Any field of Request; msgspec does not check on construction
        return self.system.do(Request(op=op, **fields))  # type: ignore[arg-type]

    def done(self, op: str, **fields: object) -> Answer:
        answer = self.ask(op, **fields)
        _want(answer.ok, f"{op} must be done", answer.why or "refused")
        return answer

    def opened(self, *channels: int) -> None:
        for ch in channels or (1,):
            if "open" in self.system.can:
                self.done("open", ch=ch)

    def published(self, *messages: str) -> None:
        for m in messages:
            self.done("publish", q="q", m=m)

    def got(self, ch: int = 1, **fields: object) -> Answer:
        return self.done("get", ch=ch, q="q", **fields)

    def next_is(self, m: str, why: str, ch: int = 1, **fields: object) -> None:
        got = self.got(ch, **fields)
        _want(got.m == m, why, got.m)

    def deliveries(self) -> list[Push]:
        self.system.sync()
        return [p for p in self.system.pushed() if p.ev == "deliver"]


_Conversation = Callable[[_Talk], None]
_CHECKS: list[tuple[str, frozenset[str], dict[str, str], _Conversation]] = []
"""What each says, the operations that it needs, and the values of meanings that it is for."""


def _check(sentence: str, *needs: str, **meanings: str) -> Callable[[_Conversation], None]:
    """Register a conversation; of a meaning it may name several values, with blanks between."""
    return lambda talk: _CHECKS.append((sentence, frozenset(needs), meanings, talk))


@_check("get gives what was published", "get")
def _publish_get(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    talk.next_is("m0", "m0 was published, so get must give m0", autoack=talk.auto)


@_check("get of an empty queue is answered at once, without m", "get")
def _empty(talk: _Talk) -> None:
    talk.opened()
    talk.next_is("", "nothing was published, so get must be answered without m")


@_check("reset leaves nothing of what was", "get")
def _reset(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    talk.system.reset()
    talk.opened()
    talk.next_is("", "after reset there must be no message")


@_check("each delivery has a tag of its own", "get", "ack")
def _tags(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0", "m1")
    tags = [talk.got().dtag, talk.got().dtag]
    _want(None not in tags, "what is got must have a dtag", tags)
    _want(len(set(tags)) == 2, "two deliveries must have two tags", tags)


@_check("ack ends a message", "get", "ack")
def _ack(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    talk.done("ack", ch=1, dtag=talk.got().dtag)
    talk.system.sync()
    talk.next_is("", "m0 was acknowledged, so it must be gone")


@_check("nack has taken effect when sync is answered", "get", "nack")
def _nack(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    talk.done("nack", ch=1, dtag=talk.got().dtag, requeue=True)
    talk.system.sync()
    talk.next_is("m0", "m0 was requeued, so after sync it must be there")


@_check("deliveries are written before sync is answered", "consume")
def _consume(talk: _Talk) -> None:
    talk.opened()
    talk.done("consume", ch=1, q="q", ctag="c1", autoack=talk.auto)
    talk.published("m0")
    pushed = talk.deliveries()
    _want([p.m for p in pushed] == ["m0"], "m0 must be delivered before sync is answered", pushed)
    _want(
        pushed[0].ctag == "c1" and pushed[0].ch == 1, "a deliver must name ch and ctag", pushed[0]
    )


@_check("close requeues what the channel held", "get", "close", "ack")
def _close(talk: _Talk) -> None:
    talk.opened(1, 2)
    talk.published("m0")
    talk.got()
    talk.done("close", ch=1)
    talk.system.sync()
    talk.next_is("m0", "its channel was closed, so m0 must be there again", ch=2)


@_check("ack with multiple ends all up to a tag", "get", "ack", "multiple", "close")
def _multiple(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0", "m1", "m2")
    tags = [talk.got().dtag for _ in range(3)]
    talk.done("ack", ch=1, dtag=tags[1], multiple=True)
    talk.done("close", ch=1)
    talk.system.sync()
    talk.opened(2)
    talk.next_is("m2", "m0 and m1 were acknowledged together, so m2 must be there alone", ch=2)


@_check("nack without requeue ends a message", "get", "nack", "drop")
def _drop(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    talk.done("nack", ch=1, dtag=talk.got().dtag, requeue=False)
    talk.system.sync()
    talk.next_is("", "m0 was dropped by nack without requeue, so it must be gone")


@_check("what is dropped comes to the queue of the dead", "get", "nack", "dead-letter")
def _dead_letter(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    talk.done("nack", ch=1, dtag=talk.got().dtag, requeue=False)
    talk.system.sync()
    talk.next_is("", "m0 was dropped by nack without requeue, so it must be gone from q")
    got = talk.done("get", ch=1, q="q.dead")
    _want(got.m == "m0", "m0 was dropped, so get from q.dead must give m0", got.m)


@_check("what is published in a transaction is there when it is committed", "get", "tx-begin")
def _commit(talk: _Talk) -> None:
    talk.opened(1, 2)
    talk.done("tx-begin", ch=1)
    for m in ("m0", "m1"):
        talk.done("publish", ch=1, q="q", m=m)
    talk.next_is("", "the transaction is not committed, so nothing must be there", ch=2)
    talk.done("tx-commit", ch=1)
    for m in ("m0", "m1"):
        talk.next_is(m, f"the transaction is committed, so {m} must be there", ch=2)


@_check("a rollback leaves all as it was", "get", "ack", "close", "tx-begin")
def _rollback(talk: _Talk) -> None:
    talk.opened(1, 2)
    talk.published("m0")
    dtag = talk.got().dtag
    talk.done("tx-begin", ch=1)
    talk.done("publish", ch=1, q="q", m="m1")
    talk.done("ack", ch=1, dtag=dtag)
    talk.done("tx-rollback", ch=1)
    talk.next_is("", "m1 was published and rolled back, so nothing must be there", ch=2)
    talk.done("close", ch=1)
    talk.system.sync()
    talk.next_is("m0", "the acknowledgement of m0 was rolled back and its channel closed", ch=2)


@_check("several are got at once, in their order", "get", "batch")
def _several(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0", "m1", "m2")
    got = [each.m for each in talk.got(n=2, autoack=talk.auto).batch]
    _want(
        got in (["m0"], ["m0", "m1"]), "two of three must be got at once, or the first alone", got
    )


@_check("count says what is ready and held", "get", "ack", "count")
def _count(talk: _Talk) -> None:
    talk.opened()
    for m in ("m0", "m1"):
        talk.done("publish", ch=1, q="q", m=m)
    talk.got()
    found = talk.done("count", ch=1, q="q")
    seen = (found.ready, found.held)
    _want(seen == (1, 1), "of two messages one is held, so count must say 1 ready and 1 held", seen)


@_check("declare is answered with the queue that was asked for", "declare")
def _declare(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    found = talk.done("declare", ch=1, q="q")
    _want(found.q in ("", "q"), "the reply to declare of q must name q, or nothing", found.q)


@_check("a consumer holds no more than its prefetch", "consume", "qos", "ack")
def _limit(talk: _Talk) -> None:
    talk.opened()
    talk.done("qos", ch=1, prefetch=1, scope="consumer")
    talk.done("consume", ch=1, q="q", ctag="c1")
    talk.published("m0", "m1")
    pushed = talk.deliveries()
    _want(len(pushed) == 1, "with a prefetch of 1 one message must be delivered", pushed)
    talk.done("ack", ch=1, dtag=pushed[0].dtag)
    pushed = talk.deliveries()
    _want([p.m for p in pushed] == ["m1"], "m0 was acknowledged, so m1 must be delivered", pushed)


@_check("a message with a delay comes when that is over", "get", "delay")
def _delayed(talk: _Talk) -> None:
    talk.opened()
    talk.done("publish", q="q", m="m0", delay=TIME)
    talk.next_is(
        "", f"m0 has a delay of {TIME} ms, so it must not be there at once", autoack=talk.auto
    )
    time.sleep(LONG * TIME / 1000)
    talk.next_is("m0", "the delay of m0 is long over, so it must be there", autoack=talk.auto)


@_check("a message whose time to live is over is gone", "get", "ttl")
def _mortal(talk: _Talk) -> None:
    talk.opened()
    talk.done("publish", q="q", m="m0", ttl=TIME)
    talk.next_is("m0", "m0 has time to live, so it must be there", autoack=talk.auto)
    talk.done("publish", q="q", m="m1", ttl=TIME)
    time.sleep(LONG * TIME / 1000)
    talk.next_is("", "the time to live of m1 is long over, so it must be gone", autoack=talk.auto)


@_check("what is held comes to another when its lease is over, and not before", "get", "lease")
def _lease(talk: _Talk) -> None:
    lease = talk.system.means.lease
    talk.opened(1, 2)
    talk.published("m0")
    begun = time.monotonic()
    talk.next_is("m0", "nobody has a lease on m0, so it must be there")
    time.sleep(lease / 2)
    early = talk.got(2).m
    if early and time.monotonic() - begun > lease:
        return  # it was asked for too late to tell
    _want(not early, f"another has m0 under a lease of {lease:g} s", early)
    time.sleep(lease)
    talk.next_is("m0", "the lease on m0 is long over, so it must be there", ch=2)


@_check("an exclusive consumer is alone", "consume", "exclusive")
def _exclusive(talk: _Talk) -> None:
    talk.opened(1, 2)
    talk.done("consume", ch=1, q="q", ctag="c1", exclusive=True, autoack=talk.auto)
    refused = talk.ask("consume", ch=2, q="q", ctag="c2", autoack=talk.auto)
    _want(not refused.ok, "c1 is exclusive, so a second consumer must be refused", refused.ok)


@_check("of two consumers the one of higher priority is served", "consume", "priority")
def _consumer_priority(talk: _Talk) -> None:
    talk.opened(1, 2)
    for ch, cprio in ((1, 0), (2, 1)):
        talk.done("consume", ch=ch, q="q", ctag=f"c{ch}", cprio=cprio, autoack=talk.auto)
    talk.published("m0")
    pushed = talk.deliveries()
    _want([p.ctag for p in pushed] == ["c2"], "c2 has the higher priority, so m0 is its", pushed)


@_check("of two messages the one of higher priority is next", "get", "message-priority")
def _message_priority(talk: _Talk) -> None:
    talk.opened()
    for m, prio in (("m0", 0), ("m1", 1)):
        talk.done("publish", q="q", m=m, prio=prio)
    talk.next_is(
        "m1",
        "m1 has the higher priority, so get must give m1",
        autoack=talk.auto,
    )


@_check("a group is with one consumer while that holds of it", "get", "ack", "held-groups")
def _held_groups(talk: _Talk) -> None:
    talk.opened(1, 2)
    for m, key in (("m0", "k0"), ("m1", "k0"), ("m2", "k1")):
        talk.done("publish", q="q", m=m, key=key)
    talk.got()
    talk.next_is("m2", "channel 1 holds m0 of the group of m1, so channel 2 must get m2", ch=2)


@_check("reject has taken effect when sync is answered", "get", "reject")
def _reject(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    talk.done("reject", ch=1, dtag=talk.got().dtag, requeue=True)
    talk.system.sync()
    talk.next_is("m0", "m0 was requeued, so after sync it must be there")


@_check("recover requeues what the channel holds", "get", "recover")
def _recovered(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    talk.got()
    talk.done("recover", ch=1, requeue=True)
    talk.system.sync()
    talk.next_is("m0", "its channel recovered, so m0 must be there again")


@_check("what was handed out before is marked, and nothing else", "get", "nack", "redelivered")
def _marked(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    got = talk.got()
    _want(not got.redelivered, "m0 was never handed out, so it must not be marked", got.redelivered)
    talk.done("nack", ch=1, dtag=got.dtag, requeue=True)
    talk.system.sync()
    again = talk.got()
    _want(again.m == "m0", "m0 was requeued, so after sync it must be there", again.m)
    _want(
        bool(again.redelivered), "m0 was handed out before, so it must be marked", again.redelivered
    )


@_check("what is got with autoack is gone", "get", "autoack", "close")
def _settled_at_once(talk: _Talk) -> None:
    talk.opened(1, 2)
    talk.published("m0")
    talk.next_is("m0", "m0 was published, so get must give m0", autoack=True)
    talk.done("close", ch=1)
    talk.system.sync()
    talk.next_is("", "m0 was got with autoack, so a close must not requeue it", ch=2)


@_check("what is published to a queue is in no other", "get", "queues")
def _queues(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    got = talk.done("get", ch=1, q="r", autoack=talk.auto)
    _want(not got.m, "m0 was published to q, so get from r must be answered without m", got.m)
    talk.next_is("m0", "m0 was published to q, so get from q must give m0", autoack=talk.auto)


@_check("those of one group keep their order", "get", "ack", "groups")
def _group(talk: _Talk) -> None:
    talk.opened()
    for m in ("m0", "m1"):
        talk.done("publish", q="q", m=m, key="k0")
    for m in ("m0", "m1"):
        got = talk.got()
        _want(got.m == m, f"m0 was published before m1 of its group, so {m} must be next", got.m)
        talk.done("ack", ch=1, dtag=got.dtag)
        talk.system.sync()


@_check("a cancelled consumer is given nothing more", "consume", "cancel")
def _cancel(talk: _Talk) -> None:
    talk.opened()
    talk.done("consume", ch=1, q="q", ctag="c1", autoack=talk.auto)
    talk.done("cancel", ch=1, ctag="c1")
    talk.published("m0")
    pushed = talk.deliveries()
    _want(not pushed, "c1 was cancelled, so nothing must be delivered", pushed)


@_check("a channel holds no more than its own prefetch", "consume", "qos", "ack", "channel-qos")
def _limit_of_the_channel(talk: _Talk) -> None:
    _two_share(talk)


@_check("a prefetch is always the channel's", "consume", "qos", "ack", "whole-qos")
def _limit_of_the_whole(talk: _Talk) -> None:
    _two_share(talk)


def _two_share(talk: _Talk) -> None:
    talk.opened()
    talk.done("qos", ch=1, prefetch=1, scope="channel")
    for ctag in ("c1", "c2"):
        talk.done("consume", ch=1, q="q", ctag=ctag)
    talk.published("m0", "m1")
    pushed = talk.deliveries()
    _want(len(pushed) == 1, "two consumers of a channel with a prefetch of 1 share it", pushed)


@_check("read gives what was published, and then nothing", "read")
def _read(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0", "m1")
    for m in ("m0", "m1", ""):
        got = talk.done("read", ch=1, q="q", ctag="g").m
        _want(got == m, f"m0 and m1 were published, so the next must be {m or 'nothing'}", got)


@_check("a reader goes on where it seeks", "read", "seek")
def _seek(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0", "m1")
    read = {"q": "q", "ctag": "g"}
    pos = [talk.done("read", ch=1, **read).pos for _ in range(2)]
    _want(None not in pos, "what is read must have a pos", pos)
    talk.done("seek", ch=1, pos=pos[0], **read)
    got = talk.done("read", ch=1, **read).m
    _want(got == "m0", "the reader was set to the position of m0, so m0 must be next", got)


@_check("a commit is remembered", "read", "commit")
def _remembered(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0", "m1")
    read = {"q": "q", "ctag": "g"}
    pos = [talk.done("read", ch=1, **read).pos for _ in range(2)]
    talk.done("commit", ch=1, pos=pos[1], **read)
    talk.opened(2)
    got = talk.done("read", ch=2, **read).m
    _want(got != "m0", "the position of m1 was committed, so m0 must not come again", got)


@_check("a partition has only what was published to it", "read", "partitions")
def _partitions(talk: _Talk) -> None:
    talk.opened()
    for part in (0, 1):
        talk.done("publish", q="q", m=f"m{part}", part=part)
    got = talk.done("read", ch=1, q="q", ctag="g", part=1).m
    _want(got == "m1", "m1 was published to partition 1, so read of that must give m1", got)


@_check("an unknown operation is refused, not ignored")
def _unknown(talk: _Talk) -> None:
    answer = talk.ask("levitate")
    _want(
        not answer.ok,
        "an operation that it does not know must be answered with ok false",
        answer.ok,
    )


@_check("what is requeued goes where it declares", "get", "nack", requeue="place head tail")
def _requeue_end(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0", "m1", "m2")
    for dtag in [talk.got().dtag for _ in range(2)]:
        talk.done("nack", ch=1, dtag=dtag, requeue=True)
        talk.system.sync()
    means = talk.system.means.requeue
    first = {"place": "m0", "head": "m1", "tail": "m2"}[means]
    talk.next_is(
        first,
        f"m0 and m1 were requeued, one after the other, to the {means}, so {first} must be next",
    )


@_check("what is settled for good is gone", "get", "ack", "close", guarantee="exactly-once")
def _settled_is_gone(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0")
    talk.done("ack", ch=1, dtag=talk.got().dtag)
    talk.done("close", ch=1)
    talk.system.sync()
    talk.opened(2)
    talk.next_is("", "m0 was acknowledged and is to come exactly once", ch=2)


@_check("a group goes on behind what it committed", "read", "commit", committed="next last")
def _committed(talk: _Talk) -> None:
    talk.opened()
    talk.published("m0", "m1")
    read = {"q": "q", "ctag": "g"}
    pos = [talk.done("read", ch=1, **read).pos for _ in range(2)]
    _want(None not in pos, "what is read must have a pos", pos)
    means = talk.system.means.committed
    talk.done("commit", ch=1, pos=pos[1 if means == "next" else 0], **read)
    talk.opened(2)
    got = talk.done("read", ch=2, **read)
    why = f"m0 is done with: its group committed so, by the position that was the {means}"
    _want(got.m == "m1", why, got.m)


@_check(
    "a cancel does with what its consumer holds what is declared",
    "get",
    "consume",
    "cancel",
    cancel="keeps returns",
)
def _cancelled(talk: _Talk) -> None:
    talk.opened()
    talk.done("consume", ch=1, q="q", ctag="c")
    talk.published("m0")
    given = talk.deliveries()
    _want([p.m for p in given] == ["m0"], "the consumer must be given m0", [p.m for p in given])
    talk.done("cancel", ch=1, ctag="c")
    talk.system.sync()
    got, returns = talk.got(), talk.system.means.cancel == "returns"
    why = f"the cancelled consumer held m0, and cancel {talk.system.means.cancel} that"
    _want(got.m == ("m0" if returns else ""), why, got.m)


CHECKED = frozenset[str]().union(*(needs for _, needs, _, _ in _CHECKS))
"""The words of `can` that some check needs."""


def self_test(system: System, until: float = float("inf")) -> Iterator[Check]:
    """Each check in turn. A fault ends one; the next starts anew. None begins after the `time.monotonic` `until`."""
    # Where there are leases a channel that is closed gives nothing back, which most of what closes one relies on.
    can = system.can - {"close"} if "lease" in system.can else system.can
    for sentence, needs, meanings, check in _CHECKS:
        if any(getattr(system.means, name) not in v.split() for name, v in meanings.items()):
            continue
        if "lease" in needs and not 0 < system.means.lease <= SHORT_LEASE:
            said = f"means no lease of {SHORT_LEASE:g} s or less, which could be waited for"
            yield Check(sentence=sentence, why=said, skipped=True)
            continue
        if needs - can:
            why = f"cannot {', '.join(sorted(needs - system.can))}"
            yield Check(
                sentence=sentence,
                why=why
                if needs - system.can
                else "a close gives nothing back, but the end of a lease",
                skipped=True,
            )
            continue
        if time.monotonic() > until:
            yield Check(sentence=sentence, why=NO_TIME, skipped=True)
            continue
        talk = _Talk(system)
        try:
            system.reset()
            check(talk)
        except (_Wrong, Fault) as wrong:
            full = isinstance(wrong, Fault) and wrong.kind == "silent" and talk.may_wait
            yield Check(sentence=sentence, why=str(wrong), skipped=full)
        else:
            yield Check(sentence=sentence)


def speed(system: System) -> float:
    """Requests answered a second. May raise `Fault`."""
    system.reset()
    talk = _Talk(system)
    talk.opened()
    begun = time.monotonic()
    for n in range(1, ROUNDS + 1):
        talk.ask("publish", q="q", m=f"m{n}")
        if "waits" in system.can and "get" in system.can:
            talk.ask("get", ch=1, q="q", autoack=talk.auto)
        if time.monotonic() - begun > MEASURED:
            break
    return n / (time.monotonic() - begun)
