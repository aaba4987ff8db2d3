"""For each promise of the queue: what z3 proves of it, what Spin checks of it, and what of it is in no proof."""

from __future__ import annotations

from collections.abc import Iterator

from seriatim_models.programs import PROGRAMS
from seriatim_models.properties import PROPERTIES
from seriatim_workshop.formal import manifest, theory

NOT_IN_Z3 = {
    "SO-1": "that a call which returned before another began has the earlier place",
    "SO-3": "that only what was found is acquired: the guard of `acquire`, against which each followed one is held",
    "SO-4": "that what is shown was available meanwhile",
    "SO-5": "the order of sub-queues is that of places in `entries`, in which each followed look goes on",
    "SO-6": "the shortcut is a look as every other in `entries`",
    "SO-7": "with whom a push begins: no list of consumers has an order in a system",
    "ES-1": "",
    "ES-2": "",
    "ES-3": "that no browser is shown what is gone",
    "ES-4": "",
    "ES-5": "",
    "ES-6": "",
    "ES-7": "",
    "SO-2": "",
    "SP-1": "that a rewind has a reason: any thread may rewind at any time, which costs a look and never harms",
    "SP-2": "",
    "SP-3": "what an advance skips lies behind the pointer, of which SP-2 speaks",
    "IM-1": "",
    "IM-2": "it is the one step `give_up` of `entries`, which each followed discard takes",
    "IM-3": "",
    "IM-4": "that an immediate message, released meanwhile, asks for no job; browsers are asked, and none has to be",
    "WK-1": "browsers: `wakeups` says who wakes them, and not that they look",
    "WK-2": "that no second walk is begun for one message: each followed walk is held against `announce`",
    "WK-3": "what the client said last is in `consumers`, and that its list says the same in `lists`",
    "WK-4": "who of two priorities is woken first: here it is who takes it first",
    "WK-5": "it needs fair threads, of which an induction over steps says nothing: Spin does, and the end of each run",
    "WK-6": "that a thread gives turns only while it runs a connection",
    "WK-7": "who has run dry is bound to wake another (`run_dry`), by which WK-1 is proved",
    "WK-8": "that it stays in Notified while it finds messages: the guard of `return_with_something`",
    "WK-9": "that the flag of `lists` is the wish of `consumers`: both are compared with the one cell",
    "WK-10": "`handover` knows targets, and not their consumers; turns are counted in these programs",
    "WK-11": "that one wake-up is enough for each reason; they are counted by call, here and in the call matrix",
    "WK-12": "the sets of `handover` have no order; turns are counted in these programs",
    "QL-1": "that only the article's moves happen: the guards of `lists`",
    "QL-2": "",
    "QL-3": "",
    "QL-4": "what the walk itself appends while it goes on counts as a disturbance",
    "QL-5": "that a list is walked over in the order in which it was linked: `in_order` of `nodes`",
    "QL-6": "that it holds nothing when it leaves is ES-5; that it is no more the only one then: the guard of `leave`",
    "MG-1": "",
    "MG-2": "that it is owned as often as its holder has messages: the count is compared after each followed step",
    "TM-1": "that what has expired is not delivered: the guard of `find`",
    "TM-2": "",
    "AP-1": (
        "what ends: only that the hand-over serves, queues and schedules nothing without a reason; in the call matrix "
        "each call is held against what it declares"
    ),
}
"""Of each promise of the queue: what of it no claim of a system says; '' if the claims say it all."""


def _in_z3(id: str) -> str:
    """The systems with claims of a promise, or where it is only an invariant, and how many."""
    cells = []
    for name in theory.SYSTEMS:
        system = theory.load(name)
        claims = [*system.safety.values(), *system.steps.values()]
        n = sum(claim.property == id for claim in claims)
        invariants = sum(claim.property == id for claim in system.invariants.values())
        if n:
            cells.append(f"`{name}`: {n}")
        elif invariants:
            cells.append(f"`{name}`: {invariants} invariant{'s' * (invariants > 1)}")
    return ", ".join(cells)


def _in_spin(id: str) -> str:
    """The models with claims of a promise that hold within their bounds."""
    files = [run.file for run in manifest.read().runs if run.kind == "holds" and run.property == id]
    return ", ".join(f"`{file}`" for file in dict.fromkeys(files))


def promises() -> Iterator[str]:
    """Every promise of the queue: those that one of its programs tests, in the order of the register."""
    of_queue = [p for p in PROGRAMS.values() if p.reference == "queue"]
    tested = {id for program in of_queue for id in program.properties}
    yield from (id for id in PROPERTIES if id in tested)


def table() -> str:
    """One row a promise: claims in z3, models, programs under every schedule, and what of it z3 does not prove."""
    rows = [
        "| promise | z3, for any number: claims | Spin, within bounds | every schedule of | not proved in z3 of it |",
        "|---|---|---|---:|---|",
    ]
    for id in promises():
        of_queue = [p for p in PROGRAMS.values() if p.reference == "queue"]
        n = sum(id in program.properties for program in of_queue)
        in_z3 = _in_z3(id)
        rest = NOT_IN_Z3[id] or "nothing"
        cells = (
            id,
            in_z3 or "none",
            _in_spin(id) or "none",
            f"{n} program{'s' * (n != 1)}",
            rest if in_z3 else f"all of it: {rest}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
