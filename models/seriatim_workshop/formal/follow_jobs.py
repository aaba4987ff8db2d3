"""Which step of `spec/induction/jobs.py` each operation of a queue that pushes is."""

from __future__ import annotations

import sys
from typing import Any

from seriatim_workshop.formal.concrete import NotThat
from seriatim_workshop.formal.follow_entries import wants
from seriatim_workshop.formal.follower import (
    Follower,
    Node,
    Participants,
    linking,
    queue_of,
    value,
)
from seriatim_workshop.formal.recorder import HostOperation

CALLS = ("enqueue", "release", "dequeue", "check_status", "work_desired", "close")
"""The calls at whose end their thread is bound to nothing, unless they are part of another call."""

REFUSER = "who refused a job"
"""A thread that is bound to ask for another, or to see that somebody does."""


class JobFollower(Follower):
    """Holds the deliveries of one queue that pushes against `jobs`."""

    system = "jobs"
    fields = {  # noqa: RUF012  # see `Follower.fields`
        "pending": ("PushQueue._job_pending", "_is_pending"),
        "lies": ("whether there is a permit of the executor", "_lies"),
    }

    def __init__(self, participants: Participants, queue: str) -> None:
        super().__init__(participants)
        self.queue = queue
        self._entries: dict[str, Node] = {}
        self._consumers: dict[str, Node] = {}
        self._pending: Any = None
        self._permits: Any = None
        """The executor's, once there was one."""
        self._groups: Any = None
        self._paid: dict[str, int] = {}
        """By consumer: what attempts have paid, and neither spent nor restored."""
        self._deliverable: set[tuple[str, str]] = set()
        self._arriving: dict[str, str] = {}
        """By thread: what it delivers after it enqueued it."""
        self._now = 0

    def _is_pending(self) -> bool:
        return bool(value(self._pending))

    def _lies(self) -> bool | None:
        return None if self._permits is None else self._permits.value > 0

    def step(self, event: HostOperation) -> str:
        if self.outside:
            return ""
        t, kind = event.thread, event.kind
        if event.what == "record":
            self._record(t, event)
            return ""
        if event.what == "now":
            self._now = event.new
            self._update(t)
        elif event.what == "new":
            if event.cell == f"{self.queue}.job_pending":
                self._pending = event.source
            elif event.cell == f"{self.queue}.groups":
                self._groups = event.source
        elif event.cell == f"{self.queue}.job_pending":
            return self._flag(event)
        elif kind == "jobs" and event.writes:
            return self._permit(event)
        elif event.writes and self._concerns(event):
            if kind == "credit":
                self._pays(event)
            self._drops(event)
            self._update(t)
            self._arrives(event)
        elif event.what == "get" and kind == "state":
            self._looks_again(event)
        return ""

    def _concerns(self, event: HostOperation) -> bool:
        """Whether a write decides what could go to whom; who and what is new is noted."""
        if event.kind == "groups":
            return event.cell == f"{self.queue}.groups"
        owner = event.owner
        if isinstance(owner, self.lib.Consumer):
            return owner.queue.name == self.queue and event.kind in ("credit", "wants_work")
        if not isinstance(owner, self.lib.Node) or queue_of(owner.list_name) != self.queue:
            return False
        if linking(event):
            self._comes(event.new)
        elif event.kind == "state" and event.new.name == "ACQUIRED":
            c = next((c for c, each in self._consumers.items() if each.acquired is event.new), "")
            self._paid[c] = max(0, self._paid.get(c, 0) - 1)
        return event.kind in ("next", "state", "marked")

    def _comes(self, node: Node) -> None:
        if isinstance(node, self.lib.QueueEntry):
            self._entries[node.message.id] = node
            self.member("Message", node.message.id)
        elif isinstance(node, self.lib.ListEntry):
            c = self.context.consumer(node.consumer)
            self.member("Consumer", c)
            if node.consumer.acquires:
                self._consumers[c] = node.consumer

    def _pays(self, event: HostOperation) -> None:
        c = self.context.consumer(event.owner)
        if event.what == "cas" and event.new < event.old:
            self._paid[c] = self._paid.get(c, 0) + 1
        elif self._paid.get(c):  # restored, for a grant comes from the consumer's own thread
            self._paid[c] -= 1

    def _record(self, t: str, event: HostOperation) -> None:
        given = event.new
        if event.cell == "queue" and given["q"] == self.queue and given["kind"] != "push":
            self.outside = "it is pulled from"
        self._calls(event)
        ends = event.cell in CALLS and given.get("ph") == "ok"
        if ends and not self.context.calls[t]:
            self.take("settle", t=t)

    # ---- an arrival

    def _delivers(self, t: str, m: str) -> bool:
        """Whether the innermost call of the thread is the one that enqueued this."""
        calls = self.context.calls[t]
        return bool(calls) and calls[-1][0] == "enqueue" and calls[-1][1]["m"] == m

    def _arrives(self, event: HostOperation) -> None:
        t, entry = event.thread, event.new
        if not linking(event) or not isinstance(entry, self.lib.QueueEntry):
            return
        m = entry.message.id
        if value(entry.state).name == "AVAILABLE" and self._delivers(t, m):
            if t in self._arriving:
                return  # one that it enqueues while it delivers another is not followed so closely
            self._arriving[t] = m
            self.take("begin_to_deliver", t=t, m=m)

    def _calls(self, event: HostOperation) -> None:
        """A call of a thread that delivers begins, or returns: an attempt for a consumer, or another."""
        t, given = event.thread, event.new
        m = self._arriving.get(t)
        if m is None or given.get("ph") not in ("invoke", "ok"):
            return
        calls = self.context.calls[t]
        attempt = event.cell == "attempt" and given["path"] != "job"
        if given["ph"] == "invoke":
            if len(calls) > 1 and calls[-2][0] == "enqueue" and calls[-2][1]["m"] == m:
                if attempt:
                    self.take("ask", t=t, c=self.context.caller(t, "attempt"))
                else:
                    self.take("call_meanwhile", t=t)
        elif self._delivers(t, m):
            if not attempt:
                self.take("return_meanwhile", t=t)
            elif given["m"] and self._acquires(str(given["sub"])):
                self.take("deliver", t=t)
            else:
                self.take("ask_in_vain", t=t)
        elif event.cell == "enqueue" and given["m"] == m:
            self.take("end_delivery", t=t)
            del self._arriving[t]

    def _acquires(self, name: str) -> bool:
        return any(consumer.name == name for consumer in self._consumers.values())

    def _looks_again(self, event: HostOperation) -> None:
        t = event.thread
        m = self._arriving.get(t)
        if m is not None and event.owner is self._entries[m] and self._delivers(t, m):
            self.takes("see_it_there", t=t, m=m)

    def _drops(self, event: HostOperation) -> None:
        t = event.thread
        m = self._arriving.get(t)
        if m is None or event.owner is not self._entries[m] or event.kind != "state":
            return
        if event.new is self.lib.DEQUEUED and self._delivers(t, m):
            self.take("drop", t=t, m=m)

    # ---- what could go to whom

    def _could_go(self, c: str, m: str) -> bool:
        consumer, entry = self._consumers[c], self._entries[m]
        message = entry.message
        owned = value(self._groups).get(message.group) if message.group else None
        credit = None if consumer.credit is None else value(consumer.credit)
        return bool(
            value(entry.state).name == "AVAILABLE"
            and value(consumer.wants_work)
            and not value(consumer.in_all.marked)
            and (credit is None or credit + self._paid.get(c, 0) > 0)
            and not (message.expires and self._now > message.expires)
            and wants(consumer, entry)
            and (owned is None or owned[0] is consumer)
        )

    def _update(self, t: str) -> None:
        """Take the steps that make what could go to whom what it is in the reference."""
        there = {(c, m) for c in self._consumers for m in self._entries if self._could_go(c, m)}
        for c, m in sorted(self._deliverable ^ there):
            if (c, m) not in there:
                self.take("make_undeliverable", c=c, m=m)
                for u in self.members("Thread"):
                    if self.state.get("bound", u, c, m):
                        self.take("forget", t=u, c=c, m=m)
                self._seen(c, m)
            else:
                self._seen(c, m)
                self.take("make_deliverable", t=t, c=c, m=m)
        self._deliverable = there
        for m, entry in self._entries.items():
            state = value(entry.state)
            young = entry.message.immediate and state is self.lib.AVAILABLE
            offered = state.name == "AVAILABLE" and not young
            if offered and not self.state.get("offered", m):
                self.take("offer", t=t, m=m)
            elif not offered and self.state.get("offered", m):
                self.take("withdraw", m=m)
                for u in self.members("Thread"):
                    if self.state.get("owes", u, m):
                        self.take("leave_out", t=u, m=m)

    def _seen(self, c: str, m: str) -> None:
        """No job has to look at what cannot go there at this moment."""
        for (j,), looks in list(self.function("looks")):
            if looks:
                self.take("see", t=j, c=c, m=m)

    # ---- jobs

    def _flag(self, event: HostOperation) -> str:
        t = event.thread
        if not event.writes:
            # By a compare-and-set that failed, or a look before it.
            if self.takes("find_pending", t=t):
                self.takes("leave_it_to_the_next", t=t)
            return ""
        self.touched("pending")
        if event.new:
            if not event.examined:
                raise NotThat(f"{t} makes a job pending without a compare-and-set")
            taken = self.take("set_pending", t=t)
            if REFUSER in self.members("Thread"):
                self.take("find_pending", t=REFUSER)
            self.takes("leave_it_to_the_next", t=t)
            return taken
        if self.state.get("to_submit", t):
            if sys.exception() is not None:  # the one with which the executor refused it
                self.member("Thread", REFUSER)
                return self.take("be_refused", t=t, r=REFUSER)
            self.take("submit", t=t)  # the executor ran it at once, on this very thread
            self._draw(t)
        begun = self.take("begin_job", t=t)
        for (u, c, m), bound in list(self.function("bound")):
            if (
                bound and u != t
            ):  # its maker makes it visible to a job and asks for one, after this moment
                self.take("leave_it_to_its_maker", t=t, u=u, c=c, m=m)
        return begun

    def _permit(self, event: HostOperation) -> str:
        self._permits = event.source
        self.touched("lies")
        if event.what == "acquire":
            return self._draw(event.thread)
        return self.take("submit", t=event.thread)

    def _draw(self, t: str) -> str:
        self._end_job(t)
        self._has_begun(t)
        return self.take("draw_permit", t=t)

    def _end_job(self, t: str) -> None:
        if not self.state.get("looks", t):
            return
        for c in self.members("Consumer"):
            for m in self._entries:
                if not self.takes("see", t=t, c=c, m=m) and not self.state.get("seen", t, c, m):
                    raise NotThat(f"{t} ends its job, and {m} could go to {c} all the while")
        self.take("end_job", t=t)

    def _has_begun(self, t: str) -> None:
        """Raises `NotThat` if a thread has drawn the permit of a job, which has not lowered the flag since."""
        if self.state.get("drawn", t):
            raise NotThat(
                f"{t} has drawn the permit of a job, and its job has not begun: it is pending still"
            )

    def check_end(self) -> None:
        """Raises `NotThat` if a job has not begun, or ended too early, or anybody is bound to see to one."""
        if self.outside:
            return
        for t in self.members("Thread"):
            self._end_job(t)
            self._has_begun(t)
            self.take("settle", t=t)
        super().check_end()
