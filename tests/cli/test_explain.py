"""`seriatim explain`: every name that a command prints is explained, in 80 columns."""

from __future__ import annotations

import re

import pytest

from seriatim_models.cli import run
from seriatim_models.cli.explain import WORDS
from seriatim_models.cli.lesson_runner import CHECKOUT
from seriatim_models.cli.report_builder import property_catalogue
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.bug_catalogue import BUG_CASES

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


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("F-1", ("F-1, a finding", "breaks: IM-1, IM-2", "repair: one compare-and-set")),
        ("F-3", ("what happens: The consumer stands", "repair: as F-2.")),
        ("QPID-2901", ("a bug", "see it: seriatim show delivers-to-the-closed")),
        ("lesson-7", ("a lesson", "title: At once, or not at all", "read it: seriatim learn 7")),
        ("07-at-once-or-not-at-all", ("read it: seriatim learn 7",)),
    ],
)
def test_what_pages_name_is_explained(
    name: str, facts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", name]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert [fact for fact in facts if fact not in shown] == []


def test_every_finding_and_case_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    findings = (CHECKOUT.parent / "FINDINGS.md").read_text(encoding="utf-8")
    names = re.findall(r"^### (F-\d+)", findings, re.MULTILINE)
    assert len(names) > 30
    for name in [*names, *(n for case in BUG_CASES for n in case.bug.split(", "))]:
        assert run(["explain", name]) == 0, name


@pytest.mark.parametrize(
    ("name", "near"),
    [("IM-9", "IM-"), ("rabit-quorum", "rabbit-quorum"), ("F-999", "F-"), ("leson-7", "lesson-7")],
)
def test_rejects_an_unknown_name_with_the_nearest(
    name: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", name]) == 2
    assert f"did you mean '{near}" in capsys.readouterr().err


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
