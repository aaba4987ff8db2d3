"""One of three nodes of a replicated queue: ``NODE MODE LISTEN:PORT ADDRESS1:PORT ADDRESS2:PORT ADDRESS3:PORT``.

The node with the lowest number that a node can reach is its leader. A node that is slow is reached: whoever takes
connections is waited for, so that nothing but a partition, or an end, makes two leaders. A leader sends its log with a
change to the nodes that it reaches, of which each takes it if that continues its own, and then answers. In the mode
``majority`` it refuses what fewer than two nodes have, and hands nothing out unless another node agrees that it leads.
In the mode ``reachable`` it is content with those that it reaches, if they all take it: right while single nodes die,
since whoever is left has everything. In a partition there are two leaders; when it heals the one with the shorter log
takes over the other's, and what it had confirmed alone is gone.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import sys
import threading
import time
from typing import Any

BEAT = 0.1  # seconds between two looks at the other nodes
REACHED = 0.2  # seconds in which a node that can be reached takes a connection: its kernel does, however busy it is
START = 5.0  # seconds after which a node serves without having seen all others


class Node:
    def __init__(self, number: int, mode: str, peers: list[tuple[str, int]]) -> None:
        self.number, self.mode, self.peers = number, mode, peers
        self.lock = threading.RLock()
        self.log: list[str] = []  # "+m" and "-m"
        self.up: set[int] = set()  # not known yet: nobody is served
        self.since = time.monotonic()
        self.held: dict[str, object] = {}
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        """See who is there, and take over the longest log of those that are."""
        while True:
            found = {self.number: self.log}
            for n in range(len(self.peers)):
                if n != self.number and (answer := self.ask(n, {"op": "log"})) is not None:
                    found[n] = answer["log"]
            alone = len(found) < len(self.peers) and time.monotonic() < self.since + START
            with self.lock:
                # Nodes that start together do not see each other at once: of these, too, only one may lead.
                self.up = set() if not self.up and alone else set(found)
                longest = max(found.values(), key=len)
                if len(longest) > len(self.log):
                    self.log = list(longest)
            time.sleep(BEAT)

    def ask(self, n: int, request: dict[str, object]) -> dict[str, Any] | None:
        """What another node answers, however long it takes; None if it cannot be reached."""
        line = b""
        try:
            with self.connection(n) as peer:
                peer.sendall(json.dumps(request).encode() + b"\n")
                while not line.endswith(b"\n"):
                    try:
                        more = peer.recv(65536)
                    except TimeoutError:  # it is slow, or out of reach meanwhile
                        self.connection(n).close()
                        continue
                    if not more:
                        return None
                    line += more
            answer: dict[str, Any] = json.loads(line)
            return answer
        except (OSError, ValueError):
            return None

    def connection(self, n: int) -> socket.socket:
        return socket.create_connection(self.peers[n], timeout=REACHED)

    def append(self, *changes: str) -> bool:
        """Whether changes are where they have to be; without any, whether this node may still lead."""
        log = [*self.log, *changes]
        asked = [self.ask(n, {"op": "take", "log": log}) for n in self.up if n != self.number]
        answers = [bool(answer["taken"]) for answer in asked if answer is not None]
        # A majority needs one more. The third may have what nobody confirmed, and is overruled by a longer log.
        if not (any(answers) if self.mode == "majority" else all(answers)):
            return False
        self.log = log
        return True

    def ready(self) -> list[str]:
        done = {line[1:] for line in self.log if line[0] == "-"}
        waiting = dict.fromkeys(line[1:] for line in self.log if line[0] == "+")
        return [m for m in waiting if m not in done and m not in self.held]


class PeerHandler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        node: Node = self.server.node  # type: ignore[attr-defined]
        with contextlib.suppress(OSError, ValueError):
            request = json.loads(self.rfile.readline())
            answer: dict[str, object] = {"log": node.log}
            if request["op"] == "take":
                # Two that take each other for followers do not wait for each other: that is a refusal, not silence.
                free = node.lock.acquire(timeout=REACHED)
                log = request["log"]
                answer = {"taken": free and log[: len(node.log)] == node.log}
                node.log = log if answer["taken"] else node.log
                if free:
                    node.lock.release()
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class ClientHandler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        node: Node = self.server.node  # type: ignore[attr-defined]
        mine: dict[str, str] = {}
        try:
            for number, line in enumerate(self.rfile):
                word, _, rest = line.decode().strip().partition(" ")
                with node.lock:
                    if min(node.up, default=-1) != node.number:
                        return  # whoever is not the leader hangs up
                    self.wfile.write((self.do(node, mine, word, rest, str(number)) + "\n").encode())
        except OSError:
            pass
        finally:
            with node.lock:
                for m in mine.values():
                    node.held.pop(m, None)

    def do(self, node: Node, mine: dict[str, str], word: str, rest: str, number: str) -> str:
        if word == "put":
            if not node.append("+" + rest):
                raise ConnectionError("no majority")
        elif word == "get":
            if node.mode == "majority" and not node.append():
                raise ConnectionError("no majority")  # another one may lead, and have settled it
            waiting = node.ready()
            if not waiting:
                return "none"
            m = mine[number] = waiting[0]
            node.held[m] = self
            return f"{number} {m}"
        elif word == "ack":
            m = mine.pop(rest)
            node.held.pop(m, None)
            if not node.append("-" + m):
                raise ConnectionError("no majority")
        elif word == "nack":
            node.held.pop(mine.pop(rest), None)
        elif word == "left":
            return f"{len(node.ready())} {len(node.held)}"
        return "ok"


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    request_queue_size = 128  # a full one would look like a node that cannot be reached
    daemon_threads = True


def place(text: str) -> tuple[str, int]:
    host, _, port = text.partition(":")
    return host, int(port)


if __name__ == "__main__":
    number, mode = int(sys.argv[1]) - 1, sys.argv[2]
    listen, *peers = map(place, sys.argv[3:])
    inside, outside = Server(peers[number], PeerHandler), Server(listen, ClientHandler)
    inside.node = outside.node = Node(number, mode, peers)  # type: ignore[attr-defined]
    threading.Thread(target=inside.serve_forever, daemon=True).start()
    outside.serve_forever()
