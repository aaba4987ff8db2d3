"""The machine stops after every byte and every other change of the disk; nothing that was promised is lost."""

import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from seriatim.host import Threads
from seriatim.log import Channel, Damaged, Topic
from seriatim_models.programs.disk import Crash, MemoryDisk, ReorderingDisk

MESSAGES = [b"", b"bad", b"\0\0\0", b"four", b"a message with zeros behind\0\0"]
SEGMENT = 50


def one_at_a_time(topic: Topic, channel: Channel, handled: list[bytes]) -> None:
    """Consume all there is, on this thread."""
    if not channel.read():
        return

    def handler(message: bytes) -> None:
        if message == b"bad":
            raise ValueError("bad")
        handled.append(message)

    def stopping(message: bytes) -> None:
        if len(channel.read(2)) == 1 and (message != b"bad" or channel.attempts + 1 == 2):
            channel.disconnect()
        handler(message)

    channel.connect()
    channel.consume(stopping)


def life(
    disk: MemoryDisk, promised: list[bytes], handled: list[bytes], messages: list[bytes]
) -> None:
    topic = Topic(Threads(), disk, SEGMENT)
    channel = Channel(topic, "c", max_attempts=2, pause=0)
    for message in messages:
        topic.publish(message)
        promised.append(message)
        one_at_a_time(topic, channel, handled)
    topic.close()


def whole() -> int:
    disk = MemoryDisk()
    life(disk, [], [], MESSAGES)
    return disk.spent


@pytest.mark.parametrize("kept", [None, 0, 5, 13])
@pytest.mark.parametrize("zeros", [False, True])
def test_crash_anywhere_loses_nothing(kept: int | None, zeros: bool) -> None:
    """What `publish` returned is there; what was handled is not lost; order stays; at most one message comes twice."""
    cuts = whole()
    assert cuts == 182  # a change of this number is a change of what is written
    for budget in range(cuts):
        disk = MemoryDisk(budget=budget)
        promised: list[bytes] = []
        handled: list[bytes] = []
        with pytest.raises(Crash):
            life(disk, promised, handled, MESSAGES)
        holds_after(disk.survivors(kept, zeros), promised, handled, budget)


def holds_after(
    files: dict[str, bytes], promised: list[bytes], handled: list[bytes], budget: int
) -> None:
    """Open what a crash left, work it off and go on; assert that nothing promised is lost, nor comes too often."""
    disk = MemoryDisk(files)
    topic = Topic(Threads(), disk, SEGMENT)
    channel = Channel(topic, "c", max_attempts=2, pause=0)
    before = len(handled)
    one_at_a_time(topic, channel, handled)
    reader = Channel(topic, "reader")
    there = [d.message for d in reader.read(100)]
    assert there[: len(promised)] == promised, budget
    assert len(there) <= len(promised) + 1, budget
    assert there == MESSAGES[: len(there)], budget
    again = handled[before:]
    good = [m for m in there if m != b"bad"]
    assert handled[:before] == good[:before], budget
    assert again in (good[before:], good[before - 1 :]), budget
    assert [p.message for p in channel.parked()] == [b"bad"] * (b"bad" in there), budget
    topic.publish(b"goes on")
    assert reader.read(100)[-1].message == b"goes on"


@pytest.mark.parametrize("seed", range(25))
def test_a_disk_that_drops_and_reorders_what_was_not_synced_loses_nothing(seed: int) -> None:
    """A crash at every change, and what it leaves drawn by this seed: each sector the old or the new, in any order."""
    chance = random.Random(seed)
    for budget in range(whole()):
        disk = ReorderingDisk(budget=budget)
        promised: list[bytes] = []
        handled: list[bytes] = []
        with pytest.raises(Crash):
            life(disk, promised, handled, MESSAGES)
        holds_after(disk.left(chance.randrange), promised, handled, budget)


def test_a_crash_in_the_recovery_from_a_crash_loses_nothing() -> None:
    chance = random.Random(0)
    for budget in range(0, whole(), 3):
        for again in range(1, 12, 2):
            disk = ReorderingDisk(budget=budget)
            promised: list[bytes] = []
            handled: list[bytes] = []
            with pytest.raises(Crash):
                life(disk, promised, handled, MESSAGES)
            disk = ReorderingDisk(disk.left(chance.randrange), budget=again)
            with suppress(Crash):
                Channel(Topic(Threads(), disk, SEGMENT), "c", max_attempts=2, pause=0)
            holds_after(disk.left(chance.randrange), promised, handled, budget)


def test_the_made_disk_drops_and_reorders() -> None:
    """Else the test above would show nothing: without the sync, messages that were promised are lost."""

    class Unsynced(ReorderingDisk):
        def sync(self, name: str) -> None:
            self._pay_or_crash()

    lost = 0
    chance = random.Random(0)
    for budget in range(whole()):
        disk = Unsynced(budget=budget)
        promised: list[bytes] = []
        with suppress(Crash):
            life(disk, promised, [], MESSAGES)
        try:
            there = Channel(
                Topic(Threads(), MemoryDisk(disk.left(chance.randrange)), SEGMENT), "r"
            ).read(9)
        except Damaged:
            lost += 1
        else:
            lost += [d.message for d in there][: len(promised)] != promised
    assert lost > 100


# Windows has no fork; crashes at every byte are tested there too, above, over a made disk.
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked to be killed")
def test_process_killed_at_every_change_of_real_files_loses_nothing(tmp_path: Path) -> None:
    """Each open for writing, half of each write, each fsync, rename and truncation: also those of the state files."""
    script = Path(__file__).with_name("cut.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 105  # a change of this number is a change of what is written
