# mypy: ignore-errors
# The libraries are of other years, fetched when the corpus is run, and have no types.
"""The second set of drivers that were written before the explorer was run on them, 2026-11-28."""

import threading

from seriatim_workshop.corpus.drivers import together


def kafka_callback():
    """A future succeeds while a callback is added: the callback is never called."""
    from kafka.future import Future

    future = Future()
    called = []
    together(lambda: future.success(1), lambda: future.add_callback(called.append))
    assert called == [1]


async def janus_join():
    """The last item is done and another one comes: `join` goes round without letting the loop run."""
    import asyncio

    import janus

    queue = janus.Queue()
    await queue.async_q.put(1)

    def work():
        queue.sync_q.get()
        queue.sync_q.task_done()
        queue.sync_q.put(2)

    async def consume():
        await asyncio.to_thread(work)
        await queue.async_q.get()
        queue.async_q.task_done()

    await asyncio.gather(consume(), queue.async_q.join())
    queue.close()
    await queue.wait_closed()


async def aiojobs_pending():
    """More jobs than may run and wait: whoever waits for room waits for ever."""
    import asyncio
    import warnings

    import aiojobs

    warnings.simplefilter("ignore")
    scheduler = await aiojobs.create_scheduler(limit=1, pending_limit=1)
    done, all_done = [], asyncio.Event()

    async def job(name):
        await asyncio.sleep(1)
        done.append(name)
        if len(done) == 3:
            all_done.set()

    for name in "abc":
        await scheduler.spawn(job(name))
    await all_done.wait()
    await scheduler.close()


def loguru_remove():
    """All handlers are removed while a thread logs: RuntimeError in the thread that logs."""
    from loguru import logger

    logger.remove()
    logger.add(lambda message: None)
    logger.add(lambda message: None)
    together(logger.remove, lambda: logger.info("message"))


async def loguru_complete():
    """One task waits for the sinks while another logs: its message is not written."""
    import asyncio

    from loguru import logger

    written = []

    async def sink(message):
        await asyncio.sleep(1)
        written.append(str(message))

    async def complete():
        await logger.complete()

    async def say():
        await asyncio.sleep(1)
        logger.info("second")

    logger.remove()
    logger.add(sink, format="{message}", catch=False)
    logger.info("first")
    await asyncio.gather(complete(), say())
    await complete()
    assert sorted(written) == ["first\n", "second\n"]


async def redis_cancelled():
    """A command is cancelled after it was sent: the next one is given its answer."""
    import asyncio
    import contextlib

    from redis.asyncio import Redis
    from redis.asyncio.connection import Connection, ConnectionPool

    class AnsweringServer:
        """The writer of a connection to a server that answers GET, after some time, with the key."""

        def __init__(self, reader):
            self.reader = reader

        def writelines(self, parts):
            key = b"".join(parts).split(b"\r\n")[-2]
            asyncio.get_running_loop().call_later(1, self.answer, key)

        def answer(self, key):
            self.reader.feed_data(b"$%d\r\n%s\r\n" % (len(key), key))

        async def drain(self):
            pass

        def close(self):
            self.answer = lambda key: None

        async def wait_closed(self):
            pass

    class StubbedConnection(Connection):
        async def _connect(self):
            self._reader = asyncio.StreamReader()
            self._writer = AnsweringServer(self._reader)

    client = Redis(connection_pool=ConnectionPool(connection_class=StubbedConnection))
    first = asyncio.create_task(client.get("one"))
    await asyncio.sleep(1)
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        assert await first == b"one"
    assert await client.get("two") == b"two"
    await client.close(close_connection_pool=True)


def zeroconf_alias():
    """A record is looked for while a newer one of its name is removed: it is not found."""
    import zeroconf

    older, newer = (zeroconf.DNSPointer("name.", 12, 1, 60, alias) for alias in ("a.", "b."))
    cache = zeroconf.DNSCache()
    cache.add(older)
    cache.add(newer)
    found = []
    together(
        lambda: cache.remove(newer),
        lambda: found.append(cache.current_entry_with_name_and_alias("name.", "a.")),
    )
    assert found[0] is older


def cachelib_prune():
    """Two threads set into a full cache: one goes through the dict that the other changes."""
    from cachelib import SimpleCache

    cache = SimpleCache(threshold=1)
    cache.set("a", 1)
    cache.set("b", 2)
    together(lambda: cache.set("c", 3), lambda: cache.set("d", 4))


def pyparsing_packrat():
    """Two threads parse: one empties the cache from which the other takes the oldest element."""
    import pyparsing

    pyparsing.ParserElement.enable_packrat(cache_size_limit=1)
    words = pyparsing.Literal("a") + pyparsing.Literal("b")
    words.parse_string("a b")
    parsed = []

    def parse():
        parsed.append(words.parse_string("a b").as_list())

    together(parse, parse)
    assert parsed == [["a", "b"]] * 2


async def asgiref_task():
    """A task of a view calls synchronous code: it is given to the thread that waits for it."""
    import asyncio

    from asgiref.sync import ThreadSensitiveContext, async_to_sync, sync_to_async

    called = []

    async def view():
        await asyncio.create_task(sync_to_async(called.append)(1))

    def middleware():
        async_to_sync(view)()

    async with ThreadSensitiveContext():
        await sync_to_async(middleware)()
    assert called == [1]


async def asynciolimiter_idle():
    """A limiter has been idle: whoever waits afterwards is never woken."""
    import asyncio

    from asynciolimiter import LeakyBucketLimiter

    limiter = LeakyBucketLimiter(1, capacity=1)
    await limiter.wait()
    await asyncio.sleep(10)
    await asyncio.gather(limiter.wait(), limiter.wait())
    limiter.close()


def tqdm_instances():
    """Two threads make a bar: one goes through the set of bars that the other changes."""
    from tqdm import tqdm

    tqdm.set_lock(threading.RLock())
    tqdm.monitor_interval = 0
    together(lambda: tqdm([], disable=True), lambda: tqdm([], disable=True))


async def aiocache_timer():
    """A key is set anew: the timer of its old value deletes the new one."""
    import asyncio

    from aiocache import SimpleMemoryCache

    cache = SimpleMemoryCache(timeout=0)

    async def set_anew():
        await cache.set("key", "old", ttl=5)
        await asyncio.sleep(1)
        await cache.set("key", "new")

    async def look():
        await asyncio.sleep(9)
        return await cache.get("key")

    await asyncio.gather(set_anew(), look())
    assert await look() == "new"


def flask_caching_none():
    """A value comes between two looks into the cache: a function is said to have returned None."""
    from flask import Flask
    from flask_caching import Cache

    cache = Cache(Flask("corpus"), config={"CACHE_TYPE": "simple"})
    got = []

    @cache.memoize()
    def compute(number):
        return number

    together(lambda: got.append(compute(1)), lambda: got.append(compute(1)))
    assert got == [1, 1]
