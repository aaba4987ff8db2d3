"""Queues whose put waits for room: right ones are not reported, and one that waits beside an empty queue is."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.conformance.concurrent.driving import run_workload
from seriatim_models.conformance.concurrent.objects import ThreadedObject
from seriatim_models.conformance.concurrent.search import search_clients
from seriatim_models.conformance.concurrent.streamed import StreamedRecording
from seriatim_models.conformance.concurrent.workload import ClientCommand, ConcurrentWorkload
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.history import Header, read_history
from seriatim_models.history.complete import complete
from seriatim_models.properties import audit
from seriatim_models.properties.base import Verdict

HEADER = Header(run="r", rec="drive", lvl="api", clk="here")
PUBLISH, GET = ClientCommand(op="publish"), ClientCommand(op="get")


class Ring:
    """A right queue of two places, which tells nobody how many it has."""

    room = 2

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.items: list[str] = []

    def put(self, m: str) -> None:
        with self.changed:
            while len(self.items) >= self.room:
                self.changed.wait()
            self.items.append(m)

    def get(self) -> str | None:
        with self.changed:
            self.changed.notify_all()
            return self.items.pop(0) if self.items else None


class Overwrites(Ring):
    """It looks once: of two puts that wait for one place the second takes what is in it."""

    def put(self, m: str) -> None:
        with self.changed:
            if len(self.items) >= self.room:
                self.changed.wait()
            self.items = [*self.items[: self.room - 1], m]


class NeverWakes(Ring):
    """A put that has waited once waits for ever."""

    def get(self) -> str | None:
        with self.changed:
            return self.items.pop(0) if self.items else None


def test_a_put_that_waits_goes_on_when_room_is_made(tmp_path: Path) -> None:
    """Nobody else takes anything: the drive does, at the end."""
    path = tmp_path / "run.jsonl"
    workload = ConcurrentWorkload(commands=((PUBLISH,) * 4, (PUBLISH,) * 3))
    with StreamedRecording(path, HEADER) as recording:
        done = run_workload(ThreadedObject(Ring), workload, recording, patience=1.0)
    assert (done.fault, done.drained) == ("", True)
    events = list(complete(read_history(path).events))
    assert sum(e.ev == "publish" and e.ph == "ok" for e in events) >= 4
    found = {f.property: f.verdict for f in audit(events, PROFILES["any"].properties)}
    assert found["P1"] is Verdict.OK
    assert Verdict.VIOLATED not in found.values()


@pytest.mark.slow
def test_drawn_clients_do_not_report_it() -> None:
    found = search_clients(
        ThreadedObject(Ring), PROFILES["any"].properties, clients=4, seconds=90, seed=1, most=40
    )
    assert (found.violated, found.runs) == ("", 40)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_drawn_clients_find_what_is_overwritten() -> None:
    found = search_clients(
        ThreadedObject(Overwrites), PROFILES["any"].properties, clients=4, seconds=20, seed=1
    )
    assert found.violated in ("P1", "P20")


def test_a_put_that_waits_beside_an_empty_queue_gave_no_answer(tmp_path: Path) -> None:
    workload = ConcurrentWorkload(commands=((PUBLISH,) * 3, (GET,) * 2))
    for _ in range(20):
        with StreamedRecording(tmp_path / "run.jsonl", HEADER) as recording:
            done = run_workload(ThreadedObject(NeverWakes), workload, recording, patience=0.5)
        if done.fault:
            break
    assert done.fault == "silent"
    assert done.why.endswith("no answer to publish, though nothing is left in the queue")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_one_client_learns_how_much_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.chdir(Path(__file__).parent)
    words = ["conform", "--python", "test_waiting:Ring", "--patience", "2", "--seed", "1"]
    assert run([*words, "--self-test"]) == 0
    assert run([*words, "--scripts", "8", "--seconds", "60", "--out", str(tmp_path)]) in (0, 3)
    hangs = ["conform", "--python", "test_waiting:HangsAtOnce", "--patience", "2", "--seed", "1"]
    assert run([*hangs, "--scripts", "3", "--seconds", "20", "--out", str(tmp_path)]) == 1


class HangsAtOnce(Ring):
    """It has no place at all."""

    room = 0
