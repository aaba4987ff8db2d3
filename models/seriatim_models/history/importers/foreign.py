"""Which importer reads a file of another format, by its beginning or its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from seriatim_models.history.event import Event
from seriatim_models.history.importers import jepsen, otel
from seriatim_models.history.lines import Line


class Importer(Protocol):
    """Reads the lines of one file."""

    def read(self, rows: Iterable[Line]) -> Iterator[tuple[Line, list[Event] | str]]:
        """Each line with its events (none, one or several), or in words why it has none."""
        ...


def foreign(first: bytes, name: str) -> tuple[Importer, dict[str, Any]] | None:
    """The importer for a file that begins with this line and is called so, and the header it gives; or None."""
    if otel.fits(first, name):
        return otel.OtelImporter(), otel.header()
    if jepsen.fits(first, name):
        return jepsen.JepsenImporter(), jepsen.header()
    return None
