"""Linearizability: is a concurrent object as good as a sequential one (Herlihy & Wing 1990).

An object is *linearizable* if in every execution each call seems to happen at one moment between its invocation and
its response: there is an order of the calls that agrees with their real-time order and in which a sequential object
gives the same results. Calls that never returned may have happened, or not.

```python
result = check_linearizable(
    lambda host: TreiberStack(host), list_stack,
    [[("push", 1), ("pop",)], [("push", 2), ("pop",)]],
)
```

The explorer runs the calls under every schedule (`Dpor(real_time=True)`: the order of responses and invocations is
part of a trace), and each history is searched for such an order (Wing & Gong 1993, with the memory of Lowe 2017).
"""

from __future__ import annotations

import copy
import pickle  # dumps only: the key of a state in memory, never read back
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seriatim_models.explorer.model.operations import shown
from seriatim_models.explorer.model.world import World
from seriatim_models.explorer.result import Result
from seriatim_models.explorer.search.dpor import Dpor
from seriatim_models.explorer.search.explore import Strategy, explore

Call = tuple[Any, ...]
"""(method, argument, ...)."""


@dataclass
class CallInterval:
    """One call: what was asked and answered, and when."""

    thread: str
    call: Call
    invoked: int
    returned: int | None = None
    result: object = None
    raised: str = ""

    def __str__(self) -> str:
        method, *args = self.call
        text = f"{self.thread}: {method}({', '.join(map(shown, args))})"
        if self.returned is None:
            return f"{text} did not return"
        return f"{text} -> {self.raised or shown(self.result)}"


def outcome(target: object, call: Call) -> tuple[object, str]:
    """What a call gives: (result, "") or (None, name of the exception)."""
    method, *args = call
    try:
        return getattr(target, method)(*args), ""
    except (LookupError, ValueError, RuntimeError) as error:
        return None, type(error).__name__


def linearization(
    history: Sequence[CallInterval],
    spec: Callable[[], object],
    last: Callable[[Any], bool] = lambda state: True,
) -> list[CallInterval] | None:
    """An order of the calls that a sequential object explains, or None; `last` may refuse the state it ends in."""
    calls = list(history)
    everyone = (1 << len(calls)) - 1
    must = sum(1 << k for k, c in enumerate(calls) if c.returned is not None)
    tried: set[tuple[int, bytes]] = set()
    order: list[CallInterval] = []

    def search(done: int, state: object) -> bool:
        if done & must == must and last(state):
            return True
        key = (done, pickle.dumps(state))
        if key in tried:
            return False
        tried.add(key)
        horizon = min(
            (
                c.returned
                for k, c in enumerate(calls)
                if not done >> k & 1 and c.returned is not None
            ),
            default=1 << 62,
        )
        for k, call in enumerate(calls):
            if done >> k & 1 or call.invoked > horizon:
                continue
            following = copy.deepcopy(state)
            result, raised = outcome(following, call.call)
            if call.returned is not None and (result, raised) != (call.result, call.raised):
                continue
            order.append(call)
            if search(done | 1 << k, following):
                return True
            order.pop()
        return False

    assert everyone >= must
    return order if search(0, spec()) else None


def calling(
    make: Callable[[Any], object],
    spec: Callable[[], object],
    threads: Sequence[Sequence[Call]],
    *,
    daemon: bool = False,
) -> Callable[[World], None]:
    """The program in which each thread does its calls on one object, checked at its end."""

    def program(world: World) -> None:
        target = make(world.host)
        history: list[CallInterval] = []
        clock = [0]

        def tick() -> int:
            clock[0] += 1
            return clock[0]

        def run(thread: str, calls: Sequence[Call]) -> None:
            for call in calls:
                method, *args = call
                world.record(method, ph="invoke", args=[shown(a) for a in args])
                interval = CallInterval(thread, call, tick())
                history.append(interval)
                interval.result, interval.raised = outcome(target, call)
                world.record(method, ph="ok", result=interval.raised or shown(interval.result))
                interval.returned = tick()

        for k, calls in enumerate(threads):
            name = f"t{k + 1}"
            world.spawn(lambda n=name, c=calls: run(n, c), name=name, daemon=daemon)  # type: ignore[misc]

        def end() -> str | None:
            if linearization(history, spec) is not None:
                return None
            text = "; ".join(map(str, history))
            return f"not linearizable: no order of these calls explains their results: {text}"

        world.at_end(end)

    program.__module__ = getattr(make, "__module__", None) or ""  # whose classes are observed
    return program


def check_linearizable(
    make: Callable[[Any], object],
    spec: Callable[[], object],
    threads: Sequence[Sequence[Call]],
    strategy: Strategy | None = None,
    *,
    daemon: bool = False,
    **budgets: Any,
) -> Result:
    """Explore the calls of some threads on the object that `make` builds over a host.

    `spec` builds the sequential object, with the same methods; its state must be plain data.
    With `daemon` calls may wait for ever (a pop of an empty blocking queue).
    """
    strategy = Dpor(real_time=True) if strategy is None else strategy
    name = budgets.pop("name", "calls")
    return explore(calling(make, spec, threads, daemon=daemon), strategy, name=name, **budgets)
