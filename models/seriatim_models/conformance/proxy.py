"""A proxy between AMQP 0-9-1 clients and a broker that records what goes over the wire (`wire_recording.py`).

Frame by frame, so that deliveries are seen which no client library hands on: those in flight to a channel that closes,
and those that the library requeues by itself. Everything is forwarded as it is, even what cannot be parsed: that ends
the recording of its connection and is counted, and never the connection itself.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable

from seriatim_models.conformance.wire_recording import FrameReader, WireRecorder, WireSession

BLOCK = 2**16  # bytes that are forwarded at once


class Proxy:
    """Listens on the loopback and forwards to a broker. Use as a context manager."""

    def __init__(self, host: str, port: int, recorder: WireRecorder, listen: int = 0) -> None:
        """Raises `OSError` if the port cannot be listened on."""
        self._target = (host, port)
        self._recorder = recorder
        self._server = socket.create_server(("127.0.0.1", listen))
        self._server.settimeout(0.1)
        self.port = int(self._server.getsockname()[1])
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._pairs: dict[str, tuple[socket.socket, socket.socket]] = {}
        self._by_port: dict[int, str] = {}

    def __enter__(self) -> Proxy:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.close()
        for name in list(self._pairs):
            self.drop(name)
        for thread in self._threads:
            thread.join(5)

    def drop(self, name: str) -> None:
        """Cut a connection off without closing it on either side."""
        for each in self._pairs.get(name, ()):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def name_of(self, port: int) -> str:
        """The name of the connection of the client whose own port that is; empty if there is none."""
        return self._by_port.get(port, "")

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                client, address = self._server.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            number += 1
            name = f"c{number}"
            try:
                broker = socket.create_connection(self._target, timeout=5)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            client.settimeout(None)
            self._pairs[name] = (client, broker)
            self._by_port[address[1]] = name
            self._start(self._forward, name, client, broker)

    def _forward(self, name: str, client: socket.socket, broker: socket.socket) -> None:
        session = WireSession(self._recorder, name)
        readers = {
            client: FrameReader(session.from_client),
            broker: FrameReader(session.from_broker),
        }
        listening = True
        try:
            while True:
                for side in select.select([client, broker], [], [], 1)[0]:
                    block = side.recv(BLOCK)
                    if not block:
                        return
                    if listening:
                        try:
                            readers[side].feed(block)
                        except Exception:  # whatever a client sends is forwarded
                            listening = False
                            self._recorder.unreadable += 1
                    (broker if side is client else client).sendall(block)
        except OSError:
            return
        finally:
            session.ended()
            for side in (client, broker):
                with contextlib.suppress(OSError):
                    side.close()
            self._pairs.pop(name, None)
