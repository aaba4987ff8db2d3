"""`match` and comprehensions are rewritten: they do what they did, and what they read is seen."""

from __future__ import annotations

from types import CodeType
from typing import Any

import pytest
from tests.own_code import patterns

from seriatim_models.explorer.python import check
from seriatim_models.explorer.python.hooks import HOOKS
from seriatim_models.explorer.python.rewrite import MODULE_TOKEN, rewritten

NAMES = [name for name in vars(patterns) if name.startswith(("right_", "wrong_"))]


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_is_that_of_its_name(name: str) -> None:
    result = check(getattr(patterns, name), seconds=60)
    assert result.verdict == ("ok" if name.startswith("right_") else "violated"), str(result)


def outcomes(code: CodeType, names: dict[str, Any]) -> list[str]:
    names["__name__"] = __name__
    exec(code, names)
    seen = []
    for function in ("patterns", "misused", "bound", "comprehended", "body"):
        for value in names["VALUES"]:
            try:
                seen.append(f"{function}({value!r}) is {names[function](value)!r}")
            except Exception as error:
                seen.append(f"{function}({value!r}) raises {type(error).__name__}: {error}")
    return seen


def test_rewritten_code_does_what_it_did() -> None:
    path = "semantics.py"
    plain = outcomes(compile(patterns.SEMANTICS, path, "exec"), {})
    assert plain == outcomes(rewritten(patterns.SEMANTICS, path), {**HOOKS, MODULE_TOKEN: None})
    assert len({line.partition(" is ")[2] for line in plain}) > 30  # most cases were reached
