# mypy: ignore-errors
# The libraries are of other years, fetched when the corpus is run, and have no types.
"""Drivers that were written before the explorer was run on them: what it finds of bugs that nobody has looked at."""

import contextlib

from seriatim_workshop.corpus.drivers import together


def filelock_singleton():
    """Two threads ask for the one lock of a path: each gets a lock of its own."""
    from filelock import SoftFileLock

    locks = []

    def ask():
        locks.append(SoftFileLock("/tmp/seriatim-none.lock", is_singleton=True))

    together(ask, ask)
    assert locks[0] is locks[1]


async def limits_expiry():
    """Events are thrown away while others come: one that is not over is lost."""
    import asyncio

    from limits import RateLimitItemPerMinute
    from limits.aio.storage import MemoryStorage
    from limits.aio.strategies import MovingWindowRateLimiter

    limiter = MovingWindowRateLimiter(MemoryStorage())
    item = RateLimitItemPerMinute(9)
    await limiter.hit(item, "key")  # makes a task that throws away what is over
    await asyncio.sleep(1)
    await limiter.hit(item, "key")  # while that task waits for a thread
    await asyncio.sleep(1)
    assert (await limiter.get_window_stats(item, "key")).remaining == 7


def watchdog_start():
    """An observer starts while a path is added: the set of emitters changes under the loop."""
    from watchdog.events import FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, EventEmitter

    class Quiet(EventEmitter):
        def run(self):
            self._stopped_event.wait()

    observer = BaseObserver(Quiet)
    for path in ("/a", "/b"):
        observer.schedule(FileSystemEventHandler(), path)
    together(observer.start, lambda: observer.schedule(FileSystemEventHandler(), "/c"))
    observer.stop()
    observer.join()


def watchdog_unscheduled():
    """An event is dispatched while its path is taken away: the path stays among the handlers for ever."""
    from watchdog.events import FileModifiedEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, EventEmitter

    class Quiet(EventEmitter):
        def run(self):
            self._stopped_event.wait()

    observer = BaseObserver(Quiet)
    watch = observer.schedule(FileSystemEventHandler(), "/a")
    observer.event_queue.put((FileModifiedEvent("/a/b"), watch))
    together(
        lambda: observer.dispatch_events(observer.event_queue), lambda: observer.unschedule(watch)
    )
    assert watch not in observer._handlers


def httpcore_closed():
    """A connection that has become idle is closed to make room before its request has ended: it is removed twice."""
    import types

    import httpcore
    from httpcore.backends.mock import MockBackend

    answer = [b"HTTP/1.1 200 OK\r\n", b"Content-Length: 2\r\n", b"\r\n", b"ok"]
    pool = httpcore.ConnectionPool(
        # Nothing is encrypted, and to read all certificates takes long.
        ssl_context=types.SimpleNamespace(set_alpn_protocols=lambda names: None),
        network_backend=MockBackend(answer),
        max_connections=1,
    )

    def request(host):
        assert pool.request("GET", f"http://{host}/").content == b"ok"

    together(lambda: request("one"), lambda: request("two"))


def repoze_clear():
    """The cache is emptied while a thread puts into it: IndexError."""
    from repoze.lru import LRUCache

    cache = LRUCache(2)
    cache.put("a", 1)
    together(cache.clear, lambda: cache.put("b", 2))
    assert cache.get("c") is None


async def async_cache_twice():
    """Two calls with the same argument at once: both compute."""
    import asyncio

    from cache import AsyncLRU

    calls = []

    @AsyncLRU(maxsize=2)
    async def compute(x):
        calls.append(x)
        await asyncio.sleep(1)
        return x

    await asyncio.gather(compute(1), compute(1))
    assert len(calls) == 1


def socketio_leaves():
    """A client leaves while another enters a room: the dict of rooms changes under the loop."""
    from socketio.base_manager import BaseManager

    manager = BaseManager()
    manager.connect("a", "/")
    manager.connect(
        "c", "/"
    )  # without a client the namespace goes, and enter_room() of 4.6.1 raises KeyError
    together(lambda: manager.disconnect("a", "/"), lambda: manager.enter_room("b", "/", "room"))


def pybrake_modules():
    """A notice is built while a thread imports a module: `sys.modules` changes under the loop."""
    import sys
    import types

    from pybrake.notifier import Notifier

    notifier = Notifier(project_id=1, project_key="key", environment="test")

    def imports():
        sys.modules["seriatim_none"] = types.ModuleType("seriatim_none")

    together(notifier._build_context, imports)
    with contextlib.suppress(KeyError):
        del sys.modules["seriatim_none"]
