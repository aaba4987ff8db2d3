"""Small programs in which two threads take elements of one iterator, by the way it came to both: see test_library.

An iterator has its name where it is made. A generator ends its `with` and `finally` when the last reference to it goes.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.own_code.going_through import first, run, seen


def numbers() -> Iterator[int]:
    yield 1
    yield 2


def the_first_comes_first(take: Callable[[], object]) -> None:
    """Wrong: the other thread may take an element before it."""
    found: dict[str, object] = {}

    def one() -> None:
        found["a"] = take()

    run(one, take)
    assert found.get("a") in (1, (1,))


def by_a_parameter(elements: Any, take: Callable[[Any], object] = first) -> None:
    the_first_comes_first(lambda: take(elements))


def wrong_parameter_generator() -> None:
    by_a_parameter(numbers(), next)


def wrong_parameter_generator_expression() -> None:
    by_a_parameter(n for n in (1, 2))


def wrong_parameter_map() -> None:
    by_a_parameter(map(abs, [1, 2]))


def wrong_parameter_map_of_python() -> None:
    by_a_parameter(map(lambda n: n, range(1, 3)))  # noqa: C417 - that is the question


def wrong_parameter_zip() -> None:
    by_a_parameter(zip((1, 2), strict=False))


def wrong_parameter_filter() -> None:
    by_a_parameter(filter(None, [1, 2]), next)


def wrong_parameter_searched() -> None:
    by_a_parameter(map(abs, [1, 2]), lambda elements: int(1 in elements))


def wrong_parameter_delegated_to() -> None:
    def through(elements: Iterable[object]) -> Iterator[object]:
        yield from elements

    by_a_parameter(map(abs, [1, 2]), lambda elements: first(through(elements)))


def wrong_parameter_sent_to() -> None:
    by_a_parameter(numbers(), lambda generator: generator.send(None))


def wrong_default_argument() -> None:
    def take(elements: Any = map(abs, [1, 2])) -> object:  # noqa: B008 - that is the question
        return first(elements)

    the_first_comes_first(take)


def wrong_partial() -> None:
    the_first_comes_first(functools.partial(first, zip([1, 2], strict=False)))


def wrong_partial_of_a_generator() -> None:
    the_first_comes_first(functools.partial(next, (n for n in (1, 2))))


class Kept:
    elements = map(abs, [1, 2])

    @property
    def own(self) -> Iterator[int]:
        yield 1
        yield 2

    def __iter__(self) -> Iterator[int]:
        yield 1
        yield 2


ELEMENTS = (n for n in (1, 2))


def wrong_class_attribute() -> None:
    the_first_comes_first(lambda: first(Kept.elements))


def wrong_global() -> None:
    the_first_comes_first(lambda: first(ELEMENTS))


def wrong_list() -> None:
    kept = [map(abs, [1, 2])]
    the_first_comes_first(lambda: first(kept[0]))


def wrong_dict() -> None:
    kept = {"a": numbers()}
    the_first_comes_first(lambda: first(kept["a"]))


def wrong_context_variable() -> None:
    kept = contextvars.ContextVar("kept", default=map(abs, [1, 2]))  # noqa: B039 - that is the question
    the_first_comes_first(lambda: first(kept.get()))


def wrong_method_of_a_generator() -> None:
    the_first_comes_first(numbers().__next__)


def wrong_property() -> None:
    the_first_comes_first(functools.partial(first, Kept().own))


def wrong_iterator_of_a_class() -> None:
    the_first_comes_first(functools.partial(next, iter(Kept())))


def wrong_two_generators_over_one() -> None:
    def both(elements: Iterable[int]) -> tuple[Iterator[int], Iterator[int]]:
        return (n for n in elements), (n for n in elements)

    one, other = both(map(abs, [1, 2]))
    assert seen(lambda: next(one), lambda: next(other)) == 1


def wrong_yielded() -> None:
    def source() -> Iterator[Iterable[int]]:
        elements = map(abs, [1, 2])
        yield elements
        yield [n for n in (first(elements),) if isinstance(n, int)]

    generator = source()
    elements = next(generator)
    assert seen(lambda: first(elements), lambda: next(generator)) == 1


# -- right: an iterator for each thread, and what a generator does


def right_an_iterator_of_each_thread() -> None:
    found: list[object] = []

    def take() -> None:
        found.append(
            [sum(numbers()), *zip(Kept(), "ab", strict=False), *enumerate(n for n in (1, 2))]
        )

    run(take, take)
    assert found == [[3, (1, "a"), (2, "b"), (0, 1), (1, 2)]] * 2


def right_a_generator_is_closed_when_nobody_has_it() -> None:
    lock = threading.Lock()

    def locked() -> Iterator[int]:
        with lock:
            yield 1
            yield 2

    def use() -> None:
        for _ in locked():
            break
        for _ in map(abs, locked()):
            break
        assert next(locked()) == 1

    run(use, use)
    assert not lock.locked()


def right_a_stored_generator_is_closed_at_once() -> None:
    log: list[str] = []

    def logging() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    holder = types.SimpleNamespace(elements=logging())
    assert next(holder.elements) == 1
    holder.elements = None
    assert log == ["closed"]
    kept = collections.deque[Iterator[int]]()
    kept.append(logging())
    run(lambda: next(kept[0]), list)
    kept.clear()
    assert log == ["closed"] * 2


def right_all_that_is_delegated() -> None:
    log: list[object] = []

    def inner() -> Any:
        got: list[object] = []
        try:
            while len(got) < 3:
                try:
                    got.append((yield len(got)))
                except KeyError:
                    got.append("thrown")
            return got
        finally:
            log.append("closed")

    def outer() -> Any:
        log.append((yield from inner()))
        yield "end"

    generator = outer()
    assert next(generator) == 0
    run(lambda: log.append(generator.send("a")), list)
    assert generator.throw(KeyError()) == 2
    assert generator.send("b") == "end"
    other = outer()
    next(other)
    other.close()
    assert log == [1, "closed", ["a", "thrown", "b"], "closed"]


def right_an_iterator_is_its_own_iterator() -> None:
    generator, mapped, through = (n for n in (1, 2)), map(abs, [1]), iter([1])
    run(list, list)
    assert iter(generator) is generator
    assert iter(mapped) is mapped
    assert iter(through) is through
