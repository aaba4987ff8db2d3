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
        "A leaves A NOTIFIED, and its flag says otherwise",
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
    "the flag behind the list": (
        "interest",
        "needs that A is closed or A says that it wants messages",
        (
            (
                "            if wants is not None:\n                consumer.set_wants(wants)\n",
                "",
            ),
            (
                '            self.host.record("qcm_move", sub=consumer.name, old=origin, new=to, at="enter")\n'
                "            return True\n",
                "            if wants is not None:\n"
                "                consumer.set_wants(wants)\n"
                '            self.host.record("qcm_move", sub=consumer.name, old=origin, new=to, at="enter")\n'
                "            return True\n",
            ),
        ),
    ),
    "a grant resumes, then adds": (
        "release-short-of-credit",
        "B has still to see to it that B wants messages",
        (
            (
                "            if consumer.credit is not None:\n"
                "                consumer.credit.add(messages)\n"
                "            self.set_notify_work_desired(consumer, True)\n",
                "            self.set_notify_work_desired(consumer, True)\n"
                "            if consumer.credit is not None:\n"
                "                consumer.credit.add(messages)\n",
            ),
        ),
    ),
    "a grant resumes who rests only": (
        "expiring",
        "A has still to see to it that A wants messages",
        (
            (
                "                consumer.credit.add(messages)\n"
                "            self.set_notify_work_desired(consumer, True)\n",
                "                consumer.credit.add(messages)\n"
                "            if consumer.wants_work.get():\n"
                "                self.set_notify_work_desired(consumer, True)\n",
            ),
        ),
    ),
    "credit is read before the message is sent": (
        "grants-when-sent",
        "run_out(c = A) is not possible here",
        (
            (
                "                self.manager.set_notified(consumer, True)\n"
                "                consumer.target.send(consumer, entry)\n"
                "                if not consumer.has_credit():\n",
                "                self.manager.set_notified(consumer, True)\n"
                "                spent = not consumer.has_credit()\n"
                "                consumer.target.send(consumer, entry)\n"
                "                if spent:\n",
            ),
        ),
    ),
    "a pull suspends after each message": (
        "enqueue-consume",
        "run_out(c = A) is not possible here",
        (
            (
                "                if not consumer.has_credit():\n                    self.set",
                "                if consumer.credit is not None:\n                    self.set",
            ),
        ),
    ),
    "the size goes up behind the link": (
        "close",
        "has been added to the size",
        (
            (
                "        self.size.add(1)\n        self.append(entry)\n",
                "        self.append(entry)\n        self.size.add(1)\n",
            ),
        ),
    ),
    "the number is set behind the link": (
        "enqueue-enqueue",
        "number(q#5) is 1 in the specification, and 0 in Node.id",
        (
            (
                "            node.id = tail.id + 1\n"
                "            if tail.next.compare_and_set(None, node):\n",
                "            if tail.next.compare_and_set(None, node):\n"
                "                node.id = tail.id + 1\n",
            ),
        ),
    ),
    "the last is unlinked": (
        "close",
        "is the node whose next setup has read",
        (
            (
                "            if beyond is None:\n"
                "                return None  # rule 8: the last node stays\n",
                "",
            ),
        ),
    ),
    "the lock is released between the lists": (
        "interest",
        "unlock(t = setup, c = A) is not possible here",
        (
            (
                "            consumer.listed = to\n"
                "            consumer.in_list = None\n"
                "            if to != REMOVED:\n",
                "            consumer.listed = to\n"
                "            consumer.in_list = None\n"
                "        with consumer.moving:\n"
                "            if to != REMOVED:\n",
            ),
        ),
    ),
    "equals leave it to each other": (
        "take-turns",
        "B is of higher priority than A",
        (
            (
                "other.priority > first.priority",
                "other.priority >= first.priority and other is not first",
            ),
        ),
    ),
    "left to who wants no work": (
        "priority-pause",
        "P ends its walk, and has not looked for low",
        (
            (
                "                and self._wanted(other, entry)\n"
                "                and other.wants_work.get()\n",
                "                and self._wanted(other, entry)\n",
            ),
        ),
    ),
    "the wish is asked before the send lock": (
        "send-close",
        "setup has looked whether A wants work",
        (
            (
                "        with consumer.send_lock:\n"
                "            entry = self.attempt(consumer, path, only) if consumer.wants_work.get() else None\n",
                "        wants = consumer.wants_work.get()\n"
                "        with consumer.send_lock:\n"
                "            entry = self.attempt(consumer, path, only) if wants else None\n",
            ),
        ),
    ),
    "the only one after it joined": (
        "exclusive",
        "the queue has an only one, since A wants to be the only one",
        (
            (
                "        if consumer.exclusive:\n"
                "            self.exclusive.set(consumer)\n"
                "        self.all.add(consumer.in_all)\n",
                "        self.all.add(consumer.in_all)\n"
                "        if consumer.exclusive:\n"
                "            self.exclusive.set(consumer)\n",
            ),
        ),
    ),
    "credit is restored twice": (
        "credit-in-vain",
        "A has paid for what is not decided",
        (
            (
                "            consumer.restore_credit()\n",
                "            consumer.restore_credit()\n            consumer.restore_credit()\n",
            ),
        ),
    ),
    "rewinds who is past it only": (
        "release-behind",
        "A owes A a rewind for m1",
        (
            (
                "            back = min(entry, pointer.entry, key=Node.place)\n",
                "            if pointer.entry.place() <= entry.place():\n"
                "                return\n"
                "            back = entry\n",
            ),
        ),
    ),
    "leaves All before it is no more the only one": (
        "exclusive-handed-on",
        "it must not be that the queue has an only one",
        (
            (
                "        if consumer.exclusive:\n"
                "            self.exclusive.set(None)\n"
                "        self.all.delete(consumer.in_all)  # last: from here on others are admitted\n",
                "        self.all.delete(consumer.in_all)  # last: from here on others are admitted\n"
                "        if consumer.exclusive:\n"
                "            self.exclusive.set(None)\n",
            ),
        ),
    ),
    "a job's flag by exchange, whatever it was": (
        "push",
        "A has still to submit a job",
        (
            (
                "        if self._job_pending.compare_and_set(False, True):\n            try:",
                "        if self._job_pending.get_and_set(True) or self.kind:\n            try:",
            ),
        ),
    ),
    "wishes by exchange": (
        "close-and-pause",
        "it must not be that A is closed",
        (
            (
                "        changed = self.wants_work.compare_and_set(not desired, desired)\n"
                "        return changed or self.wants_work.get() is not None\n",
                "        return self.wants_work.get_and_set(desired) is not None\n",
            ),
        ),
    ),
    "announces the group in front of it": (
        "group-released",
        "A owes A a rewind for g2",
        (
            (
                "                self._announce(entry)\n\n    def _arrived",
                "                self._announce(entry)\n"
                "            elif not entry.available():\n"
                "                return\n"
                "\n"
                "    def _arrived",
            ),
        ),
    ),
    "the lowest are asked first": (
        "priority-returns",
        "not in the order of priority",
        (
            (
                "key=lambda p: -p[0]",
                "key=lambda p: p[0]",
            ),
        ),
    ),
    "a browser's pointer by a plain write": (
        "browse-taken",
        "without a compare-and-set",
        (
            (
                '        elif not consumer.pointer.compare_and_set(pointer, Pointer(entry, "browse", passed=True)):\n'
                "            return None\n",
                "        else:\n"
                '            consumer.pointer.set(Pointer(entry, "browse", passed=True))\n',
            ),
        ),
    ),
    "a resume looks for nobody": (
        "interest",
        "A ends its walk, and has not looked for A",
        (
            (
                "            if desired:\n"
                "                self._notify(consumer)\n"
                "            elif consumer.acquires:\n"
                "                self._notify_other(consumer)\n"
                "\n"
                "    def _begin",
                "            if not desired and consumer.acquires:\n"
                "                self._notify_other(consumer)\n"
                "\n"
                "    def _begin",
            ),
        ),
    ),
    "an iteration unlinks nothing": (
        "consumer-list-middle",
        "what is linked behind the node where walk 2 of list stands is list#12",
        (
            (
                "            node.next.compare_and_set(following, beyond)\n"
                "            following = node.next.get()\n",
                "            following = beyond\n",
            ),
        ),
    ),
    "an iteration begins behind the first": (
        "close",
        "has returned q.Interested.0#7 or q.Interested.0#7 is deleted",
        (
            (
                "        node = self.next(self.head)\n        while node is not None:\n            yield",
                "        node = self.next(self.next(self.head) or self.head)\n"
                "        while node is not None:\n            yield",
            ),
        ),
    ),
    "an iteration ends at what was deleted": (
        "consumer-list-middle",
        "has read that nothing follows",
        (
            (
                "        while following is not None and following.deleted():\n",
                "        if following is not None and following.deleted():\n            return None\n"
                "        while following is not None and following.deleted():\n",
            ),
        ),
    ),
    "rewinds all but who released": (
        "release-behind",
        "A owes A a rewind for m1",
        (
            (
                "            else:\n                self._announce(entry)\n        return ok\n",
                "            else:\n"
                "                for other in self.all.consumers():\n"
                "                    if other.acquires and other is not consumer:\n"
                "                        self._rewind(other, entry)\n"
                "                self._returned(entry)\n        return ok\n",
            ),
        ),
    ),
    "work is taken by a plain write": (
        "handover",
        "come and go one by one",
        (
            (
                "            if self._waiting.compare_and_set(waiting, waiting[1:]):\n"
                "                return waiting[0]",
                "            self._waiting.set(waiting[1:])\n            return waiting[0]",
            ),
        ),
    ),
    "a session asks before its target is back": (
        "handover",
        "has left session undone",
        (
            (
                "        if target is not None and target.process():\n"
                "            self._targets.add(target)\n"
                "        return not self._targets.empty()",
                "        more = not self._targets.empty()\n"
                "        if target is not None and target.process():\n"
                "            self._targets.add(target)\n"
                "        return more",
            ),
        ),
    ),
    "a session is served once": (
        "handover",
        "has left session undone",
        (
            (
                "            if session.process():\n                self._sessions.add(session)\n",
                "            session.process()\n",
            ),
        ),
    ),
    "an io thread serves all that is ready": (
        "handover-meanwhile",
        "takes a connection, and has drawn no permit",
        (
            (
                "        connection.run()\n",
                "        while connection is not None:\n            connection.run()\n"
                "            connection = self._ready.take()\n",
            ),
        ),
    ),
    "a group is free with its first message": (
        "group-released",
        "A has nothing in g that it could take away",
        (("            if count:\n                rest[group] = (consumer, count)\n", ""),),
    ),
    "a second of a group is not counted": (
        "group-not-mine",
        "one group changes at a time, not 0",
        (("group: (owner, count + 1)}", "group: (owner, 1)}"),),
    ),
    "credit is restored when none is left": (
        "expiring",
        "A has paid for what is not decided",
        (
            (
                "        if self.credit is not None:\n            self.credit.add(1)\n",
                "        if self.credit is not None and self.credit.get() == 0:\n"
                "            self.credit.add(1)\n",
            ),
        ),
    ),
    "moves from wherever it is": (
        "grants-when-sent",
        "the phase of the pull for A is PULLING",
        (
            (
                "            if origin not in origins:\n                return False\n",
                "            if origin == to:\n                return False\n",
            ),
        ),
    ),
    "asks one other only": (
        "woken-past-the-unable",
        "has not looked for B",
        (
            (
                "            if other is not consumer and self._notify(other):\n                return\n",
                "            if other is not consumer:\n                self._notify(other)\n"
                "                return\n",
            ),
        ),
    ),
    "who was left it is woken, and nobody else": (
        "credit-kept",
        "decline(t = low, c = low) is not possible here",
        (
            (
                "            elif consumer.acquires and (first is None or not self._wake(first)):\n",
                "            elif consumer.acquires and first is not None:\n                self._wake(first)\n"
                "            elif consumer.acquires:\n",
            ),
        ),
    ),
    "what was not paid is restored": (
        "credit-kept",
        "low has paid for what is not decided",
        (
            (
                "            if entry is not None or first is not consumer:\n"
                "                return entry, first\n            consumer.restore_credit()\n",
                "            if entry is not None:\n                return entry, first\n"
                "            if first is not None:\n                consumer.restore_credit()\n"
                "            if first is not consumer:\n                return entry, first\n",
            ),
        ),
    ),
    "a tail by a plain write": (
        "enqueue-enqueue",
        "no step writes a tail without a compare-and-set",
        (
            (
                "                self._tail.compare_and_set(tail, node)\n                return\n",
                "                self._tail.set(node)\n                return\n",
            ),
        ),
    ),
    "who is in Notified is not rewound": (
        "credit-kept",
        "low owes low a rewind for m1",
        (
            (
                "            if consumer.acquires:  # a browser never goes back",
                "            if consumer.acquires and consumer.listed != NOTIFIED:  # a browser never goes back",
            ),
        ),
    ),
    "a group left after a lost race is not announced": (
        "group-given-up",
        "A owes B a rewind for g2",
        (
            (
                "                if self.groups.leave(entry.message.group, consumer):\n"
                "                    self._announce_group(entry.message.group)\n"
                "                return None\n",
                "                self.groups.leave(entry.message.group, consumer)\n"
                "                return None\n",
            ),
        ),
    ),
    "a wish is looked at and then set": (
        "close-and-pause",
        "no step writes what A wants without a compare-and-set",
        (
            (
                "        changed = self.wants_work.compare_and_set(not desired, desired)\n"
                "        return changed or self.wants_work.get() is not None\n",
                "        if self.wants_work.get() is None:\n            return False\n"
                "        self.wants_work.set(desired)\n        return True\n",
            ),
        ),
    ),
    "an iteration over the entries returns the last though it is deleted": (
        "expiring",
        "has seen that q#5 is not deleted",
        (
            (
                "            if beyond is None:\n"
                "                return None  # rule 8: the last node stays\n",
                "            if beyond is None:\n                break\n",
            ),
        ),
    ),
    "an iteration over all leaves linked what it passes": (
        "push-close-beside",
        "what is linked behind the node where walk 5 of q.All stands is q.All#3",
        (
            (
                "            node.next.compare_and_set(following, beyond)\n"
                "            following = node.next.get()\n",
                "            following = beyond\n",
            ),
        ),
    ),
    "a delayed message is available, and then the clock is read": (
        "held",
        "housekeeping has read on the clock that the delay of m1 is over",
        (
            (
                "self.host.now() >= entry.message.not_before and entry.change(DELAYED, AVAILABLE):",
                "entry.change(DELAYED, AVAILABLE) and self.host.now() >= entry.message.not_before:",
            ),
        ),
    ),
    "a look ends before the lowest priority": (
        "priority-gap",
        "low was of no use at some moment of the look of A",
        (
            (
                "        for lower in self._by_rank[node.rank + 1 :]:",
                "        for lower in self._by_rank[node.rank + 1 : -1]:",
            ),
        ),
    ),
    "an iteration over all entries leaves the lowest priority out": (
        "priority-gap",
        "walk 1 of q.2 has read that nothing follows",
        (
            (
                "        for level in self._by_rank:\n            yield from level",
                "        for level in self._by_rank[:-1]:\n            yield from level",
            ),
        ),
    ),
    "whoever is outbid does not pay": (
        "immediate-while-granted",
        "P has still to try again to pay with the credit of A",
        (
            (
                "        while (left := self.credit.get()) > 0:\n"
                "            if self.credit.compare_and_set(left, left - 1):\n"
                "                return True\n"
                "        return False\n",
                "        left = self.credit.get()\n"
                "        return left > 0 and self.credit.compare_and_set(left, left - 1)\n",
            ),
        ),
    ),
    "a pull takes whatever the consumer wants": (
        "pull-while-suspended",
        "A wanted work since A began to take something for it",
        (
            (
                "        if consumer.wants_work.get():\n            entry, first = self._attempt",
                "        if consumer.wants_work.get() is not None:\n"
                "            entry, first = self._attempt",
            ),
        ),
    ),
    "a close that only takes the lock": (
        "close-then-grant",
        "A has looked whether A wants work",
        (
            (
                "            if consumer.wants_work.get_and_set(None) is None:\n                return\n",
                "            return\n",
            ),
        ),
    ),
    "who has closed stays in the list of all": (
        "close-then-grant",
        "A has still to remove A, which it closed",
        (("        self.all.delete(consumer.in_all)  #", "        #"),),
    ),
    "the lock is released before the message is sent": (
        "send-close",
        "the flag of A is not CLOSED",
        (
            (
                "            if entry is not None:\n"
                "                self._last_delivered.set(consumer.in_all)\n"
                "                consumer.target.send(consumer, entry)\n",
                "            if entry is not None:\n"
                "                self._last_delivered.set(consumer.in_all)\n"
                "        with consumer.send_lock:\n            consumer.wants_work.get()\n"
                "            if entry is not None:\n"
                "                consumer.target.send(consumer, entry)\n",
            ),
        ),
    ),
    "who comes later is not asked first": (
        "credit-kept",
        "high had no use for m1, or no interest, since that is available and low tries to take it",
        (
            (
                "        for other in self.all.consumers() if consumer.acquires else ():\n",
                "        for other in self.manager.interested() if consumer.acquires else ():\n",
            ),
        ),
    ),
    "a target with nothing is put back": (
        "handover-one",
        "io has served target target, and got nothing for it",
        (
            (
                "            if queue.deliver_single_message(consumer) is not None:\n"
                "                return True\n        return False\n",
                "            queue.deliver_single_message(consumer)\n        return True\n",
            ),
        ),
    ),
    "a session is queued again without being served": (
        "handover-one",
        "io has taken session, and seen nothing wait there since",
        (
            (
                "            if session.process():\n                self._sessions.add",
                "            if session:\n                self._sessions.add",
            ),
        ),
    ),
    "a run is always followed by another": (
        "handover-one",
        "io has run connection conn, and seen nothing queued since",
        (
            (
                "        if not self._sessions.empty():  # and one that came before is seen here\n"
                "            self._schedule()\n",
                "        self._schedule()\n",
            ),
        ),
    ),
    "a hold ends one tick early": (
        "due-and-expired",
        "A has read on the clock that the delay of held1 is over",
        (("self.host.now() >= entry.message", "self.host.now() + 1 >= entry.message"),),
    ),
    "a message expires one tick early": (
        "due-and-expired",
        "it needs that expiring1 has expired",
        (("self.host.now() > entry.message", "self.host.now() >= entry.message"),),
    ),
    "a browser is never removed": (
        "browse-group",
        "it needs that the list of browser is REMOVED",
        (
            (
                "        self.manager.remove(consumer)",
                "        if consumer.acquires:\n            self.manager.remove(consumer)",
            ),
        ),
    ),
    "a close releases the first that it finds": (
        "exclusive-handed-back",
        "it must not be that A holds m2",
        (
            (
                "                self.release(entry, consumer)\n",
                "                self.release(entry, consumer)\n                return\n",
            ),
        ),
    ),
    "a consumer may begin in debt": (
        "third-refused",
        "at its end: accounts does not hold",
        (("credit is not None and credit < 0:", "credit is not None and credit < -1:"),),
    ),
}
"""What is changed -> a program, what its rejection says, and the edits."""


@pytest.mark.parametrize("change", WRONG)
def test_a_wrong_change_is_rejected_where_it_goes_wrong(change: str) -> None:
    program, where, edits = WRONG[change]
    edited = Mutant(change.replace(" ", "-"), "", change, "queue", edits, "", program, 0)
    found = follow(program, executions=60, lib=load("queue", edited))
    assert where in found.rejected
