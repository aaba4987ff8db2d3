"""Why no system rejects a mistake of order that a schedule catches, by the function that it changes."""

from __future__ import annotations

REASONS = {
    "NodeList.next": "a marked node may stay linked in `nodes` as long as it likes; what is handed out is read again",
    "PriorityQueueEntryList.__iter__": "no system obliges an iteration over all entries to come to each of them",
    "PriorityQueueEntryList.next": "a look may end early; of consumers of several priorities `wakeups` does not speak",
    "Queue.check_message_status": "no system obliges housekeeping to drop what has expired",
    "Queue.enqueue": "an immediate message that is dropped before anybody looks is dropped undelivered, as IM-1 allows",
}
"""Function -> the reason."""


def reason(scope: str) -> str:
    """Return why no system speaks of what the function does; says so if no reason is known."""
    return REASONS.get(scope, "not known yet")
