"""The tables that programs write into pages: written, checked, and refused with a sentence."""

from pathlib import Path

import pytest

from seriatim_workshop import page_tables

PAGE = "before\n<!-- made: by x -->\n\nold\n\n<!-- end -->\nafter\n"


def renewed(text: str) -> str:
    return page_tables.replaced(text, "<!-- made:", "<!-- end -->", "new")


def run(*arguments: str) -> int:
    return page_tables.main("x", "Write the tables.", renewed, arguments)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "PAGE.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_only_what_stands_between_the_comments_is_replaced(page: Path) -> None:
    assert run(str(page)) == 0
    assert page.read_text(encoding="utf-8") == PAGE.replace("old", "new")


def test_a_check_writes_nothing_and_sees_a_difference(page: Path) -> None:
    assert run("--check", str(page)) == 1
    assert page.read_text(encoding="utf-8") == PAGE
    assert run(str(page)) == 0
    assert run("--check", str(page)) == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "the following arguments are required: FILE"),
        ("no comments", "has no single '<!-- made:'"),
        (PAGE.replace("<!-- end -->", ""), "with '<!-- end -->' after it"),
        (PAGE + PAGE, "has no single '<!-- made:'"),
    ],
)
def test_rejects_what_cannot_be_used_with_a_sentence(
    page: Path, text: str | None, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        page.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        run(*([] if text is None else [str(page)]))
    assert stopped.value.code == 2
    assert sentence in capsys.readouterr().err


def test_rejects_a_page_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(str(tmp_path / "none.md"))
    assert stopped.value.code == 2
    assert "No such file" in capsys.readouterr().err
