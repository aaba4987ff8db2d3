"""Clients of `planted_server` and `planted_cluster`: an adapter for ``--python``."""

from __future__ import annotations

import contextlib
import os
import socket
import time

from seriatim_models.conformance.local import Unknown

PATIENCE = 3.0
"""Seconds until an answer is given up, with its connection."""


class PlantedClient:
    """A connection for each channel, to one node after the other. Messages of earlier objects are not there for it."""

    name = "planted"
    can = ("publish", "get", "ack", "nack", "open", "close", "count")

    def __init__(self) -> None:
        self._nodes = os.environ["SERIATIM_TARGET"].split(",")
        self._connections: dict[int, socket.socket] = {}
        self._mine = os.urandom(4).hex()

    def open(self, ch: int) -> None:
        first = ch % len(self._nodes)
        for node in (*self._nodes[first:], *self._nodes[:first]):
            host, _, port = node.partition(":")
            with contextlib.suppress(OSError, Unknown):
                at = (host, int(port))
                self._connections[ch] = socket.create_connection(at, timeout=PATIENCE)
                self._ask(ch, "left")  # a node that does not lead hangs up
                return
        raise Unknown("no node can be reached that leads")

    def _ask(self, ch: int, line: str) -> str:
        connection, answer = self._connections[ch], b""
        try:
            connection.sendall(line.encode() + b"\n")
            while not answer.endswith(b"\n"):
                more = connection.recv(4096)
                if not more:
                    raise ConnectionError("the server has gone")
                answer += more
        except OSError as error:
            self._connections.pop(ch).close()
            raise Unknown(str(error)) from error
        return answer.decode().strip()

    def publish(self, ch: int, m: str) -> None:
        self._ask(ch, f"put {self._mine}/{m}")

    def get(self, ch: int) -> tuple[str, int] | None:
        while (answer := self._ask(ch, "get")) != "none":
            tag, _, name = answer.partition(" ")
            whose, _, m = name.partition("/")
            if whose == self._mine:
                return m, int(tag)
            self._ask(ch, f"ack {tag}")
        time.sleep(0.01)
        return None

    def ack(self, ch: int, dtag: int) -> None:
        self._ask(ch, f"ack {dtag}")

    def nack(self, ch: int, dtag: int) -> None:
        self._ask(ch, f"nack {dtag}")

    def count(self, ch: int) -> tuple[int, int]:
        ready, held = self._ask(ch, "left").split()
        return int(ready), int(held)

    def close(self, ch: int) -> None:
        self._connections.pop(ch).close()
