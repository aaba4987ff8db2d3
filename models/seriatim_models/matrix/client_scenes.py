"""The client and its work pool in the matrix: applications that call, a reader for each connection, and workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from types import ModuleType
from typing import Any, TypeVar, cast

import seriatim.client as reference
from seriatim_models.explorer import World
from seriatim_models.machines.calls import ApiCall, callable_inside
from seriatim_models.machines.client.calls import (
    CLIENT,
    POOL,
    ClientHarness,
    PoolHarness,
    reply_code,
)
from seriatim_models.machines.client.state import outcome as client_outcome
from seriatim_models.machines.client.state import pool_outcome, pool_state_text, state_text
from seriatim_models.machines.single_threaded_host import WouldWait
from seriatim_models.machines.stages import ProgramStage, Stage
from seriatim_models.matrix.callbacks import CallInside
from seriatim_models.matrix.own_threads import OwnThreads, WorldOfWaiters
from seriatim_models.matrix.scene import (
    ExpectedDifference,
    Instead,
    Invocation,
    MatrixSystem,
    Universe,
    Unsettled,
    without_some,
)
from seriatim_models.matrix.table_scene import TableScene, label, without
from seriatim_models.programs.client_scene import ClientScene
from seriatim_models.properties.whitebox.client import CLIENT as PROPERTIES

H = TypeVar("H", bound=ClientScene)


class ServedScene(TableScene[H]):
    """A harness with threads of its own, which go on while a call waits, and to the end when all is settled."""

    own: OwnThreads
    stage: Stage
    settling = False

    def on(self, stage: Stage) -> World:
        """Return the world of a stage, on which the threads that are spawned are this scene's own."""
        world = cast(ProgramStage, stage).world
        self.stage = stage
        self.own = OwnThreads(lambda: world.alone)
        return WorldOfWaiters.of(world, self.own)

    def settle(self) -> None:
        """Let the threads go on until none of them has anything to do."""
        self.settling = True
        try:
            while self.own.go_on():
                pass
        except WouldWait as error:
            raise Unsettled(f"a thread of the system waits for ever {error}") from None
        finally:
            self.settling = False

    def serve(self, first: Mapping[str, Callable[[], None]]) -> None:
        """Start the threads, and one for each owner that has a call to make."""
        stage = cast(ProgramStage, self.stage)
        self.own.start(stage)
        for name, call in first.items():
            stage.spawn(call, name=name.strip(), daemon=False)

    def record_rest(self) -> None:
        """Record the state of each server and work pool."""
        self.harness.record_rest()


# ---- the client


@dataclass(frozen=True)
class ClientUniverse(Universe):
    """The connection `c` with two channels, perhaps `d` with one, and a queue `q`."""

    calls: tuple[str, ...] = ()
    """What may be called, with its arguments."""
    messages: int = 1
    """How many are in `q`."""
    connections: int = 1
    capacity: int | None = None
    settle: bool = False
    twice: bool = True
    late: bool = False
    """Whether every reply to a call with a time limit comes too late; for the oracle only."""
    unread: tuple[str, ...] = ()
    """The calls whose replies are not read, as `CALLBACK` those of callbacks; for the oracle only."""


class ClientMatrixScene(ServedScene[ClientHarness]):
    """Connections in a universe."""

    def __init__(self, universe: ClientUniverse, lib: ModuleType, stage: Stage) -> None:
        self.universe = universe
        world = self.on(stage)
        harness = ClientHarness(
            world, lib, 1, universe.messages, universe.capacity, universe.connections
        )
        super().__init__(harness, CLIENT, (lib.Misuse, lib.Closed, lib.CallTimeout))
        self._published: dict[Invocation, int] = {}
        workers = [name for name in self.own.threads if name.startswith("pool")]
        self._readers = [name for name in self.own.threads if name not in workers]
        self.own.threads = {n: self.own.threads[n] for n in (*self._readers, *workers)}
        self.inside: CallInside | None = None
        self._due: list[Callable[[], None]] = []
        """What callbacks that have begun are still to call; for the oracle only."""
        if universe.callback:
            call = CLIENT[universe.callback]
            self.inside = CallInside(
                call,
                harness,
                lambda who, arguments: self.run(call, arguments),
                partial(state_text, harness),
                partial(self.answer, call),
            )
            harness.inside = self._call_inside

    def _call_inside(self, channel: reference.Channel, delivery: reference.Delivery) -> None:
        assert self.inside is not None
        known = self.harness.known_inside(channel, delivery)
        consumer = f"{channel.key} {delivery.consumer_tag}"
        judged = self.settling and self.own.alone()
        call = partial(self.inside.make, consumer, judged, **known)
        if self.universe.callback_later:
            self._due.append(call)
        else:
            call()

    def _call_due(self) -> None:
        while self._due:
            self._due.pop(0)()

    def settle(self) -> None:
        """Let the threads go on until none of them has anything to do, and look at what callbacks called."""
        super().settle()
        if self.inside is not None and not self._due:
            self.inside.check_end()

    def offered(self, call: ApiCall, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call is of this universe."""
        return " ".join((call.name, *map(label, arguments.values()))) in self.universe.calls

    def thread(self, call: ApiCall, arguments: Mapping[str, Any]) -> str:
        """Return that of a publish: two of one name would differ in the order of their messages' names."""
        return f"publisher {arguments['to']}" if call.name == "publish" else ""

    def answer(self, call: ApiCall, arguments: Mapping[str, Any]) -> str:
        """Return the error with which the server answers a call that has a reply."""
        code = reply_code(self.harness, call.name, arguments)
        return f"refused {code}" if code and call.name not in UNANSWERED else ""

    def make(self, invocation: Invocation) -> str:
        """Make a call and return what its caller sees; alone, the readers then read what the server has sent.

        A message that is published is named after the call, so that its name does not tell who came first.
        """
        result = super().make(invocation)
        if self.universe.late and limited(invocation) and not result.startswith("refused"):
            result = LATE
        if str(invocation) in self.universe.unread:
            result = UNREAD
        if self.own.alone():
            if self.universe.callback_later == "unread":
                self._call_due()
            for reader in self._readers:
                self.own.run(reader)
            self._call_due()
        return result

    def arguments(self, invocation: Invocation) -> dict[str, Any]:
        """Return the arguments of a call, by name."""
        found = super().arguments(invocation)
        if invocation.call == "publish":
            number = self._published[invocation] = self._published.get(invocation, 0) + 1
            found["id"] = f"{'>'.join(invocation.arguments)}#{number}"
        return found

    def shown(self, result: object) -> str:
        """Return what a caller sees: of a delivery the message, its tag, and whether it comes again."""
        if hasattr(result, "delivery_tag"):
            got = cast(reference.Delivery, result)
            return f"{got.message.id} {got.delivery_tag}{' again' * got.redelivered}"
        return super().shown(result)

    def refusal(self, error: Exception) -> str:
        """Return the reply code of what is closed, or that the call is a misuse, or late."""
        code = getattr(error, "code", None)
        if code is not None:
            return f"refused {code}"
        return LATE if type(error).__name__ == "CallTimeout" else "refused"

    def state(self) -> str:
        """Return the server's queues, what is on the wires, the channels, and what the pools have to do."""
        called = "" if self.inside is None else f"\ncalled={sorted(self.inside.returned)}"
        return state_text(self.harness) + called

    def outcome(self) -> Mapping[str, Any]:
        """Return what callbacks got, which channels are closed and why, and the messages in the queues."""
        if self._due:  # a callback that began last
            self._call_due()
            self.settle()
        if self.inside is None:
            return client_outcome(self.harness)
        called = dict(self.inside.returned)
        if CALLBACK in self.universe.unread:
            called = dict.fromkeys(called, UNREAD)
        return {**client_outcome(self.harness), "called": called}


UNANSWERED = ("ack", "nack", "reject", "publish")
"""Calls that do not wait for what the server thinks of them."""

CALLBACK = "callback"
UNREAD = "unread"
"""What the caller sees of a call whose channel ends before the reply is read."""

LATE = "late"
"""What the caller sees of a call whose time limit is over."""


def limited(call: Invocation) -> bool:
    """Return whether a call has a time limit."""
    return call.call == "get" and call.arguments[-1] != "None"


def _answered_late(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls, if one has a time limit, in a universe in which its reply comes too late."""
    if any(map(limited, calls)):
        yield replace(cast(ClientUniverse, universe), late=True), calls


def _but_for_the_late(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome without the calls whose time limit was over."""
    returned = {call: result for call, result in outcome["returned"].items() if result != LATE}
    return {**outcome, "returned": returned}


def _ended(outcome: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return whether a call was made on a channel that is closed in the end."""
    closed = {k for k, v in outcome.items() if isinstance(v, dict) and v.get("closed")}
    return lambda call: bool(closed & {*call.split()})


def _but_for_nothing(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome without calls that returned nothing on channels that are closed in the end."""
    ended = _ended(outcome)
    found = {**_but_for_what_the_closed_got(outcome), "called": outcome.get("called", {})}
    for key in ("returned", "called"):
        found[key] = {c: result for c, result in found[key].items() if result or not ended(c)}
    return found


def _but_for_refusals_of_the_closed(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome in which who was refused on a channel that is closed in the end has not read the reply."""
    ended = _ended(outcome)
    found = dict(_but_for_what_the_closed_got(outcome))
    for key in {"returned", "called"} & {*found}:
        found[key] = {
            c: UNREAD if ended(c) and result.startswith("refused") else result
            for c, result in found[key].items()
        }
    return found


def _but_for_what_the_closed_got(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome without what the callbacks of channels got that are closed in the end."""
    return {
        key: {**value, "got": []} if isinstance(value, dict) and value.get("closed") else value
        for key, value in outcome.items()
    }


def _unanswered(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls without some that the server does not answer, of which that of a callback may be one."""
    some = without_some(lambda universe, call: call.call in UNANSWERED)
    yield from some(universe, calls)
    if universe.callback in UNANSWERED:
        kept = replace(universe, callback="")
        yield kept, calls
        yield from some(kept, calls)


NOT_ANSWERED = ExpectedDifference(
    "what is published or settled while the server closes its channel is ignored there, and nobody tells the caller: "
    "all else is as if it had not been made",
    _unanswered,
    _but_for_nothing,
)


def _not_read(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls in universes in which the replies to some of them, perhaps to the callback's, are not read."""
    assert isinstance(universe, ClientUniverse)
    answered = {str(c) for c in calls if c.call not in UNANSWERED}
    if universe.callback and universe.callback not in UNANSWERED:
        answered.add(CALLBACK)
    for some in range(1, len(answered) + 1):
        for unread in combinations(sorted(answered), some):
            yield replace(universe, unread=unread), calls


REPLY_NOT_READ = ExpectedDifference(
    "a call whose channel ends before its reply is read is refused, and was made at the server",
    _not_read,
    _but_for_refusals_of_the_closed,
)
TOO_LATE = ExpectedDifference(
    "a call may end at its time limit, and its reply comes later: at the server it was made",
    _answered_late,
)
NEVER_SENT = ExpectedDifference(
    "a call may end at its time limit while it waits for its turn: it was never sent",
    without_some(lambda universe, call: limited(call)),
    _but_for_the_late,
)
UNTIL_THE_CHANNELS_END = ExpectedDifference(
    "until a channel is closed its deliveries run one by one, and those that are left then are dropped; the server "
    "has requeued all that were not acknowledged",
    compared=_but_for_what_the_closed_got,
)


def _called_later(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls in a universe in which callbacks begin, and call after one of them."""
    if universe.callback:
        yield replace(universe, callback_later="unread"), calls
        yield replace(universe, callback_later="read"), calls


def _client(name: str, why: str, *calls: str, **options: Any) -> ClientUniverse:
    return ClientUniverse(name, why, calls=calls, serve=True, **options)


GET, GET_THERE = "get c.1 q False None", "get c.2 q False None"
CONSUME = "consume c.1 q t -"

CLIENT_UNIVERSES = (
    _client("calls", "each waits for its turn and its reply", GET, "qos c.1 1 True", "close c.1", "publish c.1 q"),
    _client(
        "impatient", "a reply that comes when nobody waits for it", "get c.1 q False 1", GET, "qos c.1 1 True",
        "close c.1", messages=2, twice=False,
    ),
    _client("consuming", "deliveries behind the reply", CONSUME, "cancel c.1 t", "publish c.2 q", "close c.1"),
    _client(
        "acknowledging", "settled by one, or with all before it", GET_THERE, "ack c.1 1 False", "ack c.1 0 True",
        "nack c.1 1 False True", "close c.1", given=("qos c.1 1 False", CONSUME), messages=2,
    ),
    _client(
        "exclusive", "the only consumer", "consume c.1 q t exclusive", "consume d.1 q u -", "cancel c.1 t", "close d.1",
        connections=2, messages=0,
    ),
    _client(
        "ends", "however it ends", "close c.1", "close_connection c", "fail c", "disconnect c", "shutdown", GET_THERE,
        given=(CONSUME,),
    ),
    _client(
        "queues", "an exclusive one dies with its connection", "declare c.1 r False", "declare d.1 r True",
        "close_connection d", "bind c.1 r x *", "publish c.1 x", connections=2, messages=0,
    ),
    _client(
        "own", "a consumer that wants nothing of its own connection", "consume c.1 q t no_local", "publish c.2 q",
        "publish d.1 q", "cancel c.1 t", connections=2, messages=0,
    ),
    _client(
        "opening", "a channel more, while the reader reads", "open_channel d", "qos d.1 1 True", "close d.2", "fail d",
        "close_connection d", "disconnect d", connections=2, messages=0,
    ),
    _client("refused", "the server closes the channel", "get c.1 none False None", "ack c.1 1 False", GET, "close c.1"),
    _client(
        "full", "the reader waits for room", CONSUME, "interrupt c", GET_THERE, capacity=1, messages=2, twice=False,
    ),
    ClientUniverse(
        "misuse", "what must be refused", serve=False,
        calls=(
            "ack c.1 -1 False", "reject c.1 -1 False", "qos c.1 -1 False", "consume c.1 q - -", "bind c.1 q - k",
            "close c.1",
        ),
    ),
)  # fmt: skip
BESIDE_CALLBACKS = (
    "close c.1",
    "close_connection c",
    "disconnect c",
    "cancel c.1 t",
    "nack c.1 1 False True",
    "get c.1 q False None",
    "publish d.1 q",
    "shutdown",
)
"""What is called beside what a callback calls: ends, what settles the same delivery, and what waits for its turn."""
CALLED_LATER = ExpectedDifference(
    "a callback that has begun may call behind what comes meanwhile: its call counts from then on",
    _called_later,
)
CALLBACK_UNIVERSES = tuple(
    _client(
        f"inside-{name}", f"a callback that calls {name}", *BESIDE_CALLBACKS, given=(CONSUME,), callback=name,
        callback_races=True, connections=2,
    )
    for name in callable_inside(CLIENT)
)  # fmt: skip
CLIENT_SYSTEM = MatrixSystem(
    "client",
    "client",
    CLIENT,
    (*CLIENT_UNIVERSES, *CALLBACK_UNIVERSES),
    ClientMatrixScene,
    PROPERTIES,
    expected=(
        CALLED_LATER,
        TOO_LATE,
        NEVER_SENT,
        NOT_ANSWERED,
        UNTIL_THE_CHANNELS_END,
        REPLY_NOT_READ,
    ),
)


# ---- the work pool by itself


POOL_TABLE = without(POOL, "make")
TASKS = "tasks"
"""A call of no client, for the oracle only: before the calls that follow the executor runs so many tasks."""
MOST_TASKS = 6
"""How many tasks it runs so at most."""


@dataclass(frozen=True)
class PoolUniverse(Universe):
    """A work pool for the channels `a` and `b`, with its executor."""

    names: tuple[str, ...] = ("a",)
    """The channels that are called."""
    threads: int = 1
    capacity: int | None = None
    block: int = 1
    raises: bool = False
    """Whether every callback raises."""
    calls: tuple[str, ...] = tuple(POOL_TABLE)


class PoolMatrixScene(ServedScene[PoolHarness]):
    """A work pool in a universe."""

    def __init__(self, universe: PoolUniverse, lib: ModuleType, stage: Stage) -> None:
        self.universe = universe
        world = self.on(stage)
        harness = PoolHarness(
            world, lib, universe.threads, universe.capacity, universe.block, universe.raises
        )
        super().__init__(harness, POOL_TABLE, (lib.Misuse, lib.NotPut, lib.Rejected))
        self._tasks: list[int] = []
        """How many tasks the executor runs before each of the next calls; for the oracle only."""

    def offered(self, call: ApiCall, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call is of this universe."""
        return call.name in self.universe.calls and arguments.get("key", "a") in self.universe.names

    def _run_tasks(self, most: int) -> None:
        """Let the executor run so many tasks, one after the other, or as many as there are."""
        for name in self.own.threads if most else ():
            self.own.run(name, most)
            return

    def _run_tasks_between(self, counts: Sequence[int]) -> None:
        """Let the executor run so many tasks before each call that follows, the last so many before channels end
        whose work was refused.
        """
        *self._tasks, before_end = counts
        served = self.harness.served
        end = served.on_failure

        def fail(why: str) -> None:
            self._run_tasks(before_end)
            end(why)

        served.on_failure = fail

    def make(self, invocation: Invocation) -> str:
        """Make a call and return what its caller sees.

        A channel without limits is one with a call out: of that the work pool by itself knows nothing, and CH-5 much.
        """
        if invocation.call == TASKS:
            self._run_tasks_between([int(count) for count in invocation.arguments])
            return ""
        if self._tasks:
            self._run_tasks(self._tasks.pop(0))
        name, key = invocation.call, "".join(invocation.arguments)
        record = self.stage.host.record
        if name == "unlimit":
            record("cli_call", ph="info", conn="", ch=ord(key), call=1, at="sent")
        result = super().make(invocation)
        if name in ("limit", "unregister"):
            end = {"limit": "reply", "unregister": "close"}[name]
            record("cli_frame", conn="", ch=ord(key), kind=end, call=1, dtag=0)
        return result

    def state(self) -> str:
        """Return what waits of each channel, which are ready, and what the executor has to do."""
        return pool_state_text(self.harness)

    def outcome(self) -> Mapping[str, Any]:
        """Return what ran of each channel, which channels there are, and whether the executor takes tasks."""
        return pool_outcome(self.harness)


def _tasks_between(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls with tasks of the executor run one by one before each, and before channels end."""
    moments = len(calls) + 1
    for counts in sorted(product(range(MOST_TASKS + 1), repeat=moments), key=sum):
        if 0 < sum(counts) <= MOST_TASKS:
            yield replace(universe, then=(f"{TASKS} {' '.join(map(str, counts))}",)), calls


UNTIL_THE_END = ExpectedDifference(
    "until its channel ends work is run item by item, and what is left then is dropped: a call between two items "
    "counts for the rest",
    _tasks_between,
)


RACING = tuple(name for name in POOL_TABLE if name not in ("put", "finish", "next"))
"""Calls that are refused, or without effect, in any state in which they can be made, stand beside no other."""
ADDING = ("register", "unregister", "add")


def _pool(name: str, why: str, serve_less: int = 0, **options: Any) -> PoolUniverse:
    return PoolUniverse(name, why, serve=True, serve_less=serve_less, **options)


POOL_UNIVERSES = (
    _pool("channel", "one channel comes and goes", idle=True, calls=RACING),
    PoolUniverse("misuse", "what must be refused", calls=("register", "put", "finish", "next")),
    _pool(
        "channels",
        "two channels on two threads",
        names=("a", "b"),
        threads=2,
        given=("register a", "register b", "add a"),
        calls=("add", "unregister"),
        serve_less=2,
    ),
    _pool(
        "waiting",
        "more work than a runnable takes",
        given=("register a", "add a", "add a"),
        calls=("add", "unregister", "shutdown"),
    ),
    _pool(
        "raising",
        "callbacks that raise",
        block=2,
        raises=True,
        given=("register a", "add a"),
        calls=ADDING,
    ),
    _pool(
        "full",
        "who adds waits for room, until there is some, or an end",
        capacity=1,
        settle=False,
        given=("register a", "add a"),
        calls=(*ADDING, "unlimit", "limit", "interrupt", "unregister_all"),
    ),
    _pool(
        "lifted",
        "the limit of one channel while another has a call out",
        names=("a", "b"),
        capacity=1,
        settle=False,
        given=("register a", "register b", "add a", "unlimit b"),
        calls=("add", "unregister", "unlimit", "limit"),
        serve_less=2,
    ),
)
POOL_SYSTEM = MatrixSystem(
    "pool",
    "client",
    POOL_TABLE,
    POOL_UNIVERSES,
    PoolMatrixScene,
    [p for p in PROPERTIES if p.id.startswith("CH")],  # the others are about servers and calls
    expected=(UNTIL_THE_END,),
)
