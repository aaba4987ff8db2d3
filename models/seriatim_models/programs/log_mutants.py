"""Wrong logs: each the smallest edit of `seriatim.log` that breaks one property.

Those named ``published-...`` are what the article, or the repository that it describes, says or does.
A loop that would spin for ever gives up after a few rounds, so that its history has an end.
"""

from __future__ import annotations

from seriatim_models.programs.base import Mutants

LOG_MUTANTS = Mutants("log")
mutant = LOG_MUTANTS.add

ARTICLE = "article 'Building a Queue, part 4'"
REPOSITORY = "karlseguin/sq, d704544"

COUNTING = (
    (
        """        with self._lock:
            self._news.notify()

    def _unread""",
        """        with self._lock:
            self.waiting += 1
            self._say("waiting", n=self.waiting)
            self._news.notify()

    def _unread""",
    ),
    (
        """        self._say("channel",""",
        """        self.waiting = 0
        self._say("channel",""",
    ),
    (
        """            while (delivery := self._next()) is not None:
                self._handle(handler, delivery)
        finally""",
        """            dry = 0
            while dry < 3:
                with self._lock:
                    while self.waiting == 0:
                        self._say("sleep")
                        dry = 0
                        self._news.wait()
                processed = 0
                while True:
                    delivery = self.topic.read(self.position)
                    self._say("look", unread=delivery is not None)
                    if delivery is None:
                        dry += 1
                        with self._lock:
                            self.waiting -= processed
                            self._say("waiting", n=self.waiting)
                        break
                    self._handle(handler, delivery)
                    processed += 1
        finally""",
    ),
)

mutant(
    "published-no-drain",
    "LC-4",
    "log-backlog",
    3,
    f"{ARTICLE}, Consume",
    "the consumer waits for a notification though a backlog is there",
    *COUNTING,
)
mutant(
    "published-backlog-count",
    "LC-5",
    "log-backlog-and-news",
    40,
    f"{ARTICLE}, Consume",
    "a backlog is processed but was never notified, so the count stays negative and the loop spins",
    *COUNTING,
)
mutant(
    "published-early-read",
    "LC-5",
    "log-two-messages",
    45,
    f"{ARTICLE}, notify",
    "a message can be read before it is notified, so one wake-up too many finds nothing and is never used up",
    *COUNTING,
)
mutant(
    "published-new-channel",
    "LC-5",
    "log-new-channel",
    40,
    f"{REPOSITORY}, AddChannel",
    "a channel made at the tail is notified of a message that lies before it",
    *COUNTING,
)
mutant(
    "published-retry",
    "LC-6",
    "log-poison",
    49,
    f"{ARTICLE}, handle",
    "a message whose handler failed is handed to it again at once",
    (
        """                self._back_off()
""",
        "",
    ),
)
mutant(
    "published-two-consumers",
    "LC-1",
    "log-two-consumers",
    38,
    f"{ARTICLE}, Consume",
    "nothing keeps two threads from consuming the same channel",
    (
        """        if not self._state.compare_and_set(AWAY, CONNECTED):
            raise Misuse(f"channel {self.name} has a consumer")
""",
        """        self._state.set(CONNECTED)
""",
    ),
)
mutant(
    "published-too-large",
    "LC-3",
    "log-too-large",
    1,
    f"{REPOSITORY}, Write",
    "a message that is too large is refused with the writers' lock held",
    (
        """        if len(data) > self.segment_size:
""",
        """        if len(data) > self.segment_size:
            self._writing.acquire()
""",
    ),
)
mutant(
    "published-go-channel",
    "LC-3",
    "log-stuck-handler",
    28,
    f"{ARTICLE}, what it advises against",
    "what is published is kept in memory for each channel, connected or not",
    (
        """        for channel in self._connected.get():
            channel.notify()
""",
        """        for channel in self.all:
            channel.buffer.append(message)
            channel.notify()
""",
    ),
    (
        """        self._closed = False
""",
        """        self._closed = False
        self.all: list[Channel] = []
""",
    ),
    (
        """        self._say("channel",""",
        """        self.buffer: list[bytes] = []
        topic.all.append(self)
        self._say("channel",""",
    ),
)
mutant(
    "published-never-rolls",
    "LC-7",
    "log-roll-over",
    24,
    f"{REPOSITORY}, Write since 872c51b",
    "a message counts as too large if it does not fit behind the last one, so no segment is ever followed by another",
    (
        """        if len(data) > self.segment_size:
""",
        """        if self.tail.get().offset + len(data) > self.segment_size:
""",
    ),
)
mutant(
    "published-mapped-slice",
    "LC-1",
    "log-batch",
    12,
    f"{REPOSITORY}, Topic.read and deleteSegment",
    "what is read is a slice of the segment's mapping, which is unmapped when the reader moves on to the next segment",
    (
        """        self._closed = False
        self._names""",
        """        self._closed = False
        self.mapped: dict[int, list[memoryview]] = {}
        self._names""",
    ),
    (
        """        message = read_record(self.storage, segment_name(place.segment), place.offset)
        end =""",
        """        record = read_record(self.storage, segment_name(place.segment), place.offset)
        message = memoryview(bytearray(record))
        self.mapped.setdefault(place.segment, []).append(message)
        for segment in [s for s in self.mapped if s < place.segment]:
            for slice_of_it in self.mapped.pop(segment):
                slice_of_it[:] = bytes(len(slice_of_it))
        end =""",
    ),
)
mutant(
    "published-one-worker",
    "LC-3",
    "log-name-taken",
    22,
    f"{REPOSITORY}, Topic.worker: waits for the lock of F-25, or calls itself for a name that is taken",
    "one worker opens channels and passes notifications on, from a buffer of 64 (here 1): while it cannot go on, "
    "publishers wait as soon as the buffer is full",
    (
        """        self._closed = False
        self._names""",
        """        self._closed = False
        self.buffer = host.semaphore(1, "buffer")
        self._names""",
    ),
    (
        """        for channel in self._connected.get():
            channel.notify()
""",
        """        self.buffer.acquire()
        for channel in self._connected.get():
            channel.notify()
        self.buffer.release()
""",
    ),
    (
        """        with self._writing:
            if name in self._names:
                raise Misuse(f"channel {name} is open already")
""",
        """        if name in self._names:
            self.buffer.acquire()
        with self._writing:
""",
    ),
)
mutant(
    "published-empty-message",
    "LC-8",
    "log-empty-message",
    45,
    f"{REPOSITORY}, findWritePosition",
    "a length of nought is taken for the end: after a restart an empty message and all behind it are written over",
    (
        """            offset += HEADER.size + len(read_record(storage, name, offset))
        except""",
        """            length = len(read_record(storage, name, offset))
            if not length:
                break
            offset += HEADER.size + length
        except""",
    ),
    also=("LC-2",),
)
mutant(
    "published-seen-before-synced",
    "LC-2",
    "log-seen-before-durable",
    47,
    f"{REPOSITORY}, Write: first the offset moves, then msync; and a position is not held against the end",
    "a message is handled, and the position behind it saved, before it is durable; after a crash the next message lies "
    "before that position",
    (
        """    storage.append(name, record)
    storage.sync(name)
""",
        """    storage.append(name, record)
    if topic is not None:
        topic.tail.set(Position(int(name[:8]), end + len(record)))
    storage.sync(name)
""",
    ),
    (
        "def append_record(storage: Storage, name: str, end: int, record: bytes) -> None:",
        "def append_record(storage: Storage, name: str, end: int, record: bytes, topic: Any = None) -> None:",
    ),
    (
        "        append_record(self.storage, segment_name(place.segment), place.offset, data)\n",
        "        append_record(self.storage, segment_name(place.segment), place.offset, data, self)\n",
    ),
    (
        "        if position > tail or min(position) < 0 or position.offset > end:\n",
        "        if min(position) < 0:\n",
    ),
)
mutant(
    "same-name-twice",
    "LC-1",
    "log-name-taken",
    69,
    "the reference itself, which asked each channel object, not its topic, whether it had a consumer",
    "two channels of one name are open, and each overwrites the other's position",
    (
        """            if name in self._names:
                raise Misuse(f"channel {name} is open already")
""",
        "",
    ),
    also=("LC-2",),
)
mutant(
    "parked-outside-the-lock",
    "LC-6",
    "log-replay",
    52,
    "the reference itself, which let two write to the parking file at once, and left half a record there",
    "one who parks and one who strikes off a parked message write at the same place",
    (
        """        with self._parks:
            append_record(self.topic.storage, self._parking, self._parked_to, record)
""",
        """        end = self._parked_to
        with self._parks:
            append_record(self.topic.storage, self._parking, end, record)
""",
    ),
)
mutant(
    "not-synced",
    "LC-8",
    "log-crash",
    69,
    "what a benchmark tempts one to",
    "publish returns before the message would survive a crash",
    (
        """    storage.append(name, record)
    storage.sync(name)
""",
        """    storage.append(name, record)
""",
    ),
)
mutant(
    "handler-under-lock",
    "LC-3",
    "log-stuck-handler",
    14,
    "the lock that `handle` takes, one line too early",
    "the handler runs under the lock that the publisher needs in order to signal",
    (
        """            handler(delivery.message)
        except""",
        """            with self._lock:
                handler(delivery.message)
        except""",
    ),
)
mutant(
    "look-without-lock",
    "LC-4",
    "log-rest",
    13,
    "the textbook mistake with condition variables",
    "the consumer looks before it takes the lock, and sleeps on what it saw",
    (
        """        with self._lock:
            while not self._stopping and not self._unread():
""",
        """        unread = self._unread()
        with self._lock:
            while not self._stopping and not unread:
""",
    ),
    (
        """                self._say("woke")
""",
        """                self._say("woke")
                unread = self._unread()
""",
    ),
)
mutant(
    "signal-before-tail",
    "LC-4",
    "log-rest",
    13,
    "rule 3 turned round",
    "the publisher signals first and moves the tail then",
    (
        """                self.tail.set(Position(place.segment, place.offset + len(data)))
                self.host.record("append\"""",
        '                self.host.record("append"',
    ),
    (
        """            channel.notify()
        self.host.record("publish", ph="ok\"""",
        """            channel.notify()
        self.tail.set(Position(place.segment, place.offset + len(data)))
        self.host.record("publish", ph="ok\"""",
    ),
)
mutant(
    "connect-after-look",
    "LC-4",
    "log-two-channels",
    31,
    "enlisting too late",
    "the consumer enlists for signals only when it has found nothing",
    (
        """        self.topic.enlist(self)
        self._say("connect")
""",
        """        self._say("connect")
""",
    ),
    (
        """            while (delivery := self._next()) is not None:
""",
        """            self._unread()
            while self.topic.read(self.position) is not None:
                self._handle(handler, self.topic.read(self.position))
            with self._lock:
                self.topic.enlist(self)
                self._say("sleep")
                self._news.wait()
            while (delivery := self._next()) is not None:
""",
    ),
)
mutant(
    "commit-before-handler",
    "LC-2",
    "log-crash",
    78,
    "at most once",
    "the position moves before the handler has run",
    (
        """        at = {"place\"""",
        """        self.commit(delivery.following)
        at = {"place\"""",
    ),
)
mutant(
    "position-not-saved",
    "LC-2",
    "log-crash",
    110,
    "at least once for ever",
    "the position moves in memory only",
    (
        """        self.attempts = 0
        self._save()
""",
        """        self.attempts = 0
""",
    ),
)
mutant(
    "poison-dropped",
    "LC-2",
    "log-poison",
    52,
    "what most consumers do",
    "a message that failed too often is skipped without being parked",
    (
        """            self._park(delivery, error)
""",
        "",
    ),
    also=("LC-6",),
)
mutant(
    "poison-for-ever",
    "LC-6",
    "log-poison-once",
    45,
    f"{ARTICLE}, handle",
    "a message that fails is never parked; only the pause was added",
    (
        """            if self.attempts < self.max_attempts:
""",
        """            if self.attempts <= self.max_attempts:
""",
    ),
)
mutant(
    "segment-skipped",
    "LC-1",
    "log-backlog",
    14,
    "roll-over",
    "the reader goes on to the next segment a record too early",
    (
        """            if position.offset < self.storage.size(segment_name(position.segment)):
""",
        """            if position.offset + HEADER.size + 2 < self.storage.size(segment_name(position.segment)):
""",
    ),
)
