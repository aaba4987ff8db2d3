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
    36,
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
    14,
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
    24,
    f"{JAVA}, WorkPool.MAX_QUEUE_LENGTH",
    "every queue is bounded, so one slow channel stops the reader and with it all channels",
    ("CAPACITY: int | None = None", "CAPACITY: int | None = 1"),
)

mutant(
    "published-interrupted-put",
    "CH-4",
    "pool-interrupt",
    33,
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
    12,
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
    20,
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
        """        if not self._changed.wait(timeout):
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

mutant(
    "published-turn-after-close",
    "RPC-1",
    "rpc-refused",
    27,
    f"{JAVA}, AMQChannel.doEnqueueRpc: isOpen is asked before the wait for the slot, not after it",
    "who waits for its turn while the channel closes gets its turn, sends its request on a closed channel, and waits",
    (
        """            while self._active is not None:
                self._wait(call, timeout)
            self._ensure_open(call)
""",
        """            self._ensure_open(call)
            while self._active is not None:
                self._wait(call, timeout)
""",
    ),
)

mutant(
    "published-limit-after-the-next-call",
    "RPC-1",
    "rpc-beside-consume",
    50,
    f"{JAVA}, AMQChannel.handleCompleteInboundCommand: nextOutstandingRpc, and later markRpcFinished",
    "the slot is free before the limit is put back: the next call is out by then, and the limit is its limit",
    (
        """        self._active = None
        self.connection.work.pool.limit(self.key)
        self._changed.notify_all()
""",
        """        self._active = None
        self._changed.notify_all()
        self._lock.release()
        self._lock.acquire()
        self.connection.work.pool.limit(self.key)
""",
    ),
)

mutant(
    "published-limits-stay-lifted",
    "CH-5",
    "pool-unlimited-again",
    21,
    f"{JAVA}, WorkPool.unregisterKey, the repair of issues 69 and 70",
    "a channel that closes with a call out is struck off, but the bounds come back with the next reply only",
    (
        """        self._interrupted = False

    def register_key""",
        """        self._interrupted = False
        self._lifted = False

    def register_key""",
    ),
    (
        """                self._unlimited.add(key)
""",
        """                self._unlimited.add(key)
                self._lifted = True
""",
    ),
    (
        """            self._unlimited.discard(key)

    def interrupt""",
        """            self._unlimited.discard(key)
            self._lifted = bool(self._unlimited)

    def interrupt""",
    ),
    ("            and not self._unlimited\n", "            and not self._lifted\n"),
)

mutant(
    "published-close-lifts-no-limit",
    "RPC-1",
    "close-in-callback",
    31,
    f"{JAVA}, AMQConnection.close: channel 0 is not a ChannelN, so its call lifts no limit; and its timeout is none",
    "a callback closes the connection and waits for the answer, the reader waits for room in the callback's channel",
    (
        """        self._end(Closed(200, "closed by the application"), tell=True)
""",
        """        self.server.disconnect(self.wire, Closed(200, "closed by the application"))
""",
    ),
)

mutant(
    "published-put-in-the-channels-lock",
    "CH-3",
    "refused-while-full",
    21,
    f"{JAVA}, ChannelN.asyncShutdown: the consumers' shutdown is put into the pool with the channel's lock held",
    "the reader waits for room with the lock that the running callback needs in order to acknowledge",
    (
        """                self._finish(self._active)
        self.connection.work.pool.unregister_key(self.key)
""",
        """                self._finish(self._active)
            pool = self.connection.work.pool
            last = Work(f"{self.key}:shutdown", partial(pool.unregister_key, self.key))
            self.connection.work.add(self.key, last)
""",
    ),
)

# ---- what was published: the broker

mutant(
    "published-no-local",
    "NL-1",
    "no-local",
    40,
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
    7,
    "java-client before 09a1fdf91 (2014)",
    "a put waits for room while it holds the pool's lock, so nobody can make any",
    (
        """                if not self._room.wait(timeout):
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
    45,
    "java-client before 2330f7147",
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
    51,
    "java-client before 1a1883afd",
    "the limit is lifted for the calling channel only, and the reader waits in another",
    ("            and not self._unlimited\n", "            and key not in self._unlimited\n"),
)

mutant(
    "closed-channel-stays-unlimited",
    "CH-5",
    "pool-unlimited-again",
    21,
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

# ---- once in the reference itself

mutant(
    "reader-ends-silently",
    "RPC-1",
    "rpc-crash",
    16,
    "the reference itself, until its connections could end without being asked to",
    "the reader sees the server's last word and tells nobody",
    (
        """                self._end(frame.error)
""",
        "",
    ),
)

mutant(
    "executor-looks-then-takes",
    "CH-4",
    "pool-rejected",
    13,
    "the reference itself: the list of tasks was no shared object of the explorer, so look and append were one step",
    "a task is taken by an executor that was shut down between the look and the taking, and never run nor rejected",
    (
        """        with self._lock:
            if not self._open:
                raise Rejected("the executor is shut down")
            self._tasks.append(task)
""",
        """        with self._lock:
            if not self._open:
                raise Rejected("the executor is shut down")
        with self._lock:
            self._tasks.append(task)
""",
    ),
)

# ---- others

mutant(
    "in-progress-not-looked-at",
    "CH-1",
    "pool-one-channel",
    24,
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
    24,
    MISTAKE,
    "a block is taken from the wrong end",
    ("block = [queue.popleft() for", "block = [queue.pop() for"),
)

mutant(
    "one-runnable-at-a-time",
    "CH-3",
    "pool-together",
    13,
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
    14,
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
        "            while self._active is not None:\n",
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
    41,
    MISTAKE,
    "a channel that closes does not give back what it holds",
    ("        self._requeue(channel, list(channel.unacked))\n", ""),
)

mutant(
    "auto-ack-waits",
    "QS-3",
    "crash",
    64,
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
    ("taken or bool(exclusive and queue.consumers)", "taken"),
)

mutant(
    "exclusive-came-first",
    "EX-1",
    "exclusive-consumer",
    32,
    MISTAKE,
    "a consumer is let in beside an exclusive one",
    ("taken or bool(exclusive and queue.consumers)", "bool(exclusive and queue.consumers)"),
)

mutant(
    "exclusive-queue-stays",
    "EX-1",
    "exclusive-queue",
    41,
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

mutant(
    "revived-by-a-delivery",
    "CH-1",
    "connection-closed-while-delivering",
    52,
    "what `Unregistered` is for",
    "a delivery that comes as its channel ends registers the channel anew, while its callback is still at work",
    (
        """            if key not in self._pool:
                raise Unregistered(f"{key} is not registered")
            queue = self._pool[key]
""",
        """            queue = self._pool.setdefault(key, deque())
""",
    ),
    (
        """            if key not in self._pool:
                return False
            if key not in self._in_progress:
                raise Misuse(f"{key} is not in progress")
""",
        """            if key not in self._in_progress:
                return False
""",
    ),
)
