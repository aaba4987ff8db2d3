"""The museum's front page; each exhibit's page is `html.mutant_page`, with the bug that it is the likeness of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seriatim_models.report.html import Told, environment
from seriatim_models.report.model import MutantRun


def index(exhibits: Sequence[tuple[Told, MutantRun]], not_shown: Mapping[str, str]) -> str:
    """Lists the exhibits, and the bugs that are not shown with the reason."""
    template = environment().get_template("museum_index.html.j2")
    return template.render(exhibits=exhibits, not_shown=not_shown)
