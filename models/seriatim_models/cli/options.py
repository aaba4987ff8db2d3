"""Options that several commands share, and the style of their help."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import Any, TypeVar

import rich_click as click

F = TypeVar("F", bound=Callable[..., Any])  # Any: a command takes what its options give

HELP = click.RichHelpConfiguration(text_markup="rich", max_width=100, style_helptext="")

STRATEGIES = ("dpor", "random", "pct", "pos")
ENGINES = ("local", "spark")
PROFILE_HELP = (
    "Which properties this system promises: a name of `seriatim list profiles`, or a .toml file."
)


def lines(text: str) -> str:
    """The text as an epilog: sentences flow, headings and lines in columns stay lines."""
    made: list[str] = []
    sentences = False
    for line in dedent(text).strip().splitlines():
        flows = bool(line) and "  " not in line and not line.startswith(("seriatim ", "[bold]"))
        if flows and sentences:
            made[-1] += f" {line}"
        else:
            made.append(line)
        sentences = flows
    return "\n\n".join(made)  # of a paragraph, rich-click would join the lines


class UnpaddedHelp(click.RichHelpFormatter):
    """Help whose lines end where their text ends: a pipe needs no blanks up to its width."""

    def getvalue(self) -> str:
        """The help as text."""
        made = super().getvalue()
        return made if sys.stdout.isatty() else re.sub(r" +$", "", made, flags=re.MULTILINE)


click.RichContext.formatter_class = UnpaddedHelp


def outputs(command: F) -> F:
    """`--json`, `--html` and `--junit`, each with `-` for standard output."""
    for name, what in (
        ("--junit", "Write the verdicts as JUnit XML."),
        ("--html", "Write one self-contained page to read."),
        ("--json", "Write the verdicts as JSON (seriatim-verdicts/1)."),
    ):
        command = click.option(name, metavar="FILE", help=f"{what} [dim]-[/] for standard output.")(
            command
        )
    return command


def json_output(what: str) -> Callable[[F], F]:
    """`--json` alone, for a command that writes `what` and no report."""
    return click.option(
        "--json", "json", metavar="FILE", help=f"Write {what}. [dim]-[/] for standard output."
    )


def profile_option(what: str, default: str | None = "any") -> Callable[[F], F]:
    """`--profile`, which names the properties that apply; `what` is its help."""
    return click.option(
        "--profile",
        shell_complete=completing("profiles"),
        default=default,
        show_default=default is not None,
        metavar="NAME",
        help=what,
    )


def master_option(before: str = "Spark's cluster") -> Callable[[F], F]:
    """`--master`, where Spark runs; `before` stands before what it is if not given."""
    what = f"{before} [dim](SERIATIM_SPARK_MASTER, else this machine)[/]."
    return click.option("--master", metavar="URL", help=what)


def verbose_option(what: str) -> Callable[[F], F]:
    """`-v` or `--verbose`; `what` is its help."""
    return click.option("-v", "--verbose", is_flag=True, help=what)


def property_option(command: F) -> F:
    """`--property`, as often as one likes; given as `own`."""
    return click.option(
        "--property",
        "own",
        metavar="MODULE:NAME",
        multiple=True,
        help="Judge by this property, too: of a module, a file.py:Name, or the name of an entry point.",
    )(command)


SECONDS_MAX = 1e9
"""Thirty years: clocks and waits of the system take no number of seconds."""


class Finite(click.FloatRange):
    """A number that is one: click lets "nan" through, which is within no bounds."""

    what = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))  # Any: as click has it
        if not math.isfinite(number):
            self.fail(f"{number} is no {self.what}.", param, ctx)
        return number


class Seconds(Finite):
    """A time after which something ends: neither "inf" nor what no clock can count."""

    what = "number of seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)  # Any: as click has it
        if number > SECONDS_MAX:
            self.fail(f"{number:g} is more than {SECONDS_MAX:g} seconds.", param, ctx)
        return number


POSITIVE = Seconds(min=0, min_open=True)
SHARE = Finite(0, 1)
COUNT = click.IntRange(1)
JOBS = click.IntRange(1, 1024)
"""Processes: as many as are asked for are started, and each takes memory."""


def number_option(
    name: str,
    what: str | None,
    type: click.ParamType[Any] | type[int] = int,
    default: float | None = None,
    metavar: str = "N",
) -> Callable[[F], F]:
    """An option for a number within the bounds of `type`; `what` is its help."""
    return click.option(
        name,
        type=type,
        default=default,
        show_default=default is not None,
        metavar=metavar,
        help=what,
    )


def completing(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A completion for the shell of the names of a `kind`: ``programs``, ``mutants`` or ``profiles``."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from seriatim_models import programs
        from seriatim_models.conformance.profiles import PROFILES

        names: dict[str, Iterable[str]] = {
            "programs": programs.PROGRAMS,
            "mutants": programs.MUTANTS,
            "profiles": PROFILES,
        }
        return [name for name in names[kind] if name.startswith(incomplete)]

    return complete
