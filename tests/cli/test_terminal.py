"""What a reader sees first, and in how many columns."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from rich.cells import cell_len

from seriatim_models.cli import run
from seriatim_models.cli.campaign import _Bar
from seriatim_models.cli.console import ProgressDisplay
from seriatim_models.cli.help_page import TOPICS, folded
from seriatim_models.cli.options import lines
from seriatim_models.cli.stream_ui import LineView, view
from seriatim_models.history import Header, write_history
from seriatim_models.pipeline.campaign.run import CampaignProgress
from seriatim_models.report.terminal import COLUMNS_LEAST, shell_lines
from seriatim_workshop.bench.simulated_broker import SimulatedBroker

ROOT = Path(__file__).resolve().parents[2]

COMMANDS = (
    "audit {late} --profile strict-qpid",
    "audit {late} -v",
    "check release-behind two-takers",
    "check release-behind -v",
    "check --mutant published-immediate",
    "show published-look-then-rest -v",
    'conform --exec "python3 spec/conform/faulty.py requeues-to-the-tail" --seconds 1 --seed 1 --out {out}',
    'conform --exec "python3 spec/conform/example.py" --scripts 3 --seed 1 --out {out} -v',
    "check spec/own/test_counter.py::test_counter",
    "check --mutant published-two-pointers -v",
    "matrix pull --depth 0",
    "learn",
    "learn 1",
    "learn 1 --check {begun}",
    "explain IM-1",
    "list properties",
    "list programs",
    *(f"help {topic}" for topic in TOPICS),
    "help",
)


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a broker that requeues to the tail, which strict-qpid forbids and rabbit-quorum does not."""
    path = tmp_path_factory.mktemp("late") / "late.jsonl"
    write_history(path, SimulatedBroker(1, 200, fault="tail").run(), Header(run="late", lvl="api"))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_is_as_wide_as_it_says(
    late: Path,
    tmp_path: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    begun = tmp_path / "begun.py"
    begun.write_text("RUNS = WRONG = TRACES = 0")
    run(shlex.split(command.format(late=late, out=tmp_path, begun=begun)))
    said = capsys.readouterr()
    assert said.out
    for line in [*said.out.splitlines(), *said.err.splitlines()]:
        assert line == line.rstrip()
        assert cell_len(line) <= 80, line


def test_what_is_violated_comes_first(
    late: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run(["audit", str(late), "--profile", "strict-qpid"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Audit of ")
    assert lines[lines.index("") + 1].startswith("P6 violated 28 times in late: ")
    assert any(line.startswith("late: 1 violated, 9 ok, ") for line in lines)
    assert not [line for line in lines if "no case" in line]
    assert lines[-1].startswith("violated: 933 recorded events")


def test_every_sentence_is_said_once(late: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", str(late), str(late.parent), "-v"]) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("A message has at most one holder at a time.") == 1


@pytest.mark.parametrize("columns", ["1", "5", "0"])
@pytest.mark.parametrize("command", ["check --mutant published-immediate", "list mutants look"])
def test_it_ends_on_a_terminal_of_any_width(
    command: str, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that is narrower than what each of its parts begins with was cut for ever."""
    monkeypatch.setenv("COLUMNS", columns)
    assert run(command.split()) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("force", "term"), [("", "xterm"), ("1", "dumb"), ("1", "unknown")])
def test_nothing_is_drawn_where_no_line_can_be_drawn_anew(
    force: str, term: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What draws left an empty line there; a dumb terminal had neither the moving line nor lines in its place."""
    monkeypatch.setenv("FORCE_COLOR", force)
    monkeypatch.setenv("TERM", term)
    with _Bar() as bar:
        bar.update(CampaignProgress(1, 2, 0, 1.0, None))
    assert capsys.readouterr().err == ""
    display = ProgressDisplay(2, "programs")
    with display.running():
        display.finished("one", 0.1)
    assert capsys.readouterr().err == "[1/2] one: 0.1 s\n"
    assert isinstance(view(False, "in", "out"), LineView)


@pytest.mark.parametrize("width", [-1, 0, 1, 8, 12, 20, 33, 80])
@pytest.mark.parametrize(
    "words",
    [
        ["printf", "%s|", "one", "two words", "it's", "x" * 70, "--replay", "py1." + "a-b_c." * 20],
        ["printf", "%s|", "a" * 200],
    ],
)
def test_a_folded_command_is_the_same_to_a_shell(words: list[str], width: int) -> None:
    made = list(shell_lines(shlex.join(words), width, taken=len("replay: ")))
    ran = subprocess.run(["sh", "-c", "\n".join(made)], capture_output=True, text=True, check=True)
    assert ran.stdout == "".join(f"{word}|" for word in words[2:])
    quoted = max((len(q) for q in map(shlex.quote, words) if "'" in q), default=0)
    assert max(map(len, made)) <= max(width, quoted + 4, COLUMNS_LEAST)
    assert len(made[0]) <= max(width - len("replay: "), quoted + 4, COLUMNS_LEAST)


def test_a_docstring_is_folded_by_what_it_is() -> None:
    text = """\
Title
-----
Two lines of prose
are one.

    program()   # as it stands

- an item that goes
  on
Rule 1.    a row of two
           columns"""
    assert folded(text, 24).splitlines() == [
        "Title",
        "-----",
        "Two lines of prose are",
        "one.",
        "",
        "    program()   # as it stands",
        "",
        "- an item that goes on",
        "Rule 1.    a row of two",
        "           columns",
    ]


def test_sentences_of_a_help_flow_and_rows_do_not() -> None:
    text = """
        [bold]Examples[/]
        seriatim check a     one
        seriatim check b

        First line
        second line.
        0  all well
        """
    made = ["[bold]Examples[/]", "seriatim check a     one", "seriatim check b", ""]
    assert lines(text).split("\n\n") == [*made, "First line second line.", "0  all well"]


def test_a_pipe_that_says_no_width_gets_the_command_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    test = tmp_path / f"test_{'long' * 30}.py"
    test.write_text((ROOT / "spec" / "own" / "test_counter.py").read_text())
    assert run(["check", str(test)]) == 1
    [line] = [x for x in capsys.readouterr().out.splitlines() if x.startswith("replay: ")]
    assert len(line) > 200
    assert run(shlex.split(line)[2:]) == 1
