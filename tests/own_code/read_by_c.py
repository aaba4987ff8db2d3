"""Small programs in which C code reads what threads set, without a name in the source: see test_library.

Each is wrong in an order that the first schedule does not have, so that it is found only if the two accesses are seen.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

from tests.own_code.going_through import run


def _shown(value: Any, change: Callable[[Any], object], show: Callable[[Any], Any]) -> list[Any]:
    """What another thread is shown, which comes second in the first schedule."""
    found: list[Any] = []
    run(lambda: change(value), lambda: found.append(show(value)))
    return found


def set_width(value: Any) -> None:
    value.width = 1


def set_args(error: BaseException) -> None:
    error.args = (1,)


def set_errno(error: Any) -> None:
    error.errno = 2


def plain() -> types.SimpleNamespace:
    return types.SimpleNamespace(width=0)


# -- the attributes of a namespace


def wrong_repr_of_a_namespace() -> None:
    assert _shown(plain(), set_width, repr) == ["namespace(width=1)"]


def wrong_namespace_in_an_f_string() -> None:
    assert _shown(plain(), set_width, lambda value: f"{value}") == ["namespace(width=1)"]


def wrong_namespaces_compared() -> None:
    assert _shown(plain(), set_width, lambda value: value == plain()) == [False]


def wrong_namespace_in_a_list() -> None:
    assert _shown(plain(), set_width, lambda value: plain() in [value]) == [False]


def wrong_repr_with_an_attribute_that_is_new() -> None:
    shown = _shown(types.SimpleNamespace(), set_width, repr)
    assert shown == ["namespace(width=1)"]


def wrong_namespace_torn() -> None:
    value = types.SimpleNamespace(width=0, height=0)

    def grow(value: Any) -> None:
        value.width = 1
        value.height = 1

    shown = _shown(value, grow, lambda value: tuple(vars(value).values()))
    assert shown[0] in ((0, 0), (1, 1))


def right_namespace_under_a_lock() -> None:
    value, lock = types.SimpleNamespace(width=0, height=0), threading.Lock()

    def grow(value: Any) -> None:
        with lock:
            value.width = 1
            value.height = 1

    def show(value: Any) -> str:
        with lock:
            return repr(value)

    shown = _shown(value, grow, show)
    assert shown[0] in ("namespace(width=0, height=0)", "namespace(width=1, height=1)")


# -- what the text of an exception is made of


def wrong_text_of_an_exception() -> None:
    assert _shown(ValueError(0), set_args, str) == ["1"]


def wrong_exception_by_percent() -> None:
    assert _shown(ValueError(0), set_args, lambda error: "%s" % error) == ["1"]  # noqa: UP031


def wrong_exception_by_format() -> None:
    assert _shown(ValueError(0), set_args, lambda error: "{}".format(error)) == ["1"]  # noqa: UP032


def wrong_exception_in_a_list() -> None:
    assert _shown([ValueError(0)], lambda held: set_args(held[0]), repr) == ["[ValueError(1)]"]


def wrong_number_of_an_oserror() -> None:
    assert _shown(OSError(1, "no"), set_errno, str) == ["[Errno 2] no"]


def right_exception_that_stays() -> None:
    assert _shown(ValueError(0), lambda error: setattr(error, "other", 1), str) == ["0"]


# -- a module of the program's own


def wrong_module_that_is_made() -> None:
    module: Any = types.ModuleType("made")
    module.count = 0

    def add() -> None:
        module.count += 1

    run(add, add)
    assert module.count == 2


def right_module_that_is_made() -> None:
    module: Any = types.ModuleType("made")
    lock = threading.Lock()
    module.count = 0

    def add() -> None:
        with lock:
            module.count += 1

    run(add, add)
    assert module.count == 2


# -- what operators and calls look up


class Empty:
    def __len__(self) -> int:
        return 0


def _grow() -> None:
    Empty.__len__ = lambda self: 1  # type: ignore[method-assign]


def withheld_operator_that_is_replaced() -> None:
    found: list[int] = []
    run(_grow, lambda: found.append(len(Empty())))
    assert found == [1]


def right_operator_that_is_replaced_before() -> None:
    value, found = types.SimpleNamespace(n=0), list[int]()
    run(lambda: setattr(value, "n", 1), lambda: found.append(value.n))
    _grow()
    assert len(Empty()) == 1


def withheld_defaults_that_are_replaced() -> None:
    def answer(value: int = 0) -> int:
        return value

    found: list[int] = []
    run(lambda: setattr(answer, "__defaults__", (1,)), lambda: found.append(answer()))
    assert found == [1]
