"""One call after the other, each made when nothing else moves: systems with threads of their own, state by state.

`walk` makes calls of a table in an execution of the explorer with one schedule: whatever threads the system has run
until none of them can go on, then time limits run out, then the next call is made. So a state between two calls is
one in which nothing is under way, and what the table says of a call (`CallStanding`) can be held against it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from seriatim_models.explorer import World
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.model.program import Limits, ProgramUnderTest, Setting
from seriatim_models.machines.calls import ApiCall, CallStanding

H = TypeVar("H")

RARELY = 8
CALLER = "caller"
"""Name of the thread that makes the calls."""
SETTING = Setting(timeouts=1_000_000, stuck_ok=True)
"""Every time limit may run out, and threads may be waiting at the end."""


class BrokenPromise(AssertionError):
    """A call did not do what its table says of it."""


@dataclass(frozen=True)
class Walker(Generic[H]):
    """What is walked: a system, its table, and how its state is described."""

    build: Callable[[World], H]
    """Set the system up on a world, with its threads, and return its harness."""
    calls: Mapping[str, ApiCall]
    """The calls to be made; one that may wait for another call is to be left out."""
    state: Callable[[H], str]
    """Return everything that a later call can depend on."""
    refusals: tuple[type[Exception], ...]
    """The errors by which a call is refused, or ends otherwise than by returning."""
    expect: Callable[[H, ApiCall, dict[str, Any]], Callable[[Exception | None], object]] = (
        lambda harness, call, arguments: lambda error: None
    )
    """Called before each call in contract; what it returns is called at rest after it, with the error that the call
    ended with, and may raise `BrokenPromise`."""
    rare: frozenset[str] = frozenset()
    """Calls after which there is little left to call: they are drawn one time in `RARELY`."""


def walk(walker: Walker[H], seed: int, length: int) -> set[tuple[str, CallStanding]]:
    """Make `length` calls in contract, drawn by a seed, and in each state every call that must leave it as it is.

    Returns which calls of which class were made. Raises `BrokenPromise` if a call that must be refused is not, or one
    that must leave the state as it is changes it.
    """
    made: set[tuple[str, CallStanding]] = set()

    def program(world: World) -> None:
        harness = walker.build(world)
        rest = world.cell(0, name="rest")
        drawn = random.Random(seed)

        def calls() -> None:
            rest.get()
            for _ in range(length):
                _hold_promises(walker, harness, rest.get, drawn, made)
                choices = _choices(walker, harness, CallStanding.IN_CONTRACT)
                if not choices:
                    return
                call, arguments = _drawn(walker, choices, drawn)
                made.add((call.name, CallStanding.IN_CONTRACT))
                check = walker.expect(harness, call, arguments)
                error = _make(walker, harness, call, arguments)
                rest.get()
                check(error)

        world.spawn(calls, name=CALLER)

    run_at_rest(program)
    return made


def run_at_rest(program: Callable[[World], object]) -> None:
    """Run one execution in which the thread `CALLER` goes only if no other can; raises what a thread raised."""
    with guarded():
        execution = ProgramUnderTest(program, SETTING, Limits()).fresh()
        try:
            while enabled := execution.enabled():
                execution.step(min(enabled, key=_turn), 0)
                if execution.failures:
                    raise execution.failures[0].error
        finally:
            execution.close()


def _turn(thread: Thread) -> tuple[bool, bool, int]:
    """Return a thread's place in line: threads of the system, their time limits, the caller."""
    return (thread.name == CALLER, thread.virtual, thread.number)


def _choices(
    walker: Walker[H], harness: H, standing: CallStanding
) -> list[tuple[ApiCall, dict[str, Any]]]:
    return [(c, a) for c in walker.calls.values() for a in c.choices(harness, standing)]


def _drawn(
    walker: Walker[H], choices: list[tuple[ApiCall, dict[str, Any]]], drawn: random.Random
) -> tuple[ApiCall, dict[str, Any]]:
    """Draw a call by its name first, so that one with many arguments is not drawn more often."""
    names = {c.name for c, _ in choices}
    if names - walker.rare and drawn.randrange(RARELY):
        names -= walker.rare
    name = drawn.choice(sorted(names))
    return drawn.choice([c for c in choices if c[0].name == name])


def _make(
    walker: Walker[H], harness: H, call: ApiCall, arguments: dict[str, Any]
) -> Exception | None:
    """Make a call and return the error that it ended with; an error that is none of the system's goes on."""
    try:
        call.run(harness, **arguments)
    except walker.refusals as error:
        return error
    return None


def _hold_promises(
    walker: Walker[H],
    harness: H,
    settle: Callable[[], object],
    drawn: random.Random,
    made: set[tuple[str, CallStanding]],
) -> None:
    """Make every call that the state refuses, or on which it has no effect, with arguments that are drawn."""
    before = walker.state(harness)
    for standing in (CallStanding.REFUSED, CallStanding.NO_OP):
        for call in walker.calls.values():
            choices = list(call.choices(harness, standing))
            if not choices:
                continue
            arguments = drawn.choice(choices)
            made.add((call.name, standing))
            error = _make(walker, harness, call, arguments)
            settle()
            done = f"{call.name} {arguments}, {standing.value}, ended with {error!r}"
            if (error is None) == (standing is CallStanding.REFUSED):
                raise BrokenPromise(f"{done} in the state\n{before}")
            if walker.state(harness) != before:
                raise BrokenPromise(
                    f"{done} and changed the state\n{before}\nto\n{walker.state(harness)}"
                )
