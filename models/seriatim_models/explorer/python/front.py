"""`check` and `explore`: a plain test function under every schedule.

**The promotion loop.** The search begins with the operations of locks, conditions and threads as its only steps.
Where an execution shows that two accesses to a place race, the search begins again with all accesses to such places as
steps; when no execution shows a new race, the schedules that were run are all that there are (see `places`).

**A sample on the way.** A search in depth changes what came last first, so where there are very many schedules a race
in the middle would be reached late. A search that has not ended after some executions lets a few be drawn from
everywhere, and begins again if none of these is wrong; what is said of all schedules never rests on them.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import inspect
import shlex
import sys
import sysconfig
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, overload

from seriatim_models.explorer.errors import (
    BadToken,
    Misuse,
    NondeterministicProgram,
    NotObserved,
    OutsideModel,
    SkippedTest,
)
from seriatim_models.explorer.model.execution import inside
from seriatim_models.explorer.model.guard import own_code
from seriatim_models.explorer.model.world import World
from seriatim_models.explorer.python import asyncio_state
from seriatim_models.explorer.python.accesses import (
    ATTRIBUTE_NAMES,
    ATTRIBUTES_DELETED,
    CLASSES_LOOKED_INTO,
    PARTIAL_SET,
    RAISED,
    now,
)
from seriatim_models.explorer.python.asyncio_state import quiet
from seriatim_models.explorer.python.classes import SUBCLASSES
from seriatim_models.explorer.python.event_loop import LATEST, OVERTAKEN
from seriatim_models.explorer.python.execution import (
    BESIDE_THREADS,
    LIFETIMES,
    MODULES_LOOKED_INTO,
    Promotion,
    PythonExecution,
    Search,
)
from seriatim_models.explorer.python.lifetimes import outlived
from seriatim_models.explorer.python.places import NAMES_READ, Race, where
from seriatim_models.explorer.python.program import PythonProgram, Target
from seriatim_models.explorer.python.python_token import PythonToken, read, write
from seriatim_models.explorer.python.sandbox import SHARED_WITH_C, Sources
from seriatim_models.explorer.python.waiting_loops import LOCKS_LOOKED_AT, LOOPS
from seriatim_models.explorer.result import Result
from seriatim_models.explorer.search.dpor import Dpor
from seriatim_models.explorer.search.explore import Replay, Strategy
from seriatim_models.explorer.search.explore import explore as explore_program
from seriatim_models.explorer.search.runner import Observer, Summing
from seriatim_models.explorer.search.sampling import Pos
from seriatim_models.explorer.testing import (
    INDENT,
    as_asked,
    failure,
    reject_example,
    standing_for,
    verdict,
)
from seriatim_models.explorer.trace.counterexample import Counterexample, PointOfNoReturn, Violation

OVERTIME, AT_LEAST = 2, 5
"""So many times the seconds that were asked for, and so many more, a search may go on to look for what is shared."""
TIMERS = ("any", "deadline")
RACES = ("allowed", "error")
SOON = 100
"""Executions after which a search that has not ended samples once."""
SAMPLED = 100
"""Executions of the sample."""
OF_THE_TIME = 0.5
"""The part of the time that is left, where there is an end in time, that the executions before the sample may take, and
then the sample: an execution may be so long that there are never so many."""
BOUNDS = frozenset(("max_executions", "preemptions", "keep_going", "trace_set"))
"""Options of a search that has its own end: it samples nothing."""
ALL_OF_A_KIND = (
    BESIDE_THREADS, LIFETIMES, MODULES_LOOKED_INTO, LOOPS, LOCKS_LOOKED_AT, RAISED, CLASSES_LOOKED_INTO, SUBCLASSES,
    PARTIAL_SET,
)  # fmt: skip
"""What is promoted and is no place, whatever its module."""
ONE_SCHEDULE = "the test starts no thread and waits for no timer, so there is one schedule only"
GRANULARITY = "at the granularity of Python operations, sequentially consistent"


def _of_a_kind(label: str) -> bool:
    """Whether what is promoted is no place, but makes places of much."""
    return label in ALL_OF_A_KIND or label.startswith(NAMES_READ)


@dataclass(repr=False)
class PythonResult(Result):
    """What was found of a plain test function."""

    races: list[Race] = field(default_factory=list)
    """The places that race: each access to them is a step. A race alone is no violation."""
    rounds: int = 0
    """How often the search began."""
    unseen: list[str] = field(default_factory=list)
    """What touched shared objects where no access is announced; then the verdict is never ``ok``."""
    traceback: str = ""
    """Of the exception that the counterexample ends with."""


def check(
    test: Callable[..., object],
    strategy: Strategy | None = None,
    *,
    modules: Sequence[str] = (),
    seconds: float | None = None,
    every_access: bool = False,
    timers: str = "any",
    races: str = "allowed",
    given: Mapping[str, object] | None = None,
    **options: Any,
) -> PythonResult:
    """Run a plain test function under every schedule (or those that `strategy` picks); returns what was found.

    `given` are the arguments of the test, by name; each execution is given a copy of them.
    `modules` names installed modules whose code is observed, too. With `every_access` each access to an object is a
    step from the beginning: slow, and the same verdict. `timers` says in which order those of asyncio end: ``any``, or
    ``deadline`` (see `event_loop`). With ``races="error"`` a data race is a violation: two threads use a place, one of
    them writes, and no lock, queue, start or join orders them; what only the standard library itself uses is left out.
    All other options are those of `explorer.explore`.
    Raises `Misuse` and `OutsideModel` for what cannot be explored.
    """
    if options.get("checkpoint") is not None:
        raise Misuse(
            "a checkpoint is for programs of a World: a search of ordinary Python begins again when a place races"
        )
    known_modules(modules)
    if timers not in TIMERS:
        raise Misuse(f"timers={timers!r}: it is one of {', '.join(TIMERS)}")
    if races not in RACES:
        raise Misuse(f"races={races!r}: it is one of {', '.join(RACES)}")
    search = Search(every_access=every_access)
    search.timers = timers
    search.races_are_errors = races == "error"
    return explored(Target.of(test, given), search, strategy, modules, seconds, options)


def known_modules(names: Sequence[str]) -> None:
    """Raise `Misuse` for a name of no module, or of one that C code of the interpreter looks for by its name."""
    for name in names:
        if not _is_there(name):
            raise Misuse(f"modules={name!r}: there is no module of this name")
        if name.partition(".")[0] in SHARED_WITH_C:
            raise Misuse(
                f"modules={name!r}: C code of the interpreter looks for this module by its name and keeps state or "
                "classes in it, and would not find an observed copy: leave it out"
            )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def refuse_free_threaded() -> None:
    """Raise `Misuse` where the interpreter is built without the GIL.

    Steps are those of an interpreter with it, and lifetimes are read off reference counts, which are others there.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise Misuse(
            f"this is a free-threaded build of Python {version}: there C code that looks into several objects is no "
            "single operation, and ordinary code was never explored on one. Use the ordinary build of this version: "
            "what it finds is wrong on both"
        )


def explored(
    target: Target,
    search: Search,
    strategy: Strategy | None,
    modules: Sequence[str],
    seconds: float | None,
    options: dict[str, Any],
) -> PythonResult:
    """The promotion loop, with the modules that the program shows to be needed besides `modules`.

    Raises `Misuse` on a free-threaded build.
    """
    refuse_free_threaded()
    began = time.perf_counter()
    end = None if seconds is None else began + seconds * OVERTIME + AT_LEAST
    while True:
        try:
            return _promoted(target, search, strategy, modules, seconds, end, options)
        except NotObserved as error:
            if error.module in modules:
                raise
            if end is not None and time.perf_counter() > end:
                result = _out_of_time(target, search, error.module, strategy)
                _limited(result, seconds)
                return summed(result, search, 0, time.perf_counter() - began)
            modules = (*modules, error.module)
            search.begin_again()


def _promoted(
    target: Target,
    search: Search,
    strategy: Strategy | None,
    modules: Sequence[str],
    seconds: float | None,
    end: float | None,
    options: dict[str, Any],
) -> PythonResult:
    """The promotion loop, which begins no round after `end`; of a replay one round, with the places of its token."""
    started = time.perf_counter()
    sources = Sources(modules, {target.module: target.path})
    token = None
    if isinstance(strategy, Replay):
        token = read(strategy.token)
        search.promoted = {place: Race(place, 0, 0) for place in token.places}
        strategy = Replay(token.token)
    rounds = 0
    options = dict(options)
    look = options.pop("on_execution", None)
    with _without_collector(), own_code(), quiet():
        while True:
            rounds += 1
            program = PythonProgram(target, sources, search)
            try:
                result = _searched(
                    program,
                    strategy,
                    look is None and BOUNDS.isdisjoint(options),
                    None if seconds is None else started + seconds,
                    {"name": target.name, **options, "on_execution": RoundObserver(search, look)},
                )
            except Promotion:
                if end is not None and time.perf_counter() > end:
                    result = _out_of_time(target, search, "", strategy)
                    break
            except NondeterministicProgram:
                if not search.found:
                    raise
            except BadToken as error:
                raise _explained(error, token, sources) from None
            else:
                if token is not None or not search.found or result.verdict == "violated":
                    break
            finally:
                program.sandbox.state = None  # which holds all that an import has made
            search.promote()
    if result.verdict == "violated" and asyncio_state.is_of_the_real_one(search.traceback):
        raise OutsideModel(
            "code that is not observed has asked the real asyncio for its event loop: name its module in modules="
        )
    _limited(result, seconds)
    made = summed(result, search, rounds, time.perf_counter() - started)
    if result.counterexample is not None:
        made.counterexample = _completed(result.counterexample, target, search, sources)
    return made


def _out_of_time(target: Target, search: Search, last: str, strategy: Strategy | None) -> Result:
    """The result of a search that began again and again, each time with one more place or module, and saw no end."""
    last = last or next(reversed(search.found), "")
    untested = (
        "no execution came to its end within seconds=0: each that was begun showed another place or module to be "
        f"observed, the last {last}"
    )
    return Result(target.name, str(strategy or Dpor()), untested=untested, bounds={"seconds": 0})


def _searched(
    program: PythonProgram,
    strategy: Strategy | None,
    sampling: bool,
    until: float | None,
    options: dict[str, Any],
) -> Result:
    """One round: every schedule, or what the strategy picks; `sampling` as the module says. Ends at a time, `until`.

    Each search begins with some executions whatever its time is, so where they are long none is begun that has no time.
    """

    def search(by: Strategy | None, most: int | None = None) -> Result:
        share = 1.0 if most is None else OF_THE_TIME
        left = None if until is None else max(share * (until - time.perf_counter()), 0.01)
        bound = options if most is None else {**options, "max_executions": most, "jobs": 1}
        return explore_program(program, by, seconds=left, attributes=False, **bound)

    def over() -> bool:
        return until is not None and time.perf_counter() >= until

    if sampling and (strategy is None or isinstance(strategy, Dpor)):
        first = search(strategy, SOON)
        if first.verdict == "violated" or first.exhausted or over():
            return first
        some = search(Pos(), SAMPLED)
        if some.verdict == "violated":
            return some
        if over():
            return first
    return search(strategy)


def _limited(result: Result, seconds: float | None) -> None:
    """Let a result name the time that was asked for, and not the part of it that its last search was given."""
    given = result.bounds.get("seconds")
    if given is None or seconds is None:
        return
    result.bounds["seconds"] = seconds
    for name in ("why", "untested"):
        text = getattr(result, name)
        setattr(result, name, text.replace(f"seconds={given}", f"seconds={seconds:g}"))


@contextmanager
def _without_collector() -> Iterator[None]:
    """No garbage is collected but between two executions: a finalizer would run in the midst of another one."""
    collecting = gc.isenabled()
    gc.disable()
    gc.freeze()  # what was there before the search need not be looked at again
    try:
        yield
    finally:
        now.execution = None
        gc.unfreeze()
        if collecting:
            gc.enable()


def _explained(error: BadToken, token: PythonToken | None, sources: Sources) -> BadToken:
    """Why a token cannot be replayed, if the sources are others."""
    if token is not None and sources.found and token.sources != sources.digest():
        return BadToken(
            f"the token was made from other sources ({token.sources}, these are {sources.digest()}): "
            "a schedule of a program that has changed means nothing"
        )
    return error


def _completed(
    case: Counterexample, target: Target, search: Search, sources: Sources
) -> Counterexample:
    """A counterexample with the racing pairs and the token of ordinary Python."""
    token = write(sources.digest(), list(search.promoted), case.token)
    options = [word for module in sources.named for word in ("--module", module)]
    if search.timers != "any":
        options += ["--timers", search.timers]
    if search.races_are_errors:
        options.append("--attributes")
    shown = [
        Violation("racing pair", race)
        for race in search.promoted.values()
        if race.second and race.place not in (ATTRIBUTE_NAMES, ATTRIBUTES_DELETED)
    ]

    if search.last_overtook:
        way_out = "where durations can be relied on, take timers='deadline' (--timers deadline)"
        hint = f"{search.last_overtook}, which was set earlier; {way_out}"
        shown.append(Violation("timers out of order", hint))

    def lost() -> PointOfNoReturn | None:
        with _without_collector(), own_code(), quiet(), suppress(Promotion, NotObserved):
            return case.lost()
        return None  # a continuation shows a race that the search did not need

    return replace(
        case,
        lost=lost,
        token=token,
        violations=[*case.violations, *shown],
        command=f"check({target.name}, Replay({token!r}), given=...)"
        if target.given
        else shlex.join(["seriatim", "check", target.address, *options, "--replay", token]),
    )


class RoundObserver:
    """Ends a round when an execution has shown a race; all others are looked at by `look`.

    It is `Summing`, so that what the processes of a search see comes together: a race, wherever it is found.
    """

    def __init__(self, search: Search, look: Observer | None) -> None:
        self.search = search
        self.look = look

    def __call__(self, world: World) -> object:
        """See an execution. Raises `Promotion` or `NotObserved` if the search is to begin again."""
        search = self.search
        if world._ex.end != "finished":
            search.last_overtook = search.overtook
        if search.needed:  # the program may have caught it
            raise NotObserved(search.needed[0])
        ex = world._ex
        assert isinstance(ex, PythonExecution)
        if LIFETIMES not in search.promoted and outlived(ex):
            search.found.setdefault(LIFETIMES, Race(LIFETIMES, 0, 0))
        if search.found and not world.is_replay:
            raise Promotion(", ".join(search.found))
        return None if self.look is None else self.look(world)

    def empty(self) -> RoundObserver:
        """One for another process: the search is the same, and what it has seen may be added twice."""
        return RoundObserver(
            self.search, self.look.empty() if isinstance(self.look, Summing) else self.look
        )

    def counts(self) -> tuple[dict[str, Any], Any]:
        """What was seen of the search, and what `look` has seen if it can be added up."""
        return self.search.seen(), self.look.counts() if isinstance(self.look, Summing) else None

    def add(self, counts: tuple[dict[str, Any], Any]) -> None:
        """Add what another process has seen."""
        self.search.add(counts[0])
        if isinstance(self.look, Summing):
            self.look.add(counts[1])


def summed(result: Result, search: Search, rounds: int, seconds: float) -> PythonResult:
    """The result of the last round with what only this package knows."""
    made = PythonResult(**{f.name: getattr(result, f.name) for f in fields(Result)})
    made.races = [race for race in search.promoted.values() if not _of_a_kind(race.place)]
    made.rounds = rounds
    made.seconds = seconds
    made.unseen = list(search.unseen)
    if made.verdict == "violated":
        if made.counterexample is not None and made.counterexample.end == "failed":
            made.traceback = search.traceback
        return made
    suspected = ("and nothing changes", "perhaps for ever: a livelock is suspected")
    made.why, made.untested = made.why.replace(*suspected), made.untested.replace(*suspected)
    if made.unseen:
        made.untested = (
            f"{made.unseen[0]}, and this is not observed. "
            "Name its module in modules=, or keep the object from it"
        )
    elif search.threads < 2 and not search.timers_ended:
        made.untested = ONE_SCHEDULE
    if made.untested:
        made.verdict = "inconclusive"
        made.why = (
            f"nothing was wrong in {made.executions} executions, but that says little: "
            f"{made.untested}"
        )
    if made.verdict == "inconclusive":
        made.why += _endless(search)
    elif made.verdict == "ok":
        made.why += f", {GRANULARITY}"
        if search.races_are_errors:
            made.why += ", without a data race"
        if search.timers_ended:
            order = "in any order" if search.timers == "any" else "in the order of their deadlines"
            made.why += f"; timers of asyncio end {order}, between any two turns of the loop"
        if search.timers_bounded:
            made.why += f", each within {LATEST} turns and before {OVERTAKEN + 1} that were set later and for longer"
    return made


def _endless(search: Search) -> str:
    """The loop that keeps a search from its end, with the way out; "" if none went round often."""
    rounds, site = search.longest_loop
    if not rounds:
        return ""
    return (
        f"; the loop at {where(site)} went round {rounds} times in one execution, and its rounds may change something, "
        "so it is not known to wait: wait for an Event or a Condition instead, or bound the loop"
    )


def demand(result: PythonResult, exhaustive: bool = False, indent: int = INDENT) -> None:
    """Raise AssertionError if the result is a violation or says nothing (see `testing.verdict`)."""
    __tracebackhide__ = True
    if result.counterexample is not None:
        raise AssertionError(failure(result.counterexample, result.traceback, indent))
    verdict(result, exhaustive)


@overload
def explore(
    test: Callable[..., object], strategy: Strategy | None = None
) -> Callable[[], None]: ...


@overload
def explore(
    *, strategy: Strategy | None = None, exhaustive: bool = False, **options: Any
) -> Callable[[Callable[..., object]], Callable[[], None]]: ...


def explore(
    test: Callable[..., object] | None = None, strategy: Strategy | None = None, **options: Any
) -> Any:
    """Make a test of a plain function that runs it under every schedule; a decorator, with options or without.

    The decorated test raises AssertionError with the counterexample. Options are those of `check`, and `exhaustive`:
    whether the test fails also if a budget ran out first. What the test is called with by name (`given` of Hypothesis,
    `parametrize` of pytest) goes to each execution.
    """
    if test is None:
        return functools.partial(explore, strategy=strategy, **options)
    if inside():
        return test  # the module is being executed by an exploration
    exhaustive = options.pop("exhaustive", False)

    def run(args: tuple[Any, ...], given: dict[str, Any]) -> None:
        __tracebackhide__ = True
        method = "." in test.__qualname__
        if method and not args:  # Hypothesis gives the object by its name
            args = tuple(
                given.pop(n) for n in [*inspect.signature(test).parameters][:1] if n in given
            )
        if args[1:] or (args and not method):
            raise TypeError(f"{test.__name__} takes arguments by name only")
        found = types.MethodType(test, *args) if args else test
        try:
            result = as_asked(functools.partial(check, found, given=given), strategy, options)
        except SkippedTest as error:
            raise error.skip from None
        if result.untested == ONE_SCHEDULE:
            reject_example()
        demand(result, exhaustive)

    return functools.wraps(test)(standing_for(test, run))
