"""The queue in the matrix: `PULL` and `PUSH`, with what may exist in each of their universes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, permutations
from types import ModuleType
from typing import Any, cast

import msgspec

import seriatim.queue as reference
from seriatim.host import Semaphore
from seriatim_models.machines.calls import ApiCall, Caller, CallStanding, callable_inside
from seriatim_models.machines.queue.calls import (
    DUE,
    PULL,
    PUSH,
    PlannedMessage,
    PullHarness,
    PushHarness,
    QueueHarness,
)
from seriatim_models.machines.stages import ProgramStage, Stage
from seriatim_models.matrix.callbacks import CallInside
from seriatim_models.matrix.scene import (
    ExpectedDifference,
    Instead,
    Invocation,
    MatrixSystem,
    Offer,
    Universe,
    Unsettled,
    without_some,
)
from seriatim_models.properties import WHITEBOX
from seriatim_models.properties.whitebox.calls import CALLS
from seriatim_models.properties.whitebox.client import CLIENT
from seriatim_models.properties.whitebox.fair import FAIR
from seriatim_models.properties.whitebox.log import LOG

BY = "by-"
"""How names begin of whom a callback subscribes, and of what it publishes; the rest is the consumer's name."""
GRANTED = "granted"
"""What a callback sees that granted its consumer credit for one message."""
COUNTS_LATER = "counts-later"
"""A call of no client, for the oracle only: behind it what is released of these messages counts later."""
ROUNDS = 60
"""How many calls of the system's own threads settling takes at most; the universes here need fewer than ten."""


@dataclass(frozen=True)
class Subscriber:
    """The options of a consumer that may subscribe."""

    acquires: bool = True
    priority: int = 0
    keys: frozenset[str] | None = None
    credit: int | None = None
    exclusive: bool = False


@dataclass(frozen=True)
class QueueUniverse(Universe):
    """Consumers that may subscribe, named A, B and C, and messages that may be enqueued, m1, m2 and m3."""

    consumers: tuple[Subscriber, ...] = (Subscriber(),)
    messages: tuple[PlannedMessage, ...] = (PlannedMessage(),)
    levels: int = 1
    strangers: bool = False
    """Whether consumers also release and dequeue what they do not hold."""

    @property
    def timed(self) -> bool:
        """Whether time passes: some message is delayed or expires."""
        return any(m.special in ("delayed", "expiring") for m in self.messages)

    def subscriber(self, name: str) -> Subscriber:
        """Return the options of the consumer of that name."""
        return self.consumers["ABC".index(name)]


class QueueMatrixScene:
    """A queue in a universe. It is the target of all its consumers."""

    made: type[QueueHarness]
    table: Mapping[str, ApiCall]

    def __init__(self, universe: QueueUniverse, lib: ModuleType, stage: Stage) -> None:
        self.universe = universe
        self.harness = self.made(lib, stage, self.end_of, universe.levels)
        self.woken: dict[str, reference.Consumer] = {}
        self.sent: dict[str, list[str]] = {}
        self._wake: dict[str, tuple[Semaphore, ...]] = {}
        """While IO threads serve the consumers: what is released to wake each."""
        self._served: dict[str, reference.Consumer] = {}
        if universe.timed:
            stage.host.record("clock", now=0)
        self.inside: CallInside | None = None
        self._due: list[Callable[[], None]] = []
        """What callbacks that have begun are still to call, and what counts later; for the oracle only."""
        if universe.callback:
            call = self.table[universe.callback]
            run = partial(self._run_inside, call)
            self.inside = CallInside(call, self.harness, run, self.logical_state)

    # ---- the client's end

    def end_of(self, name: str) -> reference.Target:
        """Return the client's end of a consumer that is subscribed by that name: this scene."""
        return self

    def notify_work(self, consumer: reference.Consumer) -> None:
        """Note that a consumer has to pull, or wake its IO thread."""
        if self._wake:
            self._served[consumer.name] = (
                consumer  # the semaphore orders this before the thread reads it
            )
            for permits in self._wake[consumer.name]:
                permits.release()
        else:
            self.woken[consumer.name] = consumer

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        """Note what a consumer was sent, and call what its callback calls."""
        self.sent.setdefault(consumer.name, []).append(entry.message.id)
        if self.inside is not None and consumer.name in self._names():
            host, of = self.harness.host, {"m": entry.message.id, "sub": consumer.name}
            host.record("send", ph="invoke", **of)
            alone = cast(ProgramStage, self.harness.stage).world.alone
            # Each message is dequeued, whoever gets it: else the rest of the outcome hung on whose turn it was.
            each = self.inside.call.name == "dequeue"
            who = f"{consumer.name} {entry.message.id}" if each else consumer.name
            if self.universe.callback_later:
                self._due.append(
                    partial(self.inside.make, who, False, consumer=consumer, entry=entry)
                )
            else:
                self.inside.make(who, alone, consumer=consumer, entry=entry)
            host.record("send", ph="ok", **of)

    def _run_inside(self, call: ApiCall, who: str, arguments: Mapping[str, Any]) -> str:
        """Make a callback's call; whom it subscribes, and what it publishes, has a name of no other."""
        new: Mapping[str, Mapping[str, object]] = {
            "enqueue": {"id": f"{BY}{who}", "due": DUE},
            "subscribe": {"name": f"{BY}{who}"},
        }
        result = self._run(call, {**arguments, **new.get(call.name, {})})
        return GRANTED if call.name == "grant" and not result else result

    # ---- calls

    def offers(self) -> Sequence[Offer]:
        """Return every call that can be made now, in the order of the table."""
        found: list[Offer] = []
        for call in self.table.values():
            found += self._offers_of(call)
        return found

    def _offers_of(self, call: ApiCall) -> Iterator[Offer]:
        if call.name == "enqueue":
            sent = set(self.harness.entries)
            unsent = [m for m in self._messages() if m not in sent]
            yield from self._next(call, unsent, self._message)
        elif call.name == "subscribe":
            gone = {*self.harness.consumers, *self.harness.closed}
            absent = [c for c in "ABC"[: len(self.universe.consumers)] if c not in gone]
            yield from self._next(call, absent, self.universe.subscriber)
        elif call.name == "pass_time":
            if self.universe.timed and self.harness.stage.host.now() < DUE:
                yield Offer(Invocation(call.name, (str(DUE),)), CallStanding.IN_CONTRACT, "time")
        elif call.name == "attempt":
            return  # the queue's own threads make it; no client does
        elif call.name == "check_message_status":
            if self.universe.timed:
                yield Offer(Invocation(call.name), CallStanding.IN_CONTRACT)
        else:
            yield from self._chosen(call)

    def _next(
        self, call: ApiCall, names: Sequence[str], options: Callable[[str], Any]
    ) -> Iterator[Offer]:
        """Yield the call for each name; of several with equal options the second only as a twin of the first."""
        first: dict[Any, Invocation] = {}
        for name in names:
            invocation = Invocation(call.name, (name,))
            twin = first.setdefault(options(name), invocation)
            standing = call.standing(self.harness, **self._arguments(call, invocation))
            yield Offer(invocation, standing, twin_of=None if twin is invocation else twin)

    def _chosen(self, call: ApiCall) -> Iterator[Offer]:
        for arguments in call.choices(self.harness):
            standing = call.standing(self.harness, **arguments)
            if standing is not CallStanding.REFUSED and arguments.get("messages", 1) != 1:
                continue
            if call.name in ("release", "dequeue") and not self._settles(**arguments):
                continue
            labels = tuple(_label(value) for value in arguments.values())
            consumer = arguments.get("consumer")
            owner = f"io {consumer.name}" if consumer and call.caller is Caller.OWNER else ""
            thread = "executor" if call.caller is Caller.SYSTEM else owner
            refused = standing is CallStanding.REFUSED
            yield Offer(Invocation(call.name, labels), standing, thread, by_arguments=refused)

    def _settles(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> bool:
        """Whether the consumer holds the entry, or this universe has strangers that try."""
        return self.universe.strangers or entry.state.get().holder == consumer.name

    def _messages(self) -> list[str]:
        return [f"m{n}" for n in range(1, len(self.universe.messages) + 1)]

    def _message(self, id: str) -> PlannedMessage:
        return self.universe.messages[int(id[1:]) - 1]

    def _arguments(self, call: ApiCall, invocation: Invocation) -> dict[str, Any]:
        harness, values = self.harness, invocation.arguments
        if call.name == "enqueue":
            m = self._message(values[0])
            return {"priority": m.priority, "key": m.key, "group": m.group, "special": m.special}
        if call.name == "subscribe":
            return dict(vars(self.universe.subscriber(values[0])))
        found: dict[str, Any] = {}
        for name, value in zip(call.arguments, values, strict=True):
            if name == "consumer":
                found[name] = harness.consumers.get(value) or harness.closed[value]
            else:
                found[name] = harness.entries[value] if name == "entry" else int(value)
        return found

    def make(self, invocation: Invocation) -> str:
        """Make a call, and what callbacks had still to call; return what its caller sees, perhaps ``refused``."""
        due, self._due = self._due, []
        result = self._make(invocation)
        for call in due:
            call()
        return result

    def _count_later(self, late: Sequence[str]) -> None:
        """Let a message that is released set its group free at once, and be available behind the next call."""
        queue = cast(Any, self.harness.queue)
        release = queue.release

        def give_back(entry: reference.QueueEntry, consumer: reference.Consumer) -> bool:
            held = entry.state.get() is consumer.acquired
            if not held or entry.message.id not in late:
                return cast(bool, release(entry, consumer))
            freed = queue.groups.leave(entry.message.group, consumer)

            def count() -> None:
                entry.change(consumer.acquired, self.harness.lib.State("AVAILABLE"))
                queue._announce_group(entry.message.group) if freed else queue._announce(entry)

            self._due.append(count)
            return True

        queue.release = give_back

    def _make(self, invocation: Invocation) -> str:
        if invocation.call == COUNTS_LATER:
            self._count_later(invocation.arguments)
            return ""
        call = self.table[invocation.call]
        arguments = self._arguments(call, invocation)
        if call.name == "enqueue":
            arguments |= {"due": DUE, "id": invocation.arguments[0]}
        elif call.name == "subscribe":
            arguments["name"] = invocation.arguments[0]
        elif call.name == "pull":
            consumer = arguments["consumer"]
            result = self._pull(consumer)
            if result and self._wake:
                self.notify_work(consumer)  # it must pull again
            return result
        elif call.name == "close" and not self._wake:
            self.woken.pop(invocation.arguments[0], None)  # who closes does not pull any more
        return self._run(call, arguments)

    def _run(self, call: ApiCall, arguments: Mapping[str, Any]) -> str:
        try:
            result = call.run(self.harness, **arguments)
        except self.harness.lib.QueueMisuse:
            return "refused"
        return "" if call.name in ("enqueue", "subscribe") else _label(result)

    def _pull(self, consumer: reference.Consumer) -> str:
        """Pull once. Who gets a message, and is open, must pull again; who gets none did what it was woken for."""
        if not self._wake:
            self.woken.pop(consumer.name, None)
        entry: Any = self.table["pull"].run(self.harness, consumer=consumer)
        if entry is not None and not self._wake and consumer.name in self.harness.consumers:
            self.woken[consumer.name] = consumer
        return _label(entry)

    # ---- what is left to be done

    def settle(self) -> None:
        """Let woken consumers pull, in the order of their names, and run jobs, until there is nothing left."""
        jobs = cast(PushHarness, self.harness).jobs if self.harness.kind == "push" else []
        for _ in range(ROUNDS):
            if self._due:
                self._due.pop(0)()
            elif self.woken:
                self._pull(self.woken[min(self.woken)])
            elif jobs:
                jobs.pop(0)()
            else:
                if self.inside is not None:
                    self.inside.check_end()
                return
        raise Unsettled(f"after {ROUNDS} calls of the queue's own threads something is left to do")

    def serve(self, first: Mapping[str, Callable[[], None]]) -> None:
        """Spawn the executor of a queue that pushes, or the IO threads of all consumers.

        Of a queue that pushes, an IO thread is spawned for each consumer that makes one of the racing calls.
        Consumers whose connection makes none of the racing calls share one, and a connection runs on one IO thread at
        a time (`seriatim.handover.Connection`); else each has a connection, and so an IO thread, of its own.
        """
        if self.harness.kind == "push":
            self._spawn_executor(first.get("executor"))
            for owner in sorted(first.keys() - {"executor"}):
                self._spawn(first[owner], owner)
        elif first:
            self._spawn_io_threads(first)
        else:
            self._spawn_io_thread()

    def _spawn_executor(self, first: Callable[[], None] | None) -> None:
        push = cast(PushHarness, self.harness)
        permits = push.stage.host.semaphore(len(push.jobs) - (first is not None), "jobs")
        push.submitted = permits.release

        def execute() -> None:
            if first is not None:
                first()
            while True:
                permits.acquire()
                push.jobs.pop(0)()

        self._spawn(execute, "executor")

    def _spawn_io_threads(self, first: Mapping[str, Callable[[], None]]) -> None:
        for name in self._names():
            wake = self._semaphore_of(name)
            self._wake[name] = (wake,)
            run = partial(self._serve_one, name, wake, first.get(f"io {name}", _nothing))
            self._spawn(run, f"io {name}")

    def _serve_one(self, name: str, wake: Semaphore, first: Callable[[], None]) -> None:
        first()
        while True:
            wake.acquire()
            self._pull_all(name)

    def _spawn_io_thread(self) -> None:
        work = self.harness.stage.host.semaphore(len(self.woken), "work")
        wakes = {name: self._semaphore_of(name) for name in self._names()}
        # That of the consumer first: whoever finds work finds whose.
        self._wake = {name: (wake, work) for name, wake in wakes.items()}

        def run() -> None:
            while True:
                work.acquire()
                self._pull_all(next(name for name, wake in wakes.items() if wake.try_acquire()))

        self._spawn(run, "io")

    def _names(self) -> str:
        return "ABC"[: len(self.universe.consumers)]

    def _semaphore_of(self, name: str) -> Semaphore:
        """Return what a consumer's wake-ups are counted by, those before included."""
        if name in self.woken:
            self._served[name] = self.woken.pop(name)
        return self.harness.stage.host.semaphore(int(name in self._served), f"{name}.wake")

    def _spawn(self, run: Callable[[], None], name: str) -> None:
        cast(ProgramStage, self.harness.stage).spawn(run, name=name, daemon=True)

    def _pull_all(self, name: str) -> None:
        while self._pull(self._served[name]):
            pass

    # ---- looking

    def record_rest(self) -> None:
        """Record the state of the queue."""
        self.harness.record_rest()

    def state(self) -> str:
        """Return the text of the queue, of what its clients know, and of what is left to be done."""
        called = {} if self.inside is None else {"called": sorted(self.inside.returned)}
        return self.harness.state(self.woken, **called)

    def logical_state(self) -> object:
        """Return the same without nodes that are deleted and still linked."""
        return self.harness.logical_state(self.woken)

    def outcome(self) -> Mapping[str, Any]:
        """Return the state and holder of each message, and the credit of each consumer and what it was sent."""
        harness = self.harness
        consumers = {**harness.consumers, **harness.closed}
        return {
            **{id: _entry_state(e) for id, e in sorted(harness.entries.items())},
            **{
                name: {
                    "credit": None if c.credit is None else c.credit.get(),
                    "wants": c.wants_work.get(),
                    "acquires": c.acquires,
                    "sent": self.sent.get(name, []),
                }
                for name, c in sorted(consumers.items())
            },
            "open": sorted(harness.consumers),
            "depth": harness.queue.depth.get(),
            **({} if self.inside is None else {"called": dict(self.inside.returned)}),
        }


def _entry_state(entry: reference.QueueEntry) -> str:
    state = entry.state.get()
    return "gone" if state.name in ("DEQUEUED", "DELETED") else repr(state)


def _nothing() -> None:
    """Do nothing."""


def _label(value: Any) -> str:
    if value is None:
        return ""
    if hasattr(value, "message"):
        return cast(str, value.message.id)
    return cast(str, getattr(value, "name", None)) or str(value)


class PullMatrixScene(QueueMatrixScene):
    """A queue that is pulled from, in a universe."""

    made = PullHarness
    table = PULL


class PushMatrixScene(QueueMatrixScene):
    """A queue that pushes, in a universe."""

    made = PushHarness
    table = PUSH


@dataclass(frozen=True)
class QueueSystem(MatrixSystem):
    """A kind of queue, whose universes may differ in the names of consumers and messages only."""

    def signature(self, universe: Universe, calls: Sequence[Invocation]) -> str:
        """Return the calls with the options of consumers and messages, which are numbered as they appear."""
        assert isinstance(universe, QueueUniverse)
        numbers: dict[str, str] = {}
        parts = [str(universe.levels), str(universe.timed), universe.callback]
        for call in (*map(Invocation.read, universe.given), *calls):
            parts.append(call.call)
            for name in call.arguments:
                if name not in numbers:
                    options: object = ""
                    if name in "ABC":
                        options = universe.subscriber(name)
                    elif name.startswith("m"):
                        options = universe.messages[int(name[1:]) - 1]
                    numbers[name] = f"{len(numbers)} {options}"
                parts.append(numbers[name])
        return "; ".join(parts)


QUEUE_PROPERTIES = tuple(p for p in WHITEBOX if p not in (*CLIENT, *LOG, *FAIR, *CALLS))
UNRECORDED = ("size",)
"""Two memberships that begin or end add to a list's counter; nobody reads it but a snapshot, which QL-2 judges."""


# ---- universes

PLAIN, BROWSER = Subscriber(), Subscriber(acquires=False)
ONE, SELECTOR = Subscriber(credit=1), Subscriber(keys=frozenset("x"))
HIGH, HIGH_ONE = Subscriber(priority=1), Subscriber(priority=1, credit=1)
HIGH_SELECTOR = Subscriber(priority=1, keys=frozenset("x"))
ALONE = Subscriber(exclusive=True)
M, X, GROUPED = PlannedMessage(), PlannedMessage(key="x"), PlannedMessage(group="g")
URGENT = PlannedMessage(priority=9)
IMMEDIATE, DELAYED, EXPIRING = (
    PlannedMessage(special=special) for special in ("immediate", "delayed", "expiring")
)

Few = tuple[Subscriber, ...]
Some = tuple[PlannedMessage, ...]


def _universe(name: str, why: str, consumers: Few, messages: Some, **options: Any) -> QueueUniverse:
    return QueueUniverse(name, why, consumers=consumers, messages=messages, **options)


UNIVERSES = (
    _universe("alone", "one consumer, two messages", (PLAIN,), (M, M), serve=True, idle=True),
    _universe("two", "two consumers after one message", (PLAIN, PLAIN), (M,), serve=True, idle=True),
    _universe("two-two", "the order of two", (PLAIN, PLAIN), (M, M)),
    _universe("credit", "credit runs out", (ONE, PLAIN), (M, M), serve=True, idle=True),
    _universe("credits", "both run out", (ONE, ONE), (M, M)),
    _universe("selector", "who wants what", (SELECTOR, PLAIN), (M, X)),
    _universe("selectors", "one passes the other's", (SELECTOR, PLAIN), (X, X)),
    _universe("browser", "shown, not taken", (BROWSER, PLAIN), (M, M)),
    _universe("group", "a group has one owner", (PLAIN, PLAIN), (GROUPED, GROUPED)),
    _universe("group-credit", "the owner can take no more", (ONE, PLAIN), (GROUPED, GROUPED)),
    _universe("exclusive", "the only consumer", (ALONE, PLAIN), (M,), idle=True),
    _universe("exclusives", "each wants to be the only one", (ALONE, ALONE), (M,), idle=True),
    _universe("immediate", "delivered at once or gone", (PLAIN, ONE), (IMMEDIATE, M)),
    _universe("delayed", "invisible for a time", (PLAIN,), (DELAYED, M)),
    _universe("expiring", "gone after a time", (PLAIN,), (EXPIRING, M)),
    _universe("priority", "one overtakes", (PLAIN, ONE), (M, URGENT), levels=2),
    _universe("strangers", "settling what another holds", (PLAIN, PLAIN), (M,), strangers=True, idle=True),
    _universe("holding", "both hold one", (PLAIN, ONE), (M, M, M), given=("subscribe A", "enqueue m1")),
)  # fmt: skip


def _inside(table: Mapping[str, ApiCall]) -> tuple[QueueUniverse, ...]:
    """Return a universe for each call that a callback may make."""
    return tuple(
        _universe(
            f"inside-{call}", f"a callback that calls {call}", (ONE, PLAIN), (M, M), given=("subscribe A",),
            given_counts=True, callback=call,
        )
        for call in callable_inside(table)
    )  # fmt: skip


PUSH_UNIVERSES = (*UNIVERSES, *_inside(PUSH))
PULL_UNIVERSES = (
    *UNIVERSES,
    _universe("ranks", "the higher one first", (HIGH, PLAIN), (M, M)),
    _universe("ranks-credit", "the higher one can take no more", (HIGH_ONE, PLAIN), (M, M)),
    _universe("ranks-selector", "the higher one wants another", (HIGH_SELECTOR, PLAIN), (M, X)),
    *_inside(PULL),  # the longest, so a budget cuts these off first
)


# ---- what the outcome oracle lets pass


def _immediate(universe: Universe, call: Invocation) -> bool:
    """Whether a call enqueues an immediate message."""
    assert isinstance(universe, QueueUniverse)
    if call.call != "enqueue":
        return False
    return universe.messages[int(call.arguments[0][1:]) - 1].special == "immediate"


def _but_for_immediate(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome without messages that are gone, and without what calls that return nothing returned."""
    returned = {call: result for call, result in outcome["returned"].items() if result}
    rest = {k: v for k, v in outcome.items() if v != "gone"}
    return {**rest, "returned": returned}


def _not_immediate(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the same calls in a universe in which no message is immediate."""
    assert isinstance(universe, QueueUniverse)
    if any(_immediate(universe, call) for call in calls):
        messages = tuple(
            msgspec.structs.replace(m, special="" if m.special == "immediate" else m.special)
            for m in universe.messages
        )
        yield replace(universe, messages=messages), calls


def _but_for_the_turn(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what does not depend on which of several ready consumers was served.

    Of a consumer that is the credit it ever had: what is left, and one for each message that it was sent. Whose
    callback called, whom it subscribed, and whom it granted credit, depends on it. How often each message was sent
    does not, unless callbacks call; but browsers are shown it as their turn comes, and what one who closes was sent is
    sent again. And whoever holds one was sent it.
    """
    found: dict[str, Any] = {}
    called = outcome.get("called", {})
    if not called:
        there = [v for v in outcome.values() if isinstance(v, dict) and v.get("acquires")]
        stay = [consumer for consumer in there if consumer["wants"] is not None]
        found["sent"] = sorted(id for consumer in stay for id in consumer["sent"])
    for key, value in outcome.items():
        if key.startswith(BY):
            continue
        if key == "open":
            found[key] = [name for name in value if not name.startswith(BY)]
        elif key == "called":
            found[key] = sorted(set(value.values()))
        elif isinstance(value, dict) and key != "returned":
            more = len(value["sent"]) - (called.get(key) == GRANTED)
            found[key] = None if value["credit"] is None else value["credit"] + more
        else:
            found[key] = value
            if isinstance(value, str):
                state, _, holder = value.partition(" by ")
                found[key] = state, not holder or key in outcome[holder]["sent"]
    return found


def _job_in_steps(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls with a job's first deliveries before it: all to some consumers, and then some to another.

    They are made one by one. Whom a callback subscribed may be one of these consumers.
    """
    assert isinstance(universe, QueueUniverse)
    if Invocation("job") in calls:
        names = [*"ABC"[: len(universe.consumers)]]
        names += [f"{BY}{n}" for n in names if universe.callback == "subscribe"]
        most = len(universe.messages)
        for served in range(len(names)):
            for *before, name in permutations(names, served + 1):
                whole = tuple(f"attempt {n}" for n in before for _ in range(most))
                for deliveries in range(1, most + 1):
                    steps = [Invocation("attempt", (name,))] * deliveries
                    yield replace(universe, then=whole), (*steps, *calls)


def _given_back_later(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls with some of what they give back counting later, and also with deliveries before a job."""
    assert isinstance(universe, QueueUniverse)
    if any(call.call in ("release", "close") for call in calls):
        messages = [f"m{n}" for n in range(1, len(universe.messages) + 1)]
        for some in range(1, len(messages) + 1):
            for late in combinations(messages, some):
                for of, each in ((universe, calls), *_job_in_steps(universe, calls)):
                    then = (*of.then, f"{COUNTS_LATER} {' '.join(late)}")
                    yield replace(universe, then=then), each


def _but_for_attempts(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome without what attempts returned, which no client makes."""
    made = {call: r for call, r in outcome["returned"].items() if not call.startswith("attempt ")}
    return {**outcome, "returned": made}


OVERTAKING = ExpectedDifference(
    "an immediate message behind one whose delivery is under way may not overtake it, and its publisher does not "
    "wait: it is discarded, and all else is as if it had not been enqueued",
    without_some(_immediate),
    _but_for_immediate,
)
JUST_PULLING = ExpectedDifference(
    "at once is before enqueue returns: of a queue that is pulled from, a consumer that is pulling just then gets "
    "an immediate message like any other",
    _not_immediate,
)
ANY_TURN = ExpectedDifference(
    "which of several ready consumers is served is free: of a push queue it depends on who delivers, the publisher "
    "or the job, of one that is pulled from on who of those that were woken pulls first; fair turns and priorities "
    "are properties of their own",
    compared=_but_for_the_turn,
)

MESSAGE_BY_MESSAGE = ExpectedDifference(
    "a job delivers message by message, and a call between two of its deliveries counts for the rest",
    _job_in_steps,
    _but_for_attempts,
)
PASSED_WHILE_HELD = ExpectedDifference(
    "a consumer looks at one message after the other: it may pass one while that is held, and take a later one that "
    "was released meanwhile or whose group was set free; the one that it passed keeps its place, and SO-3 says from "
    "when on it counts",
    _given_back_later,
    _but_for_attempts,
)


def _called_later(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls in a universe in which a callback begins, and calls after the next of them."""
    if universe.callback:
        yield replace(universe, callback_later="unread"), calls


CALLED_LATER = ExpectedDifference(
    "what a callback calls is a call of its own: another one may come between the delivery and it",
    _called_later,
)

PULL_SYSTEM = QueueSystem(
    "pull",
    "queue",
    PULL,
    PULL_UNIVERSES,
    PullMatrixScene,
    QUEUE_PROPERTIES,
    expected=(JUST_PULLING, CALLED_LATER, ANY_TURN, PASSED_WHILE_HELD),
    unrecorded=UNRECORDED,
)
PUSH_SYSTEM = QueueSystem(
    "push",
    "queue",
    PUSH,
    PUSH_UNIVERSES,
    PushMatrixScene,
    QUEUE_PROPERTIES,
    expected=(
        OVERTAKING,
        CALLED_LATER,  # the whole outcome, so before what leaves some of it out
        ANY_TURN,
        MESSAGE_BY_MESSAGE,
        PASSED_WHILE_HELD,
    ),
    unrecorded=UNRECORDED,
)
