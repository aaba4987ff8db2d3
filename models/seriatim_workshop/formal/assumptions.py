"""What the systems of `spec/induction` assume and do not prove themselves, in one list, with who shows it."""

from __future__ import annotations

from dataclasses import dataclass

from seriatim_workshop.formal.theory import SYSTEMS


@dataclass(frozen=True)
class Assumption:
    """Something that one or more systems take for granted."""

    systems: tuple[str, ...]
    where: str
    """In which actions; '' if in all of all systems."""
    what: str
    shown_by: str
    claim: str = ""
    """system/claim, if z3 proves it in another system."""


ASSUMPTIONS = (
    Assumption(
        ("entries",),
        "`entries`, `go_on`",
        "an iteration skips nothing that is linked and not deleted",
        "`nodes`, `nothing_live_between`",
        "nodes/nothing_live_between",
    ),
    Assumption(
        ("entries",),
        "`entries`, `announce`, `rewind`",
        "a walk over the list of all comes to everybody who is in it all the while",
        "`nodes`, `nothing_live_between`",
        "nodes/nothing_live_between",
    ),
    Assumption(
        ("wakeups",),
        "`wakeups`, every move",
        "a consumer is in one list, and a move looks like one step to a walk",
        "`lists`, `at_most_one_list`",
        "lists/at_most_one_list",
    ),
    Assumption(
        ("wakeups",),
        "`wakeups`, `see`, `scan`",
        "a look misses nothing available but what its announcer still owes rewinds for",
        "`entries`, `a_look_misses_nothing`; each look of a followed execution is held against it",
        "entries/a_look_misses_nothing",
    ),
    Assumption(
        ("wakeups",),
        "`wakeups`, `settle`",
        "a call returns only when its thread is bound to nothing",
        "every followed execution: a step at each return",
    ),
    Assumption(
        ("wakeups",),
        "`wakeups`, `permit`",
        "who is woken will pull",
        "`handover`, `nobody_is_left_waiting`; that a target asks each of its consumers: the explorer (WK-10)",
        "handover/nobody_is_left_waiting",
    ),
    Assumption(
        ("jobs",),
        "`jobs`, `set_pending`",
        "a job that was submitted begins at some time",
        "the executor's promise, which is not part of the reference; an IO thread's: `handover`",
    ),
    Assumption(
        ("lists", "wakeups"),
        "`lists`, `close`; `begin_pull` of `wakeups`",
        "close, resume and pull come from the thread that runs the consumer",
        'what a caller must keep ("What this file does not know")',
    ),
    Assumption(
        SYSTEMS,
        "",
        "sequential consistency; what the reference reads in one operation is one step",
        "the host's contract; nothing here is about weaker memory",
    ),
    Assumption(
        SYSTEMS,
        "",
        "the systems say what the code does",
        "the followed executions: within their programs, see [FOLLOWED.md](FOLLOWED.md)",
    ),
)
