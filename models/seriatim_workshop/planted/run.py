"""``python -m seriatim_workshop.planted.run [MISTAKE ...]``: what `seriatim conform` finds of the planted mistakes.

Each mistake is driven as ``seriatim conform --python seriatim_workshop.planted.mistakes:NAME`` drives it, with default
settings, once for each seed; the search ends with the first property that is violated, when its script is short.
The right queue is driven for the whole time and must violate nothing.
``--table`` writes the page. Exit code 1 if the right queue was reported or fewer
than `GOAL` of the mistakes were caught, 2 for an unknown name.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from seriatim_models.conformance.judging import default_profile
from seriatim_models.conformance.python_child import PythonChild
from seriatim_models.conformance.search import SearchBounds, SearchOutcome, search
from seriatim_models.files import write_whole
from seriatim_workshop.planted import log_mistakes, mistakes

MISTAKES = {
    **mistakes.MISTAKES,
    **{f"log-{name}": mistake for name, mistake in log_mistakes.MISTAKES.items()},
}
"""Of the queue, and of the log, whose names begin with ``log-``."""
FACTORIES = "seriatim_workshop.planted.mistakes"
LOG_FACTORIES = "seriatim_workshop.planted.log_mistakes"
RIGHTS = ("right", "log-right")
SEEDS = (1, 2, 3)
MINUTE = 60.0
GOAL = 0.95
UNSEEN = (
    "Not certain either way: a race between a push and a close. A queue that calls back from a thread of its own,\n"
    "with no lock in hand, is right, and its last push may come after a close: the load waits before.\n"
    "What is rare may be missed in 30 s of a busy machine: more `--seconds` are more load."
)
"""What the drive cannot say, and why."""


class PlantedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one search found: the property that was violated first, empty if none was."""

    name: str
    seed: int
    property: str = ""
    commands: int = 0
    again: str = ""
    seconds: float = 0.0
    processor: float = 0.0
    """Seconds of processor time, of the search and the queue together."""
    scripts: int = 0
    steps: int = 0

    def caught(self) -> bool:
        """Whether a property was violated within a minute."""
        return bool(self.property) and self.seconds <= MINUTE


def planted_run(name: str, seed: int) -> PlantedRun:
    """Drive the queue with one mistake, or the right one."""
    bounds = SearchBounds(first=name not in RIGHTS)
    of_log = name.startswith("log-")
    where = f"{LOG_FACTORIES}:{name.removeprefix('log-')}" if of_log else f"{FACTORIES}:{name}"
    before = _processor()
    system = PythonChild(where)
    outcome = search(system, default_profile(system), bounds, seed)
    return _summary(name, seed, outcome, _processor() - before)


def _processor() -> float:
    """Seconds of processor time that this process and those that it waited for have used."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _summary(name: str, seed: int, outcome: SearchOutcome, processor: float) -> PlantedRun:
    witness = outcome.witnesses[0] if outcome.witnesses else None
    return PlantedRun(
        name=name,
        seed=seed,
        property=witness.property if witness else "",
        commands=len(witness.run.steps) if witness else 0,
        again=f"{witness.again} of {witness.runs}" if witness else "",
        seconds=round(outcome.seconds, 1),
        processor=round(processor, 1),
        scripts=outcome.scripts,
        steps=outcome.steps,
    )


def table(runs: Sequence[PlantedRun]) -> str:
    """The page, in Markdown."""
    seeds = sorted({run.seed for run in runs})
    by_name: dict[str, list[PlantedRun]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        by_name.setdefault(run.name, []).append(run)
    lines = [
        "# Planted mistakes",
        "",
        "Made by `make planted`: one right queue, `models/seriatim_workshop/planted/queue.py`, and mistakes in it;",
        "and one right log, `models/seriatim_workshop/planted/log.py`, with mistakes whose names begin with `log-`.",
        "Each is driven by `seriatim conform --python seriatim_workshop.planted.mistakes:NAME` with default settings",
        "(of the log `seriatim_workshop.planted.log_mistakes:NAME`, without `log-`).",
        "Caught means that a property was violated within a minute. Commands are those of the script after shortening;",
        "where it did not come again, those of the history that shows it. Seconds are until the script was short,",
        "on the clock and of the processor. Columns give one entry a seed where they differ.",
        "",
        recall(runs),
        "",
        f"| mistake | what is wrong | caught (seeds {', '.join(map(str, seeds))}) "
        "| property | commands | came again | s | processor s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, each in by_name.items():
        if name in RIGHTS:
            continue
        by_seed = {run.seed: "yes" if run.caught() else "no" for run in each}
        caught = [by_seed.get(seed, "not run") for seed in seeds]
        cells = [
            _one(caught),
            _one([run.property or "none" for run in each]),
            _one([str(run.commands) if run.property else "" for run in each]),
            _one([run.again for run in each]),
            _one([f"{run.seconds:g}" for run in each]),
            _one([f"{run.processor:g}" for run in each]),
        ]
        lines.append(
            f"| {name} | {MISTAKES[name].kind}: {MISTAKES[name].title} | {' | '.join(cells)} |"
        )
    lines += ["", UNSEEN, "", "The right queue, and the right log:", ""]
    lines += [
        f"- {name}, seed {run.seed}: {run.property or 'nothing'} violated, "
        f"in {run.scripts:,} scripts and {run.steps:,} steps"
        for name in RIGHTS
        for run in by_name.get(name, [])
    ]
    return "\n".join([*lines, ""])


def _one(values: Sequence[str]) -> str:
    """All values, or the one if they are the same."""
    return values[0] if len(set(values)) == 1 else ", ".join(values)


def recall(runs: Sequence[PlantedRun]) -> str:
    """How many mistakes were caught with each seed, of how many that were driven, in a sentence."""
    planted = [run for run in runs if run.name not in RIGHTS]
    named = []
    for seed in sorted({run.seed for run in planted}):
        caught = [run.caught() for run in planted if run.seed == seed]
        named.append(f"{sum(caught)} of {len(caught)} with seed {seed}")
    names = {run.name for run in planted}
    every = sum(all(run.caught() for run in planted if run.name == name) for name in names)
    return (
        f"Of {len(names)} mistakes {every} were caught in every run of theirs ({', '.join(named)})."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Drive the mistakes that are named (all, and the right queue) and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, prog="make planted")
    parser.add_argument("names", nargs="*", metavar="MISTAKE")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--out", type=Path, default=Path("build/planted"))
    parser.add_argument("--table", type=Path, help="write the page of all that were ever run there")
    asked = parser.parse_args(arguments)
    known = [*RIGHTS, *MISTAKES]
    if unknown := [name for name in asked.names if name not in known]:
        print(f"no mistake {unknown[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    asked.out.mkdir(parents=True, exist_ok=True)
    for name in asked.names or known:
        for seed in asked.seeds:
            run = planted_run(name, seed)
            write_whole(asked.out / f"{name}.{seed}.json", msgspec.json.encode(run))
            found = f"{run.property} in {run.commands} commands" if run.property else "nothing"
            print(f"{name} seed {seed}: {found}, {run.again} again, {run.seconds:g} s", flush=True)
    runs = [run for name in known for run in saved(asked.out, name)]
    if asked.table is not None:
        write_whole(asked.table, table(runs).encode())
    print(recall(runs))
    planted = [run for run in runs if run.name not in RIGHTS]
    right = all(not run.property for run in runs if run.name in RIGHTS)
    return 0 if right and sum(run.caught() for run in planted) >= GOAL * len(planted) else 1


def saved(folder: Path, name: str) -> list[PlantedRun]:
    """What earlier runs of one mistake found, by seed."""
    paths = sorted(folder.glob(f"{name}.*.json"))
    return [msgspec.json.decode(path.read_bytes(), type=PlantedRun) for path in paths]


if __name__ == "__main__":
    raise SystemExit(main())
