"""What clients see of an execution of a program, and all that they can see of it over the right reference.

The outcome oracle of the matrix compares with the orders of two calls. A program has no orders; but the right
reference has a finite set of outcomes in it, over every schedule. A mutant whose outcome is not among them differs in
what clients see, whatever the properties say of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from seriatim_models.explorer import World

Args = Mapping[str, Any]

VISIBLE: Mapping[tuple[str, str], Callable[[Args], tuple[object, object] | None]] = {
    # what consumers of a queue are sent, what they settle, and what is left at the end
    ("deliver", ""): lambda a: (a["sub"], a["m"]),
    ("browse", ""): lambda a: (a["sub"], a["m"]),
    ("dequeue", "ok"): lambda a: ((a["sub"], a["m"]), a.get("done")),
    ("release", "ok"): lambda a: ((a["sub"], a["m"]), a.get("done")),
    ("snapshot", ""): lambda a: (a["q"], (a["entries"], a["depth"], a["groups"])),
    # what a client's calls return, what its consumers handle, and what the broker has at the end
    ("cli_call", "ok"): lambda a: ((a["conn"], a["ch"], a["call"]), a.get("got")),
    ("cli_call", "fail"): lambda a: ((a["conn"], a["ch"], a["call"]), a.get("why")),
    ("work_start", ""): lambda a: (a["k"], a["w"]),
    ("work_end", ""): lambda a: (a["k"], (a["w"], a.get("raised"))),
    ("cli_rest", ""): lambda a: ("", a["queued"]),
    ("srv_rest", ""): lambda a: ("", (a["queues"], a["unacked"])),
    # that a connection has ended at the broker: once
    ("srv_gone", ""): lambda a: (a["conn"], ""),
    # what a log's consumers handle and park, and where everybody is at the end
    ("handle", "ok"): lambda a: (a["channel"], a["body"]),
    ("handle", "fail"): lambda a: (a["channel"], a["body"]),
    ("park", ""): lambda a: (a["channel"], a["place"]) if "channel" in a else None,
    ("publish", "fail"): lambda a: ("", ""),
    ("log_rest", ""): lambda a: ("", (a["tail"], a["channels"])),
    # what a fair consumer takes, in which order, and what waits at the end
    ("take", ""): lambda a: ("", (a["slot"], a["weight"])),
    ("failed", ""): lambda a: ("", a["error"]),
    ("overrun", ""): lambda a: (a["slot"], ""),
    ("stopped", ""): lambda a: ("", ""),
    ("fair_rest", ""): lambda a: ("", (a["tokens"], a["waiting"], a.get("settlements"))),
}
"""Event and phase -> whom it concerns, and what of it is seen. What concerns one is in an order that all agree on."""


def seen_by_clients(world: World) -> dict[str, list[object]]:
    """Return what clients see of an execution: by event and whom it concerns, each sequence."""
    found: dict[str, list[object]] = {}
    for record in world.records:
        phase = str(record.args.get("ph", ""))
        look = VISIBLE.get((record.ev, phase))
        if look is not None and (seen := look(record.args)) is not None:
            found.setdefault(f"{record.ev} {phase} {seen[0]}", []).append(seen[1])
    return found


def digest(outcome: Mapping[str, object]) -> str:
    """Return a short text that differs when outcomes do."""
    text = msgspec.json.encode(sorted(outcome.items()), enc_hook=repr)
    return blake2b(text, digest_size=8).hexdigest()


class OutcomeSet:
    """Collects the outcomes of executions, or says which is not among those that are known."""

    def __init__(self, known: Iterable[str] | None = None) -> None:
        self.known = None if known is None else frozenset(known)
        """The outcomes of the right reference over every schedule; None if they are not known."""
        self.found: set[str] = set()
        self.unknown = ""
        """What was wrong with the first outcome that is not known."""

    def observe(self, world: World) -> str | None:
        """Take in an execution at its end; returns what is wrong with its outcome."""
        outcome = seen_by_clients(world)
        this = digest(outcome)
        self.found.add(this)
        if self.known is None or this in self.known:
            return None
        wrong = f"outcome: over the right reference no schedule has {outcome}"
        self.unknown = self.unknown or wrong
        return wrong

    def failed(self, raised: str) -> str | None:
        """Take in what the application's calls raised that they never do; returns what is wrong with it."""
        self.unknown = self.unknown or raised
        return f"outcome: {raised}" if raised else None
