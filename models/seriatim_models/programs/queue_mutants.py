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

mutant(
    "published-immediate",
    "IM-1",
    "immediate-race",
    11,
    f"{ORDERING}, potential issue",
    "the immediate flag is checked, and then the entry is dequeued whatever its state is by now",
    (
        """        if entry.change(AVAILABLE, DEQUEUED):
            self._dispose(entry)

    # ---- what a holder does
""",
        """        if entry.available():
            entry.state.set(DEQUEUED)
            self._dispose(entry)

    # ---- what a holder does
""",
    ),
    also=("IM-2",),
)

mutant(
    "published-immediate-repair",
    "IM-1",
    "immediate-returned",
    17,
    f"{ORDERING}, what it proposes instead",
    "one compare-and-set from AVAILABLE, as the article proposes; but a message that was given back is AVAILABLE again",
    ("entry.change(consumer.acquired, RETURNED)", "entry.change(consumer.acquired, AVAILABLE)"),
)

mutant(
    "published-rewind",
    "SP-2",
    "release-behind",
    49,
    f"{ORDERING}, checkSubscriptionsNotAheadOfDelivery",
    "a pointer is moved back only if it is past the entry, so an advance that was already decided still wins",
    (
        """            back = min(entry, pointer.entry, key=Node.place)
            if consumer""",
        """            back = entry
            if entry.place() >= pointer.entry.place() or consumer""",
    ),
)

mutant(
    "published-priority-arrival",
    "SP-2",
    "priority-arrival",
    34,
    f"{ORDERING}, AMQPriorityQueue",
    "an arrival of high priority leaves alone a pointer that is before it, though it is about to go past",
    (
        """            back = min(entry, pointer.entry, key=Node.place)
            if consumer""",
        """            back = entry
            if entry.place() >= pointer.entry.place() or consumer""",
    ),
)

mutant(
    "published-pointer-by-value",
    "SP-2",
    "release-behind",
    51,
    f"{ORDERING}, setLastSeenEntry(node, newNode)",
    "pointers are compared by the entry they stand at, so a rewind to that very entry goes unseen",
    (
        """    def plain(self) -> list[int]:
        \"\"\"Its position""",
        """    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pointer) and self.plain() == other.plain()

    __hash__ = None

    def plain(self) -> list[int]:
        \"\"\"Its position""",
    ),
)

mutant(
    "published-browser-rewind",
    "SO-4",
    "browse",
    86,
    f"{ORDERING}, checkSubscriptionsNotAheadOfDelivery",
    "an arrival of high priority moves back the pointers of all subscriptions, browsers too",
    (
        "            if consumer.acquires:  # a browser never goes back: it sees each entry once (SO-4)\n",
        "            if consumer is not None:\n",
    ),
)

TWO_POINTERS = (
    (
        """        self.credit = (
            None if credit""",
        """        self.released = host.cell(None, f"{name}.released")
        self.credit = (
            None if credit""",
    ),
    (
        """            pointer = consumer.pointer.get()
            if not pointer.passed and self._wanted(consumer, pointer.entry):
                return pointer
            following = self.entries.next(pointer.entry)
            if following is None:
                return None
            consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))
""",
        """            pointer = consumer.pointer.get()
            released = consumer.released.get()
            if released is not None and pointer.entry.place() >= released.place():
                following = released
            else:
                following = self.entries.next(pointer.entry)
            if following is None or self._wanted(consumer, following):
                return following and Pointer(following, "found")
            if consumer.pointer.compare_and_set(pointer, Pointer(following, "advance", True)):
                consumer.released.compare_and_set(released, None)
""",
    ),
    (
        """            pointer = consumer.pointer.get()
            back = min(entry, pointer.entry, key=Node.place)
            if consumer.pointer.compare_and_set(pointer, Pointer(back, "rewind")):
                return
""",
        """            released = consumer.released.get()
            if released is not None and released.place() <= entry.place():
                return
            if consumer.released.compare_and_set(released, entry):
                self._notify(consumer)
                return
""",
    ),
    (
        "    _returned = _arrived\n",
        "    def _returned(self, entry: QueueEntry) -> None:\n        pass\n",
    ),
    (
        """        self.host.record(said, m=entry.message.id, sub=consumer.name)
""",
        """        self.host.record(said, m=entry.message.id, sub=consumer.name)
        released = consumer.released.get()
        consumer.pointer.set(Pointer(entry, "seen", True))
        if released is entry:
            consumer.released.compare_and_set(released, None)
""",
    ),
    (
        """                    "pointer": c.pointer.get().plain(),
""",
        """                    "pointer": min(
                        c.pointer.get().plain(),
                        [*r.place(), 0] if (r := c.released.get()) is not None else [1 << 30],
                    ),
""",
    ),
)

mutant(
    "published-two-pointers",
    "SP-2",
    "release-again",
    70,
    f"{BROKER}, QueueContext and updateSubRequeueEntry",
    "a rewind goes into a second pointer; clearing that one wipes out a rewind to the same entry that came meanwhile",
    *TWO_POINTERS,
)

mutant(
    "published-two-pointers-rest",
    "WK-1",
    "release-again-rest",
    111,
    f"{BROKER}, QueueContext and updateSubRequeueEntry",
    "the same, and the consumer that wiped out the rewind goes to sleep",
    *TWO_POINTERS,
)

mutant(
    "published-wish-told-first",
    "WK-1",
    "consumer-priorities",
    84,
    f"{BROKER}, AbstractConsumerTarget",
    "the queue is told that interest was lost before the flag says so, so the one who is woken is held back by it",
    (
        """        # The flag first: whoever is woken below must not be held back by a wish that is over.
        self.host.record("work_desired", ph="invoke", sub=consumer.name, desired=desired)
        consumer.wants_work.set(desired)
""",
        """        self.host.record("work_desired", ph="invoke", sub=consumer.name, desired=desired)
""",
    ),
    (
        """        self.host.record("work_desired", ph="ok", sub=consumer.name)
""",
        """        consumer.wants_work.set(desired)
        self.host.record("work_desired", ph="ok", sub=consumer.name)
""",
    ),
)

mutant(
    "published-size-late",
    "QL-2",
    "consumer-list",
    18,
    f"{BROKER}, QueueConsumerNodeList",
    "the size goes up after the entry is linked, so it can go down first",
    (
        """        self.size.add(1)
        self.append(entry)
""",
        """        self.append(entry)
        self.size.add(1)
""",
    ),
)

mutant(
    "published-look-then-rest",
    "WK-1",
    "enqueue-consume",
    75,
    f"{INTERACTIONS}, the Notified list; repaired by the broker in 81a5cd612f",
    "a consumer stays in Notified until it finds nothing, and only then goes back to Interested",
    (
        "        self.manager.set_notified(consumer, False)  # rule 6: be seen to rest, then look\n",
        "",
    ),
    (
        """            elif consumer.acquires:
                self._notify_other(consumer)
        self.host.record(
            "pull",""",
        """            else:
                self.manager.set_notified(consumer, False)
                self._notify_other(consumer)
        self.host.record(
            "pull",""",
    ),
)


# ---- what others did wrong, and what one could

mutant(
    "number-drawn-early",
    "SO-1",
    "enqueue-enqueue",
    36,
    "Michael and Scott, PODC 1996: why the number is drawn from the tail that is linked to",
    "a node draws its number once, from a tail that may not be its predecessor in the end",
    (
        """    def append(self, node: N) -> None:
        while True:
""",
        """    def append(self, node: N) -> None:
        node.id = self._tail.get().id + 1
        while True:
""",
    ),
    ("            node.id = tail.id + 1\n", ""),
)

mutant(
    "link-without-cas",
    "ES-5",
    "enqueue-enqueue",
    32,
    "Michael and Scott, PODC 1996: why the link is a compare-and-set",
    "the new node is linked by a plain write",
    (
        """            if tail.next.compare_and_set(None, node):
                self._tail.compare_and_set(tail, node)
                return
""",
        """            tail.next.set(node)
            self._tail.compare_and_set(tail, node)
            return
""",
    ),
)

mutant(
    "unlink-acquired",
    "SO-2",
    "release-behind",
    47,
    "what a list must not take for gone",
    "acquired entries are unlinked too",
    ('in ("DEQUEUED", "DELETED")', 'in ("ACQUIRED", "DEQUEUED", "DELETED")'),
)

mutant(
    "no-rewind-on-release",
    "SO-3",
    "release-behind",
    42,
    "QPID-2900 in effect",
    "a released entry wakes, but rewinds nobody",
    (
        """        self._rewind_all(entry)
        self._returned(entry)
""",
        """        self._returned(entry)
""",
    ),
)

mutant(
    "level-off-by-one",
    "SO-5",
    "priority-levels",
    140,
    "AMQP 0-10, message priority",
    "floor where the table has ceil",
    ("(5 - (levels + 1) // 2)", "(5 - levels // 2)"),
)

mutant(
    "place-ignores-sub-queue",
    "SP-2",
    "priority-arrival",
    35,
    "QPID-3927",
    "places are compared by number alone, across sub-queues",
    ("        return (self.rank, self.id)\n", "        return (0, self.id)\n"),
)

mutant(
    "shortcut-skips-the-pointer",
    "SO-6",
    "exclusive",
    63,
    ORDERING,
    "the exclusive consumer is given the new entry without a look at what it has not had yet",
    (
        "            pointer = self.next_available(consumer)\n            blocked",
        """            pointer = (
                self.next_available(consumer)
                if path != "shortcut"
                else (Pointer(only, "shortcut") if self._wanted(consumer, only) else None)
            )
            blocked""",
    ),
)

mutant(
    "state-by-set",
    "ES-1",
    "two-takers",
    44,
    "check-then-act",
    "the state is compared, and then set",
    (
        "        return self.state.compare_and_set(expected, new)\n",
        """        if self.state.get() is not expected:
            return False
        self.state.set(new)
        return True
""",
    ),
)

mutant(
    "acquire-by-set",
    "ES-2",
    "two-takers",
    36,
    "check-then-act",
    "an entry that was seen available is acquired without a compare-and-set",
    (
        "            if not entry.change_available(consumer.acquired):\n",
        """            entry.state.set(consumer.acquired)
            if not entry.available() and entry.state.get() is not consumer.acquired:
""",
    ),
)

mutant(
    "acquire-what-is-gone",
    "ES-3",
    "two-takers",
    38,
    "check-then-act",
    "the same, seen from an entry that was dequeued in between",
    (
        "            if not entry.change_available(consumer.acquired):\n",
        """            entry.state.set(consumer.acquired)
            if not entry.available() and entry.state.get() is not consumer.acquired:
""",
    ),
)

mutant(
    "release-without-owner",
    "ES-4",
    "release-not-mine",
    18,
    "QPID-7154",
    "whoever asks may release",
    (
        """        ok = entry.change(consumer.acquired, RETURNED)
""",
        """        held = entry.state.get()
        ok = held.name == "ACQUIRED" and entry.change(held, RETURNED)
""",
    ),
)

mutant(
    "close-keeps-messages",
    "ES-5",
    "close",
    28,
    "QPID-6817",
    "a consumer closes and takes what it holds with it",
    ("                self.release(entry, consumer)\n", "                pass\n"),
)

mutant(
    "credit-not-restored",
    "ES-6",
    "two-takers",
    45,
    ORDERING,
    "the credit of an attempt that acquired nothing is lost",
    ("            consumer.restore_credit()\n", ""),
)

mutant(
    "pointer-by-set",
    "SP-1",
    "two-takers",
    38,
    ORDERING,
    "the pointer is advanced by a plain write",
    (
        'consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))',
        'consumer.pointer.set(Pointer(following, "advance"))',
    ),
)

mutant(
    "advance-by-two",
    "SP-3",
    "release-behind",
    44,
    "off by one",
    "the pointer advances past an entry that nobody looked at",
    (
        "            following = self.entries.next(pointer.entry)\n            if following is None:\n",
        """            following = self.entries.next(pointer.entry)
            following = following and (self.entries.next(following) or following)
            if following is None:
""",
    ),
)

mutant(
    "no-job",
    "IM-3",
    "push",
    50,
    ORDERING,
    "what could not be delivered on enqueue is left to nobody",
    (
        """        if not entry.message.immediate and entry.available():
            self.deliver_async()
""",
        "",
    ),
)

mutant(
    "job-clears-flag-last",
    "WK-5",
    "push",
    27,
    "QPID-3821 in kind",
    "the job clears its flag after it has looked",
    (
        """        self._job_pending.set(False)  # rule 6: clear the flag, then look
""",
        "",
    ),
    (
        """            while self._deliver_to(consumer, "job"):
                pass
""",
        """            while self._deliver_to(consumer, "job"):
                pass
        self._job_pending.set(False)
""",
    ),
)

mutant(
    "wake-the-herd",
    "WK-2",
    "pause",
    76,
    INTERACTIONS,
    "a new message wakes everybody",
    (
        """            if consumer.has_interest(entry) and self._notify(consumer):
                return
""",
        """            if consumer.has_interest(entry) and self._notify(consumer):
                continue
""",
    ),
)

mutant(
    "wake-the-sleeping",
    "WK-3",
    "pause",
    52,
    INTERACTIONS,
    "consumers that said they are not interested are woken",
    ("            return self._move(consumer, (INTERESTED,), NOTIFIED)\n",
     "            return self._move(consumer, (INTERESTED, NOT_INTERESTED), NOTIFIED)\n"),
    ("        for consumer in self.manager.interested():\n            if not entry.available():\n",
     "        for consumer in self.all.consumers():\n            if not entry.available():\n"),
)  # fmt: skip

mutant(
    "lowest-first",
    "WK-4",
    "consumer-priorities",
    116,
    INTERACTIONS,
    "the lists of the Interested are in the wrong order, and nobody steps back for a higher one",
    ("key=lambda p: -p[0]", "key=lambda p: p[0]"),
    ("            other.priority > consumer.priority\n", "            other.priority > 99\n"),
)

mutant(
    "nobody-else-is-told",
    "WK-7",
    "pause",
    43,
    INTERACTIONS,
    "a consumer that was notified and loses interest tells nobody",
    (
        """                self._notify(consumer)
            elif consumer.acquires:
                self._notify_other(consumer)
""",
        """                self._notify(consumer)
""",
    ),
)

mutant(
    "connection-not-looked-at-again",
    "WK-6",
    "handover",
    184,
    INTERACTIONS + ", steps 6 to 8",
    "a connection clears its flag and does not look again",
    (
        """        if not self._sessions.empty():  # and one that came before is seen here
            self._schedule()
""",
        "",
    ),
)

mutant(
    "connection-on-two-threads",
    "WK-6",
    "handover",
    203,
    INTERACTIONS + ", steps 6 to 8",
    "a connection is scheduled whether or not it is already",
    (
        "        if self._scheduled.compare_and_set(False, True):\n            self.scheduler.submit(self)\n",
        "        self._scheduled.set(True)\n        self.scheduler.submit(self)\n",
    ),
)

mutant(
    "left-in-the-old-list",
    "QL-1",
    "enqueue-consume",
    106,
    INTERACTIONS,
    "a move appends to the new list and forgets the old one",
    (
        """            if consumer.in_list is not None:
                self._list(origin""",
        """            if consumer.in_list is not None and to == REMOVED:
                self._list(origin""",
    ),
)

mutant(
    "iteration-returns-deleted",
    "QL-3",
    "interest",
    110,
    "QPID-3888",
    "a deleted node at the tail is handed out",
    (
        "                return None  # rule 8: the last node stays\n",
        "                break\n",
    ),
)

mutant(
    "tail-unlinked",
    "QL-4",
    "interest",
    35,
    "what rule 8 forbids",
    "the last node is unlinked like any other",
    (
        """            if beyond is None:
                return None  # rule 8: the last node stays
""",
        "",
    ),
)

mutant(
    "youngest-first",
    "QL-5",
    "take-turns",
    70,
    INTERACTIONS,
    "of equals the one is woken who has waited least",
    (
        "            yield from members.walk()\n",
        "            yield from reversed(list(members.walk()))\n",
    ),
)

mutant(
    "group-not-owned",
    "MG-1",
    "group-race",
    69,
    "QPID-5450",
    "the group is looked at, but not owned, before the entry is acquired",
    (
        """            if owner != consumer.name:
                return False
""",
        """            if owner != consumer.name:
                break
""",
    ),
)

mutant(
    "expired-is-taken",
    "TM-1",
    "expiring",
    95,
    "entry is not looked at for its age",
    "a consumer takes what has expired",
    (
        "            and not self._expired(node)\n",
        "",
    ),
)

mutant(
    "pointer-moved-after-sending",
    "SP-2",
    "release-at-once",
    22,
    "QPID-2900",
    "the pointer is moved once the message is out, when the client may have given it back already",
    (
        """        self.host.record(said, m=entry.message.id, sub=consumer.name)
""",
        """        self.host.record(said, m=entry.message.id, sub=consumer.name)
        consumer.pointer.set(Pointer(entry, "seen", True))
""",
    ),
)

mutant(
    "rewind-test-reversed",
    "SP-2",
    "release-behind",
    51,
    "QPID-3622",
    "the pointer is moved to the later of the two places",
    (
        "back = min(entry, pointer.entry, key=Node.place)",
        "back = max(entry, pointer.entry, key=Node.place)",
    ),
)

mutant(
    "unlink-at-the-head-only",
    "QL-4",
    "consumer-list-middle",
    13,
    "QPID-3064, QPID-3157",
    "only deleted nodes right behind the head are unlinked",
    (
        """            node.next.compare_and_set(following, beyond)
            following = node.next.get()
""",
        """            if node is self.head:
                node.next.compare_and_set(following, beyond)
            following = beyond
""",
    ),
)

mutant(
    "closed-before-disinterest",
    "QL-1",
    "close",
    121,
    "QPID-7971",
    "a closing consumer leaves the lists first and says afterwards that it is not interested",
    (
        """        self.set_notify_work_desired(consumer, False)
        self.manager.remove(consumer)
""",
        """        self.manager.remove(consumer)
        self.set_notify_work_desired(consumer, False)
""",
    ),
)

mutant(
    "wants-without-credit",
    "WK-1",
    "consumer-priorities",
    52,
    "QPID-1187",
    "a consumer without credit goes on wanting work, and holds back those below it",
    (
        """                if consumer.credit is not None and consumer.credit.get() == 0:
                    self.set_notify_work_desired(consumer, False)
""",
        "",
    ),
)

mutant(
    "connection-looks-then-clears",
    "WK-6",
    "handover",
    185,
    "QPID-6794",
    "a connection looks for more work and clears its flag after that",
    (
        """        self._scheduled.set(False)  # rule 6 once more: from here on a notification schedules,
        if not self._sessions.empty():  # and one that came before is seen here
            self._schedule()
""",
        """        more = not self._sessions.empty()
        self._scheduled.set(False)
        if more:
            self._schedule()
""",
    ),
)

mutant(
    "registers-without-a-look",
    "WK-1",
    "subscribe",
    22,
    INTERACTIONS + ", Consumer becomes Interested",
    "a new consumer is put among the Interested and does not look at what is there",
    (
        """        self.set_notify_work_desired(consumer, consumer.wants_work.get())
""",
        """        self.manager.set_interest(consumer, consumer.wants_work.get())
""",
    ),
)

mutant(
    "delivers-to-the-closed",
    "ES-5",
    "push-close",
    33,
    "QPID-6817 in kind",
    "a publisher that waited for the send lock does not look whether the consumer has closed meanwhile",
    (
        "            if consumer.closed or not consumer.wants_work.get():\n",
        "            if not consumer.wants_work.get():\n",
    ),
)

mutant(
    "rests-between-messages",
    "WK-8",
    "enqueue-consume",
    129,
    INTERACTIONS + ", the Notified list",
    "a consumer that was given a message is seen to rest, although it will look for more at once",
    (
        """                self.manager.set_notified(consumer, True)
                consumer.target.send""",
        """                consumer.target.send""",
    ),
)

mutant(
    "housekeeping-leaves-it",
    "TM-2",
    "expiring",
    27,
    "QPID-6848 in kind",
    "housekeeping passes over what has expired",
    (
        "            elif self._expired(entry) and entry.change_available(DEQUEUED):\n",
        "            elif False:\n",
    ),
)

mutant(
    "never-deleted",
    "ES-5",
    "enqueue-rest",
    90,
    "QPID-6528 in kind",
    "what was dequeued stays dequeued, and is never deleted",
    ("        entry.change(DEQUEUED, DELETED)\n", "        pass\n"),
)

mutant(
    "group-freed-by-the-last-only",
    "SP-2",
    "group-released",
    47,
    "QPID-3861 in kind",
    "what is given back is announced, but not the rest of the group that this sets free",
    (
        """            if self._leave_group(entry, consumer):
                self._announce_group(entry.message.group)
            else:
                self._announce(entry)
""",
        """            self._leave_group(entry, consumer)
            self._announce(entry)
""",
    ),
)

mutant(
    "group-given-up-in-silence",
    "SP-2",
    "group-given-up",
    72,
    "QPID-5450 in kind",
    "a consumer that owned a group, and then got no message of it, does not say that it is free again",
    (
        """                if self._leave_group(entry, consumer):
                    self._announce_group(entry.message.group)
                return None
""",
        """                self._leave_group(entry, consumer)
                return None
""",
    ),
)

mutant(
    "browser-pointer-by-set",
    "SP-1",
    "browse-taken",
    31,
    ORDERING + ", setLastSeenEntry",
    "a browser's pointer is moved past what it is shown by a plain write",
    (
        """        elif not consumer.pointer.compare_and_set(pointer, Pointer(entry, "browse", passed=True)):
            return None
""",
        """        else:
            consumer.pointer.set(Pointer(entry, "browse", passed=True))
""",
    ),
)

mutant(
    "browser-shown-all-the-same",
    "SO-4",
    "browse-taken",
    36,
    ORDERING + ", setLastSeenEntry",
    "a browser whose pointer was moved by somebody else is shown the message all the same, and perhaps once more",
    (
        """        elif not consumer.pointer.compare_and_set(pointer, Pointer(entry, "browse", passed=True)):
            return None
""",
        """        else:
            consumer.pointer.compare_and_set(pointer, Pointer(entry, "browse", passed=True))
""",
    ),
)

mutant(
    "moved-or-not",
    "WK-8",
    "grant-while-busy",
    95,
    "89eb67804d in kind",
    "a move between lists says that it was done, whether it was or not",
    (
        """            if origin not in origins:
                return False
""",
        """            if origin not in origins:
                return True
""",
    ),
)

mutant(
    "pushed-under-the-send-lock",
    "WK-1",
    "push-group",
    54,
    "QPID-3697 in kind",
    "who sets a group free delivers what that frees here and now, under the send lock that it then needs itself",
    (
        """        self.deliver_async()  # not here and now: the caller may hold a send lock
""",
        """        self._job()
""",
    ),
    also=("ES-6",),
)

mutant(
    "suspended-with-its-target",
    "WK-1",
    "handover-suspend",
    49,
    INTERACTIONS + ", steps 10 and 11",
    "a target whose next consumer is suspended is taken for one without work, and its other consumers wait",
    (
        """            queue = consumer.queue
            assert isinstance(queue, PullQueue)
""",
        """            if not consumer.wants_work.get():
                return False
            queue = consumer.queue
            assert isinstance(queue, PullQueue)
""",
    ),
    also=("WK-5",),
)
