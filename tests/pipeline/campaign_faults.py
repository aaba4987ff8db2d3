"""Items that hang, die or take all memory: a campaign is given this work instead of searches.

The item's field `program` says what it does. Executors get this file by `addPyFile`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from seriatim_models.pipeline.campaign.items import Bug, ItemResult, SearchItem

KEPT: list[bytearray] = []


def work(item: SearchItem, reached: Callable[[int], None]) -> ItemResult:
    """Do what the item's program says, or a search where it names a program.

    ``hang``, ``die``, ``eat``, ``raise``, ``keep`` so many MiB, get a ``signal``, say ``who`` does it, and after
    seconds of processor time ``work`` (which is ok) or ``find`` (which is a bug).
    """
    what, _, amount = item.program.partition(" ")
    out = ItemResult(id=item.id, item=item, verdict="ok")
    match what:
        case "hang":
            time.sleep(3600)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "eat":
            eaten = []
            while True:
                eaten.append(bytearray(2**24))
        case "raise":
            raise ValueError(amount)
        case "keep":
            KEPT.append(bytearray(int(amount) << 20))
        case "signal":
            os.kill(os.getpid(), int(amount))
        case "who":
            out.why = str(os.getpid())
        case "work" | "find":
            until = time.process_time() + float(amount)
            while time.process_time() < until:
                pass
            if what == "find":
                out.verdict, out.bugs = "violated", [Bug("P1", "P1", "")]
        case _:
            from seriatim_models.pipeline.campaign.subtree import run_item

            return run_item(item, reached)
    return out
