"""`seriatim learn`: reading, running and exercises in the terminal."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.cli import exercises, learned, lesson_runner
from seriatim_models.report import lessons

CHAPTERS = lessons.all_in(lesson_runner.folder())


def test_alone_it_lists_the_chapters(run: Any) -> None:
    ran = run("learn")
    assert ran.code == 0
    assert all(c.title in ran.out for c in CHAPTERS)


def test_a_chapter_is_read_without_its_answer(run: Any) -> None:
    ran = run("learn", "2")
    assert ran.code == 0
    assert "Compare and set" in ran.out
    assert "credit.add(-1)" in ran.out
    assert "while (left" not in ran.out


def test_the_answer_is_shown_when_asked_for(run: Any) -> None:
    assert "while (left" in run("learn", "2", "--answer").out


def test_a_chapter_is_run(run: Any) -> None:
    ran = run("learn", "7", "--run")
    assert ran.code == 0
    assert ran.out.index("$ seriatim check --mutant published-immediate\n") < ran.out.index("IM-1")
    assert ran.out.count("IM-1: m1 was delivered to A") == 2


def test_an_exercise_from_start_to_right(run: Any, checkout: Path) -> None:
    assert run("learn", "5", "--start", "mine.py").code == 0
    ran = run("learn", "5", "--check", "mine.py")
    assert "up to here it could still end well" in ran.out  # as `check` shows it
    assert ran.code == 1
    assert "starved: consumer waits" in ran.out
    assert "resting.set(True)" in ran.out
    Path("mine.py").write_text(CHAPTERS[4].answer)
    ran = run("learn", "5", "--check", "mine.py")
    assert ran.code == 0
    assert "Right: 2 programs" in ran.out


def test_an_exercise_without_a_program_is_judged_in_words(run: Any, checkout: Path) -> None:
    Path("mine.py").write_text("RUNS, WRONG, TRACES = 6, 4, 3")
    ran = run("learn", "1", "--check", "mine.py")
    assert ran.code == 1
    assert "TRACES = 3 is too few: two looks disturb nobody" in ran.out
    assert "RUNS and WRONG are right" in ran.out
    Path("mine.py").write_text("RUNS, WRONG, TRACES = 6, 4, 4")
    assert run("learn", "1", "--check", "mine.py").out == "Right.\n"


@pytest.mark.slow
def test_pages_are_written(run: Any, checkout: Path) -> None:
    assert run("learn", "1", "--html", "one.html").code == 0
    assert run("learn", "--html", "all").code == 0
    pages = sorted(Path("all").iterdir())
    assert [p.name for p in pages] == [f"{c.name}.html" for c in CHAPTERS]
    assert not list(Path().glob("*.jsonl"))  # what a chapter writes does not litter
    for page in pages:
        source = page.read_text()
        assert source.count('aria-current="page"') == 1
        assert len(source) < 1_000_000


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["99"], "no chapter 99; they are numbered 1 to 12"),
        (["x"], "'x'"),
        (["--run"], "which chapter?"),
        (["1", "--run", "--answer"], "choose one"),
        (["1", "--check", "nothing.py"], "cannot read nothing.py: No such file"),
        (["1", "--check", "mine.txt"], "ends in .py"),
        (["1", "--check", "broken.py"], "broken.py, line 2: "),
        (["1", "--check", "bytes.py"], "bytes.py, line 1: (unicode error)"),
        (["1", "--hint", "3"], "chapter 1 has hints 1 to 2"),
        (["--hint"], "which chapter?"),
        (["1", "--hint", "--answer"], "choose one"),
        (["1", "--start", "empty.py"], "exists already"),
    ],
)
def test_rejects_what_cannot_be_done(
    run: Any, checkout: Path, arguments: list[str], complaint: str
) -> None:
    Path("mine.txt").write_text("RUNS = 1")
    Path("empty.py").write_text("")
    Path("broken.py").write_text("x = 1\ny = = 2\n")
    Path("bytes.py").write_bytes(b"x = '\xff'")
    ran = run("learn", *arguments)
    assert ran.code == 2
    assert complaint in ran.err
    assert "Traceback" not in ran.err


TAKE = "def take_credit(credit):\n    "


@pytest.mark.parametrize(
    ("chapter", "source", "why"),
    [
        (1, "", "mine.py: has no 'RUNS', which the exercise asks for"),
        (1, "x = 1\ny = 1 / 0", "mine.py, line 2: ZeroDivisionError: division by zero"),
        (1, "import math\nmath.nought", "mine.py, line 2: AttributeError: module 'math' has no"),
        (1, "raise SystemExit(0)", "mine.py, line 1: SystemExit: 0"),
        (1, "raise KeyboardInterrupt", "mine.py, line 1: KeyboardInterrupt"),
        (1, "RUNS, WRONG, TRACES = '6', 4, 4", "RUNS is '6', of type str; a whole number"),
        (1, "RUNS, WRONG, TRACES = 6, True, 4", "WRONG is True, of type bool; a whole number"),
        (2, "def take(credit): pass", "has no 'take_credit'"),
        (
            2,
            "take_credit = True",
            "take_credit is True; a function take_credit(credit) is asked for",
        ),
        (2, "def take_credit(): pass", "take_credit() cannot be called as take_credit(credit)"),
        (2, "async def take_credit(credit): pass", "a plain `def` is asked for"),
        (2, f"{TAKE}yield", "a plain `def` is asked for"),
        (2, f"{TAKE}return credit.gett()", "at mine.py:2 in take_credit `return credit.gett()`"),
        (2, f"{TAKE}import threading; threading.Lock()", "threading.Lock is outside the model"),
        (
            4,
            "def start(): return {}['x']\npassed = advance = release = print",
            "line 1: KeyError: 'x'",
        ),
        (10, "def visit(slot):\n    slot.defict += 1", "mine.py, line 2: AttributeError"),
        (10, "def visit(slot):\n    assert 1 > 2", "mine.py, line 2: an assertion of yours fails"),
        (11, "MESSAGE = 'm1'", "has no 'PROPERTY', which the exercise asks for"),
        (11, "PROPERTY, MESSAGE = 'P99', 'm1'", "there is no property 'P99'"),
        (11, "PROPERTY, MESSAGE = 3, 'm1'", "there is no property 3"),
        (11, "PROPERTY, MESSAGE = 'P2', 'm1'", "PROPERTY: P2 holds here"),
        (11, "PROPERTY, MESSAGE = 'P3', 'm9'", "MESSAGE: P3 is violated, but not by 'm9'"),
    ],
)
def test_it_says_which_part_is_wrong(
    run: Any, checkout: Path, chapter: int, source: str, why: str
) -> None:
    Path("mine.py").write_text(source)
    ran = run("learn", str(chapter), "--check", "mine.py")
    assert (ran.code, ran.err) == (1, "")
    assert why in " ".join(ran.out.split())
    assert f"a hint: seriatim learn {chapter} --hint" in ran.out


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such alarm")
def test_an_answer_that_never_ends_is_not_right_yet(
    run: Any, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exercises, "SECONDS", 0.2)
    Path("mine.py").write_text("def visit(slot):\n    while True: pass")
    ran = run("learn", "10", "--check", "mine.py")
    assert ran.code == 1
    assert "mine.py, line 2: still running after 0.2 s; does it end?" in ran.out


def test_hints_come_one_after_another(run: Any) -> None:
    assert "compare_and_set" not in (first := run("learn", "2", "--hint").out)
    assert first.endswith("next: seriatim learn 2 --hint 2\n")
    second = run("learn", "2", "--hint", "2").out
    assert "compare_and_set" in second
    assert second.endswith("next: seriatim learn 2 --answer\n")


def test_what_is_right_is_remembered(run: Any, checkout: Path) -> None:
    assert "[right]" not in run("learn").out
    Path("mine.py").write_text(CHAPTERS[0].answer)
    assert run("learn", "1", "--check", "mine.py").code == 0
    listed = run("learn").out
    assert listed.count("[right]") == 1
    assert f"1 of {len(CHAPTERS)} exercises are right; next: seriatim learn 2" in listed


def test_a_damaged_memory_is_an_empty_one(run: Any, checkout: Path) -> None:
    learned.file().parent.mkdir(parents=True)
    learned.file().write_text("{")
    assert run("learn").code == 0
    Path("mine.py").write_text(CHAPTERS[0].answer)
    assert run("learn", "1", "--check", "mine.py").code == 0
    assert learned.names() == {CHAPTERS[0].name}


def test_notebooks_are_written(run: Any, checkout: Path) -> None:
    assert run("learn", "1", "--notebook", "one.ipynb").code == 0
    assert run("learn", "--notebook", "all").code == 0
    assert [p.stem for p in sorted(Path("all").iterdir())] == [c.name for c in CHAPTERS]
    assert Path("one.ipynb").read_bytes() == Path("all", f"{CHAPTERS[0].name}.ipynb").read_bytes()
