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
    "groups.Groups.allow: without `not group`: not group or self.owners.get().get(group, (consumer, 0))[0] ": (
        "nobody owns the group ''; asking first saves a look at a shared cell, and with it schedules to explore"
    ),
    "groups.Groups.allow: 0 -> 1": "the count of a group that nobody owns is not looked at",
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

NO_EQUALITY = "their class defines no equality, so == is identity"
NEVER_COMPARED = "objects of this class are never compared, and in no set"
REFUSED_BOTH_WAYS = (
    "both refuse, and nothing was changed before either; "
    "which of the two errors comes first is not promised"
)
DAMAGED_BOTH_WAYS = "both raise `Damaged` for the same record; only the words differ"
LAST_EITHER_WAY = (
    "to end a connection sends nothing else on its wire, and nobody else does before or after: "
    "the frame is the last either way"
)
NOTHING_LEFT = (
    "of a connection that has ended no channel and no exclusive queue is left to be ended again"
)
CLOSED_FIRST = (
    "who opens a channel asks under the lock whether the connection is closed, and by then it is"
)
TAIL_STAYS = (
    "the tail of a closed topic stays: who appends asks under the lock whether it is closed"
)
READER_ONLY = "only the reader touches the table of consumers"
LOCAL_NAMES = "local names that do not depend on each other"

SLOT = "the slot is looked at under the lock of the channel, which is held until the caller waits for the reply"
SIGNAL = "signals under one lock: whoever wakes waits for it"
NO_LOCK = "a cell asks for no lock, and the thread that holds this one waits for nobody"
RECORDED_BETWEEN = "only the IO thread touches the list, and what stands between is only recorded"
CONSTANT = "what is read, or one of the two that are, never changes"

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
    "broker._Link: compared-by-value: _Link": NEVER_COMPARED,
    "broker.ServerQueue: compared-by-value: ServerQueue": NEVER_COMPARED,
    "broker.Server.disconnect: equal-for-identical: c.wire is wire": NO_EQUALITY,
    "log.Topic.strike: equal-for-identical: c is not channel": NO_EQUALITY,
    "broker.Server.disconnect: iterated-over-a-copy: [c for c in self._channels.values() if c.wire is w": FIXED,
    "broker.Server.close_channel: iterated-over-a-copy: channel.consumers.values()": FIXED,
    "broker.Server.publish: iterated-over-a-copy: self._queues.values()": FIXED,
    "broker.Server.settle: iterated-over-a-copy: tags": FIXED,
    "broker.Server._push_all: iterated-over-a-copy: self._queues.values()": FIXED,
    "broker.Server.disconnect: lock-split: before wire.send(Frame('gone', error=reason))": LAST_EITHER_WAY,
    "broker.Server.disconnect: behind-the-lock: wire.send(Frame('gone', error=reason))": LAST_EITHER_WAY,
    "broker.Server.disconnect: swapped: wire.send(Frame('gone', error=reason)) | self._push_all()": LAST_EITHER_WAY,
    (
        "broker.Server.disconnect: moved-past-several: "
        "wire.send(Frame('gone', error=reason)) to if wire.gone:"
    ): "the reader ends with the first such frame, so a second is not read",
    (
        "broker.Server.disconnect: moved-past-several: "
        "for channel in [c for c in self._channels.values() to if wire.gone:"
    ): NOTHING_LEFT,
    (
        "broker.Server.disconnect: moved-past-several: "
        "for queue in [q for q in self._queues.values() if  to if wire.gone:"
    ): NOTHING_LEFT,
    "broker.Server.disconnect: lock-split: before self.host.record('srv_gone', conn=wire.name)": (
        "in the gap a request is served as before the end; an open is ignored as after it, and has no answer"
    ),
    (
        "broker.Server.consume: swapped: "
        "queue = self._reachable(channel, name) | if tag in channel.consumers:"
    ): REFUSED_BOTH_WAYS,
    "broker.Server.consume: read-too-early: tag in channel.consumers": REFUSED_BOTH_WAYS,
    "broker.Server.consume: swapped: queue.consumers.append(consumer) | channel.consumers[tag] = consumer": ONE_LOCK,
    (
        "broker.Server.settle: swapped: "
        "if tag not in channel.unacked and (not (multiple a | tags = settled_by(list(channel.unacked), tag, mult"
    ): LOCAL,
    (
        "broker.Server.settle: moved-past-several: "
        "if tag not in channel.unacked and (not (multiple a to asked = {'dtag': tag, 'multiple': multiple, 'reque"
    ): LOCAL,
    (
        "broker.Server._hand_out: moved-past-several: "
        "tag = consumer.tag if consumer is not None else '' to channel.tag += 1"
    ): ONE_LOCK,
    (
        "broker.Server._push_all: swapped: "
        "queue.consumers.remove(consumer) | queue.consumers.append(consumer)"
    ): "`remove` takes the first of the two, which leaves the same list",
    "client.Connection.close: lock-split: before number = self._closers": ONLY_TOLD,
    (
        "client.Channel.on_frame: acts-before-it-checks: self.shut_down(frame.error)"
    ): "what is neither a delivery nor a reply is a close, which has an error",
    "client.Channel.on_frame: branches-swapped: frame.error is not None": "a reply that the server sends has no error",
    "client.Channel._on_delivery: before-the-lock: callback = self._consumers.get(delivery.consumer_t": READER_ONLY,
    "client.Channel._on_delivery: read-before-the-lock: self._consumers.get(delivery.consumer_tag)": READER_ONLY,
    "client.Channel._ensure_open: lock-given-up: self._lock before raise self.closed": (
        "a closed channel stays closed, for the same reason, and nothing else is read behind the gap"
    ),
    "log.read_record: swapped: if len(payload) < length: | if zlib.crc32(payload) != crc:": DAMAGED_BOTH_WAYS,
    (
        "log.read_record: moved-past-several: "
        "if zlib.crc32(head[:8]) != check: to if len(payload) < length:"
    ): DAMAGED_BOTH_WAYS,
    (
        "log.read_record: moved-past-several: "
        "if zlib.crc32(head[:8]) != check: to if zlib.crc32(payload) != crc:"
    ): DAMAGED_BOTH_WAYS,
    (
        "log.read_record: check-left-out: len(payload) < length is false"
    ): "a payload that is cut off has another checksum (but for one in 2 ** 32)",
    "log.read_record: read-too-early: zlib.crc32(head[:8])": LOCAL,
    "log.Topic.close: lock-split: before end = self.tail.get()": TAIL_STAYS,
    "log.Topic.close: lock-split: before save_state(self.storage, 'topic.json', segment_siz": TAIL_STAYS,
    "log.Topic.close: moved-past-several: self._closed = True to save_state(self.storage, 'topic.json', segment_siz": (
        "under one lock that everybody who looks takes; what holds if the disk fails here is not promised"
    ),
    (
        "log.Channel.disconnect: moved-past-several: self._asked.notify() to self._stopping = True"
    ): "signals under one lock: whoever wakes waits for it",
    (
        "log.Channel.disconnect: notified-one-or-all: self._news.notify()"
    ): "a channel has one consumer, so at most one waits",
    "log.Channel._back_off: check-left-out: not self._asked.wait(self.pause * 2 ** (self.attem is true": (
        "only `disconnect` notifies `_asked`, so whoever is woken is stopping"
    ),
    (
        "log.Channel.parked: moved-past-several: "
        "offset += HEADER.size + len(payload) to found.pop(place, None)"
    ): LOCAL_NAMES,
    (
        "log.Channel.parked: moved-past-several: "
        "offset += HEADER.size + len(payload) to place = Position(*entry['place'])"
    ): LOCAL_NAMES,
    (
        "log.Channel.commit: swapped: self._position.set(position) | self.attempts = 0"
    ): "only the thread that commits touches `attempts`",
    "log.Channel.commit: swapped: self._check(position) | if position < self.position:": REFUSED_BOTH_WAYS,
    "log.Channel.commit: read-too-early: position < self.position": REFUSED_BOTH_WAYS,
    "client.Connection._end: lock-split: before channels = self._channels.get()": CLOSED_FIRST,
    "client.Connection._end: behind-the-lock: channels = self._channels.get()": CLOSED_FIRST,
    "client.Channel.close: read-too-early: Closed(200, 'the channel was closed by the applica": LOCAL,
    (
        "client.Channel._converse: moved-past-several: self.server.request(self.connection.wire, "
        "self.num to self._active = call"
    ): SLOT,
    "client.Channel._converse: waits-before-it-checks: self._wait(call) (2)": SLOT,
    ("client.Channel._converse: lock-given-up: self._lock before return call.reply.value"): (
        "the reply of a call is put in once, and nothing else is read behind the gap"
    ),
    "client.Channel._finish: swapped: self.connection.work.pool.limit(self.key) | self._changed.notify_all()": SIGNAL,
    "client.Channel._finish: moved-past-several: self._changed.notify_all() to self._active = None": SIGNAL,
    "client.Channel._finish: moved-past-several: self._changed.notify_all() to self._active.reply = reply": SIGNAL,
    (
        "client.Channel._finish: moved-past-several: self.connection.work.pool.limit(self.key) to if "
        "self._active is None:"
    ): (
        "a channel whose slot is free is not among those without a limit: who takes the slot lifts "
        "it, under the same lock"
    ),
    (
        "client.Channel.shut_down: into-the-lock: self.connection.work.pool.unregister_key(self.key)"
    ): (
        "`_finish` takes the lock of the pool under that of the channel, too, and nobody takes them "
        "in the other order"
    ),
    ("client.Connection.close: while-made-if: while not self._gone:"): (
        "only `_on_gone` notifies, when it has set the flag, which stays set"
    ),
    "log.Topic.publish: into-the-lock: if len(data) > self.segment_size:": "the size of a segment never changes",
    ("log.Topic.start_of_next: while-made-if: while position.segment < tail.segment:"): (
        "of the segments before the last none is empty: one begins with a message, and if that "
        "fails, or a crash comes, it is the last"
    ),
    "log.Channel.connect: into-the-lock: if not self._state.compare_and_set(AWAY, CONNECTED": NO_LOCK,
    "log.Channel.connect: into-the-lock: self.topic.enlist(self)": NO_LOCK,
    ("log.Channel.disconnect: lock-split: before self._news.notify()"): (
        "the flag is set before the gap: who sleeps then is woken behind it, and who does not sees "
        "the flag"
    ),
    ("log.Channel.disconnect: lock-split: before self._asked.notify()"): (
        "the flag is set before the gap: who sleeps then is woken behind it, and who does not sees "
        "the flag"
    ),
    ("log.Channel.parked: read-too-early: found.values()"): (
        "a view of a dictionary shows what is in it when it is listed"
    ),
    "queue.Queue.enqueue: read-too-early: not message.not_before": CONSTANT,
    (
        "queue.Queue._wanted: conditions-swapped: consumer.has_interest(node) | not "
        "consumer.acquires or self.groups.allow(node.me"
    ): CONSTANT,
    (
        "queue.Queue._wanted: conditions-swapped: not consumer.acquires | "
        "self.groups.allow(node.message.group, consumer)"
    ): CONSTANT,
    "groups.Groups.allow: equal-for-identical: self.owners.get().get(group, (consumer, 0))[0] is ": NO_EQUALITY,
    "queue.Queue._announce_group: conditions-swapped: entry.message.group == group | entry.available()": CONSTANT,
    "queue.Queue.subscribe: into-the-lock: consumer = Consumer(self, name, target, acquires, ": LOCAL,
    "queue.Queue.close: read-too-early: consumer.exclusive": CONSTANT,
    "log.Files.replace: read-too-early: file.fileno()": CONSTANT,
    "queue.PushQueue._job: read-too-early: self.all.consumers()": "a generator does nothing before it is iterated over",
    (
        "handover.ConsumerTarget.process: swapped: "
        "self.consumers.append(consumer) | names = [each.name for each in self.consumers]"
    ): RECORDED_BETWEEN,
    (
        "handover.ConsumerTarget.process: moved-past-several: "
        "self.consumers.append(consumer) to queue = consumer.queue"
    ): RECORDED_BETWEEN,
    (
        "handover.ConsumerTarget.process: moved-past-several: "
        "self.consumers.append(consumer) to assert isinstance(queue, PullQueue)"
    ): RECORDED_BETWEEN,
    (
        "handover.ConsumerTarget.process: swapped: "
        "assert isinstance(queue, PullQueue) | if queue.deliver_single_message(consumer) is not N"
    ): "a consumer at a target is of a pull queue, so the assertion holds",
}
"""The same of the mutants of order (`seriatim_workshop.mutation.order`)."""
