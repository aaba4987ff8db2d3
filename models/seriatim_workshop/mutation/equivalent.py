"""Mutations of the references that nothing can catch, each with the reason why.

The key is `Mutation.name`, which names the function and the change. A test holds that every name still stands for a
mutation: when the code is changed, its reason is read again or goes.
"""

from __future__ import annotations

NOT_LOOKED_AT = "only whether it is true is looked at, and None is not"
FOR_THE_TYPES = "stated for the type checker: the rest of the condition implies it"
REST_LOOKS = (
    "whoever left Interested in this moment looks once more, or wakes somebody else (rules 6 and 7), "
    "so the thread that came too late may stop here or go on"
)

ONLY_TOLD = "a number for the record: that calls have different ones is asked, and whether it is 0"

AT_THE_END = "the function ends there, and so returns None"

EQUIVALENT: dict[str, str] = {
    "client.Connection.__init__: 0 -> 1": ONLY_TOLD,
    "client.Connection.reader: without `frame.error is not None`: frame.error is not None and frame.kind == 'gone'": (
        FOR_THE_TYPES
    ),
    "client.Connection.close: 1 -> 2": ONLY_TOLD,
    "client.Connection.close: dropped: self._closers += 1": (
        "a number for the record, which tells a reader one who closes from another; nothing asks for it"
    ),
    "client.Channel.__init__: 0 -> 1": ONLY_TOLD,
    "client.Channel._call: 1 -> 2": ONLY_TOLD,
    "workpool.WorkService._run_one: return None -> dropped": AT_THE_END,
    "fair.FairConsumer._handle: return None -> dropped": AT_THE_END,
    "log.Channel._attempt: return None -> dropped": AT_THE_END,
    "queue.Consumer.take_credit: return False -> dropped": NOT_LOOKED_AT,
    "queue.Queue._group_allows: without `not group`: not group or self.groups.get().get(group, (consumer, 0))[0] ": (
        "nobody owns the group ''; asking first saves a look at a shared cell, and with it schedules to explore"
    ),
    "queue.Queue._group_allows: 0 -> 1": "the count of a group that nobody owns is not looked at",
    "queue.QueueConsumerManager._move: dropped: consumer.in_list = None": (
        "only a consumer that was removed and is moved once more would notice, and none is"
    ),
    "queue.PullQueue._notify: False -> True (2)": REST_LOOKS,
    "log.recover: +/- swapped: size - offset": (
        "more is asked for than there is, and what there is comes: to the end of the file both ways"
    ),
    "handover.ConsumerTarget.process: return False -> dropped": NOT_LOOKED_AT,
}

BOTH_REFUSE = "both checks raise ValueError, and nothing was changed before either"
LOCAL = "what moves reads and makes only what no other thread knows"
ONE_LOCK = (
    "the two do not depend on each other, and stand under one lock that everybody who looks takes"
)
LOOP_TAKES = (
    "deliver only appends, at the end, and only the loop's thread takes: nothing that is read behind "
    "the gap changes in it"
)
FIXED = "what is iterated over is a copy already, or never changes"

ORDER_EQUIVALENT: dict[str, str] = {
    "fair.FairConsumer.deliver: swapped: if slot not in self.slots: | weight = slot.weight(delivery)": BOTH_REFUSE,
    "fair.FairConsumer.deliver: moved-past-several: if slot not in self.slots: to if weight <= 0:": BOTH_REFUSE,
    "fair.FairConsumer.deliver: into-the-lock: if weight <= 0:": LOCAL,
    "broker.Server.open: read-before-the-lock: ServerChannel(wire, number)": LOCAL,
    "log.Channel._note_parked: into-the-lock: record = record_bytes(head + b'\\n' + message)": LOCAL,
    "fair.FairConsumer._take: swapped: slot.deficit -= weight | if self._held:": ONE_LOCK,
    "fair.FairConsumer._take: moved-past-several: slot.waiting.popleft() to if self._held:": ONE_LOCK,
    "fair.FairConsumer._take: moved-past-several: if self._held: to slot.waiting.popleft()": ONE_LOCK,
    "fair.FairConsumer._take: lock-given-up: self._lock before if not slot.waiting:": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before slot.deficit += quantum": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before delivery, weight = slot.waiting[0]": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before if weight > slot.deficit:": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before slot.waiting.popleft()": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before slot.deficit -= weight": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before if self._held:": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before slot.deficit = 0": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before self._held = 0": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before self.tokens.acquire()": LOOP_TAKES,
    "fair.FairConsumer.round: iterated-over-a-copy: self.slots": FIXED,
    "queue.PriorityQueueEntryList.next: iterated-over-a-copy: self._by_rank[node.rank + 1:]": FIXED,
    "queue.PriorityQueueEntryList.__iter__: iterated-over-a-copy: self._by_rank": FIXED,
    "broker.Server.disconnect: iterated-over-a-copy: [q for q in self._queues.values() if q.owner == wi": FIXED,
    "workpool.WorkPool.unregister_all_keys: iterated-over-a-copy: keys": FIXED,
    "fair.FairConsumer._take: swapped: if not slot.waiting: | slot.deficit += quantum": (
        "where nothing waits the deficit is set to 0 behind both"
    ),
    "client.Connection._end: iterated-over-a-copy: channels.values()": FIXED,
    "client.Connection.close: swapped: with self._lock: | self._end(Closed(200, 'closed by the application')": (
        "the first block only numbers and records the call"
    ),
    "fair.FairConsumer.park: read-too-early: self._stopping.get()": (
        "who is stopped in his sleep makes one round more, in which each visit ends at once, and then ends"
    ),
    "workpool.Executor.shutdown: lock-split: before self._open = False": (
        "two who shut down leave twice as many ends as there are workers, and each worker takes one"
    ),
    "workpool.Executor.shutdown: lock-split: before self._tasks.extend([None] * self.size)": (
        "it is closed before the gap, so nothing is added in it, and a second shutdown returns"
    ),
    "workpool.Executor.shutdown: into-the-lock: self._permits.release(self.size)": (
        "a worker that gets a permit takes the lock before it looks"
    ),
    "workpool.WorkPool.interrupt: notified-one-or-all: self._room.notify_all()": (
        "each waiter is full, for what makes room wakes all; so whoever is woken takes the interrupt, which is for one"
    ),
    "log.Topic._append: lock-given-up: self._writing before raise Misuse('the topic is closed')": (
        "a closed topic stays closed, and nothing else is read behind the gap"
    ),
}
"""The same of the mutants of order (`seriatim_workshop.mutation.order`)."""
