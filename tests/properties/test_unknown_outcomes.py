"""Unknown outcomes and time: what was reported of a right system, as the smallest history, and its counterpart."""

from __future__ import annotations

from typing import Any

import pytest

from seriatim_models.history import Event
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.wakeups import NoLostWakeup

from .blackbox_histories import BY_ID, Recording, check

A: dict[str, Any] = {"conn": "a", "ch": 1, "gen": 1}


def violated(r: Recording) -> set[str]:
    """The properties that report the history, completed as an audit does it."""
    events = list(complete(r.events))
    return {p.id for p in BLACKBOX if p.check(events).verdict is Verdict.VIOLATED}


def drained(r: Recording, *names: str) -> None:
    """The channels close, and somebody looks into the queue."""
    for by in names:
        r.end("ch_close", by)
        r.end("ch_close", by, "ok")
    r.add("note", "info", q="q", args={"depth": 0})


def test_a_settlement_that_failed_or_is_unknown_settles_nothing() -> None:
    for outcome, ids in (("fail", set()), ("info", set()), ("ok", {"P1"})):
        r = Recording()
        r.publish("m0")
        r.deliver("m0", dtag=1)
        r.settle("ack", "m0", dtag=1, op=1)
        r.add("ack", outcome, op=1, dtag=1, q="q", **A)
        r.deliver("m0", "b", dtag=1, redelivered=True)
        r.alive("a", "b")
        assert violated(r) & {"P1"} == ids, outcome


def test_a_tag_is_settled_again_after_it_was_refused() -> None:
    for outcome, verdict in (("fail", Verdict.OK), ("info", Verdict.OK), ("ok", Verdict.VIOLATED)):
        r = Recording()
        r.deliver("m0", dtag=1)
        r.settle("ack", "m0", dtag=1, op=1)
        r.settle("ack", "m0", dtag=1, op=2)
        r.add("ack", outcome, op=1, dtag=1, q="q", **A)
        assert check("P8", r).verdict is verdict, outcome


def test_a_poll_of_unknown_outcome_may_have_taken_the_message() -> None:
    for outcome, verdict in (("info", Verdict.OK), ("ok", Verdict.VIOLATED)):
        r = Recording()
        r.publish("m0")
        r.publish("m1")
        r.deliver("m1", "b")
        r.settle("ack", "m1", by="b")
        for ph in ("invoke", outcome):
            r.add("get", ph, q="q", op=9, **A)
        drained(r, "a", "b")
        assert check("P1", r).verdict is verdict, outcome


def looked(r: Recording, **args: object) -> Verdict:
    """What P1 says once somebody has looked into the queue and found nothing there."""
    r.add("note", "info", q="q", args={"depth": 0, **args})
    return check("P1", r).verdict


def test_a_poll_that_was_never_answered_has_taken_nothing_where_nobody_holds_a_message() -> None:
    """It may still take one, or may have while somebody counted, unless all had come to rest."""
    rest = {"held": 0, "rest": True}
    for autoack, args in ((None, rest), (None, {"held": 0}), (None, {"rest": True}), (True, rest)):
        r = Recording()
        r.publish("m0")
        r.publish("m1")
        r.add("get", "ok", q="q", m="m1", proc="b", autoack=autoack)
        r.add("ack", "ok", q="q", ms=["m1"], proc="b")
        r.add("get", "invoke", q="q", proc="killed", op=9, autoack=autoack)
        lost = autoack is None and args is rest
        assert (looked(r, **args) is Verdict.VIOLATED) is lost, (autoack, args)


def test_a_message_whose_settlement_was_refused_is_still_to_be_found() -> None:
    for outcome in ("fail", "info"):
        r = Recording()
        r.publish("m0")
        r.add("get", "ok", q="q", m="m0", proc="b")
        r.add("nack", "ok", q="q", ms=["m0"], requeue=True, proc="b")
        r.add("get", "ok", q="q", m="m0", proc="b")
        for ph in ("invoke", outcome):  # its lease was over
            r.add("ack", ph, q="q", ms=["m0"], proc="b", op=1)
        r.add("get", "ok", q="q", m="m0", proc="c")
        assert (looked(r, held=0) is Verdict.VIOLATED) is (outcome == "fail"), outcome


def test_a_requeued_message_may_be_settled_by_a_command_for_all_before_it_is_seen() -> None:
    for tag, verdict in ((0, Verdict.OK), (1, Verdict.VIOLATED)):
        r = Recording()
        r.publish("m0")
        r.publish("m1")
        r.add("consume", "invoke", q="q", ctag="tag-b", conn="b", ch=1, gen=1)
        r.deliver("m1", "b", dtag=1)
        r.deliver("m0", dtag=1)
        r.settle("nack", "m0", dtag=1)
        # m0 is on its way to b: tag 0 is all that b holds, seen or not, and tag 1 is m1 and what came before it.
        r.add("ack", "invoke", q="q", dtag=tag, multiple=True, conn="b", ch=1, gen=1)
        drained(r, "a", "b")
        assert check("P1", r).verdict is verdict, tag


def test_a_message_that_is_published_again_after_info_may_come_twice() -> None:
    r = Recording()
    for ph in ("invoke", "info", "invoke", "ok"):
        r.add("publish", ph, m="m0", q="q", pub="p", pseq=0, conn="pub", ch=1, gen=1)
    for by in ("a", "b"):
        r.deliver("m0", by, dtag=1)
        r.settle("ack", "m0", by=by, dtag=1)
    r.alive("a", "b")
    assert violated(r) & {"P1", "P2", "P3", "P20"} == set()


def test_a_command_for_all_settles_what_is_not_seen_yet() -> None:
    for ev, fields in (
        ("nack", {"dtag": 0, "multiple": True, "requeue": True}),
        ("recover", {"requeue": True}),
    ):
        r = Recording()
        r.publish("m0")
        r.publish("m1")
        r.add("qos", "invoke", prefetch=1, scope="consumer", **A)
        r.add("consume", "invoke", q="q", ctag="tag-a", **A)
        r.add(ev, "invoke", **A, **fields)
        r.deliver("m0", "b", redelivered=True)  # it was on its way to a, who requeued it
        r.deliver("m0", dtag=1)
        r.deliver("m1", dtag=2)
        r.alive("a", "b")
        assert violated(r) & {"P1", "P2", "P3", "P7"} == set(), ev


def test_a_refusal_of_all_may_send_what_is_not_seen_yet_to_die_and_come_back() -> None:
    for dead, ids in ((True, set()), (False, {"P1"})):
        r = Recording()
        args = {"x-dead-letter-exchange": "anywhere"} if dead else {}
        r.add("declare", "ok", q="q", args=args)
        r.publish("m0")
        r.add("consume", "invoke", q="q", ctag="tag-a", **A)
        r.add("nack", "invoke", dtag=0, multiple=True, requeue=False, **A)
        r.deliver("m0", dtag=1)  # on its way when the nack was sent, which refused it
        r.settle("ack", "m0", dtag=1)
        r.alive("a")
        r.deliver("m0", "b", dtag=1)
        r.alive("a", "b")
        assert violated(r) & {"P1"} == ids, dead


def test_a_poll_returns_before_callbacks_that_wait() -> None:
    for lvl, ids in (("api", set()), ("wire", {"P4", "P8"})):
        r = Recording(lvl)
        r.add("get", "ok", m="m1", q="q", pub="p", pseq=1, dtag=2, redelivered=False, **A)
        r.deliver("m0", dtag=1)
        assert violated(r) & {"P4", "P8"} == ids, lvl


def test_a_callback_may_run_after_its_holder_was_dropped() -> None:
    r = Recording()
    r.publish("m0")
    r.deliver("m0", "b", redelivered=True)
    r.deliver("m0", "a")
    r.end("conn_drop", "a", "info")
    r.alive("b")
    assert violated(r) & {"P2", "P3"} == set()


def test_a_confirm_may_come_after_the_delivery() -> None:
    r = Recording()
    for ph in ("invoke", "ok"):
        r.add("consume", ph, q="q", ctag="tag-a", **A)
    r.add("publish", "invoke", m="m0", q="q")
    r.deliver("m0")
    r.settle("ack", "m0")
    r.add("publish", "ok", m="m0", q="q")
    for _ in range(20):
        r.add("note", q="q")
    r.alive("a")
    assert NoLostWakeup(within=50).check(r.events).verdict is not Verdict.VIOLATED


def test_a_drop_that_the_broker_has_not_noticed_keeps_the_message() -> None:
    r = Recording()
    for by in ("a", "b"):
        for ph in ("invoke", "ok"):
            r.add("consume", ph, q="q", ctag=f"tag-{by}", conn=by, ch=1, gen=1)
    r.end("conn_drop", "b", "info")
    r.publish("m0")
    for _ in range(20):
        r.add("note", q="q")
    r.alive("a")
    assert NoLostWakeup(within=50).check(r.events).verdict is not Verdict.VIOLATED


def test_an_end_without_phase_confirms_nothing() -> None:
    r = Recording("wire")
    r.add("ch_close", **A)
    r.deliver("m0")
    assert check("P9", r).verdict is not Verdict.VIOLATED
    r = Recording()
    r.publish("m0")
    r.add("consume", "invoke", q="q", ctag="tag-a", **A)
    r.add("ch_close", **A)
    r.add("note", "info", q="q", args={"depth": 0})
    assert check("P1", r).verdict is not Verdict.VIOLATED


def test_a_prefetch_lowered_in_flight_holds_for_what_is_acquired_later() -> None:
    r = Recording()
    r.add("qos", "invoke", prefetch=2, scope="channel", **A)
    r.add("qos", "ok", prefetch=2, scope="channel", **A)
    r.add("consume", "invoke", q="q", ctag="tag-a", **A)
    r.add("qos", "invoke", prefetch=1, scope="channel", **A)
    for n in (0, 1):
        r.deliver(f"m{n}", dtag=n + 1)
    assert BY_ID["P7"].check(complete(r.events)).verdict is Verdict.OK
    r.add("qos", "ok", prefetch=1, scope="channel", **A)
    r.publish("m2")
    r.deliver("m2", dtag=3)
    assert BY_ID["P7"].check(complete(r.events)).verdict is Verdict.VIOLATED


def test_of_two_limits_under_way_the_first_answer_is_that_of_the_first() -> None:
    for ops in ((1, 2), (None, None)):
        r = Recording()
        r.add("qos", "invoke", prefetch=2, scope="channel", op=ops[0], **A)
        r.add("consume", "invoke", q="q", ctag="tag-a", **A)
        r.add("qos", "invoke", prefetch=1, scope="channel", op=ops[1], **A)
        r.add("qos", "ok", prefetch=2, scope="channel", op=ops[0], **A)
        for n in (0, 1):
            r.publish(f"m{n}")
            r.deliver(f"m{n}", dtag=n + 1)
        assert "P7" not in violated(r)
        r.add("qos", "ok", prefetch=1, scope="channel", op=ops[1], **A)
        r.publish("m2")
        r.deliver("m2", dtag=3)
        assert "P7" in violated(r)


def test_a_channels_limit_bounds_nothing_that_is_on_its_way_to_a_callback() -> None:
    for limited_first in (False, True):
        r = Recording()
        if limited_first:
            r.add("qos", "invoke", prefetch=1, scope="channel", **A)
        r.add("consume", "invoke", q="q", ctag="tag-a", **A)
        r.add("consume", "ok", q="q", ctag="tag-a", **A)
        r.add("cancel", "invoke", ctag="tag-a", **A)
        r.add("cancel", "ok", ctag="tag-a", **A)
        if not limited_first:
            r.add("qos", "invoke", prefetch=1, scope="channel", **A)
        r.deliver("m0", dtag=1)
        r.settle("ack", "m0", dtag=1)
        r.deliver("m1", dtag=2)
        # Under the limit the second came after the first was settled; without it both waited for their callbacks.
        assert ("P9" in violated(r)) == limited_first


def test_a_consume_without_an_answer_may_have_been_refused() -> None:
    for shows in (False, True):
        r = Recording("wire")
        for by, exclusive in (("a", None), ("b", True)):
            r.add("consume", q="q", ctag=f"tag-{by}", exclusive=exclusive, conn=by, ch=1, gen=1)
            if shows:
                r.deliver(f"m{len(r.events)}", by)
        assert ("P10" in violated(r)) == shows


def test_a_consumer_that_nobody_answered_was_perhaps_not_there_yet() -> None:
    for phases in (("",), ("invoke", "ok")):
        r = Recording("wire")
        for by, rank in (("a", 1), ("b", 0)):
            for ph in phases:
                of = {"conn": by, "ch": 1, "gen": 1}
                r.add("consume", ph, q="q", ctag=f"tag-{by}", cprio=rank, prefetch=1, **of)
        r.publish("m0")
        r.deliver("m0", "b", dtag=1)
        r.publish("m1")
        r.deliver("m1", "a", dtag=1)
        assert ("P11" in violated(r)) == (len(phases) == 2)


def test_what_was_purged_is_not_passed_over() -> None:
    for ev in ("purge", "delete", "declare"):
        r = Recording(lvl="broker")
        for m in ("m0", "m1"):
            if m == "m1":
                r.add(ev, "", q="q")
            r.add("publish", "", m=m, q="q", pub="p", pseq=int(m[1]))
        r.add("deliver", "", m="m1", q="q", pub="p", pseq=1, redelivered=False, **A)
        assert violated(r) == ({"P5"} if ev == "declare" else set()), ev


def test_a_message_routed_to_several_queues_dies_as_several() -> None:
    for q in ("", "q"):
        r = Recording(lvl="broker")
        r.add("declare", "", q="q", args={"x-dead-letter-exchange": "x"})
        r.add("publish", "", m="m0", q=q)
        for by in ("a", "b"):
            who = {"conn": by, "ch": 1, "gen": 1}
            r.add("deliver", "", m="m0", q="dead", dtag=1, redelivered=False, **who)
            r.add("nack", "", dtag=1, q="dead", ms=["m0"], requeue=True, **who)
        assert violated(r) == (set() if q == "" else {"P3"}), q


def test_where_others_end_a_channel_without_an_answer_may_have_ended() -> None:
    for ended in (False, True):
        r = Recording()
        r.publish("m0")
        if ended:
            r.end("ch_close", "z")
        r.deliver("m0", "a")
        r.settle("ack", "m0", by="a")
        r.deliver("m0", "b")
        assert violated(r) & {"P1"} == (set() if ended else {"P1"})


def test_the_broker_closing_is_no_answer_to_a_client_that_closes() -> None:
    for reasons, ids in (([""], {"P1", "P2"}), (["406"], set()), (["406", ""], set())):
        r = Recording()
        r.publish("m0")
        r.publish("m1")
        r.deliver("m0", "a", dtag=1, redelivered=False)
        r.deliver("m1", "a", dtag=2, redelivered=False)
        r.settle("ack", "m0", by="a", dtag=1)
        for m in ("m0", "m1"):
            r.deliver(m, "b", redelivered=True)
        r.end("ch_close", "a")
        for err in reasons:
            r.add("ch_close", "ok", err=err, **A)
        r.alive("b")
        assert violated(r) & {"P1", "P2"} == ids, reasons


def test_a_callback_that_runs_late_may_be_of_an_earlier_copy() -> None:
    for late in (True, False):
        r = Recording()
        r.add("consume", "invoke", q="q", ctag="t", **A)
        r.publish("m0")
        r.publish("m1")
        r.add("conn_drop", "info", conn="a")
        if late:
            r.deliver("m0", "b", autoack=True, redelivered=True)
        r.publish("m0" if late else "m2")
        r.deliver("m0" if late else "m2", "a", ctag="t", redelivered=False)
        r.add("get", "invoke", q="q", conn="c", ch=1, gen=1, op=9)
        r.add("get", "ok", m="m1", q="q", conn="c", ch=1, gen=1, op=9, redelivered=False)
        assert violated(r) & {"P5"} == (set() if late else {"P5"}), late


def test_an_ack_of_all_may_end_what_was_not_seen_yet() -> None:
    for dtag in (0, 1):
        r = Recording()
        r.add("consume", "invoke", q="q", ctag="t", **A)
        r.publish("m0")
        r.publish("m1")
        r.deliver("m0", dtag=1)
        r.add("ack", "", dtag=dtag, multiple=True, ms=["m0"], q="q", **A)
        drained(r, "a")
        assert violated(r) == (set() if dtag == 0 else {"P1"}), dtag


def test_an_end_of_another_connection_of_the_name_is_not_this_ones() -> None:
    for again in (False, True):
        r = Recording(lvl="broker")
        if again:
            r.add("conn_drop", "", conn="a")
        r.add("publish", "", m="m0", q="q")
        r.add("deliver", "", m="m0", q="q", dtag=1, **A)
        if not again:
            r.add("conn_drop", "", conn="a")
        r.add("note", "info", q="q", args={"depth": 0})
        assert violated(r) == (set() if again else {"P1"}), again


def test_polls_of_one_channel_that_overlap_have_bounds_of_their_own() -> None:
    for op, ids in ((7, set()), (8, {"P5"})):
        r = Recording()
        r.publish("m0")
        r.publish("m1")
        r.add("get", "invoke", q="q", op=7, **A)
        r.add("get", "invoke", q="q", conn="b", ch=1, gen=1, op=6)
        r.add("get", "ok", q="q", m="m1", redelivered=False, conn="b", ch=1, gen=1, op=6)
        r.add("get", "invoke", q="q", op=8, **A)
        r.add("get", "ok", q="q", m="m0", redelivered=False, op=op, **A)
        assert violated(r) & {"P5"} == ids, op


def test_one_copy_that_is_settled_leaves_the_others() -> None:
    for again, ids in (("m0", set()), ("m9", {"P5"})):
        r = Recording("broker")
        for m in ("m0", again):
            r.add("publish", m=m, q="q", pub="p", pseq=len(r.events), conn="pub", ch=1, gen=1)
        r.add("get", m="m0", q="q", dtag=1, redelivered=False, **A)
        r.add("ack", dtag=1, **A)
        for m in ("m1", "m0"):
            r.add("publish", m=m, q="q", pub="p", pseq=len(r.events), conn="pub", ch=1, gen=1)
        r.add("get", m="m0", q="q", dtag=2, redelivered=False, **A)
        assert violated(r) & {"P5"} == ids, again


def test_what_is_sent_again_under_the_name_of_one_that_was_acked_may_be_that_one() -> None:
    for name in ("m0", "m3"):
        r = Recording()
        r.publish("m0")
        r.deliver("m0", lo=0, dtag=1)
        r.settle("ack", "m0", dtag=1)  # lost, with the channel
        r.end("conn_drop", "a", "info")
        r.publish("m2")
        r.publish(name)
        r.add("get", "invoke", q="q", op=9, conn="b", ch=1, gen=1)
        r.add("get", "ok", q="q", op=9, m=name, dtag=1, redelivered=name == "m0", conn="b", ch=1, gen=1)  # fmt: skip
        r.add("get", "invoke", q="q", op=10, conn="b", ch=1, gen=1)
        r.add("get", "ok", q="q", op=10, m="m2", dtag=2, redelivered=False, conn="b", ch=1, gen=1)
        assert ("P5" in violated(r)) == (name == "m3")


def test_a_message_may_have_died_into_a_queue_that_another_of_its_name_was_sent_to() -> None:
    for dying in ({}, {"x-dead-letter-exchange": "dlx", "x-message-ttl": 25}):
        r = Recording()
        r.add("declare", "ok", q="q", args=dying)
        r.add("declare", "ok", q="dead", args={"x-max-priority": 1})
        for q, m, prio in (("dead", "m0", 0), ("q", "m0", 1), ("dead", "m1", 1)):
            for ph in ("invoke", "ok"):
                r.add("publish", ph, q=q, m=m, prio=prio, conn="p", ch=1, gen=1)
        for op, m in enumerate(("m0", "m1")):
            r.add("get", "invoke", q="dead", op=op, conn="b", ch=1, gen=1)
            r.add("get", "ok", q="dead", op=op, m=m, dtag=op, redelivered=False, conn="b", ch=1, gen=1)  # fmt: skip
        assert ("P22" in violated(r)) == (not dying)


def test_a_flag_that_the_recording_denies_makes_no_first_delivery() -> None:
    for again, ids in ((False, {"P3"}), (True, set[str]())):
        r = Recording("wire")
        for m in ("m0", "m1"):
            r.publish(m)
            r.deliver(m, dtag=len(r.events))
        r.add("recover", "invoke", requeue=True, **A)
        r.deliver("m0", dtag=9, redelivered=again)
        # The message came again, whatever is said of it: its order is promised by nobody.
        assert violated(r) & {"P3", "P4"} == ids


def test_what_a_queue_may_drop_was_not_there_until_the_end_of_a_recording() -> None:
    for limit in ({}, {"x-max-length": 1}):
        r = Recording("broker")
        r.add("declare", q="q", args=limit)
        for m in ("m0", "m1"):
            r.publish(m)
        r.deliver("m1", dtag=1)
        assert ("P5" in violated(r)) == (not limit)


def test_a_limit_of_which_the_answer_alone_is_recorded_is_one() -> None:
    for limit in (1, 2):
        r = Recording()
        r.deliver("m9", "b", dtag=1)  # somebody else
        r.add("qos", "ok", prefetch=limit, scope="consumer", **A)
        r.add("consume", "ok", q="q", ctag="tag-a", autoack=False, **A)
        for n in (0, 1):
            r.deliver(f"m{n}", dtag=n + 1)
        assert ("P7" in violated(r)) == (limit == 1)
        assert next(e for e in complete(r.events) if e.m == "m0").t_lo is None


def test_two_copies_with_one_channel_are_not_told_apart_by_who_is_ready() -> None:
    for m, ids in (("m0", set()), ("m9", {"P11"})):
        r = Recording("broker")
        r.add("qos", prefetch=2, scope="consumer", **A)
        for m0 in ("m0", m):
            r.add("publish", m=m0, q="q", conn="pub", ch=1, gen=1)
        r.add("consume", q="q", ctag="low", cprio=0, **A)
        r.add("deliver", m="m0", q="q", ctag="low", dtag=1, redelivered=False, **A)
        r.add("consume", q="q", ctag="high", cprio=1, **A)
        r.add("deliver", m=m, q="q", ctag="high", dtag=2, redelivered=False, **A)
        r.add("reject", dtag=1, requeue=True, **A)
        r.add("deliver", m="m0", q="q", ctag="low", dtag=3, redelivered=True, **A)
        assert violated(r) & {"P11"} == ids, m


def test_a_seek_may_have_been_sent_before_its_member_knew_of_a_new_assignment() -> None:
    for lvl, given, ids in (
        ("broker", False, set()),
        ("broker", True, {"P15"}),
        ("api", False, {"P15"}),
    ):
        r = Recording(lvl)
        g: dict[str, Any] = {"q": "q", "conn": "k", "ctag": "g", "part": 0}
        for pos in (0, 1):
            r.add("publish", "ok", m=f"m{pos}", q="q", part=0, pos=pos, conn="pub")
        r.add("consume", "ok", **g)
        if given:
            r.add("deliver", m="m0", pos=0, **g)
        r.add("seek", "ok", pos=1, **g)
        r.add("deliver", m="m0", pos=0, **g)
        assert violated(r) & {"P15"} == ids, (lvl, given)


def test_the_answer_of_a_poll_may_overtake_what_its_tag_covers() -> None:
    for polled, ids in ((True, set()), (False, {"P1"})):
        r = Recording()
        r.add("consume", "invoke", q="q", ctag="t", **A)
        r.publish("m0")
        r.publish("m1", q="r")
        if polled:
            r.add("get", "invoke", q="r", op=5, **A)
            r.add("get", "ok", q="r", m="m1", dtag=2, op=5, **A)
        else:
            r.deliver("m1", q="r", ctag="u", dtag=2)
        r.add("ack", "", dtag=2, multiple=True, ms=["m1"], q="r", **A)
        drained(r, "a")
        assert violated(r) & {"P1"} == ids, polled


def test_what_waited_too_long_may_have_died_and_come_back_as_new() -> None:
    for args, ids in (
        ({"x-dead-letter-exchange": "d", "x-message-ttl": 5}, set()),
        ({"x-dead-letter-exchange": "d"}, {"P3"}),
        ({"x-message-ttl": 5}, {"P3"}),
    ):
        r = Recording()
        r.add("declare", "ok", q="q", args=args)
        r.publish("m0")
        r.deliver("m0", "a", dtag=1, redelivered=False)
        r.settle("nack", "m0", by="a", dtag=1)
        r.deliver("m0", "b", dtag=1, redelivered=False)
        r.alive("a", "b")
        assert violated(r) & {"P3"} == ids, args


def test_a_queue_that_may_drop_messages_may_be_found_empty() -> None:
    for args, ids in (({"x-message-ttl": 5}, set()), ({"x-max-priority": 5}, {"P20"})):
        r = Recording()
        r.add("declare", "ok", q="q", args=args)
        r.publish("m0")
        for ph in ("invoke", "ok"):
            r.add("get", ph, q="q", op=5, autoack=True, **A)
        assert violated(r) & {"P20"} == ids, args


def test_of_two_holders_of_copies_nobody_knows_whose_lease_ran_out() -> None:
    b: dict[str, Any] = {"conn": "b", "ch": 1, "gen": 1}
    for m, ids in (("m0", set()), ("m2", {"P7"})):
        r = Recording("broker")
        r.add("qos", prefetch=1, scope="consumer", **b)
        for ctag, by in (("a", A), ("b", b)):
            r.add("consume", q="q", ctag=ctag, **by)
        for sent in ("m0", m, "m1"):
            r.add("publish", m=sent, q="q", conn="pub", ch=1, gen=1)
        r.add("deliver", m=m, q="q", ctag="a", dtag=1, **A)
        r.add("deliver", m="m0", q="q", ctag="b", dtag=1, **b)
        r.add("expire", m=m, q="q", requeue=True)
        r.add("deliver", m="m1", q="q", ctag="b", dtag=2, **b)
        assert violated(r) & {"P7"} == ids, m


def test_one_of_two_copies_that_was_too_old_had_neither_place_for_certain() -> None:
    for again, ids in (("m0", set()), ("m9", {"P5"})):
        r = Recording("broker")
        for m in ("m0", again):
            r.add("publish", m=m, q="q", conn="pub", ch=1, gen=len(r.events))
        for m in ("m0", again)[: 1 + (again == "m0")]:
            r.add("get", m=m, q="q", dtag=1 + len(r.events), redelivered=False, **A)
        r.add("publish", m="m1", q="q", conn="other", ch=1, gen=1)
        r.add("nack", ms=["m0"], q="q", requeue=True, **A)
        r.add("get", m="m1", q="q", dtag=9, redelivered=False, **A)
        r.add("expire", m="m0", q="q", requeue=False)
        assert violated(r) & {"P5"} == ids, again


def test_who_gives_all_back_may_have_had_what_was_on_its_way() -> None:
    for recovers, ids in ((True, set()), (False, {"P6"})):
        r = Recording()
        limit: dict[str, Any] = {"prefetch": 1, "scope": "consumer", "ctag": "t"}
        for by in ("a", "b"):
            r.add("consume", "invoke", q="q", ctag="t", conn=by, ch=1, gen=1)
        r.deliver("m0", dtag=1, **limit)
        r.settle("nack", "m0", dtag=1)
        if recovers:
            r.add("recover", "invoke", conn="b", ch=1, gen=1)
        for n in (1, 2, 3):
            r.deliver(f"m{n}", dtag=n + 1, **limit)
            r.settle("ack", f"m{n}", dtag=n + 1)
        r.deliver("m0", dtag=5, redelivered=True, **limit)
        r.alive("a", "b")
        assert violated(r) & {"P6"} == ids, recovers


@pytest.mark.parametrize("fault", ["partition", ["partition"], {"a": 1}, True])
def test_a_fault_of_any_name_that_is_not_over_explains_what_comes_again(fault: object) -> None:
    """A recorder may write anything there: what is no text is a fault all the same."""
    at: dict[str, Any] = {"lvl": "broker", "conn": "c", "ch": 1}
    given: dict[str, Any] = {"q": "q", "m": "a", "ctag": "x", **at}
    events = [
        Event(i=0, t=0, ev="gap", ph="invoke", args={"fault": fault}),
        Event(i=1, t=1, ev="publish", q="q", m="a", **at),
        Event(i=2, t=2, ev="deliver", dtag=1, **given),
        Event(i=3, t=3, ev="ack", dtag=1, **at),
        Event(i=4, t=4, ev="deliver", dtag=2, **given),
    ]
    assert BY_ID["P1"].check(list(complete(events))).verdict is not Verdict.VIOLATED
