"""Drawn right systems against the oracle: each is judged under the profile that it keeps.

``python -m seriatim_workshop.right --n 10000`` judges so many and prints the seeds of those that were reported, each
with a file that shows it and the command that shows it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import NamedTuple

from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.history.complete import Completion
from seriatim_models.history.event import Event
from seriatim_models.history.writing import write_history
from seriatim_models.properties.base import AnyProperty, Finding, Verdict
from seriatim_workshop.right.broker import MS, Meaning
from seriatim_workshop.right.drawing import draw, history


def kept(meaning: Meaning) -> list[AnyProperty]:
    """What a system of this meaning promises: the profiles that it keeps, and what else holds for it."""
    names = {"place": ["strict-qpid", "rabbit-classic"], "head": [], "tail": ["rabbit-quorum"]}
    profiles = [*names[meaning.requeue], "amqp-0-9-1-4.7"]
    found = {id(p): p for name in profiles for p in PROFILES[name].properties}
    # Where messages die and come elsewhere, order is that of their deaths.
    silent = {"P4", "P5"} if meaning.dead else set[str]()
    return [p for p in found.values() if p.id not in silent]


def completed(events: Sequence[Event]) -> list[Event]:
    """The events of all recorders, each completed by itself, in the order of time."""
    recorders: dict[str, list[Event]] = {}
    for event in events:
        recorders.setdefault(event.rec, []).append(event)

    def of(held: list[Event]) -> Iterator[Event]:
        completion = Completion()
        return (completion(e) for e in held)

    return list(merge(*map(of, recorders.values()), key=lambda e: (e.t or 0, e.i)))


def reported(meaning: Meaning, events: Sequence[Event]) -> list[Finding]:
    """The violations that the oracle reports; a right system has none."""
    history = completed(events)
    found = [p.check(history) for p in kept(meaning)]
    return [f for f in found if f.verdict is Verdict.VIOLATED]


SIMPLER: tuple[dict[str, object], ...] = (
    {"messages": 1}, {"messages": 2}, {"messages": 3}, {"messages": 5}, {"consumers": 1}, {"consumers": 2},
    {"publishers": 1}, {"queues": 1}, {"levels": 1}, {"groups": 0}, {"dead": False}, {"sole": False}, {"ranks": False},
    {"leases": 0}, {"sweeps": False}, {"twice": False}, {"kills": False}, {"drops": False}, {"runs_on": False},
    {"slow_confirms": False}, {"own_recorders": False}, {"late": 1}, {"notices": 1}, {"lag": 1}, {"ops": True},
    {"phases": True}, {"scope": "consumer"}, {"until": 10 * MS}, {"until": 20 * MS}, {"until": 40 * MS},
)  # fmt: skip
"""What makes a meaning simpler. A part of a right history need not be right, so it is the system that is shrunk."""


def simplest(meaning: Meaning, id: str) -> Meaning:
    """The simplest meaning whose history is still reported for the same property: the shortest history found."""
    best, length = meaning, len(history(meaning))
    simpler = True
    while simpler:
        simpler = False
        for change in SIMPLER:
            tried = best._replace(**change)  # type: ignore[arg-type]  # fields of the tuple by name
            events = history(tried)
            if len(events) < length and any(f.property == id for f in reported(tried, events)):
                best, length, simpler = tried, len(events), True
    return best


class ReportedHistory(NamedTuple):
    """A drawn history that was reported although it is right."""

    seed: int
    finding: Finding
    path: Path

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.finding.property}: {self.finding.explanation}\n"
            f"  its history, shrunk: {self.path}\n"
            f"  again: python -m seriatim_workshop.right --seed {self.seed}"
        )


def sweep(seeds: Iterable[int], folder: Path, most: int = 5) -> list[ReportedHistory]:
    """Judge the history of each seed; what is reported is shrunk and written into a folder, `most` of them."""
    found: list[ReportedHistory] = []
    for seed in seeds:
        meaning = draw(seed)
        events = history(meaning)
        for finding in reported(meaning, events)[:1]:
            small = simplest(meaning, finding.property)
            events = history(small)
            shown = next(f for f in reported(small, events) if f.property == finding.property)
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"right-{seed}-{finding.property}.jsonl"
            write_history(path, events)
            found.append(ReportedHistory(seed, shown, path))
        if len(found) >= most:
            break
    return found
