"""P15 and P4 on right logs: what a group, its members and its commits may do. Each was found by a drawn log."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from seriatim_models.conformance.lint import lint
from seriatim_models.history import Event
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox.offsets import LogReader
from seriatim_models.properties.blackbox.order import FirstDeliveryOrder
from seriatim_workshop.right.drawing import history
from seriatim_workshop.right.judging import completed
from seriatim_workshop.right.logs import draw_log

from .test_left_out import without

Step = tuple[str, str, int | None]
"""A member, ``"a"`` or ``"a.1"`` with the number of its operation; the event with its phase; a position."""


def read(
    *steps: Step, committed: str = "next", named_by: str = "conn", **declared: object
) -> Finding:
    """What P15 says of a topic with positions 0 to 9, read by group `g`, whose members are named by their connection or
    worker.
    """
    events = [Event(i=0, ev="declare", q="q", args=declared)]
    events += [Event(i=n + 1, ev="publish", q="q", m=f"m{n}", pos=n) for n in range(10)]
    for who, what, pos in steps:
        by, _, op = who.partition(".")
        ev, _, ph = what.partition(" ")
        events.append(
            Event(
                i=len(events), ev=ev, ph=ph, q="q", ctag="g", conn=by if named_by == "conn" else "",
                proc=by if named_by == "proc" else "", pos=pos, op=int(op) if op else None,
                m=f"m{pos}" if ev == "deliver" else "", args={"committed": committed} if ev == "commit" else {},
            )
        )  # fmt: skip
    return LogReader().check(list(complete(events)))


RIGHT: dict[str, list[Step]] = {
    "the position was committed lower again": [
        ("a", "deliver", 0), ("a", "deliver", 1), ("a", "deliver", 2), ("a", "commit", 3), ("a", "commit", 1),
        ("b", "consume", None), ("b", "deliver", 1),
    ],
    "a lower commit is under way": [
        ("a", "deliver", 0), ("a", "deliver", 1), ("a", "commit", 2), ("a.1", "commit invoke", 1),
        ("b", "consume", None), ("b", "deliver", 1),
    ],
    "of two commits under way either may have been the last": [
        ("a", "deliver", 0), ("a", "deliver", 1), ("a.1", "commit invoke", 1), ("a.2", "commit invoke", 2),
        ("a.1", "commit ok", 1), ("a.2", "commit ok", 2), ("b", "consume", None), ("b", "deliver", 1),
    ],
    "a member had begun before another committed": [
        ("a", "deliver", 0), ("b", "consume", None), ("a", "commit", 1), ("b", "deliver", 0),
    ],
    "a member began anew while its commit was under way": [
        ("a", "deliver", 0), ("a.1", "commit invoke", 1), ("a", "consume", None), ("a.1", "commit ok", 1),
        ("a", "deliver", 0), ("a", "deliver", 1),
    ],
    "a member went elsewhere while its commit was under way": [
        ("a", "deliver", 0), ("a", "deliver", 1), ("a.1", "commit invoke", 2), ("a", "seek", 0),
        ("a.1", "commit ok", 2), ("a", "deliver", 0), ("a", "deliver", 1),
    ],
    "another member had the partition in between, and read on": [
        ("a", "deliver", 0), ("b", "deliver", 1), ("b", "deliver", 2), ("b", "commit", 3), ("a", "deliver", 3),
    ],
    "another member had it in between, and committed nothing": [
        ("a", "deliver", 0), ("a", "deliver", 1), ("b", "deliver", 0), ("a", "deliver", 0),
    ],
    "another member began while one read on": [
        ("a", "seek", 6), ("a", "commit", 6), ("a", "deliver", 6), ("a", "deliver", 7), ("b", "consume", None),
        ("a", "deliver", 8),
    ],
    "the only commit was refused": [
        ("a", "deliver", 0), ("a.1", "commit invoke", 1), ("a.1", "commit fail", 1), ("b", "consume", None),
        ("b", "deliver", 5),
    ],
}  # fmt: skip


@pytest.mark.parametrize("named_by", ["conn", "proc"])
@pytest.mark.parametrize("what", RIGHT)
def test_a_right_log_is_not_reported(what: str, named_by: str) -> None:
    assert read(*RIGHT[what], named_by=named_by).verdict is not Verdict.VIOLATED


WRONG: dict[str, list[Step]] = {
    "although it had committed 3": [
        ("a", "deliver", 0), ("a", "commit", 1), ("a", "commit", 3), ("b", "consume", None), ("b", "deliver", 2),
    ],
    "although it had committed 2": [  # a lower one that was refused does not count
        ("a", "deliver", 0), ("a.1", "commit invoke", 1), ("a.1", "commit fail", 1), ("a", "commit", 2),
        ("b", "consume", None), ("b", "deliver", 1),
    ],
    "left out 1": [("a", "consume", None), ("a", "deliver", 0), ("a", "deliver", 2)],
    "went back from position 1": [("a", "deliver", 0), ("a", "deliver", 1), ("a", "deliver", 0)],
    "left out 3": [("a", "deliver", 2), ("a", "commit", 3), ("b", "consume", None), ("b", "deliver", 4)],
}  # fmt: skip


@pytest.mark.parametrize("named_by", ["conn", "proc"])
@pytest.mark.parametrize("why", WRONG)
def test_what_no_commit_explains_is_reported(why: str, named_by: str) -> None:
    assert why in read(*WRONG[why], named_by=named_by).explanation


@pytest.mark.parametrize("setting", ["cleanup.policy", "retention.ms", "x-max-age"])
def test_a_topic_that_drops_messages_leaves_positions_out(setting: str) -> None:
    steps: list[Step] = [("a", "deliver", 0), ("a", "deliver", 2)]
    assert read(*steps).verdict is Verdict.VIOLATED
    assert read(*steps, **{setting: "any"}).verdict is Verdict.INCONCLUSIVE
    assert read(*steps, ("a", "deliver", 1), **{setting: "any"}).verdict is Verdict.VIOLATED


def test_a_member_that_may_have_lost_its_partition_may_go_back() -> None:
    """Where assignments are not recorded, and the group has another member; or back to where a group begins to read, as
    a member does that its group had not heard of for a while.
    """

    def go_back(part: int | None, *before: tuple[str, int | None], to: int = 1) -> Verdict:
        events = [
            Event(i=n, ev="consume", q="q", conn=conn, ctag="g", part=assigned)
            for n, (conn, assigned) in enumerate(before)
        ]
        events += [
            Event(i=5 + n, ev="publish", q="q", m=f"m{n}", pos=n, part=part) for n in range(3)
        ]
        events += [
            Event(i=9 + n, ev="deliver", q="q", m=f"m{pos}", pos=pos, part=part, conn="a", ctag="g")
            for n, pos in enumerate((0, 1, 2, to))
        ]
        return LogReader().check(list(complete(events))).verdict

    assert go_back(0) is Verdict.VIOLATED
    assert go_back(0, ("a", None), ("b", None)) is not Verdict.VIOLATED
    assert go_back(0, ("a", None), ("a", 0), ("b", None)) is Verdict.VIOLATED
    assert go_back(None, ("a", None), ("b", None)) is Verdict.VIOLATED
    assert go_back(0, to=0) is not Verdict.VIOLATED
    assert go_back(0, ("a", 0), to=0) is Verdict.VIOLATED
    assert go_back(None, to=0) is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("to", "begun", "right"), [(1, False, True), (2, False, False), (1, True, False)]
)
def test_a_member_that_may_have_lost_its_partition_after_a_seek_may_go_on_from_the_commit(
    to: int, begun: bool, right: bool
) -> None:
    """Its group had not heard of it for a while, and assigned it the partition anew."""
    event = partial(Event, q="q", part=0, conn="a", ctag="g")
    events = [Event(i=n, ev="publish", q="q", m=f"m{n}", pos=n, part=0) for n in range(3)]
    events += [event(i=3, ev="consume")] if begun else []
    events += [
        event(i=4, ev="deliver", m="m0", pos=0),
        event(i=5, ev="commit", pos=1, args={"committed": "next"}),
        event(i=6, ev="seek", pos=0, args={"committed": "next"}),
        event(i=7, ev="deliver", m=f"m{to}", pos=to),
    ]
    assert (LogReader().check(list(complete(events))).verdict is not Verdict.VIOLATED) is right


@pytest.mark.parametrize("last", ["commit", "conn_close"])
def test_whose_recorder_stopped_may_have_committed_more(last: str) -> None:
    """Who begins to read after that goes on from there; of a member that was seen to end there is nothing more."""
    event = partial(Event, q="q", part=0, ctag="g")
    events = [Event(i=n, ev="publish", q="q", m=f"m{n}", pos=n, part=0) for n in range(4)]
    events += [
        event(i=4, ev="deliver", m="m0", pos=0, conn="a", rec="one"),
        event(i=5, ev="commit", pos=1, args={"committed": "next"}, conn="a", rec="one"),
    ]
    if last == "conn_close":
        events.append(Event(i=6, ev="conn_close", ph="ok", conn="a", rec="one"))
    events += [
        event(i=7, ev="consume", conn="b", rec="other"),
        event(i=8, ev="deliver", m="m2", pos=2, conn="b", rec="other"),
    ]
    found = LogReader().check(list(complete(events)))
    assert (found.verdict is Verdict.VIOLATED) is (last == "conn_close")


def test_p4_after_a_seek_nothing_is_known_to_be_first() -> None:
    events = [
        Event(i=n, ev="publish", q="q", m=f"m{n}", pub="p", pseq=n, part=0, pos=n, conn="p")
        for n in range(2)
    ]
    for ev, pos in (("deliver", 1), ("seek", 0), ("deliver", 0)):
        m = f"m{pos}" if ev == "deliver" else ""
        events.append(Event(i=len(events), ev=ev, q="q", m=m, part=0, pos=pos, ctag="g", conn="a"))
    first = events[:2] + [e for e in events[2:] if e.ev != "seek"]
    assert FirstDeliveryOrder().check(list(complete(first))).verdict is Verdict.VIOLATED
    assert FirstDeliveryOrder().check(list(complete(events))).verdict is not Verdict.VIOLATED


@pytest.mark.parametrize("why", WRONG)
def test_what_is_shown_is_a_violation_by_itself(why: str) -> None:
    witness = read(*WRONG[why]).witness
    assert LogReader().check(witness).verdict is Verdict.VIOLATED


def unnamed(*lines: tuple[str, str, int], **fields: Any) -> Finding:
    """What P15 says of a topic: by event its client, and the number of its message and position."""
    events = []
    for n, (ev, conn, pos) in enumerate(lines):
        m = (
            ""
            if ev in ("commit", "seek", "consume")
            else f"{conn if ev == 'publish' else ''}m{pos}"
        )
        at = None if ev == "consume" else pos
        events.append(Event(i=n, ev=ev, q="q", conn=conn, m=m, pos=at, **fields))
    return LogReader().check(list(complete(events)))


def test_positions_of_two_messages_are_those_of_partitions_that_were_left_out() -> None:
    twice = [("publish", "p", 0), ("publish", "r", 0)]
    assert unnamed(*twice, part=0).verdict is Verdict.VIOLATED
    left_out = unnamed(*twice)
    assert left_out.verdict is Verdict.INCONCLUSIVE
    assert "record `part`" in left_out.decides
    back = [("deliver", "a", 0), ("deliver", "a", 1), ("deliver", "a", 0)]
    assert unnamed(*back).verdict is Verdict.VIOLATED
    assert unnamed(*twice, *back).verdict is Verdict.INCONCLUSIVE
    assert unnamed(*twice, ("delete", "p", 0), *back).verdict is Verdict.VIOLATED


def test_inside_a_log_a_message_behind_others_is_of_another_partition() -> None:
    put = [("publish", "", 4), ("publish", "", 0), ("deliver", "a", 4), ("deliver", "a", 0)]
    assert unnamed(*put, lvl="broker").verdict is Verdict.INCONCLUSIVE
    assert unnamed(*put).verdict is Verdict.VIOLATED


def test_readers_without_a_group_may_be_of_one() -> None:
    published = [("publish", "", n) for n in range(5)]
    first = ("deliver", "a", 1)
    for other in (("deliver", "b", 2), ("deliver", "b", 1)):
        for after in (("deliver", "a", 3), ("deliver", "a", 1)):
            steps = [*published, first, other, after]
            assert unnamed(*steps, part=0).verdict is not Verdict.VIOLATED
            assert unnamed(*published, first, after, part=0).verdict is Verdict.VIOLATED
    own = [first, ("commit", "a", 2), ("consume", "a", 0), first]
    assert unnamed(*own, part=0).verdict is Verdict.VIOLATED
    assert unnamed(("commit", "b", 0), *own, part=0).verdict is not Verdict.VIOLATED


def test_a_member_without_a_name_that_begins_twice_may_be_two() -> None:
    begun = ("consume", "", 0)
    back = [("deliver", "", 0), ("deliver", "", 1), ("deliver", "", 0)]
    assert unnamed(begun, *back, ctag="g").verdict is Verdict.VIOLATED
    assert unnamed(begun, begun, *back, ctag="g").verdict is not Verdict.VIOLATED


@pytest.mark.parametrize("names", [["part"], ["ctag"], ["part", "ctag"]], ids=" ".join)
def test_no_right_log_is_reported_without_its_partitions_or_groups(names: list[str]) -> None:
    for seed in range(60):
        events = completed(without(history(draw_log(seed)), names))
        finding = LogReader().check(events)
        assert finding.verdict is not Verdict.VIOLATED, (seed, finding.explanation)


@pytest.mark.parametrize(
    ("returns", "verdict"),
    [(1, Verdict.VIOLATED), (3, Verdict.INCONCLUSIVE), (None, Verdict.INCONCLUSIVE)],
)
@pytest.mark.parametrize("lost", [False, True])
def test_a_reader_leaves_out_what_a_publish_under_way_returns_later(
    returns: int | None, lost: bool, verdict: Verdict
) -> None:
    lines: list[dict[str, Any]] = [
        {"ev": "publish", "ph": "invoke", "op": 1, "m": "m0"},
        {"ev": "publish", "ph": "ok", "op": 1, "m": "m0", "pos": 0},
        {"ev": "publish", "ph": "invoke", "op": 2, "m": "m1"},
        {"ev": "deliver", "m": "m0", "pos": 0, "ctag": "g", "conn": "a", "ch": 1},
        {"ev": "deliver", "m": "m2", "pos": 2, "ctag": "g", "conn": "a", "ch": 1},
        *([{"ev": "gap"}] if lost else []),
        {"ev": "publish", "ph": "ok", "op": 2, "m": "m1", "pos": returns},
    ]
    end = len(lines) if returns is not None else -1
    events = [Event(i=n, t=n, q="q", **line) for n, line in enumerate(lines[:end])]
    finding = LogReader().check(events)
    assert finding.verdict is (Verdict.INCONCLUSIVE if lost else verdict), finding.explanation


def restarted(start: int, *, group: str, args: dict[str, object]) -> list[Event]:
    """A reader is given 0 to 3 and commits that it reads 4 next; another one goes on at `start`."""
    events = [
        Event(i=n, t=n, ev="publish", ph="ok", q="q", m=f"m{n}", pos=n, op=n) for n in range(8)
    ]

    def add(ev: str, ph: str, **fields: Any) -> None:
        i = len(events)
        events.append(Event(i=i, t=i, ev=ev, ph=ph, **fields))

    for by, positions in (("a", range(4)), ("b", range(start, 8))):
        add("consume", "ok", q="q", conn=by, ctag=group)
        for pos in positions:
            add("deliver", "", q="q", conn=by, ctag=group, m=f"m{pos}", pos=pos)
        if by == "a":
            add("commit", "invoke", q="q", conn=by, ctag=group, pos=4, op=9, args=args)
            add("commit", "ok", q="q", conn=by, ctag=group, pos=4, op=9, args=args)
            add("conn_close", "ok", conn=by)
    return events


NEXT: dict[str, object] = {"committed": "next"}


@pytest.mark.parametrize(
    ("start", "group", "args", "violates", "hint"),
    [
        (4, "g", NEXT, False, ""),
        (2, "g", NEXT, True, ""),  # behind the commit
        (0, "g", NEXT, True, ""),  # the commit went back by itself
        (6, "g", NEXT, True, ""),  # ahead of it
        (5, "g", NEXT, True, ""),
        (5, "g", {}, False, "undeclared-commit"),  # 4 may be what it was done with
        (2, "g", {}, True, "undeclared-commit"),
        (2, "", NEXT, False, "no-group"),
        (6, "", NEXT, False, "no-group"),
    ],
)
def test_who_goes_on_for_another_one_begins_at_its_commit(
    start: int, group: str, args: dict[str, object], violates: bool, hint: str
) -> None:
    """As far as is recorded that it is of the same group, and what a commit means; else lint says what is missing."""
    events = restarted(start, group=group, args=args)
    found = LogReader().check(list(complete(events)))
    assert (found.verdict is Verdict.VIOLATED) is violates
    hints = {h.id for h in lint(events)} & {"no-group", "undeclared-commit"}
    assert hints == ({hint} if hint else set())
