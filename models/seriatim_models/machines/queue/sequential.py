"""One call after the other, in any order that Hypothesis can think of: the reference must do what the model says.

After each call the states of all messages and consumers agree, and whoever is owed a message is on his way to it.
At the end everybody who was woken has looked, and the recorded history is judged by every property.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import seriatim.queue as reference
from seriatim_models.machines.queue.model import Client, Disagreement, Item, Model
from seriatim_models.machines.queue.single_threaded_host import SingleThreadedHost
from seriatim_models.properties import PROPERTIES, Verdict
from seriatim_models.properties.whitebox.judging import judge
from seriatim_models.recording.queue import recorded, snapshot

LEVELS = (1, 2, 3, 10)
CLIENTS = 4
"""How many consumers are there at a time."""

some = st.integers(0, 7)
"""Picks one of what there is, by its number."""

COMERS: dict[str, st.SearchStrategy[Any]] = {
    "acquires": st.sampled_from([True, True, True, False]),
    "priority": st.integers(0, 2),
    "keys": st.sampled_from([None, None, None, frozenset(["x"])]),
    "credit": st.sampled_from([None, None, 0, 1, 2]),
}
"""What a consumer may be like."""


class Machine(RuleBasedStateMachine):
    """What the two kinds of queues have in common. `lib` is the reference, or a mutant of it."""

    lib: ModuleType = reference
    pull = True
    made: Callable[[], None] = staticmethod(lambda: None)
    """Called for each machine that is made: for whoever counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.made()
        self.host = SingleThreadedHost()
        self.woken: list[str] = []
        self.jobs: list[Callable[[], None]] = []
        self.entries: dict[str, reference.QueueEntry] = {}
        self.consumers: dict[str, reference.Consumer] = {}
        self.exclusive = ""
        self.last = 0
        """Number of the consumer that a push queue served last."""
        self._read = 0
        self._over = False

    # ---- the client's end

    def notify_work(self, consumer: reference.Consumer) -> None:
        if consumer.name not in self.woken:
            self.woken.append(consumer.name)

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        pass

    # ---- rules: beginning and time

    @initialize(
        levels=st.sampled_from(LEVELS),
        comers=st.lists(st.fixed_dictionaries(COMERS), max_size=3),
        exclusive=st.sampled_from([False] * 3 + [True]),
    )
    def begin(self, levels: int, comers: list[dict[str, Any]], exclusive: bool) -> None:
        self.model = Model(levels, self.pull)
        self.queue: Any = (
            self.lib.PullQueue(recorded(self.host), "q", levels)
            if self.pull
            else self.lib.PushQueue(recorded(self.host), self.jobs.append, "q", levels)
        )
        self.host.pass_time(0)
        for comer in comers:
            self.subscribe(**comer, exclusive=exclusive)

    @rule(by=st.sampled_from([0, 1, 3, 3]), clean=st.sampled_from([False, False, True]))
    def pass_time(self, by: int, clean: bool) -> None:
        self.host.pass_time(by)
        self.model.now += by
        if clean:
            self.check_message_status()

    def check_message_status(self) -> None:
        self.model.housekeeping()
        self.queue.check_message_status()

    # ---- rules: publishing

    @rule(
        priority=st.integers(0, 9),
        key=st.sampled_from(["", "x"]),
        group=st.sampled_from(["", "", "g"]),
        special=st.sampled_from(["", "", "", "immediate", "held", "expiring"]),
        later=st.integers(1, 3),
        many=st.integers(1, 3),
        passing=st.sampled_from([0, 0, 3]),
    )
    def publish(
        self,
        priority: int,
        key: str,
        group: str,
        special: str,
        later: int,
        many: int,
        passing: int,
    ) -> None:
        """Time may pass before anybody can look: what expires is expired then, and what is held is due."""
        for _ in range(many):
            self.enqueue(priority, key, group, special, later)
        if passing:
            self.pass_time(passing, clean=False)

    def enqueue(self, priority: int, key: str, group: str, special: str, later: int) -> None:
        id = f"m{len(self.entries) + 1}"
        not_before = self.host.time + later if special == "held" else 0
        expires = self.host.time + later if special == "expiring" else 0
        item = self.model.arrives(id, priority, key, group, not_before, expires)
        turn = self._turn(item)
        immediate = special == "immediate"
        message = self.lib.Message(id, priority, key, group, immediate, not_before, expires)
        self.entries[id] = self.queue.enqueue(message)
        self._absorb()
        if not self.pull and item.holder != (turn[0] if turn else ""):
            raise Disagreement(f"{id} was for {turn}, in turn, and went to {item.holder!r}")
        if immediate:
            self.model.dropped(id)

    def _turn(self, item: Item) -> list[str]:
        """Consumers that can be served a new message at once, beginning behind the one that was served last."""
        able = [
            c for c in self.model.clients.values() if c.acquires and self.model.next_for(c) is item
        ]
        return [c.name for c in sorted(able, key=lambda c: (c.number <= self.last, c.number))]

    # ---- rules: consumers

    @precondition(lambda self: len(self.consumers) < CLIENTS)
    @rule(comer=st.fixed_dictionaries(COMERS), exclusive=st.sampled_from([False] * 3 + [True]))
    def somebody_comes(self, comer: dict[str, Any], exclusive: bool) -> None:
        self.subscribe(**comer, exclusive=exclusive)

    def subscribe(
        self,
        acquires: bool,
        priority: int,
        keys: frozenset[str] | None,
        credit: int | None,
        exclusive: bool,
    ) -> None:
        name = f"C{self.model.comers + 1}"
        refused = bool(self.exclusive or (exclusive and self.consumers))
        try:
            consumer = self.queue.subscribe(
                name,
                self,
                acquires=acquires,
                priority=priority,
                keys=keys,
                credit=credit,
                exclusive=exclusive,
            )
        except self.lib.QueueMisuse:
            if not refused:
                raise Disagreement(f"{name} was refused, and nobody was in its way") from None
            return
        if refused:
            raise Disagreement(f"{name} was let in beside an exclusive consumer")
        self.consumers[name] = consumer
        if exclusive:
            self.exclusive = name
        self.model.comes(name, acquires, priority, keys, credit)
        self._absorb()

    def client(self, number: int) -> tuple[Client, reference.Consumer]:
        names = list(self.consumers)
        name = names[number % len(names)]
        return self.model.clients[name], self.consumers[name]

    @precondition(lambda self: self.consumers)
    @rule(number=some, messages=st.integers(1, 2))
    def grant(self, number: int, messages: int) -> None:
        client, consumer = self.client(number)
        client.wants = True
        if client.credit is not None:
            client.credit += messages
        self.queue.grant(consumer, messages)

    @precondition(lambda self: self.consumers)
    @rule(number=some)
    def pause(self, number: int) -> None:
        client, consumer = self.client(number)
        client.wants = False
        self._rests(client.name)
        self.queue.set_notify_work_desired(consumer, False)

    @precondition(lambda self: self.consumers)
    @rule(number=some)
    def go_on(self, number: int) -> None:
        """A consumer that has no credit does not say that it wants work."""
        client, consumer = self.client(number)
        if client.credit != 0:
            client.wants = True
            self.queue.set_notify_work_desired(consumer, True)

    @precondition(lambda self: self.consumers)
    @rule(number=some)
    def close(self, number: int) -> None:
        client, consumer = self.client(number)
        name = client.name
        self._rests(name)
        self.model.leaves(name)
        del self.consumers[name]
        if self.exclusive == name:
            self.exclusive = ""
        self.queue.close(consumer)

    # ---- rules: messages that somebody holds, or not

    @precondition(lambda self: self._held())
    @rule(which=some)
    def release(self, which: int) -> None:
        """The holder of a message gives it back."""
        item = self._held()[which % len(self._held())]
        self._settle(item, self.consumers[item.holder], back=True)

    @precondition(lambda self: self._held())
    @rule(which=some)
    def dequeue(self, which: int) -> None:
        """The holder of a message is done with it."""
        item = self._held()[which % len(self._held())]
        self._settle(item, self.consumers[item.holder], back=False)

    @precondition(lambda self: self.entries and self.consumers)
    @rule(which=some, number=some, back=st.booleans())
    def settle_what_is_not_mine(self, which: int, number: int, back: bool) -> None:
        """Anybody tries to give back any message, or says that he is done with it."""
        tried = self._held() or self.model.items
        self._settle(tried[which % len(tried)], self.client(number)[1], back)

    def _held(self) -> list[Item]:
        return [i for i in self.model.items if i.holder]

    def _settle(self, item: Item, consumer: reference.Consumer, back: bool) -> None:
        entry = self.entries[item.id]
        if back:
            due = self.model.returned(consumer.name, item.id)
            done = self.queue.release(entry, consumer)
        else:
            due = self.model.finished(consumer.name, item.id)
            done = self.queue.dequeue(entry, consumer)
        if done != due:
            raise Disagreement(f"{consumer.name} settled {item.id}: {done}, due was {due}")

    # ---- looking

    @rule()
    def look(self) -> None:
        """The whole state, as the queue tells it."""
        shot = snapshot(self.queue)
        told = [(m, state, holder) for m, _, state, holder in shot["entries"]]
        expired = {i.id for i in self.model.items if self.model.expired(i) and not i.holder}
        due = [(i.id, i.state, i.holder) for i in self.model.items if i.state != "GONE"]
        if [t for t in told if t[0] not in expired] != [d for d in due if d[0] not in expired]:
            raise Disagreement(f"the list holds {told}, due was {due}")
        if shot["depth"] != len(told):
            raise Disagreement(f"the counter says {shot['depth']}, the list {len(told)}")
        owners = {i.group: i.holder for i in self.model.items if i.group and i.holder}
        if shot["groups"] != owners:
            raise Disagreement(f"groups are owned by {shot['groups']}, due was {owners}")

    @invariant()
    def states_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        for item in self.model.items:
            state = self.entries[item.id].state.get()
            if self.model.expired(item) and item.state in ("AVAILABLE", "GONE"):
                continue
            name = "GONE" if state.name in ("DEQUEUED", "DELETED") else state.name
            if (name, state.holder) != (item.state, item.holder):
                raise Disagreement(f"{item.id} is {state!r}; due was {item.state} {item.holder}")
        for client in self.model.clients.values():
            consumer = self.consumers[client.name]
            credit = None if consumer.credit is None else consumer.credit.get()
            if (credit, consumer.wants_work.get()) != (client.credit, client.wants):
                raise Disagreement(
                    f"{client.name} has credit {credit} and wants work: {consumer.wants_work.get()}; "
                    f"due was {client.credit}, {client.wants}"
                )

    @invariant()
    def nobody_is_forgotten(self) -> None:
        if hasattr(self, "model") and not self._on_its_way():
            for client, item in self.model.unserved():
                raise Disagreement(f"{item.id} is for {client.name}, and nobody will look")

    def _on_its_way(self) -> bool:
        return bool(self.woken or self.jobs)

    def _rests(self, name: str) -> None:
        if name in self.woken:
            self.woken.remove(name)

    def _absorb(self) -> None:
        """Tell the model what was delivered since the last time."""
        for e in self.host.events[self._read :]:
            if e.ev in ("deliver", "browse"):
                self.last = self.model.clients[e.args["sub"]].number
                self.model.delivered(e.args["sub"], e.m)
        self._read = len(self.host.events)

    # ---- the end

    def finish(self) -> None:
        """Let everybody who was woken look, until nothing moves."""
        raise NotImplementedError

    def check_end(self) -> None:
        self.check_message_status()
        self.finish()
        self.look()
        self.states_agree()
        self.nobody_is_forgotten()
        self.host.record("snapshot", **snapshot(self.queue))
        for finding in judge(self.host.events, PROPERTIES.values()):
            if finding.verdict is Verdict.VIOLATED:
                raise Disagreement(f"{finding.property}: {finding.explanation}")

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self.check_end()


class PullMachine(Machine):
    """The queue wakes; consumers pull, whether they were woken or not."""

    @precondition(lambda self: self.consumers)
    @rule(number=some, times=st.integers(1, 3))
    def deliver_single_message(self, number: int, times: int) -> None:
        for _ in range(times):
            self._pull(*self.client(number))

    @precondition(lambda self: self.woken)
    @rule()
    def woken_consumer_looks(self) -> None:
        name = self.woken[0]
        self._pull(self.model.clients[name], self.consumers[name])

    def _pull(self, client: Client, consumer: reference.Consumer) -> None:
        due = self.model.next_for(client) if client.acquires else None
        owed = self.model.owed(client) if client.ready() and not client.acquires else []
        entry = self.queue.deliver_single_message(consumer)
        self._absorb()
        got = entry.message.id if entry is not None else ""
        if client.acquires and got != (due.id if due else ""):
            raise Disagreement(f"{client.name} pulled {got!r}, due was {due and due.id}")
        if owed and not got:
            raise Disagreement(f"browser {client.name} was shown nothing, due was {owed[0].id}")
        if not got or not client.wants:
            self._rests(client.name)
        elif client.name not in self.woken:
            self.woken.append(client.name)  # it has to pull again

    def finish(self) -> None:
        while self.woken:
            self.woken_consumer_looks()


class PushMachine(Machine):
    """The queue delivers, on enqueue or by its job."""

    pull = False

    @precondition(lambda self: self.jobs)
    @rule()
    def job(self) -> None:
        self.jobs.pop(0)()
        self._absorb()

    def finish(self) -> None:
        while self.jobs:
            self.job()


KINDS: dict[str, type[Machine]] = {"pull": PullMachine, "push": PushMachine}


def machine(kind: str, lib: ModuleType, **attributes: Any) -> type[Machine]:
    """The machine for a reference other than the real one."""
    base = KINDS[kind]
    return type(base.__name__, (base,), {"lib": lib, "__module__": __name__, **attributes})
