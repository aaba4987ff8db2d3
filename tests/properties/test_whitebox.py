"""White-box properties: cut anywhere and combined they say the same, and on nothing they say nothing."""

from itertools import pairwise

import msgspec
import pytest

import seriatim.queue as reference
from seriatim_models.history import Event
from seriatim_models.properties import PROPERTIES, WHITEBOX, Verdict
from seriatim_models.properties.base import AnyProperty, audit
from seriatim_models.properties.whitebox.judging import judge
from seriatim_models.recording.queue import snapshot
from seriatim_workshop.machines.queue.generated_programs import PlannedConsumer, QueuePlan
from seriatim_workshop.machines.threads import ThreadStage

from .whitebox_histories import histories, numbered

PLACES = (0, 1, 7, 19, 40, 41, 90, 10_000)
"""Where histories are cut: before everything, in the set-up, amid the race, behind the end."""


@pytest.mark.parametrize("p", WHITEBOX, ids=lambda p: p.id)
def test_cut_anywhere_and_combined_is_the_whole(p: AnyProperty) -> None:
    verdicts = set()
    for events in histories():
        whole = p.finish(p.map(events))
        verdicts.add(whole.verdict)
        pieces = [p.map(events[a:b]) for a, b in pairwise(sorted({*PLACES, len(events)}))]
        left = p.map([])
        for piece in pieces:
            left = p.combine(left, piece)
        assert p.finish(left) == whole
        right = p.map([])
        for piece in reversed([p.map(events[a:b]) for a, b in pairwise(PLACES)]):
            right = p.combine(piece, right)
        assert p.finish(right) == whole
    assert Verdict.OK in verdicts


def test_judging_together_is_judging_one_by_one() -> None:
    for events in histories()[:5]:
        assert judge(events, WHITEBOX) == audit(events, WHITEBOX)


@pytest.mark.parametrize("p", WHITEBOX, ids=lambda p: p.id)
def test_nothing_is_not_proof(p: AnyProperty) -> None:
    assert p.check([]).verdict is Verdict.INCONCLUSIVE


def test_what_a_broker_showed_is_not_read_as_what_the_reference_did() -> None:
    seen = [Event(i=0, ev="deliver", m="m1", lvl="api"), Event(i=1, ev="close", lvl="api")]
    assert {f.verdict for f in audit(seen, WHITEBOX)} == {Verdict.INCONCLUSIVE}


def test_a_browser_need_not_be_woken_for_what_had_expired_when_it_came() -> None:
    """Found in a long recording of drawn messages: WK-2 reported a violation by the reference."""
    stage = ThreadStage()
    queue = QueuePlan(consumers=(PlannedConsumer(acquires=False),)).start(reference, stage).queue
    stage.pass_time(2)
    for id, expires in (("late", 1), ("good", 0)):
        queue.enqueue(reference.Message(id, expires=expires))
    stage.record("snapshot", **snapshot(queue))
    events = stage.history()
    assert [e.ev for e in events].count("notify") == 1
    (found,) = audit(events, [PROPERTIES["WK-2"]])
    assert (found.verdict, found.n_tested) == (Verdict.OK, 1)


def later(events: list[Event], moved: slice, to: int) -> list[Event]:
    """The same, but some of it was recorded only then: between a step and its record a thread may be stopped."""
    rest = [e for e in events if e not in events[moved]]
    at = rest.index(events[to])
    return numbered([*rest[: at + 1], *events[moved], *rest[at + 1 :]])


def test_who_took_up_its_place_first_may_be_woken_first_though_it_was_recorded_last() -> None:
    """Found in recordings of real threads: QL-5 went by the record of having arrived, which is not the arrival."""
    stage = ThreadStage()
    queue = (
        QueuePlan(consumers=(PlannedConsumer(), PlannedConsumer())).start(reference, stage).queue
    )
    queue.enqueue(reference.Message("m"))
    events = stage.history()
    first, last = (
        max(
            e.i
            for e in events
            if e.ev == "qcm_move" and e.args["sub"] == sub and e.proc and e.i < m.i
        )
        for m in (e for e in events if e.ev == "enqueue" and e.ph == "invoke")
        for sub in ("C1", "C2")
    )
    moved = later(events, slice(first, first + 1), last)
    (found,) = audit(moved, [PROPERTIES["QL-5"]])
    assert (found.verdict, found.n_tested) == (Verdict.OK, 1)


def test_a_wake_up_is_as_old_as_the_move_though_it_was_recorded_later() -> None:
    """Found in recordings of real threads: WK-8 took a wake-up for a second one."""
    stage = ThreadStage()
    queue = QueuePlan(consumers=(PlannedConsumer(),)).start(reference, stage).queue
    (consumer,) = queue.all.consumers()
    queue.enqueue(reference.Message("m"))
    enqueued = len(stage.events)
    queue.deliver_single_message(consumer)
    events = stage.history()
    (woken,) = (e.i for e in events if e.ev == "notify")
    mine = [msgspec.structs.replace(e, proc="P" if e.i < enqueued else "C1") for e in events]
    moved = later(mine, slice(woken, enqueued), len(events) - 1)
    (found,) = audit(moved, [PROPERTIES["WK-8"]])
    assert (found.verdict, found.n_tested) == (Verdict.OK, 1)


def test_a_group_that_is_counted_twice_is_leaked_though_its_owner_is_right() -> None:
    """The consumer that holds one message of the group would own it still after it released that."""
    stage = ThreadStage()
    queue = QueuePlan(consumers=(PlannedConsumer(),)).start(reference, stage).queue
    (consumer,) = queue.all.consumers()
    queue.enqueue(reference.Message("m", group="g"))
    queue.deliver_single_message(consumer)
    shot = snapshot(queue)
    assert shot["group_counts"] == {"g": 1}
    verdicts = []
    for counts in ({"g": 1}, {"g": 2}, {}):
        rest = Event(
            i=9_999, ev="snapshot", lvl="model", q="q", args={**shot, "group_counts": counts}
        )
        (found,) = audit([*stage.history(), rest], [PROPERTIES["MG-2"]])
        verdicts.append(found.verdict)
    assert verdicts == [Verdict.OK, Verdict.VIOLATED, Verdict.VIOLATED]
