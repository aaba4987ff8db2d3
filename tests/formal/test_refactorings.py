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
    "look once more before acquiring": (
        (
            "            if not entry.change(seen, consumer.acquired):",
            "            if entry.available() is not seen or not entry.change(seen, consumer.acquired):",
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
            '        ok = entry.change(consumer.acquired, State("AVAILABLE"))\n',
            "        ok = entry.state.get() is consumer.acquired\n"
            '        ok = ok and entry.change(consumer.acquired, State("AVAILABLE"))\n',
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
    assert found.verdict == "accepted", found.wrong
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


def test_an_unlink_of_several_is_rejected_with_a_reason() -> None:
    """It is right; `nodes` says of an unlink that it leaves out the one node behind which the thread has read."""
    edits = (
        (
            "            node.next.compare_and_set(following, beyond)\n"
            "            following = node.next.get()\n"
            "        return",
            "            following = beyond\n"
            "        if following is not first:\n"
            "            node.next.compare_and_set(first, following)\n"
            "        return",
        ),
        (
            "        following = node.next.get()\n        while",
            "        first = following = node.next.get()\n        while",
        ),
    )
    edited = Mutant("unlinks-several", "", "", "queue", edits, "", "close", 0)
    found = follow("close", executions=5, lib=load("queue", edited))
    assert found.system == "nodes"
    assert "unlink(t = B" in found.rejected
    assert "is the node whose next B has read" in found.rejected


RIGHT_THERE: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "test and test-and-set of the flag": (
        "handover-two-targets",
        (
            (
                "        if self._scheduled.compare_and_set(False, True):\n",
                "        if not self._scheduled.get() and self._scheduled.compare_and_set(False, True):\n",
            ),
        ),
    ),
    "run takes the flag down by compare-and-set": (
        "handover-two-targets",
        (
            (
                "        self._scheduled.set(False)  # rule 6",
                "        self._scheduled.compare_and_set(True, False)  # rule 6",
            ),
        ),
    ),
    "session serves all its targets": (
        "handover-two-targets",
        (
            (
                "        target = self._targets.take()\n"
                "        if target is not None and target.process():\n"
                "            self._targets.add(target)\n"
                "        return not self._targets.empty()\n",
                "        while (target := self._targets.take()) is not None:\n"
                "            while target.process():\n"
                "                pass\n"
                "        return False\n",
            ),
        ),
    ),
    "io thread tries twice": (
        "handover-two-connections",
        (
            (
                "        connection = self._ready.take()\n",
                "        connection = self._ready.take() or self._ready.take()\n",
            ),
        ),
    ),
    "rewind at every enqueue": (
        "enqueue-consume",
        (
            (
                "            if self.entries.overtaking:\n"
                "                self._rewind_all(entry)\n"
                "            self._arrived(entry)",
                "            self._rewind_all(entry)\n            self._arrived(entry)",
            ),
        ),
    ),
    "rewind before the release too": (
        "release-again-rest",
        (
            (
                '        ok = entry.change(consumer.acquired, State("AVAILABLE"))\n'
                "        if ok:\n"
                "            if self.groups",
                "        self._rewind(consumer, entry)\n"
                '        ok = entry.change(consumer.acquired, State("AVAILABLE"))\n'
                "        if ok:\n"
                "            if self.groups",
            ),
        ),
    ),
    "selector before state": (
        "group-given-up",
        (
            (
                "            and (seen := node.available())\n"
                "            and not self._expired(node)\n"
                "            and consumer.has_interest(node)\n"
                "            and (not consumer.acquires or self.groups.allow(node.message.group, consumer))",
                "            and consumer.has_interest(node)\n"
                "            and (not consumer.acquires or self.groups.allow(node.message.group, consumer))\n"
                "            and not self._expired(node)\n"
                "            and (seen := node.available())",
            ),
        ),
    ),
    "walk in private, and acquire from there": (
        "release-again-rest",
        (
            (
                "            pointer = consumer.pointer.get()\n"
                "            if not pointer.passed and (seen := self._wanted(consumer, pointer.entry)):\n"
                "                return pointer, seen\n"
                "            following = self.entries.next(pointer.entry)\n"
                "            if following is None:\n"
                "                return None\n"
                '            consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))\n',
                "            pointer = consumer.pointer.get()\n"
                "            if not pointer.passed and (seen := self._wanted(consumer, pointer.entry)):\n"
                "                return pointer, seen\n"
                "            following = self.entries.next(pointer.entry)\n"
                "            if following is None:\n"
                "                return None\n"
                '            there = Pointer(following, "advance")\n'
                "            moved = consumer.pointer.compare_and_set(pointer, there)\n"
                "            if moved and (seen := self._wanted(consumer, following)):\n"
                "                return there, seen\n",
            ),
        ),
    ),
    "announce the group, then dispose": (
        "group-released",
        (
            (
                "        if ok:\n"
                "            self._dispose(entry)\n"
                "            if self.groups.leave(entry.message.group, consumer):\n"
                "                self._announce_group(entry.message.group)\n"
                "        return ok",
                "        if ok:\n"
                "            if self.groups.leave(entry.message.group, consumer):\n"
                "                self._announce_group(entry.message.group)\n"
                "            self._dispose(entry)\n"
                "        return ok",
            ),
        ),
    ),
    "close in a loop of compare-and-set": (
        "close",
        (
            (
                "            if consumer.wants_work.get_and_set(None) is None:\n"
                "                return\n",
                "            while True:\n"
                "                seen = consumer.wants_work.get()\n"
                "                if seen is None:\n"
                "                    return\n"
                "                if consumer.wants_work.compare_and_set(seen, None):\n"
                "                    break\n",
            ),
        ),
    ),
    "wake, then note it": (
        "release-rest",
        (
            (
                '        self.host.record("notify", sub=consumer.name)\n'
                "        consumer.target.notify_work(consumer)\n",
                "        consumer.target.notify_work(consumer)\n"
                '        self.host.record("notify", sub=consumer.name)\n',
            ),
        ),
    ),
    "the finder of nothing asks itself too": (
        "interest",
        (
            (
                "            if other is not consumer and self._notify(other):",
                "            if self._notify(other):",
            ),
        ),
    ),
    "end without a detour": (
        "close",
        (
            (
                "        self.set_notify_work_desired(consumer, False)\n"
                "        self.manager.remove(consumer)",
                "        self.manager.remove(consumer)\n"
                "        if consumer.acquires:\n"
                "            self._notify_other(consumer)",
            ),
        ),
    ),
    "job tests before it sets": (
        "push-two",
        (
            (
                "        if self._job_pending.compare_and_set(False, True):\n",
                "        if not self._job_pending.get() and self._job_pending.compare_and_set(False, True):\n",
            ),
        ),
    ),
    "snapshot of consumers before rewinding": (
        "subscribe-release",
        (
            (
                "        for consumer in self.all.consumers():\n"
                "            if consumer.acquires:  # a browser",
                "        for consumer in list(self.all.consumers()):\n"
                "            if consumer.acquires:  # a browser",
            ),
        ),
    ),
    "tail left to the next append": (
        "enqueue-enqueue",
        (
            (
                "            if tail.next.compare_and_set(None, node):\n"
                "                self._tail.compare_and_set(tail, node)\n"
                "                return\n",
                "            if tail.next.compare_and_set(None, node):\n                return\n",
            ),
        ),
    ),
    "a permit if it was not there": (
        "handover-two-connections",
        (
            (
                "        self._ready.add(connection)\n        self._permits.release()\n",
                "        if self._ready.add(connection):\n            self._permits.release()\n",
            ),
        ),
    ),
    "a connection hears of each notification": (
        "handover-two-targets",
        (
            (
                "        if self._targets.add(target):\n            self.connection.notify_work(self)\n",
                "        self._targets.add(target)\n        self.connection.notify_work(self)\n",
            ),
        ),
    ),
    "turns are counted out before anybody is asked": (
        "push-taken-meanwhile",
        (
            (
                "for consumer in self._in_turn() if alone is None else (alone,):",
                "for consumer in tuple(self._in_turn()) if alone is None else (alone,):",
            ),
        ),
    ),
    "a loop by hand over whom to ask": (
        "push-turns",
        (
            (
                "        for consumer in self._in_turn() if alone is None else (alone,):\n"
                "            if self.deliver_to(consumer, path, entry) and consumer.acquires:\n"
                "                return\n",
                "        whom = self._in_turn() if alone is None else iter((alone,))\n"
                "        while (consumer := next(whom, None)) is not None:\n"
                "            taken = self.deliver_to(consumer, path, entry)\n"
                "            if taken is not None and consumer.acquires:\n"
                "                return\n",
            ),
        ),
    ),
    "browsers from a copy of their list": (
        "browsers-and-arrivals",
        (
            (
                "        for consumer in self.manager.lists[NON_ACQUIRING].consumers():\n",
                "        for consumer in tuple(self.manager.lists[NON_ACQUIRING].consumers()):\n",
            ),
        ),
    ),
    "the owner is looked up before the loop's end": (
        "group-race",
        (
            (
                "            owner, count = owners.get(group, (consumer, 0))\n"
                "            if owner is not consumer:\n                return False\n",
                "            if group in owners and owners[group][0] is not consumer:\n"
                "                return False\n"
                "            owner, count = owners.get(group, (consumer, 0))\n",
            ),
        ),
    ),
    "walk over memberships": (
        "subscribe-release",
        (
            (
                "        for consumer in self.all.consumers():\n"
                "            if consumer.acquires:  # a browser never goes back: it sees each entry once (SO-4)\n"
                "                self._rewind(consumer, entry)\n",
                "        for member in self.all:\n            if member.consumer.acquires:\n"
                "                self._rewind(member.consumer, entry)\n",
            ),
        ),
    ),
    "announce the whole group": (
        "group-freed",
        (
            (
                "            if entry.message.group == group and entry.available():\n",
                "            if entry.message.group == group:\n",
            ),
        ),
    ),
    "the time is read once": (
        "held",
        (
            (
                "        for entry in self.entries:\n"
                "            if self.host.now() >= entry.message.not_before and",
                "        now = self.host.now()\n        for entry in self.entries:\n"
                "            if now >= entry.message.not_before and",
            ),
        ),
    ),
    "the highest of a sorted list": (
        "consumer-priorities",
        (
            (
                "        for other in self.all.consumers() if consumer.acquires else ():\n",
                "        for other in sorted(\n"
                "            self.all.consumers() if consumer.acquires else (), key=lambda c: -c.priority\n"
                "        ):\n",
            ),
        ),
    ),
    "count by compare-and-set": (
        "two-takers",
        (
            (
                "        self.depth.add(1)\n",
                "        while not self.depth.compare_and_set(seen := self.depth.get(), seen + 1):\n"
                "            pass\n",
            ),
        ),
    ),
    "count down by compare-and-set": (
        "two-takers",
        (
            (
                "        self.depth.add(-1)\n",
                "        while True:\n"
                "            seen = self.depth.get()\n"
                "            if self.depth.compare_and_set(seen, seen - 1):\n"
                "                break\n",
            ),
        ),
    ),
    "restore by compare-and-set": (
        "credit-in-vain",
        (
            (
                "            self.credit.add(1)\n",
                "            while True:\n"
                "                left = self.credit.get()\n"
                "                if self.credit.compare_and_set(left, left + 1):\n"
                "                    return\n",
            ),
        ),
    ),
    "mark by compare-and-set": (
        "close",
        (
            (
                "        entry.marked.set(True)\n",
                "        entry.marked.compare_and_set(False, True)\n",
            ),
        ),
    ),
    "browsers come last": (
        "interest",
        (
            (
                "        for consumer in self.manager.lists[NON_ACQUIRING].consumers():\n"
                "            if consumer.has_interest(entry):\n"
                "                self._notify(consumer)\n"
                "        for consumer in self.manager.interested():\n"
                "            if consumer.has_interest(entry) and self._notify(consumer):\n"
                "                return\n",
                "        for consumer in self.manager.interested():\n"
                "            if consumer.has_interest(entry) and self._notify(consumer):\n"
                "                break\n"
                "        for consumer in self.manager.lists[NON_ACQUIRING].consumers():\n"
                "            if consumer.has_interest(entry):\n"
                "                self._notify(consumer)\n",
            ),
        ),
    ),
    "try the acquisition again from what it is now": (
        "group-released",
        (
            (
                "            if not entry.change(seen, consumer.acquired):",
                "            again = None if entry.change(seen, consumer.acquired) else entry.available()\n"
                "            mine = entry.state.get() is consumer.acquired\n"
                "            if not mine and not (again and entry.change(again, consumer.acquired)):",
            ),
        ),
    ),
    "rewind the youngest first": (
        "subscribe-release",
        (
            (
                "        for consumer in self.all.consumers():\n"
                "            if consumer.acquires:  # a browser",
                "        for consumer in reversed([*self.all.consumers()]):\n"
                "            if consumer.acquires:  # a browser",
            ),
        ),
    ),
    "leave the group, then dispose": (
        "group-freed",
        (
            (
                "            self._dispose(entry)\n"
                "            if self.groups.leave(entry.message.group, consumer):\n"
                "                self._announce_group(entry.message.group)\n"
                "        return ok",
                "            free = self.groups.leave(entry.message.group, consumer)\n"
                "            self._dispose(entry)\n"
                "            if free:\n"
                "                self._announce_group(entry.message.group)\n"
                "        return ok",
            ),
        ),
    ),
    "job lowers the flag by compare-and-set": (
        "push-two",
        (
            (
                "        self._job_pending.set(False)  # rule 6",
                "        self._job_pending.compare_and_set(True, False)  # rule 6",
            ),
        ),
    ),
    "keep the turn by compare-and-set": (
        "push-turns",
        (
            (
                "                self._last_delivered.set(consumer.in_all)\n",
                "                seen = self._last_delivered.get()\n"
                "                if seen is not consumer.in_all:\n"
                "                    self._last_delivered.compare_and_set(seen, consumer.in_all)\n",
            ),
        ),
    ),
    "housekeeping in two passes": (
        "due-and-expired",
        (
            (
                "        for entry in self.entries:\n            if self.host.now()",
                "        for entry in [*self.entries]:\n            if self.host.now()",
            ),
        ),
    ),
    "a job serves each once, and submits another": (
        "push-group",
        (
            (
                "        for consumer in self.all.consumers():\n"
                '            while self.deliver_to(consumer, "job"):\n'
                "                pass\n",
                "        again = False\n"
                "        for consumer in self.all.consumers():\n"
                '            again = self.deliver_to(consumer, "job") is not None or again\n'
                "        if again:\n"
                "            self.deliver_async()\n",
            ),
        ),
    ),
    "a job serves each once, in rounds": (
        "push-group",
        (
            (
                "        for consumer in self.all.consumers():\n"
                '            while self.deliver_to(consumer, "job"):\n'
                "                pass\n",
                "        again = True\n"
                "        while again:\n"
                "            again = False\n"
                "            for consumer in self.all.consumers():\n"
                '                again = self.deliver_to(consumer, "job") is not None or again\n',
            ),
        ),
    ),
    "look for the next in private, and advance once": (
        "release-again-rest",
        (
            (
                "            following = self.entries.next(pointer.entry)\n"
                "            if following is None:\n",
                "            following = self.entries.next(pointer.entry)\n"
                "            while following is not None and not self._wanted(consumer, following):\n"
                "                following = self.entries.next(following)\n"
                "            if following is None:\n",
            ),
        ),
    ),
    "a close releases the last first": (
        "subscribe-release",
        (
            (
                "        for entry in self.entries:\n"
                "            if entry.state.get() is consumer.acquired:\n"
                "                self.release(entry, consumer)\n",
                "        held = [e for e in self.entries if e.state.get() is consumer.acquired]\n"
                "        for entry in reversed(held):\n"
                "            self.release(entry, consumer)\n",
            ),
        ),
    ),
    "announce what is released before its group is left, too": (
        "group-released",
        (
            (
                "        if ok:\n            if self.groups.leave(entry.message.group, consumer):\n"
                "                self._announce_group(entry.message.group)\n            else:\n"
                "                self._announce(entry)\n",
                "        if ok:\n            self._announce(entry)\n"
                "            if self.groups.leave(entry.message.group, consumer):\n"
                "                self._announce_group(entry.message.group)\n",
            ),
        ),
    ),
    "announce what is released first, then the rest of its group": (
        "group-released",
        (
            (
                "                self._announce_group(entry.message.group)\n            else:\n"
                "                self._announce(entry)\n",
                "                self._announce(entry)\n"
                "                for other in self.entries:\n"
                "                    mine = other.message.group == entry.message.group\n"
                "                    if mine and other is not entry and other.available():\n"
                "                        self._announce(other)\n"
                "            else:\n"
                "                self._announce(entry)\n",
            ),
        ),
    ),
    "keep the pointer that was put": (
        "held",
        (
            (
                "        while True:\n            pointer = consumer.pointer.get()\n"
                "            if not pointer.passed and (seen",
                "        pointer = consumer.pointer.get()\n        while True:\n"
                "            if not pointer.passed and (seen",
            ),
            (
                '            consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))\n',
                '            fresh = Pointer(following, "advance")\n'
                "            won = consumer.pointer.compare_and_set(pointer, fresh)\n"
                "            pointer = fresh if won else consumer.pointer.get()\n",
            ),
        ),
    ),
    "rewind whom the entry is for": (
        "group-given-up",
        (
            (
                "            if consumer.acquires:  # a browser",
                "            if consumer.acquires and consumer.has_interest(entry):  # a browser",
            ),
        ),
    ),
    "look whether an immediate one was delivered": (
        "immediate",
        (
            (
                "        if entry.change(AVAILABLE, DEQUEUED):\n",
                "        if entry.state.get() is AVAILABLE and entry.change(AVAILABLE, DEQUEUED):\n",
            ),
        ),
    ),
    "pay first, then look": (
        "credit-in-vain",
        (
            (
                "        found = self.next_available(consumer)\n        if found is None or (only",
                "        if not consumer.take_credit():\n            return None, None\n"
                "        found = self.next_available(consumer)\n        if found is None or (only",
            ),
            (
                "            return None, None\n"
                "        first = self._first_to_take(consumer, found[0].entry)\n"
                "        if first is not consumer:\n"
                "            return None, first\n"
                "        if not consumer.take_credit():\n"
                "            return None, None\n",
                "            consumer.restore_credit()\n"
                "            return None, None\n"
                "        first = self._first_to_take(consumer, found[0].entry)\n"
                "        if first is not consumer:\n"
                "            consumer.restore_credit()\n"
                "            return None, first\n",
            ),
        ),
    ),
    "walk to the end from the tail": (
        "two-takers",
        (
            (
                "            assert following is not None\n"
                "            self._tail.compare_and_set(tail, following)",
                "            while following is not None and (beyond := following.next.get()) is not None:\n"
                "                following = beyond\n"
                "            self._tail.compare_and_set(tail, following)",
            ),
        ),
    ),
    "drop what has expired when it is seen": (
        "expiring",
        (
            (
                "            and not self._expired(node)\n",
                "            and (not self._expired(node) or (node.change(seen, DEQUEUED) and self._dispose(node)))\n",
            ),
        ),
    ),
    "the place is looked at before the flag is set": (
        "pause-and-resume",
        (
            (
                "            if wants is not None:\n"
                "                consumer.set_wants(wants)\n"
                "            origin = consumer.listed\n"
                "            if origin not in origins:\n"
                "                return False\n",
                "            origin = consumer.listed\n"
                "            if origin not in origins:\n"
                "                return False\n"
                "            if wants is not None:\n"
                "                consumer.set_wants(wants)\n",
            ),
        ),
    ),
    "pay once, then in a loop": (
        "credit-spent",
        (
            (
                "        while (left := self.credit.get()) > 0:\n"
                "            if self.credit.compare_and_set(left, left - 1):\n"
                "                return True\n"
                "        return False\n",
                "        left = self.credit.get()\n"
                "        if left > 0 and self.credit.compare_and_set(left, left - 1):\n"
                "            return True\n"
                "        while (left := self.credit.get()) > 0:\n"
                "            if self.credit.compare_and_set(left, left - 1):\n"
                "                return True\n"
                "        return False\n",
            ),
        ),
    ),
    "ask the higher one's flag before its entry": (
        "left-to-a-newcomer",
        (
            (
                "                and other.acquires\n"
                "                and self._wanted(other, entry)\n"
                "                and other.wants_work.get()\n",
                "                and other.acquires\n"
                "                and other.wants_work.get()\n"
                "                and self._wanted(other, entry)\n",
            ),
        ),
    ),
    "walk over a snapshot of the interested": (
        "woken-past-the-unable",
        (
            (
                "        for consumer in self.manager.interested():\n"
                "            if consumer.has_interest(entry) and self._notify(consumer):\n"
                "                return\n",
                "        for consumer in [*self.manager.interested()]:\n"
                "            if consumer.has_interest(entry) and self._notify(consumer):\n"
                "                return\n",
            ),
        ),
    ),
    "release returns early": (
        "group-released",
        (
            (
                '        ok = entry.change(consumer.acquired, State("AVAILABLE"))\n'
                "        if ok:\n"
                "            if self.groups.leave(entry.message.group, consumer):\n"
                "                self._announce_group(entry.message.group)\n"
                "            else:\n"
                "                self._announce(entry)\n"
                "        return ok\n",
                '        if not entry.change(consumer.acquired, State("AVAILABLE")):\n'
                "            return False\n"
                "        if not self.groups.leave(entry.message.group, consumer):\n"
                "            self._announce(entry)\n"
                "            return True\n"
                "        self._announce_group(entry.message.group)\n"
                "        return True\n",
            ),
        ),
    ),
    "dispose inline": (
        "group-freed",
        (
            (
                "        if ok:\n"
                "            self._dispose(entry)\n"
                "            if self.groups.leave",
                "        if ok:\n"
                "            depth = self.depth\n"
                "            depth.add(-1)\n"
                "            entry.change(DEQUEUED, DELETED)\n"
                "            if self.groups.leave",
            ),
        ),
    ),
    "announce a snapshot of the group": (
        "group-released",
        (
            (
                "        for entry in self.entries:\n"
                "            if entry.message.group == group and entry.available():\n"
                "                self._announce(entry)\n",
                "        for entry in [e for e in self.entries if e.message.group == group]:\n"
                "            if entry.available():\n"
                "                self._announce(entry)\n",
            ),
        ),
    ),
    "membership made before the old one ends": (
        "pause",
        (
            (
                "            if consumer.in_list is not None:\n"
                "                self._list(origin, consumer.priority).delete(consumer.in_list)\n"
                "            consumer.listed = to\n"
                "            consumer.in_list = None\n"
                "            if to != REMOVED:\n"
                "                members = self._list(to, consumer.priority)\n"
                "                consumer.in_list = ListEntry(self.host, members.name, consumer)\n"
                "                members.add(consumer.in_list)\n",
                "            members = None if to == REMOVED else self._list(to, consumer.priority)\n"
                "            fresh = None if members is None else ListEntry(self.host, members.name, consumer)\n"
                "            if consumer.in_list is not None:\n"
                "                self._list(origin, consumer.priority).delete(consumer.in_list)\n"
                "            consumer.listed, consumer.in_list = to, fresh\n"
                "            if members is not None:\n"
                "                members.add(fresh)\n",
            ),
        ),
    ),
    "the job's flag by exchange": (
        "push-returned",
        (
            (
                "        if self._job_pending.compare_and_set(False, True):\n            try:",
                "        if not self._job_pending.get_and_set(True):\n            try:",
            ),
        ),
    ),
    "memberships as a list": (
        "subscribe-release",
        (
            (
                "        for entry in self.members():\n            yield entry.consumer\n",
                "        return iter([entry.consumer for entry in self.members()])\n",
            ),
        ),
    ),
    "the next of a list by recursion": (
        "consumer-list-middle",
        (
            (
                "        following = node.next.get()\n"
                "        while following is not None and following.deleted():\n"
                "            beyond = following.next.get()\n"
                "            if beyond is None:\n"
                "                return None  # rule 8: the last node stays\n"
                "            node.next.compare_and_set(following, beyond)\n"
                "            following = node.next.get()\n"
                "        return following",
                "        following = node.next.get()\n"
                "        if following is not None and following.deleted():\n"
                "            beyond = following.next.get()\n"
                "            if beyond is None:\n"
                "                return None  # rule 8: the last node stays\n"
                "            node.next.compare_and_set(following, beyond)\n"
                "            return self.next(node)\n"
                "        return following",
            ),
        ),
    ),
    "a grant resumes twice": (
        "release-short-of-credit",
        (
            (
                "            if consumer.credit is not None:\n"
                "                consumer.credit.add(messages)\n"
                "            self.set_notify_work_desired(consumer, True)\n",
                "            self.set_notify_work_desired(consumer, True)\n"
                "            if consumer.credit is not None:\n"
                "                consumer.credit.add(messages)\n"
                "                self.set_notify_work_desired(consumer, True)\n",
            ),
        ),
    ),
    "a grant adds one by one": (
        "release-short-of-credit",
        (
            (
                "                consumer.credit.add(messages)\n",
                "                for _ in range(messages):\n"
                "                    consumer.credit.add(1)\n",
            ),
        ),
    ),
    "the credit is read by who resumes": (
        "release-short-of-credit",
        (
            (
                "        if desired and not consumer.has_credit():\n"
                "            return  # a grant will resume it\n"
                "        if self.manager.set_interest(consumer, desired):\n"
                "            if desired:\n"
                "                self._notify(consumer)\n"
                "            elif consumer.acquires:\n"
                "                self._notify_other(consumer)\n",
                "        if not desired:\n"
                "            if self.manager.set_interest(consumer, False) and consumer.acquires:\n"
                "                self._notify_other(consumer)\n"
                "        elif consumer.has_credit() and self.manager.set_interest(consumer, True):\n"
                "            self._notify(consumer)\n",
            ),
        ),
    ),
    "close by who finds it open": (
        "close",
        (
            (
                "            if consumer.wants_work.get_and_set(None) is None:\n"
                "                return\n",
                "            if consumer.wants_work.get() is None:\n"
                "                return\n"
                "            consumer.wants_work.set(None)\n",
            ),
        ),
    ),
    "wishes are read first": (
        "pause-and-resume",
        (
            (
                "        changed = self.wants_work.compare_and_set(not desired, desired)\n"
                "        return changed or self.wants_work.get() is not None\n",
                "        if self.wants_work.get() is desired:\n"
                "            return True\n"
                "        changed = self.wants_work.compare_and_set(not desired, desired)\n"
                "        return changed or self.wants_work.get() is not None\n",
            ),
        ),
    ),
    "a pull reads its credit into a local": (
        "credit-spent",
        (
            (
                "                if not consumer.has_credit():\n"
                "                    self.set_notify_work_desired(consumer, False)\n",
                "                spent = consumer.credit is not None and consumer.credit.get() == 0\n"
                "                if spent:\n"
                "                    self.set_notify_work_desired(consumer, False)\n",
            ),
        ),
    ),
    "lists by insertion": (
        "priority-returns",
        (
            (
                "                pairs, tuple(sorted((*pairs, pair), key=lambda p: -p[0]))\n",
                "                pairs,\n"
                "                (*(p for p in pairs if p[0] > priority), pair,\n"
                "                 *(p for p in pairs if p[0] < priority)),\n",
            ),
        ),
    ),
    "look where it is, then raise the flag": (
        "pause-and-take",
        (
            (
                "            if wants is not None:\n"
                "                consumer.set_wants(wants)\n"
                "            origin = consumer.listed\n",
                "            origin = consumer.listed\n"
                "            if wants is not None:\n"
                "                consumer.set_wants(wants)\n",
            ),
        ),
    ),
    "hold the send lock for the whole of a close": (
        "push-close",
        (
            (
                "                return\n        self._close(consumer)\n        if consumer.exclusive:\n"
                "            self.exclusive.set(None)\n",
                "                return\n            self._close(consumer)\n        if consumer.exclusive:\n"
                "            self.exclusive.set(None)\n",
            ),
        ),
    ),
    "the list of a priority is looked up in a dict": (
        "priority-returns",
        (
            (
                "            for at, members in pairs:\n"
                "                if at == priority:\n"
                "                    return members\n",
                "            members = dict(pairs).get(priority)\n"
                "            if members is not None:\n"
                "                return members\n",
            ),
        ),
    ),
    "an iteration reads one ahead": (
        "close",
        (
            (
                "        while node is not None:\n"
                "            yield node\n"
                "            node = self.next(node)\n",
                "        while node is not None:\n"
                "            ahead = self.next(node)\n"
                "            yield node\n"
                "            node = ahead\n",
            ),
        ),
    ),
    "who comes first is asked in a function of its own": (
        "priority-wakes",
        (
            (
                "            if (\n"
                "                other.priority > first.priority\n"
                "                and other.acquires\n"
                "                and self._wanted(other, entry)\n"
                "                and other.wants_work.get()\n"
                "            ):\n"
                "                first = other\n"
                "        return first\n",
                "            if self._comes_before(other, first, entry):\n"
                "                first = other\n"
                "        return first\n"
                "\n"
                "    def _comes_before(self, one, first, entry):\n"
                "        if one.priority <= first.priority or not one.acquires:\n"
                "            return False\n"
                "        return self._wanted(one, entry) is not None and one.wants_work.get() is True\n",
            ),
        ),
    ),
    "what a consumer holds is collected before it is released": (
        "close",
        (
            (
                "        for entry in self.entries:\n"
                "            if entry.state.get() is consumer.acquired:\n"
                "                self.release(entry, consumer)\n",
                "        held = [e for e in self.entries if e.state.get() is consumer.acquired]\n"
                "        for entry in held:\n"
                "            self.release(entry, consumer)\n",
            ),
        ),
    ),
    "housekeeping reads the clock once a pass": (
        "held",
        (
            (
                "        for entry in self.entries:\n            if self.host.now() >= entry.message.not_before",
                "        now = self.host.now()\n        for entry in self.entries:\n"
                "            if now >= entry.message.not_before",
            ),
        ),
    ),
    "whoever is outbid begins anew": (
        "credit-in-vain",
        (
            (
                "        while (left := self.credit.get()) > 0:\n"
                "            if self.credit.compare_and_set(left, left - 1):\n"
                "                return True\n"
                "        return False\n",
                "        left = self.credit.get()\n"
                "        if left > 0 and not self.credit.compare_and_set(left, left - 1):\n"
                "            return self.take_credit()\n"
                "        return left > 0\n",
            ),
        ),
    ),
    "an attempt asks for credit before it looks": (
        "credit-in-vain",
        (
            (
                "        found = self.next_available(consumer)\n        if found is None or (only",
                "        if not consumer.has_credit():\n            return None, None\n"
                "        found = self.next_available(consumer)\n        if found is None or (only",
            ),
        ),
    ),
    "a notification schedules whoever queued the session": (
        "handover-two-connections",
        (
            (
                "        if self._sessions.add(session):\n            self._schedule()\n",
                "        self._sessions.add(session)\n        self._schedule()\n",
            ),
        ),
    ),
    "a target notifies its session though it waits": (
        "handover-two-targets",
        (
            (
                "        if self._targets.add(target):\n            self.connection.notify_work(self)\n",
                "        self._targets.add(target)\n        self.connection.notify_work(self)\n",
            ),
        ),
    ),
    "a session serves its targets until one has a message": (
        "handover-turns",
        (
            (
                "        target = self._targets.take()\n"
                "        if target is not None and target.process():\n"
                "            self._targets.add(target)\n",
                "        while (target := self._targets.take()) is not None:\n"
                "            if target.process():\n"
                "                self._targets.add(target)\n"
                "                break\n",
            ),
        ),
    ),
    "one swing for both ends of an append": (
        "enqueue-enqueue",
        (
            (
                (
                    "            if tail.next.compare_and_set(None, node):\n"
                    "                self._tail.compare_and_set(tail, node)\n"
                    "                return\n"
                    "            following = tail.next.get()\n"
                    "            assert following is not None\n"
                    "            self._tail.compare_and_set(tail, following)  # finish what another append began\n"
                ),
                (
                    "            linked = tail.next.compare_and_set(None, node)\n"
                    "            following = node if linked else tail.next.get()\n"
                    "            self._tail.compare_and_set(tail, following)\n"
                    "            if linked:\n"
                    "                return\n"
                ),
            ),
        ),
    ),
    "a group is left by a pop": (
        "group-released",
        (
            (
                (
                    "            count = owners[group][1] - 1\n"
                    "            rest = {g: owned for g, owned in owners.items() if g != group}\n"
                    "            if count:\n"
                    "                rest[group] = (consumer, count)\n"
                    "            if self.owners.compare_and_set(owners, rest):\n"
                    "                return not count\n"
                ),
                (
                    "            rest = dict(owners)\n"
                    "            owner, count = rest.pop(group)\n"
                    "            if count > 1:\n"
                    "                rest[group] = (owner, count - 1)\n"
                    "            if self.owners.compare_and_set(owners, rest):\n"
                    "                return count == 1\n"
                ),
            ),
        ),
    ),
    "work waits in a list": (
        "handover-two-targets",
        (
            ('host.cell((), name, kind="work"', 'host.cell([], name, kind="work"'),
            ("(waiting, (*waiting, item))", "(waiting, [*waiting, item])"),
        ),
    ),
    "a wish is set from what was read": (
        "close-and-pause",
        (
            (
                (
                    "        changed = self.wants_work.compare_and_set(not desired, desired)\n"
                    "        return changed or self.wants_work.get() is not None\n"
                ),
                (
                    "        while (was := self.wants_work.get()) is not None:\n"
                    "            if was == desired or self.wants_work.compare_and_set(was, desired):\n"
                    "                return True\n"
                    "        return False\n"
                ),
            ),
        ),
    ),
    "a pull returns early": (
        "enqueue-consume",
        (
            (
                (
                    "        entry = None\n"
                    "        if consumer.wants_work.get():\n"
                    '            entry, first = self._attempt(consumer, "pull")\n'
                    "            if entry is not None:\n"
                    "                self.manager.set_notified(consumer, True)\n"
                    "                consumer.target.send(consumer, entry)\n"
                    "                if not consumer.has_credit():\n"
                    "                    self.set_notify_work_desired(consumer, False)\n"
                    "            elif consumer.acquires and (first is None or not self._wake(first)):\n"
                    "                self._notify_other(consumer)\n"
                    "        return entry\n"
                ),
                (
                    "        if not consumer.wants_work.get():\n"
                    "            return None\n"
                    '        entry, first = self._attempt(consumer, "pull")\n'
                    "        if entry is None:\n"
                    "            handed = first is not None and consumer.acquires and self._wake(first)\n"
                    "            if consumer.acquires and not handed:\n"
                    "                self._notify_other(consumer)\n"
                    "            return None\n"
                    "        self.manager.set_notified(consumer, True)\n"
                    "        consumer.target.send(consumer, entry)\n"
                    "        if consumer.has_credit():\n"
                    "            return entry\n"
                    "        self.set_notify_work_desired(consumer, False)\n"
                    "        return entry\n"
                ),
            ),
        ),
    ),
    "what is due in a function of its own": (
        "due-and-expired",
        (
            (
                (
                    "            if self.host.now() >= entry.message.not_before and entry.change(DELAYED, AVAILABLE):\n"
                    "                self._announce(entry)\n"
                    "            elif (\n"
                    "                self._expired(entry)\n"
                    "                and (seen := entry.available())\n"
                    "                and entry.change(seen, DEQUEUED)\n"
                    "            ):\n"
                    "                self._dispose(entry)\n"
                ),
                (
                    "            if self._comes_due(entry):\n"
                    "                continue\n"
                    "            seen = entry.available() if self._expired(entry) else None\n"
                    "            if seen and entry.change(seen, DEQUEUED):\n"
                    "                self._dispose(entry)\n"
                    "\n"
                    "    def _comes_due(self, entry):\n"
                    "        if self.host.now() < entry.message.not_before:\n"
                    "            return False\n"
                    "        if not entry.change(DELAYED, AVAILABLE):\n"
                    "            return False\n"
                    "        self._announce(entry)\n"
                    "        return True\n"
                ),
            ),
        ),
    ),
    "an entry that is to be deleted is still walked over": (
        "expiring",
        (
            (
                '        return self.state.get().name in ("DEQUEUED", "DELETED")',
                "        return self.state.get() is DELETED",
            ),
        ),
    ),
}
"""What is changed -> a program in which it matters, and the edits."""


@pytest.mark.slow
@pytest.mark.parametrize("change", RIGHT_THERE)
def test_a_right_refactoring_is_accepted_where_it_matters(change: str) -> None:
    program, edits = RIGHT_THERE[change]
    edited = Mutant("right", "", change, "queue", edits, "", program, 0)
    found = follow(program, executions=40, lib=load("queue", edited))
    assert found.verdict == "accepted", found.wrong
    assert found.steps > 100


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
    "a refused dequeue leaves the group": (
        "group-not-mine",
        "entries",
        "has nothing in g that it could take away",
        (
            (
                "            self._dispose(entry)\n            if self.groups.leave(entry.message.group, consumer):\n"
                "                self._announce_group",
                "            self._dispose(entry)\n        if entry:\n"
                "            if self.groups.leave(entry.message.group, consumer):\n"
                "                self._announce_group",
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
    "announce twice": (
        "release-passed",
        "wakeups",
        "walks",
        (
            (
                "        self._rewind_all(entry)\n        self._returned(entry)\n",
                "        self._rewind_all(entry)\n"
                "        self._returned(entry)\n"
                "        self._rewind_all(entry)\n"
                "        self._returned(entry)\n",
            ),
        ),
    ),
    "wakes, then rewinds": (
        "release-again-rest",
        "entries",
        "announce",
        (
            (
                "        self._rewind_all(entry)\n        self._returned(entry)\n",
                "        self._returned(entry)\n        self._rewind_all(entry)\n",
            ),
        ),
    ),
    "delay ends without a rewind": (
        "held",
        "entries",
        "announce",
        (
            (
                "entry.change(DELAYED, AVAILABLE):\n                self._announce(entry)",
                "entry.change(DELAYED, AVAILABLE):\n                self._returned(entry)",
            ),
        ),
    ),
    "rewinds the interested only": (
        "release-again-rest",
        "entries",
        "announce",
        (
            (
                "        for consumer in self.all.consumers():\n"
                "            if consumer.acquires:  # a browser",
                "        for consumer in self.manager.interested():\n"
                "            if consumer.acquires:  # a browser",
            ),
        ),
    ),
    "tail decides who is last": (
        "enqueue-enqueue",
        "nodes",
        "swing",
        (
            (
                "            if tail.next.compare_and_set(None, node):\n"
                "                self._tail.compare_and_set(tail, node)\n"
                "                return\n",
                "            if self._tail.compare_and_set(tail, node):\n"
                "                tail.next.set(node)\n"
                "                return\n",
            ),
        ),
    ),
    "pays after it acquired": (
        "credit-in-vain",
        "consumers",
        "obtain",
        (
            (
                "        if not consumer.take_credit():\n"
                "            return None, None\n"
                "        return self._take(consumer, *found), consumer",
                "        taken = self._take(consumer, *found)\n"
                "        if taken is not None:\n"
                "            consumer.take_credit()\n"
                "        return taken, None",
            ),
        ),
    ),
    "permit before the connection is there": (
        "handover-one",
        "handover",
        "permit",
        (
            (
                "        self._ready.add(connection)\n        self._permits.release()\n",
                "        self._permits.release()\n        self._ready.add(connection)\n",
            ),
        ),
    ),
    "flag is lowered before the run": (
        "handover",
        "handover",
        "take_session",
        (
            (
                '        self.host.record("conn_run", conn=self.name, at="begin")\n',
                "        self._scheduled.set(False)\n"
                '        self.host.record("conn_run", conn=self.name, at="begin")\n',
            ),
        ),
    ),
    "move without the lock": (
        "pause-and-take",
        "lists",
        "has not its lock",
        (
            (
                "        with consumer.moving:\n            # The flag",
                "        if True:\n            # The flag",
            ),
        ),
    ),
    "close does not take the lock": (
        "close",
        "consumers",
        "send lock",
        (
            (
                "        with consumer.send_lock:  # after any delivery to it that is under way\n"
                "            if consumer.wants_work.get_and_set(None) is None:\n"
                "                return\n",
                "        if consumer.wants_work.get_and_set(None) is None:\n            return\n",
            ),
        ),
    ),
    "job before the flag": (
        "push",
        "jobs",
        "job",
        (
            (
                "        self._job_pending.set(False)  # rule 6: clear the flag, then check\n"
                "        for consumer in self.all.consumers():\n"
                '            while self.deliver_to(consumer, "job"):\n'
                "                pass\n",
                "        for consumer in self.all.consumers():\n"
                '            while self.deliver_to(consumer, "job"):\n'
                "                pass\n"
                "        self._job_pending.set(False)\n",
            ),
        ),
    ),
    "resumed and no job": (
        "push",
        "jobs",
        "job",
        (
            (
                "        if consumer.set_wants(desired) and desired:\n"
                "            self.deliver_async()",
                "        consumer.set_wants(desired)",
            ),
        ),
    ),
    "released and no job": (
        "push-returned",
        "jobs",
        "job",
        (
            (
                "        self.deliver_async()  # not here and now: the caller may hold a send lock",
                "        pass",
            ),
        ),
    ),
    "a rest that is not looked after": (
        "interest",
        "wakeups",
        "decline",
        (
            (
                "            elif consumer.acquires and (first is None or not self._wake(first)):\n"
                "                self._notify_other(consumer)\n"
                "        return entry",
                "        return entry",
            ),
        ),
    ),
    "higher one's end wakes nobody": (
        "priority-pause",
        "wakeups",
        "",
        (
            (
                "            elif consumer.acquires:\n"
                "                self._notify_other(consumer)\n"
                "\n",
                "\n",
            ),
        ),
    ),
    "a rewind that lost gives up": (
        "release-behind",
        "entries",
        "owes B a rewind for m1",
        (
            (
                '            if consumer.pointer.compare_and_set(pointer, Pointer(back, "rewind")):\n'
                "                return\n",
                '            consumer.pointer.compare_and_set(pointer, Pointer(back, "rewind"))\n'
                "            return\n",
            ),
        ),
    ),
    "dequeue from whatever it is": (
        "release-not-mine",
        "entries",
        "owner of m1",
        (
            (
                "        ok = entry.change(consumer.acquired, DEQUEUED)\n",
                "        ok = entry.change(entry.state.get(), DEQUEUED)\n",
            ),
        ),
    ),
    "who lost the expiry disposes too": (
        "expiring",
        "entries",
        "made no entry DEQUEUED",
        (
            (
                "                and entry.change(seen, DEQUEUED)\n",
                "                and (entry.change(seen, DEQUEUED) or True)\n",
            ),
        ),
    ),
    "into the new list first": (
        "pause-and-take",
        "lists",
        "moves to INTERESTED",
        (
            (
                "            if consumer.in_list is not None:\n"
                "                self._list(origin, consumer.priority).delete(consumer.in_list)\n"
                "            consumer.listed = to\n"
                "            consumer.in_list = None\n"
                "            if to != REMOVED:\n"
                "                members = self._list(to, consumer.priority)\n"
                "                consumer.in_list = ListEntry(self.host, members.name, consumer)\n"
                "                members.add(consumer.in_list)\n",
                "            before = consumer.in_list\n"
                "            consumer.listed = to\n"
                "            consumer.in_list = None\n"
                "            if to != REMOVED:\n"
                "                members = self._list(to, consumer.priority)\n"
                "                consumer.in_list = ListEntry(self.host, members.name, consumer)\n"
                "                members.add(consumer.in_list)\n"
                "            if before is not None:\n"
                "                self._list(origin, consumer.priority).delete(before)\n",
            ),
        ),
    ),
    "size before the mark": (
        "close",
        "nodes",
        "has deleted nothing",
        (
            (
                "        entry.marked.set(True)\n        self.size.add(-1)\n",
                "        self.size.add(-1)\n        entry.marked.set(True)\n",
            ),
        ),
    ),
    "wakes, then moves": (
        "enqueue-rest",
        "wakeups",
        "has not moved it",
        (
            (
                "        if not self.manager.set_notified(consumer, True):\n"
                "            return False\n"
                '        self.host.record("notify", sub=consumer.name)\n'
                "        consumer.target.notify_work(consumer)\n"
                "        return True\n",
                '        self.host.record("notify", sub=consumer.name)\n'
                "        consumer.target.notify_work(consumer)\n"
                "        return self.manager.set_notified(consumer, True)\n",
            ),
        ),
    ),
    "the first that selects it is enough": (
        "woken-past-the-unable",
        "wakeups",
        "has not looked for C",
        (
            (
                "            if consumer.has_interest(entry) and self._notify(consumer):\n"
                "                return\n",
                "            if consumer.has_interest(entry):\n"
                "                self._notify(consumer)\n"
                "                return\n",
            ),
        ),
    ),
    "groups are left by a set": (
        "group-freed",
        "entries",
        "without a compare-and-set",
        (
            (
                "            if self.owners.compare_and_set(owners, rest):\n"
                "                return not count\n",
                "            self.owners.set(rest)\n            return not count\n",
            ),
        ),
    ),
    "acquires, then joins the group": (
        "group-race",
        "entries",
        "counted in its group",
        (
            (
                "            if not self.groups.join(entry.message.group, consumer):\n"
                "                return None\n"
                "            if not entry.change(seen, consumer.acquired):  # as it was when `_first_to_take` looked\n"
                "                if self.groups.leave(entry.message.group, consumer):\n"
                "                    self._announce_group(entry.message.group)\n"
                "                return None\n",
                "            if not entry.change(seen, consumer.acquired):\n"
                "                return None\n"
                "            if not self.groups.join(entry.message.group, consumer):\n"
                '                entry.change(consumer.acquired, State("AVAILABLE"))\n'
                "                self._announce(entry)\n"
                "                return None\n",
            ),
        ),
    ),
    "leaves the list of all, then lets go": (
        "push-close",
        "entries",
        "holds",
        (
            (
                "        self._close(consumer)\n"
                "        if consumer.exclusive:\n"
                "            self.exclusive.set(None)\n"
                "        self.all.delete(consumer.in_all)",
                "        self.all.delete(consumer.in_all)\n"
                "        self._close(consumer)\n"
                "        if consumer.exclusive:\n"
                "            self.exclusive.set(None)\n"
                "        ",
            ),
        ),
    ),
    "announces the first of the group": (
        "group-released",
        "wakeups",
        "has still to announce g2",
        (
            (
                "                self._announce(entry)\n\n    def _arrived",
                "                self._announce(entry)\n                return\n\n    def _arrived",
            ),
        ),
    ),
    "linked, then delayed": (
        "held",
        "entries",
        "without a compare-and-set",
        (
            (
                "        entry = self.entries.add(message, DELAYED if message.not_before else AVAILABLE)\n",
                "        entry = self.entries.add(message, AVAILABLE)\n"
                "        if message.not_before:\n"
                "            entry.state.set(DELAYED)\n",
            ),
        ),
    ),
    "submits, then raises the flag": (
        "push",
        "jobs",
        "has still to submit a job",
        (
            (
                "        if self._job_pending.compare_and_set(False, True):\n"
                "            try:\n"
                "                self._submit(self._job)\n",
                "        if not self._job_pending.get():\n"
                "            try:\n"
                "                self._submit(self._job)\n"
                "                self._job_pending.set(True)\n",
            ),
        ),
    ),
    "the turn is taken before it is served": (
        "push-turns",
        "consumers",
        "served_last",
        (
            (
                "            entry = self.attempt(consumer, path, only) if",
                "            self._last_delivered.set(consumer.in_all)\n"
                "            entry = self.attempt(consumer, path, only) if",
            ),
        ),
    ),
    "a list takes the place of the others": (
        "priority-returns",
        "lists",
        "none goes",
        (
            (
                "pairs, tuple(sorted((*pairs, pair), key=lambda p: -p[0]))",
                "pairs, (pair,)",
            ),
        ),
    ),
    "a pull looks before it rests": (
        "release-rest",
        "wakeups",
        "",
        (
            (
                "        self.manager.set_notified(consumer, False)  # rule 6: be seen to wait, then check\n"
                "        entry = None\n"
                "        if consumer.wants_work.get():\n"
                '            entry, first = self._attempt(consumer, "pull")\n'
                "            if entry is not None:\n"
                "                self.manager.set_notified(consumer, True)\n",
                "        entry = None\n"
                "        if consumer.wants_work.get():\n"
                '            entry, first = self._attempt(consumer, "pull")\n'
                "            if entry is None:\n"
                "                self.manager.set_notified(consumer, False)\n"
                "            if entry is not None:\n",
            ),
        ),
    ),
    "a job serves each once": (
        "push-group",
        "jobs",
        "ends its job, and g2 could go to A all the while",
        (
            (
                '            while self.deliver_to(consumer, "job"):\n                pass\n',
                '            self.deliver_to(consumer, "job")\n',
            ),
        ),
    ),
    "a job stops at who has no credit": (
        "push-past-idle",
        "jobs",
        "ends its job, and m1 could go to B all the while",
        (
            (
                '            while self.deliver_to(consumer, "job"):\n                pass\n',
                '            while self.deliver_to(consumer, "job"):\n                pass\n'
                "            if not consumer.has_credit():\n                break\n",
            ),
        ),
    ),
    "rewinds who wants work only": (
        "release-short-of-credit",
        "entries",
        "owes A a rewind for m1",
        (
            (
                "            if consumer.acquires:  # a browser",
                "            if consumer.acquires and consumer.wants_work.get():  # a browser",
            ),
        ),
    ),
    "released as it was born": (
        "immediate-returned",
        "entries",
        "RETURNED in the specification",
        (
            (
                'entry.change(consumer.acquired, State("AVAILABLE"))',
                "entry.change(consumer.acquired, AVAILABLE)",
            ),
        ),
    ),
    "rests while it has something": (
        "release-rest",
        "wakeups",
        "the list of B is not INTERESTED",
        (
            (
                "                self.manager.set_notified(consumer, True)\n"
                "                consumer.target.send",
                "                consumer.target.send",
            ),
        ),
    ),
    "wakes whom it finds something for": (
        "release-rest",
        "wakeups",
        "has still to wake B",
        (
            (
                "        consumer.target.notify_work(consumer)\n",
                "        if self.next_available(consumer):\n"
                "            consumer.target.notify_work(consumer)\n",
            ),
        ),
    ),
    "permit for two": (
        "handover",
        "handover",
        "2 permits",
        (
            (
                "        self._permits.release()\n",
                "        self._permits.release(2)\n",
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
