"""Plain tests whose one race, mistake or refusal lies in few schedules: of several processes, one comes to it."""

from __future__ import annotations

import pickle
import threading


class Box:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.total = 0
        self.flag = False


def run_beside(box: Box, rare: str) -> list[bool]:
    """Two threads that count to two each, beside one that does something if it sees 1 and then 3."""
    seen = []

    def count() -> None:
        for _ in range(2):
            with box.lock:
                box.total += 1
        seen.append(box.flag)

    def look() -> None:
        with box.lock:
            first = box.total
        with box.lock:
            second = box.total
        if (first, second) != (1, 3):
            return
        if rare == "race":
            box.flag = True
        elif rare == "mistake":
            raise LookupError("seen")
        elif rare == "refusal":
            pickle.dumps(box)

    threads = [threading.Thread(target=body) for body in (look, count, count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def nothing_rare() -> None:
    run_beside(Box(), "")


def a_rare_race() -> None:
    run_beside(Box(), "race")


def a_rare_mistake() -> None:
    run_beside(Box(), "mistake")


def a_rare_refusal() -> None:
    run_beside(Box(), "refusal")
