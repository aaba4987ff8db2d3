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
    lemma: str = ""
    """In `spec/induction/composition.py`, if z3 derives it from claims of other systems."""


ASSUMPTIONS = (
    Assumption(
        ("entries",),
        "`entries`, `go_on`",
        "an iteration skips nothing that is linked and not deleted",
        "`nodes`, `nothing_live_between`",
        "an_iteration_skips_nothing",
    ),
    Assumption(
        ("entries",),
        "`entries`, `announce`, `rewind`",
        "a walk over the list of all comes to everybody who is in it all the while",
        "`nodes`, `nothing_live_between`",
        "a_walk_comes_to_everybody",
    ),
    Assumption(
        ("wakeups",),
        "`wakeups`, every move",
        "a consumer is in one list, and a move looks like one step to a walk",
        "`lists`, `at_most_one_list`, `a_walk_comes_to_the_interested`",
        "found_where_it_is",
    ),
    Assumption(
        ("wakeups",),
        "`wakeups`, `see`, `scan`",
        "a look misses nothing available but what its announcer still owes rewinds for",
        "`entries`, `a_look_misses_nothing`, `of_no_use_when_it_is_said`; each look of a followed execution is held "
        "against it",
        "a_look_scans_everything",
    ),
    Assumption(
        ("wakeups",),
        "`wakeups`, `settle`",
        "a call returns only when its thread is bound to nothing",
        "every followed execution: a step at each return",
    ),
    Assumption(
        ("wakeups",),
        "`wakeups`, `draw`",
        "a wake-up that lies there is drawn, and who has drawn it pulls",
        "`handover`, `nobody_is_left_waiting`, for the first half; the second: each followed execution, at its end",
        "a_wake_up_is_drawn",
    ),
    Assumption(
        ("jobs",),
        "`jobs`, `draw_permit`",
        "a permit of the executor that lies there is drawn at some time, and its job begun",
        "the executor's promise, which is not part of the reference; that the job of who has drawn it begins: each "
        "followed execution, at its end",
    ),
    Assumption(
        ("jobs",),
        "`jobs`, `be_refused`",
        "who refused a job asks for another, or sees that somebody does",
        "the executor's promise (`Submit` in `queue.py`)",
    ),
    Assumption(
        ("lists", "consumers", "wakeups"),
        "`lists`, `close`; `begin_pull` of `wakeups`; `run_out` of `consumers`",
        "close, grant, resume and pull come from the thread that runs the consumer",
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
