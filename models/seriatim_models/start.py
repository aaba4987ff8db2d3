"""The command as it is installed: Ctrl-C while it is being loaded ends it in one word, as it does later."""

from __future__ import annotations

import signal
import sys

from seriatim_models.ending import INTERRUPTED, in_a_word, leave


def main() -> None:
    """Load the command line, and run it."""
    sys.excepthook = in_a_word
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # No exception: what the interpreter calls back while it imports would swallow it.
        signal.signal(signal.SIGINT, lambda *_: leave(INTERRUPTED))
    from seriatim_models.cli import main as command

    signal.signal(signal.SIGINT, before)
    command()
