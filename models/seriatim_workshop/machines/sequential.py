"""One call after the other, in any order that Hypothesis can think of: a harness must do what its model does.

`with_rules` makes a machine interpret a table of calls (see `calls`). The model has a method for each call of the
table, with the same arguments by name, in which objects of the reference are replaced by what `label` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from seriatim_models.machines.calls import ApiCall, CallStanding
from seriatim_workshop.machines.rules import rules

M = TypeVar("M", bound="type[CallMachine]")


class Disagreement(AssertionError):
    """The reference did what the model forbids, or did not do what it demands."""


class CallMachine(RuleBasedStateMachine):
    """Makes each call on the model and on the harness, and compares what they return."""

    harness: Any
    model: Any

    def label(self, value: Any) -> Any:
        """Return what the model knows a value by."""
        return value

    def refusals(self) -> tuple[type[BaseException], ...]:
        """Return the errors by which the reference refuses a call."""
        raise NotImplementedError

    def make(self, call: ApiCall, **arguments: Any) -> None:
        """Make a call on the model and on the harness; raises `Disagreement`."""
        standing = call.standing(self.harness, **arguments)
        if standing is CallStanding.REFUSED:
            self.is_refused(call, **arguments)
            return
        before = self.state() if standing is CallStanding.NO_OP else None
        labels = {name: self.label(value) for name, value in arguments.items()}
        due = getattr(self.model, call.name)(**labels)
        done = self.label(call.run(self.harness, **arguments))
        if done != due:
            raise Disagreement(f"{call.name} {labels} returned {done!r}, due was {due!r}")
        if standing is CallStanding.NO_OP and self.state() != before:
            raise Disagreement(f"{call.name} {labels} is without effect, and changed the state")

    def state(self) -> Any:
        """Return what a refused call, and one without effect, must leave as it is."""
        return None

    def is_refused(self, call: ApiCall, **arguments: Any) -> None:
        """Make a call that must be refused; raises `Disagreement` if it is not, or changes the state."""
        before = self.state()
        try:
            call.run(self.harness, **arguments)
        except self.refusals():
            if self.state() != before:
                raise Disagreement(f"{call.name} was refused, and changed the state") from None
            return
        raise Disagreement(f"{call.name} {arguments} was not refused")


def with_rules(table: Mapping[str, ApiCall], leave_out: Iterable[str] = ()) -> Callable[[M], M]:
    """Return a class decorator that gives a machine a rule for each call of the table but those left out."""
    left_out = frozenset(leave_out)
    assert left_out <= set(table), "only calls of the table can be left out"

    def add(machine: M) -> M:
        for name, rule in rules({n: c for n, c in table.items() if n not in left_out}).items():
            setattr(machine, name, rule)
        return machine

    return add
