"""Right refactorings of the queue are accepted: what counts is what a step does, not how the code is written."""

import pytest

from seriatim_models.programs.base import Mutant
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.formal.traces import follow

RIGHT: dict[str, tuple[tuple[str, str], ...]] = {
    "help the tail before linking": (
        (
            "            node.id = tail.id + 1\n",
            "            behind = tail.next.get()\n"
            "            if behind is not None:\n"
            "                self._tail.compare_and_set(tail, behind)\n"
            "                continue\n"
            "            node.id = tail.id + 1\n",
        ),
    ),
    "try the returned state first": (
        (
            "self.change(AVAILABLE, new) or self.change(RETURNED, new)",
            "self.change(RETURNED, new) or self.change(AVAILABLE, new)",
        ),
    ),
    "compare places by hand": (
        (
            "back = min(entry, pointer.entry, key=Node.place)",
            "back = entry if entry.place() < pointer.entry.place() else pointer.entry",
        ),
    ),
    "rewind everybody twice": (
        (
            "        self._rewind_all(entry)\n        self._returned(entry)\n",
            "        self._rewind_all(entry)\n        self._rewind_all(entry)\n"
            "        self._returned(entry)\n",
        ),
    ),
    "look before a release that would fail": (
        (
            "        ok = entry.change(consumer.acquired, RETURNED)\n",
            "        ok = entry.state.get() is consumer.acquired\n"
            "        ok = ok and entry.change(consumer.acquired, RETURNED)\n",
        ),
    ),
    "pay by a loop of another form": (
        (
            "        while (left := self.credit.get()) > 0:\n"
            "            if self.credit.compare_and_set(left, left - 1):\n"
            "                return True\n"
            "        return False\n",
            "        left = self.credit.get()\n"
            "        while left > 0 and not self.credit.compare_and_set(left, left - 1):\n"
            "            left = self.credit.get()\n"
            "        return left > 0\n",
        ),
    ),
}
"""What is changed -> the edits."""


@pytest.mark.parametrize(
    "program",
    ["release-behind", "release-again-rest", "two-takers", "immediate-returned", "group-freed"],
)
@pytest.mark.parametrize("change", RIGHT)
def test_a_right_refactoring_is_accepted(change: str, program: str) -> None:
    name = change.replace(" ", "-")
    edited = Mutant(name, "", change, "queue", RIGHT[change], "", program, 0)
    found = follow(program, executions=30, lib=load("queue", edited))
    assert found.rejected == ""
    assert found.counterexample is None
    assert found.steps > 100


def test_a_depth_that_goes_down_late_is_rejected_with_a_reason() -> None:
    """It is right as far as clients see; the system says that an entry is uncounted before it is buried."""
    edits = (
        (
            "        self.depth.add(-1)\n        entry.change(DEQUEUED, DELETED)\n",
            "        entry.change(DEQUEUED, DELETED)\n        self.depth.add(-1)\n",
        ),
    )
    edited = Mutant("late-depth", "", "", "queue", edits, "", "two-takers", 0)
    found = follow("two-takers", executions=5, lib=load("queue", edited))
    assert found.system == "entries"
    assert "bury" in found.rejected
    assert "needs that what m1 has taken from the depth is 1" in found.rejected
