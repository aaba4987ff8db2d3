"""The lines of a file, plain or compressed, each with its number and byte offset.

The compression is known by the first bytes, not by the name.
A compressed file that ends too early, whose bytes do not fit its checksum, or that unpacks to far more than a recording
does (`TIMES`), raises `HistoryError` after the lines before the fault have been given.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from seriatim_models.extras import how_to_install
from seriatim_models.files import open_file
from seriatim_models.history.faults import HistoryError

LINE_MAX = (
    16 * 2**20
)  # bytes; a longer "line" is a binary file, and must not be held in memory whole
UNPACKED, LINES = 256 * 2**20, 10**6
TIMES, LINES_A_BYTE = 200, 4
"""A packed file may unpack to `UNPACKED` bytes and `LINES` lines, or in proportion to its size if that is more: to
`TIMES` as many bytes, and `LINES_A_BYTE`. Recordings are packed to a tenth or a fiftieth, a line of numbers that only
count up to a third of a byte; what a thousandth stands for takes minutes to read, and nobody recorded it."""
_BLOCK = 2**18
_FED = 2**9
"""Bytes of zstd decompressed at a time. All that comes of them is held, and four may stand for a block of 128 KiB:
so that is as much as `LINE_MAX`."""
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"
"""The mark of UTF-8 that some editors and shells put before the first line."""
_UNREAD = {
    b"BZh": "packed by bzip2", b"\xfd7zX": "packed by xz", b"\x04\x22\x4d\x18": "packed by lz4",
    b"PK\x03\x04": "a zip archive", b"7z\xbc\xaf": "a 7-Zip archive",
    b"\xff\xfe": "text in UTF-16", b"\xfe\xff": "text in UTF-16",
}  # fmt: skip
PACKED_OTHERWISE = tuple(f".jsonl.{suffix}" for suffix in ("bz2", "xz", "lz4", "zip", "7z"))
"""Names of histories that are not read, and must be named where a folder holds them."""
DAMAGE = (OSError, EOFError, zlib.error)
"""What reading a file may raise: the system, or what decompresses it (`_Zstd` raises what zlib does)."""


class Line(NamedTuple):
    """`number` counts from 1; `raw` has no line end; `raw` of a line longer than `LINE_MAX` is cut to that."""

    number: int
    offset: int
    raw: bytes


class _Zstd(io.RawIOBase):
    """Frames one after another. The library's own reader takes a frame that was cut off for the end of the file."""

    def __init__(self, file: BinaryIO) -> None:
        import zstandard  # an extra

        self._file = file
        self._fault = zstandard.ZstdError
        self._begin = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._begin()
        self._ready = b""
        self._begun = False

    def readable(self) -> bool:
        return True

    # Any: the buffer protocol has no name in the type system of this Python version
    def readinto(self, into: object) -> int:
        view = memoryview(into)  # type: ignore[arg-type]  # see above
        while not self._ready:
            block = self._frame.unused_data if self._frame.eof else self._file.read(_FED)
            if self._frame.eof:
                block = block or self._file.read(_FED)
                self._frame = self._begin()
                self._begun = False
            if not block:
                if self._begun:
                    raise EOFError(
                        "compressed file ended before the end-of-frame marker was reached"
                    )
                return 0
            self._begun = True
            try:
                self._ready = self._frame.decompress(block)
            except self._fault as error:
                raise zlib.error(str(error)) from error
        n = min(len(view), len(self._ready))
        view[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n


def first_bytes(path: Path) -> bytes:
    """The first four bytes, by which formats are distinguished."""
    with open_file(path, HistoryError) as file:
        try:
            return file.read(4)
        except OSError as error:
            raise HistoryError(f"{path}: cannot be read: {error.strerror}") from error


def check_format(path: Path) -> None:
    """Raise `HistoryError` for a file that is no history by its first bytes, and say what it is."""
    first = first_bytes(path)
    for magic, what in _UNREAD.items():
        if first.startswith(magic):
            raise HistoryError(
                f"{path}: is {what}; read are JSON lines in UTF-8 (plain, gzip, zstd) and Parquet"
            )


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase | BinaryIO]:
    """The file's text as bytes, decompressed. Raises `DAMAGE`, and `HistoryError` where it cannot be opened."""
    magic = first_bytes(path)
    with open_file(path, HistoryError) as file:
        if magic.startswith(_GZIP):
            yield gzip.GzipFile(fileobj=file)
        elif magic == _ZSTD:
            try:
                unpacked = _Zstd(file)
            except ModuleNotFoundError as missing:
                raise HistoryError(how_to_install("zstandard", f"{path}: zstd")) from missing
            yield io.BufferedReader(unpacked, _BLOCK)
        else:
            yield file


def room(path: Path, text: io.BufferedIOBase | BinaryIO) -> tuple[int, int, int]:
    """Of an `opened` file that is packed its size, and how many bytes and lines it may come to; else more than any."""
    packed = not isinstance(text, io.BufferedReader) or isinstance(text.raw, _Zstd)
    most = path.stat().st_size if packed else sys.maxsize
    return most, max(UNPACKED, TIMES * most), max(LINES, LINES_A_BYTE * most)


def lines(path: Path) -> Iterator[Line]:
    """Every line of the file, empty ones included; the first without a mark of UTF-8 before it."""
    number = offset = 0
    try:
        with opened(path) as text:
            most, limit, last = room(path, text)
            while raw := text.readline(LINE_MAX):
                number += 1
                start, size = offset, len(raw)
                tail = raw
                while size >= LINE_MAX and not tail.endswith(b"\n"):
                    tail = text.readline(LINE_MAX)
                    if not tail:
                        break
                    size += len(tail)
                    if offset + size > limit:
                        break
                offset += size
                if offset > limit or number > last:
                    raise HistoryError(
                        f"{path}: line {number}: {most:,} packed bytes become more than "
                        + (f"{last:,} lines" if number > last else f"{limit:,} bytes")
                        + "; if it is a recording all the same, unpack it first"
                    )
                if number == 1:
                    raw = raw.removeprefix(_BOM)
                yield Line(number, start, raw.rstrip(b"\r\n"))
    except (gzip.BadGzipFile, zlib.error) as error:
        raise HistoryError(
            f"{path}: line {number + 1}: the compressed file is damaged: {error}"
        ) from error
    except OSError as error:
        raise HistoryError(
            f"{path}: line {number + 1}: cannot be read: {error.strerror or error}"
        ) from error
    except EOFError as error:
        raise HistoryError(f"{path}: line {number + 1}: the compressed file is cut off") from error
