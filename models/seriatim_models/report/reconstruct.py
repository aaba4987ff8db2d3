"""The shared state of a program before its first step and after each, put together from what was recorded.

Two sources are read. The reference records what it did, and that gives its queues: entries, consumers, lists, calls.
The steps themselves give the last known value of every other shared object, of any program: what was read from it or
written into it. What cannot be known is not invented: an object that no step told of does not appear.

Programs are other people's, and so are the records in them: a field that is missing or odd is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from seriatim_models.report.systems import Client, Fair, Log


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


@dataclass
class Entry:
    """A message in a queue."""

    m: str
    q: str = ""
    place: tuple[int, ...] = ()
    state: str = ""
    holder: str = ""
    group: str = ""
    linked: bool = False
    unlinked: bool = False
    held: bool = False

    @property
    def shown(self) -> str:
        if not self.linked:
            return f"{self.state or 'new'}, not linked yet"
        return f"{self.state}, unlinked" if self.unlinked else self.state


@dataclass
class Sub:
    """A consumer."""

    name: str
    q: str
    pointer: tuple[int, ...] = (0, 0, 0)
    listed: str = ""
    wants: bool | None = None
    credit: int | None = None
    closed: bool = False


@dataclass
class Members:
    """A list of consumers: who was linked, and who is marked as gone."""

    nodes: dict[str, bool] = field(default_factory=dict)
    size: str = "0"

    @property
    def present(self) -> list[str]:
        return [node.split("@")[0] for node, marked in self.nodes.items() if not marked]

    @property
    def shown(self) -> str:
        names = [(node.split("@")[0], marked) for node, marked in self.nodes.items()]
        return ", ".join(f"({name} left)" if marked else name for name, marked in names)


class Reconstruction:
    """What is known at one moment; `record` and `step` bring it forward."""

    def __init__(self) -> None:
        self.queues: list[str] = []
        self.entries: dict[str, Entry] = {}
        self.subs: dict[str, Sub] = {}
        self.lists: dict[str, Members] = {}
        self.calls: dict[str, list[str]] = {}
        self.objects: dict[str, str] = {}
        self.clock = ""
        self.others = (Client(), Log(), Fair())

    # ---- what the reference recorded

    def record(self, r: Recorded) -> None:
        args: dict[str, Any] = dict(r.args)
        handler = getattr(self, f"_on_{r.ev}", None)
        if handler is not None:
            # It may be a record of somebody else's, under a name that the reference uses too.
            with suppress(KeyError, TypeError, ValueError, AttributeError, IndexError):
                handler(args)
        for system in self.others:
            with suppress(KeyError, TypeError, ValueError, AttributeError, IndexError):
                system.see(r.ev, args)
        stack = self.calls.setdefault(r.thread, [])
        if args.get("ph") == "invoke":
            stack.append(" ".join([r.ev, *(str(args[k]) for k in ("m", "sub") if args.get(k))]))
        elif args.get("ph") in ("ok", "fail") and stack and stack[-1].split(" ")[0] == r.ev:
            stack.pop()

    def _entry(self, m: str) -> Entry:
        return self.entries.setdefault(m, Entry(m))

    def _on_queue(self, a: dict[str, Any]) -> None:
        self.queues.append(str(a["q"]))

    def _on_enqueue(self, a: dict[str, Any]) -> None:
        if a["ph"] != "invoke":
            return
        entry = self._entry(str(a["m"]))
        entry.q = str(a.get("q", ""))
        entry.group = str(a.get("group", ""))
        entry.held = bool(a.get("not_before"))

    def _on_link(self, a: dict[str, Any]) -> None:
        if "@" in a["node"]:
            self._members(a["list"]).nodes.setdefault(a["node"], False)
            return
        entry = self._entry(a["node"])
        entry.q = entry.q or next((q for q in self.queues if _within(a["list"], q)), a["list"])
        entry.place = tuple(int(n) for n in a["place"])
        entry.linked = True
        entry.state = entry.state or ("DELAYED" if entry.held else "AVAILABLE")

    def _on_unlink(self, a: dict[str, Any]) -> None:
        if "@" in a["node"]:
            self._members(a["list"]).nodes.pop(a["node"], None)
        else:
            self._entry(a["node"]).unlinked = True

    def _on_entry_cas(self, a: dict[str, Any]) -> None:
        if a["ok"]:
            entry = self._entry(str(a["m"]))
            entry.state = str(a["new"])
            entry.holder = str(a["sub"]) if entry.state == "ACQUIRED" else ""

    def _on_consumer(self, a: dict[str, Any]) -> None:
        credit = a["credit"]
        self.subs[str(a["sub"])] = Sub(
            str(a["sub"]), str(a["q"]), wants=credit is None or credit > 0, credit=credit
        )

    def _on_close(self, a: dict[str, Any]) -> None:
        self.subs[a["sub"]].closed = self.subs[a["sub"]].closed or a["ph"] == "ok"

    def _on_wants(self, a: dict[str, Any]) -> None:
        self.subs[a["sub"]].wants = bool(a["value"])

    def _on_credit(self, a: dict[str, Any]) -> None:
        sub = self.subs[a["sub"]]
        sub.credit = (sub.credit or 0) + int(a["delta"])

    def _on_ptr_cas(self, a: dict[str, Any]) -> None:
        if a["ok"]:
            self.subs[a["sub"]].pointer = tuple(int(n) for n in a["new"])

    def _on_qcm_move(self, a: dict[str, Any]) -> None:
        moving = f"from {a['old']} to {a['new']}"
        self.subs[a["sub"]].listed = a["new"] if a["at"] == "enter" else moving

    def _members(self, name: str) -> Members:
        return self.lists.setdefault(name, Members())

    def _on_mark(self, a: dict[str, Any]) -> None:
        self._members(a["list"]).nodes[a["node"]] = True

    def _on_size(self, a: dict[str, Any]) -> None:
        self._members(a["list"]).size = str(a["value"])

    def _on_clock(self, a: dict[str, Any]) -> None:
        self.clock = str(a["now"])

    # ---- what the steps say

    def step(self, step: Stepped) -> None:
        for name, value in effects(step):
            if self._told(name):
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

    def _told(self, name: str) -> bool:
        """Whether the tables above show it, better than by its last value."""
        owner, _, part = name.rpartition(".")
        if part == "state":
            return owner in self.entries
        if part in ("pointer", "credit", "wants_work"):
            return owner in self.subs
        if part == "size" and owner in self.lists:
            return True
        # every node of a list calls its parts so: the name does not say which node it is
        return part in ("next", "marked") and any(_within(owner, q) for q in self.queues)

    # ---- as tables

    def state(self) -> State:
        made = [
            *(self._entry_table(q) for q in self.queues),
            self._consumers(),
            Section(
                "Lists of consumers",
                ("list", "members", "size"),
                tuple((name, m.shown, m.size) for name, m in sorted(self.lists.items())),
            ),
            *(Section(*table) for system in self.others for table in system.tables()),
            Section(
                "Calls under way",
                ("thread", "call"),
                tuple((t, " > ".join(stack)) for t, stack in self.calls.items() if stack),
            ),
            Section(
                "Other shared objects" if self.queues else "Shared objects",
                ("object", "last known value"),
                tuple(sorted(self.objects.items()))
                + ((("clock", self.clock),) if self.clock else ()),
            ),
        ]
        return tuple(section for section in made if section.rows)

    def entries_of(self, q: str) -> list[Entry]:
        """In the order of the queue; who is not linked yet comes last."""
        mine = [e for e in self.entries.values() if e.q == q]
        return sorted(mine, key=lambda e: (not e.linked, e.place))

    def _entry_table(self, q: str) -> Section:
        rows = [("(before the first)", "", "", self._pointers(q, (0, 0)))]
        for e in self.entries_of(q):
            name = f"{e.m} (group {e.group})" if e.group else e.m
            rows.append((name, e.shown, e.holder, self._pointers(q, e.place)))
        return Section(
            f"Entries of {q}, in order", ("entry", "state", "holder", "pointers"), tuple(rows)
        )

    def _pointers(self, q: str, place: tuple[int, ...]) -> str:
        """Who points at this place, or is past it."""
        return ", ".join(
            f"{sub.name} {'past' if sub.pointer[2:] == (1,) else 'at'}"
            for sub in self.subs.values()
            if sub.q == q and place and sub.pointer[:2] == place
        )

    def _consumers(self) -> Section:
        rows = []
        for s in self.subs.values():
            holds = ", ".join(e.m for e in self.entries.values() if e.holder == s.name)
            credit = "no limit" if s.credit is None else str(s.credit)
            wish = "closed" if s.closed else "yes" if s.wants else "no"
            rows.append((s.name, self._pointing(s), s.listed, wish, credit, holds))
        columns = ("consumer", "pointer", "list", "wants", "credit", "holds")
        return Section("Consumers", columns, tuple(rows))

    def _pointing(self, sub: Sub) -> str:
        if sub.pointer == (0, 0, 0):
            return "start"
        named = (e.m for e in self.entries.values() if e.q == sub.q and e.place == sub.pointer[:2])
        where = next(named, "/".join(str(n) for n in sub.pointer[:2]))
        return f"{'past' if sub.pointer[2:] == (1,) else 'at'} {where}"


def _within(name: str, q: str) -> bool:
    return name == q or name.startswith(f"{q}.")


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
ASSIGNED = re.compile(r"([A-Za-z_][\w.\[\]]*) = ([^;]*)")


def touched(step: Stepped) -> tuple[str, bool] | None:
    """The shared object of a step, and whether it was changed; None for a step that has none."""
    call = CALL.fullmatch(step.op)
    if call is None:
        return None
    what = call["what"]
    failed = what in ("compare_and_set", "try_acquire") and step.result == "False"
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
