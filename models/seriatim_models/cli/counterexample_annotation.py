"""Adding to a story its point of no return, which takes some hundred executions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from seriatim_models.report import ProgramRun, stepper
from seriatim_models.report.model import MutantRun

if TYPE_CHECKING:
    from seriatim_models.explorer import Counterexample


def annotated(run: ProgramRun) -> ProgramRun:
    """The run with the point of no return in its story, if there is a story and the point can be found."""
    summary = run.counterexample
    if summary is None or summary.story is None or summary.story.no_return:
        return run
    from seriatim_models import explorer, programs

    try:
        case = programs.replay(summary.token).explored.counterexample
    except explorer.BadToken:
        return run  # somebody else's program
    return run if case is None else with_first_bad_step(run, case)


def with_first_bad_step(run: ProgramRun, case: Counterexample) -> ProgramRun:
    """The run, whose counterexample is `case`, with the point of no return in its story if the point can be found."""
    summary = run.counterexample
    if summary is None or summary.story is None:
        return run
    story = stepper.annotated(summary.story, case)
    return msgspec.structs.replace(
        run, counterexample=msgspec.structs.replace(summary, story=story)
    )


def annotated_mutant(mutant: MutantRun) -> MutantRun:
    """The same for the run of a mutant."""
    return msgspec.structs.replace(mutant, run=annotated(mutant.run))
