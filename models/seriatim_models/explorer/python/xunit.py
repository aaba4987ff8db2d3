"""What pytest and unittest call around a test, in each execution: `setup_method` and its like."""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from seriatim_models.explorer.errors import ExplorerError, Misuse
from seriatim_models.explorer.python.given import copied

TEST_CASE = ("unittest.case", "TestCase")


def bases(kind: type) -> set[tuple[str, str]]:
    """The classes that a class is one of, by module and name: a sandbox may have its own copy of one."""
    return {(c.__module__, c.__qualname__) for c in kind.__mro__}


def undrawn(test: Any) -> Any:
    """A test without what Hypothesis has put around it."""
    inner = getattr(getattr(test, "hypothesis", None), "inner_test", None)
    if inner is None:
        return test
    return types.MethodType(inner, test.__self__) if inspect.ismethod(test) else inner


class Surroundings:
    """A test in its module, and what stands around it. What is behind it runs only if all before went well."""

    # Any: a module of the user
    def __init__(
        self, module: Any, name: str, attributes: Mapping[str, Any], load: Callable[[str], Any]
    ) -> None:
        self.load = load
        self.attributes = attributes
        """Of the object whose method the test is, as far as it does not set them itself: fixtures of pytest do."""
        self._behind: list[Callable[[], None]] = []
        *classes, test = name.split(".")
        self._around(
            module, ("setUpModule", "setup_module"), ("tearDownModule", "teardown_module"), module
        )
        owner = module
        for part in classes:
            owner = _named(owner, part, name)
        _named(owner, test, name)
        self.test = self._method(owner, test) if classes else self._function(owner, test)

    def end(self) -> None:
        """Call what is behind the test."""
        while self._behind:
            self._behind.pop()()

    def _function(self, module: Any, name: str) -> Any:
        function = getattr(module, name)
        self._around(module, ("setup_function",), ("teardown_function",), function)
        return function

    def _method(self, kind: Any, name: str) -> Any:
        if TEST_CASE in bases(kind):
            return lambda: _run_case(kind, name)
        self._around(kind, ("setup_class",), ("teardown_class",), kind)
        made = kind()
        method = getattr(made, name)
        self._around(made, ("setup_method",), ("teardown_method",), method)
        for attribute, value in self.attributes.items():
            if attribute not in vars(made):
                setattr(made, attribute, self._copied(attribute, value))
        return method

    def _copied(self, attribute: str, value: Any) -> Any:
        try:
            return copied(value, self.load)
        except Exception as error:
            raise Misuse(
                f"self.{attribute}, which a fixture has set, cannot be copied for each execution ({error}). "
                "Make it in setup_method"
            ) from error

    def _around(
        self, owner: Any, before: tuple[str, ...], behind: tuple[str, ...], argument: Any
    ) -> None:
        self._behind.append(lambda: _call_first(owner, behind, argument))
        _call_first(owner, before, argument)


def _run_case(kind: Any, name: str) -> None:
    """Run a test of a `unittest.TestCase` between its fixtures."""
    kind.setUpClass()
    case = kind(name)
    test = getattr(case, name)
    if any(getattr(each, "__unittest_expecting_failure__", False) for each in (case, test)):
        setattr(case, name, _expecting_failure(test))
    case.debug()
    kind.tearDownClass()


def _expecting_failure(test: Any) -> Any:
    """A test of `unittest.expectedFailure`: it is wrong where it does not fail."""

    async def awaited() -> None:
        with _fails():
            await test()

    def called() -> None:
        with _fails():
            test()

    return awaited if inspect.iscoroutinefunction(test) else called


@contextlib.contextmanager
def _fails() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(error, ExplorerError) or type(error).__name__ == "SkipTest":
            raise
        return
    raise AssertionError("the test was to fail, and did not (unittest.expectedFailure)")


def _call_first(owner: Any, names: tuple[str, ...], argument: Any) -> None:
    """Call the first of these that there is; it takes the argument or none."""
    for name in names:
        found = getattr(owner, name, None)
        if inspect.isroutine(found):
            found(*[argument][: len(inspect.signature(found).parameters)])
            return


def _named(owner: Any, part: str, whole: str) -> Any:
    """Something by its name. Raises `Misuse` if there is none of it: then no schedule is at fault."""
    if not hasattr(owner, part):
        raise Misuse(
            f"{getattr(owner, '__name__', owner)} has no {part}, so there is no test {whole}"
        )
    return getattr(owner, part)
