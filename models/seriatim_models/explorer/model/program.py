"""A program under test: what an execution of it depends on besides the schedule, and when one must stop."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from seriatim_models.explorer.errors import Misuse
from seriatim_models.explorer.model.attributes import AttributeObserver, ObservedExecution
from seriatim_models.explorer.model.execution import Execution, Space
from seriatim_models.explorer.model.world import World

Program = Callable[[World], object]
"""Builds shared state and spawns threads; called once for each execution."""


@dataclass(frozen=True)
class Setting:
    """How the program is run: everything besides the schedule that an execution depends on."""

    real_time: bool = False
    timeouts: int = 1
    spurious: int = 0
    stuck_ok: bool = False


@dataclass
class Limits:
    """Bounds of one execution, and budgets of a whole exploration."""

    max_executions: int | None = None
    seconds: float | None = None
    max_steps: int = 5000
    preemptions: int | None = None
    keep_going: bool = False

    def stop(self, ex: Execution) -> str:
        """Why an execution that could go on must not: ``failed``, ``cut``, or "" if it may."""
        if ex.failures and not self.keep_going:
            return "failed"
        return "cut" if ex.steps >= self.max_steps else ""


def refuse_no_program(program: object) -> None:
    """Raise `Misuse` for what is no function of one argument, the world."""
    if not callable(program):
        raise Misuse(f"{program!r} is no program: that is a function that takes the world")
    try:
        inspect.signature(program).bind(None)
    except TypeError as error:
        name = getattr(program, "__name__", repr(program))
        raise Misuse(f"a program is called with the world, and {name}: {error}") from None
    except ValueError:  # it is written in C, and does not say what it takes
        return


class ProgramUnderTest:
    """Makes executions of one program, in one setting, with common numbers for its threads and objects.

    With an `observer`, data races on the attributes that it observes are found in them.
    A program may say in `execution_class` of which class its executions are.
    """

    def __init__(
        self,
        program: Program,
        setting: Setting,
        limits: Limits,
        space: Space | None = None,
        observer: AttributeObserver | None = None,
    ) -> None:
        self.program = program
        self.setting = setting
        self.limits = limits
        self.space = Space() if space is None else space
        self.observer = observer
        self.visible = False
        """Whether a thread has taken a step that others could see, in one of the executions that were followed."""

    def fresh(self, log: bool = False, *, repeating: bool = False) -> Execution:
        """A new execution, set up and stopped before its first step; `log` keeps its steps for reading.

        With `repeating` it is so at first (see `World.repeating`), if it is of a class that can.
        """
        setting = self.setting
        observer = self.observer
        kind = getattr(self.program, "execution_class", Execution)
        ex: Execution = (kind if observer is None else ObservedExecution)(
            self.program,
            self.space,
            real_time=setting.real_time,
            timeouts=setting.timeouts,
            spurious=setting.spurious,
            log=log,
        )
        if observer is not None:
            assert isinstance(ex, ObservedExecution)
            observer.execution = ex
        ex.repeating = repeating and type(ex) is Execution
        try:
            ex.start()
        except BaseException:
            ex.close()
            raise
        return ex
