"""`seriatim matrix`: the table and its pages, a journal that goes on, and bad input in one sentence."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seriatim_models.cli import matrix_pages
from seriatim_models.cli.stop_request import StopRequest
from seriatim_models.matrix.plan import plan_universe
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.totals import ProgramRow
from seriatim_models.matrix.work import PairData
from seriatim_models.properties import Verdict
from seriatim_models.report import Report
from seriatim_models.report.html import TourSections, html

WRONG = "unlink-acquired"
"""A mutant of the queue that some programs of the push queue see in universe `two` at depth 1."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own for journals."""
    monkeypatch.chdir(tmp_path)


def small(*more: str) -> tuple[str, ...]:
    return ("matrix", "fair", "--depth", "0", "--jobs", "1", *more)


def table(run: Any, *arguments: str) -> dict[str, Any]:
    """The only system of the JSON document."""
    ran = run(*arguments, "--json", "-")
    [system] = msgspec.json.decode(ran.out)["systems"]
    return dict(system)


# ---- pages


def test_one_page_has_every_cell_and_program(run: Any) -> None:
    assert run(*small("--html", "page.html")).code == 0
    text = Path("page.html").read_text()
    found = table(run, *small())
    for cell in found["cells"]:
        assert f'id="fair.{".".join(cell["calls"])}"' in text
    assert text.count("seriatim matrix fair --pair") >= found["programs"]
    assert text.count('class="stepper"') == len(found["cells"])
    assert len(re.findall(r'class="stepper" id="([^"]+)"', text)) == len(
        set(re.findall(r'class="stepper" id="([^"]+)"', text))
    )


def test_a_folder_has_a_page_for_each_cell_and_what_it_links(run: Any) -> None:
    assert run(*small("--html", "table")).code == 0
    found = table(run, *small())
    cells = sorted(Path("table/cells").iterdir())
    assert len(cells) == len(found["cells"])
    for page in (Path("table/index.html"), *cells):
        for link in re.findall(r'href="([^"#]+)', page.read_text()):
            assert (page.parent / link).is_file(), f"{page}: {link}"
    assert len(list(Path("table/steps").iterdir())) == len(found["cells"])
    rows = re.findall(
        r"<details>\s*<summary>(\d+) cells</summary>\s*<table", Path("table/index.html").read_text()
    )
    assert rows == [str(len(cells))], (
        "the list is folded: of all systems it is taller than a page should be"
    )


def test_universes_are_chosen_by_names_and_patterns(run: Any) -> None:
    def programs(*patterns: str) -> int:
        named = [word for pattern in patterns for word in ("--universe", pattern)]
        cells = table(run, "matrix", "push", "--depth", "0", "--jobs", "1", *named)["cells"]
        return sum(cell["programs"] for cell in cells)

    two, holding, inside = programs("two"), programs("holding"), programs("inside-*")
    assert min(two, holding, inside) > 0
    assert programs("two", "holding", "holdin*") == two + holding
    names = [u.name for u in SYSTEMS["push"].universes if u.name.startswith("inside-")]
    assert programs(*names) == inside
    assert programs("!inside-*") + inside == programs()


def test_every_wrong_program_up_to_some_can_be_stepped_through(run: Any) -> None:
    arguments = (
        "matrix",
        "push",
        "--depth",
        "1",
        "--universe",
        "two",
        "--jobs",
        "1",
        "--mutant",
        WRONG,
    )
    ran = run(*arguments, "--html", "table")
    assert ran.code == 1
    shown = 0
    for page in Path("table/cells").iterdir():
        text = page.read_text()
        wrong = text.count('<td><span class="verdict violated">')
        assert text.count("step through it") == max(1, min(wrong, matrix_pages.DRAWN))
        shown += wrong
        assert (f"--mutant {WRONG}" in text) == ("--pair" in text)
    assert shown == sum(len(c["problems"]) for c in table(run, *arguments)["cells"]) > 0
    steps = [p.read_text() for p in Path("table/steps").iterdir()]
    assert any("how it breaks" in text for text in steps)
    assert any("what was seen" in text for text in steps)


def test_a_program_has_its_page_whether_it_is_wrong_or_not(run: Any) -> None:
    key = "settle holding: ; subscribe B | close A"
    assert run("matrix", "push", "--pair", key, "--html", "ok.html").code == 0
    text = Path("ok.html").read_text()
    assert "what was seen" in text
    assert "T1" in text
    assert "T2" in text
    [mine] = re.findall(r"--replay (v?[\w.+/=-]+)", text)[:1]
    assert run("matrix", "push", "--pair", key, "--replay", mine).code in (0, 3)


def test_a_wrong_program_shows_its_first_bad_step_and_the_command_that_replays_it(run: Any) -> None:
    pair = ("serve failing: ; deliver p0 2 | stop", "--mutant", "published-handler-exception")
    ran = run("matrix", "fair", "--pair", *pair)
    assert ran.code == 1
    assert "up to here it could still end well" in ran.out
    command = shlex.split(ran.out.partition("replay: ")[2].partition("\n\n")[0])
    assert command[:4] == ["seriatim", "matrix", "fair", "--pair"]
    again = run(*command[1:])
    assert again.code == 1
    assert "That is the first bad step." in " ".join(again.out.split())


def test_an_example_is_an_interleaving(run: Any) -> None:
    program = PairData.read("settle holding: ; subscribe B | close A", SYSTEMS["push"])
    story = matrix_pages.example_story("push", program)
    lanes = [step.lane for step in story.steps]
    assert sum(a != b for a, b in itertools.pairwise(lanes)) > 3, "they take turns"
    assert (story.good, story.bad, story.what) == (0, 0, [])


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_examples(system: str) -> None:
    universe = SYSTEMS[system].universes[0].name
    program = plan_universe(universe, system, 0).programs[-1]
    story = matrix_pages.example_story(system, program)
    assert story.steps
    assert {"T1", "T2"} & set(story.threads)


def test_what_cannot_be_set_up_has_no_interleaving() -> None:
    program = PairData.read("settle holding: ; subscribe B | close A", SYSTEMS["push"])
    broken = msgspec.structs.replace(program, calls=(program.calls[0], program.calls[0]))
    assert matrix_pages.produced_story("push", ProgramRow(program)) is not None
    lost = msgspec.structs.replace(broken, universe="nowhere")
    assert matrix_pages.produced_story("push", ProgramRow(lost)) is None


# ---- in a report


def fair_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in SYSTEMS if name != "fair"]:
        monkeypatch.delitem(SYSTEMS, name)


def test_a_report_shows_a_slice_and_then_what_a_journal_has(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fair_only(monkeypatch)
    [small], extent = matrix_pages.overview(StopRequest())
    assert small.matrix.depth == 0
    assert extent.startswith("A slice, depth 0")
    assert run("matrix", "--depth", "1", "--jobs", "1").code == 0
    [whole], extent = matrix_pages.overview(StopRequest())
    assert whole.matrix.depth == 1
    assert extent == "Depth 1, from the journals that “make matrix DEPTH=1” left: fair."
    assert whole.matrix.verdict is Verdict.OK
    [journal] = Path("build/matrix").glob("fair-1-*")
    kept = journal.read_bytes()
    half = kept[: len(kept) // 2]  # its last line may be of a program that was tried twice
    for spoiled in (half, kept.replace(b"matrix-journal/1", b"matrix-journal/0")):
        journal.write_bytes(spoiled)
        [small], extent = matrix_pages.overview(StopRequest())
        assert small.matrix.depth == 0
        assert extent.startswith("A slice, depth 0")
        assert journal.read_bytes() == spoiled


def test_what_takes_minutes_is_left_out_of_a_slice_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fair_only(monkeypatch)
    monkeypatch.setattr(matrix_pages, "HEAVY", ("fair",))
    runs, extent = matrix_pages.overview(StopRequest())
    assert runs == []
    assert extent.startswith("Not here, because it takes minutes: fair.")


def test_the_pages_of_a_report_lie_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fair_only(monkeypatch)
    runs, extent = matrix_pages.overview(StopRequest())
    shown = matrix_pages.section(runs, extent, Path("report"), "matrix")
    report = Report(command="seriatim tour", started="now", matrix=[Verdict.OK])
    text = html(report, TourSections(matrix=shown))
    Path("report/index.html").write_text(text)
    links = [link for link in re.findall(r'href="([^"#]+)', text) if link.startswith("matrix/")]
    assert len(links) == len(runs[0].matrix.cells) + 1
    assert all((Path("report") / link).is_file() for link in links)
    assert "A slice, depth 0" in text


def test_a_wrong_matrix_makes_a_report_wrong() -> None:
    report = Report(command="", started="", matrix=[Verdict.OK, Verdict.VIOLATED])
    assert report.exit_code == 1
    report.matrix = [Verdict.OK, Verdict.INCONCLUSIVE]
    assert report.exit_code == 3
