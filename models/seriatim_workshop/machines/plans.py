"""What a generated program is, for all systems: plain data that can be started on any stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, ClassVar, Self

import msgspec
from hypothesis import strategies as st

from seriatim_models.machines.calls import ApiCall
from seriatim_models.machines.stages import ProgramStage


class ProgramPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A generated program over one system. `text` and `read` write and read it as JSON."""

    system: ClassVar[str]

    def start(self, lib: ModuleType, stage: ProgramStage) -> Any:
        """Set the program up with a reference, perhaps a mutant, spawn its threads, and return its harness.

        What is at rest is recorded at the end of the stage.
        """
        raise NotImplementedError

    def text(self) -> str:
        """Return the plan as JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the plan that `text` wrote; raises `msgspec.DecodeError`."""
        return msgspec.json.decode(text, type=cls)


class PlannedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call of a planned thread."""

    call: str
    arguments: dict[str, Any] = {}

    def run(self, calls: dict[str, ApiCall], harness: object) -> None:
        """Make the call; an argument that depends on the state is given by its number among the values there are."""
        call = calls[self.call]
        arguments = dict(self.arguments)
        for name, values in call.arguments.items():
            if callable(values):
                there = values(harness)
                arguments[name] = there[arguments[name] % len(there)]
        if call.enabled(harness, **arguments):
            call.run(harness, **arguments)


PlannedCalls = tuple[PlannedCall, ...]
SEVERAL = 3
"""From how many of what there is a step chooses."""


def steps(calls: Sequence[ApiCall], at_most: int) -> st.SearchStrategy[PlannedCalls]:
    """Return the strategy of a thread that makes one to `at_most` of these calls."""
    of_call = [
        st.builds(
            PlannedCall,
            st.just(c.name),
            st.fixed_dictionaries(
                {
                    name: st.integers(0, SEVERAL - 1)
                    if callable(values)
                    else st.sampled_from(values)
                    for name, values in c.arguments.items()
                }
            ),
        )
        for c in calls
    ]
    return st.lists(st.one_of(of_call), min_size=1, max_size=at_most).map(tuple)


def thread(
    steps: PlannedCalls,
    calls: dict[str, ApiCall],
    harness: object,
    refusals: tuple[type[BaseException], ...],
) -> Callable[[], None]:
    """Return a thread that makes the calls one after the other; a refused one is passed over."""

    def run() -> None:
        for step in steps:
            with suppress(*refusals):
                step.run(calls, harness)

    return run
