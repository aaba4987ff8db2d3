"""Closed programs over the reference client and its broker.

Readers and the pool's threads are daemons: at the end they wait for more, and that is how it should be.
So is a thread whose being stuck is for a property to judge, not for the explorer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType

import seriatim.client as reference
from seriatim_models.explorer import World
from seriatim_models.programs.base import Programs

CLIENT_PROGRAMS = Programs("client")
program = CLIENT_PROGRAMS.program


class Scene:
    """A server, connections with their readers, pools with their threads; at the end all of them are recorded."""

    def __init__(self, world: World, lib: ModuleType, threads: int = 1) -> None:
        self.world = world
        self.lib = lib
        self.server: reference.Server = lib.Server(world.host)
        self.executor: reference.Executor = lib.Executor(world.host, threads)
        self._named = 0
        self._rest: list[tuple[str, Callable[[], dict[str, object]]]] = []
        for i in range(threads):
            world.spawn(self.executor.worker, name=f"pool{i + 1}", daemon=True)
        world.at_end(self._end)

    def service(
        self, capacity: int | None = None, block: int | None = None
    ) -> reference.WorkService:
        """A work pool by itself."""
        service: reference.WorkService = self.lib.WorkService(
            self.world.host, self.executor, capacity or self.lib.CAPACITY, block or self.lib.BLOCK
        )
        self._rest.append(("cli_rest", service.snapshot))
        return service

    def connect(
        self, name: str, capacity: int | None = None, block: int | None = None
    ) -> reference.Connection:
        connection: reference.Connection = self.lib.Connection(
            self.world.host,
            self.server,
            name,
            self.executor,
            capacity or self.lib.CAPACITY,
            block or self.lib.BLOCK,
        )
        self._rest += [("srv_rest", self.server.snapshot), ("cli_rest", connection.work.snapshot)]
        return connection

    def client(
        self,
        name: str = "c",
        *,
        channels: int = 1,
        messages: int | None = None,
        exclusive: bool = False,
        capacity: int | None = None,
        block: int | None = None,
        read: bool = True,
    ) -> list[reference.Channel]:
        """The channels of a connection; if so said, a queue `q` with so many messages is there.

        It is being read, unless only the server's side matters.
        """
        connection = self.connect(name, capacity, block)
        opened = [connection.open_channel() for _ in range(channels)]
        if messages is not None:
            self.at(opened[0], lambda x: self.fill(x, messages, exclusive))
        if read:
            self.world.spawn(connection.reader, name=f"reader {name}", daemon=True)
        return opened

    def fill(self, x: reference.ServerChannel, messages: int, exclusive: bool = False) -> None:
        self.server.declare_queue(x, "q", exclusive)
        for i in range(messages):
            self.server.publish(x, "", "q", self.message(f"m{i + 1}"))

    def at(self, channel: reference.Channel, act: reference.Act) -> None:
        """A channel's request, before anything runs: in the set-up nobody can wait for the reply."""
        self.server.request(channel.connection.wire, channel.number, act)

    def crash(self, connection: reference.Connection) -> None:
        """The client, or what connects it, is gone; its threads may go on, and nobody hears them."""
        self.server.disconnect(connection.wire, self.lib.Closed(320, "CONNECTION_FORCED - crash"))

    def spawn(self, fn: Callable[[], object], name: str) -> None:
        """A thread of the application. Whether it may wait for ever is for the properties to say."""

        def run() -> None:
            with suppress(self.lib.Closed, self.lib.CallTimeout):
                fn()

        self.world.spawn(run, name=name, daemon=True)

    def consuming(
        self,
        channel: reference.Channel,
        queue: str,
        callback: reference.Callback,
        **flags: bool,
    ) -> None:
        """A consumer that was there before anything runs; flags as of `Server.consume`."""
        channel._consumers["t"] = callback
        self.at(channel, lambda x: self.server.consume(x, queue, "t", **flags))

    def fresh(self) -> str:
        """A message's name that was not used before."""
        self._named += 1
        return f"n{self._named}"

    def message(self, id: str) -> reference.Message:
        message: reference.Message = self.lib.Message(id)
        return message

    def work(self, label: str, run: Callable[[], None] = lambda: None) -> reference.Work:
        work: reference.Work = self.lib.Work(label, run)
        return work

    def _end(self) -> None:
        for ev, snapshot in self._rest:
            self.world.record(ev, **snapshot())


def pooled(
    s: Scene, service: reference.WorkService, per_key: dict[str, int], thread: str = "reader"
) -> None:
    """One reader adds so many items for each key.

    Each enters and leaves by a step of its own on one cell of its channel: so whether two overlap is the same
    in all schedules that the explorer takes for one.
    """

    def work(key: str, i: int) -> reference.Work:
        def run() -> None:
            inside[key].get_and_add(1)
            inside[key].get_and_add(-1)

        return s.work(f"{key}:{i + 1}", run)

    inside = {key: s.world.cell(0, name=f"inside {key}") for key in per_key}

    def add() -> None:
        for key, n in per_key.items():
            for i in range(n):
                service.add(key, work(key, i))

    for key in per_key:
        service.pool.register_key(key)
    s.spawn(add, thread)


# ---- the work pool by itself


@program(
    "pool-one-channel",
    "One channel's work arrives while two threads run it, one item at a time.",
    "CH-1 CH-2 CH-3 CH-4 CH-6",
    "Two items, two threads. More items repeat the second one.",
    12,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib, threads=2)
    pooled(s, s.service(block=1), {"a": 2})


@program(
    "pool-two-channels",
    "Two channels' work arrives while one thread runs it in blocks.",
    "CH-1 CH-2 CH-3 CH-4 CH-6",
    "Two items for one channel, one for the other, one thread. "
    "With one thread no two callbacks can overlap; that is `pool-one-channel`.",
    18,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    pooled(s, s.service(), {"a": 2, "b": 1})


@program(
    "pool-raises",
    "The first callback of a block raises.",
    "CH-1 CH-2 CH-4",
    "Three items of one channel, one thread; the block holds from one to three of them. "
    "Two channels, both of which raise, are not here.",
    10,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    service = s.service()
    service.pool.register_key("a")

    def spoilt() -> None:
        raise RuntimeError("the callback's own fault")

    def add() -> None:
        service.add("a", s.work("a:1", spoilt))
        service.add("a", s.work("a:2"))
        service.add("a", s.work("a:3"))

    s.spawn(add, "reader")


@program(
    "pool-together",
    "The callbacks of two channels wait for each other, on two threads.",
    "CH-1 CH-3 CH-4",
    "Two channels, two threads; one channel has a second item. With k of each it is the same k times.",
    32,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib, threads=2)
    service = s.service()
    here, there = world.semaphore(0, "a is here"), world.semaphore(0, "b is here")

    def meet_b() -> None:
        here.release()
        there.acquire()

    def meet_a() -> None:
        there.release()
        here.acquire()

    service.pool.register_key("a")
    service.pool.register_key("b")

    def add() -> None:
        service.add("a", s.work("a:1", meet_b))
        service.add("a", s.work("a:2"))
        service.add("b", s.work("b:1", meet_a))

    s.spawn(add, "reader")


@program(
    "pool-bounded",
    "A reader waits for room while a thread makes some.",
    "CH-1 CH-2 CH-4 CH-5 CH-6",
    "Three items, room for one, one thread. "
    "A second reader does not wait for room: a connection has one.",
    20,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    pooled(s, s.service(capacity=1), {"a": 3})


@program(
    "pool-unlimited-again",
    "A channel with a call out is closed while a reader fills another channel.",
    "CH-4 CH-5",
    "Two channels, three items, room for one, one thread. "
    "The channel closes before the reader begins; a close meanwhile is `pool-unregister`.",
    20,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    service = s.service(capacity=1)
    service.pool.register_key("b")
    service.pool.unlimit("b")
    service.pool.unregister_key("b")
    pooled(s, service, {"a": 3})


@program(
    "pool-unregister",
    "A channel is unregistered while a reader may wait for room in it.",
    "CH-1 CH-4",
    "Three items, room for one, one thread, one unregistration. "
    "It is not registered anew, as numbers of channels are not used twice.",
    143,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    service = s.service(capacity=1)
    pooled(s, service, {"a": 3})
    s.spawn(lambda: service.pool.unregister_key("a"), "closer")


@program(
    "pool-unregister-one",
    "A channel that is ready is unregistered while another has work.",
    "CH-1 CH-4",
    "Two channels with one item each, one thread, one unregistration. "
    "The other channel stays; all at once is the end of a connection.",
    24,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    service = s.service()
    pooled(s, service, {"a": 1, "b": 1})
    s.spawn(lambda: service.pool.unregister_key("a"), "closer")


@program(
    "pool-interrupt",
    "A reader that may wait for room is interrupted.",
    "CH-2 CH-4",
    "Three items, room for one, one thread, one interrupt. "
    "What the connection does then is `interrupted-while-full`.",
    425,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    service = s.service(capacity=1)
    pooled(s, service, {"a": 3})
    s.spawn(service.pool.interrupt, "interrupter")


@program(
    "pool-rejected",
    "The executor is shut down while there is work.",
    "CH-1 CH-4",
    "Two items taken one at a time, one thread, one shutdown. "
    "What the connection does then is `executor-gone`.",
    17,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    pooled(s, s.service(block=1), {"a": 2})
    s.spawn(s.executor.shutdown, "closer")


# ---- calls


@program(
    "rpc-two-callers",
    "Two threads call on one channel.",
    "RPC-1",
    "Two callers, one call each. A third waits as the second does.",
    16,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client()
    s.spawn(lambda: ch.basic_qos(1), "A")
    s.spawn(lambda: ch.basic_qos(2), "B")


@program(
    "rpc-late",
    "A caller's patience ends, and the reply comes when the next call is made.",
    "RPC-1",
    "One caller, two gets, one of them with a time limit. "
    "A second caller who waits for the slot is in `rpc-impatient`.",
    4,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client()
    s.at(ch, lambda x: s.server.declare_queue(x, "q"))

    def twice() -> None:
        with suppress(lib.CallTimeout):
            ch.basic_get("q", timeout=1)
        ch.basic_get("q")

    s.spawn(twice, "A")


@program(
    "rpc-impatient",
    "A caller's patience ends while another waits for its turn.",
    "RPC-1",
    "Two callers on one channel, one of them with a time limit. "
    "Both being impatient is not here, nor a reply that never comes.",
    51,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client()
    s.at(ch, lambda x: s.server.declare_queue(x, "q"))
    s.spawn(lambda: ch.basic_get("q", timeout=1), "A")
    s.spawn(lambda: ch.basic_qos(1), "B")


@program(
    "rpc-crash",
    "The connection goes while two threads call on one channel.",
    "RPC-1",
    "Two callers, one end. Deliveries under way are in `crash-anywhere`.",
    146,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client()
    s.spawn(lambda: ch.basic_qos(1), "A")
    s.spawn(lambda: ch.basic_qos(2), "B")
    s.spawn(lambda: s.crash(ch.connection), "crash")


@program(
    "rpc-close",
    "A thread calls on a channel while another closes the connection.",
    "RPC-1",
    "One caller, one end. "
    "Two who close are not here, nor deliveries (`connection-closed-while-delivering`).",
    21,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client()
    s.spawn(lambda: ch.basic_qos(1), "A")
    s.spawn(ch.connection.close, "closer")


@program(
    "rpc-close-channel",
    "A thread calls on a channel that another closes.",
    "RPC-1",
    "One caller, one end. Two who close are not here, nor deliveries (`close-while-delivering`).",
    16,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client()
    s.spawn(lambda: ch.basic_qos(1), "A")
    s.spawn(ch.close, "closer")


@program(
    "rpc-refused",
    "A call is refused, which closes the channel, while another thread waits for its turn.",
    "RPC-1",
    "Two callers, one refusal. A third caller is told as the second is.",
    12,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client()
    s.spawn(lambda: ch.basic_get("there is none"), "A")
    s.spawn(lambda: ch.basic_qos(1), "B")


@program(
    "rpc-in-callback",
    "A callback calls on its own channel.",
    "RPC-1 CH-1 CH-2 CH-4 QS-1",
    "Two deliveries, one thread in the pool. Nothing is full; that is `rpc-while-full`.",
    165,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(messages=2)

    def on_delivery(channel: reference.Channel, delivery: reference.Delivery) -> None:
        channel.basic_qos(1)
        channel.basic_ack(delivery.delivery_tag)

    s.spawn(lambda: ch.basic_consume("q", on_delivery, tag="t"), "A")


@program(
    "rpc-while-full",
    "A callback calls while the reader waits for room in that very channel, before the reply.",
    "RPC-1 CH-1 CH-2 CH-4 CH-5",
    "Four deliveries, room for one, one call, one thread in the pool. "
    "Time limits, and two callbacks that call, are not here.",
    392,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(capacity=1, messages=3)

    def on_delivery(channel: reference.Channel, delivery: reference.Delivery) -> None:
        if delivery.delivery_tag == 1:
            channel.basic_qos(1)

    s.spawn(lambda: ch.basic_consume("q", on_delivery, tag="t"), "A")


@program(
    "rpc-while-another-is-full",
    "A callback calls on another channel while the reader waits for room in its own.",
    "RPC-1 CH-1 CH-2 CH-4 CH-5",
    "Three deliveries, room for one, one call, one thread in the pool. "
    "Only one call is out; two, one of which ends first, are not here.",
    176,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    ch, other = s.client(capacity=1, channels=2, messages=3)

    def on_delivery(channel: reference.Channel, delivery: reference.Delivery) -> None:
        if delivery.delivery_tag == 1:
            other.basic_qos(1)

    s.spawn(lambda: ch.basic_consume("q", on_delivery, tag="t"), "A")


@program(
    "rpc-beside-consume",
    "A callback calls while a thread, on the same channel, begins to consume more than there is room for.",
    "RPC-1 CH-4 CH-5",
    "One delivery there and two to come, room for one, two calls, one thread in the pool. "
    "More room, which puts off when the reader waits, is not here.",
    2192,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(capacity=1, messages=1)

    def more(x: reference.ServerChannel) -> None:
        s.server.declare_queue(x, "r")
        for id in ("m2", "m3"):
            s.server.publish(x, "", "r", s.message(id))

    s.at(ch, more)
    s.consuming(ch, "q", lambda channel, delivery: channel.basic_qos(1))
    s.spawn(lambda: ch.basic_consume("r", idle, tag="u"), "A")


@program(
    "close-in-callback",
    "A callback closes the connection while the reader waits for room in that very channel.",
    "RPC-1 CH-1 CH-4",
    "Three deliveries, room for one, one thread in the pool. "
    "A thread of the application that closes is in `connection-closed-while-delivering`.",
    60,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(capacity=1, messages=3)
    s.consuming(ch, "q", lambda channel, delivery: channel.connection.close())


@program(
    "interrupted-while-full",
    "The reader is interrupted where it may wait for room, and the connection fails.",
    "CH-1 CH-4 QS-2",
    "Three deliveries, room for one, one interrupt, one thread in the pool. "
    "No call is out: with one the reader would not wait for room.",
    281,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(capacity=1, messages=3)
    s.consuming(ch, "q", idle)
    s.spawn(ch.connection.work.pool.interrupt, "interrupter")


@program(
    "executor-gone",
    "The executor is shut down while messages are delivered, and the connection fails.",
    "CH-1 CH-4 QS-2 RPC-1",
    "One delivery, one call, one shutdown, one thread in the pool. "
    "Several channels, and an executor that refuses only at times, are not here.",
    54,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(messages=1)
    s.consuming(ch, "q", idle)
    s.spawn(lambda: ch.basic_qos(1), "A")
    s.spawn(s.executor.shutdown, "closer")


@program(
    "refused-while-full",
    "The server closes a channel, whose callback acknowledges, behind as many deliveries as it has room for.",
    "CH-1 CH-3 CH-4 QS-2",
    "Two deliveries, room for one, one refusal, a delivery to another channel behind it, two threads in the pool. "
    "A refusal with room left is in `rpc-refused`.",
    1192,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib, threads=2)
    ch, other = s.client(capacity=1, channels=2, messages=2)

    def publish(x: reference.ServerChannel) -> None:
        s.server.declare_queue(x, "r")
        s.server.publish(x, "", "r", s.message("m3"))

    def unknown(x: reference.ServerChannel) -> None:
        s.server.settle(x, 99, False, None)

    s.consuming(ch, "q", acking)
    s.at(ch, unknown)
    s.at(other, publish)
    s.consuming(other, "r", idle)


# ---- deliveries and acknowledgements


def acking(channel: reference.Channel, delivery: reference.Delivery) -> None:
    """A consumer that is done at once."""
    channel.basic_ack(delivery.delivery_tag)


def idle(channel: reference.Channel, delivery: reference.Delivery) -> None:
    """A consumer that keeps what it gets."""


@program(
    "consume",
    "A consumer with a prefetch of one finds a message, and another is published.",
    "CH-1 CH-2 CH-4 QS-1 RT-1 RPC-1",
    "Two messages, one consumer that acknowledges, one publisher on another channel, one thread in the pool. "
    "It neither raises nor closes; a larger prefetch is in `prefetch`.",
    60,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    ch, p = s.client(channels=2, messages=1)
    s.at(ch, lambda x: s.server.qos(x, 1, False))
    s.spawn(lambda: ch.basic_consume("q", acking, tag="t"), "A")
    s.spawn(lambda: p.basic_publish("", "q", s.message("m2")), "P")


@program(
    "head-of-line",
    "A slow channel, whose callback waits for another channel's, has more work than it can hold.",
    "CH-1 CH-2 CH-3 CH-4 RT-1",
    "Three deliveries for the slow channel, one behind them for the other, two threads in the pool. "
    "Nothing is bounded here; with a bound the slow channel stops the other, as `published-bounded-queues` shows.",
    196,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib, threads=2)
    slow, quick = s.client(block=1, channels=2, messages=3)
    ran = world.semaphore(0, "the other ran")

    def wait(channel: reference.Channel, delivery: reference.Delivery) -> None:
        if delivery.delivery_tag == 1:
            ran.acquire()

    def fill(x: reference.ServerChannel) -> None:
        s.server.declare_queue(x, "r")
        s.server.publish(x, "", "r", s.message("m4"))

    s.consuming(slow, "q", wait)
    s.at(quick, fill)
    s.consuming(quick, "r", lambda channel, delivery: ran.release())


@program(
    "consume-and-close",
    "A channel that is being sent messages closes.",
    "CH-1 CH-4 QS-2 RPC-1",
    "One message, one consumer that acknowledges, one thread in the pool. "
    "It closes when its consume is answered; a close at any time is `close-while-delivering`.",
    252,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(messages=1)

    def consume_and_close() -> None:
        ch.basic_consume("q", acking, tag="t")
        ch.close()

    s.spawn(consume_and_close, "A")


@program(
    "close-while-delivering",
    "A channel is closed while the reader takes deliveries for it and its first callback is at work.",
    "CH-1 CH-2 CH-4 QS-2 RPC-1",
    "Two messages, a consumer that acknowledges, one thread in the pool, one closing; nobody else has the queue. "
    "The channel's last acknowledgement may come too late, and then the message comes back: that is no mistake here.",
    1913,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(block=1, messages=2)
    s.consuming(ch, "q", acking)
    s.spawn(ch.close, "closer")


@program(
    "connection-closed-while-delivering",
    "A connection is closed while its reader takes deliveries and a callback is at work.",
    "CH-1 CH-2 CH-4 QS-2 RPC-1",
    "Two messages, a consumer that acknowledges, two threads in the pool, one closing; nobody else has the queue. "
    "Two channels, and a close that meets a crash, are not here.",
    1227,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib, threads=2)
    (ch,) = s.client(block=1, messages=2)
    s.consuming(ch, "q", acking)
    s.spawn(ch.connection.close, "closer")


@program(
    "settle",
    "Several messages are acknowledged and put back, one by one and many at once.",
    "QS-1 QS-2 RPC-1 RT-1",
    "Sequential: six messages on one channel, one on another; ack, nack, reject, with and without multiple. "
    "What races with an acknowledgement is in `return` and `crash-anywhere`.",
    1,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    ch, other = s.client(channels=2, messages=7)

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

    s.spawn(run, "A")


@program(
    "prefetch",
    "Two consumers of one channel, with a limit each and a limit for both, and two threads that acknowledge.",
    "QS-1",
    "Six messages, prefetch two each and three together, three acknowledgements, one of them multiple. "
    "No reader runs, so callbacks are not here; nothing is given back.",
    3,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(messages=6, read=False)

    def consume(x: reference.ServerChannel) -> None:
        s.server.qos(x, 2, False)
        s.server.qos(x, 3, True)
        for tag in ("t", "u"):
            s.server.consume(x, "q", tag)

    s.at(ch, consume)

    def one_by_one() -> None:
        ch.basic_ack(1)
        ch.basic_ack(2)

    s.spawn(one_by_one, "A")
    s.spawn(lambda: ch.basic_ack(3, multiple=True), "B")


@program(
    "return",
    "One channel closes and another gives back, each holding messages of one queue, while a third takes.",
    "QS-2 QS-1",
    "Four messages, three channels. "
    "Consumers, to whom what comes back is pushed at once, are not here.",
    48,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    a, b, d = s.client(channels=3, messages=4)
    for channel in (a, b, a):
        s.at(channel, lambda x: s.server.get(x, "q", False))
    s.spawn(a.close, "A")
    s.spawn(lambda: b.basic_nack(1), "B")
    s.spawn(lambda: d.basic_get("q"), "D")


@program(
    "crash",
    "A client crashes with deliveries under way, some of them settled by their push.",
    "QS-2 QS-3 CH-4",
    "Two connections; two messages pushed with auto-ack, one got without, one thread in the pool. "
    "It crashes after its consume was answered; at any other time is `crash-anywhere`.",
    180,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(messages=3)
    s.at(ch, lambda x: s.server.get(x, "q", False))
    (again,) = s.client("d")

    def run() -> None:
        ch.basic_consume("q", idle, tag="t", auto_ack=True)
        s.crash(ch.connection)
        again.basic_get("q")

    s.spawn(run, "A")


@program(
    "crash-anywhere",
    "A client crashes at any point of its delivery, callback and acknowledgement, and another one takes what is there.",
    "QS-1 QS-2 CH-1 CH-2 CH-4 RPC-1",
    "Two messages, prefetch one, one consumer that acknowledges, one crash, one get, one thread in the pool. "
    "One crash; the other client does not crash, nor does the server.",
    48,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (ch,) = s.client(messages=2)
    (again,) = s.client("d")
    s.at(ch, lambda x: s.server.qos(x, 1, False))
    s.consuming(ch, "q", acking)

    def crash() -> None:
        s.crash(ch.connection)
        again.basic_get("q")

    s.spawn(crash, "crash")


# ---- exclusive, no-local, routing


@program(
    "exclusive-consumer",
    "Two connections consume one queue at the same time, one of them exclusively.",
    "EX-1 RPC-1",
    "Two connections, one consume each; then the one that was first is cancelled. "
    "Nothing is delivered; a third who consumes is refused as the second is.",
    2,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (a,) = s.client(messages=0)
    (b,) = s.client("d")
    s.spawn(lambda: a.basic_consume("q", idle, tag="t", exclusive=True), "A")
    s.spawn(lambda: b.basic_consume("q", idle, tag="u"), "B")


@program(
    "exclusive-queue",
    "A connection with an exclusive queue goes while another one asks for the queue.",
    "EX-1 RPC-1 RT-1",
    "One queue with one message, two connections. "
    "It dies with a connection that closes; one that crashes takes the same way through the server.",
    6,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (owner,) = s.client(messages=1, exclusive=True)
    (b,) = s.client("d")
    s.spawn(owner.connection.close, "A")
    s.spawn(lambda: b.queue_declare("q"), "B")


@program(
    "no-local",
    "A no-local consumer, and messages from its own connection and another.",
    "NL-1 RT-1 CH-4",
    "Two connections, one message each; the own one stays in the queue. "
    "A get, which no-local does not concern, is not here.",
    8,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    (a,) = s.client(messages=1)
    (b,) = s.client("d")
    s.spawn(lambda: a.basic_consume("q", idle, tag="t", no_local=True), "A")
    s.spawn(lambda: b.basic_publish("", "q", s.message("theirs")), "B")


@program(
    "routing",
    "Two channels publish to an exchange with two queues, one of them bound twice.",
    "RT-1",
    "Two channels, two messages from one of them and one from the other. "
    "No queue is deleted, and nobody consumes meanwhile.",
    3,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    a, b = s.client(channels=2, read=False)

    def declare(x: reference.ServerChannel) -> None:
        for q, key in (("q", "*"), ("q", "k"), ("r", "k"), ("r", "l")):
            s.server.declare_queue(x, q)
            s.server.bind(x, "x", key, q)

    s.at(a, declare)

    def publish() -> None:
        a.basic_publish("x", "k", s.message("m1"))
        a.basic_publish("x", "l", s.message("m2"))

    s.spawn(publish, "A")
    s.spawn(lambda: b.basic_publish("x", "none", s.message("m3")), "B")
