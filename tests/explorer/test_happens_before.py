"""Generated programs: the races that are found are those of two definitions, each written down a second time.

*By order*: in one execution, two accesses that no path of edges leads from one to the other (transitive closure).
*By adjacency*: in some state of the program, two threads whose next operations are accesses of one variable.
For all traces together both are the same (Boehm & Adve, PLDI 2008, section 5), where no program acts on a
try_acquire that failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seriatim_models.explorer import World, explore
from seriatim_models.explorer.model.attributes import ObservedExecution
from seriatim_workshop.machines.profiles import checking


class Op(NamedTuple):
    """An operation on the attribute, cell or semaphore `on`; `then` is done if it was successful."""

    kind: str
    on: str = ""
    then: Any = None
    """An `Op` or None."""


ACCESSES = ("read", "write")
PASSING_ON = ("set", "add", "swap", "cas", "unlock", "release")
RECEIVING = ("get", "swap", "cas", "failed cas", "lock", "acquire", "try")


def operations(
    kinds: Sequence[str], on: str, then: st.SearchStrategy[Op] | None = None
) -> st.SearchStrategy[Op]:
    """Return the strategy of operations of these kinds on one of the objects `on`, each a letter."""
    return st.builds(
        Op, st.sampled_from(kinds), st.sampled_from(on), then if then is not None else st.none()
    )


access = operations(ACCESSES, "xxy")
on_cell = operations(["get", "set", "add", "swap"], "ccd")
deciding = operations(["if", "cas", "cas"], "ccd", access)
turn = operations(["release", "acquire"], "s")
attempt = operations(["try"], "s", access)
failing = operations(["try else"], "s", access)
some = st.one_of(access, access, on_cell, deciding, turn, attempt)


def threads(operation: st.SearchStrategy[Op]) -> st.SearchStrategy[list[list[Op]]]:
    """Two or three threads; a part of each may be locked."""
    part = st.one_of(
        st.lists(operation, min_size=1, max_size=3),
        st.lists(operation, min_size=1, max_size=2).map(
            lambda ops: [Op("lock", "l"), *ops, Op("unlock", "l")]
        ),
    )
    thread = st.lists(part, min_size=1, max_size=2).map(lambda parts: list(chain(*parts)))
    return st.lists(thread, min_size=2, max_size=3)


class Memory:
    """Two plain attributes."""

    def __init__(self) -> None:
        self.x = 0
        self.y = 0


class Event(NamedTuple):
    """An operation that was done."""

    thread: int
    kind: str
    on: str


def body(
    thread: int, ops: Sequence[Op], memory: Memory, host: dict[str, Any], log: list[Event]
) -> None:
    """Run a thread, and log what it does."""
    for op in ops:
        kind, ok = op.kind, True
        thing: Any = host.get(op.on)
        if kind == "read":
            getattr(memory, op.on)
        elif kind == "write":
            setattr(memory, op.on, 1)
        elif kind == "get":
            thing.get()
        elif kind == "if":
            kind, ok = "get", bool(thing.get())
        elif kind == "set":
            thing.set(1)
        elif kind == "add":
            thing.add(1)
        elif kind == "swap":
            thing.get_and_set(1)
        elif kind == "cas":
            ok = thing.compare_and_set(0, 1)
            kind = "cas" if ok else "failed cas"
        elif kind in ("lock", "acquire"):
            thing.acquire()
        elif kind in ("unlock", "release"):
            thing.release()
        elif kind == "try":
            ok = thing.try_acquire()
            kind = "try" if ok else "failed try"
        elif kind == "try else":
            ok = not thing.try_acquire()
            kind = "failed try" if ok else "try"
        log.append(Event(thread, kind, op.on))
        if op.then is not None and ok:
            body(thread, [op.then], memory, host, log)


def races_by_order(log: list[Event]) -> set[str]:
    """Return the variables with two accesses between which there is no path."""
    before: list[set[int]] = []
    for j, later in enumerate(log):
        reached: set[int] = set()
        for i, earlier in enumerate(log[:j]):
            passes = (
                earlier.on == later.on and earlier.kind in PASSING_ON and later.kind in RECEIVING
            )
            if earlier.thread == later.thread or passes:
                reached |= {i} | before[i]
        before.append(reached)
    return {
        b.on
        for (i, a), (j, b) in combinations(enumerate(log), 2)
        if a.kind in ACCESSES and b.kind in ACCESSES and "write" in (a.kind, b.kind)
        if a.on == b.on and a.thread != b.thread and i not in before[j]
    }


State = tuple[tuple[tuple[Op, ...], ...], tuple[tuple[str, int], ...]]
"""What each thread has still to do; the values of the cells, the lock (who holds it) and the semaphore."""


def successors(state: State) -> Iterator[State]:
    """Return the states after one operation of one thread."""
    rest, values = state
    for t, ops in enumerate(rest):
        if not ops:
            continue
        (kind, on, then), *more = ops
        now = dict(values)
        old = now.get(on, 0)
        ok = True
        if (kind == "lock" and old) or (kind == "acquire" and not old):
            continue
        if kind == "if":
            ok = old != 0
        elif kind in ("cas", "try"):
            ok = (old == 0) == (kind == "cas")
            now[on] = old if not ok else 1 if kind == "cas" else old - 1
        elif kind in ("set", "swap", "lock"):
            now[on] = 1
        elif kind in ("add", "release"):
            now[on] = old + 1
        elif kind in ("unlock", "acquire"):
            now[on] = old - 1
        left = (then, *more) if then is not None and ok else tuple(more)
        yield (*rest[:t], left, *rest[t + 1 :]), tuple(sorted(now.items()))


def races_by_adjacency(program: list[list[Op]]) -> set[str]:
    """Return the variables that in some state two threads are about to access, one of them to write."""
    first: State = tuple(tuple(ops) for ops in program), ()
    seen, todo = {first}, [first]
    found = set()
    while todo:
        state = todo.pop()
        following = [ops[0] for ops in state[0] if ops and ops[0].kind in ACCESSES]
        for a, b in combinations(following, 2):
            if a.on == b.on and "write" in (a.kind, b.kind):
                found.add(a.on)
        fresh = [s for s in successors(state) if s not in seen]
        seen.update(fresh)
        todo += fresh
    return found


def races_found(program: list[list[Op]]) -> tuple[set[str], list[tuple[set[str], set[str]]]]:
    """Return what the explorer reports over all traces, and for each execution that and what the log says."""
    logs: list[list[Event]] = []
    each: list[tuple[set[str], set[str]]] = []

    def run(world: World) -> None:
        logs.append([])
        memory = Memory()
        host = {"c": world.cell(0, "c"), "d": world.cell(0, "d"), "l": world.lock("l")}
        every = {**host, "s": world.semaphore(0, "s")}
        for t, ops in enumerate(program):
            world.spawn(
                lambda t=t, ops=ops, log=logs[-1]: body(t, ops, memory, every, log),  # type: ignore[misc]
                name=f"T{t}",
            )

    def look(world: World) -> None:
        races = cast(ObservedExecution, world._ex).data_races
        found = {race.split(":")[0].removeprefix("Memory.") for race in races}
        each.append((found, races_by_order(logs[-1])))

    result = explore(
        run, attributes=[Memory], on_execution=look, stuck_ok=True, keep_going=True, shrink=0
    )
    assert result.exhausted
    return set().union(*(found for found, _ in each)), each


@checking(250)
@given(threads(st.one_of(some, failing)))
def test_each_execution_has_the_races_of_the_closure(program: list[list[Op]]) -> None:
    _, each = races_found(program)
    for found, expected in each:
        assert found == expected


@pytest.mark.slow
@checking(250)
@given(threads(some))
def test_all_traces_have_the_races_of_all_states(program: list[list[Op]]) -> None:
    found, _ = races_found(program)
    assert found == races_by_adjacency(program)
