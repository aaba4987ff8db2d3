"""Small programs in which C code, or Python that is not observed, reads what another thread sets: see test_library.

Which thread is started first is such that the first schedule is right: a program is found only if the access is seen.
"""

from __future__ import annotations

import abc
import array
import collections
import decimal
import functools
import inspect
import io
import linecache
import sys
import threading
from collections.abc import Callable
from typing import Any

from tests.own_code.going_through import run


def beside(read: Callable[[], Any], change: Callable[[], object], allowed: object) -> None:
    """Fail if a reader, which is started first, finds anything else."""
    found: list[Any] = []
    run(lambda: found.append(read()), change)
    assert found == [allowed]


def behind(change: Callable[[], object], read: Callable[[], Any], allowed: object) -> None:
    """The same, where the other thread is started first."""
    found: list[Any] = []
    run(change, lambda: found.append(read()))
    assert found == [allowed]


def kind(doc: str = "old") -> Any:
    return type("Plain", (), {"__doc__": doc, "size": 0})


# -- the names of a class, its attributes, and what is made from it


def wrong_name_of_a_class_in_its_text() -> None:
    plain = kind()
    behind(lambda: setattr(plain, "__qualname__", "New"), lambda: "New" in repr(plain), True)


def wrong_name_of_a_class_in_the_text_of_an_object() -> None:
    plain = kind()
    value = plain()
    behind(lambda: setattr(plain, "__qualname__", "New"), lambda: "New" in f"{value}", True)


def wrong_module_of_a_class_in_the_text_of_an_object() -> None:
    plain = kind()
    value = plain()
    behind(lambda: setattr(plain, "__module__", "new"), lambda: "new." in str(value), True)


def wrong_name_of_an_exception() -> None:
    error = type("Failed", (Exception,), {})("text")
    named: Any = type(error)
    behind(lambda: setattr(named, "__name__", "New"), lambda: repr(error), "New('text')")


def wrong_name_of_a_class_that_is_printed() -> None:
    plain, stream = kind(), io.StringIO()
    run(lambda: setattr(plain, "__qualname__", "New"), lambda: print(plain, file=stream))
    assert "New" in stream.getvalue()


def withheld_name_of_a_class_in_a_list() -> None:
    plain = kind()
    behind(lambda: setattr(plain, "__qualname__", "New"), lambda: "New" in str([plain]), True)


def wrong_name_of_a_function_in_its_text() -> None:
    def answer() -> int:
        return 1

    behind(lambda: setattr(answer, "__qualname__", "New"), lambda: "New" in repr(answer), True)


def wrong_documentation_by_inspect() -> None:
    plain = kind()
    behind(lambda: setattr(plain, "__doc__", "new"), lambda: inspect.getdoc(plain), "new")


def wrong_signature_by_inspect() -> None:
    def answer(value: int) -> int:
        return value

    given: Any = answer
    empty = inspect.Signature()
    behind(
        lambda: setattr(given, "__signature__", empty), lambda: str(inspect.signature(given)), "()"
    )


def wrong_wrapper_that_is_updated() -> None:
    def answer() -> None:
        """What it says."""

    def other() -> None:
        pass

    behind(lambda: functools.update_wrapper(other, answer), lambda: other.__doc__, "What it says.")


def right_classes_made_by_threads() -> None:
    found: list[object] = []

    def make() -> None:
        plain = kind()
        plain.__qualname__, plain.__len__ = "New", lambda self: 1
        found.append(len(plain()))

    run(make, make)
    assert found == [1, 1]


def wrong_attributes_of_a_class_by_vars() -> None:
    plain = kind()
    beside(lambda: vars(plain)["size"], lambda: setattr(plain, "size", 1), 0)


def wrong_attributes_of_a_class_gone_through() -> None:
    plain = kind()
    beside(lambda: "width" in list(plain.__dict__), lambda: setattr(plain, "width", 1), False)


def wrong_attributes_by_dir() -> None:
    plain = kind()
    beside(lambda: "width" in dir(plain()), lambda: setattr(plain, "width", 1), False)


def wrong_classes_made_from_one() -> None:
    plain = kind()
    made = list[Any]()
    beside(
        lambda: len(plain.__subclasses__()),
        lambda: made.append(type("Other", (plain,), {})),
        0,
    )


class Small:
    size = 0

    def measure(self) -> int:
        return self.size


class Large(Small):
    size = 1


def wrong_class_of_an_object() -> None:
    value: Any = Small()
    beside(value.measure, lambda: setattr(value, "__class__", Large), 0)


def wrong_type_of_an_object() -> None:
    value: Any = Small()
    beside(lambda: type(value), lambda: setattr(value, "__class__", Large), Small)


def withheld_class_of_an_object_by_isinstance() -> None:
    value: Any = Small()
    behind(lambda: setattr(value, "__class__", Large), lambda: isinstance(value, Large), True)


class Form(abc.ABC):
    @abc.abstractmethod
    def measure(self) -> int: ...


def is_refused(form: Any) -> bool:
    try:
        form()
    except TypeError:
        return True
    return False


def complete() -> None:
    Form.measure = lambda self: 1  # type: ignore[method-assign]
    abc.update_abstractmethods(Form)  # type: ignore[type-abstract]


def withheld_abstract_methods() -> None:
    beside(lambda: is_refused(Form), complete, True)


class Asked:
    times = 0


lock = threading.Lock()


class Meta(abc.ABCMeta):
    def __instancecheck__(cls, instance: object) -> bool:
        with lock:
            pass
        return super().__instancecheck__(instance)


class Counting(metaclass=Meta):
    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        Asked.times += 1
        return True


def wrong_hook_behind_a_metaclass() -> None:
    run(lambda: isinstance(Small(), Counting), lambda: isinstance(Small(), Counting))
    assert Asked.times == 1


def wrong_hook_that_is_called_by_name() -> None:
    check: Any = Counting.__instancecheck__
    run(lambda: check(Small()), lambda: check(Small()))
    assert Asked.times == 1


# -- functions with arguments


def wrong_state_of_a_partial_is_set() -> None:
    number = functools.partial(int, "1")
    state: Any = (int, ("2",), {}, {})
    beside(number, lambda: number.__setstate__(state), 1)  # type: ignore[attr-defined]


def wrong_arguments_of_a_partial() -> None:
    number = functools.partial(int, "1")
    state: Any = (int, ("2",), {}, {})
    beside(lambda: number.args, lambda: number.__setstate__(state), ("1",))  # type: ignore[attr-defined]


def wrong_keywords_of_a_partial() -> None:
    made: Any = functools.partial(dict, size=1)
    beside(lambda: made()["size"], lambda: made.keywords.update(size=2), 1)


def wrong_text_of_a_partial() -> None:
    held: list[int] = []
    shown = functools.partial(len, held)
    beside(lambda: "[]" in repr(shown), lambda: held.append(1), True)


# -- buffers and views


def wrong_view_of_bytes_compared() -> None:
    data = bytearray(2)
    view: Any = memoryview(data)
    beside(lambda: view == b"\0\0", lambda: data.__setitem__(0, 1), True)


def withheld_array_in_a_list_compared() -> None:
    numbers = array.array("i", [1])
    same = [array.array("i", [1])]
    behind(lambda: numbers.__setitem__(0, 2), lambda: [numbers] == same, True)


def withheld_bytes_that_are_joined() -> None:
    data = bytearray(b"a")
    behind(lambda: data.append(98), lambda: b",".join([data, data]), b"a,a")


def wrong_bytes_that_are_read_into() -> None:
    data, stream = bytearray(b"a"), io.BytesIO(b"b")
    behind(lambda: stream.readinto(data), lambda: data[0], 98)


def wrong_array_that_a_list_takes_over() -> None:
    numbers, taken = array.array("i", [1]), list[int]()
    run(lambda: taken.extend(numbers), lambda: numbers.append(2))
    assert taken == [1]


def wrong_sum_of_a_view() -> None:
    table = {1: 1}
    values = table.values()
    beside(lambda: sum(values), lambda: table.update({2: 2}), 1)


def wrong_text_of_a_view() -> None:
    table = {1: 1}
    values = table.items()
    beside(lambda: repr(values), lambda: table.update({2: 2}), "dict_items([(1, 1)])")


def wrong_mapping_of_a_view() -> None:
    table = {1: 1}
    keys = table.keys()
    beside(lambda: len(keys.mapping), lambda: table.update({2: 2}), 1)


def wrong_factory_of_a_dict() -> None:
    table = collections.defaultdict[int, Any](list)
    beside(lambda: table[1], lambda: setattr(table, "default_factory", dict), [])


def wrong_flags_of_a_context() -> None:
    context = decimal.Context(prec=5)
    one, three = decimal.Decimal(1), decimal.Decimal(3)
    beside(lambda: context.flags[decimal.Inexact], lambda: context.divide(one, three), False)


# -- threads


def wrong_attribute_of_a_thread() -> None:
    thread: Any = threading.Thread(target=len)
    thread.count = 0

    def add() -> None:
        thread.count += 1

    run(add, add)
    assert thread.count == 2


def wrong_attribute_of_a_cached_function() -> None:
    @functools.lru_cache
    def answer() -> int:
        return 1

    cached: Any = answer
    cached.count = 0

    def add() -> None:
        cached.count += 1

    run(add, add)
    assert cached.count == 2


def wrong_name_of_a_thread() -> None:
    thread = threading.current_thread()
    beside(lambda: thread.name, lambda: setattr(thread, "name", "new"), "MainThread")


def wrong_daemon_of_a_thread() -> None:
    thread = threading.Thread(target=len)
    beside(lambda: thread.daemon, lambda: setattr(thread, "daemon", True), False)


def withheld_limit_of_the_interpreter() -> None:
    before = sys.getrecursionlimit()
    behind(lambda: sys.setrecursionlimit(before), sys.getrecursionlimit, before)


def withheld_table_of_the_library() -> None:
    behind(
        lambda: linecache.cache.update({"x": (1, None, [], "x")}),
        lambda: linecache.getline("y", 1),
        "",
    )


def fail() -> None:
    raise ValueError("on purpose")


def right_hook_of_threads() -> None:
    found: list[tuple[str, str, bool]] = []

    def hook(args: Any) -> None:
        kind, _value, _traceback, thread = args
        found.append((kind.__name__, str(args.exc_value), thread is args.thread))

    threading.excepthook = hook
    run(fail, fail)
    assert found == [("ValueError", "on purpose", True)] * 2


def right_hook_of_threads_in_c() -> None:
    found: list[Any] = []
    threading.excepthook = found.append
    run(fail, fail)
    assert len(found) == 2


def wrong_hook_of_threads_that_is_replaced() -> None:
    first, second = list[Any](), list[Any]()
    threading.excepthook = first.append
    run(fail, lambda: setattr(threading, "excepthook", second.append))
    assert len(first) == 1


def wrong_hook_of_threads_that_counts() -> None:
    count = 0

    def hook(args: object) -> None:
        nonlocal count
        count += 1

    threading.excepthook = hook
    run(fail, fail)
    assert count == 2


def wrong_test_with_a_hook_of_threads() -> None:
    threading.excepthook = lambda args: None
    run(fail, fail)
    raise AssertionError("on purpose")
