"""What the pure functions of the reference promise beyond their own contracts, as functions that CrossHair can check.

Nobody calls these. Each takes any arguments within its `pre` and returns whether something holds; `post` says it does.
"""

from __future__ import annotations

import deal

from seriatim.broker import settled_by
from seriatim.message import sub_queue
from seriatim.queue import State, legal
from seriatim_models.properties.whitebox.entries import LEGAL
from seriatim_models.properties.whitebox.order import amqp_0_10_level


@deal.pre(lambda priority, levels: 0 <= priority <= 9 and 1 <= levels <= 10)
@deal.post(lambda result: result, message="SO-5: the level is that of the table in AMQP 0-10")
@deal.pure
def level_is_the_tables(priority: int, levels: int) -> bool:
    """Return whether the level of a priority is that of the table."""
    return sub_queue(priority, levels) == amqp_0_10_level(priority, levels)


@deal.pre(lambda low, high, levels: low <= high and levels >= 1)
@deal.post(lambda result: result, message="SO-5: a higher priority is never on a lower level")
@deal.pure
def levels_rise_with_priority(low: int, high: int, levels: int) -> bool:
    """Return whether the higher of two priorities has no lower level."""
    return sub_queue(low, levels) <= sub_queue(high, levels)


@deal.pre(lambda priority, levels: 0 <= priority <= 9 and levels >= 10)
@deal.post(lambda result: result, message="SO-5: with ten levels or more, priorities share none")
@deal.pure
def ten_levels_are_enough(priority: int, levels: int) -> bool:
    """Return whether the next higher priority has a higher level."""
    return priority == 9 or sub_queue(priority, levels) < sub_queue(priority + 1, levels)


STATES = ("AVAILABLE", "DELAYED", "ACQUIRED", "DEQUEUED", "DELETED")


@deal.pre(lambda n: 0 <= n < len(STATES))
@deal.post(lambda result: result, message="ES-3: deleted is final")
@deal.pure
def deleted_is_final(n: int) -> bool:
    """Return whether a deleted entry has no such next state."""
    return not legal(State("DELETED"), State(STATES[n]))


@deal.pre(lambda n: 0 <= n < len(STATES))
@deal.post(
    lambda result: result, message="ES-3: what was dequeued is deleted next, and nothing else"
)
@deal.pure
def dequeued_is_only_deleted(n: int) -> bool:
    """Return whether a dequeued entry has no other next state than deleted."""
    return not legal(State("DEQUEUED"), State(STATES[n])) or STATES[n] == "DELETED"


@deal.pre(lambda n: 0 <= n < len(STATES))
@deal.post(lambda result: result, message="ES-1: only what is available is acquired")
@deal.pure
def acquired_from_available(n: int) -> bool:
    """Return whether only an available entry can become acquired."""
    return not legal(State(STATES[n]), State("ACQUIRED", "A")) or STATES[n] == "AVAILABLE"


@deal.pre(lambda n, m: 0 <= n < len(STATES) and 0 <= m < len(STATES))
@deal.post(lambda result: result, message="ES-1: what is legal is what the property calls legal")
@deal.pure
def legal_is_the_propertys_table(n: int, m: int) -> bool:
    """Return whether the reference and ES-1 agree on a change of state."""
    return legal(State(STATES[n]), State(STATES[m])) == ((STATES[n], STATES[m]) in LEGAL)


@deal.pre(lambda first, second, tag, multiple: first < second)
@deal.post(
    lambda result: result,
    message="QS-1: what is settled was outstanding, and is what the tag means",
)
@deal.pure
def two_outstanding_are_settled_right(first: int, second: int, tag: int, multiple: bool) -> bool:
    """Return whether a tag settles those of two outstanding deliveries that it means."""
    settled = settled_by([first, second], tag, multiple)
    due = [t for t in (first, second) if t == tag or (multiple and (t < tag or tag == 0))]
    return settled == due
