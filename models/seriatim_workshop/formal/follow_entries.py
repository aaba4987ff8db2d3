"""Which step of `spec/induction/entries.py` each operation on an entry, a pointer, a group or the depth is."""

from __future__ import annotations

from typing import Any

from seriatim.message import sub_queue
from seriatim_workshop.formal.concrete import NotThat
from seriatim_workshop.formal.follower import (
    Follower,
    Node,
    Participants,
    linking,
    queue_of,
    value,
)
from seriatim_workshop.formal.recorder import HostOperation
from seriatim_workshop.formal.source import Value

RANK = 1000
"""Places of one sub-queue; the head of each is a multiple. A follower refuses to count further."""

RETURNS = ("enqueue", "release", "dequeue", "check_status", "close", "attempt")
"""The calls at whose end their thread owes nobody a rewind."""


class Entries(Follower):
    """Holds the entries of one queue, and the pointers of its consumers, against `entries`."""

    system = "entries"
    fields = {  # noqa: RUF012  # see `Follower.fields`
        "status": ("QueueEntry.state", "_status"),
        "owner": ("the consumer that the ACQUIRED in QueueEntry.state names", "_owner"),
        "place": ("QueueEntry.place()", "_place"),
        "pointer": ("the place of Consumer.pointer", "_pointer_place"),
        "past": ("Consumer.pointer.passed", "_pointer_past"),
        "mark": ("Consumer.pointer, the identity of the object", "_pointer_mark"),
        "group_owner": ("the owner in Queue.groups", "_group_owner"),
        "owned": ("whether Queue.groups has the group", "_group_owned"),
    }

    def __init__(self, context: Participants, queue: str) -> None:
        super().__init__(context)
        self.queue = queue
        self._entries: dict[str, Node] = {}
        self._consumers: dict[str, Node] = {}
        self._marks: dict[int, tuple[Node, str]] = {}
        self._depth: Node = None
        self._levels = 1
        self._groups: Node = None
        self._anonymous: dict[str, int] = {}
        """By thread: how often it has raised the depth outside of `enqueue` without having linked yet."""
        self._freeing: dict[str, set[str]] = {}
        """By thread: the groups that it has set free in its present call."""
        self._has_read: dict[str, int] = {}
        """By thread: the latest time that it has read."""
        self._looked: set[str] = set()
        """Threads that have looked in the attempt that they make."""
        self._before_look: dict[str, dict[tuple[str, ...], Value]] = {}
        """By thread: what it knew when it read a pointer object anew that it had read already."""

    # ---- what a field is in the reference

    def _status(self, m: str) -> str | None:
        if m not in self._entries:
            return None
        state = value(self._entries[m].state)
        again = state.name == "AVAILABLE" and state is not self.lib.AVAILABLE
        return "RETURNED" if again else str(state.name)

    def _owner(self, m: str) -> str | None:
        state = value(self._entries[m].state)
        return next(
            (name for name, c in self._consumers.items() if c.acquired is state),
            None,
        )

    def _place(self, m: str) -> int | None:
        return place(self._entries[m]) if m in self._entries else None

    def _pointer_place(self, c: str) -> int:
        return place(value(self._consumers[c].pointer).entry)

    def _pointer_past(self, c: str) -> bool:
        return bool(value(self._consumers[c].pointer).passed)

    def _pointer_mark(self, c: str) -> str:
        return self._mark(value(self._consumers[c].pointer))

    def _group_owner(self, g: str) -> str | None:
        owned = value(self._groups).get(g)
        return None if owned is None else self.context.consumer(owned[0])

    def _group_owned(self, g: str) -> bool:
        return g in value(self._groups)

    def _mark(self, pointer: Node) -> str:
        known = self._marks.get(id(pointer))
        if known is None:
            known = self._marks[id(pointer)] = (pointer, f"k{len(self._marks)}")
            self.member("Mark", known[1])
        return known[1]

    # ---- from the reference's operations to the specification's steps

    def step(self, event: HostOperation) -> str:
        t = event.thread
        if event.what == "record":
            return self._record(event)
        if event.what == "now":
            return self._now(t, event.new)
        owner = event.owner
        kind = event.kind
        if kind == "depth" and event.cell == f"{self.queue}.depth":
            return self._count(event)
        if kind == "groups" and event.cell == f"{self.queue}.groups":
            return self._group(event)
        if isinstance(owner, self.lib.Consumer):
            mine = owner.queue.name == self.queue
            return self._pointer(event) if kind == "pointer" and mine else ""
        if isinstance(owner, self.lib.Node) and queue_of(owner.list_name) == self.queue:
            if kind == "state":
                return self._entry(event)
            if kind == "next":
                return self._next(event)
            if kind == "marked" and owner.list_name.endswith(".All"):
                return self._leaves(event)
        return ""

    def _record(self, event: HostOperation) -> str:
        t, fields = event.thread, event.new
        if event.cell == "queue" and fields["q"] == self.queue:
            self._levels = int(fields["levels"])
            self.state.put("overtaking", fields["levels"] > 1)
        if event.cell == "clock":
            self._time(int(fields["now"]))
        if event.cell == "attempt":
            self._attempt(t, fields)
        if event.cell == "check_status" and len(self.context.queues) == 1:  # it names no queue
            if fields["ph"] == "invoke":
                self.take("begin_to_keep", t=t)
            elif fields["ph"] == "ok":
                self.take("end_to_keep", t=t)
        begins = event.cell == "walk" and fields["at"] == "begin"
        if (begins or event.cell == "notify") and t in self.context.about:
            self.take("announce", t=t, e=self.context.about[t])
        if event.cell in RETURNS and fields.get("ph") == "ok":
            self.context.about.pop(t, None)
            self._freeing.pop(t, None)
            self.take("settle", t=t)
            if event.cell == "enqueue":
                self._enqueued(str(fields["m"]))
            if event.cell == "close":
                self._let_go(str(fields["sub"]))
        return ""

    def _attempt(self, t: str, given: dict[str, Any]) -> None:
        """An attempt begins, or returns: if it took nothing it has come to the end, or has found something."""
        if given["ph"] == "ok" and not given["m"] and t in self._looked:
            self.take("come_back_with_nothing", t=t, c=self._named(str(given["sub"])))
        self._looked.discard(t)

    def _named(self, name: str) -> str:
        """The latest consumer of this name."""
        return next(c for c, each in reversed(self._consumers.items()) if each.name == name)

    def _enqueued(self, m: str) -> None:
        """An enqueue returns: what it has counted is linked, and of an immediate entry it has decided."""
        if self.state.get("counted", m) and m not in self._entries:
            raise NotThat(f"the enqueue of {m} returns, and has not linked it")
        if self.state.get("immediate", m) and not self.state.get("given_up", m):
            raise NotThat(
                f"the enqueue of {m} returns, and has not decided whether it was delivered"
            )

    def check_end(self) -> None:
        """Raises `NotThat` if a call that failed has left undone what one that returns must have done."""
        for t, calls in self.context.calls.items():
            for call, given in calls:
                if call == "close":
                    self._let_go(str(given["sub"]))
                if call in RETURNS:
                    self.take("settle", t=t)
        super().check_end()

    def _let_go(self, name: str) -> None:
        found = [c for c, each in self._consumers.items() if each.name == name]
        if found:
            self.take("let_go", c=found[-1])

    def _now(self, t: str, now: int) -> str:
        self._time(now)
        self._has_read[t] = now
        self._pass_by(t)
        return ""

    def _time(self, now: int) -> None:
        for m, entry in self._entries.items():
            if entry.message.expires and now > entry.message.expires:
                self.takes("grow_old", e=m)
            if entry.message.not_before <= now:
                self.takes("come_due", e=m)

    def _count(self, event: HostOperation) -> str:
        if event.what == "new":
            self._depth = event.source
        if not event.writes:
            return ""
        if event.by not in (1, -1):
            raise NotThat("the depth is raised by one, or lowered by one")
        change = self._count_up if event.by > 0 else self._uncount
        taken = change(event.thread)
        counts = sum(int(v) for _, v in self.function("counted"))
        counts -= sum(int(v) for _, v in self.function("uncounted"))
        if counts + sum(self._anonymous.values()) != value(self._depth):
            raise NotThat(
                f"{counts} entries count in the specification, and {value(self._depth)} in Queue.depth"
            )
        return taken

    def _count_up(self, t: str) -> str:
        call = self.context.call(t, "enqueue")
        m = None if call is None else str(call["m"])
        if m is None or m in self._entries:
            self._anonymous[t] = self._anonymous.get(t, 0) + 1
            return "count"
        self._new_entry(m)
        return self.take("count", e=m)

    def _uncount(self, t: str) -> str:
        mine = [m for m in self._entries if self.state.get("disposing", t, m)]
        if not mine:
            raise NotThat(f"{t} made no entry DEQUEUED that still counts")
        return self.take("uncount", t=t, e=mine[0])

    def _new_entry(self, m: str) -> None:
        """An entry that nobody has named yet: to looks that are under way it was not there when they began."""
        if self.member("Entry", m):
            for t in self.members("Thread"):
                self.state.put("vain", t, m, True)

    # ---- links and reads of links

    def _next(self, event: HostOperation) -> str:
        node, t = event.new, event.thread
        if linking(event):
            if isinstance(node, self.lib.QueueEntry):
                return self._link(t, node)
            if isinstance(node, self.lib.ListEntry) and node.list_name == f"{self.queue}.All":
                return self._register(node.consumer)
        elif event.what == "get" and self.state.get("looking", t):
            if isinstance(node, self.lib.QueueEntry):
                self._go_on(t, node)
            elif node is None and not isinstance(event.owner, self.lib.ListEntry):
                self._fall_through(t, event.owner)
        return ""

    def _link(self, t: str, node: Node) -> str:
        m, message = node.message.id, node.message
        self._new_entry(m)
        self._entries[m] = node
        for name, c in self._consumers.items():
            self.state.put("wants", name, m, wants(c, node))
        self.state.put("immediate", m, message.immediate)
        self.state.put("mortal", m, message.expires != 0)
        if message.group:
            self.member("Group", message.group)
            self.state.put("grouped", m, True)
            self.state.put("group", m, message.group)
        if self.state.get("counted", m) == 0:
            if not self._anonymous.get(t):
                raise NotThat(f"{m} is linked, and has not been added to the depth")
            self._anonymous[t] -= 1
            self.take("count", e=m)
        if self._status(m) == "DELAYED":
            return self.take("hold", e=m, p=place(node))
        levels = self._levels
        if node.rank != levels - 1 - sub_queue(message.priority, levels):
            raise NotThat(
                f"{m} has priority {message.priority}, and comes into sub-queue {node.rank}"
            )
        overtaking = self.state.get("overtaking")
        if overtaking:
            self.context.about[t] = m
        return self.take("insert" if overtaking else "append", t=t, e=m, p=place(node))

    def _register(self, consumer: Node) -> str:
        name = self.context.consumer(consumer)
        self.member("Consumer", name)
        for m, e in self._entries.items():
            self.state.put("wants", name, m, wants(consumer, e))
        self.state.put("acquires", name, consumer.acquires)
        self._consumers[name] = consumer
        return self.take("register", c=name, k=self._mark(value(consumer.pointer)))

    def _leaves(self, event: HostOperation) -> str:
        name = self.context.consumer(event.owner.consumer)
        if not event.writes or name not in self._consumers:
            return ""
        return self.take("unregister", c=name)

    def _standing_at(self, t: str) -> str | None:
        cursor = self.state.get("cursor", t)
        if not self.state.get("looking", t):
            return None
        return next((m for m in self._entries if self.state.get("place", m) == cursor), None)

    def _pass_by(self, t: str) -> None:
        """Something that a look depends on was read: what stands there is of use at this moment, or it is not."""
        here = self._standing_at(t)
        if here is None:
            return
        finds = not self.state.get("found", t) and self.takes("find", t=t, e=here)
        if not finds and not self.state.get("passed", t):
            self.takes("pass_by", t=t, e=here)

    def _go_on(self, t: str, node: Node) -> None:
        self._pass_by(t)
        self.takes("go_on", t=t, n=node.message.id)

    def _fall_through(self, t: str, node: Node) -> None:
        """The end of a sub-queue was read: what comes next is the head of the one below."""
        self._pass_by(t)
        self.takes("fall_through", t=t, q=(node.rank + 1) * RANK)

    # ---- states

    def _entry(self, event: HostOperation) -> str:
        m, t = event.owner.message.id, event.thread
        if event.what == "get":
            self._read(t, m)
        if event.what in ("get", "new"):
            return ""
        if m not in self._entries:
            raise NotThat(f"{m} is not linked yet")
        if event.what != "cas":
            raise NotThat(f"no step writes the state of {m} without a compare-and-set")
        if not event.ok:
            self._failed(event, m)
            return ""
        self.touched("status", m)
        if event.new.name == "ACQUIRED":
            self.touched("owner", m)
        return self._changes(event, m, event.old.name, event.new.name)

    def _changes(self, event: HostOperation, m: str, old: str, new: str) -> str:
        t, caller = event.thread, self.context.caller
        if new == "ACQUIRED":
            return self.take("acquire", t=t, e=m, c=caller(t, "attempt"))
        if old == "ACQUIRED" and new == "AVAILABLE":
            self.context.about[t] = m
            return self.take("release", t=t, e=m, c=self._settles(t, "release", m))
        if old == "ACQUIRED":
            return self.take("finish", t=t, e=m, c=self._settles(t, "dequeue", m))
        if old == "DELAYED":
            self.context.about[t] = m
            self._sees_due(t, m)
            return self.take("unhold", t=t, e=m)
        if new == "DELETED":
            return self.take("bury", e=m)
        published = self.context.call(t, "enqueue")
        gives_up = published is not None and published["m"] == m
        return self.take("give_up" if gives_up else "expire", t=t, e=m)

    def _sees_due(self, t: str, m: str) -> None:
        """What the thread has read of the clock says that a delay is over: also if the entry came after that."""
        if self._entries[m].message.not_before <= self._has_read.get(t, 0):
            self._time(self._has_read[t])
            self.take("read_the_clock", t=t, e=m)

    def _settles(self, t: str, kind: str, m: str) -> str:
        """For which consumer the thread releases or dequeues this entry, by the call that it is in."""
        call = self.context.call(t, kind)
        if call is None or call["m"] != m:
            raise NotThat(f"{t} has not called {kind} for {m}")
        return self.context.caller(t, kind)

    def _read(self, t: str, m: str) -> None:
        """The state of an entry was read: it may be found, or passed, or no rewind be owed for it any more."""
        if self._standing_at(t) == m:
            self._pass_by(t)
        self._is_decided(t, m)
        if self._freeing.get(t):
            if any(self.state.get("owes", t, m, c) for c in self._consumers):
                self.takes("forgive", t=t, e=m)
            there = self.state.get("status", m) in ("AVAILABLE", "RETURNED")
            if there and self.state.get("group", m) in self._freeing[t]:
                self.context.about[t] = m

    def _failed(self, event: HostOperation, m: str) -> None:
        if event.old is self.lib.AVAILABLE and event.new is self.lib.DEQUEUED:
            self._is_decided(event.thread, m)

    def _is_decided(self, t: str, m: str) -> None:
        """The publisher of an immediate entry sees that it is not as it was born, if it is not: it was delivered."""
        call = self.context.call(t, "enqueue", "check_status")
        if call is not None and call.get("m") == m:
            self.takes("leave_it", e=m)

    # ---- groups

    def _group(self, event: HostOperation) -> str:
        t = event.thread
        if event.what == "new":
            self._groups = event.source
        elif event.what == "get":
            self._pass_by(t)
        if not event.writes:
            return ""
        if event.what != "cas":
            raise NotThat("no step writes the groups without a compare-and-set")
        changed = [g for g in {**event.old, **event.new} if event.old.get(g) != event.new.get(g)]
        if len(changed) != 1:
            raise NotThat(f"one group changes at a time, not {len(changed)}")
        g = changed[0]
        taken = self._group_changes(t, g, _held(event.new, g) - _held(event.old, g))
        self.touched("owned", g)
        if self.state.get("owned", g):
            self.touched("group_owner", g)
        counting = self._counting(g)
        if counting != _held(event.new, g):
            raise NotThat(
                f"{counting} entries count in {g} in the specification, and {_held(event.new, g)} in Queue.groups"
            )
        return taken

    def _group_changes(self, t: str, g: str, by: int) -> str:
        if by == 1:
            here = self._standing_at(t)
            if here is None:
                raise NotThat(f"{t} joins {g} for no entry that it has found")
            return self.take("join", t=t, e=here, c=self.context.caller(t, "attempt"))
        mine = [
            m
            for m in self._entries
            if self.state.get("joined", t, m) and self.state.get("group", m) == g
        ]
        if by != -1 or not mine:
            raise NotThat(f"{t} has nothing in {g} that it could take away")
        if self.takes("part", t=t, e=mine[0]):
            return "part"
        self._freeing.setdefault(t, set()).add(g)
        return self.take("set_free", t=t, e=mine[0])

    def _counting(self, g: str) -> int:
        """How many entries count in a group: those that are acquired, and those about to be, or just left."""
        acquired = sum(
            self.state.get("status", m) == "ACQUIRED"
            for m in self._entries
            if self.state.get("group", m) == g
        )
        joined = sum(
            bool(v) for (_, m), v in self.function("joined") if self.state.get("group", m) == g
        )
        return acquired + joined

    # ---- pointers

    def _pointer(self, event: HostOperation) -> str:
        name = self.context.consumer(event.owner)
        if name not in self._consumers or event.what == "new":
            return ""
        t = event.thread
        if event.what == "get":
            self._look(t, name)
        if not event.writes:
            return ""
        for each in ("pointer", "past", "mark"):
            self.touched(each, name)
        if event.what != "cas":
            raise NotThat(f"no step writes the pointer of {name} without a compare-and-set")
        mark = self._mark(event.new)
        finds = event.new.passed and self.state.get("found", t)
        if event.new.cause != "rewind" and not finds:
            self._as_before(t)
        if event.new.passed:
            here = self._standing_at(t)
            if here is None:
                raise NotThat(f"{t} has found nothing that {name} could be shown")
            return self.take("show", t=t, e=here, c=name, k=mark)
        if event.new.cause == "rewind":
            return self.take("rewind", t=t, e=self._rewound(t, name, event), c=name, k=mark)
        return self.take("advance", t=t, k=mark)

    def _look(self, t: str, c: str) -> None:
        """A pointer was read. If it is the object that the thread has, it may be to go on, or to begin anew."""
        get = self.state.get
        same = get("looking", t) and get("whose", t) == c and get("mark_seen", t) == get("mark", c)
        self._before_look.pop(t, None)
        if same:
            knew: dict[tuple[str, ...], Value] = {(name, t): get(name, t) for name in LOOK}
            for m in self._entries:
                knew["vain", t, m] = get("vain", t, m)
            self._before_look[t] = knew
        self.take("look", t=t, c=c)
        call = self.context.call(t, "attempt")
        if call is not None and call["sub"] == self._consumers[c].name:
            self._looked.add(t)

    def _as_before(self, t: str) -> None:
        """The pointer is moved on from where no look began: the thread read it anew to go on with the earlier look."""
        knew = self._before_look.pop(t, None)
        if knew is not None and self.state.get("cursor", t) == self.state.get("place_seen", t):
            for (name, *at), known in knew.items():
                self.state.put(name, *at, known)

    def _rewound(self, t: str, c: str, event: HostOperation) -> str:
        """For which entry a thread rewinds a consumer: one for which it owes that, rather the one that it is about."""
        back, old = event.new.entry, event.old.entry
        meant = [
            m
            for m, e in self._entries.items()
            if (e is back if back is not old else place(e) >= place(old))
        ]
        if not meant:
            raise NotThat(f"{t} rewinds {c} to {back}, and no entry is there")
        owed = [m for m in meant if self.state.get("owes", t, m, c)]
        about = self.context.about.get(t)
        chosen = min(owed or meant, key=lambda m: (m != about, place(self._entries[m])))
        if owed:
            self.context.about[t] = chosen
        return chosen


LOOK = ("looking", "whose", "mark_seen", "place_seen", "cursor", "passed", "found")
"""What a thread knows of a look, with `vain` of each entry: all that `look` changes, and nobody else reads."""


def _held(groups: Any, g: str) -> int:
    return int(groups[g][1]) if g in groups else 0


def wants(consumer: Node, entry: Node) -> bool:
    """Whether a consumer's selector matches an entry, read from what was asked for and not by its own code."""
    return consumer.keys is None or entry.message.key in consumer.keys


def place(node: Node) -> int:
    """The place as one number: rank before order. Raises `ValueError` for a number that leaves no room."""
    if node.id >= RANK:
        raise ValueError(f"a follower counts {RANK} entries of one priority, no more")
    return int(node.rank * RANK + node.id)
