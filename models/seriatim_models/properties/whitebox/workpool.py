"""CH: the work pool of the client, which runs callbacks (article "The RabbitMQ Threading Model")."""

from __future__ import annotations

from collections import defaultdict

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Violations
from seriatim_models.properties.whitebox.client_events import (
    SOURCE,
    Client,
    channel,
    connection,
)

CHANNELING = "Channeling Work (Powell & Harrop)"

LATE = "no reply in time"
"""Why a call failed whose caller's patience ended."""


class Ch1(Client):
    """A case is a callback."""

    id = "CH-1"
    sentence = "At most one callback of a channel runs at a time."
    reads = frozenset({"work_start", "work_end"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        running: dict[str, Event] = {}
        starts = 0
        for e in events:
            k = catalogue.pool_key(e)
            if e.ev == "work_end":
                running.pop(k, None)
                continue
            starts += 1
            if k in running:
                bad.append((f"two callbacks of {k} run at once", [running[k], e]))
            running[k] = e
        return starts


class Ch2(Client):
    """A case is a callback after another of its channel."""

    id = "CH-2"
    sentence = "A channel's callbacks run in the order in which the server pushed them."
    reads = frozenset({"srv_push", "work_add", "work_start"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        """Work that no server pushed is to run in the order in which it was added, if its adding did not overlap."""
        order: dict[str, int] = {}
        pushed: dict[str, Event] = {}
        done: dict[str, Event] = {}
        last: dict[str, Event] = {}
        tested = 0
        for e in events:
            if e.ev == "srv_push":
                label = f"{e.conn}.{e.ch}:{e.dtag}"
                order[label] = e.i
                pushed[label] = e
            elif e.ev == "work_add":
                if e.ph == "invoke":
                    order.setdefault(catalogue.work(e), e.i)
                    pushed.setdefault(catalogue.work(e), e)
                else:
                    done[catalogue.work(e)] = e
            else:
                k, w = catalogue.pool_key(e), catalogue.work(e)
                before = last.get(k)
                if before is not None and {catalogue.work(before), w} <= pushed.keys():
                    tested += 1
                    if self._later(pushed[catalogue.work(before)], pushed[w], done.get(w)):
                        why = f"{catalogue.work(before)} ran before {w}, which came first"
                        bad.append((why, [before, e]))
                last[k] = e
        return tested

    @staticmethod
    def _later(first: Event, second: Event, second_done: Event | None) -> bool:
        """Whether what ran first certainly came after what ran second."""
        if first.ev == "srv_push":
            return first.i > second.i
        return second_done is not None and second_done.i < first.i


class Ch3(Client):
    """A case is a callback."""

    id = "CH-3"
    sentence = "Callbacks in flight never exceed min(channels, pool size), and reach it when work is there."
    reads = frozenset(
        {
            "pool_size", "pool_register", "pool_unregister", "work_add", "work_start", "work_end",
            "srv_push", "srv_close", "cli_rest",
        }
    )  # fmt: skip

    def cases(self, events: list[Event], bad: Violations) -> int:  # noqa: C901, PLR0912  # a branch per event
        """At rest callbacks that run wait for something; then no other channel may have work if a thread is free."""
        size: dict[str, int] = {}
        tested = 0
        channels: set[str] = set()
        running: dict[str, Event] = {}
        todo: dict[str, dict[str, Event]] = defaultdict(dict)
        for e in events:
            k = catalogue.pool_key.get(e, "") or f"{e.conn}.{e.ch}"
            if e.ev == "pool_size":
                size[e.conn] = catalogue.threads(e)
            elif e.ev == "pool_register":
                channels.add(k)
            elif e.ev == "pool_unregister":
                channels.discard(k)
                todo.pop(k, None)
            elif e.ev == "srv_close":
                todo.pop(k, None)
            elif e.ev == "srv_push" and e.ctag:
                todo[k][f"{k}:{e.dtag}"] = e
            elif e.ev == "work_add":
                if e.ph == "invoke":
                    todo[k].setdefault(catalogue.work(e), e)
                elif e.ph == "fail":
                    todo[k].pop(catalogue.work(e), None)
            elif e.ev == "work_start":
                todo[k].pop(catalogue.work(e), None)
                running[catalogue.work(e)] = e
                tested += 1
                conn = connection(k)
                here = [r for r in running.values() if connection(catalogue.pool_key(r)) == conn]
                # A channel that was unregistered may still be at its last callback.
                known = {c for c in channels if connection(c) == conn} | {
                    catalogue.pool_key(r) for r in here
                }
                threads = size.get(conn, len(here))
                if len(here) > min(len(known), threads):
                    why = (
                        f"{len(here)} callbacks run on {len(known)} channels and {threads} threads"
                    )
                    bad.append((why, here))
            elif e.ev == "work_end":
                running.pop(catalogue.work(e), None)
            elif e.ev == "cli_rest":
                busy = {catalogue.pool_key(r) for r in running.values()}
                for key, items in todo.items():
                    free = size.get(connection(key), 0) - len(busy)
                    if items and key not in busy and busy and free > 0:
                        why = f"{key} has work, {len(busy)} callbacks run, {free} threads are free, nothing moves"
                        bad.append((why, [next(iter(items.values()))]))
        return tested


class Ch4(Client):
    """A case is a work item that is to be added."""

    id = "CH-4"
    sentence = (
        "No work item is lost or stranded: queued work implies a registered runnable, "
        "also after a callback raised."
    )
    source = f"{SOURCE}; {CHANNELING}"
    kind = "liveness"
    reads = frozenset(
        {
            "work_add", "work_start", "work_end", "pool_unregister", "cli_rest", "srv_close", "cli_frame",
        }
    )  # fmt: skip

    def cases(self, events: list[Event], bad: Violations) -> int:  # noqa: C901, PLR0912  # a branch per event
        """At rest: every item that was added ran, or was refused to its caller, or went with its channel.

        So did every delivery that the reader took from the wire. Nobody still waits to add.
        A callback that never ends excuses what is queued behind it in its channel, and whoever waits to put it there.
        """
        rest = any(e.ev == "cli_rest" for e in events)
        todo: dict[str, dict[str, Event]] = defaultdict(dict)
        adding: dict[str, Event] = {}
        running: dict[str, Event] = {}
        read: dict[str, dict[str, Event]] = defaultdict(dict)
        unregistered: set[str] = set()
        closed: set[str] = set()
        tested = 0
        for e in events:
            k = catalogue.pool_key.get(e, "") or f"{e.conn}.{e.ch}"
            w = catalogue.work.get(e, "")
            if e.ev == "work_add":
                read[k].pop(w, None)
                if e.ph == "invoke":
                    adding[w] = todo[k][w] = e
                    tested += 1
                else:
                    adding.pop(w, None)
                    if e.ph == "fail":
                        todo[k].pop(w, None)
            elif e.ev == "work_start":
                if w not in todo[k]:
                    bad.append((f"{w} ran and was not there to run", [e]))
                todo[k].pop(w, None)
                running[k] = e
            elif e.ev == "work_end":
                running.pop(k, None)
            elif e.ev == "pool_unregister":
                unregistered.add(k)
                for dropped in catalogue.dropped(e):  # what is in a block by now still runs
                    todo[k].pop(dropped, None)
            elif e.ev == "cli_rest":
                ready, runnables = catalogue.ready(e), catalogue.runnables(e)
                if len(ready) > runnables:
                    bad.append((f"{', '.join(ready)} ready, and {runnables} runnables", [e]))
            elif e.ev == "srv_close":
                closed.add(k)
                read.pop(k, None)
            elif e.ev == "cli_frame" and catalogue.frame_kind(e) == "deliver" and k not in closed:
                read[k][f"{k}:{e.dtag}"] = e
        if not rest:
            return 0
        bad += [
            (f"{w} was added and never ran", [e])
            for k, items in todo.items()
            for w, e in items.items()
            if k not in running and w not in adding
        ]
        bad += [
            (f"whoever adds {w} waits for ever", [e])
            for w, e in adding.items()
            if catalogue.pool_key(e) not in running or catalogue.pool_key(e) in unregistered
        ]
        bad += [
            (f"{w} was read from the wire and never given to the pool", [e])
            for items in read.values()
            for w, e in items.items()
        ]
        return tested


class Ch5(Client):
    """A case is a work item that is put into a queue with a capacity."""

    id = "CH-5"
    sentence = "A channel's queue of work exceeds its capacity only while its connection has a synchronous call out."
    source = "RabbitMQ Java client, WorkPool"
    reads = frozenset({"pool_put", "cli_call", "cli_frame"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        """A call is out until the reader has its reply, even if its caller waits no more.

        It lifts the limits just before the record of its sending, and a put of another thread may come between.
        """
        asked: set[tuple[str, int | None, int]] = set()
        out: set[tuple[str, int | None, int]] = set()
        unless_sent: list[tuple[set[tuple[str, int | None, int]], tuple[str, list[Event]]]] = []
        tested = 0
        for e in events:
            if e.ev == "cli_call":
                call = (e.conn, e.ch, catalogue.call(e))
                if e.ph == "invoke":
                    asked.add(call)
                else:
                    asked.discard(call)
                if e.ph == "info":
                    out.add(call)
                    unless_sent = [u for u in unless_sent if call not in u[0]]
                elif e.ph == "fail" and catalogue.why(e) != LATE:
                    out.discard(call)
            elif e.ev == "cli_frame":
                if catalogue.frame_kind(e) == "reply":
                    out.discard((e.conn, e.ch, catalogue.call(e)))
                elif catalogue.frame_kind(e) == "close":
                    out = {c for c in out if c[:2] != channel(e)}
                elif catalogue.frame_kind(e) == "gone":
                    out = {c for c in out if c[0] != e.conn}
            elif e.ev == "pool_put" and (capacity := catalogue.capacity(e)) is not None:
                tested += 1
                conn = connection(catalogue.pool_key(e))
                if catalogue.waiting_items(e) > capacity and not any(c[0] == conn for c in out):
                    why = (
                        f"{catalogue.pool_key(e)} has {catalogue.waiting_items(e)} items waiting, "
                        f"{capacity} are allowed, and no call is out"
                    )
                    unless_sent.append(({c for c in asked if c[0] == conn}, (why, [e])))
        bad += [violation for _, violation in unless_sent]
        return tested


class Ch6(Client):
    """A case is a block."""

    id = "CH-6"
    sentence = "A channel is ready only with work to do: no block that a runnable takes is empty."
    source = CHANNELING
    reads = frozenset({"pool_block"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        bad += [
            (f"the block of {catalogue.pool_key(e)} is empty", [e])
            for e in events
            if not catalogue.taken_items(e)
        ]
        return len(events)
