"""How a cost grows: the exponent of a power of the size, by least squares on logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Growth:
    """cost = factor * size ** exponent; `error` is the standard error of the exponent, None with two points."""

    factor: float
    exponent: float
    error: float | None
    points: int

    def __str__(self) -> str:
        doubt = "" if self.error is None else f" ± {self.error:.2f}"
        return f"size^{self.exponent:.2f}{doubt} over {self.points} sizes"


def fit(sizes: Sequence[float], costs: Sequence[float]) -> Growth:
    """Raises ValueError for fewer than two different sizes, or a size or cost that is not positive."""
    if len(set(sizes)) < 2:
        raise ValueError("a growth needs two sizes")
    if min(*sizes, *costs) <= 0:
        raise ValueError("a growth needs positive sizes and costs")
    x, y = [math.log(s) for s in sizes], [math.log(c) for c in costs]
    mx, my = fmean(x), fmean(y)
    width = sum((a - mx) ** 2 for a in x)
    exponent = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / width
    factor = math.exp(my - exponent * mx)
    error = None
    if len(x) > 2:
        left = sum((b - my - exponent * (a - mx)) ** 2 for a, b in zip(x, y, strict=True))
        error = math.sqrt(left / (len(x) - 2) / width)
    return Growth(factor, exponent, error, len(x))
