"""The report as one HTML page, or an overview and a page for each part.

A page needs nothing else: no network, and a script only to step. It is light or dark as the reader's system is, and
can be read on a telephone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from markdown_it import MarkdownIt
from markupsafe import Markup

from seriatim_models.report import figures
from seriatim_models.report.model import MutantRun, ProgramRun, Report, worst
from seriatim_models.report.templating import render
from seriatim_models.report.terminal import quantity

if TYPE_CHECKING:
    from seriatim_models.programs.bug_catalogue import BugCase
    from seriatim_models.report.matrix_view import MatrixSection

Row = TypeVar("Row", ProgramRun, MutantRun)


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
    systems: Mapping[str, str] = {}
    """Which reference each program is of; long tables are folded by it."""
    bugs: Sequence[tuple[BugCase, MutantRun]] = ()
    """The bug catalogue: bugs that a broker really had, and the mutants that reproduce them."""


class ReportPart(NamedTuple):
    """A part of the report: a section of the one page, or a page of its own."""

    id: str
    title: str
    summary: str
    verdict: str = ""


def report_parts(report: Report, more: TourSections) -> list[ReportPart]:
    """The parts that the report has, in their order."""
    rows = report.rows()
    tested = sum(row.n_tested > 0 for row in rows)
    found = []
    if report.programs:
        traces = sum(run.traces or 0 for run in report.programs)
        of = f"{quantity(len(report.programs), 'program')}, {quantity(traces, 'trace')}"
        verdict = worst(run.verdict for run in report.programs)
        found.append(ReportPart("programs", "Programs", of, verdict.value))
    if more.matrix:
        verdict = worst(system.verdict for system in more.matrix.systems)
        found.append(ReportPart("matrix", "Call against call", more.matrix.extent, verdict.value))
    if report.mutants:
        killed = sum(mutant.as_expected for mutant in report.mutants)
        of = f"{killed} of {len(report.mutants)} are found by the property that must find them"
        found.append(ReportPart("mutants", "Mutants", of))
    if more.bugs:
        of = f"{len(more.bugs)} bugs that a broker really had, each reproduced"
        found.append(ReportPart("bugs", "Bug catalogue", of))
    if report.audits:
        events = sum(audit.events for audit in report.audits)
        found.append(
            ReportPart("recordings", "Recordings", f"{quantity(events, 'event')} of real systems")
        )
    if rows:
        found.append(ReportPart("properties", "Properties", f"{tested} of {len(rows)} had a case"))
    if more.fairness:
        found.append(ReportPart("fairness", "Fair shares", "published beside simulated"))
    if more.findings:
        found.append(ReportPart("findings", "Findings", "where published designs break"))
    if more.lessons:
        found.append(ReportPart("lessons", "Lessons", f"{len(more.lessons)} chapters"))
    return found


def html(report: Report, sections: TourSections | None = None) -> str:
    """The report as one page."""
    return _page(report, sections or TourSections(), None)


def pages(report: Report, sections: TourSections) -> dict[str, str]:
    """The report as an overview and a page for each part, by the names of their files."""
    names = ["index", *(part.id for part in report_parts(report, sections))]
    return {f"{name}.html": _page(report, sections, name) for name in names}


def _page(report: Report, more: TourSections, only: str | None) -> str:
    """One page: `only` a part, or all of them."""
    programs = report.programs if only in (None, "programs") else []
    shown = [*programs, *([more.race.run] if more.race and only in (None, "index") else [])]
    audits = report.audits if only in (None, "recordings") else []
    return render(
        "report.html.j2",
        report=report,
        more=more,
        only=only,
        parts=report_parts(report, more),
        race=more.race,
        repaired=more.repaired,
        rows=report.rows(),
        programs=_by_system(programs, [run.program for run in programs], more.systems),
        mutants=_by_system(
            report.mutants, [mutant.run.program for mutant in report.mutants], more.systems
        ),
        findings=Markup(_markdown(more.findings, folded=only is not None)),
        stories=any(run.story for run in shown) or any(a.stories for a in audits),
        fairness_figure=_fairness_figure(more.fairness) if only in (None, "fairness") else None,
    )


def _by_system(
    rows: Sequence[Row], programs: Sequence[str], systems: Mapping[str, str]
) -> dict[str, list[Row]]:
    """The rows of a table by the reference that each one's program is of; "" where that is not known."""
    found: dict[str, list[Row]] = {}
    for row, program in zip(rows, programs, strict=True):
        found.setdefault(systems.get(program, ""), []).append(row)
    return found


def mutant_page(
    mutant: MutantRun, sentence: str, back: str, back_title: str, bug: BugCase | None = None
) -> str:
    """A page that shows what a mutant changes, what happens then, and how the reference does it.

    `sentence` is that of the property that it violates, `back` a link to the page that leads to it and that page's
    title, `bug` the real bug that the mutant reproduces, if it does.
    """
    return render(
        "mutant.html.j2",
        mutant=mutant,
        sentence=sentence,
        back=back,
        back_title=back_title,
        bug=bug,
        story=mutant.run.story,
    )


def bug_catalogue_page(
    cases: Sequence[tuple[BugCase, MutantRun]], not_shown: Mapping[str, str]
) -> str:
    """The front page of the bug catalogue: its cases, and the bugs that have none with the reason."""
    return render("bug_catalogue.html.j2", cases=cases, not_shown=not_shown)


def _markdown(text: str, folded: bool) -> str:
    """Without its title, its headings one step smaller; `folded`: what is below the smallest is opened by them."""
    body = text.partition("\n")[2] if text.startswith("# ") else text
    made = MarkdownIt("commonmark", {"html": False}).enable("table").render(body)
    for level in (3, 2):
        made = made.replace(f"<h{level}>", f"<h{level + 1}>").replace(
            f"</h{level}>", f"</h{level + 1}>"
        )
    for inner, outer in (("h4", "h[34]"), ("h3", "h3")) if folded else ():
        section = rf"<{inner}>(.*?)</{inner}>(.*?)(?=<{outer}>|\Z)"
        made = re.sub(section, r"<details><summary>\1</summary>\2</details>", made, flags=re.DOTALL)
    return str(made)


def _fairness_figure(tables: Sequence[figures.Fairness]) -> Markup | None:
    if not tables or not figures.available():
        return None
    return Markup(figures.fairness(tables))
