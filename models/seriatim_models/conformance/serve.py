"""``python -m seriatim_models.conformance.serve MODULE:FACTORY``: an object of Python spoken to by `protocol`.

So that what hangs, ends or floods does so in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import msgspec

from seriatim_models.conformance.local import Local, load
from seriatim_models.conformance.protocol import VERSION, Answer, Fault, Hello, Request
from seriatim_models.conformance.python_child import drive_task


def main(where: str) -> None:
    """Serve the object that the factory at ``module:name`` makes, until the input ends."""
    # What the implementation prints must not get between the answers.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    decoder = msgspec.json.Decoder(Request)
    encoder = msgspec.json.Encoder()
    sys.path.insert(0, os.getcwd())
    system: Local | None = None
    for line in sys.stdin.buffer:
        request = decoder.decode(line)
        replies: list[msgspec.Struct] = []
        if request.op == "hello":
            try:
                system = Local(load(where))
            except Fault as fault:
                replies = [Hello(id=request.id, ok=False, why=str(fault))]
            else:
                can = sorted(system.can)
                hello = Hello(protocol=VERSION, name=system.name, version=system.version, can=can)
                replies = [msgspec.structs.replace(hello, id=request.id)]
        elif system is not None:
            replies = _served(system, request)
        out.write(b"".join(encoder.encode(reply) + b"\n" for reply in replies))
    if system is not None:
        with contextlib.suppress(Fault):
            system.end()


def _served(system: Local, request: Request) -> list[msgspec.Struct]:
    answer = Answer()
    if request.op == "reset":
        system.reset()
    elif request.op == "sync":
        system.sync()
    elif request.op == "drive":
        drive_task(system, Path(request.path))
    else:
        answer = system.do(request)
    return [*system.pushed(), msgspec.structs.replace(answer, id=request.id)]


if __name__ == "__main__":
    main(sys.argv[1])
