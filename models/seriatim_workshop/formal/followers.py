"""Which step of the specification each operation of the reference is, and which field is which.

A follower is called with every operation of an execution. It takes the step of the specification that the operation
is, which must be possible there, and then compares every mapped field with the reference's own. Both can fail.

What the reference records is read from the same state that the properties read (`QueueState`, `LinkState`): places,
owners, pointers and members of lists. Live objects are read for what no event shows: which operation on which cell a
step is, whether an AVAILABLE entry was released before (RETURNED), the identity of a pointer object, whether a consumer
is interested in an entry that is being linked; and `Consumer.listed`, which changes before `qcm_move` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import seriatim.queue as reference
from seriatim_models.history.catalogue import declared_event
from seriatim_models.properties.whitebox.state import EntryHistory, LinkState, QueueState
from seriatim_workshop.formal.concrete import Concrete, NotThat, Value
from seriatim_workshop.formal.recorder import HostOperation, RecordedCell
from seriatim_workshop.formal.theory import load

RANK = 1000
"""Places of one sub-queue; the head of each is a multiple. A follower refuses to count further."""


@dataclass(frozen=True)
class Field:
    """A field of the specification, and where it is in the reference."""

    name: str
    means: str
    read: Callable[[], Iterable[tuple[tuple[Value, ...], Value]]]
    """Arguments and values, as the reference has them now."""


class Follower:
    """Holds one execution against one system."""

    system = ""

    def __init__(self, lib: ModuleType, members: Iterable[str]) -> None:
        self.lib = lib
        self.state = Concrete(load(self.system), {sort: [] for sort in members})
        self.steps = 0
        """Steps of the specification that were taken."""
        self.recorded = QueueState()
        self.links = LinkState()

    def fields(self) -> list[Field]:
        """The functions of the system that are compared after each step, with where the reference has them."""
        raise NotImplementedError

    def step(self, event: HostOperation) -> None:
        """Take the step that this is. Raises `NotThat`."""
        raise NotImplementedError

    def __call__(self, event: HostOperation) -> None:
        """Raises `NotThat` where the execution leaves the specification."""
        if event.what == "record":
            found = declared_event(event.step, event.step, event.thread, event.cell, event.new)
            if found is not None:
                self.recorded.see(found)
                self.links.see(found)
        before = self.steps
        self.step(event)
        if self.steps == before:
            return
        for field in self.fields():
            for arguments, value in field.read():
                ours = self.state.get(field.name, *arguments)
                if ours != value:
                    at = ", ".join(map(str, arguments))
                    raise NotThat(
                        f"after it {field.name}({at}) is {ours} in the specification, and {value} in {field.means}"
                    )

    def take(self, action: str, **parameters: Value) -> None:
        """Take an action of the system. Raises `NotThat` if its guard does not hold."""
        self.state.take(action, **parameters)
        self.steps += 1

    def member(self, sort: str, name: str) -> bool:
        """Make sure that there is such a member; True if it is new."""
        if name in self.state.members[sort]:
            return False
        self.state.members[sort].append(name)
        return True


class Entries(Follower):
    """`spec/induction/entries.py`."""

    system = "entries"

    def __init__(self, lib: ModuleType) -> None:
        super().__init__(lib, ("Entry", "Consumer", "Thread", "Mark"))
        self._entries: dict[str, reference.QueueEntry] = {}
        self._consumers: dict[str, reference.Consumer] = {}
        self._marks: list[reference.Pointer] = []
        self._counting: dict[str, int] = {}
        """By thread: how often it has raised the depth without having linked yet."""

    def fields(self) -> list[Field]:
        return [
            Field(
                "status",
                "QueueEntry.state",
                lambda: [((m,), self._status(e.state)) for m, e in self._entries.items()],
            ),
            Field(
                "owner",
                "the state that `entry_cas` records, whose ACQUIRED it is",
                lambda: [((m,), owner) for m in self._entries if (owner := self._owner(m))],
            ),
            Field(
                "place",
                "the place that `link` records",
                lambda: [
                    ((m,), rank_and_number(self._entry_recorded(m).place)) for m in self._entries
                ],
            ),
            Field(
                "pointer",
                "the place of the pointer that `ptr_cas` records",
                lambda: [
                    ((c,), rank_and_number(self.recorded.consumers[c].points[:2]))
                    for c in self._consumers
                ],
            ),
            Field(
                "mark",
                "Consumer.pointer, the identity of the object",
                lambda: [((c,), self._mark(_value(k.pointer))) for c, k in self._consumers.items()],
            ),
        ]

    # ---- from the reference's values to the specification's

    def _entry_recorded(self, m: str) -> EntryHistory:
        return self.recorded.entry(m)

    def _owner(self, m: str) -> str:
        return (self._entry_recorded(m).state.last() or ("", ""))[1]

    def _status(self, cell: object) -> str:
        state = _value(cell)
        return "RETURNED" if state is self.lib.RETURNED else str(state.name)

    def _mark(self, pointer: reference.Pointer) -> str:
        for i, known in enumerate(self._marks):
            if known is pointer:
                return f"k{i}"
        self._marks.append(pointer)
        name = f"k{len(self._marks) - 1}"
        self.member("Mark", name)
        return name

    # ---- from the reference's operations to the specification's steps

    def step(self, event: HostOperation) -> None:
        self.member("Thread", event.thread)
        if event.what == "record":
            self._record(event)
        elif event.cell.endswith(".depth") and event.what == "add":
            self._depth(event)
        elif event.cell.endswith(".state"):
            self._entry(event)
        elif event.cell.endswith(".pointer"):
            self._pointer(event)
        elif event.cell.endswith(".next"):
            self._next(event)
        elif event.cell.endswith(".All.marked") and event.what == "set":
            name = event.owner.consumer.name
            if name in self._consumers:
                del self._consumers[name]
                self.take("unregister", c=name)

    def _record(self, event: HostOperation) -> None:
        done = event.cell in ("release", "enqueue", "close", "check_status", "dequeue")
        if event.cell == "notify" or (done and event.new.get("ph") == "ok"):
            self.take("all_told", t=event.thread)

    def _depth(self, event: HostOperation) -> None:
        if event.new > 0:
            self._counting[event.thread] = self._counting.get(event.thread, 0) + 1
            return
        mine = [m for m in self._entries if self.state.get("disposing", event.thread, m)]
        if not mine:
            raise NotThat("uncount: this thread made no entry DEQUEUED that it has not taken away")
        self.take("uncount", t=event.thread, e=mine[0])

    def _next(self, event: HostOperation) -> None:
        node, t = event.new, event.thread
        if linking(event):
            if isinstance(node, self.lib.QueueEntry):
                self._link(t, node)
            elif isinstance(node, self.lib.ListEntry) and node.list_name.endswith(".All"):
                self._register(node.consumer)
        elif event.what == "get" and self.state.get("looking", t):
            if isinstance(node, self.lib.QueueEntry):
                self._go_on(t, node)
            elif node is None and not isinstance(event.owner, self.lib.ListEntry):
                self._fall_through(t, event.owner)

    def _link(self, t: str, node: reference.QueueEntry) -> None:
        m = node.message.id
        self.member("Entry", m)
        self._entries[m] = node
        for c in self._consumers.values():
            self.state.put("wants", c.name, m, c.has_interest(node))
        self.state.put("immediate", m, node.message.immediate)
        self.state.put("overtaking", self._overtaking(node))
        if not self._counting.get(t):
            raise NotThat("append: its thread has not raised the depth")
        self._counting[t] -= 1
        self.take("count", e=m)
        if self._status(node.state) == "DELAYED":
            self.take("hold", e=m, p=place(node))
        else:
            kind = "insert" if self.state.get("overtaking") else "append"
            self.take(kind, t=t, e=m, p=place(node))

    def _overtaking(self, node: reference.QueueEntry) -> bool:
        return "." in node.list_name  # the sub-queues of a queue with priorities are numbered

    def _register(self, consumer: reference.Consumer) -> None:
        if not consumer.acquires:
            return  # a browser's pointer is another matter: it says what was shown
        self.member("Consumer", consumer.name)
        for m, e in self._entries.items():
            self.state.put("wants", consumer.name, m, consumer.has_interest(e))
        mark = self._mark(_value(consumer.pointer))
        self._consumers[consumer.name] = consumer
        self.take("register", c=consumer.name, k=mark)

    def _entry(self, event: HostOperation) -> None:
        m, t = event.owner.message.id, event.thread
        if event.what == "get":
            if self.state.allows("pass_by", t=t, e=m):
                self.take("pass_by", t=t, e=m)
            return
        if m not in self._entries:
            raise NotThat(f"{m} is not linked yet")
        if event.what == "set":
            raise NotThat(f"no step writes the state of {m} without a compare-and-set")
        old, new = event.old.name, event.new.name
        if not event.ok:
            self._failed(event, m)
        elif new == "ACQUIRED":
            self.take("acquire", e=m, c=event.new.holder)
        elif old == "ACQUIRED":
            kind = "release" if new == "AVAILABLE" else "finish"
            self.take(kind, t=t, e=m, c=event.old.holder)
        elif old == "DELAYED":
            self.take("unhold", t=t, e=m)
        elif new == "DELETED":
            self.take("bury", e=m)
        else:
            gives_up = event.owner.message.immediate and not event.owner.message.expires
            self.take("give_up" if gives_up else "expire", t=t, e=m)

    def _failed(self, event: HostOperation, m: str) -> None:
        immediate = event.owner.message.immediate and not event.owner.message.expires
        if immediate and event.old is self.lib.AVAILABLE and event.new is self.lib.DEQUEUED:
            self.take("leave_it", e=m)

    def _pointer(self, event: HostOperation) -> None:
        c, t = event.owner.name, event.thread
        if c not in self._consumers:
            return
        if event.what == "get":
            self.take("look", t=t, c=c)
        elif event.what == "cas" and event.ok:
            if event.new.cause == "rewind":
                owed = [m for m in self._entries if self.state.get("owes", t, m, c)]
                if not owed:
                    raise NotThat(f"rewind: {t} owes {c} none")
                mark = self._mark(event.new)
                self.take("rewind", t=t, e=owed[0], c=c, k=mark)
            else:
                mark = self._mark(event.new)
                self.take("advance", t=t, k=mark)
        elif event.what == "set":
            raise NotThat(f"no step writes the pointer of {c} without a compare-and-set")

    def _standing_at(self, t: str) -> str | None:
        cursor = self.state.get("cursor", t)
        return next((m for m, e in self._entries.items() if place(e) == cursor), None)

    def _past_dequeued(self, t: str) -> None:
        """Pass a dequeued entry, which is possible at any time: it was seen before, or was unlinked."""
        here = self._standing_at(t)
        dequeued = here is not None and self.state.get("status", here) in ("DEQUEUED", "DELETED")
        if here is not None and dequeued and not self.state.get("passed", t):
            self.take("pass_by", t=t, e=here)

    def _go_on(self, t: str, node: reference.QueueEntry) -> None:
        self._past_dequeued(t)
        m = node.message.id
        if self.state.allows("go_on", t=t, n=m):
            self.take("go_on", t=t, n=m)

    def _fall_through(self, t: str, node: reference.Node) -> None:
        """The end of a sub-queue was read: what comes next is the head of the one below."""
        self._past_dequeued(t)
        below = (node.rank + 1) * RANK
        if self.state.allows("fall_through", t=t, q=below):
            self.take("fall_through", t=t, q=below)


class Lists(Follower):
    """`spec/induction/lists.py`."""

    system = "lists"

    def __init__(self, lib: ModuleType) -> None:
        super().__init__(lib, ("Consumer", "Thread"))
        self._consumers: dict[str, reference.Consumer] = {}

    def fields(self) -> list[Field]:
        return [
            Field(
                "listed",
                "Consumer.listed",
                lambda: [
                    ((c,), NAMES[k.listed])
                    for c, k in self._consumers.items()
                    if not self.state.get("between", c)
                ],
            ),
            Field(
                "member",
                "the lists of the manager that `link` and `mark` record",
                lambda: [
                    ((c, kind), c in members)
                    for kind, members in self._members().items()
                    if kind != "ALL"
                    for c in self._consumers
                ],
            ),
            Field(
                "in_all",
                "the list of all consumers that `link` and `mark` record",
                lambda: [((c,), c in self._members()["ALL"]) for c in self._consumers],
            ),
        ]

    def _members(self) -> dict[str, set[str]]:
        """The consumers that have a node that is not marked, by kind of list."""
        found: dict[str, set[str]] = {kind: set() for kind in (*NAMES.values(), "ALL")}
        for name, list_ in self.links.lists.items():
            found[kind_of_list(name)] |= set(list_.present)
        return found

    def step(self, event: HostOperation) -> None:
        self.member("Thread", event.thread)
        name, _, kind = event.cell.rpartition(".")
        if event.what == "acquire" and kind == "moving":
            self.take("lock", t=event.thread, c=name)
        elif event.what == "release" and kind == "moving":
            self.take("unlock", t=event.thread, c=name)
        elif event.what == "record" and event.cell == "qcm_move":
            self._move(event.thread, **event.new)
        elif event.what == "record" and event.cell == "close" and event.new["ph"] == "invoke":
            self._closing = event.new["sub"]
        elif kind == "marked" and event.what == "set":
            self._marked(event)
        elif linking(event) and isinstance(event.new, self.lib.ListEntry):
            self._linked_in(event.thread, event.new)

    def _move(self, t: str, sub: str, old: str, new: str, at: str) -> None:
        """To or from no list there is nothing to see but the record."""
        if at == "leave":
            self._to = NAMES[new]
            if new == "Removed" and old == "NotInterested":
                self.take("begin_to_leave", c=sub)
            if old == "Removed":
                self.take("leave", t=t, c=sub, to=self._to)
        elif new == "Removed":
            self.take("enter", t=t, c=sub)

    def _marked(self, event: HostOperation) -> None:
        c = event.owner.consumer.name
        if event.owner.list_name.endswith(".All"):
            self.take("leave_all", c=c)
        elif c in self._consumers:
            self.take("leave", t=event.thread, c=c, to=self._to)

    def _linked_in(self, t: str, node: reference.ListEntry) -> None:
        consumer = node.consumer
        if node.list_name.endswith(".All"):
            self.member("Consumer", consumer.name)
            self.state.put("acquires", consumer.name, consumer.acquires)
            self._consumers[consumer.name] = consumer
            self.take("join_all", c=consumer.name)
        elif consumer.name in self._consumers:
            self.take("enter", t=t, c=consumer.name)


def linking(event: HostOperation) -> bool:
    """Whether a node is linked behind the last."""
    return event.cell.endswith(".next") and event.what == "cas" and event.ok and event.old is None


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
    return NAMES.get(name.split(".")[1], "ALL")


def place(node: reference.Node) -> int:
    """The place as one number: rank before order."""
    return rank_and_number(node.place())


def rank_and_number(place: tuple[int, ...]) -> int:
    """A place as one number: rank before order. Raises `ValueError` for a number that leaves no room."""
    rank, number = place
    if number >= RANK:
        raise ValueError(f"a follower counts {RANK} entries of one priority, no more")
    return rank * RANK + number


def _value(cell: object) -> Any:  # Any: what the cell holds
    """What a cell holds, without taking a step."""
    return cast("RecordedCell[Any]", cell).value
