"""Semaphores, the queue of C, and what is made of them: one step each, and the outcomes of the interpreter's own."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seriatim_models.explorer import Dpor
from seriatim_models.explorer.python import front
from seriatim_models.explorer.python.front import check
from seriatim_workshop.crosscheck.own_code import Generated, compared, result_of

PROGRAM = """
import queue
import threading
from concurrent.futures import ThreadPoolExecutor


class Permits:
    '''A semaphore of a condition and a number, as the library makes it.'''

    def __init__(self, value, bound=None):
        self.cond, self.value, self.bound = threading.Condition(threading.Lock()), value, bound

    def acquire(self, blocking=True, timeout=None):
        with self.cond:
            while not self.value:
                if not blocking:
                    return False
                if not self.cond.wait(timeout) and not self.value:
                    return False
            self.value -= 1
            return True

    def release(self, n=1):
        with self.cond:
            if self.bound is not None and self.value + n > self.bound:
                raise ValueError("Semaphore released too many times")
            self.value += n
            for _ in range(n):
                self.cond.notify()


class Items:
    def __init__(self):
        self.lock, self.items, self.count = threading.Lock(), [], threading.Semaphore(0)

    def put(self, item):
        with self.lock:
            self.items.append(item)
            self.count.release()

    def get(self, block=True, timeout=None):
        if not self.count.acquire(block, timeout):
            raise queue.Empty
        with self.lock:
            return self.items.pop(0)


def test():
    made = {made}
    seen = [[], [], []]
    def tried(k, call, *args):
        try:
            seen[k].append(call(*args))
        except (ValueError, queue.Empty) as error:
            seen[k].append(type(error).__name__)
    {body}
    threads = [threading.Thread(target=t) for t in (one, two)]
    for t in threads:
        t.start()
    tried(2, {last})
    for t in threads:
        t.join()
    return repr(seen)
"""
SEMAPHORE = """
    def one():
        tried(0, made.acquire)
        tried(0, made.release)
    def two():
        tried(1, made.acquire, False)
        tried(1, made.acquire, True, 1)
        tried(1, made.release, 2)
"""
QUEUE = """
    def one():
        tried(0, made.put, 1)
        tried(0, made.get, True, 1)
    def two():
        tried(1, made.get, False)
        tried(1, made.put, 2)
        tried(1, made.get, True, 1)
"""


@pytest.mark.parametrize(
    ("ours", "plain", "body", "last"),
    [
        ("threading.Semaphore(1)", "Permits(1)", SEMAPHORE, "made.release"),
        ("threading.Semaphore(0)", "Permits(0)", SEMAPHORE, "made.release"),
        ("threading.BoundedSemaphore(1)", "Permits(1, 1)", SEMAPHORE, "made.release"),
        ("threading.BoundedSemaphore(2)", "Permits(2, 2)", SEMAPHORE, "made.acquire"),
        ("queue.SimpleQueue()", "Items()", QUEUE, "made.put, 3"),
        ("queue.SimpleQueue()", "Items()", QUEUE, "made.get"),
    ],
)
def test_one_step_has_the_outcomes_of_many(
    ours: str, plain: str, body: str, last: str, tmp_path: Path
) -> None:
    outcomes, ends = [], []
    for n, made in enumerate((ours, plain)):
        path = tmp_path / f"of_{n}.py"
        path.write_text(
            PROGRAM.replace("{made}", made).replace("{last}", last).replace("    {body}", body)
        )
        result = result_of(path, path.stem, max_executions=60_000)
        assert result.exhausted
        outcomes.append(set(result.outcomes))
        ends.append(set(result.ends))
    assert len(outcomes[0]) > 2
    assert outcomes[0] == outcomes[1]
    named = {"starved": "lost wake-up"}  # who waits for a permit, and who sleeps on a condition
    assert {named.get(end, end) for end in ends[0]} == {named.get(end, end) for end in ends[1]}


@pytest.mark.parametrize(
    ("made", "body", "last"),
    [
        ("threading.Semaphore(1)", SEMAPHORE, "made.release"),
        ("queue.SimpleQueue()", QUEUE, "made.put, 3"),
    ],
)
def test_promotion_and_brute_force_agree_on_them(
    made: str, body: str, last: str, tmp_path: Path
) -> None:
    text = PROGRAM.replace("{made}", made).replace("{last}", last).replace("    {body}", body)
    agreement = compared(Generated(-3, text), tmp_path)
    assert not agreement.wrong
    assert not agreement.large


def two_tasks() -> None:
    """Two tasks of a pool, each with a place of its own."""
    done: dict[int, int] = {}

    def work(n: int) -> None:
        done[n] = 1

    with ThreadPoolExecutor(2) as pool:
        pool.submit(work, 1)
        pool.submit(work, 2)
    assert len(done) == 2


def test_a_pool_with_two_tasks_is_explored_to_the_end() -> None:
    """It had 1,737 traces while each permit and each item of the pool's queue was many steps."""
    result = check(two_tasks)
    assert result.verdict == "ok"
    assert result.exhausted
    # From 3.12 on a worker first looks without waiting: one operation on the pool's queue more for each task.
    assert 20 < (result.traces or 0) <= (60 if sys.version_info < (3, 12) else 200)


class Counter:
    """A counter that loses what two threads add at once."""

    def __init__(self) -> None:
        self.n = 0

    def add(self) -> None:
        """Read, then write."""
        seen = self.n
        self.n = seen + 1


async def added_in_threads() -> None:
    """An update that two threads of the event loop's pool make at once."""
    counter = Counter()
    await asyncio.gather(asyncio.to_thread(counter.add), asyncio.to_thread(counter.add))
    assert counter.n == 2


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [None, Dpor()], ids=["default", "dpor"])
def test_a_race_in_the_middle_of_many_schedules_is_found(
    strategy: Dpor | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front, "SOON", 10)
    result = check(added_in_threads, strategy, shrink=0)
    assert result.verdict == "violated"
    assert result.counterexample is not None
    assert check(added_in_threads, max_executions=50).verdict == "inconclusive"


def wrong_uses() -> None:
    """What the library refuses is refused in the same words."""
    import queue
    import threading

    with pytest.raises(ValueError, match="initial value must be >= 0"):
        threading.Semaphore(-1)
    with pytest.raises(ValueError, match="n must be one or more"):
        threading.Semaphore().release(0)
    with pytest.raises(ValueError, match="can't specify timeout for non-blocking acquire"):
        threading.Semaphore().acquire(False, 1)
    with pytest.raises(ValueError, match="released too many times"):
        threading.BoundedSemaphore().release()
    with pytest.raises(ValueError, match="'timeout' must be a non-negative number"):
        queue.SimpleQueue[int]().get(timeout=-1)
    with pytest.raises(queue.Empty):
        queue.SimpleQueue[int]().get_nowait()
    assert threading.Semaphore(3)._value == 3
    assert queue.SimpleQueue[int]().empty()
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


def test_wrong_uses_are_refused_as_the_library_does() -> None:
    assert check(wrong_uses).verdict == "ok"
    wrong_uses()


def subclasses() -> None:
    """Which of its own methods a class calls where a subclass has others in their place."""
    import queue
    import threading

    called: list[str] = []

    class Permits(threading.BoundedSemaphore):
        def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
            called.append("acquire")
            return super().acquire(blocking, timeout)

        def release(self, n: int = 1) -> None:
            called.append("release")
            super().release(n)

    class Items(queue.SimpleQueue[int]):
        def put(self, item: int, block: bool = True, timeout: float | None = None) -> None:
            called.append("put")
            super().put(item, block, timeout)

        def get(self, block: bool = True, timeout: float | None = None) -> int:
            called.append("get")
            return super().get(block, timeout)

        def qsize(self) -> int:
            called.append("qsize")
            return 9

    permits, items = Permits(), Items()
    with permits:
        pass
    permits.acquire()
    items.put_nowait(1)
    items.put(2)
    assert items.get_nowait() == 1
    assert not items.empty()
    assert items.get() == 2
    assert items.empty()
    assert called == ["release", "acquire", "put", "get"]
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


def test_subclasses_are_called_where_the_library_calls_them() -> None:
    subclasses()
    assert check(subclasses).verdict == "ok"
