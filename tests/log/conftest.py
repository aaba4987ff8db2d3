"""Topics on real threads whose whole history is judged when the test is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from seriatim.log import Channel, Handler, Storage, Topic
from seriatim_models.history.event import Event, event
from seriatim_models.programs.disk import MemoryDisk
from seriatim_models.programs.log import rest
from seriatim_models.properties import Verdict
from seriatim_models.properties.whitebox.log import LOG
from seriatim_models.recording.log import recorded
from seriatim_models.watched import WatchedThreads

PATIENCE = 30
"""Seconds until a test that hangs says so; no test that passes waits this long."""


class Judged:
    """One topic, its channels, and what they recorded."""

    def __init__(self) -> None:
        self.records: list[Event] = []
        self._recording = threading.Lock()
        self.host = recorded(WatchedThreads(self._record))
        self.topic: Topic
        self.channels: dict[str, Channel] = {}

    def _record(self, t: int, thread: str, ev: str, args: dict[str, object]) -> None:
        with self._recording:
            i = len(self.records)
            self.records.append(event(i, t, thread, ev, {**args, "lvl": "model"}))

    def open(self, storage: Storage | None = None, segment_size: int = 200) -> Topic:
        self.topic = Topic(self.host, MemoryDisk() if storage is None else storage, segment_size)
        return self.topic

    def channel(self, name: str = "c", max_attempts: int = 3) -> Channel:
        channel = Channel(self.topic, name, max_attempts=max_attempts, pause=0.0001)
        self.channels[name] = channel
        return channel

    def consume(self, channel: Channel, handler: Handler) -> threading.Thread:
        channel.connect()
        thread = threading.Thread(target=channel.consume, args=(handler,), daemon=True)
        thread.start()
        return thread


@pytest.fixture
def judged() -> Iterator[Judged]:
    judged = Judged()
    yield judged
    judged.host.record("log_rest", **rest(judged.topic, judged.channels))
    for p in LOG:
        finding = p.check(judged.records)
        assert finding.verdict is not Verdict.VIOLATED, f"{p.id}: {finding.explanation}"
