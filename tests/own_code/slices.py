"""Small programs with slices, views of bytes and mappings that Python answers for: see test_library.

Each begins by either thread: `run` starts the first of its bodies first, and some have them the other way round, too.
"""

from __future__ import annotations

import io
import threading
from array import array
from collections import UserDict
from collections.abc import Callable, Iterator
from typing import Any


def run(*bodies: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _assigned_beside(ready: list[int], *, grows_first: bool) -> None:
    taken: list[int] = []
    sizes: list[int] = []

    def takes() -> None:
        taken[:] = ready
        sizes.append(len(taken))

    def grows() -> None:
        ready.append(1)

    run(*((grows, takes) if grows_first else (takes, grows)))
    assert sizes == [1]


def wrong_slice_takes_a_list_that_grows() -> None:
    _assigned_beside([0], grows_first=False)


def wrong_slice_takes_a_list_that_has_grown() -> None:
    _assigned_beside([0], grows_first=True)


def wrong_slice_takes_bytes_that_change() -> None:
    target, source = bytearray(1), bytearray(b"\1")

    def takes() -> None:
        memoryview(target)[:] = source

    def changes() -> None:
        source[0] = 2

    run(takes, changes)
    assert target[0] == 1


def wrong_slice_is_written_behind_its_generator() -> None:
    places, seen = [5], []
    state = {"made": 0}

    def makes() -> Iterator[int]:
        state["made"] = 1
        yield 1
        state["made"] = 2

    def takes() -> None:
        places[:] = makes()

    def looks() -> None:
        made = state["made"]
        seen.append((made, list(places)))

    run(takes, looks)
    assert seen[0] in ((0, [5]), (2, [1]), (0, [1]))


def right_slice_takes_all_values_at_once() -> None:
    table: dict[int, int] = {1: 1}
    taken: list[int] = []
    seen: list[list[int]] = []

    def takes() -> None:
        taken[:] = table.values()
        seen.append(taken[:])

    run(takes, lambda: table.update({2: 2, 3: 3}))
    assert seen[0] in ([1], [1, 2, 3])


def right_slice_takes_a_tuple() -> None:
    part: list[int] = [1]
    taken: list[list[int]] = []

    def takes() -> None:
        taken[:] = (part, part)

    run(takes, lambda: part.append(2))
    assert len(taken) == 2


def wrong_part_of_a_view() -> None:
    data = bytearray(4)
    part = memoryview(data)[1:][1:]

    def by_part() -> None:
        part[0] += 1

    def whole() -> None:
        data[2] += 1

    run(by_part, whole)
    assert data[2] == 2


def wrong_parts_overlap() -> None:
    data = bytearray(4)
    view = memoryview(data)
    parts = [view[n : n + 2] for n in range(2)]

    def first() -> None:
        parts[0][1] += 1

    def second() -> None:
        parts[1][0] += 1

    run(first, second)
    assert data[1] == 2


def right_parts_under_a_lock() -> None:
    data, lock = bytearray(4), threading.Lock()
    view = memoryview(data)
    parts = view[:2], view[1:]

    def first() -> None:
        with lock:
            parts[0][1] += 1

    def second() -> None:
        with lock:
            parts[1][0] += 1

    run(first, second)
    assert data[1] == 2


def right_copy_of_a_part() -> None:
    numbers = array("i", [0, 0])
    copied = numbers[:1]

    def first() -> None:
        copied[0] += 1

    def second() -> None:
        numbers[0] += 1

    run(first, second)
    assert numbers[0] == copied[0] == 1


def _gone_through(numbers: Any) -> None:
    seen: list[int] = []

    def looks() -> None:
        for number in numbers:
            seen.append(number)  # noqa: PERF402 - each turn is an operation of its own

    def changes() -> None:
        numbers[0] = 1
        numbers[1] = 1

    run(looks, changes)
    assert seen in ([0, 0], [1, 1])


def wrong_for_over_an_array() -> None:
    _gone_through(array("i", [0, 0]))


def wrong_for_over_a_view() -> None:
    _gone_through(memoryview(bytearray(2)))


def right_array_is_unpacked_at_once() -> None:
    numbers, same = array("i", [0, 0]), []

    def looks() -> None:
        x, y = numbers
        same.append(x == y)

    def changes() -> None:
        numbers[:] = array("i", [1, 1])

    run(looks, changes)
    assert same == [True]


def right_view_has_gone() -> None:
    """Bytes may change their size when nobody looks at them any more."""
    data = bytearray(4)

    def looks() -> None:
        part = memoryview(data)[1:]
        part[0] = 1

    run(looks)
    data.append(1)


def right_view_of_a_file_has_gone() -> None:
    file = io.BytesIO(b"a")

    def looks() -> None:
        file.getbuffer()[0] = 3

    run(looks)
    file.write(b"bc")
    assert file.getvalue() == b"bc"


def wrong_view_is_still_there() -> None:
    data = bytearray(4)
    view = memoryview(data)

    def grows() -> None:
        data.append(1)

    run(grows)
    view.release()


class Answers:
    """A mapping whose keys and values Python gives."""

    def keys(self) -> list[str]:
        return ["a", "b"]

    def __getitem__(self, key: str) -> int:
        return 0


class Elements:
    """To a list or set it gives elements, whatever its keys are."""

    def keys(self) -> list[str]:
        return []

    def __iter__(self) -> Iterator[int]:
        yield 1
        yield 2


def wrong_update_by_a_mapping_is_seen_half_way() -> None:
    table: dict[str, int] = {}
    sizes: list[int] = []
    run(lambda: table.update(Answers()), lambda: sizes.append(len(table)))
    assert sizes[0] in (0, 2)


def wrong_update_by_the_operator_is_seen_half_way() -> None:
    table: dict[str, int] = {}
    sizes: list[int] = []

    def fills() -> None:
        nonlocal table
        table |= UserDict(a=0, b=0)

    run(lambda: sizes.append(len(table)), fills)
    assert sizes[0] in (0, 2)


def wrong_update_by_pairs_is_seen_half_way() -> None:
    table: dict[str, str] = {}
    sizes: list[int] = []

    def fills() -> None:
        nonlocal table
        table |= ((letter, letter) for letter in "ab")

    run(fills, lambda: sizes.append(len(table)))
    assert sizes[0] in (0, 2)


def wrong_list_takes_elements_of_what_has_keys() -> None:
    taken: list[int] = []
    sizes: list[int] = []
    run(lambda: taken.extend(Elements()), lambda: sizes.append(len(taken)))
    assert sizes[0] in (0, 2)


def right_update_by_a_mapping_under_a_lock() -> None:
    table: dict[str, int] = {}
    lock, sizes = threading.Lock(), []

    def fills() -> None:
        with lock:
            table.update(Answers(), c=1)

    def looks() -> None:
        with lock:
            sizes.append(len(table))

    run(fills, looks)
    assert sizes[0] in (0, 3)
    assert table == {"a": 0, "b": 0, "c": 1}
