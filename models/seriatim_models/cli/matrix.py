"""`seriatim matrix`: every API call beside every other, from every small state, under every schedule."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import rich_click as click
from rich.text import Text

from seriatim_models.cli.console import Outputs, check_folder, check_writable
from seriatim_models.cli.matrix_run import MatrixRun, Run, journal_path
from seriatim_models.cli.options import (
    HELP,
    JOBS,
    POSITIVE,
    json_output,
    lines,
    master_option,
    number_option,
)
from seriatim_models.cli.stop_request import StopRequest
from seriatim_models.cli.usage_errors import UsageError, unknown
from seriatim_models.report.document import indented

EXIT = {"ok": 0, "violated": 1, "inconclusive": 3}


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim matrix                        every system, states two calls deep
        seriatim matrix pull --depth 3         one system, deeper; what CI runs
        seriatim matrix push --universe group  one of its universes only
        seriatim matrix pull --threads 3       three calls at once
        seriatim matrix --json - | jq .        the table for another program
        seriatim matrix push --html table      pages: cells, programs, interleavings
        seriatim matrix --depth 5 --campaign c deeper, on Spark; goes on after a kill
        seriatim matrix push --pair "settle exclusive: ; subscribe A | subscribe B"
                                               one program, with its counterexample if it is wrong

        The systems are pull, push, handover, log, fair, pool and client.
        Results are kept in a journal as they come: after Ctrl-C or a kill the same command goes on.
        A program that a budget ended is inconclusive, and so is its cell, exit code 3.
        """
    )
)
@click.argument("systems", metavar="[SYSTEM]...", nargs=-1)
@number_option("--depth", "Calls that lead to a state, at most.", click.IntRange(0), 2)
@number_option("--threads", "Calls at once.", click.IntRange(2, 3), 2)
@number_option("--jobs", "Processes [dim](as many as there are processors)[/].", JOBS)
@number_option("--budget", "Stop each system after so long.", POSITIVE, metavar="SECONDS")
@click.option(
    "--universe",
    "universes",
    multiple=True,
    metavar="NAME",
    help="Only this one; 'ranks*': these; '!ranks*': the others.",
)
@click.option("--journal", metavar="FILE", help="Keep the results of one system here instead.")
@click.option("--fresh", is_flag=True, help="Begin again, whatever a journal holds.")
@click.option(
    "--campaign", metavar="DIR", help="Run on Spark; a checkpoint log in DIR is the journal."
)
@master_option("With --campaign: Spark's cluster")
@click.option("--mutant", "mutant_id", metavar="ID", help="Run over this mutant of the reference.")
@click.option("--pair", metavar="PROGRAM", help="Run this one program of the table, to its end.")
@click.option("--replay", "token", metavar="TOKEN", help="With --pair: only this schedule of it.")
@json_output(
    "the table as JSON (seriatim-matrix/1), or one program's verdict (seriatim-verdicts/1)"
)
@click.option(
    "--html",
    metavar="FILE|DIR",
    help="Write the table with its programs as one page, or as a folder of pages; with --pair: that program's page.",
)
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
    campaign: str | None,
    master: str | None,
    mutant_id: str | None,
    pair: str | None,
    token: str | None,
    json: str | None,
    html: str | None,
) -> int:
    """Let every API call race with every other, from every small state, under every schedule."""
    from seriatim_models.cli.matrix_pages import drawn, write_pages
    from seriatim_models.matrix.text import show

    out = Outputs(json, html, others=(journal,))
    check_writable(html, folder=pair is None)
    chosen = _systems(systems, universes, mutant_id)
    if pair is not None:
        if len(chosen) != 1:
            raise UsageError("--pair is a program of one system: name that system")
        return _one_pair(chosen[0], pair, mutant_id, token, out)
    _fits_together(chosen, token, journal, fresh, campaign, master)
    if campaign is not None:
        check_folder(campaign)
    runs: list[MatrixRun] = []
    with StopRequest() as stop:
        for name in chosen:
            processes = jobs or os.cpu_count() or 1
            named = _universes(name, universes)
            run = Run(name, depth, threads, processes, budget, named, stop, mutant_id or "")
            if campaign is not None:
                runs.append(run.campaign(campaign, master))
            else:
                usual = journal_path(name, depth, threads, *universes, mutant_id or "")
                runs.append(run.matrix(Path(journal) if journal else usual, fresh))
            show(out.console, runs[-1].matrix)
            if stop.asked:
                break
        if html is not None:
            command = shlex.join(["seriatim", *sys.argv[1:]])
            shown = [drawn(run, command, lambda: stop.asked) for run in runs]
            write_pages(html, shown, command)
            if html != "-":
                out.console.print(Text(f"written: {html}"), soft_wrap=True)
    if json is not None:
        out.put(json, _document(runs))
    if stop.asked:
        out.console.print("Interrupted: the same command goes on.", markup=False)
        return stop.code
    return max((EXIT[run.matrix.verdict] for run in runs), key=lambda code: (code == 1, code))


def _fits_together(
    chosen: Sequence[str],
    token: str | None,
    journal: str | None,
    fresh: bool,
    campaign: str | None,
    master: str | None,
) -> None:
    """Raise `UsageError` for options that do not go with each other, where no program was named."""
    if token is not None:
        raise UsageError("--replay goes with --pair")
    if journal and len(chosen) != 1:
        raise UsageError("--journal is the file of one system: name that system")
    if campaign is not None and (journal or fresh):
        raise UsageError("--campaign DIR has a journal of its own: leave out --journal and --fresh")
    if campaign is None and master is not None:
        raise UsageError("--master goes with --campaign")


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
        _universes(name, universes)
    return chosen


def _universes(system: str, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The universes that names choose, patterns as of a shell, or all but these behind ``!``. Raises `UsageError`."""
    from seriatim_models.matrix.systems import SYSTEMS

    known = [u.name for u in SYSTEMS[system].universes]
    out: list[str] = []
    for pattern in patterns:
        named, but = pattern.removeprefix("!"), pattern.startswith("!")
        found = [name for name in known if fnmatchcase(name, named) != but]
        if not found or not any(fnmatchcase(name, named) for name in known):
            raise UsageError(f"{system} has no universe {named!r}; known are {', '.join(known)}")
        out += found
    return tuple(dict.fromkeys(out))


def _document(runs: Sequence[MatrixRun]) -> bytes:
    """The tables of some systems, with their verdicts, as JSON (seriatim-matrix/1)."""
    systems = []
    for matrix in (run.matrix for run in runs):
        fields: dict[str, object] = msgspec.to_builtins(matrix)
        cells = [{**msgspec.to_builtins(c), "verdict": c.verdict} for c in matrix.cells]
        sums = {
            "programs": matrix.programs,
            "executions": matrix.executions,
            "proved": matrix.proved,
        }
        systems.append({**fields, "cells": cells, "verdict": matrix.verdict, **sums})
    return indented({"schema": "seriatim-matrix/1", "systems": systems})


def _one_pair(system: str, key: str, mutant_id: str | None, token: str | None, out: Outputs) -> int:
    """Run one program of the table to its end, and report it as `seriatim check` does."""
    from seriatim_models.cli.check import finish
    from seriatim_models.cli.matrix_pages import example_story, pair_command, pair_run
    from seriatim_models.cli.report_builder import new_report
    from seriatim_models.explorer import BadToken
    from seriatim_models.matrix.systems import SYSTEMS
    from seriatim_models.matrix.work import PairData
    from seriatim_models.report.stepper import page

    try:
        program = PairData.read(key, SYSTEMS[system])
        run = pair_run(system, program, mutant_id or "", token)
    except (ValueError, BadToken) as error:
        raise UsageError(str(error)) from None
    report = new_report("greenlet")
    report.programs.append(run)
    if out.html is not None:
        shown = run.story or example_story(system, program, mutant_id or "")
        command = shlex.join(
            [*pair_command(system, program.key, mutant_id or ""), "--html", out.html]
        )
        out.put(out.html, page(shown, command).encode())
        out.html = None
    return finish(report, out)
