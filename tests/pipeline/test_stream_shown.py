"""What `seriatim stream` shows while it runs, and that it stops when it is asked to."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from seriatim_models.cli import stream_ui
from seriatim_models.cli.stream_ui import LineView, PanelView
from seriatim_models.history import write_history
from seriatim_models.history.header import Header

from .conftest import first_events

pytest.importorskip("pyspark")

from seriatim_models.pipeline.stream.streaming import StreamProgress  # imports PySpark

EVENTS = 1000  # few: what is shown does not depend on how many there are

pytestmark = pytest.mark.timeout(300)  # two of these start the command, and so Spark

PROGRESS = StreamProgress(
    batch=7,
    files=12,
    events=34567,
    rejected=0,
    refused=0,
    changed=0,
    late=0,
    waiting=0,
    violated=[],
    violations=0,
    backlog={},
    new=3000,
    seconds=1.5,
    lag=2.25,
)
WRONG = msgspec.structs.replace(
    PROGRESS,
    rejected=5,
    changed=1,
    waiting=2,
    violated=["a P1", "a P4", "b P1", "c P8"],
    violations=1234,
    backlog={("a", f"q{n}"): n for n in range(1, 6)} | {("b", ""): 9},
)


def drawn(board: PanelView) -> list[str]:
    """The panel's lines as text, without frame."""
    console = Console(file=io.StringIO(), width=100)
    console.print(board.panel())
    file = console.file
    assert isinstance(file, io.StringIO)
    return [line.strip("│╭╰─╮╯ ") for line in file.getvalue().splitlines()]


def test_the_panel_says_what_there_is_to_know() -> None:
    now = [100.0]
    board = PanelView(Console(file=io.StringIO()), "in → out", lambda: now[0])
    now[0] = 104.0
    assert "waiting  for the first file, 4 s so far" in drawn(board)
    board.step(3)
    now[0] = 106.0
    assert "under way  3 files, 2 s so far" in drawn(board)
    now[0] = 104.0
    board.update(PROGRESS)
    now[0] = 111.0
    assert drawn(board)[1:-1] == [
        "events       34,567 in 12 files",
        "events/s     2,000",
        "lag          2.2 s",
        "open queues  none: all that was published was delivered",
        "violations   none so far",
        "last batch   7, 3,000 events in 1.5 s, 7 s ago",
    ]
    board.step(1)
    now[0] = 171.0
    assert "under way    1 file, 60 s so far" in drawn(board)
    board.update(msgspec.structs.replace(PROGRESS, failed=1))
    board.update(msgspec.structs.replace(WRONG, failed=2))
    said = drawn(board)
    assert "workers      3 tasks made again whose worker was lost" in said
    assert "violations   1,234 so far: a P1, a P4, b P1, 1 more" in said
    assert "open queues  6 with 24 messages not delivered: unnamed 9, q5 5, q4 4, 3 more" in said
    assert "left out     5 rejected, 1 files changed after they were read, 2 waiting" in said
    assert "Ctrl-C" in said[-1]
    board.stopping()
    assert stream_ui.STOPPING in drawn(board)[-1]


def test_off_a_terminal_a_line_says_it() -> None:
    file = io.StringIO()
    lines = LineView(Console(file=file, width=40))
    lines.update(PROGRESS)
    lines.update(msgspec.structs.replace(WRONG, failed=1))
    lines.stopping()
    assert file.getvalue().splitlines() == [
        "batch 7: 12 files, 34,567 events (1.5 s)",
        "batch 7: 1 task made again whose worker was lost",
        "batch 7: 12 files, 34,567 events, 5 rejected, 1 files changed after they were read, 2 waiting, "
        "violated: a P1, a P4, b P1, 1 more (1.5 s)",
        stream_ui.STOPPING,
    ]


@pytest.mark.parametrize("quiet", [False, True])
def test_the_panel_is_for_terminals(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes any file for a terminal
    assert isinstance(stream_ui.view(quiet, "in", "out"), LineView if quiet else PanelView)
    monkeypatch.delenv("FORCE_COLOR")
    assert isinstance(stream_ui.view(False, "in", "out"), LineView)


def begin(tmp_path: Path, *more: str, **how: Any) -> subprocess.Popen[bytes]:
    """The command in a process group of its own, on a folder with one recording."""
    (tmp_path / "in").mkdir()
    events = first_events("rabbit-classic-lockstep", EVENTS)
    write_history(tmp_path / "in" / "a.jsonl.zst", events, Header(run="a"))
    command = [sys.executable, "-m", "seriatim_models.cli.submit", "stream"]
    command += [str(tmp_path / "in"), "--out", str(tmp_path / "out"), *more]
    return subprocess.Popen(command, start_new_session=True, **how)


@pytest.mark.slow  # a JVM of its own
@pytest.mark.spark
def test_sigterm_lets_the_batch_end_and_shows_the_verdicts(tmp_path: Path) -> None:
    process = begin(tmp_path, "--json", "-", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = b""
    until = time.monotonic() + 100
    while b"batch 0:" not in said:
        line = process.stderr.readline()
        assert line, said.decode()
        assert time.monotonic() < until, said.decode()
        said += line
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    assert "Traceback" not in err.decode()
    assert stream_ui.STOPPING in err.decode()
    document = msgspec.json.decode(out)
    assert document["verdict"] == "ok"
    assert document["audits"][0]["events"] == EVENTS


@pytest.mark.slow  # a JVM of its own
@pytest.mark.spark
def test_ctrl_c_on_a_terminal_ends_the_panel_and_shows_the_verdicts(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = begin(tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = bytearray()

    def read() -> None:
        while True:
            try:
                said.extend(os.read(ours, 65536))
            except OSError:  # the other end is closed
                return

    reader = threading.Thread(target=read)
    reader.start()

    def wait(text: str) -> None:
        until = time.monotonic() + 100
        while text not in plain(bytes(said)):
            assert time.monotonic() < until, plain(bytes(said))
            assert process.poll() is None, plain(bytes(said))
            time.sleep(0.1)

    wait("for the first file")
    wait("last batch   0")
    assert "violations   none so far" in plain(bytes(said))
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 0, plain(bytes(said))
    reader.join(10)
    os.close(ours)
    end = plain(bytes(said))
    assert "Traceback" not in end
    assert re.search(rf"ok: {EVENTS:,} recorded events", end.splitlines()[-1]), end


def plain(said: bytes) -> str:
    """Without the terminal's codes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode(errors="replace"))
