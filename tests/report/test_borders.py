"""Names of strangers reach people as symbols, on the terminal, in XML and on pages; never as commands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from seriatim_models.cli import run
from seriatim_models.cli.console import terminal
from seriatim_models.report.history_view import story_id
from seriatim_models.report.terminal import table
from seriatim_models.report.visible import LONG, one_line, shortened, titled, visible

EVIL = "q\x00\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnorw\u2066\u200b\ufffe<img src=x onerror=alert(1)>]]>&\"'"
EVIL += "[red][/no]\nok: all is well\r"
HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufffe\uffff]"
)


def recording(path: Path, run_name: str, q: str) -> Path:
    """Two consumers of one queue are given the same message."""
    events: list[dict[str, object]] = [
        {"ev": "publish", "ph": "invoke", "conn": "c", "ch": 1, "m": f"m of {q}", "pub": q, "pseq": 0},
        {"ev": "consume", "ph": "ok", "conn": q, "ch": 1, "ctag": f"t1 {q}", "prefetch": 1},
        {"ev": "consume", "ph": "ok", "conn": "c2", "ch": 1, "ctag": f"t2 {q}", "prefetch": 1},
        {"ev": "deliver", "conn": q, "ch": 1, "m": f"m of {q}", "ctag": f"t1 {q}", "dtag": 1, "redelivered": False},
        {"ev": "deliver", "conn": "c2", "ch": 1, "m": f"m of {q}", "ctag": f"t2 {q}", "dtag": 1, "redelivered": False},
        {"ev": "ack", "conn": q, "ch": 1, "dtag": 1, "ph": "invoke"},
        {"ev": "get", "conn": q, "ch": 1, "ph": "ok"},
    ]  # fmt: skip
    header = {"schema": "qh/1", "run": run_name, "lvl": "api", "clk": "h"}
    rows = [header, *({"i": n, "t": n * 1000, "q": q} | e for n, e in enumerate(events, 1))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + f"no event {q}\n")
    return path


def test_the_recording_of_these_tests_would_do_harm() -> None:
    assert HARMFUL.search(EVIL)
    assert not HARMFUL.search(visible(EVIL))
    assert visible("plain, ä 漢 \U0001f407\tand\n") == "plain, ä 漢 \U0001f407\tand\n"
    assert one_line("a\nb\tc") == "a\u240ab\u2409c"
    assert visible("\ud800") == "<U+D800>"


def test_no_name_commands_the_terminal_or_breaks_the_xml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path / "a.jsonl", f"run {EVIL}", EVIL)
    page, xml, saved = (tmp_path / f"a.{form}" for form in ("html", "xml", "json"))
    svg = tmp_path / "b.svg"
    assert run(["audit", str(path), "--html", str(page), "--junit", str(xml)]) == 1
    assert run(["audit", str(path), "-v", "--json", str(saved)]) == 1
    assert run(["show", str(saved)]) == 1
    assert run(["show", str(path), "--html", str(tmp_path / "b.html"), "--svg", str(svg)]) == 0
    assert run(["lint", str(path)]) == 0
    said = capsys.readouterr()
    assert not re.search(r"^\W*ok: all is well", said.out, re.MULTILINE), "a line that is not ours"
    assert not HARMFUL.search(svg.read_text())
    assert any("\u241b" in "".join(e.itertext()) for e in ET.parse(svg).iter())
    for text in (said.out, said.err):
        assert not HARMFUL.search(text), HARMFUL.search(text)
    assert "\u241b]0;own" in said.out.replace("\n", ""), "it is shown all the same"
    suites = ET.parse(xml).getroot()
    assert any("\u241b" in str(s.get("message")) for s in suites.iter("failure"))
    for made in (page, tmp_path / "b.html"):
        text = made.read_text(encoding="utf-8")
        assert not HARMFUL.search(text.replace("\r", ""))
        assert "<img src=x" not in text
        assert "\\u001b" not in text


def test_a_name_of_any_length_takes_a_line_or_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path / "a.jsonl", "r" * 50_000, "q" * 50_000)
    for command in (["audit"], ["audit", "-v"], ["show"], ["lint"]):
        assert run([*command, str(path)]) in (0, 1)
        assert len(capsys.readouterr().out) < 20_000, command


def test_what_is_left_out_is_folded_and_counted_as_one_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = recording(tmp_path / "a.jsonl", "r", "q" * 100)
    path.write_text(path.read_text().replace('"ph": "invoke"', f'"ph": "{"x y" * 40}"', 1))
    for command in ("audit", "show"):
        run([command, str(path)])
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[4], lines[-1]]))
    for command in ("audit", "show"):
        run([command, str(path)])
        said = capsys.readouterr().out
        assert "1 line left out" in said
        assert not re.search(r"\b1 (\w+ )?(lines|events|executions)\b", said), said


def test_an_error_of_a_stranger_is_shown_as_symbols(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", f"/nowhere/{EVIL.replace(chr(0), '')}"]) == 2
    assert not HARMFUL.search(capsys.readouterr().err)


def test_a_long_word_is_shortened_and_stands_whole_in_its_tooltip() -> None:
    name = "a" * 5000 + "<b>" + "z" * 5000
    assert shortened(f"queue {name} of c") == f"queue {'a' * 80}...{'z' * 20} of c"
    assert shortened("a " * LONG) == "a " * LONG
    made = str(titled(name))
    assert made.startswith(f'<span title="{"a" * 5000}&lt;b&gt;')
    assert made.endswith(f">{'a' * 80}...{'z' * 20}</span>")
    assert titled("short <b>") == "short <b>"


def test_two_runs_never_share_an_id() -> None:
    names = ["a b", "a.b", "a:b", "x" * 100, "x" * 101, "plain", "a\ud800", "a?"]
    assert len({story_id(name) for name in names}) == len(names)
    assert story_id("plain") == "history-plain"


def test_a_cell_of_a_table_is_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bracket in the id of a property of one's own, or in a forged result, was an error of the terminal's library."""
    for columns in ("80", "6"):
        monkeypatch.setenv("COLUMNS", columns)
        made = table("a", "b")
        made.add_row("[red]P1[/nope]", "\\[x] :warning:")
        terminal(stderr=False).print(made)
        assert "[red]P1[/nope]" in "".join(capsys.readouterr().out.split())
