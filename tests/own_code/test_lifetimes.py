"""When objects die is seen by programs that look: each program's name says what its verdict is."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from tests.own_code import closed_late, lifetimes, no_object, seen_late

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.python import check
from seriatim_models.explorer.python import lifetimes as followed
from seriatim_models.explorer.python.hooks import HOOKS
from seriatim_models.explorer.python.places import ObjectRecord

EXPECTED = {"right": "ok", "wrong": "violated", "withheld": "inconclusive"}
PROGRAMS = sorted(name for name in vars(lifetimes) if name.partition("_")[0] in EXPECTED)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verdict_is_that_of_its_name(name: str) -> None:
    result = check(getattr(lifetimes, name), seconds=60)
    assert result.verdict == EXPECTED[name.partition("_")[0]], str(result)


@pytest.mark.parametrize("program", closed_late.PROGRAMS, ids=lambda program: program.__name__)
def test_what_is_closed_is_closed_when_cpython_closes_it(program: Callable[[], Any]) -> None:
    real = program()
    real = asyncio.run(real) if inspect.iscoroutine(real) else real
    assert list(check(program, seconds=60).outcomes) == [str(real)]


def test_what_lives_is_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are thousands of announcements in an execution, and before each all objects are looked at."""
    looked: list[ObjectRecord] = []
    held = followed._held

    def counted(record: ObjectRecord) -> int:
        looked.append(record)
        return held(record)

    monkeypatch.setattr(followed, "_held", counted)
    result = check(lifetimes.right_many_objects_beside_a_generator, seconds=60)
    assert (result.verdict, result.executions) == ("ok", 2)
    assert len(looked) < 100 * lifetimes.MANY


def test_nobody_looks_for_what_has_died_before_anybody_can_see_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A package makes thousands of objects when it is imported, and its first weak reference comes late or never."""
    counted = followed._counts
    times = 0

    def counts(records: Iterable[ObjectRecord]) -> Iterator[int]:
        nonlocal times
        times += 1
        return counted(records)

    monkeypatch.setattr(followed, "_counts", counts)
    result = check(seen_late.right_many_objects_before_a_reference, seconds=60)
    assert (result.verdict, result.executions) == ("ok", 2)
    assert times < 3 * seen_late.MANY


def test_a_class_without_an_object_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with such a class was looked through at each announcement of its import."""

    def counts(records: Iterable[ObjectRecord]) -> Iterator[int]:
        raise AssertionError("nobody can see what has died")

    monkeypatch.setattr(followed, "_counts", counts)
    result = check(no_object.right_lists_beside_a_class, seconds=60)
    assert (result.verdict, result.executions) == ("ok", 2)


def test_collecting_cycles_is_refused() -> None:
    with pytest.raises(OutsideModel, match=r"gc.collect.*lifetimes.py:\d+.*Break the cycle"):
        check(lifetimes.refused_collection, seconds=60)


class Looked:
    """An object that counts the references to it in each of its methods."""

    def __init__(self) -> None:
        self.counts: set[int] = set()

    def alone(self) -> Any:
        self.counts.add(sys.getrefcount(self))
        return iter(())

    def beside(self, other: object) -> Any:
        self.counts.add(sys.getrefcount(self))
        return True

    def set(self, key: object, value: object) -> None:
        self.counts.add(sys.getrefcount(self))

    def left(self, kind: object, error: object, traceback: object) -> None:
        self.counts.add(sys.getrefcount(self))

    # The interpreter learns to call only what takes as many arguments as it gives.
    value = property(alone)
    method = __call__ = __iter__ = __enter__ = alone
    __getitem__ = __delitem__ = __add__ = __iadd__ = __contains__ = __eq__ = beside
    __setitem__, __exit__ = set, left


def entered(obj: Any) -> None:
    with HOOKS["__s_managed__"](obj, 0):
        pass


OPERATIONS: dict[str, Callable[[Any], object]] = {
    "a.x": lambda obj: HOOKS["__s_get__"](obj, "value", 0),
    "a.f()": lambda obj: HOOKS["__s_call__"](HOOKS["__s_get__"](obj, "method", 0), 0),
    "a[k]": lambda obj: HOOKS["__s_getitem__"](obj, 0, 0),
    "a[k] = v": lambda obj: HOOKS["__s_setitem__"](1, obj, 0, 0),
    "del a[k]": lambda obj: HOOKS["__s_delitem__"](obj, 0, 0),
    "a()": lambda obj: HOOKS["__s_call__"](obj, 0),
    "for x in a": lambda obj: list(HOOKS["__s_iter__"](obj, 0)),
    "with a": lambda obj: entered(obj),
    "a + b": lambda obj: HOOKS["__s_binary__"]("add", obj, 1, 0),
    "a += b": lambda obj: HOOKS["__s_inplace__"]("iadd", obj, 1, 0),
    "b in a": lambda obj: HOOKS["__s_compare__"]("contains", 1, obj, 0),
    "a == b": lambda obj: HOOKS["__s_compare__"]("eq", obj, 1, 0),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_interpreter_learns_no_other_count_of_references(operation: str) -> None:
    """Whoever runs the same search a second time finds another schedule, or NondeterministicProgram."""
    looked, seen = Looked(), list[set[int]]()
    for _ in range(400):
        looked.counts.clear()
        OPERATIONS[operation](looked)
        seen.append(set(looked.counts))
    assert all(counts == seen[0] for counts in seen)
