"""A table of API calls as strategies and rules of Hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from seriatim_models.machines.calls import ApiCall, CallStanding


def strategy(call: ApiCall, argument: str) -> st.SearchStrategy[Any]:
    """Return the strategy of an argument that is drawn from the same values always."""
    values = call.arguments[argument]
    assert not callable(values), f"what {argument} of {call.name} may be depends on the state"
    return st.sampled_from(values)


def rules(calls: Mapping[str, ApiCall]) -> dict[str, Any]:
    """Return rules for a `RuleBasedStateMachine` by name: one for each call, or for each class of it.

    Only a call some of whose arguments depend on the state has a rule for each class. The machine has the attribute
    `harness`, and a method `make(call, **arguments)`.
    """
    found = {}
    for c in calls.values():
        varying = any(callable(v) for v in c.arguments.values())
        for s in c.standings if varying else (None,):
            name = c.name if s in (None, CallStanding.IN_CONTRACT) else f"{c.name}_{s.name.lower()}"
            found[name] = _rule(name, c, s)
    return found


PICKS = 63
"""A number up to this one picks one of the combinations of what there is."""


def _rule(name: str, call: ApiCall, standing: CallStanding | None) -> Any:
    fixed = {a: strategy(call, a) for a, v in call.arguments.items() if not callable(v)}
    drawn: dict[str, Any] = dict(fixed)
    if len(fixed) < len(call.arguments):
        drawn["pick"] = st.integers(0, PICKS)

    def run(machine: Any, pick: int = 0, **arguments: object) -> None:
        choices = list(call.choices(machine.harness, standing, **arguments))
        if choices:
            machine.make(call, **choices[pick % len(choices)])

    def possible(machine: Any) -> bool:
        return next(call.choices(machine.harness, standing), None) is not None

    run.__name__ = name
    run.__doc__ = call.title
    made: Any = rule(**drawn)
    return precondition(possible)(made(run))
