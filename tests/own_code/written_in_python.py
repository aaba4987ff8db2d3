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
import statistics
import string
from collections.abc import Callable
from typing import Any

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
    grows(lambda table: json.dumps(table, indent=1))


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


def withheld_dataclass_is_shown_at_two_moments() -> None:
    """Its `__repr__` is Python, but made of a text: that others run in it is not seen."""
    pair = Pair()

    def change() -> None:
        pair.x = 1
        pair.y = 1

    assert "x=0, y=1" not in str(seen(lambda: repr(pair), change))


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
