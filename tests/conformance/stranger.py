"""Queues by somebody who had read `spec/conform/README.md` and nothing else: right ones, and what is wrong with others.

They share no code with the queue of `seriatim_workshop.planted`: heaps and deques, calls back at once or from a thread.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from seriatim_models.conformance.local import Refused

Got = tuple[str, int, bool | None]
Deliver = Callable[[str, int, bool | None], None]
Entry = tuple[int, str, bool]  # place, message, whether somebody had it before


class PutGet:
    """First in, first out; what is got is gone."""

    def __init__(self) -> None:
        self.line: deque[str] = deque()

    def put(self, m: str) -> None:
        self.line.append(m)

    def get(self) -> str | None:
        return self.line.popleft() if self.line else None


class Acknowledging:
    """Messages have places in a heap, to which they come back."""

    def __init__(self) -> None:
        self.places = itertools.count()
        self.heap: list[Entry] = []
        self.held: dict[int, dict[int, Entry]] = {}
        self.tags: Counter[int] = Counter()

    def open(self, ch: int) -> None:
        self.held[ch] = {}
        self.tags[ch] = 0

    def close(self, ch: int) -> None:
        self.back(self.held.pop(ch).values())

    def publish(self, m: str) -> None:
        heapq.heappush(self.heap, (next(self.places), m, False))

    def get(self, ch: int, autoack: bool = False) -> Got | None:
        if not self.heap:
            return None
        entry = heapq.heappop(self.heap)
        self.tags[ch] += 1
        if not autoack:
            self.held[ch][self.tags[ch]] = entry
        return entry[1], self.tags[ch], entry[2]

    def ack(self, ch: int, dtag: int, multiple: bool = False) -> None:
        self.settled(ch, dtag, multiple)

    def nack(self, ch: int, dtag: int, multiple: bool = False, requeue: bool = True) -> None:
        gone = self.settled(ch, dtag, multiple)
        if requeue:
            self.back(gone)

    def settled(self, ch: int, dtag: int, multiple: bool) -> list[Entry]:
        held = self.held[ch]
        tags = [t for t in held if t == dtag or (multiple and (t < dtag or dtag == 0))]
        if not tags and dtag:
            raise Refused("unknown", 406)
        return [held.pop(t) for t in tags]

    def back(self, entries: Iterable[Entry]) -> None:
        for place, m, _ in entries:
            heapq.heappush(self.heap, (place, m, True))


@dataclass
class Listener:
    ch: int
    tag: str
    deliver: Deliver
    autoack: bool
    exclusive: bool
    priority: int
    limit: int
    has: set[int] = field(default_factory=set)
    turn: int = 0


class Pushing(Acknowledging):
    """Calls consumers back at once; the higher priority first, equals by turns."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners: list[Listener] = []
        self.limits: Counter[int] = Counter()
        self.turn = 0

    def open(self, ch: int) -> None:
        super().open(ch)
        self.limits[ch] = 0

    def qos(self, ch: int, prefetch: int) -> None:
        self.limits[ch] = prefetch

    def consume(
        self,
        ch: int,
        ctag: str,
        deliver: Deliver,
        autoack: bool = False,
        exclusive: bool = False,
        cprio: int | None = None,
    ) -> None:
        if self.listeners and (exclusive or any(each.exclusive for each in self.listeners)):
            raise Refused("in use", 403)
        more = Listener(ch, ctag, deliver, autoack, exclusive, cprio or 0, self.limits[ch])
        self.listeners.append(more)
        self.pump()

    def cancel(self, ch: int, ctag: str) -> None:
        self.listeners = [each for each in self.listeners if each.tag != ctag]

    def close(self, ch: int) -> None:
        self.listeners = [each for each in self.listeners if each.ch != ch]
        super().close(ch)
        self.pump()

    def publish(self, m: str) -> None:
        super().publish(m)
        self.pump()

    def ack(self, ch: int, dtag: int, multiple: bool = False) -> None:
        super().ack(ch, dtag, multiple)
        self.pump()

    def nack(self, ch: int, dtag: int, multiple: bool = False, requeue: bool = True) -> None:
        super().nack(ch, dtag, multiple, requeue)
        self.pump()

    def ready(self, each: Listener) -> bool:
        return (
            each.autoack or not each.limit or len(each.has & set(self.held[each.ch])) < each.limit
        )

    def pump(self) -> None:
        while self.heap and (ready := [each for each in self.listeners if self.ready(each)]):
            self.serve(min(ready, key=lambda each: (-each.priority, each.turn)))

    def serve(self, each: Listener) -> None:
        self.turn += 1
        each.turn = self.turn
        given = Acknowledging.get(self, each.ch, each.autoack)
        assert given is not None
        if not each.autoack:
            each.has.add(given[1])
        each.deliver(*given)


class Threaded(Pushing):
    """Calls back from a thread of its own, with no lock in hand."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Condition(threading.RLock())
        self.calls: deque[Callable[[], None]] = deque()
        self.busy = self.over = False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            with self.lock:
                self.busy = False
                self.lock.notify_all()
                self.lock.wait_for(lambda: self.calls or self.over)
                if self.over:
                    return
                call = self.calls.popleft()
                self.busy = True
            call()

    def serve(self, each: Listener) -> None:
        deliver = each.deliver

        def later(m: str, dtag: int, redelivered: bool | None) -> None:
            self.calls.append(lambda: deliver(m, dtag, redelivered))

        each.deliver = later
        with self.lock:
            super().serve(each)
            self.lock.notify_all()
        each.deliver = deliver

    def sync(self) -> None:
        with self.lock:
            self.lock.wait_for(lambda: not self.calls and not self.busy)

    def end(self) -> None:
        with self.lock:
            self.over = True
            self.lock.notify_all()


class Ranked:
    """The highest priority first, and of one priority the oldest."""

    can = ("publish", "get", "ack", "nack", "open", "close", "message-priority", "redelivered")

    def __init__(self) -> None:
        self.places = itertools.count()
        self.heap: list[tuple[int, int, str, bool]] = []
        self.held: dict[int, dict[int, tuple[int, int, str, bool]]] = {}
        self.tags: Counter[int] = Counter()

    def open(self, ch: int) -> None:
        self.held[ch] = {}
        self.tags[ch] = 0

    def publish(self, m: str, prio: int | None) -> None:
        heapq.heappush(self.heap, (-(prio or 0), next(self.places), m, False))

    def get(self, ch: int) -> Got | None:
        if not self.heap:
            return None
        entry = heapq.heappop(self.heap)
        self.tags[ch] += 1
        self.held[ch][self.tags[ch]] = entry
        return entry[2], self.tags[ch], entry[3]

    def ack(self, ch: int, dtag: int) -> None:
        del self.held[ch][dtag]

    def nack(self, ch: int, dtag: int) -> None:
        heapq.heappush(self.heap, (*self.held[ch].pop(dtag)[:3], True))

    def close(self, ch: int) -> None:
        for dtag in list(self.held[ch]):
            self.nack(ch, dtag)


@dataclass
class GroupedMessage:
    m: str
    key: str
    owner: int | None = None
    times: int = 0


class Grouped:
    """A group is with one channel while that has messages of it, as SQS's FIFO queues have it."""

    can = ("publish", "get", "ack", "nack", "open", "close", "held-groups", "redelivered")

    def __init__(self) -> None:
        self.messages: list[GroupedMessage] = []
        self.held: dict[int, dict[int, GroupedMessage]] = {}
        self.tags: Counter[int] = Counter()

    def open(self, ch: int) -> None:
        self.held[ch] = {}
        self.tags[ch] = 0

    def publish(self, m: str, key: str) -> None:
        self.messages.append(GroupedMessage(m, key))

    def get(self, ch: int) -> Got | None:
        for each in self.messages:
            if each.owner is None and not self.elsewhere(each.key, ch):
                each.owner = ch
                each.times += 1
                self.tags[ch] += 1
                self.held[ch][self.tags[ch]] = each
                return each.m, self.tags[ch], each.times > 1
        return None

    def elsewhere(self, key: str, ch: int) -> bool:
        return bool(key) and any(o.key == key and o.owner not in (None, ch) for o in self.messages)

    def ack(self, ch: int, dtag: int) -> None:
        self.messages.remove(self.held[ch].pop(dtag))

    def nack(self, ch: int, dtag: int) -> None:
        self.held[ch].pop(dtag).owner = None

    def close(self, ch: int) -> None:
        for each in self.held.pop(ch).values():
            each.owner = None


# ---- what is wrong with others


class NeverPushes(Pushing):
    def pump(self) -> None: ...


class ForgetsAfterCancel(Pushing):
    """The first wake-up after a cancel is forgotten."""

    quiet = False

    def cancel(self, ch: int, ctag: str) -> None:
        super().cancel(ch, ctag)
        self.quiet = True

    def pump(self) -> None:
        if not self.quiet:
            super().pump()
        self.quiet = False


class DoublesEachThird(PutGet):
    puts = 0

    def put(self, m: str) -> None:
        self.puts += 1
        self.line.extend([m] * (2 if self.puts % 3 == 0 else 1))


class Stack(PutGet):
    def get(self) -> str | None:
        return self.line.pop() if self.line else None


class NotExclusive(Pushing):
    def consume(
        self,
        ch: int,
        ctag: str,
        deliver: Deliver,
        autoack: bool = False,
        exclusive: bool = False,
        cprio: int | None = None,
    ) -> None:
        super().consume(ch, ctag, deliver, autoack, False, cprio)


class RankInvertedAtTimes(Ranked):
    published = 0

    def publish(self, m: str, prio: int | None) -> None:
        self.published += 1
        super().publish(m, prio if self.published % 9 else -(prio or 0))


class PriorityInvertedAtTimes(Pushing):
    def pump(self) -> None:
        if self.turn % 11 == 10:
            for each in self.listeners:
                each.priority *= -1
        super().pump()


class GroupSplitAfterClose(Grouped):
    def close(self, ch: int) -> None:
        for each in self.held[ch].values():
            each.key = ""
        super().close(ch)


class GroupForgottenAfterAck(Grouped):
    def ack(self, ch: int, dtag: int) -> None:
        key = self.held[ch][dtag].key
        for each in self.held[ch].values():
            if each.key == key:
                each.key = ""
        super().ack(ch, dtag)


class PrefetchPlusOne(Pushing):
    def qos(self, ch: int, prefetch: int) -> None:
        super().qos(ch, prefetch + bool(prefetch))


class NackToTheTail(Acknowledging):
    def nack(self, ch: int, dtag: int, multiple: bool = False, requeue: bool = True) -> None:
        for _, m, _ in self.settled(ch, dtag, multiple):
            if requeue:
                heapq.heappush(self.heap, (next(self.places), m, True))


class LosesOnCloseOnly(Acknowledging):
    def close(self, ch: int) -> None:
        del self.held[ch]


class LosesOneOfSeveralOnClose(Pushing):
    def close(self, ch: int) -> None:
        if len(self.held[ch]) > 1:
            self.held[ch].popitem()
        super().close(ch)


class NackOfSeveralRequeuesOne(Pushing):
    def nack(self, ch: int, dtag: int, multiple: bool = False, requeue: bool = True) -> None:
        gone = self.settled(ch, dtag, multiple)
        if requeue:
            self.back(gone[:1])
        self.pump()


class AckWakesNobody(Threaded):
    def ack(self, ch: int, dtag: int, multiple: bool = False) -> None:
        Acknowledging.ack(self, ch, dtag, multiple)


class NeverMarks(Pushing):
    def back(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            heapq.heappush(self.heap, entry)


class CountsAutoack(Pushing):
    """What is settled by pushing it uses the limit up all the same."""

    def ready(self, each: Listener) -> bool:
        return not each.limit or len(each.has) < each.limit

    def serve(self, each: Listener) -> None:
        each.has &= {tag for tag in each.has if each.autoack or tag in self.held[each.ch]}
        if each.autoack:
            each.has.add(self.tags[each.ch] + 1)
        super().serve(each)


class TagsBeginAgain(Acknowledging):
    def get(self, ch: int, autoack: bool = False) -> Got | None:
        if not self.held[ch]:
            self.tags[ch] = 0
        return super().get(ch, autoack)


class LosesOneIn500(Threaded):
    published = 0

    def publish(self, m: str) -> None:
        self.published += 1
        if self.published % 500:
            super().publish(m)


class LosesAWakeUpIn500(Threaded):
    pumped = 0

    def pump(self) -> None:
        self.pumped += 1
        if self.pumped % 500:
            super().pump()


RIGHT = (PutGet, Acknowledging, Pushing, Threaded, Ranked, Grouped)
WRONG: dict[type, str] = {
    NeverPushes: "P14",
    ForgetsAfterCancel: "P14",
    DoublesEachThird: "P1 P20",
    Stack: "P4 P5 P20",
    NotExclusive: "P10",
    RankInvertedAtTimes: "P22 P4 P5",
    PriorityInvertedAtTimes: "P11",
    GroupSplitAfterClose: "P23",
    GroupForgottenAfterAck: "P23",
    PrefetchPlusOne: "P7",
    NackToTheTail: "P5",
    LosesOnCloseOnly: "P1 P5",
    LosesOneOfSeveralOnClose: "P1 P5",
    NackOfSeveralRequeuesOne: "P1 P5",
    AckWakesNobody: "P14",
    NeverMarks: "P3 P4",
    CountsAutoack: "P14 P11",
    TagsBeginAgain: "P8",
}
"""Each mistake, with the properties of which any shows it."""
RARE: dict[type, str] = {LosesOneIn500: "P1 P5", LosesAWakeUpIn500: "P14"}
