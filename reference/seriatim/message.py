"""A message as a publisher hands it in, and the level of a priority queue that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import deal


@dataclass(frozen=True)
class Message:
    """What a publisher hands in. Times are the host's nanoseconds."""

    id: str
    priority: int = 4
    """0 to 9; 4 is the default of AMQP and JMS."""
    key: str = ""
    """What selectors look at."""
    group: str = ""
    """Messages of one group are acquired by at most one consumer at a time; '' is no group."""
    immediate: bool = False
    """Deliver at once or not at all."""
    not_before: int = 0
    """Delayed, that is invisible, before this time."""
    expires: int = 0
    """No consumer gets it after this time; 0 is never."""

    def __post_init__(self) -> None:
        if self.immediate and self.not_before:
            raise ValueError(f"message {self.id}: immediate and delayed exclude each other")


@deal.pre(lambda priority, levels: levels >= 1, message="SO-5: a queue has at least one level")
@deal.ensure(
    lambda priority, levels, result: 0 <= result < levels, message="SO-5: the level exists"
)
def sub_queue(priority: int, levels: int) -> int:
    """The level, 0 lowest, that a message priority belongs to when there are `levels` of them.

    AMQP 0-10's rule, which JMS accepts: with fewer than ten levels the middle ones keep their own
    and the extremes share. Everything up to 5 - ceil(levels / 2) is lowest.
    """
    return max(0, min(levels - 1, priority - (5 - (levels + 1) // 2)))
