"""A count of attempts says that a message comes again, and not that whoever had it is gone."""

from __future__ import annotations

import msgspec
import pytest

from seriatim_models.history import Event
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.standing import confirmed

from .blackbox_histories import BY_ID

P2 = BY_ID["P2"]


def given_to_two(*, counted: bool, polls_on: bool, ends: str = "") -> Verdict:
    """Two workers with connections are given one message; the first settles it then, and perhaps polls again."""
    lines = [
        ("publish", "p", "m", None),
        ("get", "a", "m", 1),
        ("get", "b", "m", 2),
        ("ack", "a", "m", None),
        *([("get", "a", "", None)] if polls_on else []),
    ]
    events = []
    for op, (ev, conn, m, attempt) in enumerate(lines):
        if ends and attempt == 2:
            events.append(Event(i=0, ev="conn_drop", conn=ends))
        for ph in ("invoke", "ok"):
            asked = ev == "get" and ph == "invoke"
            made = Event(i=0, ev=ev, ph=ph, op=op, conn=conn, q="q", m="" if asked else m)
            count = attempt if counted and not asked else None
            events.append(msgspec.structs.replace(made, attempt=count))
    numbered = [
        msgspec.structs.replace(e, i=i, t=i, lvl="api", rec="r") for i, e in enumerate(events)
    ]
    return confirmed(P2, P2.check(list(complete(numbered)))).verdict


@pytest.mark.parametrize("counted", [False, True])
def test_who_polls_again_held_what_was_given_to_another_whether_attempts_are_counted_or_not(
    counted: bool,
) -> None:
    assert given_to_two(counted=counted, polls_on=True) is Verdict.VIOLATED


def test_who_does_not_poll_again_may_have_been_gone_when_the_count_rose() -> None:
    assert given_to_two(counted=True, polls_on=False) is not Verdict.VIOLATED


@pytest.mark.parametrize("counted", [False, True])
def test_who_ended_held_nothing_whoever_polls_later_under_that_name(counted: bool) -> None:
    assert given_to_two(counted=counted, polls_on=True, ends="a") is not Verdict.VIOLATED
