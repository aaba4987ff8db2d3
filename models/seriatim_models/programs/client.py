"""Closed programs over the reference client and its broker.

Readers and the pool's threads are daemons: at the end they wait for more, and that is how it should be.
So is a thread whose being stuck is for a property to judge, not for the explorer.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import seriatim.client as reference
from seriatim.broker import Act, Delivery, ServerChannel
from seriatim_models.programs.base import Programs
from seriatim_models.programs.client_scene import ClientScene, acking, idle

CLIENT_PROGRAMS = Programs("client")
scenario = CLIENT_PROGRAMS.scenarios(ClientScene)


# ---- calls


@scenario("RPC-1", traces=16)
def rpc_two_callers(scene: ClientScene) -> None:
    """Two threads call on one channel, and each is handed its own reply.

    Bounds: Two callers, one call each; one message, which the second gets. A third waits as the second does.
    """
    (ch,) = scene.client(messages=1)
    scene.spawn(lambda: ch.basic_qos(1), "A")
    scene.spawn(lambda: ch.basic_get("q"), "B")


@scenario("RPC-1", traces=1800)
def rpc_three_callers(scene: ClientScene) -> None:
    """Three threads call on one channel: of two that wait for their turn one waits again.

    Bounds: Three callers, one call each. A fourth waits as the third does.
    """
    (ch,) = scene.client()
    for n in (1, 2, 3):
        scene.spawn(partial(ch.basic_qos, n), f"A{n}")


@scenario("RPC-1", traces=200)
def rpc_woken_in_vain(scene: ClientScene) -> None:
    """Two threads call on one channel, and those who wait for a turn or for a reply wake without a notification.

    Bounds: Two callers, one call each, one such moment.
    """
    (ch,) = scene.client()
    for n in (1, 2):
        scene.spawn(partial(ch.basic_qos, n), f"A{n}")
    scene.wake_in_vain(ch._lock, ch._changed)


@scenario("RPC-1", traces=21)
def close_woken_in_vain(scene: ClientScene) -> None:
    """A thread closes a connection, and wakes without a notification before it has ended.

    Bounds: One who closes, one such moment.
    """
    (ch,) = scene.client()

    def close() -> None:
        ch.connection.close()
        assert ch.connection._gone, "close returned before the connection had ended"

    scene.spawn(close, "A")
    scene.wake_in_vain(ch.connection._lock, ch.connection._over)


@scenario("RPC-1", traces=58)
def closed_for_one_reason(scene: ClientScene) -> None:
    """A channel is shut down twice at the same time, for two reasons, while a thread calls on it twice.

    Bounds: One caller, who is given the same reason each time.
    """
    (ch,) = scene.client()

    def call_twice() -> None:
        for n in (1, 2):
            with suppress(scene.lib.Closed):
                ch.basic_qos(n)

    scene.spawn(call_twice, "A")
    for code in (320, 541):
        scene.spawn(partial(ch.shut_down, scene.lib.Closed(code, "the end")), f"end {code}")


@scenario("RPC-1", traces=4)
def rpc_late(scene: ClientScene) -> None:
    """A caller's patience ends, and the reply comes when the next call is made.

    Bounds: One caller, two gets, one of them with a time limit. A second caller who waits for the slot is in
    `rpc-impatient`.
    """
    (ch,) = scene.client()
    scene.at(ch, lambda x: scene.server.declare_queue(x, "q"))

    def twice() -> None:
        with suppress(scene.lib.CallTimeout):
            ch.basic_get("q", timeout=1)
        ch.basic_get("q")

    scene.spawn(twice, "A")


@scenario("RPC-1", traces=51)
def rpc_impatient(scene: ClientScene) -> None:
    """A caller's patience ends while another waits for its turn.

    Bounds: Two callers on one channel, one of them with a time limit. Both being impatient is not here, nor a reply
    that never comes.
    """
    (ch,) = scene.client()
    scene.at(ch, lambda x: scene.server.declare_queue(x, "q"))
    scene.spawn(lambda: ch.basic_get("q", timeout=1), "A")
    scene.spawn(lambda: ch.basic_qos(1), "B")


@scenario("RPC-1", traces=146)
def rpc_crash(scene: ClientScene) -> None:
    """The connection goes while two threads call on one channel.

    Bounds: Two callers, one end. Deliveries under way are in `crash-anywhere`.
    """
    (ch,) = scene.client()
    scene.spawn(lambda: ch.basic_qos(1), "A")
    scene.spawn(lambda: ch.basic_qos(2), "B")
    scene.spawn(lambda: scene.crash(ch.connection), "crash")


@scenario("RPC-1", traces=21)
def rpc_close(scene: ClientScene) -> None:
    """A thread calls on a channel while another closes the connection.

    Bounds: One caller, one end. Two who close are in `close-connection-twice`, deliveries in
    `connection-closed-while-delivering`.
    """
    (ch,) = scene.client()
    scene.spawn(lambda: ch.basic_qos(1), "A")
    scene.spawn(ch.connection.close, "closer")


@scenario("RPC-1", traces=9)
def publish_while_closing(scene: ClientScene) -> None:
    """A message is published while its connection is closed; whoever published it asks for it elsewhere.

    Bounds: One message, one closing, a second connection. A publish that returns has been sent: what follows it
    elsewhere finds the message.
    """
    (ch,) = scene.client()
    (other,) = scene.client("d")
    scene.at(ch, lambda x: scene.server.declare_queue(x, "q"))

    def publish_and_get() -> None:
        ch.basic_publish("", "q", scene.message("m1"))
        other.basic_get("q")

    scene.spawn(publish_and_get, "A")
    scene.spawn(ch.connection.close, "closer")


@scenario("RPC-1", traces=1)
def publish_after_refusal(scene: ClientScene) -> None:
    """A call is refused, which closes the channel; then a message is published on it, and asked for elsewhere.

    Bounds: One refusal, one message, a second connection. Who knows that the channel is closed publishes nothing.
    """
    (ch,) = scene.client()
    (other,) = scene.client("d")
    scene.at(other, lambda x: scene.server.declare_queue(x, "q"))

    def publish_and_get() -> None:
        with suppress(scene.lib.Closed):
            ch.basic_get("none")
        ch.basic_publish("", "q", scene.message("m1"))
        other.basic_get("q")

    scene.spawn(publish_and_get, "A")


@scenario("CH-5 RPC-1", traces=18)
def refused_beside_put(scene: ClientScene) -> None:
    """A channel is shut down while a call on it may come too late; work for another one that is full waits for a while.

    Bounds: Room for one, one call, one shutdown. Nobody reads replies, so that the shutdown ends a call that was sent.
    """
    ch, other = scene.client(capacity=1, channels=2, read=False)
    pool = ch.connection.work.pool
    pool.add_work_item(other.key, scene.work("m1"))

    def put() -> None:
        with suppress(scene.lib.NotPut):
            pool.add_work_item(other.key, scene.work("m2"), 1.0)

    scene.spawn(lambda: ch.shut_down(scene.lib.Closed(320, "the end")), "closer")
    scene.spawn(lambda: ch.basic_qos(1), "A")
    scene.spawn(put, "reader")


@scenario("RPC-1 CH-1 CH-4", traces=70)
def consume_while_failing(scene: ClientScene) -> None:
    """A connection fails while a consumer is being added: whoever is refused is not called back.

    Bounds: One message, one call, one thread of the pool. A consumer that was there before is in
    `connection-closed-while-delivering`.
    """
    (ch,) = scene.client(messages=1)
    scene.spawn(lambda: ch.basic_consume("q", idle, tag="t"), "A")
    scene.spawn(lambda: ch.connection.fail("the end"), "closer")


@scenario("RPC-1", traces=8)
def closed_before_reply(scene: ClientScene) -> None:
    """A channel is shut down beside a call; a publish that is refused shows that the call has ended.

    Bounds: One call, one shutdown. Replies are read only after that, by who was refused.
    """
    (ch,) = scene.client(read=False)

    def publish_or_read() -> None:
        try:
            ch.basic_publish("", "none", scene.message("m1"))
        except scene.lib.Closed:
            ch.connection.reader()

    scene.spawn(lambda: ch.basic_qos(1), "A")
    scene.spawn(lambda: ch.shut_down(scene.lib.Closed(320, "the end")), "closer")
    scene.spawn(publish_or_read, "late")


@scenario("RPC-1", traces=7)
def declare_while_shut_down(scene: ClientScene) -> None:
    """A channel is shut down beside a call that makes a queue; who is refused publishes to it on another connection.

    Bounds: One call, one shutdown, a message there and one to a queue that is there before. A call that is sent when
    others know that its channel is closed makes its queue behind the message. Nobody reads replies.
    """
    (ch,) = scene.client(messages=0, read=False)
    (other,) = scene.client("d", read=False)

    def publish() -> None:
        try:
            ch.basic_publish("", "none", scene.message("m1"))
        except scene.lib.Closed:
            other.basic_publish("", "q", scene.message("m2"))
            other.basic_publish("", "r", scene.message("m3"))

    scene.spawn(lambda: ch.queue_declare("r"), "A")
    scene.spawn(lambda: ch.shut_down(scene.lib.Closed(320, "the end")), "closer")
    scene.spawn(publish, "late")


@scenario("CH-5 RPC-1", traces=10)
def full_beside_call(scene: ClientScene) -> None:
    """A channel is shut down beside a call; work for a full one that is refused shows that the call has ended.

    Bounds: Room for one, one call, one shutdown. Replies are read only after that, by who was refused. A call that
    comes too late is in `refused-beside-put`.
    """
    ch, other = scene.client(capacity=1, channels=2, read=False)
    pool = ch.connection.work.pool
    pool.add_work_item(other.key, scene.work("m1"))
    sent = scene.world.semaphore(0, "sent")

    def put_or_read() -> None:
        sent.acquire()
        try:
            pool.add_work_item(other.key, scene.work("m2"), 1.0)
        except scene.lib.NotPut:
            ch.connection.reader()

    scene.spawn(lambda: ch._call("probe", lambda _: sent.release()), "A")
    scene.spawn(lambda: ch.shut_down(scene.lib.Closed(320, "the end")), "closer")
    scene.spawn(put_or_read, "late")


@scenario("RPC-1", traces=35)
def open_while_closing(scene: ClientScene) -> None:
    """A thread opens a channel and calls on it while another closes the connection.

    Bounds: One channel, one call, one end. A connection that was closed before opens nothing.
    """
    connection = scene.connect("c")
    scene.world.spawn(connection.reader, name="reader c", daemon=True)
    scene.spawn(lambda: connection.open_channel().basic_qos(1), "A")
    scene.spawn(connection.close, "closer")


@scenario("RPC-1", traces=25)
def open_while_replying(scene: ClientScene) -> None:
    """A thread opens a second channel and calls on it while the reader takes the reply to a call on the first.

    Bounds: Two channels, one call on each.
    """
    (ch,) = scene.client()
    scene.spawn(lambda: ch.connection.open_channel().basic_qos(1), "A")
    scene.spawn(lambda: ch.basic_qos(1), "B")


@scenario("RPC-1", traces=110)
def close_connection_twice(scene: ClientScene) -> None:
    """Two threads close a connection; both return when it has ended.

    Bounds: Two who close, no channel in use.
    """
    (ch,) = scene.client()
    scene.spawn(ch.connection.close, "A")
    scene.spawn(ch.connection.close, "B")


@scenario("RPC-1", traces=50)
def open_two(scene: ClientScene) -> None:
    """Two threads open a channel each, and call on it.

    Bounds: One connection without channels before, one call on each.
    """
    connection = scene.connect("c")
    scene.world.spawn(connection.reader, name="reader c", daemon=True)
    for name in "AB":
        scene.spawn(lambda: connection.open_channel().basic_qos(1), name)


@scenario("RPC-1 AP-1", traces=9)
def publish_when_closed(scene: ClientScene) -> None:
    """A thread closes a connection, which crashes meanwhile, and then publishes: that is refused.

    Bounds: One channel, one closing, one crash, one message behind them.
    """
    (ch,) = scene.client(messages=0)
    scene.spawn(lambda: close_and_publish(scene, ch), "A")
    scene.spawn(lambda: scene.crash(ch.connection), "crash")


@scenario("RPC-1 AP-1", traces=20)
def publish_when_failed(scene: ClientScene) -> None:
    """A thread closes a connection, which another thread ends meanwhile, and then publishes: that is refused.

    Bounds: One channel, one closing, one failure, one message behind them.
    """
    (ch,) = scene.client(messages=0)
    scene.spawn(lambda: close_and_publish(scene, ch), "A")
    scene.spawn(lambda: ch.connection.fail("no room in time"), "reader")


def close_and_publish(scene: ClientScene, ch: reference.Channel) -> None:
    """Close a channel's connection; when that has returned the channel takes nothing any more."""
    ch.connection.close()
    with scene.refused(scene.lib.Closed):
        ch.basic_publish("", "q", scene.message("m1"))


@scenario("RPC-1 AP-1", traces=1)
def misused(scene: ClientScene) -> None:
    """Calls whose arguments are refused send nothing, and the channel goes on.

    Bounds: One thread; each operation that refuses, once.
    """
    (ch,) = scene.client(messages=1)

    def misuse() -> None:
        with scene.refused(scene.lib.Misuse):
            ch.queue_bind("q", "")
        with scene.refused(scene.lib.Misuse):
            ch.basic_qos(-1)
        with scene.refused(scene.lib.Misuse):
            ch.basic_consume("q", idle, tag="")
        with scene.refused(scene.lib.Misuse):
            ch.basic_ack(-1)
        ch.basic_qos(1)

    scene.spawn(misuse, "A")


@scenario("RPC-1", traces=16)
def rpc_close_channel(scene: ClientScene) -> None:
    """A thread calls on a channel that another closes.

    Bounds: One caller, one end. Two who close are not here, nor deliveries (`close-while-delivering`).
    """
    (ch,) = scene.client()
    scene.spawn(lambda: ch.basic_qos(1), "A")
    scene.spawn(ch.close, "closer")


@scenario("RPC-1", traces=12)
def rpc_refused(scene: ClientScene) -> None:
    """A call is refused, which closes the channel, while another thread waits for its turn.

    Bounds: Two callers, one refusal. A third caller gets the second one's answer.
    """
    (ch,) = scene.client()
    scene.spawn(lambda: ch.basic_get("there is none"), "A")
    scene.spawn(lambda: ch.basic_qos(1), "B")


@scenario("RPC-1 CH-1 CH-2 CH-4 QS-1", traces=165)
def rpc_in_callback(scene: ClientScene) -> None:
    """A callback calls on its own channel.

    Bounds: Two deliveries, one thread in the pool. Nothing is full; that is `rpc-while-full`.
    """
    (ch,) = scene.client(messages=2)

    def on_delivery(channel: reference.Channel, delivery: Delivery) -> None:
        channel.basic_qos(1)
        channel.basic_ack(delivery.delivery_tag)

    scene.spawn(lambda: ch.basic_consume("q", on_delivery, tag="t"), "A")


@scenario("RPC-1 CH-1 CH-2 CH-4 CH-5", traces=392)
def rpc_while_full(scene: ClientScene) -> None:
    """A callback calls while the reader waits for room in that very channel, before the reply.

    Bounds: Four deliveries, room for one, one call, one thread in the pool. Time limits, and two callbacks that
    call, are not here.
    """
    (ch,) = scene.client(capacity=1, messages=3)

    def on_delivery(channel: reference.Channel, delivery: Delivery) -> None:
        if delivery.delivery_tag == 1:
            channel.basic_qos(1)

    scene.spawn(lambda: ch.basic_consume("q", on_delivery, tag="t"), "A")


@scenario("RPC-1 CH-1 CH-2 CH-4 CH-5", traces=176)
def rpc_while_another_is_full(scene: ClientScene) -> None:
    """A callback calls on another channel while the reader waits for room in its own.

    Bounds: Three deliveries, room for one, one call, one thread in the pool. Only one call is out; two, one of
    which ends first, are not here.
    """
    ch, other = scene.client(capacity=1, channels=2, messages=3)

    def on_delivery(channel: reference.Channel, delivery: Delivery) -> None:
        if delivery.delivery_tag == 1:
            other.basic_qos(1)

    scene.spawn(lambda: ch.basic_consume("q", on_delivery, tag="t"), "A")


@scenario("RPC-1 CH-1 CH-4 CH-5", traces=14)
def async_while_full(scene: ClientScene) -> None:
    """A callback sends a call, goes on, and then waits for its reply, while the reader waits for room in that channel.

    Bounds: Three deliveries, room for one, one asynchronous call, one thread in the pool. The reply is waited for by a
    thread of its own, which is what a future is; several that are out at once are not here: a channel has one slot.
    """
    (ch,) = scene.client(capacity=1, messages=3)

    def on_delivery(channel: reference.Channel, delivery: Delivery) -> None:
        if delivery.delivery_tag == 1:
            scene.later(lambda: channel.queue_declare("q"))()

    scene.consuming(ch, "q", on_delivery)


@scenario("RPC-1", traces=16)
def get_from_empty(scene: ClientScene) -> None:
    """A thread gets from an empty queue while another closes the channel.

    Bounds: One get, one close, no message. The article has the get wait for a message, to be interrupted by the close;
    but a close is a call too, and waits for its turn.
    """
    (ch,) = scene.client(messages=0)
    scene.spawn(lambda: ch.basic_get("q"), "A")
    scene.spawn(ch.close, "closer")


@scenario("RPC-1 CH-4 CH-5", traces=2192)
def rpc_beside_consume(scene: ClientScene) -> None:
    """A callback calls while a thread, on the same channel, begins to consume more than there is room for.

    Bounds: One delivery there and two to come, room for one, two calls, one thread in the pool. More room, which
    puts off when the reader waits, is not here.
    """
    (ch,) = scene.client(capacity=1, messages=1)

    def more(x: ServerChannel) -> None:
        scene.server.declare_queue(x, "r")
        for id in ("m2", "m3"):
            scene.server.publish(x, "", "r", scene.message(id))

    scene.at(ch, more)
    scene.consuming(ch, "q", lambda channel, delivery: channel.basic_qos(1))
    scene.spawn(lambda: ch.basic_consume("r", idle, tag="u"), "A")


@scenario("RPC-1 CH-1 CH-4", traces=60)
def close_in_callback(scene: ClientScene) -> None:
    """A callback closes the connection while the reader waits for room in that very channel.

    Bounds: Three deliveries, room for one, one thread in the pool. A thread of the application that closes is in
    `connection-closed-while-delivering`.
    """
    (ch,) = scene.client(capacity=1, messages=3)
    scene.consuming(ch, "q", lambda channel, delivery: channel.connection.close())


@scenario("CH-1 CH-4 QS-2", traces=281)
def interrupted_while_full(scene: ClientScene) -> None:
    """The reader is interrupted where it may wait for room, and the connection fails.

    Bounds: Three deliveries, room for one, one interrupt, one thread in the pool. No call is out: with one the
    reader would not wait for room.
    """
    (ch,) = scene.client(capacity=1, messages=3)
    scene.consuming(ch, "q", idle)
    scene.spawn(ch.connection.work.pool.interrupt, "interrupter")


@scenario("CH-1 CH-4 QS-2 RPC-1", traces=78)
def executor_gone(scene: ClientScene) -> None:
    """The executor is shut down while messages are delivered, and the connection fails.

    Bounds: One delivery, one call, one shutdown, one thread in the pool. Several channels, and an executor that
    refuses only at times, are not here.
    """
    (ch,) = scene.client(messages=1)
    scene.consuming(ch, "q", idle)
    scene.spawn(lambda: ch.basic_qos(1), "A")
    scene.spawn(scene.executor.shutdown, "closer")


@scenario("CH-1 CH-3 CH-4 QS-2", traces=1898, threads=2)
def refused_while_full(scene: ClientScene) -> None:
    """The server closes a channel, whose callback acknowledges, behind as many deliveries as it has room for.

    Bounds: Two deliveries, room for one, one refusal, a delivery to another channel behind it, two threads in the
    pool. A refusal with room left is in `rpc-refused`.
    """
    ch, other = scene.client(capacity=1, channels=2, messages=2)

    def publish(x: ServerChannel) -> None:
        scene.server.declare_queue(x, "r")
        scene.server.publish(x, "", "r", scene.message("m3"))

    def unknown(x: ServerChannel) -> None:
        scene.server.settle(x, 99, False, None)

    scene.consuming(ch, "q", acking)
    scene.at(ch, unknown)
    scene.at(other, publish)
    scene.consuming(other, "r", idle)


# ---- deliveries and acknowledgements


@scenario("CH-1 CH-2 CH-4 QS-1 RT-1 RPC-1", traces=60)
def consume(scene: ClientScene) -> None:
    """A consumer with a prefetch of one finds a message, and another is published.

    Bounds: Two messages, one consumer that acknowledges, one publisher on another channel, one thread in the pool.
    It neither raises nor closes; a larger prefetch is in `prefetch`.
    """
    ch, p = scene.client(channels=2, messages=1)
    scene.at(ch, lambda x: scene.server.qos(x, 1, False))
    scene.spawn(lambda: ch.basic_consume("q", acking, tag="t"), "A")
    scene.spawn(lambda: p.basic_publish("", "q", scene.message("m2")), "P")


@scenario("CH-1 CH-2 CH-3 CH-4 RT-1", traces=364, threads=2)
def head_of_line(scene: ClientScene) -> None:
    """A slow channel, whose callback waits for another channel's, has more work than it can hold.

    Bounds: Three deliveries for the slow channel, one behind them for the other, two threads in the pool. Nothing
    is bounded here; with a bound the slow channel stops the other, as `published-bounded-queues` shows.
    """
    slow, quick = scene.client(block=1, channels=2, messages=3)
    ran = scene.world.semaphore(0, "the other ran")

    def wait(channel: reference.Channel, delivery: Delivery) -> None:
        if delivery.delivery_tag == 1:
            ran.acquire()

    def fill(x: ServerChannel) -> None:
        scene.server.declare_queue(x, "r")
        scene.server.publish(x, "", "r", scene.message("m4"))

    scene.consuming(slow, "q", wait)
    scene.at(quick, fill)
    scene.consuming(quick, "r", lambda channel, delivery: ran.release())


@scenario("CH-1 CH-4 QS-2 RPC-1", traces=252)
def consume_and_close(scene: ClientScene) -> None:
    """A channel that is being sent messages closes.

    Bounds: One message, one consumer that acknowledges, one thread in the pool. It closes when its consume is
    answered; a close at any time is `close-while-delivering`.
    """
    (ch,) = scene.client(messages=1)

    def consume_and_close() -> None:
        ch.basic_consume("q", acking, tag="t")
        ch.close()

    scene.spawn(consume_and_close, "A")


@scenario("CH-1 CH-4 RPC-1", traces=134)
def consume_and_cancel(scene: ClientScene) -> None:
    """A consumer is cancelled while it is being sent a message; another is published when it is gone.

    Bounds: One consumer that acknowledges, one thread in the pool, one message before the cancel and one after it,
    which stays in its queue.
    """
    (ch,) = scene.client(messages=1)

    def consume_and_cancel() -> None:
        ch.basic_consume("q", acking, tag="t")
        ch.basic_cancel("t")
        ch.basic_publish("", "q", scene.message("m2"))

    scene.spawn(consume_and_cancel, "A")


@scenario("CH-4 RPC-1", traces=44)
def tag_of_another(scene: ClientScene) -> None:
    """A consumer is cancelled; who waits for the turn meanwhile consumes by the same tag, and gets a message.

    Bounds: One channel, one message, in a queue of its own; no message for the consumer that is cancelled.
    """
    (ch,) = scene.client(messages=0)
    server = scene.server
    scene.consuming(ch, "q", idle)
    scene.at(ch, lambda x: server.declare_queue(x, "r"))
    scene.at(ch, lambda x: server.publish(x, "", "r", scene.message("m1")))
    scene.spawn(lambda: ch.basic_cancel("t"), "A")
    scene.spawn(lambda: ch.basic_consume("r", idle, tag="t"), "B")


@scenario("QS-2 RPC-1", traces=9)
def crash_while_closing(scene: ClientScene) -> None:
    """A connection with a message in hand is closed, and crashes at the same time.

    Bounds: One channel, one message that nobody acknowledges, one closing; no second connection.
    """
    (ch,) = scene.client(messages=1)
    scene.at(ch, lambda x: scene.server.get(x, "q", False))
    scene.spawn(ch.connection.close, "closer")
    scene.spawn(lambda: scene.crash(ch.connection), "crash")


@scenario("QS-2 RPC-1", traces=6)
def get_while_crashing(scene: ClientScene) -> None:
    """A message is got by a connection that crashes.

    Bounds: One message, one get, one crash.
    """
    (ch,) = scene.client(messages=1)
    scene.spawn(lambda: ch.basic_get("q"), "A")
    scene.spawn(lambda: scene.crash(ch.connection), "crash")


@scenario("EX-1 QS-2 RPC-1", traces=2)
def crash_seen_by_another(scene: ClientScene) -> None:
    """A connection that has a message and an exclusive queue crashes; who gets the message then declares the queue.

    Bounds: One message, one exclusive queue, one who looks once. It is one step: who has seen a part has all.
    """
    (ch,) = scene.client(messages=1, read=False)
    scene.at(ch, lambda x: scene.server.get(x, "q", False))
    scene.at(ch, lambda x: scene.server.declare_queue(x, "x", True))
    (other,) = scene.client("d")

    def looks() -> None:
        if other.basic_get("q", auto_ack=True) is not None:
            other.queue_declare("x")

    scene.spawn(looks, "A")
    scene.spawn(lambda: scene.crash(ch.connection), "crash")


@scenario("EX-1 QS-2", traces=1)
def crash_hands_over(scene: ClientScene) -> None:
    """A connection with two channels, four messages, two consumers and two exclusive queues crashes.

    Bounds: Everything is there before the crash; another connection has a consumer, which gets what is requeued.
    """
    first, second = scene.client(messages=4, channels=2, read=False)
    server = scene.server

    def declare(name: str, exclusive: bool = False) -> Act:
        return lambda x: server.declare_queue(x, name, exclusive)

    def consume(name: str) -> Act:
        return lambda x: server.consume(x, name, f"t{name}")

    for channel in (first, second):
        for name in ("q", "r"):
            scene.at(channel, declare(name))
            scene.at(channel, consume(name))
    for name in ("x1", "x2"):
        scene.at(first, declare(name, True))
    (other,) = scene.client("d", read=False)
    scene.consuming(other, "q", acking)

    def crashed() -> None:
        scene.crash(first.connection)
        for name in ("q", "r"):
            other.basic_publish("", name, scene.message(f"{name}5"))
        for name in ("x1", "x2"):
            scene.at(other, declare(name))

    scene.spawn(crashed, "crash")


@scenario("QS-2", traces=24)
def get_beside_consumer(scene: ClientScene) -> None:
    """Others get from a queue whose consumer may have everything, while a message is published and one is requeued.

    Bounds: One message in the hands of a connection that crashes, one published, two gets, each at once. To come in
    and to be pushed are one step: no get finds anything.
    """
    (holder,) = scene.client(messages=1, read=False)
    scene.at(holder, lambda x: scene.server.get(x, "q", False))
    (ch,) = scene.client("d", read=False)
    first, second = scene.client("e", channels=2, read=False)
    scene.consuming(ch, "q", idle)
    scene.spawn(lambda: scene.crash(holder.connection), "crash")
    scene.spawn(lambda: ch.basic_publish("", "q", scene.message("m2")), "A")
    for name, getter in (("B", first), ("C", second)):
        scene.spawn(partial(scene.at, getter, lambda x: scene.server.get(x, "q", False)), name)


@scenario("QS-1", traces=1)
def tag_used_again(scene: ClientScene) -> None:
    """A consumer is cancelled with a message in hand, and another of its tag and limit consumes.

    Bounds: A limit of one message each, two messages, on one thread. What the first has does not count for the second.
    """
    (ch,) = scene.client(messages=2, read=False)
    server = scene.server

    def again() -> None:
        scene.at(ch, lambda x: server.qos(x, 1, False))
        scene.at(ch, lambda x: server.consume(x, "q", "t"))
        scene.at(ch, lambda x: server.cancel(x, "t"))
        scene.at(ch, lambda x: server.consume(x, "q", "t"))

    scene.spawn(again, "A")


@scenario("QS-1", traces=1)
def consumers_in_turn(scene: ClientScene) -> None:
    """Messages are pushed to the consumers of two channels in turn, while one of them has as many as it may.

    Bounds: Sequential; two consumers, the first with a limit of one message, five messages, one acknowledgement. The
    limit is lowered behind the first consumer, which keeps its own.
    """
    first, second = scene.client(channels=2, messages=0, read=False)
    server = scene.server

    def publish(*ids: str) -> None:
        for id in ids:
            scene.at(second, lambda x, id=id: server.publish(x, "", "q", scene.message(id)))  # type: ignore[misc]

    def run() -> None:
        scene.at(first, lambda x: server.qos(x, 2, False))
        scene.at(first, lambda x: server.consume(x, "q", "t"))
        scene.at(first, lambda x: server.qos(x, 1, False))
        scene.at(second, lambda x: server.consume(x, "q", "u"))
        publish("m1", "m2", "m3", "m4", "m5")
        first.basic_ack(1)
        publish("m6", "m7")

    scene.spawn(run, "A")


@scenario("QS-1", traces=1)
def consumers_in_turn_past_the_full(scene: ClientScene) -> None:
    """Messages are pushed to three consumers in turn, of which the first has as many as it may.

    Bounds: Sequential; one limit of one message, five messages, nothing acknowledged. No reader runs.
    """
    first, second, third = scene.client(channels=3, messages=0, read=False)
    server = scene.server
    scene.at(first, lambda x: server.qos(x, 1, False))
    for channel in (first, second, third):
        scene.at(channel, lambda x: server.consume(x, "q", "t"))

    def publish() -> None:
        for _ in range(5):
            third.basic_publish("", "q", scene.message(scene.fresh()))

    scene.spawn(publish, "A")


@scenario("QS-1 QS-2", traces=2)
def settled_together(scene: ClientScene) -> None:
    """A channel acknowledges, or requeues, at once what two consumers have; each message then goes to who is in turn.

    Bounds: All but the callbacks is there before anything runs; limits of three messages and of two, and as many
    messages waiting. It is one step: to whom the first message goes is decided when all have been settled. The second
    consumer raises, which tells its messages from the first's.
    """
    (ch,) = scene.client(messages=0, read=False)
    server = scene.server

    def raising(channel: reference.Channel, delivery: Delivery) -> None:
        raise RuntimeError

    for limit, tag, callback in ((3, "t", idle), (2, "u", raising)):
        scene.at(ch, lambda x, limit=limit: server.qos(x, limit, False))  # type: ignore[misc]
        scene.at(ch, lambda x, tag=tag: server.consume(x, "q", tag))  # type: ignore[misc]
        ch._consumers[tag] = callback
    for _ in range(10):
        scene.at(ch, lambda x: server.publish(x, "", "q", scene.message(scene.fresh())))
    settle = ch.basic_nack if scene.world.choose(2) else ch.basic_ack
    settle(0, multiple=True)
    for _ in range(10):
        ch.on_frame(ch.connection.wire.receive())


@scenario("EX-1", traces=1)
def refused_and_not_there(scene: ClientScene) -> None:
    """A consumer is refused, because another is there exclusively, and gets nothing of what is published then.

    Bounds: Sequential; two connections, one consumer each, two messages, of which the first is published before.
    """
    (owner,) = scene.client(messages=1, read=False)
    other, publisher = scene.client("d", channels=2, read=False)
    server = scene.server

    def run() -> None:
        scene.at(owner, lambda x: server.consume(x, "q", "t", exclusive=True))
        scene.at(other, lambda x: server.consume(x, "q", "u"))
        for id in ("m2", "m3"):
            publisher.basic_publish("", "q", scene.message(id))

    scene.spawn(run, "A")


@scenario("QS-2", traces=1)
def refused_and_handed_over(scene: ClientScene) -> None:
    """A channel that has a message is closed for a mistake, and a consumer of another connection gets the message.

    Bounds: Sequential but for the reader; one message in hand, one unknown tag.
    """
    (ch,) = scene.client(messages=1)
    scene.at(ch, lambda x: scene.server.get(x, "q", False))
    (other,) = scene.client("d", read=False)
    scene.consuming(other, "q", idle)
    scene.spawn(lambda: ch.basic_ack(9), "A")


@scenario("QS-2 RPC-1", traces=98)
def open_while_crashing(scene: ClientScene) -> None:
    """A channel is opened and consumes while its connection crashes.

    Bounds: One message, one consumer that keeps it, one crash: the message is in its queue at the end.
    """
    (ch,) = scene.client(messages=1)

    def opens() -> None:
        ch.connection.open_channel().basic_consume("q", idle, tag="t")

    scene.spawn(opens, "A")
    scene.spawn(lambda: scene.crash(ch.connection), "crash")


@scenario("RT-1", traces=4)
def open_and_publish_while_crashing(scene: ClientScene) -> None:
    """A thread opens a channel, publishes on it, and then on the one it had, while its connection crashes.

    Bounds: Two messages, one crash. Nobody reads from the connection: what comes too late is ignored, as is all behind.
    """
    (ch,) = scene.client(messages=0, read=False)

    def publish() -> None:
        ch.connection.open_channel().basic_publish("", "q", scene.message("m1"))
        ch.basic_publish("", "q", scene.message("m2"))

    scene.spawn(publish, "A")
    scene.spawn(lambda: scene.crash(ch.connection), "crash")


@scenario("QS-2", traces=6)
def publish_while_crashing(scene: ClientScene) -> None:
    """Two messages are published from two threads to a consumer whose connection crashes.

    Bounds: One consumer; the two publish once each. Nobody reads from either connection.
    """
    (ch,) = scene.client(messages=0, read=False)
    first, second = scene.client("d", channels=2, read=False)
    scene.consuming(ch, "q", idle)
    scene.spawn(lambda: first.basic_publish("", "q", scene.message("m1")), "A")
    scene.spawn(lambda: second.basic_publish("", "q", scene.message("m2")), "B")
    scene.spawn(lambda: scene.crash(ch.connection), "crash")


@scenario("CH-1 CH-2 CH-4 QS-2 RPC-1", traces=1913)
def close_while_delivering(scene: ClientScene) -> None:
    """A channel is closed while the reader takes deliveries for it and its first callback is at work.

    Bounds: Two messages, a consumer that acknowledges, one thread in the pool, one closing; nobody else has the
    queue. The channel's last acknowledgement may come too late, and then the message comes back: that is no mistake
    here.
    """
    (ch,) = scene.client(block=1, messages=2)
    scene.consuming(ch, "q", acking)
    scene.spawn(ch.close, "closer")


@scenario("CH-1 CH-2 CH-4 QS-2 RPC-1", traces=1227, threads=2)
def connection_closed_while_delivering(scene: ClientScene) -> None:
    """A connection is closed while its reader takes deliveries and a callback is at work.

    Bounds: Two messages, a consumer that acknowledges, two threads in the pool, one closing; nobody else has the
    queue. Two channels, and a close that meets a crash, are not here.
    """
    (ch,) = scene.client(block=1, messages=2)
    scene.consuming(ch, "q", acking)
    scene.spawn(ch.connection.close, "closer")


@scenario("QS-1 QS-2 RPC-1 RT-1", traces=1)
def settle(scene: ClientScene) -> None:
    """Several messages are acknowledged and put back, one by one and many at once.

    Bounds: Sequential: six messages on one channel, one on another; ack, nack, reject, with and without multiple.
    What races with an acknowledgement is in `return` and `crash-anywhere`.
    """
    ch, other = scene.client(channels=2, messages=7)

    def run() -> None:
        for _ in range(6):
            ch.basic_get("q")
        other.basic_get("q")
        ch.basic_ack(2)
        ch.basic_nack(3, multiple=True)
        ch.basic_reject(5, requeue=False)
        ch.basic_get("q")
        ch.basic_nack(0, multiple=True)
        ch.basic_get("q")
        ch.basic_ack(0, multiple=True)
        other.basic_ack(1)

    scene.spawn(run, "A")


@scenario("QS-1", traces=3)
def prefetch(scene: ClientScene) -> None:
    """Two consumers of one channel, with a limit each and a limit for both, and two threads that acknowledge.

    Bounds: Six messages, prefetch two each and three together, three acknowledgements, one of them multiple. No
    reader runs, so callbacks are not here; nothing is requeued.
    """
    (ch,) = scene.client(messages=6, read=False)

    def consume(x: ServerChannel) -> None:
        scene.server.qos(x, 2, False)
        scene.server.qos(x, 3, True)
        for tag in ("t", "u"):
            scene.server.consume(x, "q", tag)

    scene.at(ch, consume)

    def one_by_one() -> None:
        ch.basic_ack(1)
        ch.basic_ack(2)

    scene.spawn(one_by_one, "A")
    scene.spawn(lambda: ch.basic_ack(3, multiple=True), "B")


@scenario("QS-1", traces=1)
def limits_of_others(scene: ClientScene) -> None:
    """A channel's limit counts what a cancelled consumer was pushed, and not what was got; a new one is for later ones.

    Bounds: Sequential; five messages, of which one is got, two channels, three consumers, one acknowledgement.
    No reader runs.
    """
    first, second = scene.client(channels=2, messages=5, read=False)
    server = scene.server
    scene.at(first, lambda x: server.get(x, "q", False))
    scene.at(first, lambda x: server.qos(x, 1, True))
    scene.at(first, lambda x: server.consume(x, "q", "t"))
    scene.at(first, lambda x: server.cancel(x, "t"))
    scene.at(first, lambda x: server.consume(x, "q", "u"))
    scene.at(second, lambda x: server.qos(x, 1, False))
    scene.at(second, lambda x: server.consume(x, "q", "v"))
    scene.at(second, lambda x: server.qos(x, 2, False))
    scene.spawn(lambda: first.basic_ack(2), "A")


@scenario("CH-1 CH-2 CH-4 QS-1", traces=14)
def channels_in_turn(scene: ClientScene) -> None:
    """Two channels have work for one thread: the one that has been ready longer has its turn; the other has more.

    Bounds: Two deliveries on the first channel, one on the second, which is there when the first callback has its reply
    on that channel; whichever callback is next gets the only message of another queue. Blocks of one.
    """
    first, second = scene.client(channels=2, block=1)

    def fill(x: ServerChannel) -> None:
        for queue in ("q", "r", "s"):
            scene.server.declare_queue(x, queue)
        for queue in ("q", "q", "r", "s"):
            scene.server.publish(x, "", queue, scene.message(scene.fresh()))

    scene.at(first, fill)

    def on_delivery(channel: reference.Channel, delivery: Delivery) -> None:
        if channel is first and delivery.delivery_tag == 1:
            second.basic_qos(0)
        else:
            channel.basic_get("s")

    scene.consuming(first, "q", on_delivery)
    scene.consuming(second, "r", on_delivery)


@scenario("QS-1 QS-2", traces=2)
def ack_again(scene: ClientScene) -> None:
    """Two threads acknowledge one delivery, one of them with all before it; whoever comes second names an unknown tag.

    Bounds: Three messages that were got, two acknowledgements on one channel. No reader runs: what the channel's end
    tells its callers is `rpc-refused`.
    """
    (ch,) = scene.client(messages=3, read=False)
    for _ in range(3):
        scene.at(ch, lambda x: scene.server.get(x, "q", False))
    scene.spawn(lambda: ch.basic_ack(2), "A")
    scene.spawn(lambda: ch.basic_ack(2, multiple=True), "B")


@scenario("QS-2 QS-1", traces=48)
def return_(scene: ClientScene) -> None:
    """One channel closes and another requeues, each holding messages of one queue, while a third takes.

    Bounds: Four messages, three channels. Consumers, to whom what comes back is pushed at once, are not here.
    """
    a, b, d = scene.client(channels=3, messages=4)
    for channel in (a, b, a):
        scene.at(channel, lambda x: scene.server.get(x, "q", False))
    scene.spawn(a.close, "A")
    scene.spawn(lambda: b.basic_nack(1), "B")
    scene.spawn(lambda: d.basic_get("q"), "D")


@scenario("QS-2 QS-3 CH-4", traces=180)
def crash(scene: ClientScene) -> None:
    """A client crashes with deliveries under way, some of them settled by their push.

    Bounds: Two connections; two messages pushed with auto-ack, one got without, one thread in the pool. It crashes
    after its consume was answered; at any other time is `crash-anywhere`.
    """
    (ch,) = scene.client(messages=3)
    scene.at(ch, lambda x: scene.server.get(x, "q", False))
    (again,) = scene.client("d")

    def run() -> None:
        ch.basic_consume("q", idle, tag="t", auto_ack=True)
        scene.crash(ch.connection)
        again.basic_get("q")

    scene.spawn(run, "A")


@scenario("CH-1 CH-2 CH-4 QS-3", traces=3)
def raises_under_auto_ack(scene: ClientScene) -> None:
    """A callback raises at a message that its push has settled, with another one behind it.

    Bounds: Two messages, one consumer with auto-ack, one thread in the pool. What is promised: the second runs, and the
    first is gone; that nobody has handled it is what the caller chose.
    """
    (ch,) = scene.client(messages=2)

    def on_delivery(channel: reference.Channel, delivery: Delivery) -> None:
        if delivery.delivery_tag == 1:
            raise RuntimeError("the callback's own fault")

    scene.consuming(ch, "q", on_delivery, auto_ack=True)


@scenario("QS-1 QS-2 CH-1 CH-2 CH-4 RPC-1", traces=48)
def crash_anywhere(scene: ClientScene) -> None:
    """A client crashes at any point of its delivery, callback and acknowledgement, and another one takes what is there.

    Bounds: Two messages, prefetch one, one consumer that acknowledges, one crash, one get, one thread in the pool.
    One crash; the other client does not crash, nor does the server.
    """
    (ch,) = scene.client(messages=2)
    (again,) = scene.client("d")
    scene.at(ch, lambda x: scene.server.qos(x, 1, False))
    scene.consuming(ch, "q", acking)

    def crash() -> None:
        scene.crash(ch.connection)
        again.basic_get("q")

    scene.spawn(crash, "crash")


# ---- exclusive, no-local, routing


@scenario("EX-1", traces=1)
def exclusive_on_its_channel(scene: ClientScene) -> None:
    """A channel that consumes exclusively asks for a second consumer of the queue, as anybody may: it is refused.

    Bounds: Sequential; two consumers on one channel, no messages. No reader runs.
    """
    (ch,) = scene.client(messages=0, read=False)
    scene.at(ch, lambda x: scene.server.consume(x, "q", "t", exclusive=True))
    scene.spawn(lambda: scene.at(ch, lambda x: scene.server.consume(x, "q", "u")), "A")


@scenario("EX-1 RPC-1", traces=2)
def exclusive_consumer(scene: ClientScene) -> None:
    """Two connections consume one queue at the same time, one of them exclusively.

    Bounds: Two connections, one consume each; then the one that was first is cancelled. Nothing is delivered; a
    third who consumes is refused as the second is.
    """
    (a,) = scene.client(messages=0)
    (b,) = scene.client("d")
    scene.spawn(lambda: a.basic_consume("q", idle, tag="t", exclusive=True), "A")
    scene.spawn(lambda: b.basic_consume("q", idle, tag="u"), "B")


@scenario("EX-1 RPC-1 RT-1", traces=6)
def exclusive_queue(scene: ClientScene) -> None:
    """A connection with an exclusive queue goes while another one asks for the queue.

    Bounds: One queue with one message, two connections. It dies with a connection that closes; one that crashes
    takes the same way through the server.
    """
    (owner,) = scene.client(messages=1, exclusive=True)
    (b,) = scene.client("d")
    scene.spawn(owner.connection.close, "A")
    scene.spawn(lambda: b.queue_declare("q"), "B")


@scenario("EX-1 RPC-1", traces=3)
def declare_otherwise(scene: ClientScene) -> None:
    """Two connections declare one queue at the same time, one of them as its own.

    Bounds: Two connections; the one that shares declares twice, the other once. Nothing is published.
    """
    (a,) = scene.client()
    (b,) = scene.client("d")

    def twice() -> None:
        a.queue_declare("q")
        a.queue_declare("q")

    scene.spawn(twice, "A")
    scene.spawn(lambda: b.queue_declare("q", exclusive=True), "B")


@scenario("EX-1 RT-1 RPC-1", traces=3)
def queue_again(scene: ClientScene) -> None:
    """An exclusive queue that is bound goes with its connection, and another of its name is declared and not bound.

    Bounds: One message before the end and one after it, on one thread. The second queue is shared; whether it is
    exclusive does not matter for routing.
    """
    (owner,) = scene.client(messages=0, exclusive=True)
    (b,) = scene.client("d")
    scene.at(owner, lambda x: scene.server.bind(x, "x", "*", "q"))

    def again() -> None:
        b.basic_publish("x", "", scene.message("m1"))
        owner.connection.close()
        b.queue_declare("q")
        b.basic_publish("x", "", scene.message("m2"))

    scene.spawn(again, "A")


@scenario("RPC-1", traces=2)
def publish_beside_get(scene: ClientScene) -> None:
    """A message is published while a call is out whose reply is not read before the publish has returned.

    Bounds: One call, one publish. To publish is no call, so it waits for none.
    """
    (ch,) = scene.client(messages=0, read=False)
    published = scene.world.semaphore(0, "published")

    def publish() -> None:
        ch.basic_publish("", "q", scene.message("m1"))
        published.release()

    def read() -> None:
        published.acquire()
        ch.connection.reader()

    scene.spawn(lambda: ch.basic_get("q"), "A")
    scene.spawn(publish, "B")
    scene.world.spawn(read, name="reader c", daemon=True)


@scenario("NL-1 RT-1 CH-4", traces=8)
def no_local(scene: ClientScene) -> None:
    """A no-local consumer, and messages from its own connection and another.

    Bounds: Two connections, one message each; the own one stays in the queue. A get, which no-local does not
    concern, is not here.
    """
    (a,) = scene.client(messages=1)
    (b,) = scene.client("d")
    scene.spawn(lambda: a.basic_consume("q", idle, tag="t", no_local=True), "A")
    scene.spawn(lambda: b.basic_publish("", "q", scene.message("theirs")), "B")


@scenario("RT-1", traces=3)
def routing(scene: ClientScene) -> None:
    """Two channels publish to an exchange with two queues, one of them bound twice.

    Bounds: Two channels, two messages from one of them and one from the other. No queue is deleted, and nobody
    consumes meanwhile.
    """
    a, b = scene.client(channels=2, read=False)

    def declare(x: ServerChannel) -> None:
        for q, key in (("q", "*"), ("q", "k"), ("r", "k"), ("r", "l")):
            scene.server.declare_queue(x, q)
            scene.server.bind(x, "x", key, q)

    scene.at(a, declare)

    def publish() -> None:
        a.basic_publish("x", "k", scene.message("m1"))
        a.basic_publish("x", "l", scene.message("m2"))

    scene.spawn(publish, "A")
    scene.spawn(lambda: b.basic_publish("x", "none", scene.message("m3")), "B")
