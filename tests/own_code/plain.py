"""Plain tests with threads, of which `test_verdicts.py` says what the explorer must find. Nothing here knows of it."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import itertools
import pdb
import pickle
import queue
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor


class Counter:
    total = 0

    def __init__(self) -> None:
        self.value = 0
        self.lock = threading.Lock()

    def increment(self) -> None:
        self.value += 1

    def increment_locked(self) -> None:
        with self.lock:
            self.value += 1

    def increment_total(self) -> None:
        Counter.total += 1


def run(*bodies: Callable[[], object]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def racing_counter() -> None:
    counter = Counter()
    run(counter.increment, counter.increment)
    assert counter.value == 2


def locked_counter() -> None:
    counter = Counter()
    run(*[counter.increment_locked] * 3)
    assert counter.value == 3


def class_attribute() -> None:
    counter = Counter()
    run(counter.increment_total, counter.increment_total)
    assert counter.total == 2


VISITS = 0


def visit() -> None:
    global VISITS
    VISITS += 1


def racing_global() -> None:
    run(visit, visit)
    assert VISITS == 2


def racing_closure() -> None:
    seen = 0

    def look() -> None:
        nonlocal seen
        seen += 1

    run(look, look)
    assert seen == 2


def loop_variable() -> None:
    seen: list[int] = []
    threads = []
    for k in range(2):
        thread = threading.Thread(target=lambda: seen.append(k))  # noqa: B023 - the mistake
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    assert sorted(seen) == [0, 1]


def check_then_act() -> None:
    cache: dict[str, list[int]] = {}

    def add() -> None:
        if "k" not in cache:
            cache["k"] = []
        cache["k"].append(1)

    run(add, add)
    assert len(cache["k"]) == 2


def dict_changes_size() -> None:
    table = {1: 1}
    thread = threading.Thread(target=lambda: table.update({2: 2}))
    thread.start()
    for _ in table.items():
        pass
    thread.join()


def two_producers_two_consumers() -> None:
    q: queue.Queue[int] = queue.Queue()
    got: list[int] = []

    def consume() -> None:
        got.append(q.get())
        q.task_done()

    bodies = [lambda: q.put(0), lambda: q.put(1), consume, consume]
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    q.join()
    for thread in threads:
        thread.join()
    assert sorted(got) == [0, 1]


class Buffer:
    """A bounded buffer with one condition and notify: with two producers and two consumers it loses wake-ups."""

    def __init__(self) -> None:
        self.items: list[int] = []
        self.changed = threading.Condition()

    def put(self) -> None:
        with self.changed:
            while self.items:
                self.changed.wait()
            self.items.append(1)
            self.changed.notify()

    def get(self) -> None:
        with self.changed:
            while not self.items:
                self.changed.wait()
            self.items.pop()
            self.changed.notify()


def lost_wakeup() -> None:
    buffer = Buffer()
    run(buffer.get, buffer.get, buffer.put, buffer.put)


def deadlock() -> None:
    a, b = threading.Lock(), threading.Lock()

    def one() -> None:
        with a, b:
            pass

    def two() -> None:
        with b, a:
            pass

    run(one, two)


def error_in_a_thread() -> None:
    table: dict[int, int] = {}
    thread = threading.Thread(target=lambda: table.pop(1))
    thread.start()
    table[1] = 2
    thread.join()


def barrier() -> None:
    meeting = threading.Barrier(2)
    order: list[int] = []
    run(lambda: order.append(meeting.wait()), lambda: order.append(meeting.wait()))
    assert sorted(order) == [0, 1]


def timer() -> None:
    fired: list[int] = []
    thread = threading.Timer(5, lambda: fired.append(1))
    thread.start()
    thread.cancel()
    thread.join()
    assert fired == []


def get_with_a_limit() -> None:
    q: queue.Queue[int] = queue.Queue()
    thread = threading.Thread(target=q.put, args=(1,))
    thread.start()
    with contextlib.suppress(queue.Empty):
        q.get(timeout=2)
    thread.join()
    assert q.empty()


def virtual_time() -> None:
    before = time.monotonic()
    thread = threading.Thread(target=time.sleep, args=(3600,))
    thread.start()
    thread.join()
    assert time.monotonic() - before >= 3600


def shared_iterator() -> None:
    numbers = itertools.count()
    got: list[int] = []
    run(lambda: got.append(next(numbers)), lambda: got.append(next(numbers)))
    assert sorted(got) == [0, 1]


def executor() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert list(pool.map(lambda x: 2 * x, [1, 2])) == [2, 4]


def thread_local() -> None:
    local = threading.local()
    local.x = 1
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(hasattr(local, "x")))
    thread.start()
    thread.join()
    assert found == [False]


def daemon_that_waits() -> None:
    q: queue.Queue[int] = queue.Queue()

    def serve() -> None:
        while True:
            q.get()
            q.task_done()

    threading.Thread(target=serve, daemon=True).start()
    q.put(1)
    q.join()


class Worker(threading.Thread):
    def __init__(self, q: queue.Queue[int]) -> None:
        super().__init__()
        self.q = q
        self.got = 0

    def run(self) -> None:
        self.got = self.q.get()


def subclass_of_thread() -> None:
    q: queue.Queue[int] = queue.LifoQueue()
    worker = Worker(q)
    worker.start()
    q.put(3)
    worker.join()
    assert worker.got == 3


class Resource:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.uses = 0

    @contextlib.contextmanager
    def held(self) -> Iterator[Resource]:
        with self.lock, self.lock:
            yield self

    def use(self) -> None:
        with self.held() as resource:
            resource.uses += 1


def context_manager() -> None:
    resource = Resource()
    run(resource.use, resource.use)
    assert resource.uses == 2


@dataclasses.dataclass
class Point:
    x: int = 0

    def move(self) -> None:
        self.x += 1


def racing_dataclass() -> None:
    point = Point()
    run(point.move, point.move)
    assert point.x == 2


def busy_wait() -> None:
    done: list[int] = []
    threading.Thread(target=lambda: done.append(1)).start()
    while not done:
        pass


def long_loops() -> None:
    lock = threading.Lock()

    def work() -> None:
        for _ in range(400):
            with lock:
                pass

    run(work, lambda: None)


def long_local_loop() -> None:
    table: dict[int, int] = {}

    def fill() -> None:
        for k in range(30_000):
            table[k] = k  # noqa: PERF403 - a loop is what is asked for

    run(fill)
    assert len(table) == 30_000


# -- where nothing may be claimed -----------------------------------------------------------------------------------


def no_thread() -> None:
    assert True


def names_of_the_module_as_a_dict() -> None:
    run(lambda: globals().update(VISITS=1), visit)


def code_of_a_text() -> None:
    run(lambda: exec("x = 1"), visit)


class Lazy:
    def __init__(self) -> None:
        self.made = 0

    @functools.cached_property
    def value(self) -> int:
        self.made += 1
        return self.made


@functools.lru_cache
def squared(x: int) -> int:
    return x * x


def stops_at_a_breakpoint() -> None:
    breakpoint()


def stops_in_a_debugger_object() -> None:
    pdb.Pdb().set_trace()


def has_a_hook_for_breakpoints() -> None:
    called: list[int] = []
    sys.breakpointhook = functools.partial(called.append, 1)
    run(breakpoint)
    assert called == [1]


def stops_in_pdb() -> None:
    import pdb

    pdb.set_trace()


def pickled() -> None:
    point = Point()
    run(lambda: pickle.dumps(point), point.move)


def format_that_looks_inside() -> None:
    point = Point()
    run(lambda: "{0.x}".format(point), point.move)  # noqa: UP030, UP032 - that is the case


# -- what is refused ------------------------------------------------------------------------------------------------


def opens_a_socket() -> None:
    run(lambda: socket.socket().close())


def locks_a_file_twice() -> None:
    with tempfile.NamedTemporaryFile() as first, open(first.name) as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        run(lambda: fcntl.flock(second, fcntl.LOCK_EX))


def generator() -> Iterator[int]:
    yield 1


def takes_a_fixture(tmp_path: object) -> None:
    pass


def uses_a_class_pattern() -> Callable[[], None]:
    return lambda: None


class AttributeDict(dict[str, int]):
    """A dict whose keys are attributes, too."""

    def __getattr__(self, name: str) -> int:
        return self[name]


class OwnList(list[int]):
    """A container that uses itself while it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.append(0)


def containers_of_its_own() -> None:
    names, numbers = AttributeDict(a=1), OwnList()
    lock = threading.Lock()

    def use() -> None:
        with lock:
            assert names["a"] == names.a
            assert list(reversed(names.values()))[-1] == 1
            assert list(reversed((1, 2))) == [2, 1]
            assert [number for number in reversed(numbers)][-1] == 0  # noqa: C416 - a step each
            numbers.append(names["a"])

    run(use, use)
    assert len(numbers) == 3


def containers_of_its_own_that_race() -> None:
    numbers = OwnList()

    def use() -> None:
        if len(numbers) == 1:
            numbers.append(1)

    run(use, use)
    assert len(numbers) == 2


def chooses_from_what_is_emptied() -> None:
    """CPython asks for the length twice, and draws from nothing without end."""
    numbers = [1, 2]
    run(lambda: random.choice(numbers), numbers.clear)


def waits_for_a_number() -> None:
    """A loop in which nothing is shared."""
    run(lambda: next(n for n in itertools.count() if n < 0))


def event_that_is_cleared() -> None:
    """Who comes after the event was set and cleared waits for ever."""
    event = threading.Event()

    def pulse() -> None:
        event.set()
        event.clear()

    threads = [threading.Thread(target=event.wait), threading.Thread(target=pulse)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
