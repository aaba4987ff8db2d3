"""The report: what verdicts mean together, and that all forms agree."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import msgspec
import pytest
from rich.console import Console

from seriatim_models.cli.report_builder import mutant_run
from seriatim_models.files import decoded
from seriatim_models.history import Event
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.bug_catalogue import BUG_CASES, NOT_SHOWN
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report import MutantRun, Report, figures, worst
from seriatim_models.report.audit_text import violation
from seriatim_models.report.document import SCHEMA, SavedVerdicts, document, encode
from seriatim_models.report.html import LessonLink, TourSections, html, mutant_page, pages
from seriatim_models.report.templating import prose
from seriatim_models.report.text import properties_line, write

OK, VIOLATED, INCONCLUSIVE = Verdict.OK, Verdict.VIOLATED, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ([], INCONCLUSIVE),
        ([OK], OK),
        ([OK, INCONCLUSIVE], INCONCLUSIVE),
        ([INCONCLUSIVE, VIOLATED, OK], VIOLATED),
    ],
)
def test_the_worst_verdict_is_that_of_the_whole(verdicts: list[Verdict], whole: Verdict) -> None:
    assert worst(verdicts) is whole


def test_a_report_of_nothing_is_inconclusive() -> None:
    assert Report(command="", started="").exit_code == 3


def test_a_mutant_that_was_killed_as_expected_is_no_violation(report: Report) -> None:
    assert report.verdict is OK


def test_a_mutant_killed_by_another_property_is_a_violation(
    report: Report, race: MutantRun
) -> None:
    report.mutants = [msgspec.structs.replace(race, expected="SO-1")]
    assert report.exit_code == 1


def test_rows_hold_each_property_once_in_reading_order(report: Report) -> None:
    rows = report.rows()
    assert [row.id for row in rows] == ["IM-1", "SO-1", "SO-3", "SO-10", "WK-1"]
    assert [row.verdict for row in rows] == [OK, OK, OK, OK, INCONCLUSIVE]
    assert rows[2].where == ["recordings"]


def test_a_violation_anywhere_stands_in_the_row(report: Report) -> None:
    report.audits[0].findings.append(Finding(property="SO-1", verdict=VIOLATED, n_tested=1))
    assert {row.id: row.verdict for row in report.rows()}["SO-1"] is VIOLATED


def test_json_can_be_read_back(report: Report) -> None:
    saved = decoded(encode(report), SavedVerdicts, "saved")
    assert saved.schema == SCHEMA
    assert [(r.property, r.verdict) for r in saved.results] == [
        ("SO-1", OK),
        ("IM-1", OK),
        ("SO-10", OK),
        ("IM-1", VIOLATED),
        ("SO-3", OK),
        ("WK-1", INCONCLUSIVE),
    ]


def test_json_counts_what_was_left_out(report: Report) -> None:
    found = document(report)
    assert found["quarantined"] == 2
    assert found["traces"] == 12 + 1234 + 98765


def text_of(report: Report, width: int) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False)
    write(console, report, verbose=True)
    console.print(properties_line(report))
    return out.getvalue()


def test_text_has_the_facts(report: Report) -> None:
    text = text_of(report, 140)
    for fact in (
        "98,765",
        "every schedule",
        "published-immediate",
        "4,519",
        "h.jsonl:7",
        "1 of 1 mutant",
    ):
        assert fact in text


def test_an_interleaving_is_never_cropped(report: Report, race: MutantRun) -> None:
    report.programs = [race.run]
    assert "cas   entry.state AVAILABLE -> ACQUIRED  ok" in text_of(report, 40)


class Page(HTMLParser):
    """What the tests need to know of a page."""

    VOID = frozenset({"meta", "link", "br", "img", "hr", "input"})

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if "id" in found and "svg" not in self.open:
            self.ids.append(found["id"] or "")
        if tag == "a":
            self.targets.append(found.get("href") or "")
        self.loads += [v for k, v in attrs if k in {"src", "srcset"} and v]
        self.loads += [v for k, v in attrs if k == "href" and tag == "link" and v]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def page(report: Report, race: MutantRun) -> str:
    return html(report, TourSections(race, report.programs[1]))


def test_the_page_is_well_formed_and_its_links_lead_somewhere(page: str) -> None:
    read = Page(page)
    assert read.open == []
    assert {target.removeprefix("#") for target in read.targets} <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))


def test_the_page_loads_nothing(page: str) -> None:
    assert Page(page).loads == []
    assert "<script" not in page
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_the_page_has_the_facts_and_how_to_repeat_them(page: str) -> None:
    text = Page(page).text
    for fact in (
        "98,765",
        "What SO-10 says & means.",
        "The state is checked, then written: <two> steps.",
        "if entry.available:",
        "if entry.acquire():",
        "seriatim show s1-abcdef",
        "seriatim check immediate-async --mutant published-immediate",
        "seriatim audit tests/data --engine spark",
        "4,519",
        "h.jsonl:7",
    ):
        assert fact in text


SHARES = [figures.Fairness("1 us", (4, 8), (1000, 2100), (990, 1980))]


def test_a_picture_takes_its_colours_from_the_page_and_is_the_same_every_time() -> None:
    picture = figures.fairness(SHARES)
    assert "var(--ink)" in picture
    assert "var(--series-1)" in picture
    assert not set(re.findall(r"#[0-9a-f]{6}\b", picture)) & set(figures.PAGE_COLOURS)
    assert picture == figures.fairness(SHARES)


def test_the_page_does_without_pictures(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "available", lambda: False)
    page = html(report, TourSections(fairness=SHARES))
    assert "<svg" not in page
    assert "2,100" in page


def test_the_page_of_a_tour_has_what_is_beside_the_verdicts(
    report: Report, race: MutantRun
) -> None:
    page = html(
        report,
        TourSections(
            race,
            report.programs[1],
            {"published-immediate": "mutants/published-immediate.html"},
            "# What was found\n\n## Article\n\n### F-1 A race\n\n<b>told</b>\n\n| a |\n|---|\n| b |\n",
            [LessonLink("Two threads", "Who gets it?", "lessons/1.html")],
            SHARES,
        ),
    )
    read = Page(page)
    assert read.open == []
    assert {"mutants/published-immediate.html", "lessons/1.html"} <= set(read.targets)
    for fact in ("F-1 A race", "Who gets it?", "2,100", "1,980", "1 of 1 did"):
        assert fact in read.text
    assert "<h4>F-1 A race</h4>" in page
    assert "&lt;b&gt;told" in page  # no markup comes from a text
    assert len(re.findall(r"<svg.*?</svg>", page, re.DOTALL)) == 1


def test_a_report_in_pages_says_what_the_one_page_says(report: Report, race: MutantRun) -> None:
    more = TourSections(
        race,
        report.programs[1],
        {"published-immediate": "mutants/published-immediate.html"},
        "# What was found\n\n## Article\n\n### F-1 A race\n\ntold\n",
        [LessonLink("Two threads", "Who gets it?", "lessons/1.html")],
        SHARES,
        bugs=[(case, race) for case in BUG_CASES if case.mutant == race.mutant],
    )
    made = pages(report, more)
    parts = ["programs", "mutants", "bugs", "recordings", "properties", "fairness", "findings"]
    parts.append("lessons")
    assert list(made) == ["index.html", *(f"{part}.html" for part in parts)]
    whole = Page(html(report, more)).text
    read = {name: Page(page) for name, page in made.items()}
    assert all(page.open == [] for page in read.values())
    for heading in re.findall(r"<h2>(.+?)</h2>", html(report, more)):
        assert sum(f"<h2>{heading}</h2>" in page for page in made.values()) == 1
    for part in parts:  # each of them is reached from each, and says whose it is
        assert all(f'href="{part}.html"' in page for n, page in made.items() if n != f"{part}.html")
        assert made[f"{part}.html"].count('aria-current="page"') == 1
    within = {
        f"{name}#{id}" for name, page in made.items() for id in re.findall(r' id="([^"]+)"', page)
    }
    for name, page in made.items():
        for link in re.findall(r'href="([\w.-]*#[^"]+)"', page):
            target = link if not link.startswith("#") else f"{name}{link}"
            assert target in within, f"{name} links to {link}"
    for words in ("F-1 A race", "Who gets it?", "2,100"):
        assert words in whole
        assert sum(words in page.text for page in read.values()) == 1


def test_a_mutant_has_a_page(race: MutantRun) -> None:
    page = mutant_page(race, "What IM-1 says.", "../index.html#mutants", "Mutants")
    read = Page(page)
    assert read.open == []
    for fact in (
        "published-immediate",
        "What IM-1 says.",
        "if entry.available:",
        "if entry.acquire():",
    ):
        assert fact in read.text


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_two_sides_of_an_edit_differ_and_neither_is_empty(mutant: str, race: MutantRun) -> None:
    for shown in mutant_run(MUTANTS[mutant], race.run).edits:
        assert shown.reference.strip()
        assert shown.mutant.strip()
        assert shown.reference != shown.mutant


def test_a_bug_links_to_the_tracker_that_names_it() -> None:
    jira = '<a href="https://issues.apache.org/jira/browse/{0}">{0}</a>'
    for bug in (*(case.bug for case in BUG_CASES), *NOT_SHOWN):
        known = re.findall(r"QPID-\d+", bug)
        assert all(jira.format(id) in prose(bug) for id in known)
        assert prose(bug).count("<a ") == len(known)
    github = "https://github.com/rabbitmq/rabbitmq-java-client/issues/"
    origins = "".join(prose(mutant.origin) for mutant in MUTANTS.values())
    linked = set(re.findall(rf'"{github}(\d+)">\1</a>', origins))
    assert linked == {n for m in MUTANTS.values() for n in _java_client_issues(m.origin)} != set()


def _java_client_issues(origin: str) -> list[str]:
    return re.findall(r"\d+", origin.partition("(issue")[2]) if "java-client" in origin else []


def test_prose_on_a_page_has_code_and_no_markup_of_its_own() -> None:
    assert prose("see `a<b` & <b>") == "see <code>a&lt;b</code> &amp; &lt;b&gt;"


def test_a_witness_of_which_nothing_is_an_interval_is_shown_without_bars() -> None:
    """A declaration twice, say: nobody holds a message in it."""
    witness = [Event(i=0, ev="declare", q="q"), Event(i=1, ev="declare", q="q")]
    finding = Finding(
        property="P0", verdict=Verdict.VIOLATED, n_tested=1, n_violations=1, witness=witness
    )
    said = io.StringIO()
    Console(file=said, width=80).print(*violation([finding], {}))
    assert "P0 violated" in said.getvalue()


def test_a_page_shows_what_had_no_case_apart_and_folded(report: Report) -> None:
    page = html(report)
    for recording in page.split("<h3>")[1:]:
        rows, _, folded = recording.partition("<details><summary>")
        assert not re.search(
            r'data-name="tested">0</td>\s*<td class="n" data-name="untestable">0', rows
        )
        assert not folded or "without a case in this recording" in folded
    assert "<h2>Words</h2>" in page.partition("<h2>Programs</h2>")[2], "what was found comes first"
