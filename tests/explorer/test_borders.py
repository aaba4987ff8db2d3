"""What the explorer cannot see is never ok: no visible step, functions that never ran, real locks, real waits."""

from __future__ import annotations

import os
import queue
import re
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from seriatim_models.explorer import (
    Dpor,
    Misuse,
    NondeterministicProgram,
    OutsideModel,
    Pct,
    Random,
    Result,
    World,
    explore,
)
from seriatim_models.explorer.model import execution, watchdog
from seriatim_models.explorer.testing import Inconclusive, explored, linearizable


class Counter:
    """A counter that two threads can get wrong, in a plain attribute."""

    def __init__(self, host: object = None) -> None:
        self.n = 0

    def increment(self) -> int:
        """Read, then write."""
        before = self.n
        self.n = before + 1
        return before


class Sequential(Counter):
    """The same, called by one thread only."""


def nothing_visible(world: World) -> None:
    counter = Counter()
    world.spawn(counter.increment)
    world.spawn(counter.increment)
    world.at_end(lambda: None if counter.n == 2 else "an increment was lost")


def only_spawn_and_join(world: World) -> None:
    counter = Counter()

    def main() -> None:
        for child in [world.spawn(counter.increment), world.spawn(counter.increment)]:
            child.join()

    world.spawn(main)


@pytest.mark.parametrize("program", [nothing_visible, only_spawn_and_join, lambda world: None])
@pytest.mark.parametrize("strategy", [None, Random()])
def test_without_a_visible_step_nothing_was_tested(program: Any, strategy: Any) -> None:
    result = explore(program, strategy, max_executions=3)
    assert result.verdict == "inconclusive"
    assert "no thread took a visible step" in result.why


def test_one_visible_step_is_a_case() -> None:
    def program(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: x.set(1))

    assert explore(program).verdict == "ok"
    assert explore(lambda world: world.choose(2)).verdict == "ok"


def test_a_test_that_tested_nothing_fails(explorer: Callable[..., Result]) -> None:
    with pytest.raises(Inconclusive, match=r"no\s+thread\s+took\s+a\s+visible\s+step"):
        explored()(nothing_visible)()
    with pytest.raises(Inconclusive, match=r"no\s+thread\s+took\s+a\s+visible\s+step"):
        explorer(nothing_visible)
    with pytest.raises(Inconclusive, match=r"no\s+thread\s+took\s+a\s+visible\s+step"):
        linearizable(Counter, Sequential, [[("increment",)], [("increment",)]])


def long(world: World) -> None:
    cell = world.host.cell(0)

    def count() -> None:
        for _ in range(10):
            cell.set(cell.get() + 1)

    world.spawn(count)
    world.spawn(count)
    world.at_end(lambda: "always wrong")


@pytest.mark.parametrize("strategy", [Dpor(), Random(seed=0), Pct(depth=2, seed=0)], ids=str)
def test_a_test_of_which_no_execution_ended_fails(
    explorer: Callable[..., Result], strategy: Any
) -> None:
    """Its checks at the end were never asked."""
    result = explore(long, strategy, max_steps=10, max_executions=20)
    assert (result.verdict, result.complete) == ("inconclusive", 0)
    assert result.untested == "no execution came to its end within max_steps=10"
    with pytest.raises(Inconclusive, match=r"no\s+execution\s+came\s+to\s+its\s+end"):
        explorer(long, strategy, max_steps=10, max_executions=20)
    with pytest.raises(AssertionError, match="always wrong"):
        explorer(long, strategy, max_executions=20)


def test_a_program_that_never_ran_is_refused() -> None:
    async def coroutine(world: World) -> None:
        world.at_end(lambda: "never reached")

    def generator(world: World) -> Any:
        yield world

    async def both(world: World) -> Any:
        yield world

    for program, kind in [
        (coroutine, "coroutine"),
        (generator, "generator"),
        (both, "async_generator"),
    ]:
        for front in (explore, lambda p: explored()(p)()):
            with pytest.raises(Misuse, match=f"returned a {kind} .*nothing of it has run"):
                front(program)


def test_a_thread_that_never_ran_is_refused() -> None:
    async def work() -> None: ...

    def staged(world: World) -> None:
        world.spawn(work, name="a")

    def inside(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: (x.get(), world.spawn(lambda: work(), name="a")))

    for program in (staged, inside):
        with pytest.raises(Misuse, match="function of a returned a coroutine"):
            explore(program)


def test_what_cannot_be_called_is_refused() -> None:
    def started(world: World) -> None:
        x = world.cell(0)
        done: Any = x.get_and_set(None)  # type: ignore[arg-type]
        world.spawn(done)

    def inside(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: world.spawn(x.get()))  # type: ignore[arg-type]

    with pytest.raises(Misuse, match=r"spawn\(0\): a int cannot be called"):
        explore(started)
    with pytest.raises(Misuse, match=r"spawn\(0\): a int cannot be called"):
        explore(inside)
    with pytest.raises(Misuse, match=r"at_end\(True\): a bool cannot be called"):
        explore(lambda world: world.at_end(True))  # type: ignore[arg-type]


async def finds_nothing() -> None: ...


@pytest.mark.parametrize("said", [True, False, "", [], 0])
def test_a_check_that_says_nothing_is_refused(said: object) -> None:
    def program(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: x.set(1))
        world.at_end(lambda: said)

    with pytest.raises(Misuse, match="does not say whether something is wrong"):
        explore(program)


def test_a_check_that_never_ran_is_refused() -> None:
    with pytest.raises(Misuse, match="check finds_nothing of at_end"):
        explore(lambda world: world.at_end(finds_nothing))


# ---- plain attributes


def racy_beside_a_cell(world: World) -> None:
    """The counter is a plain attribute; the cell gives the threads something to change places at."""
    counter, x = Counter(), world.cell(0, name="x")

    def work() -> None:
        x.add(1)
        counter.increment()

    world.spawn(work)
    world.spawn(work)
    world.at_end(lambda: None if counter.n == 2 else "an increment was lost")


def test_a_racy_attribute_withholds_the_verdict() -> None:
    result = explore(racy_beside_a_cell)
    assert result.exhausted
    assert result.verdict == "inconclusive"
    assert "data race on Counter.n: t1 writes it at test_borders.py" in result.why
    with pytest.raises(Inconclusive, match=r"data race on Counter\.n"):
        explored()(racy_beside_a_cell)()


def test_who_says_that_it_is_meant_so_gets_a_verdict() -> None:
    assert explore(racy_beside_a_cell, attributes=False).verdict == "ok"
    assert explore(racy_beside_a_cell, attributes=[Counter]).verdict == "violated"


def test_a_race_in_a_class_of_the_test_itself_and_in_another_process_is_seen() -> None:
    class Local:
        pass

    def program(world: World) -> None:
        shared: Any = Local()
        shared.n, x = 0, world.cell(0, name="x")

        def work() -> None:
            for _ in range(4):
                x.set(x.get() + 1)
            shared.n += 1

        for _ in range(3):
            world.spawn(work)

    result = explore(program, jobs=2, max_executions=1500)
    assert "data race on test_a_race" in result.untested


def test_a_guarded_attribute_is_ok() -> None:
    def program(world: World) -> None:
        counter, lock = Counter(), world.lock()

        def work() -> None:
            with lock:
                counter.increment()

        world.spawn(work)
        world.spawn(work)
        world.at_end(lambda: None if counter.n == 2 else "an increment was lost")

    assert explore(program).verdict == "ok"


class Racy:
    """A register whose reads and writes are plain."""

    def __init__(self, host: Any) -> None:
        self.value, self.x = 0, host.cell(0, name="x")

    def write(self, value: int) -> None:
        """Write, after a step."""
        self.x.add(1)
        self.value = value


class Register:
    """The same for one thread."""

    def write(self, value: int) -> None:
        """Write."""


def test_the_bridge_withholds_its_verdict_too() -> None:
    with pytest.raises(Inconclusive, match=r"data race on Racy\.value"):
        linearizable(Racy, Register, [[("write", 1)], [("write", 2)]])


# ---- real locks and waits

LOCK = threading.Lock()
LOCKS = {"a": threading.RLock()}
CONDITION = threading.Condition()
EVENT = threading.Event()
SEMAPHORE = threading.Semaphore(0)
QUEUE: queue.Queue[int] = queue.Queue()
SIMPLE: queue.SimpleQueue[int] = queue.SimpleQueue()
HERE, THERE = socket.socketpair()
READY, WRITE = os.pipe()
THREAD = threading.Thread(target=print)


def teardown_module() -> None:
    """Close what the module has opened."""
    for end in (HERE, THERE):
        end.close()
    os.close(READY)
    os.close(WRITE)


class Locked:
    """An object with a real lock."""

    lock = LOCK

    def __init__(self) -> None:
        self.lock = LOCK

    def work(self) -> None:
        """Take the lock."""
        with self.lock:
            pass


def with_global() -> None:
    with LOCK:
        pass


def with_item() -> None:
    with LOCKS["a"]:
        pass


def with_local() -> None:
    lock = LOCK
    if lock.acquire():
        lock.release()


def with_condition() -> None:
    with CONDITION:
        CONDITION.wait()


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (with_global, r"a real lock or queue \(threading.Lock\)"),
        (with_item, r"a real lock or queue \(threading.RLock\)"),
        (with_local, r"a real lock or queue \(threading.Lock"),
        (Locked().work, r"a real lock or queue \(threading.Lock\)"),
        (lambda: Locked().work(), r"a real lock or queue \(threading.Lock\)"),
        (with_condition, r"threading.Condition.__enter__"),
        (lambda: EVENT.wait(), "threading.Event.wait"),
        (lambda: EVENT.is_set(), "threading.Event.is_set"),
        (lambda: SEMAPHORE.acquire(), "threading.Semaphore.acquire"),
        (lambda: QUEUE.get(), r"queue.Queue.get .*Use world.condition"),
        (lambda: QUEUE.put(1), "queue.Queue.put"),
        (lambda: SIMPLE.get(), "queue.SimpleQueue"),
        (lambda: sleep(1), "time.sleep"),
        (lambda: monotonic(), "time.monotonic"),
        (lambda: HERE.recv(1), "socket.recv"),
        (lambda: HERE.accept(), "socket.accept"),
        (lambda: select.select([READY], [], []), "select.select"),
        (lambda: THREAD.start(), "threading.Thread.start"),
        (lambda: os.system("true"), "os.system"),
        (lambda: subprocess.run(["true"]), "subprocess.Popen"),
        (lambda: Lock(), "threading.Lock"),
        (lambda: SimpleQueue(), "queue.SimpleQueue"),
    ],
)
def test_a_real_lock_or_wait_is_refused_with_its_line(
    body: Callable[[], object], what: str
) -> None:
    def program(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: (x.get(), body()))

    for front in (explore, lambda p: explored()(p)()):
        with pytest.raises(OutsideModel, match=rf"{what}.*\(at test_borders.py:\d+ in "):
            front(program)
    assert type(LOCK) is type(Locked().lock) is type(threading.Lock())


def test_classes_that_are_refused_are_classes_still() -> None:
    """A program may ask what an object is, and name or derive a class, without making one."""
    found: list[bool] = []

    def look() -> None:
        class Mine(threading.Event):
            """Derived while `threading.Event` is guarded."""

        found.append(isinstance(EVENT, threading.Event) and issubclass(Mine, threading.Event))
        found.append(isinstance(SIMPLE, SimpleQueue) and SimpleQueue.__name__ == "SimpleQueue")
        found.append((threading.Event | None) == (None | threading.Event))

    def program(world: World) -> None:
        x = world.cell(0)

        def run() -> None:
            x.get()
            look()

        world.spawn(run)

    assert explore(program).verdict == "ok"
    assert found
    assert all(found)


def test_others_keep_their_real_locks() -> None:
    """The lock is a stranger's, too: it must work for him during the exploration."""

    def program(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: (x.get(), LOCK and None))
        world.at_end(with_global)

    assert explore(program).verdict == "ok"
    with LOCK:
        pass


def test_a_refusal_that_is_swallowed_is_raised_at_the_end() -> None:
    def work(x: Any) -> None:
        x.get()
        try:
            QUEUE.get(timeout=1)
        except Exception:
            return

    def program(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: work(x))

    with pytest.raises(OutsideModel, match=r"queue\.Queue\.get"):
        explore(program)


def spin(flag: list[int]) -> None:
    while not flag:
        pass


def spin_on(flag: list[int]) -> None:
    while not flag:
        try:
            spin(flag)
        except Exception:
            continue


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (lambda: os.read(READY, 1), "os.read"),
        (lambda: spin([]), "in spin"),
        (lambda: spin_on([]), "in spin"),
    ],
)
@pytest.mark.parametrize("main", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_stands_still_is_ended_with_its_line(
    body: Callable[[], object], line: str, main: bool
) -> None:
    if not main and line == "os.read":
        pytest.skip("a wait in C can be ended in the main thread only")

    def program(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: (x.get(), body()), name="a")

    caught: list[BaseException] = []

    def run() -> None:
        try:
            explore(program, seconds=2)
        except BaseException as error:
            caught.append(error)

    if main:
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(60)
    assert [type(e) for e in caught] == [OutsideModel]
    where = rf"thread a has come no further for 2 s: it is at test_borders.py:\d+ .*{line}"
    assert re.search(where, str(caught[0]))


def test_a_thread_that_others_keep_from_the_processor_does_not_stand_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stands = [(sys._getframe(), execution._work.__code__)]
    kept_waiting, interrupted = [0.0], list[bool]()
    monkeypatch.setattr(watchdog, "_frames_of", lambda thread: stands)
    monkeypatch.setattr(watchdog, "_time_kept_waiting", lambda native: kept_waiting[0])
    monkeypatch.setattr(watchdog.Watch, "_interrupt", lambda *about: interrupted.append(True))
    watch = watchdog.Watch(2.0)
    for _ in range(15):
        kept_waiting[0] += watchdog.EVERY
        watch.look()
    assert not interrupted
    for _ in range(4):  # two seconds in which it could run
        watch.look()
    assert interrupted


def test_executions_one_after_the_other_at_one_address_do_not_stand_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stands, interrupted = [(sys._getframe(), execution._work.__code__)], list[bool]()
    begun = SimpleNamespace(nth=0, steps=0)
    monkeypatch.setattr(watchdog, "_frames_of", lambda thread: stands)
    monkeypatch.setattr(watchdog, "_time_kept_waiting", lambda native: 0.0)
    monkeypatch.setattr(watchdog, "_local", lambda frame, name: begun)
    monkeypatch.setattr(watchdog.Watch, "_interrupt", lambda *about: interrupted.append(True))
    watch = watchdog.Watch(2.0)
    for begun.nth in range(30):
        watch.look()
    assert not interrupted
    for _ in range(4):
        watch.look()
    assert interrupted


def test_a_program_that_swallows_the_interruption_is_interrupted_at_each_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stands = [(sys._getframe(), execution._work.__code__)]
    begun = SimpleNamespace(nth=0, steps=0, name="a")
    sent: list[bool] = []
    monkeypatch.setattr(watchdog, "_frames_of", lambda thread: stands)
    monkeypatch.setattr(watchdog, "_time_kept_waiting", lambda native: 0.0)
    monkeypatch.setattr(watchdog, "_local", lambda frame, name: begun)
    monkeypatch.setattr(watchdog.Watch, "_send", lambda self: sent.append(True))
    watch = watchdog.Watch(2.0)
    for _ in range(6):
        watch.look()
    interruptions = len(sent)
    assert interruptions
    for begun.steps in range(10):  # it goes on
        watch.look()
    assert len(sent) == interruptions + 10


def interrupted_and_confused() -> None:
    with watchdog.watched():
        watchdog._watches[-1].error = OutsideModel("thread a has come no further")
        raise NondeterministicProgram("two runs of one schedule differ")


def test_what_comes_of_an_interruption_is_not_what_is_said() -> None:
    with pytest.raises(OutsideModel, match="no further"):
        interrupted_and_confused()


def test_who_is_patient_by_processor_time_is_not_interrupted_by_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stands = [(sys._getframe(), execution._work.__code__)]
    spent, interrupted = [100.0], list[str]()
    monkeypatch.setattr(watchdog, "_frames_of", lambda thread: stands)
    monkeypatch.setattr(watchdog, "_time_kept_waiting", lambda native: 0.0)
    monkeypatch.setattr(watchdog, "_process_time", lambda: spent[0])
    monkeypatch.setattr(
        watchdog.Watch,
        "_interrupt",
        lambda self, frames, at, computes, how: interrupted.append(how),
    )
    watch = watchdog.Watch(2.0)
    with watchdog.patient(processor=3.0):
        for _ in range(1000):
            watch.look()
        assert not interrupted
        spent[0] += 3.0
        watch.look()
    assert interrupted == ["3 s of processor time"]
    with watchdog.patient(processor=3.0), watchdog.patient():  # a person is asked amid that
        spent[0] += 3.0
        watch.look()
    assert len(interrupted) == 1
    for _ in range(4):  # and by the clock again
        watch.look()
    assert interrupted[1:] == ["2 s"]


def test_who_was_patient_learns_what_was_interrupted() -> None:
    def program(world: World) -> None:
        x = world.cell(0)

        def work() -> None:
            x.get()
            spin([])

        world.spawn(work, name="a")

    with watchdog.patient(processor=0.6) as patience, pytest.raises(OutsideModel) as caught:
        explore(program, seconds=2)
    assert patience.error is caught.value
    assert "has come no further for 1 s of processor time: it is at test_borders.py" in str(
        caught.value
    )


def test_the_time_that_a_thread_got_no_processor_is_in_seconds() -> None:
    assert 0.0 <= watchdog._time_kept_waiting(threading.get_native_id()) < monotonic()
    assert watchdog._time_kept_waiting(-1) == 0.0


@pytest.mark.slow
def test_a_lock_that_no_survey_finds_is_ended_when_it_is_held() -> None:
    """It is reached by a name that is made at run time, and in one schedule of six."""

    def hold(x: Any) -> bool:
        return x.get() == 2 and bool(getattr(sys.modules[__name__], "LO" + "CK").acquire())

    def program(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: x.compare_and_set(1, 2), name="a")
        world.spawn(lambda: x.compare_and_set(0, 1), name="b")
        world.spawn(lambda: hold(x), name="c")

    with LOCK, pytest.raises(OutsideModel, match=r"thread c has come no further .* in hold"):
        explore(program, seconds=2)


def test_a_check_at_the_end_may_notify() -> None:
    """It works with the objects of the program, and no thread is there to be woken."""

    def program(world: World) -> None:
        lock = world.lock("lock")
        condition = world.condition(lock, "condition")

        def check() -> None:
            assert world.alone
            with lock:
                condition.notify_all()

        world.spawn(lambda: world.cell(0).get(), name="A")
        world.at_end(check)

    assert explore(program).verdict == "ok"
