"""A process that is sent blocks of bytes one after another, and answers once, when it has had all of them."""

from __future__ import annotations

import fcntl
import os
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection

import msgspec

from seriatim_models.child_process import end_with, leave_to_parent, shielded
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.garbage import rare_collections

WAITING = 2**20
"""Bytes that may wait for such a process: what any user may ask of Linux."""
Work = Callable[[Iterable[bytes]], bytes]
"""What such a process makes of its blocks."""


class BlockAnswer(msgspec.Struct, tag=True):
    """What a process came to."""

    made: bytes


class BlockFailure(msgspec.Struct, tag=True):
    """What ended a process."""

    of_system: tuple[int, str] | None
    """Of an `OSError`, as that there is no room for a file, its number and text."""
    trace: str


class BlockProcess:
    """One process. `kill` it behind its last use."""

    def __init__(self, work: Work, does: str) -> None:
        """`work` can be pickled; `does` says what it is for, to whoever reads that it has ended."""
        self._does = does
        context = get_context("spawn")
        # Two pipes: what a process says is not lost when it ends before all is read that was sent to it.
        reads, self._blocks = context.Pipe(duplex=False)
        _widen(self._blocks)
        self._answers, answers = context.Pipe(duplex=False)
        self.process = context.Process(target=do, args=(os.getpid(), work, reads, answers))
        with shielded():
            self.process.start()
        reads.close()
        answers.close()

    def send(self, block: bytes) -> None:
        """Send the next block; one without a byte says that those were all. Waits if the process does not keep up.

        Raises `OSError` if it has ended, or what that did raise: see `answer`.
        """
        try:
            self._blocks.send_bytes(block)
        except OSError:
            self.answer()
            raise

    def answer(self) -> bytes:
        """What it came to. Raises `PipelineError` if it ended before it answered, and what it raised."""
        try:
            answer = msgspec.msgpack.decode(
                self._answers.recv_bytes(), type=BlockAnswer | BlockFailure
            )
        except (EOFError, OSError) as error:
            raise PipelineError(ended(self._does)) from error
        if isinstance(answer, BlockFailure):
            raise OSError(*answer.of_system) if answer.of_system else RuntimeError(answer.trace)
        return answer.made

    def kill(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.join()


def _widen(blocks: Connection) -> None:
    """Have a pipe hold some blocks, so that neither end waits for the other at each of them."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux
        with suppress(OSError):  # this user's pipes hold too much already
            fcntl.fcntl(blocks.fileno(), fcntl.F_SETPIPE_SZ, WAITING)


def ended(does: str) -> str:
    """What is said of a process that has ended before its time."""
    return f"a process that {does} has ended: was it killed, or out of memory?"


# In the other process:


@rare_collections()
def do(parent: int, work: Work, blocks: Connection, answers: Connection) -> None:
    """Do the work on what comes, and answer."""
    leave_to_parent()
    end_with(parent)
    answer: BlockAnswer | BlockFailure
    try:
        answer = BlockAnswer(work(iter(blocks.recv_bytes, b"")))
    except OSError as error:
        answer = BlockFailure((error.errno or 0, error.strerror or ""), "")
    except Exception:
        answer = BlockFailure(None, traceback.format_exc())
    answers.send_bytes(msgspec.msgpack.encode(answer))
