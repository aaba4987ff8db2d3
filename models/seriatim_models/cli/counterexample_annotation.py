"""Adding to a story its point of no return, which takes some hundred executions."""

from __future__ import annotations

import msgspec

from seriatim_models.report import ProgramRun
from seriatim_models.report.model import MutantRun
from seriatim_models.report.story import Story


def annotated(run: ProgramRun) -> ProgramRun:
    """The run with the point of no return in its story, if there is a story and the point can be found."""
    summary = run.counterexample
    if summary is None or summary.story is None or summary.story.no_return:
        return run
    from seriatim_models import explorer, programs
    from seriatim_models.explorer.search.point_of_no_return import point_of_no_return
    from seriatim_models.programs.check import Judge, runnable

    try:
        result = programs.replay(summary.token)
    except explorer.BadToken:
        return run  # somebody else's program
    case = result.explored.counterexample
    if case is None or case.period:
        return run
    ids = (result.mutant.killed_by,) if result.mutant else result.program.properties
    lost = point_of_no_return(
        runnable(result.program, result.mutant),
        case,
        real_time=result.program.real_time,
        on_execution=Judge(ids),
    )
    if lost is None:
        return run
    story = with_point_of_no_return(summary.story, lost.step, str(lost))
    return msgspec.structs.replace(
        run, counterexample=msgspec.structs.replace(summary, story=story)
    )


def annotated_mutant(mutant: MutantRun) -> MutantRun:
    """The same for the run of a mutant."""
    return msgspec.structs.replace(mutant, run=annotated(mutant.run))


def with_point_of_no_return(story: Story, step: int, explanation: str) -> Story:
    """The story with `step` as its first bad one.

    If the step is 0, which is none, the step of the last event that shows the violation stays the first bad one.
    """
    if step == 0 or step > len(story.steps):
        no_return = f"{explanation} The first bad step is where it shows."
        return msgspec.structs.replace(story, no_return=no_return)
    no_return = f"{explanation} That is the first bad step."
    return msgspec.structs.replace(story, good=step - 1, bad=step, no_return=no_return)
