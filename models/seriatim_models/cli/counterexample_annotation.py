"""Putting into a story where its interleaving was lost. It takes some hundred executions, so only pages get it."""

from __future__ import annotations

import msgspec

from seriatim_models.report import ProgramRun
from seriatim_models.report.model import MutantRun
from seriatim_models.report.stepper import Story


def decided(run: ProgramRun) -> ProgramRun:
    """The run with a story that says when it was lost, if it has a story and that can be said."""
    found = run.counterexample
    if found is None or found.story is None:
        return run
    from seriatim_models import explorer, programs
    from seriatim_models.explorer.search.point_of_no_return import point_of_no_return
    from seriatim_models.programs.check import Judge, runnable

    try:
        result = programs.replay(found.token)
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
    story = told(found.story, lost.step, str(lost))
    return msgspec.structs.replace(run, counterexample=msgspec.structs.replace(found, story=story))


def told(story: Story, lost: int, says: str) -> Story:
    """A story with its first bad step. 0 is no step: then what convicts stays the first bad one."""
    if lost == 0 or lost > len(story.steps):
        return msgspec.structs.replace(story, fate=f"{says} The first bad step is where it shows.")
    fate = f"{says} That is the first bad step."
    return msgspec.structs.replace(story, good=lost - 1, bad=lost, fate=fate)


def decided_race(race: MutantRun) -> MutantRun:
    return msgspec.structs.replace(race, run=decided(race.run))
