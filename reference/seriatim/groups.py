"""Message groups: each is owned by one consumer while that has acquired any of its messages.

All owners are in one cell, which changes only by compare-and-set from the mapping that was examined (rule 2 of
`seriatim.queue`). What a group that is free again means for other consumers, the queue knows and this file does not.
The group '' is no group: everybody may have its messages, and nobody owns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from seriatim.host import Cell, Host

C = TypeVar("C")


class Groups(Generic[C]):
    """Which consumer owns which group of a queue."""

    def __init__(self, host: Host, name: str) -> None:
        self.owners: Cell[Mapping[str, tuple[C, int]]] = host.cell({}, f"{name}.groups")
        """Group -> (the consumer that owns it, how many of its messages that has acquired)."""

    def allow(self, group: str, consumer: C) -> bool:
        """Whether no other consumer owns the group now."""
        return not group or self.owners.get().get(group, (consumer, 0))[0] is consumer

    def join(self, group: str, consumer: C) -> bool:
        """Own the group before touching the entry: of two consumers that want two of its messages one gets none."""
        while group:
            owners = self.owners.get()
            owner, count = owners.get(group, (consumer, 0))
            if owner is not consumer:
                return False
            if self.owners.compare_and_set(owners, {**owners, group: (owner, count + 1)}):
                break
        return True

    def leave(self, group: str, consumer: C) -> bool:
        """One message of the group fewer; True if that set the group free."""
        while group:
            owners = self.owners.get()
            count = owners[group][1] - 1
            rest = {g: owned for g, owned in owners.items() if g != group}
            if count:
                rest[group] = (consumer, count)
            if self.owners.compare_and_set(owners, rest):
                return not count
        return False
