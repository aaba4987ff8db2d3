"""Small programs that share what C code or the system keeps: objects of C, files, clocks. See test_state_of_c."""

from __future__ import annotations

import array
import contextlib
import csv
import datetime
import gzip
import io
import multiprocessing.pool
import os
import pathlib
import random
import select
import selectors
import signal
import socketserver
import sqlite3
import sys
import tempfile
import threading
import time
import types
import uuid
from collections.abc import Callable
from typing import Any


def run(*bodies: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wrong_namespace() -> None:
    shared = types.SimpleNamespace(n=0)

    def add() -> None:
        shared.n += 1

    run(add, add)
    assert shared.n == 2


def right_namespace() -> None:
    shared, lock = types.SimpleNamespace(n=0), threading.Lock()

    def add() -> None:
        with lock:
            shared.n += 1

    run(add, add)
    assert shared.n == 2


def wrong_attribute_of_an_exception() -> None:
    error = ValueError()

    def add() -> None:
        error.args = (*error.args, 1)

    run(add, add)
    assert len(error.args) == 2


def wrong_array() -> None:
    numbers = array.array("i", [0])

    def add() -> None:
        numbers[0] += 1

    run(add, add)
    assert numbers[0] == 2


def right_array() -> None:
    numbers = array.array("i")
    run(lambda: numbers.append(1), lambda: numbers.append(2))
    assert len(numbers) == 2


class Numbers(array.array):  # type: ignore[type-arg]  # its own are of C
    pass


def wrong_class_made_from_one_of_c() -> None:
    numbers = Numbers("i", [0])

    def add() -> None:
        numbers[0] = numbers[0] + 1

    run(add, add)
    assert numbers[0] == 2


def wrong_view() -> None:
    data = bytearray(1)
    view = memoryview(data)

    def add() -> None:
        view[0] = data[0] + 1

    run(add, add)
    assert data[0] == 2


def wrong_writer_of_a_file() -> None:
    text = io.StringIO()
    rows = csv.writer(text)
    run(lambda: rows.writerow([1]), lambda: text.write("x"))
    assert text.getvalue() == "1\r\nx"


class Dice(random.Random):
    pass


def wrong_seeded_while_another_draws() -> None:
    dice, drawn = Dice(1), list[float]()
    run(lambda: drawn.append(dice.random()), lambda: dice.seed(3))
    assert drawn == [random.Random(1).random()]


def right_unchanging_objects() -> None:
    path, number, seen = pathlib.PurePath("a"), uuid.UUID(int=1), list[object]()
    run(lambda: seen.append(path / "b"), lambda: seen.append((path.name, number.hex)))
    assert len(seen) == 2


def wrong_file() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "count")
        with open(path, "w") as file:
            file.write("0")

        def add() -> None:
            with open(path) as file:
                text = file.read()
            with open(path, "w") as file:
                file.write(str(int(text or "0") + 1))

        run(add, add)
        with open(path) as file:
            assert file.read() == "2"


def right_file() -> None:
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "count"
        path.write_text("0")

        def add() -> None:
            with lock:
                path.write_text(str(int(path.read_text()) + 1))

        run(add, add)
        assert path.read_text() == "2"


def wrong_file_that_is_written_when_it_is_closed() -> None:
    lock, seen = threading.Lock(), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")

        def write() -> None:
            with open(path, "w") as file:
                file.write("x")
                with lock:
                    seen.append("written")

        def look() -> None:
            with lock:
                if seen:
                    seen.append(pathlib.Path(path).read_text())

        run(write, look)
        assert seen in (["written"], ["written", "x"])


def wrong_file_is_made_by_who_finds_none() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "made")

        def make() -> None:
            if not os.path.exists(path):
                open(path, "x").close()

        run(make, make)


def wrong_file_of_c_is_made_by_who_finds_none() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "made")

        def make() -> None:
            if not os.path.exists(path):
                io.FileIO(path, "x").close()

        run(make, make)


def right_file_is_made_once() -> None:
    made: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "made")

        def make() -> None:
            with contextlib.suppress(FileExistsError), open(path, "x"):
                made.append(path)

        run(make, make)
    assert len(made) == 1


def wrong_folder_that_is_missing() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "new")

        def make() -> None:
            if not os.path.exists(path):
                os.mkdir(path)

        run(make, make)


def wrong_environment() -> None:
    os.environ["SERIATIM_COUNT"] = "0"

    def add() -> None:
        os.environ["SERIATIM_COUNT"] = str(int(os.environ["SERIATIM_COUNT"]) + 1)

    run(add, add)
    assert os.getenv("SERIATIM_COUNT") == "2"


def right_environment() -> None:
    lock = threading.Lock()
    os.environ["SERIATIM_COUNT"] = "0"

    def add() -> None:
        with lock:
            os.environ["SERIATIM_COUNT"] = str(int(os.environ["SERIATIM_COUNT"]) + 1)

    run(add, add)
    assert os.getenv("SERIATIM_COUNT") == "2"


def right_dates() -> None:
    took = []

    def wait() -> None:
        begun, day = datetime.datetime.now(), time.localtime()
        time.sleep(2)
        took.append((datetime.datetime.now() - begun).total_seconds())
        assert time.localtime() > day

    run(wait, wait)
    assert all(2 <= seconds < 3 for seconds in took)


def right_numbers_that_are_drawn() -> None:
    known: dict[uuid.UUID, int] = {}

    def draw() -> None:
        known[uuid.uuid4()] = os.urandom(1)[0]

    run(draw, draw)
    assert len(known) == 2


def right_print_into_something() -> None:
    text, other = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(other):
        run(lambda: print("a", file=text), lambda: print("b"))
    assert text.getvalue() + other.getvalue() == "a\nb\n"


def right_print_into_what_replaces_the_output() -> None:
    text, before = io.StringIO(), sys.stdout
    sys.stdout = text
    try:
        run(lambda: print("a"), lambda: None)
    finally:
        sys.stdout = before
    assert text.getvalue() == "a\n"


def wrong_output_is_replaced_by_two() -> None:
    texts = [io.StringIO(), io.StringIO()]

    def body(number: int) -> None:
        sys.stdout = texts[number]
        print(number)

    run(lambda: body(0), lambda: body(1))
    assert [text.getvalue() for text in texts] == ["0\n", "1\n"]


def right_text_over_bytes() -> None:
    found: list[str] = []

    def read() -> None:
        found.append(io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"a\nb"))).read())

    run(read, read)
    assert found == ["a\nb"] * 2


def compressed() -> None:
    found: list[bytes] = []
    run(*[lambda: found.append(gzip.decompress(gzip.compress(b"a", mtime=None)))] * 2)
    assert found == [b"a"] * 2


def refused_selectors() -> None:
    selectors.DefaultSelector()


def refused_pipe() -> None:
    os.pipe()


def refused_poll() -> None:
    select.poll()


def refused_signal() -> None:
    signal.signal(signal.SIGUSR1, print)


def refused_kill() -> None:
    os.kill(os.getpid(), 0)


def refused_database() -> None:
    sqlite3.connect(":memory:")


def refused_pool_of_threads() -> None:
    multiprocessing.pool.ThreadPool(2)


def refused_server() -> None:
    socketserver.TCPServer(("", 0), socketserver.BaseRequestHandler)
