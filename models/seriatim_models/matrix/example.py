"""An execution of a program of the matrix to look at, where nothing is wrong with any."""

from __future__ import annotations

from types import ModuleType

from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace.counterexample import Counterexample
from seriatim_models.explorer.trace.replay_run import counterexample, follow
from seriatim_models.matrix.cells import MAX_STEPS, CallPair, PairProgram
from seriatim_models.matrix.scene import MatrixSystem


def taking_turns(system: MatrixSystem, lib: ModuleType, pair: CallPair) -> Counterexample:
    """Return the execution in which the threads take a step each in turn, with all that there is to read about it.

    Nothing is wrong in it, unless something is wrong with the program: `violations` is empty in any case.
    """
    program = PairProgram(system, lib, pair)
    runner = Runner(program, Setting(), Limits(max_steps=MAX_STEPS))
    with guarded():
        execution = follow(runner, [], patience=1)
        assert execution is not None, "every schedule begins with the empty one"
        schedule = list(execution.schedule)
        execution.close()
        return counterexample(runner, str(pair), schedule, [])
