"""Every threat in spec/THREATS.md has a test, and every test that the page names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "spec" / "THREATS.md"


def rows(page: str) -> list[list[str]]:
    """The cells of the table of threats, without its head."""
    section = page.partition("\n## Threats and failures\n")[2].partition("\n## ")[0]
    return [
        line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")
    ][1:]


def there(named: str) -> bool:
    """Whether a test is where its name says."""
    file, _, function = named.partition("::")
    path = ROOT / file
    return path.is_file() and any(
        isinstance(node, ast.FunctionDef) and node.name == function
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_every_threat_has_a_test_that_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = rows(page)
    assert len(table) > 20
    assert not [row for row in table if not re.search(r"`tests/[\w/]+\.py::test_\w+`", row[-1])]
    named = re.findall(r"`(tests/[^`]+::[^`]+)`", page)
    assert not [name for name in named if not there(name)]


def test_a_test_that_is_not_there_is_seen() -> None:
    assert there("tests/test_threats.py::test_a_test_that_is_not_there_is_seen")
    assert not there("tests/test_threats.py::test_of_something_else")
    assert not there("tests/test_nothing.py::test_a_test_that_is_not_there_is_seen")
