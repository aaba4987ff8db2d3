"""A disk of which a crash leaves what was synced, and of the rest any part, in any order."""

from __future__ import annotations

import random

from seriatim_models.programs.disk import MemoryDisk

SECTOR = 4
"""Bytes that are written at once or not at all."""
ABSENT = -1


class ReorderingDisk(MemoryDisk):
    """A `MemoryDisk` that remembers every length and content that a file had since it was synced.

    Of each sector that was written since then a crash leaves the old or the new content; the file is as long as it was
    at any of these moments; a file that was not synced may not be there at all. A `replace` is whole and durable.
    """

    def __init__(self, files: dict[str, bytes] | None = None, budget: int | None = None) -> None:
        super().__init__(files, budget)
        self.since: dict[str, list[bytes]] = {}
        """What each file held since it was synced, the synced content first; `synced` is not asked."""
        self.durable = {name: bytes(data) for name, data in self.files.items()}

    def _changed(self, name: str) -> None:
        self.since.setdefault(name, []).append(bytes(self.files.get(name, b"")))

    def append(self, name: str, data: bytes) -> None:
        """Write behind the end, as far as the budget goes."""
        try:
            super().append(name, data)
        finally:
            self._changed(name)

    def truncate(self, name: str, size: int) -> None:
        """Cut a file off; unless it is synced a crash may bring back what was there."""
        super().truncate(name, size)
        self._changed(name)

    def sync(self, name: str) -> None:
        """Have what a file holds, and its name, survive a crash."""
        super().sync(name)
        self._settle(name)

    def replace(self, name: str, data: bytes) -> None:
        """Write a whole file, in one piece and durably."""
        super().replace(name, data)
        self._settle(name)

    def _settle(self, name: str) -> None:
        self.since.pop(name, None)
        self.durable[name] = bytes(self.files[name])

    def left(self, chance: random.Random) -> dict[str, bytes]:
        """Return the files as one crash may leave them."""
        found = dict(self.durable)
        for name, states in self.since.items():
            were = [self.durable.get(name, b""), *states]
            sizes = [len(state) for state in were] + ([] if name in self.durable else [ABSENT])
            size = chance.choice([*sizes, chance.randint(min(map(len, were)), max(map(len, were)))])
            found.pop(name, None)
            if size != ABSENT:
                found[name] = self._sectors(were, size, chance)
        return found

    def _sectors(self, were: list[bytes], size: int, chance: random.Random) -> bytes:
        """Return `size` bytes, of each sector one of the states that it was in; zeros where there was none."""
        kept = bytearray(size)
        for at in range(0, size, SECTOR):
            state = chance.choice(were)
            part = state[at : min(at + SECTOR, size)]
            kept[at : at + len(part)] = part
        return bytes(kept)
