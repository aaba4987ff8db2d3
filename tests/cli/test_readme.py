"""The front page: its commands are run, its picture is drawn again, its tables are compared with the code."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from rich.cells import cell_len

from seriatim_models.cli import app, lesson_runner
from seriatim_models.programs import MUTANTS
from seriatim_models.report import lessons
from seriatim_workshop import matrix_table

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", ".github/CONTRIBUTING.md", "spec/CHANGELOG.md")
}
README = PAGES["README.md"]

CONSOLE = [
    command
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE)
    for command in re.split(r"\s+#\s", line)[0].strip().split(" && ")
]
SHOWN = dict(re.findall(r"^\$ (.*)\n((?:[^$`].*\n)+)", README, re.MULTILINE))
"""What a command prints, as far as it is shown: "..." stands for lines left out."""
INLINE = re.findall(r"`((?:seriatim|make) [^`]+)`", README)
COMMANDS = list(dict.fromkeys([*CONSOLE, *INLINE]))
SERIATIM = [c for c in COMMANDS if c.startswith("seriatim ")]

LONG = {
    "seriatim matrix --depth 1",
    "seriatim matrix pull push log fair pool client --depth 1",
    "seriatim matrix handover --depth 0",
    "seriatim check",
    "seriatim check --mutants",
    "seriatim check --mutant published-put-in-the-channels-lock",
}
"""Seconds or minutes: `make run` and the tests of programs and mutants do what they do."""


TEN_SECONDS = {
    "seriatim audit tests/data",
    "seriatim audit tests/data --property spec/own/refunds.py:RefundAfterPayment",
}
"""Audits of the recordings; the one with `--junit` and `--json` is always made."""

ELSEWHERE = re.compile(r"amqp://|run\.jsonl|\bnode |\bDIR\b|^seriatim (stream|campaign|generate)$")
"""Needs a broker, what was recorded of one, or Node; or is only mentioned. Its options are looked at here."""


def expected(command: str) -> set[int]:
    """A mutant, the racy example and an exercise that was only begun are violated; a few scripts may test nothing."""
    if " published-" in command or "--check" in command or "test_counter" in command:
        return {1}
    return {0, 3} if " conform " in command else {0}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like the checkout, in which what the commands write does no harm."""
    for name in ("tests", "spec"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "mine.py").write_text(lessons.all_in(lesson_runner.folder())[0].start)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_commands() -> None:
    assert {"make run", "make test"} <= set(COMMANDS)
    assert len(SERIATIM) > 20


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(c, marks=[pytest.mark.slow] * (c in TEN_SECONDS))
        for c in SERIATIM
        if c not in LONG and not ELSEWHERE.search(c)
    ],
)
def test_a_command_does_what_is_said_in_eighty_columns(
    checkout: Path, run: Any, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = shlex.split(command)[1:]
    if arguments[0] == "conform":
        arguments += ["--scripts", "3", "--out", "conform"]  # the whole takes half a minute
    if "--start" in arguments:
        (checkout / "mine.py").unlink()
    ran = run(*arguments)
    assert ran.code in expected(command), ran.err
    for line in (ran.out + ran.err).splitlines():
        assert cell_len(line) <= 80, line
    there = _without_times(ran.out)
    for part in filter(None, _without_times(SHOWN.get(command, "")).split("...\n")):
        assert part in there, f"not printed in this place:\n{part}"
        there = there.partition(part)[2]
    for option in ("--html", "--svg", "--json", "--junit", "--start"):
        if option in arguments:
            assert Path(arguments[arguments.index(option) + 1]).stat().st_size > 0


def _without_times(text: str) -> str:
    return re.sub(r"\d+\.\d+( s)?$", "a time", text, flags=re.MULTILINE)


def test_output_is_shown_of_three_commands() -> None:
    assert len(SHOWN) == 3
    assert SHOWN.keys() <= set(SERIATIM)


@pytest.mark.parametrize("command", [c for c in SERIATIM if ELSEWHERE.search(c)])
def test_the_options_of_what_needs_more_are_there(command: str) -> None:
    """Raises UsageError if not."""
    _, *words = shlex.split(command)
    group: click.Command = app
    while isinstance(group, click.Group):
        group = group.commands[words.pop(0)]
    with contextlib.suppress(click.MissingParameter):  # of what is only mentioned
        group.make_context("seriatim", words)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("make")])
def test_a_target_is_there(command: str) -> None:
    target = command.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    if command in CONSOLE:
        ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
        assert f"stage {command}" in ci, f"{command} is shown to the reader and not run by .ci/run"


def test_every_command_is_one_of_these() -> None:
    assert [c for c in COMMANDS if c.split()[0] not in ("seriatim", "make")] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", PAGES[page]):
        assert (ROOT / page).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page: str) -> None:
    """What stands in backquotes with a slash in it and a known beginning is a path."""
    for path in re.findall(r"`((?:spec|tests|models|reference|\.ci)/[^` ]*)`", PAGES[page]):
        assert (ROOT / path).exists(), path


FINDINGS = re.findall(
    r"^\| .+ \| (.+) \| `seriatim check --mutant (\S+)` \|$", README, re.MULTILINE
)


def test_there_are_findings() -> None:
    assert len(FINDINGS) > 8
    assert sum(m.startswith("published-") for m in MUTANTS) > 30  # "more than thirty"


@pytest.mark.parametrize(("breaks", "mutant"), FINDINGS)
def test_a_finding_breaks_what_is_said(breaks: str, mutant: str) -> None:
    assert MUTANTS[mutant].killed_by == breaks


def test_what_the_matrix_has_proved_is_what_was_counted() -> None:
    """spec/MATRIX.md has a table that a program made; `.ci/run` and tests/matrix/test_table.py make it again."""
    page = (ROOT / "spec" / "MATRIX.md").read_text(encoding="utf-8")
    assert matrix_table.sentence(page) in " ".join(README.split()), matrix_table.sentence(page)


def test_the_number_of_lessons_is_right() -> None:
    assert "[twelve lessons]" in README
    assert len(lessons.all_in(lesson_runner.folder())) == 12


def test_the_picture_is_what_the_command_draws(run: Any, tmp_path: Path) -> None:
    drawn = tmp_path / "race.svg"
    run("show", "published-immediate", "--svg", str(drawn))
    kept = ROOT / "spec" / "pictures" / "immediate-race.svg"
    assert drawn.read_text() == kept.read_text(), (
        f"the picture has changed; look at it, then: seriatim show published-immediate --svg {kept.relative_to(ROOT)}"
    )


def test_the_picture_stands_in_the_first_screen() -> None:
    assert "spec/pictures/immediate-race.svg" in "\n".join(README.splitlines()[:12])
