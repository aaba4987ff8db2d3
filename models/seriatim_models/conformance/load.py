"""Load: scripts that grow, and the mixes of commands that are worth going on with.

What is rare shows by how often it is tried: a queue that loses one wake-up in a thousand needs thousands of them. Most
mixes of commands soon have queues that are full and consumers that are stuck, and then try little. So some mixes are
measured by how many messages a second they have pushed and got, and the best of both go on, each time with other
commands and, as the time allows, with more; every so often a new mix is tried.
What a load of commands one after another shows is not what commands that meet show; both get the same time.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import msgspec

from seriatim_models.conformance.driving import DrivenRun
from seriatim_models.conformance.script import STEPS_MAX, ScriptStep
from seriatim_models.conformance.workloads import Mix, script_of

STEPS = 250
"""Steps of the first script of a load. The next one is twice as long, as the time allows."""
SHARE = 0.2
"""What part of the time that is left one of them may take."""
EXPLORED, EXPLORE_EVERY = 3, 4
"""How many mixes are measured before the best one goes on, and of how many loads one tries a new mix."""


class Load(NamedTuple):
    """A script of a load, and what it was drawn from."""

    mix: int
    hurried: bool
    """Whether most of its commands are sent without waiting for the effect of the one before."""
    script: list[ScriptStep]


class Throughput(msgspec.Struct, frozen=True):
    """How many messages a mix had pushed, and got: in a second, or per command."""

    pushed: float
    got: float


class Loads:
    """Which load comes next. Give every one that was run to `add`."""

    def __init__(
        self, can: frozenset[str], seed: int, longest: int | None, *, by_time: bool = True
    ) -> None:
        """`longest`: the most steps of one script, None for as many as a script may have.

        `by_time`: whether a load is measured in seconds; else in commands, which no machine makes others of.
        """
        self._can, self._seed = can - {"delay", "ttl"}, seed  # waiting for those is no load
        self._longest = longest or STEPS_MAX
        self._by_time = by_time
        self._count = 0
        self._mixes = 0
        self._measured: dict[bool, dict[int, Throughput]] = {False: {}, True: {}}
        self._spent = {False: 0.0, True: 0.0}  # seconds, or commands
        self._length = dict.fromkeys((False, True), min(STEPS, self._longest))

    def next(self) -> Load:
        """The load to run."""
        self._count += 1
        hurried = self._spent[True] < self._spent[False]
        measured = self._measured[hurried]
        if len(measured) < EXPLORED or self._count % EXPLORE_EVERY == 0:
            self._mixes += 1
            number = self._mixes
        elif self._count % EXPLORE_EVERY != 2:
            number = max(measured, key=lambda n: measured[n].pushed)
        else:
            number = max(measured, key=lambda n: measured[n].got)
        mix = Mix(self._can, random.Random(f"{self._seed}/mix/{number}"))
        mix.drawn = random.Random(f"{self._seed}/load/{self._count}")
        return Load(number, hurried, script_of(mix, self._length[hurried], hurried=hurried))

    def add(self, load: Load, run: DrivenRun, seconds: float, left: float) -> None:
        """What a load came to within so many seconds, and how many are left of the search."""
        pushed = sum(e.ev == "deliver" for e in run.events)
        got = sum(e.ev == "get" and bool(e.m) for e in run.events)
        took = max(seconds, 1e-3) if self._by_time else max(len(run.steps), 1)
        self._measured[load.hurried][load.mix] = Throughput(pushed / took, got / took)
        self._spent[load.hurried] += took
        if 2 * seconds < SHARE * left:
            self._length[load.hurried] = min(2 * self._length[load.hurried], self._longest)
