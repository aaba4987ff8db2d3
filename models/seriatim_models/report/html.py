"""The report as one HTML page that needs nothing else: no network, and a script only to step.

It is light or dark as the reader's system is, and can be read on a telephone.
"""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from seriatim_models.report import figures
from seriatim_models.report.model import MutantRun, ProgramRun, Report
from seriatim_models.report.stepper import data
from seriatim_models.report.text import covered


def html(report: Report, race: MutantRun | None = None, repaired: ProgramRun | None = None) -> str:
    """The page. `race` and `repaired` are shown side by side above all else, if given."""
    shown = [*report.programs, *([race.run] if race else [])]
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            race=race,
            repaired=repaired,
            rows=report.rows(),
            stories=any(run.story for run in shown) or any(a.stories for a in report.audits),
            traces_figure=_traces_figure(report),
            latency_figure=_latency_figure(report),
        )
    )


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("seriatim_models.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["thousands"] = lambda n: "not counted" if n is None else f"{n:,}"
    made.filters["covered"] = covered
    made.filters["story_data"] = data
    return made


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
