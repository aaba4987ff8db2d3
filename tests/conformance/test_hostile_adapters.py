"""Every way of `hostile.py` under each command that drives a program: a sentence, its code, in time, nobody left."""

from __future__ import annotations

import re
import shlex
import sys
import time
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.conformance.child import ChildProcess
from seriatim_models.history import read_history
from seriatim_models.supervisor import SUPERVISED

from .hostile import HOSTILE

PROGRAM = Path(__file__).with_name("hostile.py")
IN_TIME = 60.0
"""Seconds: what the bounds of a command add up to, several times. Without a bound it is more."""
LONGEST = 8_000
"""Characters that a command prints of what it is sent, at the most."""
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
REFUSED = {"a-name-of-60-kb", "declares-without-end", "declares-nonsense", "declares-no-numbers"}
"""These say in the handshake what cannot be: exit code 2."""
FOR_CLIENTS = {
    "says-nothing", "always-slow", "deliveries-without-end", "forks-and-detaches", "declares-all", "declares-anew",
    "does-nothing", "a-tag-beyond-all", "marked-names", "a-marked-name", "one-name-twice", "ends-well",
}  # fmt: skip
"""Those for which workloads that are made smaller may be another matter than a recording."""
COMMANDS: dict[str, list[str]] = {
    "conform": ["conform", "--seconds", "2", "--seed", "1", "--out", "kept"],
    "clients": ["conform", "--clients", "2", "--seconds", "2", "--seed", "1", "--out", "kept"],
    "record": ["record", "--clients", "2", "--seconds", "1", "--out", "run.jsonl"],
}  # fmt: skip


def living(*arguments: str) -> list[int]:
    """The processes whose command has the program and these arguments, whatever they did to their environment."""
    wanted = [word.encode() for word in (str(PROGRAM), *arguments)]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(words[n : n + len(wanted)] == wanted for n in range(len(words))):
            found.append(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(not SUPERVISED, reason="there is no subreaper here")
@pytest.mark.parametrize(
    ("name", "what"),
    [(n, w) for n in HOSTILE for w in COMMANDS if w != "clients" or n in FOR_CLIENTS],
)
def test_a_hostile_program_is_a_sentence_in_time(
    name: str,
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    mark = str(tmp_path / "begun")  # another test may run the same program
    command = shlex.join([sys.executable, str(PROGRAM), name, mark])
    begun = time.monotonic()
    code = run([*COMMANDS[what], "--exec", command, "--patience", "2"])
    took = time.monotonic() - begun
    said = "".join(capfd.readouterr())
    assert "Traceback" not in said
    assert not OBEYED.search(said), said
    assert len(said) < LONGEST, said
    assert living(name, mark) == []
    assert took < IN_TIME, said
    assert code in ((2,) if name in REFUSED else (0, 1, 3)), said
    if what == "record" and code != 2:
        history = read_history(tmp_path / "run.jsonl")
        assert history.events
        assert not history.quarantine


@pytest.mark.parametrize("name", ["a-marked-name", "marked-names", "marked-errors"])
def test_a_terminal_obeys_no_hostile_program(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    command = shlex.join([sys.executable, str(PROGRAM), name])
    assert run(["conform", "--exec", command, "--scripts", "2", "--seed", "1"]) in (0, 1, 3)
    said = "".join(capfd.readouterr())
    assert "Traceback" not in said
    assert not [word for word in ("\x1b]0;", "\x1b[2J", "\u202e", "\x9b") if word in said]


def test_what_fills_memory_is_killed_before_who_drives_it(tmp_path: Path) -> None:
    command = shlex.join([sys.executable, str(PROGRAM), "says-nothing"])
    child = ChildProcess(command)
    try:
        scores = [Path(f"/proc/{pid}/oom_score_adj") for pid in living("says-nothing")]
        assert "1000" in [score.read_text().strip() for score in scores]
    finally:
        child.end()
