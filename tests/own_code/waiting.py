"""Programs that wait in a loop, right and wrong; and loops that only look as if they did."""

from __future__ import annotations

import itertools
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Box:
    total = 0

    def __init__(self) -> None:
        self.ready = self.done = False
        self.value = 0

    def is_ready(self) -> bool:
        return self.ready


def run(*bodies: Callable[[], object]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# -- right ------------------------------------------------------------------------------------------------------------


def flag() -> None:
    box = Box()

    def wait() -> None:
        while not box.ready:
            pass
        assert box.value == 1

    def publish() -> None:
        box.value = 1
        box.ready = True

    run(wait, publish)


def polled() -> None:
    box = Box()

    def wait() -> None:
        while True:
            if box.is_ready():
                break
            time.sleep(0.01)
            print("still waiting")

    run(wait, lambda: setattr(box, "ready", True))


def closure() -> None:
    done = False

    def end() -> None:
        nonlocal done
        done = True

    thread = threading.Thread(target=end)
    thread.start()
    while not done:
        time.sleep(0)
    thread.join()


def locked() -> None:
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    while lock.locked():
        time.sleep(0.01)
    thread.join()
    assert lock.acquire(blocking=False)


def spin_lock() -> None:
    lock, box = threading.Lock(), Box()

    def add() -> None:
        while not lock.acquire(blocking=False):
            pass
        box.value += 1
        lock.release()

    run(add, add)
    assert box.value == 2


def empty_queue() -> None:
    items: queue.Queue[int] = queue.Queue()
    thread = threading.Thread(target=items.put, args=(1,))
    thread.start()
    while items.empty():
        time.sleep(0)
    assert items.get_nowait() == 1
    thread.join()


def tried() -> None:
    items: queue.Queue[int] = queue.Queue()
    thread = threading.Thread(target=items.put, args=(1,))
    thread.start()
    while True:
        try:
            assert items.get_nowait() == 1
            break
        except queue.Empty:
            time.sleep(0.01)
    thread.join()


def under_a_lock() -> None:
    lock, box = threading.Lock(), Box()

    def publish() -> None:
        with lock:
            box.ready = True

    def wait() -> None:
        while True:
            with lock:
                if box.ready:
                    return
            time.sleep(0.1)

    run(publish, wait)


def as_many() -> None:
    found: list[int] = []
    threads = [threading.Thread(target=found.append, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    while len(found) < 2:
        time.sleep(0.01)
    assert sorted(found) == [0, 1]


def alive() -> None:
    box = Box()
    thread = threading.Thread(target=lambda: setattr(box, "value", 1))
    thread.start()
    while thread.is_alive():
        time.sleep(0.1)
    assert box.value == 1


def all_done() -> None:
    boxes = [Box(), Box()]
    for box in boxes:
        threading.Thread(target=setattr, args=(box, "done", True)).start()
    while not all(box.done for box in boxes):
        time.sleep(0.01)


def popped() -> None:
    items: deque[int] = deque()
    thread = threading.Thread(target=items.append, args=(5,))
    thread.start()
    while not items:
        pass
    assert items.popleft() == 5
    thread.join()


def event() -> None:
    ready = threading.Event()
    thread = threading.Thread(target=ready.set)
    thread.start()
    while not ready.is_set():
        time.sleep(0.1)
    thread.join()


def future() -> None:
    with ThreadPoolExecutor(1) as pool:
        answer: Future[int] = pool.submit(lambda: 3)
        while not answer.done():
            time.sleep(0.01)
        assert answer.result() == 3


def taken_over() -> None:
    """What the loop waits for is kept in a variable that each round binds anew."""
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "value", 4))
    thread.start()
    while (found := box.value) == 0:
        time.sleep(0.01)
    assert found == 4
    thread.join()


def peterson() -> None:
    wants, turn, box = [False, False], Box(), Box()

    def enter(me: int) -> None:
        wants[me] = True
        turn.value = 1 - me
        while wants[1 - me] and turn.value == 1 - me:
            pass
        box.value += 1
        wants[me] = False

    run(lambda: enter(0), lambda: enter(1))
    assert box.value == 2


def daemon() -> None:
    """A daemon that polls for ever is no mistake."""
    box = Box()

    def poll() -> None:
        while True:
            if box.ready:
                box.done = True
                return
            time.sleep(60)

    threading.Thread(target=poll, daemon=True).start()
    box.value = 1


def counted_without_end() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    for _ in itertools.count():
        if box.ready:
            break
        time.sleep(0.01)
    thread.join()


def repeated_without_end() -> None:
    lock, box = threading.Lock(), Box()

    def wait() -> None:
        for _ in itertools.repeat(None):
            with lock:
                if box.ready:
                    return

    def publish() -> None:
        with lock:
            box.ready = True

    run(wait, publish)


def asked_until_it_is_so() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    for _ in iter(box.is_ready, True):
        time.sleep(0.01)
    thread.join()


def read_twice_in_a_round() -> None:
    """The flag is set between the two reads of one round: the next round finds it, and the loop ends."""
    box = Box()

    def wait() -> None:
        while not box.ready:
            print("still waiting", box.ready)

    run(wait, lambda: setattr(box, "ready", True))


def read_twice_under_a_lock() -> None:
    lock, box = threading.Lock(), Box()

    def ready() -> bool:
        with lock:
            return box.ready

    def wait() -> None:
        while not ready():
            print("still waiting", ready())

    def publish() -> None:
        with lock:
            box.ready = True

    run(wait, publish)


def asked_twice() -> None:
    ready = threading.Event()

    def wait() -> None:
        while not ready.is_set():
            print("still waiting", ready.is_set())

    run(wait, ready.set)


def alive_twice() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    while thread.is_alive():
        print("still alive", thread.is_alive())


# -- wrong ------------------------------------------------------------------------------------------------------------


def never_though_read_twice() -> None:
    box = Box()

    def wait() -> None:
        while box.value != 2:
            print("still waiting", box.value)

    run(wait, lambda: setattr(box, "value", 1))


def never_set() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "value", 1))
    thread.start()
    while not box.ready:
        time.sleep(0.01)


def never_counted() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "value", 1))
    thread.start()
    for _ in itertools.count():
        if box.ready:
            break


def never_asked_with_success() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "value", 1))
    thread.start()
    for _ in iter(box.is_ready, True):
        pass


def too_early() -> None:
    """The flag is set before the value."""
    box = Box()

    def publish() -> None:
        box.ready = True
        box.value = 1

    thread = threading.Thread(target=publish)
    thread.start()
    while not box.ready:
        pass
    assert box.value == 1


def for_each_other() -> None:
    one, two = Box(), Box()

    def first() -> None:
        while not one.ready:
            pass
        two.ready = True

    def second() -> None:
        while not two.ready:
            time.sleep(0)
        one.ready = True

    run(first, second)


def dekker_that_never_yields() -> None:
    """Each says that it wants to enter, and waits until the other does not want to."""
    wants = [False, False]

    def enter(me: int) -> None:
        wants[me] = True
        while wants[1 - me]:
            pass
        wants[me] = False

    run(lambda: enter(0), lambda: enter(1))


def within_its_lock() -> None:
    """It waits, with the lock taken, for what is set under the lock."""
    lock, box = threading.Lock(), Box()

    def publish() -> None:
        with lock:
            box.ready = True

    def wait() -> None:
        with lock:
            while not box.ready:
                time.sleep(0.1)

    run(publish, wait)


def flickers() -> None:
    """The flag is taken back before the loop has looked."""
    box = Box()

    def flicker() -> None:
        box.ready = True
        box.ready = False

    thread = threading.Thread(target=flicker)
    thread.start()
    while not box.ready:
        time.sleep(0.01)
    thread.join()


def lost_count() -> None:
    """Two threads count without a lock, and the third waits for both."""
    box = Box()

    def add() -> None:
        box.value += 1

    def wait() -> None:
        while box.value < 2:
            time.sleep(0.01)

    run(add, add, wait)


# -- other loops ------------------------------------------------------------------------------------------------------


def bounded() -> None:
    """It gives up, and that it may give up is seen."""
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    tries = 0
    while not box.ready and tries < 8:
        tries += 1
    thread.join()
    assert tries < 8


def bounded_in_an_attribute() -> None:
    box, mine = Box(), Box()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    while not box.ready and mine.value < 8:
        mine.value += 1
    thread.join()
    assert mine.value < 8


def bounded_in_a_class() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    while not box.ready and Box.total < 8:
        Box.total += 1
    thread.join()
    assert Box.total < 8


def bounded_in_a_local() -> None:
    """What only its own thread can see."""
    box, mine = Box(), threading.local()
    mine.tries = 0
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    while not box.ready and mine.tries < 8:
        mine.tries += 1
    thread.join()
    assert mine.tries < 8


def bounded_by_a_generator() -> None:
    box = Box()
    tries = (k for k in range(8))
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    while not box.ready and next(tries, 8) < 7:
        pass
    thread.join()
    assert next(tries, 8) < 8


def bounded_by_its_own_count() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    for tries in itertools.count():
        if box.ready or tries > 7:
            break
    thread.join()
    assert tries < 8


def bounded_by_repetition() -> None:
    box, late = Box(), []

    def wait() -> None:
        for _ in itertools.repeat(None):
            if box.ready:
                return

    def try_often() -> None:
        for _ in itertools.repeat(None, 8):
            if box.ready:
                return
        late.append(True)

    run(wait, try_often, lambda: setattr(box, "ready", True))
    assert not late


def counted_by_two() -> None:
    """Where the iterator stands is seen, for somebody else has it, too."""
    box, numbers = Box(), itertools.count()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    for _ in numbers:
        if box.ready:
            break
    thread.join()
    assert next(numbers) < 8


def looks_at_its_variables() -> None:
    box, names = Box(), {}
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    for tries in itertools.count():  # noqa: B007 - read by `locals`
        names = locals()
        if box.ready or names["tries"] > 7:
            break
    thread.join()
    assert names["tries"] < 8


def until_a_deadline() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    end = time.monotonic() + 0.1
    while not box.ready and time.monotonic() < end:
        time.sleep(0.01)
    thread.join()
    assert box.ready


def limited() -> None:
    """A time limit that runs out is used up."""
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    while not lock.acquire(timeout=0.1):
        pass
    thread.join()


def taken_as_often_as_possible() -> None:
    permits = threading.Semaphore(8)
    thread = threading.Thread(target=permits.release)
    thread.start()
    while permits.acquire(blocking=False):
        pass
    thread.join()


def by_chance() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    while not box.ready and random.random() < 0.9:
        pass
    thread.join()


def a_call_twice() -> None:
    """A loop that ends at once is called twice: not one loop that goes round."""
    box = Box()
    box.ready = True

    def look() -> None:
        while not box.ready:
            pass

    def looks() -> None:
        for _ in range(9):
            look()

    thread = threading.Thread(target=setattr, args=(box, "value", 1))
    thread.start()
    looks()
    n = 0
    while n < 9:
        n += 1
    thread.join()


def notifies_in_a_loop() -> None:
    """The waiter is woken by a notify of the loop, not by what the loop reads."""
    condition, box = threading.Condition(), Box()

    def wait() -> None:
        with condition:
            condition.wait()
            box.ready = True

    thread = threading.Thread(target=wait)
    thread.start()
    while not box.ready:
        with condition:
            condition.notify()
        time.sleep(0)
    thread.join()


def looked_at_from_outside() -> None:
    """The loop takes a lock, and another sees that it does."""
    lock, box, seen = threading.Lock(), Box(), Box()

    def wait() -> None:
        while True:
            with lock:
                if box.ready:
                    return

    def look() -> None:
        seen.ready = not lock.acquire(blocking=False)
        if not seen.ready:
            lock.release()
        box.ready = True

    run(wait, look)
    assert not seen.ready


def counts_for_ever() -> None:
    box = Box()
    thread = threading.Thread(target=setattr, args=(box, "ready", True))
    thread.start()
    rounds = 0
    while not box.ready:
        rounds += 1
    thread.join()
