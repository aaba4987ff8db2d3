"""The right queue with one mistake each, as edits of its text: what stands there, and what instead.

``seriatim conform --python seriatim_workshop.planted.mistakes:loses-on-close``: the attributes of this module are
factories, `right` and one for each mistake. None of them was chosen for what finds it: they are mistakes that queues
have had, by what part of a queue they concern.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from seriatim_workshop.planted.queue import PlantedQueue

SOURCE = Path(__file__).with_name("queue.py")


class Mistake(NamedTuple):
    """One edit, made where `old` stands exactly once; `kind` is what it concerns."""

    kind: str
    title: str
    old: str
    new: str


WAKE_AFTER_SETTLED = "            self._settled(ch, dtag, multiple)\n            self._wake()"
WAKE_AFTER_NACK = "                if requeue:\n                    self._put_back(held)\n            self._wake()"
LET_GO = "        owners[held.taker] -= 1"
LET_GO_ON_CLOSE = "                self._let_go(held)\n                self._put_back(held)"
FREE = "not message.key or all(owner == taker for owner in owners)"
PUT_BACK_ON_CLOSE = LET_GO_ON_CLOSE + "\n            self._wake()\n\n    def publish"
APPEND = "            insort(self._queue(q), message)"
POP_GET = "            message = queue.pop(at)"
POP_PUSH = "        message = self._queue(consumer.q).pop(at)"
INSORT = "        insort(self._queue(message.q), message)"
REFUSE = "if any(c.exclusive for c in others) or (exclusive and others):"
CHOICE = "max(ready, key=lambda c: c.priority)"
TAGS = "t == dtag or (multiple and (t <= dtag or dtag == 0))"
CREDIT_BACK = "                each.consumer.held -= 1"
LOOK = "                while self._push_one():\n                    pass"
WINDOW = "self.lock.release(); __import__('time').sleep(0.0005); self.lock.acquire()"

MISTAKES: dict[str, Mistake] = {
    # ---- loss
    "loses-on-close": Mistake(
        "loss", "what a closing channel held is gone", PUT_BACK_ON_CLOSE,
        "                self._let_go(held)\n            self._wake()\n\n    def publish"),
    "loses-on-nack": Mistake(
        "loss", "nack with requeue drops the message", WAKE_AFTER_NACK,
        "                if False:\n                    self._put_back(held)\n            self._wake()"),
    "loses-on-recover": Mistake(
        "loss", "recover drops all but the first",
        "            for tag in list(self.channels[ch].held):\n"
        "                for held in self._settled(ch, tag, False):\n"
        "                    self._put_back(held)",
        "            for n, tag in enumerate(list(self.channels[ch].held)):\n"
        "                for held in self._settled(ch, tag, False):\n"
        "                    if n == 0: self._put_back(held)"),
    "loses-at-the-limit": Mistake(
        "loss", "what is pushed to a consumer as its last credit is not kept, so closing loses it",
        "            self._hold(OutstandingMessage(message, consumer, Taker(consumer.ch, consumer.tag)), tag)",
        "            if consumer.held + 1 != consumer.limit or consumer.limit < 2:\n"
        "                self._hold(OutstandingMessage(message, consumer, Taker(consumer.ch, consumer.tag)), tag)"),
    "loses-every-hundredth": Mistake(
        "loss", "one publish in 100 is confirmed and forgotten", APPEND,
        "            if self.published % 100: insort(self._queue(q), message)"),
    "leaks-once-in-10000": Mistake(
        "rare", "one publish in 10,000 is confirmed and forgotten", APPEND,
        "            if __import__('random').random() >= 1e-4: insort(self._queue(q), message)"),
    "loses-second-requeue": Mistake(
        "loss", "a message that is put back a second time is gone", INSORT,
        "        message.times = getattr(message, 'times', 0) + 1\n"
        "        if message.times < 2: insort(self._queue(message.q), message)"),
    # ---- duplication
    "doubles-each-third": Mistake(
        "duplication", "each third message is put in twice", APPEND,
        APPEND + f"\n            if self.published % 3 == 0:\n    {APPEND}"),
    "ack-puts-back": Mistake(
        "duplication", "ack puts the message back", WAKE_AFTER_SETTLED,
        "            for held in self._settled(ch, dtag, multiple): self._put_back(held)\n            self._wake()"),
    "requeues-twice": Mistake(
        "duplication", "a message that is put back is there twice", INSORT,
        "        insort(self._queue(message.q), message)\n        insort(self._queue(message.q), message)"),
    "get-leaves-it": Mistake(
        "duplication", "one get in 40 leaves the message where it is", POP_GET,
        "            self.gets = getattr(self, 'gets', 0) + 1\n"
        "            message = queue[at] if self.gets % 40 == 0 else queue.pop(at)"),
    "drop-requeues": Mistake(
        "duplication", "nack and reject without requeue put back all the same", WAKE_AFTER_NACK,
        "                self._put_back(held)\n            self._wake()"),
    # ---- order
    "newest-first": Mistake(
        "order", "a stack", "next((n for n, each in enumerate(self._queue(q))",
        "next((n for n, each in reversed(list(enumerate(self._queue(q))))"),
    "pushes-newest-first": Mistake(
        "order", "what is pushed is the newest", POP_PUSH,
        "        may = [n for n, each in enumerate(self._queue(consumer.q))\n"
        "               if self._free(each, Taker(consumer.ch, consumer.tag))]\n"
        "        message = self._queue(consumer.q).pop(max(may))"),
    "requeues-to-the-tail": Mistake(
        "order", "a message is put back behind all others", INSORT,
        "        self._queue(message.q).append(message)"),
    "requeues-to-the-head": Mistake(
        "order", "a message is put back before all others", INSORT,
        "        self._queue(message.q).insert(0, message)"),
    "swaps-each-tenth": Mistake(
        "order", "each tenth message overtakes one", APPEND,
        "            message.place -= 2 * (self.published % 10 == 0)\n" + APPEND),
    "passes-the-head": Mistake(
        "order", "of more than three the second is pushed", POP_PUSH,
        "        message = self._queue(consumer.q).pop(at if len(self._queue(consumer.q)) < at + 4 else at + 1)"),
    # ---- the redelivered flag
    "forgets-the-flag": Mistake(
        "flags", "what comes again is not marked", "        message.redelivered = True\n", ""),
    "marks-what-is-new": Mistake(
        "flags", "one new message in five is marked as redelivered",
        "self.published, m, q, key)", "self.published, m, q, key, self.published % 5 == 0)"),
    "flag-toggles": Mistake(
        "flags", "the flag is off again the second time",
        "        message.redelivered = True\n", "        message.redelivered = not message.redelivered\n"),
    # ---- prefetch
    "exceeds-by-one": Mistake(
        "prefetch", "a consumer may hold one more than its limit",
        "consumer.held < consumer.limit", "consumer.held <= consumer.limit"),
    "channel-limit-ignored": Mistake(
        "prefetch", "a limit of the whole channel is not kept",
        "everything < channel.whole", "everything < 100 * channel.whole"),
    "credit-back-twice": Mistake(
        "prefetch", "a settlement gives two credits back", CREDIT_BACK, "                each.consumer.held -= 2"),
    "get-gives-credit": Mistake(
        "prefetch", "settling what was got gives credit to a consumer of the channel",
        "            if each.consumer is not None:\n" + CREDIT_BACK,
        "            if each.consumer is None:\n"
        "                each.consumer = next((c for c in self.consumers if c.ch == ch), None)\n"
        "            if each.consumer is not None:\n" + CREDIT_BACK),
    "limit-of-the-latest": Mistake(
        "prefetch", "a later limit counts for consumers that were there, and zero as none at all",
        "own = not consumer.limit or consumer.held < consumer.limit",
        "own = not consumer.limit or consumer.held < max(consumer.limit, channel.limit)"),
    # ---- settle multiple
    "multiple-settles-one": Mistake(
        "multiple", "multiple settles the one that is named", TAGS, "t == dtag or (multiple and dtag == 0)"),
    "multiple-settles-all": Mistake(
        "multiple", "multiple settles all that the channel holds", TAGS, "t == dtag or multiple"),
    "multiple-of-one-consumer": Mistake(
        "multiple", "multiple settles what was given to the same consumer", TAGS,
        "t == dtag or (multiple and (t <= dtag or dtag == 0)\n"
        "                and (not dtag or held[t].consumer is held[dtag].consumer))"),
    "multiple-leaves-the-last": Mistake(
        "multiple", "multiple leaves the one that is named, if it is not alone", TAGS,
        "(t == dtag and not (multiple and len(held) > 1)) or (multiple and (t < dtag or dtag == 0))"),
    "tag-zero-leaves-one": Mistake(
        "multiple", "tag 0 with multiple leaves the oldest, if there are more", TAGS,
        "t == dtag or (multiple and (t <= dtag or (dtag == 0 and (t > min(held) or len(held) == 1))))"),
    # ---- close and cancel
    "pushes-after-cancel": Mistake(
        "close", "a cancelled consumer gets one more message",
        "            self.consumers = [c for c in self.consumers if (c.ch, c.tag) != (ch, ctag)]\n",
        "            for c in self.consumers:\n"
        "                if (c.ch, c.tag) == (ch, ctag): c.limit = c.held + 1\n"),
    "cancel-puts-back": Mistake(
        "close", "cancel puts back what the consumer holds, and the channel holds it still",
        "            self.consumers = [c for c in self.consumers if (c.ch, c.tag) != (ch, ctag)]\n",
        "            self.consumers = [c for c in self.consumers if (c.ch, c.tag) != (ch, ctag)]\n"
        "            for h in self.channels[ch].held.values():\n"
        "                if h.consumer is not None and h.consumer.tag == ctag: self._put_back(h)\n"),
    "close-takes-too-many": Mistake(
        "close", "closing a channel ends the consumers of the next one too",
        "[c for c in self.consumers if c.ch != ch]", "[c for c in self.consumers if c.ch not in (ch, ch + 1)]"),
    # ---- tags
    "skips-tags": Mistake("tags", "a tag is left out", "channel.tag += 1", "channel.tag += 1 + (channel.tag % 7 == 6)"),
    # ---- exclusivity
    "exclusive-is-not": Mistake("exclusivity", "nobody is ever refused", REFUSE, "if False:"),
    "exclusive-beside-others": Mistake(
        "exclusivity", "an exclusive consumer may join others", REFUSE, "if any(c.exclusive for c in others):"),
    "exclusive-of-its-channel": Mistake(
        "exclusivity", "only consumers of the same channel are looked at", REFUSE,
        "if any(c.exclusive for c in others if c.ch == ch) or (exclusive and others):"),
    "exclusive-until-it-holds": Mistake(
        "exclusivity", "an exclusive consumer that holds nothing is not seen", REFUSE,
        "if any(c.exclusive and c.held for c in others) or (exclusive and others):"),
    # ---- priorities
    "priorities-inverted": Mistake(
        "priorities", "the lowest is served first", CHOICE, "min(ready, key=lambda c: c.priority)"),
    "priorities-ignored": Mistake("priorities", "all are served in turn", CHOICE, "ready[0]"),
    "priorities-by-half": Mistake(
        "priorities", "each fourth message goes to whose turn it is", CHOICE,
        "ready[0] if self.pushed % 4 == 3 else max(ready, key=lambda c: c.priority)"),
    "priority-one-is-none": Mistake(
        "priorities", "priority 1 counts as 0", CHOICE, "max(ready, key=lambda c: c.priority // 2)"),
    # ---- priorities of messages
    "message-priority-ignored": Mistake(
        "message priorities", "all have one priority", "StoredMessage(-(prio or 0),", "StoredMessage(0,"),
    "message-priority-inverted": Mistake(
        "message priorities", "the lowest comes first", "StoredMessage(-(prio or 0),", "StoredMessage((prio or 0),"),
    "message-priority-inverted-at-times": Mistake(
        "message priorities", "the priority of each seventh message counts the other way",
        "StoredMessage(-(prio or 0),", "StoredMessage((prio or 0) * (1 if self.published % 7 == 0 else -1),"),
    "message-priority-two-is-one": Mistake(
        "message priorities", "priority 2 counts as 1", "-(prio or 0)", "-min(prio or 0, 1)"),
    "message-priority-lost-on-requeue": Mistake(
        "message priorities", "what is put back has no priority any more", INSORT,
        "        message.rank = 0\n" + INSORT),
    "message-priority-for-gets-only": Mistake(
        "message priorities", "what is pushed is the oldest", POP_PUSH,
        "        queue, who = self._queue(consumer.q), Taker(consumer.ch, consumer.tag)\n"
        "        at = min((n for n, each in enumerate(queue) if self._free(each, who)), key=lambda n: queue[n].place)\n"
        + POP_PUSH),
    # ---- groups
    "groups-ignored": Mistake("groups", "whoever asks is given the next of any group", FREE, "True"),
    "group-free-after-one": Mistake(
        "groups", "a group is free when one message of several is settled", LET_GO,
        "        owners[held.taker] = 0"),
    "group-of-the-channel": Mistake(
        "groups", "consumers of one channel share a group", FREE,
        "not message.key or all(owner.ch == taker.ch for owner in owners)"),
    "group-split-on-close": Mistake(
        "groups", "what a closing channel held comes back without its group", LET_GO_ON_CLOSE,
        LET_GO_ON_CLOSE + "\n                held.message.key = ''"),
    "group-gets-forgotten": Mistake(
        "groups", "a get does not keep the group to itself", FREE,
        "not message.key or all(owner == taker or not owner.tag for owner in owners)"),
    "group-kept-after-close": Mistake(
        "groups", "a closed channel keeps its groups, so that nobody gets them", LET_GO_ON_CLOSE,
        "                self._put_back(held)"),
    "group-kept-after-ack": Mistake(
        "groups", "a settled message still keeps its group with whoever had it",
        "            self._let_go(each)\n", ""),
    "group-blocks-the-queue": Mistake(
        "groups", "a group that somebody holds keeps back what is behind it", "        return next((n for n,",
        "        if self._queue(q) and not self._free(self._queue(q)[0], taker): return None\n"
        "        return next((n for n,"),
    "group-newest-first": Mistake(
        "groups", "of a group the newest is given first", APPEND,
        "            if key: message.place = -message.place\n" + APPEND),
    # ---- wake-ups
    "never-pushes": Mistake("wake-ups", "nobody is ever pushed anything", LOOK, "                pass"),
    "no-push-after-ack": Mistake(
        "wake-ups", "an ack gives credit and wakes nobody", WAKE_AFTER_SETTLED,
        "            self._settled(ch, dtag, multiple)"),
    "no-push-after-nack": Mistake(
        "wake-ups", "what nack puts back is announced to nobody", WAKE_AFTER_NACK,
        "                if requeue:\n                    self._put_back(held)"),
    "no-push-after-close": Mistake(
        "wake-ups", "what a closed channel held is announced to nobody", PUT_BACK_ON_CLOSE,
        "                self._let_go(held)\n                self._put_back(held)\n\n    def publish"),
    "no-push-on-consume": Mistake(
        "wake-ups", "a new consumer is not given what is there",
        "            self.consumers.append(consumer)\n            self._wake()",
        "            self.consumers.append(consumer)"),
    "pushes-one-only": Mistake(
        "wake-ups", "a wake-up pushes one message, however many there are", LOOK, "                self._push_one()"),
    "wake-up-lost-once-in-1000": Mistake(
        "rare", "one wake-up in 1,000 is lost", "        self.woken = True\n",
        "        self.woken = self.woken or __import__('random').random() >= 1e-3\n"),
    "third-is-starved": Mistake(
        "wake-ups", "of three consumers the last to come is given nothing",
        "for c in self.consumers if self._has_credit(c)",
        "for n, c in enumerate(sorted(self.consumers, key=lambda c: c.tag)) if n < 2 and self._has_credit(c)"),
    "one-of-each-priority": Mistake(
        "wake-ups", "of consumers of one priority only the first is given anything",
        "for c in self.consumers if self._has_credit(c)",
        "for c in self.consumers if self._has_credit(c)\n"
        "            and not any((d.q, d.priority) == (c.q, c.priority) and d.tag < c.tag for d in self.consumers)"),
    "high-blocks-low": Mistake(
        "wake-ups", "consumers of the highest priority keep everything from the others, also while they are full",
        "        if not ready:\n", "        top = max((c.priority for c in self.consumers), default=0)\n"
        "        if not any(c.priority == top for c in ready):\n"),
    "multiple-frees-one": Mistake(
        "wake-ups", "a command for several gives back one credit", CREDIT_BACK,
        CREDIT_BACK + " if not multiple or each is taken[0] else 0"),
    "group-freed-in-silence": Mistake(
        "wake-ups", "an ack wakes nobody if its own channel does not consume", WAKE_AFTER_SETTLED,
        "            self._settled(ch, dtag, multiple)\n"
        "            if any(c.ch == ch for c in self.consumers): self._wake()"),
    "get-finds-nothing": Mistake(
        "wake-ups", "one get in 25 finds nothing in a full queue", "            if at is None:\n",
        "            self.gets = getattr(self, 'gets', 0) + 1\n            if at is None or self.gets % 25 == 0:\n"),
    "stuck-after-200": Mistake(
        "rare", "a push after the 200th is never made", "        if not ready:\n",
        "        if not ready or self.pushed >= 200:\n"),
    # ---- races
    "race-push-and-get": Mistake(
        "races", "between choosing a message and taking it the lock is let go: a get may have the same", POP_PUSH,
        f"        message = self._queue(consumer.q)[at]; {WINDOW}\n"
        "        if message in self._queue(consumer.q): self._queue(consumer.q).remove(message)"),
    "race-push-and-close": Mistake(
        "races", "between choosing a consumer and pushing to it the lock is let go: its channel may be closed",
        POP_PUSH,
        f"        message = self._queue(consumer.q).pop(at); {WINDOW}\n"
        "        self.channels.setdefault(consumer.ch, QueueChannel())"),
    "race-on-the-flag": Mistake(
        "races", "the pushing thread clears its flag after it has looked, so a wake-up in between is lost", LOOK,
        f"                while self._push_one(): pass\n                {WINDOW}; self.woken = False"),
    "race-on-credit": Mistake(
        "races", "what a consumer holds is counted without the lock", "            consumer.held += 1\n",
        f"            had = consumer.held; {WINDOW}; consumer.held = had + 1\n"),
}  # fmt: skip


@cache
def edited(source: Path, name: str, mistake: Mistake) -> ModuleType:
    """The module of a source with one mistake. Raises `LookupError` if its edit does not stand exactly once."""
    text = source.read_text(encoding="utf-8")
    if text.count(mistake.old) != 1:
        raise LookupError(f"{name}: {mistake.old!r} stands {text.count(mistake.old)} times")
    module = ModuleType(f"{__name__}.{source.stem}.{name}")
    sys.modules[module.__name__] = module
    exec(
        compile(text.replace(mistake.old, mistake.new), f"{source.name} with {name}", "exec"),
        vars(module),
    )
    return module


right = PlantedQueue


def __getattr__(name: str) -> Callable[[], PlantedQueue]:
    """The factory of the queue with the mistake of that name."""
    if name not in MISTAKES:
        raise AttributeError(name)

    def planted() -> PlantedQueue:
        made: PlantedQueue = edited(SOURCE, name, MISTAKES[name]).PlantedQueue()
        return made

    return planted
