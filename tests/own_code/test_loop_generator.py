"""Generated programs that wait in loops find faults in what decides whether a round changes anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.explorer.model.operations import Operation, Thread
from seriatim_models.explorer.python import waiting_loops
from seriatim_models.explorer.python.places import SharedPlace
from seriatim_models.explorer.python.waiting_loops import LoopRounds, Moment
from seriatim_workshop.crosscheck.own_loops import compared, generate


def stores_change_nothing(self: LoopRounds, thread: Thread, place: SharedPlace) -> None:
    for waiting in self.stopped:
        if waiting.thread is not thread and not waiting.changed:
            waiting.changed = waiting.has_read(place)


def operations_change_nothing(self: LoopRounds, thread: Thread, op: Operation) -> None:
    before = self.changes[thread]
    STEP(self, thread, op)
    self.changes[thread] = before


STEP = LoopRounds.step


def unchanged(without: str) -> Callable[[LoopRounds, Thread, Moment, Moment], bool]:
    """`LoopRounds.unchanged`, which does not look at one part of what it knows."""
    real = LoopRounds.unchanged

    def looks_at_less(self: LoopRounds, thread: Thread, before: Moment, after: Moment) -> bool:
        if without == "noted":
            kept = [("read", about) for kind, about in self.noted[thread] if kind == "read"]
            every, self.noted[thread] = self.noted[thread], kept
            same = real(self, thread, before._replace(noted=0), after)
            self.noted[thread] = every
            return same
        return real(self, thread, before._replace(**{without: getattr(after, without)}), after)

    return looks_at_less


# What is replaced, by what, and a seed whose program shows it.
FAULTS: dict[str, tuple[Any, str, Any, int]] = {
    "stores": (LoopRounds, "wrote", stores_change_nothing, 14),
    "operations": (LoopRounds, "step", operations_change_nothing, 10),
    "looks": (waiting_loops, "only_looks", lambda op, footprint: True, 12),
    "objects of its own": (LoopRounds, "unchanged", unchanged("noted"), 14),
    "locks that are held": (LoopRounds, "unchanged", unchanged("held"), 74),
    "variables": (LoopRounds, "unchanged", unchanged("local"), 24),
    "what a stopped one reads": (
        LoopRounds,
        "reads",
        lambda self, thread, since: self.ex.footprint(()),
        10,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, attribute, fault, seed = FAULTS[name]
    assert not compared(generate(seed), tmp_path, executions=400).wrong
    monkeypatch.setattr(of, attribute, fault)
    assert compared(generate(seed), tmp_path, executions=400).wrong


@pytest.mark.parametrize(
    ("seeds", "most"),
    [
        pytest.param(20, 12, marks=pytest.mark.slow),
        pytest.param(60, 25, marks=pytest.mark.night),
    ],
)
def test_programs_agree_with_their_unfolded_forms(seeds: int, most: int, tmp_path: Path) -> None:
    large = 0
    for seed in range(2_000, 2_000 + seeds):
        agreement = compared(generate(seed), tmp_path, executions=400)
        assert not agreement.wrong, f"seed {seed}: {agreement.wrong}"
        large += agreement.large
    assert large < most
