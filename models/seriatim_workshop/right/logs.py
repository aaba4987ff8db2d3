"""A partitioned log that keeps what it declares, its publishers, and the members of its groups, in virtual time.

A partition is read in order from a group's position; a commit stores that position, as ``last`` done with or as
``next`` to read. Members join, leave, are killed and lose partitions to each other, and learn all that late; what they
had fetched they may still process. A commit may go back, and one of an earlier owner may come late.
Sources: https://kafka.apache.org/documentation/#design (log, consumer position, offset tracking); KafkaConsumer's and
RabbitMQ streams' own pages for fencing and for offsets stored by the last writer; spec/HISTORY.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from seriatim_models.history.event import Event
from seriatim_workshop.right.broker import MS, DrawnRecorder, VirtualTime


class LogMeaning(NamedTuple):
    """What one drawn log declares, and how it is recorded. Times are nanoseconds."""

    seed: int
    lvl: str = "api"
    """Where is recorded: api or broker."""
    parts: int = 1
    readers: int = 1
    members: int = 1
    """Of each group of readers."""
    committed: str = "next"
    """What a position means that is committed: next to read, or last that is done with."""
    declared: bool = True
    """Whether each commit says so."""
    fenced: bool = True
    """Whether a commit is refused that comes from an earlier owner of the partition."""
    eager: bool = False
    """Whether every assignment begins anew at the committed position."""
    assigned: bool = True
    """Whether is recorded when partitions are assigned and revoked."""
    holes: bool = False
    """Whether positions are left out, as markers of transactions take some."""
    compacts: bool = False
    """Whether messages vanish from the log before all have read them."""
    latest: bool = False
    """Whether a group that has committed nothing begins at the end."""
    seeks: bool = True
    back: bool = True
    """Whether a member may commit a lower position than before."""
    headers: bool = True
    """Whether a delivery carries publisher and sequence."""
    ops: bool = True
    own_recorders: bool = False
    late: int = 3 * MS
    """By how much what was fetched may be processed late."""
    notices: int = 30 * MS
    """By how much an assignment, or an end, may be noticed late."""
    kills: bool = True
    messages: int = 8
    publishers: int = 1
    until: int = 80 * MS


def draw_log(seed: int) -> LogMeaning:
    """A meaning: what a log declares, and how it is used and recorded."""
    choose = random.Random(f"log {seed}")

    def often(p: float = 0.5) -> bool:
        return choose.random() < p

    eager = often(0.3)
    return LogMeaning(
        seed=seed,
        lvl=choose.choices(["api", "broker"], [3, 1])[0],
        parts=choose.choice([1, 1, 2, 3]),
        readers=choose.choice([1, 1, 2]),
        members=choose.choice([1, 2, 2, 3]),
        committed=choose.choice(["next", "next", "last"]),
        declared=often(0.7),
        fenced=often(0.6),
        eager=eager,
        assigned=eager or often(),
        holes=often(0.3),
        compacts=often(0.15),
        latest=often(0.2),
        seeks=often(),
        back=often(0.3),
        headers=often(),
        ops=often(0.7),
        own_recorders=often(0.3),
        late=choose.choice([1, MS, 10 * MS]),
        notices=choose.choice([1, 5 * MS, 30 * MS]),
        kills=often(),
        messages=choose.choice([3, 8, 20]),
        publishers=choose.choice([1, 1, 2]),
    )


class LogRecord(NamedTuple):
    """A message at its position."""

    pos: int
    m: str
    fields: dict[str, Any]  # Any: fields of an event


class DrawnPartition:
    """A log, and what groups have committed in it; `owners` are the members that may read it now."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.records: list[LogRecord] = []
        self.end = 0
        self.committed: dict[str, int] = {}
        """By group: the next position to read."""
        self.owners: dict[str, DrawnMember] = {}

    def start(self, group: str, latest: bool) -> int:
        """Where a group that is assigned the partition begins to read."""
        return self.committed.get(group, self.end if latest else 0)


class DrawnMember:
    """A member of a group, on a connection of its own; `positions` are those of the partitions it believes it has."""

    def __init__(self, world: DrawnLog, group: str, name: str) -> None:
        self.world, self.group, self.name = world, group, name
        self.random = random.Random(f"member {name} {world.meaning.seed}")
        self.positions: dict[int, int] = {}
        self.fetching: dict[int, int] = {}
        """By partition: which fetch is under way; an answer to an earlier one is dropped."""
        self.busy: dict[int, int] = {}
        """By partition: until when something that was fetched waits."""
        self.done: dict[int, int] = {}
        """By partition: the next position after what was processed."""
        self.up = self.last = 0
        """When the last request arrives, and when the last of what was fetched is processed."""
        self.gone = self.killed = self.left = False
        """It sends nothing any more; it is dead; the log has ended it."""
        self.fields: dict[str, Any] = {"conn": name, "ctag": group, "q": "log"}
        self.record("consume", "ok")
        world.exact("consume", **self.fields)
        world.loop.at(world.soon(), self.act)

    def record(self, ev: str, ph: str = "", **fields: Any) -> None:
        """The client's recorder writes something down."""
        if self.world.meaning.lvl != "broker" and not self.killed:
            self.world.recorder.add(ev, ph, rec=self.name, **(self.fields | fields))

    def send(self, call: Callable[[], None]) -> None:
        """Have the log do something when the request arrives; requests arrive in order."""
        loop = self.world.loop
        self.up = max(self.up, self.world.soon(MS))
        loop.at(self.up, lambda: None if self.left else call())

    def assign(self, numbers: set[int]) -> None:
        """The member learns which partitions it has."""
        if self.gone:
            return
        meaning, world = self.world.meaning, self.world
        kept = set() if meaning.eager else numbers & self.positions.keys()
        for number in sorted(self.positions.keys() - kept):
            if meaning.assigned:
                self.record("cancel", "ok", part=number)
            self._drop(number)
        for number in sorted(numbers - kept):
            if meaning.assigned:
                self.record("consume", "ok", part=number)
                world.exact("consume", part=number, **self.fields)
            self.positions[number] = world.parts[number].start(self.group, meaning.latest)

    def _drop(self, number: int) -> None:
        del self.positions[number]
        self.fetching[number], self.busy[number] = self.world.number(), 0
        self.done.pop(number, None)

    def act(self) -> None:
        """Fetch, commit or seek, and something else later."""
        world, meaning = self.world, self.world.meaning
        if self.gone or world.loop.now > meaning.until:
            return
        what = self.random.random()
        if self.positions and what < 0.7:
            self.fetch(self.random.choice(sorted(self.positions)))
        elif self.done and what < 0.9:
            number = self.random.choice(sorted(self.done))
            again = self.random.randrange(self.done[number] + 1)
            to = again if meaning.back and self.random.random() < 0.2 else self.done[number]
            self.commit(number, to)
        elif self.positions and meaning.seeks and what < 0.95:
            number = self.random.choice(sorted(self.positions))
            self.seek(number, self.random.randrange(world.parts[number].end + 1))
        elif what > 0.97 and meaning.kills:
            self.kill()
            return
        world.loop.at(world.soon(4 * MS), self.act)

    def fetch(self, number: int) -> None:
        """Read on in a partition; nothing else is read of it until that was processed."""
        world = self.world
        if world.loop.now < self.busy.get(number, 0):
            return
        self.busy[number] = world.meaning.until
        mine = self.fetching[number] = world.number()

        def at_broker() -> None:
            partition = world.parts[number]
            if self.fetching.get(number) != mine or number not in self.positions:
                return
            rest = world.readable(partition, self, self.positions[number])
            self.busy[number] = 0
            for record in rest[: self.random.choice([1, 1, 2, 4])]:
                content = {"m": record.m, "part": number, "pos": record.pos, **record.fields}
                world.exact("deliver", **self.fields, **content)
                self.last = max(self.last, world.loop.now) + self.random.randrange(
                    world.meaning.late
                )
                self.busy[number] = self.last + 1
                world.loop.at(self.last, lambda content=content: process(content))  # type: ignore[misc]

        def process(content: dict[str, Any]) -> None:
            if self.killed or self.fetching.get(number) != mine:
                return
            self.record("deliver", **content)
            self.positions[number] = self.done[number] = content["pos"] + 1

        self.send(at_broker)

    def commit(self, number: int, to: int) -> None:
        """Store a position; of the outcome the member hears later, or never."""
        world, meaning = self.world, self.world.meaning
        pos = to if meaning.committed == "next" else to - 1
        if pos < 0:
            return
        args = {"committed": meaning.committed} if meaning.declared else None
        fields = {"part": number, "pos": pos, "args": args, "op": world.number()}
        self.record("commit", "invoke", **fields)

        def at_broker() -> None:
            partition = world.parts[number]
            stale = meaning.fenced and partition.owners.get(self.group) is not self
            if not stale:
                world.store(partition, self.group, to)
                world.exact("commit", **self.fields, part=number, pos=pos, args=args)
            ph = "fail" if stale else self.random.choice(["ok", "ok", "ok", "info"])
            world.loop.at(world.soon(MS), lambda: self.record("commit", ph, **fields))

        self.send(at_broker)

    def seek(self, number: int, to: int) -> None:
        """Go elsewhere; what was fetched before is dropped."""
        self.fetching[number], self.busy[number] = self.world.number(), 0
        self.positions[number] = to
        self.done.pop(number, None)
        self.record("seek", self.random.choice(["", "ok"]), part=number, pos=to)
        self.send(lambda: self.world.exact("seek", **self.fields, part=number, pos=to))

    def kill(self) -> None:
        """The member is no more, without a word; the log notices later, and another one may come."""
        world = self.world
        self.gone = self.killed = True

        def noticed() -> None:
            self.left = True
            world.exact("conn_drop", conn=self.name)
            world.groups[self.group].remove(self)
            if world.loop.now < world.meaning.until:
                world.join(self.group)
            else:
                world.rebalance(self.group)

        world.loop.at(world.soon(world.meaning.notices), noticed)

    def leave(self) -> None:
        """End in order."""
        self.gone = True
        self.record("cancel", "ok")
        for number in self.positions:
            self.fetching[number] = self.world.number()
        self.left = True
        self.record("conn_close", "ok", ctag=None, q=None)
        self.world.exact("conn_close", conn=self.name)
        self.world.groups[self.group].remove(self)
        self.world.rebalance(self.group)


class DrawnLog:
    """A log with its clients."""

    def __init__(self, meaning: LogMeaning) -> None:
        self.meaning = meaning
        self.random = random.Random(f"play {meaning.seed}")
        self.loop = VirtualTime()
        self.recorder = DrawnRecorder(self.loop, meaning)
        self.parts = [DrawnPartition(n) for n in range(meaning.parts)]
        self.groups: dict[str, list[DrawnMember]] = {f"g{n}": [] for n in range(meaning.readers)}
        self._n = 0
        args = {"cleanup.policy": "compact"} if meaning.compacts else None
        self.recorder.add("declare", "" if meaning.lvl == "broker" else "ok", q="log", args=args)
        for group in self.groups:
            for _ in range(meaning.members):
                self.loop.at(self.soon(20 * MS), lambda group=group: self.join(group))  # type: ignore[misc]
        for n in range(meaning.publishers):
            self._publish(f"p{n}", 0)
        for _ in range(4):
            self.loop.at(self.soon(meaning.until), self._change)

    def number(self) -> int:
        """Another number."""
        self._n += 1
        return self._n

    def soon(self, most: int = 2 * MS) -> int:
        """Some instant soon."""
        return self.loop.now + self.random.randrange(most)

    def exact(self, ev: str, **fields: Any) -> None:
        """LogRecord inside the log, if that is where the recorder is."""
        if self.meaning.lvl == "broker":
            self.recorder.add(ev, **fields)

    def readable(self, partition: DrawnPartition, by: DrawnMember, start: int) -> list[LogRecord]:
        """What a member that reads on at a position may be given, in order."""
        return [r for r in partition.records if r.pos >= start]

    def store(self, partition: DrawnPartition, group: str, to: int) -> None:
        """A commit takes effect: the latest counts, higher or lower."""
        partition.committed[group] = to

    def join(self, group: str) -> None:
        """Another member."""
        self.groups[group].append(DrawnMember(self, group, f"{group}.{self.number()}"))
        self.rebalance(group)

    def rebalance(self, group: str) -> None:
        """Partitions get their owners; those learn it later, and those before them too."""
        members = self.groups[group]
        for partition in self.parts:
            partition.owners.pop(group, None)
            if members:
                partition.owners[group] = self.random.choice(members)
        for member in members:
            own = {p.number for p in self.parts if p.owners[group] is member}
            self.loop.at(
                self.soon(self.meaning.notices),
                lambda m=member, own=own: self._assigned(m, own),  # type: ignore[misc]
            )

    def _assigned(self, member: DrawnMember, own: set[int]) -> None:
        if own == {p.number for p in self.parts if p.owners.get(member.group) is member}:
            member.assign(own)  # otherwise another assignment is on its way

    def _change(self) -> None:
        group = self.random.choice(list(self.groups))
        members = self.groups[group]
        if len(members) > 1 and self.random.random() < 0.5:
            staying = [m for m in members if not m.gone]
            if staying:
                self.random.choice(staying).leave()
        else:
            self.join(group)

    def _publish(self, name: str, n: int) -> None:
        if n == self.meaning.messages or self.loop.now > self.meaning.until:
            return
        number = self.random.randrange(self.meaning.parts)
        m, op = f"{name}-{n}", self.number()
        fields: dict[str, Any] = {"pub": name, "pseq": n} if self.meaning.headers else {}
        said = {"m": m, "q": "log", "part": number, "conn": name, "op": op, **fields}
        if self.meaning.lvl != "broker":
            self.recorder.add("publish", "invoke", rec=name, **said)
        ph = self.random.choices(["ok", "info"], [9, 1])[0]
        lost = ph == "info" and self.random.random() < 0.5

        def at_broker() -> None:
            pos = None if lost else self.append(number, m, fields)
            content = {"pos": pos} if ph == "ok" else {}

            def answered() -> None:
                if self.meaning.lvl != "broker":
                    self.recorder.add("publish", ph, rec=name, **said, **content)
                self._publish(name, n + 1)

            self.loop.at(self.soon(), answered)

        self.loop.at(self.soon(3 * MS), at_broker)

    def append(self, number: int, m: str, fields: dict[str, Any]) -> int:
        """A message gets its position."""
        partition = self.parts[number]
        if self.meaning.holes and self.random.random() < 0.2:
            partition.end += 1
        pos = partition.end
        partition.end += 1
        partition.records.append(LogRecord(pos, m, fields))
        self.exact("publish", m=m, q="log", part=number, pos=pos, **fields)
        if self.meaning.compacts and self.random.random() < 0.3:
            partition.records.pop(self.random.randrange(len(partition.records)))
        return pos

    def events(self) -> list[Event]:
        """The history, as it is recorded."""
        self.loop.run()
        return self.recorder.events()
