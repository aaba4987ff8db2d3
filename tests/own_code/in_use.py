"""Small programs with parts of the library as programs use them, a right and a racing one of each: see test_library."""

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import threading
import traceback
import weakref
from collections import ChainMap, OrderedDict, UserDict, deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait
from typing import Any

from tests.own_code.going_through import run, seen


def failing(text: str) -> str:
    try:
        raise ValueError(text)
    except ValueError:
        return traceback.format_exc()


def right_traceback_of_each_thread() -> None:
    found: dict[str, str] = {}
    run(lambda: found.update(a=failing("a")), lambda: found.update(b=failing("b")))
    assert "ValueError: a" in found["a"]
    assert "ValueError: b" in found["b"]


class Job:
    error: BaseException | None = None


def wrong_traceback_of_the_last_error() -> None:
    job, texts = Job(), list[tuple[str, str]]()

    def fail(text: str) -> None:
        try:
            raise ValueError(text)
        except ValueError as error:
            job.error = error
        texts.append((text, "".join(traceback.format_exception(job.error))))

    run(lambda: fail("a"), lambda: fail("b"))
    assert all(f"ValueError: {text}" in shown for text, shown in texts)


def right_as_completed_has_all() -> None:
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(int, 1), pool.submit(int, 2)]
        assert sorted(job.result() for job in as_completed(jobs)) == [1, 2]


def wrong_as_completed_in_the_order_of_submission() -> None:
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(int, 1), pool.submit(int, 2)]
        assert [job.result() for job in as_completed(jobs)] == [1, 2]


def right_wait_for_the_first() -> None:
    with ThreadPoolExecutor(1) as pool:
        done, _ = wait([pool.submit(int, 1), pool.submit(int, 2)], return_when=FIRST_COMPLETED)
        assert done


def wrong_wait_for_the_first_finds_one() -> None:
    with ThreadPoolExecutor(2) as pool:
        done, _ = wait([pool.submit(int, 1), pool.submit(int, 2)], return_when=FIRST_COMPLETED)
        assert len(done) == 1


class Account:
    def __init__(self) -> None:
        self.users = 0
        self.lock = threading.Lock()

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        with self.lock, self.used():
            yield


def right_context_manager_with_a_lock() -> None:
    account = Account()

    def use() -> None:
        with account.locked():
            pass

    run(use, use)
    assert account.users == 0


def wrong_context_manager_without_a_lock() -> None:
    account = Account()

    def use() -> None:
        with account.used():
            pass

    run(use, use)
    assert account.users == 0


def wrong_stack_is_closed_while_it_grows() -> None:
    stack, log = contextlib.ExitStack(), list[str]()
    run(lambda: stack.callback(log.append, "closed"), stack.close)
    assert log == ["closed"]


def right_suppressed() -> None:
    table = {"a": 1}

    def take() -> None:
        with contextlib.suppress(KeyError):
            del table["a"]

    run(take, take)
    assert not table


def wrong_closed_twice() -> None:
    class File:
        closed = 0

        def close(self) -> None:
            self.closed += 1

    file = File()
    kept = [file]

    def use() -> None:
        if kept:
            with contextlib.closing(kept[0]):
                kept.clear()

    run(use, use)
    assert file.closed == 1


class Lazy:
    made = 0

    @functools.cached_property
    def value(self) -> object:
        self.made += 1
        return object()


def right_cached_property_is_kept() -> None:
    lazy = Lazy()
    run(lambda: lazy.value, lambda: None)
    assert lazy.value is lazy.value


def wrong_cache_of_a_function_that_counts() -> None:
    made: list[int] = []

    @functools.cache
    def of(number: int) -> object:
        made.append(number)
        return object()

    run(lambda: of(1), lambda: of(1))
    assert made == [1]


def right_cache_under_a_lock() -> None:
    made, lock = list[int](), threading.Lock()

    @functools.lru_cache(2)
    def of(number: int) -> object:
        made.append(number)
        return object()

    def ask() -> None:
        with lock:
            of(1)

    run(ask, ask)
    assert made == [1]


def right_count_gives_each_number_once() -> None:
    numbers, given = itertools.count(), list[int]()
    run(lambda: given.append(next(numbers)), lambda: given.append(next(numbers)))
    assert sorted(given) == [0, 1]


def wrong_islice_of_one_iterator() -> None:
    source, found = iter([1, 2, 3, 4]), list[list[int]]()

    def take() -> None:
        part = []
        for number in itertools.islice(source, 2):
            part.append(number)  # noqa: PERF402 - a turn of its own for each
        found.append(part)

    run(take, take)
    assert sorted(found) == [[1, 2], [3, 4]]


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


def right_members_are_looked_up() -> None:
    found: list[object] = []
    run(lambda: found.append(Color(1)), lambda: found.append(Color["RED"]))
    assert found == [Color.RED] * 2


def right_flags_are_made_at_once() -> None:
    found: list[object] = []
    run(lambda: found.append(Access(3)), lambda: found.append(Access.READ | Access.WRITE))
    assert found[0] is found[1]


class Door:
    access = Access(0)


def wrong_flags_are_added_to() -> None:
    door = Door()

    def add(flag: Access) -> None:
        door.access |= flag

    run(lambda: add(Access.READ), lambda: add(Access.WRITE))
    assert door.access == Access(3)


def right_chain_map_of_two() -> None:
    known: ChainMap[str, int] = ChainMap({}, {"a": 1})
    assert seen(lambda: known["a"], lambda: known.update(a=2)) in (1, 2)


def wrong_chain_map_is_checked_first() -> None:
    known: ChainMap[str, int] = ChainMap({"a": 1}, {})

    def take() -> None:
        if "a" in known:
            known.pop("a")

    run(take, take)
    assert "a" not in known


class Table(UserDict[str, int]):
    pass


def wrong_user_dict_counts() -> None:
    table = Table(a=0)

    def add() -> None:
        table["a"] += 1

    run(add, add)
    assert table["a"] == 2


def right_user_dict_under_a_lock() -> None:
    table, lock = Table(a=0), threading.Lock()

    def add() -> None:
        with lock:
            table["a"] += 1

    run(add, add)
    assert table["a"] == 2


def wrong_ordered_dict_moves_what_is_gone() -> None:
    table = OrderedDict(a=1, b=2)

    def use() -> None:
        if "a" in table:
            table.move_to_end("a")

    run(use, lambda: table.popitem(last=False))


def right_ordered_dict_takes_each_once() -> None:
    table, taken = OrderedDict(a=1, b=2), list[str]()
    run(lambda: taken.append(table.popitem()[0]), lambda: taken.append(table.popitem()[0]))
    assert sorted(taken) == ["a", "b"]


def wrong_bounded_deque_keeps_all() -> None:
    last: deque[int] = deque(maxlen=2)
    kept: list[int] = []

    def take() -> None:
        kept.append(last.popleft())

    last.append(1)
    run(lambda: last.extend((2, 3)), take)
    assert sorted([*kept, *last]) == [1, 2, 3]


def right_bounded_deque_keeps_the_last() -> None:
    last: deque[int] = deque(maxlen=1)
    run(lambda: last.append(1), lambda: last.append(2))
    assert len(last) == 1


class Node:
    pass


def wrong_weak_value_is_made_twice() -> None:
    known: weakref.WeakValueDictionary[str, Node] = weakref.WeakValueDictionary()
    kept: list[Any] = []

    def get() -> None:
        node = known.get("a")
        if node is None:
            node = known["a"] = Node()
        kept.append(node)

    run(get, get)
    assert kept[0] is kept[1]


def right_weak_value_is_made_once() -> None:
    known: weakref.WeakValueDictionary[str, Node] = weakref.WeakValueDictionary()
    kept: list[Any] = []

    def get() -> None:
        kept.append(known.setdefault("a", Node()))

    lock = threading.Lock()

    def get_one() -> None:
        with lock:
            get()

    run(get_one, get_one)
    assert kept[0] is kept[1]
