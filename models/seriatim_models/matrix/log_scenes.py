"""The log in the matrix: publishers, a consumer and a batch reader of each channel, and operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any, cast

import seriatim.log as reference
from seriatim_models.machines.calls import ApiCall, callable_inside
from seriatim_models.machines.log.calls import LOG, LogHarness, channels, state
from seriatim_models.machines.log.state import state_text
from seriatim_models.machines.stages import ProgramStage, Stage
from seriatim_models.matrix.callbacks import CallInside
from seriatim_models.matrix.scene import (
    ExpectedDifference,
    Instead,
    Invocation,
    MatrixSystem,
    Universe,
    Unsettled,
)
from seriatim_models.matrix.table_scene import TableScene, UnobservedWorld, without
from seriatim_models.programs.log import rest
from seriatim_models.properties.whitebox.log import LOG as PROPERTIES

MESSAGES = 20
"""More than any state here has."""
TABLE = without(LOG, "consume", "begin", "move")


@dataclass(frozen=True)
class LogUniverse(Universe):
    """A topic with the channels `a` and `b`."""

    messages: tuple[str, ...] = ("good",)
    """What may be published; one of 30 bytes is refused."""
    names: tuple[str, ...] = ("a",)
    """The channels that are called."""
    calls: tuple[str, ...] = tuple(TABLE)


class LogMatrixScene(TableScene[LogHarness]):
    """A topic in a universe."""

    def __init__(self, universe: LogUniverse, lib: ModuleType, stage: Stage) -> None:
        world = UnobservedWorld.of(cast(ProgramStage, stage).world)
        super().__init__(LogHarness(world, lib), TABLE, (lib.Misuse, lib.PastTheEnd))
        self.universe = universe
        self.stage = stage
        self.inside: CallInside | None = None
        if universe.callback:
            call = TABLE[universe.callback]
            run = partial(self._run_inside, call)
            self.inside = CallInside(call, self.harness, run, self.state)
            self.harness.inside = self._call_inside

    def _call_inside(self, channel: reference.Channel, message: bytes) -> None:
        """Make the callback's call: of each channel's handlers once for each message that differs."""
        assert self.inside is not None
        alone = cast(ProgramStage, self.stage).world.alone
        self.inside.make(f"{channel.name} {message.decode('latin-1')}", alone, channel=channel)

    def _run_inside(self, call: ApiCall, who: str, arguments: Mapping[str, Any]) -> str:
        return self.run(call, arguments)

    def offered(self, call: ApiCall, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call is of this universe: its messages and channels, and few of what differs little."""
        channel = arguments.get("channel")
        return (
            call.name in self.universe.calls
            and (channel is None or channel.name in self.universe.names)
            and arguments.get("message", "good") in self.universe.messages
            and arguments.get("limit", 1) in (1, 2)
            and not arguments.get("fails")
            and arguments.get("max_attempts", 1) == 1
        )

    def thread(self, call: ApiCall, arguments: Mapping[str, Any]) -> str:
        """Return the thread of a channel's consumer for what belongs to it."""
        own = call.name in ("connect", "consume_one", "commit")
        return f"consumer {arguments['channel'].name}" if own else ""

    def shown(self, result: object) -> str:
        """Return what a caller sees: messages as their text, and what was read from a topic with its place."""
        if isinstance(result, list):
            return ",".join(map(_delivered, result))
        return super().shown(result)

    def make(self, invocation: Invocation) -> str:
        """Make a call and return what its caller sees; a batch is handled, as is recorded, before it is committed."""
        if invocation.call != "commit":
            return super().make(invocation)
        name, limit = invocation.arguments
        channel = self.harness.channels[name]
        batch = channel.read(int(limit))
        for d in batch:
            at = {"channel": name, "place": list(d.place), "body": d.message.decode("latin-1")}
            self.stage.host.record("handle", ph="invoke", **at)
            self.stage.host.record("handle", ph="ok", **at)
        if batch:
            channel.commit(batch[-1].following)
        return str(len(batch))

    def settle(self) -> None:
        """Read every channel to its end, if this universe's channels have consumers; look at what handlers called."""
        self._read_on()
        if self.inside is not None:
            self.inside.check_end()

    def _read_on(self) -> None:
        if not self.universe.serve:
            return
        for channel in channels(self.harness):
            for _ in range(MESSAGES):
                if state(channel) != reference.AWAY or not channel.read(1):
                    break
                self._consume_one(channel)
            else:
                raise Unsettled(f"{channel.name} does not come to the end")

    def _consume_one(self, channel: reference.Channel) -> None:
        """Consume one message when nothing else moves: nobody has to be notified that it is to end."""
        keep = self.harness.keeping(channel)

        def handler(message: bytes) -> None:
            channel._stopping = True
            keep(message)

        channel.connect()
        channel.consume(handler)

    def serve(self, first: Mapping[str, Callable[[], None]]) -> None:
        """Spawn a consumer of each channel, which reads until it is asked to end."""
        for channel in channels(self.harness):
            name = f"consumer {channel.name}"
            run = partial(self._consume, channel, first.get(name))
            cast(ProgramStage, self.stage).spawn(run, name=name, daemon=True)

    def _consume(self, channel: reference.Channel, first: Callable[[], None] | None) -> None:
        if first is not None:
            first()
        while True:
            if state(channel) == reference.AWAY:
                channel.connect()
            channel.consume(self.harness.keeping(channel))

    def record_rest(self) -> None:
        """Record the state of the topic and its channels."""
        harness = self.harness
        self.stage.host.record("log_rest", **rest(harness.topic, harness.channels))

    def state(self) -> str:
        """Return the disk, what is open, and who consumes."""
        called = "" if self.inside is None else f"\ncalled={sorted(self.inside.returned)}"
        return state_text(self.harness) + called

    def outcome(self) -> Mapping[str, Any]:
        """Return what each channel handled, parked and has before it, and whether the topic is closed."""
        harness = self.harness
        return {
            "closed": harness.topic._closed,
            "written": [d.message.decode("latin-1") for d in _all(harness.topic)],
            **{
                channel.name: {
                    "handled": harness.handled.get(channel.name, []),
                    "parked": [f"{p.message!r} {p.error}" for p in channel.parked()],
                    "unread": len(channel.read(MESSAGES)),
                }
                for channel in channels(harness)
            },
            **({} if self.inside is None else {"called": dict(self.inside.returned)}),
        }


def _delivered(delivery: reference.Delivery | reference.Parked) -> str:
    text = bytes(delivery.message).decode("latin-1")
    behind: reference.Position | None = getattr(delivery, "following", None)
    if behind is None:
        return text
    start, end = (f"{at.segment}:{at.offset}" for at in (delivery.place, behind))
    return f"{text} {start} {end}"


def _has_gap(batch: str) -> bool:
    """Return whether a batch, as it is shown, leaves out a message between two that it has."""
    places = [shown.split(" ")[-2:] for shown in batch.split(",")] if batch else []
    return any(
        start not in (end, f"{int(end.partition(':')[0]) + 1}:0")
        for (_, end), (start, _) in pairwise(places)
    )


def _all(topic: reference.Topic) -> list[reference.Delivery]:
    """Return everything that was written."""
    found: list[reference.Delivery] = []
    position = reference.Position(0, 0)
    while (delivery := topic.read(position)) is not None:
        found.append(delivery)
        position = delivery.following
    return found


def _not_consumed(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls without those that consume."""
    rest = tuple(call for call in calls if call.call != "consume_one")
    if len(rest) < len(calls):
        yield universe, rest


def _but_for_nothing(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome without what calls that return nothing returned."""
    returned = {call: result for call, result in outcome["returned"].items() if result}
    return {**outcome, "returned": returned}


ASKED_TO_END = ExpectedDifference(
    "a consumer that is asked to end between its connecting and its first message consumes none",
    _not_consumed,
    _but_for_nothing,
)


def _not_read(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls without one that reads, if another one moves the position of its channel."""
    for n, call in enumerate(calls):
        if call.call == "read" and any(
            c.call in ("commit", "consume_one") and c.arguments[0] == call.arguments[0]
            for c in calls
        ):
            yield universe, (*calls[:n], *calls[n + 1 :])


def _but_for_what_was_read(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome without what batches had that were read and not committed, but for gaps in them."""
    returned = outcome["returned"]
    gaps = any(_has_gap(result) for call, result in returned.items() if call.startswith("read "))
    rest = {call: result for call, result in returned.items() if not call.startswith("read ")}
    return {**outcome, "returned": rest, "gaps": gaps}


READ_MEANWHILE = ExpectedDifference(
    "a batch begins where its channel's position was, and is read message by message: if the position moves and then "
    "a message comes, it has both what was committed and what came",
    _not_read,
    _but_for_what_was_read,
)


def _two_replays(universe: Universe, calls: tuple[Invocation, ...]) -> Instead:
    """Yield the calls, if one replays what is parked and a handler does so, too."""
    if universe.callback == "replay" and any(call.call == "replay" for call in calls):
        yield universe, calls


def _but_for_counts(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome without how many messages each replay had, and whether one came too late."""
    returned = {c: r for c, r in outcome["returned"].items() if not c.startswith("replay ")}
    return {**outcome, "returned": returned, "called": sorted(outcome.get("called", ()))}


REPLAYED_TWICE = ExpectedDifference(
    "a parked message is struck off when the handler of a replay has returned, so two who replay it at once both "
    "hand it over, or the one that comes to it later is refused",
    _two_replays,
    _but_for_counts,
)


BESIDE = ("publish_one", "consume_one", "read", "replay", "disconnect", "close_topic")
"""What is called beside what a handler calls."""
WITH_PARKED = ("publish_one bad", "consume_one a", "publish_one good")
INSIDE = tuple(
    LogUniverse(
        f"inside-{name}",
        f"a handler that calls {name}",
        given=WITH_PARKED if name in ("parked", "replay") else ("publish_one good",),
        calls=BESIDE,
        callback=name,
    )
    for name in callable_inside(TABLE)
)
UNIVERSES = (
    LogUniverse(
        "one-channel",
        "its consumer, an operator, and the topic's end",
        messages=("good", "x" * 30),
    ),
    LogUniverse("parking", "messages that fail", messages=("good", "bad")),
    LogUniverse(
        "two-channels",
        "each has its own position",
        names=("a", "b"),
        calls=("publish_one", "consume_one", "read", "commit", "disconnect", "open_channel"),
    ),
    LogUniverse(
        "served",
        "consumers that sleep and are woken",
        serve=True,
        calls=("publish_one", "notify", "close_topic"),
    ),
    *INSIDE,
)
LOG_SYSTEM = MatrixSystem(
    "log",
    "log",
    TABLE,
    UNIVERSES,
    LogMatrixScene,
    PROPERTIES,
    expected=(ASKED_TO_END, READ_MEANWHILE, REPLAYED_TWICE),
)
