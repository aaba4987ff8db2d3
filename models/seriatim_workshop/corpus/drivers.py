# mypy: ignore-errors
# The libraries are of other years, fetched when the corpus is run, and have no types.
"""A test of ordinary Python for each known bug; each is run in a process that finds one version of the library."""

import contextlib
import threading


def together(*bodies):
    """Run the bodies in threads of their own until all have ended."""
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def futures_wait():
    """Two futures end at once: one decrement of `num_pending_calls` is lost, and wait() hangs."""
    from concurrent.futures import ALL_COMPLETED
    from concurrent.futures._base import Future, wait

    both = [Future(), Future()]
    for future in both:
        future.set_running_or_notify_cancel()
    together(
        lambda: both[0].set_result(1),
        lambda: both[1].set_result(2),
        lambda: wait(both, return_when=ALL_COMPLETED),
    )


class StubConnection:
    """A connection that connects to nothing."""

    description_format = ""

    def __init__(self, **options):
        import os

        self.pid = os.getpid()

    def connect(self):
        """Do nothing."""

    def can_read(self):
        """Never."""
        return False

    def disconnect(self):
        """Do nothing."""


def redis_limit():
    """Two threads ask for a connection at once: more than max_connections are made."""
    from redis.connection import ConnectionPool
    from redis.exceptions import ConnectionError

    pool = ConnectionPool(connection_class=StubConnection, max_connections=1)
    got = []

    def take():
        with contextlib.suppress(ConnectionError):
            got.append(pool.get_connection("_"))

    together(take, take)
    assert len(got) == 1


def redis_count():
    """Two connections are made at once: `_created_connections += 1` loses one of them."""
    from redis.connection import ConnectionPool

    pool = ConnectionPool(connection_class=StubConnection, max_connections=9)
    together(lambda: pool.get_connection("_"), lambda: pool.get_connection("_"))
    assert pool._created_connections == 2


def pyee_once():
    """Two threads emit at once: a handler registered with once() is called twice, or emit() raises."""
    from pyee import EventEmitter

    emitter = EventEmitter()
    called = []
    emitter.once("event", lambda: called.append(1))
    together(lambda: emitter.emit("event"), lambda: emitter.emit("event"))
    assert len(called) == 1


def zict_lru():
    """Two threads set at once: eviction raises, or the weight is not that of what is inside.

    That both evict, so that nothing is left, is another matter: 3.0.0 does it, too.
    """
    from zict import LRU

    slow = {}
    lru = LRU(1, slow)
    together(lambda: lru.__setitem__("a", 1), lambda: lru.__setitem__("b", 2))
    assert lru.total_weight == len(slow)


def urllib3_two_pools():
    """Two threads ask for the same host at once: each gets a pool of its own."""
    from urllib3.poolmanager import PoolManager

    manager = PoolManager(2)
    got = []

    def take():
        got.append(manager.connection_from_host("localhost", 80))

    together(take, take)
    assert got[0] is got[1]
