# mypy: ignore-errors
# The libraries are of other years, fetched when the corpus is run, and have no types.
"""The third set of drivers that were written before the explorer was run on them, 2026-11-28."""

from seriatim_workshop.corpus.drivers import together


def pyrate_leak():
    """An item is put while what is over is thrown away: it goes with the others, and is not counted."""
    from pyrate_limiter import InMemoryBucket, Rate, RateItem

    bucket = InMemoryBucket([Rate(9, 1000)])
    bucket.put(RateItem("old", 0))
    together(lambda: bucket.put(RateItem("new", 2000)), lambda: bucket.leak(2000))
    assert bucket.count() == 1


def rich_live():
    """A display stops with its lock held, and waits for the thread that wants the lock to refresh it."""
    import io

    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=io.StringIO(), width=20)):
        pass


def otel_instrument():
    """Two threads make the same counter: one finds its name registered, and no counter."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource

    meter = MeterProvider(resource=Resource({}), shutdown_on_exit=False).get_meter("meter")
    together(lambda: meter.create_counter("counter"), lambda: meter.create_counter("counter"))


def otel_reservoir():
    """A measurement is offered while those before it are collected: it is counted, and then there is none."""
    from opentelemetry.context import Context
    from opentelemetry.sdk.metrics._internal.exemplar.exemplar_reservoir import (
        SimpleFixedSizeExemplarReservoir,
    )

    reservoir = SimpleFixedSizeExemplarReservoir(size=1)
    reservoir.offer(1, 0, {}, Context())
    together(lambda: reservoir.offer(2, 0, {}, Context()), lambda: reservoir.collect({}))


async def async_lru_evicted():
    """A result comes when its key was evicted: whoever waits for it waits for ever."""
    import asyncio

    from async_lru import alru_cache

    @alru_cache(maxsize=1, ttl=60)
    async def compute(number):
        await asyncio.sleep(1)
        return number

    assert await asyncio.gather(compute(1), compute(2)) == [1, 2]


def rx_zip():
    """Two sources of a zip give at once: both see that there is a pair."""
    import rx
    from rx.subject import Subject

    one, two, got = Subject(), Subject(), []
    rx.zip(one, two).subscribe(got.append)
    together(lambda: one.on_next(1), lambda: two.on_next(2))
    assert got == [(1, 2)]


def apscheduler_start():
    """A job is added while the scheduler starts: it is said to run, and there is no event to wake it by."""
    import sys
    import types

    # The plugins that are installed are no part of the bug.
    sys.modules["pkg_resources"] = types.ModuleType("pkg_resources")
    sys.modules["pkg_resources"].iter_entry_points = lambda group: ()
    sys.modules["pkg_resources"].get_distribution = lambda name: types.SimpleNamespace(
        version="3",
        parsed_version=types.SimpleNamespace(public="3", base_version="3", release=(3,)),
    )
    sys.modules["pkg_resources"].DistributionNotFound = LookupError
    import pytz
    from apscheduler.schedulers.background import BackgroundScheduler
    from apscheduler.triggers.date import DateTrigger

    trigger = DateTrigger(timezone=pytz.utc)

    def job():
        pass

    scheduler = BackgroundScheduler(timezone=pytz.utc)
    together(scheduler.start, lambda: scheduler.add_job(job, trigger, next_run_time=None))
    scheduler.shutdown()


def watchdog_repeats():
    """Two threads put the same event: it is put twice, for each compares before it takes the lock."""
    from watchdog.utils.bricks import SkipRepeatsQueue

    queue = SkipRepeatsQueue()
    together(lambda: queue.put("event"), lambda: queue.put("event"))
    assert queue.qsize() == 1


async def anyio_closed_stream():
    """A stream is closed while a task waits to receive from it: the task waits for ever."""
    import asyncio

    import anyio

    send, receive = anyio.create_memory_object_stream(1)

    async def wait():
        try:
            await receive.receive()
        except (anyio.ClosedResourceError, anyio.EndOfStream):
            return

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(1)
    receive.close()
    await waiting
    send.close()


async def anyio_lost_item():
    """An item is sent to a receiver that is being cancelled: nobody receives it."""
    import asyncio

    import anyio

    send, receive = anyio.create_memory_object_stream(1)
    scope = anyio.CancelScope()
    got = []

    async def wait():
        with scope:
            got.append(await receive.receive())

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(1)
    scope.cancel()
    send.send_nowait("item")
    await waiting
    if not got:
        assert receive.statistics().current_buffer_used == 1
        got.append(await receive.receive())
    assert got == ["item"]
    send.close()
    receive.close()


def aiologic_notify_all():
    """All waiters are notified: each is taken off the list under a name that is not on it, so this never ends."""
    from aiologic import Condition

    condition = Condition()
    ready = []

    def wait():
        with condition:
            while not ready:
                condition.wait()

    def notify():
        with condition:
            ready.append(True)
            condition.notify_all()

    together(wait, notify)


def fasteners_overtaken():
    """A reader comes while a writer waits: it is let in first, and so may all that follow it."""
    import threading
    import time

    from fasteners import ReaderWriterLock

    lock = ReaderWriterLock()
    order = []

    def write():
        with lock.write_lock():
            order.append("writer")

    def read():
        with lock.read_lock():
            order.append("reader")

    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    with lock.read_lock():
        threads[0].start()
        while not lock.has_pending_writers:
            time.sleep(0.01)
        threads[1].start()
    for thread in threads:
        thread.join()
    assert order == ["writer", "reader"]
