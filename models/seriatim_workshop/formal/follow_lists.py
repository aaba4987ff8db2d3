"""Which step of `nodes`, `lists` and `consumers` each operation on a list, a lock, a flag or credit is."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from seriatim_workshop.formal.concrete import NotThat
from seriatim_workshop.formal.follower import (
    CALLS,
    Follower,
    Node,
    Participants,
    linking,
    queue_of,
    value,
)
from seriatim_workshop.formal.recorder import HostOperation


class Nodes(Follower):
    """Holds every list of an execution against `nodes`."""

    system = "nodes"
    fields = {  # noqa: RUF012  # see `Follower.fields`
        "number": ("Node.id", "_number"),
        "last": ("whether Node.next is None", "_last"),
        "next": ("Node.next", "_next_of"),
        "marked": ("ListEntry.marked, or whether QueueEntry.state is DEQUEUED or later", "_marked"),
        "tail": ("NodeList._tail", "_tail_of"),
    }

    def __init__(self, context: Participants) -> None:
        super().__init__(context)
        self._nodes: dict[str, Node] = {}
        self._names: dict[int, str] = {}
        self._tails: dict[str, Any] = {}
        self._promised: dict[tuple[str, str], list[str]] = defaultdict(list)
        """By thread and list: nodes that have been counted and not been linked."""
        self._to_uncount: dict[tuple[str, str], list[str]] = defaultdict(list)
        """By thread and list: nodes that it has marked and not taken away from the size."""
        self._sizes: dict[str, int] = defaultdict(int)
        self._heads: dict[str, str] = {}
        """By what a list is called in the reference: its head here."""
        self._shown: dict[str, str] = {}
        """By how a node is shown in a record: its name here."""
        self._walks: dict[tuple[str, str], list[str]] = defaultdict(list)
        """By thread and list: the walks that it has begun and not ended, the innermost last."""
        self._begun: dict[str, int] = defaultdict(int)
        """By list: how many walks over it have begun."""
        self._iterations: dict[int, tuple[object, str, tuple[str, str]]] = {}
        """By what one that was noted from outside is known by, which is kept alive: the walk, its thread and list."""
        self._of_all: dict[int, tuple[object, list[tuple[tuple[str, str], str]]]] = {}
        """The same of one over all sub-queues: a walk over each."""

    # ---- what a field is in the reference

    def _number(self, n: str) -> int | None:
        return int(self._nodes[n].id) if n in self._nodes else None

    def _last(self, n: str) -> bool | None:
        return value(self._nodes[n].next) is None if n in self._nodes else None

    def _next_of(self, n: str) -> str | None:
        node = value(self._nodes[n].next)
        return None if node is None else self._names.get(id(node), "a node that is not linked")

    def _marked(self, n: str) -> bool:
        node = self._nodes[n]
        if isinstance(node, self.lib.QueueEntry):
            return value(node.state).name in DELETED
        return bool(value(node.marked))

    def _tail_of(self, k: str) -> str | None:
        return self._names.get(id(value(self._tails[k])))

    # ---- steps

    def step(self, event: HostOperation) -> str:
        kind = event.kind
        if event.what == "iterate":
            return self._iterate(event)
        if kind == "next":
            return self._next(event)
        if kind == "tail":
            return self._tail(event)
        if event.cell == "walk":
            return self._walk(event.thread, **event.new)
        if kind == "marked" and event.what == "get":
            self._seen(event, event.new)
        elif kind == "state" and event.what == "get":
            self._seen(event, event.new.name in DELETED)
        if kind == "size" and isinstance(event.owner, self.lib.ConsumerList):
            return self._size(event)
        gone = kind == "state" and event.writes and event.new.name == "DEQUEUED"
        if gone or (kind == "marked" and event.writes):
            name = self._names.get(id(event.owner))
            if name is None:
                raise NotThat(f"{event.owner} is deleted, and is in no list")
            key = (event.thread, str(self.state.get("of", name)))
            self._to_uncount[key].append(name)
            return self.take("mark", n=name)
        return ""

    def _new(self, k: str) -> str:
        name = f"{k}#{len(self.members('Node'))}"
        self.member("Node", name)
        self.member("List", k)
        self.state.put("of", name, k)
        self.state.put("last", name, True)
        return name

    def _head(self, node: Node) -> str:
        """The name of a node that is in no list: the head of its own."""
        name = self._names.get(id(node))
        if name is None:
            k = self.context.name(node, node.list_name)  # two lists may be called the same
            name = self._names[id(node)] = self._new(k)
            self._nodes[name] = node
            self._heads[node.list_name] = name
            for rigid in ("is_head", "linked"):
                self.state.put(rigid, name, True)
            self.state.put("tail", k, name)
        return name

    def _next(self, event: HostOperation) -> str:
        node, t = event.owner, event.thread
        if event.what == "new":
            if type(node) is self.lib.Node:
                self._head(node)
            return ""
        name = self._names.get(id(node))
        if event.what == "get":
            if event.new is not None and name is not None:
                self.take("follow", t=t, x=name)
            if name is not None:
                for w in self._walks.get((t, str(self.state.get("of", name))), ()):
                    self.takes("read_the_end" if event.new is None else "read_on", w=w, x=name)
            return ""
        if not event.writes:
            return ""
        if name is None:
            raise NotThat(f"something is linked behind {node}, which is in no list")
        self.touched("next", name)
        self.touched("last", name)
        if event.what != "cas":
            raise NotThat(f"no step writes what comes behind {node} without a compare-and-set")
        if not linking(event):
            return self.take("unlink", t=t, x=name)
        return self._link(t, event.new, name)

    def _link(self, t: str, node: Node, behind: str) -> str:
        k = str(self.state.get("of", behind))
        promised = self._promised[t, k]
        name = promised.pop(0) if promised else self._new(k)
        self._names[id(node)] = name
        self._nodes[name] = node
        self._shown[str(node)] = name
        return self.take("link", n=name, x=behind)

    # ---- walks

    def _seen(self, event: HostOperation, deleted: bool) -> None:
        """A thread looks whether a node is deleted: each of its walks that comes to it knows that."""
        n = self._names.get(id(event.owner))
        if n is not None:
            for w in self._walks.get((event.thread, str(self.state.get("of", n))), ()):
                self.takes("see_marked" if deleted else "see_live", w=w, n=n)

    def _iterate(self, event: HostOperation) -> str:
        """What an iteration does that was noted from outside: it is known by itself, and says when it is given up."""
        at, t, known_by = event.old, event.thread, event.source
        if isinstance(event.owner, self.lib.PriorityQueueEntryList):
            return self._iterate_all(event)
        if at == "begin":
            head = self._names[id(event.owner.head)]
            walk, w = self._begin_walk(t, head)
            self._iterations[id(known_by)] = (known_by, w, walk)
            return "begin_walk"
        _, w, walk = self._iterations[id(known_by)]
        if at == "node":
            n = self._names.get(id(event.new))
            if n is None:
                raise NotThat(f"{t} comes to {event.new}, which is in no list")
            return self.take("hand_out", w=w, n=n)
        self._walks[walk].remove(w)
        return self.take("end_walk", w=w) if at == "end" else ""

    def _iterate_all(self, event: HostOperation) -> str:
        """An iteration over all sub-queues is a walk over each, and ends when each has come to its end."""
        at, t, known_by = event.old, event.thread, event.source
        if at == "begin":
            of = event.cell.rpartition(".")[0]
            heads = [head for name, head in self._heads.items() if is_sub_queue(name, of)]
            walks = [self._begin_walk(t, head) for head in heads]
            self._of_all[id(known_by)] = (known_by, walks)
            return "begin_walk"
        _, walks = self._of_all[id(known_by)]
        if at == "node":
            n = self._names[id(event.new)]
            k = self.state.get("of", n)
            return self.take("hand_out", w=next(w for (_, of), w in walks if of == k), n=n)
        for walk, w in walks:
            self._walks[walk].remove(w)
            if at == "end":
                self.take("end_walk", w=w)
        return "end_walk" if at == "end" else ""

    def _begin_walk(self, t: str, head: str) -> tuple[tuple[str, str], str]:
        """A walk over the list that has this head is begun: returns its thread and list, and what it is called."""
        k = str(self.state.get("of", head))
        self._begun[k] += 1
        w = f"walk {self._begun[k]} of {k}"
        self.member("Walk", w)
        walk = t, k
        self._walks[walk].append(w)
        self.take("begin_walk", w=w, t=t, h=head)
        return walk, w

    def _walk(self, t: str, list: str, at: str, node: str = "") -> str:
        """A walk begins, returns a node or ends. One that was given up says nothing: another goes on in its place."""
        head = self._heads[list]
        if at == "begin":
            self._begin_walk(t, head)
            return "begin_walk"
        walks = self._walks[t, str(self.state.get("of", head))]
        action = "hand_out" if at == "node" else "end_walk"
        given = {"n": self._shown[node]} if at == "node" else {}
        if not walks:
            raise NotThat(f"{t} walks over {list}, and has not begun to")
        while len(walks) > 1 and not self.state.allows(action, w=walks[-1], **given):
            if not any(self.state.allows(action, w=w, **given) for w in walks[:-1]):
                break
            walks.pop()
        w = walks[-1] if at == "node" else walks.pop()
        return self.take(action, w=w, **given)

    def _tail(self, event: HostOperation) -> str:
        if event.what == "new":
            k = str(self.state.get("of", self._head(event.new)))
            self._tails[k] = event.source
            return ""
        if not event.writes:
            return ""
        if event.what != "cas":
            raise NotThat("no step writes a tail without a compare-and-set")
        x = self._names[id(event.old)]
        self.touched("tail", self.state.get("of", x))
        return self.take("swing", x=x)

    def _size(self, event: HostOperation) -> str:
        k, t = str(self.state.get("of", self._head(event.owner.head))), event.thread
        if event.what == "new":
            self.state.put("sized", k, True)
        if event.what in ("get", "new"):
            return ""
        if event.by not in (1, -1):
            raise NotThat(f"the size of {k} is raised by one, or lowered by one")
        self._sizes[k] += event.by
        if self._sizes[k] != value(event.source):
            raise NotThat(
                f"{self._sizes[k]} count in {k} in the specification, and {value(event.source)} in its size"
            )
        if event.by > 0:
            name = self._new(k)
            self._promised[t, k].append(name)
            return self.take("count", n=name)
        mine = self._to_uncount[t, k]
        if not mine:
            raise NotThat(f"{t} lowers the size of {k}, and has deleted nothing from it")
        return self.take("uncount", n=mine.pop(0))


DELETED = ("DEQUEUED", "DELETED")
"""What the reference calls the states of an entry that is deleted."""


def is_sub_queue(name: str, queue: str) -> bool:
    """Whether a list of this name is one of those, by priority, of this queue: ``q.2`` is of ``q``."""
    of, _, rank = name.rpartition(".")
    return of == queue and rank.isdigit()


NAMES = {
    "Removed": "REMOVED",
    "NonAcquiring": "NON_ACQUIRING",
    "NotInterested": "NOT_INTERESTED",
    "Interested": "INTERESTED",
    "Notified": "NOTIFIED",
}
"""What the reference calls a list -> what the specification does."""


def kind_of_list(name: str) -> str:
    """What the specification calls a list of this name: ``q.Interested.0`` is INTERESTED, ``q.All`` is ALL."""
    parts = name.split(".")
    return NAMES.get(parts[1], "ALL") if len(parts) > 1 else ""


class Lists(Follower):
    """Holds the lists of the consumer managers of an execution against `lists`."""

    system = "lists"
    fields = {  # noqa: RUF012  # see `Follower.fields`
        "listed": ("Consumer.listed, once its move is done", "_listed"),
        "member": (
            "the list of the node that Consumer.in_list names, if it is not marked",
            "_member",
        ),
        "in_all": ("whether Consumer.in_all is linked and not marked", "_in_all"),
        "flag": ("Consumer.wants_work, until it closes", "_flag"),
        "there": ("whether QueueConsumerManager.by_priority has a list for it", "_there"),
    }

    def __init__(self, context: Participants) -> None:
        super().__init__(context)
        self._consumers: dict[str, Node] = {}
        self._linked: set[int] = set()
        self._moving: dict[str, tuple[str, str]] = {}
        """By thread: the consumer that it moves, and where to."""
        self._levels: dict[str, tuple[str, int]] = {}
        """By its name here: the queue and the priority that a list of the Interested is for."""
        self._by_priority: dict[str, Any] = {}
        """By queue: the cell that has those lists."""

    def _listed(self, c: str) -> str | None:
        consumer = self._consumers[c]
        if self.state.get("locked", c):
            return None  # its field changes a little before or after its membership does
        return NAMES[consumer.listed]

    def _member(self, c: str, kind: str) -> bool | None:
        if self.state.get("locked", c):
            return None
        node = self._consumers[c].in_list
        inside = node is not None and not value(node.marked) and id(node) in self._linked
        return inside and kind_of_list(node.list_name) == kind

    def _there(self, k: str) -> bool:
        queue, priority = self._levels[k]
        return any(p == priority for p, _ in value(self._by_priority[queue]))

    def _in_all(self, c: str) -> bool:
        return not value(self._consumers[c].in_all.marked)

    def _flag(self, c: str) -> bool | None:
        flag: bool | None = value(self._consumers[c].wants_work)
        return flag

    def step(self, event: HostOperation) -> str:
        t = event.thread
        kind = event.kind
        if event.what in ("acquire", "release"):
            return self._lock(event)
        if event.what == "record":
            if event.cell == "qcm_move":
                self._move(t, **event.new)
        elif kind == "Interested":
            return self._new_priority(event)
        elif kind == "wants_work" and event.writes:
            return self._wish(t, event)
        elif kind == "marked" and event.writes:
            return self._marked(event)
        elif linking(event) and isinstance(event.new, self.lib.ListEntry):
            return self._linked_in(t, event.new)
        return ""

    def _wish(self, t: str, event: HostOperation) -> str:
        c = self.context.consumer(event.owner)
        if c not in self._consumers:
            return ""
        self.touched("flag", c)
        if event.new is not None:
            if self.state.get("moves", t) != c or self.state.get("place", t) == "OUTSIDE":
                raise NotThat(f"{t} sets the flag of {c}, and has not its lock")
            return self.take("raise_the_flag" if event.new else "lower_the_flag", t=t, c=c)
        return "" if self.state.get("closed", c) else self.take("close", c=c)

    def _lock(self, event: HostOperation) -> str:
        known = self.context.lock(event.source)
        if known is None or known[0] != "moving" or not event.ok:
            return ""
        c = self.context.consumer(known[1])
        if c not in self._consumers:
            raise NotThat(f"{c} is moved, and is not in the list of all")
        if event.what == "acquire":
            return self.take("lock", t=event.thread, c=c)
        listed = self.state.get("listed", c)
        inside = self.state.get("place", event.thread) == "INSIDE"
        if inside and not self.state.allows("unlock", t=event.thread, c=c):
            raise NotThat(f"{event.thread} leaves {c} {listed}, and its flag says otherwise")
        for kind in NAMES.values():
            self.touched("member", c, kind)
        self.touched("listed", c)
        return self.take("unlock", t=event.thread, c=c)

    def _new_priority(self, event: HostOperation) -> str:
        """The lists of the Interested, by priority, are one more."""
        name = event.cell.removesuffix(".Interested")
        self._by_priority[name] = event.source
        if not event.writes:
            return ""
        old, new = event.old, event.new
        more = [pair for pair in new if pair not in old]
        if len(more) != 1 or [p for p in new if p not in more] != [*old]:
            raise NotThat("one list of the Interested comes at a time, and none goes")
        if [p[0] for p in new] != sorted((p[0] for p in new), reverse=True):
            raise NotThat("the lists of the Interested are not in the order of priority")
        return self.take("add_list", k=self._level(name, more[0][0]))

    def _level(self, queue: str, priority: int) -> str:
        level = f"{queue} {priority}"
        if self.member("Level", level):
            self._levels[level] = (queue, priority)
        return level

    def _move(self, t: str, sub: str, old: str, new: str, at: str) -> None:
        """To or from no list there is nothing to see but the record."""
        if at == "leave":
            c = str(self.state.get("moves", t))
            if c not in self._consumers or self._consumers[c].name != sub:
                raise NotThat(f"{t} moves {sub}, and has not its lock")
            self._moving[t] = (c, NAMES[new])
            if old == "Removed":
                self.take("leave", t=t, c=c, to=NAMES[new])
        elif new == "Removed":
            self.take("enter", t=t, c=self._moving[t][0])

    def _marked(self, event: HostOperation) -> str:
        node, t = event.owner, event.thread
        c = self.context.consumer(node.consumer)
        if c not in self._consumers or not kind_of_list(node.list_name):
            return ""
        if kind_of_list(node.list_name) == "ALL":
            return self.take("leave_all", c=c)
        if self._moving.get(t, ("", ""))[0] != c:
            raise NotThat(f"{t} takes {c} out of a list, and does not move it")
        return self.take("leave", t=t, c=c, to=self._moving[t][1])

    def _linked_in(self, t: str, node: Node) -> str:
        kind = kind_of_list(node.list_name)
        if not kind or node.consumer.queue.kind != "pull":
            return ""
        c = self.context.consumer(node.consumer)
        self._linked.add(id(node))
        if kind == "ALL":
            self.member("Consumer", c)
            self.state.put("acquires", c, node.consumer.acquires)
            queue = node.consumer.queue.name
            self.state.put("level", c, self._level(queue, node.consumer.priority))
            self._consumers[c] = node.consumer
            self.touched("flag", c)
            return self.take("join_all", c=c)
        if c not in self._consumers:
            raise NotThat(f"{c} comes into {node.list_name}, and is not in the list of all")
        if kind != self.state.get("listed", c):
            raise NotThat(
                f"{c} comes into {node.list_name}, and moves to {self.state.get('listed', c)}"
            )
        return self.take("enter", t=t, c=c)


class Consumers(Follower):
    """Holds the consumers of one queue, what they want and pay, against `consumers`."""

    system = "consumers"
    fields = {  # noqa: RUF012  # see `Follower.fields`
        "wish": ("Consumer.wants_work", "_wish"),
        "credit": ("Consumer.credit", "_credit"),
        "alone": ("whether Queue.exclusive is None", "_alone"),
        "the_only": ("Queue.exclusive", "_the_only"),
        "served_last": ("PushQueue._last_delivered", "_served_last"),
    }

    def __init__(self, context: Participants, queue: str) -> None:
        super().__init__(context)
        self.queue = queue
        self._consumers: dict[str, Node] = {}
        self._exclusive: Any = None
        self._last: Any = None
        self._unsettled: set[str] = set()
        """Threads whose attempt has failed, and which have to restore what they paid before anything else."""
        self._granting: dict[str, tuple[str, int]] = {}
        """By thread: the consumer that is granted credit, and how much has still to be added."""
        self._outbid: dict[str, str] = {}
        """By thread: the consumer for whose credit its compare-and-set has failed."""
        self._asking: defaultdict[str, set[str]] = defaultdict(set)
        """By thread: the consumers of which it said that they want messages or none, and has to see to it."""

    def _wish(self, c: str) -> str:
        return {True: "WORK", False: "NOTHING", None: "CLOSED"}[
            value(self._consumers[c].wants_work)
        ]

    def _credit(self, c: str) -> int | None:
        cell = self._consumers[c].credit
        return None if cell is None else int(value(cell))

    def _alone(self) -> bool:
        return value(self._exclusive) is not None

    def _the_only(self) -> str | None:
        only = value(self._exclusive)
        return None if only is None else self.context.consumer(only)

    def _served_last(self) -> str:
        return self.context.consumer(value(self._last).consumer)

    def step(self, event: HostOperation) -> str:
        t = event.thread
        self._sees_to_it(t)
        if t in self._unsettled and not event.cell.endswith("credit"):
            self.take("return_from_attempt", t=t)
        if not (event.what == "record" and event.cell == "credit"):
            self._unsettled.discard(t)
        if event.what in ("acquire", "release"):
            return self._lock(event)
        if event.what == "record":
            return self._record(event)
        owner, kind = event.owner, event.kind
        if kind == "exclusive" and event.cell == f"{self.queue}.exclusive":
            return self._only(event)
        if event.cell == f"{self.queue}.last_delivered" and event.writes:
            self._last = event.source
            return self.take("be_served_last", t=t, c=self._of(event.new.consumer))
        if isinstance(owner, self.lib.Consumer) and owner.queue.name == self.queue:
            return self._of_consumer(event, kind)
        if isinstance(owner, self.lib.QueueEntry) and queue_of(owner.list_name) == self.queue:
            if kind == "state" and event.writes and event.new.name == "ACQUIRED":
                return self._obtain(t, self.context.caller(t, "attempt"))
        elif isinstance(owner, self.lib.Node) and queue_of(owner.list_name) == self.queue:
            return self._all(event, kind)
        return ""

    def _record(self, event: HostOperation) -> str:
        t, given = event.thread, event.new
        if event.cell == "grant":
            self._grant(t, given["sub"], given["messages"])
        elif event.cell == "queue" and given["q"] == self.queue:
            self.state.put("pushed", given["kind"] == "push")
        elif event.cell == "attempt":
            self._attempt(t, given)
        elif event.cell == "pull" and given["ph"] == "invoke":
            self._begin_pull(t, given["sub"])
        elif event.cell in ("deliver", "browse"):
            self.take("return_from_attempt", t=t)
        elif event.cell == "send" and given["ph"] == "invoke":
            self._send(t, str(given["sub"]))
        elif event.cell == "work_desired" and given["ph"] == "invoke":
            c = self._named(given["sub"])
            if c is not None and not self._queue_asks(t):
                self._binds("ask_to_resume" if given["desired"] else "ask_to_pause", t, c)
        elif event.cell in CALLS and given.get("ph") == "ok":
            self._settle(event)
        return ""

    def _named(self, name: str) -> str | None:
        """The latest consumer of this name."""
        return next((c for c, x in reversed(self._consumers.items()) if x.name == name), None)

    def _queue_asks(self, t: str) -> bool:
        """Whether a pull asks for it and no client: its message is not being sent."""
        around = (ev for ev, _ in reversed(self.context.calls[t]) if ev in ("pull", "send"))
        return next(around, "") == "pull"

    def _grant(self, t: str, name: str, messages: int) -> None:
        c = self._named(name)
        if c is None:
            return
        if self.state.get("limited", c):
            self._granting[t] = (name, messages)
        else:
            self._binds("ask_to_resume", t, c)

    def _settle(self, event: HostOperation) -> None:
        """Whoever returns has said nothing that it has not seen to."""
        t = event.thread
        c = self._named(event.new["sub"]) if event.cell == "pull" else None
        if c is not None:
            self.take("end_pull", t=t, c=c)
        self.take("settle", t=t)

    def _begin_pull(self, t: str, name: str) -> None:
        c = self._named(name)
        if c is not None:
            self.take("begin_pull", t=t, c=c)

    def check_end(self) -> None:
        """Raises `NotThat` if anybody has still to see to what it said, or an invariant does not hold."""
        for t in self.members("Thread"):
            self.take("settle", t=t)
            for c in self._consumers:  # the record of a close ends before it leaves the list of all
                if self.state.get("wish", c) == "CLOSED":
                    self.take("end_close", t=t, c=c)
        for t, (name, messages) in self._granting.items():
            raise NotThat(f"{t} grants {name} {messages}, and does not add it to the credit")
        super().check_end()

    def _attempt(self, t: str, given: dict[str, Any]) -> None:
        """It begins, or has failed: it restores its credit only after its return, so the next call must find that."""
        c = self._outbid.get(t)
        if given["ph"] == "invoke" and c is not None and self._consumers[c].name == given["sub"]:
            self.take("try_again", t=t, c=c)
            del self._outbid[t]
        elif given["ph"] == "ok" and not given["m"] and self.state.get("paid", t):
            self._unsettled.add(t)

    def _bids(self, t: str) -> None:
        """Whoever was outbid need not bid again if there is none left at some moment of its call."""
        c = self._outbid[t]
        if self.takes("give_up_bidding", t=t, c=c) or not self.state.get("outbid", t, c):
            del self._outbid[t]

    def _send(self, t: str, name: str) -> None:
        c = self._named(name)
        if c is not None:
            self.take("send", t=t, c=c)

    def _lock(self, event: HostOperation) -> str:
        t, begins = event.thread, event.what == "acquire"
        if event.cell == f"{self.queue}.admission":
            return self.take("begin_to_admit" if begins else "end_admission", t=t)
        known = self.context.lock(event.source)
        if known is None or known[0] != "send_lock" or known[1].queue.name != self.queue:
            return ""
        c = self._of(known[1])
        return self.take("begin_to_send" if begins else "end_sending", t=t, c=c)

    def _of(self, consumer: Node) -> str:
        name = self.context.consumer(consumer)
        if self.member("Consumer", name):
            self._consumers[name] = consumer
            self.member("Name", consumer.name)
            self.state.put("name", name, consumer.name)
            self.state.put("exclusive", name, consumer.exclusive)
            allowance = consumer.allowance
            self.state.put("limited", name, allowance is not None)
            for each in ("allowance", "credit", "granted"):
                self.state.put(each, name, allowance or 0)
            self.state.put("said", name, allowance != 0)
            wants = self.state.get("pushed") and allowance != 0
            self.state.put("wish", name, "WORK" if wants else "NOTHING")
        return name

    def _only(self, event: HostOperation) -> str:
        if event.what == "new":
            self._exclusive = event.source
        if not event.writes:
            return ""
        if event.new is not None:
            return self.take("be_the_only_one", t=event.thread, c=self._of(event.new))
        only = str(self.state.get("the_only"))
        return self.take("be_no_longer_the_only_one", c=only)

    def _all(self, event: HostOperation, kind: str) -> str:
        if linking(event) and event.new.list_name == f"{self.queue}.All":
            return self._binds("join", event.thread, self._of(event.new.consumer))
        if kind == "marked" and event.writes and event.owner.list_name == f"{self.queue}.All":
            return self.take("leave", c=self._of(event.owner.consumer))
        return ""

    def _of_consumer(self, event: HostOperation, kind: str) -> str:
        c = self._of(event.owner)
        if kind == "credit" and event.what == "cas" and not event.ok:
            self._outbid[event.thread] = c
            self.take("be_outbid", t=event.thread, c=c)
        if kind == "wants_work":
            self.takes("ask", t=event.thread, c=c)
        if not event.writes:
            return ""
        if kind == "wants_work":
            return self._wishes(event, c)
        if kind == "credit":
            return self._pays(event, c)
        if kind == "pointer" and event.new.passed:
            return self._obtain(event.thread, c)
        return ""

    def _binds(self, action: str, t: str, c: str, **more: int) -> str:
        """Take a step after which the thread may have to see to it that the consumer wants messages, or none."""
        self._asking[t].add(c)
        return self.take(action, t=t, c=c, **more)

    def _sees_to_it(self, t: str) -> None:
        """What a thread said of a consumer is so at this moment of its call: that is enough, whatever it has read."""
        if t in self._outbid:
            self._bids(t)
        for c in self._asking[t].copy() if self._asking[t] else ():
            for action in ("find_it_wanting", "find_it_unable", "find_it_pausing"):
                self.takes(action, t=t, c=c)
            if not self.state.get("resuming", t, c) and not self.state.get("pausing", t, c):
                self._asking[t].discard(c)

    def _wishes(self, event: HostOperation, c: str) -> str:
        self.touched("wish", c)
        if event.new is None:
            return self.take("close", t=event.thread, c=c)
        if not event.examined:
            raise NotThat(f"no step writes what {c} wants without a compare-and-set")
        if event.new:
            return self.take("want", c=c)
        return self.take("run_out" if self._queue_asks(event.thread) else "want_nothing", c=c)

    def _pays(self, event: HostOperation, c: str) -> str:
        t = event.thread
        self.touched("credit", c)
        if event.by is None:
            raise NotThat(f"no step writes the credit of {c}")
        if event.what == "cas" and event.by < 0:
            if event.by != -1 or self.context.caller(t, "attempt") != c:
                raise NotThat(f"{t} takes {-event.by} of the credit of {c}")
            return self.take("pay", t=t, c=c)
        granted = self._granting.pop(t, None)
        if granted is not None:
            name, messages = granted
            if name != event.owner.name or event.by > messages:
                raise NotThat(f"{t} grants {name} {messages}, and adds {event.by} to {c}")
            if event.by < messages:
                self._granting[t] = (name, messages - event.by)
            return self._binds("grant", t, c, n=event.by)
        if event.by != 1:
            raise NotThat(f"{t} restores {event.by} to {c}")
        return self.take("restore", t=t, c=c)

    def _obtain(self, t: str, c: str) -> str:
        if c not in self._consumers:
            raise NotThat(f"{c} takes something, and has not joined")
        return self.take("obtain", t=t, c=c)
