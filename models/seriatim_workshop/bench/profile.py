"""Where the time goes on the five hot paths.

``python -m seriatim_workshop.bench.profile [explorer|reference|oracle|pipeline|ingest]``
prints the functions that cost most by themselves, and keeps the whole profile for other viewers.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from seriatim_workshop.bench import histories
from seriatim_workshop.bench.measure import OUT
from seriatim_workshop.bench.programs import michael_scott

Hot = Callable[[], None]
OPERATIONS = 20_000
RECORDING = Path(__file__).parents[3] / "tests" / "data" / "rabbit-classic-lockstep.jsonl.gz"


def explorer() -> Hot:
    """Optimal DPOR over a Michael-Scott queue with two enqueuers and two dequeuers."""
    from seriatim_models.explorer import explore

    program = michael_scott(2, 2)
    return lambda: _ignore(explore(program, max_executions=3000))


def reference() -> Hot:
    """The first executions of the hand-over, which `seriatim check handover` explores, each one judged."""
    from seriatim_models.programs import PROGRAMS, check_program

    return lambda: _ignore(check_program(PROGRAMS["handover"], max_executions=1000))


def oracle() -> Hot:
    """Every black-box property over the history of a FIFO queue."""
    from seriatim_models.properties.blackbox import BLACKBOX

    events = list(histories.events(histories.operations(OPERATIONS, 8)))
    return lambda: _ignore([p.check(events) for p in BLACKBOX])


def pipeline() -> Hot:
    """The local engine from a file to its report: reading, completing, judging."""
    from seriatim_models.history import write_history
    from seriatim_models.pipeline import audit_paths

    folder = Path(tempfile.mkdtemp(prefix="seriatim-profile-"))
    file = folder / "history.jsonl"
    write_history(file, histories.events(histories.operations(OPERATIONS, 8)))
    return lambda: _ignore(audit_paths([file], engine="local"))


def ingest() -> Hot:
    """A recording of one client of RabbitMQ, as JSON lines, to chunk files, all of which one process does."""
    from seriatim_models.history import read_history, write_history
    from seriatim_models.pipeline.audit import ingest as ingesting
    from seriatim_models.pipeline.audit import runs
    from seriatim_models.pipeline.audit.inline import Inline

    folder = Path(tempfile.mkdtemp(prefix="seriatim-profile-"))
    file = folder / "history.jsonl"
    write_history(file, read_history(RECORDING).events)
    ingesting.ingest(Inline(), runs.plan([file]), folder / "imports")
    return lambda: _ignore(ingesting.ingest(Inline(), runs.plan([file]), folder / "chunks"))


def _ignore(result: object) -> None:
    """Profiled for its cost, not for its result."""


PATHS: dict[str, Callable[[], Hot]] = {
    "explorer": explorer,
    "reference": reference,
    "oracle": oracle,
    "pipeline": pipeline,
    "ingest": ingest,
}


def profiled(name: str) -> pstats.Stats:
    """The profile of one path; what prepares it is not in it."""
    run = PATHS[name]()
    profile = cProfile.Profile()
    profile.runcall(run)
    return pstats.Stats(profile)


def table(name: str, stats: pstats.Stats, top: int) -> Table:
    """The functions that cost most by themselves."""
    # By file, line and name: primitive calls, calls, own time, time with callees, and who calls.
    functions: dict[tuple[str, int, str], tuple[int, int, float, float, object]]
    functions = stats.stats  # type: ignore[attr-defined]  # public in the documentation, not in its types
    total = sum(own for _, _, own, _, _ in functions.values())
    title = f"{name}: {(PATHS[name].__doc__ or '').strip()}"
    made = Table(title=f"{title} {total:.2f} s under the profiler", title_justify="left")
    for column in ("itself", "with what it calls", "calls", "function"):
        made.add_column(column, justify="left" if column == "function" else "right")
    ranked = sorted(functions.items(), key=lambda f: -f[1][2])
    for (file, line, function), (_, calls, own, whole, _) in ranked[:top]:
        where = f"{Path(file).name}:{line} " if line else ""
        cells = (f"{own / total:.1%}", f"{whole / total:.1%}", f"{calls:,}", f"{where}{function}")
        made.add_row(*cells)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Profile the paths that are named (all) and print the costliest functions; returns 0."""
    parser = argparse.ArgumentParser(
        prog="make profile", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help=", ".join(PATHS) + " (all)")
    parser.add_argument("--top", type=int, default=15, help="how many functions to show (15)")
    options = parser.parse_args(argv)
    if unknown := [p for p in options.paths if p not in PATHS]:
        parser.error(f"no path {unknown[0]!r}; there are {', '.join(PATHS)}")
    console = Console()
    OUT.mkdir(parents=True, exist_ok=True)
    for name in options.paths or PATHS:
        stats = profiled(name)
        console.print(table(name, stats, options.top))
        file = OUT / f"{name}.pstats"
        stats.dump_stats(file)
        console.print(f"profile: {file}", markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
