"""The API calls of a system, each declared once: the table that machines, generated programs and threads interpret.

A *harness* is one instance of a system on a host, with what its clients know of it. A method of a harness that is
decorated with `@call` is an API call: its name, the values that each argument is drawn from, the thread that may make
it, when it can be made at all (`enabled`), its class (`standing`), and, as the method's body, the call itself with
its effect on the harness. `calls_of` returns the table of a harness class; a subclass adds the calls of one kind of
system (a queue that is pulled from, say) to those of its base.

How to read a table without knowing the system: `ApiCall.choices(harness)` yields every combination of arguments that
can be made now, `ApiCall.standing` classifies one, `ApiCall.run` makes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

Values = Sequence[Any] | Callable[[Any], Sequence[Any]]
"""What an argument is drawn from: the same values always (one that stands twice is drawn twice as often), or a
function of the harness that returns what there is now, such as its open consumers."""

F = TypeVar("F", bound=Callable[..., Any])


class Caller(Enum):
    """The thread that may make a call."""

    ANY = "any thread"
    OWNER = (
        "the one thread of what it is made on: a consumer's IO thread, a channel's consumer, a loop"
    )
    SYSTEM = "a thread of the system itself: an executor's job, an IO thread, a reader"


class CallStanding(Enum):
    """What the contract says of a call with these arguments in this state."""

    IN_CONTRACT = "in contract"
    NO_OP = "legal, without effect"
    REFUSED = "must be refused, with the state unchanged"


@dataclass(frozen=True)
class ApiCall:
    """One API call of a system."""

    name: str
    caller: Caller
    arguments: Mapping[str, Values]
    enabled: Callable[..., bool]
    """(harness, arguments) -> whether it can be made now; a call that is not enabled is not made at all."""
    standing: Callable[..., CallStanding]
    """(harness, arguments) -> its class, in a state in which nothing else is running."""
    standings: tuple[CallStanding, ...]
    """The classes that it can have."""
    inside: Mapping[str, Any] | None
    """With which arguments a consumer's callback makes it, besides those that `arguments_inside` knows; None: none may.

    A callback runs on the thread that delivers: of the work pool, of an executor, of IO, or of a publisher.
    """
    run: Callable[..., Any]
    """(harness, arguments) -> what the call returned; the harness knows of it then."""

    @property
    def title(self) -> str:
        """The first line of what is documented of the call."""
        return (self.run.__doc__ or "").partition("\n")[0]

    def values(self, harness: object, argument: str) -> Sequence[Any]:
        """Return what one argument may be now."""
        values = self.arguments[argument]
        return values(harness) if callable(values) else values

    def arguments_inside(self, harness: object, **known: object) -> dict[str, Any]:
        """Return the arguments with which a callback makes it: as declared, or `known` to it, else the first value."""
        given = {**known, **(self.inside or {})}
        return {
            name: given[name] if name in given else self.values(harness, name)[0]
            for name in self.arguments
        }

    def choices(
        self, harness: object, standing: CallStanding | None = None, **fixed: object
    ) -> Iterator[dict[str, Any]]:
        """Yield each distinct combination of arguments with which the call can be made now.

        With `standing` only those of that class; with `fixed` arguments only the others vary.
        """
        free = [a for a in self.arguments if a not in fixed]
        for chosen in itertools.product(*(dict.fromkeys(self.values(harness, a)) for a in free)):
            arguments = {**dict(zip(free, chosen, strict=True)), **fixed}
            if not self.enabled(harness, **arguments):
                continue
            if standing is None or self.standing(harness, **arguments) is standing:
                yield arguments


def call(
    caller: Caller = Caller.ANY,
    *,
    enabled: Callable[..., bool] = lambda harness, **arguments: True,
    standing: Callable[..., CallStanding] = lambda harness, **arguments: CallStanding.IN_CONTRACT,
    standings: tuple[CallStanding, ...] = (CallStanding.IN_CONTRACT,),
    inside: Mapping[str, Any] | None = None,
    **arguments: Values,
) -> Callable[[F], F]:
    """Return a decorator that declares a harness's method as an API call; see `ApiCall` for the parameters."""

    def declare(method: F) -> F:
        method._call = ApiCall(  # type: ignore[attr-defined]  # read by `calls_of`
            method.__name__, caller, arguments, enabled, standing, standings, inside, method
        )
        return method

    return declare


def callable_inside(table: Mapping[str, ApiCall]) -> tuple[str, ...]:
    """Return the names of the calls that a consumer's callback may make."""
    return tuple(name for name, call in table.items() if call.inside is not None)


def without_inside(table: Mapping[str, ApiCall], *names: str) -> dict[str, ApiCall]:
    """Return a table in which no callback may make some calls that one of another kind of system may."""
    assert set(names) <= set(table), "only calls of the table can be left out"
    return {n: replace(c, inside=None) if n in names else c for n, c in table.items()}


def calls_of(harness: type) -> dict[str, ApiCall]:
    """Return the calls that a harness class declares, its bases' first, by name."""
    return {
        name: method._call
        for base in reversed(harness.__mro__)
        for name, method in vars(base).items()
        if hasattr(method, "_call")
    }
