"""What a command writes is whole or not there: a full disk, an error and a signal leave the file of before."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.cli.console import put
from seriatim_models.conformance import profiles
from seriatim_models.files import whole_file, write_whole
from seriatim_models.history import Event, HistoryError, read_history, write_history

from .test_ends import COMMAND, DATA
from .test_hostile_files import BASE

WRITES = {
    "json": ["audit", "SHORT", "--json", "OLD"],
    "html": ["audit", "SHORT", "--html", "OLD"],
    "junit": ["audit", "SHORT", "--junit", "OLD"],
    "svg": ["show", "published-immediate", "--svg", "OLD"],
    "generate": ["generate", "FOLDER", "--events", "20000", "--format", "parquet"],
    "generate as lines": ["generate", "FOLDER", "--events", "20000", "--format", "jsonl"],
}
ROOM = 512  # bytes that a file may have where the disk is "full"


@pytest.mark.slow
@pytest.mark.parametrize("what", WRITES)
def test_a_full_disk_leaves_the_old_file(what: str, tmp_path: Path) -> None:
    """The limit on the length of a file stands for the disk: writing beyond it is an error of the system."""
    old, folder, short = tmp_path / "x", tmp_path / "made", tmp_path / "short.jsonl"
    old.write_bytes(b"what was there before")
    folder.mkdir()
    recorded = read_history(DATA / "rabbit-classic-lockstep.jsonl.gz")
    write_history(short, recorded.events[:200], recorded.header)
    places = {"OLD": str(old), "FOLDER": str(folder), "SHORT": str(short)}
    ended = subprocess.run(
        [*COMMAND, *(places.get(a, a) for a in WRITES[what])],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # else Python keeps half of a module
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM)),
    )
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("seriatim: ")
    assert old.read_bytes() == b"what was there before"
    assert {p.name for p in tmp_path.rglob("*")} == {"x", "made", "short.jsonl"}


def test_a_signal_leaves_no_half_a_file(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "generate", str(tmp_path), "--events", "400000", "--format", "jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not list(tmp_path.iterdir()):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_events_are_written_leaves_the_old_recording(tmp_path: Path) -> None:
    def broken() -> object:
        yield Event(i=1, ev="note")
        raise HistoryError("the source ended")

    for suffix in ("jsonl", "jsonl.gz", "jsonl.zst", "parquet"):
        path = tmp_path / f"a.{suffix}"
        write_history(path, [Event(i=1, ev="note")])
        before = path.read_bytes()
        with pytest.raises(HistoryError, match="the source ended"):
            write_history(path, broken())  # type: ignore[arg-type]  # a generator
        assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 4


def test_links_modes_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    put(str(link), b"new")
    assert link.is_symlink()
    assert (real.read_bytes(), real.stat().st_mode & 0o777) == (b"new", 0o640)
    write_whole(Path(os.devnull), b"x")
    assert Path(os.devnull).is_char_device()
    fresh = tmp_path / "fresh"
    mask = os.umask(0o027)
    try:
        write_whole(fresh, b"x")
    finally:
        os.umask(mask)
    assert fresh.stat().st_mode & 0o777 == 0o640

    def interrupted() -> None:
        with whole_file(real) as draft:
            draft.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert real.read_bytes() == b"new"
    assert {p.name for p in tmp_path.iterdir()} == {"real", "link", "fresh"}


def test_nothing_is_written_over_what_is_read_or_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An audit once put its verdicts in the place of the recording."""
    path, link = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text('{"schema":"qh/1"}\n{"i":1,"ev":"note"}\n')
    link.symlink_to(path)
    before, x = path.read_bytes(), str(tmp_path / "x")
    for command in (
        ["audit", path, "--json", path], ["audit", link, "--html", path], ["lint", path, "--json", link],
        ["audit", path, "--shrink", path], ["show", path, "--svg", path], ["show", path, "--html", path],
        ["audit", path, "--html", x, "--json", x], ["check", "immediate-race", "--html", x, "--junit", x],
    ):  # fmt: skip
        assert run([str(word) for word in command]) == 2, command
        assert "too; choose another name to write to" in capsys.readouterr().err
        assert (path.read_bytes(), Path(x).exists()) == (before, False)


@pytest.mark.parametrize("number", ["nan", "inf", "1e400", "0"])
def test_a_time_that_never_ends_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "immediate-race", "--budget", number]) == 2
    assert run(["conform", "--python", "queue:Queue", "--seconds", number]) == 2
    assert capsys.readouterr().err.count("--budget") == 1


PROFILE = Path(str(profiles.__file__)).with_name("kafka.toml").read_bytes()
TEST = b"def test_nothing():\n    pass\n"
SCRIPT = b'{"schema":"seriatim-script/1","steps":[{"op":"publish","q":"q","m":"a"}]}'
OVER = {
    "a.jsonl": ("audit a.jsonl --json a.jsonl", BASE.encode()),
    "there/a.jsonl": ("audit there --json there/a.jsonl", BASE.encode()),
    "b.jsonl": ("audit a.jsonl b.jsonl --shrink b.jsonl", BASE.encode()),
    "link.jsonl": ("show a.jsonl --timeline link.jsonl", b""),
    "p.toml": ("audit a.jsonl --profile p.toml --html p.toml", PROFILE),
    "p.py": ("audit a.jsonl --property p.py:X --junit p.py", TEST),
    "q.py": ("audit a.jsonl --property q:X --junit q.py", TEST),
    "test_a.py": ("check test_a.py --json test_a.py", TEST),
    "test_b.py": ("check test_b.py::test_nothing --html test_b.py", TEST),
    "s.json": ("conform --python queue:Queue --replay s.json --json s.json", SCRIPT),
    "mine.py": ("conform --python mine:Queue --json mine.py", TEST),
    "x.toml": ("conform --exec x --system x.toml --json x.toml", TEST),
    "y.toml": ("record --exec x --system y.toml --out y.toml", TEST),
    "v/1.json": ("vectors consume --folder v --python queue:Queue --json v/1.json", SCRIPT),
    "j": ("matrix fair --depth 0 --journal j --json j", b""),
    "d": ("demo fair --json d --svg d", b""),
}


@pytest.mark.parametrize("name", OVER)
def test_what_is_read_is_not_written_over(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    command, content = OVER[name]
    Path("a.jsonl").write_text(BASE)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if name.startswith("link"):
        path.symlink_to("a.jsonl")
        content = BASE.encode()
    else:
        path.write_bytes(content)
    assert run(shlex.split(command)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{name} is {'written' if name in 'jd' else 'read'} too; choose another name" in said
    assert path.read_bytes() == content


def test_what_was_written_beside_recordings_may_be_written_again(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(BASE)
    for _ in range(2):
        assert run(["audit", str(tmp_path), "--json", f"{tmp_path}/verdicts.json"]) in (0, 3)
