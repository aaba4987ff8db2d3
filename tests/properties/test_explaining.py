"""A violation, small: as intervals, and as the smallest history that still has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_models.history import read_history, write_history
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.requeue import RequeueLateness
from seriatim_models.properties.intervals import drawn, intervals
from seriatim_models.properties.shrink import shrunk
from seriatim_workshop.bench.simulated_broker import SimulatedBroker

from .blackbox_histories import Recording

BY_ID = {p.id: p for p in BLACKBOX}


def test_strict_order_as_intervals() -> None:
    """m7 was available all the while in which tag-b took m8."""
    r = Recording()
    r.publish("m7")
    r.publish("m8")
    r.deliver("m8", "b", lo=3)
    r.add("note")
    r.deliver("m7", "a", lo=5)
    found = BY_ID["P5"].check(r.events)
    rows = intervals(found)
    assert [(x.lane, x.lo, x.hi, x.label, x.convicts) for x in rows] == [
        ("m7", 0, 50, "m7 is available", True),
        ("m8", 20, 30, "m8 is available", False),
        ("tag-b", 30, 40, "tag-b takes m8", True),
        ("m8", 40, None, "tag-b holds m8", False),
        ("tag-a", 50, 60, "tag-a takes m7", False),
        ("m7", 60, None, "tag-a holds m7", False),
    ]
    assert drawn(rows, 13).splitlines() == [
        "===========    m7 is available (event 0)",
        "    ---        m8 is available (event 2)",
        "      ===      tag-b takes m8 (event 4)",
        "        ---->  tag-b holds m8 (event 4)",
        "          ---  tag-a takes m7 (event 6)",
        "            >  tag-a holds m7 (event 6)",
    ]


def test_two_holders_as_intervals() -> None:
    r = Recording()
    r.deliver("m0", "a")
    r.deliver("m0", "b", redelivered=True)
    r.alive("a", "b")
    rows = intervals(BY_ID["P2"].check(r.events))
    assert [x.label for x in rows if x.convicts] == ["tag-a holds m0", "tag-b holds m0"]


def test_no_witness_no_picture() -> None:
    assert intervals(BY_ID["P2"].check([])) == []
    assert drawn([]) == ""


@pytest.mark.parametrize(
    ("id", "fault", "most"),
    [
        ("P1", "after-ack", 8), ("P1", "phantom", 2), ("P2", "doubles", 6), ("P3", "unmarked", 2), ("P4", "skips", 2),
        ("P5", "skips", 5), ("P7", "overruns", 9), ("P8", "repeats-tag", 2),
    ],
)  # fmt: skip
def test_a_history_shrinks_to_the_violation(id: str, fault: str, most: int, tmp_path: Path) -> None:
    events = list(SimulatedBroker(1, 300, fault=fault).run())
    small = shrunk(BY_ID[id], events)
    assert small.finding.verdict is Verdict.VIOLATED
    assert len(small.events) <= most < len(events)
    for n in range(len(small.events)):
        less = small.events[:n] + small.events[n + 1 :]
        assert BY_ID[id].check(complete(less)).verdict is not Verdict.VIOLATED
    path = tmp_path / "small.jsonl"
    write_history(path, small.events)
    again = BY_ID[id].check(complete(read_history(path).events))
    assert (again.verdict, again.explanation) == (Verdict.VIOLATED, small.finding.explanation)


def test_a_late_requeue_shrinks_to_a_few_messages() -> None:
    small = shrunk(RequeueLateness(within=0), list(SimulatedBroker(1, 300, fault="tail").run()))
    assert len({e.m for e in small.events if e.m}) <= 6  # a window of four, and who overtook


def test_rejects_to_shrink_what_has_no_violation() -> None:
    with pytest.raises(ValueError, match="P1 is not violated"):
        shrunk(BY_ID["P1"], [])
