"""The columnar forms that properties declare by name: checks over whole histories, and maps over chunk files.

A form is imported when it is first asked for, since the row-based form of a property needs neither numpy nor pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from seriatim_models.history.event import Event
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.columnar.columns import Columns

if TYPE_CHECKING:  # not installed with every audit
    import pyarrow as pa

EventName = tuple[str, int]
"""Of an event in its run: recorder and index."""

FindEvents = Callable[[Iterable[EventName]], Mapping[EventName, Event]]
"""The recorded events behind some names."""

ColumnCheck = Callable[[Columns], Finding | None]
"""The finding of a property on a regular history, if it can be cleared by columns, with the exact counts of the
row-based form; None if not. Never reports a violation."""


class ColumnMap(NamedTuple):
    """`map` over the columns of a chunk: the property's own summary, in less time.

    The events that such a summary holds have only the fields that `combine` and `finish` decide by.
    """

    columns: tuple[str, ...]
    # Any: the property knows the type of its summary
    map: Callable[[pa.RecordBatch], Any]
    with_witnesses: Callable[[Any, FindEvents], Any]
    """The summary with the recorded events in the place of those that `finish` will show."""
    needs_more: Callable[[pa.RecordBatch], bool]
    """Whether these rows cannot be judged by `columns` alone."""


@cache
def _loaded(name: str) -> Any:  # Any: what the property's class says it is
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def column_check(prop: AnyProperty) -> ColumnCheck | None:
    """The check that a property's own class declares."""
    check: ColumnCheck | None = _loaded(prop.column_check) if prop.own("column_check") else None
    return check


def column_map(prop: AnyProperty) -> ColumnMap | None:
    """The map over chunk files that a property's own class declares."""
    form: ColumnMap | None = _loaded(prop.column_map) if prop.own("column_map") else None
    return form
