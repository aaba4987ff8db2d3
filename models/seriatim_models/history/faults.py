"""What can be wrong with recorded input, and how it is reported.

A fault of one line costs that line: it is `Rejected`, with where it stood and why, and counted.
A fault of the whole file (not there, not a history, cut off, another schema) is a `HistoryError`: one sentence that
names the file and, where there is one, the line and the field. The command line turns it into exit code 2.
"""

from __future__ import annotations

import msgspec

TEXT_MAX = 200  # characters of a rejected line that are kept: enough to recognise it, bounded for a million bad lines
REASON_MAX = 300  # characters of a reason, which may quote what the line says


class HistoryError(ValueError):
    """The file cannot be read as a history."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """One line that was left out.

    `line` counts from 1, `offset` is that of the line's first byte in the decompressed text.
    `duplicate` says that the same index had been read before, so nothing was lost;
    every other rejected line is a gap in what the history knows.
    """

    source: str
    line: int
    offset: int
    reason: str
    text: str
    duplicate: bool = False


def bounded(reason: str) -> str:
    """A reason that is not longer than `REASON_MAX`: the line may be 16 MB, and the reason may quote it."""
    return reason if len(reason) <= REASON_MAX else reason[: REASON_MAX - 3] + "..."


def excerpt(raw: bytes) -> str:
    """The start of a line as text that can be shown."""
    return raw[: TEXT_MAX * 4].decode("utf-8", "replace")[:TEXT_MAX]
