"""Mistakes that are no fault of seriatim: a sentence within the columns and exit code 2. What is written is named."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.conformance.profiles import ORACLE

ROOT = Path(__file__).resolve().parents[2]
JARS = ROOT / "models" / "seriatim_workshop" / "systems" / "described" / "artemis.toml"
COUNTER = ROOT / "spec" / "own" / "test_counter.py"

FILES = {
    "empty": b"",
    "binary": bytes(range(256)) * 4,
    "syntax.py": b"def f(:\n",
    "exits.py": b"import sys\nsys.exit(3)\n",
    "exits_inside.py": b"import os\ndef test_it():\n    os._exit(3)\n",
    "words.py": b"class Words: pass\n",
    "no_test.py": b"x = 1\n",
    "skips.py": b"import pytest\ndef test_it():\n    pytest.skip('not here')\n",
    "skips_at_times.py": b"""\
import threading, unittest
def test_it():
    lock, seen = threading.Lock(), []
    def work():
        with lock:
            seen.append(1)
    thread = threading.Thread(target=work)
    thread.start()
    with lock:
        late = len(seen)
    if late:
        raise unittest.SkipTest('too late')
    thread.join()
""",
    "made_with.py": b"class TestIt:\n    def __init__(self, x): pass\n    def test_it(self): pass\n",
    "rule.py": b"""\
from seriatim_models.properties.base import WholeHistory
class Rule(WholeHistory):
    id, sentence, source, kind = "X1", "a sentence", "a source", "safety"
    reads = frozenset({"publish"})
    def cases(self, events, bad): return 1 / 0
""",
    "imports_nothing.py": b"import nowhere_at_all\ndef test_it():\n    pass\n",
    "fails_in_library.py": b"import json\nX = json.loads('[')\ndef test_it():\n    pass\n",
    "fails_in_module.py": b"def test_it():\n    pass\nraise ValueError('two\\nlines')\n",
    "exits_in_module.py": b"import sys\nsys.exit(3)\ndef test_it():\n    pass\n",
    "jars.toml": JARS.read_bytes(),
    "verdicts.json": b'{"schema":"seriatim-verdicts/1","command":"x","exit_code":0,"results":[]}',
    "within.toml": b'format="seriatim-profile/1"\nid="x"\ntitle="x"\ncore=[]\n'
    + b"".join(
        b'[[promise]]\nproperty="%s"\nsource="x"\n' % p.id.encode()
        + b"within=inf\n" * (p.id == "P14")
        for p in ORACLE
    ),
}

MISTAKES = {
    "check nowhere.py": "there is no file",
    "check syntax.py": "is no Python",
    "check no_test.py": "has no function whose name begins with test",
    "check no_test.py::test_it": "has no function whose name begins with test",
    "check skips.py": "test_it skips itself: not here",
    "check skips_at_times.py": "skips itself under some schedules and not under others (too late)",
    "check made_with.py": "TestIt.__init__ has the parameter x",
    "audit ''": "'' names no file",
    "audit {day} --property :X": "a property is named module:Name or file.py:Name",
    "audit {day} --property rule.py:Rule": "rule.py, line 5, in cases of a property of yours: ZeroDivisionError",
    "show {day} --profile nothing": "there is no profile 'nothing'",
    "show {day} --json other": "--json is for an interleaving",
    "show {day} --junit other": "judges it",
    "show verdicts.json --html other": "verdicts.json holds saved verdicts",
    "show {day} --svg other --between 0:1e300": "two numbers of seconds",
    "audit {day} --profile within.toml": "P14: within: inf is no number of seconds",
    "check two-takers --budget 1e300": "1e+300 is more than 1e+09 seconds",
    "check two-takers --jobs 100000000": "is not in the range",
    "conform --python queue:Queue --patience 1e300": "more than 1e+09 seconds",
    "conform --amqp amqp://127.0.0.1:1/ --queue-argument x=--5": "127.0.0.1:1",
    "conform --amqp amqp://127.0.0.1:1/ --queue-argument x=\u00b2": "127.0.0.1:1",
    "record --python queue:Queue --out other --rate 1e-300": "1e-300 is less than 1e-06",
    "generate other --seed -1": "-1 is less than 0",
    "generate other --each 100000000000": "is not in the range",
    "generate other --hot nan": "nan is no number",
    "demo fair --jitter nan": "nan is no number",
    "campaign --out other --memory 9999999999999999999": "is not in the range",
    "demo fair --svg folder": "cannot write folder: Is a directory",
    "check exits_inside.py": "os._exit is outside the model",
    "check two-takers --json folder": "cannot write folder",
    "check two-takers --junit folder": "cannot write folder",
    "check two-takers --replay x": "choose one",
    "check --mutant nothing-like-it-at-all": "there is no mutant",
    "audit nowhere": "no such file",
    "audit folder": "no history there",
    "audit empty": "the file is empty",
    "audit binary": "not a history",
    "audit {day} --property exits.py:X": "exits.py, line 2: SystemExit: 3",
    "audit {day} --property syntax.py:X": "syntax.py, line 1",
    "audit {day} --property words.py:Words": "is no Property",
    "audit {day} --property words.py:Other": "defines no 'Other'",
    "audit {day} --profile nothing": "there is no profile",
    "lint folder": "is a folder",
    "lint binary": "not a history",
    "show binary": "not a history",
    "show folder": "is a folder, and show takes one recording",
    "conform --exec ''": "the command is empty",
    "conform --exec nowhere": "nowhere: cannot be started",
    "conform --exec true": "ended with exit code 0",
    "conform --python nowhere:X": "cannot be imported",
    "conform --python queue:Queue --out empty": "it is a file, and a folder is needed",
    "vectors consume {vectors} --exec nowhere": "nowhere: cannot be started",
    "bugs --out empty": "it is a file, and a folder is needed",
    "campaign --out empty": "it is a file, and a folder is needed",
    "learn 99": "there is no chapter 99",
    "learn 1 --check syntax.py": "syntax.py, line 1",
    "learn 1 --check binary": "whose name ends in .py",
    "learn 1 --start empty": "exists already",
    "learn 1 --hint 99": "has hints 1 to",
    "explain nothing-like-it-at-all": "there is no such name",
    "matrix pull --depth 0 --pair nothing": "",
    "matrix pull --campaign empty": "it is a file, and a folder is needed",
    "check imports_nothing.py": "cannot be imported: No module named 'nowhere_at_all'",
    "check fails_in_library.py": "cannot be imported: fails_in_library.py:2: JSONDecodeError",
    "check fails_in_module.py": "cannot be imported: fails_in_module.py:3: ValueError: two lines",
    "check exits_in_module.py": "cannot be imported: exits_in_module.py:2: SystemExit: 3",
    "stream folder --out other --lateness nan": "nan is no number of seconds",
    "stream folder --out other --idle inf": "inf is no number of seconds",
    "stream folder --out other --every nan": "nan is no number of seconds",
    "stream folder --out empty": "it is a file, and a folder is needed",
    "stream folder --out loop": "loop': a link that leads to itself",
    "learn 1 --check loop": "loop': a link that leads to itself",
    "generate empty --events 10": "it is a file, and a folder is needed",
    "generate other --events 10 --plant none --plant P1": "for no violation at all",
    "conform --amqp nowhere": "amqp://USER:PASSWORD@HOST:PORT/ is one",
    "conform --system jars.toml --exec cat": "`make conform` installs",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize("command", MISTAKES)
def test_rejects_a_mistake_in_a_sentence(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    day = ROOT / "tests" / "data" / "rabbit-classic-lockstep.jsonl.gz"
    words = command.format(day=day, vectors=f"--folder {ROOT / 'spec' / 'vectors'}")
    assert run(shlex.split(words)) == 2
    said = capsys.readouterr().err
    assert MISTAKES[command] in " ".join(said.split())
    assert "Traceback" not in said
    assert "fault of seriatim" not in said
    assert [line for line in said.splitlines() if len(line) > 80 and " " in line.strip()] == []


def test_a_test_that_exits_has_failed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was "nothing was wrong": `sys.exit` ended the test, and what is behind it was never tested."""
    test = folder / "exits_early.py"
    test.write_text(
        COUNTER.read_text().replace("    assert ", "    raise SystemExit(3)\n    assert ")
    )
    assert run(["check", str(test)]) == 1
    assert "main raised SystemExit: 3" in capsys.readouterr().out


def seriatim(*words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    command = "import sys; from seriatim_models.cli import main; main(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", command, *words], capture_output=True, env={**os.environ, **env}
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_the_character_loses_none(encoding: str) -> None:
    ran = seriatim("learn", "1", PYTHONIOENCODING=encoding)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert rb"\u201cStrict Ordering\u201d" in ran.stdout


def test_a_closed_standard_output_is_none_of_its_business(tmp_path: Path) -> None:
    page = tmp_path / "lesson.html"
    command = "import sys; from seriatim_models.cli import main; main(sys.argv[1:])"
    words = shlex.join([sys.executable, "-c", command, "learn", "1", "--html", str(page)])
    ran = subprocess.run(["sh", "-c", f"{words} >&-"], stderr=subprocess.PIPE, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert page.read_text().lstrip().startswith("<!doctype html>")


@pytest.mark.parametrize(
    "command",
    [
        "check two-takers --json {0}.json --html {0}.html --junit {0}.xml",
        f"check {COUNTER} --json {{0}}.json --html {{0}}.html",
        "show published-immediate --svg {0}.svg --html {0}.html --json {0}.json",
        "list mutants --json {0}.json",
        "learn 1 --html {0}.html",
        "learn 1 --notebook {0}.ipynb",
        "learn 1 --start {0}.py",
        "matrix fair --depth 0 --json {0}.json --html {0}.html",
        "conform --python queue:Queue --scripts 2 --seed 1 --out {0} --json {0}.json",
    ],
)
def test_every_file_that_is_written_is_named(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path for path in folder.rglob("*") if path.is_file()}
    assert run(shlex.split(command.format("made"))) in (0, 1, 3)
    made = {p for p in folder.rglob("*") if p.is_file() and "build" not in p.parts} - before
    said = capsys.readouterr().out
    assert made
    assert [path for path in made if str(path.relative_to(folder)) not in said] == []


@pytest.mark.parametrize("command", ["learn", "check two-takers", "list mutants published -v"])
@pytest.mark.parametrize("columns", ["20", "40"])
def test_no_cell_is_cut_on_a_narrow_terminal(
    command: str, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run(command.split()) == 0
    said = capsys.readouterr().out
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= int(columns)
