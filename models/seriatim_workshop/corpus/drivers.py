# mypy: ignore-errors
# The libraries are of other years, fetched when the corpus is run, and have no types.
"""A test of ordinary Python for each known bug; each is run in a process that finds one version of the library."""

import contextlib
import threading
import types


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


def urllib3_closed_pool():
    """A pool is pushed out of the manager while a thread uses it: its request finds the pool closed."""
    from urllib3 import PoolManager

    manager = PoolManager(1)

    def borrow():
        pool = manager.connection_from_host("one", 80)
        pool._put_conn(pool._get_conn())

    together(borrow, lambda: manager.connection_from_host("two", 80))


def jinja2_setdefault():
    """`setdefault` takes the lock, and then asks the cache for the key, which takes it again."""
    from jinja2.utils import LRUCache

    cache = LRUCache(2)
    together(lambda: cache.setdefault("a", 1), lambda: cache.get("a"))


def requests_digest():
    """Two requests share an authentication: one of them skips a number of its nonce, or both have the same."""
    from requests.auth import HTTPDigestAuth

    auth = HTTPDigestAuth("user", "password")
    counts = {"one": [], "two": []}

    def request(name):
        if hasattr(auth, "init_per_thread_state"):
            auth.init_per_thread_state()
        state = getattr(auth, "_thread_local", auth)
        state.chal = {"realm": "r", "nonce": name, "qop": "auth"}
        header = auth.build_digest_header("GET", "http://localhost/")
        counts[name].append(header.partition('nonce="')[2].partition('"')[0])

    together(lambda: request("one"), lambda: request("two"))
    assert counts == {"one": ["one"], "two": ["two"]}


def paho_mid():
    """Two threads publish at once: two messages in flight have one identifier."""
    from paho.mqtt import client as mqtt

    mqtt._socketpair_compat = lambda: (None, None)
    client = mqtt.Client("id")
    made = []
    together(
        lambda: made.append(client._mid_generate()), lambda: made.append(client._mid_generate())
    )
    client._sockpairR = client._sockpairW = None
    assert made[0] != made[1]


def pykka_get():
    """Two threads wait for one future: the second waits for ever."""
    from pykka import ThreadingFuture

    future = ThreadingFuture()
    together(lambda: future.get(), lambda: future.get(), lambda: future.set(1))


async def aiorwlock_both():
    """A reader that was woken and has not run yet does not keep a writer out."""
    import asyncio

    from aiorwlock import RWLock

    lock = RWLock(fast=True)
    inside = []

    async def use(side, name, first):
        await asyncio.sleep(first)
        async with side:
            inside.append(name)
            assert inside.count("writer") == 0 or len(inside) == 1, inside
            await asyncio.sleep(1)
            inside.remove(name)

    await asyncio.gather(
        use(lock.writer, "writer", 0), use(lock.reader, "reader", 1), use(lock.writer, "writer", 1)
    )


async def anyio_lock():
    """A waiter is cancelled, the owner lets go before it has noticed: whoever comes next waits for ever."""
    import asyncio

    import anyio

    lock = anyio.Lock(fast_acquire=True)

    async def use(first, inside):
        await asyncio.sleep(first)
        async with lock:
            await asyncio.sleep(inside)

    holder = asyncio.create_task(use(0, 1))
    await asyncio.sleep(0)
    waiter = asyncio.create_task(use(0, 0))
    late = asyncio.create_task(use(1, 0))
    await asyncio.sleep(1)
    waiter.cancel()
    await asyncio.gather(holder, waiter, late, return_exceptions=True)


async def anyio_condition():
    """A waiter that is being cancelled is notified: the notification is lost for the next one."""
    import asyncio

    import anyio

    condition = anyio.Condition()
    scope = anyio.CancelScope()

    async def wait():
        async with condition:
            await condition.wait()

    async def cancelled():
        with scope:
            await wait()

    async with anyio.create_task_group() as group:
        group.start_soon(cancelled)
        group.start_soon(wait)
        while condition.statistics().tasks_waiting < 2:
            await asyncio.sleep(0)
        async with condition:
            scope.cancel()
            condition.notify()
            await asyncio.sleep(1)
            condition.notify(0)
        group.cancel_scope.deadline = float("inf")


def urllib3_lru():
    """Two threads fill the container of pools: both push out, and one finds nothing left to push out."""
    from urllib3._collections import RecentlyUsedContainer

    container = RecentlyUsedContainer(1)

    def add(key):
        container[key] = key

    together(lambda: add("one"), lambda: add("two"))
    assert len(container) == 1


def peewee_pool():
    """Two threads ask a pool for its only connection: each gets one."""
    from playhouse.pool import MaxConnectionsExceeded, PooledDatabase

    class Connections:
        def __init__(self, *args, **options):
            pass

        def _connect(self):
            return object()

    class Pool(PooledDatabase, Connections):
        pass

    pool = Pool("name", max_connections=1)
    got = []

    def take():
        with contextlib.suppress(MaxConnectionsExceeded):
            got.append(pool._connect())

    together(take, take)
    assert len(got) == 1


class NoTimer:
    """A timer that never rings: what it would do is no part of the bug, and it never ends."""

    def __init__(self, *args, **options):
        pass

    def start(self):
        """Do nothing."""

    def is_alive(self):
        """Always, so that nobody makes another."""
        return True


def limits_count():
    """Two hits of one limit are counted at once: one of them is lost."""
    from limits.storage import memory

    memory.threading = types.SimpleNamespace(**{**vars(threading), "Timer": NoTimer})
    storage = memory.MemoryStorage()
    storage.incr("key", 60)
    together(lambda: storage.incr("key", 60), lambda: storage.incr("key", 60))
    assert storage.get("key") == 3


def django_locmem():
    """A reader that has found a key expired deletes the value that somebody has set meanwhile."""
    from django.core.cache.backends.locmem import LocMemCache

    cache = LocMemCache("corpus", {})
    cache.set("key", 1, timeout=-1)
    together(lambda: cache.get("key"), lambda: cache.set("key", 2))
    assert cache.get("key") == 2


def boltons_lri():
    """Two insertions into a cache of one: both evict the same, or neither does."""
    from boltons.cacheutils import LRI

    cache = LRI(1)
    cache["old"] = 0

    def add(key):
        cache[key] = key

    together(lambda: add("one"), lambda: add("two"))
    assert len(cache) == 1


def prometheus_timer():
    """Two calls of one timed function share the start of their timer: one lasts as long as from the other's start."""
    from prometheus_client import CollectorRegistry, Summary, core

    clock = threading.local()  # it stands still in each thread, so every call lasts 0 seconds
    core.default_timer = lambda: clock.now
    summary = Summary("calls", "How long calls last", registry=CollectorRegistry())
    timed = summary.time()(lambda: None)

    def call(now):
        clock.now = now
        timed()

    together(lambda: call(1), lambda: call(2))
    assert summary._sum.get() == 0


def cachetools_cached():
    """Two calls compute a value at once: the second replaces that which the first has returned."""
    from cachetools import cached

    made = []

    @cached({}, lock=threading.Lock())
    def make():
        return object()

    together(lambda: made.append(make()), lambda: made.append(make()))
    assert made[0] is made[1]


def repoze_lru():
    """Two threads choose the same slot before they take the lock: one evicts the other from a cache that has room."""
    from repoze.lru import LRUCache

    cache = LRUCache(2)
    together(lambda: cache.put("a", 1), lambda: cache.put("b", 2))
    assert (cache.get("a"), cache.get("b")) == (1, 2)


def werkzeug_map():
    """A thread matches while another sorts the rules, which are not there meanwhile: NotFound."""
    from werkzeug.routing import Map, Rule

    adapter = Map([Rule("/", endpoint="index")]).bind("localhost")
    together(lambda: adapter.match("/"), lambda: adapter.match("/"))


async def anyio_limiter():
    """A waiter is notified and cancelled before it runs: the token is lost, whoever waits behind it waits for ever."""
    import asyncio

    import anyio

    limiter = anyio.CapacityLimiter(1)

    async def use(first):
        await asyncio.sleep(first)
        async with limiter:
            await asyncio.sleep(1)

    tasks = [asyncio.create_task(use(0)) for _ in range(3)]
    await asyncio.sleep(1)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def anyio_semaphore():
    """A waiter is cancelled, the holder releases before it has noticed: whoever comes next waits for ever."""
    import asyncio

    import anyio

    semaphore = anyio.Semaphore(1, fast_acquire=True)

    async def use(first, inside):
        await asyncio.sleep(first)
        async with semaphore:
            await asyncio.sleep(inside)

    holder = asyncio.create_task(use(0, 1))
    await asyncio.sleep(0)
    waiter = asyncio.create_task(use(0, 0))
    late = asyncio.create_task(use(1, 0))
    await asyncio.sleep(1)
    waiter.cancel()
    await asyncio.gather(holder, waiter, late, return_exceptions=True)


async def tenacity_statistics():
    """Two calls of one coroutine function share their statistics: what is read is neither of the one nor the other."""
    import asyncio

    import tenacity

    @tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_fixed(1))
    async def fails(times):
        if times:
            times.pop()
            raise ValueError

    await asyncio.gather(fails([1, 1]), fails([]))
    statistics = getattr(fails, "statistics", None) or fails.retry.statistics
    assert statistics["attempt_number"] in (1, 3)


def ratelimit_calls():
    """One call in ten seconds is allowed: of two threads, both find that the last one was long ago."""
    import time

    import ratelimit

    times = []

    @ratelimit.rate_limited(1, 10)
    def call():
        times.append(time.time())

    together(call, call)
    assert max(times) - min(times) >= 9
