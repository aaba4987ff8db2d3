"""Clients of the simulated broker: what travels, what they do, and what their recorders write down.

What a client sends waits on a wire, and so does what it is sent. A connection is broken at an instant at which neither
side notices it; a client is killed without a word. A reply goes to its caller at once, a delivery waits for its
callback, so that above a library a reply may be recorded before deliveries that were there first.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from seriatim_workshop.right.broker import (
    MS,
    DrawnBroker,
    DrawnChannel,
    DrawnConsumer,
    DrawnMessage,
    DrawnRecorder,
    Meaning,
    RefusedCall,
    VirtualTime,
)

Fields = dict[str, Any]  # Any: fields of events
Reply = Callable[[Fields], None]


UNANSWERED = frozenset({"consume", "cancel", "qos", "recover"})
"""Calls of which some recorders write down what was asked alone."""


class DrawnConnection:
    """A connection: two wires, and what each side knows of it."""

    def __init__(self, world: DrawnWorld, name: str) -> None:
        self.world, self.name = world, name
        self.random = random.Random(f"link {name} {world.meaning.seed}")
        self.up = self.down = 0
        """When the last frame of each wire arrives."""
        self.broken = False
        self.left = False
        """The broker has ended it."""
        self.over = False
        """The client knows of its end, or is no more: it sends nothing."""
        self.killed = False
        self.channels: dict[int, ClientChannel] = {}
        self.of_broker: list[DrawnChannel] = []
        self.pending: list[DrawnCall] = []

    def send(self, call: Callable[[], object]) -> None:
        """Have the broker do something when the frame arrives, if it arrives."""
        if self.broken:
            return
        loop = self.world.loop
        self.up = max(self.up, loop.now + self.random.randrange(2 * MS))
        loop.at(self.up, lambda: None if self.broken or self.left else call())

    def answer(self, call: Callable[[], None]) -> None:
        """Have the client do something when the frame arrives, if it arrives."""
        loop = self.world.loop
        self.down = max(self.down, loop.now + self.random.randrange(2 * MS))
        loop.at(self.down, lambda: None if self.broken or self.killed or self.over else call())

    def push(self, channel: DrawnChannel, content: Fields) -> None:
        """A delivery is on its way."""
        mine = self.world.ends[id(channel)]
        self.answer(lambda: mine.arrived(content))

    def end_at_broker(self) -> None:
        """The broker notices the end, or does it."""
        if not self.left:
            self.left = True
            self.world.broker.exact("conn_drop", conn=self.name)
            for channel in self.of_broker:
                self.world.broker.close(channel)

    def cut(self) -> None:
        """The network breaks: nothing passes from now on; both sides notice some time later, or never."""
        self.broken = True
        loop, late = self.world.loop, self.world.meaning.notices
        loop.at(loop.now + self.random.randrange(late), self.end_at_broker)
        if self.random.random() < 0.8:
            loop.at(loop.now + self.random.randrange(late), self.noticed)

    def noticed(self) -> None:
        """The client learns that its connection is gone."""
        if self.over or self.killed:
            return
        self.over = True
        for call in self.pending:
            call.unknown()
        self.pending.clear()
        self.world.record(self, "conn_drop", self.random.choice(["", "info"]), conn=self.name)
        for channel in self.channels.values():
            channel.ended()

    def kill(self) -> None:
        """The client is no more, without a word; what it had sent may still arrive."""
        self.killed = self.over = True
        if self.random.random() < 0.5:
            self.broken = True
        loop = self.world.loop
        loop.at(loop.now + self.random.randrange(self.world.meaning.notices), self.end_at_broker)


class DrawnCall:
    """A call of a client that waits for its reply."""

    def __init__(self, link: DrawnConnection, ev: str, fields: Fields) -> None:
        self.link, self.ev, self.fields = link, ev, fields
        self.fields["op"] = link.world.next_op()
        self.done = False
        link.pending.append(self)
        self.silent = ev in UNANSWERED and not link.world.meaning.answers
        """What was asked is recorded, and no answer."""
        link.world.record(link, ev, "" if self.silent else "invoke", **fields)

    def reply(self, content: Fields, ph: str = "ok") -> None:
        """The reply is there."""
        self.done = True
        if self in self.link.pending:
            self.link.pending.remove(self)
        if not self.silent:
            self.link.world.record(self.link, self.ev, ph, **(self.fields | content))

    def unknown(self) -> None:
        """Nobody will ever know."""
        if not self.done:
            self.done = True
            if self.link.random.random() < 0.8 and not self.silent:
                self.link.world.record(self.link, self.ev, "info", **self.fields)


class DrawnWorld:
    """One system with its clients."""

    def __init__(self, meaning: Meaning, kind: type[DrawnBroker] = DrawnBroker) -> None:
        self.meaning = meaning
        self.random = random.Random(f"world {meaning.seed}")
        self.loop = VirtualTime()
        self.recorder = DrawnRecorder(self.loop, meaning)
        self.broker = kind(self.loop, meaning, self.recorder)
        self.ends: dict[int, ClientChannel] = {}
        self.links: list[DrawnConnection] = []
        self.until = meaning.until
        self._op = 0

    def next_op(self) -> int:
        """The number of another operation."""
        self._op += 1
        return self._op

    def record(self, link: DrawnConnection, ev: str, ph: str = "", **fields: Any) -> None:
        """A client's recorder writes something down, unless the recorder is inside the broker."""
        if self.meaning.lvl != "broker" and not link.killed:
            self.recorder.add(ev, ph, rec=link.name, **fields)

    def link(self, name: str) -> DrawnConnection:
        """A new connection."""
        link = DrawnConnection(self, name)
        self.links.append(link)
        return link


class ClientChannel:
    """The client's end of a channel; `held` is what it has seen and not settled, by tag."""

    def __init__(self, link: DrawnConnection, ch: int) -> None:
        self.link, self.ch = link, ch
        self.world = link.world
        number = link.world.next_op()
        self.random = random.Random(f"channel {link.name} {ch} {number} {self.world.meaning.seed}")
        self.stream = f"{link.name}/{ch}/{number}"
        """What is published on it, in order."""
        self.fields: Fields = {"conn": link.name, "ch": ch}
        if self.world.meaning.same_tags:
            before = link.channels.get(ch)
            self.fields["gen"] = 1 + (before.fields["gen"] if before else 0)
        self.held: dict[int, str] = {}
        self.consumers: dict[str, str] = {}
        self.begun = 0
        """How many consumers it asked for."""
        self.prefetch = 0
        """The limit asked for last."""
        self.tx = self.world.meaning.tx and self.random.random() < 0.6
        """Whether it publishes and settles in transactions."""
        self.batch: list[tuple[str, Fields]] = []
        """What it sent in its transaction."""
        self.undone: dict[int, str] = {}
        """What it settled in its transaction, by tag."""
        self.ending = False
        """The end of a transaction waits for its answer."""
        self.over = False
        self.closing = False
        self.last = 0
        """When the last callback runs."""
        self.seen = 0
        self.published = 0
        self.broker_end = DrawnChannel(link, {"conn": link.name, "ch": ch})
        self.world.ends[id(self.broker_end)] = self
        link.channels[ch] = self
        link.of_broker.append(self.broker_end)
        self.world.record(link, "ch_open", "ok", **self.fields)
        self.world.broker.exact("ch_open", **self.fields)

    @property
    def free(self) -> bool:
        """Whether it can send."""
        return not (self.over or self.closing or self.link.over)

    def ended(self) -> None:
        """The client learns that the channel is gone."""
        self.over = True
        self.held.clear()

    def call(self, ev: str, do: Callable[[], Fields | None], then: Reply, **fields: Any) -> None:
        """A call that the broker answers."""
        call = DrawnCall(self.link, ev, self.fields | fields)

        def at_broker() -> None:
            if self.broker_end.gone and ev != "ch_close":
                self.link.answer(call.unknown)
                return
            try:
                content = do() or {}
            except RefusedCall:
                self.world.broker.close(self.broker_end)
                self.link.answer(lambda: self.refused(call))
                return

            def back() -> None:
                call.reply(content)
                then(content)

            self.link.answer(back)

        self.link.send(at_broker)

    def refused(self, call: DrawnCall) -> None:
        """The broker has closed the channel in answer to a call."""
        if self.over:
            return
        call.reply({"err": "403"}, "fail")
        ph = "ok" if self.world.meaning.phases else ""
        self.world.record(self.link, "ch_close", ph, err="403", **self.fields)
        if not self.closing:
            self.ended()

    def tell(self, ev: str, do: Callable[[], object], **fields: Any) -> None:
        """A command without an answer; on a channel that is known to be gone it is refused."""
        world = self.world
        if self.over or self.link.over:
            op = world.next_op()
            world.record(self.link, ev, "invoke", op=op, **self.fields, **fields)
            world.record(self.link, ev, "fail", op=op, **self.fields, **fields)
            return
        content: Fields = {"op": world.next_op()} | self.fields | fields
        if self.tx:
            self.enlist(ev, content, do)
            return
        world.record(self.link, ev, "invoke", **content)
        self.link.send(lambda: None if self.broker_end.gone else do())

    def enlist(self, ev: str, content: Fields, do: Callable[[], object]) -> None:
        """Send something in a transaction; it is recorded when that is to be committed (spec/HISTORY.md)."""
        self.batch.append((ev, content))
        end, broker = self.broker_end, self.world.broker
        self.link.send(lambda: None if end.gone else broker.enlist(end, ev, do))

    def end_transaction(self, commit: bool) -> None:
        """Commit what was sent, or take it back; what is sent later is of the next transaction."""
        if self.ending or not self.free:
            return
        self.ending = True
        batch, self.batch = self.batch, []
        undone, self.undone = self.undone, {}
        broker, end = self.world.broker, self.broker_end
        if commit:
            for ev, content in batch:
                self.world.record(self.link, ev, "invoke", **content)

        def ended(_: Fields) -> None:
            self.ending = False
            for ev, content in batch if commit else ():
                if ev == "publish":
                    self.world.record(self.link, ev, "ok", **content)
            for dtag, m in undone.items() if not commit else ():
                self.keep({"m": m, "dtag": dtag})

        self.call("rpc", lambda: (broker.commit if commit else broker.rollback)(end), ended)

    # what it is sent

    def arrived(self, content: Fields) -> None:
        """A delivery has come; its callback runs later, after those before it."""
        world = self.world
        if self.over and not world.meaning.runs_on:
            return
        if world.meaning.lvl == "wire":
            self.callback(content)
            return
        self.last = max(self.last, world.loop.now + self.random.randrange(world.meaning.late))
        world.loop.at(self.last, lambda: self.callback(content))

    def callback(self, content: Fields) -> None:
        """A delivery is seen."""
        if self.link.killed or ((self.over or self.link.over) and not self.world.meaning.runs_on):
            return
        self.seen += 1
        self.world.record(self.link, "deliver", **self.fields, **content)
        if not content.get("autoack"):
            self.keep(content)

    def keep(self, content: Fields) -> None:
        """Remember what is to be settled, and settle it some time."""
        if not content.get("m"):
            return
        dtag = content["dtag"]
        self.held[dtag] = content["m"]
        pause = self.random.choice([0, MS, 4 * MS, 15 * MS, 40 * MS])
        loop = self.world.loop
        loop.at(loop.now + self.random.randrange(pause + 1), lambda: self.settle(dtag))

    # what it does

    def settle(self, dtag: int) -> None:
        """Settle one delivery, or it and others."""
        if self.link.killed or dtag not in self.held or self.random.random() < 0.1:
            return
        if not self.free and self.random.random() < 0.7:
            return
        meaning, broker = self.world.meaning, self.world.broker
        ev = self.random.choices(["ack", "nack", "reject"], [6, 3, 1])[0]
        multiple = meaning.sweeps and ev != "reject" and self.random.random() < 0.25
        multiple = multiple and not self.tx  # what it covers is another thing at the commit
        zero = multiple and self.random.random() < 0.3
        requeue = not meaning.dead or self.random.random() < 0.6
        tags = [t for t in self.held if t == dtag or (multiple and (zero or t <= dtag))]
        for t in tags:
            self.undone[t] = self.held.pop(t)
        content: Fields = {"dtag": 0 if zero else dtag}
        content |= {"multiple": multiple} if ev != "reject" else {}
        content |= {} if ev == "ack" else {"requeue": requeue}
        tag = content["dtag"]
        self.tell(ev, lambda: broker.settle(self.broker_end, ev, tag, multiple, requeue), **content)

    def consume(self, q: str) -> None:
        """Ask for messages, perhaps under a limit."""
        meaning, broker = self.world.meaning, self.world.broker
        ctag = f"c{self.world.next_op()}"
        if meaning.same_tags:
            ctag = f"c{self.begun}"
        self.begun += 1
        if self.random.random() < 0.8:
            self.qos(self.random.choice([0, 1, 2, 3]))
        prefetch = self.prefetch
        autoack = self.random.random() < 0.12
        rank = self.random.randrange(3) if meaning.ranks else 0
        own = (prefetch or None) if meaning.scope == "consumer" else None
        consumer = DrawnConsumer(self.broker_end, ctag, broker.queues[q], autoack, own, rank)
        consumer.exclusive = meaning.alone and self.random.random() < 0.4
        consumer.nolocal = meaning.local and self.random.random() < 0.5
        fields: Fields = {"q": q, "ctag": ctag, "autoack": autoack or None}
        fields |= {"exclusive": consumer.exclusive or None, "nolocal": consumer.nolocal or None}
        if meaning.ranks:
            fields["cprio"] = rank
        self.consumers[ctag] = q

        def do() -> Fields:
            broker.consume(self.broker_end, consumer)
            broker.exact("consume", **self.fields, **fields)
            return {}

        self.call("consume", do, lambda content: None, **fields)

    def qos(self, prefetch: int) -> None:
        """Set a limit; of the channel it holds for what is handed out from then on."""
        scope = self.world.meaning.scope
        end = self.broker_end
        self.prefetch = prefetch

        def do() -> Fields:
            self.world.broker.exact("qos", prefetch=prefetch, scope=scope, **self.fields)
            if scope == "channel":
                end.limit = prefetch or None
                for consumer in end.consumers.values():
                    self.world.broker.kick(consumer.q)
            return {}

        self.call("qos", do, lambda content: None, prefetch=prefetch, scope=scope)

    def get(self, q: str) -> None:
        """Poll for a message."""
        autoack = self.random.random() < 0.3
        broker = self.world.broker
        said = {"q": q, "autoack": autoack or None}
        self.call(
            "get",
            lambda: broker.get(q, self.broker_end, autoack),
            lambda content: None if content.get("autoack") else self.keep(content),
            **said,
        )

    def cancel(self, ctag: str) -> None:
        """End a consumer."""
        q = self.consumers.pop(ctag)
        broker = self.world.broker
        do = lambda: broker.cancel(self.broker_end, ctag)  # noqa: E731  # one line
        self.call("cancel", do, lambda content: None, ctag=ctag, q=q)

    def recover(self) -> None:
        """Ask for all that is held to be requeued."""
        self.held.clear()
        self.undone.clear()
        broker = self.world.broker
        self.call(
            "recover", lambda: broker.recover(self.broker_end), lambda content: None, requeue=True
        )

    def close(self) -> None:
        """Close in order."""
        self.closing = True
        broker, link = self.world.broker, self.link
        if not self.world.meaning.phases:
            self.world.record(link, "ch_close", **self.fields)

            def do() -> None:
                broker.close(self.broker_end)
                link.answer(self.ended)

            link.send(do)
            return
        self.call("ch_close", lambda: broker.close(self.broker_end), lambda content: self.ended())

    def thrown_out(self) -> None:
        """The broker closes the channel; the client learns it later."""
        self.world.broker.close(self.broker_end)

        def answered() -> None:
            if self.over:
                return
            # Also while its client closes, and waits for the answer to that.
            ph = "ok" if self.world.meaning.phases else ""
            self.world.record(self.link, "ch_close", ph, err="406", **self.fields)
            if not self.closing:
                self.ended()

        self.link.answer(answered)

    def publish(self, m: str, q: str, prio: int, key: str | None, pub: str) -> None:
        """Send a message, perhaps a second time if the outcome of the first stays unknown."""
        meaning, broker = self.world.meaning, self.world.broker
        message = DrawnMessage(m, prio, key, pub, self.published, conn=self.link.name)
        self.published += 1
        fields: Fields = {"m": m, "q": q, "key": key, "op": self.world.next_op()}
        fields |= {"prio": prio} if meaning.levels > 1 else {}
        fields |= {"pub": pub, "pseq": message.pseq} if meaning.headers else {}
        fields |= self.fields
        inside = {k: fields[k] for k in ("prio", "pub", "pseq", "conn", "ch") if k in fields}
        if self.tx:
            self.enlist("publish", fields, lambda: broker.publish(q, message, **inside))
            return
        ph = "invoke" if meaning.confirms else ""
        self.world.record(self.link, "publish", ph, **fields)

        def do() -> None:
            refused = meaning.confirms and broker.refuses()
            if refused:
                broker.refuse(q, message)
            else:
                broker.publish(q, message, **inside)
            for _ in range(broker.answers() if meaning.confirms else 0):
                slow = 20 * MS if meaning.slow_confirms else MS
                at = self.world.loop.now + self.random.randrange(slow)
                self.world.loop.at(at, lambda: self.link.answer(lambda: answered(refused)))

        def answered(refused: bool) -> None:
            if self.free:
                self.world.record(self.link, "publish", "fail" if refused else "ok", **fields)

        self.link.send(lambda: None if self.broker_end.gone else do())
