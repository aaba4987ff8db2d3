"""How fast: executions a second and time to exhaustion, ours and (where they are installed) of peers.

python -m seriatim_models.explorer.bench [--rounds 3] [--seconds 1] [--json FILE]
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from seriatim_models.explorer.dpor import Search
from seriatim_models.explorer.execution import Execution
from seriatim_models.explorer.litmus import Program, lastzero, racy_counter
from seriatim_models.explorer.peers import comparison
from seriatim_models.explorer.runner import Limits, Runner, Setting
from seriatim_models.explorer.search import explore
from seriatim_models.explorer.walks import Pos, Random
from seriatim_models.explorer.world import World

SECONDS = 2.0
"""How long each sampling measurement runs."""

REPEATS = 5
"""Times an exhaustive measurement is repeated; the best counts, the others met a busy machine."""


class Node:
    """A node of a Michael-Scott queue."""

    __slots__ = ("next", "value")

    def __init__(self, world: World, value: int) -> None:
        self.value = value
        self.next = world.cell(None)


def michael_scott(enqueuers: int, dequeuers: int) -> Program:
    """The lock-free queue of Michael & Scott (PODC 1996)."""

    def program(world: World) -> None:
        dummy = Node(world, 0)
        head, tail = world.cell(dummy, name="head"), world.cell(dummy, name="tail")

        def enqueue(value: int) -> None:
            node = Node(world, value)
            while True:
                last = tail.get()
                following: Any = last.next.get()
                if last is not tail.get():
                    continue
                if following is not None:
                    tail.compare_and_set(last, following)
                elif last.next.compare_and_set(None, node):  # type: ignore[arg-type]
                    tail.compare_and_set(last, node)
                    return

        def dequeue() -> int | None:
            while True:
                first, last = head.get(), tail.get()
                following: Any = first.next.get()
                if first is not head.get():
                    continue
                if first is not last:
                    if head.compare_and_set(first, following):
                        return int(following.value)
                elif following is None:
                    return None
                else:
                    tail.compare_and_set(last, following)

        for k in range(enqueuers):
            world.spawn(lambda k=k: enqueue(k + 1), name=f"enq{k + 1}")  # type: ignore[misc]
        for k in range(dequeuers):
            world.spawn(lambda: world.result(dequeue()), name=f"deq{k + 1}")

    return program


def condition_buffer(items: int) -> Program:
    """A bounded buffer of one place under a condition variable: one putter, one taker."""

    def program(world: World) -> None:
        m = world.lock(name="m")
        changed = world.condition(m, name="changed")
        full = world.cell(False, name="full")

        def move(to: bool) -> None:
            for _ in range(items):
                with m:
                    while full.get() == to:
                        changed.wait()
                    full.set(to)
                    changed.notify()

        world.spawn(lambda: move(True), name="put")
        world.spawn(lambda: move(False), name="take")

    return program


PROGRAMS: dict[str, Program] = {
    "racy counter, 2 threads": racy_counter(2),
    "racy counter, 3 threads": racy_counter(3),
    "racy counter, 4 threads": racy_counter(4),
    "lastzero(5)": lastzero(5),
    "Michael-Scott, 2 enqueuers, 1 dequeuer": michael_scott(2, 1),
    "condition buffer, 3 items": condition_buffer(3),
}


def lost_update(world: World) -> None:
    c = world.cell(0, name="counter")
    for _ in range(2):
        world.spawn(lambda: c.set(c.get() + 1))
    world.at_end(lambda: None if c.get() == 2 else f"lost update: {c.get()}")


def lost_wakeup(world: World) -> None:
    m = world.lock(name="m")
    changed = world.condition(m, name="changed")
    ready = world.cell(False, name="ready")

    def hasty_wait() -> None:
        if not ready.get():
            with m:
                changed.wait()

    def set_ready() -> None:
        with m:
            ready.set(True)
            changed.notify()

    world.spawn(hasty_wait, name="waiter")
    world.spawn(set_ready, name="setter")


def stolen_wakeup(world: World) -> None:
    m = world.lock(name="m")
    changed = world.condition(m, name="changed")
    count = world.cell(0, name="count")

    def put_two() -> None:
        for _ in range(2):
            with m:
                count.set(count.get() + 1)
                changed.notify()

    def take_once() -> None:
        with m:
            if count.get() == 0:
                changed.wait()
            assert count.get() > 0, "stolen wake-up: nothing is there"
            count.set(count.get() - 1)

    def take_if_any() -> None:
        with m:
            if count.get() > 0:
                count.set(count.get() - 1)

    for thread in (take_once, take_if_any, put_two):
        world.spawn(thread, name=thread.__name__)


def notify_for_notify_all(world: World) -> None:
    m = world.lock(name="m")
    changed = world.condition(m, name="changed")
    full = world.cell(False, name="full")

    def move(to: bool) -> None:
        with m:
            while full.get() == to:
                changed.wait()
            full.set(to)
            changed.notify()

    for to in (True, True, False, False):
        world.spawn(lambda to=to: move(to))  # type: ignore[misc]  # a lambda with a default


MISTAKES: dict[str, Program] = {
    "lost update": lost_update,
    "lost wake-up": lost_wakeup,
    "stolen wake-up": stolen_wakeup,
    "notify for notify_all": notify_for_notify_all,
}
"""Each has a schedule in which something is wrong: does the search find it? The same as in `peers.plain`."""


def bare_speed(program: Program) -> float:
    """Executions a second with no bookkeeping at all: what the switching itself costs."""
    runner = Runner(program, Setting(), Limits())
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < SECONDS / 4:
        ex: Execution = runner.fresh()
        while able := ex.able():
            ex.step(able[0], 0)
        ex.close()
        count += 1
    return count / (time.perf_counter() - begun)


def best(measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(REPEATS))


def exhaustion(program: Program) -> tuple[int, int, float]:
    """Traces, steps, and the best time to find them all."""
    runner = Runner(program, Setting(), Limits())

    def once() -> float:
        nonlocal runner
        runner = Runner(program, Setting(), Limits())
        begun = time.perf_counter()
        Search(runner).run()
        return time.perf_counter() - begun

    seconds = best(once)
    return runner.complete, runner.steps, seconds


def sampling(program: Program, strategy: Random | Pos) -> float:
    """Executions a second of a walk."""
    return explore(program, strategy, seconds=SECONDS / 4, shrink=0).speed


def measured(program: Program, seconds: float) -> dict[str, Any]:
    """Our side of one row of the comparison: explored again and again until the time is over."""
    executions = 0
    times: list[float] = []
    begun = time.perf_counter()
    while not times or time.perf_counter() - begun < seconds / 2:
        result = explore(program, seconds=seconds)
        times.append(result.seconds)
        executions += result.executions
    return {
        "executions": result.executions,
        "speed": executions / sum(times),
        "seconds": min(times) if result.exhausted else None,
        "verdict": result.verdict,
    }


def ours(seconds: float) -> dict[str, Any]:
    """Our side of the comparison, in the form in which peers report theirs."""
    mistakes = {}
    for name, program in MISTAKES.items():
        result = explore(program)
        found = f"found ({result.why.split(':')[0].split(' (')[0]})"
        mistakes[name] = {
            "executions": result.executions,
            "verdict": found if result.verdict == "violated" else result.verdict,
        }
    return {
        "version": version("seriatim"),
        "python": platform.python_version(),
        "speed": {name: measured(program, seconds) for name, program in PROGRAMS.items()},
        "mistakes": mistakes,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the comparison; 0: none")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each program and round")
    parser.add_argument("--json", type=Path, default=Path("build/bench/explorer.json"))
    options = parser.parse_args(argv)
    console = Console(width=120)
    table = Table(title="Exploring, in this process")
    for column in (
        "program",
        "traces",
        "steps each",
        "to the end",
        "DPOR /s",
        "bare /s",
        "random /s",
        "POS /s",
    ):
        table.add_column(column, justify="left" if column == "program" else "right")
    for name, program in PROGRAMS.items():
        traces, steps, seconds = exhaustion(program)
        table.add_row(
            name,
            f"{traces:,}",
            f"{steps / traces:.1f}",
            f"{seconds:.4f} s",
            f"{traces / seconds:,.0f}",
            f"{bare_speed(program):,.0f}",
            f"{sampling(program, Random()):,.0f}",
            f"{sampling(program, Pos()):,.0f}",
        )
    console.print(table)
    console.print("bare: the same executions with no bookkeeping; DPOR costs the difference.")
    if options.rounds:
        comparison.run(console, ours, options.rounds, options.seconds, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
