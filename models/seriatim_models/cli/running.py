"""Running a command line: which exit code each way to end has, and what is printed of an error."""

from __future__ import annotations

import errno
import io
import os
import re
import select
import shutil
import signal
import sys
import textwrap
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, cast

import rich_click as click

from seriatim_models.cli.console import WIDTH_LEAST
from seriatim_models.cli.usage_errors import UsageError, in_words, sentence_of
from seriatim_models.ending import INTERRUPTED, TERMINATED, Terminated, interruption
from seriatim_models.extras import lacking
from seriatim_models.files import message_of, not_text, text_of
from seriatim_models.report.visible import one_line, shortened, visible

INTERNAL_ERROR = 70
USAGE = 2
IN_TASK = re.compile(r"^seriatim_models\.pipeline\.errors\.PipelineError: (.+)$", re.MULTILINE)
"""A sentence in the traceback of a Spark task."""
NO_ROOM = re.compile("failed to map segment|[Cc]annot allocate memory")
"""What a compiled module says that finds no memory; numpy packs it into two pages of advice."""
NAME_MAX = 4096
"""Characters of a word that is shown whole in a sentence: no path has more."""
WITHOUT_ASSERTIONS = (
    "Python leaves out assertions here (-O or PYTHONOPTIMIZE), and what they would find would pass for well; "
    "run it without"
)
TOO_MANY = "this takes more threads and processes than this user may have"
SPARKS = frozenset({"Py4JJavaError", "Py4JError", "PySparkException"})
"""Classes of PySpark and py4j, which need not be installed."""
COMPLETION = "_SERIATIM_COMPLETE"
"""The variable by which a shell asks for what completes a command line: click's name for it."""
CALLING = "An error occurred while calling "
"""How py4j begins what Java raised: the line behind it names that."""

# Taken before anything is explored: while it is, these names are refused to the program and to a handler that meets it.
_handle, _kill = signal.signal, os.kill


class OutputError(Exception):
    """Standard output took no more. No `OSError`: libraries end the process with code 1 at those."""


class _Output(io.FileIO):
    """Standard output, whose failures are `OutputError`; one that takes nothing just now is waited for."""

    # Any: the buffer protocol has no name in the type system of this Python version
    def write(self, data: Any) -> int:
        try:
            # None: whoever shares the terminal or the pipe has made it one that does not wait.
            while (written := cast("int | None", super().write(data))) is None:
                select.select([], [self.fileno()], [])
        except OSError as error:
            return self.failed(error, memoryview(data).nbytes)
        return written

    def failed(self, error: OSError, size: int) -> int:
        """Do what is due when `size` bytes cannot be written: how many count as written."""
        raise OutputError(error.errno, error.strerror) from error


class _StandardError(_Output):
    """Standard error: who does not read it loses what is said there, and no verdict."""

    def failed(self, error: OSError, size: int) -> int:
        """From now on it goes nowhere."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        return size


def checked_output(number: int) -> io.BufferedWriter:
    """A stream to this file descriptor: standard error is 2, all others are as standard output is."""
    kind = _StandardError if number == 2 else _Output
    return io.BufferedWriter(kind(number, "wb", closefd=False))


def checked_process() -> None:
    """Replace standard output by a stream that raises `OutputError`, standard error by one that never fails. For a
    process of its own.

    Sizes of the terminal that are none are forgotten. And SIGCHLD has its usual meaning: where it is ignored, every
    child seems to have ended well.
    """
    forget_odd_sizes()
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        _handle(signal.SIGCHLD, signal.SIG_DFL)
    for number, name in ((1, "stdout"), (2, "stderr")):
        before = getattr(sys, name)
        if (
            before is None
        ):  # closed by who started this; the next file that is opened must not take its place
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - until the end
            continue
        with suppress(OSError, ValueError):
            before.flush()
        raw = checked_output(before.fileno())
        lines = before.isatty() or name == "stderr"
        # Encodings without the character are left: Latin-1, that of a Windows console, ASCII.
        # In the locale C Python's own choice is one that takes bytes of names only, and no other character.
        refuses = before.errors in ("strict", "surrogateescape", "surrogatepass")
        errors = "backslashreplace" if refuses else before.errors
        text = io.TextIOWrapper(raw, before.encoding, errors, line_buffering=lines)
        setattr(sys, name, text)


def forget_odd_sizes() -> None:
    """Forget sizes of the terminal that are no numbers, at some of which rich ends, and those that no terminal has: a
    line would be as long.
    """
    for name in ("COLUMNS", "LINES"):
        if not re.fullmatch(r"[0-9]{1,4}", os.environ.get(name, "")):
            os.environ.pop(name, None)


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM, in this process and not in its children, unless somebody handles it already."""
    alone = threading.current_thread() is threading.main_thread()
    if not alone or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    mine = os.getpid()

    def terminate(number: int, frame: FrameType | None) -> None:
        _handle(number, signal.SIG_DFL)
        if os.getpid() == mine:
            raise Terminated
        _kill(os.getpid(), number)

    _handle(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        _handle(signal.SIGTERM, signal.SIG_DFL)


def run_command(app: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run `app` and return the exit code; a usage error becomes one sentence and code 2.

    Without `arguments` those of this process are taken.
    """
    given = sys.argv[1:] if arguments is None else arguments
    try:
        for argument in given:
            if "\0" in argument:
                raise UsageError(f"{one_line(argument)} has a NUL in it, which no name has")
            if not_text(argument):
                raise UsageError(
                    f"{text_of(argument)} is not UTF-8; a file of that name needs another"
                )
        if sys.flags.optimize:
            raise UsageError(WITHOUT_ASSERTIONS)
        with terminable():
            code = _main(app, arguments)
        sys.stdout.flush()
    except OutputError as error:
        return _output_lost(error)
    except (
        BaseException
    ) as error:  # also SystemExit: only code of somebody else's ends a command so
        aborted = isinstance(error, click.Abort)  # click makes it of an interrupt, "from None"
        interrupt = interruption(error.__context__ if aborted else error)
        if isinstance(interrupt, Terminated):
            _say("terminated")
            return TERMINATED
        if aborted or interrupt is not None:
            _say("interrupted")
            return INTERRUPTED
        if isinstance(error, click.ClickException):
            _say(in_words(error.format_message()))
            return error.exit_code
        if why := _surroundings(error):
            _say(why)
            return USAGE
        # Not exit code 1: that would mean that a property is violated.
        traceback.print_exc()
        _say("this is a fault of seriatim itself, not of what it checked")
        return INTERNAL_ERROR
    return code if isinstance(code, int) else 0


def _main(app: click.Command, arguments: Sequence[str] | None) -> object:
    """What the command returns. Raises what it raises: click takes each `EOFError` for the end of what is typed, and
    ends the process where a pipe has broken, and after the help for who gave no arguments.
    """
    if asked := os.environ.get(COMPLETION):
        return _completed(app, asked)
    try:
        return app.main(args=arguments, prog_name="seriatim", standalone_mode=False)
    except SystemExit as error:
        if isinstance(error.__context__, click.ClickException):
            return error.code
        raise (error.__context__ or error) from None
    except click.Abort as error:
        why = error.__cause__ or error.__context__
        if isinstance(why, EOFError):
            raise why from None
        raise


def _completed(app: click.Command, asked: str) -> int:
    """Answer a shell. Raises `UsageError`: click would end the process by itself, and by 1 for what it knows not."""
    from click.shell_completion import shell_complete

    try:
        unknown = shell_complete(app, {}, "seriatim", COMPLETION, asked)
    except (LookupError, ValueError):
        unknown = 1  # without the words that a shell has typed
    if unknown:
        raise UsageError(
            f"{COMPLETION} is {one_line(asked)}, which no shell asks for; set it to bash_source, zsh_source or "
            f"fish_source, or not at all"
        )
    return 0


def _surroundings(error: BaseException) -> str:
    """What the machine lacks, or a property of the user's did, in a sentence, if `error` comes of it; else nothing."""
    if (own := sys.modules.get("seriatim_models.properties.own")) and (
        why := own.raised_in_own(error)
    ):
        return str(why)
    if isinstance(error, ModuleNotFoundError):
        return lacking(error) or ""
    if isinstance(error, MemoryError) or (
        isinstance(error, ImportError) and NO_ROOM.search(message_of(error))
    ):
        return "this takes more memory than there is"
    if isinstance(error, EOFError) and str(error).startswith(("marshal data", "EOF read where")):
        # Up to 3.13, Python keeps the half that found room on a full disk.
        return "a module that Python keeps compiled is cut off: remove the folders __pycache__ and run it again"
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop from "):
        # Up to 3.12, Path.resolve raises no OSError for it.
        return (
            f"{text_of(str(error).removeprefix('Symlink loop from '))}: a link that leads to itself"
        )
    if isinstance(error, BlockingIOError) and not error.filename:  # of fork
        return TOO_MANY
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return TOO_MANY
    if type(error).__name__ == "BrokenProcessPool":
        return "a process that worked for this one was killed, by somebody or for want of memory"
    if isinstance(error, FileNotFoundError) and not error.filename and _without_folder():
        return "the folder that this runs in has been deleted"
    if isinstance(error, OSError):  # what no command expected: a full disk, a name too long
        return sentence_of(error)
    if in_task := IN_TASK.search(message_of(error)):
        return in_task[1]
    return _of_spark(error)


def _of_spark(error: BaseException) -> str:
    """What Spark or its Java says that failed, in a sentence, unless Python code did that ran on it; else nothing."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "Py4JNetworkError" in kinds:  # killed, or without memory or disk
        return "Spark broke off, its Java process has ended; the same command goes on where it was"
    said = message_of(error)
    if not kinds & SPARKS or "Traceback (most recent call last)" in said:
        return ""
    if "unable to create native thread" in said:
        return TOO_MANY
    lines = [line for line in said.splitlines() if line and not line.startswith(CALLING)]
    return f"Spark broke off: {lines[0].removeprefix(': ') if lines else said}"


def _without_folder() -> bool:
    """Whether this process has no current folder any more."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _say(sentence: str) -> None:
    said = f"seriatim: {visible(shortened(sentence, NAME_MAX))}"
    if os.environ.get("COLUMNS", "").isdigit() or sys.stderr.isatty():
        width = max(shutil.get_terminal_size().columns, WIDTH_LEAST)
        said = "\n".join(_folded(line, width) for line in said.splitlines())
    click.echo(said, err=True)


def _folded(line: str, width: int) -> str:
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def _output_lost(error: OutputError) -> int:
    """Say that the output is not whole, unless its reader closed it; what is left of it goes nowhere."""
    number, why = error.args
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if number != errno.EPIPE:
        _say(f"standard output cannot be written: {why}")
    return USAGE
