"""A debugger at the step of a schedule with which a program goes wrong: `--replay TOKEN --pdb`.

The schedule is run once to find that step, and once more to stop behind it, on the line of the program that took it.
What is typed at the prompt is evaluated beside the program: it takes no step, and shows what the threads share as it
is then. `n`, `s`, `r`, `u` and breakpoints are those of pdb, without the frames of the explorer.
"""

from __future__ import annotations

import bdb
import pdb
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import greenlet  # type: ignore[import-untyped]  # greenlet ships no annotations

from seriatim_models.explorer.errors import Misuse
from seriatim_models.explorer.model import watchdog
from seriatim_models.explorer.model.guard import program_text
from seriatim_models.explorer.python.accesses import now
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.trace.counterexample import Counterexample


def step_to_stop_at(case: Counterexample) -> int:
    """The number of the last step that stands in a line of the program. Raises `Misuse` if there is none."""
    for step in reversed(case.events):
        if step.place is not None:
            return step.n
    raise Misuse(
        "--pdb: this schedule goes wrong before its first step: there is nothing to stop at"
    )


class ScheduleDebugger(pdb.Pdb):
    """`pdb` on the terminal of the process, for a program that runs under a schedule."""

    def __init__(self) -> None:
        super().__init__(
            stdin=sys.stdin, stdout=sys.stdout, nosigint=True,
            skip=["seriatim_models.*", "greenlet", "greenlet.*"],
        )  # fmt: skip
        self.prompt = "(schedule) "

    def interaction(self, *stopped: Any) -> None:
        """Ask what to do; meanwhile no program runs, and nobody is impatient."""
        running, now.execution = now.execution, None
        try:
            with watchdog.patient():
                super().interaction(*stopped)
        finally:
            now.execution = running

    def user_exception(self, frame: FrameType, raised: Any) -> None:
        """As in `pdb`, but for what ends the threads of an execution that is over."""
        if issubclass(raised[0], greenlet.GreenletExit):
            self.set_continue()
        else:
            super().user_exception(frame, raised)

    def stop(self, frame: FrameType) -> None:
        """Ask here, and go on as was asked for."""
        self.reset()
        above: FrameType | None = frame
        while above is not None:
            above.f_trace = self.trace_dispatch
            self.botframe = above
            above = above.f_back
        self.set_step()
        self.interaction(frame, None)
        if self.quitting:
            raise bdb.BdbQuit
        if self.breaks or self.stoplineno != -1:
            sys.settrace(self.trace_dispatch)


def stopping(ex: PythonExecution, number: int) -> Callable[[], Any]:
    """What stands for `ex.switch`, and stops once in the thread that has taken the step of this number."""
    switch = ex.switch

    def switched() -> Any:
        result = switch()
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not program_text(frame.f_code.co_filename):
            frame = frame.f_back
        asked = ex.search.stop_at is not None and ex.steps == number
        if asked and frame is not None and ex.current is not None:
            ex.search.stop_at = None
            print(
                f"stopped behind step {number}, in {ex.current.name}: q ends, c goes on", flush=True
            )
            ScheduleDebugger().stop(frame)
        return result

    return switched
