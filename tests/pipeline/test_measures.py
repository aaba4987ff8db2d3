"""Statistics: known durations come out, and a cut anywhere changes nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.history import Event, table
from seriatim_models.history.complete import complete
from seriatim_models.pipeline.audit.metrics import Measures, bound, bucket

from .conftest import first_events

EVENTS = list(complete(first_events("rabbit-classic-competing", 3000)))


def rows(m: Measures) -> list[dict[str, object]]:
    return [*m.latency("r"), *m.fairness("r"), *m.prefetch("r")]


def measured(*batches: list[Event]) -> Measures:
    out = Measures(first=True)
    for batch in batches:
        if batch:
            out.add(table.batch(batch))
    return out


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, len(EVENTS)), max_size=4))
def test_a_cut_anywhere_changes_nothing(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(EVENTS)]
    batches = [EVENTS[a:b] for a, b in pairwise(bounds)]
    whole = measured(EVENTS)
    assert rows(measured(*batches)) == rows(whole)
    assert rows(Measures.unpacked(whole.packed())) == rows(whole)
    # Joined from the right, as in a tree.
    right = Measures()
    for batch in batches[1:]:
        if batch:
            right.add(table.batch(batch))
    left = measured(batches[0])
    left.combine(right)
    assert rows(left) == rows(whole)


def test_durations_shares_and_use_are_what_they_are() -> None:
    on: dict[str, Any] = {"conn": "c", "ch": 1, "gen": 1, "q": "q", "ctag": "t"}
    limit: dict[str, Any] = {"prefetch": 2, "scope": "consumer"}
    events = [
        Event(i=0, t=100, ev="publish", ph="invoke", m="a", q="q"),
        Event(i=1, t=100, ev="publish", ph="invoke", m="b", q="q"),
        Event(i=2, t=1124, ev="deliver", m="a", **on, **limit),
        Event(i=3, t=1200, ev="deliver", m="b", **on, **limit),
        Event(i=4, t=2000, ev="nack", ph="invoke", requeue=True, ms=["a"], **on),
        Event(i=5, t=2512, ev="deliver", m="a", redelivered=True, **on, **limit),
    ]
    m = measured(events)
    latency = {r["metric"]: r for r in m.latency("r")}
    assert latency["publish_to_deliver"]["n"] == 2
    assert latency["publish_to_deliver"]["p50"] == 1024
    assert 1100 <= int(str(latency["publish_to_deliver"]["max"])) <= 1100 * 1.091
    assert latency["requeue_to_deliver"]["max"] == 512
    (share,) = m.fairness("r")
    assert (share["n"], share["share"], share["jain"]) == (3, 1.0, 1.0)
    (use,) = m.prefetch("r")
    assert (use["n"], use["mean"], use["max"]) == (3, 5 / 3, 2)


def test_a_notified_consumer_is_timed_to_its_next_delivery() -> None:
    events = [
        Event(i=0, t=10, ev="notify", args={"sub": "s"}),
        Event(i=1, t=42, ev="deliver", m="m", args={"sub": "s"}),
    ]
    (row,) = [r for r in measured(events).latency("r") if r["metric"] == "notify_to_deliver"]
    assert (row["n"], row["max"]) == (1, 32)


@given(st.integers(0, 10**15))
def test_a_bucket_bounds_what_is_in_it(ns: int) -> None:
    import numpy as np

    (number,) = bucket(np.array([ns], np.int64)).tolist()
    assert ns * 0.999999 <= bound(number) <= max(1, ns * 1.0906)
