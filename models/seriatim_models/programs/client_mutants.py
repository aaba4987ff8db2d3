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
ARTICLE = "article 'The RabbitMQ Threading Model'"
MISTAKE = "a mistake one could make"

# ---- what was published: the work pool

mutant(
    id="published-put-outside",
    killed_by="CH-6",
    program="pool-one-channel",
    steps=42,
    origin=f"{JAVA}, WorkPool.addWorkItem since 09a1fdf91",
    title=(
        "work is put first and its channel woken later, so a worker may run it in between and the channel is woken for "
        "nothing: harmless, but the specification's invariant is gone"
    ),
    diff="""
-            if key in self._ready or key in self._in_progress:
+            self._lock.release()
+            self._lock.acquire()
+            if key not in self._pool or key in self._ready or key in self._in_progress:
                 return False  # DeliverReady, DeliverInProgress
""",
)

mutant(
    id="published-callback-raises",
    killed_by="CH-4",
    program="pool-raises",
    steps=16,
    origin=f"{JAVA}, WorkPoolRunnable.run; reached by handleRecoverOk and by an exception handler that throws",
    title="a callback that raises takes the rest of its block with it",
    diff="""
-            self._run_one(key, work)
+            if self._run_one(key, work) is not None:
+                break
""",
)

mutant(
    id="published-bounded-queues",
    killed_by="CH-3",
    program="head-of-line",
    steps=29,
    origin=f"{JAVA}, WorkPool.MAX_QUEUE_LENGTH",
    title="every queue is bounded, so one slow channel stops the reader and with it all channels",
    edit=("CAPACITY: int | None = None", "CAPACITY: int | None = 1"),
)

mutant(
    id="published-interrupted-put",
    killed_by="CH-4",
    program="pool-interrupt",
    steps=37,
    origin=f"{JAVA}, WorkPool's enqueueing callback",
    title="a put that is interrupted drops its item and returns as if nothing had happened",
    diff="""
-                    raise NotPut("interrupted")
+                    return False
""",
)

mutant(
    id="published-orphaned-queue",
    killed_by="CH-4",
    program="pool-unregister",
    steps=14,
    origin=f"{JAVA}, WorkPool.unregisterKey",
    title=(
        "who waits for room in a channel that is unregistered goes on waiting, at a queue that nobody "
        "will ever empty"
    ),
    diff="""
-            self._room.notify_all()
             self.host.record("pool_unregister", k=key, dropped=[w.label for w in dropped])
""",
)

mutant(
    id="published-rejected-runnable",
    killed_by="CH-4",
    program="pool-rejected",
    steps=24,
    origin=f"{JAVA}, WorkPoolRunnable.run",
    title="a rejection of the next runnable is swallowed; the channel stays ready for ever and nothing will run it",
    diff="""
         if self.pool.finish_work_block(key):
-            self._start_runnable()
+            try:
+                self.executor.execute(self._run)
+            except Rejected:
+                pass
""",
)

# ---- what was published: calls

mutant(
    id="published-late-reply",
    killed_by="RPC-1",
    program="rpc-late",
    steps=35,
    origin=f"{JAVA}, AMQChannel.cleanRpcChannelState (java-client 290; the repair is off by default)",
    title="a caller whose patience ends frees the slot, so its late reply answers the next call",
    diff="""
-            # rule 8: if it was sent it stays in the slot until its reply has come
+            if self._active is call:
+                self._finish(Frame("reply"))
""",
)

mutant(
    id="published-timeout-clears-anothers-call",
    killed_by="RPC-1",
    program="rpc-impatient",
    steps=32,
    origin=f"{JAVA}, AMQChannel.cleanRpcChannelState",
    title=(
        "between the end of a caller's patience and its clearing of the slot its reply comes and another call is sent: "
        "the slot that it clears is the other's"
    ),
    diff="""
-        if not self._changed.wait(call.timeout):
+        late = not self._changed.wait(call.timeout) and call.reply is None
+        if late:
+            self._lock.release()
+            self._lock.acquire()
+            if call.reply is not None:
+                self._active = None
+        if late:
""",
)

mutant(
    id="published-turn-after-close",
    killed_by="RPC-1",
    program="rpc-refused",
    steps=28,
    origin=f"{JAVA}, AMQChannel.doEnqueueRpc: isOpen is asked before the wait for the slot, not after it",
    title=(
        "who waits for its turn while the channel closes gets its turn, sends its request on a closed "
        "channel, and waits"
    ),
    diff="""
+        self._ensure_open()
         while self._active is not None:
             self._wait(call)
-        self._ensure_open()
""",
)

mutant(
    id="published-limit-after-the-next-call",
    killed_by="RPC-1",
    program="rpc-beside-consume",
    steps=56,
    origin=f"{JAVA}, AMQChannel.handleCompleteInboundCommand: nextOutstandingRpc, and later markRpcFinished",
    title="the slot is free before the limit is put back: the next call is out by then, and the limit is its limit",
    diff="""
         self._active = None
+        self._changed.notify_all()
+        self._lock.release()
+        self._lock.acquire()
         self.connection.work.pool.limit(self.key)
-        self._changed.notify_all()
""",
)

mutant(
    id="ends-all-calls",
    killed_by="CH-4",
    program="pool-left-by-one-of-two-calls",
    steps=11,
    origin="a mistake planted by hand",
    title="a channel that is unregistered takes the limits back that other channels' calls have lifted",
    diff="""
-            self._unlimited.discard(key)
+            self._unlimited.clear()
             self._room.notify_all()
""",
)

mutant(
    id="published-limits-stay-lifted",
    killed_by="CH-5",
    program="pool-unlimited-again",
    steps=23,
    origin=f"{JAVA}, WorkPool.unregisterKey, the repair of issues 69 and 70",
    title="a channel that closes with a call out is struck off, but the bounds come back with the next reply only",
    diff="""
         self._interrupted = False
+        self._lifted = False

     def register_key(self, key: str) -> None:
@@
                 self._unlimited.add(key)
+                self._lifted = True
@@
             self._unlimited.discard(key)
+            self._lifted = bool(self._unlimited)

     def interrupt(self) -> None:
@@
-            and not self._unlimited
+            and not self._lifted
""",
)

mutant(
    id="published-close-lifts-no-limit",
    killed_by="RPC-1",
    program="close-in-callback",
    steps=34,
    origin=(
        f"{JAVA}, AMQConnection.close: channel 0 is not a ChannelN, so its call lifts no limit; and its "
        f"timeout is none"
    ),
    title=(
        "a callback closes the connection and waits for the answer, the reader waits for room in the "
        "callback's channel"
    ),
    diff="""
-        self._end(Closed(200, "closed by the application"), tell=True)
+        self.server.disconnect(self.wire, Closed(200, "closed by the application"))
""",
)

mutant(
    id="published-put-in-the-channels-lock",
    killed_by="CH-3",
    program="refused-while-full",
    steps=26,
    origin=f"{JAVA}, ChannelN.asyncShutdown: the consumers' shutdown is put into the pool with the channel's lock held",
    title="the reader waits for room with the lock that the running callback needs in order to acknowledge",
    diff="""
             self._finish(Frame("close", error=error))
-        self.connection.work.pool.unregister_key(self.key)
+            pool = self.connection.work.pool
+            last = Work(f"{self.key}:shutdown", partial(pool.unregister_key, self.key))
+            self.connection.work.add(self.key, last)
""",
)

mutant(
    id="published-async-lifts-no-limit",
    killed_by="RPC-1",
    program="async-while-full",
    steps=35,
    origin=f"{JAVA}, AMQChannel.enqueueAsyncRpc, which ChannelN does not override as it does enqueueRpc",
    title=(
        "an asynchronous call lifts no limit: the callback that waits for its future waits for the reader, which waits "
        "for room in the callback's channel"
    ),
    diff="""
-        self.connection.work.pool.unlimit(self.key)
+        if call.op != "declare":  # which is the asynchronous one here
+            self.connection.work.pool.unlimit(self.key)
""",
)

mutant(
    id="published-get-blocks",
    killed_by="RPC-1",
    program="get-from-empty",
    steps=9,
    origin=f"{ARTICLE}: basicGet blocks if there is no message, and closing the channel interrupts it",
    title="a get is answered when there is a message: until then it has the channel's slot, for which a close waits",
    diff="""
         if not queue.ready:
-            return None
+            return NotImplemented
@@
-                if call:
+                if call and value is not NotImplemented:
""",
)

mutant(
    id="locks-in-two-orders",
    killed_by="RPC-1",
    program="rpc-close",
    steps=6,
    origin=(
        f"{ARTICLE}: a call takes the channel's lock and then the connection's; with an end of the connection that "
        f"takes them the other way round"
    ),
    title="a call has its channel's lock and wants the connection's, and a close has that and wants the channels'",
    diff="""
-            channels = self._channels.get()
-        for channel in channels.values():
-            channel.shut_down(error)
+            for channel in self._channels.get().values():
+                channel.shut_down(error)
@@
-        self.server.request(self.connection.wire, self.number, call.act, call.number)
+        with self.connection._lock:
+            self.server.request(self.connection.wire, self.number, call.act, call.number)
""",
)

# ---- what was published: the broker

mutant(
    id="published-no-local",
    killed_by="NL-1",
    program="no-local",
    steps=45,
    origin=f"{BROKER}, seen with 3.10.8",
    title="no-local is accepted and ignored",
    edit=("if self.no_local and item.origin", "if False and item.origin"),
)

mutant(
    id="published-quorum-requeue",
    killed_by="QS-2",
    program="settle",
    steps=177,
    origin=f"{BROKER}, quorum queues without a delivery limit; rabbitmq-server 10499",
    title="what is put back goes to the tail",
    diff="""
-        insort(item.queue.ready, item, key=lambda i: i.position)
+        item.queue.ready.append(item)
""",
)

# ---- repaired in the client's history

mutant(
    id="put-inside-the-lock",
    killed_by="CH-4",
    program="pool-bounded",
    steps=9,
    origin="java-client before 09a1fdf91 (2014)",
    title="a put waits for room while it holds the pool's lock, so nobody can make any",
    diff="""
-                if not self._room.wait(timeout):
+                self.host.semaphore(0, "room in the locked pool").acquire()
+                if self._full(key):
""",
)

mutant(
    id="limit-during-a-call",
    killed_by="RPC-1",
    program="rpc-while-full",
    steps=51,
    origin="java-client before 2330f7147",
    title="the reader waits for room while a callback waits for the reply behind",
    diff="""
-        self.connection.work.pool.unlimit(self.key)
""",
)

mutant(
    id="limit-lifted-for-one",
    killed_by="RPC-1",
    program="rpc-while-another-is-full",
    steps=57,
    origin="java-client before 1a1883afd",
    title="the limit is lifted for the calling channel only, and the reader waits in another",
    edit=("            and not self._unlimited\n", "            and key not in self._unlimited\n"),
)

mutant(
    id="closed-channel-stays-unlimited",
    killed_by="CH-5",
    program="pool-unlimited-again",
    steps=23,
    origin="java-client before 3291399a4 (issues 69, 70)",
    title="a channel that closed with a call out leaves the limits off for ever",
    diff="""
-            self._unlimited.discard(key)
             self._room.notify_all()
""",
)

mutant(
    id="callback-on-the-reader",
    killed_by="RPC-1",
    program="rpc-in-callback",
    steps=31,
    origin="java-client before 1214f66ca (there for cancel notifications)",
    title="a callback runs on the reader, and waits for a reply that only the reader could bring",
    edit=("        self.connection.work.add(self.key, work)\n", "        work.run()\n"),
)

mutant(
    id="close-tells-nobody",
    killed_by="RPC-1",
    program="rpc-crash",
    steps=24,
    origin="java-client before 74066327c and 98cfd3be4 (issue 194)",
    title="the end of a connection does not end the calls that are out on it",
    diff="""
-            self._finish(Frame("close", error=error))
""",
)

# ---- once in the reference itself

mutant(
    id="reader-ends-silently",
    killed_by="RPC-1",
    program="rpc-crash",
    steps=16,
    origin="the reference itself, until its connections could end without being asked to",
    title="the reader sees the server's last word and tells nobody",
    diff="""
-        self._end(error)
""",
)

mutant(
    id="executor-looks-then-takes",
    killed_by="CH-4",
    program="pool-rejected",
    steps=15,
    origin=(
        "the reference itself: the list of tasks was no shared object of the explorer, so look and "
        "append were one step"
    ),
    title=(
        "a task is taken by an executor that was shut down between the look and the taking, and never "
        "run nor rejected"
    ),
    diff="""
         with self._lock:
             if not self._open:
                 raise Rejected("the executor is shut down")
+        with self._lock:
             self._tasks.append(task)
""",
)

mutant(
    id="ack-of-all-before-an-unknown-one",
    killed_by="QS-1",
    program="ack-again",
    steps=8,
    origin="the reference itself; AMQP 0-9-1 and RabbitMQ refuse it (basic.ack, 406)",
    title="what stands before a tag that is not outstanding is settled, if anything does",
    diff="""
-        if tag not in channel.unacked and not (multiple and tag == 0):
+        if not settled_by(list(channel.unacked), tag, multiple) and not (multiple and tag == 0):
""",
)

mutant(
    id="declared-otherwise",
    killed_by="EX-1",
    program="declare-otherwise",
    steps=51,
    origin="the reference itself; RabbitMQ refuses it (405, RESOURCE_LOCKED)",
    title="who declares a shared queue as its own is told that it is, and others take its messages",
    edit=("if queue.owner != owner:", 'if queue.owner not in ("", channel.wire.name):'),
)

mutant(
    id="bindings-outlive-their-queue",
    killed_by="RT-1",
    program="queue-again",
    steps=46,
    origin="the reference itself, which kept bindings beside the queues, by name",
    title="a queue gets what is routed to one of its name that was deleted",
    diff="""
         self._queues: dict[str, ServerQueue] = {}
+        self.remembered: dict[str, set[tuple[str, str]]] = {}
@@
-        queue = self._queues.setdefault(name, ServerQueue(name, owner, {("", name)}))
+        queue = self._queues.setdefault(name, ServerQueue(name, owner, self.remembered.setdefault(name, {("", name)})))
""",
)

# ---- others

mutant(
    id="in-progress-not-looked-at",
    killed_by="CH-1",
    program="pool-one-channel",
    steps=28,
    origin=MISTAKE,
    title="work for a channel that is in progress makes it ready",
    diff="""
-            if key in self._ready or key in self._in_progress:
+            if key in self._ready:
                 return False  # DeliverReady, DeliverInProgress
@@
-                raise Misuse(f"{key} is not in progress")
+                return False
             self._in_progress.remove(key)
""",
)

mutant(
    id="youngest-work-first",
    killed_by="CH-2",
    program="pool-one-channel",
    steps=28,
    origin=MISTAKE,
    title="a block is taken from the wrong end",
    edit=("block = [queue.popleft() for", "block = [queue.pop() for"),
)

mutant(
    id="one-runnable-at-a-time",
    killed_by="CH-3",
    program="pool-together",
    steps=15,
    origin=MISTAKE,
    title="a channel that becomes ready while another is in progress starts no runnable",
    diff="""
             self._ready.append(key)  # DeliverDormant
-            return True
+            return not self._in_progress
""",
)

mutant(
    id="finished-is-dormant",
    killed_by="CH-4",
    program="pool-one-channel",
    steps=16,
    origin=MISTAKE,
    title="a finished channel becomes dormant though work came meanwhile",
    diff="""
-            if not self._pool.get(key):
-                return False  # EndWorkNoMoreToDo
-            self._ready.append(key)  # EndWorkMoreToDo: to the tail, so channels take turns
-            return True
+            return False
""",
)

mutant(
    id="registered-by-the-caller",
    killed_by="CH-4",
    program="consume",
    steps=26,
    origin=MISTAKE,
    title="the caller of basic_consume registers its callback after the reply, when the first delivery may be here",
    diff="""
-            if self._active is not None and self._active.on_reply is not None:
-                self._active.on_reply()
@@
-            return self._converse(Call(self._calls, op, act, on_reply, timeout))
+            value = self._converse(Call(self._calls, op, act, on_reply, timeout))
+            if on_reply is not None:
+                on_reply()
+            return value
""",
)

mutant(
    id="one-is-told",
    killed_by="RPC-1",
    program="rpc-two-callers",
    steps=19,
    origin=MISTAKE,
    title="a reply wakes one of those who wait, which may be one that waits for its turn",
    diff="""
         self.connection.work.pool.limit(self.key)
-        self._changed.notify_all()
+        self._changed.notify()
""",
)

mutant(
    id="no-turn",
    killed_by="RPC-1",
    program="rpc-two-callers",
    steps=31,
    origin=MISTAKE,
    title="a call is sent while another is out",
    diff="""
-        while self._active is not None:
+        while False:
""",
)

mutant(
    id="multiple-settles-one",
    killed_by="QS-1",
    program="settle",
    steps=177,
    origin=MISTAKE,
    title="multiple is not looked at",
    edit=("t <= tag or tag == 0", "t == tag or tag == 0"),
)

mutant(
    id="prefetch-off-by-one",
    killed_by="QS-1",
    program="prefetch",
    steps=14,
    origin=MISTAKE,
    title="one more than the prefetch is pushed",
    edit=("limit == 0 or unacked < limit", "limit == 0 or unacked <= limit"),
)

mutant(
    id="channel-prefetch-for-each",
    killed_by="QS-1",
    program="prefetch",
    steps=14,
    origin=MISTAKE,
    title="the limit of the channel is compared with what one consumer holds",
    edit=("within(self.channel.prefetch, len(pushed))", "within(self.channel.prefetch, mine)"),
)

mutant(
    id="one-push-for-each-request",
    killed_by="QS-1",
    program="prefetch",
    steps=15,
    origin=MISTAKE,
    title="one message is pushed for each request, however much room it made",
    diff="""
                 channel.wire.send(Frame("deliver", channel.number, delivery=delivery))
+                return
""",
)

mutant(
    id="put-back-unmarked",
    killed_by="QS-2",
    program="settle",
    steps=177,
    origin=MISTAKE,
    title="what comes again is not marked redelivered",
    edit=("        item.redelivered = True\n", ""),
)

mutant(
    id="close-keeps-deliveries",
    killed_by="QS-2",
    program="return",
    steps=43,
    origin=MISTAKE,
    title="a channel that closes does not requeue what it holds",
    diff="""
-            self._requeue(channel, tag)
+            pass
         self._channels.pop((channel.wire.name, channel.number), None)
""",
)

mutant(
    id="auto-ack-waits",
    killed_by="QS-3",
    program="crash",
    steps=71,
    origin=MISTAKE,
    title="what was pushed with auto-ack counts as unacknowledged and comes back after a crash",
    edit=("        if not auto_ack:\n", "        if True:\n"),
)

mutant(
    id="republished-when-it-raises",
    killed_by="QS-3",
    program="raises-under-auto-ack",
    steps=43,
    origin=MISTAKE,
    title="what a callback raised at is published again, also if its push had settled it: a broken promise, meant well",
    diff="""
-        work = Work(f"{self.key}:{delivery.delivery_tag}", partial(callback, self, delivery))
+        work = Work(f"{self.key}:{delivery.delivery_tag}", partial(self._attempt, callback, delivery))
@@
+    def _attempt(self, callback: Callback, delivery: Delivery) -> None:
+        try:
+            callback(self, delivery)
+        except Exception:
+            self.basic_publish("", "q", delivery.message)
+            raise
+
     def _on_reply(self, frame: Frame) -> None:
""",
)

mutant(
    id="exclusive-comes-second",
    killed_by="EX-1",
    program="exclusive-consumer",
    steps=34,
    origin=MISTAKE,
    title="an exclusive consumer is let in beside one that is there",
    edit=("if taken or (exclusive and queue.consumers):", "if taken:"),
)

mutant(
    id="exclusive-came-first",
    killed_by="EX-1",
    program="exclusive-consumer",
    steps=34,
    origin=MISTAKE,
    title="a consumer is let in beside an exclusive one",
    edit=("if taken or (exclusive and queue.consumers):", "if exclusive and queue.consumers:"),
)

mutant(
    id="exclusive-queue-stays",
    killed_by="EX-1",
    program="exclusive-queue",
    steps=41,
    origin=MISTAKE,
    title="an exclusive queue outlives its connection",
    diff="""
-                del self._queues[queue.name]
-                self.host.record("srv_delete", q=queue.name)
+                pass
""",
)

mutant(
    id="bound-twice-gets-two",
    killed_by="RT-1",
    program="routing",
    steps=12,
    origin=MISTAKE,
    title="a queue that is bound twice gets the message twice",
    diff="""
-            if {(exchange, key), (exchange, "*")} & queue.bindings:
+            for _ in {(exchange, key), (exchange, "*")} & queue.bindings:
""",
)

UNREGISTERED_IS_NOT_IN_PROGRESS = """
+            self._in_progress.discard(key)
             self._unlimited.discard(key)
             self._room.notify_all()
             self.host.record("pool_unregister", k=key, dropped=[w.label for w in dropped])
@@
             if key not in self._in_progress:
-                raise Misuse(f"{key} is not in progress")
+                return False
"""

mutant(
    id="revived-by-a-delivery",
    killed_by="CH-1",
    program="connection-closed-while-delivering",
    steps=57,
    origin="what `Unregistered` is for",
    title="a delivery that comes as its channel ends registers the channel anew, while its callback is still at work",
    diff="""
-            if key not in self._pool:
-                raise Unregistered(f"{key} is not registered")
-            queue = self._pool[key]
+            queue = self._pool.setdefault(key, deque())
@@"""
    + UNREGISTERED_IS_NOT_IN_PROGRESS,
)

mutant(
    id="unregistered-is-not-in-progress",
    killed_by="CH-1",
    program="pool-registered-anew",
    steps=28,
    origin="this reference, until its matrix let every call race with every other",
    title="a channel that is unregistered while it is in progress is dormant when it is registered anew",
    diff=UNREGISTERED_IS_NOT_IN_PROGRESS,
)

mutant(
    id="tag-is-not-looked-at",
    killed_by="AP-1",
    program="misused",
    steps=24,
    origin="what a client library leaves to its server",
    title="an acknowledgement of a tag below 1 is sent and returns, and the server closes the channel for it",
    diff="""
-        if tag < 0:
-            raise Misuse(f"delivery tags start at 1, this is {tag}")
""",
)

mutant(
    id="forgets-the-next-consumer",
    killed_by="CH-4",
    program="tag-of-another",
    steps=41,
    origin="a mistake of order, written by hand, that no program had named",
    title="who cancels a consumer forgets it himself, behind the reply, when another has consumed by its tag",
    diff="""
             lambda c: self.server.cancel(c, tag),
-            lambda: self._consumers.pop(tag, None),
         )
+        with self._lock:
+            self._consumers.pop(tag, None)
""",
)

mutant(
    id="ready-and-in-progress",
    killed_by="CH-4",
    program="pool-two-blocks",
    steps=22,
    origin="a mistake of order, written by hand, that no program had named",
    title="a channel with more work stays in progress while it is ready: unregistered and registered anew, for ever",
    diff="""
-            self._in_progress.remove(key)
             if not self._pool.get(key):
+                self._in_progress.remove(key)
                 return False  # EndWorkNoMoreToDo
""",
)
