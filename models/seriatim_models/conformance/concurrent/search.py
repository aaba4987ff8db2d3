"""Small workloads of several clients and faults, drawn until one shows a violation, which is then made smaller.

Threads meet by chance, and so do commands and faults: a workload that showed a violation may not show it again. So each
smaller one is tried several times, and the outcome says in how many of so many further runs the smallest one showed it.
Its history is the evidence. (spec/decisions/small-workloads-and-hypothesis.md says why Hypothesis does not do this.)
"""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from seriatim_models.conformance.concurrent import driving
from seriatim_models.conformance.concurrent.client import ConcurrentSystem
from seriatim_models.conformance.concurrent.driving import FaultInjector, run_workload
from seriatim_models.conformance.concurrent.streamed import StreamedRecording
from seriatim_models.conformance.concurrent.workload import (
    MIX,
    PREFETCH,
    REFINED,
    REOPEN,
    TIMED,
    ClientCommand,
    ConcurrentWorkload,
    FaultKind,
    PlannedFault,
    refined,
)
from seriatim_models.conformance.driving import DrivenRun
from seriatim_models.conformance.judging import FindingTally, judged
from seriatim_models.conformance.protocol import Fault
from seriatim_models.history import Header, read_history
from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event
from seriatim_models.properties.base import AnyProperty, Finding, Verdict

TRIES = 15
"""How often a smaller workload is run before it is given up, and the smallest to see how often it shows."""
AGAIN = 2
"""In how many of them it must show the violation to be taken."""
LONGEST = 40
"""Commands of a client, at most."""
FAULTS, PACE, BUSY = 3, 10.0, 40.0
"""The most faults of a small workload, and how many commands a second a client makes: a few in a hurry, or many."""
SHORT, LONG = (0.02, 0.5), (0.5, 3.0)
"""Seconds that a fault lasts; of a cluster long enough for the other nodes to notice."""
WELL = 1.0
"""Seconds that nodes have after a fault until the next workload, which shall not show what the fault did."""
DRAINING = 10.0
"""Seconds that taking out what is left of a workload without faults may take at the least, whatever the time."""
LEFT = re.compile(r"w\d+m\d+\.\d+$")
"""The name of a message of some workload."""


class SmallFaults(msgspec.Struct, frozen=True):
    """The faults that small workloads have, and who does them."""

    injector: FaultInjector
    kinds: Sequence[FaultKind] = ()
    nodes: int = 1
    declares: Mapping[str, object] | None = None
    """What is promised of each queue."""


class FreshSystem(ConcurrentSystem, Protocol):
    """A system that can start anew."""

    def reset(self) -> None:
        """No messages, no channels. Raises `Fault`."""


class ClientsOutcome(msgspec.Struct, kw_only=True):
    """What came of a search."""

    findings: list[Finding] = []
    runs: int = 0
    commands: int = 0
    recorded: int = 0
    """Events of all runs."""
    violated: str = ""
    """The property whose violation was made smaller, if there is one."""
    workload: ConcurrentWorkload | None = None
    """The smallest workload that showed it."""
    events: list[Event] = []
    """The history that is the evidence."""
    shown: int = 0
    """In how many of `tried` further runs the smallest workload showed it again."""
    tried: int = 0
    """`TRIES`, or fewer if the system failed meanwhile or time was up."""
    failed: str = ""
    """How the system failed after the violation was found, so that it was not made smaller to the end."""


SMALL = 3
"""The most commands of a client in a workload that stays small."""
REFINEMENTS = (0.0, 0.0, 0.3, 0.8)
"""How often a command may be refined in such a mix."""
SELDOM = (0.0, 0.0, 0.1)
"""How often a message may have a delay or a time to live in it: each takes its time."""
PREFETCHES = (1, 2, 5)
"""Of consumers in such a workload: a few messages must fill what they may hold."""
OFTEN = (0, 1, 3, 10)
"""How often a command may come, in proportion, in a mix that is drawn (https://doi.org/10.1145/2338965.2336763)."""


def drawn(
    seed: int, n: int, clients: int, can: frozenset[str], faults: SmallFaults | None = None
) -> ConcurrentWorkload:
    """The n-th workload: few commands at first, then more.

    Of those without faults every other one has a mix of its own, since commands that are rare in the common one must
    meet, too; half of these stay small, since a later command may mend what two that met have left behind.
    """
    chance = random.Random(f"{seed}/{n}")
    longest = min(LONGEST, 3 + n // 10 if faults is None or faults.nodes == 1 else 10 + n // 2)
    mix = {op: often for op, often in MIX.items() if op in can}
    often, prefetch = REFINED, PREFETCH
    busy = faults is not None and faults.nodes == 1 and n % 2 == 1
    if busy:  # a fault takes as long as many commands do, and needs some to find
        longest = LONGEST
    if faults is None and n % 2:
        mix = {op: chance.choice(OFTEN) for op in MIX | REOPEN if op in can}
        mix["publish"] = max(mix.values()) or 1
        longest = min(longest, SMALL) if n % 4 == 1 else longest
        often = {f: chance.choice(REFINEMENTS) for f in REFINED if f not in TIMED}
        often |= {f: chance.choice(SELDOM) for f in TIMED}
        prefetch = chance.choice(PREFETCHES) if "qos" in can else prefetch

    def commands() -> Iterator[ClientCommand]:
        ops = chance.choices([*mix], [*mix.values()], k=chance.randint(1, longest))
        for op in ops:
            back = "drop" not in can or chance.random() < 0.9
            command = ClientCommand(op=op, which=chance.randrange(6), requeue=back)
            yield refined(command, can, often, chance)

    threads = tuple(tuple(commands()) for _ in range(chance.randint(2, clients)))
    if faults is None or not faults.kinds:
        # What a close gives back is seen in the others.
        settles = bool({"consume", "ack"} <= can and n % 2)
        return ConcurrentWorkload(commands=threads, prefetch=prefetch, settles=settles)
    plan = tuple(
        PlannedFault(
            after=chance.uniform(0, max(map(len, threads)) / (BUSY if busy else PACE)),
            kind=chance.choice(faults.kinds),
            seconds=chance.uniform(*(SHORT if faults.nodes == 1 else LONG)),
            nodes=(chance.randrange(faults.nodes),),
        )
        for _ in range(chance.randint(1, FAULTS))
    )
    pace = BUSY if busy else PACE  # in a hurry, for what a fault finds under way
    if faults.nodes > 1 and chance.random() < 0.5:  # or slowly: other nodes answer meanwhile
        lasts = sum(fault.after + fault.seconds for fault in plan)
        pace = max(1.0, max(map(len, threads)) / lasts)
    return ConcurrentWorkload(commands=threads, faults=plan, rate=pace * len(threads))


def smaller(workload: ConcurrentWorkload) -> Iterator[ConcurrentWorkload]:
    """The same without a client, half of the commands of one, a command or a fault, or with a fault at once."""
    threads, faults = workload.commands, workload.faults
    pace = workload.rate / len(threads)
    if workload.settles:
        yield msgspec.structs.replace(workload, settles=False)

    def paced(
        commands: tuple[tuple[ClientCommand, ...], ...], faults: tuple[PlannedFault, ...]
    ) -> ConcurrentWorkload:
        rate = pace * len(commands) if faults else 0.0
        return msgspec.structs.replace(workload, commands=commands, faults=faults, rate=rate)

    for n, fault in enumerate(faults):
        yield paced(threads, (*faults[:n], *faults[n + 1 :]))
        if fault.after > 1 / PACE:
            sooner = msgspec.structs.replace(fault, after=round(fault.after / 2, 2))
            yield paced(threads, (*faults[:n], sooner, *faults[n + 1 :]))
    for n, thread in enumerate(threads):
        before, after = threads[:n], threads[n + 1 :]
        half = len(thread) // 2
        fewer = [thread[:half], thread[half:]] if half > 1 else []
        fewer += [thread[:k] + thread[k + 1 :] for k in range(len(thread))]
        for less in [(), *fewer]:
            rest = (*before, less, *after) if less else (*before, *after)
            if rest:
                yield paced(rest, faults)


def search_clients(
    system: FreshSystem,
    properties: Iterable[AnyProperty],
    *,
    clients: int,
    seconds: float,
    seed: int,
    most: int | None = None,
    patience: float = 5.0,
    faults: SmallFaults | None = None,
    on_progress: Callable[[int], None] = lambda count: None,
) -> ClientsOutcome:
    """Draw workloads for so many seconds, `most` at most; the first violation is made smaller, as long again.

    Raises `Fault` if the system does not start anew before a violation is found; afterwards the violation counts.
    """
    search = _Search(system, list(properties), patience, faults)
    outcome = search.outcome
    until = search.until = time.monotonic() + seconds
    n = 0
    while not outcome.violated and time.monotonic() < until and (most is None or n < most):
        workload = drawn(seed, n, clients, system.can, faults)
        n += 1
        search.try_one(workload)
        on_progress(outcome.runs)
    if outcome.workload is not None:
        search.until = time.monotonic() + seconds
        try:
            search.make_smaller(outcome.workload, search.until)
        except Fault as fault:
            outcome.failed = str(fault)
    outcome.findings = [tally.finding(id, system.name) for id, tally in search.tallies.items()]
    return outcome


class _Search:
    def __init__(
        self,
        system: FreshSystem,
        properties: list[AnyProperty],
        patience: float,
        faults: SmallFaults | None,
    ) -> None:
        self.system, self.properties, self.patience = system, properties, patience
        self.faults = faults
        self.disturbed = False
        """Whether nodes may still be finding each other after the faults of the last workload."""
        self.until = float("inf")
        """The `time.monotonic` until which workloads may run."""
        self.lasted = 0.0
        """Seconds that the last run took."""
        self.tallies: dict[str, FindingTally] = {}
        self.outcome = ClientsOutcome()

    def once(self, workload: ConcurrentWorkload) -> tuple[list[Finding], list[Event]]:
        """Run a workload from a fresh start; what is found, and its history.

        Raises `Fault` if the start was not fresh: no verdict can be had of messages that an earlier workload left.
        """
        begun = time.monotonic()
        if self.disturbed:
            time.sleep(WELL)
        self.disturbed = bool(workload.faults) and self.faults is not None and self.faults.nodes > 1
        self.system.reset()
        left = float("inf") if workload.faults else self.until - time.monotonic()
        names = f"w{self.outcome.runs + 1}m"
        with tempfile.TemporaryDirectory(prefix="seriatim-clients-") as folder:
            path = Path(folder) / "run.jsonl"
            with StreamedRecording(path, Header(run="r", rec="conform", clk="drive")) as recording:
                run = run_workload(
                    self.system,
                    workload,
                    recording,
                    nemesis=self.faults.injector if self.faults else None,
                    declares=self.faults.declares if self.faults else None,
                    patience=self.patience,
                    names=names,
                    seconds=max(2 * self.lasted, left),
                    draining=min(driving.DRAINING, max(DRAINING, left)),
                )
            events = list(complete(read_history(path).events))
        for event in events:
            if (
                event.ev in ("get", "deliver")
                and LEFT.match(event.m)
                and not event.m.startswith(names)
            ):
                raise Fault(
                    "stale",
                    f"gave {event.m}, which an earlier workload published: "
                    "a new object, or a reset, must leave no message of what was",
                )
        self.lasted = time.monotonic() - begun
        self.outcome.runs += 1
        self.outcome.commands += run.commands
        self.outcome.recorded += len(events)
        driven = DrivenRun(steps=[], events=events, fault=run.fault, why=run.why)
        return judged(driven, self.properties), events

    def try_one(self, workload: ConcurrentWorkload) -> None:
        """Run a workload, and keep the first violation that is seen."""
        findings, events = self.once(workload)
        for finding in findings:
            self.tallies.setdefault(finding.property, FindingTally()).add(finding)
            if finding.verdict is Verdict.VIOLATED and not self.outcome.violated:
                self.outcome.violated, self.outcome.workload = finding.property, workload
                self.outcome.events = events

    def shows(self, workload: ConcurrentWorkload) -> list[Event] | None:
        """The history of a workload if it shows the violation now."""
        findings, events = self.once(workload)
        found = {f.property: f for f in findings if f.verdict is Verdict.VIOLATED}
        if self.outcome.violated not in found:
            return None
        self.tallies[self.outcome.violated].add(found[self.outcome.violated])
        return events

    def make_smaller(self, workload: ConcurrentWorkload, until: float) -> None:
        """Make what showed the violation smaller until then, and see how often the smallest shows it.

        One that never does again was taken by luck: the one before it stands in its place. For that, time is kept.
        Raises `Fault` if the system fails; what was found until then is in the outcome.
        """
        outcome, begun = self.outcome, time.monotonic()
        steps = [(workload, outcome.events)]
        kept = (until - begun) / 2  # until it is known how long the tries take
        while (less := self.shrink(steps[-1][0], until - kept)) is not None:
            assert outcome.workload is not None
            steps.append((less, outcome.events))
            kept = min(kept, TRIES * self.lasted)
        self.show_again(until)
        while not outcome.shown and len(steps) > 1:
            steps.pop()
            outcome.workload, outcome.events = steps[-1]
            self.show_again(until)

    def show_again(self, until: float) -> None:
        """See in how many further runs the smallest workload shows the violation, of a few also if time is up."""
        outcome, outcome.shown, outcome.tried = self.outcome, 0, 0
        assert outcome.workload is not None
        for tried in range(TRIES):
            if tried > AGAIN and time.monotonic() > until:
                return  # each try of what never answers lasts as long as patience does
            events = self.shows(outcome.workload)
            outcome.tried += 1
            if events is not None:
                outcome.shown += 1
                if outcome.shown == 1:
                    outcome.events = events

    def shrink(self, workload: ConcurrentWorkload, until: float) -> ConcurrentWorkload | None:
        """A smaller workload that shows the violation, and then once more; it takes the place of the one before.

        Once is not enough: what an earlier workload did may show late, in one that has no part in it.
        """
        for less in smaller(workload):
            shown = 0
            for _ in range(TRIES):
                if time.monotonic() > until:
                    return None
                if (events := self.shows(less)) is not None:
                    shown += 1
                if events is not None and shown == AGAIN:
                    self.outcome.workload, self.outcome.events = less, events
                    return less
        return None
