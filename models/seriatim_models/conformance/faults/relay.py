"""A TCP proxy that breaks what goes through it: cut, half open, late, slow.

One thread for all connections. Bytes are forwarded unread, so it serves any protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

BLOCK = 2**16  # bytes that are read at once
AHEAD = 64  # blocks of a direction that may wait to be forwarded
NEVER_LINGER = struct.pack("ii", 1, 0)
"""For SO_LINGER: closing resets the connection."""


@dataclass(eq=False)
class RelayedConnection:
    """A client's connection, and the one to the server behind it."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    dead: bool = False
    """Half open: the server's side is gone, and the client's is kept without a word."""
    pumps: list[asyncio.Task[None]] = field(default_factory=list)


class FaultRelay:
    """Listens on the loopback and forwards to a port of it. A context manager, usable from any thread."""

    def __init__(self, target: int) -> None:
        """Raises `OSError` if there is no free port."""
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._delay = 0.0
        self._rate = 0.0
        self._closed = False
        self._breaks = 0
        """How often connections were cut or left half open."""
        self._connections: set[RelayedConnection] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def __enter__(self) -> FaultRelay:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # ---- faults

    def cut(self) -> None:
        """Reset every connection, and every new one until `heal`."""
        self._do(self._cut)

    def half_open(self) -> None:
        """End every connection towards the server, and leave the client's side open and silent, for ever."""
        self._do(self._half_open)

    def delay(self, seconds: float) -> None:
        """Forward every byte so much later, in both directions."""
        self._delay = seconds

    def throttle(self, rate: float) -> None:
        """Forward at most so many bytes a second in each direction of each connection."""
        self._rate = rate

    def heal(self) -> None:
        """Forward as if nothing had been. What was cut or half open stays so: its client has to connect anew."""
        self._delay = self._rate = 0.0
        self._do(self._open)

    def _do(self, work: Callable[[], None]) -> None:
        """Run `work` in the relay's thread, and wait for it."""
        done = threading.Event()

        def run() -> None:
            work()
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait(5)

    def _cut(self) -> None:
        self._closed = True
        self._breaks += 1
        for each in list(self._connections):
            _reset(each.client)
            _reset(each.server)

    def _open(self) -> None:
        self._closed = False

    def _half_open(self) -> None:
        self._breaks += 1
        for each in self._connections:
            each.dead = True
            _reset(each.server)

    # ---- forwarding

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(
            asyncio.start_server(self._serve, sock=self._listener, limit=BLOCK)
        )
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            for each in self._connections:
                _reset(each.client)
                _reset(each.server)
            self._listener.close()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.close()

    async def _serve(self, from_client: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self._closed:
            _reset(client)
            return
        breaks = self._breaks
        try:
            from_server, server = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            _reset(client)
            return
        connection = RelayedConnection(client, server)
        self._connections.add(connection)
        if breaks != self._breaks:  # meanwhile
            connection.dead = True
            _reset(server)
            if self._closed:
                _reset(client)
        pumps = [
            asyncio.create_task(self._forward(connection, from_client, server)),
            asyncio.create_task(self._forward(connection, from_server, client)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            while connection.dead and not client.transport.is_closing():
                # Nothing more is said to the client; what it says is not read, only whether it has gone.
                await asyncio.sleep(0.1)
                if from_client.at_eof():
                    break
        except asyncio.CancelledError:
            return  # the relay ends
        finally:
            for pump in pumps:
                pump.cancel()
            self._connections.discard(connection)
            for side in (client, server):
                with contextlib.suppress(OSError):
                    side.close()

    async def _forward(
        self,
        connection: RelayedConnection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """One direction: read at once, write when it is due."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(AHEAD)

        async def write() -> None:
            while True:
                due, block = await waiting.get()
                if not block:
                    return
                if (late := due - time.monotonic()) > 0:
                    await asyncio.sleep(late)
                if connection.dead:
                    return
                if self._rate:
                    await asyncio.sleep(len(block) / self._rate)
                writer.write(block)
                await writer.drain()

        writing = asyncio.create_task(write())
        try:
            while True:
                block = await reader.read(BLOCK)
                await waiting.put((time.monotonic() + self._delay, block))
                if not block:
                    break
            await writing
        except OSError:
            return
        finally:
            writing.cancel()


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection without a word of farewell."""
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError, AttributeError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NEVER_LINGER)
    writer.transport.abort()
