"""What a campaign consists of: one search for each item, and the result of each.

Only data here, and how items are combined; `search` and `subtree` do the searches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import msgspec

from seriatim_models.explorer.search.frontier import Count
from seriatim_models.pipeline.errors import PipelineError

Seconds = Annotated[float, msgspec.Meta(ge=0)]
STRATEGIES = ("dpor", "random", "pct", "pos")


class SearchItem(msgspec.Struct, frozen=True):
    """One search: a program under a strategy, a seed and bounds."""

    program: str
    mutant: str = ""
    strategy: str = "dpor"
    seed: int = 0
    executions: int | None = None
    """At most so many."""
    seconds: float | None = None
    max_steps: int = 5000
    preemptions: int | None = None
    subtree: str = ""
    """Not a whole search but one subtree of it: where that begins, as JSON (`subtree.Subtree`)."""
    first_bug: bool = False
    """Of a subtree: whether its search ends at the first bug."""
    batch: str = ""
    """Not a search but programs of the matrix, as JSON (`matrix.work.PairBatch`)."""

    @property
    def id(self) -> str:
        """The same for the same search, whenever and wherever."""
        words = [self.program, self.mutant, self.strategy, str(self.seed), str(self.executions)]
        if self.batch:
            words += ["matrix", self.batch]
        elif not self.subtree:
            words += [str(self.seconds), str(self.max_steps), str(self.preemptions)]
        else:
            # A subtree's search that ends early returns what is left: any answer is right, however long it took.
            words += ["subtree", str(self.max_steps), self.subtree]
        return hashlib.blake2b("\0".join(words).encode(), digest_size=8).hexdigest()

    def summary(self) -> SearchItem:
        """The item as a result carries it: without its subtree's beginning or its batch, which may be long."""
        return msgspec.structs.replace(self, subtree="", batch="")


class Bug(msgspec.Struct, frozen=True, array_like=True):
    """A violation under a schedule."""

    bug: str
    """Property, or kind of end."""
    trace: str
    """The canonical name of the counterexample's trace (Foata normal form): two schedules of one trace are one bug."""
    token: str
    """Replays it."""


class ItemResult(msgspec.Struct, kw_only=True):
    """The result of an item.

    `verdict` is that of the search (ok, violated, inconclusive), or how its process ended: ``timeout``,
    ``died`` (with the signal or exit code in `why`), ``memory``, ``error`` (it raised).
    """

    id: str
    item: SearchItem
    verdict: str
    why: str = ""
    complete: Count = 0
    blocked: Count = 0
    cut: Count = 0
    steps: Count = 0
    traces: Count | None = None
    """Distinct ones."""
    seconds: Seconds = 0.0
    processor: Seconds = 0.0
    """Seconds of processor time."""
    bugs: list[Bug] = []
    """One at most, but a subtree has one for each property that is violated in it."""
    names: bytes = b""
    """Names of the traces seen, 16 bytes each."""
    prefix: str = ""
    """The steps with which all schedules of a subtree begin."""
    depth: Count = 0
    """How many these are."""
    returned: str = ""
    """What the search of a subtree returns to the coordinator, or a batch of the matrix (a list of `Done`), as JSON."""
    reached: Count = 0
    """How many executions the search of a subtree had made when it ended, in whatever way."""

    @property
    def executions(self) -> int:
        """How many were made."""
        return self.complete + self.blocked + self.cut


Work = Callable[[SearchItem, Callable[[int], None]], ItemResult]
"""Does one item. It calls its second argument after each execution of a subtree with how many these were."""


def items(
    programs: Sequence[str],
    mutants: Sequence[str] = ("",),
    strategies: Sequence[str] = ("dpor",),
    seeds: Iterable[int] = (0,),
    executions: int | None = None,
    seconds: float | None = None,
    preemptions: Iterable[int | None] = (None,),
) -> list[SearchItem]:
    """Every combination.

    A mutant goes with the programs over the reference that it changes; an exhaustive search has
    no seed, and only it can be bounded in preemptions.
    Raises `PipelineError` for a name that is not known.
    """
    from seriatim_models.programs import MUTANTS, PROGRAMS

    asked: list[tuple[str, Sequence[str], Iterable[str]]] = [
        ("program", programs, PROGRAMS),
        ("mutant", [m for m in mutants if m], MUTANTS),
        ("strategy", strategies, STRATEGIES),
    ]
    for kind, names, known in asked:
        for name in names:
            if name not in known:
                raise PipelineError(f"there is no {kind} {name!r}")
    out: dict[str, SearchItem] = {}
    for program in programs:
        for mutant in mutants:
            if mutant and MUTANTS[mutant].reference != PROGRAMS[program].reference:
                continue
            for strategy in strategies:
                exhaustive = strategy == "dpor"
                for seed in [0] if exhaustive else seeds:
                    for bound in preemptions if exhaustive else [None]:
                        item = SearchItem(
                            program, mutant, strategy, seed, executions, seconds, preemptions=bound
                        )
                        out.setdefault(item.id, item)
    return list(out.values())
