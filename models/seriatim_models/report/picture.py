"""An interleaving as one picture (SVG), for a page that runs no script: a column a thread, and what each entry was.

It is light or dark as the reader's system is, and it is the same every time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seriatim_models.report.story import Story
from seriatim_models.report.templating import render

STEPS_MAX = 60
"""Longer ones are for the stepper."""
ENTRIES_MAX = 3

LANE, STATE, ROW, TOP = 375, 165, 25, 74  # pixels
CHARACTER = 7.25  # width of one, at the size of the text


class TooLong(ValueError):
    """There are more steps than a picture holds."""


class DrawnStep(NamedTuple):
    """One step, drawn."""

    n: int
    x: int
    y: int
    text: str
    kind: str


class DrawnState(NamedTuple):
    """An entry's state, from one step to another."""

    x: int
    y: int
    height: int
    text: str
    kind: str


def picture(story: Story) -> str:
    """The story as an SVG document. Raises `TooLong`."""
    if len(story.steps) > STEPS_MAX:
        raise TooLong(f"{len(story.steps)} steps; a picture holds {STEPS_MAX}")
    marks = list(_marks(story))
    entries = _entries(story)
    x = 40 + LANE * len(story.threads)
    columns = {m: list(_spans(seen, x + STATE * k)) for k, (m, seen) in enumerate(entries.items())}
    return render(
        "picture.svg.j2",
        story=story,
        marks=marks,
        columns=columns,
        lanes=[(40 + LANE * k, name) for k, name in enumerate(story.threads)],
        width=x + STATE * len(entries) + 10,
        height=TOP + ROW * len(marks) + 40,
        lost_at=TOP + ROW * (story.bad - 1) - 1 if story.no_return and story.bad else None,
        states_at=x,
        state_width=STATE,
        lane_width=LANE,
        top=TOP,
        row=ROW,
    )


def _marks(story: Story) -> Iterator[DrawnStep]:
    room = int((LANE - 30) / CHARACTER)
    for step in story.steps:
        text = f"{step.op} → {step.result}" if step.result else step.op
        text = text.replace("compare_and_set", "cas")
        kind = "bad" if step.witness or step.n == story.bad else ""
        yield DrawnStep(
            step.n,
            40 + LANE * step.lane,
            TOP + ROW * (step.n - 1),
            text if len(text) <= room else text[: room - 1] + "…",
            kind,
        )


def _entries(story: Story) -> dict[str, list[str]]:
    """What each of the first entries was before the first step and after each."""
    entries: dict[str, list[str]] = {}
    indexes = [story.initial, *(step.state for step in story.steps)]
    for at, index in enumerate(indexes):
        for section in story.states[index]:
            if not section.title.startswith("Entries of"):
                continue
            for name, state, holder, *_ in section.rows:
                if state and (name in entries or len(entries) < ENTRIES_MAX):
                    text = f"{state} by {holder}" if holder else state
                    entries.setdefault(name, [""] * at).append(text)
    return entries


def _spans(seen: Sequence[str], x: int) -> Iterator[DrawnState]:
    """A new box wherever the state changes, at the step that changes it."""
    begun = 0
    for at in range(1, len(seen) + 1):
        if at < len(seen) and seen[at] == seen[begun]:
            continue
        first, last = max(begun - 1, 0), at - 1
        if seen[begun] and last > first:
            kind = seen[begun].split(",")[0].split(" ")[0].lower()
            yield DrawnState(x, TOP + ROW * first, ROW * (last - first), seen[begun], kind)
        begun = at
