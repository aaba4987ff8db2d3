"""Judges chapter 12: a small test for each of the three mistakes, behind the learner's code, under every schedule."""

import tempfile
from pathlib import Path
from types import ModuleType

from seriatim_models.explorer.python.execution import Search
from seriatim_models.explorer.python.front import explored
from seriatim_models.explorer.python.program import Target

TESTS = """


def run(*bodies):
    import threading

    threads = [
        threading.Thread(target=body, name=f"{n} {body.__name__}")
        for n, body in enumerate(bodies, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def every_item_arrives():
    box, got = Box(), []

    def get():
        got.append(box.get())

    def put_one():
        box.put(1)

    def put_two():
        box.put(2)

    run(get, get, put_one, put_two)
    assert sorted(got, key=str) == [1, 2]


class Room(list):
    def append(self, item):
        assert not self, "there is room for one item only"
        super().append(item)


def never_two_items():
    box = Box()
    box.items = Room()

    def put():
        box.put(1)

    def put_twice():
        box.put(2)
        box.put(3)

    def get_twice():
        box.get()
        box.get()

    run(put, put_twice, get_twice)


def closing_lets_everybody_out():
    box, got = Box(), []

    def get():
        got.append(box.get())

    run(get, get, box.close)
    assert got == [None, None]


def what_was_put_is_still_there():
    box, got = Box(), []

    def get():
        got.append(box.get())

    def put_and_close():
        box.put(1)
        box.close()

    run(get, put_and_close)
    assert got == [1]


def one_box_for_a_name():
    shelf, boxes = Shelf(), []

    def ask():
        boxes.append(shelf.box("a"))

    run(ask, ask)
    assert boxes[0] is boxes[1]
    assert shelf.box("b") is not boxes[0]
"""
NAMES = {
    "every_item_arrives": "two who put, two who get",
    "never_two_items": "room for one item",
    "closing_lets_everybody_out": "two wait, one closes",
    "what_was_put_is_still_there": "one puts and closes, one gets",
    "one_box_for_a_name": "two ask for the same name",
}
SECONDS = 15.0


def check(mine: ModuleType) -> None:
    for name in ("Box", "Shelf"):
        assert hasattr(mine, name), f"has no {name!r}, which the exercise asks for"
    source = Path(str(mine.__file__)).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mine.py"
        file.write_text(source + TESTS, encoding="utf-8")
        for test, what in NAMES.items():
            found = explored(Target("mine", str(file), test), Search(), None, (), SECONDS, {})
            shown = "" if found.counterexample is None else found.counterexample.text()
            shown = shown.rpartition("\n\nreplay: ")[0] or found.why
            assert found.verdict == "ok", f"{what}: {shown}"
