"""``python -m seriatim_workshop.systems.run [SYSTEM ...]``: start, drive, check and stop real systems.

A name stands for all systems whose id begins with it; without one, all. What is found is kept in ``build/conform``, one
folder a system, and the table of all that were ever run is written to ``--table``.
What cannot be run here is shown as not run. Exit code 1 if a system violates what it is not known to violate, 2 for
an unknown name.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from seriatim_models.conformance.amqp import AmqpBroker
from seriatim_models.conformance.faults.node import STARTING
from seriatim_models.conformance.judging import black_box_profiles, default_profile
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.python_child import PythonChild
from seriatim_models.conformance.search import SearchBounds, SearchOutcome, search
from seriatim_models.conformance.system import System
from seriatim_models.files import write_whole
from seriatim_models.properties.base import Verdict
from seriatim_workshop.systems import servers
from seriatim_workshop.systems.adapters import TARGET
from seriatim_workshop.systems.registry import SYSTEMS, Listed
from seriatim_workshop.systems.servers import NotHere

SEED = 1
CHAOS = "\n## Under faults"
"""How the section of the page begins that `make chaos` writes."""
WHITE = frozenset({"P16", "P17", "P18", "P19"})
"""Properties of what happens inside, of which no client can see a case."""


class Shortest(msgspec.Struct, kw_only=True):
    """The shortest script that violates a property, and why."""

    property: str
    steps: list[str]
    why: str
    again: str
    """How many of some further runs violated it too, as ``3 of 3``."""


class SystemRow(msgspec.Struct, kw_only=True):
    """One system, as the table shows it."""

    id: str
    title: str
    promise: str
    version: str = ""
    not_run: str = ""
    """Why, if it was not run."""
    keeps: list[str] = []
    ruled_out: dict[str, list[str]] = {}
    """Profiles that it violates, and by which properties."""
    not_enough: dict[str, list[str]] = {}
    """Other profiles, and the core promises of them that had no case."""
    violates: list[str] = []
    untested: list[str] = []
    shortest: list[Shortest] = []
    scripts: int = 0
    steps: int = 0
    seed: int = SEED
    seconds: float = 0.0
    date: str = ""
    """Of the run, as 2026-11-22."""


def run_system(listed: Listed, bounds: SearchBounds) -> SystemRow:
    """Everything from start to stop."""
    today = time.strftime("%Y-%m-%d")
    row = SystemRow(id=listed.id, title=listed.title, promise=listed.promise, date=today)
    try:
        with servers.reached(listed.server) as at:
            system = open_listed(listed, at)
            system.can = system.can - listed.without
            row.version = version_of(listed, system)
            outcome = search(system, default_profile(system), bounds, SEED)
    except (NotHere, Fault) as why:
        row.not_run = str(why)
        return row
    return with_outcome(row, outcome)


def open_listed(listed: Listed, at: str) -> System:
    """The system, connected. A broker that listens may not be ready yet. Raises `Fault`."""
    if not listed.factory:
        until = time.monotonic() + STARTING
        while True:
            try:
                return AmqpBroker(at, listed.arguments)
            except Fault:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)
    return PythonChild(listed.factory, environment={TARGET: at})


def version_of(listed: Listed, system: System) -> str:
    """The version that the system reports, the distribution's version, or Python's."""
    if system.version:
        return system.version
    if not listed.package:
        return f"Python {sys.version.split()[0]}"
    try:
        return version(listed.package)
    except PackageNotFoundError:
        return ""


def with_outcome(row: SystemRow, outcome: SearchOutcome) -> SystemRow:
    """The row with what a search found."""
    row.keeps = [name for name in outcome.tested if not outcome.profiles[name]]
    row.ruled_out = {name: broken for name, broken in outcome.profiles.items() if broken}
    row.not_enough = {
        name: [p for p in outcome.untested[name] if p in PROFILES[name].core]
        for name in outcome.profiles
        if name not in row.keeps and name not in row.ruled_out
    }
    row.violates = [f.property for f in outcome.findings if f.verdict is Verdict.VIOLATED]
    row.untested = [f.property for f in outcome.findings if f.verdict is Verdict.INCONCLUSIVE]
    row.shortest = [
        Shortest(
            property=w.property,
            steps=[str(step) for step in w.run.steps],
            why=w.finding.explanation,
            again=f"{w.again} of {w.runs}",
        )
        for w in outcome.witnesses
    ]
    row.scripts, row.steps, row.seconds = outcome.scripts, outcome.steps, round(outcome.seconds, 1)
    return row


def table(rows: Sequence[SystemRow]) -> str:
    """The page, in Markdown."""
    lines = [
        "# Real systems, driven",
        "",
        "Made by `make conform`; each row by the command beside it.",
        "A profile is *kept* if no script violated it: consistent with what was observed, which is no proof.",
        "What a system does not offer (consumers, flags, channels) could not be tested and does not count against it.",
        "Systems in a process are driven one command after another, brokers of AMQP also with commands that meet;",
        "what only load shows is seen in recordings (`seriatim record`) and by `seriatim conform` without `--scripts`.",
        "The profiles of Apache Pulsar are written from its documentation; no Pulsar was driven.",
        "",
        "| system | version | violates | profiles it is consistent with | not tested | seen with |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        again = f"`make conform SYSTEM={row.id}`"
        if row.not_run:
            lines.append(f"| {row.title} | | not run: {row.not_run} | | | {again} |")
            continue
        violates = ", ".join(row.violates) or "nothing seen"
        keeps = ", ".join(name for name in row.keeps if name != "any") or "none"
        untested = ", ".join(p for p in row.untested if p not in WHITE)
        lines.append(
            f"| {row.title} | {row.version} | {violates} | {keeps} | {untested} | {again} |"
        )
    lines += ["", "## The shortest witnesses", ""]
    for row in rows:
        if not row.shortest:
            continue
        lines += [f"### {row.title} {row.version}", "", f"Documented: {row.promise}.", ""]
        for shortest in row.shortest:
            lines += [f"{shortest.property}, in {shortest.again} further runs:", "", "```"]
            lines += [*shortest.steps, "```", "", f"{shortest.why}.", ""]
    lines += ["## Profile by profile", ""]
    lines += ["*Any* is every property there is; no system promises all of them.", ""]
    lines += [_compared(row) for row in rows if not row.not_run]
    lines += ["", "## Each verdict beside the documentation", ""]
    lines += [_argued(row) for row in rows]
    lines += [""]
    ran = [row for row in rows if not row.not_run]
    lines += ["## What was run", ""]
    lines += [
        f"- {row.title}: {row.date}, {row.scripts} scripts, {row.steps} steps, {row.seconds:g} s, seed {row.seed}."
        for row in ran
    ]
    lines += ["", f"Profiles: {', '.join(black_box_profiles())}.", ""]
    return "\n".join(lines)


def _compared(row: SystemRow) -> str:
    """Of each profile whether a system is consistent with it, what rules it out, or of what no case was seen."""
    ruled_out = ", ".join(f"{name} ({', '.join(by)})" for name, by in row.ruled_out.items())
    missing = (f"{name} (no case of {', '.join(ps)})" for name, ps in row.not_enough.items())
    return (
        f"- {row.title}: consistent with {', '.join(row.keeps) or 'none'}; ruled out: {ruled_out or 'none'}; "
        f"not enough seen: {', '.join(missing) or 'none'}."
    )


def _argued(row: SystemRow) -> str:
    """What a system promises, what was seen of it, and whether that is against the promise."""
    if row.not_run:
        return f"- {row.title}: {row.promise}. Not run: {row.not_run}."
    seen = f"violates {', '.join(row.violates)}" if row.violates else "nothing seen against it"
    argued = SYSTEMS[row.id].argued if row.violates and row.id in SYSTEMS else ""
    return f"- {row.title}: {row.promise}. Seen: {seen}{': ' if argued else ''}{argued}."


def chosen(names: Sequence[str]) -> list[Listed]:
    """Raises SystemExit with code 2 for a name that stands for nothing."""
    found: dict[str, Listed] = {}
    for name in names or [""]:
        meant = {id: s for id, s in SYSTEMS.items() if id.startswith(name)}
        if not meant:
            print(f"no system {name!r}; there are {', '.join(SYSTEMS)}", file=sys.stderr)
            raise SystemExit(2)
        found |= meant
    return list(found.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the systems that are named (all) and print what was found.

    Returns 1 if a violation was not known, and 3 if one that was asked for by name was not run.
    """
    parser = argparse.ArgumentParser(description=__doc__, prog="make conform")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each system")
    parser.add_argument("--scripts", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("build/conform"))
    parser.add_argument("--table", type=Path, help="write the page of all systems there")
    asked = parser.parse_args(arguments)
    bounds = SearchBounds(seconds=asked.seconds, scripts=asked.scripts)
    asked.out.mkdir(parents=True, exist_ok=True)
    news, missed = [], []
    for listed in chosen(asked.systems):
        begun = time.monotonic()
        row = run_system(listed, bounds)
        write_whole(asked.out / f"{listed.id}.row.json", msgspec.json.encode(row))
        print(summary(row, time.monotonic() - begun), flush=True)
        news += [f"{row.id}: {p}" for p in row.violates if p not in listed.known]
        missed += [row.id] if row.not_run and asked.systems else []
    if asked.table is not None:
        rows = [saved(asked.out, listed) for listed in SYSTEMS.values()]
        page = asked.table.read_text(encoding="utf-8") if asked.table.exists() else ""
        _, heading, chaos = page.partition(CHAOS)
        write_whole(asked.table, (table(rows) + heading + chaos).encode())
    for each in news:
        print(f"NEW: {each} was not known to be violated", file=sys.stderr)
    return 1 if news else 3 if missed else 0


def saved(folder: Path, listed: Listed) -> SystemRow:
    """What an earlier run of a system found."""
    path = folder / f"{listed.id}.row.json"
    if not path.exists():
        return SystemRow(
            id=listed.id, title=listed.title, promise=listed.promise, not_run="not yet"
        )
    return msgspec.json.decode(path.read_bytes(), type=SystemRow)


def summary(row: SystemRow, seconds: float) -> str:
    """A system's row for the terminal."""
    if row.not_run:
        return f"{row.id}: NOT RUN: {row.not_run}"
    violates = ", ".join(row.violates) or "nothing seen"
    head = (
        f"{row.id} ({row.version}): violates {violates}; consistent with {', '.join(row.keeps) or 'no profile'} "
        f"({row.scripts} scripts, {row.steps} steps, seed {row.seed}, {seconds:.1f} s)"
    )
    shown = [head]
    for each in row.shortest:
        shown.append(f"  {each.property} ({each.again} further runs): {'; '.join(each.steps)}")
        shown.append(f"     {each.why}")
    return "\n".join(shown)


if __name__ == "__main__":
    sys.exit(main())
