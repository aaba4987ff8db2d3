"""What a search has made is gone when it has ended, however many searches follow."""

from __future__ import annotations

import gc
import weakref

from seriatim_models.explorer import Dpor, World, explore
from seriatim_models.explorer.model import watchdog
from seriatim_models.explorer.search.explore import SEARCHES_BETWEEN_COLLECTIONS


class Circular:
    """An object that only the garbage collector can end."""

    def __init__(self) -> None:
        self.itself = self


def searched(made: list[weakref.ref[object]], look: bool = False) -> None:
    """Make one search of a program that makes a circular object in each execution."""

    def program(world: World) -> None:
        circular = Circular()
        made.append(weakref.ref(circular))
        cell = world.cell(0, "count")

        def adds() -> None:
            cell.add(1)
            if look:
                watchdog._watches[-1].look()
            assert circular.itself is circular

        world.spawn(adds)
        world.spawn(adds)

    assert explore(program, Dpor()).verdict == "ok"


def alive(made: list[weakref.ref[object]]) -> int:
    return sum(ref() is not None for ref in made)


def test_nothing_of_a_search_is_left_when_it_has_ended() -> None:
    made: list[weakref.ref[object]] = []
    gc.collect()
    for _ in range(3):
        searched(made)
        assert alive(made) == 0
    assert len(made) > 6


def test_where_the_watchdog_has_looked_nothing_is_kept() -> None:
    made: list[weakref.ref[object]] = []
    searched(made, look=True)
    gc.collect()
    assert alive(made) == 0


def test_what_becomes_garbage_between_searches_is_collected_by_one_of_the_next() -> None:
    made: list[weakref.ref[object]] = []
    held = [Circular()]
    searched(made)  # at whose end it is old
    dead = weakref.ref(held.pop())
    for _ in range(SEARCHES_BETWEEN_COLLECTIONS):
        searched(made)
    assert dead() is None


def test_a_program_that_collects_nothing_is_left_alone() -> None:
    made: list[weakref.ref[object]] = []
    gc.disable()
    try:
        searched(made)
        assert not gc.isenabled()
        assert gc.get_freeze_count() == 0
    finally:
        gc.enable()
    gc.collect()
    assert alive(made) == 0
