"""A queue without channels that keeps what it declares, and its workers, in virtual time.

Three kinds. ``lease``: a worker polls and has what it gets for a time (visibility timeout); then it goes back by
itself, and no client sees that. ``lock``: what a worker has is its own until it settles or its session ends, as a
locked row. ``fifo``: a poll takes for good, and nothing comes back (an abstract queue; producers and consumers on
threads). Sources: SQS developer guide, visibility timeout and message groups; PostgreSQL, 13.3.2 row-level locks;
Herlihy and Wing 1990; spec/HISTORY.md.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, NamedTuple

from seriatim_models.history.event import Event
from seriatim_workshop.right.broker import MS, DrawnRecorder, VirtualTime


class WorkerMeaning(NamedTuple):
    """What one drawn queue declares, and how it is recorded. Times are nanoseconds."""

    seed: int
    kind: str = "lease"
    """lease, lock or fifo."""
    lvl: str = "api"
    """Where is recorded: api or broker."""
    ordered: bool = True
    """Whether messages, or those of a group, are in order."""
    groups: int = 0
    """Groups of messages, of which one is with a worker at a time; 0 for none."""
    connections: bool = False
    """Whether workers are named by connections; else by process alone."""
    leases: int = 12 * MS
    """Nanoseconds after which what is held goes back."""
    expiries: bool = False
    """Whether a worker records by its own clock that its lease is over."""
    slow: int = 3 * MS
    """The longest way of a request or a reply."""
    unknown: float = 0.05
    """How many answers are lost."""
    waits: bool = True
    """Whether a poll waits for a message instead of coming back empty."""
    headers: bool = True
    ops: bool = True
    own_recorders: bool = False
    kills: bool = True
    messages: int = 8
    publishers: int = 1
    workers: int = 2
    until: int = 80 * MS
    delay: int = 0
    """Nanoseconds after its publish for which a message is not there, as the queue declares."""


def draw_workers(seed: int) -> WorkerMeaning:
    """A meaning: what a queue declares, and how it is used and recorded."""
    choose = random.Random(f"workers {seed}")

    def often(p: float = 0.5) -> bool:
        return choose.random() < p

    kind = choose.choice(["lease", "lease", "lock", "fifo"])
    return WorkerMeaning(
        seed=seed,
        kind=kind,
        lvl=choose.choices(["api", "broker"], [3, 1])[0],
        ordered=kind == "fifo" or often(0.6),
        groups=choose.choice([0, 0, 1, 2]) if kind == "lease" else 0,
        connections=kind == "lock" or often(),
        leases=choose.choice([6 * MS, 15 * MS, 40 * MS]),
        expiries=often(0.3),
        slow=choose.choice([1, MS, 5 * MS]),
        unknown=choose.choice([0.0, 0.05, 0.2]),
        waits=often(),
        headers=often(),
        ops=often(0.8),
        own_recorders=often(0.3),
        kills=often(),
        messages=choose.choice([3, 8, 20]),
        publishers=choose.choice([1, 1, 2]),
        workers=choose.choice([1, 2, 2, 4]),
    )


@dataclass(eq=False)
class QueueRow:
    """A message in the queue; `by` is who has it, `since` counts how often it was handed out."""

    m: str
    key: str | None
    fields: dict[str, Any]  # Any: fields of an event
    by: DrawnWorker | None = None
    given: int = 0


class DrawnWorker:
    """A client that polls and settles, one call at a time."""

    def __init__(self, world: DrawnWorkers, name: str) -> None:
        self.world, self.name = world, name
        self.random = random.Random(f"worker {name} {world.meaning.seed}")
        self.gone = False
        self.fields: dict[str, Any] = (
            {"conn": name} if world.meaning.connections else {"proc": name}
        )
        self.fields["q"] = "jobs"
        world.loop.at(world.soon(5 * MS), self.poll)

    def record(self, ev: str, ph: str = "", **fields: Any) -> None:
        """The worker's recorder writes something down."""
        if self.world.meaning.lvl != "broker" and not self.gone:
            self.world.recorder.add(ev, ph, rec=self.name, **(self.fields | fields))

    def later(self, most: int = 6 * MS) -> None:
        """Poll again, some time soon."""
        world = self.world
        if world.loop.now < world.meaning.until and not self.gone:
            world.loop.at(world.loop.now + self.random.randrange(most), self.poll)

    def poll(self) -> None:
        """Ask for a message."""
        world, meaning = self.world, self.world.meaning
        if self.gone:
            return
        op = world.number()
        auto = True if meaning.kind == "fifo" else None
        self.record("get", "invoke", op=op, autoack=auto)

        def at_broker() -> None:
            row = world.take(self)
            if row is None and meaning.waits and world.loop.now < meaning.until:
                world.loop.at(world.loop.now + MS // 2, at_broker)
                return
            content: dict[str, Any] = {}
            if row:
                content = {"m": row.m, "key": row.key, **row.fields}
                world.exact("get", **self.fields, **content, autoack=auto)
            ph = "info" if self.random.random() < meaning.unknown else "ok"
            given = row.given if row else 0

            def answered() -> None:
                self.record("get", ph, op=op, autoack=auto, **(content if ph == "ok" else {}))
                if ph == "info" or row is None or meaning.kind == "fifo":
                    if ph == "info" and meaning.kind == "lock":
                        self.end()  # its transaction with it
                    else:
                        self.later()
                    return
                if meaning.expiries and meaning.kind == "lease":
                    world.loop.at(since + meaning.leases, lambda: self.over(row, given))
                pause = self.random.choice([1, 2 * MS, 10 * MS, 30 * MS])
                world.loop.at(
                    world.loop.now + self.random.randrange(pause), lambda: self.settle(row, given)
                )

            world.loop.at(world.soon(), answered)

        since = world.loop.now
        world.loop.at(world.soon(), at_broker)

    def over(self, row: QueueRow, given: int) -> None:
        """By the worker's own clock its lease has ended, at the latest."""
        if row.given == given and row.by is self:
            self.record("expire", m=row.m, requeue=True)

    def settle(self, row: QueueRow, given: int) -> None:
        """End what was got, or give it back, or do neither."""
        world, meaning = self.world, self.world.meaning
        what = self.random.random()
        if self.gone:
            return
        if what > 0.93 and meaning.kills:
            self.end()
            return
        if what > 0.85 and meaning.kind == "lease":
            self.later()  # it forgets it
            return
        ev = "ack" if what < 0.6 else "nack"
        content: dict[str, Any] = {"ms": [row.m]} | ({} if ev == "ack" else {"requeue": True})
        op = world.number()
        self.record(ev, "invoke", op=op, **content)

        def at_broker() -> None:
            done = world.settle(self, row, given, ev)
            world.exact(ev, "" if done else "fail", **self.fields, **content)
            unknown = self.random.random() < meaning.unknown
            ph = "info" if unknown else "ok" if done else "fail"

            def answered() -> None:
                self.record(ev, ph, op=op, **content)
                self.later()

            world.loop.at(world.soon(), answered)

        world.loop.at(world.soon(), at_broker)

    def end(self) -> None:
        """The worker is killed; another one comes. Where its end frees what it holds, who started it records that: no
        answer of a worker proves that it is there, so its end must be recorded (`properties.blackbox.sessions`).
        """
        world = self.world
        if world.meaning.connections and (
            world.meaning.kind == "lock" or self.random.random() < 0.3
        ):
            self.record("conn_drop", self.random.choice(["", "info"]), q=None)
        self.gone = True

        def noticed() -> None:
            if world.meaning.connections:
                world.exact("conn_drop", conn=self.name)
            world.ended(self)
            if world.loop.now < world.meaning.until:
                DrawnWorker(world, f"{self.name.partition('.')[0]}.{world.number()}")

        world.loop.at(world.soon(20 * MS), noticed)


class DrawnWorkers:
    """A queue with its clients."""

    def __init__(self, meaning: WorkerMeaning) -> None:
        self.meaning = meaning
        self.random = random.Random(f"play {meaning.seed}")
        self.loop = VirtualTime()
        self.recorder = DrawnRecorder(self.loop, meaning)
        self.rows: list[QueueRow] = []
        self._n = 0
        delay = {"delay": meaning.delay // MS} if meaning.delay else None
        self.recorder.add("declare", "" if meaning.lvl == "broker" else "ok", q="jobs", args=delay)
        for n in range(meaning.workers):
            DrawnWorker(self, f"w{n}")
        for n in range(meaning.publishers):
            self._publish(f"p{n}", 0)
        self.loop.at(meaning.until + 400 * MS, self._look)

    def number(self) -> int:
        """Another number."""
        self._n += 1
        return self._n

    def soon(self, most: int = 0) -> int:
        """Some instant soon."""
        return self.loop.now + self.random.randrange(most or self.meaning.slow)

    def exact(self, ev: str, ph: str = "", **fields: Any) -> None:
        """Record inside the queue, if that is where the recorder is."""
        if self.meaning.lvl == "broker":
            self.recorder.add(ev, ph, **fields)

    def choice(self, by: DrawnWorker) -> QueueRow | None:
        """Which message is next: the first, of the groups that nobody has, or any of those if nothing is ordered."""
        busy = {r.key for r in self.rows if r.by and r.key is not None}
        free = [r for r in self.rows if not r.by and (r.key is None or r.key not in busy)]
        if not free:
            return None
        return free[0] if self.meaning.ordered else self.random.choice(free)

    def take(self, by: DrawnWorker) -> QueueRow | None:
        """Hand a message out; returns None if there is none."""
        row = self.choice(by)
        if row is None:
            return None
        row.by, row.given = by, row.given + 1
        if self.meaning.kind == "fifo":
            self.rows.remove(row)
        elif self.meaning.kind == "lease":
            given = row.given
            self.loop.at(self.loop.now + self.meaning.leases, lambda: self._expire(row, given))
        return row

    def _expire(self, row: QueueRow, given: int) -> None:
        if row in self.rows and row.given == given and row.by:
            self.exact("expire", m=row.m, q="jobs", requeue=True)
            row.by = None

    def settle(self, by: DrawnWorker, row: QueueRow, given: int, ev: str) -> bool:
        """An ack or nack takes effect; False if the message is not the sender's any more."""
        if row not in self.rows or row.by is not by or row.given != given:
            return False
        row.by = None
        if ev == "ack":
            self.rows.remove(row)
        return True

    def ended(self, by: DrawnWorker) -> None:
        """A session has ended: what it had locked is free; a lease runs on."""
        for row in self.rows:
            if row.by is by and self.meaning.kind == "lock":
                row.by = None

    def put(self, row: QueueRow) -> None:
        """A message is enqueued."""
        self.rows.append(row)

    def _publish(self, name: str, n: int) -> None:
        if n == self.meaning.messages or self.loop.now > self.meaning.until:
            return
        m, op, meaning = f"{name}-{n}", self.number(), self.meaning
        key = f"g{self.random.randrange(meaning.groups)}" if meaning.groups else None
        fields: dict[str, Any] = {"pub": name, "pseq": n} if meaning.headers else {}
        said = {"m": m, "q": "jobs", "key": key, "proc": name, "op": op, **fields}
        if meaning.lvl != "broker":
            self.recorder.add("publish", "invoke", rec=name, **said)
        ph = "info" if self.random.random() < meaning.unknown else "ok"
        lost = ph == "info" and self.random.random() < 0.5

        def at_broker() -> None:
            if not lost:
                self.exact("publish", m=m, q="jobs", key=key, **fields)
                row = QueueRow(m, key, fields)
                if meaning.delay:
                    self.loop.at(self.loop.now + meaning.delay, lambda: self.put(row))
                else:
                    self.put(row)
            self.loop.at(self.soon(), answered)

        def answered() -> None:
            if meaning.lvl != "broker":
                self.recorder.add("publish", ph, rec=name, **said)
            self._publish(name, n + 1)

        at = self.soon(4 * MS)
        self.loop.at(at, at_broker)

    def _look(self) -> None:
        """Somebody looks how many messages are ready."""
        depth = sum(not r.by for r in self.rows)
        self.recorder.add("note", "info", q="jobs", args={"depth": depth})

    def events(self) -> list[Event]:
        """The history, as it is recorded."""
        self.loop.run()
        return self.recorder.events()
