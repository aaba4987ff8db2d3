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
        """        self._stopping = False
        self._say(""",
        """        self._stopping = False
        self.waiting = 0
        self._say(""",
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
    2,
    f"{ARTICLE}, Consume",
    "the consumer waits for a notification though a backlog is there",
    *COUNTING,
)
mutant(
    "published-backlog-count",
    "LC-5",
    "log-backlog-and-news",
    39,
    f"{ARTICLE}, Consume",
    "a backlog is processed but was never notified, so the count stays negative and the loop spins",
    *COUNTING,
)
mutant(
    "published-early-read",
    "LC-5",
    "log-two-messages",
    44,
    f"{ARTICLE}, notify",
    "a message can be read before it is notified, so one wake-up too many finds nothing and is never used up",
    *COUNTING,
)
mutant(
    "published-new-channel",
    "LC-5",
    "log-new-channel",
    37,
    f"{REPOSITORY}, AddChannel",
    "a channel made at the tail is notified of a message that lies before it",
    *COUNTING,
)
mutant(
    "published-retry",
    "LC-6",
    "log-poison",
    40,
    f"{ARTICLE}, handle",
    "a message whose handler failed is handed to it again at once",
    (
        """                if not self._back_off():
                    return
""",
        "",
    ),
)
mutant(
    "published-two-consumers",
    "LC-1",
    "log-two-consumers",
    36,
    f"{ARTICLE}, Consume",
    "nothing keeps two threads from consuming the same channel",
    (
        """        if not self._connected.compare_and_set(False, True):
            raise Misuse(f"channel {self.name} has a consumer")
""",
        """        self._connected.set(True)
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
    27,
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
        """        self._half_written = False
        self._closed""",
        """        self.all: list[Channel] = []
        self._half_written = False
        self._closed""",
    ),
    (
        """        self._stopping = False
        self._say(""",
        """        self._stopping = False
        self.buffer: list[bytes] = []
        topic.all.append(self)
        self._say(""",
    ),
)
mutant(
    "handler-under-lock",
    "LC-3",
    "log-stuck-handler",
    13,
    "the lock that `handle` takes, one line too early",
    "the handler runs under the lock that the publisher needs in order to signal",
    (
        """                handler(delivery.message)
            except""",
        """                with self._lock:
                    handler(delivery.message)
            except""",
    ),
)
mutant(
    "look-without-lock",
    "LC-4",
    "log-rest",
    12,
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
    12,
    "rule 3 turned round",
    "the publisher signals first and moves the tail then",
    (
        """            self.tail.set(Position(place.segment, place.offset + len(data)))
            self.host.record("append\"""",
        '            self.host.record("append"',
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
    29,
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
    73,
    "at most once",
    "the position moves before the handler has run",
    (
        """        while True:
            at = {"place\"""",
        """        self.commit(delivery.following)
        while True:
            at = {"place\"""",
    ),
)
mutant(
    "position-not-saved",
    "LC-2",
    "log-crash",
    102,
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
    45,
    "what most consumers do",
    "a message that failed too often is skipped without being parked",
    (
        """                    self._park(delivery, error)
""",
        "",
    ),
    also=("LC-6",),
)
mutant(
    "poison-for-ever",
    "LC-6",
    "log-poison-once",
    36,
    f"{ARTICLE}, handle",
    "a message that fails is never parked; only the pause was added",
    (
        """                if self.attempts >= self.max_attempts:
""",
        """                if self.attempts > self.max_attempts:
""",
    ),
)
mutant(
    "segment-skipped",
    "LC-1",
    "log-backlog",
    13,
    "roll-over",
    "the reader goes on to the next segment a record too early",
    (
        """            if position.offset < self.storage.size(segment_name(position.segment)):
""",
        """            if position.offset + HEADER.size + 2 < self.storage.size(segment_name(position.segment)):
""",
    ),
)
