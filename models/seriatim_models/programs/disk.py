"""A disk in memory, for the log, that a crash can stop after any change."""

from __future__ import annotations


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
