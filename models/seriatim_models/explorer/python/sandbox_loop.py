"""The event loop of explored programs; the sandbox executes this file in the place of ``asyncio.unix_events``.

Almost all of it is `asyncio.base_events.BaseEventLoop` of the interpreter that runs. What is here takes the place of
the selector (see `event_loop.Timers`) and refuses sockets, processes and signals.
"""

from __future__ import annotations

from asyncio import base_events, events
from typing import Any

from seriatim_models.explorer.python import asyncio_state
from seriatim_models.explorer.python.event_loop import Timers

__all__ = ("DefaultEventLoopPolicy", "EventLoop", "SelectorEventLoop")


class SelectorEventLoop(base_events.BaseEventLoop):
    """A loop without sockets: it waits for timers and for other threads."""

    def __init__(self) -> None:
        super().__init__()
        self._timers = Timers(self)
        self._selector = self
        self._asyncgens = asyncio_state.AsyncGenerators()
        self.set_debug(False)
        asyncio_state.began(self)

    def _run_once(self) -> None:
        super()._run_once()  # type: ignore[misc]  # it has no type, and is there in all versions
        if self._stopping:  # type: ignore[attr-defined]
            self.select(0)

    def select(self, timeout: float | None) -> tuple[()]:
        """Run the timers that end here; while nothing else is to be done, wait for one, or for another thread."""
        timers = self._timers
        due = timers.due()
        handle = timers.ends(timeout is None and not due)
        while handle is not None:
            handle._scheduled = False
            handle._run()
            handle = timers.ends(False)
        for handle in due:
            handle._scheduled = False
            self._ready.append(handle)  # type: ignore[attr-defined]
        timers.turn += 1
        return ()

    def when_at_rest(self, callback: Any) -> None:
        """Call `callback` once when no task can go on any more; a loop beside other threads is never known to be so."""
        self._timers.at_rest = events.TimerHandle(0, callback, (), self)

    def _process_events(self, event_list: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        if not asyncio_state.runs_here(self):
            self._timers.wake()

    def call_at(  # type: ignore[override]  # its callbacks have types that are not needed here
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        """A timer."""
        if when is None:
            raise TypeError("when cannot be None")
        self._check_closed()  # type: ignore[attr-defined]
        asyncio_state.same_thread(self)
        handle: Any = events.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True
        self._timers.add(handle)
        return handle

    def _timer_handle_cancelled(self, handle: Any) -> None:
        self._timers.cancelled(handle)

    def shutdown_asyncgens(self) -> Any:
        """End the asynchronous generators that are left; no coroutine is made where nobody would await it."""
        asyncio_state.still_runs()
        return self._shutdown_asyncgens()

    async def _shutdown_asyncgens(self) -> None:
        asyncio_state.left_open(self._asyncgens)
        await super().shutdown_asyncgens()

    def shutdown_default_executor(self, timeout: float | None = None) -> Any:
        """Wait for the threads of the executor; the five minutes that `asyncio.run` gives them are not over."""
        asyncio_state.still_runs()
        return super().shutdown_default_executor()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """As in asyncio; what ends an execution, and what comes of that, is none of its business."""
        asyncio_state.still_runs()
        asyncio_state.pass_on(context.get("exception"))
        super().call_exception_handler(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """An exception that nobody handles is a violation."""
        asyncio_state.unhandled(context)


EventLoop = SelectorEventLoop


class DefaultEventLoopPolicy(
    getattr(events, "BaseDefaultEventLoopPolicy", None) or events._BaseDefaultEventLoopPolicy  # type: ignore[misc]
):
    """The policy that makes such loops."""

    _loop_factory = SelectorEventLoop


_DefaultEventLoopPolicy = DefaultEventLoopPolicy
