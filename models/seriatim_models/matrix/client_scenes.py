"""The client and its work pool in the matrix: applications that call, a reader for each connection, and workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar, cast

from seriatim_models.explorer import World
from seriatim_models.machines.calls import ApiCall
from seriatim_models.machines.client.calls import POOL, PoolHarness
from seriatim_models.machines.client.state import pool_outcome, pool_state_text
from seriatim_models.machines.single_threaded_host import WouldWait
from seriatim_models.machines.stages import ProgramStage, Stage
from seriatim_models.matrix.own_threads import OwnThreads, WorldOfWaiters
from seriatim_models.matrix.scene import ExpectedDifference, Invocation, Universe, Unsettled
from seriatim_models.matrix.table_scene import TableScene, without
from seriatim_models.programs.client import ClientScene
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.whitebox.client import CLIENT as PROPERTIES

READER = "owner "
"""The thread that adds work, as `TableScene.thread` calls it."""

H = TypeVar("H", bound=ClientScene)


class ServedScene(TableScene[H]):
    """A harness with threads of its own, which go on while a call waits, and to the end when all is settled."""

    own: OwnThreads
    stage: Stage

    def on(self, stage: Stage) -> World:
        """Return the world of a stage, on which the threads that are spawned are this scene's own."""
        world = cast(ProgramStage, stage).world
        self.stage = stage
        self.own = OwnThreads(lambda: world.alone)
        return WorldOfWaiters.of(world, self.own)

    def settle(self) -> None:
        """Let the threads go on until none of them has anything to do."""
        try:
            while self.own.go_on():
                pass
        except WouldWait as error:
            raise Unsettled(f"a thread of the system waits for ever {error}") from None

    def serve(self, first: Mapping[str, Callable[[], None]]) -> None:
        """Start the threads, and one for each owner that has a call to make."""
        stage = cast(ProgramStage, self.stage)
        self.own.start(stage)
        for name, call in first.items():
            stage.spawn(call, name=name.strip(), daemon=False)

    def record_rest(self) -> None:
        """Record the state of each server and work pool."""
        self.harness.record_rest()


# ---- the work pool by itself


POOL_TABLE = without(POOL, "make")


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

    def offered(self, call: ApiCall, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call is of this universe."""
        return call.name in self.universe.calls and arguments.get("key", "a") in self.universe.names

    def make(self, invocation: Invocation) -> str:
        """Make a call and return what its caller sees.

        A channel without limits is one with a call out: of that the work pool by itself knows nothing, and CH-5 much.
        """
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


Instead = Iterator[tuple[Universe, tuple[Invocation, ...]]]


def _of_those_that_stay(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome without the work that ran of channels that are not there in the end."""
    ran = {key: labels for key, labels in outcome["ran"].items() if key in outcome["queued"]}
    return {**outcome, "ran": ran}


UNTIL_THE_END = ExpectedDifference(
    "until its channel ends work is run item by item, and what is left then is dropped: CH-4 says that all of it "
    "was run or dropped",
    compared=_of_those_that_stay,
)


@dataclass(frozen=True)
class PoolSystem:
    """The work pool, with its universes."""

    name: str = "pool"
    reference: str = "client"
    unrecorded: tuple[str, ...] = ()

    @property
    def table(self) -> Mapping[str, ApiCall]:
        """The calls of the table, but for making another pool."""
        return POOL_TABLE

    @property
    def universes(self) -> Sequence[PoolUniverse]:
        """The universes."""
        return POOL_UNIVERSES

    @property
    def properties(self) -> Sequence[AnyProperty]:
        """CH-1 to CH-6; the others are about servers and calls."""
        return [p for p in PROPERTIES if p.id.startswith("CH")]

    @property
    def expected(self) -> Sequence[ExpectedDifference]:
        """What the outcome oracle lets pass."""
        return (UNTIL_THE_END,)

    def signature(self, universe: Universe, calls: Sequence[Invocation]) -> str:
        """Return the calls and their universe: no two universes here differ in names only."""
        return f"{universe.name}: {', '.join(map(str, calls))}"

    def scene(self, universe: Universe, lib: ModuleType, stage: Stage) -> PoolMatrixScene:
        """Return a pool without channels, but for what the universe gives."""
        assert isinstance(universe, PoolUniverse)
        scene = PoolMatrixScene(universe, lib, stage)
        for text in universe.given:
            scene.make(Invocation.read(text))
        return scene


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
POOL_SYSTEM = PoolSystem()
