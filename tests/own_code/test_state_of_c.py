"""What C code and the system keep for threads that share it: each program's name says what its verdict is."""

from __future__ import annotations

import os

import pytest
from tests.own_code import state_of_c

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.python import check

EXPECTED = {"right": "ok", "wrong": "violated"}
PROGRAMS = sorted(name for name in vars(state_of_c) if name.partition("_")[0] in EXPECTED)
REFUSED = sorted(name for name in vars(state_of_c) if name.startswith("refused_"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verdict_is_that_of_its_name(name: str) -> None:
    result = check(getattr(state_of_c, name), seconds=60)
    assert result.verdict == EXPECTED[name.partition("_")[0]], str(result)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_schedule_controls_is_refused_with_its_line(name: str) -> None:
    with pytest.raises(OutsideModel, match=r"Put a stub in its place .* \(at state_of_c.py:\d+ in"):
        check(getattr(state_of_c, name), seconds=60)


def test_a_module_of_the_library_that_looks_at_the_clock_is_named() -> None:
    with pytest.raises(OutsideModel, match="or have gzip observed: --module gzip"):
        check(state_of_c.compressed, seconds=60)
    assert check(state_of_c.compressed, modules=["gzip"], seconds=60).verdict == "ok"


def test_the_environment_of_the_process_stays_as_it_is() -> None:
    check(state_of_c.right_environment, seconds=60)
    assert "SERIATIM_COUNT" not in os.environ
