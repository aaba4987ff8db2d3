"""The command as it is installed: what goes wrong while it is being loaded ends it in one word, as it does later."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from contextlib import suppress

from seriatim_models.ending import INTERRUPTED, in_a_word, leave

NOT_LOADED, FAULT = 2, 70
"""Exit codes. Python would end with 1, which means that a property is violated."""
LACKS = (OSError, MemoryError, ImportError, Warning)
"""What modules raise for want of files, memory or other modules, and where warnings are made errors."""
GOES_ON = (
    b"seriatim: Python would go on after the command (-i or PYTHONINSPECT) and end with a code of its own; "
    b"run it without\n"
)
ONE_THREAD = "OPENBLAS_NUM_THREADS"
"""numpy's linear algebra, of which nothing here has a use, starts a thread for each processor as it is loaded. Where
none may be started it sends this process SIGINT: a limit of the user's would be taken for Ctrl-C.
"""


def main() -> None:
    """Load the command line, and run it."""
    sys.excepthook = in_a_word
    hold_standard_streams()
    if sys.flags.inspect:
        with suppress(OSError):
            os.write(2, GOES_ON)
        os._exit(NOT_LOADED)  # what asks to end is not heard
    os.environ.setdefault(ONE_THREAD, "1")
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # No exception: what the interpreter calls back while it imports would swallow it.
        signal.signal(signal.SIGINT, lambda *_: leave(INTERRUPTED))
    try:
        from seriatim_models.cli import main as command
    except Exception as error:
        sys.exit(not_loaded(error))

    signal.signal(signal.SIGINT, before)
    command()


def hold_standard_streams() -> None:
    """Open nothing in the place of each standard stream that is closed: the next file would take it, and all that is
    said would be written there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the least number that is free, which is this one


def not_loaded(error: Exception) -> int:
    """Say why the command cannot be loaded; returns the exit code."""
    if not isinstance(error, LACKS):
        with suppress(OSError):
            traceback.print_exc()
        return FAULT
    lines = (str(error) or type(error).__name__).splitlines()
    with suppress(OSError):
        os.write(2, f"seriatim: cannot be loaded: {lines[0]}\n".encode(errors="backslashreplace"))
    return NOT_LOADED
