"""A program that makes its first weak reference after it has made many objects: see test_lifetimes."""

from __future__ import annotations

import threading
import weakref
from typing import Any

MANY = 200


class Node:
    other: Any = None


def right_many_objects_before_a_reference() -> None:
    """What dies before the first weak reference is made nobody sees."""
    lock = threading.Lock()
    nodes = [Node() for _ in range(MANY)]
    for node in nodes:
        node.other = Node()
        node.other = None
    del node
    reference = weakref.ref(nodes[0])
    nodes[1:] = []

    def look() -> None:
        with lock:
            assert reference() is nodes[0]

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    nodes.clear()
    assert reference() is None
