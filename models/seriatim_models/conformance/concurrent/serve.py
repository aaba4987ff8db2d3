"""``python -m seriatim_models.conformance.concurrent.serve MODULE:FACTORY``: an object called by threads.

It speaks seriatim-conform/2. Each client has a thread of its own, which makes its calls; so calls of two clients meet
as they do in a program with threads, and what hangs, ends or floods does so in a process of its own.
"""

from __future__ import annotations

import os
import queue
import sys
import threading

import msgspec

from seriatim_models.conformance.concurrent.objects import ThreadedObject
from seriatim_models.conformance.local import load
from seriatim_models.conformance.protocol import CONCURRENT, Answer, Fault, Hello, Push, Request

SWITCH = 1e-5
"""Seconds after which Python lets another thread go on, far below its default: a race shows sooner."""


class _Server:
    def __init__(self, where: str) -> None:
        # What the implementation prints must not get between the answers.
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self._where = where
        self._writing = threading.Lock()
        self._system: ThreadedObject | None = None
        self._clients: dict[int, queue.SimpleQueue[Request]] = {}

    def say(self, message: msgspec.Struct) -> None:
        """Write one line."""
        line = msgspec.json.encode(message) + b"\n"
        with self._writing:
            self._out.write(line)

    def serve(self) -> None:
        """Answer until the input ends."""
        decoder = msgspec.json.Decoder(Request)
        for line in sys.stdin.buffer:
            request = decoder.decode(line)
            if request.op == "hello":
                self.say(self._hello(request))
            elif request.op == "reset":
                assert self._system is not None
                self._system.reset()
                self.say(Answer(id=request.id))
            else:
                if request.client not in self._clients:
                    calls: queue.SimpleQueue[Request] = queue.SimpleQueue()
                    self._clients[request.client] = calls
                    threading.Thread(target=self._client, args=(calls,), daemon=True).start()
                self._clients[request.client].put(request)

    def _hello(self, request: Request) -> Hello:
        try:
            self._system = ThreadedObject(load(self._where))
        except Fault as fault:
            return Hello(id=request.id, ok=False, why=str(fault))
        system = self._system
        can = sorted(system.can)
        said = Hello(protocol=CONCURRENT, name=system.name, version=system.version, can=can)
        return msgspec.structs.replace(said, id=request.id)

    def _client(self, calls: queue.SimpleQueue[Request]) -> None:
        """The thread of one client."""
        assert self._system is not None
        while True:
            request = calls.get()
            try:
                answer = self._called(self._system, request)
            except Fault as fault:
                # The only answer to what no client could go on after; its words are the last of standard error.
                print(fault, file=sys.stderr, flush=True)
                os._exit(1)
            self.say(msgspec.structs.replace(answer, id=request.id))
            if request.op == "close":
                del self._clients[request.client]
                return

    def _called(self, system: ThreadedObject, request: Request) -> Answer:
        if request.op == "sync":
            system.sync()
            return Answer()
        if request.op == "open" or not system.receives(request.ch):
            system.receive(request.ch, self._push)
        answer = system.do(request)
        if (fault := system.broken()) is not None:
            raise fault
        return answer

    def _push(self, push: Push) -> None:
        self.say(msgspec.structs.replace(push, t=None))


def main(where: str) -> None:
    """Serve the object that the factory at ``module:name`` makes, until the input ends."""
    sys.path.insert(0, os.getcwd())
    sys.setswitchinterval(SWITCH)
    _Server(where).serve()
    os._exit(0)  # without waiting for threads of the object's own


if __name__ == "__main__":
    main(sys.argv[1])
