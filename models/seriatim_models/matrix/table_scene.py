"""What the scenes of the client, the log and the fair consumer have in common: a table, interpreted as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from seriatim_models.explorer import World
from seriatim_models.machines.calls import ApiCall, Caller
from seriatim_models.matrix.scene import Invocation, Offer

H = TypeVar("H")


class UnobservedWorld:
    """A stage's world whose scenes record nothing at the end: the matrix asks them to, when all has settled."""

    def __init__(self, world: World) -> None:
        self._world = world

    def at_end(self, check: Callable[[], object]) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    @classmethod
    def of(cls, world: World) -> World:
        """Return a world, as scenes take it."""
        return cast(World, cls(world))


def label(value: object) -> str:
    """Return how a value is shown and read: objects by their name, and nothing as ``-``."""
    name = getattr(value, "name", None) or getattr(value, "key", None)
    return str(name or value) or "-"


class TableScene(Generic[H]):
    """A harness whose calls are offered as its table declares them."""

    def __init__(
        self, harness: H, table: Mapping[str, ApiCall], refusals: tuple[type[Exception], ...]
    ) -> None:
        self.harness = harness
        self.table = table
        self.refusals = refusals
        """The errors by which the system refuses."""

    def offered(self, call: ApiCall, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call is of interest in this universe."""
        return True

    def thread(self, call: ApiCall, arguments: Mapping[str, Any]) -> str:
        """Return the one thread that may make a call; '' for any. Two owners' calls are made on one thread each."""
        if call.caller is not Caller.OWNER:
            return ""
        return f"owner {' '.join(label(v) for v in arguments.values() if hasattr(v, 'name'))}"

    def answer(self, call: ApiCall, arguments: Mapping[str, Any]) -> str:
        """Return the error that the other side must answer a call in contract with; '' for none."""
        return ""

    def offers(self) -> Sequence[Offer]:
        """Return every call that can be made now, in a fixed order."""
        return list(self._offers())

    def _offers(self) -> Iterator[Offer]:
        for call in self.table.values():
            for arguments in call.choices(self.harness):
                if self.offered(call, arguments):
                    labels = tuple(label(v) for v in arguments.values())
                    standing = call.standing(self.harness, **arguments)
                    yield Offer(
                        Invocation(call.name, labels),
                        standing,
                        self.thread(call, arguments),
                        answer=self.answer(call, arguments),
                    )

    def make(self, invocation: Invocation) -> str:
        """Make a call and return what its caller sees; ``refused`` if the system refuses it."""
        return self.run(self.table[invocation.call], self.arguments(invocation))

    def run(self, call: ApiCall, arguments: Mapping[str, Any]) -> str:
        """Make a call with these arguments and return what its caller sees."""
        try:
            return self.shown(call.run(self.harness, **arguments))
        except self.refusals as error:
            return self.refusal(error)

    def arguments(self, invocation: Invocation) -> dict[str, Any]:
        """Return the arguments of a call, by name."""
        call = self.table[invocation.call]
        return {
            name: next(v for v in call.values(self.harness, name) if label(v) == given)
            for name, given in zip(call.arguments, invocation.arguments, strict=True)
        }

    def state(self) -> str:
        """Return the canonical text of the state."""
        raise NotImplementedError

    def logical_state(self) -> object:
        """Return the same: nothing here is put off until somebody comes past it."""
        return self.state()

    def shown(self, result: object) -> str:
        """Return what a caller sees of a result."""
        return "" if result is None else str(result)

    def refusal(self, error: Exception) -> str:
        """Return what a caller sees of an error by which the system refuses."""
        return "refused"


def without(table: Mapping[str, ApiCall], *names: str) -> dict[str, ApiCall]:
    """Return a table without some calls."""
    assert set(names) <= set(table), "only calls of the table can be left out"
    return {name: call for name, call in table.items() if name not in names}
