"""Records, files and bits that go missing or change places: an error with file and place, or all is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations

import pytest

from seriatim.host import Threads
from seriatim.log import HEADER, Channel, Damaged, LogError, PastTheEnd, Topic
from seriatim_models.programs.disk import MemoryDisk

SEGMENT = 45
MESSAGES = [b"m%d" % k for k in range(8)]
"""Three in a segment, and two in the last."""

Files = dict[str, bytes]


def life(messages: list[bytes], rename: bytes = b"") -> Files:
    """The files of a topic of these messages, of which a channel parked one, struck it off, and parked the next."""
    disk = MemoryDisk()
    topic = Topic(Threads(), disk, SEGMENT)
    channel = Channel(topic, "c", max_attempts=1)

    def fails(message: bytes) -> None:
        channel.disconnect()
        raise ValueError("no")

    for message in messages:
        topic.publish(rename + message)
    for _ in range(2):
        channel.connect()
        channel.consume(fails)
    channel.replay(channel.parked()[0], lambda message: None)
    return disk.survivors()


def everything(files: Files) -> tuple[object, ...]:
    """All that a topic and its channel hold, read to the end: where it stood, what follows, what is parked."""
    topic = Topic(Threads(), MemoryDisk(files), SEGMENT)
    channel = Channel(topic, "c", max_attempts=1)
    first = Channel(topic, "first")
    messages = [d.message for d in first.read(99)]
    return channel.position, channel.attempts, messages, channel.parked()


WHOLE = life(MESSAGES)
HELD = everything(WHOLE)
LOGS = sorted(name for name in WHOLE if name.endswith(".log"))


def boundaries(data: bytes) -> Iterator[int]:
    """Where the records of a file begin."""
    at = 0
    while at < len(data):
        yield at
        at += HEADER.size + int.from_bytes(data[at : at + 4], "big")


def gone() -> Iterator[tuple[str, Files]]:
    """What may happen to whole records and whole files, with a name for it."""
    for name in (*LOGS, "c.parked"):
        data, starts = WHOLE[name], list(boundaries(WHOLE[name]))
        for at in starts:
            yield f"{name} cut at {at}", {**WHOLE, name: data[:at]}
        for at, behind in combinations([*starts, len(data)], 2):
            if behind < len(data):
                yield f"{name} without {at} to {behind}", {**WHOLE, name: data[:at] + data[behind:]}
        if name in LOGS[:-1]:
            yield f"{name} twice", {**WHOLE, name: data + data}
        yield f"{name} deleted", {k: v for k, v in WHOLE.items() if k != name}
    for one, other in combinations(LOGS, 2):
        yield f"{one} and {other} swapped", {**WHOLE, one: WHOLE[other], other: WHOLE[one]}
    for count in range(1, len(LOGS)):
        yield (
            f"the last {count} deleted",
            {k: v for k, v in WHOLE.items() if k not in LOGS[-count:]},
        )
    moved = {new: WHOLE[old] for old, new in zip(LOGS[1:], LOGS, strict=False)}
    yield "all moved down", {k: v for k, v in {**WHOLE, **moved}.items() if k != LOGS[-1]}
    others = life(MESSAGES, rename=b"x"), life([*MESSAGES[:1], b"MM", *MESSAGES[2:]])
    for other_log in others:
        for name in LOGS:
            if WHOLE[name] != other_log[name]:
                yield f"{name} of another topic", {**WHOLE, name: other_log[name]}


GONE = dict(gone())


@pytest.mark.parametrize("what", GONE)
def test_whole_records_that_vanish_or_move_are_missed(what: str) -> None:
    files = GONE[what]
    with pytest.raises((Damaged, PastTheEnd)) as caught:
        everything(files)
    assert caught.value.file in (*LOGS, "c.parked", "c.channel")
    assert 0 <= caught.value.offset <= len(files.get(caught.value.file, b"x" * SEGMENT))


def test_each_flipped_bit_in_any_file_is_an_error_or_does_no_harm() -> None:
    """No bit of what is stored changes what is read, unseen; and nothing is cut off for it."""
    for name, data in WHOLE.items():
        for bit in range(8 * len(data)):
            hurt = bytearray(data)
            hurt[bit // 8] ^= 1 << bit % 8
            disk_files = {**WHOLE, name: bytes(hurt)}
            with suppress(LogError):
                assert everything(disk_files) == HELD, (name, bit)


@pytest.mark.parametrize("name", [LOGS[-1], "c.parked"])
def test_what_lies_behind_the_last_record_and_is_none_costs_nothing(name: str) -> None:
    """Records of another place, too: here they are bytes that nobody was promised."""
    assert everything({**WHOLE, name: WHOLE[name] * 2}) == HELD


@pytest.mark.parametrize("name", ["topic.json", "c.parking"])
def test_a_mark_that_is_gone_loses_nothing(name: str) -> None:
    assert everything({k: v for k, v in WHOLE.items() if k != name}) == HELD


def test_without_a_mark_nothing_counts_as_torn() -> None:
    """Else a mark that was deleted would let the last record's damage pass for a crash."""
    files = {k: v for k, v in WHOLE.items() if k != "topic.json"}
    files[LOGS[-1]] = files[LOGS[-1]][:-1]
    with pytest.raises(Damaged, match=f"{LOGS[-1]}, offset 14: the file ends after 1 of 2 bytes"):
        everything(files)


def test_closing_is_not_needed_for_any_of_this() -> None:
    """The mark is as new as the last message that was confirmed."""
    disk = MemoryDisk()
    topic = Topic(Threads(), disk, SEGMENT)
    for count, message in enumerate(MESSAGES):
        topic.publish(message)
        files = disk.survivors()
        last = max(name for name in files if name.endswith(".log"))
        start = list(boundaries(files[last]))[-1]
        with pytest.raises(Damaged, match=last):
            Topic(Threads(), MemoryDisk({**files, last: files[last][:start]}), SEGMENT)
        assert count + 1 == len(Channel(Topic(Threads(), MemoryDisk(files)), "c").read(99))
