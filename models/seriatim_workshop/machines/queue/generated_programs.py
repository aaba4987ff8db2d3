"""Generated concurrent programs over a queue, as plain data: drawn by Hypothesis, printed when they fail, run again.

A plan names the consumers, the messages that are preloaded, and the calls that each thread makes (see `calls.py`).
Consumers of a pull queue have a thread each, or (`QueuePlan.io`) share connections, which IO threads serve.
A plan keeps to the rules of use: what concerns a consumer's interest and credit happens on its own thread, and a
consumer that was woken pulls until there is nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

import msgspec
from hypothesis import strategies as st

import seriatim.queue as reference
from seriatim_models.machines.calls import callable_inside
from seriatim_models.machines.queue.calls import (
    DUE,
    PULL,
    PUSH,
    HandoverHarness,
    PlannedMessage,
    PullHarness,
    PushHarness,
    QueueHarness,
)
from seriatim_models.machines.stages import ProgramStage
from seriatim_workshop.machines.plans import ProgramPlan


class PlannedConsumer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A consumer of a plan, and what its thread does before it waits to be woken."""

    acquires: bool = True
    priority: int = 0
    keys: tuple[str, ...] | None = None
    credit: int | None = None
    exclusive: bool = False
    keeps: str = "keep"
    """What it does with what it pulls: keep, dequeue, or return (each message once)."""
    held: int = 0
    """How many of the messages that are there at the beginning it holds."""
    script: tuple[str, ...] = ()
    """Names of calls on the consumer; what it releases or dequeues is what it has held the longest."""
    inside: str = ""
    """Name of the call that it makes, from inside a delivery, for the first message that it is sent; '' for none."""
    target: int = 0
    """With IO threads: consumers of one number share a target, 0 and 1 share a session, 0 to 2 a connection."""


class QueuePlan(ProgramPlan, frozen=True, omit_defaults=True):
    """A generated program over a queue."""

    system: ClassVar[str] = "queue"

    kind: str = "pull"
    levels: int = 1
    preloaded: tuple[PlannedMessage, ...] = ()
    consumers: tuple[PlannedConsumer, ...] = ()
    publishers: tuple[tuple[PlannedMessage, ...], ...] = ()
    housekeeping: bool = False
    """Whether a thread advances the clock and does one pass of housekeeping."""
    io: int = 0
    """How many IO threads serve all consumers; if none, each consumer has a thread of its own."""

    def start(self, lib: ModuleType, stage: ProgramStage) -> Any:
        """Set the program up, spawn its threads, and return its harness."""
        program = _Program(self, lib, stage)
        program.spawn()
        stage.at_end(program.harness.record_rest)
        return program.harness


# ---- drawing


TABLES = {"pull": PULL, "push": PUSH}
ON_CONSUMERS = {
    kind: tuple(c.name for c in table.values() if "consumer" in c.arguments)
    for kind, table in TABLES.items()
}
"""The calls that a consumer's own thread makes."""


INSIDE = {
    kind: tuple(name for name in callable_inside(table) if name in ON_CONSUMERS[kind])
    for kind, table in TABLES.items()
}
"""Of these, what it may call from inside a delivery."""


@dataclass(frozen=True)
class Choices:
    """What plans choose from: a value that stands twice is drawn twice as often. See also the tables of calls."""

    kinds: tuple[str, ...] = ("pull", "pull", "push")
    levels: tuple[int, ...] = (1, 1, 2)
    keys: tuple[str, ...] = ("", "", "x")
    groups: tuple[str, ...] = ("", "", "g")
    preloaded: tuple[str, ...] = ("", "", "", "delayed", "expiring")
    """How messages that are preloaded are special, and those that are published."""
    published: tuple[str, ...] = ("", "", "immediate", "immediate", "delayed", "expiring")
    number: tuple[int, ...] = (0, 1, 2, 3)
    """How many are preloaded, and how many a publisher sends."""
    published_each: tuple[int, ...] = (1, 2)
    consumers: tuple[int, ...] = (1, 2, 3)
    acquires: tuple[bool, ...] = (True, True, True, False)
    selectors: tuple[tuple[str, ...] | None, ...] = (None, None, ("x",))
    credit: tuple[int | None, ...] = (None, None, 0, 1, 2)
    alone: tuple[bool, ...] = (False, False, True)
    keeps: tuple[str, ...] = ("keep", "dequeue", "return")
    held: tuple[int, ...] = (0, 1, 2)
    pulls: tuple[str, ...] = ("pull", *ON_CONSUMERS["pull"])
    pushes: tuple[str, ...] = ON_CONSUMERS["push"]
    inside: bool = True
    """Whether some consumers call from inside a delivery."""
    io: tuple[int, ...] = (0, 0, 0, 1, 2)


PLAIN = Choices(
    kinds=("pull",),
    levels=(1,),
    keys=("",),
    groups=("",),
    preloaded=("",),
    published=("",),
    acquires=(True,),
    selectors=(None,),
    alone=(False,),
    inside=False,
    io=(0,),
)
THEMES = {
    "anything": Choices(),
    "giving back": replace(
        PLAIN,
        number=(2,),
        consumers=(2,),
        credit=(0, 1),
        held=(1,),
        pulls=("release", "grant"),
    ),
    "arriving": replace(PLAIN, kinds=("pull", "push"), number=(0, 1), consumers=(1,)),
    "waking": replace(
        PLAIN,
        number=(0, 1),
        published_each=(2,),
        consumers=(1,),
        credit=(None, None, 2),
        pulls=("pull", "grant", "pause", "resume"),
    ),
    "first come": replace(
        PLAIN, number=(0,), published_each=(1,), consumers=(2,), credit=(None,), pulls=("resume",)
    ),
    "handing over": replace(PLAIN, io=(1, 2)),
}
"""Drawn from everything at once, what takes three things to go wrong goes wrong too rarely: so most are about one."""


@st.composite
def plans(
    draw: st.DrawFn, threads: int = 3, operations: int = 3, kind: str = "", theme: str = ""
) -> QueuePlan:
    """Two to `threads` threads of one to `operations` operations each; `theme` is one of `THEMES`, else any."""
    of = THEMES[theme or draw(st.sampled_from(["anything", *THEMES]))]
    kind = kind or draw(st.sampled_from(of.kinds))
    levels = draw(st.sampled_from(of.levels))
    first = [
        draw(messages(of, levels, of.preloaded)) for _ in range(draw(st.sampled_from(of.number)))
    ]
    at_work = draw(st.integers(2, threads))
    number = draw(st.sampled_from([n for n in of.consumers if n <= at_work]))
    alone = number == 1 and draw(st.sampled_from(of.alone))
    consumers = [draw(planned_consumers(of, kind, operations, alone)) for _ in range(number)]
    rest = at_work - number
    housekeeping = rest > 0 and any(t.special for t in first)
    io = draw(st.sampled_from(of.io)) if kind == "pull" else 0
    later = messages(of, levels, of.published)
    many = min(draw(st.sampled_from(of.published_each)), operations)
    publishers = [tuple(draw(later) for _ in range(many)) for _ in range(rest - housekeeping)]
    return QueuePlan(
        kind, levels, tuple(first), tuple(consumers), tuple(publishers), housekeeping, io
    )


def messages(
    of: Choices, levels: int, special: tuple[str, ...]
) -> st.SearchStrategy[PlannedMessage]:
    """Return the strategy of a message that is `special` in one of these ways."""
    return st.builds(
        PlannedMessage,
        priority=st.sampled_from([4, 9]) if levels > 1 else st.just(4),
        key=st.sampled_from(of.keys),
        group=st.sampled_from(of.groups),
        special=st.sampled_from(special),
    )


def planned_consumers(
    of: Choices, kind: str, operations: int, alone: bool
) -> st.SearchStrategy[PlannedConsumer]:
    """Return the strategy of a consumer of a queue of that kind with a script of at most `operations` calls."""
    script = st.lists(
        st.sampled_from(of.pulls if kind == "pull" else of.pushes),
        min_size=1,
        max_size=operations,
    )
    return st.builds(
        PlannedConsumer,
        acquires=st.sampled_from(of.acquires),
        priority=st.integers(0, 1) if kind == "pull" else st.just(0),
        keys=st.sampled_from(of.selectors),
        credit=st.sampled_from(of.credit),
        exclusive=st.just(alone),
        keeps=st.sampled_from(of.keeps),
        held=st.sampled_from(of.held),
        script=script.map(tuple),
        inside=st.sampled_from(("", "", *INSIDE[kind])) if of.inside else st.just(""),
        target=st.integers(0, 3) if kind == "pull" else st.just(0),
    )


# ---- running


class _Client:
    """A planned consumer at work. It is the consumer's target, unless IO threads serve the consumer."""

    def __init__(self, plan: PlannedConsumer, name: str, stage: ProgramStage) -> None:
        self.plan = plan
        self.wake = stage.host.semaphore(0, f"{name}.wake")
        self.has: Any = stage.host.cell((), f"{name}.has")
        self.returned: set[str] = set()
        self.called = False
        """Whether it has called from inside a delivery; its deliveries are one after the other."""
        self.harness: Any
        self.consumer: reference.Consumer

    def notify_work(self, consumer: reference.Consumer) -> None:
        """Let the client's thread go on."""
        self.wake.release()

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        """Keep the entry, and call what is called from inside a delivery."""
        self.keep(entry)
        if self.plan.inside and not self.called:
            self.called = True
            of = {"m": entry.message.id, "sub": consumer.name}
            self.harness.host.record("send", ph="invoke", **of)
            self._call_inside(consumer, entry)
            self.harness.host.record("send", ph="ok", **of)

    def _call_inside(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        call = TABLES[self.harness.kind][self.plan.inside]
        if "entry" not in call.arguments or self.give(entry) is not None:
            known = {"consumer": consumer, "entry": entry}
            call.run(self.harness, **call.arguments_inside(self.harness, **known))

    def keep(self, entry: reference.QueueEntry) -> None:
        """Add what was delivered, on whatever thread a push queue delivers; the client's own may be releasing."""
        while not self.has.compare_and_set(has := self.has.get(), (*has, entry)):
            pass

    def give(self, entry: reference.QueueEntry | None = None) -> reference.QueueEntry | None:
        """Remove and return `entry`, or what the client has had the longest; None if it has nothing."""
        while has := self.has.get():
            gone: reference.QueueEntry = entry or has[0]
            if self.has.compare_and_set(has, tuple(e for e in has if e is not gone)):
                return gone
        return None

    @property
    def closed(self) -> bool:
        """Whether the consumer is closed, or about to be."""
        return self.consumer.name not in self.harness.consumers

    def step(self, name: str) -> None:
        """Make one call of the script, if it can be made; a call after `close` is without effect."""
        call = TABLES[self.harness.kind][name]
        arguments: dict[str, Any] = {"consumer": self.consumer}
        if "messages" in call.arguments:
            arguments["messages"] = 1
        if "entry" in call.arguments:
            arguments["entry"] = self.give()
            if arguments["entry"] is None:
                return
        if not call.enabled(self.harness, **arguments):
            return
        result = call.run(self.harness, **arguments)
        if name == "pull" and result is not None:
            self.answer(result)
        elif name == "attempt" and result is not None:
            self.keep(result)

    def run(self) -> None:
        """Make the calls of the script, and then, of a pull queue, pull whenever woken."""
        for name in self.plan.script:
            self.step(name)
        if self.harness.kind == "pull":
            while not self.closed:
                while (entry := self.harness.pull(self.consumer)) is not None:
                    self.answer(entry)
                self.wake.acquire()

    def answer(self, entry: reference.QueueEntry) -> None:
        """Dequeue or release what was pulled, if the plan says so."""
        if not self.plan.acquires or self.plan.keeps == "keep":
            return
        if self.plan.keeps == "dequeue":
            self.give(entry)
            self.harness.dequeue(self.consumer, entry)
        elif entry.message.id not in self.returned:
            self.returned.add(entry.message.id)
            self.give(entry)
            self.harness.release(self.consumer, entry)


class _Connected:
    """The client's end of a target of the hand-over: its clients' requests come in, and are done on the IO thread.

    A request is a permit, and the connection is notified as if a message had come for it.
    """

    def __init__(self, lib: ModuleType, session: Any, name: str) -> None:
        end = self

        class Target(lib.ConsumerTarget):  # type: ignore[misc, name-defined]  # the class of the reference under test
            def process(self) -> bool:
                end.serve_requests()
                sent = len(self.sent)
                more: bool = super().process()
                for consumer, entry in self.sent[sent:]:
                    end.clients[consumer.name].answer(entry)
                return more

            def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
                end.clients[consumer.name].send(consumer, entry)
                self.sent.append((consumer, entry))

        self.target: Any = Target(session, name)
        self.clients: dict[str, _Client] = {}
        self.asked: dict[str, Any] = {}
        self.done: dict[str, int] = {}

    def connect(self, client: _Client) -> None:
        """Serve a client from now on."""
        name = client.consumer.name
        self.clients[name] = client
        self.asked[name] = client.harness.stage.host.semaphore(0, f"{name}.asked")
        self.done[name] = 0
        self.target.consumers.append(client.consumer)

    def ask(self, client: _Client) -> None:
        """Send a client's requests, one after the other: its thread."""
        for _ in client.plan.script:
            self.asked[client.consumer.name].release()
            client.harness.notify_work(client.consumer)

    def serve_requests(self) -> None:
        """Make the calls that were asked for."""
        for name, client in self.clients.items():
            while self.asked[name].try_acquire():
                client.step(client.plan.script[self.done[name]])
                self.done[name] += 1
                if client.closed and client.consumer in self.target.consumers:
                    self.target.consumers.remove(client.consumer)


class _Program:
    """A plan that is set up: its harness and clients, and then its threads."""

    def __init__(self, plan: QueuePlan, lib: ModuleType, stage: ProgramStage) -> None:
        self.plan = plan
        self.stage = stage
        self.clients: dict[str, _Client] = {}
        self.connected: list[_Connected] = []
        stage.pass_time(0)
        self.harness: Any = self._harness(lib)
        for n, message in enumerate(plan.preloaded, 1):
            self._enqueue(f"m{n}", message)
        for consumer in plan.consumers:
            self._subscribe(consumer)
        for client in self.clients.values():
            for _ in range(client.plan.held if client.plan.acquires else 0):
                self._hold_one(client)

    def _harness(self, lib: ModuleType) -> QueueHarness:
        plan, stage = self.plan, self.stage
        if plan.kind == "push":
            self._permits = stage.host.semaphore(0, "jobs")
            return PushHarness(lib, stage, self._target, plan.levels, self._permits.release)
        if not plan.io:
            return PullHarness(lib, stage, self._target, plan.levels)
        harness = HandoverHarness(lib, stage, self._target, plan.levels)
        self.connected = [
            _Connected(lib, session, f"target{n}") for n, session in enumerate(harness.sessions)
        ]
        return harness

    def _target(self, name: str) -> reference.Target:
        planned = self.plan.consumers[len(self.clients)]
        client = self.clients[name] = _Client(planned, name, self.stage)
        target: reference.Target = (
            self.connected[planned.target].target if self.connected else client
        )
        return target

    def _enqueue(self, id: str, message: PlannedMessage) -> None:
        self.harness.enqueue(**msgspec.structs.asdict(message), due=DUE, id=id)

    def _subscribe(self, planned: PlannedConsumer) -> None:
        consumer = self.harness.subscribe(
            acquires=planned.acquires,
            priority=planned.priority,
            keys=None if planned.keys is None else frozenset(planned.keys),
            credit=planned.credit,
            exclusive=planned.exclusive,
        )
        client = self.clients[consumer.name]
        client.harness, client.consumer = self.harness, consumer
        if self.connected:
            self.connected[planned.target].connect(client)

    def _hold_one(self, client: _Client) -> None:
        consumer = client.consumer
        if self.plan.kind == "pull":
            self.harness.pull(consumer)
        elif consumer.credit is None or consumer.credit.get() != 0:
            entry = self.harness.attempt(consumer)
            if entry is not None:
                client.keep(entry)

    # ---- threads

    def spawn(self) -> None:
        """Spawn the threads of the plan."""
        plan, spawn = self.plan, self.stage.spawn
        for name, client in self.clients.items():
            if self.connected:
                ask = self.connected[client.plan.target].ask
                spawn(partial(ask, client), name=name, daemon=False)
            else:
                spawn(client.run, name=name, daemon=plan.kind == "pull")
        for n in range(1, plan.io + 1):
            spawn(self._io_thread, name=f"io{n}", daemon=True)
        if plan.kind == "push":
            spawn(self._executor, name="job", daemon=True)
        for p, messages in enumerate(plan.publishers, 1):
            spawn(partial(self._publish, f"P{p}", messages), name=f"P{p}", daemon=False)
        if plan.housekeeping:
            spawn(self._housekeeping, name="housekeeping", daemon=False)

    def _io_thread(self) -> None:
        while True:
            self.harness.run_one()

    def _executor(self) -> None:
        while True:
            self._permits.acquire()
            self.harness.job()

    def _publish(self, name: str, messages: tuple[PlannedMessage, ...]) -> None:
        for n, message in enumerate(messages, 1):
            self._enqueue(f"{name}.{n}", message)

    def _housekeeping(self) -> None:
        self.harness.pass_time(DUE)
        self.harness.check_message_status()
