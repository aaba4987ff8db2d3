"""A file changes at any moment while a command reads it: a sentence, or a verdict about what was read; no crash."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from seriatim_models.cli import recordings, run
from seriatim_models.files import CHANGED
from seriatim_models.history import clean, lines, reading

EVENTS = 60
"""Enough for some lines before and behind every moment; each is a tick."""
MOMENTS = 8
"""Of all ticks so many are tried."""
FIRST = 5
"""And so many at the beginning, where a file is opened again and again."""
PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".jsonl": bytes,
    ".jsonl.gz": lambda raw: gzip.compress(raw, mtime=0),
    ".jsonl.zst": zstandard.compress,
}


def recorded(events: int, name: str = "r", late: bool = False) -> bytes:
    """A recording of messages that are all delivered twice: P2 is violated, whatever is cut off its end."""
    out: list[dict[str, Any]] = [{"schema": "qh/1", "run": name, "lvl": "broker", "clk": name}]
    for i in range(0, events, 3):
        message = {"q": "q", "m": f"m{i}", "t": i * 1000 + late}
        out += [{"i": i, "ev": "publish", **message}]
        out += [{"i": i + n, "ev": "deliver", "sub": "s", "dtag": i + n, **message} for n in (1, 2)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in out)


def _append(path: Path, suffix: str) -> None:
    """More events, as a recorder that goes on writes them; a packed file gets a frame more."""
    more = b"".join(recorded(2 * EVENTS).splitlines(keepends=True)[EVENTS + 1 :])
    with path.open("ab") as file:
        file.write(PACKED[suffix](more))


def _replace(path: Path, suffix: str) -> None:
    """Another recording of another run, renamed into its place."""
    beside = path.with_name(".beside")
    beside.write_bytes(PACKED[suffix](recorded(30, "other")))
    beside.replace(path)


def _folder(path: Path, _suffix: str) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path, _suffix: str) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES: dict[str, Callable[[Path, str], object]] = {
    "appended to": _append,
    "cut": lambda path, _suffix: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path, _suffix: os.truncate(path, 0),
    "replaced": _replace,
    "deleted": lambda path, _suffix: path.unlink(),
    "a folder": _folder,
    "a pipe": _pipe,
}
COMMANDS: dict[str, list[str]] = {
    "audit": ["audit", "IN/a.jsonl", "--json", "out.json"],
    "audit of a folder": ["audit", "IN", "--json", "out.json"],
    "audit with a page": ["audit", "IN/a.jsonl", "--json", "out.json", "--html", "out.html"],
    "audit, made smaller": ["audit", "IN/a.jsonl", "--shrink", "small.jsonl"],
    "lint": ["lint", "IN/a.jsonl", "--json", "out.json"],
    "show": ["show", "IN/a.jsonl"],
    "timeline": ["show", "IN/a.jsonl", "--timeline", "out.html"],
}


class Ticks:
    """Counts what reading does, and changes a file at one of these moments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.n = 0
        self.at = -1
        self.change: Callable[[], object] = lambda: None
        opened, block = lines.lines, clean._decoded
        begin = reading.Reader.__init__

        def counted(path: Path) -> Iterator[lines.Line]:
            for line in opened(path):
                self.tick()
                yield line
            self.tick()

        def blocks(*given: Any) -> Iterator[Any]:
            for events in block(*given):
                self.tick()
                yield events
            self.tick()

        def begun(reader: reading.Reader, *given: Any, **named: Any) -> None:
            self.tick()
            begin(reader, *given, **named)

        monkeypatch.setattr(reading, "lines", counted)
        monkeypatch.setattr(clean, "_decoded", blocks)
        monkeypatch.setattr(reading.Reader, "__init__", begun)

    def tick(self) -> None:
        if self.n == self.at:
            self.at = -1
            self.change()
        self.n += 1

    def run(self, command: list[str], at: int, change: Callable[[], object]) -> int:
        self.n, self.at, self.change = 0, at, change
        return run(command)


def said(capsys: pytest.CaptureFixture[str], code: int) -> tuple[int, str, str]:
    """An exit code with what was printed, without how long it took."""
    out, errors = capsys.readouterr()
    return code, re.sub(r"\d+(\.\d+)? s\b", "", out), errors


@pytest.mark.parametrize("most", [recordings.PICTURE_MAX, 1000])
def test_what_a_folder_holds_besides_costs_no_page(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page of a violation was a traceback where the folder had a file that is no recording."""
    monkeypatch.setattr(recordings, "PICTURE_MAX", most)
    (tmp_path / "a.jsonl").write_bytes(recorded(EVENTS))
    (tmp_path / "b.jsonl").write_bytes(recorded(3, "small"))
    (tmp_path / "bad.jsonl").write_text("no recording\n")
    os.mkfifo(tmp_path / "pipe.jsonl")
    page = tmp_path / "page" / "out.html"
    assert run(["audit", str(tmp_path), "--html", str(page)]) == 1, capsys.readouterr().err
    text = page.read_text()
    assert "bad.jsonl" in text


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("what", COMMANDS)
def test_what_is_said_of_a_file_that_changes_is_true(
    what: str,
    change: str,
    suffix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a command says of the file as it was or as it is, whole; or that it changed; or why it cannot be read."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "IN" / f"a{suffix}"
    path.parent.mkdir()
    whole = PACKED[suffix](recorded(EVENTS))
    path.write_bytes(whole)
    command = [
        word.replace("IN", str(path.parent)).replace("a.jsonl", path.name)
        for word in COMMANDS[what]
    ]
    ticks = Ticks(monkeypatch)
    true = [said(capsys, ticks.run(command, -1, lambda: None))[:2]]
    moments = sorted({*range(min(FIRST, ticks.n)), *range(0, ticks.n, max(1, ticks.n // MOMENTS))})
    CHANGES[change](path, suffix)
    true.append(said(capsys, run(command))[:2])
    assert true[0][0] != true[1][0] or true[0][1] != true[1][1]
    wrong = []
    for at in moments:
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        path.write_bytes(whole)
        code, out, errors = said(
            capsys, ticks.run(command, at, lambda: CHANGES[change](path, suffix))
        )
        assert ticks.at == -1
        sentence = errors.splitlines()[-1] if errors else ""
        left_out = re.search(rf" 0 events\)\n1 line left out.*\n.*{re.escape(path.name)}: ", out)
        spoken = CHANGED in out or (
            code == 2 and "Traceback" not in errors and path.name in sentence
        )
        spoken |= what == "audit of a folder" and code == 3 and left_out is not None
        if code == 70 or not (spoken or (code, out) in true):
            wrong.append((at, code, out[-300:], errors[-600:]))
    assert wrong == []
