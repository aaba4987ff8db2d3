"""Small programs in which `isinstance` and `issubclass` read what threads share: see test_library."""

from __future__ import annotations

import abc
import threading
from typing import Any, Protocol, runtime_checkable

from tests.own_code.going_through import run


class Asked:
    times = 0


asked = Asked()
lock = threading.Lock()


class Counting(abc.ABC):  # noqa: B024 - its hook is all that it has
    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        asked.times += 1
        return True


class CountingUnderALock(abc.ABC):  # noqa: B024
    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        with lock:
            asked.times += 1
        return True


class Plain:
    pass


@runtime_checkable
class Closes(Protocol):
    def close(self) -> None: ...


@runtime_checkable
class Sized(Protocol):
    width: int
    height: int


# -- the answer of a `__subclasshook__` is kept


def wrong_hook_that_is_asked_once() -> None:
    run(lambda: isinstance(Plain(), Counting), lambda: issubclass(Plain, Counting))
    assert asked.times == 1


def wrong_hook_within_a_union() -> None:
    run(
        lambda: isinstance(Plain(), int | Counting),
        lambda: issubclass(Plain, Counting | int),
    )
    assert asked.times == 1


def right_hook_that_is_asked_by_one() -> None:
    with lock:
        isinstance(Plain(), Counting)
    run(lambda: isinstance(Plain(), Counting), lambda: isinstance(Plain(), (int, Counting)))
    assert asked.times == 1


def wrong_hook_under_a_lock_that_is_asked_once() -> None:
    run(
        lambda: isinstance(Plain(), (int, CountingUnderALock)),
        lambda: isinstance(Plain(), CountingUnderALock),
    )
    assert asked.times == 1


def right_hook_under_a_lock() -> None:
    run(
        lambda: isinstance(Plain(), CountingUnderALock),
        lambda: isinstance(Plain(), CountingUnderALock),
    )
    assert asked.times in (1, 2)


def wrong_pattern_that_asks_once() -> None:
    def match() -> None:
        match Plain():
            case Counting():
                pass

    run(match, match)
    assert asked.times == 1


# -- a protocol looks into the object


def wrong_protocol_of_what_is_set_later() -> None:
    value: Any = Plain()
    found: list[bool] = []
    run(lambda: setattr(value, "close", print), lambda: found.append(isinstance(value, Closes)))
    assert found == [True]


def right_protocol_of_what_was_set() -> None:
    value: Any = Plain()
    value.close = print
    found: list[bool] = []
    run(lambda: setattr(value, "other", 1), lambda: found.append(isinstance(value, Closes)))
    assert found == [True]


def wrong_protocol_of_two_attributes_at_once() -> None:
    value: Any = Plain()
    value.height = 1
    found: list[bool] = []

    def move() -> None:
        del value.height
        value.width = 1

    # Never are both there, and a check that reads one after the other finds the one and then the other.
    run(move, lambda: found.append(isinstance(value, Sized)))
    assert found == [False]


def right_protocol_of_which_one_is_there() -> None:
    value: Any = Plain()
    value.height = 1
    found: list[bool] = []
    run(lambda: setattr(value, "height", 2), lambda: found.append(isinstance(value, Sized)))
    assert found == [False]
