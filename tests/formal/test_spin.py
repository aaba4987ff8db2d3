"""What is said when a run is not as pinned: a wrong verdict counts always, a number with the version it belongs to."""

import os
import shutil
from dataclasses import replace

import pytest

from seriatim_workshop.formal import manifest, spin, tools

PINNED = manifest.read()
RUN = PINNED.runs[0]


def outcome(*, wrong: bool = False, differs: str = "") -> spin.SpinOutcome:
    return spin.SpinOutcome(RUN, replace(RUN), "fails" if wrong else "holds", wrong, differs, "")


def test_a_number_that_differs_fails_with_the_version_that_it_was_pinned_with() -> None:
    said, failed = spin.conclusion(
        [outcome(differs="states 3, pinned 4")], PINNED.spin, PINNED.spin
    )
    assert failed == 1
    assert "states 3, pinned 4" in said


def test_a_number_that_differs_with_another_version_is_explained() -> None:
    said, failed = spin.conclusion(
        [outcome(differs="states 3, pinned 4")], "Spin Version 7", PINNED.spin
    )
    assert failed == 0
    assert PINNED.spin in said
    assert "this is Spin Version 7" in said


def test_a_wrong_verdict_fails_with_any_version() -> None:
    for version in (PINNED.spin, "Spin Version 7"):
        said, failed = spin.conclusion([outcome(wrong=True)], version, PINNED.spin)
        assert failed == 1
        assert "and must not" in said


def test_rejects_to_run_without_spin_and_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert spin.main([]) == 2
    assert (
        "spin and gcc not found: install with `apt-get install spin gcc" in capsys.readouterr().err
    )
    with pytest.raises(tools.Missing):
        tools.ensure()
