"""States on disk, between two runs of the pipeline: data and nothing else, whoever wrote the file.

    {"schema": "seriatim-state/5", "kind": "run", "bytes": 51234, "sha256": "..."}
    <zstd of so many bytes of msgpack, decoded by the type that the caller names; the checksum is that of the zstd>

The checksum finds damage. It does not keep anybody from writing a state of his own, who may write into the folder;
such a state can be wrong, but nothing in it is code.
"""

from __future__ import annotations

import hashlib
from collections import deque
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import pyarrow as pa

from seriatim_models.files import check_place, read_whole
from seriatim_models.files import decoded as decoded_json
from seriatim_models.pipeline.errors import PipelineError

SCHEMA = "seriatim-state/5"
"""To be raised with any change of a type that a state is made of: see `run_state` and `ingest`."""

UNPACKED, TIMES = 2**28, 1000
"""Bytes that any part of a state may have, and how many times its packed size a larger one."""

T = TypeVar("T")


class _Head(msgspec.Struct):
    """The first line of a state."""

    schema: str
    kind: str
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


def write_state(path: Path, kind: str, value: object) -> None:
    """Write a value as a state of that kind. Raises `OSError`."""
    check_place(path)
    body = encoded(value)
    small = pa.compress(body, codec="zstd", asbytes=True)
    head = _Head(SCHEMA, kind, len(body), hashlib.sha256(small).hexdigest())
    path.write_bytes(msgspec.json.encode(head) + b"\n" + small)


def read_state(path: Path, kind: str, type: type[T], remedy: str) -> T:
    """The value of a state of that kind. `remedy` says what to do about one that cannot be used.

    Raises `PipelineError`, one sentence with the file and the remedy, for one that is damaged, of another version, or
    no state at all.
    """

    def refused(why: str) -> PipelineError:
        return PipelineError(f"{why}; {remedy}")

    line, _, small = read_whole(path, error=refused).partition(b"\n")
    head = decoded_json(line, _Head, f"{path}: is no state of this version of seriatim", refused)
    if (head.schema, head.kind) != (SCHEMA, kind):
        raise PipelineError(
            f"{path}: is a state {head.schema!r} of kind {head.kind!r}, not {SCHEMA!r} of kind {kind!r}; {remedy}"
        )
    if head.sha256 != hashlib.sha256(small).hexdigest():
        raise PipelineError(f"{path}: is damaged, its checksum does not fit; {remedy}")
    body = unpacked(path, small, head.bytes, remedy)
    return decoded(path, body, type, remedy)


def unpacked(path: Path, small: bytes, size: int, remedy: str) -> bytes:
    """A part of a state that was packed with zstd to be `size` bytes. Raises `PipelineError` as `read_state` does."""
    if size > max(UNPACKED, TIMES * len(small)):
        raise PipelineError(f"{path}: {len(small):,} packed bytes become {size:,}; {remedy}")
    try:
        return bytes(pa.decompress(small, decompressed_size=size, codec="zstd", asbytes=True))
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise PipelineError(
            f"{path}: is not what this version writes ({error}); {remedy}"
        ) from None


def encoded(value: object) -> bytes:
    """A part of a state that is encoded by itself; `decoded` is the inverse."""
    return msgspec.msgpack.encode(value, enc_hook=_plain)


def decoded(path: Path, body: bytes, type: type[T], remedy: str) -> T:
    """A value from a part of a state that was encoded by itself. Raises `PipelineError` as `read_state` does."""
    try:
        return msgspec.msgpack.decode(body, type=type, dec_hook=_typed)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PipelineError(
            f"{path}: is not what this version writes ({error}); {remedy}"
        ) from None


# Any: what msgspec hands to its hooks
def _plain(value: Any) -> Any:
    """A queue of two ends as a list; all else has a type that msgspec knows."""
    if isinstance(value, deque):
        return list(value)
    raise NotImplementedError(f"a state cannot hold a {value.__class__.__name__}")


def _typed(type: Any, value: Any) -> Any:
    """The inverse of `_plain`."""
    if type is object:  # what an event's arguments and a settlement's fields may be
        return value
    if getattr(type, "__origin__", None) is deque:
        return deque(msgspec.convert(value, list[type.__args__[0]]))
    raise NotImplementedError(f"a state cannot hold a {type!r}")
