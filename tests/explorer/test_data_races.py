"""Plain attributes that two threads use with nothing to order them are reported, and others are not."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from seriatim.host import Host
from seriatim_models.explorer import Misuse, Pos, Replay, Result, World, explore
from seriatim_models.programs import PROGRAMS, check_program
from seriatim_models.programs.base import Mutant


class Account:
    """Plain attributes beside the host's objects."""

    def __init__(self, host: Host) -> None:
        self.lock = host.lock("lock")
        self.cell = host.cell(0, "cell")
        self.turn = host.semaphore(0, "turn")
        self.closed = False
        self.count = 0
        self.items: list[int] = []
        self.queue: deque[int] = deque()
        self.by_name: dict[str, list[int]] = {"a": []}
        self.names: set[str] = set()
        self.bytes = bytearray(b"ab")

    def lock_and_count(self) -> None:
        """Add one under the lock."""
        with self.lock:
            self.count += 1

    def publish(self) -> None:
        """Write, and then set the cell."""
        self.count = 1
        self.cell.set(1)

    def read_if_published(self) -> None:
        """Read only if the cell was set."""
        if self.cell.get():
            assert self.count == 1

    def hand_over(self) -> None:
        """Write, and then give the other its turn."""
        self.items.append(1)
        self.turn.release()

    def take_over(self) -> None:
        """Wait for the turn, and then read and write."""
        self.turn.acquire()
        self.items.pop()


class Slots:
    """An object without a `__dict__`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


@dataclass
class Plain:
    """A data class, whose default is an attribute of the class, too."""

    value: int = 0
    items: list[int] = field(default_factory=list)


Body = Callable[[Account], object]


def both(first: Body, second: Body, **options: Any) -> Result:
    """Explore two threads over one account."""

    def program(world: World) -> None:
        account = Account(world.host)
        for name, body in (("A", first), ("B", second)):
            world.spawn(lambda body=body: body(account), name=name)  # type: ignore[misc]

    return explore(program, **{"attributes": True, **options})


def set_closed(account: Account) -> None:
    account.closed = True


def increment(account: Account) -> None:
    account.count += 1


def delete(account: Account) -> None:
    del account.closed


def replace_item(account: Account) -> None:
    account.by_name["a"] = []


def grow_bytes(account: Account) -> None:
    account.bytes[0] = 1


def put_list_into_cell(account: Account) -> None:
    items: list[int] = []
    account.cell.set(items)  # type: ignore[arg-type]
    items.append(1)


def try_and_write(account: Account) -> None:
    if not account.lock.try_acquire():
        account.count = 1


def write_and_keep_lock(account: Account) -> None:
    account.count = 2
    account.lock.acquire()


def write_then_read_cell(account: Account) -> None:
    account.count = 1
    account.cell.get()


def set_cell_then_write(account: Account) -> None:
    account.cell.set(1)
    account.count = 2


def turn_then_append(account: Account) -> None:
    account.turn.release()
    account.items.append(1)


def append_after_turn(account: Account) -> None:
    account.turn.acquire()
    account.items.append(2)


def publish_too_early(account: Account) -> None:
    account.cell.set(1)
    account.count = 1


def write_then_set_cell(account: Account) -> None:
    account.count = 1
    account.cell.set(1)


PLANTED: dict[str, tuple[Body, Body, str]] = {
    "flag": (set_closed, lambda a: a.closed, "Account.closed"),
    "deleted flag": (delete, lambda a: a.closed, "Account.closed"),
    "counter": (increment, increment, "Account.count"),
    "guarded in one place only": (Account.lock_and_count, lambda a: a.count, "Account.count"),
    "append to a list": (
        lambda a: a.items.append(1),
        lambda a: a.items.append(2),
        "Account.items (the contents)",
    ),
    "pop from a deque": (
        lambda a: a.queue.append(1),
        lambda a: a.queue and a.queue.popleft(),
        "Account.queue (the contents)",
    ),
    "size of a set": (
        lambda a: a.names.add("x"),
        lambda a: len(a.names),
        "Account.names (the contents)",
    ),
    "value of a dict": (
        replace_item,
        lambda a: a.by_name["a"],
        "Account.by_name (the contents)",
    ),
    "list in a dict": (
        lambda a: a.by_name["a"].append(1),
        lambda a: a.by_name["a"].append(2),
        "Account.by_name[...] (the contents)",
    ),
    "bytes": (grow_bytes, lambda a: bytes(a.bytes), "Account.bytes (the contents)"),
    "list in a cell": (
        put_list_into_cell,
        lambda a: a.cell.get(),
        "cell cell (the contents)",
    ),
    "published too early": (
        publish_too_early,
        Account.read_if_published,
        "Account.count",
    ),
    "turn given too early": (
        turn_then_append,
        append_after_turn,
        "Account.items (the contents)",
    ),
    "an acquire that fails tells nothing": (try_and_write, write_and_keep_lock, "Account.count"),
    "a blind write orders nothing": (
        write_then_set_cell,
        set_cell_then_write,
        "Account.count",
    ),
    "a read orders no later write": (write_then_read_cell, set_cell_then_write, "Account.count"),
}


SHOWN = ("deleted flag",)


@pytest.mark.parametrize("name", PLANTED)
def test_a_race_is_found_and_named(name: str) -> None:
    first, second, label = PLANTED[name]
    case = both(first, second, stuck_ok=True).counterexample
    assert case is not None
    races = [v for v in case.violations if v.kind == "data race"]
    assert str(races[0].what).startswith(f"{label}: ")
    shown = both(first, second, stuck_ok=True, attributes=False).verdict == "violated"
    assert shown == (name in SHOWN), "most of them no schedule can show"


def read_and_pass_on(account: Account) -> None:
    with account.lock:
        account.count += 1
    account.cell.add(1)


def wait_for_both(account: Account) -> None:
    if account.cell.get() == 1:
        with account.lock:
            account.count -= 1


def compare_and_set_then_write(account: Account) -> None:
    if account.cell.compare_and_set(0, 1):
        account.count = 1


def write_unless_compare_and_set(account: Account) -> None:
    if not account.cell.compare_and_set(0, 2):
        account.count = 2


def swap_then_write(account: Account) -> None:
    if account.cell.get_and_set(1) == 0:
        account.items.append(1)


CLEAN: dict[str, tuple[Body, Body]] = {
    "under one lock": (Account.lock_and_count, Account.lock_and_count),
    "published by a cell": (Account.publish, Account.read_if_published),
    "handed over by a semaphore": (Account.hand_over, Account.take_over),
    "each its own": (increment, set_closed),
    "two who read": (lambda a: a.count, lambda a: (a.count, a.items)),
    "whoever wins writes": (compare_and_set_then_write, compare_and_set_then_write),
    "a compare-and-set that fails has read": (
        write_then_set_cell,
        write_unless_compare_and_set,
    ),
    "whoever swaps first writes": (swap_then_write, swap_then_write),
    "lock and addition": (read_and_pass_on, wait_for_both),
    "methods are no attributes": (Account.lock_and_count, lambda a: a.lock_and_count),
}


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_ordered_is_no_race(name: str) -> None:
    result = both(*CLEAN[name])
    assert result.verdict != "violated", result.counterexample


def test_report_names_threads_lines_and_the_way_out() -> None:
    case = both(set_closed, lambda a: a.closed).counterexample
    assert case is not None
    text = case.what
    line = set_closed.__code__.co_firstlineno + 1
    assert f"A writes it at test_data_races.py:{line} in set_closed `account.closed = True`" in text
    assert "B reads it at test_data_races.py:" in text
    assert "Make it a cell of the host, or guard it by one lock at every access" in text


def test_token_replays_the_race() -> None:
    case = both(Account.lock_and_count, lambda a: a.count).counterexample
    assert case is not None

    def program(world: World) -> None:
        account = Account(world.host)
        world.spawn(account.lock_and_count, name="A")
        world.spawn(lambda: account.count, name="B")

    again = explore(program, Replay(case.token), attributes=True)
    assert again.counterexample is not None
    assert again.counterexample.violations[0].key == "data race Account.count"
    assert explore(program, Replay(case.token)).counterexample is None


@pytest.mark.parametrize("make", [Slots, Plain])
def test_slots_and_data_classes_are_observed(make: type) -> None:
    def program(world: World) -> None:
        thing = make()
        world.spawn(lambda: setattr(thing, "value", 1), name="A")
        world.spawn(lambda: thing.value, name="B")

    result = explore(program, attributes=[make])
    assert result.counterexample is not None
    assert f"{make.__name__}.value" in result.counterexample.what
    assert explore(program, attributes=[Account]).counterexample is None


def test_threads_are_ordered_by_spawn_and_join() -> None:
    def program(world: World, joins: bool = True) -> None:
        account = Account(world.host)

        def parent() -> None:
            account.count = 1
            child = world.spawn(lambda: increment(account), name="child")
            if joins:
                child.join()
            account.count += 1

        world.spawn(parent, name="parent")

    assert explore(program, attributes=True).counterexample is None
    assert explore(lambda w: program(w, False), attributes=[Account]).verdict == "violated"


def test_a_wait_is_ordered_by_its_lock() -> None:
    def program(world: World) -> None:
        account = Account(world.host)
        condition = world.condition(account.lock, "c")

        def waiter() -> None:
            with account.lock:
                while not account.closed:
                    condition.wait()
            assert account.count == 1

        def notifier() -> None:
            account.count = 1
            with account.lock:
                account.closed = True
                condition.notify()

        world.spawn(waiter, name="A")
        world.spawn(notifier, name="B")

    assert explore(program, attributes=True).counterexample is None


def test_time_passes_nothing_on() -> None:
    def program(world: World) -> None:
        account = Account(world.host)

        def late() -> None:
            if world.now() >= 5:
                assert account.count == 1

        def early() -> None:
            account.count = 1
            world.advance(5)

        world.spawn(late, name="A")
        world.spawn(early, name="B")

    assert explore(program).counterexample is None
    assert explore(program, attributes=True).verdict == "violated"


def test_an_object_is_its_makers_until_it_is_published() -> None:
    def program(world: World) -> None:
        box: Any = world.cell(None, "box")

        def make() -> None:
            plain = Plain(1)
            plain.items.append(1)
            box.set(plain)

        def use() -> None:
            plain = box.get()
            if plain is not None:
                plain.items.append(plain.value)

        world.spawn(make, name="A")
        world.spawn(use, name="B")

    assert explore(program, attributes=True).counterexample is None


def test_two_objects_are_two_variables() -> None:
    def program(world: World) -> None:
        for name, thing in (("A", Plain()), ("B", Plain())):
            world.spawn(lambda thing=thing: setattr(thing, "value", 1), name=name)  # type: ignore[misc]

    assert explore(program, attributes=True).counterexample is None


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_process_and_strategy_finds_it(jobs: int) -> None:
    def first(account: Account) -> None:
        for _ in range(3):
            account.lock_and_count()
        account.closed = True

    def second(account: Account) -> None:
        for _ in range(3):
            account.lock_and_count()
        if account.count == 6:
            account.closed = False

    options: dict[str, Any] = {"jobs": jobs} if jobs > 1 else {"strategy": None}
    assert both(first, second, **options, shrink=0).verdict == "violated"
    if jobs == 1:
        sampled = both(first, second, strategy=Pos(seed=1), max_executions=50, shrink=0)
        assert sampled.verdict == "violated"


def test_classes_are_left_as_they_were() -> None:
    before = [dict(vars(cls)) for cls in (Account, Slots, Plain)]
    both(increment, increment)
    with pytest.raises(ZeroDivisionError):
        explore(lambda world: 1 // 0, attributes=[Account, Slots, Plain])
    assert [dict(vars(cls)) for cls in (Account, Slots, Plain)] == before


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (["Account"], "name classes, and modules"),
        ([], None),
        ([int], "cannot be observed"),
        ([sys], "no class there"),
    ],
)
def test_what_cannot_be_observed_is_refused(observed: list[Any], message: str | None) -> None:
    if message is None:
        assert both(increment, increment, attributes=observed).counterexample is None
        return
    with pytest.raises(Misuse, match=message):
        both(increment, increment, attributes=observed)


def test_a_mutant_is_observed_like_its_reference() -> None:
    edit = (
        "            with self._lock:\n                task = self._tasks.popleft()",
        "            task = self._tasks.popleft()",
    )
    mutant = Mutant("pops-unlocked", "", "", "client", (edit,), "", "pool-together", 0)
    result = check_program(PROGRAMS[mutant.program], mutant, attributes=True, properties=["CH-4"])
    case = result.explored.counterexample
    assert case is not None
    assert f"seriatim check --attributes --replay {case.token}" == case.command
    assert any("Executor._" in str(v.what) for v in case.violations if v.kind == "data race")
