"""The three ways in: the command, pytest, and what a counterexample shows; a token replays it, or says why not."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.explorer import BadToken, Replay
from seriatim_models.explorer.python import check
from seriatim_models.explorer.python.program import Target

COUNTER = """
import threading

class Counter:
    def __init__(self):
        self.value = 0
        self.lock = threading.Lock()

    def racy(self):
        self.value += 1

    def right(self):
        with self.lock:
            self.value += 1

def both(body):
    threads = [threading.Thread(target=body) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def test_racy():
    counter = Counter()
    both(counter.racy)
    assert counter.value == 2

def test_right():
    counter = Counter()
    both(counter.right)
    assert counter.value == 2

async def test_coroutine():
    import asyncio

    counter = Counter()

    async def add():
        await asyncio.sleep(1)
        counter.racy()

    await asyncio.gather(add(), add())
    assert counter.value == 2

class TestCounter:
    def test_method(self):
        counter = Counter()
        both(counter.right)
        assert counter.value == 2
"""


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    path = tmp_path / "test_counter.py"
    path.write_text(COUNTER)
    return path


def test_the_command_finds_shows_and_replays(
    counter: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "140")  # a line of source is not folded
    out = tmp_path / "out.json"
    page = tmp_path / "out.html"
    assert run(["check", f"{counter}::test_racy", "--json", str(out), "--html", str(page)]) == 1
    shown = capsys.readouterr().out
    assert "Counter.value: test_counter.py:10 against test_counter.py:10" in shown
    assert "test_counter.py:10 self.value += 1" in " ".join(shown.replace("|", " ").split())
    assert "Traceback" in shown
    assert "self.value += 1" in page.read_text()
    [program] = json.loads(out.read_text())["programs"]
    token = program["counterexample"]["token"]
    assert token.startswith("py1.")
    assert run(["check", f"{counter}::test_racy", "--replay", token]) == 1
    assert "the sides were 1 and 2" in capsys.readouterr().out


def test_a_replay_stops_in_the_debugger_where_it_goes_wrong(
    counter: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is asked once, shows what the threads share there, and the report comes after it."""
    out = tmp_path / "out.json"
    run(["check", f"{counter}::test_racy", "--json", str(out)])
    token = json.loads(out.read_text())["programs"][0]["counterexample"]["token"]
    capsys.readouterr()
    asked = ["check", f"{counter}::test_racy", "--replay", token, "--pdb"]
    for said in ("p 40 + counter.value\nw\nn\nc\n", "p 40 + counter.value\nw\nn\nq\n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(said))
        assert run(asked) == 1
        shown = capsys.readouterr().out
        assert shown.count("stopped behind step") == 1
        assert "in main: q ends, c goes on" in shown
        assert "(schedule) 41\n" in shown
        assert "-> assert counter.value == 2" in shown
        assert "AssertionError: assert counter.value == 2 (the sides were 1 and 2)" in shown
        assert "Traceback (most recent call last)" in shown
        assert "violated: 1 program" in shown


def test_the_debugger_stops_in_a_deadlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "test_two.py", tmp_path / "out.json"
    path.write_text(TWO_LOCKS)
    assert run(["check", f"{path}::test_two", "--json", str(out)]) == 1
    token = json.loads(out.read_text())["programs"][0]["counterexample"]["token"]
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.StringIO("p first is second\nc\n"))
    assert run(["check", f"{path}::test_two", "--replay", token, "--pdb"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("stopped behind step") == 1
    assert "-> with first:" in shown
    assert "(schedule) False" in shown
    assert "GreenletExit" not in shown


TWO_LOCKS = """
import threading

def both(first, second):
    with first:
        with second:
            pass

def test_two():
    a, b = threading.Lock(), threading.Lock()
    threads = [threading.Thread(target=both, args=locks) for locks in ((a, b), (b, a))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""

TIMERS = """
import asyncio
import sched

async def say(seen, number, seconds):
    await asyncio.sleep(seconds)
    seen.append(number)

async def test_order():
    seen = []
    await asyncio.gather(say(seen, 1, 0.1), say(seen, 2, 0.2))
    assert seen == [1, 2]

async def test_always_wrong():
    seen = []
    await asyncio.gather(say(seen, 1, 0.1), say(seen, 2, 0.2))
    assert seen == [2, 1]
"""


def test_timers_in_the_order_of_their_deadlines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    path = tmp_path / "test_timers.py"
    path.write_text(TIMERS)
    assert run(["check", f"{path}::test_order"]) == 1
    assert (
        "timers out of order: Task-3 test_timers.py:6 (0.2 s) ended before Task-2 test_timers.py:6 (0.1 s), which was "
        "set earlier; where durations can be relied on, take timers='deadline'"
    ) in capsys.readouterr().out
    assert run(["check", f"{path}::test_order", "--timers", "deadline"]) == 0
    capsys.readouterr()
    options = ["--timers", "deadline", "--module", "sched"]
    assert run(["check", f"{path}::test_always_wrong", *options]) == 1
    shown = capsys.readouterr().out
    assert "timers out of order" not in shown
    [again] = [line for line in shown.splitlines() if line.startswith("replay: ")]
    command = shlex.split(again.removeprefix("replay: seriatim "))
    assert "--timers" in command
    assert command[command.index("--module") + 1] == "sched"
    assert run(command) == 1


def test_a_free_threaded_build_is_refused(
    counter: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = sysconfig.get_config_var
    monkeypatch.setattr(
        sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else known(name)
    )
    assert run(["check", f"{counter}::test_racy"]) == 2
    said = " ".join("".join(capsys.readouterr()).split())
    assert "this is a free-threaded build of Python" in said
    assert "Use the ordinary build of this version" in said


def test_tests_are_run_side_by_side(counter: Path, tmp_path: Path) -> None:
    """The verdicts are those of one process; an error in one of them is one sentence."""
    found = {}
    for jobs in ("1", "3"):
        out = tmp_path / f"{jobs}.json"
        assert run(["check", str(counter), "--jobs", jobs, "--json", str(out)]) == 1
        programs = json.loads(out.read_text())["programs"]
        found[jobs] = [(p["program"], p["verdict"], p["traces"]) for p in programs]
    assert found["1"] == found["3"]
    assert len({verdict for _, verdict, _ in found["1"]}) == 2


def test_what_is_refused_in_one_of_several_processes_is_one_sentence(
    counter: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = counter.with_name("test_wrong.py")
    wrong.write_text("import socket\n\n\ndef test_socket():\n    socket.socket()\n")
    assert run(["check", str(wrong), str(counter), "--jobs", "2"]) == 1, (
        "of the counter's tests one is wrong"
    )
    shown, errors = capfd.readouterr()
    assert "socket.socket is outside the model" in " ".join(shown.split())
    assert "Traceback" not in errors


def test_the_command_says_ok(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = ("test_right", "TestCounter::test_method", "test_coroutine")
    assert run(["check", *(f"{counter}::{test}" for test in tests)]) == 0
    assert capsys.readouterr().out.count("every schedule") == 3
    assert run(["check", f"{counter}::test_right", "--strategy", "pos", "--budget", "0.2"]) == 3


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{file}::test_rigth"], "did you mean 'test_right'"),
        (["{file}.py"], "there is no file"),
        (["{file}::test_right", "two-takers"], "go without programs"),
        (["{file}::test_right", "--module", "no_such_module"], "no module of this name"),
        (["{file}::test_right", "--replay", "py1.x"], "was it cut"),
        (["{file}::test_right", "--replay", "sr1.x"], "begins with py1"),
        (["{file}::test_right", "--pdb"], "--replay TOKEN --pdb"),
        (["two-takers", "--replay", "x", "--pdb"], "--replay TOKEN --pdb"),
        (["two-takers", "--module", "queue"], "tests of your own"),
        (["two-takers", "--timers", "deadline"], "--timers is for tests of your own"),
    ],
)
def test_bad_input_is_one_sentence(
    counter: Path, arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", *(a.replace("{file}", str(counter)) for a in arguments)]) == 2
    error = capsys.readouterr().err
    assert why in error
    assert "Traceback" not in error


def test_a_file_that_is_no_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "test_broken.py"
    path.write_text("def test(:\n")
    assert run(["check", str(path)]) == 2
    assert "no Python" in capsys.readouterr().err
    path.write_text("x = 1\n")
    assert run(["check", str(path)]) == 2
    assert "begins with test" in capsys.readouterr().err


def test_a_token_of_other_sources_is_refused(counter: Path) -> None:
    from seriatim_models.explorer.python.execution import Search
    from seriatim_models.explorer.python.front import explored

    target = Target("test_counter", str(counter), "test_racy")
    case = explored(target, Search(), None, (), None, {}).counterexample
    assert case is not None
    again = explored(target, Search(), Replay(case.token), (), None, {})
    assert again.counterexample is not None
    assert again.counterexample.schedule == case.schedule
    counter.write_text(COUNTER.replace("self.value += 1", "self.value += 2"))
    with pytest.raises(BadToken, match="other sources"):
        explored(target, Search(), Replay(case.token), (), None, {})


MARKED = (
    COUNTER.replace("def test_racy", "@pytest.mark.explore\ndef test_racy")
    .replace("def test_right", "@pytest.mark.explore(exhaustive=True)\ndef test_right")
    .replace("import threading", "import pytest\nimport threading", 1)
    .replace("async def test_coroutine", "async def coroutine")
)


def test_pytest_explores_marked_tests(tmp_path: Path) -> None:
    path = tmp_path / "test_marked.py"
    path.write_text(MARKED + "\n@pytest.mark.explore\ndef test_fixture(tmp_path):\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", str(path)]
    plugin: list[str] = []
    once = subprocess.run(
        [*command, *plugin], capture_output=True, text=True, cwd=tmp_path, timeout=100
    )
    assert "4 passed" in once.stdout, once.stdout + once.stderr
    path.write_text(
        path.read_text().replace("async def coroutine", "@pytest.mark.explore\nasync def test_c")
    )
    explored = subprocess.run(
        [*command, *plugin, "--explore"], capture_output=True, text=True, cwd=tmp_path, timeout=100
    )
    assert "2 failed, 3 passed" in explored.stdout, explored.stdout + explored.stderr
    assert "racing pair: Counter.value" in explored.stdout
    assert "the test starts no thread" in " ".join(explored.stdout.split())


UNITTEST = """
import threading, unittest, pytest

class TestCounter(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.step = 1

    def setUp(self):
        self.value = 0

    def add(self):
        self.value += self.step

    @pytest.mark.explore
    def test_one(self):
        thread = threading.Thread(target=self.add)
        thread.start()
        thread.join()
        assert self.value == 1

    def test_two(self):
        threads = [threading.Thread(target=self.add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.value, 2)

@pytest.mark.explore
def test_skipped():
    pytest.skip("not here")
"""


def test_a_method_of_unittest_runs_between_its_fixtures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`setUp` was not called: a right test was violated by an AttributeError."""
    path = tmp_path / "test_unit.py"
    path.write_text(UNITTEST)
    assert run(["check", f"{path}::TestCounter::test_one"]) == 0
    assert run(["check", f"{path}::TestCounter::test_two"]) == 1
    assert "AssertionError: 1 != 2" in capsys.readouterr().out


def test_pytest_says_what_it_does_not_explore(tmp_path: Path) -> None:
    """A marked method of unittest ran once, and passed; a test that skips itself was violated."""
    (tmp_path / "test_unit.py").write_text(UNITTEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--explore"]
    ran = subprocess.run(
        [*command, "-k", "one or skipped"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=100,
    )
    assert "`seriatim check test_unit.py::TestCounter::test_one` does it" in ran.stdout
    assert "1 skipped" in ran.stdout
    assert "1 error" in ran.stdout


def test_a_token_that_no_test_replays_fails_the_session(tmp_path: Path) -> None:
    """Without `--explore` a marked test ran once, and passed: as if it had been repaired."""
    (tmp_path / "test_marked.py").write_text(MARKED)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "right"]
    ran = subprocess.run(
        [*command, "--explore-replay", "py1.x"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=100,
    )
    assert ran.returncode == 1
    assert "tests that are marked explore need --explore" in ran.stderr


def test_a_check_of_a_real_function_has_the_same_answer() -> None:
    with pytest.raises(Exception, match="cannot be called"):
        check("test_counter.py::test_racy")  # type: ignore[arg-type]  # the mistake


READING = """
import sys
import threading


def run(*bodies):
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_asks():
    run(lambda: input("name? "))


def test_reads_a_line():
    run(lambda: sys.stdin.readline())


def test_reads_all():
    def read():
        for _line in sys.stdin:
            pass

    run(read)


def test_looks_at_it():
    run(lambda: sys.stdin.closed, lambda: sys.stdin.encoding)
"""


@pytest.mark.parametrize("name", ["asks", "reads_a_line", "reads_all"])
def test_what_a_user_types_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`input` was an EOFError of the program's own, and on a terminal a wait for what nobody would type."""
    (tmp_path / "test_reads.py").write_text(READING)
    assert run(["check", f"{tmp_path}/test_reads.py::test_{name}"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert (
        "no schedule controls it. Put a stub in its place in the test (at test_reads.py:" in error
    )


def test_the_standard_input_may_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "test_reads.py").write_text(READING)
    assert run(["check", f"{tmp_path}/test_reads.py::test_looks_at_it"]) == 0


SCRIPT = """
import sys
import threading


def test_script():
    thread = threading.Thread(target=print)
    thread.start()
    thread.join()


"""
UNDER_MAIN = 'is put under `if __name__ == "__main__":`'
SCRIPTS = {
    "sys.exit(test_script())": ":12: SystemExit;",
    "import argparse; argparse.ArgumentParser().parse_args(['x'])": "SystemExit: 2",
    "name = input()": "builtins.input is outside the model",
    "import unittest; unittest.main(argv=['x'])": "when the module is imported",
}


@pytest.mark.parametrize("last", SCRIPTS)
def test_a_script_without_a_guard_is_one_sentence(
    last: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that ends itself behind its threads was a violation: SystemExit, with a schedule."""
    (tmp_path / "script.py").write_text(SCRIPT + last + "\n")
    assert run(["check", f"{tmp_path}/script.py"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert SCRIPTS[last] in error
    assert UNDER_MAIN in error


def test_pytest_collects_no_script_and_says_why(tmp_path: Path) -> None:
    """It was a traceback of pytest's own, INTERNALERROR."""
    (tmp_path / "test_script.py").write_text(SCRIPT + "sys.exit(test_script())\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--explore"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert UNDER_MAIN in " ".join(ran.stdout.split())
    assert "Traceback" not in ran.stdout + ran.stderr
    assert "INTERNALERROR" not in ran.stdout + ran.stderr
