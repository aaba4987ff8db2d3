"""When objects die is seen by programs that look: each program's name says what its verdict is."""

from __future__ import annotations

import pytest
from tests.own_code import lifetimes

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.python import check

EXPECTED = {"right": "ok", "wrong": "violated", "withheld": "inconclusive"}
PROGRAMS = sorted(name for name in vars(lifetimes) if name.partition("_")[0] in EXPECTED)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verdict_is_that_of_its_name(name: str) -> None:
    result = check(getattr(lifetimes, name), seconds=60)
    assert result.verdict == EXPECTED[name.partition("_")[0]], str(result)


def test_collecting_cycles_is_refused() -> None:
    with pytest.raises(OutsideModel, match=r"gc.collect.*lifetimes.py:\d+.*Break the cycle"):
        check(lifetimes.refused_collection, seconds=60)
