"""What the standard library keeps for a program is seen: each program's name says whether it is right."""

from __future__ import annotations

import pytest
from tests.own_code import library

from seriatim_models.explorer.python import check

PROGRAMS = sorted(name for name in vars(library) if name.startswith(("right_", "wrong_")))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verdict_is_that_of_its_name(name: str) -> None:
    result = check(getattr(library, name), seconds=60)
    expected = "ok" if name.startswith("right_") else "violated"
    assert result.verdict == expected, str(result)
