"""`races="error"`: a data race is a violation of the execution that has it, and of no other."""

from __future__ import annotations

import re

import pytest
from tests.own_code import racing

from seriatim_models.cli import run
from seriatim_models.explorer import Misuse, Replay
from seriatim_models.explorer.python import check

NAMES = [name for name in vars(racing) if name.startswith(("race_", "orderly_"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_is_that_of_its_name(name: str) -> None:
    result = check(getattr(racing, name), races="error", seconds=60)
    assert result.verdict == ("violated" if name.startswith("race_") else "ok"), str(result)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "race_behind_a_spin"])
def test_without_the_option_a_race_is_none(name: str) -> None:
    assert check(getattr(racing, name), seconds=60).verdict == "ok"


def test_the_spin_hides_neither_the_flag_nor_what_it_guards() -> None:
    case = check(racing.race_behind_a_spin, races="error").counterexample
    assert case is not None
    found = {str(v.what).partition(":")[0] for v in case.violations if v.kind == "data race"}
    assert found == {"Box.ready", "Box.value"}


def test_both_accesses_are_named_and_the_token_replays() -> None:
    result = check(racing.race_of_a_write_and_a_read, races="error")
    case = result.counterexample
    assert case is not None
    assert re.search(r"Box\.value: racing\.py:\d+ against racing\.py:\d+", case.text())
    assert "--attributes" in case.command
    again = check(racing.race_of_a_write_and_a_read, Replay(case.token), races="error")
    assert again.verdict == "violated"


def test_the_command_line_has_it_too() -> None:
    for name, code in (("race_in_one_schedule", 1), ("orderly_event", 0)):
        assert run(["check", f"{racing.__file__}::{name}", "--attributes"]) == code


def test_another_word_is_refused() -> None:
    with pytest.raises(Misuse, match="allowed, error"):
        check(racing.orderly_lock, races="never")
