"""Tests that look at modules while they run: `sys.modules`, lazy modules, finders, classes of the library in Python."""

from __future__ import annotations

import contextlib
import ctypes.util
import dataclasses
import importlib
import importlib.util
import operator
import platform
import queue
import sys
import threading
import types
import typing
import weakref
from dataclasses import dataclass, field


@dataclass
class Point:
    """A data class in a module whose annotations are texts: `dataclasses` looks the module up."""

    x: int = 0
    y: list[int] = field(default_factory=list)
    kind: typing.ClassVar[str] = "point"
    rest: dataclasses.KW_ONLY = None  # type: ignore[assignment]  # as the library wants it


def in_two_threads(first: typing.Callable[[], object], second: typing.Callable[[], object]) -> None:
    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def knows_itself() -> None:
    assert sys.modules[__name__].Point is Point
    assert __spec__ is not None
    assert __spec__.name == __name__
    assert __name__ in list(sys.modules)
    assert importlib.import_module(__name__).Point is Point
    assert typing.get_type_hints(Point)["y"] == list[int]
    assert dataclasses.replace(Point(1), x=2) == Point(2)
    in_two_threads(Point, Point)


class Lazy(types.ModuleType):
    """A module that makes what it is asked for."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        value = [name]
        setattr(self, name, value)
        return value


def puts_another_in_its_place() -> None:
    sys.modules["lazy_of_mine"] = Lazy("lazy_of_mine")
    import lazy_of_mine  # type: ignore[import-not-found]  # made above

    in_two_threads(lambda: lazy_of_mine.a.append(1), lambda: lazy_of_mine.b.append(2))
    assert lazy_of_mine.a == ["a", 1]


class Finder:
    """As six has it: modules that are made by a loader of the program."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> typing.Any:
        return importlib.util.spec_from_loader(name, self) if name == "moved_thing" else None  # type: ignore[arg-type]

    def create_module(self, spec: object) -> types.ModuleType:
        made = types.ModuleType("moved_thing")
        made.__dict__["Queue"] = importlib.import_module("queue").Queue
        return made

    def exec_module(self, module: object) -> None:
        return None


def has_a_finder() -> None:
    sys.meta_path.append(Finder())
    import moved_thing  # type: ignore[import-not-found]  # found by the finder

    q = moved_thing.Queue()
    in_two_threads(lambda: q.put(1), q.get)


def has_a_finder_in_the_place_of_another() -> None:
    """As six has it where one is there already: there are as many finders as before."""
    sys.meta_path[0] = Finder()
    import moved_thing

    q = moved_thing.Queue()
    in_two_threads(lambda: q.put(1), q.get)


class OldFinder:
    """As six had it up to 1.15: interpreters up to 3.11 ask it."""

    def find_module(self, name: str, path: object = None) -> OldFinder | None:
        return self if name == "moved_thing_of_old" else None

    def load_module(self, name: str) -> types.ModuleType:
        made = sys.modules[name] = types.ModuleType(name)
        made.__dict__["Queue"] = queue.Queue
        return made


def has_a_finder_of_old() -> None:
    sys.meta_path.append(OldFinder())  # type: ignore[arg-type]  # it has no find_spec
    import moved_thing_of_old  # type: ignore[import-not-found]  # found by the finder

    assert sys.modules["moved_thing_of_old"] is moved_thing_of_old
    q = moved_thing_of_old.Queue()
    in_two_threads(lambda: q.put(1), q.get)


def sees_its_caller() -> None:
    assert sys._getframe().f_code.co_name == "sees_its_caller"
    assert caller() == "sees_its_caller"
    in_two_threads(caller, caller)


def caller() -> str:
    return sys._getframe(1).f_code.co_name


def gets_by_name() -> None:
    """The lost increment is seen through `attrgetter`, too."""
    point = Point()
    value = operator.attrgetter("x")

    def increment() -> None:
        point.x = value(point) + 1

    in_two_threads(increment, increment)
    assert point.x == 2


def finalizes() -> None:
    point = Point()
    done: list[int] = []
    finalizer = weakref.finalize(point, done.append, 1)
    in_two_threads(finalizer, lambda: None)
    assert done == [1]
    assert not finalizer.alive


class OwnLock:
    """A lock that is none of `threading`, though it is made of one."""

    def __init__(self) -> None:
        self.inner = threading.Lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        return self.inner.acquire(blocking, timeout)

    def release(self) -> None:
        self.inner.release()

    def locked(self) -> bool:
        return self.inner.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


def waits_over_its_own_lock() -> None:
    point, condition = Point(), threading.Condition(OwnLock())  # type: ignore[arg-type]

    def wait() -> None:
        with condition:
            while not point.x:
                condition.wait()

    def set_it() -> None:
        with condition:
            point.x = 1
            condition.notify()

    in_two_threads(wait, set_it)


def waits_with_if() -> None:
    """The counterpart: nobody notifies."""
    condition = threading.Condition(OwnLock())  # type: ignore[arg-type]

    def wait() -> None:
        with condition:
            condition.wait()

    def notify() -> None:
        with condition:
            condition.notify()

    in_two_threads(wait, notify)


def gives_a_lock_back() -> None:
    """What a condition of somebody else does with an RLock."""
    lock = threading.RLock()
    seen: list[int] = []

    def nested() -> None:
        with lock, lock:
            state = lock._release_save()  # type: ignore[attr-defined]  # it has it
            lock._acquire_restore(state)  # type: ignore[attr-defined]
            seen.append(1)

    in_two_threads(nested, nested)
    assert len(seen) == 2


def logs_in_two_threads() -> None:
    """A handler of the program's own, whose lock the library makes; asyncio, which logs, too, is executed once."""
    import asyncio
    import logging

    class Counting(logging.Handler):
        seen = 0

        def emit(self, record: logging.LogRecord) -> None:
            self.seen += 1

    handler, log = Counting(), logging.getLogger(f"{__name__} in two threads")
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    in_two_threads(lambda: log.info("one"), lambda: log.info("two"))
    assert handler.seen == 2
    assert asyncio.run(nothing()) is None


async def nothing() -> None:
    pass


def cleans_up_at_exit() -> None:
    """What is registered is run when the test returns, the last one first."""
    import atexit

    done: list[int] = []

    @atexit.register
    def last() -> None:
        assert done == [1, 2]

    atexit.register(done.append, 2)
    atexit.register(done.clear)
    atexit.unregister(done.clear)
    atexit.register(done.append, 1)
    in_two_threads(done.copy, done.copy)


class ClassOfClasses(type):
    pass


def class_of_its_own(name: str) -> typing.Any:
    made: typing.Any = ClassOfClasses(name, (ClassOfClasses,), {})
    made.__class__ = made
    return made


ONE, OTHER = class_of_its_own("ONE"), class_of_its_own("OTHER")
TABLE = {ONE: {OTHER: 1}}


def looks_up_classes_of_their_own() -> None:
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(TABLE[ONE][OTHER]))
    thread.start()
    seen.append(TABLE[ONE][OTHER])
    thread.join()
    assert seen == [1, 1]


def asks_what_machine_it_is() -> None:
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(platform.processor()))
    thread.start()
    seen.append(ctypes.util.find_library("c") or "")
    thread.join()
    assert len(seen) == 2


def another_imports(*bodies: typing.Callable[[], object]) -> None:
    def imports() -> None:
        sys.modules["none_of_this_name"] = types.ModuleType("none_of_this_name")

    threads = [threading.Thread(target=body) for body in (imports, *bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wrong_for_over_modules() -> None:
    def looks() -> None:
        for _ in sys.modules.items():
            pass

    another_imports(looks)


def wrong_for_over_modules_while_one_is_loaded() -> None:
    def loads() -> None:
        import tests.own_code.loaded_by_one_program  # noqa: F401

    def looks() -> None:
        for _ in sys.modules:
            pass

    threads = [threading.Thread(target=body) for body in (loads, looks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wrong_module_is_there() -> None:
    seen: list[bool] = []
    another_imports(lambda: seen.append("none_of_this_name" in sys.modules))
    assert seen == [False]


def wrong_module_that_another_has_made() -> None:
    def imports() -> None:
        with contextlib.suppress(ImportError):
            importlib.import_module("none_of_this_name")
            found.append(True)

    found: list[bool] = []
    another_imports(imports)
    assert found


def right_modules_in_one_operation() -> None:
    sizes: list[int] = []
    another_imports(
        lambda: sizes.append(len(list(sys.modules.items()))),
        lambda: sizes.append(len(sys.modules.copy())),
        lambda: sizes.append(len(sorted(sys.modules))),
    )
    assert max(sizes) - min(sizes) <= 1


def withheld_iterator_of_modules() -> None:
    def looks() -> None:
        for _, name in enumerate(sys.modules.keys()):
            assert name

    another_imports(looks)


def right_module_is_taken_once() -> None:
    taken: list[object] = []
    sys.modules["none_of_this_name"] = types.ModuleType("none_of_this_name")
    threads = [
        threading.Thread(target=lambda: taken.append(sys.modules.pop("none_of_this_name", None)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken.count(None) == 1


OF_ITS_OWN = types.ModuleType("of_its_own")
comes_late: int


def stores_a_global() -> None:
    global comes_late
    comes_late = 1


def stores_into_a_module() -> None:
    OF_ITS_OWN.comes_late = 1  # type: ignore[attr-defined]


def another_stores(store: typing.Callable[[], None], look: typing.Callable[[], bool]) -> None:
    """What `look` sees of a name that another thread may have stored; the name is gone when its module is."""
    seen: list[bool] = []
    in_two_threads(lambda: seen.append(look()), store)
    assert seen == [False]


def wrong_globals() -> None:
    another_stores(stores_a_global, lambda: "comes_late" in globals())


def wrong_globals_gone_through() -> None:
    another_stores(stores_a_global, lambda: any(name == "comes_late" for name in list(globals())))


def wrong_vars_of_a_module() -> None:
    own = sys.modules[__name__]
    another_stores(stores_a_global, lambda: "comes_late" in vars(own))


def wrong_dir_of_a_module() -> None:
    own = sys.modules[__name__]
    another_stores(stores_a_global, lambda: "comes_late" in dir(own))


def wrong_dict_of_a_module_of_its_own() -> None:
    another_stores(stores_into_a_module, lambda: "comes_late" in OF_ITS_OWN.__dict__)


def wrong_dir_of_a_module_of_its_own() -> None:
    another_stores(stores_into_a_module, lambda: "comes_late" in dir(OF_ITS_OWN))


def withheld_names_of_a_module_as_a_dict() -> None:
    def store() -> None:
        vars(OF_ITS_OWN)["comes_late"] = 1

    another_stores(store, lambda: hasattr(OF_ITS_OWN, "comes_late"))


def right_names_of_a_module_are_taken_away() -> None:
    module = types.ModuleType("seriatim_none")

    def clear() -> None:
        for name in dir(module):
            if name not in ("__doc__", "__loader__", "__package__", "__spec__"):
                assert name in ("__name__", "before", "beside")
                delattr(module, name)
        module.later = 3  # type: ignore[attr-defined]
        assert module.later == 3

    module.before = 1  # type: ignore[attr-defined]
    in_two_threads(clear, lambda: setattr(module, "beside", 2))
    assert not hasattr(module, "__name__")
    module.__class__ = Lazy
    assert module.digits == ["digits"]


def polls_in_a_daemon() -> None:
    waiting: queue.Queue[int] = queue.Queue()
    stopped = threading.Event()

    def loop() -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Empty):
                waiting.get(timeout=1)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    stopped.set()
    thread.join()


def waits_for_one_of_two_daemons() -> None:
    waiting: queue.Queue[int] = queue.Queue()
    lock = threading.Lock()

    def polls() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                waiting.get(timeout=1)

    def polls_on() -> None:
        while True:
            polls()

    def takes_it_twice() -> None:
        with lock:
            lock.acquire()

    threading.Thread(target=polls_on, daemon=True).start()
    stuck = threading.Thread(target=takes_it_twice, daemon=True)
    stuck.start()
    stuck.join()
