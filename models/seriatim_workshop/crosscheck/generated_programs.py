"""Random concurrent programs, as data: to check the explorer against brute force, and to test what must hold for all.

A program is a list of threads, a thread a list of instructions. Everything is drawn from one number,
so a program is named by its number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from seriatim_models.explorer.model.world import Handle, World

Instruction = tuple[Any, ...]

SIMPLE = ("get", "set", "cas", "add", "fadd", "swap", "if", "ifelse")
FLAVOURS: dict[str, tuple[str, ...]] = {
    "cells": SIMPLE,
    "adds": ("get", "add", "fadd", "if", "add"),
    "locks": ("get", "set", "with", "with", "try", "acquire", "release", "if"),
    "conditions": ("with_wait", "with_wait_if", "with_notify", "with_notify_all", "set", "set_notify"),
    "timed": ("with_wait_timed", "with_wait", "with_notify", "set", "try_permit_timed", "restore"),
    "semaphores": ("permit", "restore", "try_permit", "try_permit_timed", "get", "set", "permit"),
    "joins": ("join", "join", "set", "get", "if", "spawn", "cas"),
    "choices": ("choose", "choose_if", "choose_if", "set", "get", "if", "with", "with_notify", "with_wait"),
    "clock": ("now", "advance", "if_late", "set", "get"),
    "calls": ("call", "call", "set", "get", "call_cas"),
    "all": (
        *SIMPLE, "with", "try", "with_wait", "with_wait_if", "with_notify", "with_notify_all",
        "permit", "restore", "try_permit", "join", "spawn", "choose", "choose_if", "acquire",
        "release", "try_permit_timed", "with_wait_timed", "now", "advance", "call", "set_notify",
    ),
}  # fmt: skip

AWAITS = (
    "get",
    "set",
    "set",
    "cas",
    "fadd",
    "swap",
    "if",
    "until",
    "until",
    "with",
    "permit",
    "restore",
)
"""Instructions of one more flavour, `awaits`: drawn beside the others, whose programs keep their numbers."""

NESTED = ("if", "ifelse", "with", "try", "spawn", "choose_if", "if_late")
"""Instructions with a body."""

ON_A_LOCK = ("acquire", "release", "with_wait", "with_wait_timed", "with_notify_all")
"""Instructions of a lock alone."""


@dataclass(frozen=True)
class GeneratedProgram:
    """A program as data, and the setting it is meant for."""

    number: int
    flavour: str
    threads: tuple[tuple[Instruction, ...], ...]
    cells: int
    permits: int
    timeouts: int
    spurious: int
    identical: bool = False
    """Whether threads with one body are one function, spawned in a row, and what they saw has no name."""

    @property
    def real_time(self) -> bool:
        """Whether the order of calls counts in this program."""
        return self.flavour in ("calls", "all")

    def __call__(self, world: World) -> None:
        ProgramInterpreter(self, world)

    def __str__(self) -> str:
        kind = f"{self.flavour}{', identical threads' if self.identical else ''}"
        head = (
            f"program {self.number} ({kind}, {self.timeouts} time-outs, {self.spurious} spurious)"
        )
        return "\n".join([head, *(f"  t{k}: {list(t)}" for k, t in enumerate(self.threads))])


class ProgramInterpreter:
    """Interprets a generated program in a world. Its observations are the outcome."""

    def __init__(self, program: GeneratedProgram, world: World) -> None:
        self.world = world
        self.cells = [world.cell(0, name=f"x{k}") for k in range(program.cells)]
        self.locks = [world.lock(name=f"m{k}") for k in range(2)]
        self.conditions = [world.condition(m, name=f"c{k}") for k, m in enumerate(self.locks)]
        self.semaphore = world.semaphore(program.permits, name="s")
        self.seen: dict[str, list[object]] = {}
        self.unnamed: list[list[object]] = []
        """What each thread without a name saw."""
        self.identical = program.identical
        self.functions: dict[tuple[Instruction, ...], Callable[[], None]] = {}
        self.handles: list[Handle] = []
        for k, body in enumerate(program.threads):
            self.handles.append(world.spawn(self._thread(f"t{k}", body), name=f"t{k}"))
        world.at_end(self._end)

    def _thread(self, name: str, body: tuple[Instruction, ...]) -> Callable[[], None]:
        if self.identical:
            return self.functions.setdefault(body, lambda: self._run_unnamed(body))
        seen = self.seen[name] = []
        return lambda: self._run(name, seen, body)

    def _run_unnamed(self, body: tuple[Instruction, ...]) -> None:
        seen: list[object] = []
        self.unnamed.append(seen)
        self._run("", seen, body)

    def _end(self) -> None:
        self.world.result(
            (
                tuple(c.get() for c in self.cells),
                tuple(m.value is None for m in self.locks),
                self.semaphore.value,
                tuple(len(c.value) for c in self.conditions),
                self.world.now(),
                tuple(sorted((k, tuple(map(repr, v))) for k, v in self.seen.items())),
                tuple(sorted(tuple(map(repr, v)) for v in self.unnamed)),
            )
        )

    def _run(self, name: str, seen: list[object], body: tuple[Instruction, ...]) -> None:
        for instruction in body:
            what, *args = instruction
            observed = getattr(self, "do_" + what)(name, seen, *args)
            if observed is not None:
                seen.append(observed)

    def do_get(self, name: str, seen: list[object], x: int) -> object:
        return self.cells[x].get()

    def do_set(self, name: str, seen: list[object], x: int, v: int) -> None:
        self.cells[x].set(v)

    def do_cas(self, name: str, seen: list[object], x: int, e: int, v: int) -> object:
        return self.cells[x].compare_and_set(e, v)

    def do_add(self, name: str, seen: list[object], x: int, v: int) -> None:
        self.cells[x].add(v)

    def do_fadd(self, name: str, seen: list[object], x: int, v: int) -> object:
        return self.cells[x].get_and_add(v)

    def do_swap(self, name: str, seen: list[object], x: int, v: int) -> object:
        return self.cells[x].get_and_set(v)

    def do_until(self, name: str, seen: list[object], x: int, v: int) -> object:
        return self.cells[x].wait_until(lambda value: value == v)

    def do_if(self, name: str, seen: list[object], x: int, v: int, body: Any) -> None:
        if self.cells[x].get() == v:
            self._run(name, seen, body)

    def do_ifelse(
        self, name: str, seen: list[object], x: int, v: int, body: Any, other: Any
    ) -> None:
        self._run(name, seen, body if self.cells[x].get() == v else other)

    def do_with(self, name: str, seen: list[object], m: int, body: Any) -> None:
        with self.locks[m]:
            self._run(name, seen, body)

    def do_try(self, name: str, seen: list[object], m: int, body: Any) -> object:
        if not self.locks[m].try_acquire():
            return "busy"
        self._run(name, seen, body)
        self.locks[m].release()
        return None

    def do_acquire(self, name: str, seen: list[object], m: int) -> None:
        self.locks[m].acquire()

    def do_release(self, name: str, seen: list[object], m: int) -> object:
        try:
            self.locks[m].release()
        except RuntimeError:
            return "not mine"
        return None

    def do_with_wait(self, name: str, seen: list[object], m: int) -> object:
        with self.locks[m]:
            return self.conditions[m].wait()

    def do_with_wait_timed(self, name: str, seen: list[object], m: int) -> object:
        with self.locks[m]:
            return self.conditions[m].wait(1)

    def do_with_wait_if(self, name: str, seen: list[object], m: int, x: int, v: int) -> None:
        with self.locks[m]:
            if self.cells[x].get() == v:
                self.conditions[m].wait()

    def do_with_notify(self, name: str, seen: list[object], m: int, n: int) -> None:
        with self.locks[m]:
            self.conditions[m].notify(n)

    def do_with_notify_all(self, name: str, seen: list[object], m: int) -> None:
        with self.locks[m]:
            self.conditions[m].notify_all()

    def do_set_notify(self, name: str, seen: list[object], m: int, x: int, v: int) -> None:
        with self.locks[m]:
            self.cells[x].set(v)
            self.conditions[m].notify()

    def do_permit(self, name: str, seen: list[object]) -> None:
        self.semaphore.acquire()

    def do_restore(self, name: str, seen: list[object], n: int) -> None:
        self.semaphore.release(n)

    def do_try_permit(self, name: str, seen: list[object]) -> object:
        return self.semaphore.try_acquire()

    def do_try_permit_timed(self, name: str, seen: list[object]) -> object:
        return self.semaphore.try_acquire(1)

    def do_join(self, name: str, seen: list[object], k: int) -> None:
        self.handles[k % len(self.handles)].join()

    def do_spawn(self, name: str, seen: list[object], body: Any, join: bool) -> None:
        child = f"{name}/{len(seen)}"
        while child in self.seen:
            child += "'"
        handle = self.world.spawn(self._thread(child, body))
        if join:
            handle.join()

    def do_team(
        self, name: str, seen: list[object], size: int, body: Any, backwards: bool, waits: bool
    ) -> None:
        handles = [self.world.spawn(self._thread("", body)) for _ in range(size)]
        if waits:
            for handle in reversed(handles) if backwards else handles:
                handle.join()

    def do_choose(self, name: str, seen: list[object], n: int) -> object:
        return self.world.choose(n)

    def do_choose_if(
        self, name: str, seen: list[object], n: int, alternative: int, body: Any
    ) -> None:
        if self.world.choose(n) == alternative:
            self._run(name, seen, body)

    def do_now(self, name: str, seen: list[object]) -> object:
        return self.world.now()

    def do_advance(self, name: str, seen: list[object], n: int) -> None:
        self.world.advance(n)

    def do_if_late(self, name: str, seen: list[object], n: int, body: Any) -> None:
        if self.world.now() >= n:
            self._run(name, seen, body)

    def do_call(self, name: str, seen: list[object], x: int) -> object:
        self.world.record("read", ph="invoke")
        value = self.cells[x].get()
        self.world.record("read", ph="ok")
        return value

    def do_call_cas(self, name: str, seen: list[object], x: int, e: int, v: int) -> object:
        self.world.record("cas", ph="invoke")
        ok = self.cells[x].compare_and_set(e, v)
        self.world.record("cas", ph="ok" if ok else "fail")
        return ok


def with_identical_threads(program: GeneratedProgram) -> GeneratedProgram:
    """The program with at least two threads that are alike: spawned in the set-up and never joined, or by a thread."""
    chance = random.Random(program.number)
    first = _without_joins(program.threads[0])
    alike = chance.randint(2, min(len(program.threads), 4))
    others = tuple(_without_joins(body) for body in program.threads[alike:])
    if chance.random() < 0.5:
        team = ("team", alike, first, chance.random() < 0.5, chance.random() < 0.8)
        behind = _without_joins(program.threads[1])[:2] if chance.random() < 0.5 else ()
        return replace(program, threads=((team, *behind), *others), identical=True)
    return replace(program, threads=(first,) * alike + others, identical=True)


def _without_joins(body: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """A body without joins of the threads of the program; what it spawns it may join."""
    return tuple(
        tuple(_without_joins(part) if isinstance(part, tuple) else part for part in instruction)
        for instruction in body
        if instruction[0] != "join"
    )


def generate(number: int, awaits: bool = False) -> GeneratedProgram:
    """The program with this number, or the one of flavour `awaits` with it."""
    r = random.Random(number)
    flavour = "awaits" if awaits else list(FLAVOURS)[number % len(FLAVOURS)]
    words = AWAITS if awaits else FLAVOURS[flavour]
    threads = r.choice((2, 2, 2, 3, 3, 3, 3, 4, 4, 5))
    cells = r.choice((1, 2, 2, 3))
    room = {2: 5, 3: 3, 4: 2, 5: 1}[threads]

    def instruction(depth: int) -> Instruction:
        what = r.choice(words)
        # Drawn in any case, so that a program does not change where an instruction takes fewer numbers.
        x, v, e = r.randrange(cells), r.randrange(3), r.randrange(2)
        m = r.randrange(2) if r.random() < 0.3 else 0
        if depth > 1 and what in NESTED:
            what = "get" if r.random() < 0.5 else "set"
        # What stands behind the name; drawn in this order.
        arguments: dict[str, Callable[[], tuple[Any, ...]]] = {
            **dict.fromkeys(("get", "call"), lambda: (x,)),
            **dict.fromkeys(("set", "swap", "add", "fadd"), lambda: (x, v)),
            **dict.fromkeys(("cas", "call_cas"), lambda: (x, e, v)),
            "until": lambda: (x, v),
            "if": lambda: (x, e, body(depth + 1, 2)),
            "ifelse": lambda: (x, e, body(depth + 1, 1), body(depth + 1, 1)),
            **dict.fromkeys(("with", "try"), lambda: (m, body(depth + 1, 2))),
            **dict.fromkeys(ON_A_LOCK, lambda: (m,)),
            **dict.fromkeys(("with_wait_if", "set_notify"), lambda: (m, x, e)),
            "with_notify": lambda: (m, r.choice((1, 1, 2))),
            "restore": lambda: (r.choice((1, 1, 2)),),
            "join": lambda: (r.randrange(threads),),
            "spawn": lambda: (body(depth + 1, 2), r.random() < 0.5),
            "choose": lambda: (r.choice((2, 2, 3)),),
            "choose_if": lambda: (
                n := r.choice((2, 2, 3)),
                r.randrange(n),
                body(depth + 1, 2),
            ),
            "advance": lambda: (1 + v,),
            "if_late": lambda: (1 + v, body(depth + 1, 2)),
        }
        return (what, *arguments.get(what, tuple)())

    def body(depth: int, most: int) -> tuple[Instruction, ...]:
        return tuple(instruction(depth) for _ in range(r.randint(1, most)))

    if flavour in ("conditions", "timed", "all"):  # their instructions are several steps each
        room = max(room - 1, 1)
    if flavour == "calls":
        room = 2 if threads == 2 else 1
    return GeneratedProgram(
        number,
        flavour,
        tuple(body(0, room) for _ in range(threads)),
        cells,
        r.choice((0, 1, 1, 2)),
        r.choice((0, 1, 1, 2)) if flavour in ("timed", "semaphores", "all") else 0,
        r.choice((0, 0, 1)) if flavour in ("conditions", "timed") else 0,
    )
