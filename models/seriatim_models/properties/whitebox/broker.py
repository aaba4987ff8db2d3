"""QS, EX, NL, RT: the server side that the client needs (article "The RabbitMQ Threading Model")."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Violations
from seriatim_models.properties.whitebox.client_events import (
    Client,
    Held,
    channel,
    held,
)

# ---- acknowledgements


class Qs1(Client):
    """A case is a settlement, a push under a prefetch, and at rest a consumer with room whose queue got messages."""

    id = "QS-1"
    sentence = (
        "Unacknowledged deliveries of a channel never exceed its prefetch; an ack, nack or reject frees "
        "exactly what it settles, multiple included; "
        "at rest no message is left that a consumer of its queue has room for."
    )
    reads = frozenset(
        {
            "srv_publish", "srv_route", "srv_consume", "srv_cancel", "srv_qos", "srv_push", "srv_settle",
            "srv_requeue", "srv_close", "srv_delete", "srv_rest",
        }
    )  # fmt: skip

    def cases(self, events: list[Event], bad: Violations) -> int:
        """A got message counts against no prefetch, and auto-ack knows none."""
        tested = 0
        server = Pushing()
        for e in events:
            here = server.unacked[channel(e)]
            if e.ev == "srv_settle":
                tested += 1
                tag = e.dtag or 0
                right = self._freed(here, tag, bool(e.multiple))
                if set(catalogue.tags(e)) != right:
                    why = (
                        f"settling {tag}{' and all before' if e.multiple else ''} freed "
                        f"{sorted(catalogue.tags(e))}, not {sorted(right)}"
                    )
                    bad.append((why, [e]))
            server.see(e)
            if e.ev == "srv_push" and not e.autoack and e.ctag:
                for most, pushed, whose in server.limits((e.conn, e.ch, e.ctag)):
                    tested += most > 0
                    if 0 < most < len(pushed):
                        why = f"{whose} has {len(pushed)} unacknowledged, its prefetch is {most}"
                        bad.append((why, pushed))
            elif e.ev == "srv_rest":
                for consumer, consume in server.with_room():
                    tested += consume.q in server.ready
                    for left in server.left_for(consume):
                        why = f"{consumer[2]} has room, and {left.m} is left in {left.q}"
                        bad.append((why, [consume, left]))
        return tested

    @staticmethod
    def _freed(out: Iterable[int], tag: int, multiple: bool) -> set[int]:
        """Return what settling a tag frees: nothing if it is not outstanding, for then it is refused (basic.ack)."""
        if multiple and tag == 0:
            return set(out)
        if tag not in out:
            return set()
        return {t for t in out if t == tag or (multiple and t < tag)}


ConsumerKey = tuple[str, int | None, str]
"""What names a consumer: connection, channel, consumer tag."""


class Pushing:
    """What is ready in the server's queues, its consumers, and what each channel has unacknowledged."""

    def __init__(self) -> None:
        self.unacked: dict[tuple[str, int | None], dict[int, Event]] = defaultdict(dict)
        """By channel: delivery tag -> push."""
        self.ready: dict[str, dict[int, Event]] = {}
        """By queue: position -> the route of the message, or what put it back."""
        self.consumers: dict[ConsumerKey, Event] = {}
        """The consumers that are there, each with what made it."""
        self._total: dict[tuple[str, int | None], int] = {}
        self._published: dict[str, Event] = {}

    def see(self, e: Event) -> None:
        """Bring the state forward by an event."""
        here = self.unacked[channel(e)]
        if e.ev == "srv_publish":
            self._published[e.m] = e
        elif e.ev in ("srv_route", "srv_requeue"):
            self.ready.setdefault(e.q, {})[e.pos or 0] = e
        elif e.ev == "srv_delete":
            self.ready.pop(e.q, None)
        elif e.ev == "srv_consume" and catalogue.ok(e):
            self.consumers[e.conn, e.ch, e.ctag] = e
        elif e.ev == "srv_cancel":
            self.consumers.pop((e.conn, e.ch, e.ctag), None)
        elif e.ev == "srv_qos":
            self._total[channel(e)] = e.prefetch or 0
        elif e.ev == "srv_close":
            here.clear()
            self.consumers = {c: at for c, at in self.consumers.items() if c[:2] != channel(e)}
        elif e.ev == "srv_settle":
            for t in catalogue.tags(e):
                here.pop(t, None)
        elif e.ev == "srv_push":
            self.ready.get(e.q, {}).pop(e.pos or 0, None)
            if not e.autoack and e.dtag is not None:
                here[e.dtag] = e

    def limits(self, consumer: ConsumerKey) -> list[tuple[int, list[Event], str]]:
        """The limits that a consumer is under (0 is none), with the pushes that count against each, and whose it is."""
        conn, ch, ctag = consumer
        consume = self.consumers.get(consumer)
        pushed = [p for p in self.unacked[conn, ch].values() if p.ctag]
        mine = [p for p in pushed if p.ctag == ctag and (consume is None or p.i > consume.i)]
        own = 0 if consume is None else consume.prefetch or 0
        return [(own, mine, ctag), (self._total.get((conn, ch), 0), pushed, f"{conn}.{ch}")]

    def with_room(self) -> Iterator[tuple[ConsumerKey, Event]]:
        """The consumers to which one more could be pushed, with what made them."""
        for consumer, consume in self.consumers.items():
            limits = self.limits(consumer)
            if consume.autoack or all(not 0 < most <= len(pushed) for most, pushed, _ in limits):
                yield consumer, consume

    def left_for(self, consume: Event) -> Iterator[Event]:
        """What is ready in a consumer's queue and may be pushed to it."""
        for left in self.ready.get(consume.q, {}).values():
            publish = self._published.get(left.m)
            if not (consume.nolocal and publish is not None and publish.conn == consume.conn):
                yield left


class Qs2(Client):
    """A case is a message that goes back, or comes again."""

    id = "QS-2"
    sentence = (
        "Channel or connection close returns every unacknowledged message to its old place, "
        "marked redelivered."
    )
    reads = frozenset(
        {
            "srv_open", "srv_route", "srv_push", "srv_settle", "srv_requeue", "srv_close", "srv_gone",
            "srv_delete", "srv_rest",
        }
    )  # fmt: skip

    def cases(self, events: list[Event], bad: Violations) -> int:  # noqa: C901, PLR0912  # a branch per event
        """The old place is the position from routing; it holds for messages that a nack or reject puts back as well."""
        place: dict[tuple[str, str], int | None] = {}
        out: dict[Held, Event] = {}
        returned: dict[tuple[str, str], Event] = {}
        closed: dict[tuple[str, int | None], Event] = {}
        tested = 0
        for e in events:
            if e.ev == "srv_route":
                place[e.q, e.m] = e.pos
            elif e.ev == "srv_push":
                back = returned.pop((e.q, e.m), None)
                if back is not None:
                    tested += 1
                    if not e.redelivered:
                        bad.append((f"{e.m} came again and was not marked redelivered", [back, e]))
                if not e.autoack:
                    out[held(e)] = e
            elif e.ev == "srv_settle" and not e.requeue:
                for t in catalogue.tags(e):
                    out.pop((e.conn, e.ch, t), None)
            elif e.ev == "srv_requeue":
                tested += 1
                out.pop(held(e), None)
                returned[e.q, e.m] = e
                order = catalogue.order(e)
                due = place.get((e.q, e.m), e.pos)
                if e.pos != due or order != sorted(order):
                    why = f"{e.m} went back to position {e.pos} among {order}, its place is {due}"
                    bad.append((why, [e]))
            elif e.ev == "srv_close":
                closed[channel(e)] = e
            elif e.ev == "srv_gone":
                for k in {(h[0], h[1]) for h in out if h[0] == e.conn}:
                    closed.setdefault(k, e)
            elif e.ev == "srv_rest":
                ended = [(p, closed[h[:2]]) for h, p in out.items() if h[:2] in closed]
                self._at_rest(e, ended, returned, bad)
        return tested

    @staticmethod
    def _at_rest(
        rest: Event,
        ended: list[tuple[Event, Event]],
        returned: dict[tuple[str, str], Event],
        bad: Violations,
    ) -> None:
        """Compare what the server has with what it owes.

        `ended` has pushes that are unacknowledged, with the end of their channel; `returned` what went back.
        """
        queues = catalogue.queues_at_rest(rest)
        ready = {
            (q, m): (position, flag) for q, items in queues.items() for m, position, flag in items
        }
        for push, end in ended:
            if push.q in queues:
                why = f"{push.m} was unacknowledged at the close and never went back"
                bad.append((why, [push, end]))
        for (q, m), back in returned.items():
            if q in queues and ready.get((q, m)) != (back.pos, True):
                why = f"{m} went back to {q} and is not there, marked redelivered"
                bad.append((why, [back, rest]))


class Qs3(Client):
    """A case is a push without acknowledgement."""

    id = "QS-3"
    sentence = (
        "Auto-ack settles on push; a crash of the client then loses what it had not processed "
        "(shown, not hidden)."
    )
    reads = frozenset({"srv_push", "srv_requeue", "srv_rest"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        settled: dict[tuple[str, str], Event] = {}
        tested = 0
        for e in events:
            if e.ev == "srv_rest":
                there = {
                    (q, m) for q, items in catalogue.queues_at_rest(e).items() for m, _, _ in items
                }
                keeps = {m for ms in catalogue.unacked(e).values() for m in ms}
                for (q, m), push in settled.items():
                    if (q, m) in there or m in keeps:
                        bad.append((f"{m} was settled by its push and {q} has it still", [push, e]))
                continue
            if (e.q, e.m) in settled:
                bad.append((f"{e.m} was settled by its push and came back", [settled[e.q, e.m], e]))
            if e.ev == "srv_push" and e.autoack:
                tested += 1
                settled[e.q, e.m] = e
        return tested


# ---- exclusive, no-local, routing


class Ex1(Client):
    """A case is a consume that conflicts with another, a queue declared again, and an exclusive one's owner's end."""

    id = "EX-1"
    sentence = (
        "An exclusive consumer is the queue's only consumer; a second consume is refused in either order. "
        "An exclusive queue dies with its connection, and a queue that is there is not declared otherwise."
    )
    reads = frozenset(
        {
            "srv_queue",
            "srv_consume",
            "srv_cancel",
            "srv_close",
            "srv_gone",
            "srv_delete",
            "srv_rest",
        }
    )

    def cases(self, events: list[Event], bad: Violations) -> int:  # noqa: C901, PLR0912  # a branch per event
        there: dict[str, dict[tuple[str, int | None, str], Event]] = defaultdict(dict)
        declared: dict[str, Event] = {}
        owned: dict[str, Event] = {}
        doomed: dict[str, Event] = {}
        tested = 0
        for e in events:
            if e.ev == "srv_queue":
                first = declared.setdefault(e.q, e)
                tested += first is not e
                if catalogue.owner(first) != catalogue.owner(e):
                    bad.append((f"{e.q} was declared, and is there otherwise", [first, e]))
                if catalogue.owner(first):
                    owned[e.q] = first
            elif e.ev == "srv_consume":
                others = there[e.q].values()
                conflict = [c for c in others if c.exclusive or e.exclusive]
                tested += bool(conflict)
                if conflict and catalogue.ok(e):
                    bad.append(
                        (f"{e.ctag} consumes {e.q} beside {conflict[0].ctag}", [conflict[0], e])
                    )
                if not conflict and not catalogue.ok(e):
                    bad.append((f"{e.ctag} was refused {e.q}, and nothing stood against it", [e]))
                if catalogue.ok(e):
                    there[e.q][e.conn, e.ch, e.ctag] = e
            elif e.ev in ("srv_cancel", "srv_close", "srv_gone"):
                for consumers in there.values():
                    for c in list(consumers):
                        if c[0] == e.conn and (
                            e.ev == "srv_gone" or (c[1] == e.ch and e.ctag in ("", c[2]))
                        ):
                            del consumers[c]
                if e.ev == "srv_gone":
                    dies = {q: e for q, d in owned.items() if catalogue.owner(d) == e.conn}
                    tested += len(dies)
                    doomed |= dies
            elif e.ev == "srv_delete":
                declared.pop(e.q, None)
                owned.pop(e.q, None)
                doomed.pop(e.q, None)
            elif e.ev == "srv_rest":
                for q, end in doomed.items():
                    bad.append(
                        (f"{q} outlives {end.conn}, whose exclusive queue it is", [owned[q], end])
                    )
        return tested


class Nl1(Client):
    """A case is a message that is ready in a queue of which a consumer of its own connection is no-local."""

    id = "NL-1"
    sentence = "A no-local consumer never gets what its own connection published."
    reads = frozenset(
        {
            "srv_publish", "srv_route", "srv_requeue", "srv_consume", "srv_cancel", "srv_close", "srv_delete",
            "srv_push",
        }
    )  # fmt: skip

    def cases(self, events: list[Event], bad: Violations) -> int:
        published = {e.m: e for e in events if e.ev == "srv_publish"}
        tested = 0
        server = Pushing()
        for e in events:
            if e.ev == "srv_push":
                consume = server.consumers.get((e.conn, e.ch, e.ctag))
                own = published.get(e.m)
                if consume is not None and consume.nolocal and own and own.conn == e.conn:
                    bad.append((f"{e.ctag} got {e.m} of its own connection", [own, e]))
            server.see(e)
            if e.ev in ("srv_route", "srv_requeue"):
                meets = [(e, c) for c in server.consumers.values() if c.q == e.q]
            elif e.ev == "srv_consume" and catalogue.ok(e):
                meets = [(m, e) for m in server.ready.get(e.q, {}).values()]
            else:
                continue
            tested += sum(
                bool(c.nolocal) and m.m in published and published[m.m].conn == c.conn
                for m, c in meets
            )
        return tested


class Rt1(Client):
    """A case is a published message."""

    id = "RT-1"
    sentence = (
        "A published message reaches each queue bound to its exchange once, "
        "in publish order per channel."
    )
    reads = frozenset({"srv_queue", "srv_bind", "srv_publish", "srv_route", "srv_delete"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        queues: set[str] = set()
        bound: set[tuple[str, str, str]] = set()
        due: dict[str, tuple[Event, set[str]]] = {}
        got: Counter[tuple[str, str]] = Counter()
        where: dict[tuple[str, str], Event] = {}
        number: dict[str, int] = {}
        last: dict[tuple[str, int | None, str], Event] = {}
        for e in events:
            if e.ev == "srv_queue":
                queues.add(e.q)
            elif e.ev == "srv_delete":
                queues.discard(e.q)
                bound = {b for b in bound if b[2] != e.q}
            elif e.ev == "srv_bind":
                bound.add((catalogue.exchange(e), e.key or "", e.q))
            elif e.ev == "srv_publish":
                x, key = catalogue.exchange(e), e.key or ""
                to = {q for b, k, q in bound if b == x and k in ("*", key)} if x else {key}
                due[e.m] = (e, to & queues)
                number[e.m] = e.i
            else:
                got[e.m, e.q] += 1
                where[e.m, e.q] = e
                before = last.get((e.conn, e.ch, e.q))
                if before is not None and (
                    number.get(before.m, 0) > number.get(e.m, e.i)
                    or (before.pos or 0) > (e.pos or 0)
                ):
                    bad.append((f"{e.m} stands behind {before.m} in {e.q}", [before, e]))
                last[e.conn, e.ch, e.q] = e
        for m, (publish, to) in due.items():
            reached = {q for (x, q), n in got.items() if x == m and n}
            if reached != to:
                bad.append((f"{m} reached {sorted(reached)}, not {sorted(to)}", [publish]))
            for q in reached:
                if got[m, q] != 1:
                    bad.append((f"{m} reached {q} {got[m, q]} times", [publish, where[m, q]]))
        return len(due)
