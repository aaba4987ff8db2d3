"""Modules with state of every kind: what an execution changes of it the next one does not find."""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import enum
import functools
import itertools
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple

total = 0
seen: list[int] = []
by_name: dict[str, list[int]] = {"a": [1]}
recent: collections.deque[int] = collections.deque([1], maxlen=3)
raw = bytearray(b"ab")
ordered = collections.OrderedDict(b=1, a=2)
grouped: collections.defaultdict[str, list[int]] = collections.defaultdict(list)
names = {"one", "two"}
lock = threading.Lock()
again = threading.RLock()
woken = threading.Condition()
event = threading.Event()
own = threading.local()
shown: contextvars.ContextVar[list[int]] = contextvars.ContextVar("shown", default=[])  # noqa: B039
numbers = itertools.count(3)
after = itertools.count(1, 2).__next__
bound = seen.append


class Pair(NamedTuple):
    """A tuple, whose list may change."""

    left: int
    right: list[int]


pair = Pair(1, [])


class Color(enum.Enum):
    """Its members may have attributes."""

    RED = 1


@dataclasses.dataclass
class Box:
    """An object with a container."""

    x: int = 0
    items: list[int] = dataclasses.field(default_factory=list)


class OtherBox(Box):
    """Another class for the same objects."""


box = Box()


class Slotted:
    """An object without a dict."""

    __slots__ = ("later", "x")

    def __init__(self) -> None:
        self.x = 0


slotted = Slotted()


class Base:
    """A class that knows those made from it."""

    count = 0
    known: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        Base.known[cls.__name__] = cls


class Made(Base):
    """One of them."""


@functools.lru_cache
def square(x: int) -> int:
    """Keeps its results."""
    return x * x


def counter() -> Any:
    """A function with a variable of its own."""
    n = 0

    def count() -> int:
        nonlocal n
        n += 1
        return n

    return count


count = counter()


class Odd(list[int]):
    """It looks empty to whoever asks itself."""

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Any:
        return iter(())


odd = Odd([1])


class Pretends:
    """It says that it is a dict."""

    x = 0
    __class__ = property(lambda self: dict)


pretends = Pretends()


class Asked:
    """It keeps what it is asked for."""

    def __getattr__(self, name: str) -> Any:
        asked_for.append(name)
        raise AttributeError(name)


asked_for: list[str] = []
asked = (Asked(),)


def untouched() -> bool:
    """Whether everything is as the import has left it."""
    return (
        (total, seen, by_name, list(recent), bytes(raw)) == (0, [], {"a": [1]}, [1], b"ab")
        and (list(ordered), dict(grouped), pair.right, box) == (["b", "a"], {}, [], Box())
        and (slotted.x, hasattr(slotted, "later"), Base.count, list(Base.known))
        == (0, False, 0, ["Made"])
        and not (hasattr(Made, "extra") or hasattr(Color.RED, "note") or hasattr(own, "x"))
        and (list.__len__(odd), pretends.x, asked_for) == (1, 0, [])
        and (square.cache_info().misses, shown.get(), event.is_set()) == (0, [], False)
        and "SERIATIM_TEST_OF_KEPT_MODULES" not in os.environ
        and not hasattr(threading, "excepthook_of_test")
        and getattr(sys, "exit_code_of_test", None) is None
    )


def change() -> None:
    """Change all of it, but the set."""
    global total
    with lock, again:
        total += 1
        bound(total)
        by_name["a"].append(2)
        by_name["b"] = []
        recent.extend([1, 2, 3])
        raw[0] = 0
        ordered.move_to_end("b")
        grouped["x"].append(1)
        pair.right.append(1)
        box.x += 1
        box.items.append(box.x)
        slotted.x, slotted.later = 1, 2  # type: ignore[attr-defined]
        Base.count += 1
        Made.extra = 1  # type: ignore[attr-defined]
        Color.RED.note = 1  # type: ignore[attr-defined]
        own.x = 1
        shown.get().append(1)
        list.append(odd, 2)
        pretends.x += 1
        square(3)
        count()
    event.set()


def state_of_modules() -> None:
    assert untouched()
    assert (next(numbers), after(), count()) == (3, 1, 1)
    os.environ["SERIATIM_TEST_OF_KEPT_MODULES"] = "1"
    sys.exit_code_of_test = 1  # type: ignore[attr-defined]
    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (total, Base.count, count(), next(numbers)) == (2, 2, 4, 4)


def state_of_pools() -> None:
    assert next(numbers) == 3
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(next, numbers) for _ in range(2)]
    assert sorted(r.result() for r in results) == [4, 5]


def twice(function: Callable[[], object]) -> None:
    """Let two threads call a function."""
    threads = [threading.Thread(target=function) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def locked() -> None:
    """A step of a thread."""
    with lock:
        pass


def set_that_changes() -> None:
    assert names == {"one", "two"}
    names.add("three")
    twice(locked)


def class_made_from_one() -> None:
    class Inner(Base):
        """A class of this execution."""

    assert list(Base.known) == ["Made", "Inner"]
    twice(locked)


def function_that_changes() -> None:
    assert counter.__defaults__ is None
    counter.__defaults__ = (1,)
    twice(locked)


def function_with_an_attribute() -> None:
    assert not hasattr(counter, "calls")
    counter.calls = 1  # type: ignore[attr-defined]
    twice(locked)


def function_of_another_name() -> None:
    assert counter.__name__ == "counter"
    counter.__name__ = "other"
    twice(locked)


def function_with_other_annotations() -> None:
    assert counter.__annotations__ == {"return": "Any"}
    counter.__annotations__["x"] = "int"
    twice(locked)


def object_of_another_class() -> None:
    assert type(box) is Box
    box.__class__ = OtherBox
    twice(locked)


def attributes_that_are_others() -> None:
    assert box == Box()
    box.__dict__ = {"x": 1, "items": []}
    twice(locked)


def counter_gone_wrong() -> None:
    """Lost where both read before one writes."""
    assert untouched()

    def add() -> None:
        box.x = box.x + 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert box.x == 2
