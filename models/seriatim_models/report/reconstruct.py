"""The shared state of a program before its first step and after each, put together from what was recorded.

Two sources are read. The reference records what it did, and `properties.whitebox` makes its state of that: entries,
consumers, lists, calls. The steps themselves give the last known value of every other shared object, of any program:
what was read from it or written into it. An object that no step names does not appear.

Programs are other people's, and so are the records in them: one that is not as the catalogue of events declares its
name changes no table, except that of the calls under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from seriatim_models.history import catalogue
from seriatim_models.history.catalogue import declared_event, fault
from seriatim_models.history.event import Event
from seriatim_models.properties.whitebox.state import (
    ConsumerHistory,
    EntryHistory,
    LinkState,
    ListMembers,
    Place,
    QueueState,
    consumer_of,
    within,
)
from seriatim_models.properties.whitebox.system_states import ClientState, FairState, LogState
from seriatim_models.report.systems import client_tables, fair_tables, log_tables


class Recorded(Protocol):
    """What was recorded in a step (0: before the first)."""

    @property
    def step(self) -> int: ...
    @property
    def thread(self) -> str: ...
    @property
    def ev(self) -> str: ...
    @property
    def args(self) -> dict[str, object]: ...


class Stepped(Protocol):
    """A step."""

    @property
    def n(self) -> int: ...
    @property
    def thread(self) -> str: ...
    @property
    def op(self) -> str: ...
    @property
    def result(self) -> str: ...


class Section(msgspec.Struct, frozen=True, array_like=True):
    """One table of a state. The first cell of a row names it: it is the same thing in the next state."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


State = tuple[Section, ...]


class Reconstruction:
    """What is known at one moment; `record`, `see` and `step` bring it forward."""

    def __init__(self) -> None:
        self.queue = QueueState()
        self.links = LinkState()
        self.client, self.log, self.fair = ClientState(), LogState(), FairState()
        self.calls: dict[str, list[str]] = {}
        self.objects: dict[str, str] = {}

    # ---- what was recorded

    def record(self, r: Recorded) -> None:
        """Take in something that was recorded, by the reference or by any other program."""
        self._call(r.thread, r.ev, str(r.args.get("ph", "")), r.args.get("m"), r.args.get("sub"))
        e = declared_event(0, r.step, r.thread, r.ev, r.args)
        if e is not None:
            self._see(e)

    def see(self, e: Event) -> None:
        """Take in an event of level ``model``; one that is not as the catalogue declares it shows calls only."""
        self._call(e.proc, e.ev, e.ph, e.m, e.args.get("sub"))
        if not fault(e):
            self._see(e)

    def _call(self, thread: str, ev: str, ph: str, *about: object) -> None:
        stack = self.calls.setdefault(thread, [])
        if ph == "invoke":
            stack.append(" ".join([ev, *(str(name) for name in about if name)]))
        elif ph in ("ok", "fail") and stack and stack[-1].split(" ")[0] == ev:
            stack.pop()

    def _see(self, e: Event) -> None:
        for system in (self.queue, self.links, self.client, self.log, self.fair):
            system.see(e)

    # ---- what the steps say

    def step(self, step: Stepped) -> None:
        """Take in what a step says of shared objects."""
        for name, value in effects(step):
            if self._in_a_table(name):
                continue
            if value.startswith(ADDED) and (by := _number(value.removeprefix(ADDED))) is not None:
                value = self._added(name, by)
            self.objects[name] = value

    def _added(self, name: str, by: int) -> str:
        """A counter that was added to: its value, or how far it went if nobody ever read it."""
        before = self.objects.get(name, f"0{SINCE}")
        number = _number(before.removesuffix(SINCE))
        if number is None:
            return f"changed by {by}"
        return f"{number + by:+}{SINCE}" if before.endswith(SINCE) else str(number + by)

    def _in_a_table(self, name: str) -> bool:
        """Whether a table shows an object better than by its last value."""
        owner, _, part = name.rpartition(".")
        if part == "state":
            return owner in self.queue.entries
        if part in ("pointer", "credit", "wants_work"):
            return owner in self.queue.consumers
        if part == "size" and owner in self.links.lists:
            return True
        # every node of a list calls its parts so: the name does not say which node it is
        return part in ("next", "marked") and any(within(owner, q) for q in self.queue.queues)

    # ---- as tables

    def state(self) -> State:
        """All tables that have rows."""
        queues, clock = self.queue.queues, self.queue.clock.last()
        lists = sorted(self.links.lists.items())
        systems = (client_tables(self.client), log_tables(self.log), fair_tables(self.fair))
        made = [
            *(self._entry_table(q) for q in queues),
            self._consumers(),
            Section(
                "Lists of consumers",
                ("list", "members", "size"),
                tuple((name, _members(m), str(m.size)) for name, m in lists),
            ),
            *(Section(*table) for tables in systems for table in tables),
            Section(
                "Calls under way",
                ("thread", "call"),
                tuple((t, " > ".join(stack)) for t, stack in self.calls.items() if stack),
            ),
            Section(
                "Other shared objects" if queues else "Shared objects",
                ("object", "last known value"),
                tuple(sorted(self.objects.items()))
                + ((("clock", str(clock)),) if clock is not None else ()),
            ),
        ]
        return tuple(section for section in made if section.rows)

    def entries_of(self, q: str) -> list[EntryHistory]:
        """In the order of the queue; what is not linked yet comes last."""
        mine = [e for e in self.queue.entries.values() if e.q == q]
        return sorted(mine, key=lambda e: (not e.links, e.place))

    def _entry_table(self, q: str) -> Section:
        rows = [("(before the first)", "", "", self._pointers(q, (0, 0)))]
        for e in self.entries_of(q):
            state, owner = e.state.last() or ("", "")
            if not e.links:
                state = f"{state or 'new'}, not linked yet"
            elif e.m in self.links.unlinked:
                state = f"{state}, unlinked"
            name = f"{e.m} (group {e.group})" if e.group else e.m
            rows.append((name, state, owner, self._pointers(q, e.place)))
        return Section(
            f"Entries of {q}, in order", ("entry", "state", "holder", "pointers"), tuple(rows)
        )

    def _pointers(self, q: str, place: Place) -> str:
        """The consumers whose pointers are at this place, or have passed it."""
        return ", ".join(
            f"{c.name} {'past' if c.points[2] else 'at'}"
            for c in self.queue.consumers.values()
            if c.q == q and c.points[:2] == place
        )

    def _consumers(self) -> Section:
        rows = []
        for c in self.queue.consumers.values():
            owned = (
                e.m for e in self.queue.entries.values() if (e.state.last() or "  ")[1] == c.name
            )
            credit = "no limit" if c.credit_left is None else str(c.credit_left)
            wants = "closed" if c.closed else "yes" if c.wants.last() else "no"
            rows.append((c.name, self._pointing(c), _listed(c), wants, credit, ", ".join(owned)))
        columns = ("consumer", "pointer", "list", "wants", "credit", "holds")
        return Section("Consumers", columns, tuple(rows))

    def _pointing(self, c: ConsumerHistory) -> str:
        *place, passed = c.points
        if not any(c.points):
            return "start"
        named = (e.m for e in self.queue.entries.values() if e.q == c.q and e.place == tuple(place))
        return f"{'past' if passed else 'at'} {next(named, '/'.join(map(str, place)))}"


def _listed(c: ConsumerHistory) -> str:
    """The manager's list that a consumer is in, or between which two it is."""
    if not c.moves:
        return ""
    old, new = catalogue.old_list(c.moves[-1]), catalogue.new_list(c.moves[-1])
    return new if catalogue.move_at(c.moves[-1]) == "enter" else f"from {old} to {new}"


def _members(members: ListMembers) -> str:
    names = [(consumer_of(node), marked) for node, marked in members.nodes.items()]
    return ", ".join(f"({name} left)" if marked else name for name, marked in names)


def states(events: Sequence[Stepped], records: Iterable[Recorded]) -> list[State]:
    """The state before the first step and after each, as many as there are steps and one more."""
    by_step: dict[int, list[Recorded]] = {}
    for r in records:
        by_step.setdefault(r.step, []).append(r)
    now = Reconstruction()
    for r in by_step.get(0, []):
        now.record(r)
    found = [now.state()]
    for step in events:
        for r in by_step.get(step.n, []):
            now.record(r)
        now.step(step)
        found.append(now.state())
    return found


# --------------------------------------------------------------------------------------------------
# What a step says of shared objects
# --------------------------------------------------------------------------------------------------

ADDED = "added "
SINCE = " since the beginning"

CALL = re.compile(
    r"(?P<obj>.+?)\.(?P<what>get|set|get_and_set|compare_and_set|get_and_add|add|acquire|try_acquire|release|"
    r"wait|notify|notify_all)\((?P<args>.*)\)(?: wakes)?",
    re.DOTALL,
)
ACCESS = re.compile(r"(?P<what>read|write) (?P<obj>.+)")
"""A step of ordinary Python."""
ASSIGNED = re.compile(r"([A-Za-z_][\w.\[\]]*) = ([^;]*)")


def operation_and_line(op: str) -> tuple[str, str]:
    """What a step did and, of ordinary Python, the file and line in which it stands, with the text of the line."""
    bare, _, line = op.partition("  [")
    return bare, line.removesuffix("]")


def touched(op: str, result: str) -> tuple[str, bool] | None:
    """The shared object of a step, and whether it was changed; None for a step that has none."""
    op, _ = operation_and_line(op)
    access = ACCESS.fullmatch(op)
    if access is not None:
        return access["obj"], access["what"] == "write"
    call = CALL.fullmatch(op)
    if call is None:
        return None
    what = call["what"]
    failed = what in ("compare_and_set", "try_acquire") and result == "False"
    return call["obj"], what != "get" and not failed


def effects(step: Stepped) -> list[tuple[str, str]]:
    """(object, its value now) of each object that the step tells of."""
    call = CALL.fullmatch(step.op)
    if call is None:
        return [(name, value.strip()) for name, value in ASSIGNED.findall(step.result)]
    name, what, args = call["obj"], call["what"], call["args"]
    value: str | None = None
    if what == "get":
        value = step.result or "None"
    elif what in ("set", "get_and_set"):
        value = args
    elif what == "compare_and_set":
        parts = arguments(args)
        value = parts[1] if step.result == "True" and len(parts) == 2 else None
    elif what == "get_and_add":
        before, by = _number(step.result), _number(args)
        value = None if before is None or by is None else str(before + by)
    elif what == "add":
        value = f"{ADDED}{args}"
    elif what == "try_acquire":
        value = f"acquired by {step.thread}" if step.result == "True" else None
    else:
        past = {"acquire": "acquired", "release": "released", "wait": "awaited"}
        value = f"{past.get(what, 'notified')} by {step.thread}"
    return [] if value is None else [(name, value)]


def arguments(text: str) -> list[str]:
    """The arguments of a call, cut at the commas that stand in no bracket and no string."""
    parts, depth, quote, start, escaped = [], 0, "", 0, False
    for at, c in enumerate(text):
        if quote:
            if escaped:
                escaped = False
            elif c == "\\":
                escaped = True
            elif c == quote:
                quote = ""
        elif c in "'\"":
            quote = c
        elif c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text else []


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
