"""Programs that several clients use at once: the examples are right, and hostile ones leave a history and nobody."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.history import read_history
from seriatim_models.supervisor import SUPERVISED

from .conftest import SPEC

Program = Callable[[str], str]


def recorded(command: str, path: Path, *options: str) -> int:
    """The exit code of `seriatim record` of a program."""
    words = ["--clients", "3", "--seconds", "0.5", "--out", str(path), *options]
    return run(["record", "--exec", command, *words])


def example_of(suffix: str, folder: Path) -> str:
    """The command of an example, or skips where its language is not installed."""
    source = SPEC / f"clients.{suffix}"
    if suffix == "py":
        return shlex.join([sys.executable, str(source)])
    tool = {"js": "node", "go": "go"}[suffix]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    if suffix == "js":
        return shlex.join([tool, str(source)])
    built = folder / "clients"
    subprocess.run([tool, "build", "-o", built, source], check=True, cwd=folder)
    return str(built)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["py", "js", "go"])
def test_the_examples_are_right(suffix: str, tmp_path: Path) -> None:
    """What strict-qpid promises has cases of loss and order, and none is broken."""
    path = tmp_path / "run.jsonl"
    command = example_of(suffix, tmp_path)
    assert recorded(command, path) == 0
    assert len(read_history(path).events) > 100
    assert run(["audit", str(path), "--engine", "local", "--profile", "strict-qpid"]) == 0
    assert run(["conform", "--exec", command, "--self-test"]) == 0


PREAMBLE = """
import json, os, signal, sys, time
def say(**words):
    print(json.dumps(words), flush=True)
def requests():
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "hello":
            say(id=request["id"], ok=True, protocol="seriatim-conform/2", can=["publish", "get", "autoack"])
        else:
            yield request
for n, request in enumerate(requests()):
    number = request["id"]
    if n < 30:
        say(id=number, ok=True)
        continue
"""
"""Loses every message, rightly answered; what follows it is what it does from the 31st request on."""

FORKS = """
    if not os.fork():
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(sys.argv[0] + ".pid", "w").write(str(os.getpid()))
        time.sleep(1e6)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True: time.sleep(1)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("then", "sentence"),
    [
        ("    time.sleep(1e6)", "no answer to"),
        ("    say(id=number, ok=True); say(id=number, ok=True)", "is answered already"),
        ("    say(id=number + 10**6, ok=True)", "was not asked or is answered already"),
        ("    say(id='x', ok=True)", "answered 'x', which was not asked"),
        ("    while True: say(ev='deliver', ch=request.get('ch'), m='m', dtag=1)", "pushed more than 10,000"),
        ("    while True: sys.stdout.write('x' * 4096)", "line longer than 65,536 bytes"),
        ("    print('Hello!', flush=True)", "no JSON object"),
        ("    say(ev='deliver', ch=999, m='m', dtag=1)", "on channel 999, which nobody opened"),
        ("    raise SystemExit('no luck')", "exit code 1; the end of its standard error: no luck"),
        ("    os.kill(os.getpid(), signal.SIGKILL)", "killed by signal 9"),
        ("    say(id=number, ok='yes')", "Expected `bool`, got `str`"),
        ("    say(id=number, error='full')", "`ok` is missing"),
        ("    sys.stderr.write('Error: no luck\\n    at f\\nRuntime 2.0'); sys.exit(1)", "error: Error:"),
    ],
)  # fmt: skip
def test_hostile_programs_end_in_one_sentence_and_the_history_is_kept(
    then: str, sentence: str, program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", "1000")  # the path may be long
    path = tmp_path / "run.jsonl"
    patience = "1" if "no answer" in sentence else "30"
    assert recorded(program(PREAMBLE + then), path, "--patience", patience) == 1
    assert sentence in capsys.readouterr().out
    history = read_history(path)
    assert not history.quarantine
    assert sum(e.ph == "ok" for e in history.events) >= 25


@pytest.mark.skipif(not SUPERVISED, reason="there is no subreaper here")
def test_one_that_forks_and_ignores_signals_leaves_nobody(program: Program, tmp_path: Path) -> None:
    command = program(PREAMBLE + FORKS)
    assert recorded(command, tmp_path / "run.jsonl", "--patience", "1") == 1
    hidden = int(Path(command.split()[-1] + ".pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(hidden, 0)


def test_one_that_cannot_be_started_is_bad_usage(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert recorded("/nowhere/at/all", path) == 2
    assert not path.exists()


PLANTED = """
import time

class Peeks:
    def __init__(self):
        self.items = []
    def put(self, m):
        self.items.append(m)
    def get(self, block=False):
        if not self.items:
            return None
        m = self.items[0]
        time.sleep(0)
        try:
            self.items.remove(m)
        except ValueError:
            pass
        return m

class Hangs(Peeks):
    def get(self, block=False):
        while len(self.items) > 20:
            time.sleep(1)
        return super().get()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("Peeks", 0), ("Hangs", 1)])
def test_an_object_of_python_is_called_by_threads(
    name: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A duplicate that only two getters show is found; one that hangs keeps its history."""
    (tmp_path / "planted_for_clients.py").write_text(textwrap.dedent(PLANTED))
    monkeypatch.chdir(tmp_path)
    factory = f"planted_for_clients:{name}"
    words = ["--clients", "3", "--seconds", "1", "--patience", "1", "--out", "run.jsonl"]
    assert run(["record", "--python", factory, *words]) == code
    judged = run(["audit", "run.jsonl", "--engine", "local"])
    if name == "Peeks":
        assert judged == 1
    else:
        assert sum(e.ev == "publish" for e in read_history("run.jsonl").events) > 20


def test_it_is_said_that_threads_of_an_object_meet_by_chance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["conform", "--python", "queue:Queue", "--clients", "2", "--seed", "1"]
    assert run([*words, "--scripts", "3", "--out", str(tmp_path)]) in (0, 3)
    assert "--schedules runs small clients under every schedule" in capsys.readouterr().out


@pytest.mark.slow
def test_clients_of_one_that_never_answers_end_in_time(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of fifteen tries of the smallest ones waited as long as patience lasts."""
    command = program(PREAMBLE.replace("n < 30", "request['op'] != 'get'") + "    time.sleep(1e6)")
    bounds = ["--clients", "2", "--seconds", "2", "--patience", "2", "--out", str(tmp_path / "c")]
    assert run(["conform", "--exec", command, *bounds]) == 1
    assert "again in 3 of 3 runs" in capsys.readouterr().out
