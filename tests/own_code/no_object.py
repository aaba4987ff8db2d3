"""A program with a class whose objects would show when they die, and no object of it: see test_lifetimes."""

from __future__ import annotations

import threading


class Closed:
    def __del__(self) -> None:
        self.over = True


def right_lists_beside_a_class() -> None:
    lock = threading.Lock()
    lists = [[number] for number in range(20)]

    def look() -> None:
        with lock:
            assert lists

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
