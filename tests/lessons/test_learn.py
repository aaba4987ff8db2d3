"""`seriatim learn`: reading, running and exercises in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seriatim_models.cli import lesson_runner
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
    assert (ran.code, ran.out) == (1, "Not yet: TRACES is another number\n")
    Path("mine.py").write_text("RUNS, WRONG, TRACES = 6, 4, 4")
    assert run("learn", "1", "--check", "mine.py").out == "Right.\n"


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
        (["99"], "no chapter 99; they are numbered 1 to 11"),
        (["x"], "'x'"),
        (["--run"], "which chapter?"),
        (["1", "--run", "--answer"], "choose one"),
        (["1", "--check", "nothing.py"], "cannot read nothing.py: No such file"),
        (["1", "--check", "mine.txt"], "ends in .py"),
        (["1", "--check", "empty.py"], "empty.py: has no 'RUNS'"),
        (["1", "--check", "broken.py"], "broken.py, line 2: "),
        (["1", "--check", "raises.py"], "raises.py, line 2: ZeroDivisionError"),
        (["1", "--start", "empty.py"], "exists already"),
    ],
)
def test_rejects_what_cannot_be_done(
    run: Any, checkout: Path, arguments: list[str], complaint: str
) -> None:
    Path("mine.txt").write_text("RUNS = 1")
    Path("empty.py").write_text("")
    Path("broken.py").write_text("x = 1\ny = = 2\n")
    Path("raises.py").write_text("x = 1\ny = 1 / 0\n")
    ran = run("learn", *arguments)
    assert ran.code == 2
    assert complaint in ran.err
    assert "Traceback" not in ran.err
