"""Records, files and bits that go missing or change places: an error with file and place, or all is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations, pairwise, permutations

import pytest

from seriatim.host import Threads
from seriatim.log import HEADER, Channel, Damaged, LogError, PastTheEnd, Topic, segment_name
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


def records(data: bytes) -> list[bytes]:
    starts = list(boundaries(data))
    return [data[a:b] for a, b in pairwise([*starts, len(data)])]


def exchanged() -> Iterator[tuple[str, Files]]:
    """Records repeated, zeroed, swapped, and replaced by any other; segments in any order, and more of them."""
    other = life(MESSAGES, rename=b"x")
    for name in (*LOGS, "c.parked"):
        mine = records(WHOLE[name])
        elsewhere = [(n, r) for n in LOGS if n != name for r in records(WHOLE[n])]
        for k, was in enumerate(mine):
            ways = [("repeated", was * 2), ("zeroed", bytes(len(was)))]
            ways += [("without its payload", was[: HEADER.size] + bytes(len(was) - HEADER.size))]
            ways += [("endless", b"\xff" * 4 + was[4:])]
            ways += [(f"one of {n}", r) for n, r in elsewhere]
            for what, new in ways:
                yield (
                    f"{name}, record {k}: {what}",
                    {**WHOLE, name: b"".join([*mine[:k], new, *mine[k + 1 :]])},
                )
        for i, k in combinations(range(len(mine)), 2):
            swapped = list(mine)
            swapped[i], swapped[k] = mine[k], mine[i]
            yield f"{name}, records {i} and {k} swapped", {**WHOLE, name: b"".join(swapped)}
    for order in permutations(LOGS):
        if list(order) != LOGS:
            yield (
                f"in the order {order}",
                {**WHOLE, **{n: WHOLE[o] for n, o in zip(LOGS, order, strict=True)}},
            )
    for number in (len(LOGS), len(LOGS) + 3):
        for what, data in (("first", WHOLE[LOGS[0]]), ("last of another", other[LOGS[-1]])):
            yield f"{what} as {number}", {**WHOLE, segment_name(number): data}
    for name in LOGS:
        without = {k: v for k, v in WHOLE.items() if k != name}
        yield f"{name} renamed", {**without, segment_name(42): WHOLE[name]}
    for name in ("topic.json", "c.parking"):
        yield f"{name} of another log", {**WHOLE, name: other[name]}


EXCHANGED = dict(exchanged())


@pytest.mark.parametrize("what", EXCHANGED)
def test_what_is_exchanged_is_missed_or_does_no_harm(what: str) -> None:
    """Bytes behind the last record are no record, and cost nothing; else the error names the file and the place."""
    found: object
    try:
        found = everything(EXCHANGED[what])
    except LogError as error:
        found = error
    if not isinstance(found, LogError):
        assert found == HELD
    else:
        assert found.file in EXCHANGED[what] or "is missing" in str(found)
        assert found.offset >= 0


def test_an_old_mark_does_no_harm_and_is_no_excuse() -> None:
    """All behind it is taken. Only what is as it once was, mark and segments, passes for it."""
    disk = MemoryDisk()
    topic = Topic(Threads(), disk, SEGMENT)
    was = []
    for message in MESSAGES:
        topic.publish(message)
        was.append(disk.survivors())
    for files in was:
        mixed = {**was[-1], "topic.json": files["topic.json"]}
        topic = Topic(Threads(), MemoryDisk(mixed), SEGMENT)
        assert [d.message for d in Channel(topic, "c").read(99)] == MESSAGES
        last = LOGS[-1]
        with suppress(LogError):
            mixed[last] = mixed[last][:-1]
            topic = Topic(Threads(), MemoryDisk(mixed), SEGMENT)
            # A torn write, from where the mark stands: what is left was all there is before it.
            assert [d.message for d in Channel(topic, "c").read(99)] == MESSAGES[:-1]


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
