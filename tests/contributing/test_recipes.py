"""The pages that teach by example: each block of Python runs as it stands, and prints what is written below it."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / ".github" / "CONTRIBUTING.md"
OWN = ROOT / "spec" / "OWN_PROPERTIES.md"
GUIDE = ROOT / "spec" / "guide"
RECIPES = {
    "A program", "A mutant", "A property", "A check of the pipeline", "An event", "A profile",
    "An API call", "A system",
}  # fmt: skip
BLOCK = re.compile(r"^```(?P<kind>python|text)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """(source, what it prints) of each block of Python, in the order of the page."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["kind"] == "python":
            found.append((block["body"], ""))
        else:
            found[-1] = (found[-1][0], block["body"])
    return found


def test_there_is_a_recipe_for_each_thing_that_one_adds() -> None:
    headings = set(re.findall(r"^### (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert headings == RECIPES, "each kind of addition has a recipe, and each recipe is listed here"


@pytest.mark.parametrize(
    ("page", "least"),
    [
        (PAGE, len(RECIPES)),
        (OWN, 4),
        (GUIDE / "broker-author.md", 1),
        (GUIDE / "python.md", 2),
    ],
)
def test_every_recipe_prints_what_it_says(
    page: Path, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec").symlink_to(ROOT / "spec")
    recipes = blocks(page)
    assert len(recipes) >= least, "some recipe has no example"
    module = ModuleType("recipe")  # later recipes use what earlier ones made
    monkeypatch.setitem(sys.modules, "recipe", module)
    shared: dict[str, Any] = vars(module)
    for source, prints in recipes:
        assert prints, f"nothing is said of what this prints:\n{source}"
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, str(page), "exec"), shared)
        assert [line.rstrip() for line in out.getvalue().splitlines()] == [
            line.rstrip() for line in prints.splitlines()
        ]
