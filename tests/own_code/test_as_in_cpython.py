"""Right programs over what CPython's own tests look at are no violation."""

from __future__ import annotations

import inspect

import pytest
from tests.own_code import as_in_cpython

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.python import PythonResult
from seriatim_models.explorer.python.execution import Search
from seriatim_models.explorer.python.front import explored
from seriatim_models.explorer.python.program import Target

HELPERS = {
    "both",
    "said",
    "read_lines",
    "withheld_proxy_of_what_has_died",
    "withheld_pickle_of_what_is_found_by_its_name",
}
RIGHT = [
    name
    for name, value in vars(as_in_cpython).items()
    if inspect.isfunction(value) and value.__module__ == as_in_cpython.__name__
]


def searched(name: str) -> PythonResult:
    target = Target(as_in_cpython.__name__, str(as_in_cpython.__file__), name)
    return explored(target, Search(), None, (), 60, {})


@pytest.mark.parametrize("name", [name for name in RIGHT if name not in HELPERS])
def test_right_functions_hold(name: str) -> None:
    getattr(as_in_cpython, name)()  # as it is, without a schedule
    result = searched(name)
    assert result.verdict == "ok", (result.why, result.traceback)


def test_a_test_that_is_expected_to_fail_is_wrong_where_it_does_not() -> None:
    assert searched("Case.fails").verdict == "ok"
    result = searched("Case.does_not_fail")
    assert result.verdict == "violated"
    assert "was to fail, and did not" in result.why


def test_what_pickle_does_not_find_is_refused() -> None:
    with pytest.raises(OutsideModel, match="pickle looks"):
        searched("withheld_pickle_of_what_is_found_by_its_name")


def test_a_proxy_says_that_its_object_has_died() -> None:
    assert searched("withheld_proxy_of_what_has_died").verdict == "inconclusive"
