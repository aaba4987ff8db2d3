"""Brute force is the judge: all interleavings of generated programs."""

from __future__ import annotations

import pytest

from seriatim_models.explorer.crosscheck import compare_generated
from seriatim_models.explorer.generated import FLAVOURS, generate

SLICE = 40
"""Programs of each flavour here; `python -m seriatim_models.explorer.crosscheck` runs as many as you like."""


@pytest.mark.parametrize("flavour", range(len(FLAVOURS)), ids=list(FLAVOURS))
def test_the_traces_found_are_all_traces_each_once(flavour: int) -> None:
    traces = 0
    for k in range(SLICE):
        program = generate(1_000_000 * len(FLAVOURS) + k * len(FLAVOURS) + flavour)
        found = compare_generated(program, most=500)
        assert not found.wrong, f"{program}\n{found.wrong}"
        traces += found.traces
    assert traces > SLICE
