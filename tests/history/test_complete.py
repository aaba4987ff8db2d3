"""What a recording implies: incarnations, settled messages, publishers, and the earliest instant of a delivery."""

from __future__ import annotations

from typing import Any

from seriatim_models.history import Event
from seriatim_models.history.complete import complete
from seriatim_models.history.event import GAP


def recording(*rows: tuple[str, str, dict[str, Any]], lvl: str = "api") -> list[Event]:
    """Events of one channel, completed; `t` is ten times the index."""
    return list(
        complete(
            Event(i=i, t=10 * i, ev=ev, ph=ph, lvl=lvl, **{"conn": "c", "ch": 1, **fields})
            for i, (ev, ph, fields) in enumerate(rows)
        )
    )


OPEN: tuple[str, str, dict[str, Any]] = ("ch_open", "ok", {})
QOS = ("qos", "invoke", {"prefetch": 1, "scope": "consumer"})
CONSUME = ("consume", "invoke", {"q": "q", "ctag": "t", "autoack": False})


def deliver(m: str, dtag: int) -> tuple[str, str, dict[str, Any]]:
    return ("deliver", "info", {"m": m, "ctag": "t", "dtag": dtag})


def test_channel_numbers_used_again_are_new_incarnations() -> None:
    events = recording(OPEN, ("ch_close", "invoke", {}), OPEN, CONSUME)
    assert [e.gen for e in events] == [1, 1, 2, 2]


def test_a_delivery_gets_queue_limit_and_publisher() -> None:
    sent = ("publish", "invoke", {"m": "x", "q": "q"})
    *_, got = recording(OPEN, sent, QOS, CONSUME, deliver("x", 1))
    assert (got.q, got.autoack, got.prefetch, got.scope) == ("q", False, 1, "consumer")
    assert (got.pub, got.pseq, got.t_lo) == ("c/1/1", 0, 30)


def test_a_multiple_settlement_names_all_up_to_its_tag() -> None:
    events = recording(
        OPEN,
        CONSUME,
        *(deliver(f"m{n}", n) for n in (1, 2, 3)),
        ("ack", "invoke", {"dtag": 2, "multiple": True}),
        ("nack", "invoke", {"dtag": 3, "requeue": True}),
    )
    assert [(e.ms, e.q) for e in events[-2:]] == [(["m1", "m2"], "q"), (["m3"], "q")]


def test_what_the_recorder_says_is_kept() -> None:
    *_, e = recording(
        OPEN, CONSUME, ("deliver", "info", {"m": "x", "ctag": "t", "gen": 9, "t_lo": 1})
    )
    assert (e.gen, e.t_lo) == (9, 1)


def credit(*between: tuple[str, str, dict[str, Any]]) -> int | None:
    events = recording(
        OPEN,
        QOS,
        CONSUME,
        deliver("m1", 1),
        ("ack", "invoke", {"dtag": 1}),
        *between,
        deliver("m2", 2),
    )
    return events[-1].t_lo


def test_a_full_window_bounds_the_next_delivery_by_the_settlement_that_made_room() -> None:
    assert credit() == 40
    assert credit((GAP, "", {"conn": "", "ch": None})) == 20, (
        "after lost lines only the consume bounds"
    )


def test_inside_the_broker_the_instant_is_exact() -> None:
    *_, e = recording(OPEN, CONSUME, deliver("m1", 1), lvl="model")
    assert e.t_lo == e.t
