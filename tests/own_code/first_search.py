"""Programs whose first search in a process makes what the later ones find: run by test_imports in a new interpreter."""

from __future__ import annotations

import copy
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from seriatim_models.explorer.python import check


class Tally:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()


def both(*bodies: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def counts() -> object:
    tally = Tally()

    def add() -> None:
        tally.counts["a"] += 1

    both(add, add)
    return tally.counts["a"]


def copies() -> object:
    known: dict[str, list[int]] = {"a": [1]}
    copied: list[Any] = []
    both(lambda: copied.append(copy.deepcopy(known)), lambda: known["a"].append(2))
    return json.dumps(copied)


def looks_for_a_module() -> object:
    there = "colorsys" in sys.modules
    import colorsys

    seen: list[object] = []
    both(lambda: seen.append(there), lambda: seen.append(colorsys.__name__))
    return sorted(map(str, seen)), "colorsys" in sys.modules


PROGRAMS = {program.__name__: program for program in (counts, copies, looks_for_a_module)}


def twice(name: str, every_access: bool) -> None:
    """Print what the first and the second search find."""
    for _ in range(2):
        result = check(PROGRAMS[name], every_access=every_access, seconds=60)
        print(result.verdict, result.traces, sorted(map(str, result.outcomes)), result.unseen)
