"""Real threads, much at once; the fixture judges the history by every property of the log."""

from __future__ import annotations

import random
import threading
from functools import partial
from pathlib import Path

import pytest

from seriatim.host import Condition, Lock, Threads
from seriatim.log import Channel, Files, Storage, Topic
from seriatim_models.programs.disk import MemoryDisk

from .conftest import PATIENCE, Judged


@pytest.mark.parametrize("seed", range(4))
def test_publishers_consumers_stops_and_poison(judged: Judged, seed: int, tmp_path: Path) -> None:
    """Two channels see all messages in one order, though one is often stopped; each bad one is parked, once."""
    chance = random.Random(seed)
    storage: Storage = Files(tmp_path) if seed == 0 else MemoryDisk()
    topic = judged.open(storage)
    each = 40
    total = 3 * each
    seen: dict[str, list[bytes]] = {"steady": [], "stopped": []}
    done = {name: threading.Event() for name in seen}
    channels = {name: judged.channel(name, max_attempts=2) for name in seen}

    def handler(name: str, message: bytes) -> None:
        mine = seen[name]
        if not mine or mine[-1] != message:
            mine.append(message)
        if len(mine) == total:
            done[name].set()
        if name == "stopped" and chance.random() < 0.2:
            channels[name].disconnect()
        if message.endswith(b"7"):
            raise ValueError("seven")

    def again_and_again(channel: Channel) -> None:
        while not done["stopped"].is_set():
            channel.connect()
            channel.consume(partial(handler, "stopped"))

    def publish(name: str) -> None:
        for k in range(each):
            topic.publish(f"{name}{k}".encode())

    steady = judged.consume(channels["steady"], partial(handler, "steady"))
    stopped = threading.Thread(target=again_and_again, args=(channels["stopped"],), daemon=True)
    stopped.start()
    for name in "xyz":
        threading.Thread(target=publish, args=(name,)).start()
    for name, event in done.items():
        assert event.wait(PATIENCE), f"{name} saw {len(seen[name])} of {total}"
    for channel in channels.values():
        channel.disconnect()
    for thread in (steady, stopped):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert seen["steady"] == seen["stopped"]
    sevens = sorted(m for m in seen["steady"] if m.endswith(b"7"))
    parked = channels["steady"].parked()
    assert sorted(p.message for p in parked) == sevens[: len(parked)]
    assert len(sevens) == 12


def test_handler_that_never_returns_holds_its_own_channel_only(judged: Judged) -> None:
    """Rule 7: publishers and the other channel go on, and the stuck one ends when its handler does."""
    topic = judged.open()
    stuck, other = judged.channel("stuck"), judged.channel("other")
    inside, leave, seen = threading.Event(), threading.Event(), threading.Semaphore(0)

    def never(message: bytes) -> None:
        inside.set()
        assert leave.wait(PATIENCE)

    held = judged.consume(stuck, never)
    going = judged.consume(other, lambda message: seen.release())
    for k in range(20):
        topic.publish(b"%d" % k)
    for _ in range(20):
        assert seen.acquire(timeout=PATIENCE)
    assert inside.wait(PATIENCE)
    stuck.disconnect()
    other.disconnect()
    going.join(PATIENCE)
    assert held.is_alive()
    assert [d.message for d in stuck.read(2)] == [b"0", b"1"]  # not committed: it comes again
    leave.set()
    held.join(PATIENCE)
    assert [d.message for d in stuck.read(1)] == [b"1"]


def test_operator_replays_while_the_consumer_parks(judged: Judged) -> None:
    topic = judged.open()
    c = judged.channel(max_attempts=1)
    total = 60
    finished = threading.Event()

    def handler(message: bytes) -> None:
        if message == b"%d" % (total - 1):
            finished.set()
        raise ValueError("no")

    consumer = judged.consume(c, handler)
    replayed: list[bytes] = []

    def operator() -> None:
        while len(replayed) < total:
            for p in c.parked():
                c.replay(p, replayed.append)

    thread = threading.Thread(target=operator, daemon=True)
    thread.start()
    for k in range(total):
        topic.publish(b"%d" % k)
    assert finished.wait(PATIENCE)
    thread.join(PATIENCE)
    c.disconnect()
    consumer.join(PATIENCE)
    assert sorted(replayed, key=int) == [b"%d" % k for k in range(total)]
    assert c.parked() == []


class Sleeping(Threads):
    """Says when somebody sleeps on the condition of that name, or of any that ends so."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.asleep = threading.Event()

    def condition(self, lock: Lock, name: str = "") -> Condition:
        inner = super().condition(lock, name)
        return _Seen(inner, self.asleep) if name.endswith(self.name) else inner


class _Seen:
    """Told while the lock is held: whoever gets the lock after that finds the other asleep."""

    def __init__(self, inner: Condition, asleep: threading.Event) -> None:
        self.notify, self.notify_all = inner.notify, inner.notify_all
        self._inner, self._asleep = inner, asleep

    def wait(self, timeout: float | None = None) -> bool:
        self._asleep.set()
        return self._inner.wait(timeout)


@pytest.mark.parametrize(("message", "where"), [(b"", ".news"), (b"bad", ".asked")])
def test_who_is_asked_to_end_need_not_wait_for_news_nor_to_the_end_of_a_pause(
    message: bytes, where: str
) -> None:
    host = Sleeping(where)
    topic = Topic(host, MemoryDisk())
    channel = Channel(topic, "c", pause=3600)
    topic.publish(message)

    def handler(message: bytes) -> None:
        if message:
            raise ValueError(message)

    channel.connect()
    consumer = threading.Thread(target=channel.consume, args=(handler,), daemon=True)
    consumer.start()
    assert host.asleep.wait(PATIENCE)
    channel.disconnect()
    consumer.join(PATIENCE)
    assert not consumer.is_alive()


def test_pauses_double() -> None:
    """In a time of its own: a sleep ends when its time is over, and nobody waits."""
    pauses: list[float | None] = []

    class Quick(Threads):
        def condition(self, lock: Lock, name: str = "") -> Condition:
            return _NoTime(pauses)

    topic = Topic(Quick(), MemoryDisk())
    channel = Channel(topic, "c", max_attempts=4, pause=0.5)
    topic.publish(b"bad")

    def fails(message: bytes) -> None:
        if len(pauses) == 3:
            channel.disconnect()
        raise ValueError("no")

    channel.connect()
    channel.consume(fails)
    assert pauses == [0.5, 1.0, 2.0]
    assert len(channel.parked()) == 1


class _NoTime:
    """A condition on which time passes at once."""

    def __init__(self, slept: list[float | None]) -> None:
        self._slept = slept

    def wait(self, timeout: float | None = None) -> bool:
        self._slept.append(timeout)
        return False

    def notify(self, n: int = 1) -> None:
        pass

    def notify_all(self) -> None:
        pass
