"""``python -m seriatim_models.conformance.serve MODULE:FACTORY``: an object of Python spoken to by `protocol`.

So that what hangs, ends or floods does so in a process of its own. Asked by version 1 it is called by this process's
main thread; asked by version 2 each client has a thread of its own, which makes its calls, so that calls of two clients
meet as they do in a program with threads.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from pathlib import Path

import msgspec

from seriatim_models.conformance.concurrent.objects import ThreadedObject
from seriatim_models.conformance.local import Local, load
from seriatim_models.conformance.protocol import (
    CONCURRENT,
    VERSION,
    Answer,
    Fault,
    Hello,
    Push,
    Request,
)
from seriatim_models.conformance.python_child import drive_task

SWITCH = 1e-5
"""Seconds after which Python lets another thread go on, far below its default: a race shows sooner."""


class _Server:
    def __init__(self, where: str) -> None:
        # What the implementation prints must not get between the answers.
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self._where = where
        self._writing = threading.Lock()
        self.alone: Local | None = None
        self.shared: ThreadedObject | None = None
        self._clients: dict[int, queue.SimpleQueue[Request]] = {}

    def say(self, *messages: msgspec.Struct) -> None:
        """Write a line for each."""
        lines = b"".join(msgspec.json.encode(message) + b"\n" for message in messages)
        with self._writing:
            self._out.write(lines)

    def serve(self) -> None:
        """Answer until the input ends."""
        decoder = msgspec.json.Decoder(Request)
        for line in sys.stdin.buffer:
            request = decoder.decode(line)
            if request.op == "hello":
                self.say(msgspec.structs.replace(self._hello(request), id=request.id))
            elif self.alone is not None:
                answer = self._called(self.alone, request)
                pushed = self.alone.pushed()
                self.say(*pushed, msgspec.structs.replace(answer, id=request.id))
            elif request.op == "reset":
                assert self.shared is not None
                self.shared.reset()
                self.say(Answer(id=request.id))
            else:
                if request.client not in self._clients:
                    calls: queue.SimpleQueue[Request] = queue.SimpleQueue()
                    self._clients[request.client] = calls
                    threading.Thread(target=self._client, args=(calls,), daemon=True).start()
                self._clients[request.client].put(request)

    def _hello(self, request: Request) -> Hello:
        system: Local
        try:
            if request.protocol == CONCURRENT:
                sys.setswitchinterval(SWITCH)
                system = self.shared = ThreadedObject(load(self._where))
            else:
                system = self.alone = Local(load(self._where))
        except Fault as fault:
            return Hello(ok=False, why=str(fault))
        protocol = VERSION if self.alone is not None else CONCURRENT
        return Hello(
            protocol=protocol,
            name=system.name,
            version=system.version,
            can=sorted(system.can),
            means={k: v for k, v in msgspec.structs.asdict(system.means).items() if v},
        )

    def _called(self, system: Local, request: Request) -> Answer:
        if request.op == "reset":
            system.reset()
        elif request.op == "sync":
            system.sync()
        elif request.op == "drive":
            drive_task(system, Path(request.path))
        else:
            return system.do(request)
        return Answer()

    def _client(self, calls: queue.SimpleQueue[Request]) -> None:
        """The thread of one client."""
        system = self.shared
        assert system is not None
        while True:
            request = calls.get()
            try:
                if request.op != "sync" and (
                    request.op == "open" or not system.receives(request.ch)
                ):
                    system.receive(request.ch, self._push)
                answer = self._called(system, request)
                if (fault := system.broken()) is not None:
                    raise fault
            except Fault as fault:
                # The only answer to what no client could go on after; its words are the last of standard error.
                print(fault, file=sys.stderr, flush=True)
                os._exit(1)
            self.say(msgspec.structs.replace(answer, id=request.id))
            if request.op == "close" or answer.unknown:
                del self._clients[request.client]
                return

    def _push(self, push: Push) -> None:
        self.say(msgspec.structs.replace(push, t=None))


def main(where: str) -> None:
    """Serve the object that the factory at ``module:name`` makes, until the input ends."""
    sys.path.insert(0, os.getcwd())
    server = _Server(where)
    server.serve()
    with contextlib.suppress(Fault):
        for system in filter(None, (server.alone, server.shared)):
            system.end()
    if server.shared is not None:
        os._exit(0)  # without waiting for threads that may hang


if __name__ == "__main__":
    main(sys.argv[1])
