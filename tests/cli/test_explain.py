"""`seriatim explain`: every name that a command prints is explained, in 80 columns."""

from __future__ import annotations

import pytest

from seriatim_models.cli import run
from seriatim_models.cli.explain import WORDS
from seriatim_models.cli.report_builder import property_catalogue
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.programs import MUTANTS, PROGRAMS

NAMES = [*property_catalogue(), *PROFILES, *list(PROGRAMS)[::12], *list(MUTANTS)[::12], *WORDS]


def test_every_kind_of_name_is_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in NAMES:
        assert run(["explain", name]) == 0, name
        shown = capsys.readouterr().out.splitlines()
        assert len(shown) > 1, name
        assert max(map(len, shown)) <= 80, name


def test_a_property_leads_to_what_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "im-1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for fact in (
        "IM-1, a property",
        "programs: immediate,",
        "published-immediate",
        "F-1",
        "seriatim learn 7",
        "see it: seriatim show published-immediate",
    ):
        assert fact in shown


def test_a_mutant_shows_its_edit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "published-immediate"]) == 0
    shown = capsys.readouterr().out
    assert "+ " in shown
    assert "- " in shown
    assert "origin: article 'Strict Ordering'" in shown


def test_a_name_that_is_none_is_refused_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["explain", "published-imediate"]) == 2
    assert "did you mean 'published-immediate'?" in capsys.readouterr().err
