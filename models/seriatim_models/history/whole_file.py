"""Files that are whole or not there: written beside their place, and renamed into it when they are complete.

One helper for whatever a command leaves. A full disk, an error, Ctrl-C or SIGTERM leave the file as it was before;
after SIGKILL there is besides a hidden file ``.NAME.PID.new``, which nobody reads and which may be deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """The path to write to; it becomes `path` when the context is left without an exception.

    What is no file (a device, a pipe) and a file in a folder that takes no new ones are written in place.
    Raises `OSError`.
    """
    place = path.resolve()  # a link stays a link
    if (place.exists() and not place.is_file()) or not os.access(place.parent, os.W_OK):
        yield path
        return
    draft = place.with_name(f".{place.name[:200]}.{os.getpid()}.new")
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


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in place at once. Raises `OSError`."""
    with whole_file(path) as draft:
        draft.write_bytes(content)
