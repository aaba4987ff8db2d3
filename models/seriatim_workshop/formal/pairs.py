"""The small programs that exist twice: in Promela, and over the reference. What their outcomes are, in the same words.

The outcome of an execution is what is so at its end. In Promela it is a number that the model prints;
in Python it is read from what the reference recorded. `outcomes` computes both sets and compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from seriatim import handover
from seriatim_models.explorer import World
from seriatim_models.explorer.model.world import Record
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.base import Mutant
from seriatim_models.programs.check import runnable
from seriatim_models.recording.queue import recorded

Records = list[Record]


@dataclass(frozen=True)
class Pair:
    """One program, twice."""

    program: str
    file: str
    flags: list[str]
    description: str
    """What an outcome is."""
    words: Callable[[int], str]
    """The model's number, in words."""
    observe: Callable[[Records], str]
    """The same words, from what the reference recorded."""
    mutant: str = ""
    run: Callable[[World], None] | None = field(default=None, compare=False)
    """Where there is no registered program."""

    @property
    def name(self) -> str:
        """The program, with its mutant if it has one."""
        return f"{self.program}{'+' * bool(self.mutant)}{self.mutant}"

    def python(self) -> Callable[[World], None]:
        """The program, which records at its end what the outcome was."""
        mutant: Mutant | None = MUTANTS[self.mutant] if self.mutant else None
        run = self.run or runnable(PROGRAMS[self.program], mutant)

        def program(world: World) -> None:
            run(world)
            world.at_end(lambda: world.result(self.observe(world.records)))

        return program


def snapshot(records: Records) -> dict[str, Any]:  # Any: the snapshot that the queue records
    """The state of the queue at the end."""
    return next(r.args for r in reversed(records) if r.ev == "snapshot")


def entries(records: Records) -> list[tuple[str, str, list[int]]]:
    """State, holder and place of each entry that is left, in order."""
    left = snapshot(records)["entries"]
    return [(state, holder, place) for _, place, state, holder in left]


def count(records: Records, ev: str, **args: object) -> int:
    """How many records have this event and these arguments."""
    return sum(r.ev == ev and args.items() <= r.args.items() for r in records)


# ---- immediate.pml

ENTRY_STATES = {0: "available", 1: "gone", 2: "gone", 3: "available", 4: "held"}


def entry_words(code: int) -> str:
    """The model's number in words: the tens are the state, the units the deliveries."""
    return f"{ENTRY_STATES[code // 10]}, delivered {code % 10} times"


def entry_state(records: Records) -> str:
    """The state of the only entry at the end, and how often it was delivered."""
    left = entries(records)
    state = "gone" if not left else "held" if left[0][0] == "ACQUIRED" else "available"
    return f"{state}, delivered {count(records, 'deliver')} times"


# ---- pointers.pml, two_pointers.pml

HOLDERS = {0: "nobody", 3: "A", 4: "B"}


def holders_words(code: int) -> str:
    """Behind a 1 a digit for each entry, and whether B's pointer is past one that is available."""
    digits = str(code)
    return _held([HOLDERS[int(digit)] for digit in digits[1:-1]], digits[-1] == "1")


def holders(records: Records) -> str:
    """Who holds each entry that is left, and whether B's pointer is past one that is available."""
    left = entries(records)
    pointer = snapshot(records)["consumers"]["B"]["pointer"]
    missed = any(state == "AVAILABLE" and pointer > [*place, 0] for state, _, place in left)
    return _held([holder or "nobody" for _, holder, _ in left], missed)


def _held(by: list[str], missed: bool) -> str:
    return f"held by {', '.join(by)}" + ", and B's pointer is past one" * missed


# ---- wakeups.pml

WAKE_STATES = {1: "waits", 2: "to high", 3: "to low"}
LISTED = ("NotInterested", "Interested", "Notified")


def resting_words(code: int) -> str:
    """The model's number in words: four digits, two messages and two lists."""
    first, second, high, low = (int(digit) for digit in f"{code:04}")
    taken = [WAKE_STATES[state] for state in (first, second) if state]
    return f"{', '.join(taken)}; high {LISTED[high]}, low {LISTED[low]}"


def resting(records: Records) -> str:
    """A consumer that is alone counts as the low one; there is then none of high priority, so it wants nothing."""
    where = {"high": "NotInterested"}
    end = snapshot(records)
    left = end["entries"]
    waits = {m for m, _, state, _ in left if state == "AVAILABLE"}
    for name, (members, _) in end["lists"].items():
        if not name.endswith(".All"):
            where |= {"low" if m == "A" else m: name.split(".")[1] for m in members}
    by_high = {m for m, _, _, holder in left if holder == "high"}
    messages = sorted({str(r.args["m"]) for r in records if r.ev == "enqueue"})
    taken = ["waits" if m in waits else "to high" if m in by_high else "to low" for m in messages]
    return f"{', '.join(taken)}; high {where['high']}, low {where['low']}"


# ---- handover.pml


class OneShotTarget:
    """A target with something to do, once."""

    name = "target"

    def __init__(self, world: World) -> None:
        self._world = world

    def process(self) -> bool:
        """Record one piece of work; there is no more."""
        self._world.record("did")
        return False


def two_sessions(world: World) -> None:
    """Two threads notify, each its own session; one connection; two IO threads."""
    scheduler = handover.Scheduler(recorded(world.host))
    connection = handover.Connection(scheduler, "conn")
    for number in range(2):
        session = handover.Session(connection, f"session{number}")
        target: Any = OneShotTarget(world)  # Any: it has all of a target that a session uses

        def notifier(session: handover.Session = session, target: Any = target) -> None:
            session.notify_work(target)

        world.spawn(notifier, name=f"notifier{number}")

    def io_thread() -> None:
        while True:
            scheduler.run_one()

    world.spawn(io_thread, name="io1", daemon=True)
    world.spawn(io_thread, name="io2", daemon=True)


def runs_words(code: int) -> str:
    """The model's number in words: the tens are runs, the units services."""
    return f"the connection ran {code // 10} times, and served {code % 10}"


def runs(records: Records) -> str:
    """How often the connection ran, and how often a session did its work."""
    ran = count(records, "conn_run", at="begin")
    return f"the connection ran {ran} times, and served {count(records, 'did')}"


# ---- log.pml


def slept_words(code: int) -> str:
    """The model's number in words: the tens are sleeps, the units messages."""
    return f"slept {code // 10} times, handled {code % 10}"


def slept(records: Records) -> str:
    """How often the consumer slept, and how many messages it handled."""
    handled = count(records, "handle", ph="ok")
    return f"slept {count(records, 'sleep')} times, handled {handled}"


# ---- pool.pml: two digits a callback, the worker and which item of which channel

ITEMS = {1: "a:1", 2: "a:2", 3: "a:3", 4: "b:1", 5: "b:2", 6: "b:3"}


def order_words(code: int) -> str:
    """The model's number in words: two digits for each callback."""
    text = str(code)
    where = range(0, len(text), 2)
    return ", ".join(f"{ITEMS[int(text[i + 1])]} on pool{text[i]}" for i in where)


def order(records: Records) -> str:
    """Which item ran on which thread, in order."""
    return ", ".join(f"{r.args['w']} on {r.thread}" for r in records if r.ev == "work_start")


# ---- fair.pml


def rounds_words(code: int) -> str:
    """The model's number in words: the tens are rounds, the units what is left."""
    return f"{code // 10} rounds, {code % 10} left waiting"


def rounds(records: Records) -> str:
    """How many rounds the loop made, and how many consumers are left waiting."""
    waiting = next(r.args["waiting"] for r in records if r.ev == "fair_rest")
    return f"{count(records, 'round')} rounds, {waiting} left waiting"


# ---- list.pml

ARRIVING = "A@list#2"


def met_words(code: int) -> str:
    """The model's number in words: deleted, met by the first walk, lost."""
    deleted, met, lost = code // 100 == 1, code // 10 % 10 == 1, code % 10 == 1
    return _met(deleted, met, deleted or lost)


def met(records: Records) -> str:
    """What became of the new node: deleted, met by the first walk, still there."""
    deleted = count(records, "mark", node=ARRIVING) > 0
    first = any(r.ev == "walk" and r.thread == "first" and r.args.get("node") == ARRIVING for r in records)  # fmt: skip
    ends = [k for k, r in enumerate(records) if r.ev == "walk" and r.args["at"] == "begin"]
    left = any(r.args.get("node") == ARRIVING for r in records[ends[-1] :] if r.ev == "walk")
    return _met(deleted, first, not left)


def _met(deleted: bool, first: bool, gone: bool) -> str:
    return (
        f"the new node: {'deleted' if deleted else 'not deleted'}, {'' if first else 'not '}met by the first, "
        f"{'gone' if gone else 'still there'}"
    )


# ---- all of them


def _fair(*numbers: int) -> list[str]:
    quanta, there, in_all = (
        ("FIRST_QUANTUM", "SECOND_QUANTUM"),
        ("FIRST_THERE", "SECOND_THERE"),
        ("FIRST", "SECOND"),
    )
    names = ("WEIGHT", *quanta, *there, *in_all)
    return [f"-D{n}={v}" for n, v in zip(names, numbers, strict=True)]


ENTRY_STATE = ("the entry's state, and how often it was delivered", entry_words, entry_state)
HOLD = ("who holds each entry, and whether a pointer misses one", holders_words, holders)
RESTS = ("who took each message, and in which list each consumer is", resting_words, resting)
SLEEPS = ("how often the consumer slept", slept_words, slept)
ORDER = ("which callback ran where, in which order", order_words, order)
ROUNDS = ("how many rounds the loop made", rounds_words, rounds)

REPAIR_AS_PUBLISHED = ["-DRELEASES", "-DPUBLISHED_REPAIR"]

PAIRS = [
    Pair("immediate-race", "immediate.pml", [], *ENTRY_STATE),
    Pair("immediate-returned", "immediate.pml", ["-DRELEASES"], *ENTRY_STATE),
    Pair("release-behind", "pointers.pml", [], *HOLD),
    Pair("priority-arrival", "pointers.pml", ["-DARRIVAL"], *HOLD),
    Pair("release-again", "two_pointers.pml", [], *HOLD),
    Pair("enqueue-rest", "wakeups.pml", ["-DALONE"], *RESTS),
    Pair("priority-pause", "wakeups.pml", ["-DPAUSE"], *RESTS),
    Pair("consumer-priorities", "wakeups.pml", ["-DONE_THERE"], *RESTS),
    Pair("two-sessions", "handover.pml", [], "how often the connection ran", runs_words, runs, run=two_sessions),
    Pair("log-rest", "log.pml", ["-DBACKLOG=0", "-DNEWS=1"], *SLEEPS),
    Pair("log-two-messages", "log.pml", ["-DBACKLOG=0", "-DNEWS=2"], *SLEEPS),
    Pair("log-backlog-and-news", "log.pml", ["-DBACKLOG=1", "-DNEWS=1"], *SLEEPS),
    Pair("pool-one-channel", "pool.pml", ["-DFIRST=2", "-DSECOND=0", "-DBLOCK=1", "-DWORKERS=2"], *ORDER),
    Pair("pool-two-channels", "pool.pml", ["-DFIRST=2", "-DSECOND=1", "-DBLOCK=3", "-DWORKERS=1"], *ORDER),
    Pair("fair-park", "fair.pml", _fair(1, 2, 1, 0, 0, 2, 0), *ROUNDS),
    Pair("fair-heavy", "fair.pml", _fair(3, 1, 1, 1, 0, 2, 0), *ROUNDS),
    Pair("fair-two-brokers", "fair.pml", _fair(1, 2, 1, 2, 2, 2, 3), *ROUNDS),
    Pair("consumer-list", "list.pml", [], "what became of the new node", met_words, met),
    # broken variants: the mutant of the reference, and the same mistake in the model
    Pair("immediate-race", "immediate.pml", ["-DPUBLISHED"], *ENTRY_STATE, "published-immediate"),
    Pair("immediate-returned", "immediate.pml", REPAIR_AS_PUBLISHED, *ENTRY_STATE, "published-immediate-repair"),
    Pair("release-behind", "pointers.pml", ["-DPUBLISHED_REWIND"], *HOLD, "published-rewind"),
    Pair("priority-arrival", "pointers.pml", ["-DARRIVAL", "-DPUBLISHED_REWIND"], *HOLD, "published-priority-arrival"),
    Pair("release-behind", "pointers.pml", ["-DPUBLISHED_BY_VALUE"], *HOLD, "published-pointer-by-value"),
    Pair("release-again", "two_pointers.pml", ["-DPUBLISHED"], *HOLD, "published-two-pointers"),
    Pair("enqueue-rest", "wakeups.pml", ["-DALONE", "-DLOOK_THEN_REST"], *RESTS, "published-look-then-rest"),
]  # fmt: skip
"""Programs that have no model of their own are not here."""
