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

A failing test shows the schedule in columns and a token; `pytest --explore-replay TOKEN` runs that schedule only.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seriatim_models.explorer.errors import BadToken
from seriatim_models.explorer.linearize import Call, check_linearizable
from seriatim_models.explorer.model.world import World
from seriatim_models.explorer.result import Result
from seriatim_models.explorer.search.explore import Replay, Strategy, explore

OPTIONS: dict[str, Any] = {"replay": None, "seconds": None, "replayed": 0, "skipped": 0}
"""Set from the command line by `pytest_plugin`."""


class Inconclusive(AssertionError):
    """Nothing was tested, or a budget ran out before everything was seen and the test asked for everything."""


def explored(
    strategy: Strategy | None = None, *, exhaustive: bool = False, **budgets: Any
) -> Callable[[Callable[..., object]], Callable[..., None]]:
    """Make a test of a program: its first argument is the world, further ones are fixtures.

    With `exhaustive` the test fails also if a budget ran out first.
    """

    def decorate(function: Callable[..., object]) -> Callable[..., None]:
        @functools.wraps(function)
        def test(*args: Any, **kwargs: Any) -> None:
            def program(world: World) -> object:
                return function(world, *args, **kwargs)

            program.__module__ = function.__module__  # whose classes are observed
            judge(
                program,
                strategy,
                exhaustive,
                {"name": function.__name__, **budgets},
            )

        signature = inspect.signature(function)
        test.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=list(signature.parameters.values())[1:]
        )
        return test

    return decorate


def judge(
    program: Callable[..., object],
    strategy: Strategy | None,
    exhaustive: bool,
    budgets: dict[str, Any],
) -> Result:
    """Explore, and raise AssertionError if something is wrong."""
    if OPTIONS["replay"] is not None:
        try:
            result = explore(program, Replay(OPTIONS["replay"]), **budgets)
        except BadToken as error:
            if "program" not in str(error):
                raise
            import pytest

            # One token is given to a whole session, and is of one test; all others have nothing to replay.
            OPTIONS["skipped"] += 1
            pytest.skip(f"the token to replay is of another test: {error}")
        OPTIONS["replayed"] += 1
    else:
        if OPTIONS["seconds"] is not None:
            budgets = {**budgets, "seconds": OPTIONS["seconds"]}
        result = explore(program, strategy, **budgets)
    return verdict(result, exhaustive)


def verdict(result: Result, exhaustive: bool = False) -> Result:
    """Raise AssertionError if the result is a violation or says nothing (or, if all was asked for, inconclusive)."""
    if result.counterexample is not None:
        case = result.counterexample
        raise AssertionError(
            f"{case.text()}\nor: pytest --explore-replay {case.token} -k {result.program}"
        )
    if OPTIONS["replay"] is None and (result.untested or (exhaustive and not result.exhausted)):
        raise Inconclusive(str(result))
    return result


def linearizable(
    make: Callable[[Any], object],
    spec: Callable[[], object],
    threads: Sequence[Sequence[Call]],
    *,
    max_executions: int = 5000,
    **budgets: Any,
) -> Result:
    """Fail unless the calls of these threads are linearizable under every schedule (within the budget)."""
    found = check_linearizable(make, spec, threads, max_executions=max_executions, **budgets)
    if found.counterexample is not None:
        raise AssertionError(found.counterexample.text())
    if found.untested:
        raise Inconclusive(str(found))
    return found


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

    one = st.one_of(
        [
            st.builds(lambda args, name=name: (name, *args), arguments)
            for name, arguments in methods.items()
        ]
    )
    thread = st.lists(one, min_size=calls[0], max_size=calls[1])
    return st.lists(thread, min_size=threads[0], max_size=threads[1])
