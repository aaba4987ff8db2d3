"""`seriatim show`, `list`, `tour` and the help: looking without judging."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

COMMANDS = ("check", "audit", "show", "list", "tour")


def test_alone_it_prints_help(run: Any) -> None:
    ran = run()
    assert ran.code == 0
    assert "Examples" in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_examples(run: Any, command: str) -> None:
    ran = run(command, "--help")
    assert ran.code == 0
    lines = [line.strip() for line in ran.out.splitlines()]
    assert any(line.startswith(f"seriatim {command}") for line in lines[lines.index("Examples") :])


def test_a_token_is_shown(world: Any, run: Any) -> None:
    ran = run("show", "s1-abc")
    assert ran.code == 1
    assert "get x    |" in ran.out


def test_a_token_is_shown_as_a_page_to_step_through(world: Any, run: Any, tmp_path: Path) -> None:
    page = tmp_path / "race.html"
    ran = run("show", "s1-abc", "--html", str(page))
    assert ran.code == 1
    source = page.read_text()
    assert "seriatim show s1-abc" in source
    assert "x.set(&lt;b&gt;1&lt;/b&gt;)" in source
    assert "<b>1</b>" not in source


def test_saved_verdicts_are_shown_with_the_code_of_who_wrote_them(
    world: Any, run: Any, tmp_path: Path
) -> None:
    world.violated.add("enqueue-consume")
    file = str(tmp_path / "v.json")
    run("check", "--json", file)
    ran = run("show", file)
    assert ran.code == 1
    assert "violated" in ran.out


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"schema": "seriatim-verdicts/9"}', '{"schema": "seriatim-verdicts/1"}'],
)
def test_rejects_a_file_that_holds_no_verdicts(
    world: Any, run: Any, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "v.json"
    file.write_text(content)
    ran = run("show", str(file))
    assert ran.code == 2
    assert str(file) in ran.err


def test_rejects_a_file_that_is_not_there(run: Any) -> None:
    ran = run("show", "nowhere/v.json")
    assert ran.code == 2
    assert "no such file: nowhere/v.json" in ran.err


@pytest.mark.parametrize(
    ("what", "first"), [("programs", "program"), ("mutants", "mutant"), ("properties", "id")]
)
def test_lists_are_tables_and_json(world: Any, run: Any, what: str, first: str) -> None:
    rows = json.loads(run("list", what, "--json", "-").out)
    assert len(rows) == 2
    assert all(row[first] in run("list", what).out for row in rows)


def test_rejects_a_list_that_there_is_not(run: Any) -> None:
    ran = run("list", "propertys")
    assert ran.code == 2
    assert "did you mean 'properties'?" in ran.err


def test_the_tour_tells_all_and_writes_the_page(world: Any, run: Any, tmp_path: Path) -> None:
    world.violated.add("published-immediate")
    (tmp_path / "data").mkdir()
    ran = run(
        "tour",
        "--data",
        str(tmp_path / "data"),
        "--out",
        str(tmp_path / "report"),
        "--engine",
        "local",
    )
    assert ran.code == 0
    assert "get x    |" in ran.out
    assert "With the repair: ok in all of 12 traces" in ran.out
    page = tmp_path / "report" / "index.html"
    assert f"The report: {page}" in ran.out
    assert "x.set(&lt;b&gt;1&lt;/b&gt;)" in page.read_text()


def test_rejects_a_tour_without_recordings(run: Any) -> None:
    ran = run("tour", "--data", "nowhere")
    assert ran.code == 2
    assert "no folder 'nowhere'" in ran.err
