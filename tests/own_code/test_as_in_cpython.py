"""Right programs over what CPython's own tests look at are no violation."""

from __future__ import annotations

import inspect

import pytest
from tests.own_code import as_in_cpython

from seriatim_models.explorer.python.execution import Search
from seriatim_models.explorer.python.front import explored
from seriatim_models.explorer.python.program import Target

HELPERS = {"both", "said"}
RIGHT = [
    name
    for name, value in vars(as_in_cpython).items()
    if inspect.isfunction(value) and value.__module__ == as_in_cpython.__name__
]


@pytest.mark.parametrize("name", [name for name in RIGHT if name not in HELPERS])
def test_right_functions_hold(name: str) -> None:
    function = getattr(as_in_cpython, name)
    function()  # as it is, without a schedule
    target = Target(as_in_cpython.__name__, str(as_in_cpython.__file__), name)
    result = explored(target, Search(), None, (), 60, {})
    assert result.verdict == "ok", (result.why, result.traceback)
