"""Which recording indices were read already, in memory that grows with the gaps and not with the length."""

from __future__ import annotations

from bisect import bisect_right

import msgspec


class Indices(msgspec.Struct):
    """A set of whole numbers held as disjoint ranges: a recording counts up, so there are few."""

    _lo: list[int] = []
    _hi: list[int] = []

    @property
    def last(self) -> int | None:
        """The highest index added."""
        return self._hi[-1] if self._hi else None

    def __contains__(self, i: int) -> bool:
        at = bisect_right(self._lo, i) - 1
        return at >= 0 and i <= self._hi[at]

    def append(self, i: int) -> None:
        """Add an index above `last`."""
        if self._hi and i == self._hi[-1] + 1:
            self._hi[-1] = i
        else:
            self._lo.append(i)
            self._hi.append(i)

    def extend(self, some: list[int]) -> None:
        """Add indices above `last`, that rise."""
        begin = 0
        for end in range(1, len(some) + 1):
            if end == len(some) or some[end] != some[end - 1] + 1:
                self.append(int(some[begin]))
                self._hi[-1] = int(some[end - 1])
                begin = end
