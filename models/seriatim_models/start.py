"""The command as it is installed: Ctrl-C while it is being loaded ends it in one word, as it does later."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Load the command line, and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # No exception: what the interpreter calls back while it imports would swallow it.
        signal.signal(signal.SIGINT, _leave)
    from seriatim_models.cli import main as command

    signal.signal(signal.SIGINT, before)
    command()


def _leave(*_: object) -> None:
    os.write(2, b"seriatim: interrupted\n")
    os._exit(130)
