"""Small programs that give what threads share to functions of the library in Python: see test_library.

Such a function goes through it step by step, and others run between the steps; C code goes through in one operation.
"""

from __future__ import annotations

import configparser
import copy
import dataclasses
import graphlib
import heapq
import io
import json
import random
import statistics
import string
from collections.abc import Callable
from typing import Any

import attrs
from tests.own_code.going_through import run, seen


class Box:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


@dataclasses.dataclass
class Pair:
    x: int = 0
    y: int = 0
    more: dict[int, int] = dataclasses.field(default_factory=dict)


def grows(look: Callable[[dict[str, list[int]]], object]) -> object:
    """What one thread makes of a dict while another puts something in."""
    table = {"a": [1], "b": [2]}
    return seen(lambda: look(table), lambda: table.update(c=[3]))


def torn(look: Callable[[dict[str, list[int]]], Any]) -> None:
    """One thread changes two lists, the first of them first."""
    lists = {"a": [1], "b": [1]}

    def change() -> None:
        lists["a"].append(2)
        lists["b"].append(2)

    found = seen(lambda: look(lists), change)
    assert len(found["a"]) >= len(found["b"])  # type: ignore[index]  # a copy of them


def wrong_deepcopy_of_a_dict_that_grows() -> None:
    grows(copy.deepcopy)


def wrong_deepcopy_at_two_moments() -> None:
    torn(copy.deepcopy)


def wrong_deepcopy_of_attributes_at_two_moments() -> None:
    box = Box(a=[1], b=[1])

    def change() -> None:
        box.__dict__["a"].append(2)
        box.__dict__["b"].append(2)

    found: Any = seen(lambda: copy.deepcopy(box), change)
    assert len(found.a) >= len(found.b)


def right_copy_in_one_operation() -> None:
    torn(lambda lists: {"a": [0, 0], "b": copy.copy(lists)["b"]})
    assert len(grows(copy.copy)) in (2, 3)  # type: ignore[arg-type]  # a dict


def wrong_dump_into_a_file() -> None:
    grows(lambda table: json.dump(table, io.StringIO()))


def wrong_dumps_with_lines() -> None:
    """Python, but since 3.13 `dumps` leaves that to C, too."""
    grows(lambda table: "".join(json.JSONEncoder(indent=1).iterencode(table)))


def right_dumps_by_c() -> None:
    torn(lambda lists: json.loads(json.dumps(lists)))
    table = {"a": 1, "b": 2}
    found: Any = seen(lambda: json.dumps(table), lambda: table.update(c=3))
    assert len(json.loads(found)) in (2, 3)


def wrong_dumps_that_calls_python() -> None:
    lists: dict[str, Any] = {"first": 0, "a": [1], "between": {3}, "b": [1]}

    def change() -> None:
        lists["a"].append(2)
        lists["b"].append(2)

    found: Any = seen(lambda: json.loads(json.dumps(lists, default=list)), change)
    more: Any = seen(
        lambda: json.loads(json.dumps(lists, default=lambda _: len(lists["b"]))), change
    )
    assert len(found["a"]) >= len(found["b"])
    assert more["between"] <= len(more["a"])


def wrong_dataclass_as_a_dict_at_two_moments() -> None:
    pair = Pair()

    def change() -> None:
        pair.x = 1
        pair.y = 1

    found: Any = seen(lambda: dataclasses.asdict(pair), change)
    assert found["x"] >= found["y"]


def wrong_dataclass_is_shown_at_two_moments() -> None:
    """Its `__repr__` is Python that was made of a text, and others run in it."""
    pair = Pair()

    def change() -> None:
        pair.x = 1
        pair.y = 1

    assert "x=0, y=1" not in str(seen(lambda: repr(pair), change))


@attrs.define(hash=True)
class Open:
    x: int = 0
    y: int = 0


@dataclasses.dataclass(unsafe_hash=True)
class Key:
    x: int = 0
    y: int = 0


def of_two_moments(kind: Any, look: Callable[[Any], object]) -> object:
    """What a look at an object shows while its attributes are set one after the other."""
    one = kind()

    def change() -> None:
        one.x = 1
        one.y = 1

    return seen(lambda: look(one), change)


def wrong_dataclass_equals_what_it_never_was() -> None:
    assert not of_two_moments(Key, lambda one: one == Key(0, 1))


def wrong_attrs_equal_what_they_never_were() -> None:
    assert not of_two_moments(Open, lambda one: one == Open(0, 1))


def right_dataclass_equals_only_what_it_was() -> None:
    assert not of_two_moments(Key, lambda one: one == Key(0, 2))


def right_attrs_equal_only_what_they_were() -> None:
    assert not of_two_moments(Open, lambda one: one == Open(0, 2))


def wrong_attrs_are_shown_at_two_moments() -> None:
    def change() -> None:
        one.x = 1
        one.y = 1

    one = Open()
    assert "x=0, y=1" not in str(seen(lambda: repr(one), change))


def right_attrs_are_shown() -> None:
    one = Open()
    assert "y=0" in str(seen(lambda: repr(one), lambda: setattr(one, "x", 1)))


def wrong_hash_is_one_of_two_moments() -> None:
    known = {hash(Key()), hash(Key(1, 0)), hash(Key(1, 1))}
    assert of_two_moments(Key, hash) in known


def wrong_hash_of_attrs_is_one_of_two_moments() -> None:
    known = {hash(Open()), hash(Open(1, 0)), hash(Open(1, 1))}
    assert of_two_moments(Open, hash) in known


def wrong_attrs_evolve_at_two_moments() -> None:
    assert of_two_moments(Open, lambda one: attrs.evolve(one) == Open(0, 1)) is False


def right_two_threads_show_one_dataclass() -> None:
    """Each shows all of it: that the other is within it is no circle."""
    pair, shown = Pair(), list[str]()

    def change() -> None:
        pair.x = 0
        shown.append(repr(pair))

    run(lambda: shown.append(repr(pair)), change)
    assert not [text for text in shown if "more={}" not in text]


def right_two_threads_show_one_object_of_attrs() -> None:
    one, shown = Open(), list[str]()

    def change() -> None:
        one.x = 0
        shown.append(repr(one))

    run(lambda: shown.append(repr(one)), change)
    assert shown == ["Open(x=0, y=0)"] * 2


def right_dataclass_contains_itself() -> None:
    pair = Pair()
    pair.more = {1: pair}  # type: ignore[dict-item]
    run(lambda: repr(pair), lambda: None)
    assert "..." in repr(pair)


def wrong_dataclass_is_seen_before_it_is_made() -> None:
    known, found = list[Any](), list[bool]()

    @dataclasses.dataclass
    class Early:
        x: int
        y: int

        def __new__(cls, *given: int) -> Any:
            known.append(object.__new__(cls))
            return known[0]

    def look() -> None:
        for one in known:
            found.append(hasattr(one, "x") and not hasattr(one, "y"))

    run(lambda: Early(1, 2), look)
    assert True not in found


class Tagged:
    """A key that keeps which tag it had when it was hashed."""

    def __init__(self) -> None:
        self.tag = self.hashed = 0

    def __hash__(self) -> int:
        self.hashed = self.tag
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tagged)


def wrong_entry_comes_while_its_key_is_hashed() -> None:
    """The lookup looks into the table behind the hash, and others run within that."""
    one, table, found = Tagged(), dict[Any, int](), list[tuple[int, bool]]()

    def look() -> None:
        there = one in table
        found.append((one.hashed, there))

    def fill() -> None:
        one.tag = 1
        table[Tagged()] = 1

    run(look, fill)
    assert found != [(0, True)]


def wrong_attrs_as_a_dict_at_two_moments() -> None:
    assert of_two_moments(Open, attrs.asdict) != {"x": 0, "y": 1}


def right_dataclass_is_shown() -> None:
    pair = Pair()
    assert "y=0" in str(seen(lambda: repr(pair), lambda: setattr(pair, "x", 1)))


def wrong_dataclass_with_a_dict_that_grows() -> None:
    pair = Pair(more={1: 1, 2: 2})
    run(lambda: dataclasses.asdict(pair), lambda: pair.more.update({3: 3}))


def largest(numbers: list[int]) -> list[int]:
    return heapq.nlargest(2, numbers)


def wrong_largest_of_a_list_that_grows() -> None:
    numbers = [1, 2, 3]
    assert seen(lambda: largest(numbers), lambda: numbers.append(9)) == [3, 2]


def right_largest() -> None:
    numbers = [1, 2, 3]
    assert seen(lambda: largest(numbers), lambda: numbers.append(9)) in ([3, 2], [9, 3])


def wrong_template_at_two_moments() -> None:
    values = {"a": 1, "b": 1}

    def change() -> None:
        values["a"] = 2
        values["b"] = 2

    found = seen(lambda: string.Template("$a$b").substitute(values), change)
    assert found in ("11", "22")


def right_template() -> None:
    values = {"a": 1}
    found = seen(lambda: string.Template("$a").substitute(values), lambda: values.update(a=2))
    assert found in ("1", "2")


def wrong_settings() -> None:
    settings = configparser.ConfigParser()
    settings.add_section("a")

    def count() -> None:
        settings.set("a", "n", str(int(settings.get("a", "n", fallback="0")) + 1))

    run(count, count)
    assert settings.get("a", "n") == "2"


def wrong_order_of_a_graph_that_grows() -> None:
    graph = {"a": {"b"}}
    run(
        lambda: list(graphlib.TopologicalSorter(graph).static_order()),
        lambda: graph.update(c={"d"}),
    )


def wrong_mean_of_a_list_that_is_emptied() -> None:
    numbers = [1, 2]
    run(lambda: statistics.mean(numbers), numbers.clear)


def wrong_merge_of_a_list_that_grows() -> None:
    items = [1, 3]
    found = seen(lambda: list(heapq.merge(items, [2])), lambda: items.append(4))
    assert found == [1, 2, 3]


def right_merge_of_copies() -> None:
    items = [1, 3]
    found = seen(lambda: list(heapq.merge(items[:], [2])), lambda: items.append(4))
    assert found in ([1, 2, 3], [1, 2, 3, 4])


def wrong_two_threads_draw_one_number() -> None:
    """`gauss` keeps every second number for the next call; two threads may both take it."""
    chance = random.Random(1)
    chance.gauss(0, 1)
    drawn: list[float] = []
    run(*[lambda: drawn.append(chance.gauss(0, 1))] * 2)
    assert drawn[0] != drawn[1]
