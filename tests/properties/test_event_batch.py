"""Events as columns: what is worked out once for all checks is what each would work out for itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.history import Event, table
from seriatim_models.properties.blackbox.naming import holder
from seriatim_models.properties.columnar.columns import Names, stable_order
from seriatim_models.properties.columnar.event_batch import EventBatch

NAMES = st.sampled_from(["", "a", "b"])
NUMBERS = st.none() | st.integers(0, 2)
EVENTS = st.lists(
    st.builds(
        Event, i=st.just(0), ev=st.sampled_from(["publish", "deliver", "note"]), conn=NAMES, ch=NUMBERS, gen=NUMBERS,
        ctag=NAMES, proc=NAMES, m=NAMES, pseq=NUMBERS, redelivered=st.none() | st.booleans(),
        ms=st.none() | st.lists(NAMES, max_size=3),
    ),
    max_size=12,
)  # fmt: skip


@settings(deadline=None)
@given(events=EVENTS, data=st.data())
def test_who_acts_is_the_same_of_all_rows_and_of_some(
    events: list[Event], data: st.DataObject
) -> None:
    """Whether it was asked of all rows before, and whether columns have codes."""
    rows = np.flatnonzero([data.draw(st.booleans()) for _ in events])
    wanted = [holder(events[k]) for k in rows.tolist()]
    plain = table.batch(events)
    held = {
        name: column.dictionary_encode() if name in table.CODED else column
        for name, column in zip(plain.schema.names, plain.columns, strict=True)
    }
    for arrow in (plain, pa.RecordBatch.from_pydict(held)):
        fresh, asked = EventBatch(arrow), EventBatch(arrow)
        codes, values = asked.holders()
        assert [values[k] for k in codes.tolist()] == [holder(e) for e in events]
        for batch in (fresh, asked):
            codes, values = batch.holders_at(rows)
            assert [values[k] for k in codes.tolist()] == wanted


@settings(deadline=None)
@given(events=EVENTS)
def test_columns_as_arrays_are_the_fields_of_the_events(events: list[Event]) -> None:
    batch = EventBatch(table.batch(events))
    for _ in range(2):  # worked out, and known
        assert batch.ints("pseq", -1).tolist() == [-1 if e.pseq is None else e.pseq for e in events]
        assert batch.flags("redelivered", True).tolist() == [e.redelivered is not False for e in events]  # fmt: skip
        assert batch.flags("redelivered", False).tolist() == [bool(e.redelivered) for e in events]
        assert batch.present("ch").tolist() == [e.ch is not None for e in events]
        assert batch.some("m").tolist() == batch.texts("m").some.tolist() == [bool(e.m) for e in events]  # fmt: skip
        assert batch.lengths("ms").tolist() == [len(e.ms or ()) for e in events]
        assert len(batch.texts("ms").first) == sum(len(e.ms or ()) for e in events)
        codes, values = batch.coded("conn")
        assert [values[k] for k in codes.tolist()] == [e.conn for e in events]


@settings(deadline=None)
@given(events=EVENTS)
def test_only_values_that_occur_are_numbered(events: list[Event]) -> None:
    batch = EventBatch(table.batch(events))
    some = np.flatnonzero(batch.coded("ev").among("publish"))
    names: Names[str] = Names()
    numbers = batch.coded("conn").at(some).numbers(names)
    wanted = [e.conn for e in events if e.ev == "publish"]
    assert [list(names)[k] for k in numbers.tolist()] == wanted
    assert names.keys() == {*wanted}


@settings(deadline=None)
@given(events=EVENTS, data=st.data())
def test_columns_that_are_read_later_are_those_of_the_same_rows(
    events: list[Event], data: st.DataObject
) -> None:
    """Whatever rows and columns were chosen before they are asked for, and each is read once."""
    plain = table.batch(events)
    held = {**dict(zip(plain.schema.names, plain.columns, strict=True))}
    held["n"] = pa.array(data.draw(st.permutations(range(len(events)))), pa.int64())
    whole = pa.RecordBatch.from_pydict(held)
    at_hand = data.draw(st.sets(st.sampled_from([*held])))
    asked: list[str] = []

    def later(name: str) -> pa.Array | None:
        asked.append(name)
        return held.get(name)

    alike, some = EventBatch(whole), EventBatch(whole.select([*{*at_hand, "n"}]), later)
    for _ in range(data.draw(st.integers(0, 3))):
        match data.draw(st.sampled_from(["only", "select", "in_order"])):
            case "only":
                rows = np.array([data.draw(st.booleans()) for _ in range(len(alike))], np.bool_)
                alike, some = alike.only(rows), some.only(rows)
            case "select":
                some = some.select({*data.draw(st.sets(st.sampled_from([*at_hand, "n"]))), "n"})
            case _:
                alike, some = alike.in_order(), some.in_order()
    for _ in range(2):
        assert some.some("m").tolist() == alike.some("m").tolist()
        assert some.present("ch").tolist() == alike.present("ch").tolist()
        assert some.column("key").to_pylist() == alike.column("key").to_pylist()
        assert some.ints("pseq", -1).tolist() == alike.ints("pseq", -1).tolist()
        assert some.holders().texts() == alike.holders().texts()
    assert len(asked) == len({*asked})
    assert at_hand.isdisjoint(asked)


@pytest.mark.parametrize("ch", [1, None])
def test_where_all_act_on_channels_nobody_asks_for_consumers(ch: int | None) -> None:
    asked: list[str] = []

    def later(name: str) -> pa.Array | None:
        asked.append(name)
        return pa.array(["a"]) if name == "ctag" else None

    held = table.batch([Event(i=0, ev="publish", conn="c", ch=ch, gen=1)])
    batch = EventBatch(held.select(["ev", "conn", "ch", "gen"]), later)
    assert [*batch.holders().texts()] == [
        holder(Event(i=0, ev="", conn="c", ch=ch, gen=1, ctag="a"))
    ]
    assert asked == ([] if ch else ["ctag", "proc"])


def test_what_is_known_of_a_batch_cannot_be_written_into() -> None:
    """Other checks rely on it."""
    batch = EventBatch(table.batch([Event(i=0, ev="publish", conn="c", ch=1, m="a", pseq=1)]))
    found = [
        batch.coded("conn").codes,
        batch.holders().codes,
        batch.texts("m").first,
        batch.ints("pseq", -1),
        batch.ints("gen", -1),
        batch.flags("dead", False),
        batch.some("m"),
        batch.lengths("ms"),
    ]
    for array in found:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@settings(deadline=None)
@given(
    keys=st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 3), max_size=40),
    low=st.lists(st.integers(0, 63), min_size=40, max_size=40),
)
def test_stable_order_is_that_of_a_stable_sort(keys: list[int], low: list[int]) -> None:
    """Of small numbers and of hashes, also of such as differ in their low bits alone."""
    close = [2**62 + k for k in low]
    for of, kind in ((keys, np.int64), (keys, np.uint64), (close, np.int64), (close, np.uint64)):
        array = np.array(of, kind)
        assert stable_order(array).tolist() == np.argsort(array, kind="stable").tolist()
    large = np.array([2**64 - 1 - k for k in keys[:9]], np.uint64)
    assert stable_order(large).tolist() == np.argsort(large, kind="stable").tolist()
