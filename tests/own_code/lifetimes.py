"""Small programs that see when their objects die: see test_lifetimes."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any


def run(*bodies: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Node:
    other: Any = None


class Counted:
    live = 0

    def __init__(self) -> None:
        Counted.live += 1

    def __del__(self) -> None:
        Counted.live -= 1


class Logged:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append("gone")


def wrong_looks_twice() -> None:
    nodes, seen = [Node()], list[object]()
    reference = weakref.ref(nodes[0])

    def look() -> None:
        if reference() is not None:
            seen.append(reference())

    run(look, nodes.clear)
    assert None not in seen


def right_looks_once() -> None:
    nodes, seen = [Node()], list[object]()
    reference = weakref.ref(nodes[0])

    def look() -> None:
        node = reference()
        if node is not None:
            seen.append(node)

    run(look, nodes.clear)
    assert None not in seen


def right_is_dead() -> None:
    node = Node()
    reference = weakref.ref(node)
    run(lambda: None)
    del node
    assert reference() is None


def right_dies_with_what_held_it() -> None:
    node = Node()
    reference, box = weakref.ref(node), {"nodes": [node]}
    del node
    run(box.clear)
    assert reference() is None


def right_is_held_elsewhere() -> None:
    node, seen = Node(), list[object]()
    nodes, reference = [node], weakref.ref(node)
    run(lambda: seen.append(reference()), nodes.clear)
    assert seen == [node]


def wrong_is_found_though_another_lets_go() -> None:
    box, seen = {"nodes": [Node()]}, list[object]()
    reference = weakref.ref(box["nodes"][0])
    run(lambda: seen.append(reference()), box.clear)
    assert seen[0] is not None


def wrong_attribute_is_replaced() -> None:
    node, seen = Node(), list[object]()
    node.other = Node()
    reference = weakref.ref(node.other)

    def replace() -> None:
        node.other = None

    run(lambda: seen.append(reference()), replace)
    assert seen[0] is not None


def wrong_local_variable_ends() -> None:
    references, seen = list[Any](), list[object]()

    def make() -> None:
        node = Node()
        references.append(weakref.ref(node))

    def look() -> None:
        if references:
            seen.append(references[0]())

    run(make, look)
    assert not seen or seen[0] is None


def wrong_value_disappears_between_two_lookups() -> None:
    known: Any = weakref.WeakValueDictionary()
    nodes, errors = [Node()], list[KeyError]()
    known["node"] = nodes[0]

    def look() -> None:
        if "node" in known:
            try:
                known["node"]
            except KeyError as error:
                errors.append(error)

    run(look, nodes.clear)
    assert not errors


def right_weak_set_is_empty_in_the_end() -> None:
    known: Any = weakref.WeakSet()
    run(lambda: known.add(Node()))
    assert len(known) == 0


def right_arguments_of_a_thread_that_has_ended() -> None:
    node = Node()
    reference = weakref.ref(node)
    thread = threading.Thread(target=lambda given: None, args=(node,))
    del node
    thread.start()
    thread.join()
    assert reference() is None


def right_callback() -> None:
    called = []

    def body() -> None:
        node: Node | None = Node()
        reference = weakref.ref(node, lambda _: called.append("died"))
        node = None
        called.append("after" if reference() is None else "alive")

    run(body)
    assert called == ["died", "after"]


def right_finalizers() -> None:
    called: list[int] = []

    def body() -> None:
        node = Node()
        weakref.finalize(node, called.append, 1)

    run(body, body)
    assert called == [1, 1]


def right_finalizer_is_detached() -> None:
    called: list[int] = []

    def body() -> None:
        node = Node()
        weakref.finalize(node, called.append, 1).detach()

    run(body)
    assert called == []


def right_del_is_called() -> None:
    log: list[str] = []

    def body() -> None:
        logged = Logged(log)
        del logged
        log.append("after")

    run(body)
    assert log == ["gone", "after"]


def wrong_del_races() -> None:
    def body() -> None:
        Counted()

    run(body, body)
    assert Counted.live == 0


def right_del_under_a_lock() -> None:
    lock = threading.Lock()

    def body() -> None:
        with lock:
            Counted()

    run(body, body)
    assert Counted.live == 0


class Own(weakref.ref):  # type: ignore[type-arg]
    pass


def right_class_of_references() -> None:
    node = Node()
    reference = Own(node)
    run(lambda: reference())
    assert isinstance(reference, weakref.ref)
    assert reference() is node


def withheld_proxy() -> None:
    node = Node()
    node.other = 0
    proxy = weakref.proxy(node)
    run(lambda: proxy.other, lambda: None)


def refused_collection() -> None:
    node = Node()
    reference = weakref.ref(node)
    gc.collect()
    run(lambda: reference())


MANY = 200


def right_many_objects_beside_a_generator() -> None:
    objects = [Node() for _ in range(MANY)]
    lock, log = threading.Lock(), list[str]()

    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    def look() -> None:
        with lock:
            for node in objects:
                assert node.other is None
            next(numbers())

    run(look, look)
    assert log == ["closed"] * 2


def wrong_finalizer_of_c() -> None:
    log, nodes = list[str](), [Node()]
    weakref.finalize(nodes[0], log.append, "dead")
    run(nodes.clear, lambda: log.append("seen"))
    assert log == ["dead", "seen"]


def wrong_callback_of_c() -> None:
    log, nodes = list[Any](), [Node()]
    reference = weakref.ref(nodes[0], log.append)
    run(nodes.clear, lambda: log.append("seen"))
    assert log == [reference, "seen"]


def wrong_finalizer_is_called_by_who_comes_first() -> None:
    callers, nodes = list[str](), [Node()]
    finalizer = weakref.finalize(nodes[0], lambda: callers.append(threading.current_thread().name))
    threads = [
        threading.Thread(target=nodes.clear, name="death"),
        threading.Thread(target=finalizer, name="call"),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert callers == ["death"]


def wrong_finalizer_is_alive_before_it_runs() -> None:
    nodes, alive = [Node()], list[bool]()
    finalizer = weakref.finalize(nodes[0], int)
    run(nodes.clear, lambda: alive.append(finalizer.alive))
    assert alive == [False]


def right_finalizer_runs_once() -> None:
    called, nodes = list[int](), [Node()]
    finalizer = weakref.finalize(nodes[0], called.append, 1)
    run(nodes.clear, finalizer, finalizer)
    assert called == [1]


class Listener:
    def heard(self) -> int:
        return 1


def wrong_listener_is_dead() -> None:
    listeners = [Listener()]
    methods = [weakref.WeakMethod(listeners[0].heard)]
    run(listeners.clear, lambda: methods[0]()())  # type: ignore[misc]  # it may be None: that is the mistake


def right_listener_is_held() -> None:
    listeners = [Listener()]
    methods = [weakref.WeakMethod(listeners[0].heard)]

    def call() -> None:
        method = methods[0]()
        assert method is None or method() == 1

    run(listeners.clear, call)


class Derived(Counted):
    """Its objects die by the `__del__` of another class."""

    def __init__(self) -> None:
        pass


DERIVED: list[Counted] = []


def wrong_derived_object_dies_early() -> None:
    """The list holds the only reference to an object that nobody has named."""
    Counted.live = 1
    DERIVED[:] = [Derived()]
    run(DERIVED.clear, lambda: seen_alive(Counted.live))


def seen_alive(live: int) -> None:
    assert live == 1
