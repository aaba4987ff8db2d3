"""`seriatim matrix`: every API call beside every other, from every small state, under every schedule."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import rich_click as click

from seriatim_models.cli.console import Outputs, ProgressDisplay, put
from seriatim_models.cli.options import COUNT, HELP, POSITIVE, json_output, lines, number_option
from seriatim_models.cli.stop_request import StopRequest
from seriatim_models.cli.usage_errors import UsageError, unknown

if TYPE_CHECKING:
    from seriatim_models.matrix.totals import Matrix
    from seriatim_models.matrix.work import Done, Journal

EXIT = {"ok": 0, "violated": 1, "inconclusive": 3}
JOURNALS = Path("build/matrix")


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim matrix                        every system, calls from states two calls deep
        seriatim matrix pull --depth 3         one system, deeper; what CI runs
        seriatim matrix push --universe group  one of its universes only
        seriatim matrix pull --threads 3       three calls at once
        seriatim matrix --json - | jq .        the table for another program
        seriatim matrix push --pair "settle exclusive: ; subscribe A | subscribe B"
                                               one program, with its counterexample if it is wrong

        Results are kept in a journal as they come: after Ctrl-C or a kill the same command goes on.
        A program that a budget ended is inconclusive, and so is its cell, exit code 3.
        """
    )
)
@click.argument("systems", metavar="[SYSTEM]...", nargs=-1)
@number_option("--depth", "Calls that lead to a state, at most.", click.IntRange(0), 2)
@number_option("--threads", "Calls at once.", click.IntRange(2, 3), 2)
@number_option("--jobs", "Processes [dim](as many as there are processors)[/].", COUNT)
@number_option("--budget", "Stop each system after so long.", POSITIVE, metavar="SECONDS")
@click.option("--universe", "universes", multiple=True, metavar="NAME", help="Only this one.")
@click.option("--journal", metavar="FILE", help="Keep the results of one system here instead.")
@click.option("--fresh", is_flag=True, help="Begin again, whatever a journal holds.")
@click.option("--mutant", "mutant_id", metavar="ID", help="Run over this mutant of the reference.")
@click.option("--pair", metavar="PROGRAM", help="Run this one program of the table, to its end.")
@click.option("--replay", "token", metavar="TOKEN", help="With --pair: only this schedule of it.")
@json_output(
    "the table as JSON (seriatim-matrix/1), or one program's verdict (seriatim-verdicts/1)"
)
@click.option("--html", metavar="FILE", help="With --pair: write one self-contained page to read.")
@click.rich_config(help_config=HELP)
def matrix(
    systems: tuple[str, ...],
    depth: int,
    threads: int,
    jobs: int | None,
    budget: float | None,
    universes: tuple[str, ...],
    journal: str | None,
    fresh: bool,
    mutant_id: str | None,
    pair: str | None,
    token: str | None,
    json: str | None,
    html: str | None,
) -> int:
    """Let every API call race with every other, from every small state, under every schedule."""
    from seriatim_models.matrix.text import show

    out = Outputs(json, html)
    chosen = _systems(systems, universes, mutant_id)
    if pair is not None:
        if len(chosen) != 1:
            raise UsageError("--pair is a program of one system: name that system")
        return _one_pair(chosen[0], pair, mutant_id, token, out)
    if token is not None or html is not None:
        raise UsageError("--replay and --html go with --pair")
    if journal and len(chosen) != 1:
        raise UsageError("--journal is the file of one system: name that system")
    runs: list[Matrix] = []
    with StopRequest() as stop:
        for name in chosen:
            path = (
                Path(journal)
                if journal
                else _journal_path(name, depth, threads, *universes, mutant_id or "")
            )
            processes = jobs or os.cpu_count() or 1
            run = Run(name, depth, threads, processes, budget, universes, stop, mutant_id or "")
            runs.append(run.matrix(path, fresh))
            show(out.console, runs[-1])
            if stop.asked:
                break
    if json is not None:
        document = {"schema": "seriatim-matrix/1", "systems": [_document(m) for m in runs]}
        put(json, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    if stop.asked:
        out.console.print("Interrupted: the same command goes on.", markup=False)
        return 130
    return max((EXIT[m.verdict] for m in runs), key=lambda code: (code == 1, code))


def _systems(
    names: tuple[str, ...], universes: tuple[str, ...], mutant_id: str | None
) -> list[str]:
    from seriatim_models.cli.check import find_mutant
    from seriatim_models.matrix.systems import SYSTEMS

    for name in names:
        if name not in SYSTEMS:
            raise unknown("system", name, SYSTEMS, "seriatim matrix --help")
    chosen = list(dict.fromkeys(names)) or list(SYSTEMS)
    if mutant_id is not None:
        changed = find_mutant(mutant_id).reference
        chosen = [name for name in chosen if SYSTEMS[name].reference == changed]
        if not chosen:
            raise UsageError(f"mutant {mutant_id!r} changes {changed}, which none of these runs")
    for name in chosen:
        known = [u.name for u in SYSTEMS[name].universes]
        for universe in universes:
            if universe not in known:
                raise UsageError(
                    f"{name} has no universe {universe!r}; there is {', '.join(known)}"
                )
    return chosen


def _known(journal: Journal, fresh: bool) -> list[Done]:
    """What an earlier run kept; nothing of it if `fresh`. Raises `UsageError` for another run's journal."""
    from seriatim_models.matrix.work import WrongJournal

    if fresh:
        journal.path.unlink(missing_ok=True)
    try:
        return journal.read()
    except WrongJournal as error:
        raise UsageError(
            f"{error}; it is left as it is: give another --journal, or --fresh to begin again"
        ) from None


def _document(matrix: Matrix) -> dict[str, object]:
    """The table of a system with its verdicts, as the JSON document has it."""
    fields: dict[str, object] = msgspec.to_builtins(matrix)
    cells = [{**msgspec.to_builtins(c), "verdict": c.verdict} for c in matrix.cells]
    sums = {"programs": matrix.programs, "executions": matrix.executions, "proved": matrix.proved}
    return {**fields, "cells": cells, "verdict": matrix.verdict, **sums}


def _journal_path(system: str, depth: int, threads: int, *names: str) -> Path:
    """The journal of a run over the sources as they are: after a change of these it is another file."""
    from seriatim_models.matrix.work import code_digest

    parts = [system, str(depth), str(threads), *filter(None, names), code_digest()]
    return JOURNALS / f"{'-'.join(parts)}.jsonl"


def _one_pair(system: str, key: str, mutant_id: str | None, token: str | None, out: Outputs) -> int:
    """Run one program of the table to its end, and report it as `seriatim check` does."""
    from seriatim_models.cli.check import find_mutant, finish
    from seriatim_models.cli.report_builder import new_report, program_run
    from seriatim_models.explorer import BadToken, Replay
    from seriatim_models.matrix.cells import explained
    from seriatim_models.matrix.systems import SYSTEMS
    from seriatim_models.matrix.work import PairData
    from seriatim_models.programs.base import Program
    from seriatim_models.programs.check import ProgramResult
    from seriatim_models.programs.mutant_modules import load

    of = SYSTEMS[system]
    mutant = find_mutant(mutant_id) if mutant_id is not None else None
    try:
        program = PairData.read(key, of)
        options = {} if token is None else {"strategy": Replay(token)}
        pair = program.pair(of)
        right = load(of.reference)
        lib, compared = (right, None) if mutant is None else (load(of.reference, mutant), right)
        result, findings = explained(of, lib, pair, compared, **options)
    except (ValueError, BadToken) as error:
        raise UsageError(str(error)) from None
    again = ["seriatim", "matrix", system, "--pair", program.key]
    again += ["--mutant", mutant_id] if mutant_id else []
    if (case := result.counterexample) is not None:
        again += ["--replay", case.token]
        result.counterexample = replace(case, command=shlex.join(again))
    beyond = "Two calls from one state; other states and calls are other programs of the matrix."
    shown = Program(
        str(pair), pair.universe.why, of.reference, (), lambda world, lib: None, beyond, 0
    )
    report = new_report("greenlet")
    run = program_run(ProgramResult(shown, mutant, findings, result, result.seconds), "dpor", [])
    report.programs.append(msgspec.structs.replace(run, command=shlex.join(again)))
    return finish(report, out)


@dataclass
class Run:
    """The run of one system."""

    system: str
    depth: int
    threads: int
    jobs: int
    budget: float | None
    universes: tuple[str, ...]
    stop: StopRequest
    mutant: str = ""
    begun: float = field(default_factory=time.monotonic)

    def matrix(self, path: Path, fresh: bool) -> Matrix:
        """Run all programs that have no result in the journal, and return the table."""
        from seriatim_models.matrix.plan import plan
        from seriatim_models.matrix.systems import SYSTEMS
        from seriatim_models.matrix.totals import Matrix, add_up
        from seriatim_models.matrix.work import Journal, Waves, performer, run_waves

        journal = Journal(path, self.system, self.depth)
        known = _known(journal, fresh)
        planned = plan(
            self.system, self.depth, self.threads, self.jobs, self.universes, self.mutant
        )
        waves = Waves(self.system, planned.programs, mutant=self.mutant)
        for done in known:
            waves.add(done)
        progress = ProgressDisplay(len(planned.programs), "programs")
        with progress.running() as display:

            def keep(done: Done) -> None:
                journal.keep(done)
                display.completed(len(waves.results), self.system, done.program.key)

            run_waves(waves, performer(self.jobs), keep, self._over)
        journal.close()
        return Matrix(
            self.system,
            self.depth,
            planned.states,
            planned.edges,
            tuple(SYSTEMS[self.system].table),
            add_up(planned.programs, waves.results.values()),
            planned.problems,
            time.monotonic() - self.begun,
        )

    def _over(self) -> bool:
        spent = time.monotonic() - self.begun
        return self.stop.asked or (self.budget is not None and spent >= self.budget)
