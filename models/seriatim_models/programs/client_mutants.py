"""Wrong clients and brokers: each the smallest edit of `seriatim.client` that breaks one property.

Those named ``published-...`` are what the RabbitMQ Java client (August 2026) or the RabbitMQ broker does.
The others are mistakes that the client's history records as repaired, with the commit, or that somebody could make.
"""

from __future__ import annotations

from seriatim_models.programs.base import Mutants

CLIENT_MUTANTS = Mutants("client")
mutant = CLIENT_MUTANTS.add

JAVA = "RabbitMQ Java client, main of August 2026"
BROKER = "RabbitMQ broker"
MISTAKE = "a mistake one could make"

# ---- what was published: the work pool

mutant(
    "published-put-outside",
    "CH-6",
    "pool-one-channel",
    33,
    f"{JAVA}, WorkPool.addWorkItem since 09a1fdf91",
    "work is put first and its channel woken later, so a worker may run it in between and the channel is woken for "
    "nothing: harmless, but the specification's invariant is gone",
    (
        """            if key in self._ready or key in self._in_progress:
                return False  # DeliverReady""",
        """            self._lock.release()
            self._lock.acquire()
            if key not in self._pool or key in self._ready or key in self._in_progress:
                return False  # DeliverReady""",
    ),
)

mutant(
    "published-callback-raises",
    "CH-4",
    "pool-raises",
    13,
    f"{JAVA}, WorkPoolRunnable.run; reached by handleRecoverOk and by an exception handler that throws",
    "a callback that raises takes the rest of its block with it",
    (
        """                self.host.record("work_end", k=key, w=work.label, raised=type(error).__name__)
""",
        """                self.host.record("work_end", k=key, w=work.label, raised=type(error).__name__)
                break
""",
    ),
)

mutant(
    "published-bounded-queues",
    "CH-3",
    "head-of-line",
    23,
    f"{JAVA}, WorkPool.MAX_QUEUE_LENGTH",
    "every queue is bounded, so one slow channel stops the reader and with it all channels",
    ("CAPACITY: int | None = None", "CAPACITY: int | None = 1"),
)

mutant(
    "published-interrupted-put",
    "CH-4",
    "pool-interrupt",
    31,
    f"{JAVA}, WorkPool's enqueueing callback",
    "a put that is interrupted drops its item and returns as if nothing had happened",
    (
        """                    raise NotPut("interrupted")
""",
        """                    return False
""",
    ),
)

mutant(
    "published-orphaned-queue",
    "CH-4",
    "pool-unregister",
    11,
    f"{JAVA}, WorkPool.unregisterKey",
    "who waits for room in a channel that is unregistered goes on waiting, at a queue that nobody will ever empty",
    (
        """            self._room.notify_all()
            self.host.record("pool_unregister\"""",
        """            self.host.record("pool_unregister\"""",
    ),
)

mutant(
    "published-rejected-runnable",
    "CH-4",
    "pool-rejected",
    17,
    f"{JAVA}, WorkPoolRunnable.run",
    "a rejection of the next runnable is swallowed; the channel stays ready for ever and nothing will run it",
    (
        """        if self.pool.finish_work_block(key):
            self._start_runnable()
""",
        """        if self.pool.finish_work_block(key):
            try:
                self.executor.execute(self._run)
            except Rejected:
                pass
""",
    ),
)

# ---- what was published: calls

mutant(
    "published-late-reply",
    "RPC-1",
    "rpc-late",
    33,
    f"{JAVA}, AMQChannel.cleanRpcChannelState (java-client 290; the repair is off by default)",
    "a caller whose patience ends frees the slot, so its late reply answers the next call",
    (
        """            # rule 8: if it was sent it stays in the slot until its reply has come
""",
        """            if self._active is call:
                self._finish(call)
""",
    ),
)

mutant(
    "published-timeout-clears-anothers-call",
    "RPC-1",
    "rpc-impatient",
    30,
    f"{JAVA}, AMQChannel.cleanRpcChannelState",
    "between the end of a caller's patience and its clearing of the slot its reply comes and another call is sent: "
    "the slot that it clears is the other's",
    (
        """        if not self._changed.wait(timeout) and not call.done:
""",
        """        late = not self._changed.wait(timeout) and not call.done
        if late:
            self._lock.release()
            self._lock.acquire()
            if call.done:
                self._active = None
        if late:
""",
    ),
)

# ---- what was published: the broker

mutant(
    "published-no-local",
    "NL-1",
    "no-local",
    39,
    f"{BROKER}, seen with 3.10.8",
    "no-local is accepted and ignored",
    ("if self.no_local and item.origin", "if False and item.origin"),
)

mutant(
    "published-quorum-requeue",
    "QS-2",
    "settle",
    168,
    f"{BROKER}, quorum queues without a delivery limit; rabbitmq-server 10499",
    "what is put back goes to the tail",
    (
        "insort(held.queue.ready, held.item, key=lambda item: item.position)",
        "held.queue.ready.append(held.item)",
    ),
)

# ---- repaired in the client's history

mutant(
    "put-inside-the-lock",
    "CH-4",
    "pool-bounded",
    6,
    "java-client before 09a1fdf91 (2014)",
    "a put waits for room while it holds the pool's lock, so nobody can make any",
    (
        """                if not self._room.wait(timeout) and self._full(key):
""",
        """                self.host.semaphore(0, "room in the locked pool").acquire()
                if self._full(key):
""",
    ),
)

mutant(
    "limit-during-a-call",
    "RPC-1",
    "rpc-while-full",
    44,
    "java-client before 2330f7147; to this day Connection.close, which calls on channel 0 and lifts no limit",
    "the reader waits for room while a callback waits for the reply behind",
    (
        """            self.connection.work.pool.unlimit(self.key)
""",
        "",
    ),
)

mutant(
    "limit-lifted-for-one",
    "RPC-1",
    "rpc-while-another-is-full",
    50,
    "java-client before 1a1883afd",
    "the limit is lifted for the calling channel only, and the reader waits in another",
    ("            and not self._unlimited\n", "            and key not in self._unlimited\n"),
)

mutant(
    "closed-channel-stays-unlimited",
    "CH-5",
    "pool-unlimited-again",
    20,
    "java-client before 3291399a4 (issues 69, 70)",
    "a channel that closed with a call out leaves the limits off for ever",
    (
        """            self._unlimited.discard(key)
            self._room""",
        """            self._room""",
    ),
)

mutant(
    "callback-on-the-reader",
    "RPC-1",
    "rpc-in-callback",
    29,
    "java-client before 1214f66ca (there for cancel notifications)",
    "a callback runs on the reader, and waits for a reply that only the reader could bring",
    ("        self.connection.work.add(self.key, work)\n", "        work.run()\n"),
)

mutant(
    "close-tells-nobody",
    "RPC-1",
    "rpc-crash",
    23,
    "java-client before 74066327c and 98cfd3be4 (issue 194)",
    "the end of a connection does not end the calls that are out on it",
    (
        """                self._active.error = error
                self._finish(self._active)
""",
        """                pass
""",
    ),
)

# ---- others

mutant(
    "in-progress-not-looked-at",
    "CH-1",
    "pool-one-channel",
    22,
    MISTAKE,
    "work for a channel that is in progress makes it ready",
    (
        "            if key in self._ready or key in self._in_progress:\n                return False  # DeliverReady",
        "            if key in self._ready:\n                return False  # DeliverReady",
    ),
    (
        """                raise Misuse(f"{key} is not in progress")
            self._in_progress.remove(key)
""",
        """                return False
            self._in_progress.remove(key)
""",
    ),
)

mutant(
    "youngest-work-first",
    "CH-2",
    "pool-one-channel",
    22,
    MISTAKE,
    "a block is taken from the wrong end",
    ("block = [queue.popleft() for", "block = [queue.pop() for"),
)

mutant(
    "one-runnable-at-a-time",
    "CH-3",
    "pool-together",
    12,
    MISTAKE,
    "a channel that becomes ready while another is in progress starts no runnable",
    (
        """            self._ready.append(key)  # DeliverDormant
            return True
""",
        """            self._ready.append(key)  # DeliverDormant
            return not self._in_progress
""",
    ),
)

mutant(
    "finished-is-dormant",
    "CH-4",
    "pool-one-channel",
    13,
    MISTAKE,
    "a finished channel becomes dormant though work came meanwhile",
    (
        """            if not self._pool[key]:
                return False  # EndWorkNoMoreToDo
            self._ready.append(key)  # EndWorkMoreToDo: to the tail, so channels take turns
            return True
""",
        """            return False
""",
    ),
)

mutant(
    "registered-by-the-caller",
    "CH-4",
    "consume",
    24,
    MISTAKE,
    "the caller of basic_consume registers its callback after the reply, when the first delivery may be here",
    (
        """            if call.on_reply is not None:
                call.on_reply()
            call.value""",
        """            call.value""",
    ),
    (
        """            self._record_call("ok", call, got=call.answered_by)
""",
        """            self._record_call("ok", call, got=call.answered_by)
            if call.on_reply is not None:
                call.on_reply()
""",
    ),
)

mutant(
    "one-is-told",
    "RPC-1",
    "rpc-two-callers",
    18,
    MISTAKE,
    "a reply wakes one of those who wait, which may be one that waits for its turn",
    (
        """        self.connection.work.pool.limit(self.key)
        self._changed.notify_all()
""",
        """        self.connection.work.pool.limit(self.key)
        self._changed.notify()
""",
    ),
)

mutant(
    "no-turn",
    "RPC-1",
    "rpc-two-callers",
    29,
    MISTAKE,
    "a call is sent while another is out",
    (
        "            while self._active is not None and self.closed is None:\n",
        "            while False:\n",
    ),
)

mutant(
    "multiple-settles-one",
    "QS-1",
    "settle",
    168,
    MISTAKE,
    "multiple is not looked at",
    ("t <= tag or tag == 0", "t == tag or tag == 0"),
)

mutant(
    "prefetch-off-by-one",
    "QS-1",
    "prefetch",
    14,
    MISTAKE,
    "one more than the prefetch is pushed",
    ("limit == 0 or held < limit", "limit == 0 or held <= limit"),
)

mutant(
    "channel-prefetch-for-each",
    "QS-1",
    "prefetch",
    14,
    MISTAKE,
    "the limit of the channel is compared with what one consumer holds",
    ("within(self.channel.prefetch, len(held))", "within(self.channel.prefetch, mine)"),
)

mutant(
    "put-back-unmarked",
    "QS-2",
    "settle",
    168,
    MISTAKE,
    "what comes again is not marked redelivered",
    ("            held.item.redelivered = True\n", ""),
)

mutant(
    "close-keeps-deliveries",
    "QS-2",
    "return",
    44,
    MISTAKE,
    "a channel that closes does not give back what it holds",
    ("        self._requeue(channel, list(channel.unacked))\n", ""),
)

mutant(
    "auto-ack-waits",
    "QS-3",
    "crash",
    61,
    MISTAKE,
    "what was pushed with auto-ack counts as unacknowledged and comes back after a crash",
    ("        if not auto_ack:\n", "        if True:\n"),
)

mutant(
    "exclusive-comes-second",
    "EX-1",
    "exclusive-consumer",
    32,
    MISTAKE,
    "an exclusive consumer is let in beside one that is there",
    ("if taken or (exclusive and queue.consumers):", "if taken:"),
)

mutant(
    "exclusive-came-first",
    "EX-1",
    "exclusive-consumer",
    32,
    MISTAKE,
    "a consumer is let in beside an exclusive one",
    ("if taken or (exclusive and queue.consumers):", "if exclusive and queue.consumers:"),
)

mutant(
    "exclusive-queue-stays",
    "EX-1",
    "exclusive-queue",
    32,
    MISTAKE,
    "an exclusive queue outlives its connection",
    ("                self._delete(queue)\n", "                pass\n"),
)

mutant(
    "bound-twice-gets-two",
    "RT-1",
    "routing",
    12,
    MISTAKE,
    "a queue that is bound twice gets the message twice",
    (
        """for name in sorted(names & self._queues.keys()):""",
        """for name in [q for k, q in bound if k in ("*", key)] or sorted(names & self._queues.keys()):""",
    ),
)
