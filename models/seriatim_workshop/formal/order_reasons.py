"""Why no system rejects a mistake of order that a schedule catches, by the function that it changes."""

from __future__ import annotations

from seriatim_workshop.formal.followed import BEGINS

REASONS = {
    "Queue.dequeue": (
        "it is DEQUEUED, and so deleted for everybody, before both; when the call returns it has done both, in either "
        "order, unless an error ends it in between; `deliver_async` raises none that is an `Exception`"
    ),
    "Queue._close": (
        "it is equivalent but for the calls on record: a release of what the consumer has not acquired is a "
        "compare-and-set that fails, and changes nothing"
    ),
    "PushQueue._arrived": (
        "no property says that a publisher shows a message to browsers itself: a job does, later"
    ),
    "PushQueue._in_turn": BEGINS,
    "PushQueue.deliver_async": (
        "whether a call or nobody hears of an error that is no `Exception` is no step: systems speak of states, and "
        "not of what a call raises"
    ),
}
"""Function, or a class if it is the same for all of its functions -> the reason."""


def reason(scope: str) -> str:
    """Return why no system speaks of what the function does; says so if no reason is known."""
    return REASONS.get(scope) or REASONS.get(scope.partition(".")[0], "not known yet")
