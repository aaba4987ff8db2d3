"""Running a command line: which exit code each way to end has, and what is printed of an error."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import rich_click as click

INTERNAL_ERROR = 70
INTERRUPTED = 130


def run_command(app: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run `app` and return the exit code; a usage error becomes one sentence and code 2.

    Without `arguments` those of this process are taken.
    """
    try:
        code = app.main(args=arguments, prog_name="seriatim", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"seriatim: {error.format_message()}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("seriatim: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it; keep the interpreter from complaining when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception:
        # Not exit code 1: that would mean that a property is violated.
        traceback.print_exc()
        click.echo("seriatim: this is a fault of seriatim itself, not of what it checked", err=True)
        return INTERNAL_ERROR
    return code if isinstance(code, int) else 0
