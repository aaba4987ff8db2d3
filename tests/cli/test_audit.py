"""`seriatim audit`: which verdicts decide the exit code, and what is reported of lines left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.cli import console, run
from seriatim_models.pipeline.audit import local


@pytest.fixture
def recording(tmp_path: Path) -> str:
    file = tmp_path / "h.jsonl"
    file.write_text("{}\n")
    return str(file)


def test_a_history_that_is_right_leaves_with_0(world: Any, run: Any, recording: str) -> None:
    ran = run("audit", recording, "--engine", "spark", "-v")
    assert ran.code == 0
    assert "What ES-5 says." in ran.out
    assert world.asked[0]["engine"] == "spark"


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ({"ES-5": "ok", "SO-1": "violated"}, 1),
        ({"ES-5": "ok", "SO-1": "inconclusive"}, 0),
        ({"ES-5": "inconclusive", "SO-1": "inconclusive"}, 3),
        ({}, 3),
    ],
)
def test_nothing_to_test_decides_only_when_nothing_was_tested(
    world: Any, run: Any, recording: str, verdicts: dict[str, str], code: int
) -> None:
    world.audit = verdicts
    assert run("audit", recording).code == code


def test_lines_left_out_are_counted_and_some_shown(world: Any, run: Any, recording: str) -> None:
    world.quarantine = 1000
    ran = run("audit", recording, "--json", "-")
    found = json.loads(ran.out)
    assert found["quarantined"] == 1000
    assert len(found["audits"][0]["quarantine"]) == 20
    assert found["audits"][0]["events"] == 1234
    assert "h.jsonl:1: no JSON" in ran.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["audit"], "Missing argument"),
        (["audit", "nowhere.jsonl"], "nowhere.jsonl: cannot be read: no such file or folder"),
        (["audit", ".", "--profile", "ani"], "there is no profile 'ani'; did you mean 'any'?"),
        (["audit", ".", "--out", "there"], "--out keeps what Spark prepared"),
        (["audit", ".", "--engine", "spark", "--jobs", "2"], "--jobs is for --engine local"),
        (["audit", ".", "--engine", "hadoop"], "'hadoop' is not one of"),
    ],
)
def test_rejects_what_cannot_be_meant(
    world: Any, run: Any, arguments: list[str], sentence: str
) -> None:
    assert sentence in run(*arguments).complaint


def test_progress_is_shown_within_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one large file nothing was shown from the start to the end, whichever way it is read."""
    monkeypatch.setattr(console, "LINE_EVERY", 0.0)
    monkeypatch.setattr(local, "BATCH", 1000)
    clean, not_clean = tmp_path / "clean.jsonl", tmp_path / "not-clean.jsonl"
    line = '{"i":%d,"ev":"publish","m":"m%d","q":"q"}\n'
    text = "".join(line % (n, n) for n in range(60_000))
    clean.write_text(text)
    not_clean.write_text(text + "no event\n")
    for path, last in ((clean, "60,000 events"), (not_clean, "60,000 events")):
        assert run(["audit", str(path)]) == 3
        shown = [
            s
            for s in capsys.readouterr().err.splitlines()
            if s.startswith("[0/1] audit on local: ")
        ]
        assert len(shown) > 1, path
        assert last in shown[-1]
