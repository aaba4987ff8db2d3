"""What the standard library keeps for a program is seen: each program's name says what its verdict is."""

from __future__ import annotations

import pytest
from tests.own_code import library

from seriatim_models.explorer.python import check

EXPECTED = {"right": "ok", "wrong": "violated", "withheld": "inconclusive"}
PROGRAMS = sorted(name for name in vars(library) if name.partition("_")[0] in EXPECTED)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verdict_is_that_of_its_name(name: str) -> None:
    result = check(getattr(library, name), seconds=60)
    assert result.verdict == EXPECTED[name.partition("_")[0]], str(result)
