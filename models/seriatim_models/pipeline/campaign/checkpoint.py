"""The journal of a campaign: outcomes as they come, a JSON line each; who runs again leaves these items out.

Every process that works writes a file of its own, with one call a line: so lines do not mix, and only the last line of
a file can be cut off, by a kill.
"""

from __future__ import annotations

import functools
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from seriatim_models.pipeline.campaign.items import Outcome

VERSION = "2"  # of the lines; files of another one are not read


class Journal:
    """Reads what was not read before."""

    def __init__(self, folder: Path) -> None:
        self._folder = place(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._read: dict[Path, int] = {}

    def news(self) -> Iterator[Outcome]:
        """The outcomes that came since the last time. A line that is not whole is left for later."""
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
                try:
                    yield msgspec.json.decode(line, type=Outcome)
                except msgspec.DecodeError:
                    continue


def place(folder: Path) -> Path:
    """Where a campaign's folder has its journal."""
    return folder / "journal"


def write(file: BinaryIO, outcome: Outcome) -> None:
    """A line more."""
    file.write(msgspec.json.encode(outcome) + b"\n")


def opened(folder: Path) -> BinaryIO:
    """This process's file, which goes on where its last batch ended, or on a new line if it was cut off there."""
    file = (place(folder) / _name(os.getpid())).open("a+b", buffering=0)
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")
    return file


@functools.cache
def _name(process: int) -> str:
    return f"{VERSION}-{uuid.uuid4().hex}.jsonl"
