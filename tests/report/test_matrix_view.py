"""The pages of the matrix: all cells and programs stand on them, nothing from a run is markup, links lead somewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec

from seriatim_models.properties import Verdict
from seriatim_models.report.matrix_view import (
    PROGRAMS_MAX,
    CellView,
    MatrixView,
    ProgramLine,
    address,
    one_page,
    pages,
)

NASTY = "</script><script>alert(1)</script><b onclick=x>"


def line(number: int, verdict: Verdict = Verdict.OK, text: str = "two") -> ProgramLine:
    return ProgramLine(
        id=f"push.{number}",
        state=f"{text}: the beginning",
        calls=f"subscribe A | close {text}",
        verdict=verdict,
        executions=1234,
        note=text if verdict is Verdict.VIOLATED else "",
        command=f"seriatim matrix push --pair '{text} {number}'",
    )


def cell(calls: tuple[str, ...], *lines: ProgramLine, capped: int = 0) -> CellView:
    wrong = sum(p.verdict is Verdict.VIOLATED for p in lines)
    return CellView(
        id=address("push", *calls),
        calls=calls,
        verdict=Verdict.VIOLATED if wrong else Verdict.INCONCLUSIVE if capped else Verdict.OK,
        states=7,
        programs=len(lines),
        executions=1234 * len(lines),
        wrong=wrong,
        capped=capped,
        missing=0,
        shortest=lines[0].state,
        lines=lines,
    )


def system(*cells: CellView, text: str = "because") -> MatrixView:
    return MatrixView(
        name="push",
        summary="some of some",
        verdict=Verdict.OK,
        command="seriatim matrix push",
        cells=cells,
        calls=("subscribe", "close", "job"),
        excused={text: 3},
        wrong_calls=[f"{text}: grant"],
    )


PLAIN = system(
    cell(("close", "subscribe"), line(1), line(2)),
    cell(("close", "close"), line(3), capped=4),
    cell(("job", "subscribe"), line(5, Verdict.VIOLATED), line(6)),
)


class Links(HTMLParser):
    """The links, ids and tags of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.links += [str(found["href"])] if "href" in found else []
        self.ids += [str(found["id"])] if "id" in found else []


def test_a_cell_says_what_is_known_of_it() -> None:
    text = one_page([PLAIN], "seriatim matrix push --html page.html")
    for row in PLAIN.cells:
        assert f"{row.title}: {row.verdict.value}; {row.summary}" in text
        for program in row.lines:
            assert program.command.replace("'", "&#39;") in text
    marks = re.findall(r">([!?\d,]+)</a>", text)
    assert marks == ["2", "?4", "!1"]
    assert "1 wrong" in text
    assert "4 capped" in text


def test_every_link_leads_somewhere() -> None:
    found = Links(one_page([PLAIN], ""))
    assert len(found.ids) == len(set(found.ids))
    assert {f"#{c.id}" for c in PLAIN.cells} <= set(found.links)
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)
    folder = dict(pages([PLAIN], ""))
    assert set(folder) == {"index.html", *(f"cells/{c.id}.html" for c in PLAIN.cells)}
    index = Links(folder["index.html"])
    inner = {link.removeprefix("#") for link in index.links if link.startswith("#")}
    assert inner <= set(index.ids)
    assert {link for link in index.links if not link.startswith("#")} == set(folder) - {
        "index.html"
    }


def test_nothing_from_a_run_is_markup() -> None:
    lines = [line(1, Verdict.VIOLATED, NASTY), line(2, text=NASTY)]
    shown = system(cell((NASTY, "close"), *lines), text=NASTY)
    shown = msgspec.structs.replace(shown, calls=(NASTY, "close"), summary=NASTY)
    usual = one_page([PLAIN], "seriatim")
    for text in (one_page([shown], NASTY), *(text for _, text in pages([shown], NASTY))):
        assert "alert(1)" in text
        assert "<script>alert" not in text
        assert "b" not in set(Links(text).tags) - set(Links(usual).tags)
        assert Links(text).tags.count("script") <= 1


def test_a_page_of_all_cells_says_when_it_leaves_programs_out() -> None:
    many = system(cell(("close", "job"), *(line(n) for n in range(PROGRAMS_MAX + 3))))
    whole, folder = one_page([many], ""), dict(pages([many], ""))
    assert "And 3 more" in whole
    assert whole.count("seriatim matrix push --pair") == PROGRAMS_MAX
    own = folder["cells/push.close.job.html"]
    assert own.count("seriatim matrix push --pair") == PROGRAMS_MAX + 3


def test_cells_of_three_calls_have_no_square() -> None:
    three = system(cell(("close", "close", "subscribe"), line(1)))
    assert three.square == []
    assert 'class="square"' not in one_page([three], "")
    assert "close | close | subscribe" in one_page([three], "")


def test_an_address_has_only_what_a_file_name_may_have() -> None:
    assert address("push", "a b/..\\c", "<d>") == "push.a-b-..-c.-d-"
    assert "/" not in address("../x")
