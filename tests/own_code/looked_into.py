"""Small programs in which an operator, a bound method or a descriptor of C looks into an object: see test_library."""

from __future__ import annotations

import array
import contextlib
import contextvars
import itertools
import re
import threading
import types
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, ClassVar

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


# -- operators on variables, and C code that a class of Python is made of


def wrong_repeated_in_place() -> None:
    items = [1]

    def twice() -> None:
        mine = items
        mine *= 2

    run(twice, lambda: items.append(3))
    assert items == [1, 1, 3]


class Items(list[int]):
    size = property(len)


class Calls:
    made: ClassVar[list[int]] = []
    __call__ = made.append


def wrong_size_by_a_property_of_c() -> None:
    items = Items()

    def first() -> None:
        if items.size == 0:
            items.append(1)

    run(first, first)
    assert items.size == 1


def wrong_call_of_a_method_of_c() -> None:
    calls = Calls()
    run(lambda: calls(1), lambda: calls(2))
    assert Calls.made == [1, 2]


def wrong_method_made_of_c() -> None:
    items: list[int] = []
    append = types.MethodType(list.append, items)
    run(lambda: append(1), lambda: append(2))
    assert items == [1, 2]


def wrong_name_of_an_exception_is_unbound() -> None:
    """`except ... as error` unbinds its name at its end, also where it is another function's."""
    error: object = None

    def fail() -> None:
        nonlocal error
        try:
            raise ValueError
        except ValueError as error:  # noqa: F841 - the other function's
            pass

    def look() -> None:
        assert error is None or isinstance(error, ValueError)

    run(fail, look)


def right_name_of_an_exception_is_bound_again() -> None:
    error: object = None

    def fail() -> None:
        nonlocal error
        try:
            raise ValueError
        except ValueError as error:
            del error
        error = 1  # type: ignore[misc]  # noqa: F841 - the other function's

    run(fail)
    assert error == 1  # type: ignore[misc]  # it is bound again


class Table:
    items: ClassVar[dict[str, int]] = {"a": 0}
    __len__ = items.__len__
    __iter__ = items.__iter__
    __getattr__ = staticmethod(items.__getitem__)  # type: ignore[misc]  # it looks for a name alone


def wrong_attribute_by_a_method_of_c() -> None:
    table: Any = Table()
    assert seen(lambda: table.a, lambda: Table.items.update(a=1)) == 0


def wrong_length_by_a_method_of_c() -> None:
    assert seen(lambda: len(Table()), lambda: Table.items.update(b=1)) == 1


def wrong_names_by_a_method_of_c() -> None:
    assert seen(lambda: [*Table()], lambda: Table.items.update(b=1)) == ["a"]


def wrong_traceback_of_a_shared_exception() -> None:
    """Who raises an object again changes its traceback, also while another looks at it."""
    same: list[bool] = []
    failure: Future[None] = Future()
    failure.set_exception(ValueError())

    def look() -> None:
        try:
            failure.result()
        except ValueError as error:
            same.append(error.__traceback__ is error.__traceback__)

    run(look, look)
    assert all(same)


def wrong_cause_of_a_shared_exception() -> None:
    same: list[bool] = []
    failure = ValueError()

    def fail(cause: Exception) -> None:
        try:
            raise failure from cause
        except ValueError as error:
            same.append(error.__cause__ is cause)

    run(lambda: fail(KeyError()), lambda: fail(TypeError()))
    assert all(same)


def right_shared_exception_is_raised() -> None:
    """Nobody looks at its traceback, so there is one schedule."""
    failure = ValueError()

    def fail() -> None:
        with contextlib.suppress(ValueError):
            raise failure

    run(fail, fail)
