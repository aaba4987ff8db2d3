"""Processes that publish, consume and park on real files are killed with SIGKILL at random moments, again and again.

`KILLS` says how often (25 in `make test`), `SEED` draws the moments; `make test-kill` and the night take more.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import seriatim.log as log
from seriatim.host import Threads
from seriatim.log import Channel, Files, Topic

KILLS = int(os.environ.get("KILLS", "25"))
SEED = int(os.environ.get("SEED", "0"))
SEGMENT = 400
LIVES = 20
"""As often one topic is killed; then a new one begins, so that reading it all stays cheap."""
LONGEST = 0.06
"""Seconds until a kill, at most."""

# Windows has no fork, and no SIGKILL.
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked to be killed")


class Story:
    """What the processes of one topic reported: confirmed messages, and handled ones, in order."""

    def __init__(self) -> None:
        self.confirmed: list[bytes] = []
        self.handled: list[bytes] = []


class Moment(NamedTuple):
    """When a process is killed."""

    seconds: float
    published: bool
    """So long after its first confirmed message, and not after its beginning: on a busy machine that may be nothing."""


class Unsynced:
    """The module `os` as the log sees it, without waiting: a process that dies leaves the kernel alive."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, fd: int) -> None:
        """Do nothing."""


def live(folder: Path, begin: int, pipe: int, synced: bool) -> None:
    """Publish from one thread and consume on another, until killed; report what was confirmed and what was handled."""
    if not synced:
        log.os = Unsynced()  # type: ignore[assignment, attr-defined]  # it looks like the module
    topic = Topic(Threads(), Files(folder), SEGMENT)
    channel = Channel(topic, "c", max_attempts=2, pause=0.0001)

    def handler(message: bytes) -> None:
        if message.endswith(b"7"):
            raise ValueError("seven")
        os.write(pipe, b"h%s\n" % message)

    channel.connect()
    threading.Thread(target=channel.consume, args=(handler,), daemon=True).start()
    count = begin
    while True:
        topic.publish(b"%d" % count)
        os.write(pipe, b"p%d\n" % count)
        count += 1


def killed_life(folder: Path, begin: int, moment: Moment, synced: bool) -> list[bytes]:
    """Fork a process that lives on the topic, kill it, and return the lines that it wrote."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            live(folder, begin, write, synced)
        finally:
            os._exit(1)  # it never ends by itself
    os.close(write)
    with open(read, "rb", buffering=0) as pipe:
        written = b""
        while moment.published and b"p" not in written and (more := pipe.read(4096)):
            written += more
        time.sleep(moment.seconds)
        os.kill(pid, signal.SIGKILL)
        lines = (written + pipe.readall()).split(b"\n")[:-1]
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1]), "the process ended before it was killed"
    return lines


def check(folder: Path, story: Story) -> int:
    """Assert that nothing confirmed is lost and nothing handled out of order; returns how many messages there are."""
    topic = Topic(Threads(), Files(folder), SEGMENT)
    channel = Channel(topic, "c", max_attempts=2)
    there = [d.message for d in Channel(topic, "reader").read(100_000)]
    assert there == [b"%d" % k for k in range(len(there))], "order, and no gap"
    assert story.confirmed == there[: len(story.confirmed)]
    position = channel.position
    done = [m for m in there if not m.endswith(b"7")]
    once = list(dict.fromkeys(story.handled))
    assert once == done[: len(once)], "each was handled, in order"
    unread = {d.message for d in channel.read(100_000)}
    assert not set(done) - set(once) - unread, f"skipped before {position}"
    parked = [p.message for p in channel.parked()]
    sevens = [m for m in there if m.endswith(b"7")]
    assert sorted(parked, key=int) == sevens[: len(parked)]
    assert not set(sevens) - set(parked) - unread
    return len(there)


def test_kills_lose_nothing(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    left, messages, again, published = KILLS, 0, 0, 0
    while left:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            story, there = Story(), 0
            for _ in range(min(LIVES, left)):
                moment = Moment(chance.uniform(0, LONGEST), chance.random() < 0.5)
                lines = killed_life(Path(folder), there, moment, chance.random() < 0.3)
                published += moment.published
                story.confirmed += [line[1:] for line in lines if line.startswith(b"p")]
                story.handled += [line[1:] for line in lines if line.startswith(b"h")]
                there = check(Path(folder), story)
                # What was written and not confirmed may be there; whoever comes next takes it for confirmed.
                story.confirmed = [b"%d" % k for k in range(there)]
                left -= 1
            messages += there
            again += len(story.handled) - len(set(story.handled))
    print(f"{KILLS} kills, {messages} messages, none lost, {again} handled again")
    assert messages >= published >= KILLS // 4, "hardly anything happened before the kills"
