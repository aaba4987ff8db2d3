"""`explore`: run a program under a strategy within budgets, and return what was found and how far it went."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from seriatim_models.explorer.errors import CHANCE, BadToken, Misuse, NondeterministicProgram
from seriatim_models.explorer.model.attributes import (
    AttributeObserver,
    Observed,
    observed_classes,
)
from seriatim_models.explorer.model.guard import explores_own_code, guarded
from seriatim_models.explorer.model.program import (
    Limits,
    Program,
    Setting,
    refuse_no_program,
)
from seriatim_models.explorer.model.survey import Survey, own_program
from seriatim_models.explorer.model.watchdog import watched
from seriatim_models.explorer.result import Result
from seriatim_models.explorer.search import bounded
from seriatim_models.explorer.search.dpor import Dpor, DporSearch
from seriatim_models.explorer.search.estimate import Estimator
from seriatim_models.explorer.search.estimate import progress as progress_of
from seriatim_models.explorer.search.frontier import load, save
from seriatim_models.explorer.search.parallel import explore_parallel
from seriatim_models.explorer.search.point_of_no_return import point_of_no_return
from seriatim_models.explorer.search.runner import Observer, Runner
from seriatim_models.explorer.search.shrink import Shrinker
from seriatim_models.explorer.trace import replay_token
from seriatim_models.explorer.trace.counterexample import Counterexample, Violation
from seriatim_models.explorer.trace.cycles import longest_spin
from seriatim_models.explorer.trace.replay_run import counterexample, follow, tokened

SAVE_EVERY = 5.0
"""Seconds between checkpoints."""

OBJECTS_BETWEEN_COLLECTIONS = 5_000
"""New objects between two runs of Python's garbage collector: those of some ten executions, which caches still hold.

With 20,000 a collection took twice as long for each object.
"""

SEARCHES_BETWEEN_COLLECTIONS = 64
"""After so many searches everything is collected: what one of them returned may have become garbage since."""


class Strategy(Protocol):
    """How schedules are picked."""

    real_time: bool

    def search(self, runner: Runner) -> None:
        """Run executions of the program under test until a budget runs out or all were seen."""


class Replay:
    """Run one schedule again, from its token."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.real_time = False

    def __str__(self) -> str:
        return f"Replay({self.token!r})"

    def search(self, runner: Runner) -> None:
        """Not used: `explore` replays by itself."""
        raise NotImplementedError  # explore() replays by itself


_searches = count(1)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python's garbage collector run rarely, and only over what the body makes; then collect what that left.

    Every execution leaves its objects behind, which refer to each other in circles: with its usual thresholds the
    collector looks many times at those that are still in use, and took a fifth of the time of a search. What is frozen
    is not collected, and comes back among the oldest objects: what is garbage by then would stay for ever.
    """
    first, *others = gc.get_threshold()
    if not gc.isenabled() or first == 0:
        yield
        return
    gc.collect(2 if next(_searches) % SEARCHES_BETWEEN_COLLECTIONS == 0 else 1)
    gc.freeze()
    gc.set_threshold(max(first, OBJECTS_BETWEEN_COLLECTIONS), *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)
        gc.collect()  # of what the body made: all else is frozen
        gc.unfreeze()


# Long: most of it is the list of options and what they mean.
@_rare_collections()
def explore(
    program: Program,
    strategy: Strategy | None = None,
    *,
    max_executions: int | None = None,
    seconds: float | None = None,
    max_steps: int = 5000,
    preemptions: int | None = None,
    timeouts: int = 1,
    spurious: int = 0,
    stuck_ok: bool = False,
    keep_going: bool = False,
    on_execution: Observer | None = None,
    name: str | None = None,
    count_traces: bool = True,
    trace_set: bool = False,
    progress: Callable[[Runner], None] | None = None,
    shrink: int = 500,
    checkpoint: str | Path | None = None,
    jobs: int = 1,
    attributes: Observed | None = None,
) -> Result:
    """Run `program` under the schedules that `strategy` picks (all of them, by default); returns what was found.

    Budgets: `max_executions`, `seconds`; what runs out makes the verdict inconclusive.
    Bounds: `max_steps` of one execution; `timeouts` and `spurious` wake-ups of one thread;
    `preemptions` of a schedule (with `Dpor`, all schedules with so few are run one by one instead: see `bounded`).
    `progress` is called twice a second with the `Runner`, whose counts can be read.
    The first violation ends the search unless `keep_going`. Threads that are stuck for ever are a violation
    unless `stuck_ok`. `on_execution` sees the world of every execution after its end,
    and may return (or assert) what is wrong with it. Up to `shrink` further executions are spent on a counterexample
    with fewer preemptions, then fewer steps, of `seconds` what is left, but at least two; in these `world.is_replay` is
    true.
    With `checkpoint`, a file, a search that was killed or ran out of budget goes on where it was (`Dpor` only).
    With `jobs`, several processes share the search (`Dpor` only); then `on_execution` is called in them.
    With `attributes`, classes or modules that define some (True: the program's own module), a plain attribute of
    their objects that two threads touch with nothing that orders them is a violation, see `model.attributes`.
    Unless it is said, the classes that the program uses are found and observed (`model.survey`), and such an attribute
    makes the verdict inconclusive; False observes nothing, nor do the project's own programs unless asked.

    Raises `OutsideModel` for a real lock, thread, wait or clock in the program, `Misuse` for what cannot be run.
    """
    strategy = Dpor() if strategy is None else strategy
    refuse_no_program(program)
    if not hasattr(strategy, "real_time"):
        raise Misuse(f"strategy={strategy!r}: it is an object, such as Dpor() or Pct()")
    name = getattr(program, "__name__", "program") if name is None else name
    limits = Limits(max_executions, seconds, max_steps, preemptions, keep_going)
    replayed = replay_token.read(strategy.token) if isinstance(strategy, Replay) else None
    if replayed is not None:
        setting = Setting(replayed.real_time, replayed.timeouts, replayed.spurious, stuck_ok)
    else:
        setting = Setting(strategy.real_time, timeouts, spurious, stuck_ok)
    observer = AttributeObserver(observed_classes(attributes, program)) if attributes else None
    runner = Runner(
        program,
        setting,
        limits,
        on_execution=on_execution,
        count_traces=count_traces,
        trace_set=trace_set,
        progress=progress,
        observer=observer,
    )
    with _bordered(runner, survey=attributes is None and not own_program(program)):
        if replayed is not None:
            return _replay(runner, name, strategy, replayed)
        return _explored(runner, name, strategy, checkpoint, jobs, shrink)


@contextmanager
def _bordered(runner: Runner, survey: bool) -> Iterator[None]:
    """Refuse what is outside the model while the body runs, and end what stands still.

    Observe attributes: of the classes that the runner's observer names or, with `survey`, that the program uses.
    """
    with guarded(), watched(runner.limits.seconds), ExitStack() as until:
        if survey:
            seen = Survey(runner.program)
            until.callback(seen.ended)
            if seen.classes:
                runner.observer = AttributeObserver(seen.classes, withholds=True)
        if runner.observer is not None:
            until.enter_context(runner.observer.installed())
        yield


def _explored(
    runner: Runner,
    name: str,
    strategy: Strategy,
    checkpoint: str | Path | None,
    jobs: int,
    shrink: int,
) -> Result:
    """Check that the program is deterministic, search, shrink what was found, and sum up."""
    setting, limits = runner.setting, runner.limits
    operations = run_twice(runner)
    program_id = f"{replay_token.program_hash(name, operations)} {setting} {limits.max_steps}"
    if runner.observer is not None:
        program_id += f" {runner.observer}"
    _take_turns(runner)
    if not runner.found or limits.keep_going:
        path = None if checkpoint is None else Path(checkpoint)
        _search(runner, strategy, program_id, path, jobs)
    if runner.spent and not runner.spin:
        runner.spin = _spinning(runner)
    seconds_spent = runner.seconds
    if runner.found and shrink > 0:
        runner.found[0] = Shrinker(runner, shrink).run()
    result = _finding(runner, name, strategy)
    result.seconds = seconds_spent
    if (
        isinstance(strategy, Dpor)
        and not strategy.symmetry  # how many of all traces are twins is not known before
        and result.verdict == "inconclusive"
        and not runner.cut
    ):
        # A budget ran out. How much is there besides?
        estimator = Estimator(runner.program, setting, limits.max_steps)
        size = estimator.spend(min(0.05 * seconds_spent, 0.5))
        result.progress = progress_of(runner, size)
        result.why += f"; {result.progress.size}"
    return result


def _search(
    runner: Runner, strategy: Strategy, program: str, checkpoint: Path | None, jobs: int
) -> None:
    if not isinstance(strategy, Dpor):
        if runner.limits.preemptions is not None:
            raise Misuse(f"a bound on preemptions is for Dpor(); {strategy} picks as it likes")
        if checkpoint is not None or jobs > 1:
            raise Misuse(f"checkpoint and jobs are for Dpor(); {strategy} has no frontier to share")
        strategy.search(runner)
    elif strategy.symmetry:
        if checkpoint is not None or jobs > 1 or runner.limits.preemptions is not None:
            raise Misuse(
                "symmetry goes with neither checkpoint nor jobs nor a bound on preemptions"
            )
        strategy.search(runner)
    elif runner.limits.preemptions is not None:
        if checkpoint is not None or jobs > 1:
            raise Misuse("checkpoint and jobs do not go with a bound on preemptions")
        bounded.search(runner)
    elif jobs > 1:
        if checkpoint is not None:
            raise Misuse(
                "a search in several processes writes no checkpoint: choose one of the two"
            )
        explore_parallel(runner, jobs)
    elif checkpoint is not None:
        _search_with_checkpoint(runner, program, checkpoint)
    else:
        strategy.search(runner)


def _search_with_checkpoint(runner: Runner, program: str, path: Path) -> None:
    search = load(path, runner, program) if path.exists() else DporSearch(runner)
    saved = [runner.seconds]

    def now_and_then(search: DporSearch) -> None:
        if runner.seconds - saved[0] >= SAVE_EVERY:
            save(path, search, program)
            saved[0] = runner.seconds

    runner.save = now_and_then
    search.run()
    if runner.exhausted or (runner.found and not runner.limits.keep_going):
        path.unlink(missing_ok=True)
    else:
        save(path, search, program)


def run_twice(runner: Runner) -> list[str]:
    """Run one schedule twice and compare what happened: what differs is chance from outside the model."""
    seen: list[list[str]] = []
    for _ in range(2):
        limits, runner.limits = runner.limits, Limits(max_steps=min(runner.limits.max_steps, 500))
        try:
            ex = follow(runner, [])
        finally:
            runner.limits = limits
        assert ex is not None
        seen.append([f"{s.thread}: {s}" for s in ex.log or []])
        ex.close()
    if seen[0] != seen[1]:
        step = next(
            (k for k, (a, b) in enumerate(zip(*seen, strict=False)) if a != b),
            min(map(len, seen)),
        )
        sides = [s[step] if step < len(s) else "the end" for s in seen]
        raise NondeterministicProgram(
            f"two runs of one schedule differ at step {step + 1}: first {sides[0]}, then {sides[1]}. {CHANCE}"
        )
    return seen[0]


def _take_turns(runner: Runner) -> None:
    """Let the threads take turns, once after every step, once after every second and so on, and look for a livelock.

    A livelock needs a fair schedule without end, and a search that goes into depth first may come to it last of all.
    """
    if runner.setting.stuck_ok:
        return
    for patience in (1, 2, 3):
        ex = follow(runner, [], patience=patience)
        assert ex is not None
        if ex.end == "livelock":
            runner.found.append((list(ex.schedule), [Violation("livelock", str(ex.cycle))]))
            runner.violations += 1
            runner.cut += 1
            runner.ends["livelock"] += 1
        ex.close()
        if runner.found:
            return


def _spinning(runner: Runner) -> str:
    """Whether the longest execution was so long because a thread repeated the same steps."""
    ex = follow(runner, runner.deepest)
    if ex is None:
        return ""
    cycle = longest_spin(ex.log or [])
    ex.close()
    return "" if cycle is None else str(cycle)


def _replay(
    runner: Runner, name: str, strategy: Strategy, token: replay_token.Replayable
) -> Result:
    ex = follow(runner, token.schedule)
    if ex is None:
        raise BadToken(
            "the token asks for a step that this program cannot take: "
            "it was made from another program, or the program has changed since"
        )
    made = replay_token.read(tokened(runner, name, ex))
    schedule = list(ex.schedule)
    if made.program != token.program:
        ex.close()
        raise BadToken(
            f"the token was made from another program ({token.program}, this run of {name} is {made.program}), "
            "or the program has changed since"
        )
    ex.world.is_replay = False  # it is what was asked for, and is judged like any other
    runner.ended(ex, ex.end, None)
    result = _finding(runner, name, strategy)
    if result.counterexample is None:
        result.why = (
            f"the replayed schedule of {len(schedule)} steps ended '{ex.end}' with nothing wrong"
        )
    return result


def _finding(runner: Runner, name: str, strategy: Strategy) -> Result:
    limits, setting = runner.limits, runner.setting
    bounds: dict[str, int | float | None] = {
        "max_executions": limits.max_executions,
        "seconds": limits.seconds,
        "max_steps": limits.max_steps,
        "preemptions": limits.preemptions,
        "timeouts": setting.timeouts,
        "spurious": setting.spurious,
    }
    result = Result(
        program=name,
        strategy=str(strategy),
        exhausted=runner.exhausted,
        complete=runner.complete,
        blocked=runner.blocked,
        cut=runner.cut,
        redundant=runner.redundant,
        traces=_traces(runner, strategy),
        unreduced=runner.unreduced,
        violations=runner.violations,
        outcomes=runner.outcomes,
        ends=runner.ends,
        bounds=bounds,
        seconds=runner.seconds,
        steps=runner.steps,
        depth=runner.depth,
        seed=runner.seed,
        chance=runner.chance,
        split=runner.split,
        trace_set=runner.forms,
    )
    if runner.found:
        schedule, wrong = runner.found[0]
        case = _repeatable(runner, counterexample(runner, name, schedule, wrong))
        result.counterexample = case
        result.verdict = "violated"
        result.why = f"{case.what} (execution {result.executions}, {len(case.events)} steps)"
    elif untested := _untested(runner):
        result.verdict = "inconclusive"
        result.untested = untested
        result.why = f"nothing was wrong in {_many(result)}, but that says little: {untested}"
    elif runner.exhausted:
        result.verdict = "ok"
        within = ", ".join(
            f"{name}={bounds[name]}"
            for name in ("preemptions", "max_steps", "timeouts", "spurious")
            if bounds[name] is not None
        )
        result.why = f"all {_many(result)} within {within} were looked at, and nothing was wrong"
    else:
        result.verdict = "inconclusive"
        reason = f"stopped by {runner.spent}" if runner.spent else "a sample, not all"
        if runner.spin:
            other = "" if explores_own_code() else " or by wait_until of the cell"
            reason += f"; {runner.spin} (block on a condition{other} instead, or bound the loop)"
        result.why = f"nothing was wrong in {_many(result)}, but that is not everything: {reason}"
    if runner.split is not None:
        result.why += f"; {runner.split}"
    return result


def _repeatable(runner: Runner, case: Counterexample) -> Counterexample:
    """The case with what finds its point of no return, under the setting with which it was found itself."""
    lost = partial(
        point_of_no_return,
        runner.program,
        case,
        setting=runner.setting,
        on_execution=runner.on_execution,
    )
    return replace(case, lost=lost)


def _untested(runner: Runner) -> str:
    """Why the schedules that were run say nothing of the program, "" if they do."""
    reasons = []
    if not runner.visible:
        reasons.append(
            "no thread took a visible step, so there was nothing to interleave: threads change only at operations "
            "of the host. Give world.host to the code under test, and let it make its cells, locks, conditions and "
            "semaphores there"
        )
    elif not runner.complete:
        steps = f"max_steps={runner.limits.max_steps}"
        within = steps if runner.cut else runner.spent or "the budget"
        spin = f"; {runner.spin}" if runner.spin else ""
        reasons.append(f"no execution came to its end within {within}{spin}")
    if runner.races:
        more = (
            f" ({len(runner.races)} data races, this is the first)" if len(runner.races) > 1 else ""
        )
        reasons.append(
            f"data race on {next(iter(runner.races))}{more}. Say attributes=False if it is meant so"
        )
    return "; ".join(reasons)


def _traces(runner: Runner, strategy: Strategy) -> int | None:
    """How many different traces: counted, or, where they are too many to be remembered, inferred."""
    if runner.seen is None:
        return None
    if isinstance(strategy, Dpor) and runner.limits.preemptions is None:
        # Exactly the executions that were no repetition; of many traces a sample is compared, see `TraceSample`.
        return runner.complete - runner.redundant
    return runner.seen.count


def _many(result: Result) -> str:
    if result.traces is None:
        return f"{result.executions} executions"
    in_all = ""
    if result.unreduced == result.traces:
        in_all = "; no threads were exchanged"
    elif result.unreduced is not None:
        in_all = f"; {result.unreduced} with identical threads distinguished"
    return f"{result.traces} traces ({result.executions} executions{in_all})"


def checked(result: Result) -> Any:
    """Raise AssertionError with the counterexample if the result is a violation; for tests."""
    if result.counterexample is not None:
        raise AssertionError(result.counterexample.text())
    return result
