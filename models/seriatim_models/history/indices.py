"""Which recording indices were read already, in memory that grows with the gaps and not with the length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

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

    def extend(self, some: Sequence[int]) -> None:
        """Add indices above `last`, that rise."""
        if not some:
            return
        if some[-1] - some[0] == len(some) - 1:  # without a gap, since they rise
            self.append(some[0])
            self._hi[-1] = some[-1]
            return
        half = len(some) // 2
        self.extend(some[:half])
        self.extend(some[half:])
