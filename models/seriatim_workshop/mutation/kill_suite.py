"""The kill suite: everything that can judge a reference, briefly, the cheapest first; the first failure is reported.

It takes whatever the modules of `seriatim` are at the time of import.
"""

from __future__ import annotations

import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from seriatim.host import Threads
from seriatim_models.explorer import Pos
from seriatim_models.programs import PROGRAMS, check_program, mutant_modules
from seriatim_models.properties import Verdict
from seriatim_workshop.machines import concurrent, threads
from seriatim_workshop.machines.client import generated_programs as client
from seriatim_workshop.machines.fair import generated_programs as fair
from seriatim_workshop.machines.fair.sequential import FairMachine
from seriatim_workshop.machines.log import generated_programs as log
from seriatim_workshop.machines.log.sequential import LogMachine
from seriatim_workshop.machines.plans import ProgramPlan
from seriatim_workshop.machines.profiles import searching
from seriatim_workshop.machines.queue.generated_programs import QueuePlan, plans
from seriatim_workshop.machines.queue.regression_seeds import REGRESSION_SEEDS
from seriatim_workshop.machines.queue.sequential import KINDS
from seriatim_workshop.machines.sequential import CallMachine

SETTINGS = searching(150, stateful_step_count=35, derandomize=True)
TESTS = Path(__file__).parents[3] / "tests"


MACHINES: dict[str, list[type[CallMachine]]] = {
    "queue": [*KINDS.values()],
    "client": [],
    "log": [LogMachine],
    "fair": [FairMachine],
}
PLANS: dict[str, st.SearchStrategy[ProgramPlan]] = {
    "queue": plans(),
    "client": client.PLANS,
    "log": log.PLANS,
    "fair": fair.PLANS,
}


def calls(system: str, examples: int) -> None:
    """A reference against its model, call by call."""
    some = settings(SETTINGS, max_examples=examples)
    for machine in MACHINES[system]:
        run_state_machine_as_test(machine, settings=some)


def schedules(system: str, examples: int = 60) -> None:
    """Generated programs over a reference under some of their schedules."""

    @settings(SETTINGS, max_examples=examples)
    @given(PLANS[system])
    def look(plan: ProgramPlan) -> None:
        result = concurrent.run(plan, executions=25, shrink=0)
        assert result.verdict != "violated", result.why

    look()


def regression_seeds(executions: int) -> None:
    """The plans that drawing comes upon too rarely."""
    for plan in REGRESSION_SEEDS.values():
        result = concurrent.run(plan, executions=executions, shrink=0)
        assert result.verdict != "violated", result.why


def programs(file: str, executions: int) -> None:
    """The closed programs over a reference: the first schedules in order, and half as many by chance."""
    for program in PROGRAMS.values():
        if program.reference == file:
            result = check_program(program, max_executions=executions, shrink=0)
            assert result.verdict is not Verdict.VIOLATED, f"{program.id}: {result.explored.why}"
            silent = [f.property for f in result.findings if not f.n_tested]
            complete = result.explored.exhausted
            assert not (complete and silent), f"{program.id}: nothing was left to test of {silent}"
            if not complete:
                drawn = check_program(
                    program, strategy=Pos(seed=1), max_executions=executions // 2, shrink=0
                )
                why = f"{program.id}: {drawn.explored.why}"
                assert drawn.verdict is not Verdict.VIOLATED, why


TEST_SECONDS = 100
"""Real seconds that a test may take: many times what the slowest needs, for on a busy machine it waits for its turn."""
SLOW = ("test_law", "test_threads")
"""Files of tests that take their time: they come last, for the first test to fail ends it."""


class _TestOutOfTime(Exception):
    """A test of the reference was ended by its time limit."""


class _Failed:
    """A plugin that remembers the first test to fail, why, and whether that was its time limit."""

    first = ""
    late = False

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: item.path.stem in SLOW)

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]
    ) -> None:
        error = call.excinfo.value if call.excinfo is not None else None
        words = str(error).strip().splitlines() or [""]
        if not self.first:
            timed_out = isinstance(error, pytest.fail.Exception)
            self.late = timed_out and words[0].startswith("Timeout")
        self.first = self.first or f"{node.name}: {type(error).__name__}: {words[0]}"


def _no_other_text(reference: str) -> str:
    """In place of `variants.source`: a known mutant is a change of the right text, not of this one."""
    # A test that says nothing of the text under test kills nothing: a pass would count the same.
    pytest.skip("asks for a known mutant")


def tests(*paths: str) -> None:
    """The reference's own tests. Those that load a known mutant are left out: it is not what is judged."""
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--no-header",
        f"--timeout={TEST_SECONDS}",
        "--tb=no",
        "--assert=plain",
    ]
    failed = _Failed()
    settings.register_profile("judging", SETTINGS)
    settings.load_profile("judging")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutant_modules, "source", _no_other_text)
        code = pytest.main(
            [*options, "-m", "not slow", *(str(TESTS / p) for p in paths)], plugins=[failed]
        )
    if failed.late:
        raise _TestOutOfTime(failed.first)
    assert code == 0, failed.first or f"pytest ended with {code}"


def on_threads() -> None:
    """Generated programs over the queue on real threads."""

    @settings(SETTINGS, max_examples=20)
    @given(plans(threads=4, operations=4))
    def look(plan: QueuePlan) -> None:
        wrong = threads.stress(plan, 3)
        assert wrong is None, wrong

    look()


def host() -> None:
    """What `Threads` promises of locks, conditions, semaphores and cells that the queue has no use for."""
    h = Threads()
    lock = h.lock()
    assert lock.try_acquire(), "a free lock can be taken"
    assert not lock.try_acquire(), "a lock that is held cannot"
    lock.release()
    with lock as held:
        assert held is lock, "with gives the lock"
        assert not lock.try_acquire(), "with holds the lock"
    assert lock.try_acquire(), "and lets it go"
    lock.release()
    lock.acquire()
    assert not lock.try_acquire(), "acquire holds the lock"
    lock.release()
    permits = h.semaphore(1)
    assert permits.try_acquire(), "a permit that is there is taken"
    assert not permits.try_acquire(), "one that is not there is not"
    assert not permits.try_acquire(0.01), "not even after a while"
    permits.release(2)
    permits.acquire()
    assert permits.try_acquire(0.01), "two were given"
    assert not permits.try_acquire(), "and both are taken"
    condition = h.condition(lock)
    with lock:
        assert not condition.wait(0.01), "nobody notified"
    woken: list[bool] = []

    def wait() -> None:
        with lock:
            woken.append(condition.wait(5))

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    while waiter.is_alive():
        with lock:
            condition.notify_all()
        waiter.join(0.01)
    assert woken == [True], "a waiter is woken"


def cells() -> None:
    """What `Threads` promises of cells."""
    h = Threads()
    cell = h.cell(1)
    assert not cell.compare_and_set(2, 3), "the value was another"
    assert cell.compare_and_set(1, 2), "the value was that"
    assert cell.get_and_set(5) == 2, "the old value is returned"
    assert cell.get_and_add(2) == 5, "the old value is returned"
    cell.add(1)
    assert cell.get() == 8, "what was added is there"
    cell.set(0)
    assert cell.get() == 0, "the last value is read"
    assert h.cell(list[int]()).compare_and_set([], [1]), "values are compared by =="
    cell_nan = h.cell(float("nan"))
    assert cell_nan.compare_and_set(cell_nan.get(), 0.0), (
        "what is the same object is the same value"
    )
    assert 0 < h.now() <= h.now(), "time does not run backwards"
    h.record("nobody listens")
    try:
        h.condition(object())  # type: ignore[arg-type]
    except TypeError:
        return
    raise AssertionError("a condition needs a lock of this host")


Judge = tuple[int, Callable[[], None]]
"""Seconds of the processor after which it counts as an endless loop, about six times what it takes; and what to run."""


def judges(file: str) -> Iterator[Judge]:
    """Who judges a reference, the cheapest first; pytest does not start once Hypothesis has drawn anything."""
    if file == "host":
        yield 5, host
        yield 5, cells
        yield 60, partial(tests, "client", "log", "fair")
    if file == "host" or mutant_modules.system_of(file) == "queue":
        yield 10, partial(programs, "queue", 6)
        yield 10, partial(tests, "machines/test_reference.py")
        yield 10, partial(calls, "queue", 20)
        yield 10, partial(regression_seeds, 40)
        yield 30, partial(calls, "queue", 150)
        yield 30, partial(programs, "queue", 120)
        yield 10, partial(regression_seeds, 300)
        yield 40, partial(schedules, "queue")
        yield 10, on_threads
        for system in ("client", "log", "fair") if file == "host" else ():
            yield 20, partial(calls, system, 20)
            yield 40, partial(schedules, system, 15)
    else:
        system = mutant_modules.system_of(file) or file
        yield 10, partial(programs, system, 6)
        yield 60, partial(tests, system)
        yield 20, partial(calls, system, 20)
        yield 40, partial(schedules, system, 15)
        yield 60, partial(programs, system, 120)


def allow(seconds: int) -> None:
    """End this process when it has used so many seconds of the processor from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def main(arguments: list[str]) -> int:
    """Judge the reference of that name; return 0 if it passes, 1 if not, and print why last.

    What ran out of time, be it of the processor or of a test, ends the process by SIGXCPU.
    """
    for seconds, judge in judges(arguments[0]):
        allow(seconds)
        try:
            judge()
        except BaseException as error:
            words = str(error).splitlines() or [""]
            who = judge.func if isinstance(judge, partial) else judge
            print(f"{who.__name__}: {type(error).__name__}: {words[0]}")
            if isinstance(error, _TestOutOfTime):  # ends like a judge that used up its time
                sys.stdout.flush()
                signal.raise_signal(signal.SIGXCPU)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
