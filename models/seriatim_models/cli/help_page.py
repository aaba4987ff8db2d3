"""`seriatim help`: every command's help as one page, and the topics that several commands share."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from textwrap import fill

import rich_click as click
from rich.text import Text

from seriatim_models.cli.console import Outputs
from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.usage_errors import unknown

READABLE = 100  # columns; longer lines of prose are hard to read

TOPICS = {
    "history": "seriatim_models.history.event",
    "reading": "seriatim_models.history.reading",
    "verdicts": "seriatim_models.report.document",
    "explorer": "seriatim_models.explorer",
    "pytest": "seriatim_models.explorer.pytest_plugin",
    "properties": "seriatim_models.properties.base",
    "lessons": "seriatim_models.report.lessons",
    "queue": "seriatim.queue",
    "client": "seriatim.client",
    "workpool": "seriatim.workpool",
    "broker": "seriatim.broker",
    "log": "seriatim.log",
    "fair": "seriatim.fair",
}
"""The docstring of each module is the text of its topic."""


def _docstring(module: str) -> str:
    """What a module says of itself, read from its file: importing it may need what is not installed (pytest)."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""


ITEM = re.compile(r"\s*(?:[-*] |\d+\. |\S.*?\S   +(?=\S))")
"""The beginning of an item of a list, or of a row of two columns: what goes on stands under what follows it."""
RULE = re.compile(r"[-=]{3,}")


def folded(text: str, width: int) -> str:
    """A docstring in lines of at most so many columns; headings and programs keep their lines."""
    made: list[str] = []
    part, hanging = "", 0  # what is folded as one, and how far its further lines are indented

    def end() -> None:
        nonlocal part
        if part:
            made.append(
                fill(
                    part,
                    width,
                    subsequent_indent=" " * hanging,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )
        part = ""

    lines = [*text.splitlines(), ""]
    fenced = False
    for line, following in pairwise(lines):
        indent = len(line) - len(line.lstrip())
        fenced ^= line.startswith("```")
        program = fenced or line.startswith("```") or (indent > 3 and not part)
        if not line or program or RULE.fullmatch(line) or RULE.fullmatch(following):
            end()
            made.append(line)
        elif (item := ITEM.match(line)) or not part or indent != hanging:
            end()
            part, hanging = line, len(item[0]) if item else indent
        else:
            part += f" {line.strip()}"
    end()
    return "\n".join(made)


@click.command(
    "help",
    epilog=lines(
        f"""
        [bold]Examples[/]
        seriatim help            all commands, as one page
        seriatim help check      one of them
        seriatim help history    how a recording is written down
        seriatim help queue      how to think of the reference queue

        [bold]Topics[/]
        {", ".join(TOPICS)}
        """
    ),
)
@click.argument("topic", metavar="[COMMAND|TOPIC]", required=False)
@click.rich_config(help_config=HELP)
@click.pass_context
def help_command(context: click.Context, topic: str | None) -> int:
    """Explain a command or a topic, or print the help of all commands as one page."""
    app = context.find_root().command
    assert isinstance(app, click.Group)
    commands = {name: command for name, command in app.commands.items() if not command.hidden}
    if topic in TOPICS:
        console = Outputs().console
        console.print(Text(folded(_docstring(TOPICS[topic]), min(console.width, READABLE))))
        return 0
    if topic is not None and topic not in commands:
        raise unknown("topic", topic, [*commands, *TOPICS], "seriatim help --help")
    if topic is None:
        app.main(["--help"], prog_name="seriatim", standalone_mode=False)
    for name, command in commands.items():
        if topic in (None, name):
            command.main(["--help"], prog_name=f"seriatim {name}", standalone_mode=False)
    return 0
