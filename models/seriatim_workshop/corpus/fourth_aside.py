# mypy: ignore-errors
# The libraries are of other years, fetched when the corpus is run, and have no types.
"""The fourth set of drivers that were written before the explorer was run on them, 2026-11-29."""

import contextlib

from seriatim_workshop.corpus.drivers import together


def anyio_portal():
    """A future of a portal is cancelled while its task starts: the task is not, and the portal waits for it."""
    import anyio
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:
        future = portal.start_task_soon(anyio.sleep_forever)
        future.cancel()


def injector_singleton():
    """Two threads ask for a singleton at once: each makes a scope for it, and so an object of its own."""
    from injector import Injector, singleton

    @singleton
    class Service:
        pass

    injector = Injector()
    got = []

    def ask():
        got.append(injector.get(Service))

    together(ask, ask)
    assert got[0] is got[1]


def loguru_finalizer():
    """An object that logs when it dies is let go of by a sink: its message waits for the lock of the first."""
    from loguru import logger

    class LogsWhenItDies:
        def __del__(self):
            with contextlib.suppress(RuntimeError):
                logger.info("closed")

    held = [LogsWhenItDies()]

    def sink(message):
        held.clear()

    logger.remove()
    logger.add(sink, format="{message}")
    together(lambda: logger.info("one"), lambda: logger.info("two"))


def apipkg_attribute():
    """Two threads ask for a lazy attribute at once: one finds it taken out of the table and not yet set."""
    import sys

    import apipkg

    apipkg.initpkg("corpus_api", {"digits": "string:digits"})
    api = sys.modules["corpus_api"]
    got = []

    def ask():
        got.append(api.digits)

    together(ask, ask)
    assert got == ["0123456789"] * 2


def apipkg_replaced():
    """A thread imports a package while it replaces itself: it is handed the module that has no attributes."""
    import importlib
    import sys
    import types

    import apipkg

    sys.modules["corpus_api"] = types.ModuleType("corpus_api")
    got = []
    together(
        lambda: apipkg.initpkg("corpus_api", {"digits": "string:digits"}),
        lambda: got.append(importlib.import_module("corpus_api")),
    )
    assert got[0].digits == "0123456789"


async def httpcore_cancelled():
    """A request is cancelled while it connects: its place in the pool is never free again."""
    import asyncio
    import types

    import httpcore
    from httpcore._backends.asyncio import AsyncioBackend

    class NobodyAnswers(AsyncioBackend):
        async def open_tcp_stream(self, *arguments, **options):
            await asyncio.sleep(1)
            raise httpcore.ConnectError("nobody is there")

    pool = httpcore.AsyncConnectionPool(
        ssl_context=types.SimpleNamespace(), max_connections=1, backend=NobodyAnswers()
    )

    async def request():
        url = (b"http", b"host", 80, b"/")
        with contextlib.suppress(httpcore.ConnectError):
            if hasattr(pool, "arequest"):
                await pool.arequest(b"GET", url, [], None, {})
            else:
                await pool.handle_async_request(b"GET", url, [], None, {})

    first = asyncio.create_task(request())
    await asyncio.sleep(1)
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    await request()


def waitress_closing():
    """A request is received while the answer to a bad one closes the connection: it is queued all the same."""
    from waitress.channel import HTTPChannel

    class ChannelSettings:
        outbuf_overflow = outbuf_high_watermark = 1048576
        inbuf_overflow = max_request_body_size = max_request_header_size = 10000
        recv_bytes = send_bytes = 8192
        channel_request_lookahead = 0
        url_scheme, url_prefix, ident = "http", "", "waitress"
        log_socket_errors = expose_tracebacks = False

    class StubbedServer:
        adj = ChannelSettings
        server_name, effective_host, effective_port = "localhost", "localhost", 80

        def __init__(self):
            self.active_channels = {}

        def add_task(self, task):
            pass

        def pull_trigger(self):
            pass

    class ConnectionToNobody:
        """A connection to nobody."""

        def setblocking(self, flag):
            pass

        def getsockopt(self, level, name):
            return 2048

        def fileno(self):
            return 99

        def getpeername(self):
            return ("127.0.0.1", 1)

        def send(self, data):
            return len(data)

        def close(self):
            pass

    channel = HTTPChannel(
        StubbedServer(), ConnectionToNobody(), ("127.0.0.1", 1), ChannelSettings, map={}
    )
    channel.received(b"GET / HTTP/1.1\r\nContent-Length: bad\r\n\r\n")
    assert channel.requests[0].error
    together(channel.service, lambda: channel.received(b"GET /next HTTP/1.1\r\n\r\n"))
    assert channel.close_when_flushed
    assert not channel.requests


async def fifolock_cancelled():
    """A task is cancelled after it was let in and before it ran: the lock is held for ever."""
    import asyncio

    from fifolock import FifoLock

    class Alone(asyncio.Future):
        @staticmethod
        def is_compatible(holds):
            return not holds[Alone]

    lock = FifoLock()

    async def hold():
        async with lock(Alone):
            await asyncio.sleep(1)

    first, second = asyncio.create_task(hold()), asyncio.create_task(hold())
    await asyncio.sleep(1)
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    await hold()


def more_executors_shutdown():
    """A job submits another one while its executor is shut down, which waits for it with the lock held."""
    from more_executors import Executors

    executor = Executors.thread_pool(max_workers=1).with_cancel_on_shutdown()

    def job():
        with contextlib.suppress(RuntimeError):
            executor.submit(int)

    executor.submit(job)
    executor.shutdown()


def more_executors_dropped():
    """Nobody holds the executor any more when its thread looks: the future is never resolved."""
    from more_executors import Executors

    future = Executors.sync().with_retry().submit(lambda: 1)
    assert future.result() == 1


async def asgiref_local():
    """Two tasks set an attribute that was set before they began: each sees the value of the other."""
    import asyncio

    from asgiref.local import Local

    local = Local()
    local.value = 0

    async def change(value):
        local.value = value
        await asyncio.sleep(1)
        assert local.value == value

    await asyncio.gather(change(1), change(2))


def lazy_loader_twice():
    """Two threads load a module lazily at once: each gets a module of its own."""
    import lazy_loader

    got = []

    def load():
        got.append(lazy_loader.load("colorsys"))

    together(load, load)
    assert got[0] is got[1]
    assert got[0].rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
