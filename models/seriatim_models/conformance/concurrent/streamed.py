"""A recording that is on disk as it comes: bounded memory, and kept whatever ends the run."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType

import msgspec

from seriatim_models.history.event import Event
from seriatim_models.history.faults import HistoryError
from seriatim_models.history.header import Header, header_object

FLUSH_BYTES = 2**16
FLUSH_SECONDS = 0.25
"""After so much, or so long, what is recorded is given to the operating system."""


class StreamedRecording:
    """Writes events to a ``.jsonl`` file, from any thread, in the order in which they are recorded.

    A context manager. Each event is stamped while nothing else can be recorded, so `t` never falls while `i` rises.
    """

    def __init__(self, path: Path, header: Header) -> None:
        """Raises `HistoryError` if the file cannot be written."""
        if path.suffix != ".jsonl":
            raise HistoryError(f"{path}: what is written as it comes is .jsonl, nothing else")
        self.path = path
        self.count = 0
        """How many events were recorded."""
        self.connections: dict[str, None] = {}
        """Those that were opened and whose end is not recorded."""
        self._encoder = msgspec.json.Encoder()
        self._lock = threading.Lock()
        self._buffer = bytearray(self._encoder.encode(header_object(header)) + b"\n")
        self._flushed = time.monotonic()
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise HistoryError(f"{path}: cannot be written: {error.strerror}") from error
        self.flush()

    def record(self, ev: str, /, **fields: object) -> int:
        """Record an event of these fields, now; returns its time, in nanoseconds of the monotonic clock.

        Raises `HistoryError` if it cannot be written, on a full disk for instance.
        """
        with self._lock:
            now = time.monotonic_ns()
            # Any field of Event; msgspec does not check on construction
            event = Event(i=self.count, t=now, ev=ev, **{"lvl": "api", **fields})  # type: ignore[arg-type]
            self._buffer += self._encoder.encode(event)
            self._buffer += b"\n"
            self.count += 1
            if ev == "conn_open":
                self.connections[event.conn] = None
            elif ev == "conn_drop" or (ev in ("conn_close", "ch_close") and event.ph == "ok"):
                self.connections.pop(event.conn, None)
            late = now / 1e9 - self._flushed > FLUSH_SECONDS
            if late or len(self._buffer) > FLUSH_BYTES:
                self._flush()
            return now

    def flush(self) -> None:
        """Give everything recorded so far to the operating system. Raises `HistoryError`."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if self._file.closed:  # for threads that a broken system held up
            raise HistoryError(f"{self.path}: the recording has ended")
        try:
            while self._buffer:
                del self._buffer[: self._file.write(self._buffer)]
        except OSError as error:
            raise HistoryError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._flushed = time.monotonic()

    def __enter__(self) -> StreamedRecording:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        try:
            self.flush()
        finally:
            self._file.close()
