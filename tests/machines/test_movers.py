"""Which statements commute: the rule, and that what it takes for granted is true in every schedule."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import greenlet  # type: ignore[import-untyped]
import pytest

from seriatim_models.explorer.model.execution import ControlledGreenlet
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.check import Judge
from seriatim_models.programs.mutant_modules import SYSTEMS, source
from seriatim_workshop.mutation.exhaustive import modules_with
from seriatim_workshop.mutation.movers import CONFINED, GUARDED, UNDER, LockMovers
from seriatim_workshop.mutation.order import commuting_mutations
from seriatim_workshop.mutation.outcomes import OutcomeSet
from seriatim_workshop.mutation.searching import search

WITHIN = {
    "pool": ("workpool", "WorkPool", "_lock"),
    "server": ("broker", "Server", "_lock"),
    "none": ("workpool", "WorkPool", ""),
}
"""By a short name: a file, a class, and the lock that is held."""


def commute(place: str, first: str, second: str) -> bool:
    file, cls, lock = WITHIN[place]
    text = textwrap.indent(f"{first}\n{second}", "    ")
    (function,) = ast.parse(f"def f(self, channel, tag, key):\n{text}").body
    assert isinstance(function, ast.FunctionDef)
    (held,) = ast.parse(f"with self.{lock or 'storage'}: pass").body
    one, other = function.body[-2:] if len(function.body) > 1 else (function.body[0],) * 2
    return LockMovers(file, cls, function).commute(one, other, (function, held))


@pytest.mark.parametrize(
    ("place", "one", "other", "same"),
    [
        # guarded, and of different attributes; the same, but not under the lock; of the same attribute
        ("pool", "self._ready.append(key)", "self._in_progress.add(key)", True),
        ("none", "self._ready.append(key)", "self._in_progress.add(key)", False),
        ("pool", "self._ready.append(key)", "self._ready.remove(key)", False),
        # a signal is noticed at once, but who wakes waits for the lock; two signals keep their order
        ("pool", "self._ready.append(key)", "self._room.notify_all()", True),
        ("none", "self._ready.append(key)", "self._room.notify_all()", False),
        ("pool", "self._room.notify_all()", "self._room.notify()", False),
        # a wait gives up the lock
        ("pool", "self._ready.append(key)", "self._room.wait()", False),
        ("pool", "self._ready.append(key)", "self._lock.release()", False),
        # what may leave the block, or raise, stays where it is
        ("pool", "self._ready.append(key)", "if key in self._in_progress: return", False),
        ("pool", "self._ready.append(key)", "if key in self._in_progress: raise E()", False),
        ("pool", "self._ready.append(key)", "self.finish_work_block(key)", False),
        # what is called touches what it touches; whatever is unknown touches everything
        ("server", "channel.prefetch = 1", "self._requeue(channel, tag)", True),
        ("server", "channel.unacked[tag] = 1", "self._requeue(channel, tag)", False),
        ("server", "channel.prefetch = 1", "self._reachable(channel, key)", False),
        ("server", "channel.prefetch = 1", "key()", False),
        ("server", "channel.prefetch = 1", "channel.wire.send(key)", True),
        ("server", "self._queues.clear()", "channel.unacked.update(key())", False),
        # one attribute of two classes counts as the same
        ("server", "channel.consumers.clear()", "tag.consumers.append(1)", False),
        # a container that was handed in may be any
        ("pool", "self._ready.append(1)", "key.append(1)", False),
    ],
)
def test_what_commutes(place: str, one: str, other: str, same: bool) -> None:
    assert commute(place, one, other) is same
    if "\n" not in one:
        assert commute(place, other, one) is same


def test_a_local_name_of_a_guarded_container_is_that_container() -> None:
    found = "queue = self._pool[key]\nqueue.append(1)"
    assert commute("pool", found, "self._ready.append(1)")
    assert not commute("pool", found, "self._pool.clear()")


# ---- what is taken for granted of the references

BUSY = {
    "client": (
        "consume-and-close", "consume-and-cancel", "routing",
        "rpc-beside-consume", "close-connection-twice", "open-while-closing",
        "interrupted-while-full", "crash", "settle", "pool-fails", "pool-shut-down",
    ),
    "fair": ("fair-stop", "fair-rounds", "fair-foreign"),
    "log": ("log-poison", "log-reconnect", "log-roll-over", "log-replay", "log-two-channels"),
    "queue": ("release-own", "pause-and-resume", "close-and-pause", "handover", "push-two"),
}  # fmt: skip
"""By system: programs that come to everything that is guarded."""


class Guards:
    """Checks over some modules, in every execution, that the tables of the movers are true."""

    def __init__(self, system: str) -> None:
        first, *_ = SYSTEMS[system]
        self.lib: ModuleType = modules_with(first, source(first))
        self.wrong: set[str] = set()
        self.asked: set[str] = set()
        """The attributes and functions that are checked."""
        self.seen: set[str] = set()
        """Those that were touched or called."""
        self.owners: dict[type, list[Any]] = {}
        self.users: dict[tuple[int, str], object] = {}
        """By object and attribute: the thread that touched it first."""
        for guard, attributes in GUARDED.items():
            module = guard.partition(".")[0]
            if module in SYSTEMS[system]:
                for cls, name in self.having(module, attributes):
                    self.watch(cls, name, guard)
        for guard, functions in UNDER.items():
            module = guard.partition(".")[0]
            if module in SYSTEMS[system]:
                for function in functions:
                    self.called_under(function, guard)
        for module in SYSTEMS[system]:
            for cls, name in self.having(module, CONFINED.get(system, frozenset())):
                self.watch(cls, name, "")

    def having(self, module: str, attributes: frozenset[str]) -> Iterator[tuple[type, str]]:
        """The classes of a module that have some of the attributes."""
        for cls in ast.parse(source(module)).body:
            if not isinstance(cls, ast.ClassDef):
                continue
            for node in ast.walk(cls):
                named = ""
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    named = node.target.id
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    named = node.attr if ast.unparse(node.value) == "self" else ""
                if named in attributes and not any(
                    "frozen" in ast.unparse(d) for d in cls.decorator_list
                ):
                    yield getattr(self.lib, cls.name), named

    def held(self, obj: object, guard: str) -> bool:
        """Whether the thread that runs holds the lock; true before there are threads, and at the end."""
        _, owner, lock = guard.split(".")
        of = [obj] if lock in vars(obj) else self.owners.get(getattr(self.lib, owner), [])
        locks = [vars(o)[lock] for o in of if lock in vars(o)]
        running = [guarding for guarding in locks if guarding.ex.current is not None]
        return not running or any(g.value is g.ex.current for g in running)

    def watch(self, cls: type, name: str, guard: str) -> None:
        """Check at each access to an attribute by the reference that the lock is held, or that one thread has it."""
        guards = self
        self.asked.add(f"{cls.__name__}.{name}")
        self.own(cls)

        def look(obj: object) -> None:
            caller = sys._getframe(2)
            inside = caller.f_globals["__name__"].startswith("seriatim.")
            if not inside or caller.f_code.co_name in ("__init__", "__post_init__"):
                return
            guards.seen.add(f"{cls.__name__}.{name}")
            if guard and not guards.held(obj, guard):
                guards.wrong.add(f"{cls.__name__}.{name} in {caller.f_code.co_qualname}")
            thread = greenlet.getcurrent()
            if guard or not isinstance(thread, ControlledGreenlet):
                return
            if guards.users.setdefault((id(obj), name), thread) is not thread:
                guards.wrong.add(f"{cls.__name__}.{name} by another thread")

        def get(obj: object) -> object:
            look(obj)
            return vars(obj)[name]

        def put(obj: object, value: object) -> None:
            look(obj)
            vars(obj)[name] = value

        setattr(cls, name, property(get, put))

    def own(self, cls: type) -> None:
        """Remember the objects of a class."""
        if cls in self.owners:
            return
        self.owners[cls] = []
        make: Any = vars(cls)["__init__"]

        def init(obj: object, *args: object, **kwargs: object) -> None:
            self.owners[cls].append(obj)
            make(obj, *args, **kwargs)

        cls.__init__ = init  # type: ignore[misc]

    def called_under(self, function: str, guard: str) -> None:
        """Check at each call of a function that the lock is held."""
        owner, name = function.split(".")
        cls = getattr(self.lib, owner)
        self.asked.add(function)
        self.own(getattr(self.lib, guard.split(".")[1]))
        method = getattr(cls, name)

        def checked(obj: object, *args: object, **kwargs: object) -> object:
            self.seen.add(function)
            if not self.held(obj, guard):
                self.wrong.add(function)
            return method(obj, *args, **kwargs)

        setattr(cls, name, checked)


@pytest.mark.parametrize("system", BUSY)
def test_what_is_guarded_is_touched_under_its_lock_alone(system: str) -> None:
    guards = Guards(system)
    for program in BUSY[system]:
        for objects in guards.owners.values():
            objects.clear()
        guards.users.clear()
        search(PROGRAMS[program], guards.lib, Judge(()), 40)
    assert not guards.wrong
    assert guards.seen == guards.asked


SEEN = {
    "client": (
        "pool-bounded", "pool-unregister-one", "rpc-close-channel", "exclusive-queue", "crash-anywhere", "settle",
    ),
    "fair": ("fair-two-brokers", "fair-stop", "fair-rounds", "fair-foreign", "fair-overrun"),
    "log": ("log-rest", "log-poison", "log-reconnect", "log-two-channels"),
    "queue": ("pause", "close-and-pause"),
}  # fmt: skip
"""By system: programs in which clients would see it if two statements did not commute."""


@pytest.mark.parametrize(
    "system", [pytest.param(s, marks=[pytest.mark.slow] * (s == "client")) for s in SEEN]
)
def test_what_is_left_out_is_seen_in_no_schedule(system: str) -> None:
    left_out = [m for file in SYSTEMS[system] for m in commuting_mutations(file)]
    assert left_out
    for id in SEEN[system]:
        program, known = PROGRAMS[id], OutcomeSet()
        right = modules_with(SYSTEMS[system][0], source(SYSTEMS[system][0]))
        judge = Judge(program.properties)
        assert search(program, right, judge, 600, outcomes=known).exhausted
        for m in left_out[::5]:
            lib, again = modules_with(m.file, m.source), OutcomeSet(known.found)
            found = search(program, lib, Judge(program.properties), 600, outcomes=again)
            assert not found.found, m.name
            assert found.exhausted, m.name
