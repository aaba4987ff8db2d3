"""Recordings whose beginning is missing violate nothing that it could explain, and audit and lint agree on that."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from seriatim_models.conformance.lint import lint
from seriatim_models.history import Event, Header, read_history, write_history
from seriatim_models.pipeline import audit_paths
from seriatim_models.properties.base import Verdict
from seriatim_workshop.bench.simulated_broker import SimulatedBroker

DATA = Path(__file__).parent.parent / "data"


def parts(events: list[Event], folder: Path, n: int, header: Header | None) -> None:
    """The events in `n` files one after another; without a header each file is a run of its own."""
    for k in range(n):
        piece = events[k * len(events) // n : (k + 1) * len(events) // n]
        path = folder / f"part-{k}.jsonl"
        if header is None:
            encoded = [msgspec.json.encode(e) for e in piece]
            path.write_bytes(b"\n".join(encoded) + b"\n")
        else:
            write_history(path, piece, header)


def violated(folder: Path) -> list[str]:
    report = audit_paths([folder], engine="local")
    return [f.property for f in report.findings if f.verdict is Verdict.VIOLATED]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_parts_of_a_right_run_convict_nobody(named: bool, seed: int, tmp_path: Path) -> None:
    events = list(SimulatedBroker(seed, 120, prefetch=1 + seed).run())
    parts(events, tmp_path, 5, Header(run="one", rec="r", lvl="api") if named else None)
    assert violated(tmp_path) == []


def test_a_phantom_is_one_only_where_the_beginning_is_known(tmp_path: Path) -> None:
    def phantom(first: int) -> list[Event]:
        return [
            Event(i=first, t=0, ev="publish", m="other", q="q"),
            Event(i=first + 1, t=1, ev="deliver", m="m", q="q", conn="c", ch=1, dtag=9),
        ]

    for first, found in ((0, ["P1", "P20"]), (500, [])):
        folder = tmp_path / str(first)
        folder.mkdir()
        write_history(folder / "run.jsonl", phantom(first), Header(run="r", lvl="api"))
        assert violated(folder) == found
        read = read_history(folder / "run.jsonl").events
        assert ("beginning" in {hint.id for hint in lint(read)}) == bool(first)


def test_a_header_may_say_that_nothing_came_before(tmp_path: Path) -> None:
    events = [
        Event(i=500, t=0, ev="publish", m="other", q="q"),
        Event(i=501, t=1, ev="deliver", m="m", q="q", conn="c", ch=1, dtag=9),
    ]
    write_history(tmp_path / "r.jsonl", events, Header(run="r", lvl="api", params={"whole": True}))
    assert violated(tmp_path) == ["P1", "P20"]


@pytest.mark.parametrize("first", [0, 500])
def test_one_recorder_of_several_may_lack_its_beginning(first: int, tmp_path: Path) -> None:
    """What it saw before its first event may be older than all that the others saw."""
    sent = [Event(i=first, t=90, ev="publish", ph="invoke", m="other", q="q", conn="p", ch=1)]
    taken = [Event(i=0, t=10, ev="deliver", m="m", q="q", conn="c", ch=1, dtag=1)]
    for rec, events in (("publisher", sent), ("consumer", taken)):
        write_history(tmp_path / f"{rec}.jsonl", events, Header(run="r", rec=rec, lvl="api"))
    assert violated(tmp_path) == ([] if first else ["P1", "P20"])


def test_two_deliveries_of_unknown_queues_may_be_of_two(tmp_path: Path) -> None:
    taken = {"m": "m", "conn": "c", "ch": 1, "ctag": "t"}
    rows = [
        Event(i=n, t=n, ev="deliver", dtag=n, redelivered=None, **taken)  # type: ignore[arg-type]
        for n in (500, 501)
    ]
    write_history(tmp_path / "r.jsonl", rows, Header(run="r", lvl="api"))
    assert violated(tmp_path) == []
