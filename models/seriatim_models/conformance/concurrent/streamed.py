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

    def __init__(self, path: Path, header: Header, *, part: float = 0.0) -> None:
        """With `part` `path` is a folder, in which a file appears, whole, every so many seconds, for a stream.

        Raises `HistoryError` if the file cannot be written.
        """
        self._part, self._parts = part, 0
        if not part and path.suffix != ".jsonl":
            raise HistoryError(f"{path}: what is written as it comes is .jsonl, nothing else")
        self.path = path
        self.count = 0
        """How many events were recorded."""
        self.connections: dict[str, None] = {}
        """Those that were opened and whose end is not recorded."""
        self._encoder = msgspec.json.Encoder()
        self._lock = threading.Lock()
        self._header = self._encoder.encode(header_object(header)) + b"\n"
        self._buffer = bytearray()
        self._begin()
        self.flush()

    def _begin(self) -> None:
        """Begin a file: the only one, or the next part, under a name that nobody reads."""
        self._buffer += self._header
        self._flushed = self._begun = time.monotonic()
        try:
            if self._part:
                self.path.mkdir(parents=True, exist_ok=True)
                self._name = f"part-{self._parts:06}.jsonl"
                self._parts += 1
            where = self.path / f".{self._name}" if self._part else self.path
            self._file = where.open("wb", buffering=0)
        except OSError as error:
            raise HistoryError(f"{self.path}: cannot be written: {error.strerror}") from error

    def _finish(self) -> None:
        """End the file; a part gets its name only now that it is whole."""
        self._flush()
        self._file.close()
        if self._part:
            (self.path / f".{self._name}").rename(self.path / self._name)

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
            if self._part and now / 1e9 - self._begun > self._part:
                self._finish()
                self._begin()
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
            with self._lock:
                self._finish()
        finally:
            self._file.close()
