"""While a program is explored, what reaches past the world fails with an error that names the replacement.

Only code that runs inside a controlled thread is stopped; all other threads, locks and clocks keep working.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.model.execution import inside

INSTEAD: tuple[tuple[Any, str, str], ...] = (
    (threading.Thread, "__init__", "world.spawn(fn)"),
    (threading, "Lock", "world.lock()"),
    (threading, "RLock", "world.lock() (the model has no re-entrant lock)"),
    (threading, "Condition", "world.condition(lock)"),
    (threading, "Semaphore", "world.semaphore(n)"),
    (threading, "BoundedSemaphore", "world.semaphore(n)"),
    (threading, "Event", "world.condition(lock) with a cell"),
    (threading, "Barrier", "world.condition(lock) with a cell"),
    (threading, "Timer", "world.spawn(fn) and world.advance(ticks)"),
    (time, "sleep", "world.advance(ticks), or a wait with a time limit"),
    (time, "time", "world.now()"),
    (time, "time_ns", "world.now()"),
    (time, "monotonic", "world.now()"),
    (time, "monotonic_ns", "world.now()"),
    (time, "perf_counter", "world.now()"),
    (time, "perf_counter_ns", "world.now()"),
)


def _refusing(place: Any, name: str, instead: str, real: Any) -> Callable[..., Any]:
    where = getattr(place, "__name__", str(place))
    what = f"threading.{where}" if isinstance(place, type) else f"{where}.{name}"

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if inside():
            raise OutsideModel(
                f"{what} is outside the model: no schedule controls it. Use {instead} instead"
            )
        return real(*args, **kwargs)

    return refuse


_depth = 0


@contextmanager
def guarded() -> Iterator[None]:
    """Refuse while the body runs. May be nested."""
    global _depth
    _depth += 1
    real = [(place, name, getattr(place, name)) for place, name, _ in INSTEAD]
    if _depth == 1:
        for (place, name, instead), (_, _, thing) in zip(INSTEAD, real, strict=True):
            setattr(place, name, _refusing(place, name, instead, thing))
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            for place, name, thing in real:
                setattr(place, name, thing)
