"""One run of a program under a schedule: greenlets in one OS thread.

The *hub* decides. It holds one greenlet per thread of the program;
each is stopped inside its next visible operation, announced in `Thread.op` and not yet done.
A step is: the hub does the operation of a thread, then lets the thread run up to its next announcement.
The code in between belongs to the step, so a step is atomic.

Names are never addresses: a thread is named by its parent and its number among the children of that parent,
an object by the thread that made it and its number among that thread's objects.
Then the same thing has the same name in every schedule, which partial-order reduction needs.
`Space` gives each name a small number, once for a whole exploration.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

import greenlet  # type: ignore[import-untyped]  # greenlet ships no annotations

from seriatim_models.explorer.errors import ExplorerError, Misuse, ModelBug
from seriatim_models.explorer.model.operations import (
    ADD,
    NOTHING,
    READ,
    SETUP,
    WRITE,
    Footprint,
    Operation,
    Permit,
    Reacquire,
    Shared,
    Thread,
    Wait,
    Wake,
)
from seriatim_models.explorer.model.world import World

UNSTARTED = frozenset((CoroutineType, GeneratorType, AsyncGeneratorType))
"""What a call of a function returns of which it has run nothing."""

NOBODY = -1
"""Maker of what is made by none of them: the clock, the order of calls, what is made after the end."""

ObjectName = tuple[int, int | tuple[int, str]]
"""What an object is known by: the thread that made it, and a number (see `Space.object`)."""

OUTSIDE = {"calls": -1, "clock": -2}
"""Numbers of the objects that no thread makes."""


class ElementHashes(dict[tuple[int, int, int], int]):
    """128 bits for each element (thread, level, alternative) of a Foata normal form, computed on first use.

    See `trace.foata`.
    """

    def __init__(self, paths: list[tuple[int, ...]]) -> None:
        super().__init__()
        self._paths = paths

    def __missing__(self, element: tuple[int, int, int]) -> int:
        tid, level, alternative = element
        text = f"{self._paths[tid]}/{level}/{alternative}".encode()
        digest = hashlib.blake2b(text, digest_size=16).digest()
        mark = self[element] = int.from_bytes(digest, "big")
        return mark


class Space:
    """Numbers for names, and footprints for objects, shared by all executions of one exploration."""

    __slots__ = ("_footprints", "_names", "_threads", "hashes", "idle", "objects", "paths")

    def __init__(self) -> None:
        self.idle: list[Any] = []
        """Greenlets whose thread has ended, for the next ones."""
        self.paths: list[tuple[int, ...]] = [()]
        self._threads: dict[tuple[int, int], int] = {}
        self.objects: dict[ObjectName, tuple[int, Footprint, Footprint, Footprint]] = {}
        """By name, what `object` has returned."""
        self._names: list[ObjectName] = []
        self._footprints: dict[tuple[tuple[int, int], ...], Footprint] = {(): NOTHING}
        self.hashes = ElementHashes(self.paths)

    def thread(self, parent: int, child: int) -> int:
        """The number of the `child`-th thread that thread `parent` made."""
        key = (parent, child)
        tid = self._threads.get(key)
        if tid is None:
            tid = self._threads[key] = len(self.paths)
            self.paths.append((*self.paths[parent], child))
        return tid

    def object(
        self, maker: int, number: int | tuple[int, str]
    ) -> tuple[int, Footprint, Footprint, Footprint]:
        """Index and footprints (reads, writes, adds) of the `number`-th object that thread `maker` made.

        In ordinary Python a part of an object has a name of its own: the number and the attribute.
        """
        key = (maker, number)
        found = self.objects.get(key)
        if found is None:
            index = len(self.objects)
            found = self.objects[key] = (
                index,
                self.footprint(((index, READ),)),
                self.footprint(((index, WRITE),)),
                self.footprint(((index, ADD),)),
            )
        return found

    def footprint(self, accesses: tuple[tuple[int, int], ...]) -> Footprint:
        """The one footprint of these (object, mode)."""
        found = self._footprints.get(accesses)
        if found is None:
            found = self._footprints[accesses] = Footprint(accesses)
        return found

    def at(self, path: Sequence[int]) -> int:
        """The number of the thread with this path from the set-up."""
        tid = SETUP
        for child in path:
            tid = self.thread(tid, child)
        return tid

    def name_of_object(self, index: int) -> ObjectName:
        """(maker, number) of an object."""
        if len(self._names) < len(self.objects):
            self._names = list(self.objects)
        return self._names[index]


class ControlledGreenlet(greenlet.greenlet):  # type: ignore[misc]
    """A greenlet of a program; its type tells a guard that a program is running."""


def refuse_unstarted(what: str, result: object) -> None:
    """Raise `Misuse` if a call has run nothing: it has returned a coroutine, a generator or the like.

    `what` names the function that was called.
    """
    kind = type(result)
    if not (kind in UNSTARTED or hasattr(kind, "__await__")):
        return
    close = getattr(result, "close", None)
    if close is not None:
        close()  # no warning that it was never awaited
    name = getattr(result, "__qualname__", kind.__name__)
    raise Misuse(
        f"{what} returned a {kind.__name__} ({name}), so nothing of it has run: a call of an `async def`, or of a "
        "function with `yield`, runs no line of it. The model has threads and no event loop: write a plain "
        "function over the host"
    )


def _work(switch: Callable[[], Any]) -> None:
    """What a greenlet does: run one thread after another. To make a greenlet costs more than to run a small thread.

    What a greenlet is started with it holds for life, out of sight of the garbage collector: so no thread.
    """
    while True:
        ex: Execution
        thread: Thread
        ex, thread = switch()
        try:
            if thread.code is not None:
                result = thread.code()
                if result is not None:
                    refuse_unstarted(f"the function of {thread.name}", result)
        except greenlet.GreenletExit:
            pass
        except (ExplorerError, KeyboardInterrupt, SystemExit):
            if not ex.closing:
                raise
        except BaseException as error:
            if not ex.closing:
                ex.failed(thread, error)
        if thread.held is not None and not ex.closing:
            ex.world.flush(thread)
        thread.done = True
        thread.op = thread.code = None
        thread.greenlet.gr_context = None  # each thread begins without context variables
        ex.space.idle.append(thread.greenlet)
        thread.greenlet = None
        del ex, thread  # an idle greenlet keeps nothing alive


class Failure:
    """An exception that left a thread."""

    __slots__ = ("error", "step", "thread")

    def __init__(self, thread: str, step: int, error: BaseException) -> None:
        self.thread = thread
        self.step = step
        self.error = error


class Notification:
    """A notify, kept so that a lost wake-up can be explained."""

    __slots__ = ("by", "condition", "step", "waiters", "woke")

    def __init__(self, condition: Shared, by: str, step: int, woke: list[str], waiters: int):
        self.condition = condition
        self.by = by
        self.step = step
        self.woke = woke
        self.waiters = waiters


_executions = count()


class Execution:
    """One run."""

    steps_show_all_state = True
    """Whether threads that repeat the same steps with the same results change nothing: all shared state is in cells."""

    __slots__ = (
        "acting", "by_tid", "calls", "closing", "current", "cycle", "distinguished", "end", "failures",
        "hub", "log", "names", "notifies", "nth", "ops", "order", "program", "real_time", "repeating",
        "schedule", "script", "setting_up", "space", "spurious", "steps", "strays", "switch", "threads",
        "timeouts", "values", "world",
    )  # fmt: skip

    def __init__(
        self,
        program: Callable[[World], object],
        space: Space,
        *,
        real_time: bool = False,
        timeouts: int = 1,
        spurious: int = 0,
        log: bool = False,
    ) -> None:
        self.nth = next(_executions)
        """Which one of this process it is: another may have its address when it is over."""
        self.program = program
        self.space = space
        self.real_time = real_time
        self.timeouts = timeouts
        self.spurious = spurious
        self.steps = 0
        self.hub = greenlet.getcurrent()
        self.switch: Callable[[], Any] = self.hub.switch
        self.current: Thread | None = None
        self.acting: Thread | None = None
        self.setting_up: Thread | None = None
        self.closing = False
        self.end = ""
        self.names = {"setup"}
        self.order: list[Thread] = []
        self.by_tid: dict[int, Thread] = {}
        self.threads: list[Thread] = []
        self.schedule: list[tuple[int, int]] = []
        self.repeating = False
        """See `World.repeating`."""
        self.script: list[Operation] = []
        """What the running thread did next, the last time that these steps were taken; the next one is the last."""
        self.ops: list[Operation] = []
        """Operations of all steps that are to be taken again; each is brought up to date as it is done."""
        self.values: list[Any] = []
        """Values that their objects had before them."""
        self.failures: list[Failure] = []
        self.notifies: list[Notification] = []
        self.distinguished: dict[int, str] = {}
        """Threads of which a program asked something that another one has not, by number, and what it asked."""
        self.strays = 0
        self.cycle: Any = None
        self.log: list[Any] | None = [] if log else None
        self.world = World(self)
        if real_time:
            self.calls = self.outside_object("calls", None)

    # -- running ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Run the program function up to its first choice, or to its end."""
        setup = Thread(self, SETUP, "setup", False, lambda: self.program(self.world))
        self.setting_up = self.acting = setup
        self.threads.append(setup)
        self._give_greenlet(setup)((self, setup))
        if setup.done:
            self._set_up()

    def _set_up(self) -> None:
        """The program function has returned: let every thread run up to its first operation."""
        setup = self.order[SETUP]
        self.setting_up = self.acting = None
        if self.failures:
            raise self.failures[0].error
        self.threads = [t for t in self.order if t is not setup]
        for thread in list(self.threads):
            thread.born = setup.last
            self._go(thread)

    def _go(self, thread: Thread) -> None:
        before, self.acting, self.current = self.acting, thread, thread
        self._give_greenlet(thread)((self, thread))
        self.acting, self.current = before, None

    def _give_greenlet(self, thread: Thread) -> Callable[[tuple[Execution, Thread]], object]:
        idle = self.space.idle
        if idle:
            given = idle.pop()
        else:
            given = ControlledGreenlet(_work, self.hub)
            given.switch(self.hub.switch)
        thread.greenlet = given
        thread.resume = given.switch
        return given.switch  # type: ignore[no-any-return]

    def know(self, pasts: list[int], steps_of: defaultdict[int, int]) -> None:
        """Be given what a search keeps before each step is taken: the past of each, and the steps of each thread.

        Both are bit sets, and may hold steps that are known to come.
        """

    def step(self, thread: Thread, alternative: int) -> Any:
        """Do the announced operation of `thread`, let the thread run to its next one, and return the result."""
        op = thread.op
        self.acting = thread
        self.schedule.append((thread.number, alternative))
        thread.last = self.steps
        self.steps += 1
        if thread.held is not None:
            self.world.flush(thread)
        try:
            result = op.run(thread, alternative)  # type: ignore[union-attr]
            resume = thread.resume
        except Exception as error:
            result = error
            resume = thread.greenlet.throw if thread.greenlet is not None else _raise
        thread.op = None
        if self.setting_up is None:
            self.current = thread
            resume(result)
            self.current = None
        else:
            resume(result)
            if thread.done:
                self._set_up()
        self.acting = None
        return result

    def take_again(self, thread: Thread, script: list[Operation]) -> None:
        """As `step` with its first alternative, and let the thread do the operations of `script` as it comes to them.

        They are those that it did next the last time, in reverse order. It does them without a switch, up to the
        first that is another one or is not `repeatable`, which it announces.
        """
        first = self.steps
        self.script = script
        self.step(thread, 0)
        self.script = []
        more = self.steps - first - 1
        if more:
            thread.last = self.steps - 1
            self.schedule.extend([(thread.number, 0)] * more)

    def repeat(self, thread: Thread, op: Operation) -> Any:
        """Do the next operation of the script, on behalf of the thread that runs. Its watcher only records."""
        self.script.pop()
        thread.held = None  # what was held back has been recorded, the last time
        self.ops[self.steps] = op
        self.steps += 1
        self.values.append(op.obj.value)
        return op.run(thread, 0)

    def describe(self, thread: Thread) -> str:
        """The operation that a thread has announced, for people; part of a program's hash, so it names no addresses."""
        return "" if thread.op is None else thread.op.describe()

    def enabled(self) -> list[Thread]:
        """The threads whose announced operation can happen now."""
        return [t for t in self.threads if (op := t.op) is not None and (op.free or op.ready(t))]

    def finish(self, end: str) -> None:
        """It is over: what threads that wait for ever held back has happened."""
        self.end = end
        for thread in self.threads:
            if thread.held is not None:
                self.world.flush(thread)

    @property
    def data_races(self) -> Sequence[str]:
        """The data races on plain attributes, in words; see `attributes`. Without observation there are none."""
        return ()

    def close(self) -> None:
        """Let go of what still waits."""
        self.closing = True
        self.current = self.acting = None
        for thread in self.order:
            if thread.greenlet is not None:
                for _ in range(8):  # a program may catch BaseException; not for ever
                    thread.greenlet.throw(greenlet.GreenletExit)
                    if thread.greenlet is None:
                        break
            thread.code = thread.body = None
        # Break the cycles of references, so that nothing waits for the garbage collector.
        self.order.clear()
        self.by_tid.clear()
        self.threads.clear()
        self.ops, self.values = [], []

    # -- asked by the world ----------------------------------------------------------------------------------------

    def announce(self, thread: Thread, op: Operation) -> Any:
        """Stop `thread` before `op` until the strategy picks it; returns the result of the operation."""
        thread.op = op
        return self.switch()

    def at_once(self, op: Operation) -> Any:
        """An operation outside any thread."""
        if self.closing:
            raise greenlet.GreenletExit
        actor = self.acting or _NOBODY
        if not op.ready(actor):
            raise Misuse(f"{op.describe()} would wait for ever outside a thread: spawn one")
        if isinstance(op, Permit) and op.limited and op.obj.value <= 0:
            return False
        return op.run(actor, 0)

    def new_object(self, kind: str, name: str) -> tuple[int, Footprint, Footprint, Footprint, str]:
        """Index, footprints and name of a new object, numbered among those of the thread that makes it."""
        maker = self.acting
        if maker is None:
            number, tid = self.strays, NOBODY
            self.strays = number + 1
        else:
            number, tid = maker.objects, maker.tid
            maker.objects = number + 1
        known = self.space.objects.get((tid, number))
        index, reads, writes, adds = known or self.space.object(tid, number)
        if not name:
            where = "" if tid <= SETUP or maker is None else f"{maker.name}."
            name = f"{where}{kind}{number}"
        return index, reads, writes, adds, name

    def footprint(self, accesses: tuple[tuple[int, int], ...]) -> Footprint:
        """The footprint of these (object, mode), of which there is one in a whole exploration."""
        return self.space.footprint(accesses)

    def outside_object(self, name: str, value: Any) -> Shared:
        """An object that no thread made: the clock, or the order of calls."""
        shared = Shared.__new__(Shared)
        shared.ex = self
        shared.value = value
        shared.watch = None
        shared.quiet = True
        shared.name = name
        shared.index, shared.reads, shared.writes, shared.adds = self.space.object(
            NOBODY, OUTSIDE[name]
        )
        return shared

    def stage(self, fn: Callable[[], object], name: str, daemon: bool) -> Thread:
        """A thread spawned while setting up: it starts when the program function has returned."""
        setup = self.setting_up
        if setup is None:
            raise Misuse("spawn() after the end: spawn while setting up or inside a thread")
        tid = self.space.thread(SETUP, setup.children)
        setup.children += 1
        return Thread(self, tid, self._named(name, f"t{setup.children}", tid), daemon, fn)

    def spawn_from(
        self, parent: Thread, fn: Callable[[], object], name: str, daemon: bool
    ) -> Thread:
        """Make a child of `parent` and run it up to its first operation."""
        tid = self.space.thread(parent.tid, parent.children)
        parent.children += 1
        name = self._named(name, f"{parent.name}.{parent.children}", tid)
        child = Thread(self, tid, name, daemon, fn)
        self.threads.append(child)
        script, self.script = self.script, []  # it is the parent's
        self._go(child)
        self.script = script
        return child

    def _named(self, name: str, otherwise: str, tid: int) -> str:
        name = name or otherwise
        if name in self.names:
            name = f"{name}@{'.'.join(map(str, self.space.paths[tid]))}"
        self.names.add(name)
        return name

    def sleeps(self, waiter: Thread, again: Reacquire, wait: Wait) -> None:
        """A thread went to sleep on a condition. If it may wake without a notify, set its alarm clock."""
        kinds = ("t" if wait.timed and waiter.timeouts > 0 else "") + (
            "s" if waiter.spurious > 0 else ""
        )
        if not kinds:
            return
        tid = self.space.thread(waiter.tid, waiter.children)
        waiter.children += 1
        clock = Thread(self, tid, f"{waiter.name}'s alarm {waiter.children}", True, None)
        clock.op = Wake(wait.condition, waiter, again, kinds)
        self.threads.append(clock)

    def notified(self, condition: Shared, by: Thread, woke: list[Thread], waiters: int) -> None:
        """Keep a notify for `termination.explain`, if this execution is for reading."""
        if self.log is not None:
            missed = Notification(condition, by.name, self.steps, [t.name for t in woke], waiters)
            self.notifies.append(missed)

    def record_now(self, ev: str, args: dict[str, object]) -> None:
        """Keep a record that is a step of its own."""
        acting = self.acting
        self.world.note(self.steps, "" if acting is None else acting.name, ev, args)

    def failed(self, thread: Thread, error: BaseException) -> None:
        """Keep the exception that left a thread."""
        self.failures.append(Failure(thread.name, self.steps, error))


def _raise(error: BaseException) -> None:
    raise ModelBug(f"an alarm clock failed: {error!r}") from error


class _Nobody:
    """Stands for set-up, watchers and the end where an operation wants to know its thread."""

    name = "(nobody)"
    timeouts = 0
    ex: Any = None


_NOBODY: Any = _Nobody()


PATIENCE = 40
"""Steps that a thread may take in a row, when nothing else decides, before another gets a turn (for spin loops)."""


def going_on(
    enabled: list[Thread], last: Thread | None, turns: int, patience: int = PATIENCE
) -> Thread:
    """The thread that goes when nothing else decides: the one that ran last, but at most `patience` steps in a row."""
    if last is None or last not in enabled:
        return enabled[0]
    if turns < patience or len(enabled) == 1:
        return last
    return enabled[(enabled.index(last) + 1) % len(enabled)]


def inside() -> bool:
    """Whether the caller runs in a controlled thread."""
    return isinstance(greenlet.getcurrent(), ControlledGreenlet)
