"""Every threat in spec/THREATS.md has a test, and every test that the page names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from seriatim_models.history import lines
from seriatim_workshop import threats

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
    assert not [row for row in table if not threats.TEST.search(row[-2])]
    named = re.findall(r"`(tests/[^`]+::[^`]+)`", page)
    assert not [name for name in named if not there(name)]


def test_each_dependency_that_the_page_names_is_one() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("\n## Dependencies\n")[2]
    named = set(re.findall(r"`([a-z][\w-]+)`", section.partition("\n## ")[0]))
    locked = set(
        re.findall(r"^([\w-]+)==", (ROOT / ".lock/requirements.txt").read_text(), re.MULTILINE)
    )
    assert len(named) > 5
    assert named <= locked


def test_each_row_has_the_figures_of_a_run_of_its_tests() -> None:
    """A row that got another test since has too few; the command that the page names runs them."""
    page = PAGE.read_text(encoding="utf-8")
    for row in rows(page):
        passed = re.match(r"(\d+) passed", row[-1])
        assert passed is not None, row
        assert int(passed[1]) >= len(threats.TEST.findall(row[-2])), row
    ran = threats.RAN.search(page)
    assert ran is not None
    if (total := re.search(r": (\d+) tests with", ran[0])) is not None:
        assert int(total[1]) == len(set(threats.TEST.findall(page)))


def test_cases_are_counted_by_test(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text(
        '<testsuites><testsuite><testcase classname="tests.a.test_b" name="test_c[1]"/>'
        '<testcase classname="tests.a.test_b" name="test_c[2]"><skipped/></testcase>'
        '<testcase classname="tests.a.test_b" name="test_d"><failure/></testcase></testsuite></testsuites>'
    )
    row = "| who | what | comes | `tests/a/test_b.py::test_c` | 0 passed |"
    found = threats.outcomes(junit)
    head = "The last column is of one run, on a day: none."
    other = row.replace("test_c", "test_e").replace("0 passed", "7 passed")
    assert threats.filled(f"{head}\n{row}\n{other}", found, "2026-01-01").splitlines() == [
        "The last column is of runs up to 2026-01-01.",  # no sum over several runs
        row.replace("0 passed", "1 passed, 1 skipped"),
        other,
    ]
    whole = threats.filled(f"{head}\n{row}", found, "2026-01-01").splitlines()
    assert whole[0] == "The last column is of one run, on 2026-01-01: 1 tests with 2 cases."
    assert found["tests/a/test_b.py::test_d"] == {"failed": 1}


def test_a_test_that_is_not_there_is_seen() -> None:
    assert there("tests/test_threats.py::test_a_test_that_is_not_there_is_seen")
    assert not there("tests/test_threats.py::test_of_something_else")
    assert not there("tests/test_nothing.py::test_a_test_that_is_not_there_is_seen")


def test_the_bounds_that_the_page_names_are_those_of_the_reader() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert lines.LINES == 1_000_000
    assert (
        f"beyond {lines.UNPACKED >> 20} MiB and {lines.TIMES} times its size, or a million lines (or rows of Parquet) "
        f"and {lines.LINES_A_BYTE} a byte"
    ) in page
