"""The example of the first page: two threads count, and one of them is not counted."""

import threading


class Counter:
    def __init__(self):
        self.value = 0

    def increment(self):
        self.value += 1


def test_counter():
    counter = Counter()
    threads = [threading.Thread(target=counter.increment) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2
