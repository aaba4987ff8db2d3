"""`seriatim demo`: what it prints, draws and writes, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.programs import fair_simulation

QUICK = ["demo", "fair", "--total", "4000"]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate fewer messages where the turn is looked for."""
    monkeypatch.setattr(fair_simulation, "TOTAL", 60_000)


def test_demo_fair_shows_both_tables_and_the_turn(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "fair", "--total", "40000"]) == 0
    output = capsys.readouterr().out
    for part in ("100 us a message", "1 us a message", "36,250", "where proportional turns flat"):
        assert part in output
    assert "largest error" in output


def test_demo_fair_writes_json_to_standard_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    run([*QUICK, "--json", "-", "--jitter", "0.5", "--seed", "7"])
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "seriatim-demo-fair/1"
    assert (document["seed"], document["jitter"]) == (7, 0.5)
    assert [len(t["rows"]) for t in document["tables"]] == [10, 10]
    ratios = {t["push_over_service"]: t["p9_over_p0"] for t in document["turn"]}
    assert ratios[0.5] < 1.2 < 8 < ratios[2.0]


def test_demo_fair_draws(short: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "fair.svg"
    run([*QUICK, "--svg", str(file)])
    assert "<svg" in file.read_text(encoding="utf-8")


def test_demo_fair_that_does_not_come_out_is_exit_code_1(
    short: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fair_simulation, "QUANTA", (4,) * 10)
    monkeypatch.setattr(
        fair_simulation.simulate,
        "__kwdefaults__",
        {
            **(fair_simulation.simulate.__kwdefaults__ or {}),
            "quanta": (4,) * 10,
        },
    )
    assert run(["demo", "fair", "--total", "4000"]) == 1


@pytest.mark.parametrize("wrong", [["--total", "3"], ["--jitter", "2"], ["--seed", "x"]])
def test_rejects_what_cannot_be_simulated(wrong: list[str]) -> None:
    assert run(["demo", "fair", *wrong]) == 2


def test_rejects_a_picture_that_cannot_be_written(
    short: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*QUICK, "--svg", str(tmp_path / "no" / "fair.svg")]) == 2
    assert "cannot write" in capsys.readouterr().err
