"""What the standard library keeps for a program is seen: each program's name says what its verdict is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.own_code import going_through, library, written_in_python

from seriatim_models.explorer.python import check

EXPECTED = {"right": "ok", "wrong": "violated", "withheld": "inconclusive"}
PROGRAMS = [
    getattr(module, name)
    for module in (library, going_through, written_in_python)
    for name in sorted(vars(module))
    if name.partition("_")[0] in EXPECTED
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_verdict_is_that_of_its_name(program: Callable[[], None]) -> None:
    name = program.__name__
    result = check(program, seconds=60)
    assert result.verdict == EXPECTED[name.partition("_")[0]], str(result)
