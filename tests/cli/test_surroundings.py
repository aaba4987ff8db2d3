"""What whoever begins the command leaves it: closed streams, ignored signals, no files, no memory, odd variables."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seriatim_models.supervisor import SUPERVISED, supervised

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
) -> subprocess.CompletedProcess[str]:
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
