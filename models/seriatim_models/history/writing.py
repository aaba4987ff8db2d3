"""Writing a history as JSON lines, or Parquet; the suffix of the path decides.

The same events give the same bytes: gzip is written without name and time.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from seriatim_models.extras import how_to_install
from seriatim_models.files import whole_file
from seriatim_models.history.event import Event
from seriatim_models.history.faults import HistoryError
from seriatim_models.history.header import Header, header_object
from seriatim_models.history.unrecorded import missing_kinds

if TYPE_CHECKING:
    from zstandard import ZstdCompressionWriter


def write_history(path: str | Path, events: Iterable[Event], header: Header | None = None) -> int:
    """Write `events` in the order given; returns how many. Raises `HistoryError` if the file cannot be written.

    It is whole or not there, see `whole_file`. What stands beside events whose recorder never writes some kinds is not
    written: the header declares it (`unrecorded`).
    """
    path = Path(path)
    header = header or Header()
    events = (event for event in events if not missing_kinds(event))
    try:
        if path.suffix.lower() == ".parquet":
            from seriatim_models.history import table

            with whole_file(path) as draft:
                return table.write_events(draft, events, header)
        with whole_file(path) as draft, draft.open("wb") as file:
            if path.suffix.lower() == ".gz":
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                    return _write(packed, events, header)
            if path.suffix.lower() == ".zst":
                with _zstd(path, file) as packed_zstd:
                    return _write(packed_zstd, events, header)
            return _write(file, events, header)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be written: {error.strerror}") from error


def _zstd(path: Path, file: BinaryIO) -> ZstdCompressionWriter:
    try:
        import zstandard  # an extra
    except ModuleNotFoundError as missing:
        raise HistoryError(how_to_install("zstandard", f"{path}: zstd")) from missing
    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)


def _write(
    file: BinaryIO | gzip.GzipFile | ZstdCompressionWriter,
    events: Iterable[Event],
    header: Header,
) -> int:
    encoder = msgspec.json.Encoder()
    n = 0
    file.write(encoder.encode(header_object(header)) + b"\n")
    buffer = io.BytesIO()
    for event in events:
        buffer.write(encoder.encode(event) + b"\n")
        n += 1
        if buffer.tell() > 2**16:
            file.write(buffer.getvalue())
            buffer.seek(0)
            buffer.truncate()
    file.write(buffer.getvalue())
    return n
