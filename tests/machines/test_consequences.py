"""What follows when a mutant ends otherwise: attributes that threads race for as steps, and ends as AP-1."""

from __future__ import annotations

from types import ModuleType

import pytest

from seriatim_models.explorer import World
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.base import Program
from seriatim_models.programs.check import Judge
from seriatim_models.programs.mutant_modules import load, source
from seriatim_workshop.mutation.consequences import AttributeSteps, consequence, raced_attributes
from seriatim_workshop.mutation.exhaustive import modules_with
from seriatim_workshop.mutation.order import order_mutations
from seriatim_workshop.mutation.outcomes import OutcomeSet
from seriatim_workshop.mutation.searching import Kill, races_of, search


class Counter:
    """A counter that two threads raise without a lock."""

    def __init__(self) -> None:
        self.count = 0
        self.seen: list[int] = []


def raise_twice(world: World, lib: ModuleType) -> None:
    counter = Counter()

    def once() -> None:
        counter.count = counter.count + 1

    world.spawn(once, name="A")
    world.spawn(once, name="B")
    world.at_end(lambda: None if counter.count == 2 else f"the count is {counter.count}")


PROGRAM = Program("raise-twice", "", "queue", (), raise_twice, "", 1)


def test_without_steps_no_schedule_loses_an_addition_and_with_them_one_does() -> None:
    lib = load("queue")
    assert not search(PROGRAM, lib, Judge(()), 100).found
    steps = AttributeSteps([Counter], {"Counter.count"})

    def build(world: World, lib: ModuleType) -> None:
        steps.begin(world)
        raise_twice(world, lib)

    with steps.installed():
        found = search(
            Program("raise-twice", "", "queue", (), build, "", 1), lib, Judge(()), 100
        ).found
    assert str(found[0][1][0]) == "the count is 1"
    assert not search(PROGRAM, lib, Judge(()), 100).found, "nothing is left of the steps"


def test_what_is_raced_for_is_read_from_the_reports() -> None:
    reports = [
        "Slot.waiting (the contents): A writes it",
        "Pool._pool[...] (the contents): B",
        "C.x: A",
    ]
    assert raced_attributes(reports) == {"Slot.waiting", "Pool._pool", "C.x"}


def judged(name: str, program: Program, attributes: bool = False) -> Kill | None:
    """What follows from a mutant of order in a program, by all properties of the program and AP-1."""
    file = name.partition(".")[0]
    (mutant,) = [m for m in order_mutations(file) if m.name == name]
    lib, known = modules_with(file, mutant.source), OutcomeSet()
    assert search(program, load(program.reference), Judge(()), 3000, outcomes=known).exhausted
    raced: set[str] = set()
    if attributes:
        raced = raced_attributes(races_of(search(program, lib, Judge(()), 100, attributes=True)))
        assert raced
    ids = [*program.properties, "AP-1"]
    return consequence(program, lib, ids, sorted(known.found), 2000, raced=raced)


@pytest.mark.parametrize(
    ("name", "program", "by"),
    [
        ("client.Connection.open_channel: lock-removed: with self._lock:", "open-while-closing", "outcome"),
        ("log.Channel.disconnect: behind-the-lock: self._stopping = True", "log-reconnect", "LC-4"),
    ],
)  # fmt: skip
def test_a_property_or_a_client_says_what_a_data_race_breaks(
    name: str, program: str, by: str
) -> None:
    assert judged(name, PROGRAMS[program], attributes=True) == Kill(by, program)


@pytest.mark.parametrize(
    ("name", "program"),
    [
        (
            "workpool.Executor.shutdown: notified-one-or-all: self._permits.release(self.size) once",
            "pool-shut-down",
        ),
        (
            "log.Topic.strike: check-left-out: self._connected.compare_and_set(there, rest) is false",
            "log-empty-message",
        ),
        ("workpool.WorkPool.next_work_block: lock-split: before key = self._ready.popleft()", "crash-anywhere"),
    ],
)  # fmt: skip
def test_where_nothing_else_is_broken_calls_do_not_end_as_declared(name: str, program: str) -> None:
    """A thread that waits for ever, one that goes round for ever, and an error that ends a thread of the pool's."""
    assert judged(name, PROGRAMS[program]) == Kill("AP-1", program)


def test_the_right_reference_ends_as_declared() -> None:
    for id in ("pool-shut-down", "log-empty-message", "misused", "log-too-large", "fair-foreign"):
        program = PROGRAMS[id]
        lib = modules_with(program.reference, source(program.reference))
        known = OutcomeSet()
        search(program, load(program.reference), Judge(()), 3000, outcomes=known)
        ids = [*program.properties, "AP-1"]
        assert consequence(program, lib, ids, sorted(known.found), 2000) is None
