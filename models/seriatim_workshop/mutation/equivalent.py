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
    "client.Connection.reader: without `frame.error is not None`: frame.error is not None and frame.kind == 'gone'": (
        FOR_THE_TYPES
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
    "queue.PullQueue._wake: False -> True": REST_LOOKS,
    "log.recover: +/- swapped: size - end.offset": (
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
READER_ONLY = "only the reader touches the table of consumers"
LOCAL_NAMES = "local names that do not depend on each other"

SLOT = "the slot is looked at under the lock of the channel, which is held until the caller waits for the reply"
SIGNAL = "signals under one lock: whoever wakes waits for it"
NO_LOCK = "a cell asks for no lock, and the thread that holds this one waits for nobody"
RECORDED_BETWEEN = "only the IO thread touches the list, and what stands between is only recorded"
CONSTANT = "what is read, or one of the two that are, never changes"
ONLY_LOOK = "both only look, and stand under one lock that everybody who writes takes"
RECORD = "only what is recorded lies behind the gap"
SET_BEFORE_THE_GAP = "the flag is set before the gap: who waits by then is woken behind it, and who comes sees the flag"
REPLY_ONCE = "the reply of a call is put in once, and nothing else is read behind the gap"
ONE_CONSUMER = "a channel has one consumer, so at most one waits"
AS_IF_LATER = (
    "as if what is added meanwhile were added afterwards: who adds an entry looks after it himself"
)
MORE_ENDS = "a second shutdown only adds ends, and each worker takes one"
UNASKED = "under one lock, and on a channel that was asked nothing the server sends nothing"
SAME_LIST = "`remove` takes the first of the two, which leaves the same list"
OWN_CONSUMERS = "an exclusive queue has consumers of its own connection alone, and its channels have ended by then"
TAIL_IS_A_HINT = (
    "the tail is a hint that may fall back: who appends goes on from it to the end, and also a node that was unlinked "
    "leads there"
)
GONE_EITHER_WAY = (
    "a dequeued entry is available to nobody, whether it is marked as deleted yet or not"
)
COPY_OF_CONSUMERS = (
    "who joins behind the copy looks himself once he is listed (rule 6), and who has left since is served, woken or "
    "admitted against no more than a moment earlier"
)
LAZY = "a generator reads nothing before it is first asked"
CLOSED_BEHIND_THE_LOCK = (
    "who delivers looks at the flag under the lock, and is waited for behind the flag"
)
ONLY_A_SHORTCUT = (
    "admission asks All, and not this cell: where it is None too early the publisher walks All, "
    "in which there is only the exclusive consumer"
)
POINTER_TOO_EARLY = (
    "what arrives at the end, or may not be taken yet, stands behind every pointer or is passed over again: a fresh "
    "pointer in the same place only makes an advance that is under way look once more (rule 3)"
)
UNDER_MOVING = "`listed` is looked at under this lock only"
ASSERTION = "the assertion is for the type checker, and never fails"

HOLDS_BACK = (
    "of whoever is held back by a wish that ends, or by an entry that a consumer of higher priority may not take any "
    "more, the call that ends either wakes somebody (rules 5 and 7)"
)
UNTIL_NOTIFIED = (
    "until it is in Notified a consumer may be woken for the next message in either order, "
    "and it looks again anyway"
)
OWN_CREDIT = (
    "only the consumer's own thread, in this call, changes its credit; a grant in `send` resumes it"
)

NOBODY_WAITS = "without a capacity nobody waits for room"

ORDER_EQUIVALENT: dict[str, str] = {
    "fair.FairConsumer.deliver: behind-the-lock: self.tokens.release()": (
        "who owes the permit asks for no lock before he releases it; the loop, which alone takes permits, waits so long"
    ),
    "fair.FairConsumer.deliver: swapped: if slot not in self.slots: | weight = slot.weight(delivery)": BOTH_REFUSE,
    "fair.FairConsumer.deliver: moved-past-several: if slot not in self.slots: to if weight <= 0:": BOTH_REFUSE,
    "fair.FairConsumer.deliver: into-the-lock: if weight <= 0:": LOCAL,
    "broker.Server.open: read-before-the-lock: ServerChannel(wire, number)": LOCAL,
    "fair.FairConsumer._take: swapped: slot.deficit -= weight | if self._held:": ONE_LOCK,
    "fair.FairConsumer._take: moved-past-several: slot.waiting.popleft() to if self._held:": ONE_LOCK,
    "fair.FairConsumer._take: moved-past-several: if self._held: to slot.waiting.popleft()": ONE_LOCK,
    "fair.FairConsumer._take: lock-given-up: self._lock before if not slot.waiting:": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before slot.deficit += quantum": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before delivery, weight = slot.waiting[0]": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before if weight > slot.deficit:": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before slot.waiting.popleft()": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before slot.deficit = 0": LOOP_TAKES,
    "fair.FairConsumer._take: lock-given-up: self._lock before self.tokens.acquire()": LOOP_TAKES
    + ", and no slot holds more than its prefetch, though what is recorded behind the gap could say so",
    "fair.FairConsumer.round: iterated-over-a-copy: self.slots": FIXED,
    "queue.PriorityQueueEntryList.next: iterated-over-a-copy: self._by_rank[node.rank + 1:]": FIXED,
    "queue.PriorityQueueEntryList.__iter__: iterated-over-a-copy: self._by_rank": FIXED,
    "broker.Server.disconnect: iterated-over-a-copy: [q for q in self._queues.values() if q.owner == wi": FIXED,
    "workpool.WorkPool.unregister_all_keys: iterated-over-a-copy: keys": FIXED,
    "fair.FairConsumer._take: swapped: if not slot.waiting: | slot.deficit += quantum": (
        "where nothing waits the deficit is set to 0 behind both"
    ),
    "client.Connection._end: iterated-over-a-copy: channels.values()": FIXED,
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
    (
        "client.Channel.on_frame: acts-before-it-checks: self.shut_down(frame.error)"
    ): "what is neither a delivery nor a reply is a close, which has an error",
    "client.Channel.on_frame: branches-swapped: frame.error is not None": "a reply that the server sends has no error",
    "client.Channel._on_delivery: before-the-lock: callback = self._consumers.get(delivery.consumer_t": READER_ONLY,
    "client.Channel._on_delivery: read-before-the-lock: self._consumers.get(delivery.consumer_tag)": READER_ONLY,
    "client.Channel._ensure_open: lock-given-up: self._lock before raise self.closed": (
        "a closed channel stays closed, for the same reason, and nothing else is read behind the gap"
    ),
    (
        "log.read_record: swapped: if len(payload) < length: "
        "| if checksum(name, offset, head[:8], payload) != ch"
    ): DAMAGED_BOTH_WAYS,
    (
        "log.read_record: check-left-out: len(payload) < length is false"
    ): "a payload that is cut off has another checksum (but for one in 2 ** 32)",
    (
        "log.Channel.disconnect: moved-past-several: self._asked.notify() to self._stopping = True"
    ): "signals under one lock: whoever wakes waits for it",
    ("log.Channel.disconnect: notified-one-or-all: self._news.notify()"): ONE_CONSUMER,
    (
        "log.Channel.parked: moved-past-several: offset = record.end.offset to found.pop(place, None)"
    ): LOCAL_NAMES,
    (
        "log.Channel.parked: moved-past-several: offset = record.end.offset to place = Position(*entry['place'])"
    ): LOCAL_NAMES,
    (
        "log.Channel._commit: swapped: self._position.set(position) | self.attempts = 0"
    ): "only the thread that commits touches `attempts`",
    (
        "queue.QueueConsumerManager.set_notified: conditions-swapped: not consumer.acquires | "
        "self._move(consumer, (origin,), to)"
    ): "a browser is in neither of the two lists, so the move is refused, and nothing was changed",
    "log.Channel._commit: swapped: self._check(position) | if position < self.position:": REFUSED_BOTH_WAYS,
    "log.Channel._commit: read-too-early: position < self.position": REFUSED_BOTH_WAYS,
    "client.Connection._end: lock-split: before channels = self._channels.get()": CLOSED_FIRST,
    "client.Connection._end: behind-the-lock: channels = self._channels.get()": CLOSED_FIRST,
    "client.Channel.close: read-too-early: Closed(200, 'the channel was closed by the applica": LOCAL,
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
    "log.Topic.publish: into-the-lock: if len(message) > room:": "the size of a segment never changes",
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
    "broker.Queued: compared-by-value: Queued": "two messages of one queue differ in their position",
    (
        "broker.ServerConsumer.may_take: conditions-swapped: self.no_local | item.origin == self.ch"
        "annel.wire.name"
    ): CONSTANT,
    (
        "broker.ServerConsumer.may_take: conditions-swapped: within(self.prefetch, mine) | within(s"
        "elf.channel.prefetch, len(pushed))"
    ): ONLY_LOOK,
    "broker.ServerChannel: compared-by-value: ServerChannel": NEVER_COMPARED,
    (
        "broker.Server.open: lock-split: before self.host.record('srv_open', conn=wire.name, ch=nu"
    ): RECORD,
    "broker.Server.disconnect: read-before-the-lock: Frame('gone', error=reason)": LOCAL,
    "client.Connection._on_gone: lock-split: before self._over.notify_all()": SET_BEFORE_THE_GAP,
    "client.Connection._end: into-the-lock: for channel in channels.values():": (
        "nobody who holds the lock of a channel, of the pool or of the server asks for that of the connection"
    ),
    (
        "client.Connection._end: moved-past-several: channels = self._channels.get() to if self._cl"
        "osed is not None:"
    ): LOCAL,
    "client.Call: compared-by-value: Call": NEVER_COMPARED,
    (
        "client.Channel._converse: moved-past-several: self._active = call to self.server.request(s"
        "elf.connection.wire, self.num"
    ): SLOT,
    (
        "client.Channel._converse: lock-given-up: self._lock before while call.reply is None:"
    ): "what is read behind the gap is read under the lock again, and nothing was read before it",
    (
        "client.Channel._converse: lock-given-up: self._lock before if call.reply.error is not None"
        ":"
    ): REPLY_ONCE,
    (
        "client.Channel._converse: lock-given-up: self._lock before raise call.reply.error"
    ): REPLY_ONCE,
    "client.Channel._on_delivery: lock-removed: with self._lock:": READER_ONLY,
    (
        "client.Channel._on_delivery: behind-the-lock: callback = self._consumers.get(delivery.cons"
        "umer_t"
    ): READER_ONLY,
    (
        "client.Channel._finish: moved-past-several: self._changed.notify_all() to if self._active "
        "is None:"
    ): SIGNAL,
    ("client.Channel.on_frame: branches-swapped: frame.kind == 'reply'"): (
        "a reply has no delivery, and only a reply is of that kind"
    ),
    ("client.Channel._finish: lock-given-up: self._lock before self._changed.notify_all()"): (
        "all is done but the waking, which still comes: whoever begins to wait in the gap has looked before"
    ),
    (
        "client.Channel.shut_down: moved-past-several: self._finish(Frame('close', error=error)) to"
        " if self.closed is not None:"
    ): (
        "a channel that is closed already has no call in its slot, and all of it stands under one lock"
    ),
    ("broker.Wire.send: swapped: self._last = link | self._arrived.release()"): (
        "the last link is for writers alone, who have the server's lock; the reader goes by the link it took"
    ),
    (
        "broker.Server.request: swapped: self.close_channel(channel) | wire.send(Frame('close', num"
        "ber, call, error=error"
    ): (
        "closing sends nothing, and whoever has read the frame meets the server's lock with his next request"
    ),
    (
        "broker.Server.disconnect: moved-past-several: self._push_all() to for queue in [q for q in"
        " self._queues.values() if "
    ): (
        "the queues that go have no consumers left: only their own connection may consume from them (EX-1)"
    ),
    "client.Channel.shut_down: read-before-the-lock: Frame('close', error=error)": LOCAL,
    "log.Topic.publish: into-the-lock: for channel in self._connected.get():": (
        "nobody who holds the lock of a channel asks for that of the writers"
    ),
    "log.Topic.publish: iterated-over-a-copy: self._connected.get()": FIXED,
    "log.Channel.disconnect: swapped: self._news.notify() | self._asked.notify()": SIGNAL,
    "log.Channel.disconnect: notified-one-or-all: self._asked.notify()": ONE_CONSUMER,
    "log.Channel.notify: lock-given-up: self._lock before self._news.notify()": "nothing is read before the gap",
    "log.Channel.notify: notified-one-or-all: self._news.notify()": ONE_CONSUMER,
    (
        "log.Channel._check: swapped: tail = self.topic.tail.get() | end = self.storage.size(segmen"
        "t_name(position.segm"
    ): "what was written when the call began is seen by both looks, and a position behind that may be refused",
    "log.Channel._check: read-too-early: min(position)": LOCAL,
    ("log.Channel._check: conditions-swapped: min(position) < 0 | position.offset > end"): LOCAL,
    "log.Channel.parked: into-the-lock: while offset < end.offset:": (
        "what lies before the end never changes, and who waits for this lock holds no other"
    ),
    (
        "log.Channel.parked: swapped: if entry['error'] is not None: | offset = record.end.offset"
    ): LOCAL_NAMES,
    (
        "log.Channel.parked: moved-past-several: offset = record.end.offset to entry = json.loads(head)"
    ): LOCAL_NAMES,
    (
        "log.Channel.parked: moved-past-several: offset = record.end.offset "
        "to head, _, message = record.payload.partition(b'\\n')"
    ): LOCAL_NAMES,
    (
        "log.Files.sync: swapped: with open(self._folder / name, 'ab') as file: | self._sync_folder"
        "()"
    ): "what is synced was appended to, so its name is in the folder before; and between the two nothing is promised",
    "queue.Consumer: compared-by-value: Consumer": (
        "of one queue no two consumers that are there have one name, and what a closed one had is given up"
    ),
    (
        "queue.Queue._expired: conditions-swapped: entry.message.expires != 0 | self.host.now() > e"
        "ntry.message.expires"
    ): CONSTANT,
    (
        "queue.Queue.next_available: conditions-swapped: not pointer.passed | (seen := self._wanted(consumer"
        ", pointer.entry))"
    ): CONSTANT,
    (
        "queue.Queue._wanted: conditions-swapped: not self._expired(node) | consumer.has_interest(n"
        "ode)"
    ): CONSTANT,
    "queue.Queue.check_message_status: iterated-over-a-copy: self.entries": AS_IF_LATER,
    "queue.Queue._announce_group: iterated-over-a-copy: self.entries": AS_IF_LATER,
    "queue.Queue._close: iterated-over-a-copy: self.entries": (
        "behind the send lock nothing more is acquired for a consumer that is closed"
    ),
    "queue.Queue._close: equal-for-identical: entry.state.get() is consumer.acquired": NO_EQUALITY,
    "queue.Queue.subscribe: conditions-swapped: other.exclusive | other.name == name": CONSTANT,
    (
        "queue.PushQueue._arrived: conditions-swapped: not entry.message.immediate | entry.availabl"
        "e()"
    ): CONSTANT,
    "queue.PushQueue._in_turn: read-too-early: self.all": CONSTANT,
    ("queue.QueueConsumerManager.interested: iterated-over-a-copy: self.by_priority.get()"): FIXED,
    "queue.QueueConsumerManager._list: iterated-over-a-copy: pairs": FIXED,
    (
        "queue.PullQueue._first_to_take: conditions-swapped: other.priority > first.priority | other.acqui"
        "res"
    ): CONSTANT,
    (
        "queue.PullQueue._first_to_take: iterated-over-a-copy: self.all.consumers() if consumer.acquires "
        "else ()"
    ): (
        "who joins behind the copy is notified of what there is once it is in All (`_begin`), and of whoever has "
        "left `wants_work`, which is read after the copy, says so"
    ),
    (
        "queue.PullQueue.deliver_single_message: conditions-swapped: consumer.acquires | first is None or n"
        "ot self._wake(first)"
    ): "a browser leaves nothing to others, so `first` is None and the second condition wakes nobody",
    (
        "queue.PullQueue._first_to_take: conditions-swapped: other.acquires | self._wanted(other, entry)"
    ): CONSTANT,
    "queue.PullQueue._notify_other: equal-for-identical: other is not consumer": NO_EQUALITY,
    "queue.Queue._attempt: equal-for-identical: first is not consumer": NO_EQUALITY,
    "queue.Queue._attempt_once: equal-for-identical: first is not consumer": NO_EQUALITY,
    "queue.Queue._close: read-too-early: self.entries": CONSTANT,
    "queue.Queue._attempt_once: equal-for-identical: found[0].entry is not only": NO_EQUALITY,
    "queue.Queue.enqueue: read-too-early: message.immediate": CONSTANT,
    "groups.Groups.join: equal-for-identical: owner is not consumer": NO_EQUALITY,
    ("queue.PriorityQueueEntryList.next: read-too-early: self._by_rank[node.rank + 1:]"): CONSTANT,
    "workpool.Executor.execute: into-the-lock: self._permits.release()": (
        "to release a permit waits for nobody, and who gets it waits for the lock"
    ),
    (
        "workpool.Executor.shutdown: moved-past-several: self._tasks.extend([None] * self.size) to "
        "if not self._open:"
    ): MORE_ENDS,
    "workpool.Executor.shutdown: check-left-out: not self._open is false": MORE_ENDS,
    (
        "workpool.WorkPool.register_key: lock-split: before self.host.record('pool_register', k=key"
        ")"
    ): RECORD,
    "workpool.WorkPool.register_key: read-before-the-lock: deque()": LOCAL,
    (
        "workpool.WorkPool.unregister_key: lock-split: before self.host.record('pool_unregister', k"
        "=key, dropped"
    ): RECORD,
    (
        "workpool.WorkPool.unregister_key: moved-past-several: if key in self._ready: to if key not"
        " in self._pool:"
    ): "what is ready is in the pool",
    (
        "workpool.WorkPool.unregister_key: moved-past-several: self._unlimited.discard(key) to if k"
        "ey not in self._pool:"
    ): "only what is in the pool is without a limit",
    (
        "workpool.WorkPool.unregister_key: moved-past-several: self._room.notify_all() to if key no"
        "t in self._pool:"
    ): SIGNAL,
    "workpool.WorkPool.interrupt: lock-split: before self._room.notify_all()": (
        "the interrupt is for one: whoever looks in the gap takes it, and who is woken then looks again"
    ),
    (
        "workpool.WorkPool.add_work_item: conditions-swapped: key in self._ready | key in self._in_"
        "progress"
    ): ONLY_LOOK,
    (
        "workpool.WorkPool._full: conditions-swapped: not self._unlimited | len(self._pool.get(key,"
        " ())) >= self.capacity"
    ): ONLY_LOOK,
    (
        "workpool.WorkPool.next_work_block: lock-split: before self.host.record('pool_block', k=key"
        ", n=len(block)"
    ): "behind the gap are only the record and a signal, and who has seen no room by then waits for the signal",
    (
        "workpool.WorkPool.next_work_block: read-before-the-lock: self.capacity is not None"
    ): CONSTANT,
    (
        "workpool.WorkPool.next_work_block: moved-past-several: if self.capacity is not None: to if"
        " not self._ready:"
    ): SIGNAL,
    (
        "workpool.WorkPool.next_work_block: acts-before-it-checks: self._room.notify_all()"
    ): NOBODY_WAITS,
    (
        "workpool.WorkPool.next_work_block: check-left-out: self.capacity is not None is true"
    ): NOBODY_WAITS,
    "workpool.WorkPool.finish_work_block: read-too-early: self._pool.get(key)": ONE_LOCK,
    "workpool.WorkService._run: iterated-over-a-copy: items": FIXED,
    (
        "client.Connection.open_channel: swapped: self._channels.set({**channels, number: channel})"
        " | self.work.pool.register_key(channel.key)"
    ): UNASKED,
    (
        "client.Connection.open_channel: swapped: self.work.pool.register_key(channel.key) | self.s"
        "erver.open(self.wire, number)"
    ): UNASKED,
    "workpool.WorkPool.unregister_key: lock-split: before self._room.notify_all()": (
        "the key is out of the pool before the gap: who waits for room in it is woken behind it, who comes is refused"
    ),
    (
        "client.Connection.open_channel: moved-past-several: self._channels.set({**channels, number"
        ": channel}) to self.server.open(self.wire, number)"
    ): UNASKED,
    (
        "client.Connection.open_channel: moved-past-several: self.server.open(self.wire, number) to"
        " self._channels.set({**channels, number: channel})"
    ): UNASKED,
    (
        "client.Connection.open_channel: moved-past-several: self.server.open(self.wire, number) to"
        " channel = Channel(self, number)"
    ): UNASKED,
    (
        "broker.Server.disconnect: moved-past-several: for channel in [c for c in self._channels.va"
        "lues() to wire.send(Frame('gone', error=reason))"
    ): LAST_EITHER_WAY,
    (
        "broker.Server.disconnect: moved-past-several: for queue in [q for q in self._queues.values"
        "() if  to self._push_all()"
    ): OWN_CONSUMERS,
    (
        "broker.Server.disconnect: moved-past-several: wire.send(Frame('gone', error=reason)) to fo"
        "r channel in [c for c in self._channels.values()"
    ): LAST_EITHER_WAY,
    (
        "broker.Server.disconnect: moved-past-several: wire.send(Frame('gone', error=reason)) to wi"
        "re.gone = True"
    ): LAST_EITHER_WAY,
    (
        "broker.Server._push_all: moved-past-several: queue.consumers.remove(consumer) to channel ="
        " consumer.channel"
    ): SAME_LIST,
    (
        "broker.Server._push_all: moved-past-several: queue.consumers.remove(consumer) to delivery "
        "= self._hand_out(channel, item, consumer,"
    ): SAME_LIST,
    (
        "broker.Server._push_all: moved-past-several: queue.consumers.remove(consumer) to channel.w"
        "ire.send(Frame('deliver', channel.number,"
    ): SAME_LIST,
    (
        "broker.Server._push_all: moved-past-several: queue.consumers.append(consumer) to queue.rea"
        "dy.remove(item)"
    ): SAME_LIST,
    (
        "broker.Server._hand_out: moved-past-several: tag = consumer.tag if consumer is not None el"
        "se '' to item.consumer = consumer"
    ): LOCAL,
    (
        "queue.NodeList.append: compare-and-set-split: self._tail.compare_and_set(tail, node)"
    ): TAIL_IS_A_HINT,
    (
        "queue.NodeList.append: set-without-comparing: self._tail.compare_and_set(tail, node)"
    ): TAIL_IS_A_HINT,
    (
        "queue.NodeList.append: expected-value-read-again: self._tail.compare_and_set(tail, node)"
    ): TAIL_IS_A_HINT,
    (
        "queue.NodeList.append: compare-and-set-split: self._tail.compare_and_set(tail, following)"
    ): TAIL_IS_A_HINT,
    (
        "queue.NodeList.append: set-without-comparing: self._tail.compare_and_set(tail, following)"
    ): TAIL_IS_A_HINT,
    (
        "queue.NodeList.append: expected-value-read-again: self._tail.compare_and_set(tail, followi"
        "ng)"
    ): TAIL_IS_A_HINT,
    (
        "queue.Queue.dequeue: read-too-early: self.groups.leave(entry.message.group, consumer)"
    ): GONE_EITHER_WAY,
    (
        "queue.Queue.check_message_status: branches-swapped: self._expired(entry) and (seen := entry.available("
    ): "from the state in which an entry is found one of the two is not possible, and housekeeping comes again",
    (
        "queue.Queue.check_message_status: conditions-swapped: self._expired(entry) | (seen := entry.available())"
    ): "time passes between the two looks and behind them in either order",
    "queue.ConsumerList.consumers: iterated-over-a-copy: self.members()": COPY_OF_CONSUMERS,
    "queue.Queue._rewind_all: iterated-over-a-copy: self.all.consumers()": COPY_OF_CONSUMERS,
    "queue.Queue.subscribe: iterated-over-a-copy: self.all.consumers()": COPY_OF_CONSUMERS,
    "queue.PushQueue._arrived: iterated-over-a-copy: self._in_turn() if alone is None else (alone,)": COPY_OF_CONSUMERS,
    "queue.PushQueue._in_turn: iterated-over-a-copy: self.all": COPY_OF_CONSUMERS,
    "queue.PushQueue._job: iterated-over-a-copy: self.all.consumers()": COPY_OF_CONSUMERS,
    "queue.PullQueue._arrived: iterated-over-a-copy: self.manager.lists[NON_ACQUIRING].consumers()": COPY_OF_CONSUMERS,
    "queue.PullQueue._arrived: iterated-over-a-copy: self.manager.interested()": COPY_OF_CONSUMERS,
    "queue.PullQueue._notify_other: iterated-over-a-copy: self.manager.interested()": COPY_OF_CONSUMERS,
    "queue.PullQueue._arrived: read-too-early: self.manager.interested()": LAZY,
    "queue.Queue.subscribe: read-before-the-lock: self.all.consumers()": LAZY,
    "queue.Queue.close: before-the-lock: if consumer.wants_work.get_and_set(None) is None:": CLOSED_BEHIND_THE_LOCK,
    "queue.Queue.close: read-before-the-lock: consumer.wants_work.get_and_set(None) is None": CLOSED_BEHIND_THE_LOCK,
    "queue.Queue.close: read-before-the-lock: consumer.wants_work.get_and_set(None)": CLOSED_BEHIND_THE_LOCK,
    "queue.Queue.close: swapped: self._close(consumer) | if consumer.exclusive:": ONLY_A_SHORTCUT,
    "queue.Queue.close: moved-past-several: if consumer.exclusive: to with consumer.send_lock:": ONLY_A_SHORTCUT,
    "queue.Queue.close: acts-before-it-checks: self.exclusive.set(None)": ONLY_A_SHORTCUT,
    "queue.Queue.close: check-left-out: consumer.exclusive is true": ONLY_A_SHORTCUT,
    "queue.Queue.enqueue: acts-before-it-checks: if self.entries.overtaking:": POINTER_TOO_EARLY,
    "queue.Queue.enqueue: acts-before-it-checks: self._rewind_all(entry)": POINTER_TOO_EARLY,
    "queue.QueueConsumerManager._move: swapped: if consumer.in_list is not None: | consumer.listed = to": UNDER_MOVING,
    "queue.QueueConsumerManager._move: moved-past-several: consumer.listed = to to if to != REMOVED:": UNDER_MOVING,
    "queue.QueueConsumerManager._move: lock-split: before self.host.record('qcm_move', sub=consumer.name, ol (2)": (
        RECORD
    ),
    "queue.Queue._take: swapped: assert isinstance(entry, QueueEntry) | if consumer.acquires:": ASSERTION,
    "queue.Queue._dispose: swapped: self.depth.add(-1) | entry.change(DEQUEUED, DELETED)": GONE_EITHER_WAY,
    "log.read_record: read-too-early: ChainedRecord(payload, before, ChainEnd(offset + H": LOCAL,
    "log.read_record: read-too-early: ChainEnd(offset + HEADER.size + length, check)": LOCAL,
    "log.Topic.read: acts-before-it-checks: name = segment_name(place.segment - 1)": LOCAL,
    "log.Topic.read: read-too-early: place.segment > position.segment": LOCAL,
    "log.Topic.read: read-too-early: Delivery(record.payload, place, Position(place.seg": LOCAL,
    "log.Topic.read: read-too-early: Position(place.segment, record.end.offset)": LOCAL,
    "log.append_record: swapped: clear(storage, name, end, mark) | record = record_bytes(name, end, payload)": LOCAL,
    "log.append_record: swapped: storage.sync(name) | end = ChainEnd(end.offset + len(record), HEADER.un": LOCAL,
    (
        "log.append_record: moved-past-several: end = ChainEnd(end.offset + len(record), HEADER.un"
        " to storage.append(name, record)"
    ): (LOCAL),
    "log.read_chain: conditions-swapped: end.offset | record.before != end.check": LOCAL,
    (
        "log.recover: conditions-swapped: marked.offset | read_chain(storage, name, marked.offset) != mar"
        "ked"
    ): (
        "of 0 bytes `read_chain` reads nothing and raises nothing, and then the other condition dec"
        "ides"
    ),
    "log.recover: swapped: if end != marked: | clear(storage, name, end, mark)": (
        "`clear` marks the end itself before it cuts anything off"
    ),
    "log.Topic._append: acts-before-it-checks: clear(self.storage, segment_name(self._segment), s": (
        "the record that follows clears what lies at the same end, and to clear twice is to clear o"
        "nce"
    ),
    "log.Topic._append: lock-given-up: self._writing before if self._closed:": (
        "nothing was read before the gap: as if the lock were taken behind it"
    ),
    "log.Channel.connect: swapped: with self._lock: | self.topic.enlist(self)": (
        "a signal reads nothing, and nobody waits for one before `connect` has returned"
    ),
    "log.Channel._next: lock-split: before if self._stopping:": (
        "a request to end that comes in the gap is as one that came before it: it stays until the n"
        "ext `connect`"
    ),
    (
        "handover.ConsumerTarget.process: moved-past-several: names = [each.name for each in self.consume"
        "rs] to consumer = self.consumers.pop(0)"
    ): ("only what is recorded: the same names, in another order"),
    "handover.Connection.run: while-made-if: while (session := self._sessions.take()) is not No": (
        "behind the run its sessions are looked at, and what is left is scheduled at once: another "
        "run serves it"
    ),
    (
        "queue.Queue.next_available: swapped: if not pointer.passed and (seen := self._wanted(co | follow"
        "ing = self.entries.next(pointer.entry)"
    ): (
        "an end that was read too early is as a call a moment earlier: who links an entry looks for"
        " a consumer behind that (rule 5)"
    ),
    "queue.Queue._wanted: conditions-swapped: (seen := node.available()) | not self._expired(node)": (
        "time passes between the two looks and behind them in either order"
    ),
    "queue.Queue._take: branches-swapped: not consumer.pointer.compare_and_set(pointer, Poin": (
        "the pointer is past what it is about to take: whoever makes that, or its group, free again"
        " behind that moves it back (rule 4)"
    ),
    "queue.Queue._join: swapped: if consumer.exclusive: | self.all.add(consumer.in_all)": ONLY_A_SHORTCUT,
    "queue.Queue._close: swapped: self._end(consumer) | for entry in self.entries:": (
        "a consumer that is woken between the flag and `_end` loses its interest in `_end`, which w"
        "akes another (rule 7)"
    ),
    (
        "queue.PullQueue._first_to_take: conditions-swapped: self._wanted(other, entry) | other.wants_work."
        "get()"
    ): HOLDS_BACK,
    (
        "queue.PullQueue.deliver_single_message: swapped: self.manager.set_notified(consumer, True) | con"
        "sumer.target.send(consumer, entry)"
    ): UNTIL_NOTIFIED,
    (
        "queue.PullQueue.deliver_single_message: swapped: consumer.target.send(consumer, entry) | if not "
        "consumer.has_credit():"
    ): OWN_CREDIT,
    (
        "queue.PullQueue.deliver_single_message: moved-past-several: self.manager.set_notified(consumer, "
        "True) to if not consumer.has_credit():"
    ): UNTIL_NOTIFIED,
    (
        "queue.PullQueue.deliver_single_message: moved-past-several: if not consumer.has_credit(): to sel"
        "f.manager.set_notified(consumer, True)"
    ): OWN_CREDIT,
}
"""The same of the mutants of order (`seriatim_workshop.mutation.order`)."""
