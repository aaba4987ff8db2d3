"""Mistakes of order that were planted by hand: each program that was added for one catches it, by the name given."""

from __future__ import annotations

import ast

import pytest

from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.check import Judge
from seriatim_models.programs.mutant_modules import load, source
from seriatim_workshop.mutation.consequences import consequence
from seriatim_workshop.mutation.exhaustive import modules_with
from seriatim_workshop.mutation.outcomes import OutcomeSet
from seriatim_workshop.mutation.searching import Kill, kill_of, search

from .mistakes_by_hand import BY_HAND

PLANTED: list[tuple[str, str, str, str, str]] = [
    ("log-replay-fails", "LC-6", "log",
     """        handler(parked.message)
        self._note_parked(parked.place, None, b"")""",
     """        self._note_parked(parked.place, None, b"")
        handler(parked.message)"""),
    ("log-replay-again", "outcome", "log",
     """        if parked.place not in [p.place for p in self.parked()]:
            raise Misuse(f"channel {self.name} has nothing parked from {tuple(parked.place)}")
        handler(parked.message)""",
     """        handler(parked.message)
        if parked.place not in [p.place for p in self.parked()]:
            raise Misuse(f"channel {self.name} has nothing parked from {tuple(parked.place)}")"""),
    ("log-parked-and-stopped", "LC-6", "log",
     """        self.attempts = 0
        self._save()""",
     """        self._save()
        self.attempts = 0"""),
    ("log-stopped-in-pause", "outcome", "log",
     """                self._save()
                self._back_off()""",
     """                self._back_off()
                self._save()"""),
    ("log-commit-refused", "outcome", "log",
     """        self._check(position)
        if position < self.position:
            raise Misuse(f"channel {self.name} stands at {tuple(self.position)} already")
        self._position.set(position)""",
     """        if position < self.position:
            raise Misuse(f"channel {self.name} stands at {tuple(self.position)} already")
        self._position.set(position)
        self._check(position)"""),
    ("log-disk-fails", "outcome", "log",
     """    clear(storage, name, end, mark)
    record = record_bytes(name, end, payload)
    storage.append(name, record)
    storage.sync(name)
    end = ChainEnd(end.offset + len(record), HEADER.unpack_from(record)[2])""",
     """    record = record_bytes(name, end, payload)
    storage.append(name, record)
    storage.sync(name)
    end = ChainEnd(end.offset + len(record), HEADER.unpack_from(record)[2])
    clear(storage, name, end, mark)"""),
    ("log-disk-fails", "outcome", "log",
     """            clear(self.storage, segment_name(self._segment), self._end, self._mark)
            self._segment, self._end = self._segment + 1, ChainEnd(0, self._end.check)""",
     """            self._segment, self._end = self._segment + 1, ChainEnd(0, self._end.check)
            clear(self.storage, segment_name(self._segment), self._end, self._mark)"""),
    ("log-replay-disk-fails", "LC-6", "log",
     """            end = append_record(self.storage, self._parking, self._parked_to, payload, mark)
            self._parked_to = end""",
     """            at = self._parked_to
            self._parked_to = ChainEnd(at.offset + HEADER.size + len(payload), at.check)
            self._parked_to = append_record(self.storage, self._parking, at, payload, mark)"""),
    ("log-handler-exits", "outcome", "log",
     """        try:
            while (delivery := self._next()) is not None:
                self._handle(handler, delivery)
        finally:
            self.topic.strike(self)
            self._state.set(AWAY)""",
     """        while (delivery := self._next()) is not None:
            self._handle(handler, delivery)
        self.topic.strike(self)
        self._state.set(AWAY)"""),
    ("log-take-over", "LC-3", "log",
     """            self.topic.strike(self)
            self._state.set(AWAY)""",
     """            self._state.set(AWAY)
            self.topic.strike(self)"""),
    ("log-stop-and-news", "outcome", "log",
     """            while not self._stopping and not self._unread():
                self._sleep()
            if self._stopping:
                return None""",
     """            if self._stopping:
                return None
            while not self._stopping and not self._unread():
                self._sleep()"""),
    ("log-leave-and-join", "LC-3", "log",
     """        while True:
            there = self._connected.get()
            rest = tuple(c for c in there if c is not channel)
            if self._connected.compare_and_set(there, rest):
                return""",
     """        there = self._connected.get()
        rest = tuple(c for c in there if c is not channel)
        self._connected.compare_and_set(there, rest)"""),
    ("log-parked-while-parking", "outcome", "log",
     """        with self._parks:
            end = self._parked_to""",
     """        end = ChainEnd(self.storage.size(self._parking), 0)"""),
    ("log-reconnect", "LC-4", "log",
     """            self._stopping = True
            self._news.notify()
            self._asked.notify()""",
     """            self._news.notify()
            self._asked.notify()
        with self._lock:
            self._stopping = True"""),
    ("log-damaged", "LC-8", "log",
     """    elif marked.offset and read_chain(storage, name, marked.offset) != marked:
        raise Damaged(name, marked.offset, "the last record is not the one that was marked")
    end, size = marked, storage.size(name)""",
     """    end, size = ChainEnd(0, 0), storage.size(name)"""),
    ("log-crash-while-opened", "LC-8", "log",
     """            storage.replace(f"{name}.torn", storage.read(name, end.offset, size - end.offset))
            break""",
     """            torn = storage.read(name, end.offset, size - end.offset)
            clear(storage, name, end, mark)
            storage.replace(f"{name}.torn", torn)
            break"""),
    ("fair-stop-in-handler", "outcome", "fair",
     """        while not self._stopping.get():""",
     """        if self._stopping.get():
            return
        while True:"""),
    ("rpc-three-callers", "RPC-1", "client",
     """        while self._active is not None:""",
     """        if self._active is not None:"""),
    ("closed-for-one-reason", "outcome", "client",
     """        with self._lock:
            if self.closed is not None:
                return""",
     """        if self.closed is not None:
            return
        with self._lock:"""),
    ("limits-of-others", "QS-1", "broker",
     """            channel.consumer_prefetch = prefetch
""",
     """            channel.consumer_prefetch = prefetch
            for consumer in channel.consumers.values():
                consumer.prefetch = prefetch
"""),
    ("exclusive-on-its-channel", "EX-1", "broker",
     "any(c.exclusive for c in queue.consumers)",
     "any(c.exclusive for c in queue.consumers if c.channel is not channel)"),
    ("limits-of-others", "outcome", "broker",
     "for i in self.channel.unacked.values() if i.consumer is not None]",
     "for i in self.channel.unacked.values()]"),
    ("limits-of-others", "QS-1", "broker",
     """        mine = pushed.count(self)
""",
     """        pushed = [c for c in pushed if c.tag in self.channel.consumers]
        mine = pushed.count(self)
"""),
    ("consumers-in-turn", "outcome", "broker",
     """                queue.consumers.remove(consumer)
                queue.consumers.append(consumer)
                channel = consumer.channel""",
     """                channel = consumer.channel"""),
    ("consumers-in-turn", "outcome", "broker",
     """            channel.consumer_prefetch = prefetch""",
     """            channel.consumer_prefetch = prefetch
            for consumer in channel.consumers.values():
                consumer.prefetch = prefetch"""),
    ("refused-and-not-there", "outcome", "broker",
     """        if taken or (exclusive and queue.consumers):
            raise Closed(403, f"ACCESS_REFUSED - {name!r} in exclusive use")
        consumer = ServerConsumer(
            tag, queue, channel, auto_ack, exclusive, no_local, channel.consumer_prefetch
        )
        queue.consumers.append(consumer)""",
     """        consumer = ServerConsumer(
            tag, queue, channel, auto_ack, exclusive, no_local, channel.consumer_prefetch
        )
        queue.consumers.append(consumer)
        if taken or (exclusive and len(queue.consumers) > 1):
            raise Closed(403, f"ACCESS_REFUSED - {name!r} in exclusive use")"""),
    ("refused-and-handed-over", "outcome", "broker",
     """            else:
                if call:
                    wire.send(Frame("reply", number, call, value))""",
     """                return
            if call:
                wire.send(Frame("reply", number, call, value))"""),
    ("group-left-twice", "outcome", "groups",
     """        while group:
            owners = self.owners.get()
            count = owners[group][1] - 1""",
     """        count = self.owners.get()[group][1] - 1 if group else 0
        while group:
            owners = self.owners.get()"""),
    ("groups-left-and-joined", "outcome", "groups",
     """            if self.owners.compare_and_set(owners, {**owners, group: (owner, count + 1)}):
                break""",
     """            self.owners.set({**owners, group: (owner, count + 1)})
            break"""),
    ("priority-wakes", "WK-1", "queue",
     """            if self.entries.overtaking:
                self._rewind_all(entry)
            self._arrived(entry)""",
     """            self._arrived(entry)
            if self.entries.overtaking:
                self._rewind_all(entry)"""),
    ("woken-past-the-unable", "WK-1", "queue",
     """            if consumer.has_interest(entry) and self._notify(consumer):""",
     """            if consumer.has_interest(entry):
                self._notify(consumer)"""),
    ("credit-kept", "ES-6", "queue",
     """        first = self._first_to_take(consumer, found[0].entry)
        if first is not consumer:
            return None, first
        if not consumer.take_credit():
            return None, None
""",
     """        if not consumer.take_credit():
            return None, None
        first = self._first_to_take(consumer, found[0].entry)
        if first is not consumer:
            return None, first
"""),
    ("credit-in-vain", "ES-6", "queue",
     """            if self.credit.compare_and_set(left, left - 1):
                return True""",
     """            self.credit.set(left - 1)
            return True"""),
    ("interested-at-once", "QL-1", "queue",
     """            self.by_priority.compare_and_set(
                pairs, tuple(sorted((*pairs, pair), key=lambda p: -p[0]))
            )""",
     """            self.by_priority.set(tuple(sorted((*pairs, pair), key=lambda p: -p[0])))"""),
    ("push-turns-kept", "SO-7", "queue",
     """            entry = self.attempt(consumer, path, only) if consumer.wants_work.get() else None
            if entry is not None:
                self._last_delivered.set(consumer.in_all)""",
     """            self._last_delivered.set(consumer.in_all)
            entry = self.attempt(consumer, path, only) if consumer.wants_work.get() else None
            if entry is not None:"""),
    ("pause", "QL-1", "queue",
     """            if consumer.in_list is not None:
                self._list(origin, consumer.priority).delete(consumer.in_list)
            consumer.listed = to
            consumer.in_list = None
            if to != REMOVED:
                members = self._list(to, consumer.priority)
                consumer.in_list = ListEntry(self.host, members.name, consumer)
                members.add(consumer.in_list)""",
     """            before = consumer.in_list
            consumer.listed = to
            consumer.in_list = None
            if to != REMOVED:
                members = self._list(to, consumer.priority)
                consumer.in_list = ListEntry(self.host, members.name, consumer)
                members.add(consumer.in_list)
            if before is not None:
                self._list(origin, consumer.priority).delete(before)"""),
    ("push", "IM-3", "queue",
     """        if self._job_pending.compare_and_set(False, True):""",
     """        if not self._job_pending.get():
            self._job_pending.set(True)"""),
    ("immediate-ready", "outcome", "queue",
     """        if not message.not_before:
            if self.entries.overtaking:
                self._rewind_all(entry)
            self._arrived(entry)
        if message.immediate:
            self.undelivered(entry)""",
     """        if message.immediate:
            self.undelivered(entry)
        if not message.not_before:
            if self.entries.overtaking:
                self._rewind_all(entry)
            self._arrived(entry)"""),
    ("immediate-after-exclusive", "IM-4", "queue",
     """        if consumer.exclusive:
            self.exclusive.set(None)
        self.all.delete(consumer.in_all)""",
     """        self.all.delete(consumer.in_all)
        if consumer.exclusive:
            self.exclusive.set(None)"""),
    ("push-publishes-when-served", "WK-1", "queue",
     """                self._last_delivered.set(consumer.in_all)
                consumer.target.send(consumer, entry)""",
     """                consumer.target.send(consumer, entry)
                self._last_delivered.set(consumer.in_all)"""),
    ("push-shown-first", "outcome", "queue",
     """            if self.deliver_to(consumer, path, entry) and consumer.acquires:""",
     """            if consumer.acquires and self.deliver_to(consumer, path, entry):"""),
    ("push-turns-unaided", "outcome", "queue",
     """        for consumer in self._in_turn() if alone is None else (alone,):
            if self.deliver_to(consumer, path, entry) and consumer.acquires:
                return
        if not entry.message.immediate and entry.available():
            self.deliver_async()""",
     """        if not entry.message.immediate and entry.available():
            self.deliver_async()
        for consumer in self._in_turn() if alone is None else (alone,):
            if self.deliver_to(consumer, path, entry) and consumer.acquires:
                return"""),
    ("depth-read", "QL-2", "queue",
     """        self.depth.add(1)
        entry = self.entries.add(message, DELAYED if message.not_before else AVAILABLE)""",
     """        entry = self.entries.add(message, DELAYED if message.not_before else AVAILABLE)
        self.depth.add(1)"""),
    ("handover-one", "WK-1", "handover",
     """        self._ready.add(connection)
        self._permits.release()""",
     """        self._permits.release()
        self._ready.add(connection)"""),
    ("handover-meanwhile", "WK-6", "handover",
     """            if self._waiting.compare_and_set(waiting, waiting[1:]):
                return waiting[0]""",
     """            self._waiting.set(waiting[1:])
            return waiting[0]"""),
    ("handover-notified-twice", "WK-6", "handover",
     """        if self._scheduled.compare_and_set(False, True):""",
     """        if not self._scheduled.get():
            self._scheduled.set(True)"""),
    ("log-opened-at-once", "LC-2", "log",
     """        with self._writing:
            if name in self._names:
                raise Misuse(f"channel {name} is open already")
            self._names.add(name)""",
     """        with self._writing:
            if name in self._names:
                raise Misuse(f"channel {name} is open already")
        with self._writing:
            self._names.add(name)"""),
    ("log-refused-and-tried", "outcome", "log",
     """        self._check(position)
        if position < self.position:""",
     """        self.attempts = 0
        self._check(position)
        if position < self.position:"""),
    ("log-files-crash", "LC-2", "log",
     """        os.replace(new, self._folder / name)
        self._sync_folder()""",
     """        self._sync_folder()
        os.replace(new, self._folder / name)"""),
    ("log-files-crash", "outcome", "log",
     """            file.write(data)
            file.flush()
            os.fsync(file.fileno())""",
     """            file.write(data)
            os.fsync(file.fileno())
            file.flush()"""),
    ("log-files-fail", "LC-3", "log",
     """        try:
            os.fsync(folder)
        finally:
            os.close(folder)""",
     """        os.fsync(folder)
        os.close(folder)"""),
    ("publish-while-closing", "outcome", "client",
     """            self._ensure_open()
            self.server.request(self.connection.wire, self.number, act)

    # ---- what the reader does""",
     """            self._ensure_open()
        self.server.request(self.connection.wire, self.number, act)

    # ---- what the reader does"""),
    ("open-two", "outcome", "client",
     """        with self._lock:
            if self._closed is not None:
                raise self._closed
            channels = self._channels.get()
            number""",
     """        channels = self._channels.get()
        with self._lock:
            if self._closed is not None:
                raise self._closed
            number"""),
    ("publish-when-closed", "AP-1", "client",
     """        self._end(error)
        with self._lock:
            self._gone = True
            self._over.notify_all()""",
     """        with self._lock:
            self._gone = True
            self._over.notify_all()
        self._end(error)"""),
    ("publish-when-failed", "AP-1", "client",
     """        for channel in channels.values():
            channel.shut_down(error)
        if tell:
            self.server.disconnect(self.wire, error)""",
     """        if tell:
            self.server.disconnect(self.wire, error)
        for channel in channels.values():
            channel.shut_down(error)"""),
    ("pool-unregister-twice", "outcome", "workpool",
     """            if key not in self._pool:
                return
            dropped""",
     """            if key not in self._pool:
                pass
            dropped"""),
    ("group-arrives", "SP-2", "queue",
     """            self._dispose(entry)
            if self.groups.leave(entry.message.group, consumer):
                self._announce_group(entry.message.group)""",
     """            self._dispose(entry)
            group = entry.message.group
            behind = [e for e in self.entries if e.message.group == group and e.available()]
            if self.groups.leave(group, consumer):
                for each in behind:
                    self._announce(each)"""),
    ("closed-when-woken", "WK-1", "queue",
     """        self.host.record("notify", sub=consumer.name)
        consumer.target.notify_work(consumer)""",
     """        self.host.record("notify", sub=consumer.name)
        with consumer.moving:
            consumer.target.notify_work(consumer)"""),
    ("closed-when-woken", "WK-1", "queue",
     """        self.host.record("notify", sub=consumer.name)
        consumer.target.notify_work(consumer)""",
     """        self.host.record("notify", sub=consumer.name)
        with consumer.send_lock:
            consumer.target.notify_work(consumer)"""),
    ("handover-served-in-vain", "WK-1", "handover",
     """        target = self._targets.take()
        if target is not None and target.process():
            self._targets.add(target)
        return""",
     """        waiting = self._targets._waiting.get()
        if waiting and not waiting[0].process():
            self._targets.take()
        return"""),
    ("fair-weighs-another", "outcome", "fair",
     """        weight = slot.weight(delivery)
        if weight <= 0:
            raise ValueError(f"slot {slot.name}: a weight is positive, not {weight}")
        with self._lock:
""",
     """        with self._lock:
            weight = slot.weight(delivery)
            if weight <= 0:
                raise ValueError(f"slot {slot.name}: a weight is positive, not {weight}")
"""),
    ("fair-delivers-itself", "outcome", "fair",
     """            delivery, _ = taken
            well = False
            try:
                well = self._handle(delivery) is None
            finally:
                self.settle(delivery, well)""",
     """            delivery, _ = taken
            with self._lock:
                well = self._handle(delivery) is None
            self.settle(delivery, well)"""),
    ("fair-delivers-itself", "FQ-3", "fair",
     """            delivery, _ = taken
            well = False
            try:
                well = self._handle(delivery) is None
            finally:
                self.settle(delivery, well)""",
     """            delivery, _ = taken
            well = self._handle(delivery) is None
            with self._lock:
                self.settle(delivery, well)"""),
    ("log-replay-calls", "LC-6", "log",
     """        handler(parked.message)
        self._note_parked(parked.place, None, b"")""",
     """        with self._parks:
            handler(parked.message)
        self._note_parked(parked.place, None, b"")"""),
    ("subscribes-when-woken", "WK-1", "queue",
     """            self._join(consumer)
        self._begin(consumer)""",
     """            self._join(consumer)
            self._begin(consumer)"""),
    ("push-runs-at-once", "WK-1", "queue",
     """            if consumer.wants_work.get_and_set(None) is None:
                return
        self._close(consumer)""",
     """            if consumer.wants_work.get_and_set(None) is None:
                return
            self._close(consumer)"""),
    ("group-freed-before", "SP-2", "queue",
     """            self._dispose(entry)
            if self.groups.leave(entry.message.group, consumer):
                self._announce_group(entry.message.group)""",
     """            self._dispose(entry)
            if self.groups.leave(entry.message.group, consumer):
                for other in self.entries:
                    same = other.message.group == entry.message.group
                    if same and other.place() > entry.place() and other.available():
                        self._announce(other)"""),
    ("freed-by-release", "WK-11", "queue",
     """            if self.groups.leave(entry.message.group, consumer):
                self._announce_group(entry.message.group)
            else:
                self._announce(entry)""",
     """            self._announce(entry)
            if self.groups.leave(entry.message.group, consumer):
                self._announce_group(entry.message.group)"""),
    ("turn-lost", "QL-5", "queue",
     """        for consumer in self.manager.interested():
            if consumer.has_interest(entry) and""",
     """        for consumer in sorted(self.all.consumers(), key=lambda c: -c.priority):
            if consumer.acquires and consumer.has_interest(entry) and"""),
    ("group-freed-behind", "SP-2", "queue",
     """            if entry.message.group == group and entry.available():
                self._announce(entry)""",
     """            if entry.message.group == group and entry.available():
                self._announce(entry)
            break"""),
    ("priority-gap", "outcome", "queue",
     """            if entry is not None:
                break
            entry = lower.next(lower.head)""",
     """            if entry is not None:
                break
            entry = lower.next(lower.head)
            break"""),
    ("due-and-expired", "TM-2", "queue",
     """                self._announce(entry)
            elif""",
     """                self._announce(entry)
                return
            elif"""),
    ("closed-and-not-pulled", "WK-1", "queue",
     """        self.set_notify_work_desired(consumer, False)
        self.manager.remove(consumer)""",
     """        self.manager.remove(consumer)
        self.set_notify_work_desired(consumer, False)"""),
    ("rpc-woken-in-vain", "outcome", "client",
     """        while call.reply is None:
            self._wait(call)""",
     """        if call.reply is None:
            self._wait(call)"""),
    ("close-woken-in-vain", "outcome", "client",
     """            while not self._gone:
                self._over.wait()""",
     """            if not self._gone:
                self._over.wait()"""),
    ("pool-woken-in-vain", "CH-5", "workpool",
     """            while self._full(key):""",
     """            if self._full(key):"""),
    ("log-pause-ended", "outcome", "log",
     """            while not self._stopping:
                if not""",
     """            if not self._stopping:
                if not"""),
    ("close-and-pause", "QL-2", "queue",
     """        changed = self.wants_work.compare_and_set(not desired, desired)
        return""",
     """        changed = self.wants_work.get() is (not desired)
        if changed:
            self.wants_work.set(desired)
        return"""),
    ("close-and-pause", "QL-2", "queue",
     """        entry.marked.set(True)
        self.size.add(-1)""",
     """        self.size.add(-1)
        entry.marked.set(True)"""),
    ("immediate-while-granted", "outcome", "queue",
     """        while (left := self.credit.get()) > 0:
            if self.credit.compare_and_set(left, left - 1):
                return True
        return False""",
     """        left = self.credit.get()
        return left > 0 and self.credit.compare_and_set(left, left - 1)"""),
    ("browsers-and-arrivals", "WK-11", "queue",
     """            if consumer.has_interest(entry):
                self._notify(consumer)""",
     """            self._notify(consumer)"""),
    ("arrivals-of-two-kinds", "WK-11", "queue",
     """            if consumer.has_interest(entry) and self._notify(consumer):""",
     """            if self._notify(consumer) and consumer.has_interest(entry):"""),
    ("freed-beside-arrival", "WK-11", "queue",
     """            if entry.message.group == group and entry.available():
                self._announce(entry)""",
     """            self._announce(entry)"""),
    ("browser-wakes-nobody", "WK-11", "queue",
     """            elif consumer.acquires and (first is None or not self._wake(first)):
                self._notify_other(consumer)
        return entry""",
     """            elif first is None or not self._wake(first):
                self._notify_other(consumer)
        return entry"""),
    ("browse-group", "MG-2", "queue",
     """        if consumer.acquires:
            if not self.groups.join(entry.message.group, consumer):
                return None
            if not""",
     """        if not self.groups.join(entry.message.group, consumer):
            return None
        if consumer.acquires:
            if not"""),
    ("third-refused", "QL-1", "queue",
     """                    raise QueueMisuse(f"queue {self.name} has {other.name}; {name} cannot join it")
""",
     """                    raise QueueMisuse(f"queue {self.name} has {other.name}; {name} cannot join it")
                break
"""),
    ("pull-while-suspended", "outcome", "queue",
     """        if consumer.wants_work.get():
            entry, first = self._attempt(consumer, "pull")
            if""",
     """        if True:
            entry, first = self._attempt(consumer, "pull")
            if"""),
    ("exclusive-handed-back", "QL-6", "queue",
     """        self._close(consumer)
        if consumer.exclusive:
            self.exclusive.set(None)
        self.all.delete(consumer.in_all)  # last: from here on others are admitted""",
     """        if consumer.exclusive:
            self.exclusive.set(None)
        self.all.delete(consumer.in_all)
        self._close(consumer)"""),
    ("woken-one-of-several", "WK-11", "queue",
     """            if other is not consumer and self._notify(other):
                return""",
     """            if other is not consumer:
                self._notify(other)"""),
    ("push-taken-meanwhile", "IM-4", "queue",
     """        if not entry.message.immediate and entry.available():
            self.deliver_async()""",
     """        self.deliver_async()"""),
    ("handover-two-threads", "WK-6", "handover",
     """        while (session := self._sessions.take()) is not None:
            if session.process():
                self._sessions.add(session)
        self.host.record("conn_run", conn=self.name, at="end")
        self._scheduled.set(False)  # rule 6 once more: from here on a notification schedules,
""",
     """        self.host.record("conn_run", conn=self.name, at="end")
        self._scheduled.set(False)  # rule 6 once more: from here on a notification schedules,
        while (session := self._sessions.take()) is not None:
            if session.process():
                self._sessions.add(session)
"""),
    ("handover-once", "WK-1", "handover",
     """        self._permits.acquire()
        connection = self._ready.take()
        assert connection is not None  # there is a permit for each that is ready
        connection.run()""",
     """        connection = self._ready.take()
        self._permits.acquire()
        if connection is not None:
            connection.run()"""),
    ("log-vanished", "LC-8", "log",
     """        if end.offset and record.before != end.check:
            raise Damaged(name, end.offset, "it was not written behind the record before it")
        end = record.end
    return end


def recover(""",
     """        end = record.end
    return end


def recover("""),
    ("log-vanished", "LC-8", "log",
     """            break
        if record.before != end.check:
            raise Damaged(name, end.offset, "it was not written behind the record before it")""",
     """            break"""),
    ("log-old-mark", "LC-8", "log",
     """        end = record.end
    if end != marked:""",
     """        end = record.end
        break
    if end != marked:"""),
    ("log-full-for-two", "outcome", "log",
     """            clear(self.storage, segment_name(self._segment), self._end, self._mark)
            self._segment""",
     """            self._writing.release()
            self._writing.acquire()
            clear(self.storage, segment_name(self._segment), self._end, self._mark)
            self._segment"""),
    ("log-closed-and-opened", "LC-8", "log",
     """        if self._closed:
            raise Misuse("the topic is closed")
        if self._end.offset + HEADER.size + len(message) > self.segment_size:
            clear(self.storage, segment_name(self._segment), self._end, self._mark)
            self._segment, self._end = self._segment + 1, ChainEnd(0, self._end.check)
""",
     """        if self._end.offset + HEADER.size + len(message) > self.segment_size:
            clear(self.storage, segment_name(self._segment), self._end, self._mark)
            self._segment, self._end = self._segment + 1, ChainEnd(0, self._end.check)
        if self._closed:
            raise Misuse("the topic is closed")
"""),
    ("log-slow-to-read", "LC-3", "log",
     """                return None
        return self.topic.read(self.position)""",
     """                return None
            return self.topic.read(self.position)"""),
    ("log-opened-step-by-step", "outcome", "log",
     """    if name not in storage.names():
        return None
    text = storage.read(name, 0, storage.size(name))""",
     """    text = storage.read(name, 0, storage.size(name))
    if name not in storage.names():
        return None"""),
    ("log-crash-while-parked", "LC-6", "log",
     """            if self.attempts < self.max_attempts:
                self._save()""",
     """            self._save()
            if self.attempts < self.max_attempts:"""),
    ("log-refused-and-tried", "outcome", "log",
     """        if position < self.position:
            raise Misuse(f"channel {self.name} stands at {tuple(self.position)} already")
        self._position.set(position)
        self.attempts = 0""",
     """        self.attempts = 0
        if position < self.position:
            raise Misuse(f"channel {self.name} stands at {tuple(self.position)} already")
        self._position.set(position)"""),
    ("log-consumed-twice", "outcome", "log",
     """        if not self._state.compare_and_set(CONNECTED, CONSUMING):
            raise""",
     """        connected = self._state.get() == CONNECTED
        self._state.set(CONSUMING)
        if not connected:
            raise"""),
    ("log-consumed-twice", "outcome", "log",
     """        if not self._state.compare_and_set(CONNECTED, CONSUMING):
            raise""",
     """        self._state.set(CONSUMING)
        if False:
            raise"""),
    ("log-not-connected", "AP-1", "log",
     """        if not self._state.compare_and_set(CONNECTED, CONSUMING):
            raise""",
     """        self._state.set(CONSUMING)
        if False:
            raise"""),
    ("log-state-spoilt", "AP-1", "log",
     """            if zlib.crc32(json.dumps(state).encode()) != check:
                raise ValueError("its checksum is wrong")
            return parse(state)""",
     """            parsed = parse(state)
            if zlib.crc32(json.dumps(state).encode()) != check:
                raise ValueError("its checksum is wrong")
            return parsed"""),
    ("log-connect-and-stop", "outcome", "log",
     """            if self._connected.compare_and_set(there, rest):
                return""",
     """            return"""),
    ("log-vanished-behind-old-mark", "LC-8", "log",
     """    if end != marked:
        mark(end)
    clear(""",
     """    clear("""),
    ("log-read-before-damage", "outcome", "log",
     """        while len(found) < limit and (delivery := self.topic.read(position)) is not None:""",
     """        while (delivery := self.topic.read(position)) is not None and len(found) < limit:"""),
    ("pool-interrupted-once", "CH-4", "workpool",
     """            while self._full(key):
                if self._interrupted:""",
     """            interrupted = self._interrupted
            while self._full(key):
                if interrupted:"""),
    ("pool-put-at-once", "CH-5", "workpool",
     """                    raise NotPut("no room in time")
            if key not in self._pool:
                raise Unregistered(f"{key} is not registered")
            queue""",
     """                    raise NotPut("no room in time")
        with self._lock:
            if key not in self._pool:
                raise Unregistered(f"{key} is not registered")
            queue"""),
    ("pool-left-with-a-call", "CH-5", "workpool",
     """            self._unlimited.discard(key)
            self._room.notify_all()
            self.host.record""",
     """            self._room.notify_all()
        with self._lock:
            self._unlimited.discard(key)
            self.host.record"""),
    ("pool-unlimited-for-two", "CH-4", "workpool",
     """                self._unlimited.add(key)
                self._room.notify_all()""",
     """                self._unlimited.add(key)
                self._room.notify()"""),
    ("pool-unregistered-for-two", "CH-4", "workpool",
     """            self._unlimited.discard(key)
            self._room.notify_all()""",
     """            self._unlimited.discard(key)
            self._room.notify()"""),
    ("pool-finished-twice", "outcome", "workpool",
     """        with self._lock:
            if key not in self._in_progress:
                raise Misuse(f"{key} is not in progress")
            self""",
     """        if key not in self._in_progress:
            raise Misuse(f"{key} is not in progress")
        with self._lock:
            self"""),
    ("consume-while-failing", "outcome", "client",
     """                self._active.on_reply()
            self._finish(frame)""",
     """                self._active.on_reply()
        with self._lock:
            self._finish(frame)"""),
    ("closed-before-reply", "outcome", "client",
     """            self.closed = error
            self._finish(""",
     """            self.closed = error
        with self._lock:
            self._finish("""),
    ("full-beside-call", "outcome", "client",
     """        with self._lock:
            if self.closed is not None:
                return
            self.closed = error
            self._finish(Frame("close", error=error))
        self.connection.work.pool.unregister_key(self.key)""",
     """        self.connection.work.pool.unregister_key(self.key)
        with self._lock:
            if self.closed is not None:
                return
            self.closed = error
            self._finish(Frame("close", error=error))"""),
    ("pool-room-for-two", "outcome", "workpool",
     """            if self.capacity is not None:
                self._room.notify_all()""",
     """            if self.capacity is not None:
                self._room.notify()"""),
    ("full-beside-call", "outcome", "client",
     """        self.connection.work.pool.unlimit(self.key)
        self.server.request(self.connection.wire, self.number, call.act, call.number)""",
     """        self.server.request(self.connection.wire, self.number, call.act, call.number)
        self.connection.work.pool.unlimit(self.key)"""),
    ("open-and-publish-while-crashing", "outcome", "broker",
     """            wire.gone = True
            self.host""",
     """            wire.gone = True
        with self._lock:
            self.host"""),
    ("pool-finished-twice", "outcome", "workpool",
     """            self._in_progress.remove(key)
            if not""",
     """        with self._lock:
            self._in_progress.remove(key)
            if not"""),
    ("declare-while-shut-down", "outcome", "client",
     """        self.server.request(self.connection.wire, self.number, call.act, call.number)
""",
     """        self._lock.__exit__(None, None, None)
        self.server.request(self.connection.wire, self.number, call.act, call.number)
        self._lock.__enter__()
"""),
    ("refused-beside-put", "CH-5", "client",
     """        self._ensure_open()
        self._active = call
        self.connection.work.pool.unlimit(self.key)""",
     """        self.connection.work.pool.unlimit(self.key)
        self._ensure_open()
        self._active = call"""),
    ("publish-after-refusal", "outcome", "client",
     """        elif frame.kind == "reply":
            self._on_reply(frame)
        elif frame.error is not None:
            self.shut""",
     """        else:
            self._on_reply(frame)
        if frame.error is not None:
            self.shut"""),
    ("rpc-two-callers", "RPC-1", "client",
     """        while call.reply is None:
            self._wait(call)
        if call.reply.error""",
     """        while call.reply is None:
            self._wait(call)
            call = self._active or call
        if call.reply.error"""),
    ("consumers-in-turn-past-the-full", "outcome", "broker",
     """                queue.consumers.remove(consumer)
                queue.consumers.append(consumer)
                channel =""",
     """                if queue.consumers[0] is consumer:
                    queue.consumers.remove(consumer)
                    queue.consumers.append(consumer)
                channel ="""),
    ("channels-in-turn", "outcome", "workpool",
     "            self._ready.append(key)  # EndWorkMoreToDo: to the tail, so channels take turns",
     "            self._ready.appendleft(key)"),
    ("log-state-spoilt", "LC-8", "log",
     '''        topic.claim(name)
        try:
            parked = load_state(self.storage, f"{name}.parking", "parking file", _parking_state)
            self._parked_to = recover(self.storage, self._parking, parked, self._mark_parked)
            """Where the parking file's last record ends; under `_parks`."""
            if state is None:
                self._save()
''',
     """        topic.claim(name)
        try:
            if state is None:
                self._save()
            parked = load_state(self.storage, f"{name}.parking", "parking file", _parking_state)
            self._parked_to = recover(self.storage, self._parking, parked, self._mark_parked)
"""),
    ("publish-beside-get", "RPC-1", "client",
     """        with self._lock:
            self._ensure_open()
            self.server.request(self.connection.wire, self.number, act)
""",
     """        with self._lock:
            while self._active is not None:
                self._changed.wait()
            self._ensure_open()
            self.server.request(self.connection.wire, self.number, act)
"""),
    ("settled-together", "outcome", "broker",
     """            if requeue:
                self._requeue(channel, t)
            else:
                del channel.unacked[t]
""",
     """            if requeue:
                self._requeue(channel, t)
                self._push_all()
            else:
                del channel.unacked[t]
"""),
    ("settled-together", "outcome", "broker",
     """            if requeue:
                self._requeue(channel, t)
            else:
                del channel.unacked[t]
""",
     """            if requeue:
                self._requeue(channel, t)
            else:
                del channel.unacked[t]
                self._push_all()
"""),
    ("settled-together", "outcome", "broker",
     """            for item in list(queue.ready):
                consumer = next((c for c in queue.consumers if c.may_take(item)), None)
                if consumer is None:
                    continue
                queue.ready.remove(item)
                queue.consumers.remove(consumer)
                queue.consumers.append(consumer)
                channel = consumer.channel
                delivery = self._hand_out(channel, item, consumer, consumer.auto_ack)
                channel.wire.send(Frame("deliver", channel.number, delivery=delivery))
""",
     """            for consumer in list(queue.consumers):
                for item in list(queue.ready):
                    if not consumer.may_take(item):
                        continue
                    queue.ready.remove(item)
                    queue.consumers.remove(consumer)
                    queue.consumers.append(consumer)
                    channel = consumer.channel
                    delivery = self._hand_out(channel, item, consumer, consumer.auto_ack)
                    channel.wire.send(Frame("deliver", channel.number, delivery=delivery))
"""),
    ("fair-own-slot", "outcome", "fair",
     """        quantum = slot.quantum
        while not self._stopping.get():
""",
     """        quantum = slot.quantum
        for _ in range(len(slot.waiting) + 1):
            if self._stopping.get():
                break
"""),
    ("log-crash-while-parked", "outcome", "log",
     """        self._position.set(position)
        self.attempts = 0
        self._save()
""",
     """        self.attempts = 0
        self._save()
        self._position.set(position)
        self._save()
"""),
    ("log-parking-fails", "LC-6", "log",
     """            self._park(delivery, error)
""",
     """            try:
                self._park(delivery, error)
            except OSError:
                self.attempts = 0
                raise
"""),
    ("group-left-by-two", "WK-1", "queue",
     """        ok = entry.change(consumer.acquired, DEQUEUED)
        if ok:
            self._dispose(entry)
            if self.groups.leave(entry.message.group, consumer):
                self._announce_group(entry.message.group)
""",
     """        group = entry.message.group
        last = bool(group) and self.groups.owners.get().get(group, (consumer, 0))[1] == 1
        ok = entry.change(consumer.acquired, DEQUEUED)
        if ok:
            self._dispose(entry)
            self.groups.leave(group, consumer)
            if last:
                self._announce_group(group)
"""),
    ("group-unselected", "WK-1", "queue",
     """        for entry in self.entries:
            if entry.message.group == group and entry.available():
                self._announce(entry)
""",
     """        freed = None
        for entry in self.entries:
            if entry.message.group == group and entry.available():
                self._rewind_all(entry)
                freed = freed or entry
        if freed is not None:
            self._returned(freed)
"""),
    ("subscribes-inside", "WK-1", "queue",
     """            if self.host.now() >= entry.message.not_before and entry.change(DELAYED, AVAILABLE):
                self._announce(entry)
""",
     """            if self.host.now() >= entry.message.not_before and entry.change(DELAYED, AVAILABLE):
                with self._admission:
                    self._announce(entry)
"""),
    ("immediate-ready", "outcome", "queue",
     """            if self.deliver_to(consumer, path, entry) and consumer.acquires:
                return
""",
     """            if self.deliver_to(consumer, path, entry) and consumer.acquires:
                return
            if consumer.acquires and consumer.wants_work.get() and consumer.has_interest(entry):
                break
"""),
    ("push-turn-browser", "SO-7", "queue",
     """                self._last_delivered.set(consumer.in_all)
""",
     """                if consumer.acquires:
                    self._last_delivered.set(consumer.in_all)
"""),
    ("push-executor-exits", "WK-1", "queue",
     """                self._submit(self._job)
            except BaseException as error:
                self._job_pending.set(False)
                if not isinstance(error, Exception):
                    raise
""",
     """                self._submit(self._job)
            except Exception:
                self._job_pending.set(False)
"""),
    ("subscribes-inside", "WK-1", "queue",
     """        self._close(consumer)
        if consumer.exclusive:
            self.exclusive.set(None)
        self.all.delete(consumer.in_all)  # last""",
     """        with self._admission:
            self._close(consumer)
            if consumer.exclusive:
                self.exclusive.set(None)
            self.all.delete(consumer.in_all)  # last"""),
    ("handover-waits-once", "WK-12", "handover",
     """        while True:
            waiting = self._waiting.get()
            if item in waiting:
                return False
            if self""",
     """        while True:
            waiting = self._waiting.get()
            if item in waiting[:1]:
                return False
            if self"""),
]  # fmt: skip
"""Program, what catches the mistake in it, module, text that stands once in it, and what stands there instead."""


@pytest.mark.parametrize(("id", "by", "file", "old", "new"), PLANTED)
def test_a_mistake_of_order_is_caught_by_name(
    id: str, by: str, file: str, old: str, new: str
) -> None:
    caught(id, by, file, old, new)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("id", "by", "file", "old", "new"), [m[1:] for m in BY_HAND], ids=[m[0] for m in BY_HAND]
)
def test_a_mistake_that_no_program_was_made_for_is_caught(
    id: str, by: str, file: str, old: str, new: str
) -> None:
    caught(id, by, file, old, new)


def test_none_of_them_is_one_that_a_program_was_made_for() -> None:
    """As code: what differs in its text only is the same mistake."""

    def changed(file: str, old: str, new: str) -> tuple[str, str]:
        return file, ast.dump(ast.parse(source(file).replace(old, new)))

    seen = {changed(*m[2:]) for m in PLANTED}
    for name, _, _, *mistake in BY_HAND:
        assert changed(*mistake) not in seen, name
        seen.add(changed(*mistake))


def caught(id: str, by: str, file: str, old: str, new: str) -> None:
    """Assert that the program shows the mistake under some schedule, by that name, and holds without it."""
    program = PROGRAMS[id]
    known = OutcomeSet()
    ids = tuple(dict.fromkeys([*program.properties, by])) if by != "outcome" else program.properties
    right = search(program, load(program.reference), Judge(ids), 3000, outcomes=known)
    assert right.exhausted
    assert not right.found
    assert source(file).count(old) == 1
    lib = modules_with(file, source(file).replace(old, new))
    outcomes = sorted(known.found)
    found = search(program, lib, Judge(ids), 3000, outcomes=OutcomeSet(outcomes))
    kill = kill_of(program, found)
    if kill is not None and not kill.named:
        kill = consequence(program, lib, ids, outcomes, 2000)
    assert kill == Kill(by, id)
