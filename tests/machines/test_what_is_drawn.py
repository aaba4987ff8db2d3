"""Drawing is not vacuous: every word of what the machines are for is drawn, and the things really happen."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import Phase, given
from hypothesis.stateful import run_state_machine_as_test

import seriatim.queue as reference
from seriatim_models.history.event import Event
from seriatim_workshop.machines.profiles import checking
from seriatim_workshop.machines.queue.generated_programs import QueuePlan, plans
from seriatim_workshop.machines.queue.sequential import KINDS, machine

DRAWN = checking(300, stateful_step_count=50, phases=[Phase.generate])


class Enough(Exception):
    """All that is due has been drawn; the rest of the runs is not needed."""


def words(plan: QueuePlan) -> set[str]:
    """What a plan is about."""
    messages = [*plan.preloaded, *(m for publications in plan.publishers for m in publications)]
    said = {plan.kind, *(step for t in plan.consumers for step in t.script)}
    said |= {m.special for m in messages} | {t.keeps for t in plan.consumers}
    facts = {
        "acquiring": any(t.acquires for t in plan.consumers),
        "browsing": any(not t.acquires for t in plan.consumers),
        "exclusive": any(t.exclusive for t in plan.consumers),
        "priorities of consumers": len({t.priority for t in plan.consumers}) > 1,
        "priorities of messages": len({m.priority for m in messages}) > 1,
        "selectors": any(t.keys for t in plan.consumers),
        "credit": any(t.credit for t in plan.consumers),
        "no credit": any(t.credit == 0 for t in plan.consumers),
        "groups": len([m for m in messages if m.group]) > 1,
        "housekeeping": plan.housekeeping,
        "something is held by a consumer": any(t.held for t in plan.consumers),
        "hand-over on one IO thread": plan.io == 1,
        "hand-over on two": plan.io == 2,
        "targets shared": bool(plan.io)
        and len({t.target for t in plan.consumers}) < len(plan.consumers),
    }
    return said | {word for word, so in facts.items() if so}


DUE = {
    *("pull", "push", "attempt", "release", "dequeue", "grant", "pause", "resume", "close"),
    *("immediate", "delayed", "expiring", "keep", "return"),
    *("acquiring", "browsing", "exclusive", "priorities of consumers", "priorities of messages"),
    *("selectors", "credit", "no credit", "groups", "housekeeping"),
    *("something is held by a consumer", "hand-over on one IO thread", "hand-over on two"),
    "targets shared",
}


def test_every_word_is_drawn() -> None:
    seen: set[str] = set()

    @DRAWN
    @given(plan=plans())
    def look(plan: QueuePlan) -> None:
        seen.update(words(plan))
        if seen >= DUE:
            raise Enough

    with suppress(Enough):
        look()
    assert DUE - seen == set()


def happened(events: list[Event]) -> set[str]:
    """What came about in a history."""
    things = set()
    calls: list[str] = []
    for e in events:
        if e.ph == "invoke":
            calls.append(e.ev)
        things.add(e.ev)
        if e.ev == "entry_cas" and e.args["ok"]:
            things.add(f"{e.args['old']} to {e.args['new']} by {'/'.join(calls)}")
        elif e.ev == "attempt":
            things.add(f"path {e.args['path']}")
        elif e.ev == "consumer":
            things.add("exclusive" if e.exclusive else "selector" if e.args["keys"] else "consumer")
        elif e.ev == "ptr_cas":
            things.add(f"pointer: {e.args['cause']}")
        if e.ph == "ok":
            calls.pop()
    return things


BOTH = {
    *("browse", "deliver", "exclusive", "selector", "pointer: rewind", "pointer: advance"),
    "DELAYED to AVAILABLE by check_status",
    "AVAILABLE to DEQUEUED by check_status",
    "AVAILABLE to DEQUEUED by enqueue",
    "ACQUIRED to AVAILABLE by release",
    "ACQUIRED to AVAILABLE by close/release",
    "ACQUIRED to DEQUEUED by dequeue",
    "DEQUEUED to DELETED by dequeue",
}
OF = {
    "pull": BOTH | {"notify", "AVAILABLE to ACQUIRED by pull/attempt", "path pull"},
    "push": BOTH
    | {"AVAILABLE to ACQUIRED by enqueue/attempt", "AVAILABLE to ACQUIRED by attempt"}
    | {"path general", "path shortcut", "path job"},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_everything_happens_call_by_call(kind: str) -> None:
    seen: set[str] = set()

    def look(self: object) -> None:
        KINDS[kind].check_end(self)  # type: ignore[arg-type]  # a method, put into a class made below
        seen.update(happened(self.host.events))  # type: ignore[attr-defined]
        if seen >= OF[kind]:
            raise Enough

    watched = machine(kind, reference, check_end=look)
    with suppress(Enough):
        run_state_machine_as_test(watched, settings=DRAWN)
    assert OF[kind] - seen == set()
