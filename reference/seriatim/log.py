"""A topic on disk and the channels that read it, as the smallest code that is right.

A topic is a list of segment files to which publishers append. A channel is a name and a position in that list.
The article "Building a Queue, part 4" describes both; where we differ from it a comment says so.

How to think of it
------------------
Nothing is in memory but one place per topic, its *tail*, and one per channel, its *position*; the rest is on disk.
A channel has something to read exactly if its position is not the tail. There is no other notion of "news".

Rule 1 (append).   A record is written behind the tail, made durable, and marked: a state file says, durably, where the
                   last record ends, and its checksum. Only then does the tail move past it.
                   So whatever lies before the tail is whole, durable, and never changes.
Rule 2 (check).    A consumer sleeps only if, under its channel's lock, its position is the tail. It needs no count.
Rule 3 (signal).   After the tail has moved, the publisher takes the lock of each connected channel and signals. The
                   consumer then re-checks; a signal says no more. No thread calls a handler or a disk under that lock.
Rule 4 (commit).   A position moves only past a message whose handler returned, or that was parked, and is replaced
                   on disk in one piece. A crash before that makes the message come again: at least once.
Rule 5 (poison).   A message whose handler raises is tried `max_attempts` times with growing pauses, then parked in
                   the channel's parking file, and the channel goes on. Until then everything behind it waits:
                   the channel's order is write order, but for what was parked. `replay` hands a parked message to a
                   handler again, out of order. Failures are counted on disk; a handler that kills the process
                   raises nothing and is not counted.
Rule 6 (one).      A topic has at most one channel of a name open, and a channel at most one consumer connected.
Rule 7 (stop).     `disconnect` is a request; the consumer ends between two messages, so what it handled is committed.
                   A handler that never returns delays its own channel for ever, and nobody else.

After a crash
-------------
The model of a disk: what was synced stays; of what was not, anything may be left, in any order; `replace` has happened
or has not. Each record holds the checksum of the one before it, over the ends of segments, and its own checksum is also
over the place where it lies. So a record that is gone, moved or another's is missed by the next, and the last ones by
the mark. A *torn write* is what lies behind the mark and is no whole record: nobody was ever promised it. It is
cut off, and kept beside the file in a ``.torn`` file. A whole record behind the mark is taken. Anything else that does
not add up is not a crash but damage: `Damaged` says which file and offset, and nothing is changed. What lies in older
segments is found when it is read, at the latest where its segment ends: until there a record of another log that lies
in the same place, of the same length, would be handed out. An old mark by itself does no harm: all behind it is taken.

To go on after damage, put the file back from a copy. If there is none:
a channel can be moved past damage in a segment with `commit`, to a position that you know to be the start of a record,
for example the start of the next segment;
a last segment that is damaged can be taken away with ``topic.json``, and the topic ends before it (as it does, with
nothing torn, whenever ``topic.json`` is not there);
a channel whose state file is damaged or points past the end (`PastTheEnd`: the topic is shorter than when the channel
stood there, perhaps because it was put back from an old copy) starts at the first message when that file is taken away.
`OtherFormat` asks for the program that wrote the file.

If the disk fails once, the publisher of that message gets the error, and before the next record is written the mark
is put back and what the failed write left is cut off.

What this file does not know
----------------------------
Deleting old segments; several processes on one topic; replication. Threads, clocks and logs it asks its `Host` for.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import deal

from seriatim.host import Cell, Host, operation

T = TypeVar("T")

FORMAT = 2
"""The version that state files carry. In the first one records did not hold the checksum of the one before."""

HEADER = struct.Struct(">III")
"""Length of the payload; the checksum of the record before; the checksum, a CRC-32, of place, these two and payload."""


class LogError(Exception):
    """An error in a file, with the file's name and the offset."""

    def __init__(self, file: str, offset: int, what: str) -> None:
        super().__init__(f"{file}, offset {offset}: {what}")
        self.file, self.offset = file, offset


class Damaged(LogError):
    """A file does not hold what was written to it."""


class OtherFormat(LogError):
    """A state file was written by a version that has another format."""


class PastTheEnd(LogError):
    """A channel's position lies behind the last record."""


class Misuse(Exception):
    """The caller asked for something that is not possible."""


class Position(NamedTuple):
    """A place in a topic: the number of a segment, and an offset in bytes."""

    segment: int
    offset: int


# ==== The disk


class Storage(Protocol):
    """What the log asks of a disk. A file that does not exist is empty."""

    def names(self) -> list[str]:
        """Return the names of all files."""

    def size(self, name: str) -> int:
        """Return the length of a file in bytes."""

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return `length` bytes, fewer at the end of the file."""

    def append(self, name: str, data: bytes) -> None:
        """Write behind the end of the file."""

    def truncate(self, name: str, size: int) -> None:
        """Cut the file off at `size`, if it is longer."""

    def sync(self, name: str) -> None:
        """Return when all that was appended will survive a crash."""

    def replace(self, name: str, data: bytes) -> None:
        """Write the file's whole content, in one piece and durably."""


class Files:
    """A disk that is a folder."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        """Return the names of the folder's files."""
        return [p.name for p in self._folder.iterdir() if p.is_file()]

    def size(self, name: str) -> int:
        """Return the length of a file in bytes."""
        path = self._folder / name
        return path.stat().st_size if path.exists() else 0

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return `length` bytes, fewer at the end of the file."""
        try:
            with open(self._folder / name, "rb") as file:
                file.seek(offset)
                return file.read(length)
        except FileNotFoundError:
            return b""

    def append(self, name: str, data: bytes) -> None:
        """Write behind the end of the file."""
        with open(self._folder / name, "ab", buffering=0) as file:
            while data:
                data = data[file.write(data) :]

    def truncate(self, name: str, size: int) -> None:
        """Cut the file off at `size`, if it is longer."""
        if self.size(name) > size:
            os.truncate(self._folder / name, size)

    def sync(self, name: str) -> None:
        """Have the file and its name in the folder survive a crash."""
        with open(self._folder / name, "ab") as file:
            os.fsync(file.fileno())
        self._sync_folder()

    def replace(self, name: str, data: bytes) -> None:
        """Write a new file beside it and rename it."""
        new = self._folder / f"{name}.new"
        with open(new, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._folder / name)
        self._sync_folder()

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# ==== Records and state files


class ChainEnd(NamedTuple):
    """Where the records of a file end, and the checksum of the last: 0 if none was ever written."""

    offset: int
    check: int


class ChainedRecord(NamedTuple):
    """What a record holds, the checksum of the one before, and where it ends itself."""

    payload: bytes
    before: int
    end: ChainEnd


def checksum(name: str, offset: int, head: bytes, payload: bytes) -> int:
    """Return the checksum of a record, which lies there and nowhere else."""
    return zlib.crc32(payload, zlib.crc32(head, zlib.crc32(b"%a %d" % (name, offset))))


def record_bytes(name: str, end: ChainEnd, payload: bytes) -> bytes:
    """Return a payload with its header, to be written at `end`."""
    head = struct.pack(">II", len(payload), end.check)
    return head + struct.pack(">I", checksum(name, end.offset, head, payload)) + payload


def read_record(storage: Storage, name: str, offset: int) -> ChainedRecord:
    """Return the record that starts at `offset`; raises `Damaged`."""
    head = storage.read(name, offset, HEADER.size)
    if len(head) < HEADER.size:
        raise Damaged(name, offset, f"the file ends after {len(head)} bytes of a record's header")
    length, before, check = HEADER.unpack(head)
    payload = storage.read(name, offset + HEADER.size, length)
    if len(payload) < length:
        raise Damaged(name, offset, f"the file ends after {len(payload)} of {length} bytes")
    if checksum(name, offset, head[:8], payload) != check:
        raise Damaged(name, offset, "the record's checksum is wrong")
    return ChainedRecord(payload, before, ChainEnd(offset + HEADER.size + length, check))


def read_chain(storage: Storage, name: str, size: int) -> ChainEnd:
    """Return the end of a file's first `size` bytes; raises `Damaged` if they are not whole records, in order."""
    end = ChainEnd(0, 0)
    while end.offset < size:
        record = read_record(storage, name, end.offset)
        if end.offset and record.before != end.check:
            raise Damaged(name, end.offset, "it was not written behind the record before it")
        end = record.end
    return end


def recover(
    storage: Storage, name: str, marked: ChainEnd | None, mark: Callable[[ChainEnd], None]
) -> ChainEnd:
    """Return, and mark, where the file's whole records end; a torn write behind the mark is set aside and cut off.

    Without a mark nothing counts as torn. Raises `Damaged` if not all is there that was marked.
    """
    if marked is None:
        marked = read_chain(storage, name, storage.size(name))
        mark(marked)
    elif marked.offset and read_chain(storage, name, marked.offset) != marked:
        raise Damaged(name, marked.offset, "the last record is not the one that was marked")
    end, size = marked, storage.size(name)
    while end.offset < size:
        try:
            record = read_record(storage, name, end.offset)
        except Damaged:
            storage.replace(f"{name}.torn", storage.read(name, end.offset, size - end.offset))
            break
        if record.before != end.check:
            raise Damaged(name, end.offset, "it was not written behind the record before it")
        end = record.end
    if end != marked:
        mark(end)
    clear(storage, name, end, mark)
    return end


def append_record(
    storage: Storage, name: str, end: ChainEnd, payload: bytes, mark: Callable[[ChainEnd], None]
) -> ChainEnd:
    """Write a record durably, mark where it ends, and return that; what a disk that failed left there is cut off."""
    clear(storage, name, end, mark)
    record = record_bytes(name, end, payload)
    storage.append(name, record)
    storage.sync(name)
    end = ChainEnd(end.offset + len(record), HEADER.unpack_from(record)[2])
    mark(end)
    return end


def clear(storage: Storage, name: str, end: ChainEnd, mark: Callable[[ChainEnd], None]) -> None:
    """Cut off, durably, what lies behind the records. First the mark: it may stand there, if the disk failed."""
    if storage.size(name) > end.offset:
        mark(end)
        storage.truncate(name, end.offset)
        storage.sync(name)


# Any: what JSON holds
def save_state(storage: Storage, name: str, **state: Any) -> None:
    """Write a state file, durably and in one piece."""
    state = {"format": FORMAT, **state}
    check = zlib.crc32(json.dumps(state).encode())
    storage.replace(name, json.dumps({**state, "check": check}).encode())


def load_state(
    storage: Storage, name: str, what: str, parse: Callable[[dict[str, Any]], T]
) -> T | None:
    """Return what `parse` makes of a state file, or None if there is none yet; raises `Damaged` or `OtherFormat`."""
    if name not in storage.names():
        return None
    text = storage.read(name, 0, storage.size(name))
    try:
        state = json.loads(text)
        version, check = state["format"], state.pop("check", None)
        if version == FORMAT:
            if zlib.crc32(json.dumps(state).encode()) != check:
                raise ValueError("its checksum is wrong")
            return parse(state)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise Damaged(name, 0, f"not a {what}'s state: {error!r}") from error
    raise OtherFormat(name, 0, f"format {version!r}; this version reads format {FORMAT}")


# ==== The topic


class Delivery(NamedTuple):
    """A message, where it lies, and the position behind it."""

    message: bytes
    place: Position
    following: Position


def _topic_state(state: dict[str, Any]) -> tuple[int, int, ChainEnd]:
    """Return the size of segments, the number of the last, and where it ends."""
    return int(state["segment_size"]), int(state["segment"]), ChainEnd(*map(int, state["end"]))


class Topic:
    """Publishers append to it from any thread."""

    def __init__(self, host: Host, storage: Storage, segment_size: int = 1 << 20) -> None:
        self.host, self.storage = host, storage
        segments = sorted(n for n in storage.names() if re.fullmatch(r"\d{8}\.log", n))
        last = int(segments[-1][:8]) if segments else 0
        for i in range(last):
            if segment_name(i) not in segments:
                raise Damaged(segment_name(i), 0, "the file is missing")
        state = load_state(storage, "topic.json", "topic", _topic_state)
        self.segment_size, self._segment, marked = state or (segment_size, last, None)
        end = recover(storage, segment_name(self._segment), marked, self._mark)
        while self._segment < last:
            self._segment += 1
            end = recover(storage, segment_name(self._segment), ChainEnd(0, end.check), self._mark)
        self._end = end
        """Where the next record is written; under `_writing`, as is the number of its segment."""
        tail = Position(self._segment, self._end.offset)
        self.tail: Cell[Position] = host.cell(tail, "tail")
        self._writing = host.lock("writing")
        self._closed = False
        self._names: set[str] = set()
        """Of channels that are open; under `_writing`."""
        self._connected: Cell[tuple[Channel, ...]] = host.cell((), "connected")
        host.record("topic", tail=list(tail), segment_size=self.segment_size)

    @operation
    def publish(self, message: bytes) -> Position:
        """Return, once it will survive a crash, where the message lies. Waits for other publishers and the disk.

        Raises `Misuse` if it is too large or the topic is closed; or what the disk raises: then it may be there or not.
        """
        room = self.segment_size - HEADER.size
        if len(message) > room:
            raise Misuse(f"a message of {len(message)} bytes; a segment has room for {room}")
        with self._writing:
            place = self._append(message)
        for channel in self._connected.get():
            channel.notify()
        return place

    def close(self) -> None:
        """Refuse further messages."""
        with self._writing:
            self._closed = True

    @operation
    def _append(self, message: bytes) -> Position:
        """Write a record behind the tail, and then move the tail (rule 1). Under the lock."""
        if self._closed:
            raise Misuse("the topic is closed")
        if self._end.offset + HEADER.size + len(message) > self.segment_size:
            clear(self.storage, segment_name(self._segment), self._end, self._mark)
            self._segment, self._end = self._segment + 1, ChainEnd(0, self._end.check)
        place = Position(self._segment, self._end.offset)
        name = segment_name(place.segment)
        self._end = append_record(self.storage, name, self._end, message, self._mark)
        self.tail.set(Position(place.segment, self._end.offset))
        return place

    def _mark(self, end: ChainEnd) -> None:
        where = {"segment": self._segment, "end": end}
        save_state(self.storage, "topic.json", segment_size=self.segment_size, **where)

    # ---- what channels ask

    def claim(self, name: str) -> None:
        """Reserve a channel's name: two channels of one name would overwrite each other's position."""
        with self._writing:
            if name in self._names:
                raise Misuse(f"channel {name} is open already")
            self._names.add(name)

    def give_up(self, name: str) -> None:
        """Let a channel's name be used again: it could not be opened."""
        with self._writing:
            self._names.remove(name)

    def start_of_next(self, position: Position, tail: Position) -> Position:
        """Return `position`, or if its segment is used up, the start of the next."""
        while position.segment < tail.segment:
            if position.offset < self.storage.size(segment_name(position.segment)):
                break
            position = Position(position.segment + 1, 0)
        return position

    def read(self, position: Position) -> Delivery | None:
        """Return the message at a position; None at the tail."""
        tail = self.tail.get()
        place = self.start_of_next(position, tail)
        if place == tail:
            return None
        record = read_record(self.storage, segment_name(place.segment), place.offset)
        if place.segment > position.segment:  # the chain goes on over the end of a segment
            name = segment_name(place.segment - 1)
            end = read_chain(self.storage, name, self.storage.size(name))
            if record.before != end.check:
                raise Damaged(name, end.offset, "here records are missing, or are others")
        return Delivery(record.payload, place, Position(place.segment, record.end.offset))

    def enlist(self, channel: Channel) -> None:
        """Have publishers signal to a channel."""
        there = self._connected.get()
        while not self._connected.compare_and_set(there, (*there, channel)):
            there = self._connected.get()

    @operation
    def strike(self, channel: Channel) -> None:
        """Have publishers signal to a channel no more."""
        while True:
            there = self._connected.get()
            rest = tuple(c for c in there if c is not channel)
            if self._connected.compare_and_set(there, rest):
                return


@deal.ensure(
    lambda segment, result: result[-4:] == ".log" and int(result[:-4]) == segment,
    message="LC-8: the name says which segment it is",
)
def segment_name(segment: int) -> str:
    """Return the name of a segment's file."""
    return f"{segment:08}.log"


# ==== Channels

Handler = Callable[[bytes], None]
"""Raises if the message was not handled."""

AWAY, CONNECTED, CONSUMING = "away", "connected", "consuming"


class Parked(NamedTuple):
    """A message that its handler failed too often."""

    place: Position
    error: str
    message: bytes


def _channel_state(state: dict[str, Any]) -> tuple[Position, int]:
    """Return the position and how often the message there failed."""
    return Position(int(state["segment"]), int(state["offset"])), int(state["attempts"])


def _parking_state(state: dict[str, Any]) -> ChainEnd:
    """Return where the parking file ends."""
    return ChainEnd(*map(int, state["end"]))


class Channel:
    """One reader of a topic, known by its name. A new one starts at the first message, or at the tail.

    Pauses between attempts start at `pause` seconds and double, 20 times at most.
    """

    def __init__(
        self,
        topic: Topic,
        name: str,
        *,
        max_attempts: int = 5,
        pause: float = 0.1,
        at_tail: bool = False,
    ) -> None:
        if not re.fullmatch(r"[\w-]+", name):
            raise Misuse(f"a channel's name is letters, digits, _ and -, not {name!r}")
        if max_attempts < 1 or not 0 <= pause <= 3600:
            raise Misuse("max_attempts is at least 1, and pause 0 to 3600 seconds")
        self.topic, self.name, self.host, self.storage = topic, name, topic.host, topic.storage
        self.max_attempts, self.pause = max_attempts, pause
        self._file, self._parking = f"{name}.channel", f"{name}.parked"
        tail = topic.tail.get()
        state = load_state(self.storage, self._file, "channel", _channel_state)
        position, self.attempts = state or (tail if at_tail else Position(0, 0), 0)
        self._check(position)
        self._position = self.host.cell(position, f"{name}.position")
        # Before the parking file is touched: another channel of this name may be writing it.
        topic.claim(name)
        try:
            parked = load_state(self.storage, f"{name}.parking", "parking file", _parking_state)
            self._parked_to = recover(self.storage, self._parking, parked, self._mark_parked)
            """Where the parking file's last record ends; under `_parks`."""
            if state is None:
                self._save()
        except BaseException:
            topic.give_up(name)
            raise
        self._parks = self.host.lock(f"{name}.parks")
        self._lock = self.host.lock(f"{name}.lock")
        self._news = self.host.condition(self._lock, f"{name}.news")
        self._asked = self.host.condition(self._lock, f"{name}.asked")
        self._state = self.host.cell(AWAY, f"{name}.state")
        self._stopping: bool
        """Whether the consumer was asked to end, under `_lock`; `connect` says no."""
        tries = {"max_attempts": max_attempts, "attempts": self.attempts}
        self.host.record("channel", channel=name, place=list(position), **tries)

    @property
    def position(self) -> Position:
        """Where it reads next; moved by `commit` only."""
        return self._position.get()

    # ---- connect, consume, disconnect

    @operation
    def connect(self) -> None:
        """Become the channel's consumer."""
        if not self._state.compare_and_set(AWAY, CONNECTED):
            raise Misuse(f"channel {self.name} has a consumer")
        with self._lock:
            self._stopping = False
        self.topic.enlist(self)

    def consume(self, handler: Handler) -> None:
        """Handle messages until disconnected. For the thread that connected, once."""
        if not self._state.compare_and_set(CONNECTED, CONSUMING):
            raise Misuse(f"channel {self.name}: connect, and then consume, on one thread")
        try:
            while (delivery := self._next()) is not None:
                self._handle(handler, delivery)
        finally:
            self.topic.strike(self)
            self._state.set(AWAY)

    def disconnect(self) -> None:
        """Ask the consumer to end after the message in hand."""
        with self._lock:
            self._stopping = True
            self._news.notify()
            self._asked.notify()

    def notify(self) -> None:
        """Signal (rule 3). The article counts here, and so must its consumer, which then gets the sum wrong."""
        with self._lock:
            self._news.notify()

    @operation
    def _unread(self) -> bool:
        """Return whether there is a message behind the position (rule 2)."""
        tail = self.topic.tail.get()
        return self.topic.start_of_next(self.position, tail) != tail

    @operation
    def _sleep(self) -> None:
        self._news.wait()

    def _next(self) -> Delivery | None:
        with self._lock:
            while not self._stopping and not self._unread():
                self._sleep()
            if self._stopping:
                return None
        return self.topic.read(self.position)

    # ---- handling

    def _handle(self, handler: Handler, delivery: Delivery) -> None:
        """Handle it once. If it was neither handled nor parked, the next one is this one again."""
        error = self._attempt(handler, delivery)
        if error is not None:
            self.attempts += 1
            if self.attempts < self.max_attempts:
                self._save()
                self._back_off()
                return
            self._park(delivery, error)
        self._commit(delivery.following)

    @operation
    def _attempt(self, handler: Handler, delivery: Delivery) -> Exception | None:
        """Call the handler and return what it raised."""
        try:
            handler(delivery.message)
        except Exception as error:
            return error
        return None

    @operation
    def _back_off(self) -> None:
        """Pause, but no longer than until asked to end."""
        with self._lock:
            while not self._stopping:
                if not self._asked.wait(self.pause * 2 ** min(self.attempts - 1, 20)):
                    return

    def read(self, limit: int = 1) -> list[Delivery]:
        """Return the next messages, at most `limit`; the position stays. For a batch, and to look ahead."""
        found: list[Delivery] = []
        position = self.position
        while len(found) < limit and (delivery := self.topic.read(position)) is not None:
            found.append(delivery)
            position = delivery.following
        return found

    def commit(self, position: Position) -> None:
        """Move to `position`, durably, and never back, before or after `consume`, which does that itself (rule 4).

        Raises `Misuse` or `PastTheEnd`, and stays.
        """
        if self._state.get() == CONSUMING:
            raise Misuse(f"channel {self.name} moves when its handler has returned")
        self._commit(position)

    @operation
    def _commit(self, position: Position) -> None:
        self._check(position)
        if position < self.position:
            raise Misuse(f"channel {self.name} stands at {tuple(self.position)} already")
        self._position.set(position)
        self.attempts = 0
        self._save()

    def _check(self, position: Position) -> None:
        tail = self.topic.tail.get()
        end = self.storage.size(segment_name(position.segment))
        if position > tail or min(position) < 0 or position.offset > end:
            raise PastTheEnd(
                self._file,
                0,
                f"position {tuple(position)} lies past the end: {segment_name(position.segment)} "
                f"ends at offset {end}, the topic at {tuple(tail)}",
            )

    def _save(self) -> None:
        place = self.position._asdict()
        save_state(self.storage, self._file, **place, attempts=self.attempts)

    # ---- parking

    @operation
    def _park(self, delivery: Delivery, error: Exception) -> None:
        self._note_parked(delivery.place, f"{type(error).__name__}: {error}", delivery.message)

    def _note_parked(self, place: Position, error: str | None, message: bytes) -> None:
        head = json.dumps({"place": place, "error": error}).encode()
        payload, mark = head + b"\n" + message, self._mark_parked
        with self._parks:
            end = append_record(self.storage, self._parking, self._parked_to, payload, mark)
            self._parked_to = end

    def _mark_parked(self, end: ChainEnd) -> None:
        save_state(self.storage, f"{self.name}.parking", end=end)

    def parked(self) -> list[Parked]:
        """Return what waits in the parking file. A crash may have parked a message twice: it is listed once."""
        storage, offset = self.storage, 0
        found: dict[Position, Parked] = {}
        with self._parks:
            end = self._parked_to
        while offset < end.offset:
            record = read_record(storage, self._parking, offset)
            head, _, message = record.payload.partition(b"\n")
            entry = json.loads(head)
            place = Position(*entry["place"])
            found.pop(place, None)
            if entry["error"] is not None:
                found[place] = Parked(place, entry["error"], message)
            offset = record.end.offset
        return list(found.values())

    @operation
    def replay(self, parked: Parked, handler: Handler) -> None:
        """Try a parked message again, on any thread; it is struck off if the handler returns.

        Two who replay it at once both call the handler. Raises `Misuse` if it is not parked, or not any more.
        """
        if parked.place not in [p.place for p in self.parked()]:
            raise Misuse(f"channel {self.name} has nothing parked from {tuple(parked.place)}")
        handler(parked.message)
        self._note_parked(parked.place, None, b"")
