"""Foata normal form: the name of a trace.

Two executions are equivalent (Mazurkiewicz) if one becomes the other by swapping neighbouring independent steps.
The normal form of their class stacks the steps like bricks:
a step lies on level 1 + the highest level of the steps before it that it depends on.
Steps of one level are pairwise independent, so a level is a set,
and two executions are equivalent exactly if their sequences of levels are equal (Cartier & Foata 1969).

As a program is deterministic but for its schedule and its choices, a step is named by its thread and its alternative.
For counting, a normal form is a sum of 128-bit hashes, one for each (thread, level, alternative):
it grows step by step, and two different forms have one sum with probability 2**-128.
"""

from __future__ import annotations

from collections.abc import Iterable

from seriatim_models.explorer.model.execution import Execution
from seriatim_models.explorer.model.operations import ADD, READ, WRITE, Thread

MASK = (1 << 128) - 1

NormalForm = tuple[tuple[tuple[tuple[int, ...], int], ...], ...]
"""Levels; in each the sorted (path of the thread, alternative)."""


class FoataLevels:
    """The levels of the Foata normal form of one execution. Call `before` before each step."""

    __slots__ = ("_ex", "_objects", "alternatives", "levels", "sum", "tids")

    def __init__(self, ex: Execution) -> None:
        self._ex = ex
        self._objects: dict[int, list[int]] = {}
        self.levels: list[int] = []
        self.tids: list[int] = []
        self.alternatives: list[int] = []
        self.sum = 0

    def before(self, thread: Thread, alternative: int) -> None:
        """Add the step that `thread` is about to take."""
        op = thread.op
        assert op is not None
        level = 0
        last = thread.latest
        if last >= 0:
            level = self.levels[last]
        after = op.after()
        if after >= 0:
            level = max(level, self.levels[after])
        accesses = op.touch().accesses
        for index, mode in accesses:
            tops = self._objects.setdefault(index, [0, 0, 0])
            level = max(level, tops[WRITE])
            if mode != READ:
                level = max(level, tops[READ])
            if mode != ADD:
                level = max(level, tops[ADD])
        level += 1
        for index, mode in accesses:
            tops = self._objects[index]
            if tops[mode] < level:
                tops[mode] = level
        self.levels.append(level)
        self.tids.append(thread.tid)
        self.alternatives.append(alternative)
        self.sum += self._ex.space.hashes[thread.tid, level, alternative]

    def digest(self) -> bytes:
        """16 bytes that name the trace."""
        return digest_of(self.sum)

    def form(self) -> NormalForm:
        """The normal form of the steps so far."""
        return normal_form(self._ex, self.tids, self.alternatives, self.levels)


class TraceSample:
    """The traces that were seen, counted in bounded memory.

    All names are kept while there are few. Beyond `most` only those are kept that begin with a 0 bit, then with two,
    and so on: a sample that every trace has the same chance to be in, however often it is met
    (adaptive sampling, Wegman 1984; Flajolet 1990). So the count is exact up to `most`, then an unbiased estimate
    with a standard error of about 1.2 / sqrt(most); and whether a trace was met before is known for one in `one_in`.
    """

    __slots__ = ("_bits", "kept", "most")

    def __init__(self, most: int = 1 << 18) -> None:
        self.most = most
        self.kept: set[bytes] = set()
        self._bits = 0

    @property
    def one_in(self) -> int:
        """One in so many traces is kept."""
        return 1 << self._bits

    @property
    def count(self) -> int:
        """How many different ones were met."""
        return len(self.kept) << self._bits

    def _falls_out(self, name: bytes) -> bool:
        return int.from_bytes(name[:8], "big") >> (64 - self._bits) != 0

    def met(self, name: bytes) -> bool:
        """Remember a trace; whether it was met before, as far as the sample can tell."""
        if self._bits and self._falls_out(name):
            return False
        if name in self.kept:
            return True
        self.kept.add(name)
        while len(self.kept) > self.most:
            self._bits += 1
            self.kept = {n for n in self.kept if not self._falls_out(n)}
        return False

    def join(self, names: Iterable[bytes], one_in: int) -> int:
        """Add what another has kept; how many of these were met before, as far as the sample can tell."""
        while self.one_in < one_in:
            self._bits += 1
            self.kept = {n for n in self.kept if not self._falls_out(n)}
        return sum(self.met(name) for name in names)


def digest_of(total: int) -> bytes:
    """16 bytes that name a trace."""
    return (total & MASK).to_bytes(16, "big")


def normal_form(
    ex: Execution, tids: list[int], alternatives: list[int], levels: list[int]
) -> NormalForm:
    """The normal form itself, for tests and for people."""
    paths = ex.space.paths
    stack: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in range(max(levels, default=0))]
    for tid, alternative, level in zip(tids, alternatives, levels, strict=True):
        stack[level - 1].append((paths[tid], alternative))
    return tuple(tuple(sorted(level)) for level in stack)
