"""A life of a topic on real files, in a process that is killed at its n-th change of the disk; run by test_crash.py.

python cut.py FOLDER: for n = 0, 1, 2, ... until a life comes to its end, in FOLDER/n:
a child lives, and dies at the n-th open for writing, write (of which half is done), fsync, rename or truncation;
the parent opens what it left, checks it, and goes on. Nothing of the child is unwound: it has no chance to tidy up.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import seriatim.log as log
from seriatim.host import Threads

MESSAGES = [b"", b"bad", b"\0\0\0", b"four", b"a message with zeros behind\0\0"]
SEGMENT = 50
DEAD = 7


class Killer:
    """Counts changes of the disk, and ends the process at the one it was made for."""

    def __init__(self, last: int) -> None:
        self.left = last

    def strikes(self) -> bool:
        self.left -= 1
        return self.left < 0

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def killing(*args: Any) -> Any:
            if self.strikes():
                os._exit(DEAD)
            return call(*args)

        return killing

    def open(self, file: Any, mode: str = "r", **how: Any) -> Any:
        if "w" in mode or "a" in mode:
            if self.strikes():
                os._exit(DEAD)
            how["buffering"] = 0  # a write is a write
            return Written(builtins.open(file, mode, **how), self)
        return builtins.open(file, mode, **how)


class Written:
    """A file of which the last write may be cut in two."""

    def __init__(self, file: Any, killer: Killer) -> None:
        self.file, self.killer = file, killer
        self.flush, self.fileno = file.flush, file.fileno

    def __enter__(self) -> Written:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> int:
        if self.killer.strikes():
            self.file.write(data[: len(data) // 2])
            os._exit(DEAD)
        return int(self.file.write(data))


class Os:
    """The module `os` as the log sees it. A process that dies leaves the kernel alive, so nothing need be synced."""

    def __init__(self, killer: Killer) -> None:
        self.fsync = killer.before(lambda fd: None)
        self.replace = killer.before(os.replace)
        self.truncate = killer.before(os.truncate)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def live(folder: Path, say: Callable[[str, bytes], None], messages: list[bytes]) -> None:
    """Publish, handle and park, on one thread; `say` what was promised and what was handled."""
    topic = log.Topic(Threads(), log.Files(folder), SEGMENT)
    channel = log.Channel(topic, "c", max_attempts=2, pause=0)
    work_off(channel, say)
    for message in messages:
        topic.publish(message)
        say("p", message)
        work_off(channel, say)
    topic.close()


def work_off(channel: log.Channel, say: Callable[[str, bytes], None]) -> None:
    if not channel.read():
        return

    def handler(message: bytes) -> None:
        if len(channel.read(2)) == 1 and (message != b"bad" or channel.attempts + 1 == 2):
            channel.disconnect()
        if message == b"bad":
            raise ValueError("bad")
        say("h", message)

    channel.connect()
    channel.consume(handler)


def child(folder: Path, n: int, pipe: int) -> None:
    killer = Killer(n)
    log.os = Os(killer)  # type: ignore[assignment, attr-defined]  # it looks like the module
    log.open = killer.open  # type: ignore[attr-defined]  # hides the builtin

    def say(what: str, message: bytes) -> None:
        os.write(pipe, f"{what}{message.hex()}\n".encode())

    live(folder, say, MESSAGES)
    os._exit(0)


def check(folder: Path, n: int, said: list[str]) -> None:
    """What was promised is there; what was handled is not lost; order stays; at most one message comes twice."""
    promised = [bytes.fromhex(s[1:]) for s in said if s[0] == "p"]
    handled = [bytes.fromhex(s[1:]) for s in said if s[0] == "h"]
    topic = log.Topic(Threads(), log.Files(folder), SEGMENT)
    channel = log.Channel(topic, "c", max_attempts=2, pause=0)
    there = [d.message for d in log.Channel(topic, "reader").read(100)]
    assert there[: len(promised)] == promised, n
    assert there == MESSAGES[: len(there)], n
    assert len(there) <= len(promised) + 1, n
    again: list[bytes] = []
    work_off(channel, lambda _, message: again.append(message))
    good = [m for m in there if m != b"bad"]
    before = len(handled)
    assert handled == good[:before], n
    assert again in (good[before:], good[max(before - 1, 0) :]), (n, handled, again, good)
    assert [p.message for p in channel.parked()] == [b"bad"] * (b"bad" in there), n
    topic.publish(b"goes on")
    assert channel.read(100)[-1].message == b"goes on", n


def main(folder: Path) -> None:
    log.os = Os(Killer(1_000_000_000))  # type: ignore[assignment, attr-defined]  # for the parent, which is not to die
    n = 0
    while True:
        here = folder / str(n)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            child(here, n, write)
        os.close(write)
        with builtins.open(read) as pipe:
            said = pipe.read().split()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert code in (0, DEAD), f"the child failed at change {n}"
        check(here, n, said)
        if code == 0:
            print(n)
            return
        n += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
