"""The bug catalogue: every case is a mutant whose property is violated, and its page shows what happened."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from seriatim_models.cli.bug_catalogue import bugs, counterexample_run
from seriatim_models.cli.report_builder import new_report
from seriatim_models.cli.tour import bugs_with_pages, write_pages
from seriatim_models.programs import MUTANTS
from seriatim_models.programs import bug_catalogue as catalogue


def test_each_case_is_a_mutant_and_each_is_shown_once() -> None:
    shown = [e.mutant for e in catalogue.BUG_CASES]
    assert set(shown) <= set(MUTANTS)
    assert len(set(shown)) == len(shown)


def test_each_bug_that_a_mutant_names_is_in_the_catalogue() -> None:
    named = {
        bug
        for m in MUTANTS.values()
        if m.reference == "queue"
        for bug in re.findall(r"QPID-\d+", m.origin)
        if "in effect" not in m.origin and "in kind" not in m.origin
    }
    covered = " ".join([*(e.bug for e in catalogue.BUG_CASES), *catalogue.NOT_SHOWN])
    assert {bug for bug in named if bug not in covered} == set()


def test_a_page_for_each_tells_what_happened_how_and_the_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = catalogue.BUG_CASES[:2]
    monkeypatch.setattr(catalogue, "BUG_CASES", few)
    result = CliRunner().invoke(bugs, ["--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert next(iter(catalogue.NOT_SHOWN)) in index
    for case in few:
        page = (tmp_path / f"{case.mutant}.html").read_text(encoding="utf-8")
        mutant = MUTANTS[case.mutant]
        for part in (
            "What happened",
            "The interleaving",
            "the repair",
            mutant.killed_by,
            case.bug,
        ):
            assert part in page
        assert f"{case.mutant}.html" in index


def test_the_tour_has_a_page_for_a_case_that_nobody_published(tmp_path: Path) -> None:
    case = next(e for e in catalogue.BUG_CASES if not e.mutant.startswith("published-"))
    report = new_report("greenlet", "pyspark")
    report.mutants.append(counterexample_run(case.mutant))
    pages = write_pages(report, tmp_path)
    assert bugs_with_pages(report, pages) == [(case, report.mutants[0])]
    assert bugs_with_pages(report, {}) == []
    page = (tmp_path / pages[case.mutant]).read_text(encoding="utf-8")
    for part in ("What happened", case.bug, "The interleaving", "the repair"):
        assert part in page
