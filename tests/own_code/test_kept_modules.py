"""An import that is put back is as one that is done anew: verdicts, counts, schedules, and all that a test changes."""

from __future__ import annotations

import inspect
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from tests.own_code import coroutines, kept_modules, ordinary, plain, waiting

from seriatim_models.explorer.errors import Misuse, OutsideModel
from seriatim_models.explorer.python import PythonResult, check
from seriatim_models.explorer.python.imported_state import ImportedState
from seriatim_models.explorer.python.reached_state import NotKept
from seriatim_models.explorer.python.sandbox import SLOWER, Sandbox

PUT_BACK = [
    kept_modules.state_of_modules,
    kept_modules.state_of_pools,
    kept_modules.counter_gone_wrong,
]
NOT_KEPT = {
    kept_modules.set_that_changes: "a set or a view has changed",
    kept_modules.class_made_from_one: "classes were made from Base",
    kept_modules.function_that_changes: "a function is another one now",
    kept_modules.function_with_an_attribute: "a function has got an attribute",
    kept_modules.function_of_another_name: "what a function is called has changed",
    kept_modules.object_of_another_class: "an object is of another class now, or all its attributes were replaced",
    kept_modules.attributes_that_are_others: "an object is of another class now, or all its attributes were replaced",
}
"""Changes that are not put back, and how that is said."""
if sys.version_info >= (3, 14):  # what annotations say is forgotten, and evaluated again
    PUT_BACK.append(kept_modules.function_with_other_annotations)
else:
    NOT_KEPT[kept_modules.function_with_other_annotations] = (
        "annotations of a function have changed"
    )


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often an import was put back, and how often it could not be."""
    seen: Counter[str] = Counter()
    real = ImportedState.put_back

    def put_back(self: ImportedState, *args: Any) -> None:
        try:
            real(self, *args)
        except NotKept as why:
            seen[str(why)] += 1
            raise
        seen["put back"] += 1

    monkeypatch.setattr(ImportedState, "put_back", put_back)
    monkeypatch.setattr(Sandbox, "_pays", lambda self, seconds: True)  # not by the clock
    return seen


def anew(monkeypatch: pytest.MonkeyPatch, test: Callable[[], Any], **options: Any) -> PythonResult:
    """The result where every execution imports anew."""

    def not_kept(*args: object) -> None:
        raise NotKept("never here")

    with monkeypatch.context() as patch:
        patch.setattr(ImportedState, "__init__", not_kept)
        return check(test, **options)


def said(result: PythonResult) -> object:
    """All that a result says, but for the time."""
    case = result.counterexample
    return (
        result.verdict, result.why, result.executions, result.steps, result.rounds, result.unseen,
        [str(race) for race in result.races], case and (case.token, case.command, [str(v) for v in case.violations]),
    )  # fmt: skip


@pytest.mark.parametrize("test", [*PUT_BACK, *NOT_KEPT], ids=lambda test: test.__name__)
def test_what_an_execution_changes_the_next_one_does_not_find(
    test: Callable[[], Any], counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = check(test)
    assert result.verdict == (
        "violated" if "wrong" in test.__name__ else "inconclusive" if result.unseen else "ok"
    )
    if test in PUT_BACK:
        assert counted["put back"] > 1
    else:
        assert set(counted) == {NOT_KEPT[test]}
    assert said(result) == said(anew(monkeypatch, test))


SHORT = [
    plain.racing_counter, plain.locked_counter, plain.class_attribute, plain.racing_global, plain.racing_closure,
    plain.error_in_a_thread, plain.barrier, plain.timer, plain.thread_local, plain.executor, plain.lost_wakeup,
    coroutines.order_of_sleeps, coroutines.read_then_write, waiting.flag, waiting.locked,
]  # fmt: skip


def functions(*modules: types.ModuleType) -> Iterator[Callable[[], Any]]:
    """The functions without parameters that modules define."""
    for module in modules:
        for value in vars(module).values():
            if (
                inspect.isfunction(value)
                and value.__module__ == module.__name__
                and not inspect.signature(value).parameters
            ):
                yield value


@pytest.mark.parametrize(
    "test",
    [
        *SHORT,
        *(pytest.param(test, marks=pytest.mark.night) for test in functions(plain, coroutines, waiting, ordinary)),
    ],
    ids=lambda test: test.__name__,
)  # fmt: skip
def test_verdicts_counts_and_schedules_are_those_of_importing_anew(
    test: Callable[[], Any], counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(look: Callable[..., PythonResult]) -> object:
        try:
            return said(look(test, max_executions=60))
        except (Misuse, OutsideModel) as refused:
            return str(refused)

    assert outcome(check) == outcome(partial(anew, monkeypatch))
    assert counted or test not in SHORT


def test_what_takes_longer_than_an_import_is_given_up() -> None:
    sandbox = Sandbox.__new__(Sandbox)
    sandbox.keeps, sandbox.slower, sandbox.import_took = True, 0, 1.0
    slow = [sandbox._pays(2.0) for _ in range(SLOWER - 1)]
    assert all(slow)
    assert sandbox._pays(0.5)
    assert [sandbox._pays(2.0) for _ in range(SLOWER)] == [True] * (SLOWER - 1) + [False]
    assert not sandbox._pays(0.5)
