"""The recipes of CONTRIBUTING: each block of Python runs as it stands, and prints what is written below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / ".github" / "CONTRIBUTING.md"
RECIPES = {
    "A program", "A mutant", "A property", "A check of the pipeline", "An event", "A profile",
    "An API call", "A system",
}  # fmt: skip
BLOCK = re.compile(r"^```(?P<kind>python|text)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """(source, what it prints) of each recipe's Python, in the order of the page."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if block["kind"] == "python":
            found.append((block["body"], ""))
        else:
            found[-1] = (found[-1][0], block["body"])
    return found


def test_there_is_a_recipe_for_each_thing_that_one_adds() -> None:
    headings = set(re.findall(r"^### (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert headings == RECIPES, "each kind of addition has a recipe, and each recipe is listed here"


def test_every_recipe_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recipes = blocks()
    assert len(recipes) >= len(RECIPES), "some recipe has no example"
    shared: dict[str, Any] = {"__name__": "recipe"}  # later recipes use what earlier ones made
    for source, prints in recipes:
        assert prints, f"nothing is said of what this prints:\n{source}"
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, str(PAGE), "exec"), shared)
        assert [line.rstrip() for line in out.getvalue().splitlines()] == [
            line.rstrip() for line in prints.splitlines()
        ]
