"""What pure functions promise beyond their own contracts, as functions that CrossHair can check.

Nobody calls these. Each takes any arguments within its `pre` and returns whether something holds; `post` says it does.
"""

from __future__ import annotations

from itertools import pairwise

import deal

from seriatim.broker import settled_by
from seriatim.message import sub_queue
from seriatim.queue import State, legal
from seriatim_models.conformance.timed import asked
from seriatim_models.explorer.model.operations import combination, combinations
from seriatim_models.matrix.work import PAIRS_PER_ITEM
from seriatim_models.pipeline.campaign.matrix import programs_per_item
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


# ---- pure functions of `seriatim_models`


@deal.pre(lambda n, k: 0 <= k < n <= 5)
@deal.post(lambda result: result, message="n over k is what Pascal's triangle says")
@deal.pure
def combinations_are_pascals(n: int, k: int) -> bool:
    """Return whether a binomial coefficient is the sum of the two above it."""
    above = combinations(n - 1, k) if k < n - 1 else 1
    return combinations(n, k) == (1 if k == 0 else combinations(n - 1, k - 1) + above)


@deal.pre(lambda n, k, alternative: 0 <= k <= n <= 4 and 0 <= alternative < combinations(n, k))
@deal.post(lambda result: result, message="each alternative is a subset of this size, in order")
@deal.pure
def a_combination_is_a_subset(n: int, k: int, alternative: int) -> bool:
    """Return whether the subset is one of so many elements of the range, in order and none twice."""
    found = combination(n, k, alternative)
    rises = all(a < b for a, b in pairwise(found))
    return len(found) == k and rises and all(0 <= each < n for each in found)


@deal.pre(lambda budget: budget >= 1)
@deal.post(lambda result: result, message="a batch has a program, and not more than are allowed")
@deal.pure
def a_batch_has_a_program(budget: int) -> bool:
    """Return whether the size of a batch is within its bounds."""
    return 1 <= programs_per_item(budget) <= PAIRS_PER_ITEM


@deal.pre(lambda delay, ttl: delay >= 0 and ttl >= 0)
@deal.post(lambda result: result, message="what is asked of a publish is what is not zero")
@deal.pure
def only_what_is_asked_is_said(delay: int, ttl: int) -> bool:
    """Return whether a publish names its delay and its time to live, each if it has one."""
    said = asked(delay, ttl)
    return said.get("delay", 0) == delay and said.get("ttl", 0) == ttl and 0 not in said.values()
