"""`seriatim matrix` and what goes wrong: one sentence and an exit code, and what was done is kept."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seriatim_models.cli import console
from seriatim_models.cli.console import check_writable
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.work import Done, Journal, WrongJournal, do, items

SMALL = ("matrix", "fair", "--depth", "0", "--jobs", "1")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own for journals."""
    monkeypatch.chdir(tmp_path)


def counted(run: Any, *arguments: str) -> dict[str, Any]:
    """The table of the only system, without the time that it took."""
    ran = run(*arguments, "--json", "-")
    assert ran.out, ran.err
    [system] = msgspec.json.decode(ran.out)["systems"]
    return {k: v for k, v in system.items() if k != "seconds"}


# ---- bad usage


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("matrix", "pul"), "there is no system 'pul'; did you mean 'pull'?"),
        (("matrix", "nothing"), "there is no system 'nothing'; "),
        (("matrix", "fair", "--universe", "x"), "fair has no universe 'x'; known are "),
        (("matrix", "fair", "--universe", "!x*"), "fair has no universe 'x*'; known are "),
        (("matrix", "fair", "--universe", "!*"), "fair has no universe '*'; known are "),
        (("matrix", "fair", "--mutant", "x"), "there is no mutant 'x'"),
        (("matrix", "push", "--pair", "settle two: ; steal A | job"), "push has no call 'steal'"),
        (("matrix", "push", "--pair", "two subscribe A"), "is no program: MODE UNIVERSE"),
        (("matrix", "push", "--pair", "settle two: ; close B | job"), "close B cannot be made"),
        (("matrix", "--pair", "settle two: ; close B | job"), "name that system"),
        (("matrix", "fair", "--replay", "v1"), "--replay goes with --pair"),
        (("matrix", "--journal", "j"), "--journal is the file of one system"),
        (
            ("matrix", "fair", "--campaign", "c", "--journal", "j"),
            "leave out --journal and --fresh",
        ),
        (("matrix", "fair", "--campaign", "c", "--fresh"), "leave out --journal and --fresh"),
        (("matrix", "fair", "--master", "local"), "--master goes with --campaign"),
        (("matrix", "fair", "--depth", "-1"), "-1 is less than 0"),
        (("matrix", "fair", "--depth", "two"), "'two' is not a whole number"),
        (("matrix", "fair", "--threads", "9"), "9 is not in the range"),
        (("matrix", "fair", "--budget", "0"), "0 is not"),
    ],
)
def test_bad_usage_is_one_sentence(run: Any, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in run(*arguments).complaint
    assert not Path("build").exists()


def test_the_help_names_every_system(run: Any) -> None:
    shown = run("matrix", "--help").out
    assert [name for name in SYSTEMS if not re.search(rf"\b{name}\b", shown)] == []


@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.parametrize("target", ["file/below.html", "file/deep/below.html", "folder"])
def test_what_cannot_be_written_is_said_before_the_work(run: Any, option: str, target: str) -> None:
    Path("file").touch()
    Path("folder").mkdir()
    if (option, target) == ("--html", "folder"):
        assert run(*SMALL, option, target).code == 0, "pages go into a folder"
        assert Path("folder/index.html").is_file()
        return
    assert f"cannot write {target}: " in run(*SMALL, option, target).complaint
    assert not Path("build").exists()


def test_what_can_no_longer_be_written_costs_no_result(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").touch()
    monkeypatch.setattr(console, "check_writable", lambda *_, **__: None)
    assert "cannot write file/below: " in run(*SMALL, "--json", "file/below").complaint
    [journal] = Path("build/matrix").iterdir()
    before = journal.read_bytes()
    assert before.count(b"\n") > 20
    assert run(*SMALL).code == 0
    assert journal.read_bytes() == before, "something was done again"


def test_a_folder_without_the_right_to_write_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UsageError, match="Permission denied"):
        check_writable("new.json")
    check_writable("-")
    check_writable(None)


# ---- budgets


@pytest.mark.slow
def test_a_depth_that_the_budget_cannot_reach_is_inconclusive(run: Any) -> None:
    arguments = ("matrix", "push", "--depth", "9", "--jobs", "1", "--budget", "1.5")
    begun = time.monotonic()
    found = counted(run, *arguments)
    assert time.monotonic() - begun < 60
    assert (found["verdict"], found["proved"]) == ("inconclusive", 0)
    assert found["cut"] == 0
    ran = run(*arguments)
    assert ran.code == 3
    assert "the budget ended while the states at depth 0 were looked at" in " ".join(
        ran.out.split()
    )
    [journal] = Path("build/matrix").iterdir()
    assert journal.read_bytes().count(b"\n") > 1, "what was done is kept"


def test_states_that_are_missing_are_never_proved(run: Any) -> None:
    """Also if all programs that are known were run, and nothing was wrong."""
    from seriatim_models.matrix.totals import Matrix
    from seriatim_models.properties import Verdict

    assert run(*SMALL).code == 0
    whole = counted(run, *SMALL)
    known = {k: v for k, v in whole.items() if k in Matrix.__struct_fields__}
    cut = msgspec.convert({**known, "cut": 0}, Matrix)
    assert (whole["verdict"], cut.verdict) == ("ok", Verdict.INCONCLUSIVE)
    assert cut.proved == 0 < whole["proved"]


# ---- journals


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"hello\n", "journal is not a journal of a matrix"),
        (b"\xff\x00\n\n", "journal is not a journal of a matrix"),
        (b'{"schema":"seriatim-matrix-journal/0","system":"fair","depth":0,"code":""}\n', "schema"),
        (b'{"schema":"seriatim-matrix-journal/1","system":"log","depth":0,"code":"a"}\n', "system"),
    ],
)
def test_another_journal_is_left_as_it_is(run: Any, content: bytes, sentence: str) -> None:
    Path("journal").write_bytes(content)
    complaint = run(*SMALL, "--journal", "journal").complaint
    assert sentence in complaint
    assert "--fresh to begin again" in complaint
    assert Path("journal").read_bytes() == content
    assert run(*SMALL, "--journal", "journal", "--fresh").code == 0


def test_a_damaged_journal_is_left_as_it_is(run: Any) -> None:
    assert run(*SMALL, "--journal", "journal").code == 0
    lines = Path("journal").read_bytes().split(b"\n")
    damaged = b"\n".join([*lines[:3], lines[3][:20], *lines[4:]])
    Path("journal").write_bytes(damaged)
    assert "journal: line 4 is damaged: " in run(*SMALL, "--journal", "journal").complaint
    assert Path("journal").read_bytes() == damaged


def test_a_journal_that_is_valid_and_says_something_else_is_left_as_it_is(run: Any) -> None:
    """A digit, a word: it was taken for what had been found."""
    assert run(*SMALL, "--journal", "journal").code == 0
    whole = Path("journal").read_bytes()
    line = whole.split(b"\n")[1]
    for said, other in (
        (b'"executions":1', b'"executions":7'),
        (b"true", b"null"),
        (b"fair", b"fa1r"),
    ):
        if said not in line:
            continue
        Path("journal").write_bytes(whole.replace(line, line.replace(said, other)))
        complaint = run(*SMALL, "--journal", "journal").complaint
        assert "journal: line 2 is damaged: its checksum does not fit" in complaint
    at = whole.index(b"\n") + 1
    for n in range(at, at + len(line)):
        damaged = whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :]
        Path("journal").write_bytes(damaged)
        with pytest.raises(WrongJournal):
            Journal(Path("journal"), "fair", 0).read()


@pytest.mark.parametrize("kept", [0, 1, 30])
def test_a_journal_whose_first_line_was_cut_off_is_begun_again(run: Any, kept: int) -> None:
    assert run(*SMALL, "--journal", "journal").code == 0
    whole = Path("journal").read_bytes()
    Path("journal").write_bytes(whole[:kept])
    assert run(*SMALL, "--journal", "journal").code == 0
    assert Path("journal").read_bytes() == whole


def test_a_journal_of_a_mutant_is_not_that_of_the_reference(run: Any) -> None:
    arguments = ("matrix", "push", "--depth", "0", "--universe", "two", "--jobs", "1")
    assert run(*arguments, "--journal", "journal").code == 0
    mutant = run(*arguments, "--journal", "journal", "--mutant", "unlink-acquired")
    assert "mutant unlink-acquired" in mutant.complaint or "mutant  and not" in mutant.complaint


@pytest.mark.parametrize("where", ["folder", "file/below"])
def test_a_journal_that_cannot_be_kept_is_said(run: Any, where: str) -> None:
    Path("folder").mkdir()
    Path("file").touch()
    complaint = run(*SMALL, "--journal", where).complaint
    assert re.search(
        f"{where}(:| cannot be) .*(is a folder|[Nn]ot a directory|File exists)", complaint
    )


@pytest.mark.parametrize("written", [None, 3])
def test_a_full_disk_is_said(
    run: Any, monkeypatch: pytest.MonkeyPatch, written: int | None
) -> None:
    class Full:
        def write(self, line: bytes) -> int:
            if written is None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return written

        def close(self) -> None:
            """Nothing to close."""

    monkeypatch.setattr(Journal, "_open", lambda self: Full())
    complaint = run(*SMALL, "--journal", "journal").complaint
    assert "journal cannot be written: No space left on device" in complaint


# ---- interrupted and killed


def begun(*arguments: str) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("seriatim")), "matrix", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def children_of(group: int) -> list[int]:
    """The living processes of a group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def left_of(group: int) -> list[int]:
    """The processes of a group that live on for 20 seconds."""
    until = time.monotonic() + 20
    while (living := children_of(group)) and time.monotonic() < until:
        time.sleep(0.05)
    return living


PUSH = ("push", "--depth", "1", "--universe", "holding")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@linux
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("sent", "jobs"),
    [
        (signal.SIGINT, "2"),
        (signal.SIGTERM, "2"),
        pytest.param(signal.SIGKILL, "2", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "1", marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, "1", marks=pytest.mark.slow),
    ],
)
def test_stopped_it_goes_on_where_it_was(run: Any, sent: signal.Signals, jobs: str) -> None:
    journal = Path("journal")
    process = begun(*PUSH, "--jobs", jobs, "--journal", "journal")
    while lines_of(journal) < 30:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    if sent == signal.SIGKILL:
        process.send_signal(sent)
    else:
        os.killpg(process.pid, sent)  # as a terminal and `timeout` do
    out, err = process.communicate(timeout=60)
    assert left_of(process.pid) == []
    if sent != signal.SIGKILL:
        assert process.returncode == 128 + sent
        assert "Interrupted: the same command goes on." in out
        assert "Traceback" not in err
    kept = lines_of(journal)
    assert kept >= 30
    again = counted(run, "matrix", *PUSH, "--jobs", "1", "--journal", "journal")
    assert kept < lines_of(journal) <= 1 + again["programs"], "no program was run twice"
    assert again == counted(run, "matrix", *PUSH, "--jobs", "1", "--journal", "whole")


@linux
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("sent", "jobs"),
    [
        pytest.param(signal.SIGINT, "1", marks=pytest.mark.slow),
        (signal.SIGINT, "2"),
        (signal.SIGTERM, "2"),
    ],
)
def test_asked_to_stop_while_states_are_found_it_ends(sent: signal.Signals, jobs: str) -> None:
    process = begun("push", "--depth", "9", "--jobs", jobs)
    time.sleep(4)
    assert process.poll() is None
    os.killpg(process.pid, sent)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + sent
    said = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[sent]
    assert err.strip().splitlines()[-1] == f"seriatim: {said}"
    assert "Traceback" not in err
    assert left_of(process.pid) == []


def test_an_item_is_done_program_by_program(run: Any) -> None:
    """So that a kill loses at most the program under way, in one process."""
    from seriatim_models.matrix.plan import plan_universe
    from seriatim_models.matrix.work import perform_here

    programs = plan_universe("two", "push", 0).programs
    batches = list(items("push", programs, 100))
    assert max(len(b.programs) for b in batches) > 1
    results: list[Done] = [d for b in batches for d in do(b)]
    assert [[d] for d in results] == list(perform_here(batches))
