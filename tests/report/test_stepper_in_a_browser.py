"""The page in headless Chromium: stepping, links, a narrow screen, dark; nothing on its console, nothing fetched."""

from __future__ import annotations

import gc
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seriatim_models.cli import lesson_runner, matrix_pages
from seriatim_models.cli.matrix_run import Run
from seriatim_models.cli.report_builder import mutant_run, program_run, property_catalogue
from seriatim_models.cli.stop_request import StopRequest
from seriatim_models.history import Event
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.check import check_program
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report import AuditRun, Report, lessons
from seriatim_models.report.figures import Fairness
from seriatim_models.report.history_view import history_story
from seriatim_models.report.html import LessonLink, TourSections, html, mutant_page
from seriatim_models.report.model import ProgramRun
from seriatim_models.report.recording_page import recording_page
from seriatim_models.report.stepper import page as stepper_page
from seriatim_models.report.story import Story

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# A browser is a program of the machine, not of .venv; what the page holds is tested without one beside this file.
# `make test` says so where there is none, and .ci/run asks for one.
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("SERIATIM_BROWSER") != "required",
    reason="no chromium on this machine (Debian: apt install chromium)",
)


def run_of(mutant: str) -> ProgramRun:
    chosen = MUTANTS[mutant]
    return program_run(check_program(PROGRAMS[chosen.program], chosen), "dpor", [])


def recorded_calls() -> list[Event]:
    """A thousand publishes of three clients, each a millisecond long."""
    made: list[Event] = []
    for n in range(1000):
        proc, m, begin = f"client{n % 3}", f"m{n}", 2_000_000 * n
        for ph, t in (("invoke", begin), ("ok", begin + 1_000_000)):
            made.append(Event(i=len(made), t=t, ev="publish", ph=ph, proc=proc, q="q", m=m, op=n))
    return made


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One page of a short race, one of a long one, and a report with both."""
    folder = tmp_path_factory.mktemp("pages")
    runs = {"short": run_of("published-immediate"), "long": run_of("published-two-pointers")}
    for name, run in runs.items():
        assert run.story is not None
        (folder / f"{name}.html").write_text(stepper_page(run.story))
    report = Report(command="seriatim check", started="now", programs=list(runs.values()))
    (folder / "both.html").write_text(html(report))
    mutant = mutant_run(MUTANTS["published-immediate"], runs["short"])
    (folder / "mutant.html").write_text(
        mutant_page(mutant, "What IM-1 says.", "both.html", "Mutants")
    )
    chapters = lessons.all_in(lesson_runner.folder())
    (folder / "lesson.html").write_text(
        lessons.page(chapters[6], lesson_runner.stories(chapters[6]), chapters)
    )
    (folder / "history.html").write_text(stepper_page(history()))
    (folder / "recording.html").write_text(
        recording_page(
            recorded_calls(),
            "day.jsonl",
            [
                Finding(
                    property="P1",
                    verdict=Verdict.VIOLATED,
                    n_tested=1,
                    explanation="lost",
                    witness=recorded_calls()[20:21],
                )
            ],
        )
    )
    story_of_day = history()
    audit = AuditRun(
        paths=["day.jsonl"],
        engine="local",
        profile="any",
        findings=[Finding.of("P2", 1, [("two holders", [])], subject="day")],
        events=5,
        quarantined=0,
        seconds=0.1,
        command="seriatim audit day.jsonl",
        stories={"day": story_of_day},
    )
    whole = Report(
        command="seriatim tour",
        started="now",
        programs=list(runs.values()),
        mutants=[mutant],
        audits=[audit],
    )
    beside = TourSections(
        mutant,
        runs["long"],
        {"published-immediate": "mutant.html"},
        (Path(lesson_runner.folder()).parent / "FINDINGS.md").read_text(encoding="utf-8"),
        [LessonLink("Two threads", "Who gets it?", "lesson.html")],
        [Fairness("1 us", (4, 8), (1000, 2100), (990, 1980))],
    )
    (folder / "report.html").write_text(html(whole, beside))
    matrix(folder)
    return folder


def matrix(folder: Path) -> None:
    """The matrix of a mutant as one page and as a folder, some of its programs wrong."""
    run = Run("push", 1, 2, 1, None, ("two",), StopRequest(), "unlink-acquired")
    shown = [matrix_pages.drawn(run.matrix(folder / "journal.jsonl", fresh=False), "seriatim")]
    matrix_pages.write_pages(str(folder / "matrix.html"), shown, "seriatim matrix")
    matrix_pages.write_pages(str(folder / "matrix"), shown, "seriatim matrix")


def history() -> Story:
    """Somebody is given what another one still holds."""
    events = [
        Event(
            i=n, t=10 * n, q="q", m="m1", ms=["m1"] if ev == "ack" else None, ev=ev, conn=who, ch=1
        )
        for n, (ev, who) in enumerate(
            [
                ("publish", "web"),
                ("deliver", "bob"),
                ("deliver", "ann"),
                ("ack", "ann"),
                ("ack", "bob"),
            ],
            1,
        )
    ]
    finding = Finding.of("P2", 1, [("ann was given what bob held", events[1:3])], subject="day")
    return history_story("day", events, [finding], property_catalogue(), "seriatim audit day.jsonl")


PAGES = ("short", "long", "both", "mutant", "lesson", "history", "report")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # of the driver's pipes, which it closes late
        gc.collect()


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[Any]:
    """The one tab in which all pages are opened: a new one for each costs most of a test's time."""
    page = browser.new_page()
    yield page
    page.close()


class Visit:
    """A page that is being looked at, and everything that it did."""

    def __init__(self, tab: Any, file: Path, width: int = 1280, colours: str = "light") -> None:
        self.file = file
        self.complaints: list[str] = []
        self.fetched: list[str] = []
        self.page = tab
        self.page.goto("about:blank")
        self.page.set_viewport_size({"width": width, "height": 800})
        self.page.emulate_media(color_scheme=colours)
        self.watched = {
            "console": lambda message: self.complaints.append(message.text),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "request": lambda request: self.fetched.append(request.url),
        }
        for event, seen in self.watched.items():
            self.page.on(event, seen)
        self.open()

    def open(self, link: str = "") -> None:
        self.page.goto("about:blank")
        self.page.goto(self.file.as_uri() + link)

    @property
    def now(self) -> str:
        return str(self.page.locator(".now[role=status]").first.inner_text())

    def waits_for(self, text: str) -> None:
        playwright.expect(self.page.locator(".now[role=status]").first).to_contain_text(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def click(self, name: str) -> None:
        self.page.locator(f"[data-go={name}]").first.click()

    def done(self) -> None:
        for event, seen in self.watched.items():
            self.page.remove_listener(event, seen)
        assert self.complaints == []
        assert {url for url in self.fetched if not url.startswith(("file:", "about:"))} == set()
        assert {url.split("#")[0] for url in self.fetched} <= {self.file.as_uri(), "about:blank"}


@pytest.fixture
def visit(tab: Any, pages: Path) -> Iterator[Any]:
    visits: list[Visit] = []

    def start(name: str, **look: Any) -> Visit:
        visits.append(Visit(tab, pages / f"{name}.html", **look))
        return visits[-1]

    yield start
    for visited in visits:
        visited.done()


def test_buttons_step_and_jump(visit: Any) -> None:
    seen = visit("short")
    assert seen.now == "Before the first of 11 steps."
    seen.click("forward")
    assert seen.now.startswith("Step 1 of 11, P: m1.state.get() → AVAILABLE")
    seen.click("bad")
    assert seen.now.startswith("Step 9 of 11, P: m1.state.set(DEQUEUED) The first bad step.")
    assert "m1, state: ACQUIRED → DEQUEUED" in seen.now
    assert "DEQUEUED" in seen.page.locator(".state").inner_text()
    seen.click("good")
    assert "The last good step." in seen.now
    seen.click("last")
    assert seen.now.startswith("Step 11 of 11")
    assert seen.page.locator("[data-go=forward]").get_attribute("aria-disabled") == "true"
    seen.click("back")
    assert seen.now.startswith("Step 10 of 11")
    seen.click("first")
    assert seen.now.startswith("Before the first")


def test_keys_step(visit: Any) -> None:
    seen = visit("short")
    seen.press("ArrowRight", "ArrowDown", "ArrowRight", "ArrowLeft")
    assert seen.now.startswith("Step 2 of 11")
    seen.press("End")
    assert seen.now.startswith("Step 11 of 11")
    seen.press("ArrowUp")
    assert seen.now.startswith("Step 10 of 11")
    seen.press("Home")
    assert seen.now.startswith("Before the first")


@pytest.mark.slow
def test_it_plays_and_stops(visit: Any) -> None:
    seen = visit("short")
    button = seen.page.locator("[data-go=play]")
    seen.press(" ")
    assert button.get_attribute("aria-pressed") == "true"
    seen.waits_for("Step 2 ")
    seen.press(" ")
    assert button.get_attribute("aria-pressed") == "false"


def test_a_click_on_a_row_goes_there(visit: Any) -> None:
    seen = visit("short")
    seen.page.locator("[data-fold]").uncheck()
    seen.page.locator("[data-step='5']").click()
    assert seen.now.startswith("Step 5 of 11, job")
    seen.page.locator(".lanes tbody tr:not(.fold)").nth(2).locator("td:not(.idle)").click()
    assert seen.now.startswith("Step 3 of 11, job")


def test_the_address_carries_the_step(visit: Any) -> None:
    seen = visit("short")
    seen.click("bad")
    link = seen.page.url.partition("#")[2]
    assert link.endswith("/9")
    seen.open(f"#{link}")
    assert seen.now.startswith("Step 9 of 11")
    seen.page.evaluate("(to) => { location.hash = to }", re.sub(r"9$", "4", link))
    seen.waits_for("Step 4 ")


@pytest.mark.parametrize("link", ["#nothing/3", "#%E0%A4%A/3", "#programs", "#/", "#a/99999999999"])
def test_a_link_that_leads_nowhere_shows_the_beginning(visit: Any, link: str) -> None:
    seen = visit("short")
    seen.open(link)
    assert seen.now.startswith("Before the first")


def test_a_link_beyond_the_end_leads_to_the_end(visit: Any) -> None:
    seen = visit("short")
    seen.open("#steps-immediate-race.published-immediate/999")
    assert seen.now.startswith("Step 11 of 11")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_screen(visit: Any, name: str) -> None:
    seen = visit(name)
    for width in (1280, 400, 320):
        seen.page.set_viewport_size({"width": width, "height": 800})
        seen.open()
        seen.click("bad")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, width


@pytest.mark.parametrize("width", [1280, 400])
def test_the_current_row_can_be_seen(visit: Any, width: int) -> None:
    seen = visit("long", width=width)
    for go in ("bad", "last", "first", "forward"):
        seen.click(go)
    seen.click("bad")
    trace = seen.page.locator(".trace").bounding_box()
    row = seen.page.locator("tr[aria-current=step]").bounding_box()
    assert trace["y"] <= row["y"] <= row["y"] + row["height"] <= trace["y"] + trace["height"]


@pytest.mark.parametrize("name", PAGES)
def test_it_is_dark_where_the_reader_likes_it_dark(visit: Any, name: str) -> None:
    brightness = {}
    for scheme in ("light", "dark"):
        seen = visit(name, colours=scheme)
        colour = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness[scheme] = sum(int(n) for n in re.findall(r"\d+", colour)[:3])
    assert brightness["dark"] < 150 < 600 < brightness["light"]


def test_arrows_are_drawn_when_asked_for(visit: Any) -> None:
    seen = visit("short")
    assert seen.page.locator(".arrows path").count() == 0
    seen.page.locator("[data-arrows]").check()
    drawn = seen.page.locator(".arrows path").count()
    assert drawn > 0
    seen.click("bad")
    assert seen.page.locator(".arrows path").count() == drawn
    assert seen.page.locator(".arrows path.near").count() > 0
    seen.page.locator("[data-arrows]").uncheck()
    assert seen.page.locator(".arrows").count() == 0


def test_a_screen_reader_finds_its_way(visit: Any) -> None:
    seen = visit("short", width=400)
    by_role = seen.page.get_by_role
    for name in ("To the beginning", "One step back", "One step forward", "To the end", "play"):
        assert by_role("button", name=name, exact=True).count() == 1
    assert by_role("button", name="Step 9, the first bad one").count() == 1
    assert by_role("status").count() == 1
    assert by_role("table").count() >= 4
    assert by_role("columnheader", name="job").count() == 1
    seen.click("bad")
    assert by_role("row").filter(has=seen.page.locator("[data-step='9']")).count() == 1


def test_in_a_report_each_has_keys_of_its_own(visit: Any) -> None:
    seen = visit("both")
    status = seen.page.locator(".now[role=status]")
    seen.press("End")  # the page's own
    assert [text.startswith("Before") for text in status.all_inner_texts()] == [True, True]
    seen.page.locator(".trace").nth(1).focus()
    seen.press("ArrowRight", "ArrowRight")
    first, second = status.all_inner_texts()
    assert first.startswith("Before")
    assert (step := re.match(r"Step (\d+) of", second))
    assert seen.page.url.endswith(f"#steps-release-again.published-two-pointers/{step[1]}")


# ---- folded steps, and where they come from


def shown_steps(seen: Any) -> list[int]:
    return [int(b.inner_text()) for b in seen.page.locator("[data-step]:visible").all()]


def test_steps_that_do_not_matter_are_folded_until_they_are_asked_for(visit: Any) -> None:
    seen = visit("short")
    matter = shown_steps(seen)
    folds = seen.page.locator("tr.fold button:visible")
    assert 0 < len(matter) < 11
    assert len(matter) + sum(int(t.split()[1]) for t in folds.all_inner_texts()) == 11
    for n in matter:  # the keys go from one of them to the next
        seen.press("ArrowRight")
        assert seen.now.startswith(f"Step {n} of 11")
    hidden = int(folds.first.inner_text().split()[1])
    folds.first.click()
    assert len(shown_steps(seen)) == len(matter) + hidden
    seen.page.locator("[data-fold]").uncheck()
    assert shown_steps(seen) == list(range(1, 12))
    seen.page.locator("[data-fold]").check()
    assert shown_steps(seen) == matter


def test_a_link_to_a_folded_step_unfolds_it(visit: Any) -> None:
    seen = visit("short")
    hidden = min({*range(1, 12)} - {*shown_steps(seen)})
    seen.click("bad")
    seen.open(re.sub(r"\d+$", str(hidden), "#" + seen.page.url.partition("#")[2]))
    assert seen.now.startswith(f"Step {hidden} of 11")
    assert hidden in shown_steps(seen)


def test_the_source_of_the_step_is_shown_with_the_lines_around_it(visit: Any) -> None:
    seen = visit("mutant")
    seen.click("bad")
    code = seen.page.locator(".state .code")
    assert code.count() == 1
    here = code.locator(".here")
    assert here.count() == 1
    number, text = here.inner_text().split(None, 1)
    assert code.locator("figcaption").inner_text().endswith(f"queue.py>:{number}")
    assert "state" in text
    assert 3 <= code.locator("span").count() <= 9
    assert seen.page.locator(".next small").first.inner_text()


def test_a_value_leads_to_the_step_that_wrote_it(visit: Any) -> None:
    seen = visit("short")
    seen.press("End")
    links = seen.page.locator(".facts a")
    assert links.count()
    link = links.first
    value, step = link.inner_text(), int(str(link.get_attribute("href")).rpartition("/")[2])
    cell = link.locator("xpath=..")
    name, row = cell.get_attribute("data-name"), cell.locator("xpath=..").locator("th").inner_text()
    link.click()
    seen.waits_for(f"Step {step} ")
    assert re.search(
        rf"{re.escape(row)}, {re.escape(str(name))}: .* → {re.escape(value)}", seen.now
    )


# ---- a recorded history


def test_a_history_has_a_bar_for_each_time_that_somebody_had_a_message(visit: Any) -> None:
    seen = visit("history")
    bars = seen.page.locator(".interval:not(.waits)")
    assert bars.all_inner_texts() == ["bob/1", "ann/1"]
    assert seen.page.locator(".interval.violating").count() == 2
    bob, ann = (bar.bounding_box() for bar in bars.all())
    assert bob["x"] < ann["x"] < ann["x"] + ann["width"] < bob["x"] + bob["width"]
    assert (
        bob["y"] + bob["height"] <= ann["y"]
    )  # they overlap in time, so one stands below the other


def test_a_bar_leads_to_its_first_event(visit: Any) -> None:
    seen = visit("history")
    seen.page.locator(".interval", has_text="ann/1").click()
    assert seen.now.startswith("Step 3 of 5, ann/1")
    assert "The first bad step" in seen.now
    here = seen.page.locator(".here").first.bounding_box()
    ann = seen.page.locator(".interval", has_text="ann/1").bounding_box()
    assert abs(here["x"] - ann["x"]) < 4


def test_bars_can_be_had_by_consumer(visit: Any) -> None:
    seen = visit("history")
    seen.page.get_by_label("consumer", exact=True).check()
    assert seen.page.locator(".line > span").all_inner_texts() == ["bob/1", "ann/1"]
    assert seen.page.locator(".interval").all_inner_texts() == ["m1", "m1"]


def test_a_screen_reader_is_property_catalogue_every_bar(visit: Any) -> None:
    seen = visit("history")
    name = "m1 with bob/1, step 2 to step 5: ack; shows the violation"
    assert seen.page.get_by_role("button", name=name, exact=True).count() == 1


# ---- pages with more than a stepper


def test_a_reports_links_lead_to_its_sections_and_pages(visit: Any, pages: Path) -> None:
    seen = visit("report")
    links = [a.get_attribute("href") for a in seen.page.locator("a[href]").all()]
    assert "mutant.html" in links
    for link in links:
        if link.startswith("#"):
            assert seen.page.locator(f"[id='{link[1:]}']").count() == 1, link
        else:
            assert (pages / link).is_file(), link


def test_an_answer_is_hidden_until_its_door_is_opened(visit: Any) -> None:
    seen = visit("lesson")
    answer = seen.page.get_by_text('RELEASED = "RETURNED"')
    assert not answer.is_visible()
    seen.page.get_by_text("Answer", exact=True).click()
    assert answer.is_visible()


def test_a_lesson_can_be_stepped_through(visit: Any) -> None:
    seen = visit("lesson")
    assert seen.page.locator(".stepper").count() == 3
    seen.page.locator("[data-go=bad]").first.click()
    assert "The first bad step" in seen.now


@pytest.mark.parametrize("name", PAGES)
def test_every_control_has_a_name(visit: Any, name: str) -> None:
    controls = visit(name).page.locator("button, input, select")
    without = controls.evaluate_all(
        "all => all.filter(c => !(c.getAttribute('aria-label') || c.innerText || (c.labels && c.labels.length)))"
        ".map(c => c.outerHTML)"
    )
    assert controls.count() > 5
    assert without == []


# ---- the matrix

MATRIX = ("matrix", "matrix/index", "matrix/cells/push.close.subscribe")


@pytest.mark.slow
@pytest.mark.parametrize("name", MATRIX)
def test_no_page_of_the_matrix_is_wider_than_the_screen(visit: Any, name: str) -> None:
    seen = visit(name)
    for width in (1280, 400, 320):
        seen.page.set_viewport_size({"width": width, "height": 800})
        seen.open()
        for door in seen.page.locator("details.cell > summary").all():
            door.click()
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, width


def test_the_keyboard_opens_a_cell_and_steps_through_its_program(visit: Any) -> None:
    seen = visit("matrix")
    wrong = seen.page.locator("table.square td.violated a").first
    wrong.focus()
    seen.press("Enter")
    cell = seen.page.locator("details.cell[open]")
    playwright.expect(cell).to_have_count(1)  # the address changes first, and then the page
    assert f"#{cell.get_attribute('id')}" == wrong.get_attribute("href")
    assert seen.page.evaluate("document.activeElement.tagName") == "SUMMARY"
    seen.press("Tab", "Enter")  # its first interleaving
    stepper = cell.locator(".stepper").first
    playwright.expect(stepper).to_be_visible()
    stepper.locator("[data-go=bad]").click()
    assert "The first bad step" in stepper.locator(".now[role=status]").inner_text()


def test_a_link_opens_the_cell_that_it_names(visit: Any) -> None:
    seen = visit("matrix")
    for link, opened in (("#push.close.subscribe", 1), ("#nothing", 0), ("#%E0%A4%A", 0), ("", 0)):
        seen.open(link)
        assert seen.page.locator("details.cell[open]").count() == opened, link


def test_cells_of_the_matrix_have_names_and_verdicts_that_need_no_colour(visit: Any) -> None:
    seen = visit("matrix/index", width=400)
    cells = seen.page.locator("table.square td a")
    assert cells.count() == 19
    for cell in cells.all():
        name, mark = cell.get_attribute("aria-label"), cell.inner_text()
        assert ("violated" in name) == mark.startswith("!")
        assert "programs" in name
    assert seen.page.get_by_role("link", name=re.compile(r"^subscribe \| subscribe: ")).count() == 1


def test_an_interleaving_of_a_right_program_has_no_bad_step(visit: Any, pages: Path) -> None:
    right = next(
        p for p in (pages / "matrix" / "steps").iterdir() if "what was seen" in p.read_text()
    )
    seen = visit(f"matrix/steps/{right.stem}")
    seen.click("last")
    assert seen.now.startswith("Step ")
    assert seen.page.locator("[data-go=bad]").count() == 0


def test_many_recordings_of_one_name_and_names_of_ten_thousand_characters(
    tab: Any, pages: Path
) -> None:
    """Runs whose names differ in punctuation had one choice of lines among them; one long name made the page wide."""
    # Two stories of one id, as two audits of one run have them, and a name that no screen is wide enough for.
    long = msgspec.structs.replace(
        history(), title="r" * 10_000, threads=["q" * 10_000, "ann", "web"]
    )
    audits = [
        AuditRun(
            paths=[path], engine="local", profile="any", events=5, quarantined=0,
            findings=[Finding.of("P2", 1, [(error, [])], subject="day")],
            seconds=0.1, command="seriatim audit", stories={"day": story},
        )
        for path, error, story in (
            ("p" * 10_000, "e" * 10_000, long),
            *(("p", "e", history()) for _ in range(25)),
        )
    ]  # fmt: skip
    (pages / "many.html").write_text(html(Report(command="seriatim", started="now", audits=audits)))
    seen = Visit(tab, pages / "many.html")
    wide = seen.page.evaluate("document.documentElement.scrollWidth")
    assert wide < 2000, "it was 87,547 pixels"
    assert seen.page.locator(".timeline input:checked").count() == len(audits)
    assert seen.page.locator(f'[title="{"e" * 10_000}"]').count() == 1
    seen.done()


def test_a_recording_can_be_moved_magnified_and_searched(visit: Any) -> None:
    visited = visit("recording", width=400)
    page = visited.page

    def view() -> list[int]:
        return [int(n) for n in page.evaluate("location.hash").split("&")[0][1:].split("-")]

    def moved(act: Any) -> list[int]:
        before = page.evaluate("location.hash")
        act()
        page.wait_for_function("before => location.hash !== before", arg=before)
        return view()

    page.wait_for_function("location.hash !== ''")
    begin, end = view()
    assert begin <= 20_000_000 <= end  # the violation is in view
    assert end - begin < 100_000_000
    assert page.locator("[data-violation]").get_attribute("aria-pressed") == "true"
    assert moved(lambda: page.click("[data-go=all]")) == [0, 1_999_000_000]
    page.focus("canvas")
    first, last = moved(lambda: page.keyboard.press("+"))
    assert last - first in range(990_000_000, 1_010_000_000)
    further = moved(lambda: page.keyboard.press("ArrowRight"))
    assert further[0] > first
    page.fill("input", "m999")
    found = moved(lambda: page.keyboard.press("Enter"))
    assert found[1] >= 1_998_000_000
    assert page.inner_text(".found") == "1 of 1"
    assert "client0: publish m999 of q" in page.inner_text(".said")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    visited.open("#0-50000000&find=m7")
    page.wait_for_function("document.querySelector('.found').textContent !== ''")
    assert view() == [0, 50_000_000]
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 34 + 9)  # the first row, at its beginning
    assert "client0" in page.inner_text(".said")
