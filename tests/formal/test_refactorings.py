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
    "extract a function": (
        (
            "                self._announce_group(entry.message.group)\n            else:\n"
            "                self._announce(entry)\n        return ok\n",
            "                self._announce_group(entry.message.group)\n            else:\n"
            "                self._again(entry)\n        return ok\n\n"
            "    def _again(self, entry):\n        self._announce(entry)\n",
        ),
    ),
    "rename locals": (
        (
            "            pointer = consumer.pointer.get()\n"
            "            back = min(entry, pointer.entry, key=Node.place)\n"
            '            if consumer.pointer.compare_and_set(pointer, Pointer(back, "rewind")):\n',
            "            seen = consumer.pointer.get()\n"
            "            target = min(entry, seen.entry, key=Node.place)\n"
            '            if consumer.pointer.compare_and_set(seen, Pointer(target, "rewind")):\n',
        ),
    ),
    "read again before a compare-and-set": (
        (
            '            consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))\n',
            "            if consumer.pointer.get() is pointer:\n"
            '                consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))\n',
        ),
    ),
    "return early": (
        (
            "        ok = entry.change(consumer.acquired, DEQUEUED)\n        if ok:\n"
            "            self._dispose(entry)\n"
            "            if self.groups.leave(entry.message.group, consumer):\n"
            "                self._announce_group(entry.message.group)\n        return ok\n",
            "        if not entry.change(consumer.acquired, DEQUEUED):\n            return False\n"
            "        self._dispose(entry)\n"
            "        if self.groups.leave(entry.message.group, consumer):\n"
            "            self._announce_group(entry.message.group)\n        return True\n",
        ),
    ),
    "a recursion for a loop": (
        (
            "        while True:\n            pointer = consumer.pointer.get()\n            back = min(",
            "        if True:\n            pointer = consumer.pointer.get()\n            back = min(",
        ),
        (
            'Pointer(back, "rewind")):\n                return\n',
            'Pointer(back, "rewind")):\n                return\n            self._rewind(consumer, entry)\n',
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


WRONG: dict[str, tuple[str, str, str, tuple[tuple[str, str], ...]]] = {
    "advance from a pointer that is read again": (
        "release-behind",
        "entries",
        "advance",
        (
            (
                "compare_and_set(pointer, Pointer(following,",
                "compare_and_set(consumer.pointer.get(), Pointer(following,",
            ),
        ),
    ),
    "pay by a set": (
        "credit-in-vain",
        "consumers",
        "credit",
        (
            (
                "            if self.credit.compare_and_set(left, left - 1):\n                return True\n",
                "            self.credit.set(left - 1)\n            return True\n",
            ),
        ),
    ),
    "unlink by a set": (
        "consumer-list-middle",
        "nodes",
        "next",
        (
            (
                "node.next.compare_and_set(following, beyond)",
                "node.next.set(beyond)",
            ),
        ),
    ),
    "look where it is before the lock": (
        "pause-and-take",
        "lists",
        "",
        (
            (
                "        with consumer.moving:\n            # The flag first",
                "        origin = consumer.listed\n        with consumer.moving:\n            # The flag first",
            ),
            (
                "            origin = consumer.listed\n            if origin",
                "            if origin",
            ),
        ),
    ),
    "an append is tried once": (
        "enqueue-enqueue",
        "entries",
        "returns, and has not linked it",
        (
            (
                "            self._tail.compare_and_set(tail, following)  # finish what another append began\n",
                "            return\n",
            ),
        ),
    ),
    "an immediate message is left as it is": (
        "immediate",
        "entries",
        "has not decided",
        (
            (
                "        if message.immediate:\n            self.undelivered(entry)\n",
                "        if message.immediate and not entry:\n            self.undelivered(entry)\n",
            ),
        ),
    ),
    "announce before the group is left": (
        "group-released",
        "entries",
        "",
        (
            (
                "        if ok:\n            if self.groups.leave(entry.message.group, consumer):\n"
                "                self._announce_group(entry.message.group)\n            else:\n"
                "                self._announce(entry)\n",
                "        if ok:\n            self._announce(entry)\n"
                "            self.groups.leave(entry.message.group, consumer)\n",
            ),
        ),
    ),
}
"""What is changed -> the program, the system that rejects it, a word of why, and the edits."""


@pytest.mark.parametrize("change", WRONG)
def test_a_wrong_refactoring_is_rejected(change: str) -> None:
    program, system, why, edits = WRONG[change]
    edited = Mutant(change.replace(" ", "-"), "", change, "queue", edits, "", program, 0)
    found = follow(program, executions=300, lib=load("queue", edited))
    assert (found.system, found.rejected) != ("", ""), "it was accepted"
    assert found.system == system, found.rejected
    assert why in found.rejected
