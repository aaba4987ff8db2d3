"""P10 to P19 on hand-made histories: seen to hold, seen to fail, and seen to keep silent where they must."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seriatim_models.history import Event, Header, read_history, write_history
from seriatim_models.history.complete import complete
from seriatim_models.history.event import GAP
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox.consumers import SoleConsumer
from seriatim_models.properties.blackbox.wakeups import NoLostWakeup
from seriatim_models.properties.columnar.evaluator import judge_files
from seriatim_models.properties.whitebox.composites import COMPOSITES

from .blackbox_histories import BY_ID, Recording, check, counted, shown

OK, VIOLATED, INCONCLUSIVE = Verdict.OK, Verdict.VIOLATED, Verdict.INCONCLUSIVE


def consumer(r: Recording, by: str, prefetch: int | None = None, **fields: Any) -> None:
    """`by` asks for messages of q, and is confirmed."""
    at = {"conn": by, "ch": 1, "gen": 1}
    if prefetch is not None:
        r.add("qos", "invoke", prefetch=prefetch, scope="consumer", **at)
    for ph in ("invoke", "ok"):
        r.add("consume", ph, q="q", ctag=f"tag-{by}", **at, **fields)


# P10, alone


def test_p10_reports_a_second_consumer_beside_an_exclusive_one_in_either_order() -> None:
    for first, second in (({"exclusive": True}, {}), ({}, {"exclusive": True})):
        silent = Recording()
        silent.alive("a")
        consumer(silent, "a", **first)
        consumer(silent, "b", **second)
        # The first may have been killed without a word.
        assert check("P10", silent).verdict is not VIOLATED
        r = Recording()
        consumer(r, "a", **first)
        consumer(r, "b", **second)
        r.alive("a")
        found = check("P10", r)
        assert shown(found) == [1, 3, 4, 5]  # and an answer by which the first was there
        assert "is exclusive" in found.explanation


def test_p10_is_silent_when_the_first_may_be_gone_or_asked_at_the_same_time() -> None:
    ended = Recording()
    consumer(ended, "a", exclusive=True)
    ended.end("conn_drop", "a")
    consumer(ended, "b")
    assert check("P10", ended).verdict is OK  # that the first was alone
    lost = Recording()
    consumer(lost, "a", exclusive=True)
    lost.add(GAP)
    consumer(lost, "b")
    assert counted(check("P10", lost)) == (OK, 1, 0)
    together = Recording()
    for ph in ("invoke", "ok"):
        for by in ("a", "b"):
            together.add(
                "consume", ph, q="q", ctag=f"tag-{by}", conn=by, ch=1, gen=1, exclusive=by == "a"
            )
    assert counted(check("P10", together)) == (OK, 1, 1)


def test_p10_reports_a_delivery_past_the_single_active_consumer() -> None:
    for lo, end, verdict in ((6, None, VIOLATED), (4, None, OK), (6, "ch_close", OK)):
        r = Recording()
        r.add("declare", "ok", q="q", args={"x-single-active-consumer": True})
        consumer(r, "a")
        r.deliver("m0")
        r.deliver("m1")
        if end:
            r.end(end, "a")
        r.add("note")
        r.add("note")
        r.deliver("m2", "b", lo=lo)
        r.alive("a")
        found = check("P10", r)
        assert found.verdict is verdict, (lo, end)
        if verdict is VIOLATED:
            assert (
                "the single active consumer was a/1#1 tag-a, given m1 at event 4"
                in found.explanation
            )


TURNS = [
    ("a b", OK),  # b began, and was the active one from then on
    ("a b a", VIOLATED),  # a did not begin again
    ("a b c b", VIOLATED),
    ("a b c", OK),
    ("a b consume-a a", OK),
    ("a b end-c a", OK),  # the partitions of a topic are shared out anew among those that are left
    ("a b a end-a", OK),  # nobody knows whether it was there all the while
    ("a b gap a b a", VIOLATED),
    ("a b gap b a", OK),
]


def in_turn(script: str, **fields: Any) -> Recording:
    """What consumers of a queue with a single active one are given, each after the last was."""
    r = Recording()
    r.add("declare", "ok", q="q", args={"x-single-active-consumer": True})
    words = script.split()
    for by in sorted({w for w in words if len(w) == 1} | {w[-1] for w in words if "end" in w}):
        consumer(r, by, **fields)
    for n, word in enumerate(words):
        what, _, by = word.rpartition("-")
        if word == "gap":
            r.add(GAP)
        elif what == "consume":
            consumer(r, by, **fields)
        elif what == "end":
            r.end("conn_close", by)
        else:
            r.deliver(f"m{n}", by, lo=len(r.events))
    ended = {w[-1] for w in words if "end" in w}
    r.alive(*sorted({w for w in words if len(w) == 1} - ended))
    return r


@pytest.mark.parametrize(("script", "verdict"), TURNS)
def test_p10_the_active_consumer_may_change_once_for_each_that_begins(
    script: str, verdict: Verdict
) -> None:
    """In the form `joins`, and where consumers have priorities."""
    joins, events = SoleConsumer(joins=True), list(complete(in_turn(script).events))
    found = joins.check(events)
    assert (found.verdict is VIOLATED) is (verdict is VIOLATED), found
    if verdict is VIOLATED:
        assert joins.check(found.witness).verdict is VIOLATED
        assert "too few began or ended" in found.explanation
    ranks = check("P10", in_turn(script, cprio=1))
    assert ranks.verdict is found.verdict
    assert check("P10", in_turn(script)).verdict is VIOLATED or script == "a b a end-a"


def test_p10_an_answer_after_its_cancel_began_makes_nobody_the_active_consumer() -> None:
    for cancelled in (True, False):
        r = Recording()
        who = {"q": "q", "conn": "a", "ch": 1, "gen": 1, "ctag": "tag-a"}
        r.add("declare", "ok", q="q", args={"x-single-active-consumer": True})
        r.add("consume", "invoke", op=1, **who)
        if cancelled:
            r.add("cancel", "invoke", op=2, **who)
        r.add("consume", "ok", op=1, **who)
        r.deliver("m0")
        r.deliver("m1", "b", lo=len(r.events))
        r.alive("a", "b")
        assert (check("P10", r).verdict is VIOLATED) is not cancelled


# P11, consumer priorities


def ranked(lvl: str, prefetch: int | None, *given: str, low_lo: int | None = None) -> Recording:
    """`hi` above `lo`; `hi` holds what it was given when `lo` is given m9."""
    r = Recording(lvl)
    consumer(r, "hi", prefetch, cprio=5)
    consumer(r, "lo", cprio=0)
    for m in given:
        r.deliver(m, "hi", lo=len(r.events) - 1)
    r.deliver("m9", "lo", lo=len(r.events) - 1)
    return r


def test_p11_inside_the_broker_what_the_higher_one_holds_is_known() -> None:
    # m0 and m1 could have been given to lo, and m9 to hi, were that not full
    assert counted(check("P11", ranked("broker", 2, "m0", "m1"))) == (OK, 3, 0)
    for room in (ranked("broker", 2, "m0"), ranked("broker", None, "m0", "m1")):
        found = check("P11", room)
        assert found.verdict is VIOLATED
        assert "m9 was given to lo/1#1 tag-lo" in found.explanation
    settled = ranked("broker", 1, "m0")
    settled.settle("ack", "m0", by="hi")
    settled.deliver("m8", "lo")
    assert counted(check("P11", settled)) == (VIOLATED, 3, 0)


def test_p11_from_outside_a_delivery_past_a_lower_one_with_room_is_a_case() -> None:
    def past(prefetch: int | None, *given: str) -> Recording:
        r = Recording("api")
        consumer(r, "hi", 2, cprio=5)
        consumer(r, "lo", prefetch, cprio=0)
        for m in given:
            r.deliver(m, "lo", lo=0)
        r.deliver("m9", "hi", lo=len(r.events) - 1)
        return r

    assert counted(check("P11", past(2, "m0"))) == (OK, 1, 0)
    assert counted(check("P11", past(1, "m0"))) == (INCONCLUSIVE, 0, 0)  # lo may have been full
    assert counted(check("P11", past(None))) == (INCONCLUSIVE, 0, 0)  # or blocked


def test_p11_from_outside_the_next_delivery_shows_what_was_on_its_way() -> None:
    r = ranked("api", 2, "m0")
    assert counted(check("P11", r)) == (INCONCLUSIVE, 0, 1)  # m1 may be on its way to hi
    later = len(r.events)
    r.add("note")
    r.deliver("m2", "hi", lo=later)
    found = check("P11", r)
    assert counted(found) == (VIOLATED, 1, 0)
    on_its_way = ranked("api", 2, "m0")
    on_its_way.deliver("m2", "hi", lo=5)
    on_its_way.deliver("m3", "hi", lo=len(on_its_way.events))
    assert counted(check("P11", on_its_way)) == (INCONCLUSIVE, 0, 1)


# P12, callbacks


def callbacks(*steps: tuple[str, int, int | None], pool: int | None = None) -> Finding:
    r = Recording()
    r.add("conn_open", "ok", conn="a", args={"pool": pool} if pool else {})
    for what, ch, dtag in steps:
        r.add(f"cb_{what}", conn="a", ch=ch, gen=1, dtag=dtag)
    return check("P12", r)


def test_p12_one_at_a_time_in_order_and_no_more_than_threads() -> None:
    well = callbacks(("begin", 1, 1), ("end", 1, 1), ("begin", 1, 2), ("begin", 2, 1), pool=2)
    assert counted(well) == (OK, 3, 0)
    assert shown(callbacks(("begin", 1, 1), ("begin", 1, 2))) == [1, 2]
    backwards = callbacks(("begin", 1, 2), ("end", 1, 2), ("begin", 1, 1))
    assert "tag 1 (event 3) began after that of tag 2 (event 1)" in backwards.explanation
    crowded = callbacks(("begin", 1, 1), ("begin", 2, 1), pool=1)
    assert "2 callbacks of a ran, on 1 threads" in crowded.explanation


# P13, calls


def calls(lvl: str, *steps: tuple[str, int, str | None]) -> Finding:
    r = Recording(lvl)
    r.add("ch_open", "ok", conn="a", ch=1, gen=1)
    for ph, op, key in steps:
        r.add("rpc", ph, conn="a", ch=1, gen=1, op=op, key=key)
    return check("P13", r)


def test_p13_a_reply_goes_to_its_caller_once() -> None:
    assert counted(calls("api", ("invoke", 1, "x"), ("ok", 1, "x"))) == (OK, 1, 0)
    # A reply to no call is definite where calls are recorded at all; without any it may answer one.
    assert shown(calls("api", ("invoke", 1, "x"), ("ok", 2, None))) == [2]
    assert counted(calls("api", ("ok", 1, None))) == (INCONCLUSIVE, 0, 1)
    assert shown(calls("api", ("invoke", 1, None), ("ok", 1, None), ("ok", 1, None))) == [2, 3]
    crossed = calls("api", ("invoke", 1, "x"), ("ok", 1, "y"))
    assert "called for x at event 1 and got the reply to y" in crossed.explanation


def test_p13_two_calls_at_a_time_report_at_the_wire() -> None:
    steps = (("invoke", 1, None), ("invoke", 2, None), ("ok", 1, None), ("ok", 2, None))
    assert calls("wire", *steps).verdict is VIOLATED
    assert calls("api", *steps).verdict is OK


# P14, wake-ups


def idle(wait: int, *, settle: bool = True, ended: bool = False, alive: bool = True) -> Finding:
    """A consumer with room, a message, and nothing for `wait` events (ten ns each)."""
    r = Recording()
    consumer(r, "a", 1)
    r.publish("m0")
    r.deliver("m0")
    if settle:
        r.settle("ack", "m0")
    r.publish("m1")
    if ended:
        r.end("ch_close", "a")
    for _ in range(wait - 1):
        r.add("note", q="q")
    if alive:
        r.alive("a")
    return NoLostWakeup(within=50).check(r.events)


def test_p14_reports_a_consumer_left_waiting_beside_a_message() -> None:
    found = idle(6)
    assert found.verdict is VIOLATED
    assert [e.ev for e in found.witness] == ["consume", "publish", "qos", "qos"]
    assert "m1, confirmed at event 8, lay in q" in found.explanation
    assert counted(idle(5)) == (OK, 1, 1)
    assert counted(idle(6, alive=False)) == (OK, 1, 1)  # its client may have been killed


def test_p14_is_silent_about_a_consumer_that_is_full_or_gone() -> None:
    assert counted(idle(9, settle=False)) == (OK, 1, 0)
    assert counted(idle(9, ended=True)) == (OK, 2, 0)


# P15, logs


def log(
    *steps: tuple[str, int], lvl: str = "api", committed: str | None = "last", **fields: Any
) -> Finding:
    r = Recording(lvl)
    r.add("declare", q="q", args={"max_attempts": 2})
    for pos in range(6):
        r.add("publish", "ok", q="q", m=f"m{pos}", pos=pos)
    for ev, pos in steps:
        m = f"m{pos}" if ev == "deliver" else ""
        if ev == "commit" and committed:
            fields["args"] = {"committed": committed}
        r.add(ev, q="q", m=m, ctag="g", conn="a", ch=1, gen=1, pos=pos, **fields)
    return check("P15", r)


@pytest.mark.parametrize("ph", ["", "ok", "fail"])
def test_p15_a_topic_declares_for_all_its_partitions_how_often_it_tries(ph: str) -> None:
    r = Recording()
    r.add("declare", ph, q="q", args={"max_attempts": 2})
    for attempt in (1, 2, 3):
        r.add("deliver", q="q", m="m", ctag="g", conn="a", part=1, pos=0, attempt=attempt)
    assert (check("P15", r).verdict is VIOLATED) is (ph != "fail")


def test_p15_goes_by_what_a_commit_is_declared_to_mean() -> None:
    def after(commit: int, pos: int, meaning: str | None) -> Verdict:
        steps = (
            ("deliver", 0),
            ("deliver", 1),
            ("commit", commit),
            ("consume", 0),
            ("deliver", pos),
        )
        return log(*steps, committed=meaning).verdict

    assert [after(2, pos, "next") for pos in (1, 2, 3)] == [VIOLATED, OK, VIOLATED]
    assert [after(1, pos, "last") for pos in (1, 2, 3)] == [VIOLATED, OK, VIOLATED]
    assert [after(1, pos, None) for pos in (0, 1, 2, 3)] == [VIOLATED, OK, OK, VIOLATED]


def test_p15_the_meaning_may_stand_in_the_header(tmp_path: Path) -> None:
    for meaning, verdict in (("next", OK), ("last", VIOLATED)):
        path = tmp_path / f"{meaning}.jsonl"
        r = Recording()
        for pos in range(3):
            # A commit binds whoever begins after it: in one session reading goes on from where it is.
            r.add("consume", q="q", part=0, ctag="g")
            r.add("deliver", m=f"m{pos}", q="q", part=0, pos=pos, ctag="g")
            r.add("commit", q="q", part=0, pos=pos + 1, ctag="g")
        write_history(path, r.events, Header(run="r", params={"committed": meaning}))
        read = list(read_history(path).events)
        assert BY_ID["P15"].check(read).verdict is verdict
        [judged] = judge_files([path], [BY_ID["P15"]]).findings
        assert judged.verdict is verdict


def test_p15_a_commit_whose_outcome_is_unknown_binds_nobody() -> None:
    for ph in ("invoke", "info"):
        r = Recording()
        for pos in range(4):
            r.add("publish", "ok", q="q", m=f"m{pos}", pos=pos)
        steps: list[tuple[str, int]] = [
            ("deliver", 0),
            ("commit", 0),
            ("consume", 0),
            ("deliver", 0),
        ]
        for ev, pos in steps:
            m = f"m{pos}" if ev == "deliver" else ""
            phase = ph if ev == "commit" else ""
            r.add(
                ev,
                phase,
                q="q",
                m=m,
                ctag="g",
                conn="a",
                ch=1,
                gen=1,
                pos=pos,
                args={"committed": "last"},
            )
        assert check("P15", r).verdict is not VIOLATED
        r.add("consume", q="q", ctag="g", conn="a", ch=1, gen=1)
        r.add("deliver", q="q", m="m1", ctag="g", conn="a", ch=1, gen=1, pos=1)
        assert check("P15", r).verdict is not VIOLATED


def test_p15_a_member_that_reads_on_is_not_bound_by_the_next_owners_commit() -> None:
    r = Recording()
    for by, pos in (("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)):
        r.add("deliver", m=f"m{pos}", q="q", pos=pos, ctag="g", conn=by)
    r.add("commit", q="q", pos=3, ctag="g", conn="b", args={"committed": "next"})
    r.add("deliver", m="m2", q="q", pos=2, ctag="g", conn="a")
    assert check("P15", r).verdict is OK


def test_p15_in_order_gap_free_and_past_its_commits() -> None:
    well = log(("deliver", 0), ("deliver", 1), ("commit", 1), ("consume", 0), ("deliver", 2))
    assert counted(well) == (OK, 2, 1)
    assert "left out 1" in log(("deliver", 0), ("deliver", 2)).explanation
    assert "went back from position 1" in log(("deliver", 1), ("deliver", 0)).explanation
    again = log(("deliver", 0), ("commit", 0), ("consume", 0), ("deliver", 0))
    assert "although it had committed 0" in again.explanation
    skipped = log(("deliver", 0), ("commit", 0), ("consume", 0), ("deliver", 2))
    assert "left out 1" in skipped.explanation
    assert "in attempt 3; allowed are 2" in log(("deliver", 0), attempt=3).explanation


def test_p15_is_silent_after_a_seek_a_nack_and_over_unknown_positions() -> None:
    # A case: whether the seek names the last or the next position, 2 would leave one out.
    assert log(("deliver", 3), ("commit", 3), ("seek", 0), ("deliver", 1)).verdict is OK
    assert log(("deliver", 1), ("nack", 1), ("deliver", 0)).verdict is OK
    assert counted(log(("deliver", 5), ("deliver", 8))) == (INCONCLUSIVE, 0, 2)
    # Markers of transactions take positions too: what was never published is no message, wherever that is recorded.
    assert log(("deliver", 6), ("deliver", 8), lvl="broker").verdict is INCONCLUSIVE


# P16 to P19, white-box composites


@pytest.mark.parametrize(
    ("id", "part", "mutant"),
    [
        ("P16", "ES-1", "acquire-by-set"),
        ("P16", "ES-1", "published-immediate"),
        ("P17", "SP-2", "published-rewind"),
        ("P18", "QL-1", "left-in-the-old-list"),
        ("P19", "FQ-1", None),
    ],
)
def test_white_box_composites_report_what_their_parts_do(
    id: str, part: str, mutant: str | None
) -> None:
    from seriatim_models.explorer import Dpor, World, explore
    from seriatim_models.programs import MUTANTS, PROGRAMS
    from seriatim_models.programs.check import history, runnable

    found: list[Finding] = []

    class Seen(Exception):
        """An execution violated the property by this part; the rest of the search is not needed."""

    def judge(world: World) -> None:
        if not world.is_replay:
            found.append(BY_ID[id].check(history(world)))
            if found[-1].verdict is VIOLATED and found[-1].explanation.startswith(f"{part}:"):
                raise Seen

    chosen = MUTANTS[mutant] if mutant else next(m for m in MUTANTS.values() if m.killed_by == part)
    program = PROGRAMS[chosen.program]
    with pytest.raises(Seen):
        explore(runnable(program, chosen), Dpor(), max_executions=3000, on_execution=judge)
    assert {f.property for f in found} == {id}
    right: list[Finding] = []

    def keep(world: World) -> None:
        if not world.is_replay:
            right.append(BY_ID[id].check(history(world)))

    explore(runnable(program, None), Dpor(), max_executions=100, on_execution=keep)
    assert {f.verdict for f in right} <= {OK, INCONCLUSIVE}
    assert OK in {f.verdict for f in right}


def test_white_box_composites_read_nothing_that_a_client_recorded() -> None:
    seen = [Event(i=0, ev="deliver", m="m1", lvl="api"), Event(i=1, ev="close", lvl="api")]
    assert {p.check(seen).verdict for p in COMPOSITES} == {INCONCLUSIVE}
