"""The museum: every exhibit is a mutant that is convicted, and its page tells the whole story."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from seriatim_models.cli.bug_catalogue import convicted, museum
from seriatim_models.cli.report_builder import new_report
from seriatim_models.cli.tour import write_pages
from seriatim_models.programs import MUTANTS
from seriatim_models.programs import bug_catalogue as rooms


def test_each_exhibit_is_a_mutant_and_each_is_shown_once() -> None:
    shown = [e.mutant for e in rooms.EXHIBITS]
    assert set(shown) <= set(MUTANTS)
    assert len(set(shown)) == len(shown)


def test_each_bug_that_a_mutant_names_is_in_the_museum() -> None:
    named = {
        bug
        for m in MUTANTS.values()
        if m.reference == "queue"
        for bug in re.findall(r"QPID-\d+", m.origin)
        if "in effect" not in m.origin and "in kind" not in m.origin
    }
    told = " ".join([*(e.bug for e in rooms.EXHIBITS), *rooms.NOT_SHOWN])
    assert {bug for bug in named if bug not in told} == set()


def test_a_page_for_each_tells_what_happened_how_and_the_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = rooms.EXHIBITS[:2]
    monkeypatch.setattr(rooms, "EXHIBITS", few)
    result = CliRunner().invoke(museum, ["--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert next(iter(rooms.NOT_SHOWN)) in index
    for exhibit in few:
        page = (tmp_path / f"{exhibit.mutant}.html").read_text(encoding="utf-8")
        mutant = MUTANTS[exhibit.mutant]
        for part in (
            "What happened",
            "The interleaving",
            "the repair",
            mutant.killed_by,
            exhibit.bug,
        ):
            assert part in page
        assert f"{exhibit.mutant}.html" in index


def test_the_tour_has_a_page_for_an_exhibit_though_nobody_published_it(tmp_path: Path) -> None:
    exhibit = next(e for e in rooms.EXHIBITS if not e.mutant.startswith("published-"))
    report = new_report(None, None, "greenlet", "pyspark")
    report.mutants.append(convicted(exhibit.mutant))
    pages = write_pages(report, tmp_path)
    page = (tmp_path / pages[exhibit.mutant]).read_text(encoding="utf-8")
    for part in ("What happened", exhibit.bug, "The interleaving", "the repair"):
        assert part in page
