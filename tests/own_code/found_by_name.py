# ruff: noqa: PT009, PT027 - of what unittest has is what these are about
"""Right tests over what the library finds by a name: modules, callers, lines, and the test cases of unittest."""

from __future__ import annotations

import _thread
import _threading_local
import asyncio
import collections
import copy
import enum
import functools
import importlib
import inspect
import json
import logging
import pkgutil
import re
import sys
import threading
import unittest
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

from tests.own_code import found_by_name_helper as helper


@enum.global_enum
class Colour(enum.Enum):
    RED = 1


Point = collections.namedtuple("Point", "x y")
BEGUN: list[int] = []


def both(body: Callable[[], object]) -> None:
    threads = [threading.Thread(target=body) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def members_of_an_enum_become_globals() -> None:
    both(lambda: globals()["RED"])
    assert globals()["RED"] is Colour.RED


def a_function_is_patched_by_its_path() -> None:
    with mock.patch(f"{helper.__name__}.value", return_value=5):
        both(lambda: helper.value())
        assert helper.value() == 5
    assert helper.value() == 1


@mock.patch(f"{helper.__name__}.LIMIT", 7)
def a_test_is_decorated_by_patch() -> None:
    both(lambda: helper.LIMIT)
    assert helper.LIMIT == 7


@mock.patch(f"{helper.__name__}.value")
@mock.patch.object(helper, "LIMIT", 9)
def a_test_is_given_a_mock(value: Any) -> None:
    value.return_value = 4
    assert (helper.value(), helper.LIMIT) == (4, 9)
    both(lambda: None)


def calls_of_a_mock_under_a_lock() -> None:
    called, lock = mock.MagicMock(), threading.Lock()

    def body() -> None:
        with lock:
            called.go(1)

    both(body)
    assert called.go.call_count == 2
    called.go.assert_called_with(1)


def tried_twice(test: Callable[[], None]) -> Callable[[], None]:
    @functools.wraps(test)
    def trying() -> None:
        try:
            test()
        except ValueError:
            test()

    return trying


@tried_twice
def a_decorator_of_its_own_is_run() -> None:
    BEGUN.append(1)
    if len(BEGUN) == 1:
        raise ValueError
    both(lambda: None)


def modules_are_found() -> None:
    assert importlib.import_module(helper.__name__) is helper
    assert sys.modules[helper.__name__] is helper
    assert pkgutil.resolve_name(f"{helper.__name__}:value") is helper.value
    assert inspect.getmodule(helper.value) is helper
    assert Point.__module__ == __name__
    both(lambda: Point(1, 2))


def warnings_go_by_lines() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        warnings.warn("a")  # noqa: B028 - the default is what is looked at
        warnings.warn("a")  # noqa: B028
        for _ in range(2):
            warnings.warn("b")  # noqa: B028
    assert [str(each.message) for each in caught] == ["a", "a", "b"]
    assert caught[0].filename == __file__
    both(lambda: None)


def json_raises_its_own_error() -> None:
    def body() -> None:
        try:
            json.loads("{")
        except json.JSONDecodeError:
            return
        raise AssertionError

    both(body)


def expressions_are_compiled() -> None:
    both(lambda: re.compile("(a)|b", re.IGNORECASE).sub(r"\1", "AB"))
    assert copy.copy(re.compile("a")) is re.compile("a")


def variables_are_those_of_the_source() -> None:
    """`locals`, `vars` and `dir` of a function show no variable that is not in its source."""

    def named(**names: object) -> list[str]:
        return sorted(names)

    def shows(x: int) -> tuple[Callable[[], int], list[str], str, list[str], list[str]]:
        found: list[str] = []
        text = ""
        for _i in range(2):
            found = named(**{k: v for k, v in locals().items() if k != "named"})
            text = "{x}".format(**locals())
        x += 1
        return lambda: x, found, text, sorted(vars()), dir()

    inner, found, text, variables, names = shows(1)
    assert found == ["_i", "found", "text", "x"]
    assert text == "1"
    assert variables == names == ["_i", "found", "named", "text", "x"]
    both(inner)


class FromVariables:
    def __init__(self, first: int, second: int) -> None:
        for name, value in locals().items():
            if name != "self":
                setattr(self, name, value)
        self.last = lambda: first + second
        first = 0


def attributes_are_made_of_variables() -> None:
    made = FromVariables(1, 2)
    assert sorted(vars(made)) == ["first", "last", "second"]
    both(lambda: made.last)


def local_in_python_is_of_each_thread() -> None:
    local, seen = _threading_local.local(), []
    local.x = 1

    def look() -> None:
        seen.append(hasattr(local, "x"))
        local.x = 2

    both(look)
    assert seen == [False, False]
    assert local.x == 1


class Named(threading.local):
    def __init__(self, name: str) -> None:
        self.name = name


def arguments_of_a_local_are_of_its_class() -> None:
    both(lambda: None)
    assert Named("a").name == "a"
    said = ""
    try:
        threading.local("a")  # type: ignore[call-arg]
    except TypeError as error:
        said = str(error)
    assert said == "Initialization arguments are not supported"


def threads_in_c_are_counted() -> None:
    counted: list[int] = []
    both(lambda: counted.append(_thread._count()))
    assert set(counted) <= {1, 2}
    assert _thread._count() == _thread.stack_size() == 0


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.lock = threading.Lock()
        self.items: list[int] = []
        self.total = 0

    def add(self) -> None:
        with self.lock:
            self.total += 1
            self.items.append(1)

    def right(self) -> None:
        both(self.add)
        self.assertEqual(self.total, 2)
        self.assertEqual(self.items, [1, 1])
        self.assertCountEqual(self.items, [1, 1])
        with self.assertRaises(KeyError), self.subTest(each=1):
            dict[int, int]()[1]

    def right_in_threads(self) -> None:
        wrong = []

        def body() -> None:
            try:
                self.items.append(1)
                self.assertLessEqual(len(self.items), 2)
                self.assertIn(1, self.items)
            except AssertionError as error:
                wrong.append(error)

        both(body)
        self.assertEqual(wrong, [])

    def racing(self) -> None:
        def body() -> None:
            self.total += 1

        both(body)
        self.assertEqual(self.total, 2)

    def logs(self) -> None:
        with self.assertLogs("own") as logged:
            logging.getLogger("own").warning("said")
        self.assertEqual(len(logged.records), 1)
        both(lambda: None)

    def warns(self) -> None:
        with self.assertWarns(UserWarning):
            warnings.warn("said")  # noqa: B028
        both(lambda: None)


class AsyncCase(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.total = 0

    async def right(self) -> None:
        asked = mock.AsyncMock(return_value=1)

        async def add() -> None:
            await asyncio.sleep(1)
            self.total += await asked()

        await asyncio.gather(add(), add())
        self.assertEqual(self.total, 2)
        self.assertEqual(asked.await_count, 2)
