"""What a reader sees first, and in how many columns."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.history import Header, write_history
from seriatim_workshop.bench.simulated_broker import SimulatedBroker

COMMANDS = (
    "audit {late} --profile strict-qpid",
    "audit {late} -v",
    "check release-behind two-takers",
    "check release-behind -v",
    "check --mutant published-immediate",
    "show published-look-then-rest -v",
    'conform --exec "python3 spec/conform/faulty.py requeues-to-the-tail" --seconds 1 --seed 1 --out {out}',
    'conform --exec "python3 spec/conform/example.py" --scripts 3 --seed 1 --out {out} -v',
)


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a broker that requeues to the tail, which strict-qpid forbids and rabbit-quorum does not."""
    path = tmp_path_factory.mktemp("late") / "late.jsonl"
    write_history(path, SimulatedBroker(1, 200, fault="tail").run(), Header(run="late", lvl="api"))
    return path


def longest(text: str) -> str:
    """The longest line but for commands to copy and interleavings, which are not folded."""
    kept = [line for line in text.splitlines() if "again: " not in line and "replay: " not in line]
    return max(kept, key=len)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_is_as_wide_as_it_says(
    late: Path,
    tmp_path: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run(shlex.split(command.format(late=late, out=tmp_path)))
    shown = capsys.readouterr().out
    assert shown
    assert not [line for line in shown.splitlines() if line != line.rstrip()]
    assert len(longest(shown)) <= 80, longest(shown)


def test_what_is_violated_comes_first(
    late: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run(["audit", str(late), "--profile", "strict-qpid"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Audit of ")
    assert lines[lines.index("") + 1].startswith("P6 violated 28 times in late: ")
    assert any(line.startswith("late: 1 violated, 9 ok, ") for line in lines)
    assert not [line for line in lines if "no case" in line]
    assert lines[-1].startswith("violated: 933 recorded events")


def test_every_sentence_is_said_once(late: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", str(late), str(late.parent), "-v"]) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("A message has at most one holder at a time.") == 1
