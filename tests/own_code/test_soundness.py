"""Generated programs: promotion of racing places finds what every access as a step finds, no less and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_models.explorer.python import execution, hooks
from seriatim_models.explorer.python.event_loop import Timers
from seriatim_workshop.crosscheck import own_asyncio
from seriatim_workshop.crosscheck.own_code import HEAD, Generated, compared, generate, result_of

SLICE = 15
MANY = [
    pytest.param(range(1000, 1030), marks=pytest.mark.slow, id="slice"),
    pytest.param(range(1000, 1150), marks=pytest.mark.night, id="many"),
]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_promotion_agrees_with_every_access(part: int, tmp_path: Path) -> None:
    for seed in range(part * SLICE // 3, (part + 1) * SLICE // 3):
        agreement = compared(generate(seed), tmp_path, executions=300)
        assert not agreement.wrong, f"seed {seed}: {agreement.wrong}\n{generate(seed).text}"


@pytest.mark.parametrize("seeds", MANY)
def test_promotion_agrees_with_every_access_on_many(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        agreement = compared(generate(seed), tmp_path, executions=300)
        assert not agreement.wrong, f"seed {seed}: {agreement.wrong}\n{generate(seed).text}"


TRAP = """
def test():
    global G
    G = 0
    lock = threading.Lock()
    o = Thing()
    r = []
    def work0():
        with lock:
            pass
        o.x += 1
    def work1():
        with lock:
            pass
        o.x += 2
    t0, t1 = threading.Thread(target=work0), threading.Thread(target=work1)
    t0.start()
    t1.start()
    t0.join()
    t1.join()
    return o.x
"""
"""What is touched after a release belongs to its step; and yet it is not ordered before the next acquire."""


def test_the_trap_of_code_after_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Generated(-1, HEAD + TRAP)
    assert not compared(program, tmp_path).wrong

    def too_early(self: execution.PythonExecution, thread: object, step: int) -> bool:
        now = self.pasts[self.steps - 1] if self.steps else 0
        return bool(now >> step & 1) if step >= 0 else True

    monkeypatch.setattr(execution.PythonExecution, "ordered", too_early)
    assert compared(program, tmp_path).wrong


def test_an_access_that_is_not_announced_shows_on_real_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both searches miss it, so only what owes nothing to the rewritten code can tell."""
    monkeypatch.setitem(hooks.HOOKS, "__s_get__", lambda obj, name, site: getattr(obj, name))
    wrong = compared(
        Generated(-2, HEAD + TRAP.replace("with lock:\n            pass", "pass")), tmp_path
    ).wrong
    assert any("real threads showed" in line for line in wrong), wrong


LATE = """
def test():
    o, r, q = Thing(), [], queue.Queue(1)
{before}
    def get():
        try:
            r.append(q.get(timeout=0.01))
        except queue.Empty:
            r.append("late")
    def put():
        q.put(0)
        o.x += 1
    t0, t1 = threading.Thread(target=get), threading.Thread(target=put)
    t0.start()
    t1.start()
    o.x += 1
    t0.join()
    t1.join()
    return tuple(r), o.x
"""
"""A time limit may run out between the put's look at who waits and its notify."""


def test_the_count_owes_nothing_to_the_schedule_that_is_run_first(tmp_path: Path) -> None:
    """Which that is depends on how many steps come before."""
    for n in range(10, 16):
        program = Generated(-4, HEAD + LATE.format(before="    o.x = 0\n" * n))
        agreement = compared(program, tmp_path)
        assert (agreement.wrong, agreement.traces) == ([], 16)


TAKEN = """
import array
import math
import operator


def test():
    o, r, s = Thing(), [], []
    gen = numbers(o)
    def all_of_it():
        try:
            r.append(str({form}))
        except (ValueError, TypeError) as error:
            r.append("busy" if "already" in str(error) else "of another type")
    def one():
        try:
            s.append(next(gen, "end"))
        except ValueError:
            s.append("busy")
    t0, t1 = threading.Thread(target=all_of_it), threading.Thread(target=one)
    t0.start()
    t1.start()
    t0.join()
    t1.join()
    return tuple(r), tuple(map(str, s)), o.x
"""


@pytest.mark.parametrize(
    "form",
    [
        "sum(gen)", "max(gen)", "all(gen)", "sorted(gen)", "9 in gen", "[*gen]", "max(*gen)", "math.fsum(gen)",
        "operator.countOf(gen, 9)", "dict.fromkeys(gen)", "{1, 2}.intersection(gen)", "{1}.isdisjoint(gen)",
        "array.array('i', gen)", "collections.Counter(gen)",
    ],
)  # fmt: skip
def test_another_comes_to_a_generator_that_code_in_c_goes_through(
    form: str, tmp_path: Path
) -> None:
    program = Generated(-5, HEAD + TAKEN.format(form=form))
    assert not compared(program, tmp_path).wrong
    outcomes = result_of(tmp_path / "generated_-5.py", "generated_-5").outcomes
    assert {"busy" in str(outcome) for outcome in outcomes} == {True, False}


OF_A_COUNTER = """
def test():
    counter, empty = collections.Counter("aab"), collections.Counter()
    threading.Thread(target=counter.clear).start()
    return str(empty), bool(empty), ValueError(empty).args[0] is empty, tuple(collections.Counter("ab"))
"""


def test_a_class_of_c_that_gathers_nothing_is_given_the_container_itself(tmp_path: Path) -> None:
    assert not compared(Generated(-6, HEAD + OF_A_COUNTER), tmp_path).wrong
    [outcome] = result_of(tmp_path / "generated_-6.py", "generated_-6").outcomes
    assert outcome == ("Counter()", False, True, ("a", "b"))


@pytest.mark.parametrize("part", range(2))
def test_asyncio_agrees_with_the_real_loop(part: int, tmp_path: Path) -> None:
    for seed in range(part * 8, part * 8 + 8):
        program = own_asyncio.generate(seed)
        agreement = own_asyncio.compared(program, tmp_path, executions=200)
        assert not agreement.wrong, f"seed {seed}: {agreement.wrong}\n{program.text}"


@pytest.mark.parametrize("seeds", MANY)
def test_asyncio_agrees_with_the_real_loop_on_many(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        program = own_asyncio.generate(seed)
        agreement = own_asyncio.compared(program, tmp_path, executions=400)
        assert not agreement.wrong, f"seed {seed}: {agreement.wrong}\n{program.text}"


def test_a_timer_that_waits_for_idleness_shows_against_the_real_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = Timers._candidates
    monkeypatch.setattr(
        Timers, "_candidates", lambda s, ex, idle: every(s, ex, idle) if idle else []
    )
    programs = (own_asyncio.generate(seed) for seed in range(16))
    assert any(own_asyncio.compared(p, tmp_path, executions=200).wrong for p in programs)


TOGETHER = """import asyncio


async def test():
    seen, loop = [], asyncio.get_running_loop()

    async def sleeper(name):
        await asyncio.sleep(1)
        seen.append(name)
        loop.call_soon(seen.append, name.upper())

    await asyncio.gather(sleeper("a"), sleeper("b"))
    await asyncio.sleep(0)
    return "".join(seen)
"""


def test_timers_for_which_the_loop_wakes_once(tmp_path: Path) -> None:
    agreement = own_asyncio.compared(Generated(9000, TOGETHER), tmp_path)
    assert not agreement.wrong
    assert agreement.traces
    assert not agreement.large


def test_a_loop_that_wakes_for_one_timer_alone_shows_against_the_real_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = Timers.ends

    def alone(timers: Timers, idle: bool) -> object:
        turn = timers.turn
        handle = ends(timers, idle)
        timers.turn = turn
        return handle

    monkeypatch.setattr(Timers, "ends", alone)
    for program in (Generated(9001, TOGETHER), own_asyncio.generate(117)):
        [wrong] = own_asyncio.compared(program, tmp_path).wrong
        assert "only explored set()" in wrong
