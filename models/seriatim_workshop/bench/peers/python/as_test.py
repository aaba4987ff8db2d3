"""The programs of `plain` as a test with threads, which the explorer runs anew in each execution."""

from __future__ import annotations

import threading

from plain import MISTAKES, SPEED  # type: ignore[import-not-found]  # lies beside


def run(program: str) -> None:
    """Run one program by its name, and ask what must hold at the end."""
    which = (MISTAKES | SPEED)[program]
    state = which.setup()
    threads = [threading.Thread(target=worker, args=(state,)) for worker in which.workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert which.holds(state)
