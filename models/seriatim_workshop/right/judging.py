"""Drawn right systems against the oracle: each is judged under the profile that it keeps.

``python -m seriatim_workshop.right --n 10000`` judges so many and prints the seeds of those that were reported, each
with a file that shows it and the command that shows it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event
from seriatim_models.history.writing import write_history
from seriatim_models.properties.base import AnyProperty, Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_workshop.right.broker import MS
from seriatim_workshop.right.drawing import AnyMeaning, draw, history
from seriatim_workshop.right.logs import LogMeaning
from seriatim_workshop.right.workers import WorkerMeaning


def kept(meaning: AnyMeaning) -> list[AnyProperty]:
    """What a system of this meaning promises: the profiles that it keeps, and what else holds for it."""
    if isinstance(meaning, LogMeaning):
        kafka = meaning.committed == "next" and meaning.fenced
        return _promised("at-least-once-log", *(["kafka"] if kafka else []))
    if isinstance(meaning, WorkerMeaning):
        return _promised(*_without_channels(meaning))
    names = {"place": ["strict-qpid", "rabbit-classic"], "head": [], "tail": ["rabbit-quorum"]}
    profiles = [*names[meaning.requeue], "amqp-0-9-1-4.7"]
    also = [
        p for p in BLACKBOX if p.id in ("P22", "P23", "P24", "P25", "P26")
    ]  # who declares them keeps them, whatever its profile
    return list(dict.fromkeys([*_promised(*profiles), *also]))


def _without_channels(meaning: WorkerMeaning) -> list[str]:
    """The profiles that a queue without channels keeps."""
    match meaning.kind:
        case "fifo":
            return ["fifo-adt"]
        case "lock":
            return ["postgres-skip-locked", *(["jms-queue"] if meaning.ordered else [])]
        case _:
            # A fifo queue promises order within its groups; without any, the whole is one.
            ordered = ["sqs-fifo"] if meaning.ordered and meaning.groups else []
            return ["sqs-standard", "unordered-lease", "nsq", "jetstream-workqueue", *ordered]


def _promised(*profiles: str) -> list[AnyProperty]:
    """The properties of some profiles, each form once."""
    return list({id(p): p for name in profiles for p in PROFILES[name].properties}.values())


def completed(events: Sequence[Event]) -> list[Event]:
    """The events of all recorders in the order of time, completed."""
    return list(complete(sorted(events, key=lambda e: (e.t or 0, e.i))))


def reported(meaning: AnyMeaning, events: Sequence[Event]) -> list[Finding]:
    """The violations that the oracle reports; a right system has none."""
    history = completed(events)
    found = [p.check(history) for p in kept(meaning)]
    return [f for f in found if f.verdict is Verdict.VIOLATED]


SIMPLER: tuple[dict[str, object], ...] = (
    {"messages": 1}, {"messages": 2}, {"messages": 3}, {"messages": 5}, {"consumers": 1}, {"consumers": 2},
    {"publishers": 1}, {"queues": 1}, {"levels": 1}, {"groups": 0}, {"dead": False}, {"sole": False}, {"ranks": False},
    {"leases": 0}, {"sweeps": False}, {"twice": False}, {"kills": False}, {"drops": False}, {"runs_on": False},
    {"handover": False}, {"same_tags": False},
    {"slow_confirms": False}, {"own_recorders": False}, {"late": 1}, {"notices": 1}, {"lag": 1}, {"ops": True},
    {"parts": 1}, {"readers": 1}, {"members": 1}, {"workers": 1}, {"workers": 2}, {"eager": False}, {"holes": False},
    {"alone": False}, {"local": False}, {"ttl": 0}, {"refuses": False}, {"tx": False}, {"answers": True},
    {"seeks": False}, {"back": False}, {"compacts": False}, {"unknown": 0.0}, {"expiries": False}, {"waits": False},
    {"phases": True}, {"scope": "consumer"}, {"until": 10 * MS}, {"until": 20 * MS}, {"until": 40 * MS},
)  # fmt: skip
"""What makes a meaning simpler. A part of a right history need not be right, so it is the system that is shrunk."""


def simplest(meaning: AnyMeaning, id: str) -> AnyMeaning:
    """The simplest meaning whose history is still reported for the same property: the shortest history found."""
    best, length = meaning, len(history(meaning))
    simpler = True
    while simpler:
        simpler = False
        for change in SIMPLER:
            if not change.keys() <= set(best._fields):
                continue
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
