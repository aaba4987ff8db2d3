"""What can go wrong, by whose fault.

`Misuse`: the program asks for something that the model does not have.
`NondeterministicProgram`: two runs of one schedule differ, so some chance lies outside the model; or two schedules that
differ in the order of independent steps only, so two threads share what is no cell.
`BadToken`: a replay token that cannot be read, or that belongs to another program.
`ModelBug`: the explorer itself.
"""

from __future__ import annotations

CHANCE = (
    "Is every source of chance inside the model? Look for random numbers, clocks, id() or hash() order, "
    "and state that outlives one execution; use world.choose() and world.now(), and build all state in the program."
)
"""Where to look when two runs of one schedule differ."""


class ExplorerError(Exception):
    """Anything the explorer refuses to do."""


class Misuse(ExplorerError):
    """The program uses the world in a way that has no meaning."""


class OutsideModel(Misuse):
    """The program reaches past the world: a real thread, a real lock, a sleep, a real clock."""


class SkippedTest(Misuse):
    """A test that has skipped itself before it could be explored; the exception with which it did is `skip`."""

    def __init__(self, test: str, skip: BaseException) -> None:
        super().__init__(f"{test} skips itself: {skip}")
        self.skip = skip


class NotObserved(OutsideModel):
    """A program uses a module in a way that must be observed: the search begins again with it."""

    def __init__(self, module: str) -> None:
        super().__init__(f"{module} is not observed: name it in modules= (--module {module})")
        self.module = module

    def __reduce__(self) -> tuple[type[NotObserved], tuple[str]]:
        return NotObserved, (self.module,)


class NondeterministicProgram(ExplorerError):
    """Two runs of one schedule, or of two that must be alike, differ: some state or chance lies outside the model."""


class BadToken(ExplorerError):
    """A replay token that cannot be read, or that was made from another program."""


class BadCheckpoint(ExplorerError):
    """A checkpoint that cannot be read, or that belongs to another program."""


class ModelBug(ExplorerError):
    """A mistake of the explorer, not of the program."""

    def __init__(self, what: str) -> None:
        super().__init__(f"[seriatim_models internal] {what}")
