"""What RabbitMQ 3.10.8 was seen to do, row by row, and what the reference does.

The reference does not model, and so makes no claim on: immediate and mandatory publishing, prefetch in bytes,
basic.recover, quorum queues (their requeue order is a mutant, `published-quorum-requeue`) and consumer priorities.
It differs on purpose in one row: it honours no-local.
"""

from __future__ import annotations

import pytest

from seriatim.broker import Closed, Delivery, Message
from seriatim.client import Channel, Connection

from .conftest import Inbox, World, fill, flush


def ids(channel: Channel, n: int) -> list[str]:
    got = [channel.basic_get("q") for _ in range(n)]
    return [d.message.id for d in got if d is not None]


def drained(channel: Channel) -> list[str]:
    found = []
    while (d := channel.basic_get("q", auto_ack=True)) is not None:
        found.append(d.message.id)
    return found


@pytest.fixture
def c(world: World) -> Connection:
    return world.connect()


def closed_with(channel: Channel) -> int:
    """An asynchronous command closes the channel; the next call says why."""
    with pytest.raises(Closed) as caught:
        channel.basic_qos(0)
    return caught.value.code


def test_rejects_a_second_ack(c: Connection) -> None:
    ch = c.open_channel()
    fill(ch, 1)
    ch.basic_get("q")
    ch.basic_ack(1)
    ch.basic_ack(1)
    assert closed_with(ch) == 406


def test_rejects_an_unknown_tag(c: Connection) -> None:
    ch = c.open_channel()
    ch.basic_ack(7)
    assert closed_with(ch) == 406


@pytest.mark.parametrize(("tag", "multiple"), [(0, False), (1, True), (7, True)])
def test_rejects_an_ack_of_nothing_but_for_all_there_is(
    c: Connection, tag: int, multiple: bool
) -> None:
    """0 with `multiple` is all, which may be none."""
    ch = c.open_channel()
    ch.basic_ack(0, multiple=True)
    ch.basic_qos(0)
    ch.basic_ack(tag, multiple=multiple)
    assert closed_with(ch) == 406


@pytest.mark.parametrize("first_is_exclusive", [True, False])
def test_rejects_a_consumer_beside_an_exclusive_one(
    c: Connection, first_is_exclusive: bool
) -> None:
    ch, other = c.open_channel(), c.open_channel()
    fill(ch, 0)
    ch.basic_consume("q", Inbox(), tag="t", exclusive=first_is_exclusive)
    with pytest.raises(Closed, match="403") as caught:
        other.basic_consume("q", Inbox(), tag="u", exclusive=not first_is_exclusive)
    assert caught.value.code == 403


def test_get_passes_an_exclusive_consumer(c: Connection) -> None:
    ch, other = c.open_channel(), c.open_channel()
    fill(ch, 0)
    ch.basic_qos(1)
    fill(ch, 2)
    ch.basic_consume("q", Inbox(), tag="t", exclusive=True)
    assert ids(other, 1) == ["1"]


def test_no_local_is_honoured_unlike_in_rabbitmq(world: World, c: Connection) -> None:
    ch, theirs = c.open_channel(), world.connect("d").open_channel()
    fill(ch, 1)
    fill(theirs, 1, start=1)
    inbox = Inbox()
    ch.basic_consume("q", inbox, tag="t", no_local=True)
    flush(ch)
    assert (inbox.ids, world.ready()) == (["1"], ["0"])


def test_prefetch_does_not_hold_back_auto_ack(world: World, c: Connection) -> None:
    ch = c.open_channel()
    fill(ch, 50)
    ch.basic_qos(3)
    inbox = Inbox()
    ch.basic_consume("q", inbox, tag="t", auto_ack=True)
    flush(ch)
    assert inbox.ids == [str(i) for i in range(50)]


def test_what_others_hold_does_not_hold_back_auto_ack(c: Connection) -> None:
    """Not even under a limit of the whole channel."""
    ch = c.open_channel()
    fill(ch, 3)
    ch.basic_qos(1, whole_channel=True)
    holds, settles = Inbox(), Inbox()
    ch.basic_consume("q", holds, tag="t")
    ch.basic_consume("q", settles, tag="u", auto_ack=True)
    flush(ch)
    assert (holds.ids, settles.ids) == (["0"], ["1", "2"])


@pytest.mark.parametrize(("whole_channel", "expected"), [(False, (3, 3)), (True, (3, 0))])
def test_prefetch_is_each_consumers_or_the_channels(
    world: World, c: Connection, whole_channel: bool, expected: tuple[int, int]
) -> None:
    ch = c.open_channel()
    fill(ch, 10)
    ch.basic_qos(3, whole_channel=whole_channel)
    first, second = Inbox(), Inbox()
    ch.basic_consume("q", first, tag="t")
    ch.basic_consume("q", second, tag="u")
    flush(ch)
    assert (len(first.got), len(second.got)) == expected


def test_later_qos_does_not_change_a_consumer(c: Connection) -> None:
    ch = c.open_channel()
    fill(ch, 30)
    inbox = Inbox()
    ch.basic_qos(5)
    ch.basic_consume("q", inbox, tag="t")
    ch.basic_qos(20)
    flush(ch)
    assert len(inbox.got) == 5


def test_get_is_not_limited_by_prefetch(c: Connection) -> None:
    ch = c.open_channel()
    fill(ch, 3)
    ch.basic_qos(1)
    ch.basic_qos(1, whole_channel=True)
    assert ids(ch, 3) == ["0", "1", "2"]


def test_get_on_an_empty_queue_returns_at_once(c: Connection) -> None:
    ch = c.open_channel()
    fill(ch, 0)
    assert ch.basic_get("q") is None


def test_ack_of_nothing_multiple_is_all(world: World, c: Connection) -> None:
    ch = c.open_channel()
    fill(ch, 3)
    ids(ch, 3)
    ch.basic_ack(0, multiple=True)
    ch.basic_ack(0, multiple=True)
    ch.close()
    assert world.ready() == []


def test_reject_is_of_one(world: World, c: Connection) -> None:
    ch = c.open_channel()
    fill(ch, 3)
    ids(ch, 3)
    ch.basic_reject(2)
    assert world.ready() == ["1"]
    ch.basic_reject(3, requeue=False)
    ch.close()
    assert world.ready() == ["0", "1"]


def test_cancelled_consumer_gets_nothing_more_and_its_tag_is_free(
    world: World, c: Connection
) -> None:
    ch = c.open_channel()
    fill(ch, 1)
    before, after = Inbox(), Inbox()
    ch.basic_consume("q", before, tag="t")
    ch.basic_cancel("t")
    ch.basic_cancel("t")  # to cancel what is not there is no error
    fill(ch, 1, start=1)
    flush(ch)
    assert (before.ids, world.ready()) == (["0"], ["1"])
    ch.basic_consume("q", after, tag="t")
    flush(ch)
    assert after.ids == ["1"]


def test_consumers_take_turns(c: Connection) -> None:
    ch = c.open_channel()
    fill(ch, 0)
    inboxes = [Inbox() for _ in range(3)]
    for n, inbox in enumerate(inboxes):
        ch.basic_consume("q", inbox, tag=f"t{n}")
    fill(ch, 7)
    flush(ch)
    assert [i.ids for i in inboxes] == [["0", "3", "6"], ["1", "4"], ["2", "5"]]


def test_what_is_put_back_keeps_its_position(c: Connection) -> None:
    ch, other = c.open_channel(), c.open_channel()
    fill(ch, 8)
    assert ids(ch, 6) == list("012345")
    for tag in (5, 2, 4):
        ch.basic_nack(tag)
    assert drained(other) == list("13467")


def test_closed_channel_requeues_to_the_old_places(c: Connection) -> None:
    ch, other = c.open_channel(), c.open_channel()
    fill(ch, 8)
    ids(ch, 5)
    ids(other, 1)
    ch.close()
    assert drained(other) == list("0123467")


@pytest.mark.parametrize("gone", ["channel", "connection"])
def test_what_comes_back_is_pushed_to_whoever_is_left_at_once(
    world: World, c: Connection, gone: str
) -> None:
    ch, theirs = c.open_channel(), world.connect("d").open_channel()
    fill(ch, 2)
    ids(ch, 2)
    inbox = Inbox()
    theirs.basic_consume("q", inbox, tag="t")
    if gone == "channel":
        ch.close()
    else:
        world.crash(c)
    assert world.ready() == []
    flush(theirs)
    assert [(d.message.id, d.redelivered) for d in inbox.got] == [("0", True), ("1", True)]


def test_single_consumer_gets_back_at_once_what_it_puts_back(c: Connection) -> None:
    ch = c.open_channel()
    fill(ch, 2)
    seen: list[tuple[str, bool]] = []

    def on_delivery(channel: Channel, delivery: Delivery) -> None:
        seen.append((delivery.message.id, delivery.redelivered))
        if len(seen) < 4:
            channel.basic_nack(delivery.delivery_tag)
        else:
            channel.basic_cancel("t")

    ch.basic_qos(1)
    ch.basic_consume("q", on_delivery, tag="t")
    for _ in range(5):  # each lets at least one redelivery be read
        flush(ch)
    assert seen == [("0", False), ("0", True), ("0", True), ("0", True)]


def test_exclusive_queue_is_locked_and_dies(world: World, c: Connection) -> None:
    d = world.connect("d")
    c.open_channel().queue_declare("q", exclusive=True)
    with pytest.raises(Closed, match="405"):
        d.open_channel().basic_get("q")
    with pytest.raises(Closed, match="405"):
        d.open_channel().queue_declare("q")
    c.close()
    with pytest.raises(Closed, match="404"):
        d.open_channel().basic_get("q")


def test_auto_ack_loses_what_a_crash_finds_unprocessed(world: World, c: Connection) -> None:
    """QS-3: shown, not hidden."""
    ch = c.open_channel()
    fill(ch, 4)
    assert ch.basic_get("q") is not None
    assert ch.basic_get("q", auto_ack=True) is not None
    ch.basic_publish("", "q", Message("last"))
    world.crash(c)
    assert world.ready() == ["0", "2", "3", "last"]
