"""Changes of the queue that look harmless and are wrong: rejected where they go wrong, in a sentence."""

import pytest

from seriatim_models.programs.base import Mutant
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.formal.traces import follow

WRONG: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "a job lowers the flag behind its first consumer": (
        "push",
        "has drawn the permit of a job, and its job has not begun",
        (
            (
                "        self._job_pending.set(False)  # rule 6: clear the flag, then check\n"
                "        for consumer in self.all.consumers():\n",
                "        for n, consumer in enumerate(self.all.consumers()):\n"
                "            if n == 1:\n"
                "                self._job_pending.set(False)\n",
            ),
        ),
    ),
    "whoever has a message counts as woken": (
        "pause-and-take",
        "P ends its walk, and has not looked for B",
        (
            (
                "        return found is not None and self._wake(self._first_to_take(consumer, found[0].entry))",
                "        if found is not None:\n"
                "            self._wake(self._first_to_take(consumer, found[0].entry))\n"
                "        return found is not None",
            ),
        ),
    ),
    "a pause finds only who waits": (
        "pause",
        "it must not be that A has still to take A out of its list",
        (("if desired else (wanting, NOTIFIED)", "if desired else (wanting,)"),),
    ),
    "notified before it is in a list": (
        "subscribe-release",
        "B ends its walk, and has not looked for B",
        (
            (
                "        self.manager.set_interest(consumer, wants, new=True)\n"
                "        if wants:\n            self._notify(consumer)\n",
                "        if wants:\n            self._notify(consumer)\n"
                "        self.manager.set_interest(consumer, wants, new=True)\n",
            ),
        ),
    ),
    "the group is left before the release": (
        "group-released",
        "A has nothing in g that it could take away",
        (
            (
                '        ok = entry.change(consumer.acquired, State("AVAILABLE"))\n        if ok:\n'
                "            if self.groups.leave(entry.message.group, consumer):\n",
                "        free = self.groups.leave(entry.message.group, consumer)\n"
                '        ok = entry.change(consumer.acquired, State("AVAILABLE"))\n        if ok:\n'
                "            if free:\n",
            ),
        ),
    ),
    "an immediate message that came back is discarded": (
        "immediate-returned",
        "give_up(t = P, e = m1) is not possible here: it needs that the state of m1 is AVAILABLE",
        (
            (
                "        if entry.change(AVAILABLE, DEQUEUED):\n",
                "        if (seen := entry.available()) and entry.change(seen, DEQUEUED):\n",
            ),
        ),
    ),
    "due, announced, then available": (
        "held",
        "it must not be that housekeeping owes A a rewind for m1",
        (
            (
                "entry.change(DELAYED, AVAILABLE):\n                self._announce(entry)\n",
                "entry.state.get() is DELAYED:\n                self._announce(entry)\n"
                "                entry.change(DELAYED, AVAILABLE)\n",
            ),
        ),
    ),
    "one consumer alone needs no job": (
        "exclusive",
        "it must not be that setup owes m1 a job",
        (
            (
                "        if not entry.message.immediate and entry.available():\n",
                "        if alone is None and not entry.message.immediate and entry.available():\n",
            ),
        ),
    ),
    "the size goes down before the mark": (
        "interest",
        "A lowers the size of q.Interested.0, and has deleted nothing from it",
        (
            (
                "        entry.marked.set(True)\n        self.size.add(-1)\n",
                "        self.size.add(-1)\n        entry.marked.set(True)\n",
            ),
        ),
    ),
}
"""What is changed -> a program, what its rejection says, and the edits."""


@pytest.mark.parametrize("change", WRONG)
def test_a_wrong_change_is_rejected_where_it_goes_wrong(change: str) -> None:
    program, where, edits = WRONG[change]
    edited = Mutant(change.replace(" ", "-"), "", change, "queue", edits, "", program, 0)
    found = follow(program, executions=60, lib=load("queue", edited))
    assert where in found.rejected
