"""One execution of the reference, followed in all systems at once: each shared write is explained, or it is rejected.

A write is a *step*, if at least one system takes an action for it; a *stutter*, if a system knows it by name and checks
that it changes nothing that is mapped; or *outside*, if it belongs to what no system speaks of, by `OUTSIDE`.
Anything else is unknown, and rejected. A lock and a semaphore are shared objects like a cell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from types import ModuleType

from seriatim_workshop.formal.concrete import NotThat
from seriatim_workshop.formal.follow_entries import Entries
from seriatim_workshop.formal.follow_handover import HandoverFollower
from seriatim_workshop.formal.follow_jobs import JobFollower
from seriatim_workshop.formal.follow_lists import Consumers, Lists, Nodes
from seriatim_workshop.formal.follow_wakeups import WakeupFollower
from seriatim_workshop.formal.follower import Follower, Participants
from seriatim_workshop.formal.recorder import HostOperation

OUTSIDE = {
    "answer": "what the threads of one client say to each other",
}
"""The last part of a shared object's name -> what it is. No system speaks of these writes."""

INSTEAD = ("it pushes", "it is pulled from")
"""Why `wakeups` or `jobs` does not speak of a queue: the other of the two does."""

KINDS = {
    "nodes": {"next", "tail", "walk", "iterate", "size", "state", "marked"},
    "entries": {"record", "now", "depth", "groups", "pointer", "state", "next", "marked"},
    "lists": {"acquire", "release", "qcm_move", "Interested", "wants_work", "next", "marked"},
    "handover": {"permits", "targets", "sessions", "ready", "scheduled", "notify", "pull"},
}
"""System -> the operations, kinds of objects and records that its follower does something with; if none, with all."""

SHORT = 240
"""Characters of a rejection that a table shows."""


def shortened(rejection: str) -> str:
    """A rejection for a table: cut between two words where it is long."""
    return rejection if len(rejection) <= SHORT else rejection[:SHORT].rpartition(" ")[0] + " ..."


def _without_addresses(text: str) -> str:
    """Objects of the reference by their class."""
    return re.sub(r"<([\w.]*\.)?(\w+)( object at 0x[0-9a-f]+)?>", r"\2", text)


class Simulation:
    """Follows one execution until it leaves a system. The operations are to be given to it one after the other."""

    def __init__(self, lib: ModuleType) -> None:
        self.context = Participants(lib)
        self.followers: list[Follower] = [Nodes(self.context), HandoverFollower(self.context)]
        self.rejected = ""
        """Where and why it left the specification; '' while it has not."""
        self.where = ""
        """The system that rejected it."""
        self.counts: Counter[tuple[str, str, str]] = Counter()
        """Of writes: what it was (step, stutter, outside), of which system, and of which kind of cell."""
        self.on_rejection: Callable[[], object] = lambda: None
        """Called once, when it is rejected: a program that then raises has no end."""

    def __call__(self, event: HostOperation) -> None:
        """Follow one operation, if none was rejected before."""
        if self.rejected:
            return
        self.where = ""
        try:
            self.follow(event)
        except NotThat as why:
            self.rejected = f"step {event.step}, {event}: {why}"
        except (AttributeError, KeyError, TypeError) as error:
            self.rejected = (
                f"step {event.step}, {event}: what it is mapped to is not there ({error!r})"
            )
        if self.rejected:
            self.rejected = _without_addresses(self.rejected)
            self.on_rejection()

    def follow(self, event: HostOperation) -> None:
        """Raises `NotThat` where the execution leaves a system."""
        self.context.see(event)
        if event.what == "new" and event.cell.endswith(".depth"):
            self._queue(event.cell.removesuffix(".depth"))
        explained = {}
        for follower in self.followers:
            kinds = KINDS.get(follower.system)
            if follower.outside or (
                kinds is not None and event.kind not in kinds and event.what not in kinds
            ):
                continue
            if event.what == "iterate" and not isinstance(follower, Nodes):
                continue  # it is no operation, and only `nodes` knows walks
            self.where = follower.system
            found = follower(event)
            if found:
                explained[follower.system] = found
        self.where = ""
        if event.writes:
            self._count(event, explained)

    def _queue(self, name: str) -> None:
        if name not in self.context.queues:
            self.context.queues.add(name)
            if not any(isinstance(f, Lists) for f in self.followers):
                self.followers.append(Lists(self.context))
            self.followers += [
                Entries(self.context, name),
                Consumers(self.context, name),
                WakeupFollower(self.context, name),
                JobFollower(self.context, name),
            ]

    def _count(self, event: HostOperation, explained: dict[str, str]) -> None:
        kind = f"{event.kind} drawn" if event.what == "acquire" else event.kind
        if explained:
            stutters = all(found.startswith("stutter") for found in explained.values())
            what = "stutter" if stutters else "step"
            self.counts[what, " ".join(sorted(explained)), kind] += 1
        elif event.kind in OUTSIDE:
            self.counts["outside", "", kind] += 1
        else:
            raise NotThat("no system has a step for this write")

    def end(self) -> None:
        """Compare every field once more, and look at every invariant."""
        if self.rejected:
            return
        for follower in self.followers:
            self.where = follower.system
            try:
                follower.check_end()
            except NotThat as why:
                self.rejected = f"at its end: {why}"
                return
            except (AttributeError, KeyError, TypeError) as error:
                self.rejected = f"at its end: what it is mapped to is not there ({error!r})"
                return

    @property
    def steps(self) -> int:
        """Steps of all systems that were taken."""
        return sum(follower.steps for follower in self.followers)

    @property
    def notes(self) -> set[str]:
        """Systems that do not speak of a queue, and why."""
        silent = [f for f in self.followers if f.outside and f.outside not in INSTEAD]
        return {f"{f.system}: {f.outside}" for f in silent}

    @property
    def actions(self) -> set[tuple[str, str]]:
        """Systems and actions that were taken."""
        return {(f.system, action) for f in self.followers for action in f.actions}
