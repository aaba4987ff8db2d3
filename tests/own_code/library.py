"""Small programs with what the standard library keeps for them, right ones and wrong ones: see test_library."""

from __future__ import annotations

import asyncio
import bisect
import collections
import collections.abc
import contextlib
import contextvars
import copy
import dataclasses
import decimal
import functools
import heapq
import io
import itertools
import json
import logging
import queue
import threading
import warnings
import weakref
from collections import ChainMap, Counter, OrderedDict, UserDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar

import attrs

LOG = logging.getLogger(__name__)
VAR = contextvars.ContextVar("VAR", default=0)


def run(*bodies: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Lazy:
    def __init__(self) -> None:
        self.number = 0

    @functools.cached_property
    def connection(self) -> object:
        return object()

    @functools.lru_cache  # noqa: B019 - that is the case
    def squared(self, x: int) -> int:
        return x * x


CALLS: list[int] = []


@functools.cache
def doubled(n: int) -> int:
    CALLS.append(n)
    return 2 * n


def right_cached_property() -> None:
    lazy = Lazy()
    run(lambda: lazy.connection, lambda: lazy.connection)
    assert lazy.connection is lazy.connection


def right_cache() -> None:
    lazy, got = Lazy(), list[int]()
    run(lambda: got.append(doubled(1)), lambda: got.append(doubled(1)), lambda: lazy.squared(3))
    assert got == [2, 2]


def wrong_cache_computes_once() -> None:
    run(lambda: doubled(1), lambda: doubled(1))
    assert CALLS == [1]


def right_attribute_dict() -> None:
    lazy = Lazy()
    lazy.__dict__.update(a=1)
    run(lambda: lazy.__dict__.setdefault("b", 2), lambda: vars(lazy).get("b"))
    assert vars(lazy) == {"number": 0, "a": 1, "b": 2}


def wrong_attribute_dict() -> None:
    lazy = Lazy()

    def more() -> None:
        lazy.__dict__["number"] = lazy.__dict__["number"] + 1

    run(more, more)
    assert lazy.number == 2


def numbers() -> Iterator[int]:
    yield from range(10)


def wrong_generator() -> None:
    shared, got = numbers(), list[int]()
    run(lambda: got.append(next(shared)), lambda: got.append(next(shared)))


def right_generator() -> None:
    shared, got, lock = numbers(), list[int](), threading.Lock()

    def take() -> None:
        with lock:
            got.append(next(shared))

    run(take, take)
    assert got == [0, 1]


class Observed:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.called = 0

    def first(self) -> None:
        self.called += 1

    def second(self) -> None:
        with self.lock:
            self.called += 10


def right_callbacks_in_a_set() -> None:
    """The order of C is that of addresses: each execution has the same, whether Python or C goes through them."""
    subject = Observed()
    callbacks = {subject.first, subject.second}

    def fire() -> None:
        for callback in callbacks:
            with subject.lock:
                reached = callback == subject.first
            if reached:
                break

    def fire_first() -> None:
        first, _ = list(callbacks)
        first()

    run(fire, fire_first)
    assert subject.called == 1


def wrong_callbacks_in_a_set() -> None:
    subject = Observed()
    callbacks: set[Any] = {subject.first, subject.second}

    def fire() -> None:
        for callback in callbacks:
            callback()

    run(fire, lambda: callbacks.add(Observed))


def right_logging() -> None:
    LOG.addHandler(logging.NullHandler())
    seen: dict[int, int] = {}

    def work(k: int) -> None:
        LOG.warning("so far %s", seen)
        seen[k] = k

    run(lambda: work(1), lambda: work(2))
    assert len(seen) == 2


def right_copies() -> None:
    table, lazy, lock = {"n": [0]}, Lazy(), threading.Lock()

    def work() -> None:
        with lock:
            table["n"] = [copy.deepcopy(table)["n"][0] + 1]
            lazy.number = copy.copy(lazy).number + 1
            json.dumps(table)

    run(work, work)
    assert (table["n"], lazy.number) == ([2], 2)


def wrong_copy() -> None:
    lazy = Lazy()

    def work() -> None:
        lazy.number = copy.deepcopy(lazy).number + 1

    run(work, work)
    assert lazy.number == 2


def wrong_executor_waits_for_itself() -> None:
    pool = ThreadPoolExecutor(1)
    assert pool.submit(lambda: pool.submit(int).result()).result() == 0


def right_context_variables() -> None:
    got: list[int] = []

    def work(n: int) -> None:
        VAR.set(VAR.get() + n)
        got.append(VAR.get())

    run(lambda: work(1), lambda: contextvars.copy_context().run(work, 2))
    assert sorted(got) == [1, 2]


class Registry:
    def __init__(self) -> None:
        self.known: Any = weakref.WeakValueDictionary()
        self.lock = threading.Lock()

    def get(self, key: int) -> Lazy:
        found: Lazy | None = self.known.get(key)
        if found is None:
            found = self.known[key] = Lazy()
        return found

    def locked(self, key: int) -> Lazy:
        with self.lock:
            return self.get(key)


def right_weak_registry() -> None:
    registry, got = Registry(), list[Lazy]()
    run(lambda: got.append(registry.locked(1)), lambda: got.append(registry.locked(1)))
    assert got[0] is got[1]


def wrong_weak_registry() -> None:
    registry, got = Registry(), list[Lazy]()
    run(lambda: got.append(registry.get(1)), lambda: got.append(registry.get(1)))
    assert got[0] is got[1]


class Table(collections.abc.MutableMapping[str, Any]):
    """Each operation has the lock; those that `MutableMapping` makes of several have not."""

    def __init__(self) -> None:
        self.items_ = dict[str, Any]()
        self.lock = threading.RLock()

    def __getitem__(self, key: str) -> Any:
        with self.lock:
            return self.items_[key]

    def __setitem__(self, key: str, value: Any) -> None:
        with self.lock:
            self.items_[key] = value

    def __delitem__(self, key: str) -> None:
        with self.lock:
            del self.items_[key]

    def __iter__(self) -> Iterator[str]:
        with self.lock:
            return iter(list(self.items_))

    def __len__(self) -> int:
        with self.lock:
            return len(self.items_)


def right_mapping() -> None:
    table = Table()
    run(lambda: table.update(a=1), lambda: table.update({"b": 2}))
    assert sorted(table.items()) == [("a", 1), ("b", 2)]


def wrong_mapping_setdefault() -> None:
    table, got = Table(), list[object]()

    def work() -> None:
        got.append(table.setdefault("a", object()))

    run(work, work)
    assert got[0] is got[1]


def right_copies_by_c() -> None:
    """C code goes through a view, or a lazy object over a list, in one operation."""
    table, ordered, items = {"a": 1}, OrderedDict(x=1), [1]

    def look() -> None:
        list(table.values())
        sorted(table.items())
        sum(table.values())
        list(enumerate(items))
        dict(zip(items, items, strict=True))
        list(map(str, items))
        items[:].extend(ordered.values())

    def change() -> None:
        table["b"] = 2
        ordered["y"] = 3
        items.append(1)

    run(look, change)


def wrong_iteration_in_python() -> None:
    table = {"a": 1}
    run(lambda: [key for key in table.items()], lambda: table.update(b=2))  # noqa: C416 - the case


def wrong_user_dict() -> None:
    table: Any = UserDict(n=0)

    def work() -> None:
        table["n"] += 1

    run(work, work)
    assert table["n"] == 2


def right_counter() -> None:
    counter, lock = Counter[str](), threading.Lock()

    def work() -> None:
        with lock:
            counter.update("ab")

    run(work, work)
    assert counter.most_common(1) == [("a", 2)]


def wrong_counter() -> None:
    counter = Counter[str]()
    run(lambda: counter.update({"a": 1}), lambda: counter.update({"a": 1}))
    assert counter["a"] == 2


def right_chain() -> None:
    base = {"a": 1}
    chain = ChainMap({}, base)
    run(lambda: chain.get("a"), lambda: base.update(b=1))
    assert chain["a"] == 1


class Renamed(dict[str, int]):
    def keys(self) -> Any:
        return ["other"]

    def __getitem__(self, key: str) -> int:
        return 7

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


class Asked:
    """A mapping by its methods alone."""

    def __init__(self) -> None:
        self.inside = {"two": 2}

    def keys(self) -> list[str]:
        return list(self.inside)

    def __getitem__(self, key: str) -> int:
        return self.inside[key]


class Same(dict[str, int]):
    pass


def right_dict_of_a_mapping() -> None:
    for made in (Same(one=1), Renamed(one=1), Asked(), UserDict(one=1), ChainMap({"one": 1})):
        wanted = {key: made[key] for key in made.keys()}  # noqa: SIM118
        for kind in (dict, OrderedDict, Same):
            assert kind(made) == wanted
    run(lambda: None, lambda: None)


def wrong_dict_of_a_subclass() -> None:
    made, copies = Same(one=1), list[dict[str, int]]()
    run(lambda: made.update(two=2), lambda: copies.append(dict(made)))
    assert "two" in copies[0]


def wrong_dict_of_a_mapping() -> None:
    made = Asked()
    run(made.inside.clear, lambda: dict(made))


def sorted_rules(lock: Any) -> None:
    rules, seen = [2, 1], list[int]()

    def sort() -> None:
        with lock:
            rules.sort(key=lambda rule: -rule)

    def look() -> None:
        with lock:
            seen.append(len(rules))

    run(sort, look)
    assert seen == [2]


def wrong_list_that_is_being_sorted() -> None:
    """CPython empties a list while it is sorted; a key that is Python lets other threads run."""
    sorted_rules(contextlib.nullcontext())


def right_list_that_is_being_sorted() -> None:
    sorted_rules(threading.Lock())


class Rule:
    """Compared by Python, which lets other threads run."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __lt__(self, other: Rule) -> bool:
        return self.rank < other.rank


def ranked_rules(lock: Any) -> None:
    rules, seen = [Rule(2), Rule(1)], list[int]()

    def sort() -> None:
        with lock:
            rules.sort()

    def look() -> None:
        with lock:
            seen.append(len(rules))

    run(sort, look)
    assert seen == [2]
    assert [rule.rank for rule in rules] == [1, 2]


def wrong_sort_by_comparisons_in_python() -> None:
    ranked_rules(contextlib.nullcontext())


def right_sort_by_comparisons_in_python() -> None:
    ranked_rules(threading.Lock())


def wrong_append_while_python_compares() -> None:
    """CPython: ValueError, list modified during sort."""
    rules = [Rule(2), Rule(1)]
    run(rules.sort, lambda: rules.append(Rule(0)))
    assert len(rules) == 3


def nothing_yet() -> list[int]:
    return []


def defaults(factory: Callable[[], list[int]]) -> None:
    made: collections.defaultdict[str, list[int]] = collections.defaultdict(factory)
    run(lambda: made["k"].append(1), lambda: made["k"].append(2))
    assert sorted(made["k"]) == [1, 2]


def wrong_default_that_python_makes() -> None:
    """CPython stores what the factory made, although another thread has stored one meanwhile."""
    defaults(nothing_yet)


def wrong_default_by_a_partial() -> None:
    defaults(functools.partial(lambda size: [0] * size, 0))


def right_default_that_c_makes() -> None:
    defaults(list)


def right_default_that_is_there() -> None:
    made: collections.defaultdict[str, list[int]] = collections.defaultdict(nothing_yet, k=[])
    run(lambda: made["k"].append(1), lambda: made["k"].append(2))
    assert sorted(made["k"]) == [1, 2]


@dataclasses.dataclass
class Named:
    name: str


def removed(lock: Any) -> None:
    """CPython deletes at the place where it compared, whatever is there by then."""
    names = [Named("a"), Named("b")]

    def remove(name: str) -> None:
        with lock:
            names.remove(Named(name))

    run(partial(remove, "a"), partial(remove, "b"))
    assert not names


def wrong_removals_by_comparisons_in_python() -> None:
    removed(contextlib.nullcontext())


def right_removals_by_comparisons_in_python() -> None:
    removed(threading.Lock())


def wrong_look_for_what_python_compares() -> None:
    names, seen = [Named("a"), Named("b")], list[bool]()
    run(lambda: names.pop(0), lambda: seen.append(Named("b") in names))
    assert seen == [True]


def right_search_by_identity() -> None:
    names = [Named("a"), Named("b")]
    first, second = names
    run(lambda: names.index(first), lambda: names.count(second))
    assert names.index(second, -1) == 1
    assert names.count(Named("a")) == 1


def weak_value(lock: Any) -> None:
    known: Any = weakref.WeakValueDictionary()
    kept, got = list[Rule](), list[Rule]()

    def look() -> None:
        with lock:
            found = known.get("k")
            if found is None:
                found = known["k"] = Rule(1)
                kept.append(found)
            got.append(found)

    run(look, look)
    assert got[0] is got[1]


def wrong_weak_value_made_twice() -> None:
    weak_value(contextlib.nullcontext())


def right_weak_value_made_once() -> None:
    weak_value(threading.Lock())


def right_weak_value_is_put_while_another_looks() -> None:
    known: Any = weakref.WeakValueDictionary()
    rule = Rule(1)
    run(lambda: known.__setitem__("k", rule), lambda: known.get("k"))
    assert known["k"] is rule


def pushed(*items: object) -> None:
    heap: list[Any] = []
    run(*(functools.partial(heapq.heappush, heap, item) for item in items))
    assert len(heap) == len(items)


def wrong_heap_whose_elements_python_compares() -> None:
    """CPython may be interrupted between two comparisons, and another push then ends in a RuntimeError."""
    pushed(Rule(1), Rule(2), Rule(3))


def right_heap_of_two() -> None:
    """The first that is pushed is compared with nothing."""
    pushed(Rule(1), Rule(2))


def wrong_heap_of_tuples_that_tie() -> None:
    pushed((1, Rule(1)), (1, Rule(2)), (1, Rule(3)))


def right_heap_of_tuples_that_differ() -> None:
    pushed((1, Rule(1)), (2, Rule(2)), (3, Rule(3)))


@dataclasses.dataclass(order=True)
class Prioritized:
    """The element that the documentation of `queue.PriorityQueue` advises."""

    priority: int
    item: Any = dataclasses.field(compare=False)


def right_priority_queue() -> None:
    items: queue.PriorityQueue[Prioritized] = queue.PriorityQueue()
    run(*(functools.partial(items.put, Prioritized(n, "")) for n in (2, 1)))
    assert [items.get().priority, items.get().priority] == [1, 2]


def kept_in_order(insert: Callable[[list[Rule], Rule], None]) -> None:
    rules = [Rule(1), Rule(4)]
    run(lambda: insert(rules, Rule(2)), lambda: insert(rules, Rule(3)))
    assert [rule.rank for rule in rules] == [1, 2, 3, 4]


def wrong_insort_without_a_lock() -> None:
    kept_in_order(bisect.insort)


def right_insort_with_a_lock() -> None:
    lock = threading.Lock()

    def insert(rules: list[Rule], rule: Rule) -> None:
        with lock:
            bisect.insort(rules, rule)

    kept_in_order(insert)


def registered_meanwhile(asked_before: bool) -> None:
    """While one thread looks for the implementation of a type, another registers it."""

    @functools.singledispatch
    def shown(value: object) -> str:
        return "any"

    if asked_before:
        shown.register(int, lambda value: "int")
        run(lambda: shown(1), lambda: shown(2))
    else:
        run(lambda: shown(1), lambda: shown.register(int, lambda value: "int"))
    assert shown(1) == "int"


def wrong_singledispatch_that_keeps_what_was() -> None:
    registered_meanwhile(asked_before=False)


def right_singledispatch() -> None:
    registered_meanwhile(asked_before=True)


def wrong_stack_that_is_left_meanwhile() -> None:
    stack, done = contextlib.ExitStack(), list[int]()
    run(lambda: stack.callback(done.append, 1), stack.close)
    assert done == [1]


def right_stack_that_threads_fill() -> None:
    stack, done = contextlib.ExitStack(), list[int]()
    with stack:
        run(*(functools.partial(stack.callback, done.append, n) for n in range(2)))
    assert sorted(done) == [0, 1]


def wrong_tee_of_a_generator() -> None:
    """CPython: cannot re-enter the tee iterator."""
    one, other = itertools.tee(n for n in range(2))
    run(lambda: list(one), lambda: list(other))


def right_tee_of_a_list() -> None:
    one, other = itertools.tee([1, 2])
    seen = list[list[int]]()
    run(lambda: seen.append(list(one)), lambda: seen.append(list(other)))
    assert seen == [[1, 2], [1, 2]]


def withheld_output_of_all_threads() -> None:
    def say() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            print("here")

    run(say, say)


def withheld_filter_of_all_threads() -> None:
    run(lambda: warnings.simplefilter("ignore"), lambda: None)


def right_filter_when_threads_are_over() -> None:
    run(lambda: None, lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")


def right_heap_whose_elements_c_compares() -> None:
    pushed(1, 2)


def wrong_sort_that_fails() -> None:
    rules, seen = [2, 1], list[int]()

    def key(rule: int) -> int:
        raise LookupError

    def sort() -> None:
        with contextlib.suppress(LookupError):
            rules.sort(key=key)

    run(sort, lambda: seen.append(len(rules)))
    assert seen == [2]


class Counting(logging.Handler):
    seen = 0

    def emit(self, record: logging.LogRecord) -> None:
        Counting.seen += 1


def right_handlers_of_a_logger() -> None:
    log = logging.getLogger("right")
    log.addHandler(logging.NullHandler())
    run(lambda: log.info("x"))
    assert len(log.handlers) == 1


def wrong_handlers_of_a_logger() -> None:
    log = logging.getLogger("wrong")

    def add() -> None:
        if not log.handlers:
            log.addHandler(logging.NullHandler())

    run(add, add)
    assert len(log.handlers) == 1


def right_log_into_a_stream() -> None:
    text, log = io.StringIO(), logging.getLogger("stream")
    try:
        log.addHandler(logging.StreamHandler(text))
    except Exception:  # that it must be observed is no error of the program
        return
    run(lambda: log.warning("a"), lambda: log.warning("b"))
    assert sorted(text.getvalue().split()) == ["a", "b"]


def wrong_two_handlers_count() -> None:
    log = logging.getLogger("two")
    log.addHandler(Counting())
    log.addHandler(Counting())
    run(lambda: log.warning("x"), lambda: log.warning("y"))
    assert Counting.seen == 4


@dataclasses.dataclass(order=True)
class Pair:
    x: int = 0
    y: int = 0


@dataclasses.dataclass(frozen=True)
class Name:
    text: str


def while_it_changes(look: Callable[[Pair, Pair], object]) -> list[object]:
    pair, other, seen = Pair(), Pair(), list[object]()

    def change() -> None:
        pair.x = 1

    run(lambda: seen.append(look(pair, other)), change)
    return seen


def wrong_dataclasses_are_compared() -> None:
    assert while_it_changes(lambda pair, other: pair == other) == [True]


def wrong_dataclasses_are_ordered() -> None:
    assert while_it_changes(lambda pair, other: pair > other) == [False]


def wrong_dataclass_is_shown() -> None:
    assert while_it_changes(lambda pair, _: repr(pair)) == ["Pair(x=0, y=0)"]


def wrong_dataclass_is_formatted() -> None:
    assert while_it_changes(lambda pair, _: f"{pair}") == ["Pair(x=0, y=0)"]


def wrong_dataclass_as_a_dict() -> None:
    assert while_it_changes(lambda pair, _: dataclasses.asdict(pair)) == [{"x": 0, "y": 0}]


def wrong_dataclass_is_replaced() -> None:
    assert while_it_changes(lambda pair, _: dataclasses.replace(pair, y=1)) == [Pair(0, 1)]


@dataclasses.dataclass(slots=True, order=True)
class InSlots:
    x: int = 0


def wrong_slots_are_compared() -> None:
    one, two = InSlots(), InSlots()
    seen: list[bool] = []
    run(lambda: seen.append(one == two), lambda: setattr(one, "x", 1))
    assert seen == [True]


def wrong_slots_are_shown() -> None:
    one = InSlots()
    seen: list[str] = []
    run(lambda: seen.append(repr(one)), lambda: setattr(one, "x", 1))
    assert seen == ["InSlots(x=0)"]


def wrong_slots_are_copied() -> None:
    one = InSlots()
    seen: list[int] = []
    run(lambda: seen.append(copy.copy(one).x), lambda: setattr(one, "x", 1))
    assert seen == [0]


@attrs.frozen
class Fixed:
    x: int
    y: int = 0


@attrs.define(order=True)
class Open:
    x: int = 0


def right_attrs_are_replaced() -> None:
    kept = [Fixed(0)]
    seen: list[bool] = []

    def replace() -> None:
        kept[0] = attrs.evolve(kept[0], x=1, y=1)

    run(replace, lambda: seen.append((found := kept[0]).x == found.y))
    assert seen == [True]


def right_frozen_attrs_are_keys() -> None:
    table = {Fixed(1): 2}
    run(lambda: table[Fixed(1)], lambda: table.update({Fixed(2): 3}))
    assert table[Fixed(1)] == 2


def wrong_attrs_are_compared() -> None:
    one, two = Open(), Open(1)
    seen: list[bool] = []
    run(lambda: seen.append(one < two), lambda: setattr(one, "x", 1))
    assert seen == [True]


def right_frozen_dataclasses_are_keys() -> None:
    names: dict[Name, int] = {}
    run(lambda: names.update({Name("a"): 1}), lambda: names.update({Name("a"): 2}))
    assert len(names) == 1


def right_dataclass_without_eq_is_a_key() -> None:
    @dataclasses.dataclass(eq=False)
    class Plain:
        x: int = 0

    names: set[Plain] = set()
    run(lambda: names.add(Plain()), lambda: names.add(Plain()))
    assert len(names) == 2


class Text:
    """A key whose comparison reads what threads share."""

    reads: list[int] = []  # noqa: RUF012 - shared on purpose

    def __init__(self, text: str) -> None:
        self.text = text

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        Text.reads.append(len(FLAG))
        return isinstance(other, Text) and self.text == other.text


FLAG: list[int] = []


def lookups(look: Callable[[dict[Text, str]], object], change: Callable[..., object]) -> Any:
    known, found = {Text("k"): "old"}, list[object]()

    def changing() -> None:
        FLAG.append(1)
        change(known)

    run(lambda: found.append((look(known), Text.reads[0])), changing)
    return found[0]


def wrong_lookup_finds_what_is_there_behind_its_comparison() -> None:
    """The comparison sees the flag, and the lookup still the old value."""
    found = lookups(
        lambda known: known.get(Text("k")), lambda known: known.update({Text("k"): "new"})
    )
    assert found != ("old", 1)


def wrong_key_is_there_though_it_is_compared_late() -> None:
    found = lookups(lambda known: Text("k") in known, lambda known: known.clear())
    assert found != (True, 1)


def wrong_subscript_finds_what_is_there_behind_its_comparison() -> None:
    found = lookups(lambda known: known[Text("k")], lambda known: known.update({Text("k"): "new"}))
    assert found != ("old", 1)


def right_keys_that_python_compares() -> None:
    known: set[Text] = set()
    run(lambda: known.add(Text("k")), lambda: known.add(Text("k")))
    assert len(known) == 1


# -- which attributes there are


def looked_at(look: Callable[[Lazy], object], change: Callable[[Lazy], object]) -> object:
    """What one thread sees of an object while another changes which attributes it has."""
    lazy, found = Lazy(), []
    run(lambda: found.append(look(lazy)), lambda: change(lazy))
    return found[0]


def _add(lazy: Lazy) -> None:
    lazy.more = 1  # type: ignore[attr-defined]  # that is what is looked at


def _take_and_bring(lazy: Lazy) -> None:
    del lazy.number
    lazy.number = 2


def wrong_for_over_attributes_that_grow() -> None:
    assert looked_at(lambda lazy: [name.upper() for name in lazy.__dict__], _add)


def wrong_for_over_items_of_attributes_that_grow() -> None:
    assert looked_at(lambda lazy: [value for _, value in vars(lazy).items()], _add)


def wrong_number_of_attributes() -> None:
    assert looked_at(lambda lazy: len(vars(lazy)), _add) == 1


def wrong_names_of_attributes_with_setattr() -> None:
    names = looked_at(lambda lazy: sorted(vars(lazy)), lambda lazy: setattr(lazy, "more", 1))
    assert names == ["number"]


def wrong_names_of_attributes_by_the_dict() -> None:
    add = lambda lazy: lazy.__dict__.__setitem__("more", 1)  # noqa: E731  # one call
    assert looked_at(lambda lazy: len(lazy.__dict__), add) == 1


def wrong_attribute_that_goes_and_comes() -> None:
    assert looked_at(lambda lazy: list(vars(lazy)), _take_and_bring) == ["number"]


def right_names_of_attributes_at_once() -> None:
    assert looked_at(lambda lazy: list(vars(lazy)), _add) in (["number"], ["number", "more"])


def right_number_of_attributes_under_a_lock() -> None:
    lock, lazy = threading.Lock(), Lazy()

    def look() -> None:
        with lock:
            for name in vars(lazy):
                assert name in ("number", "more")

    def add() -> None:
        with lock:
            _add(lazy)

    run(look, add)


def right_attributes_whose_values_change() -> None:
    assert looked_at(
        lambda lazy: [name.lower() for name in vars(lazy)],
        lambda lazy: setattr(lazy, "number", 5),
    ) == ["number"]


def right_attributes_after_the_end() -> None:
    lazy = Lazy()
    run(lambda: _add(lazy))
    assert [name.lower() for name in lazy.__dict__] == ["number", "more"]
    assert vars(lazy) == {"number": 0, "more": 1}
    assert dict(vars(lazy).items()) == {"number": 0, "more": 1}


def right_values_of_attributes_at_once() -> None:
    assert looked_at(lambda lazy: len(dict(vars(lazy))), _add) in (1, 2)


class Sealed(type):
    """A metaclass whose classes cannot be changed."""

    def __setattr__(cls, name: str, value: object) -> None:
        raise TypeError(f"{cls.__name__}.{name} is set")

    def __delattr__(cls, name: str) -> None:
        raise TypeError(f"{cls.__name__}.{name} is deleted")


def number_of_bases(name: str, bases: tuple[type, ...], body: dict[str, object]) -> int:
    """What stands for a metaclass may make anything."""
    return len(bases)


def right_metaclasses() -> None:
    class Unchanged(metaclass=Sealed):
        def __eq__(self, other: object) -> bool:
            return self is other

    class Hashed(metaclass=Sealed):
        pass

    class NoClass(metaclass=number_of_bases):  # type: ignore[metaclass]  # none is made
        pass

    made: Any = NoClass

    def look() -> None:
        assert Unchanged() != Hashed()
        assert len({Hashed(), Hashed()}) == 2
        assert made == 0

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def right_context_of_one_thread_after_another() -> None:
    """A thread begins without context variables, whoever has ended before it."""
    run(lambda: VAR.set(1))
    got: list[int] = []
    run(lambda: got.append(VAR.get()))
    assert got == [0]


def right_decimal_context_of_each_thread() -> None:
    def rounded() -> None:
        decimal.getcontext().prec = 3
        assert str(decimal.Decimal(1) / 3) == "0.333"

    assert decimal.getcontext().prec == 28
    run(rounded)
    run(lambda: shown.append(str(decimal.Decimal(1) / 3)))
    assert shown[-1] == "0." + 28 * "3"


shown: list[str] = []


def right_two_loops() -> None:
    """The numbers of tasks are those of the process, and no reason to withhold a verdict."""
    seen: list[int] = []

    async def see(n: int) -> None:
        seen.append(n)

    def use(n: int) -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(see(n))
        loop.close()

    run(lambda: use(1), lambda: use(2))
    assert sorted(seen) == [1, 2]


class Alive:
    objects: ClassVar[set[int]] = set()

    def __init__(self) -> None:
        Alive.objects.add(id(self))


def wrong_registry_by_id() -> None:
    """`id` is the same in `__init__`, where the object has no name yet, and later."""
    alive = Alive()

    def close() -> None:
        if id(alive) in Alive.objects:
            Alive.objects.remove(id(alive))

    run(close, close)


class Number(int):
    pass


def right_id_stays() -> None:
    def function() -> None: ...

    def look() -> None:
        for obj in (Alive(), Number(), function, Alive, ValueError(), threading.Lock()):
            before = id(obj)
            with contextlib.suppress(AttributeError):
                obj.note = 1  # type: ignore[union-attr]
            assert id(obj) == before

    run(look)


def right_default_lock_is_made_once() -> None:
    """`threading.Lock` is written in C, so nobody comes between the look and the default that it makes."""
    locks: Any = collections.defaultdict(threading.Lock)
    taken = [0]

    def add() -> None:
        with locks["a"]:
            taken[0] += 1

    run(add, add)
    assert taken == [2]


def wrong_default_queue_is_made_twice() -> None:
    queues: Any = collections.defaultdict(queue.Queue)
    run(lambda: queues["a"].put(1), lambda: queues["a"].put(2))
    assert queues["a"].qsize() == 2
