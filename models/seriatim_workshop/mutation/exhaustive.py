"""Judging a changed reference by every schedule: programs, and the single calls and the pairs of calls of the matrix.

A mutant is a set of modules of its own beside the right ones (`run_modules`), so nothing of this process is replaced.
Only checks that come to the block that the mutant changes are run (`coverage`), the cheapest first, each at first for
a few schedules and then for more, until a property or the outcome oracle catches it or the processor's seconds for it
are spent. A check that has more schedules than were run is *capped*, and says nothing about a mutant that it did not
catch.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from types import ModuleType

from seriatim_models.explorer import ExplorerError
from seriatim_models.explorer.trace.termination import STUCK
from seriatim_models.matrix.cells import run_pair
from seriatim_models.matrix.states import edge_problem
from seriatim_models.matrix.systems import SYSTEMS as MATRICES
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.base import Program
from seriatim_models.programs.check import Judge
from seriatim_models.programs.mutant_modules import SYSTEMS, load, run_modules, source, system_of
from seriatim_workshop.mutation.consequences import (
    ENDS,
    consequence,
    left_a_call,
    raced_attributes,
)
from seriatim_workshop.mutation.coverage import (
    EdgeProfile,
    PairProfile,
    ProgramProfile,
    SystemCoverage,
    coverage_of,
)
from seriatim_workshop.mutation.outcomes import OutcomeSet
from seriatim_workshop.mutation.processor_time import processor_seconds
from seriatim_workshop.mutation.run import CAPPED, OUT_OF_TIME
from seriatim_workshop.mutation.searching import (
    ALL,
    SOME,
    Kill,
    SecondsSpent,
    kill_of,
    races_of,
    search,
)

FEW = 10
"""How many executions of a check are run at first."""
AT_ONCE = 100
"""A program that has no more, and whose threads come to the block, is run to its end at first."""
PAIR_EXECUTIONS = 100
"""How many executions of a program of the matrix are run at most."""
SECONDS = 30.0
"""Of the processor, for one mutant."""
CANNOT_BE_EXPLORED = "cannot be explored"
DATA_RACE = "data race"
PATIENCE = 5.0
"""Seconds of the processor, beside ten times those that it takes over the right reference, after which a check with a
mutant counts as an endless loop that no step of a schedule ends."""
CAUGHT = 1
"""Exit code of a process that caught its mutant; 0 is that it survived, and see `run.CAPPED`."""


@dataclass
class CheckResult:
    """What one check says of a mutant."""

    kill: Kill | None = None
    capped: bool = False
    """Whether there are more schedules than were run."""


@dataclass(frozen=True)
class BoundedCheck:
    """One check of a reference, for some executions."""

    name: str
    seconds: float
    """Of the processor, that it takes over the right reference."""
    run: Callable[[ModuleType, float], CheckResult]
    """(mutant, when the seconds of this process for it are spent) -> answer."""
    last: bool = True
    """Whether it is not run again for more executions."""


@dataclass
class Judgement:
    """What all checks say of a mutant."""

    kill: Kill | None = None
    capped: list[str] = field(default_factory=list)
    """The checks that have more schedules than were run."""
    endless: list[str] = field(default_factory=list)
    """The checks that did not come to an end, and where they were."""
    checks: int = 0
    """How many were run."""
    left_out: int = 0
    """How many were not, because the seconds were spent."""

    def __str__(self) -> str:
        if self.kill is not None:
            return str(self.kill)
        if self.endless:
            return self.endless[0]
        left = f"{self.left_out} checks not run; " if self.left_out else ""
        capped = f"{len(self.capped)} capped: {', '.join(self.capped[:3])}" if self.capped else ""
        return f"{left}{capped}" if left or capped else f"not caught by {self.checks} checks"

    @property
    def exit_code(self) -> int:
        """Caught, out of time, inconclusive or survived."""
        if self.kill is not None:
            return CAUGHT
        if self.endless:
            return OUT_OF_TIME
        return CAPPED if self.left_out or self.capped else 0


# ---- the checks


def checks_of(
    system: str, block: str, known: SystemCoverage | None = None, most: int = ALL
) -> Iterator[BoundedCheck]:
    """Yield the checks of a system that come to a block (all, if none is named), in the order in which to run them."""
    known = coverage_of(system) if known is None else known
    programs = [
        (p, known.programs[p.id])
        for p in PROGRAMS.values()
        if p.reference == system and (not block or block in known.programs[p.id].blocks)
    ]
    # Those first in which threads come to the block: for the others it is sequential, and few executions say as much.
    programs.sort(key=lambda pair: (block not in pair[1].in_threads, pair[1].seconds))
    edges = [e for e in known.edges if not block or block in e.blocks]
    pairs = [p for p in known.pairs if not block or block in p.blocks]
    pairs.sort(key=lambda p: (len(p.pair.path), p.seconds * p.executions))
    few, capped = min(FEW, most), min(PAIR_EXECUTIONS, most)

    def pair_at_first(profile: PairProfile) -> BoundedCheck:
        return _pair(profile, capped if profile.exhausted else few)

    longer = [(p, profile) for p, profile in programs if profile.executions > few]
    small = [(p, profile) for p, profile in longer if profile.executions <= min(SOME, most)]
    at_once = [
        (p, profile)
        for p, profile in programs
        if profile.executions <= AT_ONCE and block in profile.in_threads
    ]
    for program, profile in at_once:
        yield _program(program, profile, most)
    for program, profile in programs:
        if (program, profile) not in at_once:
            last = profile.executions <= few
            yield _program(program, profile, min(AT_ONCE, most) if last else few, last=last)
    for program, profile in small:
        if (program, profile) not in at_once:
            yield _program(program, profile, most)
    yield from (_edge(e) for e in edges if len(e.path) < 2)
    yield from (pair_at_first(p) for p in pairs if not p.pair.path)
    for program, profile in programs:
        yield from _races(program, profile, few)
    yield from (pair_at_first(p) for p in pairs if len(p.pair.path) == 1)
    for program, profile in longer[len(small) :]:
        yield _program(program, profile, most if profile.exhausted else min(SOME, most))
    yield from (_edge(e) for e in edges if len(e.path) >= 2)
    yield from (_pair(p, capped) for p in pairs if len(p.pair.path) < 2 and not p.exhausted)
    yield from (_pair(p, capped) for p in pairs if len(p.pair.path) >= 2)
    for program, profile in longer:
        yield from _races(program, profile, capped)


def _races(program: Program, profile: ProgramProfile, executions: int) -> Iterator[BoundedCheck]:
    """Yield the program with data races looked for, unless it has some over the right reference.

    That takes three times as long; one that is found in no execution of a hundred says nothing of the others.
    """
    if not profile.races:
        yield _program(program, profile, executions, attributes=True)


def _program(
    program: Program,
    profile: ProgramProfile,
    executions: int,
    attributes: bool = False,
    last: bool = True,
) -> BoundedCheck:
    def run(lib: ModuleType, until: float) -> CheckResult:
        judge, outcomes = Judge(profile.properties), OutcomeSet(profile.outcomes)
        steps = 4 * profile.depth + 200
        of = partial(search, program, lib, judge, executions, steps, False)
        try:
            found = of(attributes, outcomes, until)
        except ExplorerError:
            if attributes:
                raise
            found = of(True, outcomes, until)  # two threads share what is no cell: a data race
        kill = kill_of(program, found)
        if kill is not None and not kill.named:
            raced = raced_attributes(races_of(found)) if kill.by == DATA_RACE else ()
            known = profile.properties, profile.outcomes
            kill = consequence(program, lib, *known, steps, until, raced) or kill
        return CheckResult(kill, not found.exhausted)

    seconds = executions * profile.seconds / max(profile.executions, 1)
    return BoundedCheck(program.id, seconds, run, last and not attributes)


def _edge(edge: EdgeProfile) -> BoundedCheck:
    def run(lib: ModuleType, until: float) -> CheckResult:
        of = MATRICES[edge.matrix]
        what = edge_problem(of, edge.state(of), edge.offer, lib, load(of.reference))
        return CheckResult(Kill(problem_name(what), edge.key) if what else None)

    return BoundedCheck(edge.key, 0.01, run)


def _pair(profile: PairProfile, executions: int) -> BoundedCheck:
    def run(lib: ModuleType, until: float) -> CheckResult:
        of = MATRICES[profile.matrix]
        result = run_pair(of, lib, profile.pair.pair(of), executions, load(of.reference))
        if result.problem.startswith(CANNOT_BE_EXPLORED):
            return CheckResult(capped=True)
        kill = Kill(problem_name(result.problem), key) if result.problem else None
        return CheckResult(kill, not result.exhausted)

    key = f"{profile.matrix} {profile.pair.key}"
    last = profile.exhausted or executions > FEW
    return BoundedCheck(key, executions * profile.seconds, run, last)


def problem_name(what: str) -> str:
    """Return the name of a problem of the matrix: a property's id, ``outcome`` or ``data race``.

    There every error by which a call may refuse is what its caller sees, and what was woken is served to its end: any
    other error, and what never comes to its end, is against AP-1.
    """
    name = what.partition(":")[0]
    return ENDS if name in ("error", "settling", *STUCK) else name


# ---- judging


def judge_by(
    checks: Iterator[BoundedCheck],
    lib: ModuleType,
    seconds: float = SECONDS,
    patience: float = PATIENCE,
) -> Judgement:
    """Run checks over a mutant until one catches it by name, or until the seconds of the processor are spent.

    An end or an exception is a catch, too; but what is wrong is said by a property or by what clients see, so the
    other checks are still run.
    """
    found, begun = Judgement(), time.process_time()
    for check in checks:
        if time.process_time() - begun > seconds:
            found.left_out += 1
            continue
        found.checks += 1
        answer = CheckResult(capped=True)
        allowed = patience + 10 * check.seconds
        with processor_seconds(allowed) as limit:
            answer = answer_of(check, lib, begun + seconds)
        if limit:
            where = f"in {limit.exceeded_in} after {allowed:.0f} s without an end"
            found.endless.append(f"{check.name}: {where}")
        elif answer.kill is not None:
            if found.kill is None or answer.kill.named:
                found.kill = answer.kill
            if answer.kill.named:
                return found
        if answer.capped and check.last:
            found.capped.append(check.name)
    return found


def answer_of(check: BoundedCheck, lib: ModuleType, until: float) -> CheckResult:
    """Run a check over a mutant. It does not judge what cannot be explored; an error past the threads is a kill."""
    try:
        return check.run(lib, until)
    except (ExplorerError, SecondsSpent):
        return CheckResult(capped=True)
    except Exception as error:  # in the set-up, or because a property cannot read the history
        outside = f"raises {type(error).__name__} outside the threads"
        return CheckResult(Kill(ENDS if left_a_call(error) else outside, check.name))


def modules_with(file: str, text: str) -> ModuleType:
    """Return the modules of a system, of which one has another text; raises what its code raises."""
    system = system_of(file)
    assert system is not None, f"{file} is of no system"
    texts = {m: text if m == file else source(m) for m in SYSTEMS[system]}
    code = {m: compile(t, f"<mutant {m}>", "exec") for m, t in texts.items()}
    return run_modules(code, "mutant")


def judged_exhaustively(
    file: str, text: str, output: str, block: str, most: str, seconds: str
) -> None:
    """Judge a mutant by programs and matrix, write what caught it into a file, and end this process.

    `block` is where the change is, `most` how many executions of a program are run at most, and `seconds` how many
    seconds of the processor there are for all.
    """
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    try:
        found = judged(file, text, block, int(most), float(seconds))
        words, code = str(found), found.exit_code
    except BaseException as error:  # a mistake of the judge says nothing of the mutant
        words, code = f"the judge failed: {type(error).__name__}: {error}", CAPPED
    print(" ".join(words.split()))
    sys.stdout.flush()
    os._exit(code)


def judged(file: str, text: str, block: str, most: int, seconds: float) -> Judgement:
    """Return what all checks that come to a block say of a mutant."""
    system = system_of(file) or ""
    try:
        lib = modules_with(file, text)
    except Exception as error:
        return Judgement(Kill("does not load", type(error).__name__))
    return judge_by(checks_of(system, block, loaded(system), most), lib, seconds)


@cache
def loaded(system: str) -> SystemCoverage:
    """Return the coverage of a system, read once in a process and in none of a mutant's seconds."""
    return coverage_of(system)
