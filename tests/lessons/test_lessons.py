"""Everything that a chapter runs prints what the chapter shows; every exercise has an answer and needs one."""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from seriatim_models import cli
from seriatim_models.cli import exercises, lesson_runner
from seriatim_models.explorer import Result
from seriatim_models.report import lessons
from seriatim_models.report.lessons import Lesson, LessonError

CHAPTERS = lessons.all_in(lesson_runner.folder())


def prints_match(printed: str, expected: str) -> bool:
    """Whether the output is what the chapter shows; spaces at line ends and empty lines around do not count."""
    pattern = "".join(map(_pattern, _lines(expected)))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(printed))) is not None


def _lines(text: str) -> list[str]:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").split("\n")


def _pattern(line: str) -> str:
    """A line of nothing but dots is any number of lines."""
    if line == "...":
        return r"(?:[^\n]*\n)*?"
    return r"[^\n]*".join(re.escape(part) for part in line.split("...")) + r"\n"


def named(lesson: Lesson) -> str:
    return lesson.name


def test_there_are_enough() -> None:
    assert 8 <= len(CHAPTERS) <= 12


@pytest.mark.slow
@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_a_chapter_prints_what_it_says(
    lesson: Lesson, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # chapters quote lines as they are before they are folded
    place = lesson_runner.LessonRunner()
    compared = 0
    for step in lesson.runs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            place.run(step, cli.run)
        if step.prints is not None:
            compared += 1
            diff = difflib.unified_diff(
                step.prints.splitlines(),
                printed.getvalue().splitlines(),
                f"{lesson.name}.md:{step.line} says",
                "printed",
                lineterm="",
            )
            assert prints_match(printed.getvalue(), step.prints), "\n".join(diff)
    assert compared >= 2


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_a_chapter_has_something_to_step_through(lesson: Lesson, checkout: Path) -> None:
    found = lesson_runner.stories(lesson)
    assert found
    assert all(expected.broken or expected.what for expected in found.values())
    page = lessons.page(lesson, found, CHAPTERS)
    assert page.count('class="story"') == len(found)
    assert "Answer" in page


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_a_chapter_says_how_to_step_through_it(lesson: Lesson) -> None:
    drawn = f"`seriatim learn {lesson.number} --html lesson.html`"
    assert drawn in lesson.text or "`seriatim show shop.jsonl --html shop.html`" in lesson.text


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_a_chapter_names_its_source(lesson: Lesson) -> None:
    assert "“" in lesson.text.partition("\n## Source\n")[2]


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_commands_in_the_prose_can_be_typed(lesson: Lesson, checkout: Path, run: Any) -> None:
    place = lesson_runner.LessonRunner()
    for step in lesson.runs:
        if step.kind == "python":
            place.run_program(step)
    for command in re.findall(r"`seriatim ([^`]+)`", lesson.text):
        ran = run(*shlex.split(command))
        assert ran.code in (0, 1), ran.err


# ---- exercises


def judged(lesson: Lesson, source: str, file: Path) -> bool:
    file.write_text(source)
    try:
        found = exercises.check(lesson, file)
    except exercises.NotYet:
        return False
    return all(f.verdict == "ok" for f in found.values())


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_the_answer_is_right_and_the_start_is_not(lesson: Lesson, tmp_path: Path) -> None:
    assert judged(lesson, lesson.answer, tmp_path / "answer.py")
    assert not judged(lesson, lesson.start, tmp_path / "start.py")


NEARLY = {
    "one number off": (1, "WRONG = 4", "WRONG = 3"),
    "gives up when it loses": (2, "while (left", "if (left"),
    "never unlinks": (3, "elif after is not None:", "elif False:"),
    "unlinks the last": (3, "elif after is not None:", "else:"),
    "deletes by unlinking too": (
        3,
        "marked[node].set(True)",
        'marked[node].set(True); following["head"].set(following[node].get())',
    ),
    "rewinds to the same pointer": (4, "here[1] + 1", "here[1]"),
    "rewinds only who went past": (4, "    while True:", "    while passed(pointer.get()):"),
    "never goes on": (4, "(place + 1, rewinds)", "(place, rewinds)"),
    "looks before it rests": (5, "        resting.set(True)\n", ""),
    "sleeps whatever it saw": (5, "        if messages.get() == 0:\n            bell", "        bell"),
    "tells nobody": (6, 'bell["low"].release()', "pass"),
    "wakes before it is true": (
        6,
        "    high_wants.set(False)\n    if waiting.get():\n        bell[\"low\"].release()\n",
        "    if waiting.get():\n        bell[\"low\"].release()\n    high_wants.set(False)\n",
    ),
    "never drops": (7, 'return state.compare_and_set("AVAILABLE", "DEQUEUED")', "return False"),
    "goes home without a look": (8, "if work.get() > 0 and in_progress", "if False and in_progress"),
    "two who find it free": (
        8,
        "if work.get() > 0 and in_progress.compare_and_set(False, True):",
        "if work.get() > 0 and not in_progress.get_and_set(True) or work.get() > 0:",
    ),
    "sleeps at once": (9, "while written.get() == read:\n                news.wait()", "news.wait()"),
    "waits once": (9, "            while written", "            if read == 0 and written"),
    "saves up while idle": (10, "    if not slot.waiting:\n        slot.deficit = 0\n", ""),
    "earns for every job": (10, "        slot.deficit -= slot", "        slot.deficit += slot.quantum - slot"),
    "another property": (11, "P3", "P2"),
    "another message": (11, '"m1"', '"m2"'),
    "who is woken does not look again": (12, "while self.items:", "if self.items:"),
    "wakes one who may be the wrong one": (12, "notify_all()", "notify()"),
    "closes without a word": (12, "self.closed = True\n            self.changed.notify_all()", "self.closed = True"),
    "forgets what was put": (12, "            if not self.items:\n", "            if self.closed:\n"),
    "looks, and then makes": (
        12,
        "return self.boxes.setdefault(name, Box())",
        "self.boxes[name] = self.boxes.get(name) or Box()\n        return self.boxes[name]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", NEARLY)
def test_rejects_what_is_nearly_right(mistake: str, tmp_path: Path) -> None:
    number, right, wrong = NEARLY[mistake]
    lesson = CHAPTERS[number - 1]
    assert right in lesson.answer
    assert not judged(lesson, lesson.answer.replace(right, wrong), tmp_path / "mine.py")


def test_every_exercise_has_an_answer_that_is_nearly_right() -> None:
    assert {number for number, _, _ in NEARLY.values()} == {c.number for c in CHAPTERS}


# ---- what chapters are made of


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("a\nb\nc\n", "a\nb\nc", True),
        ("a  \nb\n\n", "a\nb", True),
        ("a\nb\nc", "a\n...\nc", True),
        ("a\nc", "a\n...\nc", True),
        ("a\nb\nc", "...\nc", True),
        ("c", "...\nc", True),
        ("a\nb", "a\n...", True),
        ("a", "a\n...", True),
        ("a 1.5 s", "a ... s", True),
        ("a\nb\nc", "a\nc", False),
        ("a\nb\ncd", "a\n...\nc", False),
        ("xa\nb", "a\n...", False),
        ("a.b", "a.b", True),
        ("aXb", "a.b", False),
        ("", "a", False),
    ],
)
def test_dots_stand_for_anything(printed: str, expected: str, same: bool) -> None:
    assert prints_match(printed, expected) is same


WHOLE = """\
# 1. T

**Question.** Q?

## Exercise

```python
x = 1
```

<details>
<summary>Answer</summary>

```python
x = 2
```

</details>

## Source
"""


def test_a_whole_chapter_is_read(tmp_path: Path) -> None:
    file = tmp_path / "1-t.md"
    file.write_text(WHOLE)
    lesson = lessons.read(file)
    assert (lesson.title, lesson.question, lesson.start, lesson.answer) == (
        "T",
        "Q?",
        "x = 1\n",
        "x = 2\n",
    )
    assert "x = 2" not in lesson.shown
    assert "x = 2" in lesson.hidden


@pytest.mark.parametrize(
    ("left_out", "complaint"),
    [
        ("# 1. T\n", "title"),
        ("**Question.** Q?\n", "Question"),
        ("## Exercise\n", "Exercise"),
        ("## Source\n", "Source"),
        ("```python\nx = 2\n```\n", "answer"),
    ],
)
def test_rejects_a_chapter_that_lacks_something(
    tmp_path: Path, left_out: str, complaint: str
) -> None:
    file = tmp_path / "1-t.md"
    file.write_text(WHOLE.replace(left_out, ""))
    with pytest.raises(LessonError, match=complaint):
        lessons.read(file)


def test_rejects_chapters_with_a_gap(tmp_path: Path) -> None:
    (tmp_path / "2-t.md").write_text(WHOLE.replace("# 1.", "# 2."))
    with pytest.raises(LessonError, match=r"numbered \[2\]"):
        lessons.all_in(tmp_path)


def test_the_list_of_chapters_is_theirs() -> None:
    listed = re.findall(
        r"^(\d+)\. \[(.+?)\]\((.+?)\)",
        (lesson_runner.folder() / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert listed == [(str(c.number), c.title, Path(c.file).name) for c in CHAPTERS]


def test_a_check_that_explores_says_how_much(tmp_path: Path) -> None:
    lesson = CHAPTERS[1]
    mine = tmp_path / "mine.py"
    mine.write_text(lesson.answer)
    found = exercises.check(lesson, mine)
    assert len(found) == 3
    assert all(isinstance(f, Result) and (f.traces or 0) > 1 for f in found.values())


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_hints_come_before_the_answer(lesson: Lesson) -> None:
    assert len(lesson.hints) >= 2
    assert not any(hint in lesson.shown or hint in lesson.hidden for hint in lesson.hints)
    assert not any(
        line in hint for hint in lesson.hints for line in lesson.answer.splitlines() if line
    )


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_a_program_is_read_whole_in_a_terminal_of_80_columns(
    lesson: Lesson, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("learn", str(lesson.number)).out.splitlines()
    programs = [step.source for step in lesson.runs if step.kind == "python"]
    assert [line for text in programs for line in text.splitlines() if line not in shown] == []
    assert max(map(len, shown)) <= 80


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_an_exercise_is_pasted_from_a_terminal_of_80_columns(
    lesson: Lesson, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("learn", str(lesson.number)).out
    at = -1
    for line in filter(None, lesson.start.splitlines()):  # at the left margin, nothing behind
        at = shown.index(f"\n{line}\n", at + 1)


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_a_page_leads_to_the_next_and_the_one_before(lesson: Lesson) -> None:
    page = lessons.page(lesson, {}, CHAPTERS)
    assert re.findall(r'rel="prev" href="0?(\d+)-', page) == [str(lesson.number - 1)] * (
        lesson.number > 1
    )
    after = [str(lesson.number + 1)] * (lesson.number < len(CHAPTERS))
    assert re.findall(r'rel="next" href="0?(\d+)-', page) == after
    assert '<span class="k">def</span>' in page


@pytest.mark.parametrize("lesson", CHAPTERS, ids=named)
def test_a_notebook_has_every_program_and_command(lesson: Lesson) -> None:
    made = json.loads(lessons.notebook(lesson))
    nbformat.validate(made, relax_add_props=False)
    code = [cell["source"] for cell in made["cells"] if cell["cell_type"] == "code"]
    expected = [s.source.strip("\n") for s in lesson.runs if s.kind == "python"]
    assert [c for c in code if not c.startswith(("!", "%%"))] == expected
    commands = [line for c in code if c.startswith("!") for line in c.splitlines()]
    assert commands == [
        *(f"!{s.source}" for s in lesson.runs if s.kind == "command"),
        f"!seriatim learn {lesson.number} --check mine.py",
    ]
    prose = "".join(c["source"] for c in made["cells"] if c["cell_type"] == "markdown")
    assert all(hint in prose for hint in lesson.hints)
    assert lesson.hidden in prose
    assert f"%%writefile mine.py\n{lesson.start}".rstrip() in code


@pytest.mark.slow
def test_a_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a kernel of Jupyter, cell by cell; the learner has put an answer in place of what the exercise starts from."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    lesson = CHAPTERS[4]
    made = nbformat.from_dict(json.loads(lessons.notebook(lesson)))  # type: ignore[no-untyped-call]  # has no types
    for cell in made.cells:
        if cell.source.startswith("%%writefile"):
            cell.source = f"%%writefile mine.py\n{lesson.answer}"
    nbclient.NotebookClient(made, timeout=100, kernel_name="python3").execute(cwd=str(tmp_path))
    printed = ["".join(o.get("text", "") for o in c.get("outputs", ())) for c in made.cells]
    assert any("starved: consumer waits" in text for text in printed)
    assert any("Right: 2 programs" in text for text in printed)
