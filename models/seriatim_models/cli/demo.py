"""`seriatim demo`: published results, reproduced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click
from rich.table import Table
from rich.text import Text

from seriatim_models.cli.console import Outputs, ProgressDisplay, check_writable, put
from seriatim_models.cli.options import HELP, SHARE, json_output, lines, number_option
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.extras import how_to_install
from seriatim_models.report.document import indented

if TYPE_CHECKING:
    from seriatim_models.programs.fair_simulation import Comparison

SCHEMA = "seriatim-demo-fair/1"


@click.group(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim demo fair                   two published tables, simulated
        seriatim demo fair --help            what can be changed about it
        """
    )
)
@click.rich_config(help_config=HELP)
def demo() -> None:
    """Published results, reproduced, side by side with what was published."""


@demo.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim demo fair                             the tables, and where proportional turns flat
        seriatim demo fair --svg fair.svg              the same as a picture
        seriatim demo fair --jitter 0.5 --seed 7       with times that vary by half, drawn from seed 7
        seriatim demo fair --json - | jq .tables       for programs

        [bold]Exit codes[/]
        0  both tables come out within the error that their property (FQ-5) allows
        1  one does not
        2  bad usage, or a file cannot be written
        """
    )
)
@number_option(
    "--total", "Messages of each table; the article had 200,000.", click.IntRange(1000), 200_000
)
@number_option(
    "--jitter",
    "Let each push and each message take so much more or less.",
    SHARE,
    0.0,
    metavar="SHARE",
)
@number_option("--seed", "Seed of the jitter.", int, 0)
@click.option("--svg", metavar="FILE", help="Draw the tables and the turn.")
@json_output("tables and ratios as JSON")
@click.rich_config(help_config=HELP)
def fair(total: int, jitter: float, seed: int, svg: str | None, json: str | None) -> int:
    """Simulate the two tables of the article "Fair Consuming with RabbitMQ", by the reference's own loop.

    Ten queues, p9 with ten times the quantum of p0. In the first table the consumer is the bottleneck and
    rates are proportional; in the second the broker is, and they are flat.
    """
    from seriatim_models.programs import fair_simulation as f

    console = Outputs(json=json, others=(svg,)).console
    check_writable(svg)
    tables: list[Comparison] = []
    turn: list[tuple[float, float]] = []
    with ProgressDisplay(len(f.TABLES) + len(f.SPEEDS), "simulations").running() as work:
        for name in f.TABLES:
            with work.item(f"{name} a message"):
                tables.append(f.compare(name, total, jitter, seed))
        for speed in f.SPEEDS:
            with work.item(f"push at {speed} of the service"):
                turn.append((speed, f.advantage(speed, jitter, seed)))
    for table in tables:
        console.print(_drawn(table))
        summary = f"{table.outcome.seconds:.2f} s simulated; largest error {table.largest:.1%} of {table.allowed:.1%}"
        console.print(Text(summary, style="green" if table.ok else "bold red"))
        console.print()
    console.print(_turn(turn))
    console.print(Text(f.WHY))
    if jitter:
        console.print(Text(f"Times vary by {jitter:.0%}, drawn from seed {seed}."))
    if svg is not None:
        try:
            f.plot(svg, tables, turn)
        except ImportError as error:
            raise UsageError(how_to_install("matplotlib", "--svg")) from error
        except OSError as error:
            raise UsageError(f"cannot write {svg}: {error.strerror}") from error
        console.print(Text(f"The picture: {svg}", style="bold"), soft_wrap=True)
    if json is not None:
        put(json, indented(_document(tables, turn, total, jitter, seed)))
    return 0 if all(t.ok for t in tables) else 1


def _drawn(table: Comparison) -> Table:
    shown = Table(title=f"{table.name} a message", title_justify="left")
    for column in ("queue", "quantum", "published", "simulated", "error"):
        shown.add_column(column, justify="left" if column == "queue" else "right")
    for name, quantum, published, served, error in table.rows():
        shown.add_row(name, str(quantum), f"{published:,}", f"{served:,}", f"{error:+.1%}")
    return shown


def _turn(turn: list[tuple[float, float]]) -> Table:
    shown = Table(title="where proportional turns flat", title_justify="left")
    shown.add_column("speed of the push / of the service", justify="right")
    shown.add_column("p9 / p0", justify="right")
    for speed, ratio in turn:
        shown.add_row(f"{speed:.2f}", f"{ratio:.2f}")
    return shown


def _document(
    tables: list[Comparison], turn: list[tuple[float, float]], total: int, jitter: float, seed: int
) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "total": total,
        "jitter": jitter,
        "seed": seed,
        "tables": [
            {
                "name": t.name,
                "verdict": "ok" if t.ok else "violated",
                "seconds": t.outcome.seconds,
                "largest_error": t.largest,
                "allowed_error": t.allowed,
                "rows": [
                    {"queue": k, "quantum": q, "published": p, "simulated": s, "error": e}
                    for k, q, p, s, e in t.rows()
                ],
            }
            for t in tables
        ],
        "turn": [{"push_over_service": speed, "p9_over_p0": ratio} for speed, ratio in turn],
    }
