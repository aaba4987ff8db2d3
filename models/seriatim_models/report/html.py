"""The report as one HTML page that needs nothing else: no network, and a script only to step.

It is light or dark as the reader's system is, and can be read on a telephone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from markdown_it import MarkdownIt
from markupsafe import Markup

from seriatim_models.report import figures
from seriatim_models.report.model import MutantRun, ProgramRun, Report
from seriatim_models.report.templating import render

if TYPE_CHECKING:
    from seriatim_models.programs.bug_catalogue import BugCase
    from seriatim_models.report.matrix_view import MatrixSection


class LessonLink(NamedTuple):
    """A lesson, and where its page is."""

    title: str
    question: str
    link: str


class TourSections(NamedTuple):
    """What the page of a tour has beside the verdicts."""

    race: MutantRun | None = None
    """Shown above all else, side by side with what repairs it."""
    repaired: ProgramRun | None = None
    pages: Mapping[str, str] = {}
    """Mutants that have a page of their own, and where it is."""
    findings: str = ""
    """What was found in published designs, as Markdown."""
    lessons: Sequence[LessonLink] = ()
    fairness: Sequence[figures.Fairness] = ()
    matrix: MatrixSection | None = None


def html(report: Report, sections: TourSections | None = None) -> str:
    """The page."""
    more = sections or TourSections()
    shown = [*report.programs, *([more.race.run] if more.race else [])]
    return render(
        "report.html.j2",
        report=report,
        more=more,
        race=more.race,
        repaired=more.repaired,
        rows=report.rows(),
        findings=Markup(_markdown(more.findings)),
        stories=any(run.story for run in shown) or any(a.stories for a in report.audits),
        traces_figure=_traces_figure(report),
        latency_figure=_latency_figure(report),
        fairness_figure=_fairness_figure(more.fairness),
    )


def mutant_page(mutant: MutantRun, sentence: str, back: str, bug: BugCase | None = None) -> str:
    """A page that shows what a mutant changes, what happens then, and how the reference does it.

    `sentence` is that of the property that it violates, `back` a link to the report, `bug` the real bug that the
    mutant reproduces, if it does.
    """
    return render(
        "mutant.html.j2",
        mutant=mutant,
        sentence=sentence,
        back=back,
        bug=bug,
        story=mutant.run.story,
    )


def bug_catalogue_page(
    cases: Sequence[tuple[BugCase, MutantRun]], not_shown: Mapping[str, str]
) -> str:
    """The front page of the bug catalogue: its cases, and the bugs that have none with the reason."""
    return render("bug_catalogue.html.j2", cases=cases, not_shown=not_shown)


def _markdown(text: str) -> str:
    """Without its title, its headings one step smaller."""
    body = text.partition("\n")[2] if text.startswith("# ") else text
    made = MarkdownIt("commonmark", {"html": False}).enable("table").render(body)
    for level in (3, 2):
        made = made.replace(f"<h{level}>", f"<h{level + 1}>").replace(
            f"</h{level}>", f"</h{level + 1}>"
        )
    return str(made)


def _traces_figure(report: Report) -> Markup | None:
    traces = {
        run.program: run.traces
        for run in report.programs
        if run.mutant is None and run.traces is not None
    }
    cut_short = {run.program for run in report.programs if not run.exhausted}
    if len(traces) < 2 or not figures.available():
        return None
    return Markup(figures.traces_per_program(traces, cut_short))


def _latency_figure(report: Report) -> Markup | None:
    latencies = {name: ms for audit in report.audits for name, ms in audit.latencies.items()}
    if not any(latencies.values()) or not figures.available():
        return None
    return Markup(figures.latency(latencies))


def _fairness_figure(tables: Sequence[figures.Fairness]) -> Markup | None:
    if not tables or not figures.available():
        return None
    return Markup(figures.fairness(tables))
