"""Tests that are given something of their modules: it is that of each execution."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import queue
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tests.own_code import found_by_name_helper as helper

MISSING = object()
SHARED = [1]


class Racy:
    def __init__(self) -> None:
        self.n = 0

    def add(self) -> None:
        self.n += 1


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    kind: type = Racy


class Pair(collections.namedtuple("Pair", "a b")):
    pass


class Items(list[Any]):
    pass


class Table(dict[str, Any]):
    pass


class WrongError(Exception):
    pass


class Itself:
    def __deepcopy__(self, memo: dict[int, object]) -> Itself:
        return self


ITSELF = Itself()


def both(body: Callable[[], object] = int) -> None:
    threads = [threading.Thread(target=body) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def of_a_kind(kind: Callable[[], Racy]) -> None:
    made = kind()
    both(made.add)
    assert made.n == 2


def in_a_list(kinds: list[type[Racy]]) -> None:
    of_a_kind(kinds[0])


def as_an_object(made: Racy) -> None:
    assert isinstance(made, Racy)
    of_a_kind(lambda: made)


def as_a_method(add: Callable[[], None]) -> None:
    both(add)
    assert add.__self__.n == 2  # type: ignore[attr-defined]


def a_queue(kind: type[queue.Queue[int]]) -> None:
    made = kind()
    both(lambda: made.put(1))
    assert made.get() + made.get() == 2


def a_lock(kind: Callable[[], threading.Lock]) -> None:
    lock = kind()
    seen: list[int] = []

    def look() -> None:
        with lock:
            seen.append(len(seen))

    both(look)
    assert seen == [0, 1]


def a_clock(now: Callable[[], float]) -> None:
    before = now()
    time.sleep(1000)
    both()
    assert now() - before >= 1000


def a_sentinel(value: object, shared: list[int]) -> None:
    both()
    assert value is MISSING
    assert shared is SHARED


def a_member(color: Color, colors: dict[Color, list[Color]]) -> None:
    both()
    assert color is Color.RED
    assert colors == {Color.RED: [Color.RED]}


def values(point: Point, pair: Pair, items: Items, table: Table) -> None:
    both()
    assert point == Point(1)
    assert point.kind is Racy
    assert pair == Pair(1, Racy)
    assert type(pair) is Pair
    assert items == [Racy]
    assert type(items) is Items
    assert table == {"a": Racy}
    assert type(table) is Table


def an_exception(error: Exception, kinds: tuple[type[Exception], ...]) -> None:
    both()
    try:
        raise error
    except kinds as caught:
        assert caught.args == ("said",)  # noqa: PT017 - it is what this test is about


def made_later(make: functools.partial[Racy]) -> None:
    both()
    assert type(make()) is Racy


def a_module(module: ModuleType) -> None:
    both()
    assert module is helper


def one_object_twice(first: Racy, second: list[Racy]) -> None:
    both()
    assert second[0] is first


def not_copied(value: Itself) -> None:
    both()
    assert value.n == 0  # type: ignore[attr-defined]


def anything(value: object) -> None:
    both()
    assert repr(value)
