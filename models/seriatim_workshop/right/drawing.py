"""A drawn system, and its history: from a seed, a meaning; from a meaning, events."""

from __future__ import annotations

import random

from seriatim_models.history.event import Event
from seriatim_workshop.right.broker import MS, DrawnBroker, Meaning
from seriatim_workshop.right.clients import ClientChannel, DrawnConnection, DrawnWorld
from seriatim_workshop.right.logs import DrawnLog, LogMeaning, draw_log
from seriatim_workshop.right.workers import DrawnWorkers, WorkerMeaning, draw_workers

AnyMeaning = Meaning | LogMeaning | WorkerMeaning


def draw(seed: int) -> AnyMeaning:
    """A meaning: of each ten seeds two are of logs, two of queues without channels, and six of brokers."""
    match seed % 10:
        case 6 | 7:
            return draw_workers(seed)
        case 8 | 9:
            return draw_log(seed)
        case _:
            return draw_broker(seed)


def draw_broker(seed: int) -> Meaning:
    """A meaning: what a broker declares, and how it is used and recorded."""
    choose = random.Random(f"meaning {seed}")

    def often(p: float = 0.5) -> bool:
        return choose.random() < p

    return Meaning(
        seed=seed,
        requeue=choose.choice(["place", "place", "head", "tail"]),
        lvl=choose.choices(["api", "wire", "broker"], [6, 2, 2])[0],
        flags=often(0.85),
        headers=often(),
        phases=often(0.7),
        ops=often(0.7),
        own_recorders=often(0.3),
        late=choose.choice([1, MS, 10 * MS, 30 * MS]),
        notices=choose.choice([1, 5 * MS, 40 * MS]),
        runs_on=often(),
        slow_confirms=often(0.4),
        confirms=often(0.8),
        lag=choose.choice([1, MS, 3 * MS]),
        queues=choose.choice([1, 1, 2]),
        levels=choose.choice([1, 1, 1, 3]),
        groups=choose.choice([0, 0, 0, 2]),
        dead=often(0.25),
        sole=often(0.1),
        ranks=often(0.15),
        scope=choose.choice(["consumer", "consumer", "channel"]),
        leases=choose.choice([0, 0, 0, 0, 12 * MS]),
        messages=choose.choice([2, 5, 10, 20]),
        consumers=choose.choice([1, 2, 2, 3]),
        publishers=choose.choice([1, 1, 2]),
        sweeps=often(0.6),
        twice=often(0.3),
        kills=often(),
        drops=often(),
        rests=often(),
        alone=often(0.15),
        local=often(0.15),
        ttl=choose.choice([0, 0, 0, 0, 0, 6 * MS, 25 * MS]),
        refuses=often(0.15),
        answers=often(0.8),
        tx=often(0.15),
        declares_end=often(),
        handover=often(),
        same_tags=often(0.2),
    )  # fmt: skip


class DrawnPlay:
    """What the clients do until the end."""

    def __init__(self, meaning: Meaning, kind: type[DrawnBroker] = DrawnBroker) -> None:
        self.world = DrawnWorld(meaning, kind)
        self.random = random.Random(f"play {meaning.seed}")
        self.n = 0
        declared: dict[str, object] = {}
        if meaning.sole:
            declared["x-single-active-consumer"] = True
        if meaning.dead:
            declared["x-dead-letter-exchange"] = "anywhere"
        if meaning.levels > 1:
            declared["x-max-priority"] = meaning.levels - 1
        if meaning.groups:
            declared["groups"] = "held"
        if meaning.declares_end and meaning.requeue != "place":
            declared["requeue"] = meaning.requeue
        for q in self.world.broker.queues:
            ph = "" if meaning.lvl == "broker" else "ok"
            waits = {"x-message-ttl": meaning.ttl // MS} if meaning.ttl and q != "dead" else {}
            delay = {"delay": meaning.delay // MS} if meaning.delay else {}
            self.world.recorder.add("declare", ph, q=q, args=declared | waits | delay or None)
        for n in range(meaning.publishers):
            self.start_publisher(f"p{n}")
        for n in range(meaning.consumers):
            self.start_consumer(f"k{n}")
        self.world.loop.at(self.world.until, self.wind_down)

    def events(self) -> list[Event]:
        """The history, as it is recorded."""
        self.world.loop.run()
        return self.world.recorder.events()

    def later(self, most: int = 6 * MS) -> int:
        """Some instant soon."""
        return self.world.loop.now + self.random.randrange(most)

    def fresh(self, name: str) -> str:
        """The name of another connection of the same client."""
        self.n += 1
        return f"{name.partition('.')[0]}.{self.n}"

    def start_publisher(self, name: str) -> None:
        """A publisher on a connection of its own."""
        link = self.world.link(name)
        channel = ClientChannel(link, 1)
        self.publish(channel, name, self.world.meaning.messages, [])

    def publish(self, channel: ClientChannel, name: str, left: int, sent: list[str]) -> None:
        """Publish what is left, one message after another; after a drop on a new connection."""
        meaning = self.world.meaning
        if not left or channel.link.killed or self.world.loop.now > self.world.until:
            return
        if channel.free:
            again = meaning.twice and sent and self.random.random() < 0.1
            m = self.random.choice(sent) if again else f"{name}-{len(sent)}"
            if not again:
                sent.append(m)
            prio = self.random.randrange(meaning.levels)
            key = f"g{self.random.randrange(meaning.groups)}" if meaning.groups else None
            q = self.random.choice(list(self.world.broker.queues))
            channel.publish(m, q, prio, key, f"{channel.link.name}/{channel.ch}")
            self.end_transaction(channel, 0.4)
            self.accident(channel.link, 0.03)
        elif channel.link.over:
            channel = ClientChannel(self.world.link(self.fresh(name)), 1)
        self.world.loop.at(self.later(), lambda: self.publish(channel, name, left - 1, sent))

    def end_transaction(self, channel: ClientChannel, p: float) -> None:
        """Perhaps a channel commits what it sent, or takes it back."""
        if channel.tx and self.random.random() < p:
            channel.end_transaction(self.random.random() < 0.75)

    def accident(self, link: DrawnConnection, p: float) -> None:
        """Perhaps the connection breaks, or the client is killed."""
        meaning = self.world.meaning
        if meaning.drops and self.random.random() < p:
            link.cut()
        elif meaning.kills and self.random.random() < p / 2:
            link.kill()

    def start_consumer(self, name: str) -> None:
        """A consumer on a connection of its own, with one channel or two."""
        link = self.world.link(name)
        for ch in range(1, self.random.choice([2, 2, 3])):
            channel = ClientChannel(link, ch)
            if self.random.random() < 0.8:
                channel.consume(self.random.choice(list(self.world.broker.queues)))
            self.world.loop.at(self.later(), lambda c=channel: self.act(c))  # type: ignore[misc]

    def act(self, channel: ClientChannel) -> None:  # noqa: C901, PLR0912  # a branch an action
        """Do something on a channel, and something else later."""
        link, meaning, loop = channel.link, self.world.meaning, self.world.loop
        if link.killed or loop.now > self.world.until:
            return
        queues = list(self.world.broker.queues)
        what = self.random.random()
        if link.over:
            if channel is link.channels[min(link.channels)]:
                self.start_consumer(self.fresh(link.name))
            return
        if channel.over:
            channel = ClientChannel(link, channel.ch)
            channel.consume(self.random.choice(queues))
        elif not channel.free:
            pass
        elif channel.tx and what < 0.3:
            self.end_transaction(channel, 1)
        elif what < 0.35:
            channel.get(self.random.choice(queues))
        elif what < 0.42 and meaning.sweeps:
            channel.recover()
        elif what < 0.5 and channel.consumers:
            channel.cancel(self.random.choice(list(channel.consumers)))
        elif what < 0.6:
            channel.consume(self.random.choice(queues))
        elif what < 0.66:
            channel.close()
        elif what < 0.7:
            channel.thrown_out()
        elif what < 0.8:
            channel.qos(self.random.choice([0, 1, 1, 2, 3]))
        elif meaning.local and what < 0.95:
            m = f"{link.name}-n{self.world.next_op()}"
            prio = self.random.randrange(meaning.levels)
            key = f"g{self.random.randrange(meaning.groups)}" if meaning.groups else None
            channel.publish(m, self.random.choice(queues), prio, key, channel.stream)
        else:
            self.accident(link, 0.3)
        loop.at(self.later(12 * MS), lambda: self.act(channel))

    def wind_down(self) -> None:
        """The end: connections are closed in order, or the recording just stops."""
        for link in self.world.links:
            if link.over or self.random.random() < 0.3:
                continue
            for channel in link.channels.values():
                self.end_transaction(channel, 0.7)
                if channel.free:
                    channel.close()
        self.world.loop.at(self.world.loop.now + 500 * MS, self.look)

    def look(self) -> None:
        """Somebody looks how many messages are ready in each queue."""
        rest = {"rest": True} if self.world.meaning.rests else {}
        for q, queue in self.world.broker.queues.items():
            self.world.recorder.add("note", "info", q=q, args={"depth": len(queue.ready)} | rest)


def history(meaning: AnyMeaning) -> list[Event]:
    """The history of a drawn system, as its recorders wrote it."""
    match meaning:
        case LogMeaning():
            return DrawnLog(meaning).events()
        case WorkerMeaning():
            return DrawnWorkers(meaning).events()
        case _:
            return DrawnPlay(meaning).events()
