"""Statistics: known durations come out, and a cut anywhere changes nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.history import Event, table
from seriatim_models.history.complete import complete
from seriatim_models.pipeline.audit.metrics import FIELDS, WINDOW, Measures, bound, bucket
from seriatim_models.properties.columnar.event_batch import EventBatch

from .conftest import first_events

EVENTS = list(complete(first_events("rabbit-classic-competing", 3000)))


def rows(m: Measures) -> list[dict[str, object]]:
    return [*m.latency("r"), *m.fairness("r"), *m.prefetch("r")]


def measured(*batches: list[Event], fields: tuple[str, ...] = table.FIELDS) -> Measures:
    out = Measures(first=True)
    for batch in batches:
        if batch:
            out.add(EventBatch(table.batch(batch, fields)))
    return out


def test_what_is_measured_is_in_the_fields_named_and_each_of_them_counts() -> None:
    """A stream makes columns of these only."""
    on: dict[str, Any] = {"conn": "c", "ch": 1, "q": "q", "ctag": "t", "prefetch": 2}
    events = [
        Event(i=0, t=5, ev="notify", args={"sub": "s"}),
        Event(i=1, t=10, ev="deliver", m="z", q="q", args={"sub": "s"}),
        Event(i=2, t=12, ev="publish", ph="ok", op=7, m="y", q="q"),
        Event(i=3, t=14, ev="deliver", m="y", gen=1, **on),
        Event(i=4, t=15, ev="deliver", m="x", gen=2, autoack=True, **on),
        Event(i=5, t=16, ev="nack", ph="invoke", requeue=False, ms=["x"], gen=2, **on),
        Event(i=6, t=17, ev="deliver", m="x", gen=2, **on),
        Event(i=7, t=18, ev="nack", ph="invoke", requeue=True, ms=["y"], gen=1, **on),
        Event(i=8, t=40, ev="deliver", m="y", redelivered=True, gen=1, **on),
        Event(i=9, t=41, ev="publish", ph="invoke", m="w", q="q"),
        Event(i=10, t=45, ev="deliver", m="w", redelivered=True, gen=1, **on),
    ]
    for of in (events, EVENTS):
        assert measured(of, fields=FIELDS).state() == measured(of).state()
    for name in FIELDS:
        less = tuple(f for f in FIELDS if f != name)
        assert measured(events, fields=less).state() != measured(events).state(), name


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
            right.add(EventBatch(table.batch(batch)))
    left = measured(batches[0])
    left.combine(right)
    assert rows(left) == rows(whole)


WHERE: dict[str, Any] = {"conn": "c", "ch": 1, "gen": 1, "q": "q"}
HAPPENS: tuple[dict[str, Any], ...] = (
    {"ev": "publish", "ph": "invoke"},
    {"ev": "publish"},
    {"ev": "deliver", "redelivered": False, "prefetch": 2, **WHERE},
    {"ev": "deliver", "redelivered": True, "prefetch": 2, **WHERE},
    {"ev": "deliver", "ctag": "x", **WHERE},
    {"ev": "deliver", "q": "other"},
    {"ev": "nack", "requeue": True, **WHERE},
    {"ev": "nack", "requeue": False, **WHERE},
    {"ev": "ack", **WHERE},
    {"ev": "expire", "requeue": True},
    {"ev": "notify", "args": {"sub": "x"}},
    {"ev": "deliver", "args": {"sub": "x"}},
    {"ev": "notify", "ctag": "x"},
)
"""What is right or wrong alike: all that is measured, as an event of some message."""


def happening(kinds: list[tuple[int, str, int]]) -> list[Event]:
    """Events of these kinds, each of a message and so long after the one before."""
    out, t = list[Event](), 0
    for i, (kind, m, later) in enumerate(kinds):
        t += 2**later
        of = dict(HAPPENS[kind])
        named = {"ms": [m]} if of["ev"] in ("ack", "nack") else {"m": m}
        out.append(Event(i=i, t=t, **(of if of["ev"] == "notify" else of | named)))
    return out


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, len(HAPPENS) - 1), st.sampled_from("ab"), st.integers(0, 40)),
        min_size=1,
        max_size=14,
    ),
    st.data(),
)
def test_wherever_a_history_of_any_kind_is_cut_it_measures_alike(
    kinds: list[tuple[int, str, int]], data: st.DataObject
) -> None:
    """Messages sent twice, requeued twice, delivered unmarked or before they are published; columns that are empty."""
    events = happening(kinds)
    whole = measured(events)
    cuts = data.draw(st.sets(st.integers(0, len(events))))
    bounds = sorted({0, len(events), *cuts})
    batches = [
        {n: c for n, c in table.columns(events[a:b]).items() if c.null_count < len(c)}
        for a, b in pairwise(bounds)
    ]
    one_by_one = Measures(first=True)
    parts = list[Measures]()
    for n, held in enumerate(batches):
        batch = EventBatch(pa.RecordBatch.from_pydict(held))
        one_by_one.add(batch)
        parts.append(Measures(first=n == 0))
        parts[-1].add(batch)
    assert rows(one_by_one) == rows(whole)
    # Joined in any order, as in a tree.
    while len(parts) > 1:
        at = data.draw(st.integers(0, len(parts) - 2))
        parts[at].combine(Measures.unpacked(parts[at + 1].packed()))
        del parts[at + 1]
    assert rows(parts[0]) == rows(whole)
    assert parts[0].state().waiting == whole.state().waiting


def test_each_delivery_is_measured_from_what_made_its_message_available_last() -> None:
    events = [
        Event(i=0, t=0, ev="publish", m="a", q="q"),
        Event(i=1, t=8, ev="publish", m="a", q="q"),  # sent again: there are two now
        Event(i=2, t=10, ev="deliver", m="a", q="q"),
        Event(i=3, t=16, ev="deliver", m="a", q="q"),
        Event(i=4, t=20, ev="nack", requeue=True, ms=["a"], q="q"),
        Event(i=5, t=24, ev="deliver", m="a", q="q"),  # nobody knows whether it is marked
        Event(i=6, t=99, ev="deliver", m="a", q="q", redelivered=True),
        Event(i=7, t=100, ev="deliver", m="b", q="q"),
        Event(i=8, t=200, ev="publish", m="b", q="q"),
    ]
    found = {(r["metric"]): (r["n"], r["p50"], r["max"]) for r in measured(events).latency("r")}
    assert found == {"publish_to_deliver": (2, 2, 16), "requeue_to_deliver": (1, 4, 4)}


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


def test_a_lease_that_ran_out_begins_a_wait_of_the_one_message_that_it_names() -> None:
    events = [
        Event(i=0, t=0, ev="expire", m="a", q="q", requeue=True),
        Event(i=1, t=16, ev="deliver", m="a", q="q", redelivered=True),
    ]
    (row,) = measured(events).latency("r")
    assert (row["metric"], row["n"], row["max"]) == ("requeue_to_deliver", 1, 16)


def test_of_a_part_without_notifications_the_first_delivery_of_a_consumer_counts() -> None:
    events = [
        Event(i=0, t=0, ev="notify", ctag="s"),
        Event(i=1, t=32, ev="deliver", m="a", q="q", ctag="s"),
        Event(i=2, t=99, ev="deliver", m="b", q="q", ctag="s"),
    ]
    (row,) = measured(events[:1], events[1:]).latency("r")
    assert (row["metric"], row["n"], row["max"]) == ("notify_to_deliver", 1, 32)


def test_times_may_be_as_far_apart_as_they_can_be_written() -> None:
    """Their difference has no room in 64 bits."""
    begin, end = -(2**62) - 1, 2**63 - 1
    events = [
        Event(i=0, t=begin, ev="publish", m="a", q="q"),
        Event(i=1, t=begin + 5, ev="deliver", m="a", q="q", conn="c", ch=1),
        Event(i=2, t=end - 5, ev="publish", m="b", q="q"),
        Event(i=3, t=end, ev="deliver", m="b", q="q", conn="c", ch=1),
    ]
    found = [(r["window"], r["n"], r["max"]) for r in measured(events).latency("r")]
    assert found == [(t // WINDOW * WINDOW, 1, 5) for t in (begin + 5, end)]


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
