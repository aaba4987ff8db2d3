"""A disk in memory, for the log, that a crash can stop after any change."""

from __future__ import annotations

from collections.abc import Callable

SECTOR = 4
"""Bytes that are written at once or not at all."""
ABSENT = -1


class Crash(BaseException):
    """The machine stopped. Only the test that planned it catches it."""


class MemoryDisk:
    """A `seriatim.log.Storage` in memory, which raises `Crash` when its budget is spent.

    A byte appended costs 1, any other change costs 1; without a `budget` it never crashes.
    """

    def __init__(self, files: dict[str, bytes] | None = None, budget: int | None = None) -> None:
        self.files = {name: bytearray(data) for name, data in (files or {}).items()}
        self.synced = {name: bytes(data) for name, data in self.files.items()}
        self.budget = budget
        self.spent = 0

    def survivors(self, kept: int | None = None, zeros: bool = False) -> dict[str, bytes]:
        """Return the files after a crash: of what was not synced `kept` bytes (default: all), or zeros behind them."""
        found = {}
        for name, data in self.files.items():
            safe = len(self.synced.get(name, b""))
            end = len(data) if kept is None else min(len(data), safe + kept)
            found[name] = bytes(data[:end]) + bytes(len(data) - end if zeros else 0)
        return found

    def names(self) -> list[str]:
        """Return the names of all files."""
        return list(self.files)

    def size(self, name: str) -> int:
        """Return the length of a file in bytes; 0 if there is none."""
        return len(self.files.get(name, b""))

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return at most `length` bytes from `offset`."""
        return bytes(self.files.get(name, b"")[offset : offset + length])

    def append(self, name: str, data: bytes) -> None:
        """Write behind the end, as far as the budget goes."""
        written = self._pay(len(data))
        self.files.setdefault(name, bytearray()).extend(data[:written])
        if written < len(data):
            raise Crash

    def truncate(self, name: str, size: int) -> None:
        """Cut a file off, if it is longer."""
        if self.size(name) > size:
            self._pay_or_crash()
            del self.files[name][size:]
            self.synced[name] = self.synced.get(name, b"")[:size]

    def sync(self, name: str) -> None:
        """Have what a file holds survive a crash."""
        self._pay_or_crash()
        self.synced[name] = bytes(self.files.setdefault(name, bytearray()))

    def replace(self, name: str, data: bytes) -> None:
        """Write a whole file, in one piece and durably."""
        self._pay_or_crash()
        self.files[name] = bytearray(data)
        self.synced[name] = data

    def _pay(self, cost: int) -> int:
        paid = cost if self.budget is None else min(cost, self.budget - self.spent)
        self.spent += paid
        return paid

    def _pay_or_crash(self) -> None:
        if not self._pay(1):
            raise Crash


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

    def left(self, choose: Callable[[int], int]) -> dict[str, bytes]:
        """Return the files as one crash may leave them; `choose(n)` takes one of n ways."""
        found = dict(self.durable)
        for name, states in self.since.items():
            were = [self.durable.get(name, b""), *states]
            lengths = [len(state) for state in were]
            sizes = sorted({*lengths, (min(lengths) + max(lengths)) // 2})
            sizes += [ABSENT] if name not in self.durable else []
            size = sizes[choose(len(sizes))]
            found.pop(name, None)
            if size != ABSENT:
                found[name] = self._sectors(were, size, choose)
        return found

    def _sectors(self, were: list[bytes], size: int, choose: Callable[[int], int]) -> bytes:
        """Return `size` bytes, of each sector one of the states that it was in; zeros where there was none."""
        kept = bytearray(size)
        for at in range(0, size, SECTOR):
            parts = sorted({state[at : min(at + SECTOR, size)] for state in were})
            part = parts[choose(len(parts))]
            kept[at : at + len(part)] = part
        return bytes(kept)
