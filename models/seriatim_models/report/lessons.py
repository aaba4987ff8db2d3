"""Lessons: a chapter of `spec/lessons` as data, and as a page.

A chapter is Markdown that any viewer shows. What runs in it is found by its fences:

- ``python`` is a program; all of a chapter share one namespace, and ``text`` right behind it is what it prints;
- ``console`` holds commands after ``$``, each followed by what it prints;
- under the heading Exercise the first ``python`` is what a learner starts from; behind it, each inside ``<details>``,
  are hints, whose summary is Hint, and the answer, whose summary is Answer.

In what is printed ``...`` stands for anything: a part of a line, or lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from seriatim_models.report.code import highlighted
from seriatim_models.report.story import Story
from seriatim_models.report.templating import environment

EXERCISE = "Exercise"
FOLDED = re.compile(r"<details>\s*<summary>(.*?)</summary>\n(.*?)</details>\n?", re.DOTALL)
ANSWER = "<summary>Answer</summary>"


class LessonError(Exception):
    """A chapter lacks something; the message names the file and what."""


class LessonStep(msgspec.Struct, frozen=True, kw_only=True):
    """A program or command of a chapter, with what it must print."""

    kind: Literal["python", "command"]
    source: str
    prints: str | None
    """None if the chapter does not show it."""
    line: int
    """Of its fence in the file, from 1."""


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """One chapter."""

    number: int
    title: str
    question: str
    file: str
    text: str
    """All of it, as Markdown."""
    runs: list[LessonStep]
    start: str
    """What a learner begins with."""
    answer: str

    @property
    def name(self) -> str:
        """The file's name without its ending; the check of the exercise bears it too."""
        return Path(self.file).stem

    @property
    def shown(self) -> str:
        """The text without hints and answer."""
        return FOLDED.sub("", self.text)

    @property
    def hints(self) -> list[str]:
        """What a learner may ask for, one after another, before the answer."""
        return [text.strip() for what, text in FOLDED.findall(self.text) if what == "Hint"]

    @property
    def hidden(self) -> str:
        """The answer with its explanation, which the page folds away."""
        return next(
            (text.strip() for what, text in FOLDED.findall(self.text) if what == "Answer"), ""
        )


def read(path: Path) -> Lesson:
    """The chapter in a file. Raises `LessonError` if there is no title, question, exercise, answer or source in it."""
    text = path.read_text(encoding="utf-8")
    title = re.search(r"\A# (\d+)\. (.+)$", text, re.MULTILINE)
    question = re.search(r"^\*\*Question\.\*\*\s+(.+?)\n\n", text, re.MULTILINE | re.DOTALL)
    for match, what in ((title, "a title `# N. ...`"), (question, "`**Question.** ...`")):
        if match is None:
            raise LessonError(f"{path}: has no {what}")
    for heading in (EXERCISE, "Source"):
        if f"\n## {heading}\n" not in text:
            raise LessonError(f"{path}: has no heading `## {heading}`")
    fences = [t for t in MarkdownIt().parse(text) if t.type == "fence"]
    exercise = text[: text.index(f"\n## {EXERCISE}\n")].count("\n") + 1
    fold = text[: text.index(ANSWER)].count("\n") if ANSWER in text else len(text)
    body = [t for t in fences if _line(t) < exercise]
    tasks = [t.content for t in fences if exercise < _line(t) < fold and t.info == "python"]
    answers = [t.content for t in fences if _line(t) > fold and t.info == "python"]
    if not tasks or not answers:
        raise LessonError(f"{path}: an exercise has a start, and an answer inside <details>")
    assert title is not None
    assert question is not None
    return Lesson(
        number=int(title[1]),
        title=title[2],
        question=" ".join(re.sub(r"[*`]", "", question[1]).split()),
        file=str(path),
        text=text,
        runs=list(_runs(body)),
        start=tasks[0],
        answer=answers[0],
    )


def _line(fence: Token) -> int:
    assert fence.map is not None
    return fence.map[0]


def _runs(fences: list[Token]) -> Iterator[LessonStep]:
    for n, fence in enumerate(fences):
        line = _line(fence) + 1
        if fence.info == "python":
            expected = fences[n + 1] if n + 1 < len(fences) else None
            assert fence.map is not None
            adjacent = (
                expected is not None
                and expected.info == "text"
                and _line(expected) == fence.map[1] + 1
            )
            prints = expected.content if expected is not None and adjacent else None
            yield LessonStep(kind="python", source=fence.content, prints=prints, line=line)
        elif fence.info == "console":
            for part in re.split(r"^\$ ", fence.content, flags=re.MULTILINE)[1:]:
                command, _, prints = part.partition("\n")
                yield LessonStep(kind="command", source=command, prints=prints or None, line=line)


def all_in(folder: Path) -> list[Lesson]:
    """The chapters of a folder in their order. Raises `LessonError` if one is missing or there twice."""
    found = sorted((read(p) for p in folder.glob("[0-9]*.md")), key=lambda lesson: lesson.number)
    numbers = [lesson.number for lesson in found]
    if numbers != list(range(1, len(found) + 1)):
        raise LessonError(f"{folder}: the chapters are numbered {numbers}")
    return found


# --------------------------------------------------------------------------------------------------
# As a page
# --------------------------------------------------------------------------------------------------


def page(lesson: Lesson, stories: Mapping[int, Story], others: list[Lesson], back: str = "") -> str:
    """The chapter with each interleaving to step through behind the program or command that finds it.

    `stories` are by the line of the fence. `others` are all chapters, to be linked to; `back` is a link to the
    report that they belong to.
    """
    env = environment()
    # Any: a template's macros are attributes that no type checker knows
    stepper: Callable[[Story], str] = cast(Any, env.get_template("stepper.j2").module).stepper

    def fence(tokens: list[Token], at: int, *_: Any) -> str:  # Any: markdown-it's own signature
        token = tokens[at]
        story = stories.get(_line(token) + 1)
        label = {"python": "Program", "text": "What it prints", "console": "Commands"}
        pre = Markup('<pre tabindex="0" aria-label="{}"><code>{}</code></pre>\n').format(
            label.get(token.info, "Text"), highlighted(token.content, token.info)
        )
        return str(pre + Markup(stepper(story)) if story else pre)

    made = MarkdownIt("commonmark", {"html": True}).enable("table")
    made.add_render_rule("fence", lambda _, tokens, at, *rest: fence(tokens, at, *rest))
    at = lesson.number - 1
    return env.get_template("lesson.html.j2").render(
        lesson=lesson,
        before=others[at - 1] if others and at else None,
        after=others[at + 1] if at + 1 < len(others) else None,
        body=Markup(made.render(lesson.text)),
        others=others,
        back=back,
        stories=bool(stories),
    )


# --------------------------------------------------------------------------------------------------
# As a notebook
# --------------------------------------------------------------------------------------------------


def notebook(lesson: Lesson) -> bytes:
    """The chapter for Jupyter: programs and commands are cells to run, and so is the check of the exercise.

    The format is nbformat 4.5. What the chapter says that its programs print is left to them.
    """
    cells: list[dict[str, object]] = []

    def add(kind: str, source: str) -> None:
        if source := source.strip("\n"):
            cell: dict[str, object] = {"id": f"cell-{len(cells)}", "cell_type": kind}
            extra: dict[str, object] = (
                {"outputs": [], "execution_count": None} if kind == "code" else {}
            )
            cells.append(cell | extra | {"metadata": {}, "source": source})

    lines = lesson.text.splitlines(keepends=True)  # `at` is the first that stands in no cell yet
    fold = next((n for n, line in enumerate(lines) if line == "<details>\n"), len(lines))
    exercise = lines.index(f"## {EXERCISE}\n")
    at = 0
    for token in MarkdownIt().parse(lesson.text):
        if token.type != "fence" or _line(token) > fold:
            continue
        assert token.map is not None
        if token.info == "python":
            add("markdown", "".join(lines[at : token.map[0]]))
            start = "%%writefile mine.py\n" if token.map[0] > exercise else ""
            add("code", start + token.content)
            if start:
                add("code", f"!seriatim learn {lesson.number} --check mine.py")
        elif token.info == "console":
            add("markdown", "".join(lines[at : token.map[0]]))
            commands = re.findall(r"^\$ (.+)$", token.content, re.MULTILINE)
            add("code", "\n".join(f"!{command}" for command in commands))
        elif token.map[0] != at + 1:  # not what the program before it prints
            continue
        at = token.map[1]
    add("markdown", "".join(lines[at:]))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    return msgspec.json.format(msgspec.json.encode(made), indent=1)
