"""What stands in the place of a file that a command reads as a whole, or has an odd name, costs a sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
import rich_click as click

from seriatim_models import files
from seriatim_models.cli import run
from seriatim_models.cli.console import put_within
from seriatim_models.cli.running import run_command
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.ending import Terminated
from seriatim_models.pipeline.audit import chunks
from seriatim_models.pipeline.audit.ingest import locked
from seriatim_models.pipeline.campaign.results import write_tables
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.state_file import read_state, write_state

from .test_hostile_files import BASE

IMPLEMENTATION = ("--python", "queue:Queue")
READS = {
    "audit": ("a.jsonl", ["audit", "FILE"]),
    "lint": ("a.jsonl", ["lint", "FILE"]),
    "show": ("a.json", ["show", "FILE"]),
    "profile": ("p.toml", ["audit", "SOUND", "--profile", "FILE"]),
    "script": ("s.json", ["conform", *IMPLEMENTATION, "--replay", "FILE"]),
    "clients": ("s.json", ["conform", *IMPLEMENTATION, "--schedules", "--replay", "FILE"]),
    "vectors": ("v.json", ["vectors", "consume", "FILE", *IMPLEMENTATION]),
    "journal": ("j", ["matrix", "fair", "--depth", "0", "--jobs", "1", "--journal", "FILE"]),
}
ODD: dict[str, Callable[[Path], object]] = {
    "nested 100,000 deep": lambda p: p.write_bytes(b"[" * 100_000),
    "objects 50,000 deep": lambda p: p.write_bytes(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "a table 100,000 deep": lambda p: p.write_bytes(b"a=" + b"[" * 100_000),
    "zeros": lambda p: p.write_bytes(bytes(100)),
    "no UTF-8": lambda p: p.write_bytes(b"\xff\xfe{}"),
    "a number of 100,000 digits": lambda p: p.write_bytes(b"9" * 100_000),
    "half a character": lambda p: p.write_bytes(b'{"schema":"\\ud800"}'),
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to itself": lambda p: p.symlink_to(p.name),
    "a device without end": lambda p: p.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize(
    ("kind", "odd"),
    # A journal that is not there is begun.
    [(k, o) for k in READS for o in ODD if (k, o) != ("journal", "a link to itself")],
)
def test_what_is_no_document_is_a_sentence(
    kind: str, odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, arguments = READS[kind]
    path, sound = tmp_path / name, tmp_path / "sound.jsonl"
    sound.write_text(BASE)
    ODD[odd](path)
    places = {"FILE": str(path), "SOUND": str(sound)}
    if odd == "a folder" and kind in ("audit", "vectors"):
        places["FILE"] += "/nothing"
    code = run([places.get(a, a) for a in arguments])
    said = capsys.readouterr().err
    assert code == 2, said
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 4, "a sentence, on a narrow terminal in some lines"
    assert str(tmp_path) in said or name in said


@pytest.mark.parametrize("odd", [o for o in ODD if o != "a link to itself"])
def test_what_is_no_state_of_the_pipeline_is_a_sentence(odd: str, tmp_path: Path) -> None:
    for name in ("manifest.json", "run.state"):
        ODD[odd](tmp_path / name)
    with pytest.raises(PipelineError, match=r"manifest\.json: "):
        chunks.read_manifest(tmp_path)
    with pytest.raises(PipelineError, match=r"run\.state: .*; make it anew"):
        read_state(tmp_path / "run.state", "run", int, "make it anew")


def test_a_lock_that_somebody_else_left_is_not_written_through(tmp_path: Path) -> None:
    victim, out = tmp_path / "mine", tmp_path / "out"
    victim.write_text("mine")
    out.mkdir()
    (out / ".lock").symlink_to(victim)
    with pytest.raises(PipelineError, match=r"out/\.lock: is no file of ours"), locked(out):
        pass
    assert victim.read_text() == "mine"
    (out / ".lock").unlink()
    os.mkfifo(out / ".lock")
    with locked(out), pytest.raises(PipelineError, match="another seriatim"), locked(out):
        pass


def test_a_name_that_is_not_utf8_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff.jsonl"
    Path(os.fsdecode(odd)).write_text(BASE)
    assert run(["audit", os.fsdecode(odd)]) == 2
    assert "\\xff.jsonl is not UTF-8" in capsys.readouterr().err
    (tmp_path / "a.jsonl").write_text(BASE)
    assert run(["audit", str(tmp_path), "--json", str(tmp_path / "o.json")]) in (0, 3)
    assert "its name is not UTF-8; rename it" in (tmp_path / "o.json").read_text()


def test_a_name_that_is_too_long_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = str(tmp_path / ("x" * 300))
    (tmp_path / "a.jsonl").write_text(BASE)
    for arguments in (
        ["lint", long], ["audit", long], ["check", long + ".py"], ["learn", "1", "--check", long],
        ["audit", str(tmp_path / "a.jsonl"), "--json", long],
    ):  # fmt: skip
        assert run(arguments) == 2, arguments
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    "arguments",
    [
        ["generate"], ["stream", ".", "--out"], ["campaign", "immediate", "--out"], ["check", "immediate", "--json"],
        ["audit", ".", "--engine", "spark", "--out"], ["matrix", "fair", "--depth", "0", "--campaign"],
        ["show", "published-immediate", "--html"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["/proc/x", "/dev/null/x"])
def test_what_cannot_be_written_is_said_before_the_work(
    arguments: list[str], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Root may write into /proc, says the system, which refuses it then."""
    assert run([*arguments, place]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"seriatim: cannot write {place}: ")
    assert "Errno" not in said.err


def test_saved_verdicts_have_no_exit_code_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "v.json"
    saved = '{"schema":"seriatim-verdicts/1","command":"x","exit_code":%d,"results":[]}'
    path.write_text(saved % 3)
    assert run(["show", str(path)]) == 3
    path.write_text(saved % 99)
    assert run(["show", str(path)]) == 2
    assert "$.exit_code" in capsys.readouterr().err


def test_a_token_without_a_program_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--replay", ":sr1.x"]) == 2
    assert "names the program ''" in capsys.readouterr().err


def test_a_draft_that_somebody_else_left_is_not_written_through(tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "target"
    victim.write_text("mine")
    (tmp_path / f".target.{os.getpid()}.new").symlink_to(victim)
    files.write_whole(target, b"x")
    assert (victim.read_text(), target.read_bytes()) == ("mine", b"x")
    assert not target.is_symlink()


def test_what_the_machine_lacks_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Py4JNetworkError(Exception):
        pass

    class Py4JJavaError(Exception):
        pass

    called = "An error occurred while calling o8.start.\n: java.%s\n\tat x.y\n"
    worker = '\nTraceback (most recent call last):\n  File "seriatim_models/x.py"\nKeyError: 1'
    deleted = tmp_path / "deleted"
    deleted.mkdir()
    monkeypatch.chdir(deleted)
    deleted.rmdir()
    for error, code, sentence in (
        (MemoryError(), 2, "more memory than there is"),
        (OSError(28, "No space left on device", "f"), 2, "f: No space left on device"),
        (FileNotFoundError(2, "No such file or directory"), 2, "has been deleted"),
        (FileNotFoundError(2, "No such file", "f"), 2, "f: No such file"),
        (RuntimeError("can't start new thread"), 2, "more threads and processes than"),
        (BrokenProcessPool("x"), 2, "a process that worked for this one was killed"),
        (
            ImportError("bad install\n\nOriginal error was: x.so: failed to map segment"),
            2,
            "more memory than",
        ),
        (ImportError("cannot import name 'x'"), 70, "a fault of seriatim itself"),
        (RuntimeError("x"), 70, "a fault of seriatim itself"),
        (Py4JNetworkError("x"), 2, "its Java process has ended"),
        (
            Py4JJavaError(called % 'io.IOException: no "chmod"'),
            2,
            'off: java.io.IOException: no "chmod"',
        ),
        (
            Py4JJavaError(called % "lang.OutOfMemoryError: unable to create native thread: x"),
            2,
            "more threads and processes than",
        ),
        (Py4JJavaError(called % "lang.RuntimeException: x" + worker), 70, "a fault of seriatim"),
        (BlockingIOError(11, "Resource temporarily unavailable"), 2, "more threads and processes"),
        (UsageError("wrong"), 2, "wrong"),
        (ValueError("x"), 70, "a fault of seriatim itself"),
    ):

        def fails(error: Exception = error, **_: object) -> int:
            raise error

        monkeypatch.setattr("seriatim_models.cli.app.main", fails)
        assert run(["list"]) == code
        assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "code", "sentence"),
    [
        (EOFError("marshal data too short"), 2, "a module that Python keeps compiled is cut off"),
        (EOFError("Ran out of input"), 70, "a fault of seriatim itself"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_the_end_of_a_file_is_no_interruption(
    raised: BaseException, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Click takes both for Ctrl-C at a prompt."""

    def fails() -> None:
        raise raised

    assert run_command(click.Command("fails", callback=fails), []) == code
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_a_sentence_about_what_an_interrupt_broke_does_not_take_its_place(
    kind: type[BaseException], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a connection that is closed meanwhile, and of which a command says that it broke off."""

    def fails() -> None:
        try:
            try:
                raise kind
            except BaseException:
                raise OSError(5, "closed")  # noqa: B904 - as a library does
        except OSError as error:
            raise UsageError("it broke off") from error

    assert run_command(click.Command("fails", callback=fails), []) == code
    assert "broke off" not in capsys.readouterr().err


def test_a_timeline_of_several_runs_or_a_folder_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = '{"i": %d, "t": %d, "ev": "publish", "q": "q", "m": "m%d", "run": "%s"}\n'
    path = tmp_path / "two.jsonl"
    path.write_text(
        '{"schema": "qh/1"}\n' + "".join(line % (n, n, n, "ab"[n % 2]) for n in range(4))
    )
    for words in (["--timeline", f"{tmp_path}/t.html"], ["--svg", f"{tmp_path}/t.svg"]):
        assert run(["show", str(path), *words]) == 2
        assert "holds 2 runs (a, b)" in capsys.readouterr().err
        assert run(["show", str(tmp_path), *words]) == 2
        assert "is a folder, and show takes one recording" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["two.jsonl"]


OF_OURS: dict[str, Callable[[Path], object]] = {
    "manifest.json": lambda folder: chunks.write_manifest(folder, chunks.Manifest([])),
    "a.state": lambda folder: write_state(folder / "a.state", "run", 1),
    "results.parquet": lambda folder: write_tables(folder, [], {}),
    "planted.json": lambda folder: files.write_whole(folder / "planted.json", b"", ours=True),
}


def test_what_is_no_file_in_a_folder_of_ours_is_not_written_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe there was waited for, for ever."""
    os.mkfifo(tmp_path / "21-close-all.json")
    assert run(["vectors", "fill", "--folder", str(tmp_path)]) == 2
    assert "21-close-all.json: what is there is no file; remove it" in capsys.readouterr().err
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b" / "index.html")
    with pytest.raises(UsageError, match="what is there is no file"):
        put_within(tmp_path / "b", "index.html", b"x")
    for name, write in OF_OURS.items():
        os.mkfifo(tmp_path / name)
        with pytest.raises(OSError, match="what is there is no file; remove it"):
            write(tmp_path)
