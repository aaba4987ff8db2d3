"""A short slice of `make fuzz`, and the corpus of what once failed."""

from __future__ import annotations

import json
import random
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from seriatim_models.cli import app
from seriatim_models.files import sealed
from seriatim_models.pipeline.audit.findings import AuditReport
from seriatim_workshop import fuzz, fuzz_commands, fuzz_formats, fuzz_kept, fuzz_surroundings
from seriatim_workshop.fuzz_surroundings import ProcessEnd, ProcessSurroundings


def test_mutated_recordings_end_as_declared(tmp_path: Path) -> None:
    assert fuzz.fuzz(600.0, seed=20, corpus=tmp_path, most=25) == []
    assert [why for p in fuzz.kept_cases(fuzz.CORPUS) if (why := fuzz.ended(p))] == []


def test_a_case_is_made_again_by_its_number() -> None:
    valid = fuzz.recordings()
    made = [fuzz.case(n, valid) for n in range(30)]
    assert made == [fuzz.case(n, valid) for n in range(30)]
    assert len(set(made)) == 30


def test_every_format_is_among_the_cases() -> None:
    valid = fuzz.recordings()
    made = {fuzz.case(n, valid)[0] for n in range(300)}
    assert made == {
        *("jsonl", "jsonl.gz", "jsonl.zst", "edn", "jepsen.jsonl", "otlp.json", "parquet"),
        *("token", "profile.toml", "manifest.json", "script.json", "vector.json", "observed.json"),
        *("clients.json", "verdicts.json", "journal.jsonl"),
    }


def test_documents_that_are_kept_are_read(tmp_path: Path) -> None:
    """The valid ones are valid: else nothing but their first fault would be tried."""
    for kind, (valid, read) in fuzz_formats.DOCUMENTS.items():
        if kind in ("journal.jsonl", "clients.json"):
            continue  # made of results and commands; their first lines and fields are what is valid
        path = tmp_path / kind
        path.write_text(json.dumps(valid))
        assert read(path) is not None, kind


def test_accounts_that_differ_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    path = fuzz.CORPUS / fuzz.RECORDING
    assert fuzz_formats.engines_differ(path) == ""
    local = fuzz_formats._by_local

    def loses_a_line(path: Path, folder: Path) -> AuditReport:
        report = local(path, folder)
        return msgspec.structs.replace(
            report, statistics={**report.statistics, "lines": report.statistics["lines"] - 1}
        )

    monkeypatch.setattr(fuzz_formats, "_by_local", loses_a_line)
    assert "statistics" in fuzz_formats.engines_differ(path)


def test_what_fails_is_reported_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "run", lambda _: 70)
    (fault,) = fuzz.fuzz(600.0, seed=1, corpus=tmp_path, most=1)
    (kept,) = tmp_path.iterdir()
    assert fault.startswith(f"{kept}: ")
    assert len(fuzz.fuzz(600.0, seed=1, corpus=tmp_path, most=0)) == 1, "the corpus is tried first"


def test_command_lines_end_as_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of other kinds, that contradict each other, with files of other kinds."""
    monkeypatch.chdir(tmp_path)
    files = fuzz_commands.in_folder(tmp_path / "odd")
    choose = random.Random(20)
    wrong, used = [], set()
    for _ in range(60):
        line = fuzz_commands.command_line(choose, files)
        used.add(line[0])
        code, errors = fuzz._ran(line)
        if why := fuzz_commands.fault(line, code, errors):
            wrong.append(why)
    assert wrong == []
    assert used == set(fuzz_commands.BOUNDED)


@pytest.mark.parametrize(
    ("code", "errors", "wrong"),
    [
        (0, "", ""),
        (2, "seriatim: no", ""),
        (70, "KeyError", "exit code 70"),
        (2, "Traceback (most", "a traceback"),
        (2, "", "without a sentence"),
    ],
)
def test_a_command_line_that_ends_otherwise_is_a_fault(code: int, errors: str, wrong: str) -> None:
    assert wrong in fuzz_commands.fault(["lint"], code, errors)
    assert bool(wrong) == bool(fuzz_commands.fault(["lint"], code, errors))


def test_damaged_folders_end_as_declared() -> None:
    """Those that are kept without Spark; `make fuzz` and `make test-slow` have no session to share with them."""
    assert fuzz_kept.fuzz(600.0, seed=2, names=["journal"], most=8) == []


@pytest.mark.parametrize("how", sorted(fuzz_kept.DAMAGES))
def test_each_damage_is_one_and_is_seen_in_its_words(tmp_path: Path, how: str) -> None:
    """What is damaged differs afterwards, and a case is made again by its number."""
    raw = b'{"schema":"x/1","a":[1,2,{"b":"c"}]}\n'
    if how.startswith("forged"):  # by somebody who knows the format: what has none stays as it is
        raw = b"".join(sealed({"part": n, "verdict": "ok"}) for n in range(8))
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(raw + name.encode())
    files = sorted(tmp_path.iterdir())
    before = {path: path.read_bytes() for path in files}
    (tmp_path / "a.json").write_bytes(raw)
    before[files[0]] = raw
    fuzz_kept.DAMAGES[how](random.Random(1), files[0], files[1:])
    there = {path for path in files if path.is_file() and not path.is_symlink()}
    assert there != set(files) or any(path.read_bytes() != before[path] for path in files)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_commands_in_odd_surroundings_end_as_declared() -> None:
    assert fuzz_surroundings.fuzz(900.0, seed=2, most=12) == []


def test_every_command_is_drawn() -> None:
    drawn = fuzz_commands.BOUNDED.keys() | fuzz_commands.BOUNDED_OF_ITS_OWN.keys()
    assert drawn == {name for name, command in app.commands.items() if not command.hidden}
    leaves = [*fuzz_commands.COMMANDS, *fuzz_commands.OF_ITS_OWN]
    assert {words[0] for words, _ in leaves} == drawn


USUAL = ProcessSurroundings({}, {}, None, (), {}, "here", None)
STOPPED = USUAL._replace(ended=(signal.SIGTERM, 1.0))
DEAF = USUAL._replace(streams={2: "closed"})


@pytest.mark.parametrize(
    ("process", "found", "usual", "wrong"),
    [
        (ProcessEnd(0, "", "", True), USUAL, None, ""),
        (ProcessEnd(2, "", "seriatim: no", True), USUAL, 0, ""),
        (ProcessEnd(143, "", "", True), STOPPED, 0, ""),
        (ProcessEnd(2, "", "", True), DEAF, 0, ""),
        (ProcessEnd(0, "", "", False), USUAL, None, "did not end"),
        (ProcessEnd(1, "", "", True), USUAL, 0, "exit code 1"),
        (ProcessEnd(143, "", "", True), USUAL, 0, "exit code 143"),
        (ProcessEnd(139, "", "", True), USUAL, None, "exit code 139"),
        (ProcessEnd(2, "Traceback", "seriatim: no", True), USUAL, 0, "a traceback"),
        (ProcessEnd(2, "", "what", True), USUAL, 0, "without a sentence"),
    ],
)
def test_a_process_that_ends_otherwise_is_a_fault(
    process: ProcessEnd, found: ProcessSurroundings, usual: int | None, wrong: str
) -> None:
    why = fuzz_surroundings.fault(process, found, usual)
    assert wrong in why
    assert bool(wrong) == bool(why)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system has no /proc")
@pytest.mark.parametrize("how", fuzz_surroundings.STREAMS)
@pytest.mark.parametrize("number", range(3))
def test_each_stream_is_what_was_drawn(number: int, how: str, tmp_path: Path) -> None:
    """Else what is drawn would be tried under another name; a process says it of its own streams."""
    script = """
import os, sys
def seen(n):
    try:
        return os.readlink(f"/proc/self/fd/{n}")
    except OSError:
        return "closed"
said = ",".join(map(seen, range(3)))
open(sys.argv[1], "w").write(said)
"""
    found = USUAL._replace(streams={number: how})
    command = [sys.executable, "-c", script, str(tmp_path / "seen")]
    fuzz_surroundings.ended(command, found, tmp_path, "x", 60)
    seen = (tmp_path / "seen").read_text().split(",")[number]
    device = {"null": "/dev/null", "full": "/dev/full", "closed": "closed"}
    assert seen == device.get(how, seen)
    assert seen.startswith({"broken": "pipe:"}.get(how, ("/", "closed")))
