"""Brute force is the judge: all interleavings of generated programs."""

from __future__ import annotations

import pytest

from seriatim_workshop.crosscheck.generated_programs import FLAVOURS, generate
from seriatim_workshop.crosscheck.run import compare_generated

SLICE = 40
"""Programs of each flavour here; `python -m seriatim_workshop.crosscheck.run` runs as many as you like."""


@pytest.mark.slow
@pytest.mark.parametrize("flavour", range(len(FLAVOURS) + 1), ids=[*FLAVOURS, "awaits"])
def test_the_traces_found_are_all_traces_each_once(flavour: int) -> None:
    traces = 0
    for k in range(SLICE):
        number = 1_000_000 * len(FLAVOURS) + k * len(FLAVOURS) + flavour
        program = generate(number, awaits=flavour == len(FLAVOURS))
        found = compare_generated(program, most=500)
        assert not found.wrong, f"{program}\n{found.wrong}"
        traces += found.traces
    assert traces > SLICE
