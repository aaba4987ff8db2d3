"""Threads of ordinary Python that run one function, explored up to exchanging them."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from seriatim_models.cli import run as cli
from seriatim_models.explorer import Dpor, Misuse
from seriatim_models.explorer.python import check
from seriatim_models.explorer.search.symmetry import Symmetry
from seriatim_workshop.crosscheck import own_symmetry

pytest_plugins = ["pytester"]

BY_EXCHANGE = Dpor(symmetry=True)


class Counter:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n = 0

    def racy(self) -> None:
        self.n += 1

    def locked(self) -> None:
        with self.lock:
            self.n += 1


def run(work: Callable[..., Any], threads: int, *args: Any) -> None:
    started = [threading.Thread(target=work, args=args) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def three_lock() -> None:
    counter = Counter()
    run(counter.locked, 3)
    assert counter.n == 3


def three_race() -> None:
    counter = Counter()
    run(counter.racy, 3)
    assert counter.n >= 1


def a_barrier() -> None:
    run(threading.Barrier(3).wait, 3)


def two_teams() -> None:
    counter = Counter()
    run(counter.locked, 2)
    run(counter.locked, 2)


def take(queue: Queue[int], taken: list[int]) -> None:
    taken.append(queue.get())


def a_queue() -> None:
    queue, taken = Queue[int](), list[int]()
    for k in range(3):
        queue.put(k)
    run(take, 3, queue, taken)
    assert sorted(taken) == [0, 1, 2]


def with_children() -> None:
    counter = Counter()

    def work() -> None:
        child = threading.Thread(target=counter.locked)
        child.start()
        counter.locked()
        child.join()

    run(work, 2)


def other_arguments() -> None:
    taken: list[int] = []
    threads = [threading.Thread(target=taken.append, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("test", "traces", "executions"),
    [
        (three_lock, 6, 1),
        (three_race, 36, 6),
        (a_barrier, 12, 2),
        (two_teams, 4, 1),
        (a_queue, 36, 6),
        (with_children, 24, 13),
        (other_arguments, 2, 2),
    ],
)
def test_each_trace_once_up_to_exchanging(
    test: Callable[[], None], traces: int, executions: int
) -> None:
    apart, together = check(test), check(test, BY_EXCHANGE)
    assert (apart.verdict, apart.traces) == ("ok", traces)
    assert (together.verdict, together.executions, together.unreduced) == (
        "ok",
        executions,
        traces,
    )


def three_put_and_three_get() -> None:
    queue, taken = Queue[int](1), list[int]()
    threads = [threading.Thread(target=queue.put, args=(1,)) for _ in range(3)]
    threads += [threading.Thread(target=take, args=(queue, taken)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 3


@pytest.mark.slow
def test_the_numbers_of_the_page() -> None:
    result = check(three_put_and_three_get, BY_EXCHANGE)
    assert (result.verdict, result.executions, result.unreduced) == ("ok", 1638, 58968)


def loses_two() -> None:
    counter = Counter()
    run(counter.racy, 3)
    assert counter.n >= 2


def test_a_violation_is_found() -> None:
    result = check(loses_two, BY_EXCHANGE)
    assert result.verdict == "violated"
    assert result.counterexample is not None


def asks_its_number() -> None:
    seen: list[int] = []
    run(lambda: seen.append(threading.get_ident()), 2)


def asks_its_name() -> None:
    seen: list[str] = []
    run(lambda: seen.append(threading.current_thread().name), 2)


def draws() -> None:
    seen: list[float] = []
    run(lambda: seen.append(random.random()), 2)


def two_threads() -> list[threading.Thread]:
    counter = Counter()
    threads = [threading.Thread(target=counter.locked) for _ in range(2)]
    for thread in threads:
        thread.start()
    return threads


def joins_one() -> None:
    one, other = two_threads()
    one.join()
    with threading.Lock():
        other.join()


def joins_with_a_limit() -> None:
    for thread in two_threads():
        thread.join(1)
    for thread in threading.enumerate()[1:]:
        thread.join()


def looks_whether_one_is_alive() -> None:
    one, other = two_threads()
    one.is_alive()
    one.join()
    other.join()


def asks_for_a_name() -> None:
    one, other = two_threads()
    assert one.name
    one.join()
    other.join()


@pytest.mark.parametrize(
    ("test", "why"),
    [
        (asks_its_number, "get_ident"),
        (asks_its_name, "current_thread"),
        (draws, "draws random numbers"),
        (joins_one, "one is joined before the others"),
        (joins_with_a_limit, "a join with a time limit is asked for"),
        (looks_whether_one_is_alive, "is_alive"),
        (asks_for_a_name, "name is asked for"),
    ],
)
def test_threads_that_are_distinguished_are_refused(test: Callable[[], None], why: str) -> None:
    with pytest.raises(Misuse, match=why):
        check(test, BY_EXCHANGE)


def first_by_name() -> None:
    seen: list[str] = []
    run(lambda: seen.append(threading.current_thread().name), 2)
    assert seen[0].startswith("Thread-1")


def test_what_is_not_asked_for_is_found_by_exchanging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a name is asked for and it is not noted: running with the threads exchanged shows it."""
    assert check(first_by_name).verdict == "violated"
    monkeypatch.setattr(Symmetry, "_refuse_what_was_asked", lambda *_: None)
    with pytest.raises(Misuse, match="with them exchanged"):
        check(first_by_name, BY_EXCHANGE)


TEXT = """import threading

def run(work):
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def test_three():
    lock = threading.Lock()
    def work():
        with lock:
            pass
    run(work)

def test_apart():
    run(threading.get_ident)
"""


def test_the_command_says_both_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, report = tmp_path / "test_three.py", tmp_path / "report.json"
    path.write_text(TEXT)
    assert cli(["check", f"{path}::test_three", "--symmetry", "--json", str(report)]) == 0
    (program,) = json.loads(report.read_text())["programs"]
    assert (program["traces"], program["complete"]) == (1, 1)
    assert program["exchanged"] == "with identical threads distinguished there are 6 traces"
    assert "With identical threads distinguished there are 6 traces." in program["bounds"]
    assert f"test_three: {program['exchanged']}" in " ".join(capsys.readouterr().out.split())
    assert "6 with identical threads distinguished" in program["why"]
    assert program["command"].endswith("::test_three --symmetry")
    assert cli(["check", str(path), "--symmetry"]) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "run one function, but cannot be exchanged: get_ident()" in shown


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["two-takers"], "--symmetry is for tests of your own"),
        (["FILE::test_apart"], "cannot be exchanged: get_ident()"),
        (["FILE::test_three", "--strategy", "random"], "--symmetry is for all schedules"),
    ],
)
def test_the_command_refuses(
    words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "test_three.py"
    path.write_text(TEXT)
    assert cli(["check", *(w.replace("FILE", str(path)) for w in words), "--symmetry"]) == 2
    assert why in " ".join(capsys.readouterr().err.split())


def test_the_mark_takes_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import pytest\nfrom seriatim_models.explorer import Dpor\n"
        + TEXT.replace("def test_", "@pytest.mark.explore(strategy=Dpor(symmetry=True))\ndef test_")
    )
    quiet = ("-p", "no:cacheprovider", "-p", "no:xdist")
    result = pytester.runpytest_subprocess("--explore", *quiet)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*cannot be exchanged: get_ident() is asked for*"])


def test_generated_programs_agree(tmp_path: Path) -> None:
    compared = [
        own_symmetry.compared(own_symmetry.generate(seed), tmp_path, executions=150)
        for seed in range(25)
    ]
    assert not [one.wrong for one in compared if one.wrong]
    assert sum(not one.large for one in compared) > 10
    assert sum(one.fewer for one in compared) > 100
