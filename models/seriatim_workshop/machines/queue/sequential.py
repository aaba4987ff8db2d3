"""The queue call by call: the reference must do what the model does.

After each call the states of all messages and consumers agree, and every consumer that is owed a message is about to
pull. At the end every consumer that was woken has pulled, and the recorded history is judged by every property.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

import seriatim.queue as reference
from seriatim_models.machines.calls import ApiCall, CallStanding
from seriatim_models.machines.queue.calls import PULL, PUSH, PullHarness, PushHarness, QueueHarness
from seriatim_models.machines.single_threaded_host import SingleThreadedHost
from seriatim_models.programs.mutant_modules import load
from seriatim_models.recording.queue import snapshot
from seriatim_workshop.machines.judging import violations
from seriatim_workshop.machines.queue.model import Item, QueueModel
from seriatim_workshop.machines.rules import strategy
from seriatim_workshop.machines.sequential import CallMachine, Disagreement, with_rules

LEVELS = (1, 2, 3, 10)
OPTIONS = {name: strategy(PULL["subscribe"], name) for name in PULL["subscribe"].arguments}
COMPOSITE = ("enqueue", "pass_time", "check_message_status")
"""Calls that rules of their own make, several in a row."""


class Machine(CallMachine):
    """What the two kinds of queues have in common. `lib` is the reference, or a mutant of it."""

    lib: ModuleType = load("queue")
    harness_type: type[QueueHarness] = QueueHarness
    made: Callable[[], None] = staticmethod(lambda: None)
    """Called for each machine that is made: for whoever counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.made()
        self.host = SingleThreadedHost()
        self.woken: list[str] = []
        self.last = 0
        """Number of the consumer that a push queue served last."""
        self._read = 0

    # ---- the client's end

    def notify_work(self, consumer: reference.Consumer) -> None:
        """Note that a consumer is to pull."""
        if consumer.name not in self.woken:
            self.woken.append(consumer.name)

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        """Do nothing: what was delivered is read from the record."""

    # ---- calls, on the model and on the queue

    def refusals(self) -> tuple[type[BaseException], ...]:
        return (self.lib.QueueMisuse,)

    def label(self, value: Any) -> Any:
        if isinstance(value, self.lib.Consumer):
            return value.name
        return value.message.id if isinstance(value, self.lib.QueueEntry) else value

    def state(self) -> Any:
        return self.harness.logical_state(self.woken)

    def make(self, call: ApiCall, **arguments: Any) -> None:
        is_open = call.standing(self.harness, **arguments) is CallStanding.IN_CONTRACT
        if call.name == "pull" and is_open:
            self._pull(call, arguments["consumer"])
            return
        if call.name in ("pause", "close") and is_open:
            self._rests(arguments["consumer"].name)
        super().make(call, **arguments)
        self._absorb()

    def _pull(self, call: ApiCall, consumer: reference.Consumer) -> None:
        """One message for a consumer: the model knows which, or of a browser which it must have been shown."""
        client = self.model.clients[consumer.name]
        due = self.model.next_for(client) if client.acquires else None
        owed = self.model.owed(client) if client.ready() and not client.acquires else []
        got = self.label(call.run(self.harness, consumer=consumer)) or ""
        self._absorb()
        if client.acquires and got != (due.id if due else ""):
            raise Disagreement(f"{client.name} was delivered {got!r}, due was {due and due.id}")
        if owed and not got:
            raise Disagreement(f"browser {client.name} was shown nothing, due was {owed[0].id}")
        if not got or not client.wants:
            self._rests(client.name)
        elif client.name not in self.woken:
            self.woken.append(client.name)  # it has to pull again

    # ---- rules: beginning and time

    @initialize(
        levels=st.sampled_from(LEVELS),
        first=st.lists(st.fixed_dictionaries(OPTIONS), max_size=3),
    )
    def begin(self, levels: int, first: list[dict[str, Any]]) -> None:
        """Make the queue with its first consumers."""
        self.model = QueueModel(levels, self.harness_type is PullHarness)
        self.harness = self.harness_type(self.lib, self.host, lambda name: self, levels)
        self.queue: Any = self.harness.queue
        self.host.pass_time(0)
        for options in first:
            self.make(PULL["subscribe"], **options)

    @rule(by=strategy(PULL["pass_time"], "by"), clean=st.sampled_from([False, False, True]))
    def let_time_pass(self, by: int, clean: bool) -> None:
        """Advance the clock, and perhaps do one pass of housekeeping."""
        self.make(PULL["pass_time"], by=by)
        if clean:
            self.make(PULL["check_message_status"])

    # ---- rules: publishing

    @rule(
        priority=strategy(PULL["enqueue"], "priority"),
        key=strategy(PULL["enqueue"], "key"),
        group=strategy(PULL["enqueue"], "group"),
        special=strategy(PULL["enqueue"], "special"),
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
        """Enqueue some. Time may pass before anybody can look: what expires has expired then, delayed ones are due."""
        for _ in range(many):
            self.enqueue(priority, key, group, special, later)
        if passing:
            self.make(PULL["pass_time"], by=passing)

    def enqueue(self, priority: int, key: str, group: str, special: str, later: int) -> None:
        """Enqueue a message that becomes available, or has its last moment, so much later."""
        expiring = special == "expiring"
        due = self.host.time + later + expiring
        item = self.model.enqueue(priority, key, group, special, due)
        turn = self._turn(item)
        entry = self.harness.enqueue(priority, key, group, special, due=due)
        assert entry.message.id == item.id
        self._absorb()
        if not self.model.pulled and item.holder != (turn[0] if turn else ""):
            raise Disagreement(f"{item.id} was for {turn}, in turn, and went to {item.holder!r}")
        if special == "immediate":
            self.model.dropped(item.id)

    def _turn(self, item: Item) -> list[str]:
        """Consumers that can be served a new message at once, beginning behind the one that was served last."""
        able = [
            c for c in self.model.clients.values() if c.acquires and self.model.next_for(c) is item
        ]
        return [c.name for c in sorted(able, key=lambda c: (c.number <= self.last, c.number))]

    # ---- looking

    @rule()
    def look(self) -> None:
        """The whole state, as the queue tells it."""
        shot = snapshot(self.queue)
        listed = [(m, state, holder) for m, _, state, holder in shot["entries"]]
        expired = {i.id for i in self.model.items if self.model.expired(i) and not i.holder}
        due = [(i.id, i.state, i.holder) for i in self.model.items if i.state != "GONE"]
        if [t for t in listed if t[0] not in expired] != [d for d in due if d[0] not in expired]:
            raise Disagreement(f"the list holds {listed}, due was {due}")
        if shot["depth"] != len(listed):
            raise Disagreement(f"the counter says {shot['depth']}, the list {len(listed)}")
        owners = {i.group: i.holder for i in self.model.items if i.group and i.holder}
        if shot["groups"] != owners:
            raise Disagreement(f"groups are owned by {shot['groups']}, due was {owners}")

    @invariant()
    def states_agree(self) -> None:
        """Every entry and consumer is in the state that the model demands."""
        if not hasattr(self, "model"):
            return
        for item in self.model.items:
            state = self.harness.entries[item.id].state.get()
            if self.model.expired(item) and item.state in ("AVAILABLE", "GONE"):
                continue
            name = "GONE" if state.name in ("DEQUEUED", "DELETED") else state.name
            if (name, state.holder) != (item.state, item.holder):
                raise Disagreement(f"{item.id} is {state!r}; due was {item.state} {item.holder}")
        for client in self.model.clients.values():
            consumer = self.harness.consumers[client.name]
            credit = None if consumer.credit is None else consumer.credit.get()
            if (credit, consumer.wants_work.get()) != (client.credit, client.wants):
                raise Disagreement(
                    f"{client.name} has credit {credit} and wants work: {consumer.wants_work.get()}; "
                    f"due was {client.credit}, {client.wants}"
                )

    @invariant()
    def nobody_is_forgotten(self) -> None:
        """No ready consumer is owed a message while nobody is about to look."""
        if hasattr(self, "model") and not self._on_its_way():
            for client, item in self.model.unserved():
                raise Disagreement(f"{item.id} is for {client.name}, and nobody will look")

    def _on_its_way(self) -> bool:
        return bool(self.woken or getattr(self.harness, "jobs", None))

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
        """Let everything come to rest, and judge the state and the history."""
        self.make(PULL["check_message_status"])
        self.finish()
        self.look()
        self.states_agree()
        self.nobody_is_forgotten()
        self.harness.record_rest()
        for finding in violations(self.host.events):
            raise Disagreement(f"{finding.property}: {finding.explanation}")

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self.check_end()


@with_rules(PULL, leave_out=COMPOSITE)
class PullMachine(Machine):
    """The queue wakes; consumers pull, whether they were woken or not."""

    harness_type = PullHarness

    @precondition(lambda self: self.woken)
    @rule()
    def woken_consumer_pulls(self) -> None:
        """Let the consumer that was woken first pull."""
        self.make(PULL["pull"], consumer=self.harness.consumers[self.woken[0]])

    def finish(self) -> None:
        while self.woken:
            self.woken_consumer_pulls()


@with_rules(PUSH, leave_out=(*COMPOSITE, "attempt"))
class PushMachine(Machine):
    """The queue delivers, on enqueue or by its job, which makes attempts only for consumers that want work."""

    harness_type = PushHarness

    def finish(self) -> None:
        while self.harness.jobs:
            self.make(PUSH["job"])


KINDS: dict[str, type[Machine]] = {"pull": PullMachine, "push": PushMachine}


def machine(kind: str, lib: ModuleType, **attributes: Any) -> type[Machine]:
    """Return the machine for a reference other than the real one, with further attributes."""
    base = KINDS[kind]
    return type(base.__name__, (base,), {"lib": lib, "__module__": __name__, **attributes})
