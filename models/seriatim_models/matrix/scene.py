"""What the matrix asks of a system: universes, and scenes in which calls are enumerated, made and looked at.

A *universe* is what may exist: these consumers, those messages. A *scene* is a running instance of a system in a
universe, on a stage (one thread, or an execution of the explorer). It interprets the system's table of API calls
(`seriatim_models.machines`): which calls there are now, with which arguments, who may make them, and their class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import ModuleType
from typing import Any, Literal, Protocol

import msgspec

from seriatim_models.machines.calls import ApiCall, CallStanding
from seriatim_models.machines.stages import Stage
from seriatim_models.properties.base import AnyProperty


class Invocation(msgspec.Struct, frozen=True, order=True):
    """An API call with its arguments, as plain data: names in place of objects."""

    call: str
    arguments: tuple[str, ...] = ()
    """Each as it is shown and read, in the order of the scene's choosing."""

    def __str__(self) -> str:
        return " ".join((self.call, *self.arguments))

    @classmethod
    def read(cls, text: str) -> Invocation:
        """Return the invocation that `str` shows."""
        call, *arguments = text.split()
        return cls(call, tuple(arguments))


@dataclass(frozen=True)
class Offer:
    """A call that can be made now."""

    invocation: Invocation
    standing: CallStanding
    thread: str = ""
    """The one thread that may make it; '' for any. Two calls of one thread are never concurrent."""
    answer: str = ""
    """What it must return, if it is in contract and the other side knows better; '' if it does not."""
    by_arguments: bool = False
    """Whether it is refused whatever the state is."""
    twin_of: Invocation | None = None
    """An offer that differs from this one in a name only: then this one is of interest beside that one alone."""

    def problem(self, result: str, unchanged: bool) -> str:
        """Return what the call did that its class forbids; '' if nothing."""
        if self.answer and self.standing is CallStanding.IN_CONTRACT:
            wrong = f"outcome: {self.invocation} ended with {result or 'success'}, due was {self.answer}"
            return "" if result == self.answer else wrong
        refused = result.startswith("refused")
        if self.standing is CallStanding.REFUSED and not refused:
            return f"outcome: {self.invocation} must be refused, and was not"
        if self.standing is not CallStanding.REFUSED and refused:
            return f"outcome: {self.invocation} was refused, and is {self.standing.value}"
        if self.standing is not CallStanding.IN_CONTRACT and not unchanged:
            return f"outcome: {self.invocation} is {self.standing.value}, and changed the state"
        return ""


class Unsettled(AssertionError):
    """What a call left to be done does not come to an end, or a callback's call does what its class forbids."""


class MatrixScene(Protocol):
    """A running instance of a system in a universe."""

    def offers(self) -> Sequence[Offer]:
        """Return every call that can be made now, in a fixed order."""

    def make(self, invocation: Invocation) -> str:
        """Make a call and return what its caller sees: the result, or ``refused``, with the reason behind it, if any.

        Any other error is raised.
        """

    def settle(self) -> None:
        """Serve whoever was woken, and do what was submitted, in a fixed order, until nothing is left to be done.

        Raises `Unsettled` if that does not end.
        """

    def serve(self, first: Mapping[str, Callable[[], None]]) -> None:
        """Spawn the threads that do this concurrently, on a stage with threads.

        `first` is what some of them, by name (as in `Offer.thread`), do before.
        """

    def record_rest(self) -> None:
        """Record the state of the system, when nothing moves any more."""

    def state(self) -> str:
        """Return the canonical text of the state; only on one thread, when nothing moves."""

    def logical_state(self) -> object:
        """Return what a call that is refused, or without effect, leaves as it is."""

    def outcome(self) -> Mapping[str, Any]:
        """Return what clients can see of the state, as plain data by subject."""


@dataclass(frozen=True)
class Universe:
    """What may exist in a scene."""

    name: str
    why: str
    """What can go wrong in it that cannot in others."""
    given: tuple[str, ...] = ()
    """Calls that are made before the first state."""
    given_counts: bool = False
    """Whether these count among the calls that lead to a state."""
    serve: bool = False
    """Whether pairs are also run with the system's own threads running beside them."""
    serve_less: int = 2
    """How many calls less lead to the states from which they are: serving beside the calls has many more schedules."""
    settle: bool = True
    """Whether pairs are also run without these: not where a call waits for what they do."""
    twice: bool = False
    """Whether a call that any thread may make is also run beside itself."""
    callback: str = ""
    """The call that each consumer's callback makes at its first delivery; '' if it only keeps what it gets."""
    callback_later: Literal["", "unread", "read"] = ""
    """Whether callbacks that have begun make that call behind whatever comes next, and before or after what the system
    sends for that is read; for the oracle only."""
    callback_races: bool = False
    """Whether that call is itself one of the calls at once, so that one less stands beside it."""
    then: tuple[str, ...] = ()
    """Calls of no client that are made behind those that lead to the state; for the oracle only."""
    idle: bool = False
    """Whether calls that are refused, or without effect, are also run beside others; alone they always are."""


Instead = Iterable[tuple[Universe, tuple[Invocation, ...]]]
"""Other calls, or the same in another universe."""


def _as_they_are(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Return the calls as they are."""
    return [(universe, calls)]


def without_some(
    which: Callable[[Universe, Invocation], bool],
) -> Callable[[Universe, tuple[Invocation, ...]], Instead]:
    """Return what yields calls without one or more of those of which `which` is true."""

    def left(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
        found = [n for n, call in enumerate(calls) if which(universe, call)]
        for some in range(1, len(found) + 1):
            for gone in combinations(found, some):
                yield universe, tuple(call for n, call in enumerate(calls) if n not in gone)

    return left


def _whole(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the whole outcome."""
    return outcome


@dataclass(frozen=True)
class ExpectedDifference:
    """Outcomes of concurrent calls that no order of them has, and why that is right.

    Such an outcome is let pass if, after `compared`, it is that of an order of what `instead` returns.
    """

    why: str
    instead: Callable[[Universe, tuple[Invocation, ...]], Instead] = _as_they_are
    """(universe, calls) -> other calls, or the same in another universe, whose orders are compared with."""
    compared: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _whole
    """Outcome -> what of it is compared."""


@dataclass(frozen=True)
class MatrixSystem:
    """A system, as the matrix runs it."""

    name: str
    """Its name on the command line."""
    reference: str
    """The name of its modules, as `mutant_modules.load` takes it."""
    table: Mapping[str, ApiCall]
    """Its API calls by name."""
    universes: Sequence[Universe]
    """Its universes, each with a name of its own."""
    empty: Callable[
        [Any, ModuleType, Stage], MatrixScene
    ]  # Any: each system's own kind of universe
    """Returns a new scene in a universe, in which no call was made."""
    properties: Sequence[AnyProperty]
    """The properties that judge its histories."""
    expected: tuple[ExpectedDifference, ...] = ()
    """What the outcome oracle lets pass, each with its reason."""
    unrecorded: tuple[str, ...] = ()
    """Kinds of cells whose changes are not recorded beside other calls; what they come to is judged at rest."""

    def signature(self, universe: Universe, calls: Sequence[Invocation]) -> str:
        """Return a text of calls that is the same for calls of another universe that differ in names only.

        It names the universe, where no two differ in names only.
        """
        return f"{universe.name}: {', '.join(map(str, calls))}"

    def scene(self, universe: Universe, lib: ModuleType, stage: Stage) -> MatrixScene:
        """Return a new scene, in which the calls that the universe gives were made."""
        scene = self.empty(universe, lib, stage)
        for text in universe.given:
            scene.make(Invocation.read(text))
        return scene
