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

COUNTING = """
         with self._lock:
+            self.waiting += 1
+            self.host.record("waiting", channel=self.name, n=self.waiting)
             self._news.notify()

     @operation
     def _unread(self) -> bool:
@@
+        self.waiting = 0
         self.host.record("channel", channel=name, place=list(position), **tries)
@@
-            while (delivery := self._next()) is not None:
-                self._handle(handler, delivery)
+            dry = 0
+            while dry < 3:
+                with self._lock:
+                    while self.waiting == 0:
+                        self.host.record("sleep", channel=self.name)
+                        dry = 0
+                        self._news.wait()
+                processed = 0
+                while True:
+                    delivery = self.topic.read(self.position)
+                    self.host.record("look", channel=self.name, unread=delivery is not None)
+                    if delivery is None:
+                        dry += 1
+                        with self._lock:
+                            self.waiting -= processed
+                            self.host.record("waiting", channel=self.name, n=self.waiting)
+                        break
+                    self._handle(handler, delivery)
+                    processed += 1
         finally:
"""

DRAIN_THEN_COUNT = COUNTING.replace(
    """
-            while (delivery := self._next()) is not None:
-                self._handle(handler, delivery)
""",
    """
-            while (delivery := self._next()) is not None:
+            while (delivery := self.topic.read(self.position)) is not None:
                 self._handle(handler, delivery)
""",
)

mutant(
    id="published-no-drain",
    killed_by="LC-4",
    program="log-backlog",
    steps=3,
    origin=f"{ARTICLE}, Consume",
    title="the consumer waits for a notification though a backlog is there",
    diff=COUNTING,
)
mutant(
    id="published-backlog-count",
    killed_by="LC-5",
    program="log-backlog-and-news",
    steps=41,
    origin=f"{ARTICLE}, Consume",
    title="a backlog is processed but was never notified, so the count stays negative and the loop spins",
    diff=COUNTING,
)
mutant(
    id="published-drain-then-count",
    killed_by="LC-5",
    program="log-backlog-and-two",
    steps=56,
    origin=f"{REPOSITORY}, Consume since 25d380d",
    title=(
        "the backlog is drained before the count is looked at, and so is what arrives meanwhile, which was counted: "
        "the count stays above what is unread, and the loop spins"
    ),
    diff=DRAIN_THEN_COUNT,
)
mutant(
    id="published-early-read",
    killed_by="LC-5",
    program="log-two-messages",
    steps=45,
    origin=f"{ARTICLE}, notify",
    title="a message can be read before it is notified, so one wake-up too many finds nothing and is never used up",
    diff=COUNTING,
)
mutant(
    id="published-new-channel",
    killed_by="LC-5",
    program="log-new-channel",
    steps=41,
    origin=f"{REPOSITORY}, AddChannel",
    title="a channel made at the tail is notified of a message that lies before it",
    diff=COUNTING,
)
mutant(
    id="published-retry",
    killed_by="LC-6",
    program="log-poison",
    steps=51,
    origin=f"{ARTICLE}, handle",
    title="a message whose handler failed is handed to it again at once",
    diff="""
-                self._back_off()
""",
)
mutant(
    id="published-two-consumers",
    killed_by="LC-1",
    program="log-two-consumers",
    steps=44,
    origin=f"{ARTICLE}, Consume",
    title="nothing keeps two threads from consuming the same channel",
    diff="""
-        if not self._state.compare_and_set(AWAY, CONNECTED):
-            raise Misuse(f"channel {self.name} has a consumer")
+        self._state.set(CONNECTED)
""",
)
mutant(
    id="published-too-large",
    killed_by="LC-3",
    program="log-too-large",
    steps=1,
    origin=f"{REPOSITORY}, Write",
    title="a message that is too large is refused with the writers' lock held",
    diff="""
         if len(message) > room:
+            self._writing.acquire()
""",
)
mutant(
    id="published-go-channel",
    killed_by="LC-3",
    program="log-stuck-handler",
    steps=26,
    origin=f"{ARTICLE}, what it advises against",
    title="what is published is kept in memory for each channel, connected or not",
    diff="""
-        for channel in self._connected.get():
+        for channel in self.all:
+            channel.buffer.append(message)
             channel.notify()
@@
         self._closed = False
+        self.all: list[Channel] = []
@@
+        self.buffer: list[bytes] = []
+        topic.all.append(self)
         self.host.record("channel", channel=name, place=list(position), **tries)
""",
)
mutant(
    id="published-never-rolls",
    killed_by="LC-7",
    program="log-roll-over",
    steps=24,
    origin=f"{REPOSITORY}, Write since 872c51b",
    title=(
        "a message counts as too large if it does not fit behind the last one, so no segment is ever "
        "followed by another"
    ),
    diff="""
-        if len(message) > room:
+        if self.tail.get().offset + len(message) > room:
""",
)
mutant(
    id="published-mapped-slice",
    killed_by="LC-1",
    program="log-batch",
    steps=13,
    origin=f"{REPOSITORY}, Topic.read and deleteSegment",
    title=(
        "what is read is a slice of the segment's mapping, which is unmapped when the reader moves on "
        "to the next segment"
    ),
    diff="""
         self._closed = False
+        self.mapped: dict[int, list[memoryview]] = {}
         self._names: set[str] = set()
@@
-        return Delivery(record.payload, place, Position(place.segment, record.end.offset))
+        message = memoryview(bytearray(record.payload))
+        self.mapped.setdefault(place.segment, []).append(message)
+        for segment in [s for s in self.mapped if s < place.segment]:
+            for slice_of_it in self.mapped.pop(segment):
+                slice_of_it[:] = bytes(len(slice_of_it))
+        return Delivery(message, place, Position(place.segment, record.end.offset))
""",
)
mutant(
    id="published-one-worker",
    killed_by="LC-3",
    program="log-name-taken",
    steps=23,
    origin=f"{REPOSITORY}, Topic.worker: waits for the lock of F-25, or calls itself for a name that is taken",
    title="one worker opens channels and passes notifications on, from a buffer of 64 (here 1): while it cannot go on, "
    "publishers wait as soon as the buffer is full",
    diff="""
         self._closed = False
+        self.buffer = host.semaphore(1, "buffer")
         self._names: set[str] = set()
@@
+        self.buffer.acquire()
         for channel in self._connected.get():
             channel.notify()
+        self.buffer.release()
@@
+        if name in self._names:
+            self.buffer.acquire()
         with self._writing:
-            if name in self._names:
-                raise Misuse(f"channel {name} is open already")
""",
)
mutant(
    id="published-empty-message",
    killed_by="LC-8",
    program="log-empty-message",
    steps=45,
    origin=f"{REPOSITORY}, findWritePosition",
    title=(
        "a length of zero is taken for the end: after a restart an empty message and all behind it "
        "are written over"
    ),
    diff="""
-    elif marked.offset and read_chain(storage, name, marked.offset) != marked:
-        raise Damaged(name, marked.offset, "the last record is not the one that was marked")
-    end, size = marked, storage.size(name)
+    end, size = ChainEnd(0, 0), storage.size(name)
@@
             break
+        if not record.payload:
+            break
         if record.before != end.check:
""",
    also=("LC-2",),
)
mutant(
    id="published-seen-before-synced",
    killed_by="LC-2",
    program="log-seen-before-durable",
    steps=48,
    origin=f"{REPOSITORY}, Write: first the offset moves, then msync; and a position is not held against the end",
    title=(
        "a message is handled, and the position behind it saved, before it is durable; after a "
        "crash the next message lies "
        "before that position"
    ),
    diff="""
     storage.append(name, record)
+    if topic is not None:
+        topic.tail.set(Position(int(name[:8]), end.offset + len(record)))
     storage.sync(name)
@@
-    storage: Storage, name: str, end: ChainEnd, payload: bytes, mark: Callable[[ChainEnd], None]
+    storage: Storage, name: str, end: ChainEnd, payload: bytes, mark: Any, topic: Any = None
@@
-        self._end = append_record(self.storage, name, self._end, message, self._mark)
+        self._end = append_record(self.storage, name, self._end, message, self._mark, self)
@@
-        if position > tail or min(position) < 0 or position.offset > end:
+        if min(position) < 0:
""",
)
mutant(
    id="same-name-twice",
    killed_by="LC-1",
    program="log-name-taken",
    steps=73,
    origin="the reference itself, which asked each channel object, not its topic, whether it had a consumer",
    title="two channels of one name are open, and each overwrites the other's position",
    diff="""
-            if name in self._names:
-                raise Misuse(f"channel {name} is open already")
""",
    also=("LC-2",),
)
mutant(
    id="parked-outside-the-lock",
    killed_by="LC-6",
    program="log-replay",
    steps=60,
    origin="the reference itself, which let two write to the parking file at once, and left half a record there",
    title="one who parks and one who strikes off a parked message write at the same place",
    diff="""
+        to = self._parked_to
         with self._parks:
-            end = append_record(self.storage, self._parking, self._parked_to, payload, mark)
+            end = append_record(self.storage, self._parking, to, payload, mark)
""",
)
mutant(
    id="not-synced",
    killed_by="LC-8",
    program="log-crash",
    steps=71,
    origin="what a benchmark tempts one to",
    title="publish returns before the message would survive a crash",
    diff="""
     storage.append(name, record)
-    storage.sync(name)
     end = ChainEnd(end.offset + len(record), HEADER.unpack_from(record)[2])
-    mark(end)
""",
)
mutant(
    id="handler-under-lock",
    killed_by="LC-3",
    program="log-stuck-handler",
    steps=13,
    origin="the lock that `handle` takes, one line too early",
    title="the handler runs under the lock that the publisher needs in order to signal",
    diff="""
-            handler(delivery.message)
+            with self._lock:
+                handler(delivery.message)
         except Exception as error:
""",
)
mutant(
    id="look-without-lock",
    killed_by="LC-4",
    program="log-rest",
    steps=12,
    origin="the textbook mistake with condition variables",
    title="the consumer looks before it takes the lock, and sleeps on what it saw",
    diff="""
+        unread = self._unread()
         with self._lock:
-            while not self._stopping and not self._unread():
+            while not self._stopping and not unread:
@@
                 self._sleep()
+                unread = self._unread()
""",
)
mutant(
    id="signal-before-tail",
    killed_by="LC-4",
    program="log-rest",
    steps=12,
    origin="rule 3 turned round",
    title="the publisher signals first and moves the tail then",
    diff="""
-        self.tail.set(Position(place.segment, self._end.offset))
         return place
@@
             channel.notify()
+        self.tail.set(Position(place.segment, self._end.offset))
         return place
""",
)
mutant(
    id="connect-after-look",
    killed_by="LC-4",
    program="log-two-channels",
    steps=33,
    origin="enlisting too late",
    title="the consumer enlists for signals only when it has found nothing",
    diff="""
             self._stopping = False
-        self.topic.enlist(self)
@@
+            self._unread()
+            while self.topic.read(self.position) is not None:
+                self._handle(handler, self.topic.read(self.position))
+            with self._lock:
+                self.topic.enlist(self)
+                self.host.record("sleep", channel=self.name)
+                self._news.wait()
             while (delivery := self._next()) is not None:
""",
)
mutant(
    id="commit-before-handler",
    killed_by="LC-2",
    program="log-crash",
    steps=85,
    origin="at most once",
    title="the position moves before the handler has run",
    diff="""
+        self._commit(delivery.following)
         error = self._attempt(handler, delivery)
""",
)
mutant(
    id="position-not-saved",
    killed_by="LC-2",
    program="log-crash",
    steps=116,
    origin="at least once for ever",
    title="the position moves in memory only",
    diff="""
         self.attempts = 0
-        self._save()
""",
)
mutant(
    id="poison-dropped",
    killed_by="LC-2",
    program="log-poison",
    steps=54,
    origin="what most consumers do",
    title="a message that failed too often is skipped without being parked",
    diff="""
-            self._park(delivery, error)
""",
    also=("LC-6",),
)
mutant(
    id="poison-for-ever",
    killed_by="LC-6",
    program="log-poison-once",
    steps=46,
    origin=f"{ARTICLE}, handle",
    title="a message that fails is never parked; only the pause was added",
    diff="""
-            if self.attempts < self.max_attempts:
+            if self.attempts <= self.max_attempts:
""",
)
mutant(
    id="parked-too-soon",
    killed_by="LC-6",
    program="log-poison",
    steps=44,
    origin="off by one",
    title="a message that fails is parked one attempt before the last",
    diff="""
-            if self.attempts < self.max_attempts:
+            if self.attempts + 1 < self.max_attempts:
""",
)
mutant(
    id="parks-under-its-lock",
    killed_by="LC-4",
    program="log-poison",
    steps=27,
    origin="a lock that is not re-entrant",
    title="one who parks a message takes the parking file's lock twice, and its channel stands still",
    diff="""
-        self._note_parked(delivery.place, f"{type(error).__name__}: {error}", delivery.message)
+        with self._parks:
+            self._note_parked(delivery.place, f"{type(error).__name__}: {error}", delivery.message)
""",
)
mutant(
    id="segment-skipped",
    killed_by="LC-1",
    program="log-backlog",
    steps=15,
    origin="roll-over",
    title="the reader goes on to the next segment a record too early",
    diff="""
-            if position.offset < self.storage.size(segment_name(position.segment)):
+            if position.offset + HEADER.size + 2 < self.storage.size(segment_name(position.segment)):
""",
)
mutant(
    id="commits-back",
    killed_by="LC-2",
    program="log-commit-back",
    steps=11,
    origin="the reference itself, until a later message was committed before an earlier one",
    title="a position is moved back, and what lies before it is handled again",
    diff="""
-        if position < self.position:
-            raise Misuse(f"channel {self.name} stands at {tuple(self.position)} already")
""",
)
mutant(
    id="commits-only-unconnected",
    killed_by="AP-1",
    program="log-commit-when-connected",
    steps=29,
    origin="a mistake planted by hand",
    title="a consumer that has connected may commit no batch before it consumes",
    edit=("if self._state.get() == CONSUMING:", "if self._state.get() != AWAY:"),
)
mutant(
    id="recovered-before-claimed",
    killed_by="LC-6",
    program="log-parked-while-opened",
    steps=33,
    origin="the reference itself, which looked for half a record before it asked whether the name was taken",
    title="who opens a channel whose name is taken cuts off what the other is writing to its parking file",
    diff="""
-        # Before the parking file is touched: another channel of this name may be writing it.
-        topic.claim(name)
@@
+            topic.claim(name)
             if state is None:
                 self._save()
""",
)
mutant(
    id="name-kept-unopened",
    killed_by="AP-1",
    program="log-state-spoilt",
    steps=19,
    origin="the reference itself, until a channel was opened that its disk refused",
    title="the name of a channel that could not be opened stays taken, also when its file is put back",
    diff="""
-            topic.give_up(name)
""",
)
mutant(
    id="renamed-after-the-sync",
    killed_by="LC-2",
    program="log-files-crash",
    steps=121,
    origin="a rename that is durable only when its folder is synced",
    title="the folder is synced before a state file is put in place of the old one: after a crash the old one is back",
    diff="""
-        os.replace(new, self._folder / name)
         self._sync_folder()
+        os.replace(new, self._folder / name)
""",
)
mutant(
    id="folder-left-open",
    killed_by="LC-3",
    program="log-files-fail",
    steps=76,
    origin="a descriptor that is closed only if nothing fails",
    title="a folder stays open when it cannot be synced",
    diff="""
-        try:
-            os.fsync(folder)
-        finally:
-            os.close(folder)
+        os.fsync(folder)
+        os.close(folder)
""",
)
mutant(
    id="cut-before-the-mark",
    killed_by="LC-8",
    program="log-crash-while-cleared",
    steps=11,
    origin="a mark that was written though the disk said that it failed",
    title="what a failed write left is cut off while the mark still counts it: after a crash it passes for damage",
    diff="""
-        mark(end)
         storage.truncate(name, end.offset)
         storage.sync(name)
+        mark(end)
""",
)
mutant(
    id="cut-not-synced",
    killed_by="LC-8",
    program="log-crash-while-cleared",
    steps=31,
    origin="a truncation that a crash takes back",
    title="what a failed write left is cut off, not durably, and a segment begins: after a crash it lies between them",
    diff="""
         storage.truncate(name, end.offset)
-        storage.sync(name)
""",
)
mutant(
    id="mark-not-compared",
    killed_by="LC-8",
    program="log-vanished",
    steps=67,
    origin="the reference itself, before it marked where the last record ends",
    title="whole records that are gone at the end of the last segment pass for none that were written",
    diff="""
-    elif marked.offset and read_chain(storage, name, marked.offset) != marked:
-        raise Damaged(name, marked.offset, "the last record is not the one that was marked")
-    end, size = marked, storage.size(name)
+    end, size = ChainEnd(0, 0), storage.size(name)
""",
)
mutant(
    id="chain-ends-with-its-segment",
    killed_by="LC-8",
    program="log-vanished",
    steps=69,
    origin="a chain of records in each segment, and none between them",
    title="whole records that are gone at the end of an older segment are not missed by the next segment",
    diff="""
-            if record.before != end.check:
+            if not end.check:
""",
)
mutant(
    id="records-not-chained",
    killed_by="LC-8",
    program="log-vanished",
    steps=68,
    origin="the reference itself, whose records did not hold the checksum of the one before",
    title="a record is not compared with the one before it: a gap, or a segment of another topic, passes",
    diff="""
-        if end.offset and record.before != end.check:
-            raise Damaged(name, end.offset, "it was not written behind the record before it")
@@
-            if record.before != end.check:
-                raise Damaged(name, end.offset, "here records are missing, or are others")
""",
)
mutant(
    id="handler-commits",
    killed_by="LC-2",
    program="log-handler-commits",
    steps=41,
    origin="the reference itself, of which only `consume` ended with an error then",
    title="a handler commits past its message, which is not handled yet, and past the next",
    diff="""
-        if self._state.get() == CONSUMING:
-            raise Misuse(f"channel {self.name} moves when its handler has returned")
@@
-        if position < self.position:
-            raise Misuse(f"channel {self.name} stands at {tuple(self.position)} already")
""",
)
mutant(
    id="pause-without-end",
    killed_by="AP-1",
    program="log-tried-often",
    steps=27,
    origin="the reference itself: from 1,025 failures on a pause was no number any more",
    title="a pause doubles for ever, and its length overflows",
    diff="""
-                if not self._asked.wait(self.pause * 2 ** min(self.attempts - 1, 20)):
+                if not self._asked.wait(self.pause * 2 ** (self.attempts - 1)):
""",
)

mutant(
    id="signals-those-at-the-tail",
    killed_by="LC-4",
    program="log-two-publishers",
    steps=32,
    origin="a mistake of order, written by hand, that no program had named",
    title="a publisher signals to whoever stands at the tail, which it has read before another publisher moved it",
    diff="""
+        before = self.tail.get()
         with self._writing:
             place = self._append(message)
         for channel in self._connected.get():
+            if channel.position >= before:
+                if channel.position == before:
-            channel.notify()
+                    channel.notify()
         return place
""",
)
