"""How a command ends when its output takes no more, or when it is asked to stop: by exit code, without a traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from seriatim_models.child_process import processes
from seriatim_models.cli.running import checked_output

DATA = Path(__file__).parent.parent / "data"
COMMAND = [sys.executable, "-c", "from seriatim_models.cli import main; main()"]
OUTPUTS = {
    "a table": ["list", "properties"],
    "a file": ["lint", str(DATA / "rabbit-classic-lockstep.jsonl.gz"), "--json", "-"],
    "help": ["--help"],
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("what", OUTPUTS)
def test_a_full_standard_output_is_a_sentence_and_exit_2(what: str) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*COMMAND, *OUTPUTS[what]], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1] == (
        "seriatim: standard output cannot be written: No space left on device"
    )
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("what", OUTPUTS)
def test_a_closed_pipe_is_exit_2_and_no_verdict(what: str) -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [*COMMAND, *OUTPUTS[what]], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert ended.returncode == 2, "1 would mean that a property is violated"
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


@pytest.mark.parametrize("how", ["full", "closed pipe"])
def test_nobody_who_reads_messages_costs_no_verdict(how: str, tmp_path: Path) -> None:
    """Progress and sentences are on standard error; the table is on standard output, the file is written."""
    read, write = os.pipe()
    os.close(read)
    if how == "full":
        os.close(write)
        write = os.open("/dev/full", os.O_WRONLY)
    check = ["check", "immediate-race", "--jobs", "1", "--json", str(tmp_path / "v.json")]
    ended = subprocess.run([*COMMAND, *check], stdout=subprocess.PIPE, stderr=write, text=True)
    assert (ended.returncode, (tmp_path / "v.json").exists()) == (0, True)
    assert "immediate-race" in ended.stdout
    wrong = subprocess.run([*COMMAND, "check", "nothing"], stdout=subprocess.PIPE, stderr=write)
    os.close(write)
    assert wrong.returncode == 2


def test_a_pipe_that_does_not_wait_is_waited_for() -> None:
    """As one that is shared with a program which made it so: what does not fit now was an error."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(write, b"." * 4096):
            pass
    reader = threading.Timer(0.3, os.read, (read, 2**20))
    reader.start()
    output = checked_output(write)
    output.write(b"x" * 10)
    output.flush()
    reader.join()
    assert os.read(read, 2**20) == b"x" * 10
    os.close(read)
    os.close(write)


def catches(pid: int, number: int) -> bool:
    """Whether a process handles a signal: only then has its command begun."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "interrupted"),
        pytest.param(signal.SIGTERM, 143, "terminated", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "LONG"],
        ["lint", "LONG"],
        ["check", "two-takers", "--strategy", "random", "--budget", "100"],
        ["check", "two-takers", "--strategy", "random", "--budget", "100", "--jobs", "2"],
        ["generate", "OUT", "--events", "50000000"],
    ],
    ids=["audit", "lint", "check", "check in processes", "generate"],
)
def test_a_signal_ends_a_command_without_a_traceback(
    arguments: list[str], number: signal.Signals, code: int, said: str, tmp_path: Path
) -> None:
    pipe = tmp_path / "long.jsonl"
    places = {"LONG": str(pipe), "OUT": str(tmp_path / "out")}
    if "LONG" in arguments:
        pipe.write_text(
            "".join(f'{{"i":{i},"ev":"note","err":"{i}"}}\n' for i in range(1, 1_000_000))
        )
    with subprocess.Popen(
        [*COMMAND, *(places.get(a, a) for a in arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            number, signal.SIG_DFL
        ),  # a shell's background ignores Ctrl-C
    ) as process:
        try:
            while process.poll() is None and not catches(process.pid, signal.SIGTERM):
                time.sleep(0.05)
            time.sleep(1.0)
            assert process.poll() is None, process.communicate()
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    assert errors.splitlines()[-1] == f"seriatim: {said}"


OWN_TESTS = """
import threading


def test_long():
    seen = []
    threads = [threading.Thread(target=lambda: [seen.append(k) for k in range(9)]) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_long_too():
    test_long()
"""


@pytest.mark.parametrize(
    "after",
    [0.2, 1.0, *(pytest.param(k / 10, marks=pytest.mark.slow) for k in (1, 3, 5, 8, 12, 15, 20))],
)
def test_ctrl_c_while_processes_are_started_ends_them_all_in_one_word(
    after: float, tmp_path: Path
) -> None:
    """A terminal sends it to all of them, and some are still importing what they need."""
    own = tmp_path / "test_own.py"
    own.write_text(OWN_TESTS)
    begin = "import seriatim_models.start as s; print(flush=True); s.main()"
    with subprocess.Popen(
        [sys.executable, "-c", begin, "check", str(own), "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(after)
            assert process.poll() is None, process.communicate()
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert errors.splitlines()[-1] == "seriatim: interrupted"


def test_of_a_pool_that_was_left_no_thread_goes_on() -> None:
    """One that closes its pipe while the interpreter ends lets that print a traceback behind the verdict."""
    before = threading.enumerate()
    with processes(2) as pool:
        assert pool.submit(abs, -1).result(60) == 1
        pool.submit(time.sleep, 60)
    assert [t for t in threading.enumerate() if t not in before] == []


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [("KeyboardInterrupt", 130, "interrupted"), ("Terminated", 143, "terminated")],
)
@pytest.mark.parametrize(
    "run",
    ["end_in_a_word(); f()", "sys.exit(run_command(click.Command('c', callback=f)))"],
    ids=["make", "command"],
)
def test_an_error_while_an_interrupt_is_handled_does_not_take_its_place(
    run: str, kind: str, code: int, said: str
) -> None:
    """As of a library that closes its connection. An error for another reason is one."""
    begin = (
        "import rich_click as click, sys\n"
        "from seriatim_models.cli.running import run_command\n"
        "from seriatim_models.ending import Terminated, end_in_a_word\n"
        "def f():\n"
        "  try: raise {kind}\n"
        "  except BaseException as error: raise ValueError('closed'){why}\n"
        "sys.argv = ['c']\n"
        "{run}\n"
    )
    for why in ("", " from error", " from None"):
        ended = subprocess.run(
            [sys.executable, "-c", begin.format(kind=kind, why=why, run=run)],
            capture_output=True, text=True,
        )  # fmt: skip
        if why == " from None":
            assert "ValueError: closed" in ended.stderr
        else:
            assert (ended.returncode, ended.stderr) == (code, f"seriatim: {said}\n")
