"""The order of a recording: stamps count, lines where they do not, and nothing where both are silent."""

from __future__ import annotations

from seriatim_models.history import Event
from seriatim_models.history.order import (
    ANY_LATER,
    MOST_WAITING,
    WAITS,
    RecordersOfFile,
    StampOrder,
    ranked,
)


def ordered(*events: Event) -> list[int]:
    """The indices of the events in the order in which they happened."""
    order = StampOrder()
    out = [x for e in events for x in order.take(e)]
    return [e.i for e in (*out, *order.rest())]


def line(
    i: int, t: int | None, ev: str = "rpc", ph: str = "", conn: str = "c", lvl: str = "api"
) -> Event:
    return Event(i=i, t=t, ev=ev, ph=ph, conn=conn, ch=1, m="m", lvl=lvl)


def test_a_line_that_waited_goes_back_to_its_stamp() -> None:
    assert ordered(line(1, 10), line(2, 30), line(3, 20), line(4, 40)) == [1, 3, 2, 4]


def test_a_clock_that_was_set_back_leaves_the_lines_as_they_stand() -> None:
    assert ordered(line(1, 2 * WAITS), line(2, 5), line(3, 4), line(4, 3 * WAITS)) == [1, 3, 2, 4]


def test_who_always_wrote_in_the_order_of_stamps_is_believed_for_those_alike() -> None:
    alike = [line(1, 5, "deliver"), line(2, 5, "publish", "invoke", conn="p")]
    assert ordered(*alike) == [1, 2]
    assert ordered(*alike, line(3, 4)) == [3, 2, 1]


def test_a_channel_keeps_its_lines_of_one_instant() -> None:
    closed = [line(1, 5, "ch_close", "ok"), line(2, 5, "ch_open", "invoke"), line(3, 4)]
    assert ordered(*closed) == [3, 1, 2]


def test_inside_a_broker_the_lines_are_the_order() -> None:
    assert ordered(line(1, 10, lvl="broker"), line(2, 9, lvl="broker")) == [1, 2]


def test_a_line_without_a_stamp_stays_behind_the_one_before() -> None:
    assert ordered(line(1, None), line(2, 10), line(3, None), line(4, 9)) == [1, 4, 2, 3]


def test_little_is_held_back() -> None:
    order = StampOrder()
    given = sum(len(order.take(line(n, n))) for n in range(10 * MOST_WAITING))
    assert given > 7 * MOST_WAITING
    assert len(order.take(line(0, 3 * WAITS))) + given > 9 * MOST_WAITING


def test_none_waits_behind_one_of_its_own_that_comes_late() -> None:
    assert ranked([3, 0, 2]) == [(0, 3), (0, 0), (2, 2)]


def test_a_line_without_a_stamp_happened_between_those_beside_it() -> None:
    """What it sends came after the stamp before it, what it was given before the one behind it."""
    order = StampOrder()
    lines = (
        line(1, None, "publish"),
        line(2, 10),
        line(3, None, "publish"),
        line(4, None, "deliver"),
        line(5, None, "publish", "ok"),
        line(6, 30),
        line(7, None, "deliver"),
    )
    out = [x for e in lines for x in order.take(e)]
    out += order.rest()
    assert [(e.i, e.t) for e in out] == [
        *((1, 0), (2, 10), (3, 10), (4, 30), (5, 30), (6, 30)),
        (7, 30),  # what follows it has no stamp
    ]
    assert [e.t_hi for e in out] == [*6 * (None,), ANY_LATER]  # so that it may be of any time since


def test_lines_before_the_first_stamp_wait_for_it_unless_there_may_be_none() -> None:
    order = StampOrder()
    assert [*order.take(line(1, None, "deliver")), *order.take(line(2, None, "publish"))] == []
    out = [*order.take(line(3, 10)), *order.rest()]
    assert [(e.i, e.t) for e in out] == [(1, 10), (2, 0), (3, 10)]
    for n in (5, 3 * MOST_WAITING):
        lines = [line(i, None, "deliver") for i in range(n)]
        assert ordered(*lines) == list(range(n))
    order = StampOrder()
    out = [x for e in lines for x in order.take(e)]
    assert len(out) >= len(lines) - MOST_WAITING  # no more of them wait
    out += [*order.take(line(n, 10)), *order.rest()]
    assert [e.i for e in out] == list(range(n + 1))


def test_many_lines_without_a_stamp_get_the_one_before_them() -> None:
    order = StampOrder()
    out = list(order.take(line(0, 10)))
    for i in range(1, 3 * MOST_WAITING):
        out += order.take(line(i, None, "deliver"))
    out += order.rest()
    assert [(e.i, e.t) for e in out] == [(i, 10) for i in range(3 * MOST_WAITING)]


def test_recorders_of_one_file_stand_in_the_order_of_time() -> None:
    def first_wrong(*lines: tuple[str, int | None]) -> int | None:
        file = RecordersOfFile()
        events = [Event(i=n, ev="rpc", t=t, rec=rec) for n, (rec, t) in enumerate(lines)]
        return next((e.i for e in events if file.out_of_order(e)), None)

    late = 3 * WAITS
    assert first_wrong(("a", 0), ("a", late), ("b", 1)) == 2  # a block of each
    assert first_wrong(("a", 0), ("b", 1), ("a", late), ("b", 2)) == 3
    assert first_wrong(("a", 0), ("a", late), ("b", late - WAITS), ("a", late)) is None  # it waited
    assert first_wrong(("a", late), ("a", 1), ("b", 2), ("a", 3)) is None  # a clock set back
    assert first_wrong(("a", late), ("b", late), ("b", 1), ("a", 2), ("b", 3)) is None
    assert first_wrong(("a", late), ("a", None), ("b", None), ("a", late)) is None
    assert first_wrong(("a", late), ("a", 1), ("a", 2)) is None
