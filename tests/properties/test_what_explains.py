"""What explains a history that looks wrong: with it there is no violation, and without it there is one.

A queue was deleted and declared again under its name, and the next one has no consumer, message, hold or promise of the
first; a call was never answered; a settlement was answered by an error; a limit was of another kind; lines were lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seriatim_models.history.complete import complete
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import Finding, Verdict

from .blackbox_histories import BY_ID, Recording

A: dict[str, Any] = {"conn": "a", "ch": 1, "gen": 1}
B: dict[str, Any] = {"conn": "b", "ch": 1, "gen": 1}
C: dict[str, Any] = {"conn": "c", "ch": 1, "gen": 1}


def call(r: Recording, ev: str, **fields: Any) -> None:
    """Asked and answered."""
    op = len(r.events)
    for ph in ("invoke", "ok"):
        r.add(ev, ph, op=op, **fields)


def consume(r: Recording, by: dict[str, Any], **fields: Any) -> None:
    """Asked for messages of q, and accepted."""
    call(r, "consume", q="q", ctag=f"tag-{by['conn']}", **by, **fields)


def again(r: Recording, **args: Any) -> None:
    """The queue is deleted, and declared again."""
    call(r, "delete", q="q", **C)
    call(r, "declare", q="q", args=args, **C)


def given(r: Recording, m: str, by: dict[str, Any], **fields: Any) -> None:
    """Handed to a consumer, for the first time if nothing else is said."""
    fields = {"redelivered": False} | fields
    r.add("deliver", m=m, q="q", ctag=f"tag-{by['conn']}", **by, **fields)


def judged(id: str, r: Recording) -> Finding:
    return BY_ID[id].check(list(complete(r.events)))


def exclusive(deleted: bool) -> Recording:
    r = Recording()
    consume(r, A, exclusive=True)
    if deleted:
        again(r)
    consume(r, B)
    r.alive("a", "b")
    return r


def single_active(deleted: bool) -> Recording:
    r = Recording("broker")
    declared = {"x-single-active-consumer": True}
    call(r, "declare", q="q", args=declared, **C)
    consume(r, A)
    given(r, "m1", A)
    if deleted:
        again(r)
    consume(r, B)
    given(r, "m2", B)
    return r


def higher_consumer(deleted: bool) -> Recording:
    r = Recording("broker")
    consume(r, A, cprio=1, prefetch=3)
    if deleted:
        again(r)
    consume(r, B)
    given(r, "m1", B)
    return r


def group_held(deleted: bool) -> Recording:
    r = Recording("broker")
    call(r, "declare", q="q", args={"groups": "held"}, **C)
    given(r, "m1", A, key="k")
    if deleted:
        again(r, groups="held")
    given(r, "m2", B, key="k")
    return r


def published_to_none(deleted: bool) -> Recording:
    """A message that is confirmed between the two queues goes nowhere."""
    r = Recording("broker")
    if deleted:
        call(r, "delete", q="q", **C)
    r.publish("m1")
    if deleted:
        call(r, "declare", q="q", **C)
    r.publish("m2")
    call(r, "get", q="q", m="m2", dtag=1, redelivered=False, pub="p", pseq=2, **A)
    return r


def requeued_to_the_tail(deleted: bool) -> Recording:
    """The next queue puts what is requeued elsewhere."""
    r = Recording("broker")
    call(r, "declare", q="q", args={"requeue": "tail"}, **C)
    if deleted:
        again(r, requeue="head")
    r.publish("m1")
    given(r, "m1", A, dtag=1)
    r.publish("m2")
    r.add("nack", ms=["m1"], q="q", dtag=1, requeue=True, **A)
    given(r, "m1", A, dtag=2, redelivered=True)
    return r


def ready_at_rest(deleted: bool) -> Recording:
    """No consumer of the next queue waits beside its message."""
    r = Recording()
    call(r, "ch_open", **A)
    r.add("note", args={"rest": True})
    consume(r, A)
    if deleted:
        again(r)
    r.publish("m1")
    r.add("note", q="q", args={"rest": True, "depth": 1})
    r.alive("a")
    return r


def waits_long(deleted: bool) -> Recording:
    r = Recording()
    consume(r, A)
    if deleted:
        again(r)
    r.publish("m1")
    r.add("note", args={"later": True})
    at = r.events[-1].t or 0
    op = len(r.events)
    for ph in ("invoke", "ok"):
        event = r.add("qos", ph, op=op, **A)
        r.events[-1] = type(event)(
            **{f: getattr(event, f) for f in event.__struct_fields__}
            | {"t": at + 60_000_000_000 + event.i}
        )
    return r


def channel_did_not_answer(stuck: bool) -> Recording:
    """The broker closed a channel instead of answering it; that the connection is answered later says nothing of it."""
    r = Recording()
    consume(r, A)
    given(r, "m1", A, dtag=1)
    if stuck:
        r.add("consume", "invoke", op=99, q="other", ctag="second", exclusive=True, **A)
    consume(r, B)
    given(r, "m1", B, dtag=1, redelivered=True)
    call(r, "ch_close", **C)
    call(r, "conn_close", conn="a")
    return r


def exclusive_did_not_answer(stuck: bool) -> Recording:
    r = Recording()
    consume(r, A, exclusive=True)
    if stuck:
        r.add("consume", "invoke", op=99, q="q", ctag="second", **A)
    consume(r, B)
    call(r, "ch_close", **C)
    call(r, "conn_close", conn="a")
    return r


def settled_twice(refused: bool) -> Recording:
    r = Recording("wire")
    given(r, "m1", A, dtag=1)
    for _ in range(2):
        r.add("ack", "invoke", dtag=1, **A)
    if refused:
        r.add("ch_close", err="406", **A)
    r.alive("a")
    return r


def a_first_tag_again(closed: bool) -> Recording:
    """No openings are recorded, and the channel's close was asked for; nor is the answer."""
    r = Recording()
    given(r, "m1", A, dtag=1)
    if closed:
        r.add("ch_close", "invoke", op=9, **A)
    given(r, "m2", A, dtag=1)
    return r


def settled_twice_at_the_end(over: bool) -> Recording:
    """What is recorded ends before the broker can have refused it: what was asked later is not answered."""
    r = Recording()
    given(r, "m1", A, dtag=1)
    for _ in range(2):
        r.add("ack", "invoke", dtag=1, **A)
    r.add("qos", "invoke", op=1, **A)
    if not over:
        r.add("qos", "ok", op=1, **A)
    return r


def limited_later(of_consumers: bool) -> Recording:
    """What came under the limit of each of two consumers is above that of their channel, which is asked for later."""
    r = Recording("wire")
    if of_consumers:
        call(r, "qos", prefetch=3, scope="consumer", **A)
    else:
        call(r, "qos", prefetch=3, scope="channel", **A)
    for n in (1, 2):
        call(r, "consume", q="q", ctag=f"tag-{n}", **A)
    r.add("qos", "invoke", op=99, prefetch=2, scope="channel", **A)
    for n in range(1, 5):
        r.add("deliver", m=f"m{n}", q="q", ctag=f"tag-{n % 2 + 1}", dtag=n, **A)
    r.add("qos", "ok", op=99, prefetch=2, scope="channel", **A)
    return r


def taken_where_lines_were_lost(lost: bool) -> Recording:
    r = Recording("broker")
    r.publish("m1")
    if lost:
        r.add(GAP)
    r.publish("m2")
    call(r, "get", q="q", m="m2", dtag=1, redelivered=False, pub="p", pseq=2, **A)
    return r


def confirmed_where_lines_were_lost(lost: bool) -> Recording:
    """It was sent, and may have been given to somebody, before the lines that are left."""
    r = Recording("broker")
    if lost:
        r.add(GAP)
    else:
        r.add("publish", "invoke", m="m1", q="q", pub="p", pseq=1, conn="pub", ch=1, gen=1)
    r.add("publish", "ok", m="m1", q="q", pub="p", pseq=1, conn="pub", ch=1, gen=1)
    r.publish("m2")
    call(r, "get", q="q", m="m2", dtag=1, redelivered=False, pub="p", pseq=2, **A)
    return r


def limited_where_lines_were_lost(lost: bool) -> Recording:
    """The limit of the higher consumer's channel may be another."""
    r = Recording("broker")
    call(r, "qos", prefetch=3, scope="consumer", **A)
    if lost:
        r.add(GAP)
    consume(r, A, cprio=1)
    consume(r, B)
    given(r, "m1", B)
    return r


def raised_where_lines_were_lost(lost: bool) -> Recording:
    r = Recording("broker")
    call(r, "ch_open", **A)
    call(r, "qos", prefetch=1, scope="channel", **A)
    consume(r, A, autoack=False)
    if lost:
        r.add(GAP)
    for n in (1, 2):
        given(r, f"m{n}", A, dtag=n)
    return r


def begun_where_lines_were_lost(lost: bool) -> Recording:
    """Nobody knows whether a consumer that began there settles at all."""
    r = Recording("broker")
    if lost:
        r.add(GAP)
    else:
        r.add("consume", "ok", q="q", ctag="first", **A)
    r.add("deliver", m="m1", q="q", ctag="first", dtag=1, redelivered=False, **A)
    call(r, "qos", prefetch=1, scope="channel", **A)
    consume(r, A, autoack=False)
    given(r, "m2", A, dtag=2)
    return r


def given_again_where_lines_were_lost(lost: bool) -> Recording:
    """Without flags: what is given first after them may have been given there, and come back."""
    r = Recording()
    for m in ("m1", "m2"):
        r.publish(m)
    consume(r, A, autoack=True)
    if lost:
        r.add(GAP)
    for m in ("m2", "m1"):
        r.add("deliver", m=m, q="q", ctag="tag-a", dtag=3 - int(m[1]), **A)
    return r


def recovered_where_lines_were_lost(lost: bool) -> Recording:
    """A consumer that began there may have had nothing to settle, so that nothing came back."""
    r = Recording("broker")
    if lost:
        r.add(GAP)
    r.publish("m1")
    given(r, "m1", A, dtag=1)
    r.add("recover", requeue=True, **A)
    r.publish("m2")
    call(r, "get", q="q", m="m2", dtag=1, redelivered=False, pub="p", pseq=2, autoack=False, **B)
    return r


def group_where_lines_were_lost(lost: bool) -> Recording:
    r = Recording("broker")
    if lost:
        r.add(GAP)
    call(r, "declare", q="q", args={"groups": "held"}, **C)
    given(r, "m1", A, key="k")
    given(r, "m2", B, key="k")
    return r


def polled(r: Recording, m: str, by: str, **fields: Any) -> None:
    """A worker without a channel asks for a message and is given it."""
    op = len(r.events)
    r.add("get", "invoke", op=op, q="q", proc=by)
    r.add("get", "ok", op=op, q="q", proc=by, m=m, **fields)


def empty(r: Recording) -> None:
    """Nothing is in the queue, and nobody has anything."""
    r.add("note", q="q", args={"depth": 0, "held": 0, "rest": True})


def settled_with_anothers(several: bool) -> Recording:
    """An ack of all that was given before (AckAll of JetStream, cumulative acks) may be of others' messages, too."""
    r = Recording()
    r.declare()
    for m, by in (("m1", "w1"), ("m2", "w2")):
        r.publish(m)
        polled(r, m, by)
    r.add("ack", q="q", proc="w2", ms=["m2"], multiple=several or None)
    empty(r)
    return r


def tried_too_often(parks: bool) -> Recording:
    r = Recording()
    attempts = {"max_attempts": 2} if parks else {}
    r.declare("q", **attempts)
    r.publish("m1")
    polled(r, "m1", "w1", attempt=2)
    empty(r)
    return r


def settled_and_given_again(conn: str, early: bool) -> Recording:
    """A worker's ack is answered; another one, which has asked before that or asks later, is given the message."""
    r = Recording()
    r.publish("m1")
    polled(r, "m1", "w1", conn=conn, attempt=1)
    if early:
        r.add("get", "invoke", op=2, q="q", proc="w2", conn=conn and "b")
    call(r, "ack", q="q", proc="w1", conn=conn, ms=["m1"])
    if not early:
        r.add("get", "invoke", op=2, q="q", proc="w2", conn=conn and "b")
    r.add("get", "ok", op=2, q="q", proc="w2", conn=conn and "b", m="m1", attempt=2)
    r.add("get", "invoke", op=3, q="q", proc="w1", conn=conn)
    return r


def came_while_settled(leases: bool) -> Recording:
    """Where settlements are refused, leases run out: XACK of Redis settles what another one has just claimed."""
    r = settled_and_given_again("a", early=True)
    if leases:
        call_answered(r, "m0", "w3", "fail")
    return r


def taken_by_a_poll_without_an_answer(unanswered: bool) -> Recording:
    """It may have taken the message when the lease was over; so an old receipt was answered well."""
    r = settled_and_given_again("", early=False)
    if unanswered:
        asked = Event(i=-1, t=-10, ev="get", ph="invoke", lvl=r.lvl, op=9, q="q", proc="w9")
        r.events.insert(0, asked)
    return r


def group_of_workers(**args: float) -> Recording:
    r = Recording()
    r.declare("q", groups="held", **args)
    for m, by in (("m1", "w1"), ("m2", "w2")):
        r.publish(m)
        polled(r, m, by, key="k")
    return r


def group_where_leases_run_out(shown: bool) -> Recording:
    """A settlement that is refused shows it; and that a message goes to another worker while one has it."""
    r = group_of_workers()
    if shown:
        call_answered(r, "m1", "w1", "fail")
    call_answered(r, "m1", "w1", "ok")
    return r


def call_answered(r: Recording, m: str, by: str, ph: str) -> None:
    """A worker's ack is answered: well, or by an error."""
    op = len(r.events)
    for each in ("invoke", ph):
        r.add("ack", each, op=op, q="q", proc=by, ms=[m])


def group_where_another_lease_ran_out(shown: bool) -> Recording:
    r = group_of_workers()
    if shown:
        polled(r, "m2", "w3", key="k")
    call_answered(r, "m1", "w1", "ok")
    return r


def group_with_leases(over: bool) -> Recording:
    """The first worker's lease may be over when the second one is given a message."""
    return group_of_workers(lease=0.00001 if over else 1000)


@pytest.mark.parametrize(
    ("id", "history"),
    [
        ("P1", settled_with_anothers),
        ("P1", tried_too_often),
        ("P1", came_while_settled),
        ("P1", taken_by_a_poll_without_an_answer),
        ("P23", group_where_leases_run_out),
        ("P23", group_where_another_lease_ran_out),
        ("P23", group_with_leases),
        ("P10", exclusive),
        ("P10", single_active),
        ("P11", higher_consumer),
        ("P23", group_held),
        ("P5", published_to_none),
        ("P25", requeued_to_the_tail),
        ("P14", ready_at_rest),
        ("P14", waits_long),
        ("P2", channel_did_not_answer),
        ("P10", exclusive_did_not_answer),
        ("P8", settled_twice),
        ("P8", settled_twice_at_the_end),
        ("P8", a_first_tag_again),
        ("P7", limited_later),
        ("P5", taken_where_lines_were_lost),
        ("P5", confirmed_where_lines_were_lost),
        ("P11", limited_where_lines_were_lost),
        ("P7", raised_where_lines_were_lost),
        ("P7", begun_where_lines_were_lost),
        ("P4", given_again_where_lines_were_lost),
        ("P5", recovered_where_lines_were_lost),
        ("P23", group_where_lines_were_lost),
    ],
)
def test_what_explains_it_is_no_violation_and_without_it_there_is_one(
    id: str, history: Callable[[bool], Recording]
) -> None:
    assert judged(id, history(False)).verdict is Verdict.VIOLATED
    assert judged(id, history(True)).verdict is not Verdict.VIOLATED


@pytest.mark.parametrize("conn", ["", "a"])
def test_what_was_asked_for_after_an_answered_ack_is_a_violation(conn: str) -> None:
    assert judged("P1", settled_and_given_again(conn, early=False)).verdict is Verdict.VIOLATED


def test_a_message_that_was_tried_seldom_is_not_parked() -> None:
    r = Recording()
    r.declare(max_attempts=3)
    r.publish("m1")
    polled(r, "m1", "w1", attempt=2)
    r.publish("m2")
    empty(r)
    assert judged("P1", r).n_violations == 2


@pytest.mark.parametrize(("times", "lost"), [(4, True), (5, False)])
def test_what_was_given_five_times_may_have_been_parked(times: int, lost: bool) -> None:
    """A share group of Kafka archives it then, undeclared."""
    r = Recording()
    r.publish("m1")
    for n in range(times):
        polled(r, "m1", f"w{n}")
    empty(r)
    assert (judged("P1", r).verdict is Verdict.VIOLATED) is lost


@pytest.mark.parametrize("back", [True, False], ids=["another connection", "the same"])
def test_an_answer_to_a_connection_says_nothing_of_one_of_that_name_before(back: bool) -> None:
    """Its drop is seen late, when the broker has given what it had to another one; then it connects again."""
    r = Recording()

    def asks(conn: str, op: int) -> None:
        for ph in ("invoke", "ok"):
            r.add("consume", ph, op=op, q="q", conn=conn, ctag=f"of {conn}")

    r.publish("m1")
    asks("c", 1)
    asks("d", 2)
    r.add("deliver", q="q", m="m1", conn="c", ctag="of c")
    r.add("deliver", q="q", m="m1", conn="d", ctag="of d")
    if back:
        r.add("conn_drop", conn="c")
    asks("c", 3)
    asks("d", 4)
    assert (judged("P2", r).verdict is Verdict.VIOLATED) is not back


@pytest.mark.parametrize("again", [True, False], ids=["used again", "closed once"])
def test_a_connection_whose_name_was_used_again_may_have_been_given_more_before_each_end(
    again: bool,
) -> None:
    """What was on its way to it when it was closed for the second time comes marked as redelivered."""
    r = Recording()

    def calls(conn: str, op: int, *names: str) -> None:
        for n, ev in enumerate(names):
            more = {"q": "q", "ctag": f"t{op}"} if ev == "consume" else {}
            for ph in ("invoke", "ok"):
                whole = ev.startswith("conn")
                r.add(ev, ph, op=op + n, conn=conn, ch=None if whole else 1, **more)

    calls("c", 10, "ch_open", "consume", "conn_close")
    r.publish("m1")
    if again:
        calls("c", 20, "ch_open", "consume", "conn_close")
    calls("d", 30, "ch_open", "consume")
    r.add("deliver", q="q", m="m1", conn="d", ch=1, ctag="t30", dtag=1, redelivered=True)
    calls("d", 40, "qos")
    assert (judged("P3", r).verdict is Verdict.VIOLATED) is not again


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_consumer_without_a_channel_is_cancelled_where_it_was_asked_for(cancelled: bool) -> None:
    """Its `cancel` need not name the queue; the other one is active then (P10)."""
    r = Recording("broker")
    r.add("declare", q="q", args={"x-single-active-consumer": True})
    for who in "ab":
        r.add("consume", q="q", conn=who, ctag=f"of {who}")
    r.add("deliver", q="q", m="m1", conn="a", ctag="of a")
    if cancelled:
        r.add("cancel", conn="a", ctag="of a")
    r.add("deliver", q="q", m="m2", conn="b", ctag="of b")
    assert (judged("P10", r).verdict is Verdict.VIOLATED) is not cancelled


@pytest.mark.parametrize("there", [True, False])
def test_who_is_answered_later_may_have_had_its_lease_before(there: bool) -> None:
    """Its answer waited while its connection ended, and another one was given the message (P26)."""
    r = Recording()
    r.add("declare", "ok", q="q", args={"lease": 50_000})
    r.publish("m1")
    r.add("get", "invoke", op=1, q="q", conn="a", proc="a")
    r.add("get", "invoke", op=2, q="q", conn="b", proc="b")
    r.add("get", "ok", op=2, q="q", m="m1", conn="b", proc="b")
    r.add("get", "ok", op=1, q="q", m="m1", conn="a", proc="a")
    for op, who in ((3, "b"), (4, "b"), (5, "a"), (6, "a")):
        if there or who == "b":
            r.add("get", "invoke", op=op, q="q", conn=who, proc=who)
    assert (judged("P26", r).verdict is Verdict.VIOLATED) is there


@pytest.mark.parametrize("named", ["m1", "m2"])
def test_what_a_client_puts_back_unseen_it_had_been_given(named: str) -> None:
    """Pulsar's client puts back, too, what waits for its callback: what comes then is not handed out first."""
    r = Recording()
    for m in ("m1", "m2"):
        r.publish(m)
    r.add("consume", "ok", q="q", conn="c", ctag="t", autoack=False)
    if named == "m1":
        r.add("nack", q="q", ms=["m1"], requeue=True, conn="c", ctag="t")
    for m in ("m2", "m1"):
        r.add("deliver", q="q", m=m, conn="c", ctag="t")
    assert (judged("P4", r).verdict is Verdict.VIOLATED) is (named != "m1")


@pytest.mark.parametrize(
    "what",
    [{"attempt": 5}, {"unseen": True}, {}],
    ids=["says so", "polls of unknown outcome", "neither"],
)
def test_a_message_may_have_been_given_more_often_than_it_was_seen(what: dict[str, Any]) -> None:
    r = Recording()
    r.publish("m1")
    if what.get("unseen"):
        r.add("get", "info", op=7, q="q", proc="w0")
    polled(r, "m1", "w1", attempt=what.get("attempt", 1))
    empty(r)
    assert (judged("P1", r).verdict is Verdict.VIOLATED) is (not what)


def test_the_next_queue_is_held_to_what_it_declares() -> None:
    """What its consumers, groups and messages do wrong is a violation again."""
    r = exclusive(True)
    call(r, "cancel", q="q", ctag="tag-b", **B)
    consume(r, B, exclusive=True)
    consume(r, A)
    r.alive("b")
    assert judged("P10", r).verdict is Verdict.VIOLATED
    r = group_held(True)
    given(r, "m3", A, key="k")
    assert judged("P23", r).verdict is Verdict.VIOLATED
    r = published_to_none(True)
    r.publish("m3")
    r.publish("m4")
    call(r, "get", q="q", m="m4", dtag=2, redelivered=False, pub="p", pseq=4, **A)
    assert judged("P5", r).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("given", "sent", "verdict"),
    [
        ({"t": 5}, {"t": 4}, Verdict.INCONCLUSIVE),  # its recorder writes lines behind their time
        ({"t": 4}, {"t": 5}, Verdict.VIOLATED),
        ({"t": 4}, {"t": 4}, Verdict.VIOLATED),
        ({"t": 4}, {"t": 4, "rec": "s"}, Verdict.INCONCLUSIVE),  # two recorders at one instant
        ({"t": 4}, {"t": 5, "rec": "s"}, Verdict.VIOLATED),
        ({"t": 4}, {"t": 6, "t_lo": 3}, Verdict.INCONCLUSIVE),  # it may have begun before
        ({}, {}, Verdict.VIOLATED),
        ({"t": 4}, {"t": 5, "ph": ""}, Verdict.INCONCLUSIVE),  # perhaps written when it returned
        ({"t": 4}, {"t": 5, "ph": "", "lvl": "wire"}, Verdict.VIOLATED),
    ],
)
def test_given_before_it_was_sent_is_so_by_the_stamps_too(
    given: dict[str, Any], sent: dict[str, Any], verdict: Verdict
) -> None:
    common: dict[str, Any] = {"m": "m1", "q": "q", "conn": "c", "ch": 1, "rec": "r", "clk": "host"}
    events = [
        Event(i=0, ev="deliver", autoack=True, dtag=1, **(common | given)),
        Event(i=1, ev="publish", **(common | {"ph": "invoke"} | sent)),
    ]
    assert BY_ID["P1"].check(events).verdict is verdict


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("cut", range(3, 12))
def test_a_message_may_have_been_settled_before_a_claim_that_is_seen_late(
    settled: bool, cut: int
) -> None:
    """Of two acks of its first holder one is answered well and the other refused; the second holder's is refused."""
    r = Recording()
    r.publish("m0")
    first: dict[str, Any] = {"proc": "w1", "q": "q", "ms": ["m0"]}
    r.add("get", "ok", q="q", m="m0", proc="w1", op=1)
    r.add("get", "invoke", q="q", proc="w2", op=2)
    r.add("ack", "invoke", op=3, **first)
    r.add("ack", "invoke", op=4, **first)
    r.add("ack", "ok" if settled else "fail", op=3, **first)
    r.add("get", "ok", q="q", m="m0", proc="w2", op=2)
    r.add("ack", "fail", op=4, **first)
    second = first | {"proc": "w2"}
    r.add("ack", "invoke", op=5, **second)
    r.add("ack", "fail", op=5, **second)
    r.add("note", q="q", args={"depth": 0, "held": 0})
    events = list(complete(r.events))
    p1 = BY_ID["P1"]
    finding = p1.check(events)
    assert (finding.verdict is Verdict.VIOLATED) is not settled
    parts = p1.combine(p1.map(events[:cut]), p1.map(events[cut:]))
    assert p1.finish(parts) == finding
