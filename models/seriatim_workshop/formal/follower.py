"""What every follower shares: who is who, which call is under way, and how a state is held against the reference.

A follower is called with every operation of an execution. It takes the step of its system that the operation is, which
must be possible there. Then every mapped field that the step changed, or the operation, is compared with the
reference's own. What was not changed was compared before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol, cast

from seriatim_workshop.formal.concrete import Changes, Concrete, NotThat
from seriatim_workshop.formal.recorder import HostOperation, RecordedCell
from seriatim_workshop.formal.source import Value
from seriatim_workshop.formal.theory import load

Node = Any
"""A node, list, entry, pointer, consumer or part of the hand-over of the module under test, which may be a mutant."""

Key = tuple[Value, ...]
Call = tuple[str, dict[str, Any]]
"""An operation that has been called and has not returned: its event and the fields of its invocation."""


CALLS = ("enqueue", "release", "dequeue", "check_status", "pull", "work_desired", "close")
"""The calls at whose end their thread is bound to nothing."""


class Named(Protocol):
    """What has a name: a consumer."""

    name: str


@dataclass
class Participants:
    """One execution: the module under test, who is who, and the calls that are under way."""

    lib: ModuleType
    calls: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))
    """By thread."""
    names: dict[int, tuple[object, str]] = field(default_factory=dict)
    """By id: the object, which is kept alive, and its name here."""
    used: set[str] = field(default_factory=set)
    consumers: list[Any] = field(default_factory=list)  # Any: a consumer of the module under test
    locks: dict[int, tuple[str, Any]] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
    about: dict[str, str] = field(default_factory=dict)
    """By thread: the entry that it announces at present."""
    groups: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """By queue and group: the consumer that owns it."""

    def name(self, thing: object, wished: str) -> str:
        """What a thing is called: as it is wished, or with a number if another is called so."""
        known = self.names.get(id(thing))
        if known is None:
            name, n = wished, 1
            while name in self.used:
                n += 1
                name = f"{wished}.{n}"
            self.used.add(name)
            known = self.names[id(thing)] = (thing, name)
        return known[1]

    def consumer(self, consumer: Named) -> str:
        """What a consumer is called."""
        return self.name(consumer, consumer.name)

    def see(self, event: HostOperation) -> None:
        """Keep what the event says about calls and consumers."""
        if event.what == "record" and isinstance(event.new, dict) and "ph" in event.new:
            calls = self.calls[event.thread]
            if event.new["ph"] == "invoke":
                calls.append((event.cell, event.new))
            elif any(ev == event.cell for ev, _ in calls):
                while calls.pop()[0] != event.cell:
                    pass
        elif event.what == "new" and isinstance(event.owner, self.lib.Consumer):
            self._consumer_made(event.owner)

    def _consumer_made(self, consumer: Any) -> None:  # Any: as in `consumers`
        if not any(consumer is c for c in self.consumers):
            self.consumers.append(consumer)
            self.consumer(consumer)

    def call(self, thread: str, *kinds: str) -> dict[str, Any] | None:
        """The innermost call of one of these kinds that the thread has under way."""
        return next((given for ev, given in reversed(self.calls[thread]) if ev in kinds), None)

    def caller(self, thread: str, *kinds: str) -> str:
        """For which consumer the innermost of these calls is. Raises `NotThat` if there is none."""
        call = self.call(thread, *kinds)
        if call is None or "sub" not in call:
            raise NotThat(f"{thread} has called no {' or '.join(kinds)}")
        found = [c for c in self.consumers if c.name == call["sub"]]
        return self.consumer(found[-1]) if found else str(call["sub"])

    def lock(self, source: object) -> tuple[str, Any] | None:
        """Of which consumer a lock is, and which: ``moving`` or ``send_lock``."""
        known = self.locks.get(id(source))
        if known is None:
            for consumer in reversed(self.consumers):
                for kind in ("moving", "send_lock"):
                    if getattr(consumer, kind, None) is source:
                        known = self.locks[id(source)] = (kind, consumer)
        return known


@dataclass(frozen=True)
class Field:
    """A field of the specification, and where it is in the reference."""

    means: str
    read: Callable[..., Value | None]
    """The reference's value at these arguments; None while there is nothing to compare."""


class Follower:
    """Holds one execution against one system."""

    system = ""
    fields: dict[str, tuple[str, str]] = {}  # noqa: RUF012  # one table a class, which nobody changes
    """Field of the system -> what it is in the reference, and the method that reads it."""

    def __init__(self, context: Participants) -> None:
        self.context = context
        self.lib = context.lib
        system = load(self.system)
        self.state = Concrete(system, {name: [] for name in system.sort_names})
        self.outside = ""
        """Why the system does not speak of what is followed here; '' if it does."""
        self.steps = 0
        """Steps of the specification that were taken."""
        self.actions: set[str] = set()
        self._known: dict[str, set[str]] = {name: set() for name in system.sort_names}
        self._threads = self._known["Thread"]
        self._changed: list[tuple[str, Key]] = []

    def step(self, event: HostOperation) -> str:
        """Take the steps that this is, and say what a write was: an action, a named stutter, or '' for neither."""
        raise NotImplementedError

    def __call__(self, event: HostOperation) -> str:
        """Returns what a write was, '' if it is none of this system's. Raises `NotThat`."""
        if event.thread not in self._threads:
            self.member("Thread", event.thread)
        explained = self.step(event)
        if self._changed:
            for name, key in self._changed:
                self.compare(name, key)
            self._changed.clear()
        return explained

    def compare(self, name: str, key: Key) -> None:
        """Raises `NotThat` if a field is not what it is in the reference."""
        mapped = self.fields.get(name)
        if mapped is None:
            return
        theirs = getattr(self, mapped[1])(*key)
        ours = self.state.get(name, *key)
        if theirs is not None and ours != theirs:
            at = ", ".join(map(str, key))
            raise NotThat(
                f"after it {name}({at}) is {ours} in the specification, and {theirs} in {mapped[0]}"
            )

    def compare_all(self) -> None:
        """Compare every mapped field at every place that the state knows. Raises `NotThat`."""
        for name in self.fields:
            for key in self.state.tables[name]:
                self.compare(name, key)

    def check_end(self) -> None:
        """Compare every mapped field once more, and look at every invariant. Raises `NotThat`."""
        self.compare_all()
        broken = self.state.broken()
        if broken:
            raise NotThat(f"{', '.join(broken)} does not hold")

    def touched(self, name: str, *key: Value) -> None:
        """The operation has changed, or may have changed, what this field is mapped to."""
        self._changed.append((name, key))

    def take(self, action: str, **parameters: Value) -> str:
        """Take an action of the system and return its name. Raises `NotThat` if its guard does not hold."""
        self._note(action, self.state.take(action, **parameters))
        return action

    def _note(self, action: str, changes: Changes) -> None:
        for name, changed in changes:
            if name in self.fields:
                self._changed += ((name, key) for key in changed)
        self.steps += 1
        self.actions.add(action)

    def takes(self, action: str, **parameters: Value) -> bool:
        """Take an action if it is possible, and say whether it was."""
        changes = self.state.taken(action, **parameters)
        if changes is None:
            return False
        self._note(action, changes)
        return True

    def member(self, sort: str, name: str) -> bool:
        """Make sure that there is such a member; True if it is new."""
        known = self._known[sort]
        if name in known:
            return False
        known.add(name)
        self.state.members[sort].append(name)
        return True

    def members(self, sort: str) -> list[str]:
        """The members of a sort, in order of appearance."""
        return self.state.members[sort]

    def function(self, name: str) -> Iterable[tuple[Key, Value]]:
        """Where a function has been given a value, and which."""
        return self.state.tables[name].items()


def linking(event: HostOperation) -> bool:
    """Whether a node is linked behind the last."""
    return event.cell.endswith(".next") and event.what == "cas" and event.ok and event.old is None


def value(cell: object) -> Any:  # Any: what the cell holds
    """What a cell holds, without taking a step."""
    return cast("RecordedCell[Any]", cell).value


def queue_of(list_name: str) -> str:
    """The queue that a list belongs to, by its name: ``q.Interested.0`` is of ``q``."""
    return list_name.split(".")[0]
