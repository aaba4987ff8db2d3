"""The explorer against brute force, over generated programs.

For each program: the set of Foata normal forms that optimal DPOR visits equals the set over *all* interleavings;
each is visited once and no execution is sleep-set blocked; and all interleavings with one normal form end in the same
state with the same results (which is what independence means). Where threads are identical, the search with symmetry
must stand for as many traces, with the same ends and outcomes.

    python -m seriatim_workshop.crosscheck.run --programs 20000 --resume FILE

So many programs must agree; those with too many interleavings are left out, counted, and replaced by others.
The file remembers which version of the explorer agreed: after a change of its source the comparison begins anew.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from seriatim_models.explorer.model import execution, operations, world
from seriatim_models.explorer.model import program as tested
from seriatim_models.explorer.model.program import Limits, Program, Setting
from seriatim_models.explorer.search import dpor, runner, symmetry
from seriatim_models.explorer.search.dpor import Dpor
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace import foata, termination
from seriatim_workshop.crosscheck import brute_force, generated_programs
from seriatim_workshop.crosscheck.brute_force import guesses, interleavings
from seriatim_workshop.crosscheck.generated_programs import (
    FLAVOURS,
    GeneratedProgram,
    generate,
    with_identical_threads,
)

BRUTE_MAX = 1500
"""Programs with more interleavings are left out, and counted: they take too long."""

WALKS = 20
"""Random walks to guess whether a program is one of these."""

SOURCES = (
    brute_force, generated_programs, dpor, runner, symmetry, execution, operations, world, tested, foata, termination,
)  # fmt: skip
"""Modules on which the result depends."""


@dataclass(frozen=True)
class CrosscheckResult:
    """One program under both."""

    interleavings: int
    traces: int
    wrong: str = ""
    """What differs; empty if nothing does."""
    too_large: bool = False
    kinds: frozenset[str] = frozenset()
    """Ends that were seen."""


def compare(
    program: Program,
    *,
    real_time: bool = False,
    timeouts: int = 1,
    spurious: int = 0,
    most: int = BRUTE_MAX,
) -> CrosscheckResult:
    """Explore `program` both ways."""
    setting = Setting(real_time, timeouts, spurious, stuck_ok=True)
    runner = Runner(program, setting, Limits(keep_going=True))
    guess = sum(guesses(runner.fresh, WALKS)) / WALKS
    if guess > 1.5 * most:
        return CrosscheckResult(0, 0, too_large=True)
    outcomes: dict[bytes, tuple[str, tuple[str, ...]]] = {}
    count = 0
    ends: set[str] = set()
    for ex, levels in interleavings(runner.fresh):
        count += 1
        if count > most:
            ex.close()
            return CrosscheckResult(count, 0, too_large=True)
        for check in ex.world.checks:
            check()
        ends.add(ex.end)
        outcome = (ex.end, tuple(map(repr, ex.world.results)))
        name = levels.digest()
        if outcomes.setdefault(name, outcome) != outcome:
            wrong = f"one trace, two outcomes: {outcomes[name]} and {outcome}"
            ex.close()
            return CrosscheckResult(count, len(outcomes), wrong)
    other = Runner(program, setting, Limits(keep_going=True))
    Dpor(real_time=real_time).search(other)
    seen = other.seen.kept if other.seen is not None else set()
    wrong = ""
    if seen != outcomes.keys():
        missing, extra = len(outcomes.keys() - seen), len(seen - outcomes.keys())
        wrong = f"of {len(outcomes)} traces {missing} were missed and {extra} are not traces at all"
    elif other.complete != len(outcomes) or other.redundant or other.blocked or other.cut:
        wrong = (
            f"{len(outcomes)} traces, but {other.complete} complete executions, {other.redundant} redundant, "
            f"{other.blocked} blocked, {other.cut} cut"
        )
    elif Counter({repr(o): n for o, n in other.outcomes.items()}) != Counter(
        result for _, results in outcomes.values() for result in results
    ):
        wrong = "the outcomes differ"
    if not wrong and getattr(program, "identical", False):
        wrong = up_to_symmetry(program, setting, outcomes)
    return CrosscheckResult(count, len(outcomes), wrong, kinds=frozenset(ends))


def up_to_symmetry(
    program: Program, setting: Setting, outcomes: dict[bytes, tuple[str, tuple[str, ...]]]
) -> str:
    """Explore `program` with symmetry, and compare with its traces, each with its end and outcome; what differs."""
    runner = Runner(program, setting, Limits(keep_going=True))
    Dpor(real_time=setting.real_time, symmetry=True).search(runner)
    if runner.unreduced != len(outcomes):
        return f"{len(outcomes)} traces, but with symmetry {runner.complete} for {runner.unreduced}"
    if runner.complete > len(outcomes) or runner.redundant or runner.blocked or runner.cut:
        return (
            f"{len(outcomes)} traces, with symmetry {runner.complete} complete executions, {runner.redundant} "
            f"redundant, {runner.blocked} blocked, {runner.cut} cut"
        )
    ends = {end for end, _ in outcomes.values()}
    results = {result for _, found in outcomes.values() for result in found}
    if set(runner.ends) != ends or {repr(o) for o in runner.outcomes} != results:
        return "the ends or outcomes differ with symmetry"
    return ""


def compare_generated(program: GeneratedProgram, most: int = BRUTE_MAX) -> CrosscheckResult:
    """`compare` with the setting that the program is meant for."""
    return compare(
        program,
        real_time=program.real_time,
        timeouts=program.timeouts,
        spurious=program.spurious,
        most=most,
    )


def programs_at(number: int) -> list[GeneratedProgram]:
    """The program with this number; now and then one more in which threads wait for values, or are identical."""
    program, more = generate(number), []
    if number % len(FLAVOURS) == 0:
        more.append(generate(number, awaits=True))
    if number % (len(FLAVOURS) + 1) == 0:
        more.append(with_identical_threads(program))
    if number % (len(FLAVOURS) * (len(FLAVOURS) + 1)) == 0:
        more.append(with_identical_threads(more[0]))
    return [program, *more]


def source_hash() -> str:
    """A hash of the source on which the result depends."""
    digest = hashlib.blake2b(digest_size=8)
    for file in (__file__, *(inspect.getfile(module) for module in SOURCES)):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()


@dataclass
class CrosscheckProgress:
    """How far the comparison got."""

    at: int
    """Number of the next program."""
    agreed: int = 0
    large: int = 0
    interleavings: int = 0
    traces: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    """In how many programs each end was seen."""

    def add(self, found: CrosscheckResult) -> None:
        """Count one program."""
        if found.too_large:
            self.large += 1
            return
        self.agreed += 1
        self.interleavings += found.interleavings
        self.traces += found.traces
        self.ends.update(found.kinds)

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({**vars(self), "source": source_hash()}))
        draft.replace(path)

    @classmethod
    def load(cls, path: Path, first: int) -> CrosscheckProgress:
        """The progress that a file holds, if it is of this version of the explorer."""
        if not path.exists():
            return cls(first)
        data = json.loads(path.read_text())
        if data.pop("source", None) != source_hash():
            print(f"{path} is of another explorer: beginning anew", file=sys.stderr)
            return cls(first)
        return cls(**{**data, "ends": Counter(data["ends"])})


def main(argv: list[str] | None = None) -> int:
    """Compare generated programs until enough agree; 1 if one does not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--programs",
        type=int,
        default=2000,
        help="how many programs must agree; those too large for brute force come on top",
    )
    parser.add_argument(
        "--largest",
        type=int,
        default=BRUTE_MAX,
        metavar="N",
        help=f"leave out programs with more interleavings ({BRUTE_MAX}); fewer is quicker",
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--resume", type=Path, help="file that remembers how far it got")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    options = parser.parse_args(argv)
    begun = reported = time.monotonic()
    tally = CrosscheckProgress(options.first)
    if options.resume is not None:
        tally = CrosscheckProgress.load(options.resume, options.first)
    out_of_time = False
    while tally.agreed < options.programs and not out_of_time:
        for program in programs_at(tally.at):
            found = compare_generated(program, options.largest)
            if found.wrong:
                print(f"{program}\nWRONG: {found.wrong}")
                return 1
            tally.add(found)
        tally.at += 1
        now = time.monotonic()
        out_of_time = options.seconds is not None and now - begun > options.seconds
        if now - reported > 2 or tally.agreed == options.programs or out_of_time:
            reported = now
            if options.resume is not None:
                tally.save(options.resume)
            print(
                f"\r{tally.agreed} of {options.programs} programs, {tally.interleavings} interleavings, "
                f"{tally.traces} traces, {tally.large} too large, {now - begun:.0f} s ",
                end="",
                file=sys.stderr,
                flush=True,
            )
    print(file=sys.stderr)
    print(
        f"{tally.agreed} programs agree with brute force: {tally.interleavings} interleavings, "
        f"{tally.traces} traces; {tally.large} left out as too large; ends seen: "
        + ", ".join(f"{k} in {v}" for k, v in sorted(tally.ends.items()))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
