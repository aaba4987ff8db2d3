"""The scene of the programs over the client: a server, connections with their readers, pools with their threads.

Readers and the pool's threads are daemons: at the end they wait for more, and that is how it should be.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import ModuleType

import seriatim.client as reference
from seriatim.broker import Act, Delivery, Message, Server, ServerChannel
from seriatim.host import Condition, Lock
from seriatim.workpool import Executor, Work, WorkService
from seriatim_models.explorer import World
from seriatim_models.programs.base import Scene
from seriatim_models.recording.client import recorded, server_snapshot, service_snapshot


class ClientScene(Scene):
    """A server, connections with their readers, pools with their threads; at the end all of them are recorded."""

    def __init__(self, world: World, lib: ModuleType, threads: int = 1) -> None:
        super().__init__(world, lib)
        self.host = recorded(world.host)
        self.server: Server = lib.Server(self.host)
        self.executor: Executor = lib.Executor(self.host, threads)
        self._named = 0
        self._rest: list[tuple[str, Callable[[], dict[str, object]]]] = []
        for i in range(threads):
            world.spawn(self.executor.worker, name=f"pool{i + 1}", daemon=True)
        world.at_end(self.record_rest)

    def wake_in_vain(self, lock: Lock, condition: Condition) -> None:
        """Spawn a thread that wakes all who wait, for no reason, as a condition may do of itself."""

        def wake() -> None:
            with lock:
                condition.notify_all()

        self.spawn(wake, "nobody")

    def service(self, capacity: int | None = None, block: int | None = None) -> WorkService:
        """A work pool by itself."""
        service: WorkService = self.lib.WorkService(
            self.host, self.executor, capacity or self.lib.CAPACITY, block or self.lib.BLOCK
        )
        self._rest.append(("cli_rest", partial(service_snapshot, service)))
        return service

    def connect(
        self, name: str, capacity: int | None = None, block: int | None = None
    ) -> reference.Connection:
        """Return a new connection without channels, which nobody reads from yet."""
        connection: reference.Connection = self.lib.Connection(
            self.host,
            self.server,
            name,
            self.executor,
            capacity or self.lib.CAPACITY,
            block or self.lib.BLOCK,
        )
        self._rest += [
            ("srv_rest", partial(server_snapshot, self.server)),
            ("cli_rest", partial(service_snapshot, connection.work)),
        ]
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
        """Return the channels of a connection; with `messages` a queue `q` holds that many.

        It is being read, unless only the server's side matters.
        """
        connection = self.connect(name, capacity, block)
        opened = [connection.open_channel() for _ in range(channels)]
        if messages is not None:
            self.at(opened[0], lambda x: self.fill(x, messages, exclusive))
        if read:
            self.world.spawn(connection.reader, name=f"reader {name}", daemon=True)
        return opened

    def fill(self, x: ServerChannel, messages: int, exclusive: bool = False) -> None:
        """Declare the queue `q` and publish messages to it, on the server."""
        self.server.declare_queue(x, "q", exclusive)
        for i in range(messages):
            self.server.publish(x, "", "q", self.message(f"m{i + 1}"))

    def at(self, channel: reference.Channel, act: Act) -> None:
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

    def later(self, call: Callable[[], object]) -> Callable[[], None]:
        """Make a call on a thread of its own, and return what waits for its end: a future."""
        done = self.world.semaphore(0, "done")

        def run() -> None:
            call()
            done.release()

        self.spawn(run, "later")
        return done.acquire

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

    def message(self, id: str) -> Message:
        """Return a message of the module under test."""
        message: Message = self.lib.Message(id)
        return message

    def work(self, label: str, run: Callable[[], None] = lambda: None) -> Work:
        """Return an item of work."""
        work: Work = self.lib.Work(label, run)
        return work

    def pooled(self, service: WorkService, per_key: dict[str, int]) -> None:
        """Spawn one reader that adds so many items for each key.

        Each enters and leaves by a step of its own on one cell of its channel: so whether two overlap is the same
        in all schedules that the explorer takes for one.
        """

        def work(key: str, i: int) -> Work:
            def run() -> None:
                inside[key].get_and_add(1)
                inside[key].get_and_add(-1)

            return self.work(f"{key}:{i + 1}", run)

        inside = {key: self.world.cell(0, name=f"inside {key}") for key in per_key}

        def add() -> None:
            for key, n in per_key.items():
                for i in range(n):
                    service.add(key, work(key, i))

        for key in per_key:
            service.pool.register_key(key)
        self.spawn(add, "reader")

    def record_rest(self) -> None:
        """Record the state of each server and work pool."""
        for ev, snapshot in self._rest:
            self.world.record(ev, **snapshot())


def acking(channel: reference.Channel, delivery: Delivery) -> None:
    """A consumer that is done at once."""
    channel.basic_ack(delivery.delivery_tag)


def idle(channel: reference.Channel, delivery: Delivery) -> None:
    """A consumer that keeps what it gets."""
