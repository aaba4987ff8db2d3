"""`seriatim help`: every command's help as one page, and the topics that several commands share."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import rich_click as click
from rich.text import Text

from seriatim_models.cli.console import Outputs
from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.usage_errors import unknown

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
        Outputs().console.print(Text(_docstring(TOPICS[topic])), soft_wrap=True)
        return 0
    if topic is not None and topic not in commands:
        raise unknown("topic", topic, [*commands, *TOPICS], "seriatim help --help")
    if topic is None:
        app.main(["--help"], prog_name="seriatim", standalone_mode=False)
    for name, command in commands.items():
        if topic in (None, name):
            command.main(["--help"], prog_name=f"seriatim {name}", standalone_mode=False)
    return 0
