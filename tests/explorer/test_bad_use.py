"""What reaches past the model is refused with an error that says what to use instead."""

from __future__ import annotations

import base64
import random
import re
import threading
import time
import tracemalloc
import zlib
from typing import Any

import pytest

from seriatim_models.explorer import (
    BadToken,
    Misuse,
    NondeterministicProgram,
    OutsideModel,
    Replay,
    World,
    explore,
)
from seriatim_models.explorer.model.world import ControlledCell
from seriatim_models.explorer.python import python_token
from seriatim_workshop.litmus import locked_counter, racy_counter


def test_rejects_a_real_thread() -> None:
    def program(world: World) -> None:
        world.spawn(lambda: threading.Thread(target=print).start())

    with pytest.raises(OutsideModel, match=r"Use world.spawn\(fn\) instead"):
        explore(program)


def test_rejects_a_real_lock() -> None:
    with pytest.raises(OutsideModel, match=r"threading.Lock .* Use world.lock\(\)"):
        explore(lambda world: threading.Lock())


def test_rejects_sleeping_and_clocks() -> None:
    def sleeper(world: World) -> None:
        world.spawn(lambda: time.sleep(1))

    def watcher(world: World) -> None:
        world.spawn(lambda: time.monotonic())

    with pytest.raises(OutsideModel, match=r"world\.advance"):
        explore(sleeper)
    with pytest.raises(OutsideModel, match=r"world\.now"):
        explore(watcher)


def test_others_keep_their_threads_and_clocks() -> None:
    seen: list[float] = []
    explore(racy_counter(2), on_execution=lambda world: seen.append(time.time()))
    assert seen
    assert time.sleep.__name__ == "sleep"


@pytest.mark.parametrize(
    ("program", "strategy", "says"),
    [
        (3, None, "3 is no program"),
        (lambda: None, None, "a program is called with the world, and <lambda>: too many"),
        (lambda world: None, "pct", "strategy='pct': it is an object"),
    ],
)
def test_rejects_what_is_no_program_or_strategy(program: Any, strategy: Any, says: str) -> None:
    """These were exceptions from deep inside."""
    with pytest.raises(Misuse, match=re.escape(says)):
        explore(program, strategy)


def test_rejects_a_spawn_after_the_end() -> None:
    def program(world: World) -> None:
        world.at_end(lambda: world.spawn(print) and None)

    with pytest.raises(Misuse, match="after the end"):
        explore(program)


def test_rejects_waiting_outside_a_thread() -> None:
    def program(world: World) -> None:
        m = world.lock(name="m")
        m.acquire()
        m.acquire()

    with pytest.raises(Misuse, match="outside a thread: spawn one"):
        explore(program)


def test_rejects_a_foreign_lock() -> None:
    with pytest.raises(Misuse, match=r"world.lock\(\)"):
        explore(lambda world: world.condition(object()))


def test_chance_in_the_first_run_is_noticed() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")
        world.spawn(lambda: x.set(random.randrange(1 << 30)))

    with pytest.raises(NondeterministicProgram, match=r"step 1: first t1: x.set"):
        explore(program)


def test_state_that_outlives_an_execution_is_noticed() -> None:
    runs = [0]

    def program(world: World) -> None:
        runs[0] += 1
        x, y = world.cell(0, name="x"), world.cell(0, name="y")
        odd = runs[0] > 4 and runs[0] % 2

        def work() -> None:
            (y if odd else x).get()
            x.set(1)

        world.spawn(work)
        world.spawn(work)

    with pytest.raises(NondeterministicProgram, match="every source of chance inside the model"):
        explore(program)


def test_a_container_that_two_threads_share_is_noticed() -> None:
    """Which cell a thread touches depends on who took first from a plain list, and no cell relates the two."""

    def program(world: World) -> None:
        a, b, x, y = (world.cell(0, name=name) for name in "abxy")
        todo = [x, y]

        def take(mine: ControlledCell[int]) -> None:
            mine.set(1)
            todo.pop(0).set(1)

        world.spawn(lambda: take(a))
        world.spawn(lambda: take(b))
        world.spawn(a.get)

    with pytest.raises(NondeterministicProgram, match="two threads share what is no cell"):
        explore(program)


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("hello", "does not begin with 'sr1.'"),
        ("sr9.a.b.c.d", "version 'sr9'"),
        ("sr1.aa.bb", "5 parts"),
        ("sr1.6b3231e0.n1-0.cgEAAgIBAA.ffff", "check sum"),
    ],
)
def test_rejects_a_bad_token(token: str, says: str) -> None:
    with pytest.raises(BadToken, match=says):
        explore(racy_counter(2), Replay(token))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"r\x00\xfe" + b"\xff" * 7 + b"\x7e", "more than 1,000,000 steps"),
        (b"z" + zlib.compress(bytes(2**26), 9), "more than 1,000,000 steps"),
        (b"r" + b"\x80" * 2**20 + b"\x01", "more than nine bytes"),
        (b"z" + b"no such stream", "cannot be read"),
    ],
    ids=["a long run", "packed a thousandfold", "one huge number", "not packed at all"],
)
def test_rejects_a_token_that_would_fill_the_memory(body: bytes, says: str) -> None:
    """A token comes from anybody, and its check sum is made by whoever makes the token."""
    front = f"sr1.6b3231e0.n1-0.{base64.urlsafe_b64encode(body).decode().rstrip('=')}"
    token = f"{front}.{zlib.crc32(front.encode()) & 0xFFFF:04x}"
    tracemalloc.start()
    try:
        with pytest.raises(BadToken, match=says):
            explore(racy_counter(2), Replay(token))
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_rejects_a_token_of_ordinary_python_that_would_fill_the_memory() -> None:
    for packed, says in (
        (zlib.compress(bytes(2**26), 9), "names places in more than 1,048,576 bytes"),
        (zlib.compress(b"Counter.value", 9)[:-2], "cannot be read: it is cut off"),
    ):
        text = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        tracemalloc.start()
        try:
            with pytest.raises(BadToken, match=says):
                python_token.read(f"py1.0.{text}.sr1.a.b.c.d")
            assert tracemalloc.get_traced_memory()[1] < 2**24
        finally:
            tracemalloc.stop()


def test_rejects_the_token_of_another_program() -> None:
    def broken(world: World) -> None:
        racy_counter(2)(world)
        world.at_end(lambda: "always wrong")

    case = explore(broken).counterexample
    assert case is not None
    with pytest.raises(BadToken, match="another program"):
        explore(locked_counter(2), Replay(case.token))


def test_an_exception_in_a_thread_is_the_programs_error_with_its_schedule() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")
        world.spawn(lambda: x.set(1), name="a")
        world.spawn(lambda: 1 // (1 - x.get()), name="b")

    result = explore(program)
    assert result.verdict == "violated"
    case = result.counterexample
    assert case is not None
    assert case.violations[0].kind == "error"
    assert "b raised ZeroDivisionError" in case.what
    assert [s.thread for s in case.events] == ["a", "b"]


def test_a_release_by_another_is_the_programs_error() -> None:
    def program(world: World) -> None:
        m = world.lock(name="m")
        world.spawn(m.release, name="a")

    case = explore(program).counterexample
    assert case is not None
    assert "release of lock m, which a does not hold" in case.what


def test_an_exception_while_setting_up_is_raised() -> None:
    def program(world: World) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        explore(program)


def test_a_failed_assertion_in_a_thread_is_a_violation() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")

        def look() -> None:
            if x.get() != 0:
                raise AssertionError("IM-1: x was seen changed")

        world.spawn(look)
        world.spawn(lambda: x.set(1))

    case = explore(program).counterexample
    assert case is not None
    assert case.what == "IM-1: x was seen changed"
    assert case.violations[0].kind == "property"
