"""Where calls of a client begin and end, as records of the execution that runs.

With real time (`Dpor(real_time=True)`) each is a step of its own, so that what ended before what is part of a trace.
"""

from __future__ import annotations

from seriatim_models.conformance.local import Refused, answer_of
from seriatim_models.explorer.python.accesses import now

REFUSALS = {
    "QueueEmpty": ("Empty", "QueueEmpty", "SyncQueueEmpty", "AsyncQueueEmpty"),
    "QueueFull": ("Full", "QueueFull", "SyncQueueFull", "AsyncQueueFull"),
    "QueueShutDown": ("ShutDown", "QueueShutDown", "SyncQueueShutDown", "AsyncQueueShutDown"),
    "ValueError": ("ValueError",),
    "Refused": ("Refused",),
}
"""What a call may raise and be right, by the name that the sequential object has for it."""
WOULD_WAIT = {"TimeoutError", "WouldBlock"}
"""What says of a get that there is nothing, and of a put that there is no room."""


def invoked(number: int, m: str = "", dtag: object = None) -> None:
    """A call begins."""
    if now.execution is not None:
        now.execution.world.record("call", ph="invoke", number=number, m=m, dtag=dtag)


def answered(number: int, value: object = None) -> tuple[str, object]:
    """A call has returned; returns the message that it gave, with its delivery tag."""
    got = answer_of(value) if isinstance(value, tuple) else None
    m = got.m if got is not None else value if isinstance(value, str) else ""
    dtag = None if got is None else got.dtag
    if now.execution is not None:
        redelivered = None if got is None else got.redelivered
        now.execution.world.record(
            "call", ph="ok", number=number, m=m, dtag=dtag, redelivered=redelivered
        )
    return m, dtag


def refused(number: int, error: Exception, empty: str = "", puts: bool = False) -> bool:
    """Whether an exception is the answer to a call: then it is kept; any other is a mistake.

    `empty` is one more by which a queue says that there is nothing. `puts`: the call was to put something.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    would_wait = "QueueFull" if puts else "QueueEmpty"
    for name, known in REFUSALS.items():
        also = {empty} if name == "QueueEmpty" else set()
        if name == would_wait:
            also |= WOULD_WAIT
        if names & {*known, *also}:
            if now.execution is not None:
                why = str(error) if isinstance(error, Refused) else ""
                now.execution.world.record("call", ph="fail", number=number, err=name, why=why)
            return True
    return False
