"""Why no system rejects a mistake of order that a schedule catches, by the function that it changes."""

from __future__ import annotations

from seriatim_workshop.formal.followed import BEGINS, TURNS

REASONS = {
    "PriorityQueueEntryList.__iter__": "no system obliges an iteration over all entries to come to each of them",
    "PriorityQueueEntryList.next": "a look may end early: whoever finds nothing wakes another",
    "Queue.dequeue": "to dispose late shows only where the call ends in between, by an error",
    "Queue.check_message_status": "in the programs tried here each delay is over when housekeeping comes",
    "PullQueue._first_to_take": "whom a message is left to, or that it is left to nobody, is in no claim (WK-4)",
    "Consumer.take_credit": "an attempt may end without an entry, and whoever made it wakes another",
    "Queue.close": "no system obliges a close to end its consumer",
    "Queue._close": "to release what one does not hold fails, and changes nothing that a system speaks of",
    "PushQueue.deliver_to": "the send lock is taken again before it sends; who closes in between is not said",
    "PushQueue._arrived": "nothing obliges a publisher to ask a browser",
    "PushQueue._in_turn": BEGINS,
    "PushQueue.deliver_async": "whether the call or nobody hears of an error that is no `Exception` is no step",
    "PullQueue.deliver_single_message": (
        "`consumers` lets something be obtained for who wants nothing, as a pull may that looked before a pause"
    ),
    "WorkSet.take": "a take may find nothing; who then waits for ever for a permit ends the execution",
    "ConsumerTarget.process": TURNS,
    "Connection.run": "a run too many, or one that never ends, makes no step that a system forbids",
}
"""Function, or a class if it is the same for all of its functions -> the reason."""


def reason(scope: str) -> str:
    """Return why no system speaks of what the function does; says so if no reason is known."""
    return REASONS.get(scope) or REASONS.get(scope.partition(".")[0], "not known yet")
