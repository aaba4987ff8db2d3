"""What a test is given is of its own modules in each execution: a race in it is found, and a right test is ok."""

from __future__ import annotations

import collections
import datetime
import fractions
import functools
import queue
import random
import re
import threading
import time
import types
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.own_code import found_by_name_helper, given_values
from tests.own_code.given_values import (
    MISSING,
    SHARED,
    Color,
    Items,
    Itself,
    Pair,
    Point,
    Racy,
    Table,
    WrongError,
)

from seriatim_models.explorer.python import check

RACY = Racy()


@pytest.mark.parametrize(
    ("test", "given"),
    [
        (given_values.of_a_kind, {"kind": Racy}),
        (given_values.of_a_kind, {"kind": functools.partial(Racy)}),
        (given_values.in_a_list, {"kinds": [Racy]}),
        (given_values.in_a_list, {"kinds": (Racy,)}),
        (given_values.as_an_object, {"made": RACY}),
        (given_values.as_a_method, {"add": RACY.add}),
    ],
)
def test_a_race_is_found_in_what_the_test_is_given(
    test: Callable[..., None], given: dict[str, Any]
) -> None:
    result = check(test, given=given)
    assert result.verdict == "violated", result.why
    assert [race.place for race in result.races] == ["Racy.n"]
    assert vars(RACY) == {"n": 0}


@pytest.mark.parametrize(
    ("test", "given"),
    [
        (given_values.a_queue, {"kind": queue.Queue}),
        (given_values.a_queue, {"kind": queue.LifoQueue}),
        (given_values.a_queue, {"kind": queue.SimpleQueue}),
        (given_values.a_lock, {"kind": threading.Lock}),
        (given_values.a_lock, {"kind": threading.RLock}),
        (given_values.a_lock, {"kind": threading.Condition}),
        (given_values.a_clock, {"now": time.monotonic}),
        (given_values.a_clock, {"now": time.time}),
        (given_values.a_sentinel, {"value": MISSING, "shared": SHARED}),
        (given_values.a_member, {"color": Color.RED, "colors": {Color.RED: [Color.RED]}}),
        (
            given_values.values,
            {
                "point": Point(1),
                "pair": Pair(1, Racy),
                "items": Items([Racy]),
                "table": Table(a=Racy),
            },
        ),
        (given_values.an_exception, {"error": WrongError("said"), "kinds": (WrongError, KeyError)}),
        (given_values.made_later, {"make": functools.partial(Racy)}),
        (given_values.a_module, {"module": found_by_name_helper}),
        (given_values.one_object_twice, {"first": RACY, "second": [RACY]}),
    ],
)
def test_a_right_test_knows_what_it_is_given(
    test: Callable[..., None], given: dict[str, Any]
) -> None:
    result = check(test, given=given)
    assert result.verdict == "ok", result.why


@pytest.mark.parametrize(
    "value",
    [
        collections.Counter("ab"), collections.OrderedDict(a=1), collections.ChainMap({}), collections.UserDict(a=1),
        collections.defaultdict(list, a=[1]), fractions.Fraction(1, 2), datetime.datetime(2020, 1, 1), random.Random(1),
        uuid.UUID(int=1), re.compile("a"), types.SimpleNamespace(a=Racy), frozenset([Racy]), {Color.RED: {Racy}},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_an_object_of_the_library_can_be_given(value: object) -> None:
    assert check(given_values.anything, given={"value": value}).verdict == "ok"


def test_what_is_not_copied_is_not_changed() -> None:
    made = Itself()
    made.n = 0  # type: ignore[attr-defined]
    assert check(given_values.not_copied, given={"value": made}).verdict == "ok"
    assert type(made) is Itself
    assert vars(made) == {"n": 0}
