"""What code of somebody else's raises, returns or is named, and what surrounds the command, costs a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seriatim_models.cli import learned, run
from seriatim_models.files import encoded

from .test_hostile_files import BASE

BAD_TEXT = "class Bad(Exception):\n    def __str__(self): raise ValueError\n"
PROPERTY = """
from seriatim_models.properties.base import WholeHistory
class Bare(BaseException): pass
class Bad(Exception):
    def __str__(self): raise ValueError
class X(WholeHistory):
    id = sentence = source = "x"
    reads = frozenset({"publish"})
    def cases(self, events, bad):
        BODY
"""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("raise Bare('x')", "Bare: x"),
        ("raise Bad", "Bad: its text cannot be made: ValueError"),
        ("raise EOFError('x')", "EOFError: x"),
        ("raise BrokenPipeError(32, 'what')", "seriatim: what"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("return None", "cases must return how many there were, not None"),
        ("return -1", "not -1"),
        ("return '1'", "not '1'"),
        ("bad.append('x'); return 1", "X, a property of yours: "),
        ("bad.append((5, events)); return 1", "a violation is a text and the events"),
        ("bad.append(('x', ['e'])); return 1", "X, a property of yours: "),
    ],
)
def test_what_a_property_does_wrong_is_no_verdict(
    body: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its exit codes, 0 and 1 too, are none of ours."""
    (tmp_path / "a.jsonl").write_text(BASE)
    (tmp_path / "p.py").write_text(PROPERTY.replace("BODY", body))
    assert run(["audit", str(tmp_path / "a.jsonl"), "--property", f"{tmp_path}/p.py:X"]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PROPERTY.replace('source = "x"', "source = 5"), "its id is 5, and must be a text"),
        (PROPERTY.replace('= "x"', '= ""'), "its id is '', and must be a text"),
        ("class Bare(BaseException): pass\nraise Bare('x')", "line 2: Bare: x"),
        (PROPERTY + "    def __init__(self): raise SystemExit(0)", "SystemExit: 0"),
    ],
)
def test_a_property_that_cannot_be_used_is_a_sentence(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_text(BASE)
    (tmp_path / "p.py").write_text(text.replace("BODY", "return 1"))
    assert run(["audit", str(tmp_path / "a.jsonl"), "--property", f"{tmp_path}/p.py:X"]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise Bad", "Bad: its text cannot be made: ValueError"),
        ("raise ValueError(chr(0xd800))", "ValueError: \ufffd"),
    ],
)
def test_an_exception_without_a_text_is_reported(body: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(f"{BAD_TEXT}def test_it():\n    {body}\n")
    out = tmp_path / "o.json"
    assert run(["check", f"{tmp_path}/t.py::test_it", "--json", str(out)]) == 1
    assert why in out.read_text(encoding="utf-8")


def test_help_for_who_gives_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo"]) == 2
    said = capsys.readouterr()
    assert "Usage:" in said.out
    assert said.err == ""


def test_half_a_character_does_not_reach_json() -> None:
    assert json.loads(encoded({"a": ["x\ud800y", "\U0001f600", 1]})) == {
        "a": ["x\ufffdy", "\U0001f600", 1]
    }


@pytest.mark.parametrize("value", ["\u00b2", "0", "-5", "x", "9" * 30])
def test_a_terminal_whose_size_is_no_number(value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seriatim_models.cli.submit", "list", "programs", "two"],
        env={**os.environ, "COLUMNS": value, "LINES": value},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_word_of_any_length_is_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "x" * 100_000]) == 2
    assert len(capsys.readouterr().err) < 1000
    assert run(["audit", "a\0b"]) == 2
    assert "a\u2400b has a NUL" in capsys.readouterr().err


def test_so_many_queues_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", str(tmp_path / "g"), "--queues", "9" * 20, "--events", "10"]) == 2
    assert "--queues" in capsys.readouterr().err
    assert not (tmp_path / "g").exists()


def test_a_pipe_where_answered_lessons_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    learned.file().parent.mkdir()
    os.mkfifo(learned.file())
    assert learned.names() == set()


PRINTS = """
import logging
import sys
import threading

print("HEARD at import")
sys.stderr.write("HEARD at import\x1b[2J")


def test_one():
    def work():
        print("HEARD \x1b[2J")
        sys.stdout.write("HEARD \x1b[2J")
        sys.stderr.write("HEARD \x1b[2J")
        logging.getLogger().warning("HEARD \x1b[2J")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_wrong():
    print("HEARD \x1b[2J")
    sys.stdout.write("HEARD \x1b[2J")
    assert not sys.stdout
"""


@pytest.mark.parametrize("names", [["::test_one"], ["::test_wrong"], [""]])
def test_what_a_test_prints_is_not_heard_in_each_schedule(
    names: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In this process, where its counterexample is shown, and in several."""
    path = tmp_path / "test_prints.py"
    path.write_text(PRINTS)
    code = run(["check", *(f"{path}{name}" for name in names), "--budget", "5", "--json", "-"])
    said = capfd.readouterr()
    assert "HEARD" not in said.err
    shown = json.loads(said.out)
    assert code == (3 if names == ["::test_one"] else 1)
    assert [p["verdict"] for p in shown["programs"]][-1] == (
        "inconclusive" if code == 3 else "violated"
    )
