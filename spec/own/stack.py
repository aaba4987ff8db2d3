"""A sequential model as a property: a stack."""

from __future__ import annotations

from typing import Any

from seriatim_models.properties.sequential import ModelCall, SequentialModel


class Stack(SequentialModel):
    """Who gets takes what was put last; only an empty stack gives nothing."""

    id = "STACK"
    sentence = "Who gets takes what was put last, and nothing only if there is nothing."
    source = "an example"

    def initial(self) -> tuple[str, ...]:
        """Nothing is on it."""
        return ()

    def step(self, state: Any, call: ModelCall) -> tuple[str, ...] | None:
        """The stack after a call, or None if it would not have answered so."""
        if call.name == "publish":
            return (*state, call.m)
        if not call.m:
            return None if state else ()
        return state[:-1] if state and state[-1] == call.m else None
