"""What whoever begins the command leaves it: closed streams, ignored signals, no files, no memory, odd variables."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.supervisor import SUPERVISED, supervised

DATA = Path(__file__).parent.parent / "data"
Ended = subprocess.CompletedProcess[str]
START = "from seriatim_models import start; "
REFUSING = """
import sys
import seriatim_models.start as start

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name == "seriatim_models.cli":
            raise {}

sys.meta_path.insert(0, Refusing())
start.main()
"""


def ended(
    code: str, *arguments: str, before: Callable[[], object] | None = None, **variables: str
) -> Ended:
    """How a process ends that runs this code."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        preexec_fn=before,
        env=os.environ | variables,
    )


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        ("OSError(24, 'Too many open files')", 2, "cannot be loaded: [Errno 24] Too many open"),
        ("MemoryError()", 2, "cannot be loaded: MemoryError"),
        ("ImportError('no room for libx.so\\nmore')", 2, "cannot be loaded: no room for libx.so"),
        ("DeprecationWarning('old')", 2, "cannot be loaded: old"),
        ("ValueError('x')", 70, "ValueError: x"),
    ],
)
def test_what_cannot_be_loaded_is_no_verdict(error: str, code: int, said: str) -> None:
    """Python would end with 1, which means that a property is violated."""
    process = ended(REFUSING.format(error))
    assert process.returncode == code, process.stderr
    assert said in process.stderr.splitlines()[-1]
    assert ("Traceback" in process.stderr) == (code == 70)


def test_without_files_the_command_is_a_sentence() -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); "
    process = ended(START + limit + "start.main()", "--help")
    assert process.returncode == 2, process.stderr
    assert process.stderr.startswith("seriatim: cannot be loaded: ")
    assert len(process.stderr.splitlines()) == 1


def test_nothing_is_opened_in_the_place_of_a_closed_stream() -> None:
    """What is said would be written into it."""
    script = "start.hold_standard_streams(); import os; os._exit(os.open(os.devnull, os.O_RDONLY))"
    for closed in ([0], [1], [2], [0, 2], [0, 1, 2]):

        def close(numbers: list[int] = closed) -> None:
            for number in numbers:
                os.close(number)

        process = ended(START + script, before=close)
        assert process.returncode > 2, closed


@pytest.mark.parametrize(("how", "code"), [("leave(130)", 130), ("in_a_word(*given)", 143)])
def test_an_interruption_keeps_its_code_without_standard_error(how: str, code: int) -> None:
    script = (
        f"from seriatim_models.ending import *; given = (Terminated, Terminated(), None); {how}"
    )
    assert ended(script, before=lambda: os.close(2)).returncode == code


@pytest.mark.skipif(not SUPERVISED, reason="there is no subreaper here")
def test_how_a_child_ended_is_known_where_its_end_was_ignored() -> None:
    """As behind a shell's ``trap '' CHLD``: the system then says of no child how it ended."""
    process = subprocess.run(
        supervised(["sh", "-c", "exit 3"]),
        timeout=100,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    assert process.returncode == 3
    script = (
        "import subprocess as s, sys; from seriatim_models.cli.running import checked_process; "
        "checked_process(); sys.exit(s.run(['sh', '-c', 'exit 3']).returncode)"
    )
    ignored = ended(script, before=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert ignored.returncode == 3


@pytest.mark.parametrize(
    ("columns", "kept"),
    [("80", "80"), ("999999999", ""), ("-1", ""), ("", ""), ("\uff11\uff12", "")],
)
def test_a_width_that_no_terminal_has_is_forgotten(
    columns: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of a billion characters was drawn."""
    from seriatim_models.cli.running import forget_odd_sizes

    monkeypatch.setenv("COLUMNS", columns)
    forget_odd_sizes()
    assert os.environ.get("COLUMNS", "") == kept


@pytest.mark.parametrize("command", ["check immediate --json v.json", "record --out r.jsonl"])
def test_a_deleted_folder_is_a_sentence(command: str, tmp_path: Path) -> None:
    """The sentence itself failed, at the name of a file in no folder: exit code 1, as of a violation."""
    folder = tmp_path / "folder"
    folder.mkdir()

    def delete() -> None:
        os.chdir(folder)
        folder.rmdir()

    process = ended(START + "start.main()", *command.split(), before=delete)
    assert process.returncode == 2, process.stderr
    assert "Traceback" not in process.stderr


def test_little_address_space_is_a_sentence() -> None:
    limit = (
        "import resource as r; now = int(open('/proc/self/statm').read().split()[0]) * 4096; "
        "r.setrlimit(r.RLIMIT_AS, (now + 2**23,) * 2); "
    )
    process = ended(START + limit + "start.main()", "list", "profiles")
    assert process.returncode == 2, process.stderr
    assert process.stderr.startswith("seriatim: cannot be loaded: ")


def unprivileged(code: str, *arguments: str, most: str = "unlimited", **how: Any) -> Ended:
    """How a process ends that runs this code as a user for whom modes and limits hold, with `most` processes.

    Root becomes nobody, who may read what root may: this Python and its modules may be in root's own folder.
    """
    begin = [sys.executable, "-P", "-c", code, *arguments]
    if os.geteuid() == 0:
        if (setpriv := shutil.which("setpriv")) is None:
            pytest.skip("root can become nobody here without setpriv")
        may = "-all,+dac_read_search"
        become = [
            setpriv,
            "--securebits=+no_setuid_fixup",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ]
        begin = [
            *become,
            f"--inh-caps={may}",
            f"--ambient-caps={may}",
            f"--bounding-set={may}",
            *begin,
        ]
        if subprocess.run([*become, "true"], capture_output=True).returncode:
            pytest.skip("root can become nobody else here")
        if most != "unlimited":
            begin[begin.index(sys.executable) :] = [
                "sh", "-c", f'ulimit -u {most} 2>/dev/null || ulimit -p {most}; exec "$@"', "sh",
                sys.executable, "-P", "-c", code, *arguments,
            ]  # fmt: skip
    elif most != "unlimited":
        pytest.skip("another user has processes of his own, which count")
    return subprocess.run(begin, capture_output=True, text=True, timeout=100, **how)


COMMAND = START + "start.main()"
JOBS = ("check", "two-takers", "queue-again", "--jobs", "2")
RECORDING = str(DATA / "rabbit-classic-competing.jsonl.gz")


@pytest.mark.skipif(sys.platform != "linux", reason="limits are counted otherwise elsewhere")
@pytest.mark.parametrize("most", ["1", "3", "4"])
def test_few_processes_and_threads_are_a_sentence(most: str, tmp_path: Path) -> None:
    """At 3 the library's clearing up failed instead; at 4 it printed a traceback and waited for ever."""
    process = unprivileged(COMMAND, *JOBS, most=most, cwd="/")
    assert (process.returncode, process.stderr.splitlines()[-1:]) == (
        2,
        ["seriatim: this takes more threads and processes than this user may have"],
    ), process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits are counted otherwise elsewhere")
def test_one_process_is_enough_to_read(tmp_path: Path) -> None:
    """numpy's library sent itself SIGINT: the command was "interrupted", with exit code 130."""
    (tmp_path / "a.jsonl").write_text('{"i":0,"ev":"publish","m":"a","q":"q"}\n')
    process = unprivileged(COMMAND, "audit", str(tmp_path / "a.jsonl"), most="1", cwd="/")
    assert process.returncode == 3, process.stderr
    assert "interrupted" not in process.stderr


WRITES = {
    "show": ["show", RECORDING, "--timeline", "t.html"],
    "matrix": ["matrix", "fair", "--depth", "0", "--jobs", "1"],
    "conform": ["conform", "--python", "queue:Queue", "--seconds", "1"],
    "record": ["record", "--python", "queue:Queue", "--seconds", "1", "--out", "r.jsonl"],
    "generate": ["generate", "made", "--events", "1000"],
    "demo": ["demo", "fair", "--svg", "d.svg"],
    "bugs": ["bugs", "--out", "b"],
    "vectors": ["vectors", "fill", "--folder", "v"],
}


@pytest.mark.parametrize("name", WRITES)
def test_folders_that_take_nothing_are_a_sentence(name: str, tmp_path: Path) -> None:
    """The current folder, the home and that of temporary files, for who is not root."""
    folders = {n: tmp_path / n for n in ("here", "home", "tmp")}
    for folder in folders.values():
        folder.mkdir(mode=0o555)
    where = {"HOME": str(folders["home"]), "TMPDIR": str(folders["tmp"])}
    process = unprivileged(COMMAND, *WRITES[name], cwd=folders["here"], env=os.environ | where)
    assert process.returncode == 2, process.stderr
    [sentence] = process.stderr.splitlines()
    assert sentence.startswith("seriatim: ")
    assert sentence.endswith(": Permission denied")


@pytest.mark.parametrize("flag", ["-O", "-OO"])
def test_without_assertions_nothing_is_said_to_be_well(flag: str) -> None:
    """The assertions of the reference, and of a test of one's own, are among what is checked."""
    for arguments in (["check", "two-takers"], ["audit", RECORDING]):
        process = subprocess.run(
            [sys.executable, flag, "-c", COMMAND, *arguments],
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert process.returncode == 2, process.stderr
        assert process.stderr.startswith("seriatim: Python leaves out assertions here")
        assert process.stdout == ""


def test_a_shell_gets_its_completion(tmp_path: Path) -> None:
    """It was a traceback behind the answer, and 70."""
    asked = ended(COMMAND, _SERIATIM_COMPLETE="zsh_source")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert "compdef" in asked.stdout
    typed = ended(
        COMMAND,
        _SERIATIM_COMPLETE="zsh_complete",
        COMP_WORDS="seriatim matr",
        COMP_CWORD="1",
    )
    assert (typed.returncode, typed.stdout.splitlines()[:2]) == (0, ["plain", "matrix"])


@pytest.mark.parametrize(
    "asked", ["nonsense", "zsh_complete", "zsh_nonsense", "_", "bash_complete"]
)
def test_what_no_shell_asks_for_is_a_sentence(asked: str) -> None:
    process = ended(COMMAND, "list", _SERIATIM_COMPLETE=asked)
    assert process.returncode == 2, process.stderr
    assert process.stderr.startswith("seriatim: _SERIATIM_COMPLETE is ")


@pytest.mark.parametrize(("flags", "variables"), [(["-i"], {}), ([], {"PYTHONINSPECT": "1"})])
def test_a_python_that_goes_on_after_the_command_is_refused(
    flags: list[str], variables: dict[str, str]
) -> None:
    """It took the end for an error: a traceback, then what is typed, and the exit code 0 or 1 of that."""
    process = subprocess.run(
        [sys.executable, *flags, "-c", COMMAND, "audit", "/nowhere"],
        input="",
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | variables,
    )
    assert process.returncode == 2, process.stderr
    assert process.stderr.startswith("seriatim: Python would go on after the command")
    assert len(process.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": None},
        {"PYTHONIOENCODING": "ascii:surrogateescape"},
        {"PYTHONIOENCODING": "latin-1"},
        {"TERM": None, "COLUMNS": "1"},
    ],
)
def test_a_character_that_the_encoding_lacks_is_written_in_another_way(
    tmp_path: Path, variables: dict[str, str | None]
) -> None:
    """The symbol of a control character in the locale C was a traceback and 70."""
    path = tmp_path / "a\n\x1b[2J.jsonl"
    path.write_text('{"i":0,"ev":"publish","m":"a","q":"q"}\n')
    given = {**os.environ, **variables}
    process = subprocess.run(
        [sys.executable, "-c", COMMAND, "audit", str(path)],
        capture_output=True,
        timeout=100,
        env={name: value for name, value in given.items() if value is not None},
    )
    assert process.returncode == 3, process.stderr
    assert b"Traceback" not in process.stderr
    assert b"\x1b" not in process.stdout


@pytest.mark.parametrize(
    "variables",
    [
        {"HOME": None, "TMPDIR": None, "PATH": None, "LANG": "C", "PYTHONIOENCODING": "ascii"},
        {"PYTHONWARNINGS": "error"},
        {"TMPDIR": "/dev/null/x", "HOME": "/dev/null/x", "XDG_CACHE_HOME": "/dev/null"},
    ],
)
def test_odd_variables_change_no_verdict(variables: dict[str, str | None]) -> None:
    given = {**os.environ, **variables}
    process = subprocess.run(
        [sys.executable, "-c", COMMAND, "check", "two-takers"],
        capture_output=True,
        text=True,
        timeout=100,
        env={name: value for name, value in given.items() if value is not None},
    )
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
