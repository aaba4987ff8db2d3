"""A partitioned log in plain Python: right, and written to be read.

``seriatim conform --python seriatim_workshop.planted.log_mistakes:right`` drives it. Its rules, as
`spec/conform/README.md` words them:

- each partition keeps what is published to it, in that order, at the positions 0, 1, 2 and so on;
- a reader is a channel that reads for a group; it begins where the group's commit says, at 0 without one;
- it reads on from where it is, and a seek moves it and nobody else;
- a commit stores the next position to be read, for a group and a partition, higher or lower than before.
"""

from __future__ import annotations

from typing import NamedTuple


class LogPartition(NamedTuple):
    """A partition of a topic."""

    q: str
    part: int


class PlantedLog:
    """Topics with partitions, which come into being by the first message or reader."""

    name = "a partitioned log"
    can = ("publish", "read", "seek", "commit", "open", "close", "queues", "partitions")

    def __init__(self) -> None:
        self.records: dict[LogPartition, list[str]] = {}
        self.committed: dict[tuple[str, LogPartition], int] = {}
        """By group and partition, the next position to be read."""
        self.positions: dict[tuple[int, str, LogPartition], int] = {}
        """By channel, group and partition, where a reader is."""

    def open(self, ch: int) -> None: ...

    def close(self, ch: int) -> None:
        """The channel's readers are gone."""
        self.positions = {key: pos for key, pos in self.positions.items() if key[0] != ch}

    def publish(self, q: str, m: str, part: int) -> int:
        """Append a message and return its position."""
        records = self.records.setdefault(LogPartition(q, part), [])
        records.append(m)
        return len(records) - 1

    def read(self, ch: int, q: str, ctag: str, part: int) -> tuple[str, int] | None:
        """The reader's next message and its position, or None at the end."""
        partition = LogPartition(q, part)
        reader = ch, ctag, partition
        pos = self.positions.setdefault(reader, self.committed.get((ctag, partition), 0))
        records = self.records.get(partition, [])
        if pos >= len(records):
            return None
        self.positions[reader] = pos + 1
        return records[pos], pos

    def seek(self, ch: int, q: str, ctag: str, part: int, pos: int) -> None:
        """Have a reader go on elsewhere."""
        self.positions[ch, ctag, LogPartition(q, part)] = pos

    def commit(self, ch: int, q: str, ctag: str, part: int, pos: int) -> None:
        """Store where the group's readers begin."""
        self.committed[ctag, LogPartition(q, part)] = pos
