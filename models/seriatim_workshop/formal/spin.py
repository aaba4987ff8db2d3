"""Run the Promela models and compare with what is pinned.

python -m seriatim_workshop.formal.spin                 # all; exit 1 on any difference, 2 if Spin or gcc is missing
python -m seriatim_workshop.formal.spin NAME ...        # some, by name or the beginning of a name
python -m seriatim_workshop.formal.spin --show NAME     # and the counterexamples, in columns
python -m seriatim_workshop.formal.spin --pin           # write states and depth as measured into the manifest
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from seriatim_workshop.formal import manifest, pan, tools, trail
from seriatim_workshop.formal.manifest import SpinManifest, SpinRun

JOBS = 2
ACCOUNT_MAX = 5000
"""Lines of Spin's account of a trail that are made into columns; more are not shown."""


@dataclass(frozen=True)
class SpinOutcome:
    """One run as it came out."""

    pinned: SpinRun
    measured: SpinRun
    """The same with states, depth and seconds as measured."""
    verdict: str
    """`holds` or `fails`."""
    wrong: bool
    """Its verdict is not the one that it must have."""
    differs: str
    """In which numbers it differs from what is pinned; '' if in none."""
    case: str
    """The counterexample, if there is one."""


def expected(kind: str) -> str:
    """The verdict that a run of this kind must have: a reachability check is a claim that must fail."""
    return "holds" if kind == "holds" else "fails"


def carry_out(
    runs: Iterable[SpinRun], folder: Path, ended: Callable[[SpinOutcome], None], show: bool = False
) -> list[SpinOutcome]:
    """All runs, models in parallel, each compiled once."""
    kinds = sorted(runs, key=_model)
    groups = [list(group) for _, group in groupby(kinds, key=_model)]

    def one(group: list[SpinRun]) -> list[SpinOutcome]:
        first = group[0]
        claims = first.claim is not None
        model = pan.build(
            first.file,
            first.flags,
            folder,
            fair=first.fair,
            any_scheduler=first.any_scheduler,
            claims=claims,
        )
        found = []
        for run in group:
            outcome = judge(run, model, show)
            ended(outcome)
            found.append(outcome)
        return found

    with ThreadPoolExecutor(JOBS) as pool:
        return [outcome for part in pool.map(one, groups) for outcome in part]


def _model(run: SpinRun) -> tuple[str, list[str], bool, bool, bool]:
    return (run.file, run.flags, run.fair, run.any_scheduler, run.claim is None)


def judge(run: SpinRun, model: pan.PanModel, show: bool = False) -> SpinOutcome:
    """One claim about a compiled model; a counterexample is made readable only where it is shown."""
    found = model.search(run.claim)
    verdict = "fails" if found.errors else "holds"
    measured = replace(run, states=found.states, depth=found.depth, seconds=found.seconds)
    wrong = verdict != expected(run.kind)
    case = ""
    if found.trail is not None and (show or wrong):
        account = model.replay(found.trail)
        if account.count("\n") > ACCOUNT_MAX:  # a depth-first trail of a cycle can be very long
            case = f"{run.name}: {found.depth} steps, too many to show; the claim is {run.claim}"
        else:
            source = model.source.read_text(encoding="utf-8")
            case = str(trail.readable(run, source, account))
    return SpinOutcome(run, measured, verdict, wrong, run.differs(measured), case)


def line(outcome: SpinOutcome, n: int, of: int) -> str:
    """One run in one line of 80 columns; a verdict or number that must not be has a second one."""
    mark = "!" if outcome.wrong or outcome.differs else " "
    run = outcome.pinned
    verdict = {"reached": "reached", "fails": "refuted", "holds": "holds"}[run.kind]
    if outcome.wrong:
        verdict = {"reached": "never", "fails": "holds", "holds": "broken"}[run.kind]
    measured = outcome.measured
    head = f"{mark} {n:3}/{of} {run.name:44.44} {verdict:7} {measured.states:9,} {measured.seconds:5.1f}"
    why = outcome.differs
    if outcome.wrong:
        why = f"{run.says}: it {'holds' if outcome.verdict == 'holds' else 'does not hold'}"
    return f"{head}\n      {why}" if why else head


def select(runs: list[SpinRun], names: list[str]) -> list[SpinRun]:
    """The runs that are named, or all. Raises ValueError for a name that fits none."""
    for name in names:
        if not any(run.name.startswith(name) for run in runs):
            raise ValueError(
                f"no run is called {name}; they are: {', '.join(r.name for r in runs)}"
            )
    return [run for run in runs if not names or any(run.name.startswith(n) for n in names)]


def main(args: list[str] | None = None) -> int:
    """Run the models that are named (all); 1 if a verdict or a number is not as pinned."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.formal.spin",
        description="Run the Promela models under Spin and compare with what is pinned. "
        "Exit code 1: a verdict or a number is not as pinned; 2: Spin or gcc is missing; "
        "3: a search did not come to an end.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a run, or how its name begins")
    parser.add_argument("--show", action="store_true", help="print counterexamples too")
    parser.add_argument("--pin", action="store_true", help="write what was measured")
    asked = parser.parse_args(args)
    try:
        pinned = manifest.read()
        runs = select(pinned.runs, asked.names)
        tools.ensure()
    except (ValueError, tools.Missing) as why:
        print(f"{why}", file=sys.stderr)
        return 2
    version = tools.version()
    print(f"{version}, {len(runs)} runs")
    count = 0

    def ended(outcome: SpinOutcome) -> None:
        nonlocal count
        count += 1
        print(line(outcome, count, len(runs)), flush=True)

    with tempfile.TemporaryDirectory(prefix="seriatim-spin-") as folder:
        try:
            found = carry_out(runs, Path(folder), ended, asked.show)
        except pan.SpinFailed as why:
            print(why, file=sys.stderr)
            return 3
        found.sort(key=lambda o: runs.index(o.pinned))
    for o in found:
        if o.case:
            print(f"\n{o.case}")
    if asked.pin:
        by_name = {o.pinned.name: o.measured for o in found}
        runs = [by_name.get(run.name, run) for run in pinned.runs]
        manifest.write(SpinManifest(version, runs, manifest.read().contracts))
        pinned, found = manifest.read(), [replace(o, differs="") for o in found]
    result, failed = conclusion(found, version, pinned.spin)
    if result:
        print("\n".join(textwrap.fill(part, 79) for part in result.splitlines()))
    states = sum(o.measured.states for o in found)
    print(f"{len(found)} runs, {states:,} states, {failed} not as they must be")
    return int(failed > 0)


def conclusion(found: list[SpinOutcome], version: str, pinned_with: str) -> tuple[str, int]:
    """What is wrong, in words, and how many runs that fails.

    A wrong verdict always does. How many states a search stores is Spin's own affair:
    with another version than the numbers were pinned with a difference is reported and explained, and is no failure.
    """
    wrong = [o for o in found if o.wrong]
    differ = [o for o in found if o.differs]
    lines = [f"{o.pinned.name}: {o.verdict}, and must not" for o in wrong]
    lines += [f"{o.pinned.name}: {o.differs}" for o in differ]
    if version == pinned_with:
        return "\n".join(lines), len({o.pinned.name for o in (*wrong, *differ)})
    if differ:
        lines.append(
            f"The numbers in spec/manifest.json were measured with {pinned_with}; this is {version}. "
            f"Another version may store states otherwise, so the {len(differ)} differences above are no failures. "
            "The verdicts do not depend on the version, and count."
        )
    return "\n".join(lines), len(wrong)


if __name__ == "__main__":
    sys.exit(main())
