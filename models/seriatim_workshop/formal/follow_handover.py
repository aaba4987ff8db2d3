"""Which step of `spec/induction/handover.py` each operation on a set of those that have work is."""

from __future__ import annotations

from typing import Any

from seriatim_workshop.formal.concrete import NotThat
from seriatim_workshop.formal.follower import Follower, Node, Participants, value
from seriatim_workshop.formal.recorder import HostOperation

SETS = ("targets", "sessions", "ready")
"""The last part of a set's name: of the targets of a session, the sessions of a connection, the connections."""


class HandoverFollower(Follower):
    """Holds the hand-over of an execution against `handover`."""

    system = "handover"
    fields = {  # noqa: RUF012  # see `Follower.fields`
        "waits": ("whether Session._targets has the target", "_waits"),
        "queued": ("whether Connection._sessions has the session", "_queued"),
        "ready": ("whether Scheduler._ready has the connection", "_ready"),
        "scheduled": ("Connection._scheduled", "_scheduled"),
    }

    def __init__(self, participants: Participants) -> None:
        super().__init__(participants)
        self._things: dict[str, Node] = {}
        self._ready_set: Any = None
        self._sets: dict[int, tuple[object, Node]] = {}
        """By id of a cell: the cell, and the session or connection whose set or flag it is."""

    # ---- what a field is in the reference

    def _waits(self, g: str) -> bool:
        target = self._things[g]
        return target in value(target.session._targets._waiting)

    def _queued(self, n: str) -> bool:
        session = self._things[n]
        return session in value(session.connection._sessions._waiting)

    def _ready(self, c: str) -> bool:
        return self._things[c] in value(self._ready_set)

    def _scheduled(self, c: str) -> bool:
        return bool(value(self._things[c]._scheduled))

    # ---- who is who

    def _target(self, target: Node) -> str:
        name = self.context.name(target, f"target {target.name}")
        if self.member("Target", name):
            self._things[name] = target
            self.state.put("session_of", name, self._session(target.session))
        return name

    def _session(self, session: Node) -> str:
        name = self.context.name(session, "session")
        if self.member("Session", name):
            self._things[name] = session
            self._sets[id(session._targets._waiting)] = (session._targets._waiting, session)
            self.state.put("connection_of", name, self._connection(session.connection))
        return name

    def _connection(self, connection: Node) -> str:
        name = self.context.name(connection, f"connection {connection.name}")
        if self.member("Connection", name):
            self._things[name] = connection
            for cell in (connection._sessions._waiting, connection._scheduled):
                self._sets[id(cell)] = (cell, connection)
        return name

    # ---- steps

    def step(self, event: HostOperation) -> str:
        kind = event.kind
        if event.what == "record":
            self._reason(event)
            return ""
        if kind == "permits" and event.writes:
            return self._permit(event)
        if event.what == "new" or kind not in (*SETS, "scheduled"):
            if kind == "ready":
                self._ready_set = event.source
            return ""
        if kind == "scheduled":
            return self._flag(event)
        if event.what == "get":
            self._read(event, kind)
        if not event.writes:
            return ""
        if event.what != "cas" or abs(len(event.new) - len(event.old)) != 1:
            raise NotThat("those that have work come and go one by one")
        if len(event.new) > len(event.old):
            return self._add(event.thread, kind, event.new[-1])
        return self._take(event.thread, kind, event.old[0])

    def _add(self, t: str, kind: str, thing: Node) -> str:
        if kind == "targets":
            return self.take("add_target", t=t, g=self._target(thing))
        if kind == "sessions":
            return self.take("add_session", t=t, n=self._session(thing))
        return self.take("submit", t=t, c=self._connection(thing))

    def _take(self, t: str, kind: str, thing: Node) -> str:
        if kind == "targets":
            return self.take("take_target", t=t, g=self._target(thing))
        if kind == "sessions":
            return self.take("take_session", t=t, n=self._session(thing))
        drawn = [p for p in self.members("Permit") if self.state.get("drawn", t, p)]
        if not drawn:
            raise NotThat(f"{t} takes a connection, and has drawn no permit")
        return self.take("begin_run", t=t, c=self._connection(thing), p=drawn[0])

    def _reason(self, event: HostOperation) -> None:
        """A consumer was woken, or a pull has returned a message: its target may be put back."""
        given = event.new
        if event.cell not in ("pull", "notify"):
            return
        if event.cell == "pull" and (given["ph"] != "ok" or not given["m"]):
            return
        for consumer in self.context.consumers:
            target = consumer.target
            if consumer.name == given["sub"] and isinstance(target, self.lib.ConsumerTarget):
                self.takes("have_a_reason", t=event.thread, g=self._target(target))

    def _permit(self, event: HostOperation) -> str:
        """Permits are all alike, so any that lies there is the one that is drawn."""
        t = event.thread
        if event.what == "acquire":
            lies = [p for p in self.members("Permit") if self.state.get("lies", p)]
            return self.take("draw_permit", t=t, p=lies[0])
        mine = [c for c in self.members("Connection") if self.state.get("to_permit", t, c)]
        if len(mine) != event.new:
            raise NotThat(
                f"{t} gives {event.new} permits, and has put {len(mine)} connections among the ready"
            )
        for c in mine:
            permit = f"p{len(self.members('Permit')) + 1}"
            self.member("Permit", permit)
            self.take("give_permit", t=t, c=c, p=permit)
        return "give_permit"

    def _read(self, event: HostOperation, kind: str) -> None:
        """A set was read: it is empty, or it has already what the thread is bound to add, or is looked at once more."""
        t, owner = event.thread, self._sets.get(id(event.source), (None, None))[1]
        if owner is None or kind == "ready":
            return
        if kind == "targets":
            seen = "see_it_wait" if event.new else "leave_session"
            self.takes(seen, t=t, n=self._session(owner))
        if kind == "sessions":
            for session in event.new:
                n = self._session(session)
                if self.state.get("to_queue", t, n) or self.state.get("serves", t, n):
                    self.takes("find_session_queued", t=t, n=n)
            self.takes("check", t=t, c=self._connection(owner))
            self.takes("see_it_queued", t=t, c=self._connection(owner))

    def _flag(self, event: HostOperation) -> str:
        known = self._sets.get(id(event.source))
        if known is None:
            return ""
        t, c = event.thread, self._connection(known[1])
        if event.writes and event.new:
            if not event.examined:
                raise NotThat(f"{t} schedules {c} without a compare-and-set")
            return self.take("schedule", t=t, c=c)
        if event.writes:
            return self.take("end_run", t=t, c=c)
        self.takes(
            "find_scheduled", t=t, c=c
        )  # by a compare-and-set that failed, or a look before it
        return ""

    def check_end(self) -> None:
        """Raises `NotThat` if anybody is still bound to something: an execution ends when all is quiet."""
        bound = ("to_queue", "to_schedule", "to_submit", "to_check", "to_permit")
        for name in (*bound, "serves", "runs", "drawn"):
            for key, is_so in self.function(name):
                if is_so:
                    raise NotThat(f"{key[0]} has left {key[1]} undone ({name})")
        super().check_end()
