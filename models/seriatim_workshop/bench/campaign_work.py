"""What the items of the campaign's benchmark do: nothing but keep a processor busy.

A module of its own, so that the executors can import it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from seriatim_models.pipeline.campaign.items import ItemResult, SearchItem


def busy(seconds: float) -> None:
    """Use so much processor time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def busy_item(item: SearchItem, reached: Callable[[int], None]) -> ItemResult:
    """An item that uses `item.seconds` of processor time (`items.Work`)."""
    busy(item.seconds or 0.0)
    return ItemResult(id=item.id, item=item, verdict="ok")
