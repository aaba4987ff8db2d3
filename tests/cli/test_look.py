"""`seriatim show`, `list`, `tour` and the help: looking without judging."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.cli import app
from seriatim_models.cli import run as run_command
from seriatim_models.cli.help_page import TOPICS

ROOT = Path(__file__).resolve().parents[2]

TWO_HOLDERS = """\
{"schema": "qh/1", "run": "day", "rec": "me", "lvl": "api", "clk": "here"}
{"i": 1, "t": 10, "ev": "publish", "ph": "invoke", "conn": "c", "ch": 1, "q": "q", "m": "p:0", "pub": "p", "pseq": 0}
{"i": 2, "t": 20, "ev": "deliver", "conn": "d", "ch": 1, "q": "q", "m": "p:0", "ctag": "t", "dtag": 1}
{"i": 3, "t": 30, "ev": "deliver", "conn": "e", "ch": 1, "q": "q", "m": "p:0", "ctag": "u", "dtag": 1}
"""
COMMANDS = tuple(name for name, command in app.commands.items() if not command.hidden)


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
    assert "| x.set(<b>1</b>)" in ran.out


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


@pytest.mark.parametrize("what", ["programs", "mutants", "properties", "profiles"])
def test_a_list_fits_a_screen_and_every_name_is_in_it(
    what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command(["list", what, "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert run_command(["list", what]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert len(shown.splitlines()) < 80
    assert all(row[next(iter(row))] in shown.split() for row in rows)


def test_on_a_terminal_a_list_of_many_is_one_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"COLUMNS": "80", "LINES": "24", "FORCE_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    assert run_command(["list", "programs"]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) < 24
    assert "lines of names more" in shown
    assert "seriatim list programs WORD" in shown


def test_a_list_has_the_rows_with_every_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["list", "properties", "p1"]) == 0
    assert "P10" not in capsys.readouterr().out, "an id is no part of another"
    assert run_command(["list", "mutants", "IM-1", "REPAIR"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("published-immediate-repair\n")
    assert "1 of the mutants" in shown
    assert run_command(["list", "mutants", "IM-1", "REPAIR", "-v"]) == 0
    assert "killed by" in capsys.readouterr().out


def test_rejects_a_word_that_nothing_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["list", "mutants", "zzz"]) == 2
    assert "none of the mutants has 'zzz' in it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("check published-immediate", "is a mutant, not a program; `seriatim check --mutant publ"),
        ("check --mutant immediate", "is a program, not a mutant; `seriatim check immediate` takes"),
        ("check IM-1", "is a property, not a program; `seriatim explain IM-1` takes it"),
        ("show IM-1", "is a property, not a token, mutant or file; `seriatim explain IM-1`"),
        ("show immediate", "is a program, not a token, mutant or file; `seriatim check immediate`"),
        ("show published-imediate", "there is no token, mutant or file 'published-imediate'; did you"),
    ],
)  # fmt: skip
def test_a_name_of_another_kind_leads_to_what_takes_it(
    arguments: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(arguments.split()) == 2
    assert sentence in capsys.readouterr().err


def test_rejects_a_list_that_there_is_not(run: Any) -> None:
    ran = run("list", "propertys")
    assert ran.code == 2
    assert "did you mean 'properties'?" in ran.err


def test_the_tour_tells_all_and_writes_the_page(
    world: Any, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    world.violated |= {"published-immediate", "skip-lock"}
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
    assert "| x.set(<b>1</b>)" in ran.out
    assert "With the repair: ok in all of 12 traces" in ran.out
    page = tmp_path / "report" / "index.html"
    assert f"The report: {page}" in ran.out
    source = page.read_text()
    assert "x.set(&lt;b&gt;1&lt;/b&gt;)" in source
    pages = {file.name: file.read_text() for file in page.parent.glob("*.html")}
    for file in page.parent.rglob("*.html"):
        for link in re.findall(r'href="(?!https:)([^#"]+)[#"]', file.read_text()):
            assert (file.parent / link).is_file(), f"{file}: {link}"
    for inner in (
        "mutants/published-immediate",
        "lessons/01-two-threads-one-entry",
        "matrix/index",
    ):
        text = (page.parent / f"{inner}.html").read_text()
        assert f'href="../{inner.partition("/")[0]}.html"' in text.replace(
            "bugs.html", "mutants.html"
        )
    assert "mutants/published-immediate.html" in pages["mutants.html"]
    assert "lessons/01-two-threads-one-entry.html" in pages["lessons.html"]
    assert "A slice, depth 0" in pages["matrix.html"]
    assert "A slice, depth 0" in ran.out
    assert re.search(r"fair: (\d+) of \1 cells proved at depth 0", ran.out)
    assert 'href="matrix/cells/fair.' in pages["matrix.html"]


def test_rejects_a_tour_without_recordings(run: Any) -> None:
    ran = run("tour", "--data", "nowhere")
    assert ran.code == 2
    assert "no folder 'nowhere'" in ran.err


def test_help_is_one_page(run: Any) -> None:
    ran = run("help")
    assert ran.code == 0
    assert [c for c in COMMANDS if f"Usage: seriatim {c} " not in ran.out] == []


def test_the_former_name_of_bugs_still_works_and_is_not_listed(run: Any) -> None:
    assert app.commands["museum"].callback is app.commands["bugs"].callback
    assert "build/bugs" in run("museum", "--help").out
    assert "museum" not in run("--help").out


def test_help_tells_of_one_command_as_the_command_does(run: Any) -> None:
    assert run("help", "show").out == run("show", "--help").out


@pytest.mark.parametrize("topic", TOPICS)
def test_help_tells_of_a_topic(run: Any, topic: str) -> None:
    ran = run("help", topic)
    assert ran.code == 0
    assert len(ran.out.splitlines()) >= 5


def test_rejects_help_on_what_there_is_not(run: Any) -> None:
    ran = run("help", "hitsory")
    assert ran.code == 2
    assert "did you mean 'history'?" in ran.err


def test_a_mutant_is_shown_by_its_name(run: Any, tmp_path: Path) -> None:
    drawn = tmp_path / "race.svg"
    ran = run("show", "published-immediate", "--svg", str(drawn))
    assert ran.code == 1
    assert "IM-1: m1 was delivered to A" in ran.out
    assert "m1.state.set(DEQUEUED)" in drawn.read_text()


def test_rejects_a_picture_of_too_many_steps(run: Any) -> None:
    ran = run("show", "level-off-by-one", "--svg", "x.svg")
    assert ran.code == 2
    assert "140 steps; a picture holds 60" in ran.err


def test_a_recording_is_drawn(run: Any, tmp_path: Path) -> None:
    recording = tmp_path / "day.jsonl"
    recording.write_text(TWO_HOLDERS)
    page = tmp_path / "day.html"
    ran = run("show", str(recording), "--html", str(page))
    assert ran.code == 0
    assert f"day: {page} shows it" in ran.out
    assert "P2" in page.read_text()
    report = tmp_path / "report.html"
    assert run("audit", str(recording), "--html", str(report)).code == 1
    assert 'id="history-day"' in report.read_text()


def test_rejects_an_unknown_profile_of_a_drawing(run: Any, tmp_path: Path) -> None:
    recording = tmp_path / "day.jsonl"
    recording.write_text(TWO_HOLDERS)
    ran = run("show", str(recording), "--html", "x.html", "--profile", "strict-qpit")
    assert ran.code == 2
    assert "did you mean 'strict-qpid'?" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("command", [["demo", "fair"], ["show", "RECORDING"], ["list", "mutants"]])
def test_no_line_is_wider_than_80_columns(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    recording = str(ROOT / "tests" / "data" / "rabbit-classic-lockstep.jsonl.gz")
    assert run_command([recording if word == "RECORDING" else word for word in command]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) > 5
    assert [line for line in shown if len(line) > 80 and str(ROOT) not in line] == []
