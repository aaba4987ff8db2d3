"""All interleavings, one by one, to compare the explorer with.

Nothing is reduced here, and nothing is shared with `dpor` but the running of one execution.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from seriatim_models.explorer.model.execution import Execution
from seriatim_models.explorer.trace.foata import FoataLevels
from seriatim_models.explorer.trace.termination import classify


def interleavings(
    fresh: Callable[[], Execution], max_steps: int = 1000
) -> Iterator[tuple[Execution, FoataLevels]]:
    """Every maximal execution, in lexicographic order of choices. `end` of each is how it ended."""
    path: list[list[tuple[int, int]]] = []
    """At each depth the choices (thread, alternative) that are still to be made; the last of them is being made."""
    while True:
        ex = fresh()
        levels = FoataLevels(ex)
        depth = 0
        while True:
            enabled = ex.enabled()
            if not enabled:
                ex.finish(classify(ex))
                break
            if depth >= max_steps:
                ex.finish("cut")
                break
            if depth == len(path):
                path.append(
                    [
                        (t.number, alternative)
                        for t in reversed(enabled)
                        for alternative in reversed(
                            range(t.op.alternatives() if t.op is not None else 0)
                        )
                    ]
                )
            number, alternative = path[depth][-1]
            thread = ex.order[number]
            levels.before(thread, alternative)
            ex.step(thread, alternative)
            depth += 1
        yield ex, levels
        ex.close()
        while path:
            path[-1].pop()
            if path[-1]:
                break
            path.pop()
        if not path:
            return


def guesses(fresh: Callable[[], Execution], walks: int, seed: int = 0) -> Iterator[float]:
    """Knuth's estimate of the number of interleavings, from random walks: unbiased, and of great variance."""
    chance = random.Random(seed)
    for _ in range(walks):
        ex = fresh()
        weight = 1.0
        while enabled := ex.enabled():
            choices = [
                (t, w)
                for t in enabled
                for w in range(t.op.alternatives() if t.op is not None else 0)
            ]
            weight *= len(choices)
            ex.step(*chance.choice(choices))
        ex.close()
        yield weight
