"""`seriatim generate`: a large synthetic history with known violations in it."""

from __future__ import annotations

from importlib.util import find_spec

import rich_click as click

from seriatim_models.cli.console import Outputs, check_folder
from seriatim_models.cli.options import COUNT, HELP, SHARE, lines, number_option
from seriatim_models.cli.usage_errors import UsageError, sentence_of
from seriatim_models.extras import how_to_install
from seriatim_models.report.terminal import quantity


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim generate soak --events 1000000            one violation of each kind
        seriatim generate clean --plant none               without violations
        seriatim generate tags --plant P8 --each 5         five of each kind
        seriatim generate lines --format jsonl.zst         as JSON lines

        planted.json in the folder says what was injected, and how many violations each property must find.
        The same seed gives the same events.
        """
    )
)
@click.argument("folder", metavar="DIR")
@number_option("--events", "At least so many.", COUNT, 100_000)
@number_option("--queues", "Over so many queues.", click.IntRange(1, 1_000_000), 100)
@click.option(
    "--hot",
    type=SHARE,
    default=0.0,
    metavar="SHARE",
    help="Fraction of all events on the first queue [dim](even by default)[/].",
)
@click.option(
    "--plant",
    "plants",
    multiple=True,
    metavar="KIND",
    help="A property or a kind such as P8:twice, more than once if you like; [dim]none[/] for none "
    "[dim](all by default)[/].",
)
@number_option("--each", "Inject so many of each kind.", click.IntRange(1, 100_000), 1)
@click.option(
    "--format",
    "form",
    default="parquet",
    show_default=True,
    metavar="SUFFIX",
    help="parquet, jsonl, jsonl.gz or jsonl.zst.",
)
@number_option("--seed", "Of all choices.", click.IntRange(0), 0)
@click.option(
    "--run",
    "name",
    default="synthetic",
    show_default=True,
    metavar="NAME",
    help="Name of the run in the header.",
)
@click.rich_config(help_config=HELP)
def generate(
    folder: str,
    events: int,
    queues: int,
    hot: float,
    plants: tuple[str, ...],
    each: int,
    form: str,
    seed: int,
    name: str,
) -> int:
    """Make a large synthetic history with known violations in it."""
    if find_spec("pyarrow") is None:
        raise UsageError(how_to_install("pyarrow", "generate"))
    check_folder(folder)
    from seriatim_models.history import HistoryError
    from seriatim_models.pipeline import PipelineError
    from seriatim_models.pipeline.synthetic.generate import generate as make

    if "none" in plants and len(plants) > 1:
        raise UsageError("--plant none is for no violation at all: leave out the others, or none")
    kinds = None if not plants else [] if plants == ("none",) else list(plants)
    try:
        made = make(
            folder,
            events,
            queues=queues,
            seed=seed,
            kinds=kinds,
            each=each,
            format=form,
            hot=hot,
            run=name,
        )
    except (OSError, HistoryError, PipelineError) as error:
        raise UsageError(sentence_of(error)) from error
    console = Outputs().console
    counted = f"{quantity(made.events, 'event')} in {quantity(len(made.files), 'file')}"
    console.print(f"{folder}: {counted}, seed {seed}", markup=False)
    expected = ", ".join(f"{p} {n}" for p, n in made.expected.items()) or "none"
    console.print(f"violations to be found: {expected}")
    return 0
