"""Histories that the reference, and its mutants, record of themselves; and the same with a few things gone wrong."""

from __future__ import annotations

import random
from functools import cache

import msgspec

from seriatim_models.explorer import Dpor, Random, World, explore
from seriatim_models.history import Event
from seriatim_models.programs import MUTANTS, PROGRAMS, Mutant, Program
from seriatim_models.programs.check import history, runnable

STATES = ("DELAYED", "AVAILABLE", "ACQUIRED", "DEQUEUED", "DELETED")


def sampled(
    program: Program, mutant: Mutant | None, samples: int, strategy: Random | Dpor | None = None
) -> list[list[Event]]:
    found: list[list[Event]] = []

    def keep(world: World) -> None:
        if not world.is_replay:
            found.append(history(world))

    explore(
        runnable(program, mutant),
        strategy or Random(seed=3),
        max_executions=samples,
        on_execution=keep,
    )
    return found


@cache
def histories() -> list[list[Event]]:
    """A few histories of each program, and of each mutant with the program in which its property is broken."""
    return [
        *(events for p in PROGRAMS.values() for events in sampled(p, None, 8)),
        *(events for m in MUTANTS.values() for events in sampled(PROGRAMS[m.program], m, 2)),
    ]


@cache
def queue_histories() -> list[list[Event]]:
    """Those of queues; with more of a mutant that drawn schedules seldom show."""
    rare = MUTANTS["nobody-else-is-told"]
    return [
        *(events for events in histories() if any(e.ev == "queue" for e in events)),
        *sampled(PROGRAMS[rare.program], rare, 100, Dpor(real_time=True)),
    ]


def numbered(events: list[Event]) -> list[Event]:
    return [msgspec.structs.replace(e, i=i) for i, e in enumerate(events)]


def spoilt(choose: random.Random, events: list[Event]) -> list[Event]:
    """Nothing or a few things changed: events that moved, are missing or doubled, or say something else."""
    events = list(events)
    for _ in range(choose.choice([0, 1, 1, 2, 4, 10])):
        k = choose.randrange(len(events))
        match choose.choice(["move", "drop", "double", "who", "what", "what"]):
            case "move":
                events.insert(choose.randrange(len(events)), events.pop(k))
            case "drop":
                events.pop(k)
            case "double":
                events.insert(k, events[k])
            case "who" if "sub" in events[k].args:
                events[k] = _saying(events[k], sub=_other(choose, events, "", "sub"))
            case "what":
                events[k] = _otherwise(choose, events, events[k])
    return numbered(events)


def _otherwise(choose: random.Random, events: list[Event], e: Event) -> Event:
    if e.ev == "link":
        return _saying(e, place=_other(choose, events, "link", "place"))
    if e.ev == "entry_cas":
        return _saying(e, **{choose.choice(["old", "new"]): choose.choice(STATES)})
    if e.ev == "ptr_cas":
        which = choose.choice(["old", "new"])
        return _saying(e, **{which: _other(choose, events, "ptr_cas", which)})
    return e


def _other(choose: random.Random, events: list[Event], ev: str, arg: str) -> object:
    return choose.choice([e.args[arg] for e in events if arg in e.args and ev in ("", e.ev)])


def _saying(e: Event, **args: object) -> Event:
    return msgspec.structs.replace(e, args={**e.args, **args})
