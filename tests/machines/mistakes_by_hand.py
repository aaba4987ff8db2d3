"""Mistakes of order written by hand over all references, and which program shows each, by which property.

No program was made for one of them, and none is a mistake of `test_order_programs.PLANTED` once more.
"""

BY_HAND: list[tuple[str, str, str, str, str, str]] = [
    ("q-linked-delayed-then-available", "priority-arrival", "SP-3", "queue",
     """        entry = self.entries.add(message, DELAYED if message.not_before else AVAILABLE)
        if not message.not_before:
""",
     """        entry = self.entries.add(message, DELAYED)
        if not message.not_before:
            entry.change(DELAYED, AVAILABLE)
"""),
    ("q-undelivered-by-look", "immediate-returned", "IM-1", "queue",
     """        if entry.change(AVAILABLE, DEQUEUED):
            self._dispose(entry)""",
     """        if (seen := entry.available()) and entry.change(seen, DEQUEUED):
            self._dispose(entry)"""),
    ("q-release-same-available", "immediate-returned", "IM-1", "queue",
     'ok = entry.change(consumer.acquired, State("AVAILABLE"))',
     "ok = entry.change(consumer.acquired, AVAILABLE)"),
    ("q-dequeue-leave-first", "group-passed", "MG-1", "queue",
     """        ok = entry.change(consumer.acquired, DEQUEUED)
        if ok:
            self._dispose(entry)
            if self.groups.leave(entry.message.group, consumer):
                self._announce_group(entry.message.group)
        return ok

    @operation
    def check_message_status(self) -> None:
""",
     """        ok = entry.state.get() is consumer.acquired
        if ok:
            freed = self.groups.leave(entry.message.group, consumer)
            ok = entry.change(consumer.acquired, DEQUEUED)
        if ok:
            self._dispose(entry)
            if freed:
                self._announce_group(entry.message.group)
        return ok

    @operation
    def check_message_status(self) -> None:
"""),
    ("q-status-announce-all-at-end", "held", "SP-2", "queue",
     """            if self.host.now() >= entry.message.not_before and entry.change(DELAYED, AVAILABLE):
                self._announce(entry)
            elif (""",
     """            if self.host.now() >= entry.message.not_before and entry.state.get() is DELAYED:
                self._announce(entry)
                entry.change(DELAYED, AVAILABLE)
            elif ("""),
    ("q-next-advance-set", "push-publishes-when-served", "SP-1", "queue",
     '            consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))',
     """            if consumer.pointer.get().entry is pointer.entry:
                consumer.pointer.set(Pointer(following, "advance"))"""),
    ("q-rewind-only-if-behind", "held", "SP-2", "queue",
     """            back = min(entry, pointer.entry, key=Node.place)
            if""",
     """            back = min(entry, pointer.entry, key=Node.place)
            if back is pointer.entry and not pointer.passed:
                return
            if"""),
    ("q-announce-returned-then-rewind", "release-passed", "WK-1", "queue",
     """        self._rewind_all(entry)
        self._returned(entry)""",
     """        self._returned(entry)
        self._rewind_all(entry)"""),
    ("q-attempt-no-retry", "two-takers", "outcome", "queue",
     """            if entry is not None or first is not consumer:
                return entry, first
            consumer.restore_credit()
""",
     """            if entry is None and first is consumer:
                consumer.restore_credit()
            return entry, None
"""),
    ("q-attempt-restore-late", "two-takers", "outcome", "queue",
     """        while True:
            entry, first = self._attempt_once(consumer, path, only)
            if entry is not None or first is not consumer:
                return entry, first
            consumer.restore_credit()
""",
     """        owed = 0
        while True:
            entry, first = self._attempt_once(consumer, path, only)
            if entry is not None or first is not consumer:
                for _ in range(owed):
                    consumer.restore_credit()
                return entry, first
            owed += 1
"""),
    ("q-take-state-then-group", "group-race", "MG-1", "queue",
     """            if not self.groups.join(entry.message.group, consumer):
                return None
            if not entry.change(seen, consumer.acquired):  # as it was when `_first_to_take` looked
                if self.groups.leave(entry.message.group, consumer):
                    self._announce_group(entry.message.group)
                return None
""",
     """            if not entry.change(seen, consumer.acquired):
                return None
            if not self.groups.join(entry.message.group, consumer):
                entry.change(consumer.acquired, State("AVAILABLE"))
                self._announce(entry)
                return None
"""),
    ("q-take-no-group-announce", "group-given-up", "SP-2", "queue",
     """                if self.groups.leave(entry.message.group, consumer):
                    self._announce_group(entry.message.group)
                return None
        elif""",
     """                self.groups.leave(entry.message.group, consumer)
                return None
        elif"""),
    ("q-take-state-again", "priority-returns", "WK-4", "queue",
     "            if not entry.change(seen, consumer.acquired):",
     """            seen = entry.available() or seen
            if not entry.change(seen, consumer.acquired):"""),
    ("q-browser-pointer-after", "push-shown-first", "SP-1", "queue",
     """        elif not consumer.pointer.compare_and_set(pointer, Pointer(entry, "browse", passed=True)):
            return None
""",
     """        elif consumer.pointer.get() is not pointer:
            return None
        else:
            consumer.pointer.set(Pointer(entry, "browse", passed=True))
"""),
    ("q-close-flag-after-end", "push-runs-at-once", "ES-5", "queue",
     """        with consumer.send_lock:  # after any delivery to it that is under way
            if consumer.wants_work.get_and_set(None) is None:
                return
        self._close(consumer)
""",
     """        if consumer.wants_work.get() is None:
            return
        self._close(consumer)
        with consumer.send_lock:
            if consumer.wants_work.get_and_set(None) is None:
                return
"""),
    ("q-close-twice-check", "close-twice", "QL-2", "queue",
     """            if consumer.wants_work.get_and_set(None) is None:
                return
        self._close(consumer)""",
     """            if consumer.wants_work.get() is None:
                return
        consumer.wants_work.set(None)
        self._close(consumer)"""),
    ("q-close-all-first", "exclusive-handed-back", "QL-6", "queue",
     """        self._close(consumer)
        if consumer.exclusive:
            self.exclusive.set(None)
        self.all.delete(consumer.in_all)  # last: from here on others are admitted
""",
     """        self.all.delete(consumer.in_all)
        self._close(consumer)
        if consumer.exclusive:
            self.exclusive.set(None)
"""),
    ("q-grant-wants-before-credit", "expiring", "WK-9", "queue",
     """            if consumer.credit is not None:
                consumer.credit.add(messages)
            self.set_notify_work_desired(consumer, True)
""",
     """            self.set_notify_work_desired(consumer, True)
            if consumer.credit is not None:
                consumer.credit.add(messages)
"""),
    ("q-subscribe-begin-before-join", "subscribes-when-woken", "outcome", "queue",
     """            self._join(consumer)
        self._begin(consumer)
        return""",
     """            self._begin(consumer)
            self._join(consumer)
        return"""),
    ("q-push-send-outside-lock", "send-close", "ES-7", "queue",
     """                self._last_delivered.set(consumer.in_all)
                consumer.target.send(consumer, entry)
            return entry
""",
     """                self._last_delivered.set(consumer.in_all)
        if entry is not None:
            consumer.target.send(consumer, entry)
        return entry
"""),
    ("q-push-wants-read-before-lock", "immediate-after-exclusive", "ES-5", "queue",
     """        with consumer.send_lock:
            entry = self.attempt(consumer, path, only) if consumer.wants_work.get() else None
""",
     """        wants = consumer.wants_work.get()
        with consumer.send_lock:
            entry = self.attempt(consumer, path, only) if wants else None
"""),
    ("q-push-async-submit-before-flag", "push-runs-at-once", "WK-1", "queue",
     """        if self._job_pending.compare_and_set(False, True):
            try:
                self._submit(self._job)
""",
     """        if not self._job_pending.get():
            try:
                self._submit(self._job)
                self._job_pending.set(True)
"""),
    ("q-push-job-clears-at-end", "push-returned", "WK-1", "queue",
     """        self._job_pending.set(False)  # rule 6: clear the flag, then check
        for consumer in self.all.consumers():
            while self.deliver_to(consumer, "job"):
                pass
""",
     """        for consumer in self.all.consumers():
            while self.deliver_to(consumer, "job"):
                pass
        self._job_pending.set(False)
"""),
    ("q-push-arrived-trusts-pending", "push", "IM-3", "queue",
     """        if not entry.message.immediate and entry.available():
            self.deliver_async()
""",
     """        if not entry.message.immediate and entry.available() and not self._job_pending.get():
            self._job_pending.set(True)
            self._submit(self._job)
"""),
    ("q-push-returned-here", "immediate-returned", "outcome", "queue",
     "        self.deliver_async()  # not here and now: the caller may hold a send lock",
     "        self._arrived(entry)"),
    ("q-push-resume-flag-late", "push", "WK-1", "queue",
     """        if consumer.set_wants(desired) and desired:
            self.deliver_async()
""",
     """        if desired and consumer.wants_work.get() is not None:
            self.deliver_async()
        consumer.set_wants(desired)
"""),
    ("q-move-flag-outside-lock", "pause-and-resume", "WK-9", "queue",
     """        with consumer.moving:
            # The flag first: a consumer woken next must not be held back by an interest that is over.
            if wants is not None:
                consumer.set_wants(wants)
            origin""",
     """        if wants is not None:
            consumer.set_wants(wants)
        with consumer.moving:
            origin"""),
    ("q-move-flag-last", "pull-while-suspended", "WK-9", "queue",
     """            if wants is not None:
                consumer.set_wants(wants)
            origin = consumer.listed
            if origin not in origins:
                return False
""",
     """            origin = consumer.listed
            if origin not in origins:
                if wants is not None:
                    consumer.set_wants(wants)
                return False
"""),
    ("q-move-add-before-delete", "pull-while-suspended", "QL-1", "queue",
     """            if consumer.in_list is not None:
                self._list(origin, consumer.priority).delete(consumer.in_list)
            consumer.listed = to
            consumer.in_list = None
            if to != REMOVED:
                members = self._list(to, consumer.priority)
                consumer.in_list = ListEntry(self.host, members.name, consumer)
                members.add(consumer.in_list)
""",
     """            was = consumer.in_list
            consumer.listed = to
            consumer.in_list = None
            if to != REMOVED:
                members = self._list(to, consumer.priority)
                consumer.in_list = ListEntry(self.host, members.name, consumer)
                members.add(consumer.in_list)
            if was is not None:
                self._list(origin, consumer.priority).delete(was)
"""),
    ("q-notify-before-move", "closed-when-woken", "WK-2", "queue",
     """        if not self.manager.set_notified(consumer, True):
            return False
        self.host.record("notify", sub=consumer.name)
        consumer.target.notify_work(consumer)
        return True
""",
     """        self.host.record("notify", sub=consumer.name)
        consumer.target.notify_work(consumer)
        return self.manager.set_notified(consumer, True)
"""),
    ("q-notify-move-before-look", "subscribe", "WK-1", "queue",
     """        found = self.next_available(consumer)
        return found is not None and self._wake(self._first_to_take(consumer, found[0].entry))

    def _wake(self, consumer: Consumer) -> bool:
        if not self.manager.set_notified(consumer, True):
            return False
""",
     """        if not self.manager.set_notified(consumer, True):
            return False
        found = self.next_available(consumer)
        if found is None or self._first_to_take(consumer, found[0].entry) is not consumer:
            self.manager.set_notified(consumer, False)
            return False
        return self._give(consumer)

    def _wake(self, consumer: Consumer) -> bool:
        return self.manager.set_notified(consumer, True) and self._give(consumer)

    def _give(self, consumer: Consumer) -> bool:
"""),
    ("q-pull-check-then-wait", "group-freed", "WK-8", "queue",
     """        self.manager.set_notified(consumer, False)  # rule 6: be seen to wait, then check
        entry = None
        if consumer.wants_work.get():
            entry, first = self._attempt(consumer, "pull")
            if entry is not None:
                self.manager.set_notified(consumer, True)
""",
     """        entry = None
        wants = consumer.wants_work.get()
        if wants:
            entry, first = self._attempt(consumer, "pull")
        if entry is None:
            self.manager.set_notified(consumer, False)
        if wants:
            if entry is not None:
                pass
"""),
    ("q-pull-suspend-other-before-move", "priority-pause", "WK-1", "queue",
     """        if self.manager.set_interest(consumer, desired):
            if desired:
                self._notify(consumer)
            elif consumer.acquires:
                self._notify_other(consumer)
""",
     """        if not desired and consumer.acquires:
            self._notify_other(consumer)
        if self.manager.set_interest(consumer, desired) and desired:
            self._notify(consumer)
"""),
    ("q-pull-begin-notify-first", "subscribe", "WK-1", "queue",
     """        wants = consumer.has_credit()
        self.manager.set_interest(consumer, wants, new=True)
        if wants:
            self._notify(consumer)
""",
     """        wants = consumer.has_credit()
        found = self.next_available(consumer)
        self.manager.set_interest(consumer, wants, new=True)
        if wants and found is not None:
            self._notify(consumer)
"""),
    ("q-pull-end-remove-only", "credit-kept", "WK-11", "queue",
     """        self.set_notify_work_desired(consumer, False)
        self.manager.remove(consumer)""",
     """        self.manager.remove(consumer)
        self._notify_other(consumer) if consumer.acquires else None"""),
    ("q-size-after-append", "third-refused", "QL-2", "queue",
     """        self.size.add(1)
        self.append(entry)""",
     """        self.append(entry)
        self.size.add(1)"""),
    ("q-unlink-last", "pull-while-suspended", "QL-4", "queue",
     """            if beyond is None:
                return None  # rule 8: the last node stays
""",
     """            if beyond is None:
                node.next.compare_and_set(following, None)
                return None
"""),
    ("q-append-id-after-link", "push-publishes-when-served", "SO-1", "queue",
     """            node.id = tail.id + 1
            if tail.next.compare_and_set(None, node):
                self""",
     """            if tail.next.compare_and_set(None, node):
                node.id = tail.id + 1
                self"""),
    ("h-session-adds-conn-first", "handover-once", "WK-1", "handover",
     """        if self._targets.add(target):
            self.connection.notify_work(self)
""",
     """        self.connection.notify_work(self)
        self._targets.add(target)
"""),
    ("h-session-process-peek", "handover-in-turn", "WK-1", "handover",
     """        target = self._targets.take()
        if target is not None and target.process():
            self._targets.add(target)
        return not self._targets.empty()
""",
     """        target = self._targets.take()
        if target is not None and target.process():
            more = not self._targets.empty()
            self._targets.add(target)
            return more or True
        return False
"""),
    ("h-run-flag-cleared-first", "handover-meanwhile", "AP-1", "handover",
     """        self.host.record("conn_run", conn=self.name, at="begin")
        while""",
     """        self._scheduled.set(False)
        self.host.record("conn_run", conn=self.name, at="begin")
        while"""),
    ("h-run-look-then-clear", "handover-meanwhile", "WK-6", "handover",
     """        self._scheduled.set(False)  # rule 6 once more: from here on a notification schedules,
        if not self._sessions.empty():  # and one that came before is seen here
            self._schedule()
""",
     """        left = not self._sessions.empty()
        self._scheduled.set(False)
        if left:
            self._schedule()
"""),
    ("h-run-reschedule-without-flag", "handover-meanwhile", "WK-6", "handover",
     """        self._scheduled.set(False)  # rule 6 once more: from here on a notification schedules,
        if not self._sessions.empty():  # and one that came before is seen here
            self._schedule()
""",
     """        if not self._sessions.empty():
            self.scheduler.submit(self)
        else:
            self._scheduled.set(False)
"""),
    ("h-process-rotates-after", "handover-turns", "WK-1", "handover",
     """            self.consumers.append(consumer)
            names""",
     "            names"),
    ("c-open-registered-last", "open-while-closing", "outcome", "client",
     """            self._channels.set({**channels, number: channel})
            self.work.pool.register_key(channel.key)
            self.server.open(self.wire, number)
            return channel
""",
     """            self.server.open(self.wire, number)
        self._channels.set({**channels, number: channel})
        self.work.pool.register_key(channel.key)
        return channel
"""),
    ("c-close-waits-before-end", "publish-when-closed", "AP-1", "client",
     """            while not self._gone:
                self._over.wait()
""",
     """            if not self._gone:
                self._over.wait(1.0)
"""),
    ("c-converse-open-before-turn", "rpc-refused", "RPC-1", "client",
     """        while self._active is not None:
            self._wait(call)
        self._ensure_open()
        self._active""",
     """        self._ensure_open()
        while self._active is not None:
            self._wait(call)
        self._active"""),
    ("c-converse-active-after-request", "full-beside-call", "outcome", "client",
     """        self._active = call
        self.connection.work.pool.unlimit(self.key)
        self.server.request(self.connection.wire, self.number, call.act, call.number)
""",
     """        self.server.request(self.connection.wire, self.number, call.act, call.number)
        self._active = call
        self.connection.work.pool.unlimit(self.key)
"""),
    ("c-timeout-frees-slot", "rpc-late", "RPC-1", "client",
     """        if not self._changed.wait(call.timeout):
""",
     """        if not self._changed.wait(call.timeout):
            if self._active is call:
                self._active = None
"""),
    ("c-timeout-despite-reply", "get-while-crashing", "outcome", "client",
     """        while call.reply is None:
            self._wait(call)
        if call.reply.error""",
     """        while call.reply is None:
            self._wait(call)
        self._ensure_open()
        if call.reply.error"""),
    ("c-delivery-callback-late", "async-while-full", "outcome", "client",
     """        with self._lock:
            callback = self._consumers.get(delivery.consumer_tag)
        if callback is None:
            return
        work = Work(f"{self.key}:{delivery.delivery_tag}", partial(callback, self, delivery))
        self.connection.work.add(self.key, work)
""",
     """        with self._lock:
            callback = self._consumers.get(delivery.consumer_tag)
            if callback is None:
                return
            work = Work(f"{self.key}:{delivery.delivery_tag}", partial(callback, self, delivery))
            self.connection.work.add(self.key, work)
"""),
    ("c-delivery-looked-up-when-run", "consume-and-cancel", "outcome", "client",
     """        work = Work(f"{self.key}:{delivery.delivery_tag}", partial(callback, self, delivery))
""",
     """        def late() -> None:
            found = self._consumers.get(delivery.consumer_tag)
            if found is not None:
                found(self, delivery)

        work = Work(f"{self.key}:{delivery.delivery_tag}", late)
"""),
    ("c-finish-notify-one", "rpc-refused", "RPC-1", "client",
     """        self._changed.notify_all()

    def shut_down""",
     """        self._changed.notify()

    def shut_down"""),
    ("c-shutdown-finish-before-closed", "publish-after-refusal", "outcome", "client",
     """            self.closed = error
            self._finish(Frame("close", error=error))
""",
     """            self._finish(Frame("close", error=error))
        with self._lock:
            self.closed = self.closed or error
"""),
    ("c-close-shutdown-first", "rpc-close-channel", "outcome", "client",
     """        with suppress(Closed):  # by somebody else, before or meanwhile
            self._call("close", self.server.close_channel)
        self.shut_down""",
     """        with suppress(Closed):
            self._ensure_open()
            self._send(self.server.close_channel)
        self.shut_down"""),
    ("c-send-check-outside", "publish-while-closing", "outcome", "client",
     """        with self._lock:
            self._ensure_open()
            self.server.request(self.connection.wire, self.number, act)
""",
     """        self._ensure_open()
        with self._lock:
            self.server.request(self.connection.wire, self.number, act)
"""),
    ("w-shutdown-front", "pool-rejected", "CH-4", "workpool",
     "            self._tasks.extend([None] * self.size)",
     "            self._tasks.extendleft([None] * self.size)"),
    ("w-unregister-progress-too", "pool-unregister-one", "CH-4", "workpool",
     '''            self._unlimited.discard(key)
            self._room.notify_all()
            self.host.record("pool_unregister"''',
     '''            self._unlimited.discard(key)
            self._in_progress.discard(key)
            self._room.notify_all()
            self.host.record("pool_unregister"'''),
    ("w-add-interrupt-sticky", "pool-interrupted-once", "CH-4", "workpool",
     """                if self._interrupted:
                    self._interrupted = False
                    raise NotPut("interrupted")
                if not self._room.wait(timeout):
                    raise NotPut("no room in time")
""",
     """                if not self._room.wait(timeout):
                    raise NotPut("no room in time")
                if self._interrupted:
                    self._interrupted = False
                    raise NotPut("interrupted")
"""),
    ("w-next-wakes-one", "pool-room-for-two", "CH-4", "workpool",
     """            if self.capacity is not None:
                self._room.notify_all()
            return key, block""",
     """            if self.capacity is not None:
                for _ in block:
                    self._room.notify()
            return key, block"""),
    ("w-finish-split", "crash-anywhere", "AP-1", "workpool",
     """            self._in_progress.remove(key)
            if not self._pool.get(key):
                return False  # EndWorkNoMoreToDo
            self._ready""",
     """            if not self._pool.get(key):
                self._in_progress.remove(key)
                return False
        with self._lock:
            self._in_progress.remove(key)
            self._ready"""),
    ("w-service-failure-before-return", "pool-fails", "outcome", "workpool",
     """        if runnable:
            self._start_runnable()
        return True""",
     """        if runnable:
            self._run()
        return True"""),
    ("w-run-starts-next-first", "pool-one-channel", "CH-1", "workpool",
     """        key, items = block
        for work in items:
            self._run_one(key, work)
        if self.pool.finish_work_block(key):
            self._start_runnable()
""",
     """        key, items = block
        more = self.pool.finish_work_block(key)
        for work in items:
            self._run_one(key, work)
        if more:
            self._start_runnable()
"""),
    ("b-request-push-before-reply", "no-local", "CH-4", "broker",
     """            else:
                if call:
                    wire.send(Frame("reply", number, call, value))
            self._push_all()

    def disconnect""",
     """            else:
                self._push_all()
                if call:
                    wire.send(Frame("reply", number, call, value))
            self._push_all()

    def disconnect"""),
    ("b-request-reply-before-act", "no-local", "CH-4", "broker",
     """                value = act(channel)
            except""",
     """                value = act(channel)
                self._push_all()
            except"""),
    ("b-request-no-push-when-closed", "refused-and-handed-over", "QS-1", "broker",
     """                wire.send(Frame("close", number, call, error=error))
            else""",
     """                wire.send(Frame("close", number, call, error=error))
                return
            else"""),
    ("b-disconnect-push-per-channel", "crash-hands-over", "outcome", "broker",
     """                self.close_channel(channel)
            for queue""",
     """                self.close_channel(channel)
                self._push_all()
            for queue"""),
    ("b-closechannel-requeue-first", "crash-hands-over", "QS-2", "broker",
     """        for consumer in channel.consumers.values():
            consumer.queue.consumers.remove(consumer)
        for tag in list(channel.unacked):
            self._requeue(channel, tag)
        self""",
     """        for tag in list(channel.unacked):
            self._requeue(channel, tag)
        self._push_all()
        for consumer in channel.consumers.values():
            consumer.queue.consumers.remove(consumer)
        self"""),
    ("b-settle-check-by-max", "ack-again", "QS-1", "broker",
     "        if tag not in channel.unacked and not (multiple and tag == 0):",
     "        if tag not in channel.unacked and not (multiple and tag <= channel.tag):"),
    ("b-settle-requeue-backwards", "ack-again", "QS-2", "broker",
     "        insort(item.queue.ready, item, key=lambda i: i.position)",
     "        item.queue.ready.insert(0, item)"),
    ("b-push-break", "no-local", "QS-1", "broker",
     """                if consumer is None:
                    continue
                queue""",
     """                if consumer is None:
                    break
                queue"""),
    ("b-handout-redelivered-late", "refused-and-handed-over", "QS-2", "broker",
     """        item = channel.unacked.pop(tag)
        item.redelivered = True
""",
     """        item = channel.unacked.pop(tag)
        item.redelivered = item.consumer is not None
"""),
    ("b-limits-read-once", "prefetch", "QS-1", "broker",
     """            for item in list(queue.ready):
                consumer = next((c for c in queue.consumers if c.may_take(item)), None)
""",
     """            for item in list(queue.ready)[:1]:
                consumer = next((c for c in queue.consumers if c.may_take(item)), None)
"""),
    ("l-publish-notify-before-tail", "log-seen-before-durable", "LC-1", "log",
     """        self._end = append_record(self.storage, name, self._end, message, self._mark)
        self.tail.set(Position(place.segment, self._end.offset))
        return place
""",
     """        self.tail.set(Position(place.segment, self._end.offset + HEADER.size + len(message)))
        self._end = append_record(self.storage, name, self._end, message, self._mark)
        return place
"""),
    ("l-publish-connected-before", "log-new-channel", "LC-4", "log",
     """        with self._writing:
            place = self._append(message)
        for channel in self._connected.get():
""",
     """        connected = self._connected.get()
        with self._writing:
            place = self._append(message)
        for channel in connected:
"""),
    ("l-append-mark-before-sync", "log-seen-before-durable", "LC-3", "log",
     """    storage.append(name, record)
    storage.sync(name)
    end = ChainEnd(end.offset + len(record), HEADER.unpack_from(record)[2])
    mark(end)
    return end
""",
     """    storage.append(name, record)
    end = ChainEnd(end.offset + len(record), HEADER.unpack_from(record)[2])
    mark(end)
    storage.sync(name)
    return end
"""),
    ("l-connect-enlist-first", "log-two-consumers", "LC-3", "log",
     """        if not self._state.compare_and_set(AWAY, CONNECTED):
            raise Misuse(f"channel {self.name} has a consumer")
        with self._lock:
            self._stopping = False
        self.topic.enlist(self)
""",
     """        self.topic.enlist(self)
        if not self._state.compare_and_set(AWAY, CONNECTED):
            raise Misuse(f"channel {self.name} has a consumer")
        with self._lock:
            self._stopping = False
"""),
    ("l-connect-stopping-first", "log-take-over", "outcome", "log",
     """        if not self._state.compare_and_set(AWAY, CONNECTED):
            raise Misuse(f"channel {self.name} has a consumer")
        with self._lock:
            self._stopping = False
        self.topic""",
     """        with self._lock:
            self._stopping = False
        if not self._state.compare_and_set(AWAY, CONNECTED):
            raise Misuse(f"channel {self.name} has a consumer")
        self.topic"""),
    ("l-consume-stopping-at-begin", "log-leave-and-join", "outcome", "log",
     """        try:
            while (delivery""",
     """        self._stopping = False
        try:
            while (delivery"""),
    ("l-next-read-unread-outside", "log-reconnect", "LC-5", "log",
     """        with self._lock:
            while not self._stopping and not self._unread():
                self._sleep()
            if self._stopping:
                return None
        return self.topic""",
     """        unread = self._unread()
        with self._lock:
            while not self._stopping and not unread:
                self._sleep()
                unread = self._unread()
            if self._stopping:
                return None
        return self.topic"""),
    ("l-next-stop-after-drain", "log-replay-again", "outcome", "log",
     """            if self._stopping:
                return None
        return self.topic""",
     """            if self._stopping and not self._unread():
                return None
        return self.topic"""),
    ("l-commit-before-handler", "log-handler-exits", "outcome", "log",
     """        error = self._attempt(handler, delivery)
        if error is not None:
            self.attempts""",
     """        before = self.position
        self._position.set(delivery.following)
        error = self._attempt(handler, delivery)
        self._position.set(before)
        if error is not None:
            self.attempts"""),
    ("l-commit-before-park", "log-parked-while-opened", "LC-2", "log",
     """            self._park(delivery, error)
        self._commit(delivery.following)
""",
     """            self._commit(delivery.following)
            self._park(delivery, error)
            return
        self._commit(delivery.following)
"""),
    ("l-commit-position-before-check", "log-commit-refused", "LC-2", "log",
     """        self._check(position)
        if position < self.position:
            raise Misuse""",
     """        if position < self.position:
            raise Misuse"""),
    ("l-park-end-read-outside", "log-replay", "LC-6", "log",
     """        with self._parks:
            end = append_record(self.storage, self._parking, self._parked_to, payload, mark)
            self._parked_to = end
""",
     """        was = self._parked_to
        with self._parks:
            end = append_record(self.storage, self._parking, was, payload, mark)
            self._parked_to = end
"""),
    ("l-replay-strike-finally", "log-replay-fails", "LC-6", "log",
     """        handler(parked.message)
        self._note_parked(parked.place, None, b"")""",
     """        try:
            handler(parked.message)
        finally:
            self._note_parked(parked.place, None, b"")"""),
    ("l-backoff-wait-before-check", "log-parked-and-stopped", "outcome", "log",
     """            while not self._stopping:
                if not self._asked.wait(self.pause * 2 ** min(self.attempts - 1, 20)):
                    return
""",
     """            while self._asked.wait(self.pause * 2 ** min(self.attempts - 1, 20)):
                if self._stopping:
                    return
"""),
    ("l-recover-clear-before-torn", "log-crash-while-opened", "LC-8", "log",
     """            storage.replace(f"{name}.torn", storage.read(name, end.offset, size - end.offset))
            break
""",
     """            rest = storage.read(name, end.offset, size - end.offset)
            clear(storage, name, end, mark)
            storage.replace(f"{name}.torn", rest)
            break
"""),
    ("l-open-claim-late", "log-parked-while-opened", "LC-6", "log",
     """        topic.claim(name)
        try:
            parked = load_state(self.storage, f"{name}.parking", "parking file", _parking_state)
            self._parked_to = recover(self.storage, self._parking, parked, self._mark_parked)
""",
     """        try:
            parked = load_state(self.storage, f"{name}.parking", "parking file", _parking_state)
            self._parked_to = recover(self.storage, self._parking, parked, self._mark_parked)
            topic.claim(name)
"""),
    ("f-deliver-token-before-overrun", "fair-overrun", "FQ-4", "fair",
     """        with self._lock:
            if len(slot.waiting) >= slot.prefetch:
                raise Overrun(f"slot {slot.name}: a delivery beyond its prefetch {slot.prefetch}")
            slot.waiting.append((delivery, weight))
            self.host.record("arrive", slot=slot.name, weight=weight)
            self.tokens.release()
""",
     """        with self._lock:
            self.tokens.release()
            if len(slot.waiting) >= slot.prefetch:
                raise Overrun(f"slot {slot.name}: a delivery beyond its prefetch {slot.prefetch}")
            slot.waiting.append((delivery, weight))
            self.host.record("arrive", slot=slot.name, weight=weight)
"""),
    ("f-park-stop-before-sleep", "fair-stop-in-handler", "FQ-4", "fair",
     """        if self._held == 0:
            self._sleep()
        if self._stopping.get():
            self._held""",
     """        stopping = self._stopping.get()
        if self._held == 0 and not stopping:
            self._sleep()
        if stopping:
            self._held"""),
    ("f-park-not-ended", "fair-stop-twice", "FQ-4", "fair",
     "            self._held, self._ended = 0, True  #",
     "            self._held = 0  #"),
    ("f-park-held-kept", "fair-stop-in-handler", "FQ-4", "fair",
     "            self._held, self._ended = 0, True  #",
     "            self._ended = True  #"),
    ("f-visit-handle-under-lock", "fair-delivers-itself", "outcome", "fair",
     """            with self._lock:
                taken = self._take(slot, quantum)
            if taken is None:
                return
            quantum = 0  # rule 1: once a visit
            delivery, _ = taken
            well = False
            try:
                well = self._handle(delivery) is None
            finally:
                self.settle(delivery, well)
""",
     """            with self._lock:
                taken = self._take(slot, quantum)
                if taken is None:
                    return
                quantum = 0
                delivery, _ = taken
                good = self._handle(delivery) is None
            self.settle(delivery, good)
"""),
    ("f-visit-settle-before-handle", "fair-delivers-itself", "outcome", "fair",
     """            well = False
            try:
                well = self._handle(delivery) is None
            finally:
                self.settle(delivery, well)
""",
     """            self.settle(delivery, True)
            self._handle(delivery)
"""),
    ("q-level-counted-from-the-top", "priority-gap", "SO-5", "queue",
     "        return self._by_rank[-1 - level].add(message, state)",
     "        return self._by_rank[level].add(message, state)"),
    ("q-immediate-in-the-else", "push-taken-meanwhile", "IM-1", "queue",
     """            self._arrived(entry)
        if message.immediate:
            self.undelivered(entry)
""",
     """            self._arrived(entry)
        elif message.immediate:
            self.undelivered(entry)
"""),
    ("h-newest-first", "handover-in-turn", "WK-12", "handover",
     """            if self._waiting.compare_and_set(waiting, waiting[1:]):
                return waiting[0]
""",
     """            if self._waiting.compare_and_set(waiting, waiting[:-1]):
                return waiting[-1]
"""),
    ("c-consume-registers-first", "consume-while-failing", "outcome", "client",
     """            raise Misuse("a consumer has a tag: without one it is a get's delivery")
""",
     """            raise Misuse("a consumer has a tag: without one it is a get's delivery")
        with self._lock:
            self._consumers[tag] = callback
"""),
    ("c-cancel-forgets-first", "consume-and-cancel", "CH-4", "client",
     """        self._call(
            "cancel",
            lambda c: self.server.cancel(c, tag),
            lambda: self._consumers.pop(tag, None),
        )
""",
     """        with self._lock:
            self._consumers.pop(tag, None)
        self._call("cancel", lambda c: self.server.cancel(c, tag))
"""),
    ("c-second-close-returns-at-once", "publish-when-closed", "AP-1", "client",
     """        self._end(Closed(200, "closed by the application"), tell=True)
        with self._lock:
            while not self._gone:
""",
     """        with self._lock:
            if self._closed is not None:
                return
        self._end(Closed(200, "closed by the application"), tell=True)
        with self._lock:
            while not self._gone:
"""),
    ("w-block-from-the-end", "raises-under-auto-ack", "CH-2", "workpool",
     "            block = [queue.popleft() for _ in range(min(self.block, len(queue)))]",
     "            block = [queue.pop() for _ in range(min(self.block, len(queue)))]"),
    ("b-get-from-the-end", "limits-of-others", "outcome", "broker",
     "        return self._hand_out(channel, queue.ready.pop(0), None, auto_ack)",
     "        return self._hand_out(channel, queue.ready.pop(), None, auto_ack)"),
    ("b-turn-given-up-before-it-is-known", "consumers-in-turn", "outcome", "broker",
     """                consumer = next((c for c in queue.consumers if c.may_take(item)), None)
                if consumer is None:
                    continue
                queue.ready.remove(item)
                queue.consumers.remove(consumer)
                queue.consumers.append(consumer)
""",
     """                if not queue.consumers:
                    continue
                queue.consumers.append(queue.consumers.pop(0))
                consumer = next((c for c in reversed(queue.consumers) if c.may_take(item)), None)
                if consumer is None:
                    continue
                queue.ready.remove(item)
"""),
    ("l-tail-read-twice", "log-batch", "outcome", "log",
     """        tail = self.tail.get()
        place = self.start_of_next(position, tail)
        if place == tail:
            return None
""",
     """        place = self.start_of_next(position, self.tail.get())
        if place == self.tail.get():
            return None
"""),
    ("l-asked-only-if-it-consumes", "log-stop-and-news", "outcome", "log",
     """        with self._lock:
            self._stopping = True
            self._news.notify()
""",
     """        with self._lock:
            if self._state.get() != CONSUMING:
                return
            self._stopping = True
            self._news.notify()
"""),
    ("l-parked-read-to-the-size", "log-replay-disk-fails", "LC-6", "log",
     """        with self._parks:
            end = self._parked_to
        while offset < end.offset:
""",
     """        with self._parks:
            end = ChainEnd(storage.size(self._parking), 0)
        while offset < end.offset:
"""),
    ("l-chain-begins-anew", "log-backlog", "outcome", "log",
     "            self._segment, self._end = self._segment + 1, ChainEnd(0, self._end.check)",
     "            self._segment, self._end = self._segment + 1, ChainEnd(0, 0)"),
    ("l-commit-from-where-it-was", "log-parked-and-stopped", "LC-6", "log",
     """        self._position.set(position)
        self.attempts = 0
        self._save()
""",
     """        failed = self.attempts
        self._position.set(position)
        self.attempts = 0 if position == self.topic.tail.get() else failed
        self._save()
"""),
    ("f-stop-wakes-first", "fair-stop-twice", "FQ-4", "fair",
     """        if not self._stopping.get_and_set(True):
            self.tokens.release()
""",
     """        if not self._stopping.get():
            self.tokens.release()
            self._stopping.set(True)
"""),
    ("f-round-from-the-end", "fair-starve", "outcome", "fair",
     """        for slot in self.slots:
            self._visit(slot)""",
     """        for slot in reversed(self.slots):
            self._visit(slot)"""),
    ("q-restored-before-it-is-known-who", "push-executor-refuses", "ES-6", "queue",
     """            if entry is not None or first is not consumer:
                return entry, first
            consumer.restore_credit()
""",
     """            if entry is None:
                consumer.restore_credit()
            if entry is not None or first is not consumer:
                return entry, first
"""),
    ("q-others-from-the-end", "woken-one-of-several", "outcome", "queue",
     """        for other in self.manager.interested():
            if other is not consumer and self._notify(other):
""",
     """        for other in reversed(list(self.manager.interested())):
            if other is not consumer and self._notify(other):
"""),
    ("q-name-looked-up-before-the-lock", "same-name", "QL-1", "queue",
     """        with self._admission:
            for other in self.all.consumers():
                if exclusive or other.exclusive or other.name == name:
                    raise""",
     """        taken = [other.name for other in self.all.consumers()]
        with self._admission:
            for other in self.all.consumers():
                if exclusive or other.exclusive or name in taken:
                    raise"""),
    ("q-turn-begins-with-the-last", "push-turns-unaided", "SO-7", "queue",
     """        last = self._last_delivered.get()
        node = self.all.next(last)
        while node is not None:
            yield node.consumer
            node = self.all.next(node)
        for node in self.all:
            if node.id > last.id:
                return
            yield node.consumer
""",
     """        last = self._last_delivered.get()
        for node in self.all:
            if node.id >= last.id:
                yield node.consumer
        for node in self.all:
            if node.id >= last.id:
                return
            yield node.consumer
"""),
    ("l-attempts-saved-before-counted", "log-attempts-kept", "outcome", "log",
     """            self.attempts += 1
            if self.attempts < self.max_attempts:
                self._save()
""",
     """            if self.attempts + 1 < self.max_attempts:
                self._save()
                self.attempts += 1
"""),
    ("f-well-at-first", "fair-handler-exits", "outcome", "fair",
     """            well = False
""",
     """            well = True
"""),
    ("f-deficit-kept-when-empty", "fair-park", "FQ-1", "fair",
     """            slot.deficit = 0
            return None""",
     "            return None"),
    ("w-limits-lifted-for-own-channel", "full-beside-call", "outcome", "workpool",
     """            and not self._unlimited
""",
     """            and key not in self._unlimited
"""),
    ("g-free-with-one-left", "group-freed-before", "MG-1", "groups",
     """            if count:
""",
     """            if count > 1:
"""),
    ("h-more-only-if-taken", "handover-in-turn", "WK-1", "handover",
     """        if target is not None and target.process():
            self._targets.add(target)
        return not self._targets.empty()""",
     """        if target is not None and target.process():
            self._targets.add(target)
            return True
        return False"""),
    ("q-due-is-later", "due-and-expired", "TM-2", "queue",
     "self.host.now() >= entry.message.not_before",
     "self.host.now() > entry.message.not_before"),
    ("q-job-one-each", "push-close-refused", "outcome", "queue",
     """            while self.deliver_to(consumer, "job"):
                pass""",
     '            self.deliver_to(consumer, "job")'),
    ("q-depth-counted-when-served", "depth-read", "QL-2", "queue",
     """        self.depth.add(1)
        entry = self.entries.add(message, DELAYED if message.not_before else AVAILABLE)
        if not message.not_before:
            if self.entries.overtaking:
                self._rewind_all(entry)
            self._arrived(entry)
""",
     """        entry = self.entries.add(message, DELAYED if message.not_before else AVAILABLE)
        if not message.not_before:
            if self.entries.overtaking:
                self._rewind_all(entry)
            self._arrived(entry)
        self.depth.add(1)
"""),
    ("q-pays-behind-the-acquiring", "push-taken-meanwhile", "outcome", "queue",
     """        if not consumer.take_credit():
            return None, None
        return self._take(consumer, *found), consumer
""",
     """        entry = self._take(consumer, *found)
        if not consumer.take_credit():
            if entry is not None and consumer.acquires:
                self.release(entry, consumer)
            return None, None
        return entry, consumer
"""),
    ("q-credit-looked-at-before-sent", "grants-when-sent", "WK-9", "queue",
     """                self.manager.set_notified(consumer, True)
                consumer.target.send(consumer, entry)
                if not consumer.has_credit():
""",
     """                self.manager.set_notified(consumer, True)
                more = consumer.has_credit()
                consumer.target.send(consumer, entry)
                if not more:
"""),
    ("q-higher-ones-sought-in-interested", "credit-kept", "WK-4", "queue",
     "for other in self.all.consumers() if consumer.acquires else ():",
     "for other in self.manager.interested() if consumer.acquires else ():"),
    ("q-resumed-only-if-not-woken", "grants-when-sent", "WK-9", "queue",
     "        origins = (NOT_INTERESTED,) if desired else (wanting, NOTIFIED)",
     "        origins = (NOT_INTERESTED,) if desired else (wanting,)"),
    ("q-take-group-left-before-state", "group-given-up", "SP-2", "queue",
     """            if not entry.change(seen, consumer.acquired):  # as it was when `_first_to_take` looked
                if self.groups.leave(entry.message.group, consumer):
                    self._announce_group(entry.message.group)
                return None
""",
     """            if entry.state.get() is not seen or not entry.change(seen, consumer.acquired):
                self.groups.leave(entry.message.group, consumer)
                return None
"""),
    ("h-served-target-first-again", "handover-targets-in-turn", "WK-12", "handover",
     """            self._targets.add(target)
        return not""",
     """            there = self._targets._waiting.get()
            while not self._targets._waiting.compare_and_set(there, (target, *(t for t in there if t is not target))):
                there = self._targets._waiting.get()
        return not"""),
    ("h-session-until-it-has-none", "handover-sessions-in-turn", "WK-12", "handover",
     """            if session.process():
                self._sessions.add(session)
""",
     """            while session.process():
                pass
"""),
    ("c-closed-known-late", "open-while-closing", "outcome", "client",
     """            self._closed = error
            channels = self._channels.get()
        for channel in channels.values():
            channel.shut_down(error)
""",
     """            channels = self._channels.get()
        for channel in channels.values():
            channel.shut_down(error)
        with self._lock:
            if self._closed is not None:
                return
            self._closed = error
"""),
    ("c-effect-before-the-lock", "consume-while-failing", "outcome", "client",
     """        with self._lock:
            if self._active is not None and self._active.on_reply is not None:
                self._active.on_reply()
            self._finish(frame)
""",
     """        active = self._active
        if active is not None and active.on_reply is not None:
            active.on_reply()
        with self._lock:
            self._finish(frame)
"""),
    ("c-server-open-before-key", "open-while-closing", "outcome", "client",
     """            self.work.pool.register_key(channel.key)
            self.server.open(self.wire, number)
            return channel
""",
     """            self.server.open(self.wire, number)
        self.work.pool.register_key(channel.key)
        return channel
"""),
    ("c-frees-slot-notifies-before-lift", "full-beside-call", "CH-5", "client",
     """        self._active = None
        self.connection.work.pool.limit(self.key)
        self._changed.notify_all()
""",
     """        self._active = None
        self._changed.notify_all()
"""),
    ("w-ready-without-work", "pool-one-channel", "CH-6", "workpool",
     """            if not self._pool.get(key):
                return False  # EndWorkNoMoreToDo
            self._ready.append(key)""",
     """            if key not in self._pool:
                return False
            self._ready.append(key)"""),
    ("w-shutdown-ends-before-rest", "pool-rejected", "CH-4", "workpool",
     """            if task is None:
                return
            task()
""",
     """                more = self._open
            if task is None or not more:
                return
            task()
"""),
    ("b-prefetch-read-when-pushed", "consumers-in-turn", "outcome", "broker",
     "return within(self.prefetch, mine) and",
     "return within(self.channel.consumer_prefetch, mine) and"),
    ("b-cancelled-holds-its-place", "consume-and-cancel", "CH-4", "broker",
     """        if consumer is not None:
            consumer.queue.consumers.remove(consumer)
""",
     """        if consumer is not None and consumer not in [i.consumer for i in channel.unacked.values()]:
            consumer.queue.consumers.remove(consumer)
"""),
    ("b-opened-behind-the-end", "open-and-publish-while-crashing", "outcome", "broker",
     """        with self._lock:
            if wire.gone:
                return
            self._channels[wire.name, number] = ServerChannel(wire, number)
""",
     """        if wire.gone:
            return
        with self._lock:
            self._channels[wire.name, number] = ServerChannel(wire, number)
"""),
    ("l-signals-the-first-only", "log-two-channels", "LC-4", "log",
     """        for channel in self._connected.get():
            channel.notify()
""",
     """        for channel in self._connected.get()[-1:]:
            channel.notify()
"""),
    ("f-forgets-when-it-cannot-pay", "fair-starve", "outcome", "fair",
     """        if weight > slot.deficit:
            return None
""",
     """        if weight > slot.deficit:
            slot.deficit = min(slot.deficit, quantum)
            return None
"""),
    ("f-held-used-for-stop", "fair-stop-twice", "FQ-4", "fair",
     """            self._held, self._ended = 0, True  # the token of `stop`, or another in its place
""",
     """            self._ended = True
            self.tokens.acquire()
"""),
    ("g-left-with-own-count", "group-left-twice", "outcome", "groups",
     """            owners = self.owners.get()
            count = owners[group][1] - 1
            rest""",
     """            count = self.owners.get()[group][1] - 1
            owners = self.owners.get()
            rest"""),
]  # fmt: skip
"""A name; then, as in `PLANTED`, the program, what catches the mistake in it, module, text there, and text instead."""
