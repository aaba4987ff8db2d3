"""Objects that only have `put` and `get`, as the library's queues do."""

from __future__ import annotations

import asyncio
import multiprocessing
import queue
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from seriatim_models.cli import run
from seriatim_models.conformance.concurrent.objects import ThreadedObject
from seriatim_models.conformance.concurrent.search import search_clients
from seriatim_models.conformance.driving import drive
from seriatim_models.conformance.local import Local
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.conformance.search import SearchBounds, search
from seriatim_models.conformance.selftest import self_test

PUBLISH, GET = ScriptStep(op="publish", q="q"), ScriptStep(op="get", q="q")


@pytest.mark.parametrize(
    "made", [queue.Queue, queue.SimpleQueue, asyncio.Queue, multiprocessing.Queue]
)
def test_the_librarys_queues_keep_everything(made: Callable[[], object]) -> None:
    system = Local(made)
    assert [check.why for check in self_test(system) if check.why and not check.skipped] == []
    outcome = search(system, PROFILES["any"], SearchBounds(seconds=60.0, scripts=12), seed=1)
    assert [w.finding.explanation for w in outcome.witnesses] == []
    assert "fifo-adt" in outcome.tested


def test_a_queue_may_have_no_get_but_get_nowait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One thread drives it: that it has no lock is for `--schedules` to find, and the command says so."""
    code = """
    class Polled:
        def __init__(self): self.items = []
        def put(self, m): self.items.append(m)
        def get_nowait(self): return self.items.pop(0)
    """
    (tmp_path / "polled.py").write_text(dedent(code))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["conform", "--python", "polled:Polled", "--scripts", "12", "--seed", "1"]
    assert run(words) == 0
    out = capsys.readouterr().out
    assert "consistent with fifo-adt" in out
    assert "one thread drove it: --schedules" in out


@pytest.mark.slow
def test_a_bare_queue_that_loses_is_seen_all_the_same() -> None:
    class Loses(queue.Queue[str]):
        def put(self, item: str, block: bool = True, timeout: float | None = None) -> None:
            if item != "m1":
                super().put(item, block, timeout)

    run = drive(Local(Loses), [PUBLISH, PUBLISH, GET])
    (p1,) = (p for p in PROFILES["any"].properties if p.id == "P1")
    assert "m1 was confirmed" in p1.check(run.events).explanation


@pytest.mark.parametrize("made", [queue.Queue, asyncio.Queue, multiprocessing.Queue])
def test_a_queue_that_is_full_refuses(made: Callable[[int], object]) -> None:
    """A put that would wait for a get is no answer that is missing."""
    system = Local(lambda: made(2))
    assert [check.why for check in self_test(system) if check.why and not check.skipped] == []
    outcome = search(system, PROFILES["any"], SearchBounds(seconds=60.0, scripts=12), seed=1)
    assert [w.finding.explanation for w in outcome.witnesses] == []
    assert "fifo-adt" in outcome.tested
    shared = ThreadedObject(lambda: made(2)) if made is queue.Queue else None
    if shared is not None:
        found = search_clients(
            shared, PROFILES["any"].properties, clients=3, seconds=60, seed=1, most=40
        )
        assert (found.violated, found.runs) == ("", 40)


class TwiceAfterEmpty(queue.Queue[str]):
    """What comes after a get that found nothing is given twice."""

    missed = False

    def get(self, block: bool = True, timeout: float | None = None) -> str:
        try:
            item = super().get(block, timeout)
        except queue.Empty:
            self.missed = True
            raise
        if self.missed:
            self.missed = False
            self.put(item)
        return item


def test_a_get_of_an_empty_queue_is_asked_for() -> None:
    # A queue that says by `empty` that there is nothing is asked all the same.
    system = Local(TwiceAfterEmpty)
    outcome = search(system, PROFILES["any"], SearchBounds(seconds=60.0, scripts=60), seed=1)
    assert {w.property for w in outcome.witnesses} & {"P1", "P2", "P20"}
