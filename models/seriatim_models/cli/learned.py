"""Which exercises were answered rightly on this machine: a small file in the user's own folder of states."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from seriatim_models.files import BadFile, read_document, write_whole


def file() -> Path:
    """Where it lies: below XDG_STATE_HOME, or where that is when it is not set."""
    states = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(states) / "seriatim" / "lessons.json"


def names() -> set[str]:
    """The names of the chapters; none if the file is not there or is none of ours."""
    with contextlib.suppress(OSError, RuntimeError, BadFile):
        return read_document(file(), set[str], "holds no names")
    return set()


def add(name: str) -> None:
    """Keep that a chapter's exercise is right; where nothing can be written, nothing is kept."""
    with contextlib.suppress(OSError, RuntimeError):
        file().parent.mkdir(parents=True, exist_ok=True)
        write_whole(file(), msgspec.json.encode(sorted({*names(), name})), ours=True)
