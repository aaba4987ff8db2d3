"""What the standard library keeps for a program is seen: each program's name says what its verdict is."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.own_code import (
    class_checks,
    going_through,
    handed_on,
    in_use,
    library,
    looked_into,
    out_of_sight,
    read_by_c,
    slices,
    written_in_python,
)

from seriatim_models.explorer.python import check
from seriatim_models.explorer.python.called_back import ORDERING

EXPECTED = {"right": "ok", "wrong": "violated", "withheld": "inconclusive"}
PROGRAMS = [
    getattr(module, name)
    for module in (
        library,
        going_through,
        handed_on,
        looked_into,
        written_in_python,
        in_use,
        class_checks,
        out_of_sight,
        read_by_c,
        slices,
    )
    for name in sorted(vars(module))
    if name.partition("_")[0] in EXPECTED
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_verdict_is_that_of_its_name(program: Callable[[], None]) -> None:
    name = program.__name__
    result = check(program, seconds=60)
    assert result.verdict == EXPECTED[name.partition("_")[0]], str(result)


class Element:
    """Compared by Python, so that a list of them is ordered by our form of the functions of C."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __lt__(self, other: Element) -> bool:
        return self.rank < other.rank


@pytest.mark.parametrize("function", ORDERING, ids=lambda function: function.__name__)
def test_what_orders_a_list_leaves_it_as_c_does(function: Callable[..., Any]) -> None:
    """One thread alone: the same answer, and every element at the same place."""
    chance = random.Random(19)
    for size in range(12):
        for _ in range(20):
            ours = [Element(chance.randrange(9)) for _ in range(size)]
            if "heapify" not in function.__name__:
                ours.sort(reverse="max" in function.__name__)
            theirs, given = list(ours), [Element(chance.randrange(9))]
            if function.__name__.strip("_").removesuffix("_max") in ("heapify", "heappop"):
                given = []
            answers: list[object] = []
            for call, elements in ((function, theirs), (partial(ORDERING[function], 0), ours)):
                try:
                    answers.append(call(elements, *given))
                except IndexError as error:
                    answers.append(str(error))
            assert answers[0] == answers[1]
            assert ours == theirs
