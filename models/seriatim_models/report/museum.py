"""The museum as pages: for each bug what happened, the interleaving to step through, and the repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seriatim_models.report.html import environment
from seriatim_models.report.stepper import Story


@dataclass(frozen=True)
class Shown:
    """One exhibit, ready to be looked at."""

    bug: str
    title: str
    alike: bool
    """The mutant makes the same mistake in another place."""
    happened: str
    repair: str
    property: str
    sentence: str
    program: str
    """What meets what, in a sentence."""
    steps: int
    story: Story
    diff: str
    command: str
    file: str
    """The name of its page."""


def pages(exhibits: Sequence[Shown], not_shown: Mapping[str, str]) -> dict[str, str]:
    """File name -> page: one for each exhibit, and the one that lists them."""
    index = environment().get_template("museum_index.html.j2")
    one = environment().get_template("museum.html.j2")
    made = {shown.file: one.render(shown=shown) for shown in exhibits}
    return {"index.html": index.render(exhibits=exhibits, not_shown=not_shown), **made}
