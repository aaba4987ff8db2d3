"""The explorer inside other people's tests: pytest and Hypothesis.

```python
@explored(seconds=10)
def test_counter(world):                # one test, every schedule
    counter = Counter(world.host)
    world.spawn(counter.increment)
    world.spawn(counter.increment)
    world.at_end(lambda: None if counter.value() == 2 else "an increment was lost")

@given(concurrent_calls({"push": tuples(integers(0, 1)), "pop": tuples()}))
def test_stack(threads):                # Hypothesis draws the program, the explorer runs all its schedules
    linearizable(Stack, ListStack, threads)
```

A failing test shows the schedule in columns and the command that runs that schedule only.
An exploration takes longer than the 200 ms that Hypothesis allows a test by default: `@settings(deadline=None)`.
Its phase `explain` would trace the explorer, and takes long: `phases=set(Phase) - {Phase.explain}`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from seriatim_models.explorer.errors import BadToken
from seriatim_models.explorer.linearize import Call, check_linearizable
from seriatim_models.explorer.model.world import World
from seriatim_models.explorer.result import Result
from seriatim_models.explorer.search.explore import Replay, Strategy, explore
from seriatim_models.explorer.trace.counterexample import Counterexample

Found = TypeVar("Found", bound=Result)

OPTIONS: dict[str, Any] = {
    "replay": None, "seconds": None, "replayed": 0, "test": "", "verbose": False, "marked": False, "paths": False,
}  # fmt: skip
"""Set by `pytest_plugin`: what the command line says, and the address of the test that is run."""


class Inconclusive(AssertionError):
    """Nothing was tested, or a budget ran out before everything was seen and the test asked for everything."""


def explored(
    strategy: Strategy | None = None, *, exhaustive: bool = False, **budgets: Any
) -> Callable[[Callable[..., object]], Callable[..., None]]:
    """Make a test of a program: its first argument is the world, further ones are fixtures.

    With `exhaustive` the test fails also if a budget ran out first.
    """
    if inspect.isfunction(strategy):
        raise TypeError(f"write @explored() above {strategy.__name__}, with parentheses")

    def decorate(function: Callable[..., object]) -> Callable[..., None]:
        def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            __tracebackhide__ = True

            def program(world: World) -> object:
                return function(world, *args, **kwargs)

            program.__module__ = function.__module__  # whose classes are observed
            judge(program, strategy, exhaustive, {"name": function.__name__, **budgets})

        test = functools.wraps(function)(standing_for(function, run))
        signature = inspect.signature(function)
        test.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=list(signature.parameters.values())[1:]
        )
        return test

    return decorate


def standing_for(
    function: Callable[..., object], run: Callable[[tuple[Any, ...], dict[str, Any]], object]
) -> Callable[..., None]:
    """A function that calls `run` with its arguments; in a traceback its frame is that of `function`, at its decorator.

    So the last frame of a failure is the user's own test.
    """

    def call(*args: Any, **kwargs: Any) -> None:
        given = (args, kwargs)
        del args, kwargs  # pytest would show them above each failure
        run(*given)

    mine = getattr(function, "__code__", None)
    if mine is not None:
        call.__code__ = call.__code__.replace(
            co_filename=mine.co_filename,
            co_name=mine.co_name,
            co_firstlineno=max(mine.co_firstlineno - 3, 1),
        )
    return call


def judge(
    program: Callable[..., object],
    strategy: Strategy | None,
    exhaustive: bool,
    budgets: dict[str, Any],
) -> Result:
    """Explore, and raise AssertionError if something is wrong."""
    __tracebackhide__ = True
    found = as_asked(lambda chosen, **asked: explore(program, chosen, **asked), strategy, budgets)
    return verdict(found, exhaustive)


def as_asked(
    run: Callable[..., Found], strategy: Strategy | None, budgets: dict[str, Any]
) -> Found:
    """What `run(strategy, **budgets)` returns, under what the command line asks for.

    One token is given to a whole session, and is of one test: all others have nothing to replay, and are skipped.
    Under Hypothesis it is of one of the examples, and all others are rejected.
    """
    __tracebackhide__ = True
    if OPTIONS["replay"] is None:
        if OPTIONS["seconds"] is not None:
            budgets = {**budgets, "seconds": OPTIONS["seconds"]}
        return run(strategy, **budgets)
    try:
        result = run(Replay(OPTIONS["replay"]), **budgets)
    except BadToken as error:
        reject_example()
        if "program" not in str(error):
            raise
        import pytest

        # One token, many tests; that none of them replayed it is an error at the end of the session.
        pytest.skip(f"the token to replay is of another test: {error}")
    OPTIONS["replayed"] += 1
    return result


def _in_hypothesis() -> bool:
    """Whether a test of Hypothesis runs; it is not imported for that."""
    loaded = sys.modules.get("hypothesis")
    return loaded is not None and bool(loaded.currently_in_test_context())


def reject_example() -> None:
    """Within a test of Hypothesis: what was drawn says nothing. If nothing that is drawn does, Hypothesis complains."""
    if _in_hypothesis():
        import hypothesis

        hypothesis.reject()


INDENT = 8
"""So many columns pytest takes before each line of a message."""


def failure(case: Counterexample, traceback: str = "", indent: int = INDENT) -> str:
    """What a failing test shows, as wide as the terminal or COLUMNS says, or 80 columns.

    The command is pytest's, unless the counterexample has one that stands for itself (and finds the modules without
    `pythonpath` of pytest's configuration) or the test is run by hand.
    """
    width = _width(indent)
    if not OPTIONS["test"]:
        return "\n\n".join(filter(None, (case.text(width), traceback)))
    by_itself = case.command.startswith("seriatim ") and not OPTIONS["paths"]
    again = case.command if by_itself else replay_command(case.token)
    shown = case.brief(width, again, traceback=traceback, verbose=OPTIONS["verbose"])
    return shown if by_itself else shown + _kept()


def _width(indent: int = INDENT) -> int:
    return max(shutil.get_terminal_size((80, 24)).columns - indent, INDENT)


def _inconclusive(result: Result) -> Inconclusive:
    """The error that says why, in lines of which the first follows its name."""
    before = f"{Inconclusive.__module__}.{Inconclusive.__name__}: "
    lines = textwrap.wrap(
        before + str(result), _width(), break_long_words=False, break_on_hyphens=False
    )
    return Inconclusive("\n".join(lines).removeprefix(before.rstrip()).lstrip())


def replay_command(token: str) -> str:
    """What to type in order to run only this schedule of the test that is run now."""
    where = f"{shlex.quote(OPTIONS['test'])} " if OPTIONS["test"] else ""
    return f"pytest {where}{'--explore ' * OPTIONS['marked']}--explore-replay {token}"


def _kept() -> str:
    """What the command that replays a drawn test needs besides: the token names a schedule, and not what was drawn."""
    if not _in_hypothesis():
        return ""
    return (
        "\n(where Hypothesis keeps no examples, as on a CI server, first put the\n"
        "example that it prints above the test: @example(...))"
    )


def verdict(result: Result, exhaustive: bool = False) -> Result:
    """Raise AssertionError if the result is a violation or says nothing (or, if all was asked for, inconclusive)."""
    __tracebackhide__ = True
    if result.counterexample is not None:
        raise AssertionError(failure(result.counterexample))
    if OPTIONS["replay"] is None and (result.untested or (exhaustive and not result.exhausted)):
        raise _inconclusive(result)
    return result


def linearizable(
    make: Callable[[Any], object],
    spec: Callable[[], object],
    threads: Sequence[Sequence[Call]],
    *,
    max_executions: int = 5000,
    **budgets: Any,
) -> Result:
    """Fail unless the calls of these threads are linearizable under every schedule (within the budget).

    `strategy=Replay(TOKEN)` runs one schedule. Raises AssertionError with the counterexample, TypeError if `make`
    takes no host or `spec` has other methods or state that is no plain data.
    """
    __tracebackhide__ = True
    _fit(make, spec, threads)
    budgets["max_executions"] = max_executions
    found = as_asked(
        functools.partial(check_linearizable, make, spec, threads),
        budgets.pop("strategy", None),
        budgets,
    )
    if found.counterexample is not None:
        names = f"{_name(make)}, {_name(spec)}, {[list(calls) for calls in threads]}"
        token = found.counterexample.token
        command = f"linearizable({names}, strategy=Replay({token!r}))"
        raise AssertionError(failure(replace(found.counterexample, command=command)))
    if found.untested and OPTIONS["replay"] is None:
        raise _inconclusive(found)
    return found


def _fit(
    make: Callable[[Any], object], spec: Callable[[], object], threads: Sequence[Sequence[Call]]
) -> None:
    """Raise TypeError where the explorer would stumble over what it is given, in a frame of its own."""
    __tracebackhide__ = True
    _takes(make, _name(make), "host")
    _takes(spec, _name(spec))
    sequential = spec()
    for method, *args in (call for calls in threads for call in calls):
        called = getattr(sequential, method, None)
        if not callable(called):
            raise TypeError(f"linearizable compares with {_name(spec)}, which has no {method}()")
        _takes(called, f"{_name(spec)}.{method}", *args)
    try:
        copy.deepcopy(sequential)
    except Exception as error:
        message = f"the state of {_name(spec)} must be plain data, which can be copied: {error}"
        raise TypeError(message) from None


def _takes(called: Callable[..., object], name: str, *args: object) -> None:
    """Raise TypeError if it cannot be called with these arguments, as far as it says so."""
    __tracebackhide__ = True
    with suppress(ValueError):  # of a builtin, which says nothing
        try:
            inspect.signature(called).bind(*args)
        except TypeError as error:
            given = ", ".join(map(str, args))
            raise TypeError(f"linearizable calls {name}({given}): {error}") from None


def _name(made: Callable[..., object]) -> str:
    return getattr(made, "__qualname__", None) or repr(made)


def concurrent_calls(
    methods: Mapping[str, Any],
    *,
    threads: tuple[int, int] = (2, 3),
    calls: tuple[int, int] = (1, 3),
) -> Any:
    """A Hypothesis strategy for what each thread calls.

    `methods` gives for each method a strategy of its argument tuples.
    Shrinks to fewer threads, fewer calls, smaller arguments; the explorer then shrinks the schedule.
    """
    from hypothesis import strategies as st

    @st.composite
    def call(draw: Any) -> tuple[Any, ...]:
        name = draw(st.sampled_from(list(methods)))
        return (name, *draw(methods[name]))

    thread = st.lists(call(), min_size=calls[0], max_size=calls[1])
    return st.lists(thread, min_size=threads[0], max_size=threads[1])
