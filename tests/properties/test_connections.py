"""Connections that are cleared by columns have the counts of the row-based forms, and none of them a violation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.history import Event, table
from seriatim_models.history.complete import complete
from seriatim_models.history.event import GAP
from seriatim_models.properties.base import AnyProperty, Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox import confirms as confirms_module
from seriatim_models.properties.columnar import channel_checks
from seriatim_models.properties.columnar.connections import COLUMNS, RegularConnections
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_workshop.bench.simulated_broker import SimulatedBroker
from seriatim_workshop.crosscheck.columnar import history

from .blackbox_histories import any_history

CHECKED: dict[int, AnyProperty] = {n: p for n, p in enumerate(BLACKBOX) if p.channel_check}


def cleared(events: Sequence[Event], cuts: Sequence[int] = ()) -> RegularConnections:
    """The events given in batches, as chunk files have them."""
    regular = RegularConnections(CHECKED)
    edges = sorted({0, len(events), *(c for c in cuts if c < len(events))})
    for a, b in pairwise(edges):
        held = table.columns(list(events[a:b]))
        held = {c: v for c, v in held.items() if v.null_count < len(v) and c in COLUMNS}
        held["n"] = pa.array(range(a, b), pa.int64())
        regular.take(EventBatch(pa.RecordBatch.from_pydict(held)))
    return regular


def of_findings(regular: RegularConnections) -> list[tuple[int, Finding]]:
    """What the cleared connections come to, by number of the property."""
    found = regular.finish(None)
    assert found is not None
    cases = {n: found.cases[p.id] for n, p in CHECKED.items()}
    return [
        (n, Finding.of(CHECKED[n].id, c.tested, n_untestable=c.untestable))
        for n, c in cases.items()
    ]


def compare(events: Sequence[Event], cuts: Sequence[int] = ()) -> None:
    """What is cleared must be what the row-based forms say of the events of the cleared connections."""
    regular = cleared(events, cuts)
    irregular = regular.irregular()
    if irregular is None:
        assert any(e.ev == GAP for e in events)
        return
    kept = [e for e in events if e.conn not in irregular]
    for n, finding in of_findings(regular):
        assert finding == CHECKED[n].check(kept)
        assert finding.verdict is not Verdict.VIOLATED


def right(events: int = 300, **options: Any) -> list[Event]:
    return list(complete(SimulatedBroker(7, events, prefetch=3, **options).run()))


def test_a_right_broker_is_cleared_throughout() -> None:
    events = right()
    regular = cleared(events, [100, 101, 250])
    of: dict[str, Finding] = {f.property: f for _, f in of_findings(regular)}
    assert {p.id for p in CHECKED.values()} == set(of)
    compare(events, [100, 101, 250])
    irregular = regular.irregular()
    assert irregular is not None
    assert len(irregular) < len({e.conn for e in events if e.conn}) / 2, irregular
    assert all(of[p].n_tested > 20 for p in ("P7", "P8", "P21"))


@settings(max_examples=150, deadline=None)
@given(events=any_history(), cuts=st.lists(st.integers(1, 60), max_size=4))
def test_any_history(events: list[Event], cuts: list[int]) -> None:
    compare(events, cuts)


def test_mutated_histories() -> None:
    n_cleared = 0
    for seed in range(0, 240, 2):
        events = history(seed)
        cuts = [seed % 7 + 1, 40, 90]
        compare(events, cuts)
        irregular = cleared(events, cuts).irregular()
        n_cleared += irregular is not None and len(irregular) < len({e.conn for e in events})
    assert n_cleared > 60


def base() -> list[Event]:
    """Two deliveries under a limit of one, each settled at once, a confirmed publish, and an end."""
    c: dict[str, Any] = {"lvl": "wire", "conn": "c", "ch": 1, "gen": 1}
    p: dict[str, Any] = {"lvl": "wire", "conn": "p", "ch": 1, "gen": 1, "q": "q"}
    given: dict[str, Any] = {**c, "ev": "deliver", "q": "q", "ctag": "t", "prefetch": 1}
    given["scope"] = "consumer"
    events = [
        Event(i=0, ev="ch_open", **c),
        Event(i=0, ev="publish", ph="invoke", m="a", op=1, **p),
        Event(i=0, ev="publish", ph="ok", m="a", op=1, **p),
        Event(i=0, m="a", dtag=1, **given),
        Event(i=0, ev="ack", q="q", dtag=1, ms=["a"], **c),
        Event(i=0, m="b", dtag=2, **given),
        Event(i=0, ev="ack", q="q", dtag=2, ms=["b"], **c),
        Event(i=0, ev="cancel", ph="ok", q="q", ctag="t", **c),
        Event(i=0, ev="ch_close", ph="ok", **c),
    ]
    return [msgspec.structs.replace(e, i=n, t=n) for n, e in enumerate(events)]


Change = Callable[[list[Event]], None]


def change(at: int, **fields: Any) -> Change:
    def apply(events: list[Event]) -> None:
        events[at] = msgspec.structs.replace(events[at], **fields)

    return apply


def move(at: int, to: int) -> Change:
    return lambda events: events.insert(to, events.pop(at))


def drop(at: int) -> Change:
    return lambda events: events.__delitem__(at)


def again(at: int, to: int) -> Change:
    return lambda events: events.insert(to, events[at])


IRREGULAR: dict[str, tuple[Change, str]] = {
    "over the limit": (move(5, 4), "c"),
    "a tag left out": (change(5, dtag=3), "c"),
    "a tag again": (change(5, dtag=1), "c"),
    "settled twice": (again(4, 5), "c"),
    "settled by another tag": (change(4, dtag=2), "c"),
    "settled in another queue": (change(4, q="other"), "c"),
    "settled before": (move(4, 3), "c"),
    "settled without effect": (change(4, ph="fail"), "c"),
    "settled beyond what was given": (change(6, multiple=True, dtag=3), "c"),
    "seen from inside and from outside": (change(5, lvl="api"), "c"),
    "settled by a list": (change(4, ms=["a", "b"]), "c"),
    "settled by nobody's list": (change(4, ms=None), "c"),
    "taken again while held": (again(3, 4), "c"),
    "a delivery after the cancel": (move(7, 5), "c"),
    "a delivery after the close": (move(8, 3), "c"),
    "opened late": (move(0, 6), "c"),
    "an unknown channel": (change(3, gen=0), "c"),
    "answered twice": (again(2, 3), "p"),
    "answered before": (move(2, 1), "p"),
    "sent again unanswered": (again(1, 2), "p"),
    "phases now and then": (change(2, ph=""), "p"),
    "recovered": (change(7, ev="recover"), "c"),
}


def test_what_the_changes_begin_with_is_cleared() -> None:
    regular = cleared(base())
    assert regular.irregular() == set()
    of = {f.property: f.n_tested for _, f in of_findings(regular)}
    assert of == {"P7": 2, "P8": 3, "P9": 2, "P21": 1}
    compare(base())


@pytest.mark.parametrize("cut", [None, 1, 3, 4, 5, 6])
@pytest.mark.parametrize("what", IRREGULAR)
def test_what_no_regular_connection_does(what: str, cut: int | None) -> None:
    change, conn = IRREGULAR[what]
    events = base()
    change(events)
    cuts = [] if cut is None else [cut]
    assert cleared(events, cuts).irregular() == {conn}
    compare(events, cuts)


@pytest.mark.parametrize("cut", [None, 2, 4, 5, 6, 7])
@pytest.mark.parametrize("left_out", [False, True])
def test_a_command_for_several(left_out: bool, cut: int | None) -> None:
    """All that it names is one case; what it covered without naming it is not settled again by a regular channel."""
    c: dict[str, Any] = {"lvl": "wire", "conn": "c", "ch": 1, "gen": 1, "q": "q"}
    limited: dict[str, Any] = {"ctag": "t", "prefetch": 3, "scope": "channel"}
    names = ["a", "b", "c", "d", "e"]
    events = [
        Event(i=n, ev="deliver", m=m, dtag=n + 1, **c, **limited) for n, m in enumerate(names)
    ]
    commands = [
        Event(i=0, ev="ack", dtag=2, multiple=True, ms=["b"] if left_out else ["a", "b"], **c),
        Event(i=0, ev="nack", dtag=4, multiple=True, ms=["c", "d"], **c),
        Event(i=0, ev="ack", dtag=1 if left_out else 5, ms=["a" if left_out else "e"], **c),
    ]
    events[3:3], events[6:6], events[8:] = commands[:1], commands[1:2], commands[2:]
    events = [msgspec.structs.replace(e, i=n) for n, e in enumerate(events)]
    cuts = [] if cut is None else [cut]
    assert cleared(events, cuts).irregular() == ({"c"} if left_out else set())
    compare(events, cuts)


@pytest.mark.parametrize("ev", ["declare", "delete", "purge", "rpc", "conn_close"])
def test_a_tag_on_what_is_neither_delivery_nor_settlement_is_no_case(ev: str) -> None:
    """The rows of P8 counted it as untestable, where it has no channel (seed 67220 of the cross-check)."""
    compare([*right(40), Event(i=1000, ev=ev, lvl="broker", conn="another", q="q", dtag=1)])


def test_lost_lines_leave_all_to_the_rows() -> None:
    assert cleared([*base(), Event(i=99, ev=GAP)]).irregular() is None


@pytest.mark.parametrize("cut", [1, 4, 9])
def test_more_without_an_answer_than_are_kept(monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    """The row-based form forgets the oldest, so an answer to it is untestable."""
    for module in (confirms_module, channel_checks):
        monkeypatch.setattr(module, "WAITING_KEPT", 4)
    p: dict[str, Any] = {"lvl": "wire", "conn": "p", "ch": 1, "gen": 1, "q": "q", "ev": "publish"}
    sent = [Event(i=n, ph="invoke", m=str(n), **p) for n in range(6)]
    for answered, irregular in ((0, {"p"}), (5, {"p"}), (None, set[str]())):
        of = [] if answered is None else [Event(i=9, ph="ok", m=str(answered), **p)]
        assert cleared([*sent, *of], [cut]).irregular() == irregular
        compare([*sent, *of], [cut])


def test_what_a_command_had_covered_is_charged_to_its_own_connection() -> None:
    """However the hashes of the messages stand to each other."""
    for n in range(20):
        events: list[Event] = []
        for conn in "cd":
            on: dict[str, Any] = {"lvl": "wire", "conn": conn, "ch": 1, "gen": 1, "q": "q"}
            names = [f"{n}.{conn}{k}" for k in range(1, 4)]
            events += [Event(i=0, ev="deliver", m=m, dtag=k, **on) for k, m in enumerate(names, 1)]
            first, second, third = names
            named = [second] if conn == "c" else [first, second]
            events.append(Event(i=0, ev="ack", dtag=2, multiple=True, ms=named, **on))
            if conn == "c":  # that command had covered it
                events.append(Event(i=0, ev="ack", dtag=1, ms=[first], **on))
            events.append(Event(i=0, ev="ack", dtag=3, ms=[third], **on))
        events = [msgspec.structs.replace(e, i=k, t=k) for k, e in enumerate(events)]
        assert cleared(events).irregular() == {"c"}
        compare(events)


def test_a_state_whose_channels_are_of_other_connections_is_refused() -> None:
    """A stream's state may have been written by anybody."""
    state = cleared([Event(i=0, ev="ch_open", conn="c", ch=1, t=0)]).state()
    state.conns = ["another"]
    with pytest.raises(KeyError, match="c"):
        RegularConnections(CHECKED).restore(state)
