"""Options that several commands share, and how help looks."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import Any, TypeVar

import rich_click as click

F = TypeVar("F", bound=Callable[..., Any])  # Any: a command takes what its options say

HELP = click.RichHelpConfiguration(text_markup="rich", max_width=100, style_helptext="")

STRATEGIES = ("dpor", "random", "pct", "pos")
ENGINES = ("local", "spark")


def lines(text: str) -> str:
    """An epilog whose lines stay lines: rich-click joins those of one paragraph."""
    return "\n\n".join(dedent(text).strip().splitlines())


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


def completing(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Names that the shell may complete: ``programs``, ``mutants`` or ``profiles``."""

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


def command_line() -> str:
    """How this process was asked, for the report."""
    return shlex.join(["seriatim", *sys.argv[1:]])
