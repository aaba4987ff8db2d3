"""Small programs in which an operator, a bound method or a descriptor of C looks into an object: see test_library."""

from __future__ import annotations

import array
import contextvars
import itertools
import re
import threading
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.own_code.going_through import run, seen


def numbers(*values: int) -> array.array[int]:
    return array.array("i", values)


# -- methods of C that know the class which defines them


def wrong_compressed_by_two() -> None:
    stream, parts = zlib.compressobj(), list[tuple[bytes, bytes]]()
    run(*(lambda data=data: parts.append((data, stream.compress(data))) for data in (b"a", b"b")))
    whole = b"".join(part for _, part in parts) + stream.flush()
    assert zlib.decompress(whole) == b"ab"


def wrong_scanned_by_two() -> None:
    scanner: Any = re.compile(".").scanner("ab")  # type: ignore[attr-defined]  # not documented
    assert seen(lambda: scanner.match().group(), scanner.match) == "a"


# -- operators


def wrong_added_if_missing() -> None:
    kept = numbers()

    def add() -> None:
        if 1 not in kept:
            kept.append(1)

    run(add, add)
    assert len(kept) == 1


def right_added_if_missing_under_a_lock() -> None:
    kept, lock = numbers(), threading.Lock()

    def add() -> None:
        with lock:
            if 1 not in kept:
                kept.append(1)

    run(add, add)
    assert len(kept) == 1


def grows(look: Callable[[array.array[int]], object]) -> object:
    kept = numbers(1)
    return seen(lambda: look(kept), lambda: kept.append(2))


def wrong_length() -> None:
    assert grows(len) == 1


def wrong_truth() -> None:
    kept = numbers()
    assert seen(lambda: "some" if kept else "none", lambda: kept.append(1)) == "none"


def wrong_equal() -> None:
    assert grows(lambda kept: kept == numbers(1))


def wrong_sum() -> None:
    assert grows(lambda kept: list(kept + numbers(3))) == [1, 3]


def wrong_extended_in_place() -> None:
    kept = numbers(1)

    def extend() -> None:
        more = kept
        more += numbers(2)

    assert seen(lambda: len(kept), extend) == 1


def wrong_children() -> None:
    root = ElementTree.Element("a")

    def add() -> None:
        if len(root) == 0:
            ElementTree.SubElement(root, "b")

    run(add, add)
    assert len(root) == 1


def wrong_variable_in_a_context() -> None:
    variable = contextvars.ContextVar[int]("variable")
    context = contextvars.copy_context()
    assert not seen(lambda: variable in context, lambda: context.run(variable.set, 1))


# -- what shares its state with another object, or is not named where it is used


def wrong_group_while_the_next_is_taken() -> None:
    groups = itertools.groupby([1, 1, 2])
    _, group = next(groups)
    assert seen(lambda: list(group), lambda: next(groups)) == [1, 1]


def wrong_group_for_each_thread() -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=found.extend, args=(group,))
        for _, group in itertools.groupby([1, 1, 2])
    ]
    for thread in threads:
        thread.start()
        thread.join()
    assert found


def right_groups_of_each_thread() -> None:
    found: list[object] = []

    def take() -> None:
        found.append([(key, list(group)) for key, group in itertools.groupby([1, 1, 2])])

    run(take, take)
    assert found == [[(1, [1, 1]), (2, [2])]] * 2


class Slotted:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


def wrong_slot_by_its_descriptor() -> None:
    slotted, slot = Slotted(), vars(Slotted)["count"]

    def add() -> None:
        slot.__set__(slotted, slot.__get__(slotted) + 1)

    run(add, add)
    assert slotted.count == 2


def wrong_notes() -> None:
    error = ValueError()

    def note() -> None:
        if not getattr(error, "__notes__", None):
            error.add_note("late")

    run(note, note)
    assert len(error.__notes__) == 1


def elements() -> Iterator[int]:
    yield 1
    yield 2


def wrong_searched_generator() -> None:
    generator = elements()
    assert seen(lambda: 1 in generator, lambda: 2 in generator)
