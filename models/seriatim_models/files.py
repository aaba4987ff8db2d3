"""Files at the border: what is read as a whole from a path, and what is written there.

Reading: a document is data of a declared type, or there is one sentence that begins with its path, whatever the file
is: missing, unreadable, a folder, a pipe nobody writes to, a device without end, too large, no UTF-8, no JSON, of
other types, nested too deep.

Writing: a file is whole or not there, written beside its place and renamed into it when it is complete. A full disk,
an error, Ctrl-C or SIGTERM leave the file as it was before; after SIGKILL there is besides a hidden file
``.NAME.PID.new``, which nobody reads and which may be deleted.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from zlib import crc32

import msgspec

DOCUMENT_MAX = 2**30
"""Bytes of a document that is read into memory as a whole."""
TEXT_MAX = 2**24
"""Bytes of a text that a person writes: a profile, a description."""
DEEP = "nested too deep"
"""What is wrong with a document for which the decoder's stack ends."""

Fingerprint = tuple[int, int]
"""By which a file that changed is known: its length in bytes, and the time of its last change in ns."""
GONE: Fingerprint = (-1, -1)
"""Of a file that is not there."""
CHANGED = "changed while it was read"
STREAM = "is a pipe, a socket or a device, not a file; copy what it gives"
NO_FILE = "what is there is no file; remove it"

T = TypeVar("T")


class BadFile(ValueError):
    """A file that cannot be used as it is: one sentence, which begins with its path."""


Fault = Callable[[str], Exception]
"""The error of whoever asks, made of its sentence."""


def not_text(name: str) -> bool:
    """Whether a name holds bytes that are no UTF-8: it could not stand in JSON, XML or a page."""
    return any("\ud800" <= c <= "\udfff" for c in name)


def text_of(name: str) -> str:
    """A name as the system gave it, with those bytes that are no UTF-8 as ``\\xNN``."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def message_of(error: BaseException) -> str:
    """The text of an exception of somebody else's; a class may have one whose text raises another."""
    try:
        return str(error)
    except Exception as why:
        return f"its text cannot be made: {type(why).__name__}"


def check_file(path: Path, error: Fault = BadFile) -> None:
    """Raise `error` for what is no readable file: reading a pipe waits for ever, reading a device never ends."""
    if not_text(str(path)):
        raise error(f"{text_of(str(path))}: its name is not UTF-8; rename it")
    try:
        found = path.stat()
        # Of what the system makes while it is read, as in /proc: some of that never ends, or waits.
        made = not found.st_size and not os.statvfs(path).f_blocks
    except OSError as why:
        raise error(f"{path}: cannot be read: {why.strerror}") from None
    if stat.S_ISDIR(found.st_mode):
        listed = os.access(path, os.R_OK | os.X_OK)
        raise error(f"{path}: is a folder{', not a file' if listed else ' that cannot be listed'}")
    if made and stat.S_ISREG(found.st_mode):
        raise error(
            f"{path}: is empty, or made by the system while it is read, as in /proc; copy what it gives"
        )
    if not stat.S_ISREG(found.st_mode):
        raise error(f"{path}: {STREAM}")


def open_file(path: Path, error: Fault = BadFile) -> BinaryIO:
    """Open what is a file for reading. Nothing waits, whatever is put in its place meanwhile. Raises `error`."""
    check_file(path, error)
    try:
        file = open(path, "rb", opener=_at_once)  # noqa: SIM115 - the caller closes it
    except OSError as why:  # also of what became a folder
        raise error(f"{path}: cannot be read: {why.strerror}") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise error(f"{path}: {STREAM}")
    return file


def _at_once(path: str, flags: int) -> int:
    """Open without waiting for somebody who writes to a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def fingerprint(path: str | Path) -> Fingerprint:
    """That of the file now; `GONE` if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return GONE
    return found.st_size, found.st_mtime_ns


def read_whole(path: Path, most: int = DOCUMENT_MAX, error: Fault = BadFile) -> bytes:
    """The content of a file. Raises `error`."""
    try:
        with open_file(path, error) as file:
            content = file.read(most + 1)
    except OSError as why:
        raise error(f"{path}: cannot be read: {why.strerror}") from None
    if len(content) > most:
        raise error(f"{path}: longer than {most} bytes")
    return content


def read_text(path: Path, error: Fault = BadFile) -> str:
    """The text in a file. Raises `error`."""
    try:
        return read_whole(path, TEXT_MAX, error).decode()
    except UnicodeDecodeError:
        raise error(f"{path}: cannot be read: not UTF-8") from None


def decoded(content: bytes, type: type[T], fault: str, error: Fault = BadFile) -> T:
    """A JSON document. Raises `error`, which begins with `fault` and says which field is at fault."""
    try:
        return msgspec.json.decode(content, type=type)
    except RecursionError:
        raise error(f"{fault}: {DEEP}") from None
    except (msgspec.MsgspecError, ValueError) as why:  # some bytes are no UTF-8
        raise error(f"{fault}: {why}") from None


def read_document(
    path: Path, type: type[T], fault: str, error: Fault = BadFile, most: int = DOCUMENT_MAX
) -> T:
    """The JSON document in a file; `fault` says what a file without one is. Raises `error`."""
    return decoded(read_whole(path, most, error), type, f"{path}: {fault}", error)


class _Sealed(msgspec.Struct):
    """A line of a file that grows: the checksum of its result, and that."""

    crc32: int
    result: msgspec.Raw


def sealed(result: object) -> bytes:
    """A JSON line that holds a result, with its checksum: a byte that changed may leave it valid JSON."""
    body = msgspec.json.encode(result)
    return msgspec.json.encode(_Sealed(crc32(body), msgspec.Raw(body))) + b"\n"


def unsealed(line: bytes, type: type[T], fault: str, error: Fault = BadFile) -> T:
    """The result in a line that `sealed` made. Raises `error` as `decoded` does, and where the checksum is another."""
    found = decoded(line, _Sealed, fault, error)
    if found.crc32 != crc32(found.result):
        raise error(f"{fault}: its checksum does not fit")
    return decoded(bytes(found.result), type, fault, error)


# Any: plain data and structs
def encoded(value: Any) -> bytes:
    """JSON; half a character, which code of somebody else's may give us and JSON cannot hold, becomes U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def check_place(path: Path) -> None:
    """Raise `OSError` where what is no file lies under a name of ours: to write to a pipe would wait for ever."""
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, NO_FILE, str(path))


def place_within(folder: Path, name: str, error: Fault = BadFile) -> Path:
    """Where a file lies that another file of the folder names. Raises `error` for a name that leads out of the folder:
    by itself, or by a link, which somebody may have put there. What is no file at all is left to `check_place`.
    """
    parts = name.split("/")
    path = folder
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in name:
        raise error(f"{folder}: {name!r} is named as a file of this folder, and is none")
    for n, part in enumerate(parts, 1):
        path /= part
        if path.is_symlink() and (n < len(parts) or path.is_file()):
            raise error(f"{path}: is a link, and no file of ours")
    return path


def own_folders(folder: Path, pattern: str) -> Iterator[Path]:
    """The folders of ours in a folder whose names match; what is no folder, or a link to one, is not ours."""
    for path in folder.glob(pattern):
        if path.is_dir() and not path.is_symlink():
            yield path


@contextmanager
def whole_file(path: Path, ours: bool = False) -> Iterator[Path]:
    """The path to write to; it becomes `path` when the context is left without an exception.

    What is no file (a device, a pipe) and a file in a folder that takes no new ones are written in place; where the
    name is `ours`, and nobody asked for a pipe, what is no file is refused. Raises `OSError`.
    """
    if ours:
        check_place(path)
    place = Path(
        os.path.realpath(path)
    )  # a link stays a link; `resolve` raises for a link to itself
    if (place.exists() and not place.is_file()) or not os.access(place.parent, os.W_OK):
        yield path
        return
    draft = place.with_name(f".{place.name[:200]}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    # A new file: where others may write, too, a link of that name would lead to another one.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield draft
        with draft.open("rb+") as written:
            os.fsync(written.fileno())
        if place.exists():
            draft.chmod(place.stat().st_mode & 0o777)
        draft.replace(place)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes, ours: bool = False) -> None:
    """Put a file in place at once, as `whole_file` does. Raises `OSError`."""
    with whole_file(path, ours) as draft:
        draft.write_bytes(content)
