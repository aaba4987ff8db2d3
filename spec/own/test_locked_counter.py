"""Two threads count under a lock: right under every schedule, as `pytest --explore` sees."""

import threading

import pytest


@pytest.mark.explore(seconds=10, exhaustive=True)
def test_locked_counter() -> None:
    """Nothing is lost."""
    value, lock = [0], threading.Lock()

    def increment() -> None:
        with lock:
            value[0] += 1

    threads = [threading.Thread(target=increment) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value == [2]
