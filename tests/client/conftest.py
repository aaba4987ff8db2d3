"""A client on real threads, whose whole history is judged when the test is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from seriatim.broker import Closed, Delivery, Message, Server
from seriatim.client import Channel, Connection
from seriatim.workpool import Executor, Work
from seriatim_models.history.event import Event, event
from seriatim_models.properties import Verdict
from seriatim_models.properties.whitebox.client import CLIENT
from seriatim_models.recording.client import recorded, server_snapshot, service_snapshot
from seriatim_models.watched import WatchedThreads

PATIENCE = 30
"""Seconds until a test that hangs says so; no test that passes waits this long."""


NUMBERS = count()


class World:
    """A server, connections and their threads."""

    def __init__(self) -> None:
        self.records: list[Event] = []
        self._recording = threading.Lock()
        self.host = recorded(WatchedThreads(self._record))
        self.server = Server(self.host)
        self._threads: list[threading.Thread] = []
        self._connections: list[Connection] = []
        self._executors: list[Executor] = []

    def _record(self, t: int, thread: str, ev: str, args: dict[str, object]) -> None:
        with self._recording:
            i = len(self.records)
            self.records.append(event(i, t, thread, ev, {**args, "lvl": "model"}))

    def connect(self, name: str = "c", threads: int = 2, capacity: int | None = None) -> Connection:
        executor = Executor(self.host, threads)
        connection = Connection(self.host, self.server, name, executor, capacity)
        self._executors.append(executor)
        self._connections.append(connection)
        for target in (connection.reader, *[executor.worker] * threads):
            self.start(target)
        return connection

    def crash(self, connection: Connection) -> None:
        """What the server sees when a client crashes."""
        self.server.disconnect(connection.wire, Closed(320, "CONNECTION_FORCED - crash"))

    def start(self, target: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def ready(self, queue: str = "q") -> list[str]:
        queues = server_snapshot(self.server)["queues"]
        assert isinstance(queues, dict)
        return [m for m, _, _ in queues[queue]]

    def end(self) -> None:
        for connection in self._connections:
            connection.close()
        for executor in self._executors:
            executor.shutdown()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"{thread.name} did not end"
        self.host.record("srv_rest", **server_snapshot(self.server))
        for connection in self._connections:
            self.host.record("cli_rest", **service_snapshot(connection.work))


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.end()
    for p in CLIENT:
        finding = p.check(world.records)
        assert finding.verdict is not Verdict.VIOLATED, f"{p.id}: {finding.explanation}"


def flush(channel: Channel) -> None:
    """Wait until all that the server had pushed to the channel before now has run."""
    channel.queue_declare("q")  # the reply comes behind what was pushed
    done = threading.Event()
    channel.connection.work.add(channel.key, Work(f"flush {next(NUMBERS)}", done.set))
    assert done.wait(PATIENCE), f"{channel.key} does not come to rest"


def fill(channel: Channel, n: int, queue: str = "q", start: int = 0) -> None:
    channel.queue_declare(queue)
    for i in range(start, start + n):
        channel.basic_publish("", queue, Message(f"{'' if queue == 'q' else queue}{i}"))


class Inbox:
    """A consumer that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[Delivery] = []

    def __call__(self, channel: Channel, delivery: Delivery) -> None:
        self.got.append(delivery)

    @property
    def ids(self) -> list[str]:
        return [d.message.id for d in self.got]
