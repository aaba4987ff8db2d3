"""A queue behind a socket with a log on disk: ``PORT FOLDER before|later``.

With ``before`` a message is in the log before it is confirmed. With ``later`` it is confirmed at once and written when
a few lines more have come: a mistake that only the death of the process shows, however slow the machine is.
"""

from __future__ import annotations

import contextlib
import socketserver
import sys
import threading
from collections import deque
from pathlib import Path

LATER = 5  # lines that are not yet written


class PlantedQueue:
    def __init__(self, folder: Path, later: bool) -> None:
        self.lock = threading.Lock()
        self.ready: deque[str] = deque()
        self.held = 0
        path = folder / "log"
        done = set()
        if path.exists():
            lines = path.read_text().splitlines()
            done = {line[1:] for line in lines if line[0] == "-"}
            self.ready.extend(line[1:] for line in lines if line[0] == "+" and line[1:] not in done)
        self.file = path.open("a")
        self.later = later
        self.unwritten: deque[str] = deque()

    def note(self, line: str) -> None:
        self.unwritten.append(line)
        while len(self.unwritten) > LATER * self.later:
            self.file.write(self.unwritten.popleft() + "\n")
        self.file.flush()


class Handler(socketserver.StreamRequestHandler):
    server: PlantedServer

    def handle(self) -> None:
        queue, held = self.server.queue, dict[str, str]()
        try:
            for number, line in enumerate(self.rfile):
                word, _, rest = line.decode().strip().partition(" ")
                with queue.lock:
                    self.wfile.write((self.do(queue, held, word, rest, number) + "\n").encode())
        except OSError:
            pass
        finally:
            with queue.lock:
                queue.held -= len(held)
                queue.ready.extendleft(reversed(list(held.values())))

    def do(
        self, queue: PlantedQueue, held: dict[str, str], word: str, rest: str, number: int
    ) -> str:
        if word == "put":
            queue.note("+" + rest)
            queue.ready.append(rest)
        elif word == "get":
            if not queue.ready:
                return "none"
            m = held[str(number)] = queue.ready.popleft()
            queue.held += 1
            return f"{number} {m}"
        elif word == "ack":
            queue.note("-" + held.pop(rest))
            queue.held -= 1
        elif word == "nack":
            queue.ready.appendleft(held.pop(rest))
            queue.held -= 1
        elif word == "left":
            return f"{len(queue.ready)} {queue.held}"
        return "ok"


class PlantedServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, queue: PlantedQueue) -> None:
        self.queue = queue
        super().__init__(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        queue = PlantedQueue(Path(sys.argv[2]), sys.argv[3] == "later")
        PlantedServer(int(sys.argv[1]), queue).serve_forever()
