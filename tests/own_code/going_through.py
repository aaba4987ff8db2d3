"""Small programs in which C code goes through containers, or calls C code or Python: see test_library.

C code is one operation, whatever C code it calls; where it calls Python, others run meanwhile.
"""

from __future__ import annotations

import collections
import contextvars
import enum
import functools
import itertools
import operator
import random
import threading
import types
from collections.abc import Callable
from typing import Any


def run(*bodies: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def seen(look: Callable[[], object], change: Callable[[], object]) -> object:
    """What one thread sees while another changes something."""
    found: list[object] = []
    run(lambda: found.append(look()), change)
    return found[0]


# -- C code that calls C code, which looks into a container

SCORES = {"a": 1, "b": 2}


def wrong_key_of_max() -> None:
    assert seen(lambda: max("ab", key=SCORES.__getitem__), lambda: SCORES.update(a=3)) == "b"


def right_key_of_max_in_one_operation() -> None:
    assert seen(lambda: max(SCORES, key=SCORES.__getitem__), lambda: SCORES.update(c=3)) in (
        "b",
        "c",
    )


def wrong_key_of_sort() -> None:
    letters = ["a", "b"]
    run(lambda: letters.sort(key=SCORES.get), lambda: SCORES.update(a=3))  # type: ignore[arg-type]  # never None
    assert letters == ["a", "b"]


def wrong_key_of_sorted() -> None:
    found = seen(lambda: sorted("ab", key=SCORES.__getitem__), lambda: SCORES.update(a=3))
    assert found == ["a", "b"]


def wrong_key_that_looks_inside() -> None:
    parts = [[1], [2, 3]]
    assert seen(lambda: max(parts, key=len), lambda: parts[0].extend([4, 5])) == [2, 3]


def wrong_filter() -> None:
    known = {1}
    assert seen(lambda: list(filter(known.__contains__, [1, 2])), lambda: known.add(2)) == [1]


def wrong_map_of_a_partial() -> None:
    get = functools.partial(SCORES.get, "a")
    assert seen(lambda: list(map(get, [0])), lambda: SCORES.update(a=3)) == [1]


def wrong_until_a_sentinel() -> None:
    waiting: collections.deque[int | None] = collections.deque([1, None])
    found = seen(lambda: list(iter(waiting.popleft, None)), lambda: waiting.appendleft(0))
    assert found == [1]


def wrong_reduce_by_c() -> None:
    table: dict[int, int] = {}
    look: Callable[[], object] = lambda: functools.reduce(table.get, [1, 2])  # noqa: E731
    assert seen(look, lambda: table.update({1: 5})) == 2


def wrong_default_by_c() -> None:
    numbers = itertools.count()
    table: collections.defaultdict[str, int] = collections.defaultdict(numbers.__next__)
    assert seen(lambda: table["a"], lambda: next(numbers)) == 0


# -- iterators of C


def moved(reads: Callable[[list[int], list[int]], object]) -> None:
    """One moves an element to another list, and never is it in none."""
    source, target = [1], list[int]()

    def move() -> None:
        target.append(1)
        source.remove(1)

    assert seen(lambda: reads(target, source), move)


def right_chain_in_one_operation() -> None:
    moved(lambda a, b: list(itertools.chain(a, b)))


def wrong_chain_of_a_generator() -> None:
    moved(lambda a, b: list(itertools.chain((x for x in a), (x for x in b))))


def wrong_chain() -> None:
    letters = ["a"]
    assert seen(lambda: list(itertools.chain(letters, "z")), lambda: letters.append("b")) == [
        "a",
        "z",
    ]


def wrong_chain_of_inner_lists() -> None:
    parts = [[1], [2]]
    chained = itertools.chain.from_iterable
    assert seen(lambda: [x for x in chained(parts)], lambda: parts[1].append(3)) == [1, 2]  # noqa: C416 - one by one


def right_pairs_in_one_operation() -> None:
    new, old = [1], [1]

    def change() -> None:
        old[0] = 2
        new[0] = 2

    assert seen(lambda: [pair for pair in zip(new, old, strict=True)], change) != [(2, 1)]  # noqa: C416 - one by one


def wrong_tee() -> None:
    numbers = [1]
    first, _ = itertools.tee(numbers)
    assert seen(lambda: list(first), lambda: numbers.append(2)) == [1]


def wrong_view_that_cannot_be_written() -> None:
    view = types.MappingProxyType(SCORES)
    assert seen(lambda: view["a"], lambda: SCORES.update(a=3)) == 1


def wrong_iteration_over_such_a_view() -> None:
    view = types.MappingProxyType(SCORES)
    assert seen(lambda: [n for _, n in view.items()], lambda: SCORES.update(c=3)) == [1, 2]


def right_product_in_one_operation() -> None:
    numbers = [1]
    found = seen(lambda: list(itertools.product(numbers, numbers)), lambda: numbers.append(2))
    assert len(found) in (1, 4)  # type: ignore[arg-type]  # it is a list


# -- C code that calls Python


class Number:
    def __init__(self, value: int) -> None:
        self.value = value

    def __radd__(self, other: int) -> int:
        return other + self.value


def all_or_nothing(reads: Callable[[list[Any]], object], *elements: Any) -> None:
    """One thread goes through a list while another empties it."""
    numbers = list(elements or (1, 2))
    assert seen(lambda: reads(numbers), numbers.clear) in (0, 3, [], [1, 2])


def wrong_reduce() -> None:
    all_or_nothing(lambda numbers: functools.reduce(lambda a, b: a + b, numbers, 0))


def wrong_key_of_python() -> None:
    all_or_nothing(
        lambda numbers: 3 * (max(numbers, key=lambda n: -n, default=0) == 2) or len(numbers)
    )


def wrong_sum_of_what_python_adds() -> None:
    all_or_nothing(sum, Number(1), Number(2))


def wrong_pairs_of_a_generator() -> None:
    all_or_nothing(lambda numbers: [n for _, n in list(zip((x for x in "ab"), numbers))])  # noqa: B905


def wrong_instances_that_are_made() -> None:
    all_or_nothing(lambda numbers: sum([n.value for n in list(map(Number, numbers))]))


def right_sum_of_what_c_adds() -> None:
    all_or_nothing(sum)


def filled(container: Any, fill: Callable[[Any], object]) -> None:
    """One thread looks at a container while Python makes the elements that C puts into it."""
    assert seen(lambda: len(container), lambda: fill(container)) in (0, 2)


def wrong_extend_by_a_generator() -> None:
    filled([], lambda numbers: numbers.extend(n for n in (1, 2)))


def wrong_update_by_pairs() -> None:
    filled({}, lambda table: table.update(zip("ab", (n for n in (1, 2)), strict=True)))


def wrong_sum_of_a_list_and_a_generator() -> None:
    filled([], lambda numbers: operator.iadd(numbers, (n for n in (1, 2))))  # type: ignore[no-untyped-call]  # typeshed gives it no types


def wrong_counter_of_a_generator() -> None:
    filled(collections.Counter(), lambda counter: counter.update(c for c in "ab"))


def right_update_by_a_dict() -> None:
    filled({}, lambda table: table.update(a=1, b=2))


def right_slice_of_a_generator() -> None:
    filled([], lambda numbers: numbers.__setitem__(slice(None), (n for n in (1, 2))))


def wrong_shuffle_of_what_gets_shorter() -> None:
    numbers = [1, 2, 3]
    run(lambda: random.shuffle(numbers), numbers.pop)


def wrong_choice() -> None:
    numbers = [1, 1]
    assert seen(lambda: random.choice(numbers), lambda: numbers.insert(0, 2)) == 1
    assert seen(lambda: random.choice(numbers), lambda: numbers.__setitem__(0, 1)) == 2


def wrong_context_of_two() -> None:
    context = contextvars.copy_context()
    run(lambda: context.run(int), lambda: context.run(int))


# -- and the values are those of CPython


class Colour(enum.Enum):
    RED = 1


def right_values() -> None:
    def look() -> None:
        shared = [1]
        assert list(itertools.chain(Colour, [1])) == [Colour.RED, 1]
        assert next(itertools.repeat(shared)) is shared
        assert list(itertools.repeat(len, 1)) == [len]
        assert max([1], [2, 3], key=len) == [2, 3]
        assert max([1], [2, 3]) == [2, 3]
        assert max([], default=shared) is shared
        assert functools.reduce(operator.add, [[1], [2]], []) == [1, 2]
        assert list(itertools.zip_longest([1], [], fillvalue=len)) == [(1, len)]
        assert list(itertools.accumulate([1, 2], func=max, initial=0)) == [0, 1, 2]
        assert [n for n, _ in itertools.groupby(["a", "bb"], key=len)] == [1, 2]
        assert list(itertools.chain.from_iterable([[1], (2,), "a"])) == [1, 2, "a"]
        first, second = itertools.tee(n for n in (1, 2))
        assert list(first) == list(second) == [1, 2]
        ids: collections.defaultdict[str, int] = collections.defaultdict(itertools.count().__next__)
        assert (ids["a"], ids["b"]) == (0, 1)
        view = types.MappingProxyType({"a": 1})
        assert (view["a"], list(view), dict(view), {**view}) == (1, ["a"], {"a": 1}, {"a": 1})
        last: collections.deque[int] = collections.deque(maxlen=2)
        last.extend(n for n in range(3))
        assert list(last) == [1, 2]

    run(look, look)


# -- an iterator that two threads have


def taken(source: Any, look: Callable[[Any], object]) -> list[object]:
    """What two threads take of one iterator, by thread."""
    one, two = list[object](), list[object]()
    threads = [
        threading.Thread(
            target=lambda given, found: found.append(look(given)), args=(source, found)
        )
        for found in (one, two)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [*one, *two]


def first(source: Any) -> object:
    for element in source:
        return element
    return None


def wrong_who_is_next_in_a_list() -> None:
    assert taken(iter([1, 2]), next) == [1, 2]


def wrong_who_is_next_in_a_dict() -> None:
    assert taken(iter({1: 1, 2: 2}.items()), first) == [(1, 1), (2, 2)]


def wrong_who_is_next_from_the_end() -> None:
    assert taken(reversed([2, 1]), first) == [1, 2]


def wrong_who_is_next_in_a_map() -> None:
    assert taken(map(abs, [1, 2]), first) == [1, 2]


def wrong_who_is_next_of_pairs() -> None:
    assert taken(enumerate("ab"), first) == [(0, "a"), (1, "b")]


def wrong_who_is_next_in_a_generator() -> None:
    """ValueError, too: the other is in it."""
    assert taken((n for n in (1, 2)), next) == [1, 2]


def wrong_who_has_all() -> None:
    assert taken(iter([1, 2]), list) == [[1, 2], []]


def right_each_element_is_taken_once() -> None:
    assert sorted(taken(iter([1, 2]), next)) == [1, 2]  # type: ignore[type-var]
    assert sorted(taken(map(abs, [1, 2]), next)) == [1, 2]  # type: ignore[type-var]


def right_an_iterator_of_each_thread() -> None:
    numbers, found = [1, 2], list[object]()
    run(lambda: found.append(next(iter(numbers))), lambda: found.append(first(reversed(numbers))))
    assert sorted(found) == [1, 2]  # type: ignore[type-var]


# -- C code makes what is gone through later


def wrong_iterators_in_a_list() -> None:
    items = [1]
    iterators = list(map(list.__iter__, (items,)))
    assert seen(lambda: list(iterators[0]), lambda: items.append(2)) == [1]


def wrong_pairs_that_map_makes() -> None:
    items = [1]
    pairs = list(map(enumerate, (items,)))
    assert seen(lambda: list(pairs[0]), lambda: items.append(2)) == [(0, 1)]
