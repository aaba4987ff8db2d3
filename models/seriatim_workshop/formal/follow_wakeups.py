"""Which step of `spec/induction/wakeups.py` each operation of a queue that is pulled from is."""

from __future__ import annotations

from typing import Any

from seriatim_workshop.formal.concrete import NotThat
from seriatim_workshop.formal.follow_entries import wants
from seriatim_workshop.formal.follower import (
    CALLS,
    Follower,
    Node,
    Participants,
    linking,
    queue_of,
    value,
)
from seriatim_workshop.formal.recorder import HostOperation


class WakeupFollower(Follower):
    """Holds the wake-ups of one queue's acquiring consumers against `wakeups`."""

    system = "wakeups"
    fields = {  # noqa: RUF012  # see `Follower.fields`
        "available": ("whether QueueEntry.state is AVAILABLE", "_available"),
        "lies": ("the permits of its client's semaphore", "_lies"),
        "listed": ("whether Consumer.in_list is a node of Interested", "_listed"),
        "listens": ("whether a browser's Consumer.in_list is a node of NonAcquiring", "_listens"),
    }

    def __init__(self, participants: Participants, queue: str) -> None:
        super().__init__(participants)
        self.queue = queue
        self._entries: dict[str, Node] = {}
        self._consumers: dict[str, Node] = {}
        self._browsers: dict[str, Node] = {}
        self._permits: dict[str, Any] = {}
        """By consumer: the semaphore on which its client waits, once it was used."""
        self._targets: list[Any] = []
        """Those that an IO thread took to serve them."""
        self._freed: tuple[str, str] = ("", "")
        """The thread that set a group free just now, and the group."""
        self._looks: dict[str, str] = {}
        """By thread: on whose behalf it looks."""
        self._moves: dict[str, str] = {}
        """By thread: where the consumer goes that it moves."""
        self._rivals: list[str] = []
        """Consumers that are of higher priority than some other."""
        self._now = 0

    # ---- what a field is in the reference

    def _available(self, m: str) -> bool:
        return bool(value(self._entries[m].state).name == "AVAILABLE")

    def _listed(self, c: str) -> str | None:
        """Only Interested is seen by others, and only while nobody moves the consumer is its field its list."""
        consumer = self._consumers[c]
        node = consumer.in_list
        if node is None or value(node.marked) or not kind_is(node.list_name, "Interested"):
            return None
        return "INTERESTED" if value(node.next) is not None else None

    def _listens(self, b: str) -> bool | None:
        node = self._browsers[b].in_list
        if node is None or not kind_is(node.list_name, "NonAcquiring"):
            return None
        if value(node.marked):
            return False
        return (
            True if value(node.next) is not None else None
        )  # the last may be linked still to come

    def _lies(self, c: str) -> int | None:
        permits = self._permits.get(c)
        return None if permits is None else int(permits.value)

    def check_end(self) -> None:
        """Raises `NotThat` if anybody has still to look or to pull, or an invariant does not hold."""
        if self.outside:
            return
        for t in self.members("Thread"):
            self._end_walk(t)
            self.take("settle", t=t)
        for c in self._consumers:
            if self.state.get("drawn", c) and not self.takes("let_it_be", c=c):
                raise NotThat(f"{c} was woken, and nobody has pulled for it since")
            self._pulled_again(c)
        super().check_end()

    def _pulled_again(self, c: str) -> None:
        """A thread of the hand-over pulls again after a message; what other clients do is their own."""
        consumer = self._consumers[c]
        target = consumer.target
        served = target in self._targets and consumer in target.consumers
        waits = self.state.get("listed", c) == "NOTIFIED"
        if served and waits and self.state.get("phase", c) == "AWAKE":
            raise NotThat(f"{c} was given a message, stays in Notified, and nobody pulls again")

    # ---- steps

    def step(self, event: HostOperation) -> str:
        if self.outside:
            return ""
        t, what = event.thread, event.what
        if what == "record":
            return self._record(event)
        if what == "now":
            self._time(t, event.new)
        owner, kind = event.owner, event.kind
        taken = ""
        if what in ("acquire", "release"):
            return self._lock(event, kind)
        if kind == "targets":
            taken = self._wake(t) or self._take_target(event)
        elif event.cell == f"{self.queue}.Interested":
            self._pass_on(t, what)
        elif event.cell == f"{self.queue}.groups" and event.writes:
            taken = self._groups(event)
        elif isinstance(owner, self.lib.Consumer) and owner.queue.name == self.queue:
            taken = self._of_consumer(event, kind)
        elif isinstance(owner, self.lib.Node) and queue_of(owner.list_name) == self.queue:
            taken = self._of_node(event, kind)
        if what in ("get", "now"):
            self._observe(t)
        return taken

    # ---- records: calls, walks, moves

    def _record(self, event: HostOperation) -> str:
        t, given = event.thread, event.new
        if event.cell == "queue" and given["q"] == self.queue and given["kind"] != "pull":
            self.outside = "it pushes"
        elif event.cell == "qcm_move" and given["at"] == "leave":
            self._moves[t] = given["new"]
        elif (
            event.cell == "walk"
            and given["at"] == "begin"
            and queue_of(given["list"]) == self.queue
        ):
            if kind_is(given["list"], "NonAcquiring"):
                self._announce(t)
        elif event.cell == "notify":
            self._wakes_browser(t, given["sub"])
            woken = self._mine(given["sub"])
            given_to = woken is not None and self.state.get("giving", t, woken)
            if woken is not None and not given_to and not self.state.get("permit", woken):
                raise NotThat(f"{t} notifies {woken}, and has not moved it to Notified")
        elif event.cell == "attempt" and given["ph"] == "invoke":
            self._try_to_take(self._mine(given["sub"]))
        elif event.cell == "pull" and given["ph"] == "invoke":
            c = self._mine(given["sub"])
            if c is not None:
                self._end_walk(t)
                self.take("begin_pull", t=t, c=c)
        elif event.cell == "pull" and given["ph"] == "ok":
            self._end_pull(t, self._mine(given["sub"]), given["m"])
        if event.cell in CALLS and given.get("ph") == "ok":
            self._end_walk(t)
            self.take("settle", t=t)
        return ""

    def _mine(self, name: str) -> str | None:
        return next((c for c, each in self._consumers.items() if each.name == name), None)

    def _announce(self, t: str) -> None:
        self._end_walk(t)
        prepared = [m for m in self._entries if self.state.get("preparing", t, m)]
        m = self.context.about.get(t, "")
        if m in prepared:
            self.take("announce", t=t, m=m)
        elif m in self._entries and self._entries[m].message.group:
            self.take("announce_again", t=t, m=m)
        elif prepared:
            self.take("announce", t=t, m=prepared[0])
        else:
            return
        for c in self._consumers:
            if not self.takes("skip_absent", t=t, c=c):
                self.takes("skip_unwilling", t=t, c=c)

    def _pass_on(self, t: str, what: str) -> None:
        """Who is Interested is about to be read: by who is bound to walk to the others, if anybody is."""
        if what != "get":
            return
        if not self.state.get("walking", t):
            self._announce(t)  # to those who take, before browsers or without any
        for c in self._consumers:
            if self.state.get("phase", c) == "DRY" and self.state.get("runs", c) == t:
                self.take("run_dry", t=t, c=c)
            if self.state.get("owing", t, c):
                self._end_walk(t)
                self.take("pass_on", t=t, c=c)
                for d in self._consumers:
                    self.takes("skip_absent", t=t, c=d)

    def _end_walk(self, t: str) -> None:
        """Whatever the thread does next, its walk is over: it must have come to everybody."""
        self._looks.pop(t, None)
        if self.state.get("walking", t):
            left = [c for c in self._consumers if self.state.get("todo", t, c)]
            if left:
                raise NotThat(f"{t} ends its walk, and has not looked for {left[0]}")
            self.take("end_walk", t=t)

    def _end_pull(self, t: str, c: str | None, m: str) -> None:
        if c is None:
            return
        self._end_walk(t)
        if m:
            self.take("return_with_something", t=t, c=c)
        elif self.state.get("phase", c) != "IDLE":
            self.take("decline", t=t, c=c)

    # ---- messages

    def _of_node(self, event: HostOperation, kind: str) -> str:
        t, owner = event.thread, event.owner
        if kind == "state" and isinstance(owner, self.lib.QueueEntry):
            return self._state(event, owner.message.id)
        if kind == "marked" and event.writes:
            return self._marked(t, owner)
        if linking(event) and isinstance(event.new, self.lib.QueueEntry):
            return self._linked(t, event.new)
        if linking(event) and isinstance(event.new, self.lib.ListEntry):
            return self._listed_in(t, event.new)
        return ""

    def _linked(self, t: str, entry: Node) -> str:
        m = entry.message.id
        self.member("Message", m)
        self._entries[m] = entry
        for c, consumer in self._consumers.items():
            self._fit(c, consumer, m, entry)
        for b in self._browsers:
            self._shows(b, m)
        if self._available(m):
            self._end_walk(t)
            return self._made_available("make_available", t, m)
        return ""

    def _made_available(self, action: str, t: str, m: str) -> str:
        self.take(action, t=t, m=m)
        self._stand_back()
        return action

    def _stand_back(self) -> None:
        """Whoever comes before others, and has no use for a message at this moment, leaves it to them."""
        for d in self._rivals:
            for c in self._consumers:
                if self.state.get("higher", d, c):
                    for m in self._entries:
                        if not self.state.get("stood_back", c, d, m):
                            self.takes("stand_back", c=c, d=d, m=m)

    def _try_to_take(self, c: str | None) -> None:
        """An attempt begins: whoever comes before others has no use for a message from now on, or has."""
        if c is not None and any(self.state.get("higher", d, c) for d in self._rivals):
            self.take("try_to_take", c=c)
            self._stand_back()

    def _fit(self, c: str, consumer: Node, m: str, entry: Node) -> None:
        """Say whether a consumer could take a message, when either of them is new."""
        self.state.put("wants", c, m, wants(consumer, entry))
        self.state.put("fit", c, m, self._could_take(c, m))

    def _wanted(self, c: str, m: str) -> bool:
        """Whether a consumer wants a message, if it is available: selected, not expired, its group not another's."""
        message = self._entries[m].message
        owned = self.context.groups.get((self.queue, message.group))
        expired = message.expires and self._now > message.expires
        selected = bool(self.state.get("wants", c, m))
        return selected and owned in (None, c) and not expired

    def _could_take(self, c: str, m: str) -> bool:
        """The same, and nobody of higher priority who wants work wants it."""
        mine = self._consumers[c].priority
        return self._wanted(c, m) and not any(
            each.priority > mine and value(each.wants_work) and self._wanted(d, m)
            for d, each in self._consumers.items()
        )

    def _refit(self, t: str) -> None:
        """Take the steps that make who could take what it is in the reference, after something that decides it."""
        for c in sorted(self._consumers, key=lambda c: int(self._consumers[c].priority)):
            for m in self._entries:
                if self.state.get("fit", c, m) and not self._could_take(c, m):
                    self.take("make_unfit", c=c, m=m)
        for m, entry in self._entries.items():
            for c in self._consumers:
                if self.state.get("fit", c, m) or not self._could_take(c, m):
                    continue
                if self._freed == (t, entry.message.group) and self.takes("make_fit", t=t, m=m):
                    break
                if not self.takes("make_fit_for_itself", t=t, c=c, m=m):
                    self._step_aside(t, c, m)
        self._freed = ("", "")
        self._stand_back()

    def _step_aside(self, t: str, c: str, m: str) -> None:
        for d in self._consumers:
            if self.takes("step_aside", t=t, d=d, c=c, m=m):
                return
        if not self.takes("make_fit_unasked", c=c, m=m):
            raise NotThat(f"{c} could take {m} from now on, and {t} is not bound to look for it")

    def _state(self, event: HostOperation, m: str) -> str:
        t = event.thread
        if event.what == "get" and not self._available(m):
            self.takes("forget", t=t, m=m)
        if not event.writes or m not in self._entries:
            return ""
        was, now = self.state.get("available", m), self._available(m)
        if now and not was:
            self._end_walk(t)
            grouped = event.old.name == "ACQUIRED" and self._entries[m].message.group
            return self._made_available("release_of_a_group" if grouped else "make_available", t, m)
        if was and not now:
            return self._removed(t, m, event.new.name)
        return ""

    def _removed(self, t: str, m: str, state: str) -> str:
        if state != "ACQUIRED":
            return self.take("remove", m=m)
        c = self.context.caller(t, "attempt")
        if self.context.call(t, "pull") and self.state.get("phase", c) in ("LOOKING", "DRY"):
            return self.take("take", t=t, c=c, m=m)
        return self.take("take_outside_a_pull", c=c, m=m)

    def _time(self, t: str, now: int) -> None:
        self._now = now
        self._pass_by()
        self._refit(t)

    def _groups(self, event: HostOperation) -> str:
        """A group is owned by a consumer, and unfit for all others; or free, and fit for whoever wants it."""
        for g in {**event.old, **event.new}:
            old, new = event.old.get(g), event.new.get(g)
            if (old is None) == (new is None):
                continue
            owner = None if new is None else self.context.consumer(new[0])
            self.context.groups[self.queue, g] = owner
            if owner is None:
                self._freed = (event.thread, g)
            self._refit(event.thread)
        return ""

    # ---- looks

    def _observe(self, t: str) -> None:
        """The thread has read something in a look: it has seen each message that is of no use at this moment."""
        c = self._looks.get(t)
        if c is None:
            return
        walks = self.state.get("walking", t) and self.state.get("todo", t, c)
        pulls = self.state.get("phase", c) == "LOOKING" and self.state.get("runs", c) == t
        for m in self.members("Message"):
            if walks and not self.state.get("seen", t, c, m):
                self.takes("see", t=t, c=c, m=m)
            if pulls and not self.state.get("scanned", c, m):
                self.takes("scan", t=t, c=c, m=m)
        if walks:
            self.takes("skip_useless", t=t, c=c)
        if pulls:
            self.takes("find_nothing", t=t, c=c)

    def _leave(self, t: str, d: str, m: str) -> None:
        """The thread asks whether one of higher priority that selects it wants work: if so, it is left to that one."""
        c = self._looks[t]
        others = self._left_to(t)
        if others:
            self.take("leave_it_rather_to", t=t, d=others[0], e=d)
        elif self.state.get("walking", t) and self.state.get("todo", t, c):
            self.take("leave_it_to", t=t, c=c, d=d, m=m)
        elif self.state.get("phase", c) == "LOOKING" and self.state.get("runs", c) == t:
            self.take("find_it_left", t=t, c=c, d=d, m=m)

    def _left_to(self, t: str) -> list[str]:
        return [d for d in self._consumers if self.state.get("left_to", t, d)]

    def _notify(self, t: str, c: str) -> str:
        """Say why a consumer goes to Notified: it stays there, something was left to it, or a walk found something.

        A walk of the thread that pulls is that of a call in its callback.
        """
        pulls = self.state.get("phase", c) == "TAKEN" and self.state.get("runs", c) == t
        if pulls and not self.state.get("walking", t):
            return self.take("stay_notified", t=t, c=c)
        for d in self._left_to(t):
            if d != c:
                self.take("leave_it_rather_to", t=t, d=d, e=c)
            mine = [
                each
                for each in self._consumers
                if self.state.get("phase", each) == "DRY" and self.state.get("runs", each) == t
            ]
            return self.take("notify_the_higher", t=t, c=[*mine, c][0], d=c)
        return self.take("notify", t=t, c=c)

    # ---- consumers

    def _of_consumer(self, event: HostOperation, kind: str) -> str:
        t, consumer = event.thread, event.owner
        c = self.context.consumer(consumer)
        if c in self._browsers and kind == "pointer" and event.writes:
            self._pass_by()
        if c not in self._consumers:
            return ""
        if kind == "pointer" and event.what == "get":
            self._looks[t] = c
            if self.state.get("phase", c) == "DRY" and self.state.get("runs", c) == t:
                self.take("look_again", t=t, c=c)
        elif kind == "wants_work" and event.writes and not event.new:
            lowered = event.old is not None and event.old is not False
            taken = ""
            if self.state.get("listed", c) != "NOT_INTERESTED" and lowered:
                taken = self.take("lower_the_flag", t=t, c=c)
            self._refit(t)
            return taken
        elif kind == "wants_work" and event.writes:
            taken = ""
            if self.state.get("listed", c) == "NOT_INTERESTED":
                taken = self.take("raise_the_flag", t=t, c=c)
            self._refit(t)
            return taken
        elif kind == "wants_work" and event.new and self._looks.get(t) not in (None, c):
            entry = value(self._consumers[self._looks[t]].pointer).entry
            if isinstance(entry, self.lib.QueueEntry) and wants(consumer, entry):
                self._leave(t, c, entry.message.id)
        return ""

    def _lock(self, event: HostOperation, kind: str) -> str:
        t = event.thread
        if kind == "wake":
            return self._permit(event) if event.writes else ""
        known = self.context.lock(event.source)
        if known is None or known[0] != "moving" or event.what != "release":
            return ""
        c = self.context.consumer(known[1])
        if c in self._consumers and self.state.get("left_to", t, c):
            return self.take("find_it_busy", t=t, d=c)
        pulling = c in self._consumers and self.state.get("phase", c) == "PULLING"
        if pulling and self.state.get("runs", c) == t:
            return self.take("begin_look", t=t, c=c)
        return ""

    def _permit(self, event: HostOperation) -> str:
        """A wake-up is given or drawn. That of a browser is known, and obliges nobody."""
        name = event.cell.removesuffix(".wake")
        c = next((c for c in reversed(self._consumers) if self._waits_on(c, name, event)), None)
        if c is None:
            browser = any(each.name == name for each in self._browsers.values())
            return "stutter: a browser's wake-up" if browser else ""
        if event.source is not None:
            self._permits[c] = event.source
        if event.what == "acquire":
            left = 0 if event.source is None else event.source.value
            return self.take("draw", c=c, n=left)
        return self._wake(event.thread, c)

    def _waits_on(self, c: str, name: str, event: HostOperation) -> bool:
        """Whether a semaphore is the one on which the client of a consumer waits."""
        consumer = self._consumers[c]
        mine = getattr(consumer.target, "wake", None)
        return consumer.name == name and (event.source is None or mine is event.source)

    def _wake(self, t: str, whom: str = "") -> str:
        for c in self._consumers:
            if self.state.get("giving", t, c) and whom in ("", c):
                return self.take("wake", t=t, c=c)
        return ""

    def _take_target(self, event: HostOperation) -> str:
        """An IO thread takes a target out of its session's set, and with it all wake-ups of its consumers."""
        taken = ""
        if event.writes and len(event.new) < len(event.old):
            self._targets.append(event.old[0])
            for c, consumer in self._consumers.items():
                if consumer.target is event.old[0] and self.state.get("lies", c):
                    taken = self.take("draw", c=c, n=0)
        return taken

    def _marked(self, t: str, node: Node) -> str:
        c = self.context.consumer(node.consumer)
        if c in self._browsers and kind_is(node.list_name, "NonAcquiring"):
            return self.take("stop_listening", b=c)
        if c not in self._consumers or kind_is(node.list_name, "All"):
            return ""
        to, here = self._moves.get(t, ""), self.state.get("listed", c)
        taken = ""
        if to == "Notified":
            taken = self._notify(t, c)
        elif to in ("NotInterested", "Removed") and here != "NOT_INTERESTED":
            taken = self.take("lose_interest", t=t, c=c)
        if to != "Interested":
            for u in self.members("Thread"):
                self.takes("skip_absent", t=u, c=c)
        return taken

    def _listed_in(self, t: str, node: Node) -> str:
        consumer = node.consumer
        c = self.context.consumer(consumer)
        if kind_is(node.list_name, "All"):
            if not consumer.acquires:
                return self._browser(c, consumer)
            self.member("Consumer", c)
            for d, other in self._consumers.items():
                self.state.put("higher", c, d, consumer.priority > other.priority)
                self.state.put("higher", d, c, consumer.priority < other.priority)
            self._consumers[c] = consumer
            for m, entry in self._entries.items():
                self._fit(c, consumer, m, entry)
            every = self._consumers
            self._rivals = [d for d in every if any(self.state.get("higher", d, e) for e in every)]
            self._stand_back()
            if value(consumer.wants_work):
                self.take("raise_the_flag", t=t, c=c)
            self._refit(t)
        elif kind_is(node.list_name, "NonAcquiring") and c in self._browsers:
            return self.take("listen", t=t, b=c)
        elif kind_is(node.list_name, "Interested") and c in self._consumers:
            if self.state.get("listed", c) == "NOTIFIED":
                return self.take("show_rest", t=t, c=c)
            self._end_walk(t)
            return self.take("find_interest", t=t, c=c)
        return ""

    # ---- browsers

    def _browser(self, b: str, consumer: Node) -> str:
        """One that is in the list of all from now on."""
        self._browsers[b] = consumer
        self.member("Browser", b)
        for m in self._entries:
            self._shows(b, m)
        return ""

    def _shows(self, b: str, m: str) -> None:
        """Say whether a browser could be shown a message, when either of them is new."""
        self.state.put("likes", b, m, wants(self._browsers[b], self._entries[m]))
        self.state.put("has_passed", b, m, self._has_passed(b, m))

    def _has_passed(self, b: str, m: str) -> bool:
        """Whether its pointer is past it, or it has expired."""
        entry, pointer = self._entries[m], value(self._browsers[b].pointer)
        here, there = pointer.entry.place(), entry.place()
        expired = entry.message.expires and self._now > entry.message.expires
        return bool(expired or here > there or (here == there and pointer.passed))

    def _pass_by(self) -> None:
        """Time, or a pointer, has gone on."""
        for b in self._browsers:
            for m in self._entries:
                if not self.state.get("has_passed", b, m) and self._has_passed(b, m):
                    self.take("pass_it", b=b, m=m)

    def _wakes_browser(self, t: str, name: str) -> None:
        for b, consumer in reversed(self._browsers.items()):
            if consumer.name == name:
                self.take("wake_browser", t=t, b=b)
                return


def kind_is(list_name: str, kind: str) -> bool:
    """Whether a list of this name is of this kind: ``q.Interested.0`` is of Interested."""
    return list_name.split(".")[1:2] == [kind]
