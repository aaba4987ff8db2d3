"""Generated programs with asyncio: the explorer against every order of timers on the interpreter's own event loop.

A program is the text of a module with one `async def test`: tasks over shared attributes, locks, events, conditions,
semaphores, queues, time limits and cancellations. It returns what its tasks saw. The other side owes nothing to the
explorer: the real `asyncio`, in C, with a loop of a few lines that puts any timers, in any order, behind what is ready
before each turn, as a selector would; all its choices are tried one by one. Both must end with the same outcomes,
and both must wait for ever, or neither.

`python -m seriatim_workshop.crosscheck.own --kind asyncio` prints what differs, and the program.
"""

from __future__ import annotations

import asyncio
import importlib.util
import random
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from seriatim_workshop.crosscheck.own_code import Agreement, Generated, result_of

HEAD = """
import asyncio


class Thing:
    x = 0

"""

LINES = (
    "await asyncio.sleep(1)",
    "await asyncio.sleep(2)",
    "await asyncio.sleep(0)",
    "await asyncio.sleep(1)\nr.append(o.x)\nawait asyncio.sleep(0)\no.x += 3",
    "await asyncio.sleep(1)\nev.set()",
    "await asyncio.sleep(1)\ntasks[{k}].cancel()",
    "await asyncio.sleep(0)\nr.append(o.x)\nawait asyncio.sleep(0)\no.x += 3",
    "asyncio.get_running_loop().call_later(1, setattr, o, 'x', 7)",
    "asyncio.get_running_loop().call_later(1, lambda: r.append(o.x))",
    "asyncio.get_running_loop().call_later(1, tasks[{k}].cancel)",
    "r.append(o.x)",
    "o.x += 1",
    "v = o.x\nawait asyncio.sleep(1)\no.x = v + 1",
    "async with lock:\n    r.append(o.x)\n    await asyncio.sleep(1)\n    o.x += 1",
    "async with lock:\n    o.x += 2",
    "ev.set()",
    "await ev.wait()\nr.append('event')",
    "try:\n    await asyncio.wait_for(ev.wait(), 1)\nexcept asyncio.TimeoutError:\n    r.append('late')",
    "asyncio.get_running_loop().call_later(1, ev.set)",
    "await q.put({k})",
    "r.append(await q.get())",
    "try:\n    r.append(await asyncio.wait_for(q.get(), 1))\nexcept asyncio.TimeoutError:\n    r.append('none')",
    "async with cond:\n    cond.notify()",
    "async with cond:\n    await cond.wait()\n    r.append('notified')",
    "async with sem:\n    r.append(o.x)\n    await asyncio.sleep(1)",
    "tasks[{k}].cancel()",
    "try:\n    await asyncio.sleep(1)\nfinally:\n    o.x += 10",
    "r.append(await asyncio.shield(asyncio.ensure_future(asyncio.sleep(1, {k}))))",
)
"""What a task does; {k} is a number of a task."""


def generate(seed: int) -> Generated:
    """The program of this seed."""
    chance = random.Random(seed)
    count = chance.choice((2, 2, 3))
    parts = [
        "async def test():",
        "    o, lock, ev, cond = Thing(), asyncio.Lock(), asyncio.Event(), asyncio.Condition()",
        "    sem, q, tasks, results = asyncio.Semaphore(1), asyncio.Queue(1), [], []",
    ]
    for k in range(count):
        lines = [chance.choice(LINES) for _ in range(chance.randint(1, 4 if count == 2 else 2))]
        body = "\n".join(line.replace("{k}", str(chance.randrange(count))) for line in lines)
        parts += [f"    async def work{k}(r):", textwrap.indent(body, " " * 8)]
    parts += [
        f"    for work in ({', '.join(f'work{k}' for k in range(count))}):",
        "        results.append([])",
        "        tasks.append(asyncio.create_task(work(results[-1])))",
        "    ended = await asyncio.gather(*tasks, return_exceptions=True)",
        "    return tuple(map(tuple, results)), tuple(type(e).__name__ for e in ended), o.x, ev.is_set(), q.qsize()",
    ]
    return Generated(seed, HEAD + "\n".join(parts) + "\n")


class WaitsForEver(Exception):
    """Nothing is ready and no timer is set."""


class TooMany(Exception):
    """There are more executions than are wanted."""


class NaiveLoop(asyncio.BaseEventLoop):
    """A loop that puts timers behind what is ready, before each turn, as its script of choices says.

    A timer is overtaken as often as `spec/OWN_CODE.md` says: only before the fifth that was set later and for longer.
    """

    def __init__(self, script: list[int]) -> None:
        super().__init__()
        self.script = script
        self.ending = False
        self.widths: list[int] = []
        self.now = 0.0
        self.pending: list[asyncio.TimerHandle] = []
        self.overtaken: list[int] = []
        """Of each pending timer."""
        self._selector = self

    def time(self) -> float:
        """Virtual seconds."""
        return self.now

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:  # type: ignore[override]  # fmt: skip
        """Keep a timer."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self.pending.append(handle)
        self.overtaken.append(0)
        return handle

    def _choose(self, n: int) -> int:
        if self.ending:
            return 0
        at = len(self.widths)
        self.widths.append(n)
        if at == len(self.script):
            self.script.append(0)
        return self.script[at]

    def _waits(self, older: int, other: int) -> bool:
        """Whether a timer has to end before another one that was set behind it."""
        return (
            self.overtaken[older] >= 4 and self.pending[older].when() <= self.pending[other].when()
        )

    def select(self, timeout: float | None) -> list[asyncio.TimerHandle]:
        """The timers that have expired."""
        fired: list[asyncio.TimerHandle] = []
        while True:
            kept = [n for n, handle in enumerate(self.pending) if not handle.cancelled()]
            self.overtaken = [self.overtaken[n] for n in kept]
            self.pending = [self.pending[n] for n in kept]
            pending = [
                h
                for n, h in enumerate(self.pending)
                if not any(self._waits(m, n) for m in range(n))
            ]
            must = timeout is None and not fired
            if not pending:
                if must:
                    raise WaitsForEver
                return fired
            chosen = self._choose(len(pending) + (not must)) - (not must)
            if chosen < 0:
                return fired
            handle = pending[chosen]
            at = next(n for n, other in enumerate(self.pending) if other is handle)
            for n in range(at):
                self.overtaken[n] += self.pending[n].when() <= handle.when()
            del self.pending[at], self.overtaken[at]
            self.now = max(self.now, handle.when())
            fired.append(handle)

    def _process_events(self, fired: list[asyncio.TimerHandle]) -> None:
        self._ready.extend(fired)  # type: ignore[attr-defined]


def real_outcomes(module: ModuleType, most: int) -> tuple[set[Any], bool]:
    """All outcomes on real asyncio, and whether it may wait for ever. Raises `TooMany`."""
    seen: set[Any] = set()
    stuck = False
    script: list[int] = []
    for _ in range(most):
        loop = NaiveLoop(script)
        loop.set_exception_handler(lambda loop, context: None)
        main = loop.create_task(module.test())
        try:
            seen.add(loop.run_until_complete(main))
        except WaitsForEver:
            stuck = True
        _end(loop)
        while script and script[-1] + 1 == loop.widths[len(script) - 1]:
            script.pop()
        if not script:
            return seen, stuck
        script[-1] += 1
    raise TooMany


def _end(loop: NaiveLoop) -> None:
    """Cancel what is left, so that nobody complains of it."""
    loop.ending = True
    for _ in range(20):
        left = asyncio.all_tasks(loop)
        if not left:
            break
        for task in left:
            task.cancel()
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.close()


def compared(program: Generated, folder: Path, *, executions: int = 1500) -> Agreement:
    """Compare both sides on one program."""
    name = f"generated_asyncio_{program.seed}"
    path = folder / f"{name}.py"
    path.write_text(program.text)
    agreement = Agreement(program.seed)
    result = result_of(path, name, max_executions=executions)
    agreement.traces = result.traces or 0
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        seen, stuck = real_outcomes(module, 4 * executions)
    except TooMany:
        agreement.large = True
        return agreement
    if not result.exhausted:
        agreement.large = True
        return agreement
    ours = {outcome[0] if _wrapped(outcome) else outcome for outcome in result.outcomes}
    if ours != seen:
        agreement.wrong.append(f"outcomes: only explored {ours - seen}, only real {seen - ours}")
    if ("deadlock" in result.ends) != stuck:
        agreement.wrong.append(f"ends: {result.ends}, and the real loop waits for ever: {stuck}")
    if result.redundant or result.blocked:
        agreement.wrong.append(f"{result.redundant} redundant, {result.blocked} blocked")
    return agreement


def _wrapped(outcome: Any) -> bool:
    return isinstance(outcome, tuple) and len(outcome) == 1
