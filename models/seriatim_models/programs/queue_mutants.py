"""Wrong queues: each the smallest edit of `seriatim.queue` that breaks one property.

Those named ``published-...`` are what the articles, or the broker that they describe, say or do.
The others are mistakes that somebody made or could make; where a public bug report is the origin, it is named.
"""

from __future__ import annotations

from seriatim_models.programs.base import Mutants

QUEUE_MUTANTS = Mutants("queue")
mutant = QUEUE_MUTANTS.add

ORDERING = "article 'Strict Ordering'"
INTERACTIONS = "article 'Consumer-Queue Interactions'"
BROKER = "Apache Qpid Broker-J, main of August 2026"

# ---- what was published

REWINDS_IF_PAST = """
-            back = min(entry, pointer.entry, key=Node.place)
-            if consumer.pointer.compare_and_set(pointer, Pointer(back, "rewind")):
+            if entry.place() >= pointer.entry.place() or consumer.pointer.compare_and_set(
+                pointer, Pointer(entry, "rewind")
+            ):
"""

mutant(
    id="published-immediate",
    killed_by="IM-1",
    program="immediate-race",
    steps=11,
    origin=f"{ORDERING}, potential issue",
    title="the immediate flag is checked, and then the entry is dequeued whatever its state is by now",
    diff="""
-        if entry.change(AVAILABLE, DEQUEUED):
+        if entry.available():
+            entry.state.set(DEQUEUED)
             self._dispose(entry)

     # ---- what a consumer does with an entry that it acquired
""",
    also=("IM-2",),
)

mutant(
    id="published-immediate-repair",
    killed_by="IM-1",
    program="immediate-returned",
    steps=17,
    origin=f"{ORDERING}, what it proposes instead",
    title=(
        "one compare-and-set from AVAILABLE, as the article proposes; but a message that was released "
        "is AVAILABLE again"
    ),
    diff="""
-        ok = entry.change(consumer.acquired, State("AVAILABLE"))
+        ok = entry.change(consumer.acquired, AVAILABLE)
""",
)

mutant(
    id="published-rewind",
    killed_by="SP-2",
    program="release-behind",
    steps=49,
    origin=f"{ORDERING}, checkSubscriptionsNotAheadOfDelivery",
    title="a pointer is moved back only if it is past the entry, so an advance that was already decided still wins",
    diff=REWINDS_IF_PAST,
)

mutant(
    id="published-priority-arrival",
    killed_by="SP-2",
    program="priority-arrival",
    steps=34,
    origin=(
        f"{ORDERING}, AMQPriorityQueue; QPID-3704: OutOfOrderQueue#checkSubscriptionsNotAheadOfDelivery cannot "
        "consider _lastSeenEntry when determing if _releasedEntry should be retarded"
    ),
    title="an arrival of high priority leaves alone a pointer that is before it, though it is about to go past",
    diff=REWINDS_IF_PAST,
)

mutant(
    id="published-pointer-by-value",
    killed_by="SP-2",
    program="release-behind",
    steps=51,
    origin=f"{ORDERING}, setLastSeenEntry(node, newNode)",
    title="pointers are compared by the entry they stand at, so a rewind to that very entry goes unseen",
    diff="""
+    def __eq__(self, other: object) -> bool:
+        return (self.entry, self.passed) == (other.entry, other.passed)
+
+    __hash__ = None
+
     def __repr__(self) -> str:
         return f"{'past' if self.passed else 'at'} {self.entry}"
""",
)

mutant(
    id="published-browser-rewind",
    killed_by="SO-4",
    program="browse",
    steps=88,
    origin=f"{ORDERING}, checkSubscriptionsNotAheadOfDelivery",
    title="an arrival of high priority moves back the pointers of all subscriptions, browsers too",
    diff="""
-            if consumer.acquires:  # a browser never goes back: it sees each entry once (SO-4)
+            if consumer is not None:
""",
)

TWO_POINTERS = """
+class EarlierOfTwo:
+    def __init__(self, consumer):
+        self.consumer = consumer
+
+    def get(self):
+        last, released = self.consumer.last.get(), self.consumer.released.get()
+        return min(last, released and Pointer(released, "released") or last,
+                   key=lambda p: (*p.entry.place(), p.passed))
+
+
 class ListEntry(Node):
@@
-        self.pointer = host.cell(start, f"{name}.pointer", kind="pointer", owner=self)
+        self.last = host.cell(start, f"{name}.pointer", kind="pointer", owner=self)
+        self.released = host.cell(None, f"{name}.released")
+        self.pointer = EarlierOfTwo(self)
@@
-            pointer = consumer.pointer.get()
-            if not pointer.passed and (seen := self._wanted(consumer, pointer.entry)):
-                return pointer, seen
-            following = self.entries.next(pointer.entry)
-            if following is None:
-                return None
-            consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))
+            pointer = consumer.last.get()
+            released = consumer.released.get()
+            if released is not None and pointer.entry.place() >= released.place():
+                following = released
+            else:
+                following = self.entries.next(pointer.entry)
+            if following is None:
+                return None
+            if seen := self._wanted(consumer, following):
+                return Pointer(following, "found"), seen
+            if consumer.last.compare_and_set(pointer, Pointer(following, "advance", True)):
+                consumer.released.compare_and_set(released, None)
@@
-            pointer = consumer.pointer.get()
-            back = min(entry, pointer.entry, key=Node.place)
-            if consumer.pointer.compare_and_set(pointer, Pointer(back, "rewind")):
+            released = consumer.released.get()
+            if released is not None and released.place() <= entry.place():
                 return
+            if consumer.released.compare_and_set(released, entry):
+                self._notify(consumer)
+                return
@@
-    _returned = _arrived
+    def _returned(self, entry: QueueEntry) -> None:
+        pass
@@
-        return self._take(consumer, *found), consumer
+        entry = self._take(consumer, *found)
+        if entry is not None:
+            released = consumer.released.get()
+            consumer.last.set(Pointer(entry, "seen", True))
+            if released is entry:
+                consumer.released.compare_and_set(released, None)
+        return entry, consumer
"""

mutant(
    id="published-two-pointers",
    killed_by="SP-2",
    program="release-again",
    steps=69,
    origin=f"{BROKER}, QueueContext and updateSubRequeueEntry",
    title=(
        "a rewind goes into a second pointer; clearing that one wipes out a rewind to the same entry "
        "that came meanwhile"
    ),
    diff=TWO_POINTERS,
)

mutant(
    id="published-two-pointers-rest",
    killed_by="WK-1",
    program="release-again-rest",
    steps=109,
    origin=f"{BROKER}, QueueContext and updateSubRequeueEntry",
    title="the same, and the consumer that wiped out the rewind goes to sleep",
    diff=TWO_POINTERS,
)

mutant(
    id="published-wish-told-first",
    killed_by="WK-1",
    program="consumer-priorities",
    steps=93,
    origin=f"{BROKER}, AbstractConsumerTarget",
    title=(
        "the queue learns that interest was lost before the flag is cleared, so the one who is woken is "
        "held back by it"
    ),
    diff="""
-            # The flag first: a consumer woken next must not be held back by an interest that is over.
-            if wants is not None:
-                consumer.set_wants(wants)
@@
             if desired:
                 self._notify(consumer)
             elif consumer.acquires:
                 self._notify_other(consumer)
+        consumer.set_wants(desired)
@@
+        consumer.set_wants(wants)
         self.manager.set_interest(consumer, wants, new=True)
""",
)

mutant(
    id="published-size-late",
    killed_by="QL-2",
    program="consumer-list",
    steps=12,
    origin=f"{BROKER}, QueueConsumerNodeList",
    title="the size goes up after the entry is linked, so it can go down first",
    diff="""
+        self.append(entry)
         self.size.add(1)
-        self.append(entry)
""",
)

mutant(
    id="published-look-then-rest",
    killed_by="WK-1",
    program="enqueue-consume",
    steps=77,
    origin=f"{INTERACTIONS}, the Notified list; repaired by the broker in 81a5cd612f",
    title="a consumer stays in Notified until it finds nothing, and only then goes back to Interested",
    diff="""
-        self.manager.set_notified(consumer, False)  # rule 6: be seen to wait, then check
@@
-            elif consumer.acquires and (first is None or not self._wake(first)):
+            else:
+                self.manager.set_notified(consumer, False)
                 self._notify_other(consumer)
         return entry
""",
)


# ---- mistakes that the broker made, by their number in its tracker; others are named below

mutant(
    id="group-announced-before-freed",
    killed_by="WK-1",
    program="group-freed",
    steps=46,
    origin="QPID-7514: [Java Broker] replace previous fix with the proper one (b112605382)",
    title="what a group's end sets free is announced while the group still has its owner",
    diff="""
             self._dispose(entry)
-            if self.groups.leave(entry.message.group, consumer):
-                self._announce_group(entry.message.group)
+            self._announce_group(entry.message.group)
+            self.groups.leave(entry.message.group, consumer)
""",
)

mutant(
    id="owned-group-not-announced",
    killed_by="SP-2",
    program="group-released-in-part",
    steps=3,
    origin="a mistake planted by hand",
    title="a message that is released is announced if it has no group or its group is free, not to the group's owner",
    diff="""
-            else:
+            elif not entry.message.group:
                 self._announce(entry)
""",
)

mutant(
    id="group-looked-at-again",
    killed_by="SP-2",
    program="group-freed-and-joined",
    steps=22,
    origin="a mistake planted by hand",
    title="whether a group was set free is looked up afterwards: nobody announces its end if it has an owner again",
    edit=(
        "                return not count\n",
        "                return group not in self.owners.get()\n",
    ),
)

mutant(
    id="released-where-the-pointer-stands",
    killed_by="SO-3",
    program="release-own",
    steps=67,
    origin="QPID-5877: [Java Broker] Potential for rejected messages to be resent out of order",
    title=(
        "of two pointers the released one counts only if it is before the other, so a consumer's own last message "
        "is passed over"
    ),
    diff=TWO_POINTERS.replace(">= released", "> released"),
)

mutant(
    id="credit-taken-twice",
    killed_by="ES-6",
    program="two-takers",
    steps=45,
    origin=(
        "QPID-6844: Ensure that the AMQP 1.0 consumer target restores credit (rather than takes more) on the queue "
        "delivery path in the case where a planned delivery cannot proceed"
    ),
    title="the credit of an attempt that acquired nothing is taken once more instead of restored",
    edit=("            self.credit.add(1)\n", "            self.credit.add(-1)\n"),
)

mutant(
    id="interested-without-credit",
    killed_by="WK-1",
    program="first-without-credit",
    steps=40,
    origin="QPID-3855: only increment activeConsumerCount during registration if the subscription is active",
    title="a new consumer counts as interested, whether it wants messages or not",
    diff="""
-        self.manager.set_interest(consumer, wants, new=True)
-        if wants:
-            self._notify(consumer)
+        self.manager._move(consumer, (REMOVED,), INTERESTED)
+        self._notify(consumer)
""",
)

mutant(
    id="group-counts-refused-releases",
    killed_by="MG-1",
    program="group-not-mine",
    steps=32,
    origin=(
        "QPID-7417: [Java Broker] Ensure message instance listeners only fire on state change of the associated object"
    ),
    title="a release that is refused counts as one message of the group fewer, and sets the group free",
    diff="""
         ok = entry.change(consumer.acquired, State("AVAILABLE"))
+        left = self.groups.leave(entry.message.group, consumer)
         if ok:
-            if self.groups.leave(entry.message.group, consumer):
+            if left:
""",
)

mutant(
    id="job-stops-at-the-first",
    killed_by="WK-1",
    program="push-past-idle",
    steps=32,
    origin=(
        "QPID-3165: ensure all subscriptions are checked before making the decision on whether to stop delivering"
    ),
    title="the job ends with the first consumer that it has nothing for",
    diff="""
+            if not self.deliver_to(consumer, "job"):
+                return
             while self.deliver_to(consumer, "job"):
                 pass
""",
)

mutant(
    id="woken-before-registered",
    killed_by="SP-2",
    program="subscribe-release",
    steps=47,
    origin="QPID-8210: [Broker-J] Set queue consumer node before adding consumer into queue consumer manager",
    title="a new consumer is among the Interested before it is in All, where a release would find its pointer",
    diff="""
+            self._begin(consumer)
             self._join(consumer)
-        self._begin(consumer)
""",
)

mutant(
    id="monitor-and-send-lock",
    killed_by="WK-1",
    program="push-close-beside",
    steps=14,
    origin="QPID-3697: SortedQueue synchronisation can cause deadlock",
    title=(
        "a publisher holds the queue's monitor and takes a send lock; "
        "a consumer that closes takes them in the other order"
    ),
    diff="""
         self.depth = host.cell(0, f"{name}.depth")
+        self.monitor = host.lock(f"{name}.monitor")
@@
-            self._arrived(entry)
+            with self.monitor:
+                self._arrived(entry)
         if message.immediate:
@@
-        with consumer.send_lock:  # after any delivery to it that is under way
+        with consumer.send_lock, self.monitor:
""",
)


# ---- what others did wrong, and what one could

mutant(
    id="number-drawn-early",
    killed_by="SO-1",
    program="enqueue-enqueue",
    steps=36,
    origin="Michael and Scott, PODC 1996: why the number is drawn from the tail that is linked to",
    title="a node draws its number once, from a tail that may not be its predecessor in the end",
    diff="""
+        node.id = self._tail.get().id + 1
         while True:
             tail = self._tail.get()
@@
-            node.id = tail.id + 1
""",
)

mutant(
    id="link-without-cas",
    killed_by="ES-5",
    program="enqueue-enqueue",
    steps=32,
    origin="Michael and Scott, PODC 1996: why the link is a compare-and-set",
    title="the new node is linked by a plain write",
    diff="""
-            if tail.next.compare_and_set(None, node):
-                self._tail.compare_and_set(tail, node)
-                return
+            tail.next.set(node)
+            self._tail.compare_and_set(tail, node)
+            return
""",
)

mutant(
    id="unlink-acquired",
    killed_by="SO-2",
    program="release-behind",
    steps=46,
    origin="what a list must not take for gone",
    title="acquired entries are unlinked too",
    edit=('in ("DEQUEUED", "DELETED")', 'in ("ACQUIRED", "DEQUEUED", "DELETED")'),
)

mutant(
    id="no-rewind-on-release",
    killed_by="SO-3",
    program="release-behind",
    steps=42,
    origin="QPID-2900 in effect",
    title="a released entry wakes, but rewinds nobody",
    diff="""
-        self._rewind_all(entry)
         self._returned(entry)
""",
)

mutant(
    id="level-off-by-one",
    killed_by="SO-5",
    program="priority-levels",
    steps=140,
    origin="AMQP 0-10, message priority",
    title="floor where the table has ceil",
    edit=("(5 - (levels + 1) // 2)", "(5 - levels // 2)"),
)

mutant(
    id="place-ignores-sub-queue",
    killed_by="SP-2",
    program="priority-arrival",
    steps=35,
    origin="QPID-3927: ensure that priority is properly accounted for when comparing messages",
    title="places are compared by number alone, across sub-queues",
    edit=("        return (self.rank, self.id)\n", "        return (0, self.id)\n"),
)

mutant(
    id="shortcut-skips-the-pointer",
    killed_by="SO-6",
    program="exclusive",
    steps=64,
    origin=ORDERING,
    title="the exclusive consumer is given the new entry without a look at what it has not had yet",
    diff="""
-        found = self.next_available(consumer)
+        if path == "shortcut":
+            seen = self._wanted(consumer, only)
+            found = seen and (Pointer(only, "shortcut"), seen)
+        else:
+            found = self.next_available(consumer)
         if found is None or (only is not None and found[0].entry is not only):
""",
)

mutant(
    id="state-by-set",
    killed_by="ES-1",
    program="two-takers",
    steps=44,
    origin="check-then-act",
    title="the state is compared, and then set",
    diff="""
-        return self.state.compare_and_set(expected, new)
+        if self.state.get() is not expected:
+            return False
+        self.state.set(new)
+        return True
""",
)

mutant(
    id="acquire-by-set",
    killed_by="ES-2",
    program="two-takers",
    steps=36,
    origin="check-then-act",
    title="an entry that was seen available is acquired without a compare-and-set",
    diff="""
-            if not entry.change(seen, consumer.acquired):  # as it was when `_first_to_take` looked
+            entry.state.set(consumer.acquired)
+            if not entry.available() and entry.state.get() is not consumer.acquired:
""",
)

mutant(
    id="acquire-what-is-gone",
    killed_by="ES-3",
    program="two-takers",
    steps=38,
    origin="check-then-act",
    title="the same, seen from an entry that was dequeued in between",
    diff="""
-            if not entry.change(seen, consumer.acquired):  # as it was when `_first_to_take` looked
+            entry.state.set(consumer.acquired)
+            if not entry.available() and entry.state.get() is not consumer.acquired:
""",
)

mutant(
    id="release-without-owner",
    killed_by="ES-4",
    program="release-not-mine",
    steps=18,
    origin="QPID-7154: [Java Broker] Ensure that acquisition is locked by the correct consumer (0-10)",
    title="whoever asks may release",
    diff="""
-        ok = entry.change(consumer.acquired, State("AVAILABLE"))
+        held = entry.state.get()
+        ok = held.name == "ACQUIRED" and entry.change(held, State("AVAILABLE"))
""",
)

mutant(
    id="close-keeps-messages",
    killed_by="ES-5",
    program="close",
    steps=31,
    origin="QPID-6817: Ensure queue entires are released when connection is abrubtly closed",
    title="a consumer closes and takes what it holds with it",
    edit=("                self.release(entry, consumer)\n", "                pass\n"),
)

mutant(
    id="credit-not-restored",
    killed_by="ES-6",
    program="two-takers",
    steps=44,
    origin=ORDERING,
    title="the credit of an attempt that acquired nothing is lost",
    edit=("            consumer.restore_credit()\n", ""),
)

mutant(
    id="pointer-by-set",
    killed_by="SP-1",
    program="two-takers",
    steps=38,
    origin=ORDERING,
    title="the pointer is advanced by a plain write",
    diff="""
-            consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))
+            consumer.pointer.set(Pointer(following, "advance"))
""",
)

mutant(
    id="advance-by-two",
    killed_by="SP-3",
    program="release-behind",
    steps=44,
    origin="off by one",
    title="the pointer advances past an entry that nobody looked at",
    diff="""
             following = self.entries.next(pointer.entry)
+            following = following and (self.entries.next(following) or following)
             if following is None:
""",
)

mutant(
    id="no-job",
    killed_by="IM-3",
    program="push",
    steps=51,
    origin=ORDERING,
    title="what could not be delivered on enqueue is left to nobody",
    diff="""
-        if not entry.message.immediate and entry.available():
-            self.deliver_async()
""",
)

mutant(
    id="job-clears-flag-last",
    killed_by="WK-5",
    program="push",
    steps=28,
    origin="QPID-3821 in kind",
    title="the job clears its flag after it has looked",
    diff="""
-        self._job_pending.set(False)  # rule 6: clear the flag, then check
@@
             while self.deliver_to(consumer, "job"):
                 pass
+        self._job_pending.set(False)
""",
)

mutant(
    id="wake-the-herd",
    killed_by="WK-2",
    program="pause",
    steps=74,
    origin=INTERACTIONS,
    title="a new message wakes everybody",
    diff="""
             if consumer.has_interest(entry) and self._notify(consumer):
-                return
+                continue
""",
)

mutant(
    id="wake-the-sleeping",
    killed_by="WK-3",
    program="pause",
    steps=51,
    origin=INTERACTIONS,
    title="consumers that declared no interest are woken",
    diff="""
-        return not consumer.acquires or self._move(consumer, (origin,), to)
+        origins = (origin, NOT_INTERESTED) if notified else (origin,)
+        return not consumer.acquires or self._move(consumer, origins, to)
@@
-        for consumer in self.manager.interested():
+        for consumer in self.all.consumers():
             if consumer.has_interest(entry) and self._notify(consumer):
""",
)

mutant(
    id="lowest-first",
    killed_by="WK-4",
    program="consumer-priorities",
    steps=116,
    origin=INTERACTIONS,
    title="the lists of the Interested are in the wrong order, and nobody steps back for a higher one",
    diff="""
-                pairs, tuple(sorted((*pairs, pair), key=lambda p: -p[0]))
+                pairs, tuple(sorted((*pairs, pair), key=lambda p: p[0]))
@@
-                other.priority > first.priority
+                other.priority > 99
""",
)

mutant(
    id="published-look-then-acquire",
    killed_by="WK-4",
    program="priority-returns",
    steps=63,
    origin=f"{BROKER}, noHigherPriorityWithCredit and QueueEntryImpl.acquire",
    title=(
        "a consumer takes from whatever AVAILABLE it finds, not from the one in which it saw that no higher one would"
    ),
    diff="""
-            if not entry.change(seen, consumer.acquired):  # as it was when `_first_to_take` looked
+            now = entry.available()
+            if now is None or not entry.change(now, consumer.acquired):
""",
)

mutant(
    id="nobody-else-is-told",
    killed_by="WK-7",
    program="pause",
    steps=42,
    origin=INTERACTIONS,
    title="a consumer that was notified and loses interest tells nobody",
    diff="""
                 self._notify(consumer)
-            elif consumer.acquires:
-                self._notify_other(consumer)
""",
)

mutant(
    id="connection-not-looked-at-again",
    killed_by="WK-6",
    program="handover",
    steps=182,
    origin=(
        INTERACTIONS
        + ", steps 6 to 8; QPID-327 in kind: Possible race condition when completing a Job"
    ),
    title="a connection clears its flag and does not look again",
    diff="""
-        if not self._sessions.empty():  # and one that came before is seen here
-            self._schedule()
""",
)

mutant(
    id="connection-on-two-threads",
    killed_by="WK-6",
    program="handover",
    steps=201,
    origin=INTERACTIONS + ", steps 6 to 8",
    title="a connection is scheduled whether or not it is already",
    diff="""
-        if self._scheduled.compare_and_set(False, True):
-            self.scheduler.submit(self)
+        self._scheduled.set(True)
+        self.scheduler.submit(self)
""",
)

mutant(
    id="session-done-with-one-target",
    killed_by="WK-1",
    program="handover-in-turn",
    steps=101,
    origin=INTERACTIONS + ", step 9",
    title="a session whose target has no more work counts as one without work, and its other targets wait",
    diff="""
         if target is not None and target.process():
             self._targets.add(target)
-        return not self._targets.empty()
+            return True
+        return False
""",
)

mutant(
    id="target-not-put-back",
    killed_by="WK-1",
    program="handover-in-turn",
    steps=68,
    origin=INTERACTIONS + ", steps 9 and 10",
    title="a target that was given a message is not served again until it is woken",
    diff="""
-        if target is not None and target.process():
-            self._targets.add(target)
+        if target is not None:
+            target.process()
""",
)

mutant(
    id="session-taken-after-it-was-served",
    killed_by="WK-1",
    program="handover-two-targets",
    steps=137,
    origin=INTERACTIONS + ", step 8",
    title="a connection removes a session once it was served, and with it what its targets announced meanwhile",
    diff="""
-        while (session := self._sessions.take()) is not None:
-            if session.process():
+        while not self._sessions.empty():
+            more = self._sessions._waiting.get()[0].process()
+            session = self._sessions.take()
+            if more:
                 self._sessions.add(session)
""",
)

mutant(
    id="left-in-the-old-list",
    killed_by="QL-1",
    program="enqueue-consume",
    steps=108,
    origin=INTERACTIONS,
    title="a move appends to the new list and forgets the old one",
    diff="""
-            if consumer.in_list is not None:
+            if consumer.in_list is not None and to == REMOVED:
                 self._list(origin, consumer.priority).delete(consumer.in_list)
""",
)

mutant(
    id="iteration-returns-deleted",
    killed_by="QL-3",
    program="interest",
    steps=109,
    origin=(
        "QPID-3888: ensure the SQEL iterator uses the getNextValidEntry() method to advance; ensure that it "
        "ignores a deleted node at the end of the list"
    ),
    title="a deleted node at the tail is handed out",
    diff="""
-                return None  # rule 8: the last node stays
+                break
""",
)

mutant(
    id="tail-unlinked",
    killed_by="QL-4",
    program="interest",
    steps=35,
    origin="what rule 8 forbids",
    title="the last node is unlinked like any other",
    diff="""
-            if beyond is None:
-                return None  # rule 8: the last node stays
""",
)

mutant(
    id="youngest-first",
    killed_by="QL-5",
    program="take-turns",
    steps=68,
    origin=INTERACTIONS,
    title="of equals the one is woken who has waited least",
    diff="""
-            yield from members.consumers()
+            yield from reversed(list(members.consumers()))
""",
)

mutant(
    id="group-not-owned",
    killed_by="MG-1",
    program="group-race",
    steps=68,
    origin=(
        "QPID-5450: have the group manager try to acquire the message at the time it is accepted into the group"
    ),
    title="the group is looked at, but not owned, before the entry is acquired",
    diff="""
             if owner is not consumer:
-                return False
+                break
""",
)

mutant(
    id="expired-is-taken",
    killed_by="TM-1",
    program="expiring",
    steps=96,
    origin="entry is not looked at for its age",
    title="a consumer takes what has expired",
    diff="""
-            and not self._expired(node)
""",
)

mutant(
    id="pointer-moved-after-sending",
    killed_by="SP-2",
    program="release-at-once",
    steps=22,
    origin=(
        "QPID-2900: Changed SimpleAMQQueue to avoid race condition in the updating atomic QueueContext._releasedEntry"
    ),
    title="the pointer is moved once the message is out, when the client may have given it back already",
    diff="""
-        return self._take(consumer, *found), consumer
+        entry = self._take(consumer, *found)
+        if entry is not None:
+            consumer.pointer.set(Pointer(entry, "seen", True))
+        return entry, consumer
""",
)

mutant(
    id="rewind-test-reversed",
    killed_by="SP-2",
    program="release-behind",
    steps=51,
    origin="QPID-3622: Add Sorted Queue functionality, which repaired it in passing (384f6d6fe3)",
    title="the pointer is moved to the later of the two places",
    diff="""
-            back = min(entry, pointer.entry, key=Node.place)
+            back = max(entry, pointer.entry, key=Node.place)
""",
)

mutant(
    id="unlink-at-the-head-only",
    killed_by="QL-4",
    program="consumer-list-middle",
    steps=13,
    origin=(
        "QPID-3064, QPID-3157: ensure the node for a given Subscription is unlinked from the SubscriptionList at the "
        "point of removal instead of relying on the list head advancing to do so"
    ),
    title="only deleted nodes right behind the head are unlinked",
    diff="""
-            node.next.compare_and_set(following, beyond)
-            following = node.next.get()
+            if node is self.head:
+                node.next.compare_and_set(following, beyond)
+            following = beyond
""",
)

mutant(
    id="closed-before-disinterest",
    killed_by="QL-1",
    program="close",
    steps=128,
    origin="QPID-7971: Ensure that consumers are notified no-work during consumer target close",
    title="a closing consumer leaves the lists first and declares afterwards that it is not interested",
    diff="""
+        self.manager.remove(consumer)
         self.set_notify_work_desired(consumer, False)
-        self.manager.remove(consumer)
@@
-        origins = (NOT_INTERESTED,) if desired else (wanting, NOTIFIED)
+        origins = (NOT_INTERESTED,) if desired else (REMOVED, wanting, NOTIFIED)
""",
)

mutant(
    id="wants-without-credit",
    killed_by="WK-1",
    program="consumer-priorities",
    steps=56,
    origin=(
        "QPID-1187: The broker did not correctly handle subscriptions that would suspend due to exhaustion of bytes "
        "credit"
    ),
    title="a consumer without credit goes on wanting work, and holds back those below it",
    diff="""
-                if not consumer.has_credit():
-                    self.set_notify_work_desired(consumer, False)
""",
)

mutant(
    id="connection-looks-then-clears",
    killed_by="WK-6",
    program="handover",
    steps=183,
    origin="QPID-6794: Fix race condition that may cause selector wakeups to be missed",
    title="a connection looks for more work and clears its flag after that",
    diff="""
-        self._scheduled.set(False)  # rule 6 once more: from here on a notification schedules,
-        if not self._sessions.empty():  # and one that came before is seen here
+        more = not self._sessions.empty()
+        self._scheduled.set(False)
+        if more:
             self._schedule()
""",
)

mutant(
    id="registers-without-a-look",
    killed_by="WK-1",
    program="subscribe",
    steps=23,
    origin=INTERACTIONS + ", Consumer becomes Interested",
    title="a new consumer is put among the Interested and does not look at what is there",
    diff="""
-        if wants:
-            self._notify(consumer)
""",
)

mutant(
    id="delivers-to-the-closed",
    killed_by="ES-5",
    program="push-close",
    steps=30,
    origin=(
        "QPID-355: Closing a consumer does not ensure messages delivery will stop for that subscription; QPID-2901"
    ),
    title="a publisher that waited for the send lock does not look whether the consumer has closed meanwhile",
    diff="""
-            entry = self.attempt(consumer, path, only) if consumer.wants_work.get() else None
+            entry = self.attempt(consumer, path, only) if consumer.wants_work.get() is not False else None
""",
)

mutant(
    id="rests-between-messages",
    killed_by="WK-8",
    program="enqueue-consume",
    steps=130,
    origin=INTERACTIONS + ", the Notified list",
    title="a consumer that was given a message is seen to rest, although it will look for more at once",
    diff="""
-                self.manager.set_notified(consumer, True)
                 consumer.target.send(consumer, entry)
""",
)

mutant(
    id="housekeeping-leaves-it",
    killed_by="TM-2",
    program="expiring",
    steps=29,
    origin="QPID-6848 in kind",
    title="housekeeping passes over what has expired",
    diff="""
-                self._expired(entry)
+                False
""",
)

mutant(
    id="held-when-expired",
    killed_by="TM-2",
    program="held-and-expired",
    steps=11,
    origin="a mistake planted by hand",
    title="housekeeping asks first what has expired, so a held message that has expired is held for ever",
    diff="""
-            if self.host.now() >= entry.message.not_before and entry.change(DELAYED, AVAILABLE):
-                self._announce(entry)
-            elif (
-                self._expired(entry)
-                and (seen := entry.available())
-                and entry.change(seen, DEQUEUED)
-            ):
-                self._dispose(entry)
+            if self._expired(entry):
+                if (seen := entry.available()) and entry.change(seen, DEQUEUED):
+                    self._dispose(entry)
+            elif self.host.now() >= entry.message.not_before and entry.change(DELAYED, AVAILABLE):
+                self._announce(entry)
""",
)

mutant(
    id="expires-as-it-was-enqueued",
    killed_by="TM-2",
    program="released-and-expired",
    steps=19,
    origin="a mistake planted by hand",
    title="housekeeping discards what has expired from the AVAILABLE of its enqueue, and so nothing that was released",
    diff="""
-                and (seen := entry.available())
-                and entry.change(seen, DEQUEUED)
+                and entry.change(AVAILABLE, DEQUEUED)
""",
)

mutant(
    id="attempts-twice",
    killed_by="WK-1",
    program="expired-twice",
    steps=76,
    origin="a mistake planted by hand",
    title="who was too late twice gives up, and leaves a third message that nobody announces any more",
    edit=(
        """        while True:
            entry, first = self._attempt_once(consumer, path, only)
            if entry is not None or first is not consumer:
                return entry, first
            consumer.restore_credit()
""",
        """        for _ in range(2):
            entry, first = self._attempt_once(consumer, path, only)
            if entry is not None or first is not consumer:
                return entry, first
            consumer.restore_credit()
        return None, None
""",
    ),
)

mutant(
    id="never-deleted",
    killed_by="ES-5",
    program="enqueue-rest",
    steps=89,
    origin=(
        "QPID-1941: ensure old queue entry is deleted as well as dequeued, so it is not later gathered by the "
        "viewMessages() method which checks for non-deletion"
    ),
    title="what was dequeued stays dequeued, and is never deleted",
    edit=("        entry.change(DEQUEUED, DELETED)\n", "        pass\n"),
)

mutant(
    id="group-freed-by-the-last-only",
    killed_by="SP-2",
    program="group-released",
    steps=47,
    origin="QPID-3861 in kind",
    title="what is released is announced, but not the rest of the group that this sets free",
    diff="""
-            if self.groups.leave(entry.message.group, consumer):
-                self._announce_group(entry.message.group)
-            else:
-                self._announce(entry)
+            self.groups.leave(entry.message.group, consumer)
+            self._announce(entry)
""",
)

mutant(
    id="group-given-up-in-silence",
    killed_by="SP-2",
    program="group-given-up",
    steps=72,
    origin="QPID-5450 in kind",
    title="a consumer that owned a group, and then got no message of it, does not say that it is free again",
    diff="""
-                if self.groups.leave(entry.message.group, consumer):
-                    self._announce_group(entry.message.group)
+                self.groups.leave(entry.message.group, consumer)
                 return None
""",
)

mutant(
    id="group-kept-after-dequeue",
    killed_by="WK-1",
    program="group-freed",
    steps=18,
    origin="QPID-5450 in kind",
    title="a consumer that is done with the last message of a group goes on owning the group",
    diff="""
             self._dispose(entry)
-            if self.groups.leave(entry.message.group, consumer):
-                self._announce_group(entry.message.group)
""",
)

mutant(
    id="granted-in-silence",
    killed_by="WK-1",
    program="release-short-of-credit",
    steps=17,
    origin="QPID-1187 in kind",
    title="a consumer gets credit, and is not taken for one that wants messages again",
    diff="""
                 consumer.credit.add(messages)
-            self.set_notify_work_desired(consumer, True)
""",
)

mutant(
    id="pause-is-not-heard",
    killed_by="WK-3",
    program="pause",
    steps=33,
    origin=INTERACTIONS,
    title="a consumer that wants no messages any more stays among the Interested",
    diff="""
-        if self.manager.set_interest(consumer, desired):
+        if desired and self.manager.set_interest(consumer, desired):
             if desired:
""",
)

mutant(
    id="browser-shown-what-is-gone",
    killed_by="ES-3",
    program="browse-dequeued",
    steps=13,
    origin="what a browser must not be shown",
    title="a browser is shown the entry at which it stands, whatever became of that",
    diff="""
-            and (seen := node.available())
+            and (seen := node.available() or (None if consumer.acquires else AVAILABLE))
""",
    also=("SO-4",),
)

mutant(
    id="given-back-without-a-job",
    killed_by="IM-3",
    program="push-returned",
    steps=33,
    origin=ORDERING,
    title="what was given back to a queue that pushes is left to the next who enqueues",
    diff="""
-        self.deliver_async()  # not here and now: the caller may hold a send lock
+        pass
""",
)

mutant(
    id="credit-without-a-job",
    killed_by="IM-3",
    program="push",
    steps=27,
    origin=ORDERING,
    title="a consumer of a queue that pushes gets credit, and nobody looks for messages for it",
    diff="""
-        if consumer.set_wants(desired) and desired:
-            self.deliver_async()
+        consumer.set_wants(desired)
""",
    also=("WK-1",),
)

mutant(
    id="browser-pointer-by-set",
    killed_by="SP-1",
    program="browse-taken",
    steps=31,
    origin=ORDERING + ", setLastSeenEntry",
    title="a browser's pointer is moved past what it is shown by a plain write",
    diff="""
-        elif not consumer.pointer.compare_and_set(pointer, Pointer(entry, "browse", passed=True)):
-            return None
+        else:
+            consumer.pointer.set(Pointer(entry, "browse", passed=True))
""",
)

mutant(
    id="browser-shown-all-the-same",
    killed_by="SO-4",
    program="browse-taken",
    steps=36,
    origin=ORDERING + ", setLastSeenEntry",
    title="a browser whose pointer was moved by somebody else is shown the message all the same, and perhaps once more",
    diff="""
-        elif not consumer.pointer.compare_and_set(pointer, Pointer(entry, "browse", passed=True)):
-            return None
+        else:
+            consumer.pointer.compare_and_set(pointer, Pointer(entry, "browse", passed=True))
""",
)

mutant(
    id="moved-or-not",
    killed_by="WK-8",
    program="grant-while-busy",
    steps=97,
    origin="89eb67804d in kind",
    title="a move between lists answers that it was made, whether it was or not",
    diff="""
             if origin not in origins:
-                return False
+                return True
""",
)

mutant(
    id="pushed-under-the-send-lock",
    killed_by="WK-1",
    program="push-group",
    steps=55,
    origin="QPID-3697 in kind",
    title="who sets a group free delivers what that frees here and now, under the send lock that it then needs itself",
    diff="""
-        self.deliver_async()  # not here and now: the caller may hold a send lock
+        self._job()
""",
    also=("ES-6",),
)

mutant(
    id="suspended-with-its-target",
    killed_by="WK-1",
    program="handover-suspend",
    steps=49,
    origin=INTERACTIONS + ", steps 10 and 11",
    title="a target whose next consumer is suspended is taken for one without work, and its other consumers wait",
    diff="""
+            if not consumer.wants_work.get():
+                return False
             queue = consumer.queue
             assert isinstance(queue, PullQueue)
""",
    also=("WK-5",),
)

mutant(
    id="exclusive-no-more-yet-there",
    killed_by="QL-6",
    program="exclusive-handed-on",
    steps=18,
    origin="who may join is asked of two places that change one after the other",
    title="an exclusive consumer that closes gives up its privilege before it leaves, and the privilege is asked for",
    edit=("if exclusive or other.exclusive or", "if exclusive or self.exclusive.get() or"),
)

BY_HAND = "calls in orders that no program had, tried by hand"

mutant(
    id="granted-below-one",
    killed_by="WK-9",
    program="grant-refused",
    steps=54,
    origin=BY_HAND,
    title="a grant may be negative, and takes credit away from a consumer that goes on wanting messages",
    edit=("        if messages < 1:\n", "        if messages == 0:\n"),
)
mutant(
    id="granted-after-close",
    killed_by="WK-1",
    program="close-then-grant",
    steps=72,
    origin=BY_HAND,
    title="a closed consumer that is granted credit comes back into the lists, and is woken instead of another",
    diff="""
-        if consumer.wants_work.get() is not None:
+        if True:
@@
-        origins = (NOT_INTERESTED,) if desired else (wanting, NOTIFIED)
+        origins = (REMOVED, NOT_INTERESTED) if desired else (wanting, NOTIFIED)
@@
-        changed = self.wants_work.compare_and_set(not desired, desired)
-        return changed or self.wants_work.get() is not None
+        self.wants_work.set(desired)
+        return True
""",
)

mutant(
    id="suspended-after-close",
    killed_by="QL-1",
    program="close-and-pause",
    steps=40,
    origin=BY_HAND,
    title="a consumer that another thread suspends while it closes stays among the NotInterested for ever",
    edit=("desired else (wanting, NOTIFIED)", "desired else (REMOVED, wanting, NOTIFIED)"),
)

mutant(
    id="closed-twice",
    killed_by="QL-2",
    program="close-twice",
    steps=43,
    origin=BY_HAND,
    title="nobody asks whether the consumer is closed already, and each close takes it out of All",
    diff="""
-            if consumer.wants_work.get_and_set(None) is None:
-                return
+            consumer.wants_work.set(None)
""",
)

mutant(
    id="closed-is-looked-up",
    killed_by="QL-2",
    program="close-twice",
    steps=45,
    origin="check-then-act",
    title="whether the consumer is closed is looked up, and then written, without the lock",
    diff="""
+        if consumer.wants_work.get() is None:
+            return
         with consumer.send_lock:  # after any delivery to it that is under way
-            if consumer.wants_work.get_and_set(None) is None:
-                return
+            consumer.wants_work.set(None)
""",
)

mutant(
    id="wish-outside-the-move",
    killed_by="WK-1",
    program="pause-and-resume",
    steps=26,
    origin="the reference until November 2026",
    title="the flag is set before the move and not with it: of two threads one may win the flag, the other the list",
    diff="""
-            # The flag first: a consumer woken next must not be held back by an interest that is over.
-            if wants is not None:
-                consumer.set_wants(wants)
@@
+        if wants is not None:
+            consumer.set_wants(wants)
         with consumer.moving:
             origin = consumer.listed
""",
    also=("WK-9",),
)

mutant(
    id="resumes-without-credit",
    killed_by="WK-1",
    program="resume-without-credit",
    steps=43,
    origin=BY_HAND,
    title="a consumer that resumes without credit wants work that it cannot pay for, and holds back those below it",
    diff="""
-        if desired and not consumer.has_credit():
-            return  # a grant will resume it
""",
    also=("WK-9",),
)

mutant(
    id="one-name-for-two",
    killed_by="QL-1",
    program="same-name",
    steps=38,
    origin=BY_HAND,
    title="two consumers of one name are admitted, and what is said of the one is said of the other",
    edit=(" or other.name == name:", ":"),
)

LOOKS_THEN_JOINS = """
-        with self._admission:
+        if self._admission:
"""

mutant(
    id="looks-then-joins",
    killed_by="QL-6",
    program="exclusive-and-other",
    steps=27,
    origin=BY_HAND,
    title="who subscribes looks whether it may join and then joins, as another may who would not bear it",
    diff=LOOKS_THEN_JOINS,
)

mutant(
    id="two-only-ones",
    killed_by="QL-6",
    program="exclusive-twice",
    steps=29,
    origin=BY_HAND,
    title="the same, and both want to be the only one",
    diff=LOOKS_THEN_JOINS,
)

mutant(
    id="group-leaked",
    killed_by="MG-2",
    program="group-given-up",
    steps=70,
    origin="QPID-5450 in kind",
    title="a consumer that owns a group and does not get its message does not give the group up",
    diff="""
-                if self.groups.leave(entry.message.group, consumer):
-                    self._announce_group(entry.message.group)
                 return None
""",
)

mutant(
    id="sent-after-the-lock",
    killed_by="ES-7",
    program="send-close",
    steps=59,
    origin=ORDERING + ", deliverToSubscription, deliverMessage inside the send lock",
    title="the entry is acquired under the send lock and sent after it, when the consumer may have closed",
    diff="""
-            if entry is not None:
-                self._last_delivered.set(consumer.in_all)
-                consumer.target.send(consumer, entry)
-            return entry
+        if entry is not None:
+            self._last_delivered.set(consumer.in_all)
+            consumer.target.send(consumer, entry)
+        return entry
""",
)

mutant(
    id="closed-without-the-lock",
    killed_by="ES-7",
    program="send-close",
    steps=48,
    origin=(
        ORDERING
        + ", Immediate Delivery: the lock prevents the removal of the subscription; QPID-2904: Avoid race "
        "condition between SubFlushRunner and MinaAcceptor threads. Send lock was not being held during MessageStop "
        "processing"
    ),
    title="a consumer closes without a wait for the delivery that is under way",
    diff="""
-        with consumer.send_lock:  # after any delivery to it that is under way
+        if True:
""",
)

mutant(
    id="spent-and-still-listed",
    killed_by="WK-9",
    program="credit-spent",
    steps=49,
    origin=INTERACTIONS + ", the NotInterested list",
    title="a consumer that has spent its credit is not moved to NotInterested",
    diff="""
                 if not consumer.has_credit():
-                    self.set_notify_work_desired(consumer, False)
+                    consumer.wants_work.set(False)
""",
)

mutant(
    id="one-too-many",
    killed_by="WK-9",
    program="push-two",
    steps=54,
    origin="off by one",
    title="a consumer pays with credit that it does not have",
    diff="""
-        while (left := self.credit.get()) > 0:
+        while (left := self.credit.get()) >= 0:
""",
)

mutant(
    id="starts-at-the-head",
    killed_by="SO-7",
    program="push-turns",
    steps=57,
    origin=ORDERING + ", Enqueing, whose reason for the start is fairness",
    title="a push begins with the first consumer each time, which gets everything",
    diff="""
-        last = self._last_delivered.get()
+        last = self.all.head
""",
)

mutant(
    id="jobs-keep-no-turn",
    killed_by="SO-7",
    program="push-turns-behind-a-job",
    steps=20,
    origin=ORDERING + ", Enqueing, whose start is the last subscription that was delivered for",
    title="a job does not note whom it served, and the next push begins where it did before",
    diff="""
-                self._last_delivered.set(consumer.in_all)
+                if path != "job":
+                    self._last_delivered.set(consumer.in_all)
""",
)

mutant(
    id="served-until-dry",
    killed_by="WK-10",
    program="handover-turns",
    steps=182,
    origin=(
        INTERACTIONS
        + ", step 10; QPID-7514: Make processing of consumer targets strictly follow round robin"
    ),
    title="a target goes on to its next consumer only when the last one found nothing",
    diff="""
             if queue.deliver_single_message(consumer) is not None:
+                self.consumers.insert(0, self.consumers.pop())
                 return True
""",
)

mutant(
    id="session-until-dry",
    killed_by="WK-12",
    program="handover-sessions-in-turn",
    steps=202,
    origin=INTERACTIONS
    + ", steps 8 and 9; QPID-7514: process consumer targets strictly round robin",
    title="a session serves its targets until none of them has work, while another session waits",
    diff="""
-        target = self._targets.take()
-        if target is not None and target.process():
-            self._targets.add(target)
+        while (target := self._targets.take()) is not None:
+            if target.process():
+                self._targets.add(target)
""",
)

mutant(
    id="target-until-dry",
    killed_by="WK-12",
    program="handover-targets-in-turn",
    steps=186,
    origin=INTERACTIONS + ", steps 9 and 10",
    title="a target takes messages until there are none, while another target of the session waits",
    diff="""
-        if target is not None and target.process():
-            self._targets.add(target)
+        while target is not None and target.process():
+            pass
""",
)

mutant(
    id="served-while-it-stays",
    killed_by="WK-12",
    program="handover-targets-in-turn",
    steps=212,
    origin=INTERACTIONS + ", steps 9 and 10",
    title="a target that is served stays where it is, before those that wait, until it has nothing",
    diff="""
-        target = self._targets.take()
-        if target is not None and target.process():
-            self._targets.add(target)
+        waiting = self._targets._waiting.get()
+        if waiting and not waiting[0].process():
+            self._targets.take()
""",
)

mutant(
    id="due-and-announced-too-early",
    killed_by="WK-1",
    program="due-when-passed",
    steps=34,
    origin="order, rule 5",
    title="housekeeping wakes a consumer for what is due, and then moves its pointer back",
    diff="""
             if self.host.now() >= entry.message.not_before and entry.change(DELAYED, AVAILABLE):
-                self._announce(entry)
+                self._returned(entry)
+                self._rewind_all(entry)
""",
)

mutant(
    id="free-up-to-the-first-held",
    killed_by="WK-1",
    program="group-freed-around-held",
    steps=12,
    origin=ORDERING + ", message groups",
    title="what was passed over is announced up to the first message of the group that cannot be had",
    diff="""
-            if entry.message.group == group and entry.available():
-                self._announce(entry)
+            if entry.message.group == group:
+                if not entry.available():
+                    return
+                self._announce(entry)
""",
)

mutant(
    id="turn-for-each-consumer",
    killed_by="WK-12",
    program="handover-waits-in-turn",
    steps=209,
    origin=INTERACTIONS + ", step 10",
    title="a target takes a message for each of its consumers in one turn, while another target waits",
    diff="""
+        served = False
         for _ in range(len(self.consumers)):
@@
-            if queue.deliver_single_message(consumer) is not None:
-                return True
-        return False
+            served = queue.deliver_single_message(consumer) is not None or served
+        return served
""",
)

mutant(
    id="notified-again-goes-last",
    killed_by="WK-12",
    program="handover-waits-in-turn",
    steps=219,
    origin=INTERACTIONS + ", steps 5 and 6: who waits is added once",
    title="whoever is notified while it waits goes to the end of the set, and loses its turn",
    diff="""
-            if item in waiting:
-                return False
-            if self._waiting.compare_and_set(waiting, (*waiting, item)):
-                return True
+            others = tuple(each for each in waiting if each is not item)
+            if self._waiting.compare_and_set(waiting, (*others, item)):
+                return item not in waiting
""",
)

mutant(
    id="turns-by-number",
    killed_by="WK-10",
    program="handover-leave",
    steps=163,
    origin="this project: the reference was so",
    title="a target counts turns and takes the remainder, so one that leaves lets another lose its turn",
    diff="""
         self.consumers: list[Consumer] = []
+        self._turn = 0
@@
-            consumer = self.consumers.pop(0)
-            self.consumers.append(consumer)
+            consumer = self.consumers[self._turn % len(self.consumers)]
+            self._turn += 1
""",
)

mutant(
    id="walk-ends-with-its-message",
    killed_by="WK-1",
    program="discarded-while-offered",
    steps=57,
    origin="the reference itself, until a message expired while its publisher looked for a consumer",
    title="a publisher stops looking for a consumer when its message is gone, which others have left to somebody",
    diff="""
-        return found is not None and self._wake(self._first_to_take(consumer, found[0].entry))
+        first = self._first_to_take(consumer, found[0].entry) if found is not None else None
+        return first is consumer and self._wake(consumer)
@@
-            elif consumer.acquires and (first is None or not self._wake(first)):
+            elif consumer.acquires:
@@
         for consumer in self.manager.interested():
+            if not entry.available():
+                return
             if consumer.has_interest(entry) and self._notify(consumer):
""",
)

mutant(
    id="left-and-nobody-woken",
    killed_by="WK-1",
    program="left-and-expired",
    steps=70,
    origin=f"{BROKER}, noHigherPriorityWithCredit; the reference itself, until what was left to somebody expired",
    title="a consumer leaves a message to one of higher priority, and relies on it to look",
    diff="""
-            elif consumer.acquires and (first is None or not self._wake(first)):
+            elif consumer.acquires:
""",
)

mutant(
    id="left-by-a-walk",
    killed_by="WK-1",
    program="left-by-a-publisher",
    steps=84,
    origin=f"{BROKER}, noHigherPriorityWithCredit; the reference itself, until what was left to somebody expired",
    title="a publisher wakes nobody where a consumer would leave the message to one of higher priority",
    diff="""
-        return found is not None and self._wake(self._first_to_take(consumer, found[0].entry))
+        first = self._first_to_take(consumer, found[0].entry) if found is not None else None
+        return first is consumer and self._wake(consumer)
""",
)

mutant(
    id="wanted-before-it-came",
    killed_by="WK-1",
    program="left-to-a-newcomer",
    steps=72,
    origin="the reference itself, until what was left to somebody who was coming expired",
    title="a new consumer counts as one that wants messages before it can be woken",
    diff="""
-        wants: bool | None = self.queue.kind == "push" and self.allowance != 0
+        wants: bool | None = self.allowance != 0
""",
)

mutant(
    id="refused-and-pending",
    killed_by="WK-1",
    program="push-executor-refuses",
    steps=9,
    origin="the reference itself, until an executor refused a job",
    title="a job that the executor refused counts as pending for ever, so nobody asks for another",
    diff="""
-                self._job_pending.set(False)
                 if not isinstance(error, Exception):
                     raise
""",
)

mutant(
    id="refusal-ends-the-call",
    killed_by="ES-5",
    program="push-close-refused",
    steps=57,
    origin="the reference itself, until an executor refused a job that a close needed",
    title="a call that needs a job fails where the executor refuses it, whatever the call has left to do",
    diff="""
                 self._job_pending.set(False)
-                if not isinstance(error, Exception):
-                    raise
+                raise
""",
)

mutant(
    id="hands-on-to-all",
    killed_by="WK-11",
    program="woken-one-of-several",
    steps=205,
    origin="a mistake of order: a loop that goes on where one was enough",
    title="who gives up wakes everybody who could take the message",
    diff="""
             if other is not consumer and self._notify(other):
-                return
+                continue
""",
)

mutant(
    id="job-for-what-is-gone",
    killed_by="IM-4",
    program="push-taken-meanwhile",
    steps=80,
    origin="a mistake of order: a check that is not made again",
    title="a publisher asks for a job whether its message is still there or not",
    edit=(
        "if not entry.message.immediate and entry.available():",
        "if not entry.message.immediate:",
    ),
)
