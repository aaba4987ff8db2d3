"""Each black-box property on hand-made histories: seen to hold, seen to fail, and seen to keep silent where it must."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seriatim_models.history import Event
from seriatim_models.history.event import GAP
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.requeue import RequeueLateness

from .blackbox_histories import BY_ID, Recording, check, counted, late, shown

# P1, conservation


def drained(r: Recording, depth: int = 0) -> None:
    """The consumer closes, and somebody looks into the queue."""
    r.end("ch_close", "a")
    r.end("ch_close", "a", "ok")
    r.add("note", "info", q="q", args={"depth": depth})


def consumed(*delivered: str) -> Recording:
    r = Recording()
    for m in ("m0", "m1"):
        r.publish(m)
    r.add("consume", "invoke", q="q", ctag="tag-a", conn="a", ch=1, gen=1)
    for m in delivered:
        r.deliver(m)
        r.settle("ack", m)
    return r


def test_p1_holds_when_all_that_was_confirmed_is_settled() -> None:
    r = consumed("m0", "m1")
    drained(r)
    assert counted(check("P1", r)) == (Verdict.OK, 4, 0)  # two deliveries, two messages


def test_p1_reports_a_message_never_handed_out_of_a_drained_queue() -> None:
    r = consumed("m0")
    drained(r)
    found = check("P1", r)
    assert found.verdict is Verdict.VIOLATED
    assert shown(found) == [2, 3, 9]  # its publish, its confirm, the look
    assert "m1 was confirmed for q, which was drained, but nobody ever got it" in found.explanation


def test_p1_reports_a_requeued_message_that_never_came_back() -> None:
    r = consumed("m0")
    r.deliver("m1")
    r.settle("nack", "m1")
    drained(r)
    assert "m1 was requeued to q by a/1#1" in check("P1", r).explanation


def test_p1_is_silent_on_loss_where_a_message_may_still_be_somewhere() -> None:
    not_looked = consumed("m0")
    not_empty = consumed("m0")
    drained(not_empty, depth=1)
    still_consuming = consumed("m0")
    still_consuming.add("note", "info", q="q", args={"depth": 0})
    limited = consumed("m0")
    limited.add("declare", "ok", q="q", args={"x-max-length": 1})
    drained(limited)
    lines_lost = consumed("m0")
    lines_lost.add(GAP)
    drained(lines_lost)
    for r in (not_looked, not_empty, still_consuming, limited, lines_lost):
        assert counted(check("P1", r)) == (Verdict.OK, 2, 1)


def test_p1_reports_a_phantom_unless_its_publish_may_be_lost() -> None:
    r = consumed("m0")
    r.deliver("m7")
    found = check("P1", r)
    assert (found.verdict, found.explanation) == (
        Verdict.VIOLATED,
        "m7 was given to a/1#1 at event 7, but nobody sent it",
    )
    r.events.insert(0, Event(i=-1, ev=GAP))
    assert check("P1", r).verdict is Verdict.OK


def test_p1_reports_a_delivery_after_ack_unless_the_channel_ended() -> None:
    r = consumed("m0")
    r.deliver("m0", "b")
    assert (
        check("P1", r).verdict is Verdict.VIOLATED
    )  # of sessions without answers the ends are known
    r = consumed("m0")
    r.deliver("m0", "b", redelivered=True)  # the broker says that it took it back
    assert check("P1", r).verdict is Verdict.OK
    r.alive("a", "b")
    found = check("P1", r)
    assert shown(found) == [5, 6, 7, 8, 9, 10, 11]  # and the answers by which both were there
    assert "after a/1#1 had settled it for good at event 6" in found.explanation
    r = consumed("m0")
    r.end("conn_drop", "a")  # the ack may have died with the connection
    r.deliver("m0", "b", redelivered=True)
    assert check("P1", r).verdict is Verdict.OK


def test_p1_doubts_a_session_that_called_and_had_no_answer_where_others_had() -> None:
    for answered, verdict in ((True, Verdict.OK), (False, Verdict.VIOLATED)):
        r = consumed("m0")  # by a, whose consume has no answer
        if answered:
            r.alive("b")
        r.deliver("m0", "b")
        assert check("P1", r).verdict is verdict


# P2, one holder


def test_p2_reports_a_second_holder_and_shows_both() -> None:
    r = Recording()
    r.deliver("m0", "a")
    r.deliver("m1", "b")
    r.deliver("m0", "b")
    assert shown(check("P2", r)) == [0, 2]  # of sessions without answers the ends are known
    marked = Recording()
    marked.deliver("m0", "a")
    marked.deliver("m0", "b", redelivered=True)
    assert (
        check("P2", marked).verdict is Verdict.OK
    )  # the broker says that the first holder is gone, and nothing denies it
    silent = Recording()
    silent.alive("a", "b")
    silent.deliver("m0", "a")
    silent.deliver("m0", "b", redelivered=True)
    assert (
        check("P2", silent).verdict is Verdict.OK
    )  # the first may have been killed without a word
    silent.alive("a", "b")
    assert check("P2", silent).verdict is Verdict.VIOLATED
    r.alive("a", "b")
    found = check("P2", r)
    assert shown(found) == [0, 2, 3, 4, 5, 6]  # and the answers by which both were there
    assert found.explanation == (
        "m0 was given to b/1#1 (event 2) while a/1#1, which got it at event 0, had neither settled it nor closed"
    )


def test_p2_allows_what_may_have_been_released() -> None:
    for end in ("ack", "nack", "ch_close", "conn_close", "conn_drop", "recover", "autoack"):
        r = Recording()
        r.deliver("m0", "a", autoack=end == "autoack" or None)
        match end:
            case "ack" | "nack":
                r.settle(end, "m0")
            case "recover":
                r.add("recover", "invoke", conn="a", ch=1, gen=1)
            case "ch_close" | "conn_close" | "conn_drop":
                r.end(end, "a")
        r.deliver("m0", "b", redelivered=True)
        cases = 1 if end == "autoack" else 2  # which nobody holds
        assert counted(check("P2", r)) == (Verdict.OK, cases, 0), end


def test_p2_is_untestable_across_lost_lines_and_broken_connections() -> None:
    r = Recording()
    r.deliver("m0", "a")
    r.add(GAP)
    r.deliver("m0", "b", redelivered=True)
    assert counted(check("P2", r)) == (Verdict.OK, 1, 1)
    r = Recording()
    r.deliver("m0", "a")
    r.deliver("m0", "b", redelivered=True)
    r.end("conn_drop", "a", "info")  # nobody asked: the broker may have dropped it long before
    assert counted(check("P2", r)) == (Verdict.OK, 1, 1)


def test_p2_knows_one_incarnation_of_a_channel_from_the_next() -> None:
    r = Recording()
    r.deliver("m0", "a")
    r.add("ch_close", "invoke", conn="a", ch=1, gen=7)
    r.deliver("m0", "b", redelivered=True)
    r.alive("a", "b")
    assert check("P2", r).verdict is Verdict.VIOLATED


# P3, the redelivered flag


def test_p3_reports_both_lies() -> None:
    r = Recording()
    r.publish("m0")
    r.deliver("m0", redelivered=True)
    assert "no consumer was ending meanwhile" in check("P3", r).explanation
    r = Recording()
    r.deliver("m0")
    r.settle("nack", "m0")
    r.deliver("m0", "b", redelivered=False)
    assert shown(check("P3", r)) == [0, 2]
    late = Recording()
    late.alive("a", "b")
    late.deliver("m0", redelivered=True)
    late.deliver("m0", "b", redelivered=False)
    assert (
        check("P3", late).verdict is not Verdict.VIOLATED
    )  # b may have had it first, and seen it late
    late.alive("b")
    assert shown(check("P3", late)) == [4, 5, 6, 7]


def test_p3_allows_a_first_sight_that_need_not_be_the_first() -> None:
    """What was on its way to a consumer that ended was not seen, but was handed out."""
    for when in ("before, unconfirmed", "dropped", "between"):
        r = Recording()
        if when == "dropped":
            r.end("conn_drop", "b")
            r.end("conn_drop", "b", "info")
        if when == "before, unconfirmed":
            r.end("ch_close", "b")
        r.publish("m0")
        if when == "between":
            r.end("ch_close", "b")
            r.end("ch_close", "b", "ok")
        r.deliver("m0", redelivered=True)
        assert counted(check("P3", r)) == (Verdict.INCONCLUSIVE, 0, 1), when


def test_p3_a_confirmed_close_before_the_publish_excuses_nothing() -> None:
    r = Recording()
    r.end("ch_close", "b")
    r.end("ch_close", "b", "ok")
    r.publish("m0")
    r.deliver("m0", redelivered=True)
    assert check("P3", r).verdict is Verdict.VIOLATED


# P4, first-delivery order


def test_p4_compares_polls_with_deliveries_but_above_a_client_library() -> None:
    """There a delivery may wait for its callback while the answer of a poll is recorded."""
    for lvl, verdict in (
        ("wire", Verdict.VIOLATED),
        ("broker", Verdict.VIOLATED),
        ("api", Verdict.INCONCLUSIVE),
    ):
        r = Recording(lvl)
        for n, ev in ((1, "get"), (0, "deliver")):
            fields = {"ph": "ok"} if ev == "get" else {"ctag": "tag"}
            fields |= {"m": f"m{n}", "q": "q", "pub": "p", "conn": "a"}
            r.add(ev, pseq=n, ch=1, gen=1, redelivered=False, **fields)
        assert check("P4", r).verdict is verdict


def test_p4_reports_first_deliveries_out_of_order_on_one_channel_only() -> None:
    r = Recording()
    r.deliver("m1", "a")
    r.deliver("m0", "a")
    assert shown(check("P4", r)) == [0, 1]
    apart = Recording()
    apart.deliver("m1", "a")
    apart.deliver("m0", "b")
    assert counted(check("P4", apart)) == (Verdict.INCONCLUSIVE, 0, 0)
    again = Recording()
    again.deliver("m0")
    again.deliver("m1")
    again.deliver("m0", redelivered=True)
    assert counted(check("P4", again)) == (Verdict.OK, 1, 0)


# P5, strict order


def overtaking(lvl: str = "api", m0_lo: int | None = 5, **first: object) -> Recording:
    """m1 is taken between events 4 and 4; m0 later, not before event `m0_lo`."""
    r = Recording(lvl)
    r.publish("m0")
    r.publish("m1")
    r.deliver("m1", "b", lo=4)
    r.deliver("m0", "a", lo=m0_lo, **first)
    return r


def test_p5_reports_a_message_taken_past_an_earlier_available_one() -> None:
    found = check("P5", overtaking())
    assert found.verdict is Verdict.VIOLATED
    assert shown(found) == [0, 1, 2, 4, 5]
    assert found.explanation == (
        "m0 was available from its enqueueing to 50; b/1#1 was given m1 between 40 and 40 (event 4), "
        "although m0 is earlier (stream p: 0 < 1)"
    )


def test_p5_is_silent_where_some_placement_explains_it() -> None:
    for r in (
        overtaking(m0_lo=4),  # m0 may have been taken at the same instant
        overtaking(m0_lo=None),  # nobody knows since when
        overtaking(redelivered=True),  # m0 had been handed out before, unseen
    ):
        assert check("P5", r).verdict is not Verdict.VIOLATED


def test_p5_needs_a_confirm_to_order_two_publishers() -> None:
    def two(confirmed_first: bool) -> Finding:
        r = Recording()
        steps = [("p", "m0"), ("p2", "m9")]
        for pub, m in steps:
            r.add("publish", "invoke", m=m, q="q", pub=pub, pseq=0, conn=pub, ch=1, gen=1)
            if confirmed_first:
                r.add("publish", "ok", m=m, q="q", pub=pub, pseq=0, conn=pub, ch=1, gen=1)
        lo = len(r.events)
        r.deliver("m9", "b", lo=lo, pub="p2", pseq=0)
        r.deliver("m0", "a", lo=lo + 1)
        return check("P5", r)

    assert two(True).verdict is Verdict.VIOLATED
    assert "confirmed at 10, before the other was sent at 20" in two(True).explanation
    assert two(False).verdict is not Verdict.VIOLATED


def test_p5_cannot_report_after_a_nack_but_can_from_inside_the_broker() -> None:
    def requeued(lvl: str) -> Verdict:
        r = Recording(lvl)
        for m in ("m0", "m1"):
            r.publish(m)
        r.deliver("m0", "a", lo=4)
        r.settle("nack", "m0")
        r.deliver("m1", "b", lo=6)
        r.deliver("m0", "a", lo=7, redelivered=True)
        return check("P5", r).verdict

    assert requeued("api") is not Verdict.VIOLATED
    assert requeued("model") is Verdict.VIOLATED


def test_p5_from_inside_the_broker_knows_what_stayed_behind() -> None:
    r = Recording("model")
    r.publish("m0")
    r.publish("m1")
    r.deliver("m1", "b")
    found = check("P5", r)
    assert found.verdict is Verdict.VIOLATED
    assert "to the end of the recording" in found.explanation


def test_p5_judges_within_one_priority() -> None:
    r = overtaking()
    high = [
        Event(
            **{
                **{n: getattr(e, n) for n in Event.__struct_fields__},
                "prio": 5 if e.m == "m1" else 0,
            }
        )
        for e in r.events
    ]
    assert BY_ID["P5"].check(high).verdict is not Verdict.VIOLATED


# P6, requeue lateness


def test_p6_strict_reports_one_overtaking_and_the_default_more_than_the_prefetch() -> None:
    strict = RequeueLateness(within=0)
    assert strict.check(late(0).events).verdict is Verdict.OK
    found = strict.check(late(1).events)
    assert (found.verdict, found.n_violations) == (Verdict.VIOLATED, 1)
    assert [e.i for e in found.witness] == [0, 2, 3, 5]
    assert check("P6", late(2)).verdict is Verdict.OK
    assert check("P6", late(3)).n_violations == 1


def test_p6_needs_credit_from_after_the_requeue() -> None:
    """With credit to spare the later message may have been on its way already."""
    r = Recording()
    r.deliver("m0", prefetch=5, scope="consumer")
    r.settle("nack", "m0")
    r.deliver("m1", prefetch=5, scope="consumer")
    r.deliver("m0", prefetch=5, scope="consumer", redelivered=True)
    assert RequeueLateness(within=0).check(r.events).verdict is Verdict.OK


def test_p6_does_not_know_when_credit_of_a_lease_that_ran_out_came_back() -> None:
    strict = RequeueLateness(within=0)
    for expires, verdict in ((True, Verdict.OK), (False, Verdict.VIOLATED)):
        r = Recording()
        limit: dict[str, Any] = {"prefetch": 2, "scope": "consumer"}
        r.deliver("m0", **limit)
        r.deliver("m1", **limit)
        if expires:
            r.add("expire", q="q", m="m1", requeue=False)
        r.settle("nack", "m0")
        r.deliver("m2", **limit)  # perhaps with the credit of m1, before the nack was seen
        r.deliver("m0", redelivered=True, **limit)
        assert strict.check(r.events).verdict is verdict


def test_p6_knows_no_credit_on_a_queue_whose_unseen_leases_run_out() -> None:
    """The callback comes after the lease: who held it, and whose credit came back, nobody can say."""
    strict = RequeueLateness(within=0)
    for q, reported in (("q", False), ("other", True)):
        r = late(1)
        r.events.insert(0, msgspec.structs.replace(r.events[0], ev="expire", m="m9", q=q, ph=""))
        assert (strict.check(r.events).verdict is Verdict.VIOLATED) == reported, q


def test_p6_takes_credit_from_what_counts_against_the_limit_alone() -> None:
    """A poll and a consumer that acknowledges by itself need none, so they may have been served at any time."""
    strict = RequeueLateness(within=0)
    limit: dict[str, Any] = {"prefetch": 1, "scope": "channel"}
    for ev, autoack, reported in (
        ("deliver", None, True),
        ("deliver", True, False),
        ("get", None, False),
    ):
        r = Recording()
        r.deliver("m0", **limit)
        r.settle("nack", "m0")
        r.deliver("m1", autoack=autoack, **limit)
        r.events[-1] = msgspec.structs.replace(r.events[-1], ev=ev)
        r.deliver("m0", redelivered=True, **limit)
        assert (strict.check(r.events).verdict is Verdict.VIOLATED) == reported, (ev, autoack)


def test_p6_knows_no_credit_of_what_came_back_before_anything_was_seen() -> None:
    """What a consumer was given may be back before its first callback runs."""
    strict = RequeueLateness(within=0)
    for ctag, reported in (("tag-a", False), ("another", True)):
        r = Recording()
        r.add("consume", "invoke", q="q", ctag=ctag, conn="a", ch=1, gen=1)
        r.add("nack", "invoke", dtag=0, multiple=True, requeue=True, ms=[], conn="a", ch=1, gen=1)
        limit: dict[str, Any] = {"prefetch": 1, "scope": "consumer", "ctag": "tag-a"}
        r.deliver("m0", **limit)
        r.settle("nack", "m0")
        r.deliver("m1", **limit)
        r.deliver("m0", redelivered=True, **limit)
        assert (strict.check(r.events).verdict is Verdict.VIOLATED) == reported, ctag


def test_p6_is_about_the_tag_that_a_settlement_names() -> None:
    """The first lease of m0 ran out, and its holder has m0 again under another tag."""
    strict = RequeueLateness(within=0)
    for tag, reported in ((1, False), (2, True)):
        r = Recording()
        limit: dict[str, Any] = {"prefetch": 1, "scope": "consumer"}
        r.deliver("m0", dtag=2, **limit)
        r.settle("nack", "m0", dtag=tag)
        r.deliver("m1", dtag=3, **limit)
        r.deliver("m0", dtag=4, redelivered=True, **limit)
        assert (strict.check(r.events).verdict is Verdict.VIOLATED) == reported, tag


def test_p6_is_untestable_when_it_came_back_elsewhere_at_an_unknown_instant() -> None:
    r = late(1)
    back = r.events.pop()
    r.deliver("m0", "b", redelivered=True)
    assert counted(RequeueLateness(within=0).check(r.events))[2] == 1
    r.events.pop()
    r.deliver("m0", "b", lo=back.i, redelivered=True, prefetch=2, scope="consumer")
    assert RequeueLateness(within=0).check(r.events).verdict is Verdict.VIOLATED


# P7, prefetch


def test_p7_reports_one_too_many_and_shows_all_that_were_held() -> None:
    r = Recording()
    for n in range(3):
        r.deliver(f"m{n}", prefetch=2, scope="consumer")
    found = check("P7", r)
    assert shown(found) == [0, 1, 2]
    assert "consumer tag-a on a/1#1 held 3 messages, and its prefetch was 2" in found.explanation


def test_p7_counts_by_consumer_or_by_channel() -> None:
    for scope, verdict in (
        ("consumer", Verdict.OK),
        ("channel", Verdict.VIOLATED),
        (None, Verdict.INCONCLUSIVE),
    ):
        r = Recording()
        r.deliver("m0", ctag="c1", prefetch=1, scope=scope)
        r.deliver("m1", ctag="c2", prefetch=1, scope=scope)
        assert check("P7", r).verdict is verdict


def test_p7_settling_frees_and_lost_lines_forgive() -> None:
    for free in ("ack", "nack", GAP, "recover"):
        r = Recording()
        r.deliver("m0", prefetch=1, scope="consumer")
        if free in ("ack", "nack"):
            r.settle(free, "m0")
        else:
            r.add(free, conn="a", ch=1, gen=1)
        r.deliver("m1", prefetch=1, scope="consumer")
        assert counted(check("P7", r)) == (Verdict.OK, *((1, 1) if free == GAP else (2, 0))), free


# P8, delivery tags


def test_p8_reports_tags_that_fall_and_tags_settled_twice() -> None:
    r = Recording()
    r.deliver("m0", dtag=2)
    r.deliver("m1", dtag=2)
    assert shown(check("P8", r)) == [0, 1]
    r = Recording()
    r.deliver("m0", dtag=1)
    r.settle("ack", "m0", dtag=1)
    r.settle("ack", "m0", dtag=1)
    assert shown(check("P8", r)) == [0, 1, 2]
    r.add("qos", "invoke", op=1, conn="a", ch=1, gen=1)
    assert check("P8", r).verdict is Verdict.OK  # the broker may have refused it at last
    r.add("qos", "ok", op=1, conn="a", ch=1, gen=1)
    assert shown(check("P8", r)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("lvl", "ph"), [("broker", ""), ("api", "ok")])
def test_p8_a_second_settlement_that_is_answered_or_seen_inside_is_a_violation(
    lvl: str, ph: str
) -> None:
    r = Recording(lvl)
    r.deliver("m0", dtag=1)
    for op in (1, 2):
        r.add("ack", ph and "invoke", op=op, conn="a", ch=1, gen=1, dtag=1)
        if ph:
            r.add("ack", ph, op=op, conn="a", ch=1, gen=1, dtag=1)
    assert check("P8", r).verdict is Verdict.VIOLATED


def test_p8_a_tag_left_out_reports_only_at_the_wire() -> None:
    for lvl, verdict in (("api", Verdict.INCONCLUSIVE), ("wire", Verdict.VIOLATED)):
        r = Recording(lvl)
        r.deliver("m0", dtag=1)
        r.deliver("m1", dtag=3)
        assert check("P8", r).verdict is verdict


def test_p8_the_first_tag_of_a_channel_whose_opening_is_recorded_is_one() -> None:
    """Seen from within, or on the wire; a client library may have refused a delivery itself."""
    for lvl, first, opened, wrong in (
        ("wire", 2, True, True),
        ("broker", 2, True, True),
        ("wire", 1, True, False),
        ("wire", 2, False, False),
        ("api", 2, True, False),
    ):
        r = Recording(lvl)
        if opened:
            r.add("ch_open", "ok", conn="a", ch=1, gen=1)
        r.deliver("m0", dtag=first)
        assert (check("P8", r).verdict is Verdict.VIOLATED) is wrong


# P9, silence


def test_p9_reports_a_delivery_acquired_after_the_cancel_was_confirmed() -> None:
    for lvl, lo, verdict in (
        ("wire", None, Verdict.VIOLATED),
        ("api", 1, Verdict.VIOLATED),
        ("api", 0, Verdict.OK),  # the callback may have run late
    ):
        r = Recording(lvl)
        r.add("cancel", "ok", conn="a", ch=1, gen=1, ctag="tag-a", q="q")
        r.deliver("m0", lo=lo)
        found = check("P9", r)
        assert found.verdict is verdict
        assert shown(found) == ([0, 1] if verdict is Verdict.VIOLATED else [])


def test_every_property_says_what_it_is() -> None:
    numbers = [int(p.id.removeprefix("P")) for p in BLACKBOX]
    assert numbers == sorted(set(numbers))
    assert {*range(1, 16), 20} <= set(numbers)
    for p in BLACKBOX:
        assert p.sentence.endswith(".")
        assert p.source
        assert p.kind == ("liveness" if p.id == "P14" else "safety")
        assert p.summary_type is not None
        assert p.keeps
