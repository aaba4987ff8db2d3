"""An object of Python that several threads of this process call at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from seriatim_models.conformance.concurrent.client import ConcurrentClient, OutcomeUnknown, Receiver
from seriatim_models.conformance.local import Factory, Local
from seriatim_models.conformance.protocol import Answer, Fault, Push, Request


class ThreadedObject(Local):
    """`ConcurrentSystem` over one object, whose methods the clients call directly."""

    def __init__(self, factory: Factory, name: str = "") -> None:
        """Raises `Fault` if the object cannot be made, or cannot be called by threads."""
        self._receivers: dict[int, Receiver] = {}
        made = factory()
        for op in ("put", "get", "publish"):
            if inspect.iscoroutinefunction(getattr(made, op, None)):
                raise Fault("start", f"its {op} is a coroutine, and the clients are threads")
        super().__init__(factory, name)

    def reset(self) -> None:
        self._receivers = {}
        super().reset()

    def connect(self, number: int, receive: Receiver) -> ConcurrentClient:
        """A client that is channel `number`."""
        self.receive(number, receive)
        client = _ObjectClient(self)
        if "open" in self.can:
            answer = client.do(Request(op="open", client=number, ch=number))
            if not answer.ok:
                raise Fault("garbage", f"refused to open a channel: {answer.why or 'no reason'}")
        return client

    def receive(self, ch: int, receive: Receiver) -> None:
        """Give what is pushed on a channel to `receive`."""
        self._receivers[ch] = receive

    def receives(self, ch: int) -> bool:
        """Whether somebody is given what is pushed on a channel."""
        return ch in self._receivers

    def _taker(self) -> Callable[[Push], None]:
        """What gives what this object pushes to the receiver of its channel."""
        receivers = self._receivers
        return lambda push: receivers[push.ch](push)

    def broken(self) -> Fault | None:
        """What was wrong with a delivery, if one was."""
        return self._fault


class _ObjectClient:
    def __init__(self, system: ThreadedObject) -> None:
        self._system = system

    def do(self, request: Request) -> Answer:
        answer = self._system.do(request)
        if answer.unknown:
            raise OutcomeUnknown(answer.why)
        if (fault := self._system.broken()) is not None:
            raise fault
        return answer

    def close(self) -> None:
        """There is nothing to give up."""
