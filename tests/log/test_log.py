"""What the log promises to one who uses it, on real files and real threads, and what it refuses."""

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from seriatim.host import Threads
from seriatim.log import (
    HEADER,
    ChainEnd,
    Channel,
    Damaged,
    Files,
    Misuse,
    OtherFormat,
    PastTheEnd,
    Position,
    Topic,
    read_chain,
    record_bytes,
    save_state,
)
from seriatim_models.programs.disk import MemoryDisk


def topic_of(disk: MemoryDisk | Files, segment_size: int = 40) -> Topic:
    return Topic(Threads(), disk, segment_size)


def failing_until(last: bytes, channel: Channel, calls: list[bytes]) -> Callable[[bytes], None]:
    """A handler that notes each message and fails, but for `last`, at which it disconnects."""

    def handler(message: bytes) -> None:
        calls.append(message)
        if message != last:
            raise ValueError("no")
        channel.disconnect()

    return handler


def filled() -> MemoryDisk:
    disk = MemoryDisk()
    topic = topic_of(disk)
    for k in range(6):
        topic.publish(b"message %d" % k)
    Channel(topic, "c")
    return disk


def test_segments_roll_over_and_are_read_as_one() -> None:
    disk = filled()
    assert len([n for n in disk.names() if n.endswith(".log")]) == 6
    deliveries = Channel(topic_of(disk), "c").read(10)
    assert [d.message for d in deliveries] == [b"message %d" % k for k in range(6)]


def test_what_a_topic_and_a_channel_began_with_they_keep() -> None:
    """A topic its segments' size; a channel made at the tail the messages that came after it was made."""
    disk = MemoryDisk()
    topic = topic_of(disk, 40)
    topic.publish(b"before")
    Channel(topic, "late", at_tail=True)
    topic.publish(b"after")
    again = topic_of(disk, 1000)
    assert again.segment_size == 40
    assert [d.message for d in Channel(again, "late", at_tail=True).read(9)] == [b"after"]


def test_opening_what_is_whole_changes_nothing() -> None:
    files = filled().survivors()
    disk = MemoryDisk(files)
    Channel(topic_of(disk), "c")
    assert (disk.survivors(), disk.spent) == (files, 0)


def test_peek_and_batch_leave_the_position_until_committed() -> None:
    channel = Channel(topic_of(filled()), "c")
    assert channel.read() == channel.read(1)
    batch = channel.read(4)
    channel.commit(batch[-1].following)
    channel.commit(channel.position)  # where it stands is not back
    assert [d.message for d in channel.read(10)] == [b"message 4", b"message 5"]


def test_handler_that_fails_is_parked_listed_and_replayed() -> None:
    topic = topic_of(MemoryDisk())
    channel = Channel(topic, "c", max_attempts=3, pause=0.001)
    topic.publish(b"bad")
    topic.publish(b"good")
    calls: list[bytes] = []
    handler = failing_until(b"good", channel, calls)
    channel.connect()
    channel.consume(handler)
    assert calls == [b"bad"] * 3 + [b"good"]
    (parked,) = channel.parked()
    assert (parked.message, parked.error) == (b"bad", "ValueError: no")
    with pytest.raises(ValueError, match="no"):
        channel.replay(parked, handler)
    assert channel.parked() == [parked]
    channel.replay(parked, calls.append)
    assert channel.parked() == []


def test_each_message_has_all_its_attempts() -> None:
    topic = topic_of(MemoryDisk())
    channel = Channel(topic, "c", max_attempts=2, pause=0)
    for message in (b"bad", b"worse", b"end"):
        topic.publish(message)
    calls: list[bytes] = []
    handler = failing_until(b"end", channel, calls)
    channel.connect()
    channel.consume(handler)
    assert calls == [b"bad", b"bad", b"worse", b"worse", b"end"]


def test_failures_are_counted_over_a_restart() -> None:
    """Else a message whose handler fails would be tried for ever by a program that is restarted as often."""
    disk = MemoryDisk()
    topic_of(disk).publish(b"bad")
    calls = 0
    for parked in (0, 0, 1):
        channel = Channel(topic_of(disk), "c", max_attempts=3)

        def fails(message: bytes, channel: Channel = channel) -> None:
            nonlocal calls
            calls += 1
            channel.disconnect()
            raise ValueError("no")

        channel.connect()
        channel.consume(fails)
        assert len(channel.parked()) == parked
    assert calls == 3


def test_threads_over_files_stop_and_go_on(tmp_path: Path) -> None:
    """Two publishers, two channels, one of which is disconnected and comes back."""
    topic = topic_of(Files(tmp_path), 2000)
    channels = {name: Channel(topic, name) for name in "ab"}
    seen: dict[str, list[bytes]] = {"a": [], "b": []}

    def consume(name: str, until: int) -> threading.Thread:
        channel = channels[name]

        def handler(message: bytes) -> None:
            seen[name].append(message)
            if len(seen[name]) == until:
                channel.disconnect()

        channel.connect()
        thread = threading.Thread(target=channel.consume, args=(handler,))
        thread.start()
        return thread

    def publish(name: str) -> None:
        for k in range(60):
            topic.publish(f"{name}{k}".encode())

    consumers = [consume("a", 120), consume("b", 20)]
    publishers = [threading.Thread(target=publish, args=(n,)) for n in "xy"]
    for thread in publishers:
        thread.start()
    for thread in [*publishers, *consumers]:
        thread.join(30)
    consume("b", 120).join(30)
    topic.close()
    again = Channel(Topic(Threads(), Files(tmp_path)), "new").read(1000)
    assert seen["a"] == seen["b"] == [d.message for d in again]
    assert len(again) == 120


class Recorded(Channel):
    """A channel that counts how often it was signalled."""

    signals = 0

    def notify(self) -> None:
        self.signals += 1
        super().notify()


def test_who_left_is_not_signalled_and_who_stayed_is() -> None:
    topic = topic_of(MemoryDisk())
    left, stayed = Recorded(topic, "left"), Recorded(topic, "stayed")
    for channel in (left, stayed):
        channel.connect()
    topic.publish(b"m1")
    left.consume(lambda message: left.disconnect())
    topic.publish(b"m2")
    assert (left.signals, stayed.signals) == (1, 2)
    left.connect()
    topic.publish(b"m3")
    assert (left.signals, stayed.signals) == (2, 3)


# ---- bad input


def test_rejects_a_damaged_segment_anywhere() -> None:
    """Whichever byte before the last record is changed, reading says which file and offset, and changes nothing."""
    disk = filled()
    name = "00000002.log"
    for k in range(disk.size(name)):
        files = disk.survivors()
        files[name] = files[name][:k] + bytes([files[name][k] ^ 0x41]) + files[name][k + 1 :]
        hurt = MemoryDisk(files)
        channel = Channel(topic_of(hurt), "c")
        with pytest.raises(Damaged, match=rf"{name}, offset 0: ") as caught:
            channel.read(10)
        assert (caught.value.file, caught.value.offset) == (name, 0)
        assert hurt.survivors() == files
        assert len(channel.read(2)) == 2
        channel.commit(Position(3, 0))  # what the module's docstring says about going on
        assert [d.message for d in channel.read(10)] == [b"message %d" % i for i in (3, 4, 5)]


def test_rejects_damage_in_the_last_segment_that_no_crash_leaves() -> None:
    disk = MemoryDisk()
    topic = topic_of(disk, 200)
    topic.publish(b"one")
    topic.publish(b"two")
    files = disk.survivors()
    files["00000000.log"] = (
        b"\xff" + files["00000000.log"][1:]
    )  # a length that reaches past the end
    with pytest.raises(
        Damaged, match=r"00000000.log, offset 0: the file ends after 18 of \d+ bytes"
    ):
        topic_of(MemoryDisk(files), 200)


def one_and_behind_it(tail: bytes) -> MemoryDisk:
    """A topic of one message, with something behind its mark."""
    disk = MemoryDisk()
    topic_of(disk, 200).publish(b"one")
    files = disk.survivors()
    files["00000000.log"] += tail
    return MemoryDisk(files)


def behind_one(payload: bytes, check: int | None = None) -> bytes:
    """The record that another publish would have written."""
    disk = one_and_behind_it(b"")
    end = read_chain(disk, "00000000.log", 15)
    return record_bytes(
        "00000000.log", ChainEnd(15, end.check if check is None else check), payload
    )


@pytest.mark.parametrize(
    "tail",
    [
        b"\xff" * (HEADER.size - 1),
        b"\xff" * HEADER.size,
        behind_one(b"four")[:-1],
        behind_one(b"four")[:-1] + b"\0",
        behind_one(b"four")[: HEADER.size],
        bytes(HEADER.size)
        + behind_one(b"four")[HEADER.size :],  # the second half, without the first
        behind_one(b"four")[:-1] + b"xy",
    ],
)
def test_what_is_behind_the_mark_and_no_whole_record_is_a_torn_write(tail: bytes) -> None:
    """It is cut off and kept beside the segment."""
    disk = one_and_behind_it(tail)
    topic = topic_of(disk, 200)
    topic.publish(b"two")
    assert bytes(disk.files["00000000.log.torn"]) == tail
    assert [d.message for d in Channel(topic_of(disk, 200), "c").read(9)] == [b"one", b"two"]


def test_a_whole_record_behind_the_mark_is_taken() -> None:
    disk = one_and_behind_it(behind_one(b"two"))
    topic_of(disk, 200)
    files = disk.survivors()
    files["00000000.log"] = files["00000000.log"][:15]
    with pytest.raises(Damaged, match=r"00000000\.log, offset 15"):  # opening has marked it
        topic_of(MemoryDisk(files), 200)
    assert [d.message for d in Channel(topic_of(disk), "c").read(9)] == [b"one", b"two"]


def test_rejects_a_whole_record_that_was_not_written_behind_the_last() -> None:
    with pytest.raises(Damaged, match="offset 15: it was not written behind the record before it"):
        topic_of(one_and_behind_it(behind_one(b"two", 7)), 200)


def test_a_segment_is_filled_to_its_last_byte() -> None:
    """And `publish` says where each message lies."""
    topic = topic_of(MemoryDisk(), 40)
    places = [topic.publish(b"x" * (20 - HEADER.size)) for _ in range(3)]
    assert places == [Position(0, 0), Position(0, 20), Position(1, 0)]
    assert [d.place for d in Channel(topic, "c").read(9)] == places


def test_torn_tail_is_kept_beside_the_segment() -> None:
    disk = filled()
    marked = disk.survivors()["topic.json"]
    topic_of(disk).publish(b"message 6")
    files = disk.survivors()
    torn = files["00000006.log"][: HEADER.size + 3]
    disk = MemoryDisk({**files, "00000006.log": torn, "topic.json": marked})
    topic = topic_of(disk)
    assert disk.read("00000006.log.torn", 0, 99) == torn
    assert topic.tail.get() == Position(6, 0)
    assert len(Channel(topic, "c").read(10)) == 6


def test_rejects_a_missing_segment() -> None:
    files = filled().survivors()
    del files["00000003.log"]
    with pytest.raises(Damaged, match=r"00000003\.log, offset 0: the file is missing"):
        topic_of(MemoryDisk(files))


@pytest.mark.parametrize("name", ["topic.json", "c.channel"])
@pytest.mark.parametrize("version", [1, 3, "next"])
def test_rejects_a_state_file_of_another_format(name: str, version: object) -> None:
    files = filled().survivors()
    files[name] = json.dumps({"format": version}).encode()
    with pytest.raises(
        OtherFormat, match=f"{name}, offset 0: format {version!r}; this version reads format 2"
    ):
        Channel(topic_of(MemoryDisk(files)), "c")


@pytest.mark.parametrize("name", ["topic.json", "c.channel"])
@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b'{"format": 2}', b"\xff", b"[" * 100_000]
)
def test_rejects_a_state_file_that_is_none(name: str, text: bytes) -> None:
    files = filled().survivors()
    files[name] = text
    with pytest.raises(Damaged, match=f"{name}, offset 0"):
        Channel(topic_of(MemoryDisk(files)), "c")


@pytest.mark.parametrize("at", [(6, 0), (5, 22), (0, 99), (-1, 0), (0, -1)])
def test_rejects_a_position_past_the_end(at: tuple[int, int]) -> None:
    files = filled().survivors()
    disk = MemoryDisk(files)
    save_state(disk, "c.channel", segment=at[0], offset=at[1], attempts=0)
    files = disk.survivors()
    topic = topic_of(disk)
    with pytest.raises(PastTheEnd, match=r"c.channel, offset 0: position .* lies past the end"):
        Channel(topic, "c")
    assert files == {n: bytes(d) for n, d in topic.storage.files.items()}  # type: ignore[attr-defined]  # a MemoryDisk
    topic.storage.files.pop("c.channel")  # type: ignore[attr-defined]  # as the module's docstring says
    assert len(Channel(topic, "c").read(10)) == 6


def test_rejects_to_commit_past_the_end_and_stays() -> None:
    channel = Channel(topic_of(filled()), "c")
    with pytest.raises(PastTheEnd, match="lies past the end"):
        channel.commit(Position(6, 0))
    assert len(channel.read(10)) == 6


def test_rejects_a_message_too_large_and_goes_on() -> None:
    topic = topic_of(MemoryDisk())
    with pytest.raises(Misuse, match="a message of 29 bytes; a segment has room for 28"):
        topic.publish(b"x" * 29)
    topic.publish(b"x" * 28)


def test_last_segment_that_is_damaged_can_be_taken_away() -> None:
    disk = filled()
    files = disk.survivors()
    files["00000005.log"] = b"\xff" * 40
    with pytest.raises(Damaged, match=r"00000005.log, offset 0"):
        topic_of(MemoryDisk(files))
    del files["00000005.log"]
    with pytest.raises(Damaged, match=r"00000005.log, offset 0"):
        topic_of(MemoryDisk(files))
    del files["topic.json"]
    assert len(Channel(topic_of(MemoryDisk(files)), "c").read(10)) == 5


@pytest.mark.parametrize(
    ("max_attempts", "pause"), [(0, 0.1), (-1, 0.1), (1, -0.1), (1, 3601.0), (1, math.nan)]
)
def test_rejects_a_channel_that_could_not_try(max_attempts: int, pause: float) -> None:
    with pytest.raises(Misuse, match="max_attempts is at least 1, and pause 0 to 3600 seconds"):
        Channel(topic_of(MemoryDisk()), "c", max_attempts=max_attempts, pause=pause)


def test_rejects_a_second_consumer_a_second_channel_and_a_closed_topic() -> None:
    topic = topic_of(MemoryDisk())
    channel = Channel(topic, "c")
    channel.connect()
    with pytest.raises(Misuse, match="channel c has a consumer"):
        channel.connect()
    with pytest.raises(Misuse, match="channel c is open already"):
        Channel(topic, "c")
    away = Channel(topic, "away")
    with pytest.raises(Misuse, match="channel away: connect, and then consume"):
        away.consume(lambda message: None)
    topic.close()
    with pytest.raises(Misuse, match="closed"):
        topic.publish(b"m")
    with pytest.raises(Misuse, match="name"):
        Channel(topic, "../c")


class FullDisk(MemoryDisk):
    """Takes half of a message and fails, once."""

    full = False

    def append(self, name: str, data: bytes) -> None:
        if self.full:
            self.full = False
            super().append(name, data[: len(data) // 2])
            raise OSError("no space left")
        super().append(name, data)


@pytest.mark.parametrize("kept", [b"kept", b"kept in the next segment"])
def test_a_disk_that_fails_once_costs_only_that_message(kept: bytes) -> None:
    for before in range(1, 4):
        disk = FullDisk()
        topic = topic_of(disk)
        for _ in range(before):
            topic.publish(b"m" * 8)
        disk.full = True
        with pytest.raises(OSError, match="no space"):
            topic.publish(b"lost")
        topic.publish(kept)
        messages = [d.message for d in Channel(topic_of(disk), "c").read(10)]
        assert messages == [b"m" * 8] * before + [kept]


def test_a_disk_that_fails_while_parking_costs_nothing_that_was_parked() -> None:
    disk = FullDisk()
    topic = topic_of(disk)
    channel = Channel(topic, "c", max_attempts=1)

    def fails(message: bytes) -> None:
        channel.disconnect()
        raise ValueError("no")

    def handle_one() -> None:
        channel.connect()
        channel.consume(fails)

    for message in (b"one", b"two"):
        topic.publish(message)
    handle_one()
    disk.full = True
    with pytest.raises(OSError, match="no space"):
        handle_one()
    assert [p.message for p in channel.parked()] == [b"one"]
    handle_one()
    assert [p.message for p in channel.parked()] == [b"one", b"two"]
