"""Running one schedule again, with all that there is to read about it."""

from __future__ import annotations

from seriatim_models.explorer.errors import CHANCE, NondeterministicProgram
from seriatim_models.explorer.model.execution import PATIENCE, Execution, going_on
from seriatim_models.explorer.model.guard import line_of
from seriatim_models.explorer.model.operations import (
    CallBoundary,
    Get,
    Join,
    Spawn,
    Swap,
    Thread,
    Wait,
    shown,
)
from seriatim_models.explorer.model.program import Limits, ProgramUnderTest
from seriatim_models.explorer.trace import replay_token
from seriatim_models.explorer.trace.counterexample import Counterexample, Schedule, Step, Violation
from seriatim_models.explorer.trace.cycles import find_cycle
from seriatim_models.explorer.trace.termination import STUCK, classify, explain

UNSEEN = (Spawn, Join, CallBoundary)
"""Steps that show nothing of what the program shares."""


def follow(
    tested: ProgramUnderTest, schedule: Schedule, *, lenient: bool = False, patience: int = PATIENCE
) -> Execution | None:
    """Run a schedule with everything kept for reading.

    After its last step the execution goes on by itself, without choices, if it can;
    after `patience` steps in a row the next thread has its turn.
    With `lenient` (for shrinking) steps that cannot happen are left out; without, None is returned when one cannot.
    """
    ex = tested.fresh(log=True)
    try:
        ex.world.is_replay = True
        log: list[Step] = ex.log if ex.log is not None else []
        last: Thread | None = None
        turns = 0
        at = 0
        while True:
            enabled = ex.enabled()
            ex.end = _end(ex, tested.limits, enabled, ended=at >= len(schedule))
            if ex.end:
                break
            thread = None
            while at < len(schedule):
                number, alternative = schedule[at]
                at += 1
                found = ex.order[number] if number < len(ex.order) else None
                if found in enabled and found is not None and alternative < _alternatives(found):
                    thread = found
                    break
                if not lenient:
                    ex.close()
                    return None
            if thread is None:
                thread, alternative = going_on(enabled, last, turns, patience), 0
            turns = turns + 1 if thread is last else 1
            if not isinstance(thread.op, UNSEEN):
                tested.visible = True
            log.append(_taken(ex, thread, alternative, last is not None and last in enabled))
            if not thread.virtual:
                last = thread
        ex.finish(ex.end)
        return ex
    except BaseException:
        ex.close()
        raise


def _end(ex: Execution, limits: Limits, enabled: list[Thread], *, ended: bool) -> str:
    """How the execution ends here, "" if it goes on; `ended` when the schedule has no more steps."""
    if not enabled:
        return classify(ex)
    early = limits.stop(ex)
    if early == "failed" and not ended:
        return ""  # it was found by a search that went on
    if early == "cut":
        ex.cycle = find_cycle(ex.log or [], [t.name for t in enabled])
        going = not all(t.daemon for t in enabled)
        if ex.cycle is not None and ex.cycle.fair and going and ex.steps_show_all_state:
            return "livelock"
    return early


def _alternatives(thread: Thread) -> int:
    return thread.op.alternatives() if thread.op is not None else 0


def _taken(ex: Execution, thread: Thread, alternative: int, last_could: bool) -> Step:
    """Take a step and return its description."""
    op = thread.op
    assert op is not None
    description = ex.describe(thread)
    records = len(ex.world.records)
    place = line_of(getattr(thread.greenlet, "gr_frame", None))
    previous = ex.log[-1].thread if ex.log else thread.name
    result = ex.step(thread, alternative)
    if isinstance(op, Spawn):
        shows = str(result.name)
    elif isinstance(op, Wait) or (result is None and not isinstance(op, Get | Swap)):
        shows = ""  # a look that found None shows None
    else:
        shows = shown(result)
    preempts = last_could and previous != thread.name and not thread.virtual
    recorded = tuple(ex.world.records[records:])
    return Step(ex.steps, thread.name, description, shows, preempts, recorded, place)


def counterexample(
    tested: ProgramUnderTest, name: str, schedule: Schedule, violations: list[Violation]
) -> Counterexample:
    """Run the schedule again, and keep what there is to read."""
    ex = follow(tested, schedule)
    if ex is None:
        raise NondeterministicProgram(
            f"the schedule that broke the program cannot be run again. {CHANCE}"
        )
    stuck = ex.end in STUCK and ex.end != "livelock"
    why = explain(ex) if stuck else ""
    made = Counterexample(
        name,
        tokened(tested, name, ex),
        list(ex.schedule),
        list(ex.log or []),
        [Violation(v.kind, why) if stuck and v.kind == ex.end else v for v in violations],
        ex.end,
        [t.name for t in ex.order[1:] if not t.virtual],
        list(ex.world.records),
        0 if ex.cycle is None else ex.cycle.period,
    )
    ex.close()
    return made


def tokened(tested: ProgramUnderTest, name: str, ex: Execution) -> str:
    """The token of an execution that was followed."""
    operations = [f"{s.thread} {s.op}" for s in ex.log or []]
    setting = tested.setting
    return replay_token.write(
        replay_token.Replayable(
            replay_token.program_hash(name, operations),
            setting.real_time,
            setting.timeouts,
            setting.spurious,
            list(ex.schedule),
        )
    )
