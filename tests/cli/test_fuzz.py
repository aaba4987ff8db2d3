"""A short slice of `make fuzz`, and the corpus of what once failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_workshop import fuzz


def test_mutated_recordings_end_as_declared(tmp_path: Path) -> None:
    assert fuzz.fuzz(600.0, seed=20, corpus=tmp_path, most=25) == []
    assert [why for p in sorted(fuzz.CORPUS.glob("*.jsonl*")) if (why := fuzz.ended(p))] == []


def test_a_case_is_made_again_by_its_number() -> None:
    valid = fuzz.recordings()
    made = [fuzz.case(n, valid) for n in range(30)]
    assert made == [fuzz.case(n, valid) for n in range(30)]
    assert len(set(made)) == 30


def test_what_fails_is_reported_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "run", lambda _: 70)
    (fault,) = fuzz.fuzz(600.0, seed=1, corpus=tmp_path, most=1)
    (kept,) = tmp_path.iterdir()
    assert fault.startswith(f"{kept}: audit: exit code 70")
    assert len(fuzz.fuzz(600.0, seed=1, corpus=tmp_path, most=0)) == 1, "the corpus is tried first"
