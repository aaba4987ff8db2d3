"""The checkpoint log of a campaign: results as they come, a JSON line with a checksum each. A campaign that resumes
leaves them out.

Every process that works writes a file of its own, with one call a line: so lines do not mix, and only the last line of
a file can be cut off, by a kill.
"""

from __future__ import annotations

import functools
import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from seriatim_models.files import BadFile, sealed, unsealed
from seriatim_models.pipeline.campaign.items import ItemResult

VERSION = "5"  # of the lines; files of another one are not read


class CheckpointLog:
    """Reads a folder's checkpoint log, each line once."""

    def __init__(self, folder: Path) -> None:
        self._folder = log_folder(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._read: dict[Path, int] = {}

    def new_results(self) -> Iterator[ItemResult]:
        """The results that came since the last call. A line that is not whole is left for later."""
        for path in sorted(self._folder.glob(f"{VERSION}-*.jsonl")):
            begin = self._read.get(path, 0)
            if path.stat().st_size <= begin:
                continue
            with path.open("rb") as file:
                file.seek(begin)
                fresh = file.read()
            whole = fresh.rfind(b"\n") + 1
            self._read[path] = begin + whole
            for line in fresh[:whole].split(b"\n"):
                with suppress(BadFile):  # a damaged line's item is done again
                    yield unsealed(line, ItemResult, str(path))


def log_folder(folder: Path) -> Path:
    """Where a campaign's folder has its checkpoint log."""
    return folder / "checkpoint"


def append(file: BinaryIO, result: ItemResult) -> None:
    """Append the line of a result."""
    file.write(sealed(result))


def open_log(folder: Path) -> BinaryIO:
    """This process's file, at its end: on a new line, even if the last one was cut off."""
    file = (log_folder(folder) / _name(os.getpid())).open("a+b", buffering=0)
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")
    return file


@functools.cache
def _name(process: int) -> str:
    return f"{VERSION}-{uuid.uuid4().hex}.jsonl"
