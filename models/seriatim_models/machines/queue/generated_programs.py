"""Small concurrent programs over a queue, as plain data: drawn by Hypothesis, printed when they fail, run again.

A plan says which consumers there are, which messages are there at the beginning, and what each thread does.
Consumers of a pull queue have a thread each, or (`Plan.io`) share sessions and connections, which IO threads serve.
It keeps to the reference's rules of use: what concerns a consumer's wishes and credit happens on its own thread,
a consumer without credit does not say that it wants work, and who was woken pulls until there is nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any, Protocol

import msgspec
from hypothesis import strategies as st

import seriatim.queue as reference
from seriatim.host import Host

HELD_UNTIL = 5
"""When messages that are held become available, and after which those that expire have expired."""


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of a plan."""

    priority: int = 4
    key: str = ""
    group: str = ""
    special: str = ""
    """'', immediate, held or expiring."""


class Taker(msgspec.Struct, frozen=True, omit_defaults=True):
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
    """Of pull, attempt, release, dequeue, grant, pause, resume, close."""
    target: int = 0
    """With IO threads: consumers of one number share a target, 0 and 1 share a session, 0 to 2 a connection."""


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program."""

    kind: str = "pull"
    levels: int = 1
    there: tuple[Told, ...] = ()
    takers: tuple[Taker, ...] = ()
    publishers: tuple[tuple[Told, ...], ...] = ()
    housekeeping: bool = False
    """A thread lets time pass, and cleans up."""
    io: int = 0
    """How many IO threads serve all consumers; if none, each consumer has a thread of its own."""

    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    @staticmethod
    def read(text: str) -> Plan:
        return msgspec.json.decode(text, type=Plan)


# ---- drawing

PULLS = ("pull", "pull", "release", "dequeue", "grant", "pause", "resume", "close")
PUSHES = ("attempt", "release", "dequeue", "grant", "pause", "resume", "close")


@dataclass(frozen=True)
class About:
    """What plans choose from: a value that stands twice is drawn twice as often."""

    kinds: tuple[str, ...] = ("pull", "pull", "push")
    levels: tuple[int, ...] = (1, 1, 2)
    keys: tuple[str, ...] = ("", "", "x")
    groups: tuple[str, ...] = ("", "", "g")
    there: tuple[str, ...] = ("", "", "", "held", "expiring")
    """How messages that are there at the beginning are special, and those that come."""
    coming: tuple[str, ...] = ("", "", "immediate", "immediate", "held", "expiring")
    number: tuple[int, ...] = (0, 1, 2, 3)
    """How many there are at the beginning, and how many a publisher sends."""
    coming_at_once: tuple[int, ...] = (1, 2)
    consumers: tuple[int, ...] = (1, 2, 3)
    acquires: tuple[bool, ...] = (True, True, True, False)
    selectors: tuple[tuple[str, ...] | None, ...] = (None, None, ("x",))
    credit: tuple[int | None, ...] = (None, None, 0, 1, 2)
    alone: tuple[bool, ...] = (False, False, True)
    keeps: tuple[str, ...] = ("keep", "dequeue", "return")
    held: tuple[int, ...] = (0, 1, 2)
    pulls: tuple[str, ...] = PULLS
    pushes: tuple[str, ...] = PUSHES
    io: tuple[int, ...] = (0, 0, 0, 1, 2)


PLAIN = About(
    kinds=("pull",),
    levels=(1,),
    keys=("",),
    groups=("",),
    there=("",),
    coming=("",),
    acquires=(True,),
    selectors=(None,),
    alone=(False,),
    io=(0,),
)
ABOUT = {
    "anything": About(),
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
        coming_at_once=(2,),
        consumers=(1,),
        credit=(None, None, 2),
        pulls=("pull", "grant", "pause", "resume"),
    ),
    "first come": replace(
        PLAIN, number=(0,), coming_at_once=(1,), consumers=(2,), credit=(None,), pulls=("resume",)
    ),
    "handing over": replace(PLAIN, io=(1, 2)),
}
"""Drawn from everything at once, what takes three things to go wrong goes wrong too rarely: so most are about one."""


@st.composite
def plans(
    draw: st.DrawFn, threads: int = 3, operations: int = 3, kind: str = "", about: str = ""
) -> Plan:
    """Two to `threads` threads of one to `operations` operations each; `about` is one of `ABOUT`, else any."""
    of = ABOUT[about or draw(st.sampled_from(["anything", *ABOUT]))]
    kind = kind or draw(st.sampled_from(of.kinds))
    levels = draw(st.sampled_from(of.levels))
    first = [draw(told(of, levels, of.there)) for _ in range(draw(st.sampled_from(of.number)))]
    at_work = draw(st.integers(2, threads))
    consumers = draw(st.sampled_from([n for n in of.consumers if n <= at_work]))
    alone = consumers == 1 and draw(st.sampled_from(of.alone))
    takers = [draw(taker(of, kind, operations, alone)) for _ in range(consumers)]
    rest = at_work - consumers
    housekeeping = rest > 0 and any(t.special for t in first)
    io = draw(st.sampled_from(of.io)) if kind == "pull" else 0
    later = told(of, levels, of.coming)
    many = min(draw(st.sampled_from(of.coming_at_once)), operations)
    publishers = [tuple(draw(later) for _ in range(many)) for _ in range(rest - housekeeping)]
    return Plan(kind, levels, tuple(first), tuple(takers), tuple(publishers), housekeeping, io)


def told(of: About, levels: int, special: tuple[str, ...]) -> st.SearchStrategy[Told]:
    return st.builds(
        Told,
        priority=st.sampled_from([4, 9]) if levels > 1 else st.just(4),
        key=st.sampled_from(of.keys),
        group=st.sampled_from(of.groups),
        special=st.sampled_from(special),
    )


def taker(of: About, kind: str, operations: int, alone: bool) -> st.SearchStrategy[Taker]:
    script = st.lists(
        st.sampled_from(of.pulls if kind == "pull" else of.pushes),
        min_size=1,
        max_size=operations,
    )
    return st.builds(
        Taker,
        acquires=st.sampled_from(of.acquires),
        priority=st.integers(0, 1) if kind == "pull" else st.just(0),
        keys=st.sampled_from(of.selectors),
        credit=st.sampled_from(of.credit),
        exclusive=st.just(alone),
        keeps=st.sampled_from(of.keeps),
        held=st.sampled_from(of.held),
        script=script.map(tuple),
        target=st.integers(0, 3) if kind == "pull" else st.just(0),
    )


# ---- running


class Stage(Protocol):
    """Where a plan is run: a host, and threads of it."""

    @property
    def host(self) -> Host: ...

    def spawn(self, run: Callable[[], object], name: str, daemon: bool) -> object: ...

    def pass_time(self, by: int) -> None:
        """The clock goes on, and the history says so in the same moment."""
        ...


@dataclass
class _Client:
    """A taker at work."""

    plan: Taker
    name: str
    queue: Any
    host: Host
    consumer: Any = None

    def __post_init__(self) -> None:
        self.wake = self.host.semaphore(0, f"{self.name}.wake")
        self.has: Any = self.host.cell((), f"{self.name}.has")
        self.returned: set[str] = set()
        self.closed = False

    def notify_work(self, consumer: reference.Consumer) -> None:
        self.wake.release()

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        self.keep(entry)

    def keep(self, entry: reference.QueueEntry) -> None:
        """Of a push queue whoever delivers does this, while the client's own thread may give something back."""
        while not self.has.compare_and_set(has := self.has.get(), (*has, entry)):
            pass

    def give(self, entry: reference.QueueEntry | None = None) -> reference.QueueEntry | None:
        """Let go of `entry`, or of what it has had the longest, if it has anything."""
        while has := self.has.get():
            gone: reference.QueueEntry = entry or has[0]
            if self.has.compare_and_set(has, tuple(e for e in has if e is not gone)):
                return gone
        return None

    def able(self) -> bool:
        credit = self.consumer.credit
        return credit is None or credit.get() != 0

    def step(self, what: str) -> None:
        if not self.closed:
            getattr(self, what)()

    def run(self) -> None:
        """On a thread of its own."""
        for what in self.plan.script:
            self.step(what)
        if self.queue.kind == "pull":
            while not self.closed:
                while (entry := self.queue.deliver_single_message(self.consumer)) is not None:
                    self.answer(entry)
                self.wake.acquire()

    def answer(self, entry: reference.QueueEntry) -> None:
        if not self.plan.acquires or self.plan.keeps == "keep":
            return
        if self.plan.keeps == "dequeue":
            self.give(entry)
            self.queue.dequeue(entry, self.consumer)
        elif entry.message.id not in self.returned:
            self.returned.add(entry.message.id)
            self.give(entry)
            self.queue.release(entry, self.consumer)

    def pull(self) -> None:
        entry = self.queue.deliver_single_message(self.consumer)
        if entry is not None:
            self.answer(entry)

    def attempt(self) -> None:
        entry = self.queue.attempt(self.consumer, "job")
        if entry is not None:
            self.keep(entry)

    def release(self) -> None:
        if (entry := self.give()) is not None:
            self.queue.release(entry, self.consumer)

    def dequeue(self) -> None:
        if (entry := self.give()) is not None:
            self.queue.dequeue(entry, self.consumer)

    def grant(self) -> None:
        self.queue.grant(self.consumer, 1)

    def pause(self) -> None:
        self.queue.set_notify_work_desired(self.consumer, False)

    def resume(self) -> None:
        if self.able():
            self.queue.set_notify_work_desired(self.consumer, True)

    def close(self) -> None:
        self.closed = True
        self.queue.close(self.consumer)


class _Connected:
    """The client's end of a target of the hand-over: its clients' requests come in, and are done on the IO thread.

    A request is a permit, and the connection is told as if a message had come for it.
    """

    def __init__(self, lib: ModuleType, session: Any, name: str, host: Host) -> None:
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
                end.clients[consumer.name].keep(entry)
                self.sent.append((consumer, entry))

        self.target: Any = Target(session, name)
        self.clients: dict[str, _Client] = {}
        self.asked: dict[str, Any] = {}
        self.done: dict[str, int] = {}
        self.host = host

    def connect(self, client: _Client) -> None:
        name = client.consumer.name
        self.clients[name] = client
        self.asked[name] = self.host.semaphore(0, f"{name}.asked")
        self.done[name] = 0
        self.target.consumers.append(client.consumer)

    def ask(self, name: str) -> None:
        """A client's thread: its requests, one after the other."""
        for _ in self.clients[name].plan.script:
            self.asked[name].release()
            self.target.notify_work(self.clients[name].consumer)

    def serve_requests(self) -> None:
        for name, client in self.clients.items():
            while self.asked[name].try_acquire():
                client.step(client.plan.script[self.done[name]])
                self.done[name] += 1
                if client.closed and client.consumer in self.target.consumers:
                    self.target.consumers.remove(client.consumer)


def _connections(lib: ModuleType, host: Host) -> tuple[Any, list[_Connected]]:
    """A scheduler, and four targets: two in one session, three on one connection, and one on another."""
    scheduler = lib.Scheduler(host)
    first, second = (lib.Connection(scheduler, f"conn{n}") for n in (1, 2))
    sessions = [lib.Session(first, "s1"), lib.Session(first, "s2"), lib.Session(second, "s3")]
    at = [sessions[0], sessions[0], sessions[1], sessions[2]]
    return scheduler, [_Connected(lib, at[n], f"target{n}", host) for n in range(4)]


def start(plan: Plan, lib: ModuleType, stage: Stage) -> Any:
    """Set the scene, start the threads, and return the queue."""
    host = stage.host
    jobs: list[Callable[[], None]] = []
    permits = host.semaphore(0, "jobs")

    def submit(job: Callable[[], None]) -> None:
        jobs.append(job)
        permits.release()

    def executor() -> None:
        while True:
            permits.acquire()
            jobs.pop(0)()

    def message(id: str, told: Told) -> Any:
        return lib.Message(
            id,
            told.priority,
            told.key,
            told.group,
            told.special == "immediate",
            HELD_UNTIL if told.special == "held" else 0,
            HELD_UNTIL - 1 if told.special == "expiring" else 0,
        )

    stage.pass_time(0)
    queue: Any = (
        lib.PullQueue(host, "q", plan.levels)
        if plan.kind == "pull"
        else lib.PushQueue(host, submit, "q", plan.levels)
    )
    for n, told in enumerate(plan.there, 1):
        queue.enqueue(message(f"m{n}", told))
    clients = []
    scheduler: Any = None
    connected: list[_Connected] = []
    if plan.io:
        scheduler, connected = _connections(lib, host)
    for n, taker in enumerate(plan.takers, 1):
        name = f"C{n}"
        client = _Client(taker, name, queue, host)
        client.consumer = queue.subscribe(
            name,
            connected[taker.target].target if plan.io else client,
            acquires=taker.acquires,
            priority=taker.priority,
            keys=None if taker.keys is None else frozenset(taker.keys),
            credit=taker.credit,
            exclusive=taker.exclusive,
        )
        clients.append(client)
        if plan.io:
            connected[taker.target].connect(client)
    for client in clients:
        for _ in range(client.plan.held if client.plan.acquires else 0):
            if plan.kind == "pull":
                queue.deliver_single_message(client.consumer)
            elif client.able() and (entry := queue.attempt(client.consumer, "job")) is not None:
                client.keep(entry)
    for client in clients:
        name = client.consumer.name
        if plan.io:
            ask = connected[client.plan.target].ask
            stage.spawn(partial(ask, name), name=name, daemon=False)
        else:
            stage.spawn(client.run, name=name, daemon=plan.kind == "pull")

    def io_thread() -> None:
        while True:
            scheduler.run_one()

    for n in range(1, plan.io + 1):
        stage.spawn(io_thread, name=f"io{n}", daemon=True)
    if plan.kind == "push":
        stage.spawn(executor, name="job", daemon=True)
    for p, publications in enumerate(plan.publishers, 1):

        def publish(p: int = p, publications: tuple[Told, ...] = publications) -> None:
            for n, told in enumerate(publications, 1):
                queue.enqueue(message(f"P{p}.{n}", told))

        stage.spawn(publish, name=f"P{p}", daemon=False)
    if plan.housekeeping:

        def housekeeping() -> None:
            stage.pass_time(HELD_UNTIL)
            queue.check_message_status()

        stage.spawn(housekeeping, name="housekeeping", daemon=False)
    return queue
