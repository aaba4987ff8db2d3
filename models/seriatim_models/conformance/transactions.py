"""Transactions of a script: what a channel publishes and settles between `tx-begin` and `tx-commit` takes effect at the
commit, all of it together, and not at all after a rollback or when the channel ends before.

So nothing of it is recorded before the commit is asked for: whoever is given a message that is not committed is given
what nobody published, and what was settled is held until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class PendingSettlement(NamedTuple):
    """A settlement of one delivery that waits for the commit."""

    op: str
    ch: int
    dtag: int
    requeue: bool | None

    def fields(self) -> dict[str, object]:
        """The fields of its event."""
        return {"ch": self.ch, "dtag": self.dtag, "requeue": self.requeue}


@dataclass
class Transaction:
    """What a channel asked for since its transaction began."""

    published: list[dict[str, object]] = field(default_factory=list)
    """The fields of each publish."""
    settled: list[PendingSettlement] = field(default_factory=list)

    def has(self, dtag: int) -> bool:
        """Whether the delivery is settled in it."""
        return any(each.dtag == dtag for each in self.settled)
