"""Bad use is refused with a word on what was wrong, and nothing is lost by it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from seriatim.broker import Closed, Delivery, Frame, Message, Server
from seriatim.client import CallTimeout, Channel, Connection
from seriatim.host import Threads
from seriatim.workpool import (
    Executor,
    Misuse,
    NotPut,
    Rejected,
    Unregistered,
    Work,
    WorkPool,
    WorkService,
)
from seriatim_models.recording.client import server_snapshot

from .conftest import PATIENCE, Inbox, World, fill, flush


def nothing() -> None:
    pass


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (lambda ch: ch.basic_qos(-1), "prefetch is 0"),
        (lambda ch: ch.basic_ack(-1), "start at 1"),
        (lambda ch: ch.queue_bind("q", ""), "default exchange"),
    ],
)
def test_rejects_what_can_mean_nothing(
    world: World, use: Callable[[Channel], None], why: str
) -> None:
    ch = world.connect().open_channel()
    with pytest.raises(Misuse, match=why):
        use(ch)
    ch.basic_qos(1)  # the channel is as good as before


@pytest.mark.parametrize(
    "make",
    [
        lambda: Executor(Threads(), 0),
        lambda: WorkPool(Threads(), capacity=0),
        lambda: WorkPool(Threads(), block=0),
    ],
)
def test_rejects_a_pool_of_nothing(make: Callable[[], object]) -> None:
    with pytest.raises(Misuse, match="at least"):
        make()


@pytest.mark.parametrize(
    ("use", "code"),
    [
        (lambda ch: ch.basic_get("none"), 404),
        (lambda ch: ch.basic_consume("none", Inbox(), tag="t"), 404),
        (lambda ch: ch.queue_bind("none", "x"), 404),
    ],
)
def test_rejects_a_queue_that_is_not_there(
    world: World, use: Callable[[Channel], None], code: int
) -> None:
    ch = world.connect().open_channel()
    with pytest.raises(Closed) as caught:
        use(ch)
    assert caught.value.code == code
    with pytest.raises(Closed):
        ch.basic_ack(1)


def test_rejects_a_consumer_tag_in_use(world: World) -> None:
    ch = world.connect().open_channel()
    fill(ch, 0)
    ch.basic_consume("q", Inbox(), tag="t")
    with pytest.raises(Closed, match="530"):
        ch.basic_consume("q", Inbox(), tag="t")


def test_rejects_a_consumer_without_a_tag(world: World) -> None:
    ch = world.connect().open_channel()
    fill(ch, 1)
    with pytest.raises(Misuse, match="a consumer has a tag"):
        ch.basic_consume("q", Inbox(), tag="")
    assert ch.basic_get("q") is not None


def test_the_callback_of_a_cancelled_consumer_is_let_go(world: World) -> None:
    ch = world.connect().open_channel()
    fill(ch, 0)
    for tag in ("t", "u"):
        ch.basic_consume("q", Inbox(), tag=tag)
    ch.basic_cancel("t")
    ch.basic_cancel("none")
    assert list(ch._consumers) == ["u"]


def test_rejects_channels_of_a_closed_connection(world: World) -> None:
    c = world.connect()
    c.close()
    c.close()
    with pytest.raises(Closed, match="200"):
        c.open_channel()


def test_closed_channel_stays_closed(world: World) -> None:
    ch = world.connect().open_channel()
    ch.close()
    ch.close()
    with pytest.raises(Closed, match="200 the channel was closed by the application"):
        ch.basic_qos(1)


def test_rejects_work_for_a_channel_that_is_not_registered() -> None:
    pool = WorkPool(Threads())
    with pytest.raises(Unregistered, match="a is not registered"):
        pool.add_work_item("a", Work("1", nothing))


def test_adding_work_returns_whether_it_was_put() -> None:
    host = Threads()
    service = WorkService(host, Executor(host, 1))
    service.pool.register_key("a")
    assert service.add("a", Work("1", nothing)) is True
    assert service.add("b", Work("2", nothing)) is False


def test_rejects_finishing_what_was_not_begun() -> None:
    pool = WorkPool(Threads())
    pool.register_key("a")
    with pytest.raises(Misuse, match="not in progress"):
        pool.finish_work_block("a")
    pool.unregister_key("a")
    pool.unregister_key("a")
    with pytest.raises(Misuse, match="not in progress"):
        pool.finish_work_block("a")
    assert pool.next_work_block() is None


def test_frame_that_answers_nobody_names_nobody() -> None:
    frame = Frame("gone")
    assert (frame.channel, frame.call) == (0, 0), "numbers of channels and calls start at 1"


def test_put_without_room_ends_in_time_or_when_interrupted() -> None:
    pool = WorkPool(Threads(), capacity=1)
    pool.register_key("a")
    pool.add_work_item("a", Work("1", nothing))
    with pytest.raises(NotPut, match="no room in time"):
        pool.add_work_item("a", Work("2", nothing), timeout=0.01)
    pool.interrupt()
    with pytest.raises(NotPut, match="interrupted"):
        pool.add_work_item("a", Work("3", nothing))
    pool.unlimit("a")
    assert pool.add_work_item("a", Work("4", nothing)) is False


def test_a_channel_that_went_with_its_call_out_lifts_no_limit() -> None:
    pool = WorkPool(Threads(), capacity=1)
    for key in "ab":
        pool.register_key(key)
        pool.add_work_item(key, Work(key, nothing))
    pool.unlimit("a")
    pool.unregister_key("a")
    pool.unlimit("a")  # and one that is not there has no call
    with pytest.raises(NotPut, match="no room in time"):
        pool.add_work_item("b", Work("more", nothing), timeout=0.01)


def test_an_interrupt_is_of_one_put() -> None:
    pool = WorkPool(Threads(), capacity=1)
    pool.register_key("a")
    pool.add_work_item("a", Work("1", nothing))
    pool.interrupt()
    for why in ("interrupted", "no room in time"):
        with pytest.raises(NotPut, match=why):
            pool.add_work_item("a", Work("2", nothing), timeout=0.01)


def test_put_without_room_in_time_fails_the_service() -> None:
    """Rule 7: who learns of the failure closes what nobody would serve any more."""
    failures: list[str] = []
    host = Threads()
    service = WorkService(host, Executor(host, 1), capacity=1, on_failure=failures.append)
    service.pool.register_key("a")
    service.add("a", Work("1", nothing))
    service.add("a", Work("2", nothing), timeout=0.01)
    service.add("b", Work("3", nothing))  # thrown away with its channel: no failure
    assert failures == ["no room in time"]


def call_until_closed(channel: Channel) -> None:
    while True:
        channel.basic_qos(0)


def test_executor_that_is_shut_down_closes_the_connection(world: World) -> None:
    c = world.connect()
    ch = c.open_channel()
    fill(ch, 2)
    c.work.executor.shutdown()
    with pytest.raises(Rejected):
        c.work.executor.execute(nothing)
    with suppress(Closed):  # the delivery behind the reply may close it first
        ch.basic_consume("q", Inbox(), tag="t")
    with pytest.raises(Closed, match="541 INTERNAL_ERROR - the executor is shut down") as caught:
        call_until_closed(ch)
    assert caught.value.code == 541
    assert world.ready() == ["0", "1"]


def test_callback_that_never_returns_holds_its_own_channel_only(world: World) -> None:
    """Also whoever closes does not wait for it; what it did not acknowledge is in the queue again."""
    c = world.connect(threads=2)
    stuck, other = c.open_channel(), c.open_channel()
    fill(stuck, 2)
    inside, leave = threading.Event(), threading.Event()

    def never(channel: Channel, delivery: Delivery) -> None:
        inside.set()
        assert leave.wait(PATIENCE)

    stuck.basic_consume("q", never, tag="t")
    assert inside.wait(PATIENCE)
    inbox = Inbox()
    fill(other, 3, queue="r")
    other.basic_consume("r", inbox, tag="u")
    flush(other)
    assert len(inbox.got) == 3
    stuck.close()
    assert world.ready() == ["0", "1"]
    c.close()
    leave.set()


def test_whoever_closes_a_connection_finds_it_gone(world: World) -> None:
    c = world.connect()
    channels = [c.open_channel() for _ in range(4)]
    closers = [world.start(c.close) for _ in range(3)]
    c.close()
    for ch in channels:
        with pytest.raises(Closed, match="200"):
            ch.basic_qos(1)
    for closer in closers:
        closer.join(PATIENCE)
        assert not closer.is_alive()


def test_two_may_close_a_channel(world: World) -> None:
    c = world.connect()
    raised: list[Exception] = []
    for _ in range(20):
        ch = c.open_channel()

        def close(ch: Channel = ch) -> None:
            try:
                ch.close()
            except Exception as error:
                raised.append(error)

        threads = [world.start(close) for _ in range(3)]
        for thread in threads:
            thread.join(PATIENCE)
    assert raised == []


def test_callers_are_told_when_the_server_ends_the_connection(world: World) -> None:
    c = world.connect()
    ch = c.open_channel()
    reported = threading.Event()

    def call() -> None:
        with suppress(Closed):
            call_until_closed(ch)
        reported.set()

    world.start(call)
    world.crash(c)
    assert reported.wait(PATIENCE)
    with pytest.raises(Closed, match="320"):
        c.open_channel()


@pytest.mark.parametrize("error", [RuntimeError("the callback's own fault"), SystemExit(1)])
def test_callback_that_raises_spoils_only_itself(world: World, error: BaseException) -> None:
    ch = world.connect().open_channel()
    fill(ch, 5)
    got: list[str] = []

    def on_delivery(channel: Channel, delivery: Delivery) -> None:
        if delivery.message.id == "1":
            raise error
        got.append(delivery.message.id)

    ch.basic_consume("q", on_delivery, tag="t")
    flush(ch)
    assert got == ["0", "2", "3", "4"]


def test_call_ends_in_time_and_its_reply_answers_nobody() -> None:
    """No reader runs until the caller's patience has ended."""
    host = Threads()
    server = Server(host)
    c = Connection(host, server, "c", Executor(host, 1))
    ch = c.open_channel()
    server.request(c.wire, 1, lambda x: server.declare_queue(x, "q"))
    ch.basic_publish("", "q", Message("m"))
    with pytest.raises(CallTimeout):
        ch.basic_get("q", timeout=0.01)
    with pytest.raises(CallTimeout):
        ch.basic_get("q", timeout=0.01)  # its turn does not come
    reader = threading.Thread(target=c.reader, daemon=True)
    reader.start()
    assert ch.basic_get("q") is None  # the message was got by the first, and is unacknowledged
    c.close()
    reader.join(30)
    assert server_snapshot(server)["queues"] == {"q": [["m", 1, True]]}


def test_a_connection_that_is_gone_is_gone_once_and_opens_no_channel(world: World) -> None:
    """A frame that was on its way when the connection broke arrives at nobody."""
    connection = world.connect()
    world.crash(connection)
    world.crash(connection)
    world.server.open(connection.wire, 7)
    said = [e.ev for e in world.records if e.ev in ("srv_open", "srv_gone")]
    assert said == ["srv_gone"]
