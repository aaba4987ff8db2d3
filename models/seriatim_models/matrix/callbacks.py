"""What consumers' callbacks call: a call of the table, from inside a delivery, on the thread that delivers.

Each consumer's callback makes the call of its universe once, at the first delivery, and that of `dequeue` once for each
message: what it leads to is delivered to a callback that keeps it, so that everything comes to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seriatim_models.machines.calls import ApiCall
from seriatim_models.matrix.scene import Invocation, Offer, Unsettled

UNFINISHED = "unfinished"
"""The result of a call that has not returned."""


class CallInside:
    """The call that callbacks make, and what came of it."""

    def __init__(
        self,
        call: ApiCall,
        harness: object,
        run: Callable[[str, Mapping[str, Any]], str],
        state: Callable[[], object],
        answer: Callable[[Mapping[str, Any]], str] = lambda arguments: "",
    ) -> None:
        self.call = call
        self.harness = harness
        self.run = run
        """Makes the call of whose callback with which arguments, and returns what its caller sees."""
        self.state = state
        """Returns what a call that is refused, or without effect, leaves as it is."""
        self.answer = answer
        """Returns the error that the other side must answer with; '' for none."""
        self.returned: dict[str, str] = {}
        """What the callback of each consumer saw. Its deliveries are one after the other, so its thread alone asks."""
        self.wrong: list[str] = []
        """What a call did that its class forbids."""

    def make(self, who: str, judged: bool, **known: object) -> None:
        """Make the call, at the first delivery to a consumer of this name; `known` are arguments by name.

        It is `judged` by its class where nothing else is under way.
        """
        if who in self.returned:
            return
        arguments = self.call.arguments_inside(self.harness, **known)
        self.returned[who] = UNFINISHED
        if not judged:  # the other side may be at work, so nothing of it is looked at
            self.returned[who] = self.run(who, arguments)
            return
        standing = self.call.standing(self.harness, **arguments)
        offer = Offer(Invocation(self.call.name), standing, answer=self.answer(arguments))
        before = self.state()
        result = self.returned[who] = self.run(who, arguments)
        if problem := offer.problem(result, before == self.state()):
            self.wrong.append(problem)

    def check_end(self) -> None:
        """Raise `Unsettled` if a call did what its class forbids, or has not returned."""
        wrong = [f"it did not return in {c}" for c, r in self.returned.items() if r == UNFINISHED]
        for problem in (*self.wrong, *wrong):
            raise Unsettled(f"{self.call.name} in a callback: {problem}")
