"""The machine stops after every byte and every other change of the disk; nothing that was promised is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seriatim.host import Threads
from seriatim.log import Channel, Topic
from seriatim_models.programs.disk import Crash, MemoryDisk

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
    assert cuts == 176  # a change of this number is a change of what is written
    for budget in range(cuts):
        disk = MemoryDisk(budget=budget)
        promised: list[bytes] = []
        handled: list[bytes] = []
        with pytest.raises(Crash):
            life(disk, promised, handled, MESSAGES)
        disk = MemoryDisk(disk.survivors(kept, zeros))
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


# Windows has no fork; crashes at every byte are tested there too, above, over a made disk.
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked to be killed")
def test_process_killed_at_every_change_of_real_files_loses_nothing(tmp_path: Path) -> None:
    """Each open for writing, half of each write, each fsync, rename and truncation: also those of the state files."""
    script = Path(__file__).with_name("cut.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 75  # a change of this number is a change of what is written
